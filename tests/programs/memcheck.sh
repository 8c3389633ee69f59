#!/usr/bin/env bash
# `farfault memcheck`: a fault of each kind with its place, thread, address and allocation; programs without any; leaks, options, JSON.
# $3: the folder of fixtures, $4: the workloads.
source "$(dirname "$0")/common.sh"
program=$3/checked_kernels
workloads=$4

check() { run "$farfault" memcheck --show-backtrace no "$program" "$@"; }
clean() {
  check "$@"
  expect_status 0
  expect_err "========= ERROR SUMMARY: 0 errors"
  expect test "$(grep -c . err)" -le 3
}
for name in good copies copied set managed padding; do clean "$name"; done
clean good 3 33 # threads 0 to 98: the last ones that there are words for

check after 4 32 # words 4 to 131 of 100: threads 96 to 127
expect_status 1
expect_err "========= Invalid __global__ write of size 4 bytes"
expect_err "=========     at after in faults.cu:12"
expect grep -qE '^=========     PTX line [0-9]+: st.global.u32 \[%rd3\+16\], %r1;$' err
expect_err "=========     by thread (0,0,0) in block (3,0,0)"
expect_err "=========     Access at 0x200000005190 is out of bounds"
expect_err "=========     and is 1 byte after the nearest allocation at 0x200000005000 of size 400 bytes (cuMemAlloc #1)"
expect_err "=========     and 31 more of the same at this place"
expect_err "========= ERROR SUMMARY: 1 error"
expect_out "1 2" # nothing was written elsewhere, and the program went on

check before
expect_err "Invalid __global__ read of size 4 bytes"
expect_err "at before in faults.cu:13"
expect_err "and is 8 bytes before the nearest allocation"
check over
expect_err "Invalid __global__ read of size 16 bytes"
expect_err "and is 1 byte after the nearest allocation"
expect test "$(grep -c 'Invalid' err)" -eq 1
check misaligned 1 1
expect_err "Invalid __global__ write of size 4 bytes"
expect_err "is misaligned"
expect_err "and must be a multiple of 4"
expect_err "and is inside the nearest allocation"
check atomic 1 1
expect_err "Invalid __global__ atomic of size 4 bytes"
expect_err "by thread (0,0,0) in block (0,0,0)"
check freed
expect_err "Invalid __global__ read of size 4 bytes"
expect_err "inside an allocation that was freed"
check shared
expect_err "Invalid __shared__ write of size 4 bytes"
expect_err "at shared in faults.cu:18"
expect_err "by thread (1,0,0) in block (0,0,0)"
expect_err "and the block has 512 bytes of shared memory"
expect_err "and 30 more of the same"

check reads
expect_status 1
expect_err "Uninitialized __global__ read of size 4 bytes"
expect_err "at reads in faults.cu:17"
expect_err "(cuMemAlloc #2)"
check half 1 96
expect_err "by thread (50,0,0) in block (0,0,0)"
expect_err "and 45 more of the same"
run "$farfault" memcheck --initcheck none "$program" reads
expect_status 0
clean unwritten
run "$farfault" memcheck --initcheck all "$program" unwritten
expect_status 1
expect_err "Uninitialized __shared__ read of size 4 bytes"
run "$farfault" memcheck --initcheck all "$program" local
expect_status 1
expect_err "========= Uninitialized __local__ read of size 4 bytes"
expect_err "=========     at local in faults.cu:25"
expect grep -qE '^=========     PTX line [0-9]+: ld.local.u32 %r8, \[mine\+16\];$' err
expect_err "=========     Access at 0x10 reads what nothing has written"
expect_err "=========     and local memory has no values when its function begins"
expect_err "and 31 more of the same"
expect_err "========= ERROR SUMMARY: 1 error"
run "$farfault" memcheck --initcheck all --json found.json "$program" pointer 1 1
expect_status 1
expect_err "at pointer in faults.cu:26"
for text in '"kind": "uninitialized-read"' '"space": "local"' '"line": 26' '"address": 4'; do expect grep -qF "$text" found.json; done
for name in good holes padding; do
  run "$farfault" memcheck --initcheck all "$program" $name
  expect_status 0
done
for name in local pointer; do clean $name; done # asked for only with --initcheck all

check heap 1 1
expect_err "and is in the heap of device malloc, but not in a live block of it"
expect_err "at heap in faults.cu:20"
expect_err "Malloc/Free Error encountered: Invalid pointer to free"
expect_err "ERROR SUMMARY: 2 errors"
check traps 1 1
expect_status 5
expect_err "The kernel ended: the kernel executed trap"
check wrong_call
expect_err 'Program hit CUDA_ERROR_INVALID_VALUE (error 1) due to "invalid argument" on CUDA API call to cuMemcpyHtoD.'
run "$farfault" memcheck --report-api-errors no "$program" wrong_call
expect_status 0

LEAK=1 check copies
expect_status 0
expect_err "LEAK SUMMARY: 800 bytes leaked in 2 allocations (--leak-check full"
LEAK=1 run "$farfault" memcheck --leak-check full "$program" copies
expect_status 1
expect_err "========= Leaked 400 bytes at 0x200000005000 (cuMemAlloc #1)"
expect_err "Saved host backtrace up to driver entry point at allocation time"
expect grep -qE 'Host Frame: .* in checked_kernels' err
expect_err "ERROR SUMMARY: 2 errors"

# Options.
run "$farfault" memcheck --kernel-name other "$program" reads
expect_status 0
run "$farfault" memcheck --error-exitcode 7 "$program" after 4 32
expect_status 7
run "$farfault" memcheck --log-file log --json found.json "$program" after 4 32
expect grep -q "Invalid __global__ write" log
expect grep -q "ERROR SUMMARY: 1 error" log
expect test "$(grep -c ========= err)" -eq 0
for text in '"tool": "memcheck"' '"errors": 1' '"kind": "invalid-access"' '"count": 32' '"line": 12' '"address": 35184372109712'; do expect grep -qF "$text" found.json; done
run "$farfault" memcheck --initcheck maybe "$program"
expect_status 64
run "$farfault" memcheck --log-file "$program" "$program"
expect_status 64
run "$farfault" memcheck ./nothing
expect_status 127
FARFAULT_CHECKER=nonsense LD_LIBRARY_PATH=$(dirname "$farfault")/../lib/farfault run "$program" good
expect_err "FARFAULT_CHECKER names no check"

# The same report on every run, and with several threads the same findings.
check half 4 96
cp err first
check half 4 96
expect cmp -s first err
run "$farfault" memcheck --show-backtrace no --threads 2 "$program" half 4 96
expect_err "Uninitialized __global__ read"

# A kernel that never ends: what was found so far is said when the program is stopped. (A loaded machine may not have come to it.)
for seconds in 2 10 30; do
  run timeout --foreground -s INT $seconds "$farfault" memcheck --show-backtrace no "$program" spins 1 1
  grep -q "Invalid" err && break
done
expect_err "========= Invalid __global__ write of size 4 bytes"
expect_err "at spins in faults.cu:23"
expect_err "========= The program was stopped"
expect_err "========= ERROR SUMMARY: 1 error"

# No false alarms.
if [[ -x $workloads/vectoradd ]]; then
  while IFS=$'\t' read -r name _ _ arguments _; do
    [[ $name == name ]] && continue
    # shellcheck disable=SC2086 # the arguments are words
    run "$farfault" memcheck --leak-check full --initcheck all "$workloads/$name" $arguments
    expect_status 0
    expect_out PASSED
    expect_err "ERROR SUMMARY: 0 errors"
  done <"$source/workloads/workloads.tsv"
fi
finish
