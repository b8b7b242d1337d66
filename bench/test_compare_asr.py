#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of compare_asr.py, its scores and its tables, with three programs that only pretend to listen."""
import contextlib
import io
import json
import pathlib
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tools")]
import asr_score  # noqa: E402
import asr_tables  # noqa: E402
import compare_asr  # noqa: E402

# Each notes its name and arguments in a log; what it says of a clip is in texts.json (absent: it can't read the clip).
FAKE = """#!{python} -IS
import json, os, pathlib, sys, time
here, name, argv = pathlib.Path(__file__).parent, pathlib.Path(__file__).name, sys.argv[1:]
with (here / "log").open("a") as out: out.write(json.dumps([name, *argv]) + "\\n")
texts = json.loads((here / "texts.json").read_text())
def said(file): return texts[name].get(pathlib.Path(file).name)
def after(flag): return argv[argv.index(flag) + 1]
{body}
"""
CONSONANT = 'print(json.dumps({"file": argv[-1], "text": " " + said(argv[-1])}))'
WHISPER_CPP = """
if said(argv[-1]) is None: sys.exit(print("error: failed to read audio", file=sys.stderr))
parts = [{"text": " " + word} for word in said(argv[-1]).split()]
pathlib.Path(after("-of") + ".json").write_text(json.dumps({"transcription": parts}))
"""
FASTER_WHISPER = """
files = [argv[place + 2] for place, part in enumerate(argv) if part == "--clip"]
print(json.dumps({"clips": [{"file": file, "text": said(file), "call_s": 0.001} if said(file) is not None else
                            {"file": file, "error": "InvalidDataError"} for file in files]}))
"""
MANIFEST = {"clips": [
    {"name": "a.wav", "duration_s": 3.0, "language": "en", "text": "Mister Fox has ten ill disposed hens."},
    {"name": "b.m4a", "duration_s": 3.0, "language": "en", "text": "Mister Fox has ten ill disposed hens.", "same_speech_as": "a.wav"},
    {"name": "c.wav", "duration_s": 2.0, "language": "zh", "text": "你好世界。"},
    {"name": "bad_x.wav", "duration_s": 2.0, "language": "en", "text": "What"},
    {"name": "quiet.wav", "duration_s": 2.0, "language": None, "text": ""},
    {"name": "long.flac", "duration_s": 160.0, "language": "en", "text": "One two three four"}]}
RIGHT, CLOSE = "Mr. Fox has 10 ill-disposed hens", "Mr. Fox has 10 old-sposed hens"


class Score(unittest.TestCase):
    def test_spelling_is_no_error(self):
        for reference, found in (
                ("Mister John Dashwood", "mr. John DASHWOOD!"),
                ("Go forward ten meters.", "Go forward 10 meters"),
                ("He was not an ill disposed young man,", "He was not an ill-disposed young man."),
                ("don't", "don\u2019t"),
                ("four thousand two hundred seven", "4,207"),
                ("twenty one", "21"), ("ninety", "90"), ("zero zero seven", "007"), ("twelve million one", "12000001")):
            with self.subTest(reference=reference):
                self.assertEqual(asr_score.score(reference, found, "en")["edits"], 0)

    def test_errors_are_counted(self):
        for reference, found, language, edits, units in (
                ("ill disposed young", "old-sposed young", "en", 2, 3),
                ("cold hearted", "coldhearted", "en", 2, 2),
                ("a b c", "", "en", 3, 3),
                ("a", "a b c", "en", 2, 1),
                ("a b c d", "b c d e", "en", 2, 4),
                ("comía", "comia", "es", 1, 1),
                ("diez", "10", "es", 1, 1),
                ("नमस्ते दुनिया.", "नमस्ते, दुनिया", "hi", 0, 2),
                ("こんにちは世界。", "こんにちは、世 会", "ja", 1, 7),
                ("สวัสดีชาวโลก", "สวัสดี ชาวโลก", "th", 0, 12)):
            with self.subTest(reference=reference, found=found):
                self.assertEqual(asr_score.score(reference, found, language), {"edits": edits, "units": units})

    def test_nothing_said_has_no_rate(self):
        with self.assertRaises(ValueError):
            asr_score.score("...", "x", "en")


class Compare(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for name, body in (("consonant", CONSONANT), ("whisper-cli", WHISPER_CPP), ("python", FASTER_WHISPER)):
            self.program(name, body)
        self.say()
        self.write("manifest.json", MANIFEST)
        for clip in MANIFEST["clips"]:
            (self.root / clip["name"]).touch()
        for model in ("tiny.gguf", "ggml.bin", "ggml-q8_0.bin", "ct2"):
            (self.root / model).touch()

    def write(self, name, document):
        (self.root / name).write_text(json.dumps(document))

    def program(self, name, body):
        path = self.root / name
        path.write_text(FAKE.format(python=sys.executable, body=body))
        path.chmod(0o755)

    def say(self, **changes):
        everything = {"a.wav": RIGHT, "b.m4a": RIGHT, "c.wav": "你好世界", "long.flac": "1 2 3 4"}
        without_m4a = {name: text for name, text in everything.items() if name != "b.m4a"}
        self.write("texts.json", {"consonant": everything, "whisper-cli": without_m4a, "python": everything} | changes)

    def run_it(self, *more, model="base"):
        argv = ["--consonant", self.root / "consonant", "--whisper-cli", self.root / "whisper-cli", "--faster-whisper",
                self.root / "python", "--manifest", self.root / "manifest.json", "--machine", "a box", "--model",
                f"{model}={self.root}/tiny.gguf,{self.root}/ggml.bin,{self.root}/ct2", *more]
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code = compare_asr.main([str(part) for part in argv])
            except SystemExit as stop:
                code = stop.code
        return code, out.getvalue(), err.getvalue()

    def log(self):
        return [json.loads(line) for line in (self.root / "log").read_text().splitlines()]

    def assert_flags(self, call, *pairs):
        for pair in pairs:
            self.assertIn(list(pair), [call[place:place + 2] for place in range(len(call))])

    def test_the_three_take_turns_with_the_same_settings(self):
        code, _, err = self.run_it("--clip", "a.wav", "--clip", "long.flac", "--threads", "2", "--beams", "5")
        self.assertEqual(code, 0, err)
        calls = self.log()
        self.assertEqual([call[0] for call in calls], ["consonant", "whisper-cli", "python"] * 6)
        ours, cpp, fast = calls[-3:]
        self.assert_flags(ours, ("-m", f"{self.root}/tiny.gguf"), ("--threads", "2"), ("--beam", "5"), ("-l", "en"), ("--format", "json"))
        self.assert_flags(cpp, ("-m", f"{self.root}/ggml.bin"), ("-t", "2"), ("-bs", "5"), ("-bo", "5"), ("-l", "en"))
        self.assert_flags(fast, ("--model", f"{self.root}/ct2"), ("--threads", "2"), ("--beam", "5"), ("--clip", "en"), ("--kind", "int8"))
        self.assertNotIn("-nt", cpp)  # would decode without timestamps
        self.assertTrue(all(call[-1].endswith("long.flac") for call in calls[-3:]))

    def test_times_memory_and_errors_of_a_run(self):
        self.program("consonant", "bytearray(60_000_000); time.sleep(0.3)\n" + CONSONANT)
        self.say(consonant={"a.wav": CLOSE})
        code, table, err = self.run_it("--clip", "a.wav", "--threads", "1", "--beams", "1", "-o", self.root / "out/asr.json")
        self.assertEqual(code, 0, err)
        text = (self.root / "out/asr.json").read_text()
        self.assertNotIn(str(self.root), text)
        (result,) = json.loads(text)["results"]
        ours, fast = result["engines"]["consonant auto"], result["engines"]["faster-whisper int8"]
        self.assertGreater(ours["wall_s_min"], 0.3)
        self.assertLess(ours["cpu_s"], ours["wall_s"])
        self.assertGreater(ours["peak_mb"], 60)
        self.assertAlmostEqual(ours["wer"], 2 / 7)
        self.assertEqual((fast["call_s"], fast["wer"]), (0.001, 0))
        self.assertIn("| base | a.wav | 1 | greedy |", table)
        self.assertIn("| 28.6 / 0.0 / 0.0 |\n", table)
        self.assertEqual(list((self.root / "out").iterdir()), [self.root / "out/asr.json"])

    def test_a_document_is_added_to_but_not_mixed(self):
        target = self.root / "asr.json"
        for more in (["--threads", "1"], ["--threads", "2"], ["--threads", "2"]):
            self.assertEqual(self.run_it("--clip", "a.wav", "--beams", "1", "-o", target, *more)[0], 0)
        self.assertEqual([result["threads"] for result in json.loads(target.read_text())["results"]], [1, 2])
        code, _, err = self.run_it("--clip", "a.wav", "-o", target, "--machine", "another box")
        self.assertEqual(code, 1)
        self.assertIn("another box", err)

    def test_accuracy_runs_what_is_short_and_sound(self):
        target = self.root / "e.json"
        code, table, err = self.run_it("--accuracy", "--beams", "5", "-o", target)
        self.assertEqual(code, 0, err)
        self.assertEqual([pathlib.Path(call[-1]).name for call in self.log()], ["a.wav", "b.m4a", "c.wav"] * 2 + ["c.wav"])
        self.assertIn("| base | 5 | whisper.cpp f16 | 2 | 0.0% (0 of 7) | 0.0% (0 of 7) | 0.0% (0 of 4) | b.m4a |\n", table)
        self.assertIn("| base | 5 | consonant auto | 2 | 0.0% (0 of 7) | 0.0% (0 of 7) | 0.0% (0 of 4) |  |\n", table)
        document = json.loads(target.read_text())
        self.assertEqual(document["clips"]["b.m4a"]["copy_of"], "a.wav")
        self.assertIsNone(document["results"][1]["found"]["b.m4a"])

    def test_a_run_is_taken_up_again(self):
        ours = ["--accuracy", "--beams", "1", "--engines", "consonant:auto", "-o", self.root / "e.json"]
        for more in (["--leave-out", "b.m4a"], ["--keep"], ["--keep"], []):
            self.assertEqual(self.run_it(*ours, *more)[0], 0)
        self.assertEqual([pathlib.Path(call[-1]).name for call in self.log()], ["a.wav", "c.wav", "b.m4a", "a.wav", "b.m4a", "c.wav"])
        self.write("manifest.json", {"clips": [MANIFEST["clips"][0] | {"text": "Hens"}, *MANIFEST["clips"][1:]]})
        self.assertEqual(self.run_it(*ours, "--keep")[0], 0)
        self.assertEqual([pathlib.Path(call[-1]).name for call in self.log()[6:]], ["a.wav"])
        document = json.loads((self.root / "e.json").read_text())
        self.assertEqual(document["results"][0]["found"]["a.wav"]["units"], 1)
        self.assertNotIn("left_out", document)

    def test_accuracy_of_an_english_model_and_of_other_kinds(self):
        code, _, err = self.run_it("--accuracy", "--beams", "1", "--engines", "consonant:f32,whisper.cpp:q8_0", "--leave-out", "b.m4a",
                                   model="tiny.en")
        self.assertEqual(code, 0, err)
        ours, cpp = self.log()
        self.assert_flags(ours, ("--precision", "f32"), ("-m", f"{self.root}/tiny.gguf"))
        self.assert_flags(cpp, ("-m", f"{self.root}/ggml-q8_0.bin"))

    def test_the_gate(self):
        peers, ours = self.root / "peers.json", self.root / "ours.json"
        self.say(python={"a.wav": CLOSE, "b.m4a": CLOSE, "c.wav": "你好"})
        self.assertEqual(self.run_it("--accuracy", "--engines", "whisper.cpp:f16,faster-whisper:int8", "-o", peers)[0], 0)
        gate = ["--accuracy", "--engines", "consonant:auto", "--against", peers]
        code, _, err = self.run_it(*gate, "-o", ours)
        self.assertEqual(code, 0, err)
        code, table, err = self.run_it(*gate, "--beams", "1,5", "--leave-out", "c.wav")
        self.assertEqual(code, 0, err)
        self.assertIn("| base | 5 | consonant auto | 1 | 0.0% (0 of 7) | 0.0% (0 of 7) |  |  |\n", table)
        self.say(consonant={"a.wav": CLOSE, "b.m4a": RIGHT, "c.wav": "你好世"})
        code, table, err = self.run_it(*gate)
        self.assertEqual(code, 1)
        self.assertIn("consonant auto, base, beam 5: WER 28.6% (2 of 7), whisper.cpp f16 has 0.0% (0 of 7)", err)
        self.assertIn("consonant auto, base, beam 1: CER 25.0% (1 of 4), whisper.cpp f16 has 0.0% (0 of 4)", err)
        self.assertIn("| base | 5 | consonant auto | 2 | 28.6% (2 of 7) |", table)

    def test_failures_are_told(self):
        target = self.root / "x.json"
        for name, body, told in (
                ("consonant", "sys.exit('no kernel')", "no kernel"),
                ("consonant", "print('{')", "no transcript"),
                ("consonant", "print('{\"text\": 3}')", "its transcript is 3"),
                ("whisper-cli", "sys.exit(3)", "exit code 3"),
                ("whisper-cli", "print('cannot', file=sys.stderr)", "Unread: cannot"),
                ("python", "print('{\"clips\": []}')", "other clips"),
                ("python", "import ctranslate3", "ctranslate3"),
                ("python", "time.sleep(100)", "not done after 1 s")):
            with self.subTest(name=name, told=told):
                for good, text in (("consonant", CONSONANT), ("whisper-cli", WHISPER_CPP), ("python", FASTER_WHISPER)):
                    self.program(good, text)
                self.program(name, body)
                limit = ["--timeout", "1"] if "after" in told else []
                code, table, err = self.run_it("--clip", "a.wav", "-o", target, *limit)
                self.assertEqual((code, table), (1, ""))
                self.assertIn(told, err)
                self.assertFalse(target.exists())

    def test_unknown_clips_are_named(self):
        for more in (["--clip", "d.wav"], ["--accuracy", "--leave-out", "d.wav"]):
            code, _, err = self.run_it(*more)
            self.assertEqual(code, 1)
            self.assertIn("manifest.json: no clip d.wav", err)

    def test_misuse(self):
        for more in ([], ["--accuracy", "--clip", "a.wav"], ["--clip", "a.wav", "--rounds", "2"], ["--accuracy", "--threads", "1,2"],
                     ["--accuracy", "--engines", "consonant"], ["--accuracy", "--engines", "julius:f16"],
                     ["--accuracy", "--engines", "whisper.cpp:q4_0"], ["--accuracy", "--engines", "consonant:auto,consonant:auto"],
                     ["--accuracy", "--model", "x=a,b"], ["--accuracy", "--model", f"base={self.root}/tiny.gguf,,"],
                     ["--accuracy", "--against", self.root / "absent.json"]):
            with self.subTest(more=more):
                self.assertEqual(self.run_it(*more)[0], 2)
                self.assertFalse((self.root / "log").exists())


class Tables(unittest.TestCase):
    @staticmethod
    def result(model, own, cpp, fast):
        def run(wall, **more):
            return {"wall_s": wall, "wall_s_min": wall, "wall_s_max": wall, "peak_mb": 100.4, "wer": 0.125} | more
        return {"model": model, "clip": "a.wav", "seconds": 11.0, "threads": 1, "beam": 5, "engines": {
            "consonant auto": run(own), "whisper.cpp f16": run(cpp),
            "faster-whisper int8": run(99.0, call_s=fast, call_s_min=fast, call_s_max=fast)}}

    def test_ratios_and_extremes(self):
        document = {"results": [self.result("slow", 1.0, 4.0, 1.5), self.result("fast", 0.5, 2.0, 1.5), self.result("worst", 1.0, 1.1, 9.0)]}
        self.assertIn("| fast | a.wav | 1 | 5 | 0.50 (0.50 to 0.50) | 2.00 (2.00 to 2.00) | **4.00** | 1.50 (1.50 to 1.50) | **3.00** "
                      "| 22 | 100 / 100 / 100 | 12.5 / 12.5 / 12.5 |\n", asr_tables.speed(document))
        lines = asr_tables.speed_extremes(document).splitlines()
        self.assertTrue(lines[2].startswith("| best | fast |") and lines[3].startswith("| worst | worst |"), lines)

    def test_what_does_not_belong_together_is_refused(self):
        one = self.result("m", 1.0, 1.0, 1.0)
        other = {**one, "engines": {label: run for label, run in one["engines"].items() if "cpp" not in label}}
        for results in ([one, other], [{**one, "engines": {"whisper.cpp f16": one["engines"]["whisper.cpp f16"]}}]):
            with self.assertRaises(asr_tables.TableError):
                asr_tables.speed({"results": results})
        clip = {"language": "en", "counted": "words", "text": "a"}
        found = {"a": {"text": "a", "edits": 0, "units": 1}}
        document = {"clips": {"a": clip}, "results": [{"model": "m", "beam": 1, "engine": "whisper.cpp f16", "found": found}]}
        mine = {"clips": {"a": clip}, "results": [{"model": "m", "beam": 5, "engine": "consonant auto", "found": found}]}
        fewer = {"clips": {}, "results": [{"model": "m", "beam": 1, "engine": "consonant auto", "found": {}}]}
        for documents in ([document, document], [document, fewer], [document, {"clips": {"a": clip | {"text": "b"}}, "results": []}]):
            with self.assertRaises(asr_tables.TableError):
                asr_tables.totals(documents)
        with self.assertRaisesRegex(asr_tables.TableError, "no peer"):
            asr_tables.worse_than_peers([document, mine])


if __name__ == "__main__":
    unittest.main()
