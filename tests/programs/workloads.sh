#!/usr/bin/env bash
# The main job on the bundled programs with small arguments: every manager gives a result, and the results make sense
# next to each other. $3: the folder of the workloads.
source "$(dirname "$0")/common.sh"
workloads=$3

value() { # value FILE MANAGER COUNTER, from the CSV
  awk -F, -v manager="$2" -v name="$3" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) column = i } $1 == manager { print $column }' "$1"
}
# With a per mille of slack: an order of wakes that differs can cost a queue's place.
at_most() { if awk -v a="$2" -v b="$3" 'BEGIN { exit !(a <= b * 1.001) }'; then pass; else wrong "$1: $2 <= $3"; fi; }
while IFS=$'\t' read -r name _ _ arguments _; do
  [[ $name == name ]] && continue
  # shellcheck disable=SC2086 # the arguments are words
  run "$farfault" run --machine gtx480 --csv "$name.csv" "$workloads/$name" $arguments
  expect_status 0
  expect_out "PASSED"
  expect test "$(wc -l <"$name.csv")" -eq 5
  for manager in copy demand replay ideal; do
    at_most "$name, $manager: takes time" 1 "$(value "$name.csv" $manager time_ps)"
    at_most "$name, $manager: runs kernels" 1 "$(value "$name.csv" $manager kernel_ps)"
    expect test "$(value "$name.csv" $manager complete)" -eq 1
    expect test "$(value "$name.csv" $manager warp_instructions)" = "$(value "$name.csv" copy warp_instructions)"
    expect test "$(value "$name.csv" $manager accesses)" = "$(value "$name.csv" copy accesses)"
  done
  for manager in copy ideal; do expect test "$(value "$name.csv" $manager faults)" -eq 0; done
  at_most "$name: demand faults" 1 "$(value "$name.csv" demand faults)"
  at_most "$name: replay is no slower than demand" "$(value "$name.csv" replay time_ps)" "$(value "$name.csv" demand time_ps)"
  at_most "$name: ideal is the fastest" "$(value "$name.csv" ideal time_ps)" "$(value "$name.csv" copy time_ps)"
  at_most "$name: the link carries the input" 1 "$(value "$name.csv" copy h2d_bytes)"
done <"$source/workloads/workloads.tsv"
# Every manager in half the memory that the program allocates, at the highest level of checks; and policies of one's own.
managers=$("$farfault" list managers | awk 'NR > 1 { printf "%s%s", (NR > 2 ? "," : ""), $1 }')
FARFAULT_CHECK=2 run "$farfault" run --machine gtx480 --memory "$managers" --gpu-memory 50% --csv half.csv "$workloads/pathfinder" 30000 6 2
expect_status 0
expect_out "PASSED"
expect test "$(wc -l <half.csv)" -eq $((1 + $(tr ',' '\n' <<<"$managers" | wc -l)))
expect test "$(value half.csv copy complete)" -eq 1
expect_err "copy: could not run it"
for manager in demand replay sl tbn; do
  at_most "$manager evicts" 1 "$(value half.csv $manager evicted_bytes)"
  at_most "$manager: fits" "$(value half.csv $manager resident_peak_bytes)" $((1 << 20))
done
FARFAULT_CHECK=2 run "$farfault" run --machine gtx480 --memory replay --gpu-memory 75% --prefetch density:25 --evict fifo:64K --unit 4K --write-back overlapped \
  "$workloads/pathfinder" 30000 6 2
expect_status 0
expect_err "note: paged managers with --evict fifo:64K"

# nw has two kernels: with 0, the one that compares letters itself.
run "$farfault" run --machine gtx480 --memory copy "$workloads/nw" 128 0
expect_status 0
expect_out "PASSED"

# Far-faults land while an access that wants their pages is held up in the load/store unit: its warp is woken once.
FARFAULT_CHECK=2 run timeout 100 "$farfault" run --machine gtx480 --threads 1 --memory replay --gpu-memory 75% "$workloads/bfs" 65536 4
expect_status 0
expect_out "PASSED"

# A kernel that fails is in the report.
run "$farfault" run --memory copy --max-instructions 1k "$workloads/vectoradd" 100000
expect_err "note: kernel vectoradd failed: the kernel is not done after"
finish
