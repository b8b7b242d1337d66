#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of render_docs.py."""
import json
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import render_docs  # noqa: E402

README = "a\n<!-- packages: x -->\n<!-- end packages -->\nb\n<!-- measured: x -->\nold\n<!-- end measured -->\nc\n"
LAYERS = "<!-- include-table: x -->\n<!-- end include-table -->\n"
RESULT = {"model": "M", "threads": 2, "prefill_tokens_per_s": 300.0, "decode_tokens_per_s": 70.0,
          "decode_share_of_bandwidth": 0.5}
PERFORMANCE = "x\n<!-- speech: x -->\n<!-- end speech -->\n<!-- kernels: x -->\n<!-- end kernels -->\n"
OPS = "x\n<!-- cards: x -->\n<!-- end cards -->\n"
KERNEL = {"op": "linear", "kernel": "linear_mma", "device": "cuda", "takes": "`x`: f32", "cases": 12, "worst_error": 1e-7,
          "tolerance": 2e-7, "faults": []}
PEER = {"model": "M", "threads": 2, "prefill_tokens_per_s": 150.0, "decode_tokens_per_s": 50.0}


class Render(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.write("README.md", README)
        self.write("docs/layers.md", LAYERS)
        self.write("docs/performance.md", PERFORMANCE)
        self.write("docs/ops.md", OPS)
        self.write("packaging/apt-packages.txt", "# list\ng++ build compiler\nclang tools for fuzz\nninja build it\n")

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text if isinstance(text, str) else json.dumps(text))

    def measure(self, **changes):
        document = {"title": "T", "machine": "box", "command": "bench/x.sh", "consonant": {"results": [RESULT]},
                    "peer": {"name": "other", "results": [PEER]}}
        self.write("docs/measured/a.json", document | changes)

    def readme(self):
        return (self.root / "README.md").read_text()

    def test_check_finds_what_write_mends(self):
        self.assertEqual(render_docs.render(self.root, check=True), ["docs/layers.md", "README.md"])
        self.assertEqual(self.readme(), README)
        self.assertEqual(render_docs.render(self.root, check=False), ["docs/layers.md", "README.md"])
        self.assertEqual(render_docs.render(self.root, check=True), [])
        self.assertIn("- build: `g++`, `ninja`\n- tools: `clang`\n<!-- end packages -->\nb\n", self.readme())

    def test_ratios_are_computed(self):
        self.measure()
        render_docs.render(self.root, check=False)
        self.assertIn("| M | 2 | 300 | 150 | **2.00** | 70.0 | 50.0 | **1.40** | 50% |\n", self.readme())
        self.assertNotIn("old", self.readme())

    def test_what_a_card_has_proved_is_in_the_page_of_ops(self):
        proof = {"kind": "verify_ops", "machine": "a card, sm_90", "commit": "0123456789abcdef", "kernels": [KERNEL]}
        self.write("docs/measured/verify_ops.json", proof)
        render_docs.render(self.root, check=False)
        page = (self.root / "docs/ops.md").read_text()
        self.assertIn("**a card, sm_90**, commit 0123456789ab\n", page)
        self.assertIn("| `linear_mma` | `x`: f32 | 12 | 1.0e-07 | 2.0e-07 |\n", page)
        self.assertNotIn("card", self.readme())

    def test_what_kernels_take_is_in_the_page_of_speed(self):
        self.write("docs/measured/kernels.json", {"kind": "kernels", "title": "Kernels", "machine": "a card", "command": "bench --kernels",
                                                  "commit": "0123456789abcdef", "columns": ["kernel", "us"], "rows": [["attend", 9.9]]})
        render_docs.render(self.root, check=False)
        page = (self.root / "docs/performance.md").read_text()
        self.assertIn("**Kernels, commit 0123456789ab** (a card; `bench --kernels`)\n\n| kernel | us |\n", page)
        self.assertNotIn("attend", self.readme())

    def test_a_wrong_kernel_is_no_proof(self):
        self.write("docs/measured/verify_ops.json", {"kind": "verify_ops", "machine": "a card", "commit": "0",
                                                     "kernels": [KERNEL | {"worst_error": None, "faults": ["17 tokens: differs"]}]})
        with self.assertRaisesRegex(render_docs.RenderError, "linear_mma is wrong on cuda: 17 tokens: differs"):
            render_docs.render(self.root, check=False)

    def test_a_changed_figure_is_noticed(self):
        self.measure()
        render_docs.render(self.root, check=False)
        self.measure(consonant={"results": [RESULT | {"decode_tokens_per_s": 75.0}]})
        self.assertEqual(render_docs.render(self.root, check=True), ["README.md"])

    def test_a_plain_table(self):
        self.write("docs/measured/b.json", {"title": "T", "machine": "m", "command": "c", "columns": ["x", "y"],
                                            "rows": [[1, "z"]]})
        render_docs.render(self.root, check=False)
        self.assertIn("**T** (m; `c`)\n\n| x | y |\n| --- | --- |\n| 1 | z |\n", self.readme())

    @staticmethod
    def times(wall, **more):
        return {"wall_s": wall, "wall_s_min": wall, "wall_s_max": wall, "peak_mb": 100.0, "wer": 0.0} | more

    def test_speech_is_in_both_pages(self):
        head = {"title": "T", "machine": "box", "command": "x", "versions": "other 1.2"}
        lines = [{"model": model, "clip": "a", "seconds": 10.0, "threads": 1, "beam": 1,
                  "engines": {"consonant auto": self.times(1.0), "other f16": self.times(wall)}}
                 for model, wall in (("m1", 2.0), ("m2", 3.0), ("m3", 2.5))]
        self.write("docs/measured/a.json", head | {"kind": "asr", "rounds": 3, "results": lines})
        clips = {"a": {"language": "en", "counted": "words", "text": "x"}}
        for engine in ("consonant auto", "other f16"):
            found = {"a": {"text": "x", "edits": int(engine == "other f16"), "units": 4}}
            self.write(f"docs/measured/{engine}.json", head | {"kind": "asr_accuracy", "clips": clips, "results": [
                {"engine": engine, "model": "m1", "beam": 1, "found": found}]})
        render_docs.render(self.root, check=False)
        self.assertEqual(render_docs.render(self.root, check=True), [])
        page = (self.root / "docs/performance.md").read_text()
        self.assertEqual([f"| m{n} | a |" in page for n in (1, 2, 3)], [True] * 3)
        self.assertEqual([f"| m{n} | a |" in self.readme() for n in (1, 2, 3)], [True, True, False])
        self.assertIn("**T** (box; other 1.2; `x`)\n", page)
        self.assertIn("| best | m2 |", self.readme())
        self.assertIn("| m1 | greedy | consonant auto | 1 | 0.0% (0 of 4) |", page)
        self.assertIn("| m1 | greedy | other f16 | 1 | 25.0% (1 of 4) |", page)
        self.assertNotIn("25.0%", self.readme())
        self.write("docs/measured/b.json", head | {"kind": "asr", "rounds": 3, "results": []})
        with self.assertRaisesRegex(render_docs.RenderError, "b.json: IndexError"):
            render_docs.render(self.root, check=True)

    def test_bad_sources_are_named(self):
        self.measure(peer={"name": "other", "results": []})
        with self.assertRaisesRegex(render_docs.RenderError, "a.json.*same models"):
            render_docs.render(self.root, check=True)
        self.measure(consonant={"results": [RESULT, RESULT]})
        with self.assertRaisesRegex(render_docs.RenderError, "twice"):
            render_docs.render(self.root, check=True)
        self.write("docs/measured/a.json", {"title": "T"})
        with self.assertRaisesRegex(render_docs.RenderError, "a.json: KeyError"):
            render_docs.render(self.root, check=True)

    def test_a_page_without_its_marks(self):
        self.write("README.md", README.replace("end measured", "end"))
        with self.assertRaisesRegex(render_docs.RenderError, "README.md: no <!-- measured"):
            render_docs.render(self.root, check=True)


if __name__ == "__main__":
    unittest.main()
