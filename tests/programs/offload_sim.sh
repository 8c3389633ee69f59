#!/usr/bin/env bash
# `farfault sim --offload A,B --map C,D`: which simulations these are, what is refused and when; all ways with all maps: the same bytes twice, numbers
# that add up, and nothing but what was asked for.
source "$(dirname "$0")/common.sh"
workloads=$3
unset FARFAULT_OFFLOAD FARFAULT_MAP
sim() { run timeout 60 "$farfault" sim "$@"; }
column() { awk -F, -v name="$1" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) c = i } NR > 1 { print $c }' "$2"; }

run "$farfault" record -o va.fft "$workloads/vectoradd" 16384 1
expect_status 0

# ---- lists ----
sim va.fft --machine tom --map baseline,12:13 --csv maps.csv
expect_status 0
expect test "$(column memory maps.csv | xargs)" = "copy+map=baseline copy+map=12:13"
sim va.fft --machine tom --memory copy,ideal --offload none --map 9:10 --csv one.csv
expect test "$(column memory one.csv | xargs)" = "copy ideal"
expect_out "note: all managers with --map 9:10"
sim va.fft --machine tom --memory copy,ideal+map=12:13 --map baseline,7:8 --csv own.csv
expect test "$(column memory own.csv | xargs)" = "copy+map=baseline copy+map=7:8 ideal+map=12:13"

# ---- what is refused, and that nothing was simulated before ----
refused() { # STATUS MESSAGE ARGUMENT...
  local wanted=$1 message=$2
  shift 2
  sim "$@"
  expect_status "$wanted"
  expect_err "$message"
  expect_no_out
}
refused 64 "'bad' is no way of offloading: there are none, always, controlled, ideal, paper" va.fft --machine tom --offload none,bad
refused 64 "'12:14' is no map" va.fft --machine tom --map baseline,12:14
refused 64 "'2' is no share of the instances" va.fft --machine tom --map learned:2
refused 64 "the oracle knows all instances" va.fft --machine tom --map oracle:1%
refused 64 "--offload: ',' names none" va.fft --machine tom --offload ,
refused 64 "'copy+offload=none' is named twice" va.fft --machine tom --offload none,none
refused 64 "'offload' is given twice" va.fft --machine tom --memory copy+offload=always+offload=none
refused 64 "these are 33 simulations" va.fft --machine tom --memory copy,ideal,uvm --map "$(seq -s, 11 | sed 's/[0-9]*/learned:&%/g')"
refused 64 "no memory stacks to offload to" va.fft --machine gtx480 --offload controlled
refused 64 "no memory stacks to map to" va.fft --machine gtx480 --map baseline
refused 64 "no memory stacks to offload to" va.fft --machine tom --memory copy+offload=always+stack_count=0
sim va.fft --machine gtx480 --offload none --memory copy
expect_status 0

run "$farfault" run --machine tom --offload controlled --memory copy "$workloads/vectoradd" 16384 1
expect_status 64
expect_err "recorded programs: \`farfault record -o app.fft PROGRAM\`"
expect_no_out
run "$farfault" run --machine tom --map learned --memory copy "$workloads/vectoradd" 16384 1
expect_status 64
expect_no_out
run "$farfault" run --machine tom --map 12:13 --memory copy "$workloads/vectoradd" 16384 1
expect_status 0

# ---- sweeps have them as parameters ----
cat >study.yaml <<'END'
trace: va.fft
machine: tom
memory: copy
map: [baseline, "12:13", learned]
offload: [none, controlled]
END
run "$farfault" sweep study.yaml --dry-run -v
expect_status 0
expect_out "--offload controlled --map learned"
run "$farfault" sweep study.yaml
expect_status 0
run "$farfault" results study.db --columns offload,map,stacks_off_chip_bytes,stacks_joule --where "stacks_off_chip_bytes > 0 AND stacks_joule > 0" --csv -
expect test "$(grep -c ',' out)" -eq 7
sed 's/tom/h200/' study.yaml >bad.yaml
run "$farfault" sweep bad.yaml --dry-run
expect_status 2
expect_err "no memory stacks"

# ---- all ways, all maps ----
cat >check.py <<'END'
import json, sys
runs = {run["memory"]: run for run in json.load(open(sys.argv[1]))["runs"]}
failed = 0
def holds(name, what, good):
    global failed
    if not good: failed += 1; print(name, what)
for name, run in runs.items():
    s = run["stacks"]
    n = s["count"]
    kept = sum(s["refused_" + why] for why in ("learning", "condition", "tx", "rx", "slow", "full"))
    holds(name, "instances", s["instances"] > 0)
    holds(name, "colocated", s["colocated"] <= s["instances"])
    holds(name, "lists", [len(s[k]) for k in ("tx_bytes", "rx_bytes", "internal_bytes", "cross_bytes")] == [n] * 4)
    holds(name, "sums", [s[k + "_total_bytes"] for k in ("tx", "rx", "internal")] == [sum(s[k + "_bytes"]) for k in ("tx", "rx", "internal")])
    holds(name, "cross", s["cross_total_bytes"] == sum(map(sum, s["cross_bytes"])) and all(s["cross_bytes"][i][i] == 0 for i in range(n)))
    holds(name, "off chip", s["off_chip_bytes"] == s["tx_total_bytes"] + s["rx_total_bytes"] + s["cross_total_bytes"])
    holds(name, "joule", abs(s["joule"] - s["link_joule"] - s["idle_joule"] - s["activation_joule"] - s["read_joule"] - s["sm_joule"]) <= 1e-9 * s["joule"])
    holds(name, "instructions", run["warp_instructions"] == next(iter(runs.values()))["warp_instructions"] >= s["offloaded_instructions"])
    holds(name, "inside", s["internal_total_bytes"] == run["dram_read_bytes"] + run["dram_write_bytes"])
    holds(name, "the same instances", s["instances"] == next(iter(runs.values()))["stacks"]["instances"])
    if s["offload"] == "none":
        holds(name, "nothing there", not (s["offloaded"] or kept or s["offloaded_instructions"] or s["cross_total_bytes"] or s["request_bytes"] or s["answer_bytes"]))
    else:
        holds(name, "offloaded and kept", s["offloaded"] + kept == s["instances"])
        holds(name, "something there", (s["offloaded"] > 0) == (s["offloaded_instructions"] > 0))
    if s["offload"] == "always": holds(name, "always", not (s["refused_tx"] or s["refused_rx"] or s["refused_slow"] or s["refused_full"]))
    if s["offload"] == "ideal": holds(name, "ideal", not (s["cross_total_bytes"] or s["remote_stack_bytes"] or s["request_bytes"]))
    if s["offload"] in ("always", "controlled"): holds(name, "packets", (s["request_bytes"] > 0) == (s["offloaded"] > 0) == (s["answer_bytes"] > 0))
    if not s["map"].startswith("learned"): holds(name, "nothing learned", not (s["refused_learning"] or s["learning_ps"] or s["learned_instances"] or s["delayed_bytes"]))
    elif run["memory"].startswith("copy"): holds(name, "learned", s["found"] and s["learned_instances"] > 0 and s["delayed_bytes"] > 0)
    if s["map"].startswith("oracle"): holds(name, "found", bool(s["found"]))
by = lambda offload, map: runs["copy+offload=%s+map=%s" % (offload, map)]["stacks"]
for offload in ("none", "always"): holds(offload, "the oracle colocates no less", by(offload, "oracle")["colocated"] >= by(offload, "baseline")["colocated"])
holds("always", "something is offloaded", by("always", "baseline")["offloaded"] > 0)
print(len(runs), "simulations,", failed, "wrong")
END
run "$farfault" record -o km.fft "$workloads/greeks" 512 5
expect_status 0
all=(km.fft --machine tom --offload none,always,controlled,ideal --map baseline,12:13,learned:5%,oracle,learned-linear:5%,oracle-linear)
sim "${all[@]}" --json all.json
expect_status 0
expect_out "copy+offload=ideal+map=oracle-linear"
run python3 check.py all.json
expect_out "24 simulations, 0 wrong"
sim "${all[@]}" --json again.json
expect cmp <(sed '/"host": {/,$d' all.json) <(sed '/"host": {/,$d' again.json)

# What is not offloaded is not changed by other simulations in parallel; counting instances costs nothing but the places at which warps take turns (in 0.5 % of the time).
sim km.fft --machine tom --memory copy --json plain.json
expect_status 0
expect_out "memory stacks"
if grep -q "^candidates" out; then wrong "instances were counted without being asked for"; else pass; fi
sim km.fft --machine tom --offload none --map baseline --json alone.json
cat >compare.py <<'END'
import json
plain, alone, parallel = (json.load(open(name + ".json"))["runs"][0] for name in ("plain", "alone", "all"))
near = lambda a, b: a == b or (isinstance(a, (int, float)) and abs(a - b) <= 5e-3 * abs(a))
def same(a, b, test):
    if isinstance(a, dict): return all(same(a[key], b.get(key), test) for key in a if key not in ("memory", "instances", "colocated", "colocation"))
    return len(a) == len(b) and all(same(x, y, test) for x, y in zip(a, b)) if isinstance(a, list) else test(a, b)
print(same(alone, parallel, lambda a, b: a == b), same(plain, alone, near), all(plain[key] == alone[key] for key in plain if plain[key].__class__ is int and "_ps" not in key))
END
run python3 compare.py
expect_out "True True True"

# ---- with paging, too ----
sim km.fft --machine tom --memory replay,demand --gpu-memory 50% --offload none,controlled --json paged.json
expect_status 0
expect_out "replay+offload=controlled"
python3 - >paged <<'END'
import json
runs = json.load(open("paged.json"))["runs"]
print(len(runs), all(run["complete"] and run["faults"] > 0 and run["stacks"]["instances"] > 0 for run in runs), sum(run["evicted_bytes"] for run in runs) > 0)
END
expect grep -qx "4 True True" paged

# ---- recordings that have no marks, or not their end ----
run "$farfault" import accelsim "$here/accelsim" -o imported.fft
sim imported.fft --machine tom --offload controlled
expect_status 2
expect_err "the trace has no marks of the blocks that could be offloaded"
expect_no_out
sim imported.fft --machine tom --offload none --map 12:13
expect_status 0
refused 64 "for one number of stacks, not for 8 and 4" km.fft --machine tom --memory copy+stack_count=8,copy --map oracle
head -c $(($(stat -c %s km.fft) * 3 / 4)) km.fft >cut.fft
sim cut.fft --machine tom --offload controlled --map learned
expect_status 2
expect_out "incomplete"
{ head -c 2000 km.fft; printf XXXX; tail -c +2005 km.fft; } >damaged.fft
sim damaged.fft --machine tom --offload controlled --map oracle
expect_status 2
expect_err "is damaged"

# ---- the page and the pictures have it ----
run "$farfault" report all.json --svg pictures
expect_status 0
expect test "$(ls pictures | grep -c '^links-')" -eq 24
expect test -s pictures/stacks.svg
finish
