#!/usr/bin/env bash
# --profile-range: what is counted between cudaProfilerStart and cudaProfilerStop, in runs and recordings. $3: the folder of fixtures.
source "$(dirname "$0")/common.sh"
expect_not() { if "$@"; then wrong "should not be: $*"; else pass; fi; }
program=$3/profiled managers=copy,demand,uvm,auto machine=v100 memory=75% mib=1

# profile NAME LETTERS [OPTION...]: NAME.json of the program that does what the letters say
profile() {
  run "$farfault" run --machine "$machine" --memory "$managers" --gpu-memory "$memory" --json "$1.json" "${@:3}" "$program" "$2" "$mib"
  expect_status 0
}
without_host() { sed '/^ "host": {/,$d; /^ "command"/d; /^ "notes"/,/\]/d' "$1"; }

cat >compare.py <<'PY'
import json, sys
# compare.py sum WHOLE PART...: each counter of WHOLE is the sum of those of its parts, but for peaks
# compare.py kernels FILE: names and launches of the last manager's kernels
# compare.py tiers FILE: of all managers together what was read from and written to tiers, those that are below the host
how, whole, *parts = sys.argv[1:]
load = lambda name: json.load(open(name + ".json"))["runs"]
PEAKS = ("footprint_bytes", "resident_peak_bytes", "peak_bytes")
NOT_COUNTED = ("bytes", "capacity_bytes", "address", "id", "launch", "kernel", "stack")
numbers = lambda d: {k: v for k, v in d.items() if isinstance(v, int) and not isinstance(v, bool) and k not in PEAKS + NOT_COUNTED}
def rows(run):
    yield "run", numbers(run["counters"] if "counters" in run else run)
    for kind, key in (("kernels", ("name",)), ("allocations", ("name",)), ("tiers", ("name",))):
        for row in run.get(kind, []):
            yield (kind, *(row[k] for k in key)), numbers(row.get("counters", row))
if how == "tiers":
    below = [t for run in load(whole) for t in run["tiers"][1:]]
    print(*(sum(t[n] for t in below) for n in ("read_bytes", "written_bytes", "waits")))
elif how == "kernels":
    print(*(f'{k["name"]}:{k["launches"]}' for k in load(whole)[-1]["kernels"]))
else:
    bad = 0
    for i, run in enumerate(load(whole)):
        rest = [dict(rows(load(p)[i])) for p in parts]
        for name, counters in rows(run):
            for counter, value in counters.items():
                got = sum(part.get(name, {}).get(counter, 0) for part in rest)
                if got != value:
                    print(run["memory"], name, counter, value, "is not", [part.get(name, {}).get(counter, 0) for part in rest])
                    bad += 1
    sys.exit(bad != 0)
PY

# Marks change nothing unless they are asked for; and a range that is the whole program is the run.
profile none twadwbwc
profile marked tSwadXwbSwc
expect diff <(without_host none.json) <(without_host marked.json)
expect_not grep -q Profiler out err
profile whole twadwbwc
run "$farfault" record --machine v100 -o marked.fft "$program" tSwadXwbSwc
run "$farfault" trace dump marked.fft
expect test "$(grep -c $'\tprofile\t' out)" = 3
run "$farfault" trace check marked.fft
expect_status 0

# What is outside is in no row.
profile one twadwSbwXawc --profile-range
expect test "$(python3 compare.py kernels one)" = "second:1"
grep_note() { grep "only what happened in profile ranges is counted: $1\$" err; }
expect grep_note "1 range"
profile two twadwSbwXawSawX --profile-range
expect test "$(python3 compare.py kernels two)" = "first:1 second:1"
expect grep_note "2 ranges"
profile runtime twadwRbwPawRawP --profile-range
expect diff <(without_host two.json) <(without_host runtime.json)

# A start within a range and a stop outside do nothing; a range without a stop ends with the program.
profile again twadwXSbwSXXawSSawX --profile-range
expect diff <(without_host two.json) <(without_host again.json)
profile open twadwSbwawc --profile-range
profile closed twadwSbwawcwX --profile-range
expect test "$(python3 compare.py kernels open)" = "first:1 second:1"
run python3 compare.py sum closed open
expect_status 0

# Parts that follow each other add up to the whole: also where streams and copies overlap at the marks, with
# allocations between them, and in the middle of far-faults and evictions.
parts() { # parts BEFORE BEHIND
  profile whole "S$1$2" --profile-range
  profile left "S$1X$2" --profile-range
  profile right "$1S$2" --profile-range
  run python3 compare.py sum whole left right
  expect_status 0
}
managers=copy,demand,replay
parts twab dawbc
managers=tbn,uvm,auto
parts abab wabncdtb
managers=segments,ideal,zero-copy
parts cdtaabb aabbccd
# Tiers below GPU memory have parts, too: what goes through a drive in each.
managers=uvm,demand machine=h100-nvme memory=40% mib=8
tiers_parts() {
  local options="--host-memory 2M"
  profile whole "S$1$2" --profile-range $options
  profile left "S$1X$2" --profile-range $options
  profile right "$1S$2" --profile-range $options
  run python3 compare.py sum whole left right
  expect_status 0
  for part in left right; do
    run python3 compare.py tiers $part
    expect test "$(tr ' ' '\n' <out | grep -c '^[1-9]')" -eq 3
  done
}
if [[ -n ${FARFAULT_FEWER-} ]]; then tiers_parts tabw aw; else tiers_parts tabw abw; fi
machine=v100 memory=75% mib=1

# A stop waits for all that was called before it; what is in another stream goes on meanwhile, and is counted.
managers=demand
profile left SabXabw --profile-range
expect test "$(python3 compare.py kernels left)" = "first:2 second:1"
profile left SabwXabw --profile-range
expect test "$(python3 compare.py kernels left)" = "first:1 second:1"

# Nothing is profiled.
profile nothing twadXw --profile-range
expect grep -q "nothing is counted: .* has not called cudaProfilerStart" err
expect test "$(grep -c "launched no kernel" err)" -eq 0 # it did, but for the ranges
profile idle twadwSXw --profile-range
expect grep_note "1 range, in which the program launched no kernel"
expect test "$(python3 compare.py kernels nothing)" = ""
run "$farfault" run --machine v100 --memory uvm,copy -v --csv nothing.csv -o nothing.ffr --profile-range "$program" twadXw
expect_status 0
expect_not grep -qi nan out err nothing.csv nothing.ffr
run "$farfault" report --stats --html nothing.html --svg pictures nothing.ffr
expect_status 0

# A recording, whichever options it is simulated with, gives what the run gave; history and lines have the same parts.
for options in "" "--profile-range" "--profile-range --lines"; do
  run "$farfault" run --machine v100 --memory uvm,demand --json run.json -o run.ffr $options "$program" twadwSbwXawSaX
  expect_status 0
  run "$farfault" record --machine v100 -o ranges.fft "$program" twadwSbwXawSaX
  run "$farfault" sim --memory uvm,demand --json sim.json -o sim.ffr $options ranges.fft
  expect_status 0
  expect diff <(without_host run.json) <(without_host sim.json)
  expect diff <(without_host run.ffr) <(without_host sim.ffr)
done
run "$farfault" report --stats run.ffr
expect_status 0
expect_not grep -q "cuMemcpyHtoD" out

# What it does not go with is said.
run "$farfault" sim --profile-range --sample on --memory uvm ranges.fft
expect_status 2
expect grep -q "cudaProfilerStart" err
run "$farfault" sim --profile-range --machine tom --memory copy ranges.fft
expect_status 2
expect grep -q "memory stacks" err
run "$farfault" record --profile-range -o no.fft "$program" twadw
expect_status 64
expect grep -q "farfault sim --profile-range" err
expect test ! -e no.fft
finish
