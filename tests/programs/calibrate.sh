#!/usr/bin/env bash
# farfault calibrate finds the parameters of the machine file that the virtual GPU runs on, also of one that is like no bundled machine, and
# the file it writes is a machine. A fourth argument: only this machine.
source "$(dirname "$0")/common.sh"
unset FARFAULT_DRIVER
all() { # all figures are found, within 5 %
  expect_status 0
  if grep -qE '^([0-9]+) of \1 figures within 5 %, 0 not found$' err; then pass; else
    grep -E '!|found' err >off
    mv off err
    wrong "$shown"
  fi
}

if [[ $# -ge 4 ]]; then
  base=v100
  [[ $4 != v100 ]] || base=gtx480
  run "$farfault" calibrate --driver virtual --machine "$4" --base "$base" --quick --compare --date 2026-11-21 -o machine.yaml
  all
  finish
fi

run env FARFAULT_PROGRESS_SECONDS=0.1 "$farfault" calibrate --driver virtual --machine gtx480 --base v100 --quick --compare --date 2026-11-21 -o a.yaml --json a.json --csv a.csv
all
expect grep -qE '^farfault: calibrate: measuring .*, [0-9]+ s$' err
expect_no_out
expect grep -q '^title: "GeForce GTX 480 (Zheng 2016), measured 2026-11-21 (15 SMs)"$' a.yaml
expect grep -qE 'l2_latency: \{value: (239|240)(\.[0-9]+)?, source: "measured: .*; median of 1, .* to .*"\}' a.yaml
expect grep -q 'walkers: {value: 64, source: "not measured: as v100"}' a.yaml
expect python3 -c '
import json
figures = json.load(open("a.json"))["figures"]
assert abs(figures["fault_us"]["median"] - 20) < 1 and figures["fault_us"]["unit"] == "us", figures["fault_us"]
assert figures["tlb_entries"]["median"] == 128'
expect grep -qE '^sync_us,5,us,5,5,farfault calibrate$' a.csv

# What it wrote is a machine: a virtual GPU that runs on it is measured as the same again, and the same twice is the same bytes.
run "$farfault" calibrate --driver virtual --machine ./a.yaml --base v100 --quick --compare --date 2026-11-21 -o b.yaml
all
run "$farfault" calibrate --driver virtual --machine ./a.yaml --base v100 --quick --date 2026-11-21
expect_status 0
expect cmp -s out b.yaml
mkdir machines
cp a.yaml machines/mine.yaml
run env FARFAULT_MACHINES="$work/machines" "$farfault" list machines
expect_out "GeForce GTX 480 (Zheng 2016), measured 2026-11-21 (15 SMs)"

# A machine like no other: what is found follows the values, not their usual relations.
odd=clock_mhz=900,issue_interval=3,l1_bytes=24K,l1_latency=61,l2_bytes=2304K,l2_latency=333,tlb_entries=48,page_bytes=64K,tlb_miss_latency=77
odd+=,dram_latency=222,t_rp=31,t_rcd=17,dram_gbs=150,link_h2d_gbs=7,link_d2h_gbs=9,link_latency_us=3.3,link_copy_us=2.2,copy_engines=1
odd+=,launch_us=7.5,launch_latency_us=2.5,api_us=0.7,sync_us=3.1,malloc_us=22,host_gbs=5,fault_us=41,fault_batch_us=17,fault_block_us=9
odd+=,host_fault_us=13,fault_page_bytes=16K,block_launch_cycles=55,l1_mshrs=160
odd+=,reserve_us=3,create_us=40,map_us=2,set_access_us=7,unmap_us=5,release_us=11
run "$farfault" calibrate --driver virtual --machine gtx480 --set "$odd" --base v100 --quick --compare -o odd.yaml
all

# Messages.
run "$farfault" calibrate --driver "$work/no-such-library" --quick
expect_status 1
expect_no_out
expect_err "no-such-library"
run "$farfault" calibrate --machine nonesuch
expect_status 64
expect_err "no machine 'nonesuch'"
run "$farfault" calibrate --driver virtual --set fault_us=x
expect_status 64
expect_err "fault_us"
run "$farfault" calibrate --repeat 0
expect_status 64
expect_err "--repeat: '0' is not a number from 1 to 64"
run "$farfault" calibrate --quick --svg x.svg
expect_status 64
run "$farfault" calibrate extra
expect_status 64
echo "title: broken" >broken.yaml
run "$farfault" calibrate --machine ./broken.yaml
expect_status 2
expect_err "broken.yaml"
finish
