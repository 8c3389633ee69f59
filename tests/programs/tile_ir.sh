#!/usr/bin/env bash
# Tile IR: bytecode is loaded in every way that there is, its kernel launched and asked about; recorded, simulated, checked; and what is broken is refused.
# $3: the folder of fixtures.
source "$(dirname "$0")/common.sh"
program=$3/tile_ir
cp "$here/tile_ir.tileirbc" add.tileirbc
cp "$3/tile.fatbin" .
if command -v python3 >/dev/null; then # the committed file is what its source gives
  expect python3 -B "$here/tile_ir.py" again.tileirbc
  expect cmp again.tileirbc add.tileirbc
fi
libraries=$(dirname "$farfault")/../lib/farfault

# A program launches kernels of tiles with blocks of one thread; what it asks has the threads that the translation needs.
told="its Tile IR is translated to PTX"
for way in module library file; do
  run "$farfault" run --memory none "$program" $way add.tileirbc
  expect_status 0
  expect_out PASSED
  expect_err "farfault: tile_ir: $told"
  expect_err "add is a kernel of tiles, which is launched with blocks of (1,1,1), not (2,1,1)"
  expect test "$(grep -c "$told" err)" -eq 1
done
cp out first
expect grep -q '^threads [1-9][0-9]*, shared [0-9]*, blocks of an SM [1-9][0-9]*, most [1-9][0-9]* with blocks of 1$' first
threads=$(sed -n 's/^threads \([0-9]*\),.*/\1/p' first)
expect test $((threads * $(sed -n 's/.* of an SM \([0-9]*\),.*/\1/p' first))) -le 2048 # as many as an SM has

# In a fat binary, as nvcc has it, packed and beside machine code.
for way in module library registered; do
  run "$farfault" run --memory none "$program" $way tile.fatbin
  expect_status 0
  expect_err "farfault: tile_ir: $told"
  expect cmp out first
done
run "$farfault" run --memory none "$3/with_tile" # it is a program with code that runs
expect_status 0

# A block of `turn` has more shared memory than one has by default; a GPU that has not as much cannot run it.
for machine in h200 v100; do
  run "$farfault" run --memory none --machine $machine "$program" turn add.tileirbc
  expect_status 0
  expect test "$(sed -n 's/^shared //p' out)" -gt 49152
  expect_out PASSED
done
run "$farfault" run --memory none --machine gtx480 "$program" turn add.tileirbc
expect_status 2
expect_err "bytes of shared memory per block, 49152 are possible"

# A recording has the blocks that ran, and simulates to what a run gives; so with kernels bound to SMs, and on a machine without tensor copies.
run "$farfault" run --memory copy,uvm --json run.json "$program" module add.tileirbc 100000
expect_status 0
run "$farfault" record -o add.fft "$program" module add.tileirbc 100000
expect_status 0
run "$farfault" sim --memory copy,uvm --json sim.json add.fft
expect_status 0
expect diff <(sed '/^ "host": {/,$d' run.json) <(sed '/^ "host": {/,$d' sim.json)
run "$farfault" trace dump add.fft
expect_status 0
expect_out ", ${threads}x1x1, 0>>>"
for options in "--bind-sms 0-3" "--machine v100" "--devices 2" "--execute interpret"; do
  run "$farfault" run --memory copy $options "$program" module add.tileirbc 5000
  expect_status 0
  expect_out PASSED
done

# The checkers see its accesses: nothing of `add` is wrong, until half of its results have no place.
run "$farfault" memcheck "$program" module add.tileirbc
expect_err "4 errors" # the launches that are refused
expect test "$(grep -c Invalid err)" -eq 0
run "$farfault" racecheck "$program" outside add.tileirbc 512
expect_err "0 "
run "$farfault" memcheck "$program" outside add.tileirbc 1024
expect_status 1
expect_err "Invalid __global__ write of size 4 bytes"
expect_err "of size 2048 bytes"

# The translation can be looked at, as PTX is.
run "$farfault" disasm add.tileirbc
expect_status 0
expect_out ".visible .entry add("
expect_out ".visible .entry turn("
run "$farfault" disasm first # no code
expect test "$status" -ne 0

# What is broken is an error, and never a crash.
run "$farfault" run --memory none "$program" broken add.tileirbc
expect_status 0
expect_out "some are modules, some are refused"
printf '\177TileIR\0\15\143\0\0\0' >newer.tileirbc # version 13.99
run "$farfault" run --memory none "$program" module newer.tileirbc
expect_status 5
expect_err "farfault: "

# The assembler, as cuTile calls it: its result is what it is given, or an error.
assembler=$libraries/assemblers/tileiras
run "$assembler" add.tileirbc -o add.cubin --gpu-name sm_90 -O3 --lineinfo --remark-format=yaml --remarks=all --remarks-output-file=remarks.yaml
expect_status 0
expect_no_err
expect cmp add.cubin add.tileirbc
expect test -f remarks.yaml
run "$farfault" run --memory none "$program" library add.cubin
expect_status 0
run "$assembler" newer.tileirbc -o newer.cubin
expect_status 1
expect_err "error: "
expect test ! -e newer.cubin
run "$assembler" add.tileirbc -o linked.cubin -l lib.tilelib
expect_status 1
expect_err "error: -l: the virtual GPU does not link tile libraries"
run "$assembler" --version
expect_status 0
expect_out "farfault's stand-in"
for way in "" nowhere.tileirbc first; do
  run "$assembler" $way -o none.cubin
  expect_status 1
  expect_err "error: "
done

# A program that starts an assembler of that name starts the stand-in, as a compiler does not; and where none is installed, it is on PATH.
mkdir other
printf '#!/bin/sh\necho NVIDIA >"$3"\n' >other/tileiras
chmod +x other/tileiras
if [[ -e $libraries/libfarfault-preload.so ]]; then
  run "$farfault" run --memory none env other/tileiras add.tileirbc -o given.cubin
  expect_status 0
  expect cmp given.cubin add.tileirbc
  run "$farfault" run --memory none sh -c "other/tileiras add.tileirbc -o given.cubin"
  expect test "$(<given.cubin)" = NVIDIA
fi
run "$farfault" run --memory none sh -c "command -v tileiras"
expect grep -q "/assemblers/tileiras$" out
run env PATH="$PWD/other:$PATH" "$farfault" run --memory none sh -c "command -v tileiras"
expect_out "$PWD/other/tileiras"
finish
