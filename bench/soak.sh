#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# bench/soak.sh MODEL [DEVICE [TOKENS]]   what a device has to bear for long: ten starts with 128 tokens each, none of which may
# take 1.5 times as long as the median; 200 generations of changing lengths, after which no memory may have grown; and one
# generation of TOKENS (50000) tokens, whose memory before and after is printed. PROGRAM names the program.
set -euo pipefail
program=${PROGRAM:-$(dirname "$0")/../build/release/bin/consonant}
model=${1:?a model is wanted: bench/soak.sh MODEL [DEVICE [TOKENS]]}
device=${2:-auto}
tokens=${3:-50000}

prompt=$(mktemp)
trap 'rm -f "$prompt"' EXIT
echo 1 2 3 4 5 6 7 8 >"$prompt"
seconds=()
for _ in 1 2 3 4 5 6 7 8 9 10; do
  start=$(date +%s%N)
  timeout 600 "$program" generate -q -m "$model" --device "$device" --context 512 --tokens "$prompt" -n 128 --ignore-eos --temp 0 \
    --emit-tokens >/dev/null
  seconds+=("$((($(date +%s%N) - start) / 1000000))")
done
printf '%s\n' "${seconds[@]}" | sort -n | awk '
  { ms[NR] = $1 }
  END {
    median = (ms[5] + ms[6]) / 2
    printf "ten starts with 128 tokens each: median %.2f s, slowest %.2f s\n", median / 1000, ms[10] / 1000
    exit ms[10] > 1.5 * median
  }'

timeout 3600 "$program" bench -q -m "$model" --device "$device" --soak 200
timeout 3600 "$program" bench -q -m "$model" --device "$device" --prompt 16 --gen "$tokens" --repeat 1 --json
