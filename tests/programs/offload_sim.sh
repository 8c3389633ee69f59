#!/usr/bin/env bash
# `farfault sim --offload A,B --map C,D`: which simulations these are, what is refused and when.
source "$(dirname "$0")/common.sh"
workloads=$3
unset FARFAULT_OFFLOAD FARFAULT_MAP
sim() { run timeout 60 "$farfault" sim "$@"; }
column() { awk -F, -v name="$1" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) c = i } NR > 1 { print $c }' "$2"; }

run "$farfault" record -o va.fft "$workloads/vectoradd" 16384 1
expect_status 0

# ---- lists ----
sim va.fft --machine tom --map baseline,12:13 --csv maps.csv
expect_status 0
expect test "$(column memory maps.csv | xargs)" = "copy+map=baseline copy+map=12:13"
sim va.fft --machine tom --memory copy,ideal --offload none --map 9:10 --csv one.csv
expect test "$(column memory one.csv | xargs)" = "copy ideal"
expect_out "note: all managers with --map 9:10"
sim va.fft --machine tom --memory copy,ideal+map=12:13 --map baseline,7:8 --csv own.csv
expect test "$(column memory own.csv | xargs)" = "copy+map=baseline copy+map=7:8 ideal+map=12:13"

# ---- what is refused, and that nothing was simulated before ----
refused() { # STATUS MESSAGE ARGUMENT...
  local status=$1 message=$2
  shift 2
  sim "$@"
  expect_status "$status"
  expect_err "$message"
  expect_no_out
}
refused 64 "'bad' is no way of offloading: there are none, always, controlled, ideal" va.fft --machine tom --offload none,bad
refused 64 "'12:14' is no map" va.fft --machine tom --map baseline,12:14
refused 64 "'2' is no share of the instances" va.fft --machine tom --map learned:2
refused 64 "the oracle knows all instances" va.fft --machine tom --map oracle:1%
refused 64 "--offload: ',' names none" va.fft --machine tom --offload ,
refused 64 "'copy+offload=none' is named twice" va.fft --machine tom --offload none,none
refused 64 "'offload' is given twice" va.fft --machine tom --memory copy+offload=always+offload=none
refused 64 "these are 33 simulations" va.fft --machine tom --memory copy,ideal,uvm --map "$(seq -s, 11 | sed 's/[0-9]*/learned:&%/g')"
refused 64 "no memory stacks to offload to" va.fft --machine gtx480 --offload controlled
refused 64 "no memory stacks to map to" va.fft --machine gtx480 --map baseline
refused 64 "no memory stacks to offload to" va.fft --machine tom --memory copy+offload=always+stack_count=0
sim va.fft --machine gtx480 --offload none --memory copy
expect_status 0

run "$farfault" run --machine tom --offload controlled --memory copy "$workloads/vectoradd" 16384 1
expect_status 64
expect_err "recorded programs: \`farfault record -o app.fft PROGRAM\`"
expect_no_out
run "$farfault" run --machine tom --map learned --memory copy "$workloads/vectoradd" 16384 1
expect_status 64
expect_no_out
run "$farfault" run --machine tom --map 12:13 --memory copy "$workloads/vectoradd" 16384 1
expect_status 0

# ---- sweeps have them as parameters ----
cat >study.yaml <<'END'
trace: va.fft
machine: tom
memory: copy
map: [baseline, "12:13", learned]
offload: [none, controlled]
END
run "$farfault" sweep study.yaml --dry-run -v
expect_status 0
expect_out "--offload controlled --map learned"
sed 's/tom/h200/' study.yaml >bad.yaml
run "$farfault" sweep bad.yaml --dry-run
expect_status 2
expect_err "no memory stacks"
finish
