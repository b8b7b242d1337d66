#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fills in the parts of the pages that come from somewhere else, between <!-- NAME: ... --> and <!-- end NAME -->.

  tools/render_docs.py            writes them
  tools/render_docs.py --check    exit 1 if a page doesn't say what its source says

  include-table   tools/check_deps.py           -> docs/layers.md
  packages        packaging/apt-packages.txt    -> README.md
  measured        docs/measured/*.json          -> README.md
  speech          docs/measured/*.json          -> docs/performance.md
  kernels         docs/measured/*.json          -> docs/performance.md
  cards           docs/measured/*.json          -> docs/ops.md

A file of docs/measured holds "title", "machine", "command" (no title and command with "verify_ops"), and one of
  "kind": "asr" or "asr_accuracy": what bench/compare_asr.py wrote. docs/performance.md has all of it, README the lines of "asr"
  where consonant is furthest ahead and least;
  "kind": "verify_ops": what `consonant verify ops --device D --json` wrote, and "commit": of the sources; in docs/ops.md alone;
  "columns" and "rows": a table as it is, of text and numbers; with "kind": "kernels", and "commit", in docs/performance.md alone;
  "consonant" and "peer": documents of `bench --json` (peer: "name" and "results" with the same model names, threads and the
  two speeds) measured in one run, from which the ratios are computed here.
"""
import argparse
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import asr_tables  # noqa: E402
import check_deps  # noqa: E402

SPEEDS = (("prefill", "prefill_tokens_per_s"), ("decode", "decode_tokens_per_s"))


class RenderError(Exception):
    """What is wrong with a page or its source."""


def include_table(_: pathlib.Path) -> str:
    return check_deps.table()


def packages(root: pathlib.Path) -> str:
    groups = {}
    for line in (root / "packaging/apt-packages.txt").read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            name, group, _ = line.split(maxsplit=2)
            groups.setdefault(group, []).append(name)
    return "".join(f"- {group}: {', '.join(f'`{name}`' for name in names)}\n" for group, names in groups.items())


def number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:,.1f}"


def speeds(document: dict, source: str) -> dict:
    found = {}
    for result in document["results"]:
        key = (result["model"], result["threads"])
        if key in found:
            raise RenderError(f"{source}: {key[0]} at {key[1]} threads is there twice")
        found[key] = result
    return found


def comparison(document: dict, source: str) -> str:
    ours, theirs = speeds(document["consonant"], source), speeds(document["peer"], source)
    if ours.keys() != theirs.keys():
        raise RenderError(f"{source}: consonant and the peer weren't measured on the same models and threads")
    peer = document["peer"]["name"]
    columns = ["model", "threads"]
    for label, _ in SPEEDS:
        columns += [f"{label}, t/s", f"{peer}", "ratio"]
    columns.append("decode's share of the memory's speed")
    rows = []
    for key, result in ours.items():
        row = [*key]
        for _, field in SPEEDS:
            mine, other = result[field], theirs[key][field]
            row += [number(mine), number(other), f"**{mine / other:.2f}**"]
        share = result.get("decode_share_of_bandwidth")
        row.append("" if share is None else f"{share:.0%}")
        rows.append(row)
    return asr_tables.markdown(columns, rows)


def headed(document: dict, body: str, title: str = "") -> str:
    made = "; ".join(filter(None, (document["machine"], document.get("versions"), f"`{document['command']}`")))
    return f"**{title or document['title']}** ({made})\n\n{body}"


def each_measured(root: pathlib.Path, render_one) -> str:
    parts = []
    for path in sorted((root / "docs/measured").glob("*.json")):
        source = path.relative_to(root).as_posix()
        try:
            part = render_one(json.loads(path.read_text(encoding="utf-8")), source)
        except (KeyError, IndexError, TypeError, ValueError, ZeroDivisionError, asr_tables.TableError) as error:
            raise RenderError(f"{source}: {type(error).__name__} {error}") from error
        if part:
            parts.append(part)
    return "\n".join(parts)


def measured(root: pathlib.Path) -> str:
    def one(document: dict, source: str) -> str:
        if document.get("kind") == "asr":
            return headed(document, asr_tables.speed_extremes(document), f"{document['title']}: the best and the worst line of "
                          "[docs/performance.md](docs/performance.md)")
        if document.get("kind") in ("asr_accuracy", "verify_ops", "kernels"):
            return ""
        if "peer" in document:
            return headed(document, comparison(document, source))
        return headed(document, asr_tables.markdown(document["columns"], document["rows"]))
    return each_measured(root, one)


def speech(root: pathlib.Path) -> str:
    errors = []

    def one(document: dict, _: str) -> str:
        if document.get("kind") == "asr_accuracy":
            errors.append(document)
            asr_tables.totals([document])  # what is wrong with one of them is said with its name
        return headed(document, asr_tables.speed(document)) if document.get("kind") == "asr" else ""
    parts = [each_measured(root, one)]
    try:
        parts += [headed(errors[0], asr_tables.accuracy(errors))] if errors else []
    except asr_tables.TableError as error:
        raise RenderError(f"docs/measured: {error}") from error
    return "\n".join(part for part in parts if part)


def cards(root: pathlib.Path) -> str:
    def kernel(found: dict) -> list:
        if found["faults"]:
            raise RenderError(f"docs/measured: {found['kernel']} is wrong on {found['device']}: {found['faults'][0]}")
        return [f"`{found['kernel']}`", found["takes"], found["cases"], f"{found['worst_error']:.1e}", f"{found['tolerance']:.1e}"]

    def one(document: dict, _: str) -> str:
        if document.get("kind") != "verify_ops":
            return ""
        table = asr_tables.markdown(["kernel", "takes", "cases", "worst error", "tolerance"], [kernel(k) for k in document["kernels"]])
        return f"**{document['machine']}**, commit {document['commit'][:12]}\n\n{table}"
    return each_measured(root, one)


def kernels(root: pathlib.Path) -> str:
    def one(document: dict, _: str) -> str:
        if document.get("kind") != "kernels":
            return ""
        return headed(document, asr_tables.markdown(document["columns"], document["rows"]),
                      f"{document['title']}, commit {document['commit'][:12]}")
    return each_measured(root, one)


BLOCKS = (
    ("docs/layers.md", "include-table", include_table),
    ("README.md", "packages", packages),
    ("README.md", "measured", measured),
    ("docs/performance.md", "speech", speech),
    ("docs/performance.md", "kernels", kernels),
    ("docs/ops.md", "cards", cards),
)


def with_block(text: str, name: str, body: str, page: str) -> str:
    start, end = text.find(f"<!-- {name}: "), text.find(f"<!-- end {name} -->")
    body_at = text.find("-->\n", start) + len("-->\n")
    if start < 0 or end < body_at or body_at < start:
        raise RenderError(f"{page}: no <!-- {name}: ... --> with <!-- end {name} --> after it")
    return text[:body_at] + body + text[end:]


def render(root: pathlib.Path, check: bool) -> list:
    """The pages that differ, or that were written."""
    changed = []
    for page in dict.fromkeys(page for page, _, _ in BLOCKS):
        text = (root / page).read_text(encoding="utf-8")
        new = text
        for _, name, make in (block for block in BLOCKS if block[0] == page):
            new = with_block(new, name, make(root), page)
        if new != text:
            changed.append(page)
            if not check:
                (root / page).write_text(new, encoding="utf-8")
    return changed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    try:
        changed = render(ROOT, options.check)
    except (RenderError, OSError) as error:
        print(f"render_docs: {error}", file=sys.stderr)
        return 1
    for page in changed:
        print(f"{page} {'does not say what its sources say: run tools/render_docs.py' if options.check else 'written'}")
    return 1 if changed and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
