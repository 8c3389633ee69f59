#!/usr/bin/env bash
# sampling-table.sh BUILD [small]: the table of docs/sampling.md: programs that repeat launches and every bundled workload (small: these in their small
# size, and no others), with every launch timed and with --sample: error in time, difference in far-faults and bytes that moved, and how much less
# processor time the simulation of a recording takes (sim) and the whole run of the program (run), under the manager uvm.
set -euo pipefail
build=$1 size=${2:-}
here=$(cd "$(dirname "$0")/.." && pwd)
farfault=$build/bin/farfault machine=${MACHINE:-v100} managers=copy,demand,uvm
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

value() { # value MANAGER COLUMN
  awk -F, -v manager="$1" -v name="$2" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) column = i } $1 == manager { print $column }' "$work/pairs.csv"
}
# The least processor time of three, in ms.
cost() {
  local best=0 i ms
  for i in 1 2 3; do
    ms=$({ TIMEFORMAT='%U %S'; time "$@" >/dev/null 2>&1; } 2>&1 | awk '{ printf "%d", 1000 * ($1 + $2) }')
    if [[ $i == 1 || $ms -lt $best ]]; then best=$ms; fi
  done
  echo "$best"
}
row() {
  local job=$* manager errors='' moves='equal' counts
  # shellcheck disable=SC2086 # the job is words
  "$farfault" record --machine "$machine" -o "$work/job.fft" "$build/workloads/"$job >/dev/null 2>&1
  "$farfault" sim --machine "$machine" -m $managers --sample check --csv "$work/pairs.csv" "$work/job.fft" >"$work/out" 2>&1
  for manager in ${managers//,/ }; do
    errors+=$(awk -v full="$(value $manager time_us)" -v sampled="$(value "$manager+sample=on" time_us)" 'BEGIN { printf " %+.2f |", 100 * (sampled / full - 1) }')
    for column in faults h2d_bytes d2h_bytes evicted_bytes remote_bytes; do
      [[ $(value $manager $column) == "$(value "$manager+sample=on" $column)" ]] || moves="$manager: $column $(value $manager $column), $(value "$manager+sample=on" $column)"
    done
  done
  counts=$(sed -n 's/^uvm+sample=on: \([0-9]*\) launches timed, \([0-9]*\) estimated.*/\1 | \2/p' "$work/out")
  local full sampled run_full run_sampled
  full=$(cost "$farfault" sim --machine "$machine" -m uvm "$work/job.fft")
  sampled=$(cost "$farfault" sim --machine "$machine" -m uvm --sample on "$work/job.fft")
  # shellcheck disable=SC2086
  run_full=$(cost "$farfault" run --machine "$machine" -m uvm "$build/workloads/"$job)
  # shellcheck disable=SC2086
  run_sampled=$(cost "$farfault" run --machine "$machine" -m uvm --sample on "$build/workloads/"$job)
  awk -v job="$job" -v counts="$counts" -v errors="$errors" -v moves="$moves" -v a="$full" -v b="$sampled" -v c="$run_full" -v d="$run_sampled" \
    'BEGIN { printf "| `%s` | %s |%s %s | %.1f | %.1f |\n", job, counts, errors, moves, a / (b ? b : 1), c / (d ? d : 1) }'
}

echo '| program | timed | estimated | copy, % | demand, % | uvm, % | far-faults and bytes | sim, times | run, times |'
echo '|---|---:|---:|---:|---:|---:|---|---:|---:|'
if [[ $size != small ]]; then
  for job in "hotspot 512 512 400" "fdtd 512 512 200" "cfd 256 128 60" "srad 256 256 100" "kmeans 16384 8 8 100 0" "spmv 16384 16 200" "stencil 128 128 32 100" "pathfinder 16384 1000 20" \
    "sort 16 10" "walsh 16 20" "neural 32" "llm 4 2 512 5 3 20 6 64 0"; do row "$job"; done
fi
while IFS=$'\t' read -r name _ default tiny _; do
  [[ $name != name ]] || continue
  if [[ $size == small ]]; then row "$name $tiny"; else row "$name $default"; fi
done <"$here/workloads/workloads.tsv"
