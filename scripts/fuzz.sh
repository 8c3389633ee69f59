#!/usr/bin/env bash
# fuzz.sh BUILD HOURS [TARGET...]: fuzzing for as long as there is time: all targets (or those named) in turns of FUZZ_TURN seconds (default 300),
# one process at a time. BUILD is a build as `make test` makes BUILD-check: clang, FARFAULT_FUZZ=ON, FARFAULT_SANITIZE=ON.
#   What is found stays: inputs with new coverage in BUILD/found/TARGET (they begin the next turn), inputs that fail in BUILD/TARGET-*.
#   Each turn is a row of docs/results/fuzzing.csv (or FUZZ_LEDGER): date, target, processor hours, executions, branches covered that were not
#   when the turn began, failing inputs.
# Ends with a table of the ledger's sums. Exit status: 1 if a turn found a failing input.
set -uo pipefail
[[ $# -ge 2 && -d $1/fuzz ]] || { sed -n '2,7s/^# //p' "$0" >&2; exit 64; }
build=$1 hours=$2
shift 2
here=$(cd "$(dirname "$0")/.." && pwd)
ledger=${FUZZ_LEDGER:-$here/docs/results/fuzzing.csv}
turn=${FUZZ_TURN:-300}
end=$(($(date +%s) + $(awk -v h="$hours" 'BEGIN { printf "%d", h * 3600 }')))
targets=("$@")
[[ $# -gt 0 ]] || targets=($(cd "$build/fuzz" && ls | grep '^fuzz_' | sed 's/^fuzz_//'))
[[ ${#targets[@]} -gt 0 ]] || { echo "fuzz.sh: no targets in $build/fuzz" >&2; exit 1; }
[[ -s $ledger ]] || echo 'date,target,processor_hours,executions,new_coverage,finds' >"$ledger"
export ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1:intercept_tls_get_addr=0:max_allocation_size_mb=2048 UBSAN_OPTIONS=print_stacktrace=1
export LLVM_PROFILE_FILE=/dev/null FARFAULT_MACHINES=$here/machines
say() { if [[ -t 2 ]]; then printf '\r\033[K%s' "$*" >&2; fi; }

failing() { find "$build" -maxdepth 1 -name "$1-*" ! -name '*.log' ! -name '*-slow-unit-*' | wc -l; }

# one TARGET SECONDS: a turn, and its row.
one() {
  local name=$1 seconds=$2 log=$build/$1-fuzz.log times=$build/$1-times.log before after row
  local found=$build/found/fuzz_$name corpus=$here/tests/fuzz/corpus/$name
  mkdir -p "$found"
  before=$(failing "$name")
  local quiet=0
  [[ $name != driver ]] || quiet=3 # each faulting kernel is told of at length; a failing input tells again when it is run alone
  TIMEFORMAT='%U %S'
  # The turn's own time limit may fail: a process that hangs is ended from outside.
  { time timeout -k 600 $((2 * seconds + 600)) "$build/fuzz/fuzz_$name" -max_total_time="$seconds" -rss_limit_mb=2048 -timeout=300 -print_final_stats=1 -close_fd_mask=$quiet \
    -artifact_prefix="$build/$name-" "$found" $([[ -d $corpus ]] && echo "$corpus") >"$log" 2>&1 </dev/null; } 2>"$times"
  after=$(failing "$name")
  row=$(awk -v date="$(date -u +%F)" -v name="$name" -v finds=$((after - before)) '
    FNR == NR { if (/^[0-9.]+ [0-9.]+$/) hours = ($1 + $2) / 3600; next }
    $2 == "INITED" { first = $4 }
    / cov: / { for (i = 1; i < NF; i++) if ($i == "cov:") last = $(i + 1); runs = substr($1, 2) + 0 }
    /stat::number_of_executed_units:/ { runs = $2 }
    END { printf "%s,%s,%.4f,%d,%d,%d", date, name, hours, runs, (last > first ? last - first : 0), finds }' "$times" "$log")
  echo "$row" >>"$ledger"
  [[ $after -gt $before ]] && { found_any=1; say; echo "fuzz.sh: $name: $((after - before)) failing inputs in $build/$name-*; the output is in $log" >&2; }
  rm -f "$times"
}

found_any=0 done_turns=0
while [[ $(date +%s) -lt $end ]]; do
  for name in "${targets[@]}"; do
    left=$((end - $(date +%s)))
    [[ $left -gt 0 ]] || break
    say "fuzzing $name; $done_turns turns done, $((left / 60)) min left"
    one "$name" $((left < turn ? left : turn))
    done_turns=$((done_turns + 1))
  done
done
say
awk -F, 'NR > 1 { hours[$2] += $3; runs[$2] += $4; finds[$2] += $6 }
  END { printf "%-14s %15s %12s %6s\n", "target", "processor hours", "executions", "finds"
    for (t in hours) { printf "%-14s %15.2f %12d %6d\n", t, hours[t], runs[t], finds[t] | "sort"; h += hours[t]; r += runs[t]; f += finds[t] }
    close("sort"); printf "%-14s %15.2f %12d %6d\n", "all", h, r, f }' "$ledger"
exit $found_any
