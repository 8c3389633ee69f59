#!/usr/bin/env bash
# Kernels that differ only in how they bring rows into shared memory take about the same time on h200, and bring the same: by loads, cp.async with groups and with mbarriers,
# and cp.async.bulk. $3: the folder of fixtures.
source "$(dirname "$0")/common.sh"
ln -s "$3/async_copies" async_copies
cp "$2/tests/programs/async_copies.ptx" .
rounds=64

# Compiled and interpreted write the same recording.
ways=(interpret)
run "$farfault" record --execute interpret -o interpret.fft --machine h200 ./async_copies async_copies.ptx 3 4
expect_status 0
expect_out "PASSED"
run "$farfault" record --execute compile -o compile.fft --machine h200 ./async_copies async_copies.ptx 3 4
if [[ $status -eq 0 ]] || ! grep -q "has no farfault-compile" err; then
  expect_status 0
  expect_out "PASSED"
  expect cmp interpret.fft compile.fft
  ways+=(compile)
fi

# What the recording says of one block's first row: launches 0 to 4 are loads, groups, ahead, arrivals, bulk.
records() { # LAUNCH WARP PATTERN: how many records of this warp of block 2 are like that
  "$farfault" trace dump --records --launch "$1" --block 2 interpret.fft | grep -c $'^\t'"2\.$2"$'\t'"$3"
}
is() { if [[ $("${@:2}") -eq $1 ]]; then pass; else wrong "${*:2}: $("${@:2}"), expected $1"; fi; }
is 4 records 0 1 "load pc .* 16 bytes"
is 0 records 0 1 ".*\(cop\|mbarrier\)"
is 4 records 1 1 "copy pc .* 16 bytes"
is 4 records 1 1 "copies end a group"
is 4 records 1 1 "wait for all groups of copies but 0"
is 4 records 2 1 "copy pc .* 16 bytes"
is 6 records 2 1 "copies end a group"
is 4 records 2 1 "wait for all groups of copies but 1"
is 4 records 3 1 "copy pc .* 16 bytes"
is 4 records 3 1 "arrive at mbarrier 0 with the copies"
is 4 records 3 1 "await 4 arrivals at mbarrier 0" # of four warps
is 16 records 4 0 "bulk copy pc .* 16 bytes" # four accesses of 512 bytes a row
is 4 records 4 0 "arrive at mbarrier 0 with the copies"
is 4 records 4 0 "arrive at mbarrier 0$"
is 0 records 4 1 ".*\(copy\|arrive\)"
is 4 records 4 1 "await 2 arrivals at mbarrier 0"

# A round is at least a load from the L2's near half that finds its row of DRAM closed, and at most one from the far half behind another row, and what the SM does for it. In cycles of
# 1980 MHz, by machines/h200.yaml: 681 is what that load takes on average over both halves, which are 196 apart.
#   near  681 - 196 / 2                                           = 583
#   far   681 + 196 / 2 + t_rp (38 of 3125 MHz)                   = 803
#   SM    two barriers of four warps, 1 + 2 * 4 + 20 each; 29 of the load from shared memory; 15 more lines of the row;
#         27 instructions of a warp, 4 cycles each                = 210
# With two blocks on each SM a round's last line may also wait for all others' rows: 264 * 2048 bytes at 0.81 * 4800 GB/s are 276 cycles. A kernel begins within 1000 cycles.
near=583 most=1013 queue=276 begin=1000
time_of() { # FILE KERNEL: its time in cycles
  awk -v kernel="\"$2\"," '$1 == "\"name\":" { at = $2 == kernel } at && $1 == "\"kernel_ps\":" { printf "%d\n", $2 * 1980 / 1e6; exit }' "$1"
}
between() { # NAME LOW VALUE HIGH
  if [[ $3 -ge $2 && $3 -le $4 ]]; then pass; else wrong "$1: $3 cycles, expected $2 to $4"; fi
}
for blocks in 1 264; do
  for way in "${ways[@]}"; do
    run "$farfault" run --machine h200 --l2 flush --memory copy --execute "$way" --json "$way$blocks.json" ./async_copies async_copies.ptx $blocks $rounds
    expect_status 0
    expect_out "PASSED"
  done
  json=interpret$blocks.json
  [[ $blocks -eq 264 ]] && most=$((most + queue))
  loads=$(time_of $json loads)
  for kernel in loads groups arrivals bulk; do
    cycles=$(time_of $json $kernel)
    between "$kernel of $blocks" $((rounds * near)) "$cycles" $((rounds * most + begin))
    # They differ by some of what the SM does, at most 210 of 583 cycles and more, and `loads` has most of that.
    between "$kernel of $blocks, next to loads" $((loads * 6 / 10)) "$cycles" $((loads * 12 / 10))
  done
  # Two rows are under way: half as long, and one row more.
  between "ahead of $blocks" $((rounds * near / 2)) "$(time_of $json ahead)" $(((rounds + 1) * most / 2 + begin))
done

# A simulation of a recording has the same times.
run "$farfault" record -o app.fft --machine h200 ./async_copies async_copies.ptx 1 $rounds
expect_status 0
run "$farfault" sim --machine h200 --l2 flush --memory copy --json sim.json app.fft
expect_status 0
for kernel in loads groups ahead arrivals bulk; do
  expect test "$(time_of sim.json $kernel)" -eq "$(time_of interpret1.json $kernel)"
  for way in "${ways[@]}"; do expect test "$(time_of "${way}1.json" $kernel)" -eq "$(time_of interpret1.json $kernel)"; done
done
finish
