#!/usr/bin/env bash
# Microbenchmarks of `farfault validate`, on small arguments: that they move what they say they measure, by the counters of the simulation. $3: the folder of the
# workloads.
source "$(dirname "$0")/common.sh"
micro=$3/micro
measure() { # measure PROGRAM ARGUMENT...: on v100, of which ./json has the counters
  run "$farfault" run --machine v100 --memory copy --json json "$micro/$1" "${@:2}"
  expect_status 0
}
kernel() { # kernel NAME EXPRESSION: what holds of its counters, as k["..."], and of what was printed
  expect python3 - "$1" "$2" <<'END'
import json, sys
counters = {k["name"]: k for k in json.load(open("json"))["runs"][0]["kernels"]}
k = counters[sys.argv[1]]
printed = {line.split(" = ")[0]: float(line.split(" = ")[1].split()[0]) for line in open("out") if " = " in line}
get = lambda name: k.get(name, 0)
if not eval(sys.argv[2]):
    sys.exit(f"{sys.argv[2]}: {k} {printed}")
END
}

# stream: the kernels that go through the same elements again and again have them out of the L2 but the first time, and write none of it back.
measure stream 256 2 16 1920
for kind in init:1 read:1 scale:2 triad:4; do
  kernel "${kind%:*}_again" "k['launches'] == 3 and 2.5 * $((16 << 20)) / 32 * ${kind#*:} <= k['sectors'] < 2.9 * $((16 << 20)) / 32 * ${kind#*:}"
  kernel "${kind%:*}_again" "get('dram_read_bytes') < 4 * 155617 * 8 and get('dram_write_bytes') == 0 and printed['${kind%:*} again'] > 600"
done

# mix: two launches over all and one over half; each stream once, by whole sectors, and nothing of it out of the L2.
cases=("0 1 8 2" "2 1 8 0")
[[ -n ${FARFAULT_FEWER-} ]] || cases+=("1 0 4 0" "1 3 16 2" "4 4 4 0 16 1")
for case in "${cases[@]}"; do
  read -r reads writes bytes blocks mib place <<<"$case"
  measure mix "$reads" "$writes" "$bytes" "$blocks" "${mib:-16}" "${place:-0}"
  stream=$((${mib:-16} << 20))
  kernel "mix_${reads}_${writes}_$bytes" "k['launches'] == 3 and k['sectors'] == 5 * ($reads + $writes) * $stream // 64"
  kernel "mix_${reads}_${writes}_$bytes" "abs(get('dram_read_bytes') / $stream - 2.5 * $reads) <= 0.01 and 300 < printed['bandwidth'] < 897.1"
  [[ $writes -eq 0 ]] || kernel "mix_${reads}_${writes}_$bytes" "abs(k['dram_write_bytes'] / $stream - 2.5 * $writes) < 0.25 * $writes"
done
measure mix 1 1 8 0 1 0 3 # three differences: seven launches
kernel mix_1_1_8 "k['launches'] == 7"
run "$farfault" run --machine v100 "$micro/mix" 4 1 4 # no kernel of these
expect_status 2
expect_err mix_4_1_4

# lattice: two steps over all cells and one over half of them; what a cell reads and writes goes to DRAM once, and what cells exchange stays in the box.
measure lattice 4 1
cells=$((4 * 256 * 256))
kernel step "k['launches'] == 3 and k['load_accesses'] == 2.5 * $cells / 32 * 20 and k['store_accesses'] == 2.5 * $cells / 32 * 19"
kernel step "k['sectors'] == 2.5 * $cells / 32 * (1 + 2 * (19 * 4 + 5))" # five directions' neighbours lie across the sectors of eight cells
kernel step "all(0.92 * 2.5 * $cells * bytes < k[name] < 2.5 * $cells * bytes for name, bytes in (('dram_read_bytes', 77), ('dram_write_bytes', 76)))" # the L2 keeps little
kernel step "abs(printed['mass'] - 1) < 1e-5 and 4000 < printed['updates'] < 900e3 / 153"
run "$farfault" run "$micro/lattice" 1
expect_status 2
expect_err planes

# sms: launches of one round, of one and of three; a block per SM, and none of its tiles out of the L1.
for number in 0 1 2; do
  kinds=(read write copy) kind=${kinds[number]}
  measure sms "$number" 4 2048 2
  arrays=$(((number == 2) + 1))
  kernel "$kind" "k['launches'] == 3 and k['blocks'] == 12 and k['sectors'] == 5 * $arrays * (2 << 20) // 32 and get('l1_hits') == 0 and 0 < printed['bandwidth'] < 4 * 128 * 1.38"
done
measure sms 0 1 2048 2
one=$(awk '/ = / { print $3 }' out)
measure sms 0 4 2048 2
kernel read "3.5 * $one < printed['bandwidth'] < 4.5 * $one" # alone in the L2

# pages: each load goes to the L2, and beyond what the TLBs hold waits for them.
measure pages 16 2048 512
kernel chase "k['launches'] == 3 and k['load_accesses'] == 1536 and get('l1_hits') == 0 and get('tlb_misses') <= 3 * 16 and k['l2_hits'] >= 1536 - 16"
few=$(awk '/ = / { print $3 }' out)
measure pages 512 2048 512
kernel chase "get('tlb_misses') > 1400 and printed['latency'] > $few + 5"
finish
