#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tools/fuzz.sh [SECONDS] [NAME...]   builds the fuzz targets with clang, libFuzzer, ASan and UBSan, and runs each (or those
#                                     named) for SECONDS (60); exit 1 if one finds a fault
# tools/fuzz.sh --merge [NAME...]     adds to tests/corpus/NAME what the runs so far found that reaches new code
#
# A run starts from tests/corpus/NAME and keeps what it finds in build/fuzz/corpus/NAME, so that the next run goes on from
# there. An input that shows a fault lies in build/fuzz/faults; it belongs in tests/corpus/NAME once the fault is mended.
set -euo pipefail
cd "$(dirname "$0")/.."

mode=run
seconds=60
if [ "${1-}" = --merge ]; then
  mode=merge
  shift
elif [[ ${1-} =~ ^[0-9]+$ ]]; then
  seconds=$1
  shift
elif [[ ${1-} == -* ]]; then
  sed -n '3,8s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi

tools/install.sh build tools
timeout 300 cmake --preset fuzz -DCONSONANT_TESTS=OFF -DCONSONANT_BENCH=OFF --log-level=WARNING >&2
timeout 3600 cmake --build --preset fuzz --target fuzzers >&2

names=("$@")
if [ ${#names[@]} -eq 0 ]; then
  for program in build/fuzz/bin/fuzz_*; do
    if [ -x "$program" ]; then names+=("${program##*/fuzz_}"); fi
  done
fi
if [ ${#names[@]} -eq 0 ]; then
  echo "fuzz.sh: no fuzz target was built" >&2
  exit 1
fi

export ASAN_OPTIONS=allocator_may_return_null=0:detect_leaks=1
export UBSAN_OPTIONS=print_stacktrace=1
limits=(-timeout=10 -rss_limit_mb=2048)
faults=$PWD/build/fuzz/faults
mkdir -p "$faults"
failed=()
summary=()
for name in "${names[@]}"; do
  program=build/fuzz/bin/fuzz_$name
  if [ ! -x "$program" ]; then
    echo "fuzz.sh: no target '$name' (there are: $(cd build/fuzz/bin && echo fuzz_* | sed 's/fuzz_//g'))" >&2
    exit 2
  fi
  saved=tests/corpus/$name
  found=build/fuzz/corpus/$name
  log=build/fuzz/$name.log
  mkdir -p "$found"
  if [ "$mode" = merge ]; then
    mkdir -p "$saved"
    before=$(find "$saved" -type f | wc -l)
    timeout 3600 "$program" -merge=1 "${limits[@]}" "$saved" "$found" >"$log" 2>&1
    summary+=("$name: $before saved inputs before, $(find "$saved" -type f | wc -l) now")
    continue
  fi
  echo "$name: $seconds s" >&2
  inputs=("$found")
  if [ -d "$saved" ]; then inputs+=("$saved"); fi
  if timeout $((seconds + 120)) "$program" -max_total_time="$seconds" -print_final_stats=1 "${limits[@]}" \
    -artifact_prefix="$faults/$name-" "${inputs[@]}" >"$log" 2>&1; then
    verdict=clean
  else
    verdict="FAULT, see $log"
    failed+=("$name")
  fi
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  reached=$(grep -o 'cov: [0-9]*' "$log" | tail -1 || true)
  summary+=("$name: $verdict; ${runs:-?} runs in $seconds s, ${reached:-cov: ?} edges, $(find "$found" -type f | wc -l) inputs kept")
done

printf '%s\n' "${summary[@]}"
if [ ${#failed[@]} -gt 0 ]; then
  echo "faults in: ${failed[*]}; the inputs are in $faults"
  exit 1
fi
