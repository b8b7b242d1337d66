#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of compare_llama.py, with two programs that only pretend to measure."""
import contextlib
import io
import json
import pathlib
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tools")]
import compare_llama  # noqa: E402
import render_docs  # noqa: E402

# Both note their name and arguments in a log, and answer with the next number of a list.
FAKE = """#!{python}
import json, pathlib, sys
here = pathlib.Path(__file__).parent
log = here / "log"
with log.open("a") as out: out.write(json.dumps([pathlib.Path(__file__).name, *sys.argv[1:]]) + "\\n")
turn = sum(json.loads(line)[0] == pathlib.Path(__file__).name for line in log.read_text().splitlines()) - 1
{body}
"""
CONSONANT = """
speed = [100, 300, 200][turn % 3]
print(json.dumps({"results": [{"model": "x", "threads": 1, "prefill_tokens_per_s": speed * 2, "decode_tokens_per_s": speed,
                               "decode_share_of_bandwidth": 0.5}]}))
"""
SHARE = '"decode_share_of_bandwidth": 0.5'
LLAMA = """
speed = [90, 110, 100][turn % 3]
print(json.dumps([{"n_prompt": 512, "n_gen": 0, "avg_ts": speed}, {"n_prompt": 0, "n_gen": 128, "avg_ts": speed * 1.6}]))
"""


class Compare(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.program("consonant", CONSONANT)
        self.program("llama-bench", LLAMA)
        for model in ("a.gguf", "b.gguf"):
            (self.root / model).touch()

    def program(self, name, body):
        path = self.root / name
        path.write_text(FAKE.format(python=sys.executable, body=body))
        path.chmod(0o755)

    def run_it(self, *more):
        argv = ["--consonant", self.root / "consonant", "--llama-bench", self.root / "llama-bench", "--model",
                self.root / "a.gguf", *more]
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code = compare_llama.main([str(part) for part in argv])
            except SystemExit as stop:
                code = stop.code
        return code, out.getvalue(), err.getvalue()

    def log(self):
        return [json.loads(line) for line in (self.root / "log").read_text().splitlines()]

    def test_the_two_take_turns(self):
        code, _, err = self.run_it("--threads", "1,2", "--model", self.root / "b.gguf")
        self.assertEqual(code, 0, err)
        calls = self.log()
        self.assertEqual([call[0] for call in calls], ["consonant", "llama-bench"] * 12)
        for flags in (["-m", str(self.root / "b.gguf")], ["--threads", "2"], ["--prompt", "512"], ["--gen", "128"]):
            self.assertIn(flags, [calls[-2][i:i + 2] for i in range(len(calls[-2]))])
        for flags in (["-m", str(self.root / "b.gguf")], ["-t", "2"], ["-p", "512"], ["-n", "128"], ["-r", "1"]):
            self.assertIn(flags, [calls[-1][i:i + 2] for i in range(len(calls[-1]))])

    def test_medians_spread_and_ratio(self):
        code, table, err = self.run_it("--threads", "2")
        self.assertEqual(code, 0, err)
        self.assertIn("| a | 2 | 400.0 (200.0 to 600.0) | 100.0 (90.0 to 110.0) | **4.00** "
                      "| 200.0 (100.0 to 300.0) | 160.0 (144.0 to 176.0) | **1.25** | 400 | 50% |\n", table)

    def test_the_document_renders(self):
        target = self.root / "measured/x.json"
        code, _, err = self.run_it("-o", target, "--machine", "a box")
        self.assertEqual(code, 0, err)
        document = json.loads(target.read_text())
        self.assertIn("| a | 2 | 400 | 100 | **4.00** | 200 | 160 | **1.25** | 50% |\n",
                      render_docs.comparison(document, "x.json"))
        self.assertNotIn(str(self.root), target.read_text())
        self.assertEqual(document["machine"], "a box")

    def test_without_a_measured_bandwidth_there_is_no_bound(self):
        for nothing in ("None", "0"):
            self.program("consonant", CONSONANT.replace(SHARE, SHARE.replace("0.5", nothing)))
            code, table, err = self.run_it("--threads", "2")
            self.assertEqual(code, 0, err)
            self.assertIn("**1.25** |  |  |\n", table)

    def test_failures_are_told_and_nothing_is_written(self):
        target = self.root / "x.json"
        for name, body, told in (
                ("consonant", "sys.exit('no kernel')", "no kernel"),
                ("consonant", "print('{')", "no JSON"),
                ("consonant", "print('{\"results\": []}')", "not one result"),
                ("consonant", CONSONANT.replace("speed * 2", "0"), "is not a speed"),
                ("llama-bench", "print('[]')", "instead of"),
                ("llama-bench", LLAMA.replace('"n_gen": 0', '"n_gen": 1'), "in one"),
                ("llama-bench", LLAMA.replace("speed * 1.6", "float('nan')"), "is not a speed"),
                ("llama-bench", "import time; time.sleep(100)", "timed out")):
            with self.subTest(name=name, told=told):
                self.program("consonant", CONSONANT)
                self.program("llama-bench", LLAMA)
                self.program(name, body)
                limit = ["--timeout", "1"] if told == "timed out" else []
                code, table, err = self.run_it("-o", target, *limit)
                self.assertEqual((code, table), (1, ""))
                self.assertIn(told, err)
                self.assertFalse(target.exists())

    def test_misuse(self):
        for more in (["--rounds", "2"], ["--threads", "0"], ["--threads", "1,1"], ["--prompt", "x"],
                     ["--model", self.root / "absent.gguf"], ["--model", self.root / "a.gguf"]):
            with self.subTest(more=more):
                self.assertEqual(self.run_it(*more)[0], 2)
                self.assertFalse((self.root / "log").exists())


if __name__ == "__main__":
    unittest.main()
