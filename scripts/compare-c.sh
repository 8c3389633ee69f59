#!/usr/bin/env bash
# compare-c.sh BUILD [NAME...]: processor time of the bundled workloads' kernels on one core, interpreted and compiled, as a multiple of what
# the same computation takes as plain C (-O2, the workload's own check) on that core. Each is the best of RUNS (3); native code is in the cache.
# Left out: what has no such C (alexnet, hosttouch, llm as a whole), or another algorithm or precision (hotspot, nbody, reduce, sort, spmv,
# histogram), computes some of the results only (mriq), or has so little to compute that first touches of memory are what is measured (csr, gather, probes, tiles).
set -euo pipefail
build=$1 runs=${RUNS:-3}
shift
here=$(dirname "$0")
out=$(mktemp)
trap 'rm -f "$out"' EXIT
least() { # least HOW WORDS...: the least time of the kernels and of C, in ms
  local how=$1
  shift
  for ((n = 0; n < runs; n++)); do
    WORKLOAD_TIMES=1 "$build/bin/farfault" run --memory none --threads 1 --execute "$how" -- "$build/workloads/$1" "${@:2}" 2>&1 >/dev/null |
      sed -n 's/.*: kernels \([0-9.]*\) ms, the same on the CPU \([0-9.]*\) ms/\1 \2/p'
  done | awk 'NR == 1 || $1 < k { k = $1 } NR == 1 || $2 < c { c = $2 } END { print k, c }'
}
printf '%-16s %12s %12s %12s %14s %12s\n' workload 'C, ms' 'interpreted' 'compiled' 'interpreted/C' 'compiled/C'
while IFS=$'\t' read -r name _ words _; do
  case $name in
    name | alexnet | hosttouch | llm | hotspot | nbody | reduce | sort | spmv | histogram | mriq | csr | gather | probes | tiles) continue ;;
  esac
  [[ $# -eq 0 || " $* " == *" $name "* ]] || continue
  # shellcheck disable=SC2086 # the arguments are words
  read -r interpreted c < <(least interpret $name $words)
  # shellcheck disable=SC2086
  read -r compiled c2 < <(RUNS=$((runs + 1)) least compile $name $words)
  awk -v name="$name" -v i="$interpreted" -v k="$compiled" -v c="$c" -v c2="$c2" \
    'BEGIN { if (c2 < c) c = c2; printf "%-16s %12.2f %12.2f %12.2f %14.2f %12.2f\n", name, c, i, k, i / c, k / c }' | tee -a "$out"
done <"$here/../workloads/workloads.tsv"
awk '{ i += $5; k += $6; li += log($5); lk += log($6); n++ } END { printf "%-16s %12s %12s %12s %14.2f %12.2f\n%-16s %12s %12s %12s %14.2f %12.2f\n", "mean", "", "", "", i / n, k / n, "geometric mean", "", "", "", exp(li / n), exp(lk / n) }' "$out"
