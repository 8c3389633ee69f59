#!/usr/bin/env bash
# A program with textures, a surface and arrays under several managers; recorded and simulated. $3: the folder of fixtures.
source "$(dirname "$0")/common.sh"
program=$3/textures

managers=copy,demand,uvm,ideal
run "$farfault" run --machine v100 --memory "$managers" --json run.json "$program"
expect_status 0
expect_out good
expect test "$(grep -c '"time_ps"' run.json)" -ge 4

# Arrays are allocations, copies into them copies, fetches loads of their lines.
run "$farfault" record --machine v100 -o textures.fft "$program"
expect_status 0
run "$farfault" sim --machine v100 --memory "$managers" --json sim.json textures.fft
expect_status 0
expect diff <(sed '/^ "host": {/,$d' run.json) <(sed '/^ "host": {/,$d' sim.json)
run "$farfault" trace info -v textures.fft
expect_out "cuArray3DCreate #1"
expect_out "cuArray3DCreate #2"
expect grep -qE '8.00 KiB +device +textures\.c:[0-9]+ cuArray3DCreate #5' out # 32 by 32 blocks of 8 bytes
run "$farfault" trace check textures.fft
expect_status 0
# 512 warps: the second kernel fetches an array's row and the table, the first one two rows of an array (but for the uppermost).
run "$farfault" trace dump --records textures.fft
expect test "$(grep -c 'load pc' out)" -ge 2040

# Where nothing of an array is on the GPU, it has to come: more far-faults than with all of it there.
run "$farfault" run --machine v100 --memory demand --json faults.json "$program"
expect_status 0
expect grep -q '"faults": [1-9]' faults.json

# Both checks see fetches and surface accesses: all was written before it was read, by copies or through the surface.
run "$farfault" memcheck "$program"
expect_status 0
expect_err "ERROR SUMMARY: 0 errors"
run "$farfault" racecheck "$program"
expect_status 0
expect_err "0 hazards displayed"
finish
