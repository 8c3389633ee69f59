#!/usr/bin/env bash
# Data that persists in the L2: an access policy window makes a kernel faster that goes through an array again and again beside a stream; a reset ends that; a
# recording has it, too. $3: the folder of the workloads.
source "$(dirname "$0")/common.sh"
window=$3/micro/window
printed() { awk -v name="$1" '$1 == name && $2 == "=" { print $3 }' "${2:-out}"; }
holds() { expect awk "BEGIN { exit !($1) }"; }

# 1 MiB beside 6, of an L2 of 2 MiB, of which 1 is set aside
small=(--machine a100 --set l2_bytes=2M)
run "$farfault" run "${small[@]}" --memory copy --json run.json "$window" 1 6 1
expect_status 0
holds "$(printed plain) > 1.15 * $(printed window) && $(printed reset) > 0.98 * $(printed plain) && $(printed reset) < 1.02 * $(printed plain)"
# without an L2 that can: nearly the same time three times
run "$farfault" run --machine v100 --memory copy "$window" 1 6 1
expect_status 0
holds "$(printed plain) < 1.1 * $(printed window) && $(printed window) < 1.1 * $(printed plain)"
# nothing is set aside
run "$farfault" run "${small[@]}" --memory copy "$window" 1 6 0
expect_status 0
holds "$(printed plain) < 1.1 * $(printed window) && $(printed window) < 1.1 * $(printed plain)"

# recorded and simulated
run "$farfault" record --machine a100 -o window.fft "$window" 1 6 1
expect_status 0
run "$farfault" trace dump window.fft
expect_status 0
expect test "$(grep -c 'with 1048576 bytes of the L2 set aside and a window of 1048576 bytes at 0x[0-9a-f]*: 100 % evict last, others evict first' out)" -eq 2
expect test "$(grep -c 'after resets: 1' out)" -eq 2
run "$farfault" sim "${small[@]}" --memory copy --json sim.json window.fft
expect_status 0
expect python3 - <<'END'
import json
run, sim = (json.load(open(name))["runs"][0] for name in ("run.json", "sim.json"))
for key in ("time_ps", "kernel_ps", "l2_hits", "dram_read_bytes", "dram_write_bytes"):
    assert run[key] == sim[key], (key, run[key], sim[key])
END
finish
