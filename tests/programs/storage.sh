#!/usr/bin/env bash
# GPUDirect Storage: what a program that is linked with libcufile reads and writes, and what that costs. $3: the folder of fixtures.
source "$(dirname "$0")/common.sh"
program=$3/storage

for memory in copy uvm; do
  run "$farfault" run --machine h100-pcie --memory "$memory" "$program" . all
  expect_status 0
  expect_err "cuFile is farfault's stand-in"
done

# A file that is read costs what copies from pinned memory cost, in pieces of 16 MiB, on a machine that has no drive; it is counted apart.
for how in read copy; do
  run "$farfault" run --machine h100-pcie --memory copy --json $how.json "$program" . $how
  expect_status 0
done
expect python3 - <<'CHECK'
import json
read, copy = (json.load(open(f"{how}.json"))["runs"][0] for how in ("read", "copy"))
for counter in ("copies", "h2d_bytes", "h2d_busy_ps", "transfer_ps"):
    assert read[counter] == copy[counter], (counter, read[counter], copy[counter])
assert read["h2d_bytes"] == 40 << 20, read["h2d_bytes"]
assert read["h2d_busy_ps"] == round((40 << 20) * 1000 / 55), read["h2d_busy_ps"]  # 55 GB/s
assert "tiers" not in copy
[files] = read["tiers"]
assert (files["name"], files["read_bytes"], files["written_bytes"], files["waits"]) == ("files", 40 << 20, 0, 0), files
CHECK

# With a drive each piece takes its latency and its reading, the last unit then goes over the link: 13 GB/s, 80 us, units of 4 KiB.
cp read.json plain.json
run "$farfault" run --machine h100-nvme --memory copy,ideal --json read.json --csv read.csv "$program" . read
expect_status 0
expect python3 - <<'CHECK'
import csv, json
read, plain = (json.load(open(f"{how}.json"))["runs"][0] for how in ("read", "plain"))
link, drive, unit = 1000 / 55, 1000 / 13, 4096
wanted = sum(80_000_000 + piece * drive - (piece - unit) * link for piece in (16 << 20, 16 << 20, 8 << 20))
assert abs(read["time_ps"] - plain["time_ps"] - wanted) < 10, (read["time_ps"], plain["time_ps"], wanted)
assert read["h2d_bytes"] == plain["h2d_bytes"]
[files] = read["tiers"]
assert files["read_bytes"] == 40 << 20 and files["waits"] == 3 and abs(files["wait_ps"] - wanted) < 10, files
row = next(csv.DictReader(open("read.csv")))
assert row["tier0_name"] == "files" and row["tier0_read_bytes"] == str(40 << 20), row
CHECK
run "$farfault" record -o read.fft "$program" . read
run "$farfault" sim --machine h100-nvme --memory copy --json again.json read.fft
expect_status 0
expect_out "files"
expect cmp <(grep -A9 '"tiers"' read.json) <(grep -A9 '"tiers"' again.json)
finish
