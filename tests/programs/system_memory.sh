#!/usr/bin/env bash
# Kernels on memory of malloc's, of the stack and of variables: refused where the machine has no such thing, else computed, the same in each
# run, simulated under every manager, recorded. $3: the folder of fixtures.
source "$(dirname "$0")/common.sh"
program=$3/system_memory

run "$farfault" run --machine h200 --memory copy "$program"
expect_status 0
expect_out "0 1 0 0"
expect_out illegal
expect_err "illegal global read of 4 bytes"
expect_err "it is in the host's own memory (mapped, as by malloc), which kernels of this machine cannot access; what cudaMalloc,"
expect test "$(grep -c 'nearest allocation' err)" -eq 0
run "$farfault" memcheck --machine h200 "$program"
expect_status 1
expect_err "=========     and is in the host's own memory (mapped, as by malloc), which kernels of this machine cannot access"

managers=$("$farfault" list managers --json - | sed -n 's/.*"name": "\([^"]*\)".*/\1/p' | paste -sd,)
run "$farfault" run --machine h200 --set system_memory=1 --memory "$managers" --json one.json "$program" array
expect_status 0
expect_out "1 1 0 0"
expect_out "computed: 0"
expect_out "again: 0"
expect test "$(grep -c 'could not run' err)" -eq 0
expect grep -q '"name": "system memory #1"' one.json
run "$farfault" run --machine h200 --set system_memory=1 --memory "$managers" --json two.json "$program" array
without_host() { sed '/^ "host": {/,$d' "$1"; }
expect cmp <(without_host one.json) <(without_host two.json)

# The array is 256 KiB and the page in front of it, in which malloc keeps the size: whole as managed memory, once for each time that it is known.
run "$farfault" run --machine h200 --set system_memory=1 --memory copy --json copy.json "$program" array
expect test "$(python3 -c '
import json
arrays = [a for a in json.load(open("copy.json"))["runs"][0]["allocations"] if a["bytes"] == 266240]
print(len(arrays), all(a["managed"] and a["h2d_bytes"] == a["d2h_bytes"] == 266240 for a in arrays))')" = "2 True"

run "$farfault" run --machine h200 --set system_memory=1 --memory "$managers" "$program"
expect_status 0
expect_out "computed: 0"
expect_err "kernels came upon memory of the program's own to which no parameter points"
expect test "$(grep -c 'could not run' err)" -eq 0

# Prefetched it faults no more, under the driver's manager; without that each page does. On a machine without it hints are refused.
run "$farfault" run --machine h200 --set system_memory=1 --memory uvm --prefetch none --json hints.json "$program" hints
expect_out "hints: 0"
expect_out "computed: 0"
run "$farfault" run --machine h200 --set system_memory=1 --memory uvm --prefetch none --json plain.json "$program" array
faults() { python3 -c 'import json, sys; 
a = [a for a in json.load(open(sys.argv[1]))["runs"][0]["allocations"] if a["name"] == "system memory #1"]
print(a[0].get("faults", 0), a[0]["h2d_bytes"])' "$1"; }
expect test "$(faults hints.json)" = "0 266240"
expect test "$(faults plain.json)" = "65 266240"
run "$farfault" run --machine h200 --memory copy "$program" hints
expect_out "hints: 1"

# What is discarded must be managed memory, whole.
run "$farfault" run --machine h200 --memory uvm "$program" discard
expect_status 0
expect_out "discard: 1 1"

run "$farfault" record --machine gh200 -o program.fft "$program" array
expect_out "computed: 0"
run "$farfault" run --machine gh200 --memory "$managers" --json run.json "$program" array
run "$farfault" sim --machine gh200 --memory "$managers" --json sim.json program.fft
expect_status 0
expect cmp <(without_host run.json) <(without_host sim.json)

run "$farfault" run --machine gh200 --memory copy "$program" freed
expect_out "1 1 1 1"
expect_out "computed: 0"
expect_out "freed: 700"
expect_err "illegal global read of 4 bytes"

run "$farfault" memcheck --machine gh200 "$program"
expect_status 0
expect_out "again: 0"
finish
