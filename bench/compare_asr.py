#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures `consonant transcribe` beside whisper.cpp and faster-whisper: same machine, weights and clips, turns interleaved.

Speed: for each model, clip, number of threads and beam the engines take turns, `--rounds` times each; medians are compared.
  bench/compare_asr.py --model tiny.en=OURS,ggml-tiny.en.bin,CT2_FOLDER --manifest manifest.json --clip jfk.wav --clip long_160s.flac \\
    --whisper-cli DIR/whisper-cli --faster-whisper PYTHON -o docs/measured/asr.json

Accuracy: every short clip of the manifest that has a text, once an engine, model and beam; the language is given.
  bench/compare_asr.py --accuracy --engines consonant:auto --against docs/measured/asr_peers_accuracy.json \\
    --model ... --manifest manifest.json -o docs/measured/asr_accuracy.json
With --against it exits 1 if consonant makes more errors than the best peer of those documents.

An engine is NAME:KIND. Kinds: of consonant `auto` and `f32` (its --precision); of faster-whisper CTranslate2's compute type; of
whisper.cpp `f16`, the file as given. Another kind names a file beside the given one: `whisper.cpp:q8_0` runs ggml-base-q8_0.bin.
A document that -o finds is added to: what it has of other models, threads, beams or engines stays, and with --keep what it has of
these too, so that a long run can be taken up again.
Manifest: {"clips": [{"name":, "duration_s":, "language":, "text":, "same_speech_as":}]}, the files beside it.
"""
import argparse
import datetime
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "bench")]
import asr_score  # noqa: E402
import asr_tables  # noqa: E402
from compare_llama import CompareError, counts, machine_name, positive  # noqa: E402

WORKER = ROOT / "bench/faster_whisper_once.py"
OURS, WHISPER_CPP, FASTER_WHISPER = "consonant", "whisper.cpp", "faster-whisper"
AS_GIVEN = {OURS: ("auto", "f32"), WHISPER_CPP: ("f16",)}  # kinds for which the model's path is used as it is
MEASURES = ("wall_s", "call_s", "cpu_s", "peak_mb", "wer")


class Model(NamedTuple):
    name: str
    paths: dict  # by engine name


class Engine(NamedTuple):
    name: str
    kind: str

    @property
    def label(self) -> str:
        return f"{self.name} {self.kind}"

    def path(self, model: Model) -> pathlib.Path:
        given = model.paths[self.name]
        if self.name == FASTER_WHISPER or self.kind in AS_GIVEN[self.name]:
            return given
        suffix = "" if given.is_dir() else given.suffix
        return given.with_name(f"{given.name.removesuffix(suffix)}-{self.kind}{suffix}")


class Clip(NamedTuple):
    name: str
    path: pathlib.Path
    language: str
    text: str
    seconds: float
    copy_of: str


class Setting(NamedTuple):
    threads: int
    beam: int


class Done(NamedTuple):
    out: str
    err: str
    wall_s: float
    cpu_s: float
    peak_mb: float

    def figures(self) -> dict:
        return {"wall_s": self.wall_s, "cpu_s": self.cpu_s, "peak_mb": self.peak_mb}


class Unread(Exception):
    """A clip in a format that an engine doesn't take."""


def measured(command: list, timeout: float) -> Done:
    """Runs a program to its end; time, CPU time and peak memory are of that one process."""
    command = [str(part) for part in command]
    shown = " ".join(command)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        begin = time.perf_counter()
        try:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        except OSError as error:
            raise CompareError(f"{shown}: {error}") from error
        late = threading.Event()
        timer = threading.Timer(timeout, lambda: (late.set(), os.kill(process.pid, 9)))
        timer.start()
        try:
            # Waits without reaping, so that the timer can't hit a process that has since got this number.
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
            wall = time.perf_counter() - begin
        finally:
            timer.cancel()
            timer.join()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        texts = []
        for stream in (out, err):
            stream.seek(0)
            texts.append(stream.read().decode("utf-8", errors="replace"))
    if late.is_set():
        raise CompareError(f"{shown}: not done after {timeout:g} s")
    if process.returncode != 0:
        raise CompareError(f"{shown}: exit code {process.returncode}\n{texts[1].strip()[-2000:]}")
    return Done(texts[0], texts[1], wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024 / 1e6)


def text_of(document: str, what: str, pick) -> str:
    try:
        text = pick(json.loads(document))
    except (ValueError, KeyError, TypeError) as error:
        raise CompareError(f"{what}: no transcript in its JSON: {error!r}") from error
    if not isinstance(text, str):
        raise CompareError(f"{what}: its transcript is {text!r}")
    return text.strip()


def consonant(options, engine: Engine, model: Model, clip: Clip, setting: Setting) -> dict:
    command = [options.consonant, "transcribe", "-m", engine.path(model), "--format", "json", "--beam", setting.beam, "-l",
               clip.language, "--threads", setting.threads]
    command += ["--precision", engine.kind] if engine.kind == "f32" else []
    done = measured(command + [clip.path], options.timeout)
    text = text_of(done.out, f"consonant on {clip.name}", lambda found: found["text"])
    timings = json.loads(done.out).get("timings", {})
    return {"text": text} | ({"call_s": float(timings["wall_s"])} if "wall_s" in timings else {}) | done.figures()


def whisper_cpp(options, engine: Engine, model: Model, clip: Clip, setting: Setting) -> dict:
    # The transcript is taken from its JSON file: -nt, which would keep stdout plain, decodes without timestamps.
    with tempfile.TemporaryDirectory() as folder:
        target = pathlib.Path(folder, "out")
        done = measured([options.whisper_cli, "-m", engine.path(model), "-bs", setting.beam, "-bo", setting.beam, "-l", clip.language,
                         "-t", setting.threads, "-np", "-oj", "-of", target, clip.path], options.timeout)
        written = target.with_name("out.json")
        if not written.is_file():  # said on stderr alone: the exit code is 0
            raise Unread(done.err.strip()[-300:] or "no output")
        document = written.read_text(encoding="utf-8", errors="replace")
    return {"text": text_of(document, f"whisper.cpp on {clip.name}",
                            lambda found: "".join(part["text"] for part in found["transcription"]))} | done.figures()


def faster_whisper_all(options, engine: Engine, model: Model, clips: list, setting: Setting) -> tuple:
    command = [options.faster_whisper, "-B", WORKER, "--model", engine.path(model), "--kind", engine.kind, "--beam", setting.beam,
               "--threads", setting.threads]
    for clip in clips:
        command += ["--clip", clip.language, clip.path]
    done = measured(command, options.timeout * len(clips))
    try:
        found = json.loads(done.out)["clips"]
        if [pathlib.Path(one["file"]) for one in found] != [clip.path for clip in clips]:
            raise CompareError("faster-whisper: answers for other clips than were asked")
        return done, [one if "error" in one else {"text": one["text"].strip(), "call_s": float(one["call_s"])} for one in found]
    except (ValueError, KeyError, TypeError) as error:
        raise CompareError(f"faster-whisper: no transcripts in its JSON: {error!r}") from error


def faster_whisper(options, engine: Engine, model: Model, clip: Clip, setting: Setting) -> dict:
    done, (found,) = faster_whisper_all(options, engine, model, [clip], setting)
    if "error" in found:
        raise Unread(found["error"])
    return found | done.figures()


ONCE = {OURS: consonant, WHISPER_CPP: whisper_cpp, FASTER_WHISPER: faster_whisper}


def error_rate(clip: Clip, text: str) -> float:
    scored = asr_score.score(clip.text, text, clip.language)
    return scored["edits"] / scored["units"]


def summary(rounds: list) -> dict:
    result = {}
    for name in MEASURES:
        values = [one[name] for one in rounds if name in one]
        if values:
            result[name] = statistics.median(values)
            result[f"{name}_min"], result[f"{name}_max"] = min(values), max(values)
    return result


class Document:
    """The results under their keys, and what -o holds of earlier calls."""

    def __init__(self, target, head: dict, key_names: tuple):
        self.target, self.head, self.key_names, self.results, self.clips = target, head, key_names, {}, {}
        if target and target.is_file():
            old = json.loads(target.read_text(encoding="utf-8"))
            for name in ("kind", "machine", "rounds"):
                if old.get(name) != head.get(name):
                    raise CompareError(f"{target} has {name} {old.get(name)!r}, this call {head.get(name)!r}: write elsewhere")
            self.clips = old.get("clips", {})
            self.results = {self.key(result): result for result in old["results"]}

    def key(self, result: dict) -> tuple:
        return tuple(result[name] for name in self.key_names)

    def put(self, result: dict) -> None:
        old = self.results.get(self.key(result))
        if old and isinstance(old.get("engines"), dict):
            result = result | {"engines": old["engines"] | result["engines"]}
        self.results[self.key(result)] = result
        if self.target:
            self.target.parent.mkdir(parents=True, exist_ok=True)
            part = self.target.with_name(self.target.name + ".part")
            part.write_text(json.dumps(self.whole(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
            part.replace(self.target)

    def whole(self) -> dict:
        tail = {"clips": self.clips} if self.clips else {}
        return self.head | tail | {"results": list(self.results.values())}


def head_of(options, kind: str, title: str) -> dict:
    models = " ".join(f"--model {model.name}=..." for model in options.model)
    command = "bench/compare_asr.py " + ("--accuracy " if options.accuracy else "") + models
    if not options.accuracy:
        command += "".join(f" --clip {name}" for name in options.clip) + f" --rounds {options.rounds}"
    command += " --leave-out ..." if options.leave_out else ""
    command += f" --threads {','.join(map(str, options.threads))} --beams {','.join(map(str, options.beams))}"
    return {"kind": kind, "title": title, "machine": options.machine, "command": command, "versions": options.versions,
            "date": datetime.date.today().isoformat()}


def speed(options, clips: list) -> dict:
    head = head_of(options, "asr", f"Transcription, medians of {options.rounds} rounds in turn") | {"rounds": options.rounds}
    document = Document(options.output, head, ("model", "clip", "threads", "beam"))
    for model in options.model:
        for clip in clips:
            for threads in options.threads:
                for beam in options.beams:
                    runs = {engine.label: [] for engine in options.engines}
                    for turn in range(options.rounds):
                        for engine in options.engines:
                            one = ONCE[engine.name](options, engine, model, clip, Setting(threads, beam))
                            one["wer"] = error_rate(clip, one["text"])
                            runs[engine.label].append(one)
                            print(f"{model.name}, {clip.name}, {threads} threads, beam {beam}, round {turn + 1}/{options.rounds}, "
                                  f"{engine.label}: {one['wall_s']:.2f} s, {one['peak_mb']:.0f} MB", file=sys.stderr)
                    document.put({"model": model.name, "clip": clip.name, "seconds": clip.seconds, "threads": threads, "beam": beam,
                                  "engines": {label: summary(rounds) for label, rounds in runs.items()}})
    return document.whole()


def texts(options, engine: Engine, model: Model, clips: list, setting: Setting):
    """Each clip with its transcript, or None where the engine can't read it."""
    if engine.name == FASTER_WHISPER:
        _, found = faster_whisper_all(options, engine, model, clips, setting)
        yield from ((clip, one.get("text")) for clip, one in zip(clips, found))
        return
    for clip in clips:
        try:
            yield clip, ONCE[engine.name](options, engine, model, clip, setting)["text"]
        except Unread:
            yield clip, None


def known(clip: Clip) -> dict:
    fields = {"language": clip.language, "counted": asr_score.counted(clip.language), "text": clip.text}
    return fields | ({"copy_of": clip.copy_of} if clip.copy_of else {})


def accuracy(options, clips: list) -> dict:
    head = head_of(options, "asr_accuracy", "Errors over the short clips, language given")
    head |= {"left_out": options.leave_out} if options.leave_out else {}
    document = Document(options.output, head, ("engine", "model", "beam"))
    changed = {clip.name for clip in clips if document.clips.get(clip.name, known(clip)) != known(clip)}
    document.clips |= {clip.name: known(clip) for clip in clips}
    for engine in options.engines:
        for model in options.model:
            wanted = [clip for clip in clips if clip.language == "en" or not model.name.endswith(".en")]
            for beam in options.beams:
                result = {"engine": engine.label, "model": model.name, "beam": beam, "found": {}}
                if options.keep:
                    old = document.results.get(document.key(result), result)["found"]
                    result["found"] = {name: one for name, one in old.items() if name not in changed}
                missing = [clip for clip in wanted if clip.name not in result["found"]]
                for clip, text in texts(options, engine, model, missing, Setting(options.threads[0], beam)) if missing else ():
                    result["found"][clip.name] = text if text is None else {"text": text} | asr_score.score(clip.text, text, clip.language)
                    document.put(result)
                    print(f"{engine.label}, {model.name}, beam {beam}, {clip.name}: {result['found'][clip.name]}", file=sys.stderr)
    return document.whole()


def read_clips(options) -> list:
    """The clips to run: those named, or for --accuracy all short ones with a text, except those that are broken on purpose."""
    entries = {entry["name"]: entry for entry in json.loads(options.manifest.read_text(encoding="utf-8"))["clips"]}
    if options.accuracy:
        names = [name for name, entry in entries.items() if entry.get("text") and entry.get("language")
                 and not name.startswith("bad_") and entry["duration_s"] <= options.longest and name not in options.leave_out]
    else:
        names = options.clip
    clips = []
    for name in (*names, *options.leave_out):
        if name not in entries:
            raise CompareError(f"{options.manifest}: no clip {name}")
    for name in names:
        path = (options.manifest.parent / name).resolve()
        if not path.is_file():
            raise CompareError(f"{path}: no such file")
        entry = entries[name]
        clips.append(Clip(name, path, entry["language"], entry["text"], entry["duration_s"], entry.get("same_speech_as", "")))
    if not clips:
        raise CompareError(f"{options.manifest}: no clip to run")
    return clips


def model_of(text: str) -> Model:
    name, _, rest = text.partition("=")
    paths = rest.split(",")
    if not name or len(paths) != 3:
        raise argparse.ArgumentTypeError(f"{text}: not NAME=CONSONANT,GGML,CT2 (a path may be empty if its engine isn't asked for)")
    return Model(name, {engine: pathlib.Path(path) for engine, path in zip((OURS, WHISPER_CPP, FASTER_WHISPER), paths) if path})


def engines_of(text: str) -> list:
    engines = [Engine(*part.split(":", 1)) if ":" in part else Engine(part, "") for part in text.split(",")]
    for engine in engines:
        if engine.name not in ONCE or not engine.kind:
            raise argparse.ArgumentTypeError(f"{engine.name}:{engine.kind}: not one of {', '.join(ONCE)} with a kind")
    if len(set(engines)) != len(engines):
        raise argparse.ArgumentTypeError(f"{text}: an engine twice")
    return engines


def arguments(argv: list) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--accuracy", action="store_true", help="count errors over all short clips; don't measure time")
    parser.add_argument("--model", type=model_of, action="append", required=True, help="NAME=CONSONANT,GGML,CT2; may be repeated")
    parser.add_argument("--engines", type=engines_of, default=engines_of("consonant:auto,whisper.cpp:f16,faster-whisper:int8"))
    parser.add_argument("--consonant", type=pathlib.Path, default=ROOT / "build/release/bin/consonant")
    parser.add_argument("--whisper-cli", type=pathlib.Path)
    parser.add_argument("--faster-whisper", type=pathlib.Path, help="a Python that can import faster_whisper")
    parser.add_argument("--manifest", type=pathlib.Path, required=True)
    parser.add_argument("--clip", action="append", default=[], help="a clip of the manifest to measure; may be repeated")
    parser.add_argument("--leave-out", action="append", default=[], help="a clip that --accuracy doesn't run; may be repeated")
    parser.add_argument("--keep", action="store_true", help="--accuracy: don't run again what the document of -o already has")
    parser.add_argument("--longest", type=float, default=60, help="seconds of a clip that --accuracy still calls short")
    parser.add_argument("--threads", type=counts, help="default: 1,2; with --accuracy: 1")
    parser.add_argument("--beams", type=counts, default=[1, 5])
    parser.add_argument("--rounds", type=positive, default=3)
    parser.add_argument("--timeout", type=float, default=600, help="seconds that one program may take for one clip")
    parser.add_argument("--machine", default=machine_name(), help="what the machine is called in the document")
    parser.add_argument("--versions", default="", help="versions of the engines, for the document")
    parser.add_argument("--against", type=pathlib.Path, action="append", default=[], help="an accuracy document of peers")
    parser.add_argument("-o", "--output", type=pathlib.Path)
    options = parser.parse_args(argv)
    options.threads = options.threads or ([1] if options.accuracy else [1, 2])
    check(parser, options)
    return options


def check(parser: argparse.ArgumentParser, options) -> None:
    if options.accuracy == bool(options.clip):
        parser.error("--clip NAME for times, or --accuracy for all clips: one of the two")
    if options.accuracy and len(options.threads) > 1:
        parser.error("--accuracy runs with one number of threads")
    if not options.accuracy and options.rounds < 3:
        parser.error("--rounds: a median needs at least 3")
    if len({model.name for model in options.model}) != len(options.model):
        parser.error("--model: two of one name")
    programs = {OURS: options.consonant, WHISPER_CPP: options.whisper_cli, FASTER_WHISPER: options.faster_whisper}
    needed = [options.manifest, *options.against]
    for engine in options.engines:
        if programs[engine.name] is None:
            parser.error(f"{engine.label}: --{'whisper-cli' if engine.name == WHISPER_CPP else engine.name} says where it is")
        needed.append(programs[engine.name])
        for model in options.model:
            if engine.name not in model.paths:
                parser.error(f"--model {model.name}: no path for {engine.name}")
            needed.append(engine.path(model))
    for path in needed:
        if not path.exists():
            parser.error(f"{path}: no such file")


def main(argv: list) -> int:
    options = arguments(argv)
    if not options.accuracy and os.getloadavg()[0] > 0.5:
        print(f"compare_asr: this machine is busy (load {os.getloadavg()[0]:.1f}): the figures will be of the load too", file=sys.stderr)
    try:
        clips = read_clips(options)
        if not options.accuracy:
            print(asr_tables.speed(speed(options, clips)), end="")
            return 0
        documents = [json.loads(path.read_text(encoding="utf-8")) for path in options.against]
        documents.append(accuracy(options, clips))
        print(asr_tables.accuracy(documents), end="")
        worse = asr_tables.worse_than_peers(documents) if options.against else []
    except (CompareError, Unread, asr_tables.TableError, KeyError, ValueError, OSError) as error:
        print(f"compare_asr: {type(error).__name__}: {error}", file=sys.stderr)
        return 1
    for line in worse:
        print(f"compare_asr: {line}", file=sys.stderr)
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
