#!/usr/bin/env bash
# The microbenchmark of single instructions: what it refuses and prints; its intervals are those of NVIDIA's table of throughputs (CUDA C++
# Programming Guide, "Arithmetic Instructions", results per clock and SM), in every cell of 7.0 that one of its rows measures, and in those of 9.0
# that machines/h200.yaml quotes. Left out: sums, which ptxas shares out between two pipes, and conversions from 8 bits, where the guide's editions differ.
# $3: the folder of the workloads.
source "$(dirname "$0")/common.sh"
instructions=$3/micro/instructions

run "$instructions" nothing 8 1 0 70
expect_status 2
expect_err "no group and no instruction 'nothing' for compute capability 7.0"
run "$instructions" wgmma 8 1 0 100 # of 9.0 alone
expect_status 2
run "$instructions" wgmma 8 1 0 90
expect_status 0
expect_out ".target sm_90a"
run "$instructions" popc.b32 8 1 0 75
expect_status 0
expect_out ".target sm_75"
expect_out "popc.b32 %x0,%x0;"
run "$farfault" run --machine v100 --memory copy -- "$instructions" "fma.rn.f32" 64
expect_status 0
expect grep -qE '^fma.rn.f32: latency = (3.99|4.00|4 )' out
run "$farfault" run --machine v100 --memory copy -- "$instructions" launch 1
expect_status 0
expect_out "block of 1024 threads = "

# guide MACHINE RESULTS QUANTITY...: within 1.5 % of 32 lanes over so many results.
guide() {
  local machine=$1 results=$2 quantity
  shift 2
  for quantity in "$@"; do
    expect awk -F' = ' -v quantity="$quantity: interval" -v want="$results" '
      $1 == quantity { found = 1; split($2, words, " "); got = 32 / words[1] }
      END { if (!found || got > 1.015 * want || got < 0.985 * want) { print quantity ": " got " results, the guide has " want; exit 1 } }' "$machine.txt"
  done
}
for machine in v100 h200; do
  for group in float integer special convert warp; do
    run "$farfault" run --machine $machine --memory copy -- "$instructions" $group 64
    expect_status 0
    cat out >>$machine.txt
  done
done
guide v100 64 fma.rn.f32 add.f32 mul.f32 fma.rn.f16x2 add.f16x2 mad.lo.u32 mul.hi.u32 shf.l.wrap.b32 "setp.lt.u32, selp.b32" "setp.lt.f32, selp.f32" "min.s32, xor.b32" lop3.b32 prmt.b32
guide v100 32 fma.rn.f64 add.f64 mul.f64 shfl.sync.idx.b32 shfl.sync.bfly.b32
guide v100 16 ex2.approx.ftz.f32 lg2.approx.ftz.f32 rsqrt.approx.ftz.f32 sin.approx.ftz.f32 popc.b32 clz.b32 "f64 to f32 and back" "s32 to f64 and back" "s64 to f32 and back" "s32 to f32 and back"
guide h200 128 fma.rn.f32 add.f32 mul.f32
guide h200 64 fma.rn.f64 add.f64 mul.f64
guide h200 16 ex2.approx.ftz.f32 lg2.approx.ftz.f32 rsqrt.approx.ftz.f32 sin.approx.ftz.f32
finish
