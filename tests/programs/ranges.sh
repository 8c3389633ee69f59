#!/usr/bin/env bash
# `farfault ranges`: every access that the bundled workloads make lies in what was proved of its launch, and what is proved
# of well-known kernels is what one would write down by hand.
source "$(dirname "$0")/common.sh"
workloads=$3

while IFS=$'\t' read -r name _ _ small _; do
  [[ $name == name ]] && continue
  read -ra arguments <<<"$small"
  run "$farfault" record -o "$name.fft" -- "$workloads/$name" "${arguments[@]}"
  expect_status 0
  run "$farfault" ranges --check "$name.fft"
  expect_status 0
  expect_no_err
  expect_out ", 0 outside"
  expect grep -Eq ' [1-9][0-9]* accesses to 32 bytes checked' out
done <"$source/workloads/workloads.tsv"

run "$farfault" ranges vectoradd.fft
expect_out "cuMemAlloc #1: reads x * 1024 + [0, 1024) of [0, 40000)"
expect_out "cuMemAlloc #3: writes x * 1024 + [0, 1024) of [0, 40000)"
run "$farfault" ranges matmul.fft # 80 x 80: bands of 16 rows of A and C, 16 columns of B
expect_out "cuMemAlloc #1: reads y * 5120 + [0, 5120) of [0, 25600)"
expect_out "cuMemAlloc #2: reads x * 64 + [0, 25344) of [0, 25600)"
expect_out "cuMemAlloc #3: writes x * 64 + y * 5120 + [0, 4864) of [0, 25600)"
run "$farfault" ranges --kernel fdtd_magnetic fdtd.fft
expect_out "launch 2: fdtd_magnetic"
expect test "$(grep -c '^launch' out)" -eq 1
run "$farfault" ranges --all --kernel fdtd_magnetic fdtd.fft
expect test "$(grep -c '^launch' out)" -eq 3
run "$farfault" ranges bfs.fft
expect_out "its address depends on a value loaded at line"
run "$farfault" ranges no/such
expect_status 2
run "$farfault" ranges
expect_status 64
finish
