#!/usr/bin/env bash
# The microbenchmark of single instructions: what it refuses and prints; its intervals are those of NVIDIA's table of throughputs (CUDA C++
# Programming Guide, "Arithmetic Instructions"; from 13.0 on in the best practices guide: results per clock and SM), for a machine of each compute
# capability. Left out: sums, which ptxas shares out between two pipes, and conversions from 8 bits, where the guide's editions differ. Where ours are
# others, a comment says so, and docs/timing-evidence.md.
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
# A machine of each compute capability from 7.0 to 12.0 that has one.
machines=(v100 rtx2080ti a100 rtx3090 rtx4090 h200 b200 rtx5090)
[[ -z ${FARFAULT_FEWER-} ]] || unset 'machines[1]' 'machines[2]' 'machines[4]' 'machines[6]'
for machine in "${machines[@]}"; do
  run "$farfault" run --machine $machine --memory copy -- "$instructions" float+integer+special+convert+warp 64
  expect_status 0
  cp out $machine.txt
done

# row 'RESULTS for each machine' QUANTITY...: of 7.0, 7.5, 8.0, 8.6, 8.9, 9.0, 10.0 and 12.0; -: no such instruction.
row() {
  local results=($1) i
  shift
  for i in "${!machines[@]}"; do [[ ${results[i]} == - ]] || guide "${machines[i]}" "${results[i]}" "$@"; done
}
row "64 64 64 128 128 128 128 128" fma.rn.f32 add.f32 mul.f32
row "64 64 128 64 64 128 128 64" fma.rn.f16x2 add.f16x2 # pairs; of 8.6 and 8.9 by NVIDIA's whitepapers: as many results as of fp32
row "- - - 64 64 128 128 64" fma.rn.bf16x2              # of 8.0 128 here, 64 there
row "32 2 32 2 2 64 64 2" fma.rn.f64 add.f64 mul.f64
row "16 16 16 16 16 16 16 16" ex2.approx.ftz.f32 lg2.approx.ftz.f32 rsqrt.approx.ftz.f32 sin.approx.ftz.f32 popc.b32 clz.b32
row "64 64 64 64 64 64 64 64" mad.lo.u32 mul.hi.u32 dp4a.u32.u32 shf.l.wrap.b32 lop3.b32 prmt.b32 "setp.lt.u32, selp.b32" "setp.lt.f32, selp.f32" "setp.gt.s32, vote.sync.ballot.b32"
row "42.67 64 64 64 64 64 64 -" "min.s32, xor.b32" # of 7.0 three instructions for two results, where the guide has 64; of 12.0 128 there
row "32 32 32 32 32 32 32 32" "brev.b32, xor.b32" # of which brev 16 results
row "32 16 32 16 16 32 32 16" shfl.sync.idx.b32 shfl.sync.bfly.b32 # of 8.6, 8.9 and 12.0 32 there, on a GA102 16
row "- - 16 16 16 16 16 16" redux.sync.add.u32
row "16 2 16 2 2 16 16 2" "f64 to f32 and back" "s32 to f64 and back"
row "16 16 16 16 16 - 16 -" "s32 to f32 and back" # of 9.0 64 there, of 12.0 2 to integers
row "- - 8 8 8 8 8 8" "two f32 to f16x2" "two f32 to bf16x2" # 16 results
# Both halves of the lanes: the products have one, floats both.
row "64 64 64 128 128 128 128 128" "fma.rn.f32, mad.lo.u32"
finish
