#!/usr/bin/env bash
# A program for two GPUs on one, two and three of them; options that are wrong. $3: the folder of fixtures; $4: 1 if this build checks itself.
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

# The version that the driver says it is.
for wrong in 12 10.2 12.4.1 12.x ""; do
  run "$farfault" run --driver-version "$wrong" --memory none "$program"
  expect_status 64
  expect_err "--driver-version: '$wrong' is not a version of CUDA from 11.0 on, as 12.4"
done
run env FARFAULT_DRIVER_VERSION=12.x "$farfault" run --memory none "$program"
expect_err "FARFAULT_DRIVER_VERSION is not a version of CUDA from 11.0 on, as 12.4: '12.x'"
run "$farfault" run --driver-version 12.4 --memory none "$program" copy
expect_out "driver 12040"
run "$farfault" run --memory none "$program" copy
expect_out "driver 13050"

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

# Time: each manager on each device, the host's clock the same for both; recorded, simulated again.
managers=copy,demand,replay,sequential,tbn,uvm,auto,segments,zero-copy,cuda6,partial-multi,oracle,ideal
for how in copy reach; do
  run "$farfault" run --devices 2 --machine v100 --memory $managers --json run.json --csv run.csv --record $how.fft "$program" $how
  expect_status 0
  expect test "$(grep -c '"device": [01],' run.json)" -eq 26
  expect test "$(grep -c '"error"' run.json)" -eq 0
  for manager in ${managers//,/ }; do
    read -r zero one < <(awk -F, -v m="$manager" '$1 == m "@0" { a = $5 } $1 == m "@1" { b = $5 } END { print a, b }' run.csv)
    expect test "$zero" = "$one"
  done
  for round in 1 2; do
    run "$farfault" sim --machine v100 --memory $managers --json sim.json $how.fft
    expect_out "device 1"
    expect diff <(sed '/^ "host": {/,$d' run.json) <(sed '/^ "host": {/,$d' sim.json)
  done
  run "$farfault" report run.json
  expect_out "copy@1"
done
# 256 KiB from one to the other: out of device 1 over its link, in to device 0 over its own. Who reaches for them needs no copy of them.
run "$farfault" sim --machine v100 --memory copy --csv copy.csv copy.fft
run "$farfault" sim --machine v100 --memory copy --csv reach.csv reach.fft
field() { awk -F, -v row="$2" -v name="$3" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) at = i } $1 == row { print $at }' "$1"; }
expect test "$(field copy.csv copy@0 h2d_bytes)" -eq 262148
expect test "$(field copy.csv copy@1 d2h_bytes)" -eq 262144
expect test "$(field reach.csv copy@0 h2d_bytes)" -eq 4
expect test "$(field reach.csv copy@1 d2h_bytes)" -eq 0
expect test "$(field reach.csv copy@0 remote_bytes)" -ge 262144
expect test "$(field copy.csv copy@0 remote_bytes)" -eq 0

# 4 MiB of managed memory, written by device 0, then by the other one four times: 16 MiB go from GPU to GPU, once each; the host reads 4 MiB at last.
mib=1048576
run "$farfault" run --devices 2 --machine v100 --memory demand,uvm --csv pages.csv "$program" pages
expect_out good
for manager in demand uvm; do
  expect test "$(field pages.csv $manager@0 d2h_bytes)" -eq $((2 * 4 * mib + 4 * mib))
  expect test "$(field pages.csv $manager@1 d2h_bytes)" -eq $((2 * 4 * mib))
  expect test "$(($(field pages.csv $manager@0 h2d_bytes) + $(field pages.csv $manager@1 h2d_bytes)))" -eq $((16 * mib + 4 * mib + 2 * 4096)) # and a page of variables on each
done
# Who are peers is what the machine's links say.
run "$farfault" run --devices 2 --machine v100 --memory none "$program" peers
expect_out "0-1 1 0 0"
run "$farfault" run --devices 8 --machine dgx-v100 --memory none "$program" peers
expect_status 0
expect_out "0-4 1 0 1"
expect_out "0-5 0 1 0"
expect test "$(grep -c ' 1 0 1$' out)" -eq 16
run "$farfault" run --devices 8 --machine dgx-h100 --memory none "$program" peers
expect test "$(grep -c ' 1 0 1$' out)" -eq 28
run "$farfault" run --devices 8 --machine pcie-8 --memory none "$program" peers
expect test "$(grep -c ' 1 0 0$' out)" -eq 28
run "$farfault" run --devices 9 --machine dgx-v100 --memory none "$program" peers
expect_err "dgx-v100 has 8 GPUs, not 9"
run "$farfault" run --devices 2 --machine v100 --set gpus=2,roots="0 1" --memory none "$program" reach
expect_err "cuCtxEnablePeerAccess: 217"

# Multicast: of 256 KiB, each of four GPUs has a quarter of the sums brought to it, and stores it to all, twice.
run "$farfault" run --devices 4 --machine v100 --memory none "$program" multicast
expect_out "multicast: 0"
expect_err "a multicast object needs several GPUs of compute capability 9.0 with a switch between them"
expect_err "cuMulticastCreate: 801"
run "$farfault" run --devices 4 --machine dgx-h100 --memory copy,uvm --json run.json --csv team.csv --record team.fft "$program" multicast
expect_status 0
expect_out "multicast: 1"
expect_out good
for manager in copy uvm; do
  for d in 0 1 2 3; do expect test "$(field team.csv $manager@$d remote_bytes)" -eq $((3 * 65536)); done
done
run "$farfault" sim --machine dgx-h100 --memory copy,uvm --json sim.json team.fft
expect diff <(sed '/^ "host": {/,$d' run.json) <(sed '/^ "host": {/,$d' sim.json)
run "$farfault" trace dump team.fft
expect_out "cuMulticastCreate #1, of device 0, of device 1, of device 2, of device 3"
run "$farfault" memcheck --devices 4 --machine dgx-h100 "$program" multicast
expect_err "ERROR SUMMARY: 0 errors"

run "$farfault" sim --machine v100 --memory copy --device 1 copy.fft
expect_status 0
expect_out "copy  "
expect_out "device 1 of the program's 2"
expect test "$(grep -c 'copy' out)" -eq 2 # the command's, and one row
if [[ $4 -eq 0 ]]; then # minutes with checks
  run "$farfault" advise --machine v100 --quick copy.fft
  expect_status 0
  expect_out "Now, with copy:"
fi
run "$farfault" sim --device 2 copy.fft
expect_status 64
expect_err "--device 2: the program had 2 GPUs, numbered from 0"
for wrong in -1 16 one ""; do
  run "$farfault" sim --device "$wrong" copy.fft
  expect_status 64
  expect_err "--device: '$wrong' is not a number from 0 to 15"
done
run env FARFAULT_DEVICES=5 "$farfault" sim --machine v100 --memory copy copy.fft # the trace says how many there were
expect_status 0
expect test "$(grep -c '^device' out)" -eq 2
run "$farfault" trace dump copy.fft
expect_out "device 1"
run "$farfault" trace check copy.fft
expect_status 0
run "$farfault" run --memory copy --record one.fft "$program"
run "$farfault" sim --device 1 one.fft
expect_err "--device 1: the program had 1 GPU, numbered from 0"

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
