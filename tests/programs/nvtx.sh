#!/usr/bin/env bash
# Ranges of a program (NVTX) in tables, JSON, recordings and timelines; a program's own tool stays. $3: the folder of fixtures.
source "$(dirname "$0")/common.sh"
program=$3/nvtx_ranges

run "$farfault" run --machine v100 --memory copy,uvm --json run.json -v "$program"
expect_status 0
expect_out "levels 0 1 0 -1"
expect_err "step/layer1 (nvtx_ranges.c:91 cuMemAlloc #2)"
expect_err "step/layer² (nvtx_ranges.c:91 cuMemAlloc #3)"
expect test "$(grep -c '^  add  *-  *nvtx_ranges.c:84  *3 ' err)" -eq 2
expect test "$(grep -c '^  add  *step/layer1  *nvtx_ranges.c:84  *1 ' err)" -eq 2
expect test "$(grep -c '^  add  *step/layer1/library:inner  *nvtx_ranges.c:84  *1 ' err)" -eq 2
expect test "$(grep -c '^  add  *step/layer²  *nvtx_ranges.c:84  *2 ' err)" -eq 2
expect test "$(grep -c '"range": "step/layer1/library:inner"' run.json)" -eq 2
expect grep -q '"site": "nvtx_ranges.c:84"' run.json
run "$farfault" report -v run.json
expect_out "step/layer1/library:inner"

# A recording has them, and says so by its version; without ranges it is what it was.
run "$farfault" record --machine v100 -o ranges.fft "$program"
expect_status 0
expect test "$(od -An -tu1 -j8 -N1 ranges.fft | tr -d ' ')" = 144
run "$farfault" sim --machine v100 --memory copy,uvm --json sim.json ranges.fft
expect_status 0
expect diff <(sed '/^ "host": {/,$d' run.json) <(sed '/^ "host": {/,$d' sim.json)
run "$farfault" trace dump ranges.fft
expect_out "<<<1x1x1, 64x1x1, 0>>> in step/layer² at nvtx_ranges.c:84"
run "$farfault" trace cut --kernel add -o cut.fft ranges.fft
run "$farfault" trace dump cut.fft
expect_out "<<<1x1x1, 64x1x1, 0>>> in step/layer1/library:inner"
run env NVTX_INJECTION64_PATH=/nonexistent "$farfault" record --machine v100 -o none.fft "$program"
expect_status 0
expect_out "levels -2 -2 -2 -2"
expect test "$(od -An -tu1 -j8 -N1 none.fft | tr -d ' ')" = 14
run "$farfault" sim --machine v100 --memory copy -v none.fft
expect test "$(grep -c 'step\|launches .* range' out)" = 0

# Ranges as profile ranges: what runs in them is counted, wherever they are nested; cudaProfilerStart is not asked.
launches() { python3 -c 'import json, sys; print(sum(k["launches"] for k in json.load(open(sys.argv[1]))["runs"][0]["kernels"]))' "$1"; }
profile() { run "$farfault" run --machine v100 --memory copy,uvm --json "$1.json" "${@:2}" "$program"; }
for range in "step 5" "layer1 2" "library:inner 1" "layer² 3"; do
  profile range "--profile-range=${range% *}"
  expect_status 0
  expect test "$(launches range.json)" = "${range##* }"
  expect_err "profile ranges are the NVTX ranges '${range% *}'"
  expect_err "only what happened in profile ranges is counted: 1 range"
  run "$farfault" record --machine v100 --profile-range="${range% *}" -o range.fft "$program"
  expect_status 0
  run "$farfault" sim --memory copy,uvm --profile-range --json sim.json range.fft
  expect diff <(sed '/^ "host": {/,$d' range.json) <(sed '/^ "host": {/,$d' sim.json)
done
profile range --profile-range=inner
expect_err "nothing is counted: only what happens in profile ranges is, and the program began none"
run "$farfault" sim --profile-range=step range.fft
expect_status 64
expect_err "farfault record --profile-range=step"
run "$farfault" run --profile-range= "$program"
expect_status 64
expect_err "which NVTX range?"
run "$farfault" run --profile-range step "$program"
expect_status 127
expect_err "--profile-range=step"

# Streams that the program has named.
run "$farfault" run --machine v100 --memory copy --json streams.json -o streams.ffr "$program" streams
expect_status 0
expect test "$(grep -c '"name": "upload"\|"name": "dépôt"' streams.json)" -eq 2
expect test "$(grep -c 'no stream' streams.json)" -eq 0
run "$farfault" timeline streams.ffr -o streams.timeline
expect test "$(grep -c 'upload (stream 1)\|dépôt (stream 2)' streams.timeline)" -eq 2
expect grep -q '"stream 3"' streams.timeline
run "$farfault" report streams.ffr --svg pictures
expect grep -q '>upload<' pictures/timeline-copy.svg

# The timeline.
run "$farfault" sim --machine v100 --memory copy -o run.ffr ranges.fft
run "$farfault" timeline run.ffr -o timeline.json
expect grep -q '"range":"step/layer1","site":"nvtx_ranges.c:84"' timeline.json
expect grep -q '"cat":"range","name":"step"' timeline.json
expect grep -q '"name":"thread_name","args":{"name":"ranges of thread 0"}' timeline.json
run "$farfault" report -v run.ffr
expect test "$(grep -A 2 'layer1 (nvtx_ranges.c:91 cuMemAlloc #2)' out | sed 's/  */ /g' | cut -d ' ' -f 2-8 | tail -2 | paste -sd '|')" = \
  "+0 B: step/layer1 block 8.00 KiB 12|+8.00 KiB: step/layer1/library:inner block 56.00 KiB 4"
expect test "$(grep -c ' block ' out)" = 2
run "$farfault" report -v run.json
expect test "$(grep -c ' block ' out)" = 0

# Summaries: all launches of a kernel together.
run "$farfault" report --stats run.ffr
expect_status 0
expect grep -Eq '^  100\.0 % .* 7 .* add$' out
summaries() { sed -n '/^  kernels$/,$p' "$1" | grep -v '^note:'; }
summaries out >of_file
run "$farfault" sim --machine v100 --memory copy --stats --json stats.json ranges.fft
expect diff of_file <(summaries out)
expect test "$(grep -c '"history"' stats.json)" = 0
run "$farfault" run --machine v100 --memory copy --stats "$program"
expect diff of_file <(summaries err)
run "$farfault" run --lines 5 "$program"
expect_status 127
expect_err "--lines=5"
run "$farfault" report --stats run.json
expect_status 64
expect_err "holds no history"

# The tables of nsys.
run "$farfault" report run.ffr --export-nsys run.sqlite
expect_status 0
expect test "$(sqlite3 run.sqlite 'SELECT count(*), sum(end > start), count(DISTINCT streamId), group_concat(DISTINCT value)
  FROM CUPTI_ACTIVITY_KIND_KERNEL JOIN StringIds ON id = demangledName')" = "7|7|1|add"
run "$farfault" sim --machine v100 --memory uvm -o uvm.ffr ranges.fft
run "$farfault" report uvm.ffr --export-nsys uvm.sqlite
expect test "$(sqlite3 uvm.sqlite 'SELECT sum(numberOfPageFaults) FROM CUDA_UM_GPU_PAGE_FAULT_EVENTS')" = \
  "$(python3 -c 'import json; print(json.load(open("uvm.ffr"))["runs"][0]["faults"])')"
# A row for each fault of the host, with its page: those that the history has over time.
cpu_faults="SELECT count(*), count(DISTINCT address), min(start) > 0, sum(address % 4096) FROM CUDA_UM_CPU_PAGE_FAULT_EVENTS"
expect test "$(sqlite3 uvm.sqlite "$cpu_faults")" = "0|0||"
run "$farfault" run --machine v100 --memory demand -o touched.ffr "$3/profiled" awtaw
run "$farfault" report touched.ffr --export-nsys touched.sqlite
expect_status 0
host_faults=$(python3 -c 'import json; r = json.load(open("touched.ffr"))["runs"][0]; print(r["host_faults"], sum(r["history"]["host_faults"]["faults"]))')
expect test "$host_faults" = "8 8"
expect test "$(sqlite3 touched.sqlite "$cpu_faults")" = "8|8|1|0"
expect test "$(sqlite3 touched.sqlite 'SELECT max(address) - min(address) FROM CUDA_UM_CPU_PAGE_FAULT_EVENTS')" = $((7 * 65536))
unsealed touched.ffr | sed 's/\("faults": \[\)[0-9]*\(\]},\)/\19000000000\2/' >many.ffr
run "$farfault" report many.ffr --export-nsys many.sqlite
expect_err "more than 4194304 faults of the CPU"
run "$farfault" report uvm.ffr --export-nsys again.sqlite
expect cmp uvm.sqlite again.sqlite
# Ranges, and the calls through which scripts find those of a kernel.
run python3 "$here/nsys_ranges.py" run.sqlite
expect_status 0
expect diff out - <<'X'
inner (NvtxPushPopRange, library): 1 time, 1 add
layer1 (NvtxPushPopRange): 1 time, 2 add
layer² (NvtxPushPopRange): 1 time, 2 add
step (NvtxPushPopRange): 1 time, 4 add, 4 by time
add in no range: 3
cudaLaunchKernel: 7
X
# Each time that a range is passed is a row; a kernel that the host waited for in it is there by time alone, too.
run "$farfault" run --machine v100 --memory copy -o repeat.ffr "$program" repeat
expect_status 0
run "$farfault" report repeat.ffr --export-nsys repeat.sqlite
expect_status 0
run python3 "$here/nsys_ranges.py" repeat.sqlite
expect_status 0
expect diff out - <<'X'
iteration (NvtxPushPopRange): 3 times, 3 add, 3 by time
nothing (NvtxPushPopRange): 1 time
open (NvtxPushPopRange): 1 time, 1 add, 1 by time
whole 'of it' (NvtxStartEndRange): 1 time, 3 add, 3 by time
cudaLaunchKernel: 4
X
# One that is open before the program uses the GPU begins with that.
run "$farfault" run --machine v100 --memory copy -o early.ffr "$program" early
run "$farfault" report early.ffr --export-nsys early.sqlite
expect test "$(sqlite3 early.sqlite "SELECT start, count(*) FROM NVTX_EVENTS WHERE text = 'early'")" = "0|1"
run python3 "$here/nsys_ranges.py" early.sqlite
expect_out "early (NvtxPushPopRange): 1 time, 5 add"
# The same from a recording, and of profile ranges those in which something was counted.
run "$farfault" record --machine v100 -o repeat.fft "$program" repeat
run "$farfault" sim --machine v100 --memory copy -o sim.ffr repeat.fft
run "$farfault" report sim.ffr --export-nsys sim.sqlite
expect diff <(sqlite3 repeat.sqlite 'SELECT * FROM NVTX_EVENTS') <(sqlite3 sim.sqlite 'SELECT * FROM NVTX_EVENTS')
run "$farfault" trace dump repeat.fft
expect_out "begin 2 iteration, thread 0"
run "$farfault" run --machine v100 --memory copy --profile-range=iteration -o part.ffr "$program" repeat
run "$farfault" report part.ffr --export-nsys part.sqlite
expect test "$(sqlite3 part.sqlite 'SELECT group_concat(text) FROM (SELECT DISTINCT text FROM NVTX_EVENTS ORDER BY text)')" = "iteration,whole 'of it'"
# A file of an earlier version has no ranges and no times of calls.
python3 -c 'import json; run = json.load(open("sim.ffr")); h = run["runs"][0]["history"]; del run["host"]["checksum"], h["ranges"], h["kernels"]["called_ps"], h["kernels"]["returned_ps"]; json.dump(run, open("old.ffr", "w"))'
run "$farfault" report old.ffr --export-nsys old.sqlite
expect_status 0
expect test "$(sqlite3 old.sqlite 'SELECT (SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL), (SELECT count(*) FROM CUPTI_ACTIVITY_KIND_RUNTIME), (SELECT count(*) FROM NVTX_EVENTS)')" = "4|0|0"
run "$farfault" report run.json --export-nsys no.sqlite
expect_err "--export-nsys: run.json has several memory managers"
expect test ! -e no.sqlite

# NVTX 2.
run "$farfault" run --machine v100 --memory copy -v "$program" 2
expect_status 0
expect_out "levels 0 1 0 -1"
expect_err "step/layer1 (nvtx_ranges.c:91 cuMemAlloc #2)"
finish
