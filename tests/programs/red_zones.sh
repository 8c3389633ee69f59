#!/usr/bin/env bash
# `farfault memcheck --padding`: an access just over either end of an allocation is found though a neighbour of the same kind lies there, whatever the
# allocation's size; alignment is kept; --padding 0 is as it was. $3: the folder of fixtures.
source "$(dirname "$0")/common.sh"
program=$3/red_zones

check() { run "$farfault" memcheck --show-backtrace no "$program" "$@"; }

# next_to KIND BYTES OFFSET WORDS: one finding, of thread 5, with those words.
next_to() {
  check "$1" "$2" "$3"
  expect_status 1
  expect_err "========= Invalid __global__ ${5:-write} of size 1 byte"
  expect_err "=========     by thread (5,0,0) in block (0,0,0)"
  expect_err "beside.cu:"
  expect_err "$4"
  expect_err "========= ERROR SUMMARY: 1 error"
}

declare -A call=([device]="cuMemAlloc #2" [managed]="cuMemAllocManaged #2" [pitched]="cuMemAllocPitch #2" [pool]="cuMemAllocAsync #2"
  [reused]="cuMemAllocAsync #" [pinned]="cuMemHostAlloc #2" [array]="cuMemAlloc #5")
for kind in device managed pool pinned reused array; do
  for bytes in 4096 2097152 100 4095; do
    [[ $kind == array ]] && bytes=${bytes/2097152/65536} # as wide as one may be
    next_to $kind $bytes 0 "and is 1 byte after the nearest allocation"
    expect_err "of size $bytes bytes (${call[$kind]}"
    next_to $kind $bytes -1 "and is 1 byte before the nearest allocation"
    expect_err "of size $bytes bytes (${call[$kind]}"
  done
  check $kind 4096 last
  expect_status 0
  expect_err "ERROR SUMMARY: 0 errors"
done
for offset in 0 255; do next_to device 4096 $offset "and is $((offset + 1)) byte"; done
next_to device 4096 -256 "and is 256 bytes before"

check device 4096 0 too # the same instruction behind the ends of two
expect_status 1
expect_err "and is 1 byte after the nearest allocation"
expect_err "of size 4096 bytes (cuMemAlloc #1)"
expect_err "of size 4096 bytes (cuMemAlloc #2)"
expect_err "========= ERROR SUMMARY: 2 errors"

next_to pitched 4096 0 "and is 1 byte after the nearest allocation"
expect_err "of size 65536 bytes (${call[pitched]}"
next_to pitched 4096 -1 "and is 1 byte before the nearest allocation"
next_to pitched 100 0 "and is 1 byte after the nearest allocation"

next_to variable 4096 0 "of size 4096 bytes (second)"
next_to variable 4096 -1 "of size 4096 bytes (second)"
next_to variable 100 0 "of size 100 bytes (small)"
next_to constant 4096 0 "of size 4096 bytes (middle)" read
next_to constant 4096 -1 "of size 4096 bytes (middle)" read

for bytes in 4096 1048576 20; do # the heap's blocks
  for where in "0 after" "-1 before"; do
    check heap $bytes ${where% *}
    expect_status 1
    expect_err "=========     at heap in beside.cu:9"
    expect_err "and is 1 byte ${where#* } the nearest block at"
    expect_err "of size $bytes bytes"
    expect_err "ERROR SUMMARY: 1 error"
  done
done

# Alignment, and the pitch, as without.
for kind in device pitched managed pinned; do
  for padding in 0 256 100000; do
    run "$farfault" memcheck --padding $padding "$program" $kind 100 -1
    expect_out "aligned to 4096"
    expect test "$(grep -c pitch out)" -eq 0
  done
done
run "$farfault" memcheck "$program" device 2097152 -1
expect_out "aligned to 2097152"

# Farther than the padding is seen if asked for; without it the neighbour has the access.
run "$farfault" memcheck --show-backtrace no --padding 100000 "$program" device 4096 90000
expect_status 1
expect_err "and is 90001 bytes after the nearest allocation"
run "$farfault" memcheck --padding 0 "$program" device 4096 0
expect_status 0
run "$farfault" memcheck --show-backtrace no --padding 100K "$program" device 4096 90000
expect_status 1
for wrong in -1 x 1073741825 2G 50% ""; do
  run "$farfault" memcheck --padding "$wrong" "$program"
  expect_status 64
  expect_err "--padding"
done
finish
