#!/usr/bin/env bash
# Memory and an event of two processes, cudaIpc handles, and memory of a pool. $3: the folder of fixtures.
source "$(dirname "$0")/common.sh"
program=$3/ipc

run "$farfault" run --memory none "$program"
expect_status 0
expect_out good

# Each process has simulations of its own. What was opened by handle is an allocation there, under the call's name.
run "$farfault" run --machine v100 --memory copy,demand,uvm,auto,segments,zero-copy --json run.json --csv run.csv -v "$program"
expect_status 0
expect_out good
expect_err "cudaIpcOpenMemHandle #1"
expect_err "cudaMemPoolImportPointer #2"
expect test "$(grep -c '"error"' run.json)" -eq 0

run "$farfault" memcheck "$program"
expect_status 0
expect_out good
expect test "$(grep -c 'ERROR SUMMARY: 0 errors' err)" -ge 1
finish
