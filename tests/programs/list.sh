#!/usr/bin/env bash
# `farfault list`: what there is, for people and as JSON.
source "$(dirname "$0")/common.sh"

run "$farfault" list managers
expect_status 0
for manager in copy demand replay ideal; do expect grep -q "^$manager  *[a-z-]" out; done
expect grep -q '^name  *faults  *prefetch  *evict  *unit  *page  *summary$' out
expect grep -q '^uvm  *batch  *density  *lrm  *4.00 KiB  *auto  *NVIDIA' out
expect grep -q "^demand  *block  *none  *lru  *machine's  *auto  *demand" out
expect grep -q "^copy  *-  *-  *-  *-  *machine's  *copy-then" out
expect grep -q '^partial-multi  *replay  *none  *lru:2M  *1.00 KiB  *2M  *parts' out
run "$farfault" list machines
for machine in a40 b200 dgx-h100 dgx-v100 gh200 gm200 gp100 gtx480 gv100 h100 h100-nvme h100-pcie h200 l40 l40s l40s-4-nvme p100 pcie-8 rtx2080ti rtx3090 rtx4090 rtx5090 v100; do expect grep -q "^$machine  *[A-Z]" out; done
run "$farfault" list counters
expect grep -q '^time_ps  *ps  *simulated time' out
expect test "$(grep -vc '^\(stacks\|tiers\)\.' out)" -eq "$(grep -c '^X(' "$source/src/machine/observe/counters.def")"
expect grep -q '^stacks\.off_chip_bytes  *B  *over all links' out
expect test "$(grep -c '^stacks\.' out)" -gt "$(grep -c '^X(' "$source/src/machine/stacks/stacks.def")"
for kind in managers machines counters; do
  run "$farfault" list --json - $kind
  expect_status 0
  expect test "$(head -1 out)" = "["
  expect test "$(tail -1 out)" = "]"
  expect_out '"name": "'
done
mkdir machines
printf 'title: "half"\n' >machines/half.yaml
FARFAULT_MACHINES=$work/machines run "$farfault" list machines
expect_status 0
expect_out "half.yaml: the value 'name' is missing from group 'device'"
run "$farfault" list machines
"$farfault" list counters 2>err | head -1 >out
status=${PIPESTATUS[0]}
shown="farfault list counters | head -1"
expect_status 0
expect_no_err
finish
