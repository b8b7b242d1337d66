#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tools/tidy.sh [REGEX]   runs clang-tidy (.clang-tidy) over the shipped sources whose path matches REGEX; exit 1 on a warning
set -euo pipefail
cd "$(dirname "$0")/.."
if [ $# -gt 1 ]; then
  echo "usage: tools/tidy.sh [REGEX]" >&2
  exit 2
fi
tools/install.sh build tools
timeout 300 cmake --preset debug -DCONSONANT_TESTS=OFF -DCONSONANT_BENCH=OFF --log-level=WARNING >&2
runner=$(command -v run-clang-tidy-14 || command -v run-clang-tidy)
# The compile commands are gcc's: what clang doesn't know of them is no fault of the source.
timeout 3600 "$runner" -p build/debug -quiet -j "$(nproc)" -extra-arg=-Wno-unknown-warning-option \
  "$PWD/src/.*${1:-}.*\.cpp$"
