#!/usr/bin/env bash
# `farfault racecheck`: hazards of each kind with their places; programs that are ordered; barriers that not all reach.
# $3: the folder of fixtures, $4: the workloads.
source "$(dirname "$0")/common.sh"
program=$3/checked_kernels
workloads=$4

check() { run "$farfault" racecheck --show-backtrace no "$program" "$@"; }
clean() {
  check "$@"
  expect_status 0
  expect_err "========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)"
  expect test "$(grep -c . err)" -le 2
}
clean good 3 33
clean ordered 1 64
clean synced
clean counts 3 64
clean flags 3 32
clean named 1 64
clean agrees 4 32

check unordered 1 64
expect_status 1
expect_err "========= Error: Race reported between Write access at unordered in faults.cu:30"
expect_err "=========     and Read access at unordered in faults.cu:31 ["
expect grep -qE '^=========     PTX line [0-9]+: st.shared.u32 \[%r5\], %r1;$' err
expect_err "Hazard: read after write (RAW) of __shared__ memory at 0x"
expect_err "of words"
expect_err "in block (0,0,0)"
check instep
expect_status 0
expect_err "========= Warning: Race reported between Write access at instep in faults.cu:32"
expect_err "and Read access at instep in faults.cu:33 ["
expect_err "in order only if it runs in step"
expect_err "(0 errors, 1 warning)"
check overwrites 2 1
expect_status 1
expect_err "========= Error: Race reported between Write access at overwrites in faults.cu:34"
expect_err "=========     by thread (0,0,0) in block (0,0,0)"
expect_err "=========     and Write access at overwrites in faults.cu:34 [1 hazard]"
expect_err "=========     by thread (0,0,0) in block (1,0,0)"
expect_err "Hazard: write after write (WAW) of __global__ memory at 0x200000002000"
expect_err "and is inside the nearest allocation at 0x200000002000 of size 400 bytes (cuMemAlloc #1)"
run "$farfault" racecheck --print-level info "$program" agrees 4 32
expect_status 0
expect_err "========= Info: Race reported between Write access"
expect_err "The value stays the same"
check flags_without_fence 2 32
expect_status 1
expect_err "Race reported between Write access at flags_without_fence in faults.cu:35"
expect_err "and Read access at flags_without_fence in faults.cu:36"

check parts
expect_status 1
expect_err "Barrier error detected. Divergent thread(s) in warp."
expect_err "at parts in faults.cu:"
expect_err "at another barrier instruction"
check leaves
expect_status 0
expect_err "========= Warning: Barrier error detected. Divergent thread(s) in warp: some have ended."
expect_err "Threads 0x0000ffff of the warp are here, 0xffff0000 have ended"
check wrong_mask
expect_status 1
expect_err "Barrier error detected. Invalid arguments."
expect_err "The mask 0x00000002 lacks the calling thread, lane 0 of its warp"

run "$farfault" racecheck --json found.json "$program" unordered 1 64
for text in '"tool": "racecheck"' '"kind": "race"' '"access": "Write"' '"line": 31' '"space": "shared"'; do expect grep -qF "$text" found.json; done
run "$farfault" racecheck --kernel-name other "$program" unordered 1 64
expect_status 0
run "$farfault" racecheck --print-level error "$program" instep
expect test "$(grep -c 'Race reported' err)" -eq 0

# No false alarms; docs/checkers.md says what is by design.
if [[ -x $workloads/vectoradd ]]; then
  while IFS=$'\t' read -r name _ _ arguments _; do
    [[ $name == name ]] && continue
    # shellcheck disable=SC2086 # the arguments are words
    run "$farfault" racecheck --show-backtrace no "$workloads/$name" $arguments
    expect_out PASSED
    case " bfs " in
    *" $name "*) expect_err "Race reported" ;;
    *) expect_err "(0 errors," ;;
    esac
  done <"$source/workloads/workloads.tsv"
fi
finish
