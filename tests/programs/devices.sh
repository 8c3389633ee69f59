#!/usr/bin/env bash
# A program for two GPUs on one, two and three of them; options that are wrong. $3: the folder of fixtures.
source "$(dirname "$0")/common.sh"
program=$3/devices

for how in copy reach; do
  run "$farfault" run --devices 2 --memory none "$program" $how
  expect_status 0
  expect_out "2 devices"
  expect_out good
done
run env FARFAULT_DEVICES=3 "$farfault" run --memory none "$program" copy
expect_out "3 devices"
run env FARFAULT_DEVICES=3 "$farfault" run --devices 2 --memory none "$program" copy
expect_out "2 devices"
run "$farfault" run --memory none "$program"
expect_status 4
expect_out "1 devices"

# Without peer access: both devices are named, and the allocation.
run "$farfault" run --devices 2 --memory none "$program" forbidden
expect_status 2
expect_err "illegal global read of 4 bytes"
expect_err "cuMemAlloc #2 (262144 bytes)"
expect_err "memory of device 1, to which device 0 has no peer access"
expect_err "cuStreamSynchronize: 700"

# The checkers.
run "$farfault" memcheck --devices 2 "$program" reach
expect_status 0
expect_err "ERROR SUMMARY: 0 errors"
run "$farfault" memcheck --devices 2 "$program" forbidden
expect_err "and is 0 bytes inside memory of device 1, to which device 0 has no peer access, at"
run "$farfault" racecheck --devices 2 "$program" copy
expect_status 0

for wrong in 0 17 99 1000000 -1 two 2x 0x2 " 2" ""; do
  run "$farfault" run --devices "$wrong" --memory none "$program"
  expect_status 64
  expect_err "--devices: '$wrong' is not a number from 1 to 16"
done
run env FARFAULT_DEVICES=99 "$farfault" run --memory none "$program"
expect_err "FARFAULT_DEVICES is not a number from 1 to 16: '99'"
run env FARFAULT_DEVICES=many "$farfault" run --memory none "$program"
expect_err "FARFAULT_DEVICES is not a number from 1 to 16: 'many'"
run "$farfault" run --devices 16 --memory copy,demand,ideal "$program"
expect_status 64
expect_err "3 memory managers on 16 devices are more than 32 simulations"
finish
