#!/usr/bin/env bash
# A temporary folder that fills up while a program is simulated: the simulation goes on in memory, says so, and says the same as
# with room. $3: the folder of the workloads.
source "$(dirname "$0")/common.sh"
workloads=$3
note="the temporary file of the access stream could take no more"

# Five launches of 16,384 blocks are more than is kept in memory for a manager that begins when the program has ended.
run "$farfault" record -o five.fft "$workloads/vectoradd" 4194304 5
expect_status 0
simulate() { run "$@" "$farfault" sim five.fft --machine gtx480 --memory "ideal+page=64K,replay+prefetch=oracle" --csv out.csv; }
simulate env
expect_status 0
expect test "$(grep -c "$note" out)" -eq 0
mv out.csv room.csv

# The process may write no file of more than 8 MiB: that is no signal, but a full disk.
simulate bash -c 'ulimit -f 8192; exec "$@"' limited
expect_status 0
expect_out "$note (File too large; TMPDIR chooses another place)"
expect_out "managers that know the future read the whole program at its end"
expect cmp out.csv room.csv

# A disk without any room: the old recording stays, nothing is left next to it, and that nothing was recorded is said.
if mkdir none && mount -t tmpfs -o size=64k none none 2>/dev/null; then
  touch none/old.fft
  head -c 100000 /dev/zero >none/fill 2>err
  run "$farfault" record -o none/old.fft "$workloads/vectoradd" 1000
  expect_status 1
  expect_err "cannot be written: No space left on device"
  expect_err "none/old.fft: nothing was recorded"
  expect test "$(ls none)" = "fill
old.fft"
  umount none
fi

# A small file system: the stream leaves some of it to the results.
if mkdir small && mount -t tmpfs -o size=24m none small 2>/dev/null; then
  TMPDIR=$work/small simulate env
  umount small
  expect_status 0
  expect_out "$note (No space left on device"
  expect cmp out.csv room.csv
fi
finish
