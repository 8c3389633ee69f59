#!/usr/bin/env bash
# The same run twice gives the same bytes, but for the host's section; for programs whose blocks do not race (bfs: they look
# at each other's marks) so it does on one thread and on several. $3: the folder of the workloads.
source "$(dirname "$0")/common.sh"
workloads=$3

simulated() { sed '/^ "host": {/,$d' "$1"; }
check() { # check "THREADS..." NAME ARGUMENTS...
  local counts=$1 name=$2 i=0
  shift 2
  for threads in $counts; do
    i=$((i + 1))
    run "$farfault" run --machine gtx480 --threads "$threads" --json "$name.$i" "$workloads/$name" "$@"
    expect_status 0
    cp out "$name.out.$i"
    [[ $i -eq 1 ]] && continue
    expect cmp <(simulated "$name.1") <(simulated "$name.$i")
    expect cmp "$name.out.1" "$name.out.$i"
  done
  expect test "$(grep -c '"error"' "$name.1")" -eq 0
  expect test "$(grep -c '"complete": true' "$name.1")" -eq 5
}
check "1 1 2 3" vectoradd 20000
check "1 1 2 3" matmul 64
check "1 1" bfs 2000 8
finish
