#!/usr/bin/env bash
# How a program divides an SM's memory between L1 and shared memory reaches the simulation and recordings. $3: the folder of fixtures.
source "$(dirname "$0")/common.sh"
program=$3/carve_outs

# What the L1 holds is a matter of the launch: 800 lines four times, of which the first time misses, or all four.
misses() { # misses FILE: sectors that each kernel missed in the L1
  python3 -c 'import json, sys; print(*(k["l1_misses"] for k in json.load(open(sys.argv[1]))["runs"][0]["kernels"]))' "$1"
}
run "$farfault" run --machine v100 --memory ideal --json run.json "$program"
expect_status 0
expect test "$(misses run.json)" = "3200 12800 3200 12800 12800"
run "$farfault" run --machine h200 --memory ideal --json h200.json "$program"
expect test "$(misses h200.json)" = "3200 12800 3200 12800 12800"
# A machine that does not say that its L1 is the whole memory of both: nothing changes. Nor where each has its own.
run "$farfault" run --machine v100 --set l1_bytes=160K --memory ideal --json own.json "$program"
expect test "$(misses own.json)" = "3200 3200 3200 3200 3200"
run "$farfault" run --machine gtx1080 --set l1_bytes=160K --memory ideal --json own.json "$program"
expect test "$(misses own.json)" = "3200 3200 3200 3200 3200"
run "$farfault" record --machine v100 -o some.fft "$program"
run "$farfault" sim --machine v100 --memory ideal --json sim.json some.fft
expect diff <(sed '/^ "host": {/,$d' run.json) <(sed '/^ "host": {/,$d' sim.json)
run "$farfault" trace dump some.fft
expect test "$(grep -o '>>>.*' out | sed 's, at carve_outs.c:[0-9]*,,' | paste -sd '|')" = ">>>|>>> preferring 100 % shared memory|>>> preferring 0 % shared memory|>>> preferring 100 % shared memory|>>> preferring 100 % shared memory"
finish
