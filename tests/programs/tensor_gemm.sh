#!/usr/bin/env bash
# A product of matrices by tcgen05 on b200 is that of the CPU, interpreted and compiled; its time is at least what the tensor cores need. $3: the folder of fixtures.
source "$(dirname "$0")/common.sh"
ln -s "$3/tensor_gemm" tensor_gemm
cp "$2/tests/programs/tensor_gemm.ptx" .

for way in interpret compile; do
  run "$farfault" run --machine b200 --execute $way --memory copy --json $way.json ./tensor_gemm tensor_gemm.ptx 256 128 192
  if [[ $way == compile && $status -ne 0 ]] && grep -q "has no farfault-compile" err; then continue; fi
  expect_status 0
  expect_out "PASSED"
done

# One block of 128 x 64 x 4096 has 256 mma, each of 128 x 64 / 128 units of the tensor core. 49.5 cycles more for each, at 1860 MHz, are 436 us.
run "$farfault" run --machine b200 --memory copy --json long.json ./tensor_gemm tensor_gemm.ptx 128 64 4096
expect_status 0
expect_out "PASSED"
run "$farfault" run --machine b200 --memory copy --set tensor_cycles=50 --json slow.json ./tensor_gemm tensor_gemm.ptx 128 64 4096
expect_status 0
kernel() { sed -n 's/^ *"kernel_ps": \([0-9]*\).*/\1/p' "$1" | head -1; }
difference=$(($(kernel slow.json) - $(kernel long.json)))
expect test "$difference" -gt 432000000 -a "$difference" -lt 440000000

# Tensor memory that is left allocated ends the launch, with the place of its allocation.
run "$farfault" run --machine b200 --memory copy ./tensor_gemm tensor_gemm.ptx 128 64 64 kept
expect test "$status" -ne 0
line=$(grep -n tcgen05.alloc tensor_gemm.ptx | head -1 | cut -d: -f1)
expect_err "the block ends with 64 columns of tensor memory allocated, at 0x0 by tcgen05.alloc at line $line"

# The word that tcgen05.alloc writes, and what copies and products read, are no findings.
for tool in "memcheck --machine b200 --initcheck=all" "racecheck --machine b200"; do
  read -ra words <<<"$tool"
  run "$farfault" "${words[@]}" ./tensor_gemm tensor_gemm.ptx 128 64 64
  expect_status 0
  expect_out "PASSED"
done
finish
