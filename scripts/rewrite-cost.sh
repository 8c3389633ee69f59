#!/usr/bin/env bash
# What binding kernels to SMs costs: each kernel of the bundled workloads on a simulated GPU, as it is and as `farfault rewrite` makes it,
# with all SMs in its range. Kernels whose launches take less than LEAST microseconds on average are left out.
#   scripts/rewrite-cost.sh [BUILD-FOLDER] [MACHINE] [LEAST]
# Prints a table (kernel, launches, time as it is and rewritten, ratio), then the mean of the ratios.
set -eu
build=$(cd "${1:-build}" && pwd)
machine=${2:-v100}
least=${3:-50}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# sizes at which a kernel takes long enough, and one host core no more than some seconds
programs="matmul 512 1
sgemm 512 512 512
reduce 8388608 1024
histogram 2097152 64
nbody 4096
stringmatch 65536 8192 25
kmeans 65536 8 8 1
hotspot 2048 2048 1
spmv 262144 16
vectoradd 8388608 1"

measure() { # measure NAME PREFIX... -- ARGUMENTS: kernels with launches and their time in picoseconds
  "$build/bin/farfault" run --machine "$machine" --memory ideal --json "$work/run.json" -- "$build/workloads/$@" >/dev/null 2>"$work/err" ||
    { cat "$work/err" >&2; exit 1; }
  jq -r '.runs[0].kernels[] | [(.name | sub("__persistent$"; "")), .launches, .time_ps] | @tsv' "$work/run.json" | sort
}

printf '%-14s %-24s %9s %12s %12s %8s\n' workload kernel launches 'own us' 'bound us' ratio
while read -r name arguments; do
  # shellcheck disable=SC2086 # several arguments
  measure "$name" $arguments >"$work/own"
  # shellcheck disable=SC2086
  LD_PRELOAD=$build/tests/programs/checked/libcuda.so.1 REAL_LIBCUDA=$build/lib/farfault/libcuda.so.1 CHECK_BY=persistent \
    measure "$name" $arguments >"$work/bound"
  join -t $'\t' "$work/own" "$work/bound" |
    awk -F '\t' -v w="$name" -v least="$least" '$3 / $2 >= least * 1e6 { printf "%-14s %-24s %9d %12.2f %12.2f %8.3f\n", w, $1, $2, $3 / 1e6, $5 / 1e6, $5 / $3 }'
done <<<"$programs" | tee "$work/table"
awk '{ sum += $6; n++; if ($6 > most) most = $6 } END { if (n) printf "%d kernels: %.1f %% on average, %.1f %% at most\n", n, (sum / n - 1) * 100, (most - 1) * 100 }' "$work/table"
