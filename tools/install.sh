#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tools/install.sh GROUP...   installs what is missing of these groups of packaging/apt-packages.txt, and says so.
# Nothing is asked of apt, and no rights are needed, when everything is there.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
list=$root/packaging/apt-packages.txt

if [ $# -eq 0 ]; then
  echo "usage: tools/install.sh GROUP...   (build, demo, test, tools: see packaging/apt-packages.txt)" >&2
  exit 2
fi
if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  echo "No apt on this machine: nothing is installed. What $list names for '$*' must be there already." >&2
  exit 0
fi

missing=()
for group in "$@"; do
  names=$(awk -v group="$group" '!/^#/ && $2 == group {print $1}' "$list")
  if [ -z "$names" ]; then
    echo "tools/install.sh: no group '$group' in $list" >&2
    exit 2
  fi
  for name in $names; do
    status=$(dpkg-query -W -f='${db:Status-Status}' "$name" 2>/dev/null || true)
    if [ "$status" != installed ] && [[ " ${missing[*]-} " != *" $name "* ]]; then missing+=("$name"); fi
  done
done
if [ ${#missing[@]} -eq 0 ]; then exit 0; fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "These packages are missing, and installing them needs root. As root, run:" >&2
    echo "  apt-get update && apt-get install --no-install-recommends ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi
apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive timeout 1200 apt-get
     -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 -qq)
echo "Installing with apt${as_root[*]:+ through sudo}: ${missing[*]}" >&2
"${apt[@]}" update >&2
"${apt[@]}" install -y --no-install-recommends "${missing[@]}" >&2
