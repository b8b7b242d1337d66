#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fills in the parts of the pages that come from somewhere else, between <!-- NAME: ... --> and <!-- end NAME -->.

  tools/render_docs.py            writes them
  tools/render_docs.py --check    exit 1 if a page doesn't say what its source says

  include-table   tools/check_deps.py           -> docs/layers.md
  packages        packaging/apt-packages.txt    -> README.md
  measured        docs/measured/*.json          -> README.md

A file of docs/measured holds "title", "machine", "command", and one of
  "columns" and "rows": a table as it is, of text and numbers;
  "consonant" and "peer": documents of `bench --json` (peer: "name" and "results" with the same model names, threads and the
  two speeds) measured in one run, from which the ratios are computed here.
"""
import argparse
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))
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


def markdown(columns: list, rows: list) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "".join("| " + " | ".join(str(cell) for cell in line) + " |\n" for line in lines)


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
    return markdown(columns, rows)


def measured(root: pathlib.Path) -> str:
    parts = []
    for path in sorted((root / "docs/measured").glob("*.json")):
        source = path.relative_to(root).as_posix()
        try:
            document = json.loads(path.read_text())
            body = comparison(document, source) if "peer" in document else markdown(document["columns"], document["rows"])
            head = f"**{document['title']}** ({document['machine']}; `{document['command']}`)\n\n"
        except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
            raise RenderError(f"{source}: {type(error).__name__} {error}") from error
        parts.append(head + body)
    return "\n".join(parts)


BLOCKS = (
    ("docs/layers.md", "include-table", include_table),
    ("README.md", "packages", packages),
    ("README.md", "measured", measured),
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
