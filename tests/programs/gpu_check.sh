#!/usr/bin/env bash
# scripts/gpu-check.sh: without a GPU it says so; on the virtual GPU all of it runs and every figure is a row. $3: the build folder.
source "$(dirname "$0")/common.sh"
unset FARFAULT_DRIVER
check=$source/scripts/gpu-check.sh

run "$check" -d "$work/nowhere/libcuda.so.1" -o results "$3"
expect_status 77
expect_out "there is no GPU"
expect test ! -e results

run "$check" -d virtual -q -D 2026-11-21 -o results "$3"
expect_status 0
csv=results/gpu-2026-11-21-Tesla-V100-SXM2-16GB.csv
expect grep -qx 'name,value,unit,min,max,command' "$csv"
expect grep -q '^gpu,"Tesla V100-SXM2-16GB",' "$csv"
expect grep -q '^launch_us,3.25,us,3.25,3.25,farfault calibrate' "$csv"
expect grep -q '^"check: example saxpy",0,' "$csv"
expect grep -q '^"managed: segments, 4096 pages touched",[0-9.]*,us,' "$csv"
expect grep -q '^"host: ff_launch with 8 uses",[0-9.]*,us,' "$csv"
expect grep -q '^"check: conformance cases",0,' "$csv"
expect grep -q '^"check: forms, functions and sums",0,' "$csv"
expect grep -q '^"silicon: forms: differ",0,' "${csv%.csv}-silicon.csv"
expect test ! -e "${csv%.csv}-differences.txt"
expect grep -q '^"pipeline: chain, segments",[0-9.]*,s,' "$csv"
expect grep -q '^"micro: mix 1 1 8 0 8: bandwidth",[0-9.]*,GB/s,' "$csv"
expect grep -q '^"micro: pages 64 2048 1024: latency",[0-9.]*,cycles,' "$csv"
expect grep -q '^"check: kernels",0,' "$csv"
expect grep -q '^vectoradd,10000 2,vectoradd,2,' "${csv%.csv}-kernels.csv"
expect grep -qE '^"driver: answers",[1-9][0-9]{3},' "$csv"
expect grep -q '^"driver: answers that differ from the virtual GPU.s",0,' "$csv"
expect grep -q '^memory.cuMemAlloc_v2 0 bytes = CUDA_ERROR_INVALID_VALUE$' "${csv%.csv}-answers.txt"
expect test ! -s "${csv%.csv}-differ.txt" -a -e "${csv%.csv}-differ.txt"
if grep -qF 'gpu-check: torch is left out: ' out; then expect test ! -e "${csv%.csv}-torch.csv"
else expect grep -q '^triton,softmax 4096x1024,[0-9.]*,[0-9.]*,' "${csv%.csv}-torch.csv"; fi
expect grep -q '^"instructions: fma.rn.f32: latency",[0-9.]*,cycles,' "$csv"
expect grep -q '^"instructions: block of 1024 threads",[0-9.]*,cycles,' "$csv"
expect grep -q '^"probe: SM 123, a line of the L2",[0-9.]*,cycles,' "$csv"
expect python3 -c 'import json, sys; json.load(open(sys.argv[1]))["banks"]' "${csv%.csv}-probe.json"
expect awk -F, 'END { exit NR != 1 + 16 * 128 }' "${csv%.csv}-lines.csv"
expect grep -q '^"share: rewrite, compute next to stream, over alone",1.0[0-9]*,' "$csv"
expect_no() { if grep -qE "$1" "$csv"; then wrong "'$1' is in $csv"; else pass; fi; }
expect_no '^"check: [^"]*",[1-9]'
expect_no "$source|$work|$3"
expect awk -F, 'NF < 6 { exit 1 }' "$csv"
run "$farfault" run --machine "./${csv%.csv}.yaml" --memory none true
expect_status 0


# The microbenchmarks alone: a row per quantity; a program that fails is said and leaves no row; no command begins when the time is over.
micro=$source/scripts/gpu-micro.sh
run "$micro" -q -d virtual "$3" micro.csv
expect_status 0
expect test "$(cut -d, -f3 micro.csv | sort | uniq -c | tr -s ' \n' ' ')" = " 2 GB/s 2 cycles "
expect awk -F, 'NF != 6 || $2 <= 0 || $4 != $2 || $5 != $2 { exit 1 }' micro.csv
run "$micro" -q -t 0 -d virtual "$3" micro.csv
expect_status 1
expect_out "no time was left for 4 of 4 commands"
mkdir -p broken/workloads/micro broken/bin && cp -r "$3"/workloads/micro/{mix,sms,pages} broken/workloads/micro && ln -s "$farfault" broken/bin/farfault
run "$micro" -q -d virtual broken micro.csv
expect_status 1
expect_err "chase 16 1000: failed"
expect test "$(wc -l <micro.csv)" -eq 3
run "$micro" -q "$3"
expect_status 64

# Some parts, in an order of one's own; none begins when the time is over, and what there is, is kept.
run "$check" -d virtual -q -D 2026-11-22 -o results -s instructions,micro "$3"
expect_status 0
csv=results/gpu-2026-11-22-Tesla-V100-SXM2-16GB.csv
expect test "$(sed -n 's/^"check: \([a-z]*\).*/\1/p' "$csv" | uniq | tr '\n' ' ')" = "instructions microbenchmarks "
expect test ! -e "${csv%.csv}.yaml"
run "$check" -d virtual -q -D 2026-11-23 -o results -t 0 -s micro,probe "$3"
expect_status 0
expect_out "no time was left for micro probe"
expect grep -q '^gpu,"Tesla V100-SXM2-16GB",' results/gpu-2026-11-23-Tesla-V100-SXM2-16GB.csv
run "$check" -d virtual -s micro,nothing "$3"
expect_status 64
expect_err "there is no part 'nothing'"
run "$check" -d virtual -t soon "$3"
expect_status 64

# One that is stopped ends with what it is at, and keeps what there is.
"$check" -d virtual -D 2026-11-25 -o results -s benches "$3" >out 2>err &
pid=$!
until grep -q 'bench managed' out; do sleep 0.1; done
kill -TERM $pid
begin=$SECONDS
wait $pid
status=$?
expect_status 143
expect test $((SECONDS - begin)) -lt 5
expect test -s results/gpu-2026-11-25-Tesla-V100-SXM2-16GB.csv

# What is packed runs without the build and its packages' libraries.
export XZ_OPT=-0
run "$source/scripts/gpu-pack.sh" "$3" packed.tar.xz
expect_status 0
expect mkdir packed
expect tar xJf packed.tar.xz -C packed
expect test -e packed/needed/libfyaml.so.0
run "$check" -d virtual -q -D 2026-11-24 -o results -s instructions,forms,library packed
expect_status 0
csv=results/gpu-2026-11-24-Tesla-V100-SXM2-16GB.csv
expect grep -q '^"instructions: fma.rn.f32: latency",[0-9.]*,cycles,' "$csv"
expect grep -q "^\"check: library's tests\",0," "$csv"
expect_no '^"check: [^"]*",[1-9]'
run "$source/scripts/gpu-pack.sh" nothing packed.tar.xz
expect_status 1
expect_err "nothing/bin/farfault is not there"
run "$source/scripts/gpu-pack.sh"
expect_status 64

run "$check" -x
expect_status 64
run "$check" -d virtual no-such-build
expect_status 1
finish
