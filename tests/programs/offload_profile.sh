#!/usr/bin/env bash
# `farfault offload profile` and `offload analyze --measured` of a recorded program, compared with a recount of its records by other means.
source "$(dirname "$0")/common.sh"
workloads=$3

run "$farfault" record -o greeks.fft "$workloads/greeks" 512 6
expect_status 0
run "$farfault" offload profile --json profile.json greeks.fft
expect_status 0
expect_no_err
expect_out "greeks_forward"
expect_out "learned from 0.1 %"
cp out first
run "$farfault" offload profile --json - greeks.fft
expect cmp out profile.json
run "$farfault" offload profile greeks.fft
expect cmp out first

# Each instance makes fewer trips than offloading needs: maps would be of none.
run "$farfault" record -o short.fft "$workloads/scalarproduct" 16 4096
expect_status 0
run "$farfault" offload profile short.fft
expect_status 0
expect_out "512 instances of 1 candidate"
expect_out "; 0 may go"
expect_out "no instance may go"
expect test "$(grep -c "learned from" out)" = 0

"$farfault" trace dump --records greeks.fft >dump
cat >recount.py <<'PY'
import json, re
profile = json.load(open("profile.json"))
kernel, inside, instances = None, None, []
for line in open("dump"):
    if not line.startswith("\t"):
        launch = re.match(r"\d+\tlaunch\t\d+: (\S+) <<<", line)
        kernel = launch.group(1) if launch else None
        continue
    what = line.split("\t")[2]
    if what.startswith("enter"):
        inside = {"kernel": kernel, "pc": int(re.search(r"pc (\d+)", what).group(1)), "trips": int((re.search(r"trips (\d+)", what) or [0, 0])[1]), "accesses": [], "lines": []}
    elif what.startswith(("leave", "exit")):
        if inside and inside["lines"]: instances.append(inside)
        inside = None
    elif inside and what.startswith(("load", "store")):
        lines = [int(x, 16) for x in re.findall(r" (0x[0-9a-f]+)/", what)]
        inside["accesses"].append((what.split()[0], len(lines)))
        inside["lines"] += lines
assert profile["instances"] == sum(c["may_go"] for c in profile["candidates"]) and len(instances) > 100
may_go = []
for candidate in profile["candidates"]:
    own = [i for i in instances if (i["kernel"], i["pc"]) == (candidate["kernel"].split("(")[0], candidate["pc"])]
    assert candidate["instances"] == len(own) > 0
    longest = sorted(own, key=lambda i: -i["trips"])[: candidate["may_go"]]  # a condition is a number of trips
    may_go += longest
    assert not longest or len(longest) == len(own) or longest[-1]["trips"] > max(i["trips"] for i in own if i not in longest)
    for kind in "load", "store":
        accesses = [lines for i in own for what, lines in i["accesses"] if what == kind]
        assert candidate[kind + "s"] == len(accesses) and candidate[kind + "_lines"] == sum(accesses)
    if all(i["trips"] for i in own): assert abs(candidate["trips"] - sum(i["trips"] for i in own) / len(own)) < 1e-9
maps = profile["colocation"]
for pair in maps["pairs"]:
    low, high = map(int, pair["bits"].split(":"))
    assert high == low + 1
    together = sum(len({line >> low & 3 for line in i["lines"]}) == 1 for i in may_go)
    assert abs(pair["colocation"] - together / len(may_go)) < 1e-9
best, = [p for p in maps["pairs"] if p["bits"] == maps["oracle_bits"]]
assert best["colocation"] == maps["oracle"] and maps["linear"] >= maps["oracle"] > maps["baseline"]
assert [l["share"] for l in maps["learned"]] == [0.001, 0.005, 0.01]
touched = [a for a in profile["allocations"] if a["touched"]]
for a in profile["allocations"]:
    assert a["touched"] == any(a["address"] <= line < a["address"] + a["bytes"] for i in may_go for line in i["lines"])
assert touched
PY
expect python3 recount.py

# Both sides: 12 accesses of 32 lanes each, in lines; what is assumed is what the table without --measured has.
run "$farfault" offload analyze --measured --kernel greeks_price --json price.json greeks.fft
expect_status 0
expect_no_err
expect_out "assumed"
expect_out "measured"
expect test "$(grep -c measured out)" -gt 2
cat >price.py <<'PY'
import json
kernel, = json.load(open("price.json"))["kernels"]
seen = [r for r in kernel["regions"] if "measured" in r]
assert len(seen) == kernel["chosen"] > 1
for r in seen:
    m, tx, rx = r["measured"], r["tx"], r["rx"]
    assert r["chosen"] and m["instances"] > 0
    a, k = m["words_assumed"], m["words_assumed"]["trips"]
    assert abs(a["tx"] - tx["fixed"] - k * tx["per_trip"]) < 1e-9 and abs(a["rx"] - rx["fixed"] - k * rx["per_trip"]) < 1e-9
    loads = r["once_loads"] + r["loads"] * m["trips"]
    stores = r["once_stores"] + r["stores"] * m["trips"]
    sent = a["tx"] + a["trips"] * (r["loads"] / 2 + 33 * r["stores"]) + r["once_loads"] / 2 + 33 * r["once_stores"]
    lines = m["lines_per_load"] * m["load_misses"]
    assert abs(m["words_measured"]["tx"] - (sent - loads * lines - stores * (32 + m["lines_per_store"]))) < 1e-6
PY
expect python3 price.py
run "$farfault" offload analyze --measured --machine h200 greeks.fft
expect_status 0

# What the first kernel's instances teach is the map of the arrays that only later kernels use, too.
run timeout 60 "$farfault" sim greeks.fft --machine tom --offload none --map baseline,learned,oracle --json sim.json
expect_status 0
cat >learned.py <<'PY'
import json
share = [r["stacks"]["colocation"] for r in json.load(open("sim.json"))["runs"]]
assert share[0] < 0.5 and share[2] > 0.95 and share[1] > share[2] - 0.1, share # what is learned from is colocated by no map
PY
expect python3 learned.py

# Candidates without a warp in them, no recording, no such things.
run "$farfault" record -o vectoradd.fft "$workloads/vectoradd" 1024 1
run "$farfault" offload profile vectoradd.fft
expect_status 2
expect_no_out
expect_err "no warp came to a candidate block"
run "$farfault" offload analyze --measured "$workloads/greeks.ptx"
expect_status 2
expect_err "--measured needs a recording"
run "$farfault" offload profile --machine nonesuch greeks.fft
expect_status 2
run "$farfault" offload profile
expect_status 64
run "$farfault" offload analyze --measured --annotate greeks.fft
expect_status 64
run "$farfault" offload analyze --machine tom greeks.fft
expect_status 64
run "$farfault" offload profil greeks.fft
expect_status 64
expect_err "did you mean 'profile'?"

# Damage: what stands before it, and the exit status says so.
size=$(stat -c %s greeks.fft)
head -c $((size - 100)) greeks.fft >cut.fft
run "$farfault" offload profile cut.fft
expect_status 2
expect_err "this is of what stands before"
expect_out "greeks_forward"
head -c 50 greeks.fft >short.fft
run "$farfault" offload profile short.fft
expect_status 2
expect_no_out
finish
