#!/usr/bin/env bash
# A program of virtual memory management under every manager; recorded, simulated, dumped. $3: the folder of fixtures.
source "$(dirname "$0")/common.sh"
program=$3/mapping

managers=$("$farfault" list managers --json - | sed -n 's/.*"name": "\([^"]*\)".*/\1/p' | paste -sd,)
expect test "$(tr , '\n' <<<"$managers" | wc -l)" -gt 15
run "$farfault" run --machine v100 --gpu-memory 8M --memory "$managers" --json run.json "$program"
expect_status 0
expect_out good
expect test "$(grep -c '"time_ps"' run.json)" -ge "$(tr , '\n' <<<"$managers" | wc -l)"
expect test "$(grep -c 'could not run' err)" -eq 0

# copy: four pieces were created, however often they were mapped; elsewhere two are mapped at a time.
run "$farfault" run --machine v100 --gpu-memory 7M --memory copy "$program"
expect_out good
expect_err "copy: could not run it: with mapping.c:43 cuMemCreate #4 the program has 8.00 MiB in use"

run "$farfault" record --machine v100 -o mapping.fft "$program"
expect_status 0
run "$farfault" sim --machine v100 --gpu-memory 8M --memory "$managers" --json sim.json mapping.fft
expect_status 0
expect diff <(sed '/^ "host": {/,$d' run.json) <(sed '/^ "host": {/,$d' sim.json)
run "$farfault" sim --machine v100 --gpu-memory 7M --memory copy mapping.fft
expect_out "with mapping.c:43 cuMemCreate #4 the program has 8.00 MiB in use"

run "$farfault" trace info -v mapping.fft
expect_out "cuMemCreate #4"
expect_out "        32  map"
expect_out "        16  unmap"
expect_out "        32  set access"
run "$farfault" trace dump mapping.fft
expect_out "cuMemAddressReserve #1"
expect_out "2097152 bytes -> memory 1 + 0"
expect_out "release memory	memory 4"
run "$farfault" trace check mapping.fft
expect_status 0
run "$farfault" advise --machine v100 mapping.fft
expect_status 0
finish
