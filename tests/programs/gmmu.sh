#!/usr/bin/env bash
# TLB entries for pages of 2 MiB that are valid in part, against entries for 4 KiB, on scattered accesses, with one TLB for all
# SMs (the experiment of Zhang et al., 2019): fewer misses.
source "$(dirname "$0")/common.sh"
workloads=$3

run "$farfault" run --machine gtx480 --set tlb_entries=0,l2_tlb_entries=64 --memory partial-multi,partial-multi+page=4K,partial-multi+page=64K \
  --csv misses.csv "$workloads/bfs" 32768 4
expect_status 0
column() { awk -F, -v name="$1" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) c = i } NR > 1 { print $c }' misses.csv; }
mapfile -t labels < <(column memory)
mapfile -t misses < <(column tlb_misses)
mapfile -t lookups < <(column tlb_lookups)
mapfile -t hits < <(column tlb_l2_hits)
expect test "${labels[*]}" = "partial-multi partial-multi+page=4K partial-multi+page=64K"
expect test "${misses[0]}" -gt 0
expect test $((misses[0] * 10)) -lt "${misses[1]}"
expect test "${misses[2]}" -le "${misses[1]}"
for i in 0 1 2; do expect test $((misses[i] + hits[i])) -le "${lookups[i]}"; done
finish
