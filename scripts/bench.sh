#!/usr/bin/env bash
# bench.sh BUILD: how fast this build is on this machine: every program of bench/, then whole runs of bundled programs, with one
# manager and with none, in warp instructions per second of the whole run.
set -euo pipefail
build=$1
for program in "$build"/bench/bench_*; do
  [[ -x $program ]] || continue
  printf '\n== %s\n' "$(basename "$program")"
  "$program"
done

json=$(mktemp)
trap 'rm -f "$json"' EXIT
number() { sed -n "s/^ *\"$1\": \([0-9.e+-]*\),\{0,1\}$/\1/p" "$json" | tail -1; }
printf '\n== whole runs (%s threads of execution)\n%-28s %-8s %10s %12s %14s %10s\n' "${THREADS:-1}" program memory 'wall s' 'warp instr.' 'per second' 'peak MiB'
for job in "matmul 512" "bfs 262144 8" "vectoradd 4000000" "hotspot 1024 1024 8"; do
  for memory in none copy replay; do
    # shellcheck disable=SC2086 # the job is words
    "$build/bin/farfault" run --memory $memory --threads "${THREADS:-1}" --json "$json" "$build/workloads/"$job >/dev/null 2>&1
    awk -v job="$job" -v memory=$memory -v wall="$(number wall_s)" -v n="$(number warp_instructions)" -v peak="$(number peak_rss_bytes)" \
      'BEGIN { printf "%-28s %-8s %10.2f %12d %12.2f M %10.0f\n", job, memory, wall, n, n / wall / 1e6, peak / 1048576 }'
  done
done

printf '\n== sampling: simulating a recording of launches that repeat\n%-28s %-8s %14s\n' program sample 'processor s'
trace=$(mktemp)
trap 'rm -f "$json" "$trace"' EXIT
for job in "hotspot 256 256 100" "spmv 2048 16 100"; do
  # shellcheck disable=SC2086 # the job is words
  "$build/bin/farfault" record -o "$trace" "$build/workloads/"$job >/dev/null 2>&1
  for sample in none on; do
    "$build/bin/farfault" sim --memory uvm --sample $sample --json "$json" "$trace" >/dev/null 2>&1
    awk -v job="$job" -v sample=$sample -v cpu="$(number cpu_s)" 'BEGIN { printf "%-28s %-8s %14.2f\n", job, sample, cpu }'
  done
done

printf '\n== how it grows, and what other simulators take for the same (bench/curves.py)\n'
python3 "$(dirname "$0")/../bench/curves.py" "$build"
