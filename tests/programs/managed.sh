#!/usr/bin/env bash
# What a whole program does with managed memory between its kernels reaches the simulations: exactly, the same every time, and
# without any change for the program. $3: the folder of the workloads.
source "$(dirname "$0")/common.sh"
hosttouch=$3/hosttouch

# counter FILE MANAGER NAME: of the run; what is not there is 0
counter() {
  awk -v manager="\"$2\"," -v name="\"$3\":" '$1 == "\"memory\":" { here = $2 == manager } here && !found && $1 == name { print $2 + 0; found = 1 }
    END { if (!found) print 0 }' "$1"
}
# Ten rounds over eight pages: a kernel that does nothing, then the host reads and writes each page; at last a kernel writes
# them, and the host reads.
for recorded in on off; do
  FARFAULT_HOST_TOUCHES=$recorded run "$farfault" run --machine gtx480 --memory copy,replay,uvm,ideal --json "$recorded.json" "$hosttouch" 10 8 8
  expect_status 0
  expect_out "PASSED"
  cp out "$recorded.out"
done
expect cmp on.out off.out
if grep -qF "not recorded: this system" err; then # nothing to see here
  finish
fi
expect test "$(counter on.json replay faults)" -eq 8
expect test "$(counter on.json replay host_faults)" -eq 8
expect test "$(counter on.json uvm host_faults)" -eq 1 # which brings the other seven along
expect test "$(counter on.json ideal host_faults)" -eq 0
expect test "$(counter off.json replay host_faults)" -eq 0
expect grep -qF "is not recorded, as was asked for" err
run "$farfault" run --machine gtx480 --memory copy,replay,uvm,ideal --json again.json "$hosttouch" 10 8 8
simulated() { sed '/^ "host": {/,$d' "$1"; }
expect cmp <(simulated on.json) <(simulated again.json)
FARFAULT_HOST_TOUCHES=perhaps run "$farfault" run --memory replay "$hosttouch" 1 1 1
expect_err "FARFAULT_HOST_TOUCHES is not 'on', 'off', 'pages' or 'groups': 'perhaps'"
finish
