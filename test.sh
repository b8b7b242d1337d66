#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds and runs every test; the last lines are ctest's summary.
#   ./test.sh              unit, model, house tests of the release build; the tests of the lower layers again under ASan and UBSan
#   ./test.sh --gemma      fetches Gemma 3 270M too (253 MB, under the Gemma terms); tests of a model that isn't there are skipped by name
#   ./test.sh --no-asan    leaves out the sanitizer build
#   ./test.sh -- ARG...    hands ARG... to ctest, e.g. -R Tokenizer
set -euo pipefail
root=$(cd "$(dirname "$0")" && pwd)
cd "$root"

say() { printf '\n== %s (%d s)\n' "$*" "$SECONDS" >&2; }
usage() { sed -n '3,7s/^# \{0,1\}//p' "$0"; }

asan=yes
gemma=no
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help) usage; exit 0 ;;
    --gemma) gemma=yes; shift ;;
    --no-asan) asan=no; shift ;;
    --) shift; break ;;
    *) echo "test.sh: unknown option $1" >&2; usage >&2; exit 2 ;;
  esac
done

say "Packages"
tools/install.sh build test
if ! python3 -m pip --version >/dev/null 2>&1; then tools/install.sh demo; fi

say "Models"
models=${XDG_CACHE_HOME:-~/.cache}/consonant/models
wanted=(smollm2 whisper-tiny.en whisper-base silero-vad)
if [ "$gemma" = yes ]; then wanted+=(gemma3-270m); fi
for name in "${wanted[@]}"; do
  if ! timeout 1800 python3 tools/fetch_model.py "$name" --dir "$models" >&2; then
    echo "No $name: the tests that need it will be skipped" >&2
  fi
done

# The sanitizers watch the layers that read what strangers write; the kernels above them are slow under them and see checked sizes.
watched=(base tensor formats text)
build() { # PRESET TARGET...
  local preset=$1 targets=() target
  shift
  for target in "$@"; do targets+=(--target "$target"); done
  timeout 300 cmake --preset "$preset" -DCONSONANT_TESTS=ON -DCONSONANT_BENCH=ON -DCONSONANT_MODELS="$models" \
    --log-level=WARNING >&2
  timeout 3600 cmake --build --preset "$preset" "${targets[@]}" >&2
}
say "Build of release"
build release all
folders=("release")
if [ "$asan" = yes ]; then
  say "Build of asan: ${watched[*]}"
  build asan checked_layers
  for folder in "${watched[@]}"; do folders+=("asan/src/$folder"); done
fi

# One ctest run over both build trees, so that there is one summary.
{
  echo "# Written by test.sh: the build trees that one run of ctest covers."
  printf 'subdirs("%s")\n' "${folders[@]}"
} >build/CTestTestfile.cmake
say "Tests"
timeout 3600 ctest --test-dir build --output-on-failure --timeout 600 --parallel "$(nproc)" "$@"
