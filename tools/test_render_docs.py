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
PEER = {"model": "M", "threads": 2, "prefill_tokens_per_s": 150.0, "decode_tokens_per_s": 50.0}


class Render(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.write("README.md", README)
        self.write("docs/layers.md", LAYERS)
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
