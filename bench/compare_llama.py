#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures consonant beside llama.cpp: same machine, same files, one run, their turns interleaved.

  bench/compare_llama.py --llama-bench DIR/llama-bench --model A.gguf --model B.gguf --threads 1,2 -o docs/measured/llama_cpp.json

For each model and number of threads the two programs take turns, `--rounds` times each, and the medians are compared.
Prints a table in Markdown; with -o also writes what tools/render_docs.py makes the README's table of. The bound of decode
is the measured bandwidth of the memory over the bytes that a token reads, as `consonant bench` reports it.
"""
import argparse
import datetime
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SPEEDS = ("prefill_tokens_per_s", "decode_tokens_per_s")
SHARE = "decode_share_of_bandwidth"


class CompareError(Exception):
    """A program that failed, or an answer that can't be used."""


def run_json(command: list, timeout: float):
    shown = " ".join(map(str, command))
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CompareError(f"{shown}: {error}") from error
    if done.returncode != 0:
        raise CompareError(f"{shown}: exit code {done.returncode}\n{done.stderr.strip()[-2000:]}")
    try:
        return json.loads(done.stdout)
    except ValueError as error:
        raise CompareError(f"{shown}: no JSON: {error}") from error


def speed(value, what: str) -> float:
    if not isinstance(value, (int, float)) or not math.isfinite(value) or value <= 0:
        raise CompareError(f"{what}: {value!r} is not a speed")
    return float(value)


def consonant_once(options, model: pathlib.Path, threads: int) -> dict:
    command = [options.consonant, "bench", "-m", model, "--device", "cpu", "--prompt", options.prompt, "--gen",
               options.gen, "--threads", threads, "--repeat", 1, "--json"]
    document = run_json([str(part) for part in command], options.timeout)
    try:
        (result,) = document["results"]
        found = {name: speed(result[name], f"consonant's {name}") for name in SPEEDS}
    except (KeyError, TypeError, ValueError) as error:
        raise CompareError(f"consonant bench --json: not one result with {', '.join(SPEEDS)}: {error!r}") from error
    if result.get(SHARE):  # absent or 0 where the bandwidth couldn't be measured
        found[SHARE] = speed(result[SHARE], f"consonant's {SHARE}")
    return found


def llama_once(options, model: pathlib.Path, threads: int) -> dict:
    command = [options.llama_bench, "-m", model, "-p", options.prompt, "-n", options.gen, "-t", threads, "-ngl", 0, "-r", 1,
               "-o", "json"]
    tests = run_json([str(part) for part in command], options.timeout)
    found = {}
    try:
        for test in tests:
            prefill = test["n_prompt"] > 0
            if prefill and test["n_gen"] > 0:
                raise CompareError("llama-bench measured prefill and decode in one")
            found[SPEEDS[0] if prefill else SPEEDS[1]] = speed(test["avg_ts"], "llama-bench's avg_ts")
    except (KeyError, TypeError) as error:
        raise CompareError(f"llama-bench -o json: {error!r}") from error
    if found.keys() != set(SPEEDS):
        raise CompareError(f"llama-bench measured {sorted(found)} instead of {', '.join(SPEEDS)}")
    return found


def summary(rounds: list) -> dict:
    """Medians over the rounds, with the least and the most beside each."""
    result = {}
    for name in SPEEDS:
        values = [one[name] for one in rounds]
        result[name] = statistics.median(values)
        result[f"{name}_min"], result[f"{name}_max"] = min(values), max(values)
    shares = [one[SHARE] for one in rounds if SHARE in one]
    if len(shares) == len(rounds):
        result[SHARE] = statistics.median(shares)
        # Each round measures the bandwidth anew, so the bound is taken of each round before the median.
        result["decode_bound_tokens_per_s"] = statistics.median(one[SPEEDS[1]] / one[SHARE] for one in rounds)
    return result


def compare(options) -> dict:
    ours, theirs = [], []
    for model in options.model:
        for threads in options.threads:
            mine, other = [], []
            for turn in range(options.rounds):
                for once, to in ((consonant_once, mine), (llama_once, other)):
                    to.append(once(options, model, threads))
                    print(f"{model.stem}, {threads} threads, round {turn + 1}/{options.rounds}, {once.__name__[:-5]}: "
                          + ", ".join(f"{to[-1][name]:.1f}" for name in SPEEDS) + " tokens/s", file=sys.stderr)
            key = {"model": model.stem, "threads": threads, "prompt": options.prompt, "gen": options.gen}
            ours.append(key | summary(mine))
            theirs.append(key | summary(other))
    return {
        "title": f"{options.prompt} tokens of prefill and {options.gen} of decode, medians of {options.rounds} rounds in turn",
        "machine": options.machine,
        "command": command_line(options),
        "date": datetime.date.today().isoformat(),
        "consonant": {"results": ours},
        "peer": {"name": options.peer_name, "results": theirs},
    }


def command_line(options) -> str:
    models = " ".join(f"--model {model.name}" for model in options.model)
    threads = ",".join(map(str, options.threads))
    return (f"bench/compare_llama.py --llama-bench llama-bench {models} --threads {threads} --prompt {options.prompt} "
            f"--gen {options.gen} --rounds {options.rounds}")


def machine_name() -> str:
    try:
        for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return f"{line.split(':', 1)[1].strip()}, {os.cpu_count()} CPUs"
    except OSError:
        pass  # not Linux: the name below will do
    return f"{os.uname().machine}, {os.cpu_count()} CPUs"


def markdown(document: dict) -> str:
    peer = document["peer"]["name"]
    columns = ["model", "threads"]
    for label in ("prefill", "decode"):
        columns += [f"{label}, t/s", peer, "ratio"]
    lines = [columns + ["decode's bound, t/s", "share of it"]]
    lines.append(["---"] * len(lines[0]))
    for mine, other in zip(document["consonant"]["results"], document["peer"]["results"]):
        line = [mine["model"], mine["threads"]]
        for name in SPEEDS:
            for result in (mine, other):
                line.append(f"{result[name]:.1f} ({result[f'{name}_min']:.1f} to {result[f'{name}_max']:.1f})")
            line.append(f"**{mine[name] / other[name]:.2f}**")
        line += [f"{mine['decode_bound_tokens_per_s']:.0f}", f"{mine[SHARE]:.0%}"] if SHARE in mine else ["", ""]
        lines.append(line)
    return "".join("| " + " | ".join(map(str, line)) + " |\n" for line in lines)


def counts(text: str) -> list:
    values = [int(part) for part in text.split(",")]
    if min(values) < 1 or len(set(values)) != len(values):
        raise argparse.ArgumentTypeError(f"{text}: not different numbers above 0")
    return values


def positive(text: str) -> int:
    (value,) = counts(text)
    return value


def arguments(argv: list) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--consonant", type=pathlib.Path, default=ROOT / "build/release/bin/consonant")
    parser.add_argument("--llama-bench", type=pathlib.Path, required=True)
    parser.add_argument("--model", type=pathlib.Path, action="append", required=True, help="a GGUF file; may be repeated")
    parser.add_argument("--threads", type=counts, default=[1, 2])
    parser.add_argument("--prompt", type=positive, default=512)
    parser.add_argument("--gen", type=positive, default=128)
    parser.add_argument("--rounds", type=positive, default=3)
    parser.add_argument("--timeout", type=float, default=600, help="seconds that one program may take for one round")
    parser.add_argument("--machine", default=machine_name(), help="what the machine is called in the document")
    parser.add_argument("--peer-name", default="llama.cpp")
    parser.add_argument("-o", "--output", type=pathlib.Path)
    options = parser.parse_args(argv)
    if options.rounds < 3:
        parser.error("--rounds: a median needs at least 3")
    for path in (options.consonant, options.llama_bench, *options.model):
        if not path.is_file():
            parser.error(f"{path}: no such file")
    if len({model.stem for model in options.model}) != len(options.model):
        parser.error("--model: two files of one name")
    return options


def main(argv: list) -> int:
    options = arguments(argv)
    if os.getloadavg()[0] > 0.5:
        print(f"compare_llama: this machine is busy (load {os.getloadavg()[0]:.1f}): the figures will be of the load too",
              file=sys.stderr)
    try:
        document = compare(options)
        if options.output:
            options.output.parent.mkdir(parents=True, exist_ok=True)
            options.output.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    except (CompareError, OSError) as error:
        print(f"compare_llama: {error}", file=sys.stderr)
        return 1
    print(markdown(document), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
