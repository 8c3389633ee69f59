#!/usr/bin/env bash
# `--lines`: far-faults and traffic by line of PTX and source, under several managers, on several GPUs, of a program and of its recording. What the lines
# have adds up to what the simulation has. $3: the folder of fixtures.
source "$(dirname "$0")/common.sh"
program=$3/source_lines

# sums FILE: what the lines of each simulation add up to; fails where that is not the simulation's own.
cat >sums.py <<'P'
import json, sys
run = json.load(open(sys.argv[1]))
known = {(7, "scale"), (3, "scale"), (20, "add"), (21, "add")}
for one in run["runs"]:
    lines = one["by_line"]
    for key in ("faults", "accesses", "sectors", "dram_read_bytes", "dram_write_bytes", "remote_bytes", "fault_wait_ps"):
        total = sum(line.get(key, 0) for line in lines)
        own = sum(kernel.get(key, 0) for kernel in one["kernels"])
        assert total == own, (one["memory"], key, total, own)
    assert sum(line.get("faults", 0) for line in lines) == one["faults"], one["memory"]
    names = {(line.get("line"), one["kernels"][line["kernel"]]["name"]) for line in lines}
    assert names == known, names
    assert all(line["file"] == "/src/lines.cu" and line["ptx"] for line in lines)
    assert len(lines) == 5, len(lines)  # line 20 has two loads
    print(one["memory"], one.get("device", 0), one["faults"])
P

# expect_row WORDS: a row of a table on stderr, whatever the columns' widths.
expect_row() { if tr -s ' ' <err | grep -qF -- "$1"; then pass; else wrong "$shown: no row '$1'"; fi; }

managers=copy,demand,replay,tbn,uvm,auto
run "$farfault" run --lines --memory $managers --machine gtx480 -o run.ffr "$program"
expect_status 0
expect_err "demand: lines with the most far-faults"
expect_row "lines.cu:7 in scale 128 50.0 % 512.00 KiB"
expect_row " PTX 28 ld.global.u32 128 50.0 % 512.00 KiB"
expect_row "lines.cu:3 in scale 128 50.0 % 512.00 KiB"
expect_row " PTX 11 st.global.u32 128 50.0 % 512.00 KiB" # of the function that it calls
expect_row "lines.cu:20 in add 0 0.0 %"
expect test "$(wc -L <err)" -le 110 # the table of managers has that; those of lines have 80
expect test "$(sed -n '/lines with/,$p' err | wc -L)" -le 80
cp err table
run python3 sums.py run.ffr
expect_status 0
expect_out "demand 0 256"

# Only as many lines as asked for, and the rest in one row.
run "$farfault" run --lines=1 --memory demand --machine gtx480 "$program"
expect_row "(3 further lines) 128 50.0 %"
for wrong in 0 x 10001; do
  run "$farfault" run --lines=$wrong --memory demand "$program"
  expect_status 64
done

# Nothing of it without the option, and the same numbers.
run "$farfault" run --memory $managers --machine gtx480 -o without.ffr "$program"
expect test "$(grep -c by_line without.ffr)" -eq 0
run python3 -c 'import json
a, b = (json.load(open(f))["runs"] for f in ("run.ffr", "without.ffr"))
for one in a: del one["by_line"]
assert a == b'
expect_status 0
run "$farfault" report --lines without.ffr
expect_status 64
expect_err "has no lines"

# Of the saved run, and of a recording that knew nothing of it.
run "$farfault" report --lines run.ffr
expect_status 0
grep -v "^(" table >expected
expect cmp out expected
run "$farfault" record -o program.fft "$program"
run "$farfault" sim --lines --memory $managers --machine gtx480 -o sim.ffr program.fft
expect_status 0
run python3 -c 'import json
a, b = ([one["by_line"] for one in json.load(open(f))["runs"]] for f in ("run.ffr", "sim.ffr"))
assert a == b'
expect_status 0

# The page has the text of the source, of named lines and two around each, but of nothing that is not a source.
mkdir src && for ((i = 1; i <= 30; i++)); do echo "text $i </script>"; done >src/lines.cu && cp src/lines.cu src/secret
for file in lines.cu secret; do
  unsealed run.ffr | sed "s|/src/lines.cu|$work/src/$file|" >here.ffr
  run "$farfault" report here.ffr --html $file.html
  [[ $status -eq 0 || $(cat err) != *"built without the page"* ]] || break
  expect_status 0
  expect test "$(grep -c 'text 22 \\u003c/script' $file.html)" -eq "$([[ $file == secret ]] && echo 0 || echo 1)"
  expect test "$(grep -c 'text 25 ' $file.html)" -eq 0
done

# Two GPUs: each has its own.
run "$farfault" run --devices 2 --lines --memory demand,uvm --machine gtx480 -o two.ffr "$program"
expect_status 0
expect_err "demand@1: lines with the most far-faults"
run python3 sums.py two.ffr
expect_status 0
expect_out "demand@1 1 256"

# PTX without .loc has lines of its own.
run "$farfault" run --lines --memory demand --machine gtx480 "$program" plain
expect_err "st.global.u32 in scale"
expect_err "the PTX names no lines of the source: nvcc -lineinfo puts them in"

# Another simulator's trace has no PTX.
run "$farfault" import accelsim "$here/accelsim" -o other.fft
expect_status 0
run "$farfault" sim --lines --memory demand --machine gtx480 other.fft
expect_status 0
expect_out "the lines are not known"
expect_out "instruction "

# What is wrong in a file is refused.
unsealed run.ffr | sed 's/"kernel": 0,/"kernel": 7,/' >bad.ffr
run "$farfault" report --lines bad.ffr
expect_status 2
expect_err "\"kernel\" is not the number of a kernel of the run"
unsealed run.ffr | sed 's/"by_line": \[/"by_line": [3,/' >bad.ffr
run "$farfault" report --lines bad.ffr
expect_status 2
finish
