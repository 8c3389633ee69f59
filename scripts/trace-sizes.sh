#!/usr/bin/env bash
# trace-sizes.sh BUILD [WORKLOAD ...]: records every bundled workload (or those named) with its usual arguments and prints, as the table of
# docs/trace.md, how many bytes its trace takes per access of a warp to global memory and per line of 128 bytes that was accessed, and
# what the records of accesses take as they are in memory.
set -euo pipefail
build=$1
shift
trace=$(mktemp -d)
trap 'rm -rf "$trace"' EXIT
field() { sed -n "s/^ *\"$1\": \([0-9]*\),\{0,1\}$/\1/p" "$trace/info.json"; }
echo '| workload | accesses | lines each | trace, bytes | bytes per access | bytes per line | records in memory, bytes per access |'
echo '|---|---|---|---|---|---|---|'
sed 1d "$(dirname "$0")/../workloads/workloads.tsv" | while IFS=$'\t' read -r name _ arguments _; do
  [[ $# -eq 0 || " $* " == *" $name "* ]] || continue
  # shellcheck disable=SC2086 # words
  "$build/bin/farfault" record -o "$trace/x.fft" "$build/workloads/$name" $arguments >/dev/null 2>&1 </dev/null
  "$build/bin/farfault" trace info -v --json - "$trace/x.fft" >"$trace/info.json"
  awk -v name="$name $arguments" -v bytes="$(stat -c %s "$trace/x.fft")" \
    -v accesses="$(field accesses | head -1)" -v lines="$(field lines | awk '{ n += $1 } END { print n + 0 }')" \
    'BEGIN { if (!accesses) { accesses = lines = 1 }
             printf "| `%s` | %d | %.1f | %d | %.2f | %.2f | %.0f |\n", name, accesses, lines / accesses, bytes, bytes / accesses, bytes / lines, 16 + 8 * lines / accesses }'
done
