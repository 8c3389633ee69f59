#!/usr/bin/env bash
# Wherever an allocation fails in `farfault sim`: a message and a status that is not 0, the old report as it was or a whole new one, and nothing left.
# $3: the folder of torture_program. Two random programs are right, run and simulated.
source "$(dirname "$0")/../programs/common.sh"
torture=$3

for seed in 3 5; do
  run "$farfault" run --devices 2 --machine v100 --memory copy,uvm,auto --json run.json --record app.fft "$torture/torture_program" $seed 30
  expect_status 0
  expect_out checksum
  run "$farfault" sim --machine v100 --memory copy,uvm,auto --json sim.json app.fft
  expect_status 0
  expect diff <(sed '/^ "host": {/,$d' run.json) <(sed '/^ "host": {/,$d' sim.json)
done
if [[ ! -e $torture/torture_fail.so ]]; then finish; fi # a build with a sanitizer

echo old >old
for ((n = 100; n < 12000; n += n / 8)); do
  one_in 2 || continue
  cp old report.ffr
  run env LD_PRELOAD="$torture/torture_fail.so" TORTURE_FAIL=alloc:$n TORTURE_FAIL_IN=farfault TORTURE_FAIL_LOG="$work/log" timeout 60 "$farfault" sim --machine v100 --memory copy -o report.ffr app.fft
  shown="sim without memory for allocation $n"
  [[ $status -ge 0 && $status -lt 124 ]] || wrong "$shown: status $status"
  [[ $status -eq 0 || -s err ]] || wrong "$shown: no message"
  cmp -s old report.ffr || expect python3 -c 'import json; json.load(open("report.ffr"))'
  expect test -z "$(ls -A "$TMPDIR")"
done
expect test "$(wc -l <log)" -gt 10 # they did fail

# Memory runs out in a thread while another one executes blocks: the program ends with a message, and does not crash. That is a race.
rounds=20
[[ -z ${FARFAULT_FEWER-} ]] || rounds=8
for ((n = 0; n < rounds; n++)); do
  run env LD_PRELOAD="$torture/torture_fail.so" TORTURE_FAIL=mmap:$((5 + n % 4)) TORTURE_FAIL_IN=torture_program timeout 60 "$farfault" record --threads 2 -o threads.fft "$torture/torture_program" 980716559904 60
  shown="record with two threads without memory for mapping $((5 + n % 4))"
  if grep -q 'ended by signal' err; then wrong "$shown"; else pass; fi
done

# JSON is whole or is not there.
"$farfault" list counters --json >whole.json
asked=0
for ((n = 2; n < 1500; n += 31)); do
  one_in 3 || continue
  run env LD_PRELOAD="$torture/torture_fail.so" TORTURE_FAIL=alloc:$n "$farfault" list counters --json
  if [[ $status -eq 0 ]]; then expect cmp -s out whole.json; else expect_status 70; fi
done
finish
