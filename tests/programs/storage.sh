#!/usr/bin/env bash
# GPUDirect Storage: what a program that is linked with libcufile reads and writes, and what that costs. $3: the folder of fixtures.
source "$(dirname "$0")/common.sh"
program=$3/storage

for memory in copy uvm; do
  run "$farfault" run --machine h100-pcie --memory "$memory" "$program" . all
  expect_status 0
  expect_err "cuFile is farfault's stand-in"
done

# A file that is read costs what copies from pinned memory cost, in pieces of 16 MiB.
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
CHECK
finish
