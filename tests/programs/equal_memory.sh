#!/usr/bin/env bash
# Managers that are compared have the same GPU memory: one that needs more is left out and says so, in every output. $4: the folder of workloads.
source "$(dirname "$0")/common.sh"
left_out="needs at least 4.00 MiB of GPU memory (4194304 bytes) and was given"

# 2.3 MiB in three allocations, of which 50 % are less than two blocks.
run "$farfault" run --machine gtx480 --memory ideal,uvm,demand,auto --gpu-memory 50% -o few.ffr --json few.json --csv few.csv --record few.fft "$4/vectoradd" 200000
expect_status 0
expect_err "uvm: could not run it: $left_out 1.15 MiB (1204224): it is left out"
expect test "$(grep -cE '^(ideal|demand|auto) ' err)" -eq 3
expect test "$(grep -c '^uvm ' err)" -eq 0
expect grep -qF "\"error\": \"uvm: $left_out" few.json
expect python3 - <<'END'
import csv, json, sys
runs = {run['memory']: run for run in json.load(open('few.json'))['runs']}
rows = {row['memory']: row for row in csv.DictReader(open('few.csv'))}
good = runs['uvm']['ratio'] == runs['uvm']['time_us'] == 0 and runs['uvm']['complete'] and runs['auto']['time_us'] > 0 and 'error' not in runs['auto']
good = good and rows['uvm']['error'] == runs['uvm']['error'] and float(rows['uvm']['time_us']) == 0 and rows['demand']['error'] == ''
good = good and runs['demand']['resident_peak_bytes'] <= 1204224 and runs['auto']['resident_peak_bytes'] <= 1204224
sys.exit(not good)
END
run "$farfault" report --html few.html few.ffr
expect_status 0
expect grep -qF "$left_out" few.html

# A recorded program says the same; so do bytes that are too few, for one manager or for all.
run "$farfault" sim --machine gtx480 --memory uvm,auto --gpu-memory 50% few.fft
expect_status 0
expect_out "uvm: could not run it: $left_out 1.15 MiB"
run "$farfault" sim --machine gtx480 --memory uvm+gpu-memory=1M,auto+gpu-memory=1M few.fft
expect_out "uvm+gpu-memory=1M: could not run it: $left_out 1.00 MiB (1048576): it is left out"
expect test "$(grep -c '^auto+gpu-memory=1M ' out)" -eq 1

# Where none of the managers could, the exit status says so; and each result is there.
run "$farfault" sim --machine gtx480 --memory uvm --gpu-memory 50% --json none.json few.fft
expect_status 4
expect_out "uvm: could not run it: $left_out 1.15 MiB"
expect grep -qF "\"error\": \"uvm: $left_out" none.json
run "$farfault" sim --machine gtx480 --memory uvm,uvm+evict=lru --gpu-memory 50% few.fft
expect_status 4
run "$farfault" sim --machine gtx480 --memory none few.fft
expect_status 0
run "$farfault" compare --machine gtx480 --memory uvm+gpu-memory=1M few.fft few.fft
expect_status 0

# From 100 % on there is room for all, in blocks, too.
run "$farfault" sim --machine gtx480 --memory copy,uvm,demand --gpu-memory 100% --json all.json few.fft
expect_status 0
expect test "$(grep -c '"error"' all.json)" -eq 0

# In the database of a sweep such a point is refused, and has no numbers.
printf 'trace: few.fft\nmachine: gtx480\nmemory: [uvm, auto]\ngpu-memory: [50%%]\n' >few.yaml
run "$farfault" sweep few.yaml -o few.db
expect_status 1
run "$farfault" results few.db --csv --columns memory,state,error,time_us
expect_out "uvm,refused,uvm: $left_out 1.15 MiB (1204224): it is left out,"
expect grep -qE '^auto,done,,[0-9]' out
run "$farfault" report --html sweep.html few.db
expect grep -qF "$left_out" sweep.html

# Advice takes nothing from it.
run "$farfault" advise --quick --machine gtx480 --gpu-memory 50% few.fft
expect_status 0
expect grep -qE '^ *uvm +cannot run' out
expect_out "uvm: $left_out"
finish
