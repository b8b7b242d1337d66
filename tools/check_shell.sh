#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tools/check_shell.sh   looks for faults in every shell script: with shellcheck where it is installed, else their syntax only
set -euo pipefail
cd "$(dirname "$0")/.."
scripts=()
for script in ./*.sh .ci/run tools/*.sh bench/*.sh; do
  if [ -f "$script" ]; then scripts+=("$script"); fi
done
for script in "${scripts[@]}"; do
  bash -n "$script"
  if [ ! -x "$script" ]; then
    echo "$script: not executable" >&2
    exit 1
  fi
done
if command -v shellcheck >/dev/null; then
  shellcheck --severity=warning "${scripts[@]}"
  echo "${#scripts[@]} scripts, checked by shellcheck"
else
  echo "${#scripts[@]} scripts, only their syntax checked: shellcheck is not on this machine (tools/install.sh test)"
fi
