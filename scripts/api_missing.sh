#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Which functions of the CUDA runtime and driver API the built libraries only refuse: the weak symbols that no file has replaced.
# Usage: scripts/api_missing.sh [BUILD] [LIST]; LIST: a file with lines FUNCTION<TAB>KIND<TAB>PROGRAMS<TAB>..., of which only those are shown.
build=${1:-build}/lib/farfault list=$2
for library in libcudart.so.13 libcuda.so.1; do
  nm -D --defined-only "$build/$library" | awk '$2 == "W" { sub(/@.*/, "", $3); print $3 }'
done | sort > "${TMPDIR:-/tmp}/api_missing.$$"
trap 'rm -f "${TMPDIR:-/tmp}/api_missing.$$"' EXIT
if [ -n "$list" ]; then awk -F '\t' 'NR == FNR { weak[$1]; next } $1 in weak { print $1 "\t" $3 }' "${TMPDIR:-/tmp}/api_missing.$$" "$list"
else cat "${TMPDIR:-/tmp}/api_missing.$$"
fi
