#!/usr/bin/env bash
# sampling-table.sh BUILD: the table of docs/sampling.md: some programs that repeat launches, and every bundled workload in its small size, with every
# launch timed and with --sample: error in time, difference in far-faults and bytes that moved, and how much less processor time the simulation of a
# recording takes (sim), without and with footprints, and the whole run of the program (run), under the manager uvm.
# With -: only the programs that repeat launches.
set -euo pipefail
build=$1
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
  "$farfault" trace cut --footprints -o "$work/feet.fft" "$work/job.fft" >/dev/null
  local full sampled leapt run_full run_sampled
  full=$(cost "$farfault" sim --machine "$machine" -m uvm "$work/job.fft")
  sampled=$(cost "$farfault" sim --machine "$machine" -m uvm --sample on "$work/job.fft")
  leapt=$(cost "$farfault" sim --machine "$machine" -m uvm --sample on "$work/feet.fft")
  # shellcheck disable=SC2086
  run_full=$(cost "$farfault" run --machine "$machine" -m uvm "$build/workloads/"$job)
  # shellcheck disable=SC2086
  run_sampled=$(cost "$farfault" run --machine "$machine" -m uvm --sample on "$build/workloads/"$job)
  awk -v job="$job" -v counts="$counts" -v errors="$errors" -v moves="$moves" -v a="$full" -v b="$sampled" -v e="$leapt" -v c="$run_full" -v d="$run_sampled" \
    'BEGIN { printf "| `%s` | %s |%s %s | %.1f | %.1f | %.1f |\n", job, counts, errors, moves, a / (b ? b : 1), a / (e ? e : 1), c / (d ? d : 1) }'
}

echo '| program | timed | estimated | copy, % | demand, % | uvm, % | far-faults and bytes | sim, times | with footprints | run, times |'
echo '|---|---:|---:|---:|---:|---:|---|---:|---:|---:|'
for job in "hotspot 256 256 100" "hotspot 256 256 1000" "fdtd 128 128 80" "cfd 64 64 60" "srad 128 128 60" "kmeans 4096 8 8 60 0" "spmv 2048 16 100" "stencil 64 64 32 60" "pathfinder 4096 800 4" "sort 14 8" \
  "llm 2 2 256 4 2 20 6 24 0"; do row "$job"; done
[[ ${2-} != - ]] || exit 0
while IFS=$'\t' read -r name _ _ small _; do
  if [[ $name != name ]]; then row "$name $small"; fi
done <"$here/workloads/workloads.tsv"
