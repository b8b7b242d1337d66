#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the house rules that a machine can check: which folder may include which, and the shape of source files.

  tools/check_deps.py [ROOT]      prints each violation as FILE:LINE: message, exit 1 if there is any
  tools/check_deps.py --table     prints the include table as docs/layers.md shows it

TABLE below is the rule; docs/layers.md is rendered from it. An include is judged by the file that has it and the file that
it names, not by what that one includes in turn.
"""
import argparse
import ast
import pathlib
import re
import sys
from typing import Iterator, NamedTuple

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import cpp_text  # noqa: E402

MAX_FILE_LINES = 600
MAX_FUNCTION_LINES = 80

BUILDER = r"ops/(\w+)/\1\.hpp|ops/(all|ops)\.hpp"  # an op's x.hpp, or the umbrella of them all
VOCABULARY = r"ops/(op|activation)\.hpp|ops/all\.def"  # the ops' names, numbers and attributes that several share
META = r"formats/meta\.hpp"
FILTERS = r"audio/mel\w*\.hpp"
DRAW = r"ops/sample/\w+\.hpp"
PUBLIC = r"consonant/.*"


class Row(NamedTuple):
    """What one kind of file may include besides what `within` names: folders, or patterns on a path."""

    label: str  # as docs/layers.md prints it
    applies: str  # pattern on the includer's path under src
    within: str  # pattern on what it may include of its own folder
    folders: tuple = ()
    patterns: tuple = ()
    shown: str = ""


def plain(folder: str, folders: tuple = (), patterns: tuple = (), shown: str = "") -> Row:
    return Row(folder, rf"{folder}/.*", rf"{folder}/.*", folders, patterns, shown or ", ".join(folders) or "-")


# The first row that applies to a file is its rule.
TABLE = (
    plain("base"),
    plain("tensor", ("base",)),
    plain("formats", ("base", "tensor")),
    plain("audio", ("base", "tensor")),
    plain("graph", ("base", "tensor")),
    plain("device", ("base", "tensor")),
    plain("text", ("base",), (META,), "base, formats' metadata (`formats/meta.hpp`)"),
    Row(
        "ops: `x.hpp`, `x.cpp`, `op.hpp`, `activation.hpp`",
        r"ops/(\w+)/\1\.[ch]pp|ops/(op|activation|all|ops)\.(hpp|def)",
        f"{BUILDER}|{VOCABULARY}",
        ("base", "tensor", "graph"),
        (),
        "base, tensor, graph, other ops' `x.hpp`, `op.hpp`, `activation.hpp`",
    ),
    Row(
        "ops: all else (`x.ref/.cpu/.gpu/.cases`, `kernel.hpp`)",
        r"ops/.*",
        r"ops/.*",
        ("base", "tensor", "graph", "device"),
        (),
        "base, tensor, graph, device, ops",
    ),
    plain("blocks", ("base", "tensor", "graph"), (BUILDER,), "base, tensor, graph, ops' `x.hpp`"),
    plain(
        "models",
        ("base", "tensor", "graph", "blocks", "formats"),
        (BUILDER, FILTERS),
        "base, tensor, graph, ops' `x.hpp`, blocks, formats, audio's filter tables (`audio/mel*.hpp`)",
    ),
    plain("runtime", ("base", "tensor", "graph", "device", "ops")),
    plain("decode", ("base", "tensor", "text", "runtime"), (DRAW,), "base, tensor, text, runtime, how a token is drawn (`ops/sample/*.hpp`)"),
    plain("tasks", ("base", "tensor", "text", "audio", "decode", "models")),
    plain("verify", ("base", "tensor", "formats", "runtime", "decode")),
    plain(
        "engine",
        ("base", "tensor", "formats", "audio", "graph", "device", "text", "ops", "blocks", "models", "runtime",
         "decode", "tasks", "verify"),
        (PUBLIC,),
        "all of the above, include/consonant",
    ),
    plain("server", ("base", "engine"), (PUBLIC,), "base, engine, include/consonant"),
    plain(
        "cli",
        ("base", "engine", "verify", "tensor", "formats"),
        (PUBLIC,),
        "base, engine, verify, tensor, formats, include/consonant",
    ),
)
FOLDERS = ("base", "tensor", "formats", "audio", "graph", "device", "text", "ops", "blocks", "models", "runtime",
           "decode", "tasks", "verify", "engine", "server", "cli")

# Headers that CMake makes, and what it makes them from.
GENERATED = {"ops/ops.hpp": "ops/all.def", "engine/version.hpp": "engine/version.hpp.in"}
CPP = {".c", ".hpp", ".cpp", ".h", ".cu", ".cuh", ".def", ".inc"}
FREE = re.compile(r"(tests|bench)/.*|.*\.(test|fuzz|bench)\.cpp")  # may include anything of the project
VENDOR = re.compile(r"(cuda|cublas|cudnn|cufft|curand|nccl|nvrtc|nvml|nvtx|hip/|hip_|hipblas|rocblas|rocm|miopen|hsa/|"
                    r"cooperative_groups|mma\.h|cub/|thrust/|cutlass|cute/)")
VENDOR_HOME = re.compile(r"src/device/.*|.*\.cuda\.cu|.*\.hip\.cpp")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]*)[>"]')
TARGET_INCLUDE = re.compile(r'^\s*#\s*define\s+HWY_TARGET_INCLUDE\s+"([^"]*)"')
GETENV = re.compile(r"\b(secure_)?getenv\b|\benviron\b")
SPDX = "SPDX-License-Identifier: Apache-2.0"


class Violation(NamedTuple):
    path: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


def source_files(root: pathlib.Path) -> Iterator[pathlib.Path]:
    """Every file that people write, found by walking: it works in a copy without git as well."""
    skipped = {"build", ".git", "models", "data", "corpus", "__pycache__"}
    names = {"CMakeLists.txt", "run"}
    for path in sorted(root.rglob("*")):
        parts = path.relative_to(root).parts
        skip = any(part in skipped for part in parts[:1]) or (parts[0] == "tests" and len(parts) > 1 and parts[1] in skipped)
        if skip or "__pycache__" in parts or not path.is_file() or path.is_symlink():
            continue
        if path.suffix in CPP | {".py", ".sh", ".cmake"} or path.name in names:
            yield path


def check_licence(path: str, lines: list) -> Iterator[Violation]:
    at = 1 if lines and lines[0].startswith("#!") else 0
    if len(lines) <= at or SPDX not in lines[at]:
        yield Violation(path, at + 1, f"the line must be the licence: {SPDX}")


def check_length(path: str, lines: list) -> Iterator[Violation]:
    if len(lines) >= MAX_FILE_LINES:
        yield Violation(path, len(lines), f"{len(lines)} lines; a file has fewer than {MAX_FILE_LINES}")


def rule_of(inside: str) -> Row | None:
    return next((row for row in TABLE if re.fullmatch(row.applies, inside)), None)


def judge_project_include(path: str, named: str) -> str | None:
    """Why `path` may not include the project's file `named`, or nothing."""
    if FREE.fullmatch(path):
        return None
    if path.startswith("include/"):
        return None if re.fullmatch(PUBLIC, named) else f'include/consonant includes nothing of src, so not "{named}"'
    row = rule_of(path.removeprefix("src/"))
    if row is None:
        return f"{path} lies in no folder of the include table"
    allowed = named.split("/")[0] in row.folders
    allowed = allowed or any(re.fullmatch(pattern, named) for pattern in (row.within, *row.patterns))
    return None if allowed else f'[{row.label}] may not include "{named}"; it may include {row.shown}'


def check_include(root: pathlib.Path, path: str, opening: str, named: str) -> str | None:
    if VENDOR.match(named):
        return None if VENDOR_HOME.fullmatch(path) else f"vendor header {named} outside src/device, *.cuda.cu and *.hip.cpp"
    first = named.split("/")[0]
    homes = {folder: "src" for folder in FOLDERS} | {"consonant": "include", "tests": ".", "bench": "."}
    ours = "/" in named and first in homes
    if path.startswith("examples/"):  # as a program of someone else: the public headers, found on the include path
        return f"an example sees the public headers only, so not {named}" if ours and (opening, first) != ("<", "consonant") else None
    if opening == "<":  # tests of the public interface may include it as a user's program does
        if first == "consonant" and FREE.fullmatch(path):
            return None
        return f'<{named}> is the project\'s own: write "{named}"' if ours and (root / homes[first] / named).exists() else None
    if not ours:
        return f'"{named}" is not "folder/file" of this project (others\' headers go in angle brackets)'
    if not (root / homes[first] / GENERATED.get(named, named)).is_file():
        return f'"{named}" does not exist under {homes[first]}/'
    if named.endswith((".cpp", ".cu")):
        return f'"{named}" is a source file: only headers are included'
    if homes[first] == ".":
        return None if FREE.fullmatch(path) else f'"{named}" belongs to the tests'
    return judge_project_include(path, named)


def check_cpp(root: pathlib.Path, path: str, text: str) -> Iterator[Violation]:
    bare = cpp_text.without_comments(text)
    for number, line in enumerate(bare.splitlines(), 1):
        if match := INCLUDE.match(line):
            if fault := check_include(root, path, *match.groups()):
                yield Violation(path, number, fault)
        if (match := TARGET_INCLUDE.match(line)) and match.group(1) != path.removeprefix("src/"):
            yield Violation(path, number, f'HWY_TARGET_INCLUDE names "{match.group(1)}", not this file itself')
    if not path.startswith("src/cli/"):
        for number, line in enumerate(cpp_text.without_literals(bare).splitlines(), 1):
            if GETENV.search(line):
                yield Violation(path, number, "the environment is read in src/cli only")
    if pathlib.Path(path).suffix in {".def", ".inc"}:
        return  # tables, not whole declarations
    try:
        for function in cpp_text.functions(text):
            if function.lines >= MAX_FUNCTION_LINES:
                fault = f"{function.name} has {function.lines} lines; a function has fewer than {MAX_FUNCTION_LINES}"
                yield Violation(path, function.first, fault)
    except cpp_text.Unbalanced as error:
        yield Violation(path, error.line, str(error))


def check_python(path: str, text: str) -> Iterator[Violation]:
    for node in ast.walk(ast.parse(text, path)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            lines = node.end_lineno - node.lineno + 1
            if lines >= MAX_FUNCTION_LINES:
                fault = f"{node.name} has {lines} lines; a function has fewer than {MAX_FUNCTION_LINES}"
                yield Violation(path, node.lineno, fault)


def check_tree(root: pathlib.Path) -> list:
    found = []
    for file in source_files(root):
        path = file.relative_to(root).as_posix()
        try:
            text = file.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            found.append(Violation(path, 1, f"not UTF-8: {error}"))
            continue
        lines = text.splitlines()
        found += check_licence(path, lines)
        found += check_length(path, lines)
        if file.suffix in CPP:
            found += check_cpp(root, path, text)
        elif file.suffix == ".py":
            found += check_python(path, text)
    known = set(FOLDERS)
    for folder in sorted((root / "src").iterdir()) if (root / "src").is_dir() else []:
        if folder.is_dir() and folder.name not in known:
            found.append(Violation(f"src/{folder.name}", 1, "a folder that the include table doesn't know"))
    return found


def table() -> str:
    rows = "\n".join(f"| {row.label} | {row.shown} |" for row in TABLE)
    return f"| a file in | may include, besides its own folder |\n|---|---|\n{rows}\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", nargs="?", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    if options.table:
        print(table(), end="")
        return 0
    files = sum(1 for _ in source_files(options.root))
    found = check_tree(options.root)
    for violation in found:
        print(violation)
    print(f"check_deps: {files} files, {len(found)} violations")
    if files == 0:
        print(f"check_deps: nothing to check under {options.root}", file=sys.stderr)
    return 1 if found or files == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
