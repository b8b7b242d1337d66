#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tools/format.sh           lays out every C++ source with clang-format 14, the version that .clang-format is written for
# tools/format.sh --check   changes nothing; exit 1 if a file would change, 77 if this machine has no clang-format 14
set -euo pipefail
cd "$(dirname "$0")/.."
if [ $# -gt 1 ] || { [ $# -eq 1 ] && [ "$1" != --check ]; }; then
  echo "usage: tools/format.sh [--check]" >&2
  exit 2
fi

program=
for name in clang-format-14 clang-format; do
  if command -v "$name" >/dev/null && "$name" --version | grep -q 'version 14\.'; then
    program=$name
    break
  fi
done
if [ -z "$program" ]; then
  echo "skipped: clang-format 14 is not on this machine (tools/install.sh test)"
  exit 77
fi

folders=()
for folder in src include tests bench examples; do
  if [ -d "$folder" ]; then folders+=("$folder"); fi
done
mapfile -d '' files < <(find "${folders[@]}" \( -path tests/data -o -path tests/corpus \) -prune -o \
  -type f \( -name '*.hpp' -o -name '*.cpp' -o -name '*.h' -o -name '*.c' -o -name '*.cu' \) -print0 | sort -z)
if [ ${#files[@]} -eq 0 ]; then
  echo "no sources found in $PWD" >&2
  exit 1
fi
if [ "${1-}" = --check ]; then
  if ! faults=$("$program" --style=file --dry-run -Werror "${files[@]}" 2>&1); then
    grep -o '^[^ :]*:[0-9]*:.*error: .*' <<<"$faults" | sort -u -t: -k1,1 || printf '%s\n' "$faults"
    echo "tools/format.sh lays them out"
    exit 1
  fi
  echo "${#files[@]} files are laid out as clang-format 14 does"
else
  "$program" --style=file -i "${files[@]}"
fi
