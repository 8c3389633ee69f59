#!/usr/bin/env bash
# The same run twice gives the same bytes, but for the host's section; and so it does on one thread and on several.
# $3: the folder of the workloads.
source "$(dirname "$0")/common.sh"
workloads=$3

simulated() { sed '/^ "host": {/,$d' "$1"; }
check() { # check NAME ARGUMENTS...
  local name=$1
  shift
  for i in 1 2 3; do
    run "$farfault" run --machine gtx480 --threads "$i" --json "$name.$i" "$workloads/$name" "$@"
    expect_status 0
    cp out "$name.out.$i"
  done
  for i in 2 3; do
    expect cmp <(simulated "$name.1") <(simulated "$name.$i")
    expect cmp "$name.out.1" "$name.out.$i"
  done
  expect test "$(grep -c '"error"' "$name.1")" -eq 0
  expect test "$(grep -c '"complete": true' "$name.1")" -eq 5
}
check vectoradd 20000
check bfs 2000 8
check matmul 64
finish
