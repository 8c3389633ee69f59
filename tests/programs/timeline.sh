#!/usr/bin/env bash
# What -o keeps of a run over time, and the timeline made of it: whole programs under every manager.
source "$(dirname "$0")/common.sh"
workloads=$3

managers=$("$farfault" list managers | awk 'NR > 1 { print $1 }' | paste -sd,)
run "$farfault" run --machine gtx480 --memory "$managers" -t 1 -o run.ffr --json run.json "$workloads/hotspot" 100 70 4
expect_status 0
run "$farfault" run --machine gtx480 --memory "$managers" -t 1 -o again.ffr "$workloads/hotspot" 100 70 4
expect_status 0
# The same bytes but for what the run cost the host.
without_host() { sed '/^ "host": {/,$d' "$1"; }
expect cmp <(without_host run.ffr) <(without_host again.ffr)
# Without the history it is the same run as --json.
expect test "$(grep -c '"history"' run.json)" -eq 0
expect cmp <(sed '/^   "history": {/,/^   }/d; s/^\(   \]\),$/\1/' <(unsealed run.ffr)) <(sed 's/^\(   \]\),$/\1/' run.json)
# What `report` shows is the same from both.
expect cmp <("$farfault" report -v run.ffr) <("$farfault" report -v run.json)

# Every series adds up to its counter, every map to its allocation's.
cat >sums.py <<'END'
import json, sys
named = "h2d_bytes d2h_bytes h2d_busy_ps d2h_busy_ps remote_bytes accesses faults faults_merged faults_throttled refaults host_faults " \
        "prefetched_bytes prefetched_unused_bytes evicted_bytes written_back_bytes kernel_ps".split()
runs, sums = 0, 0
for run in json.load(open(sys.argv[1]))["runs"]:
    if "error" in run: continue
    history, runs = run["history"], runs + 1
    for name in named:
        assert sum(history["series"].get(name, [])) == run[name], (run["memory"], name)
        sums += run[name] > 0
    assert all(len(s) == history["bins"] <= 512 for s in history["series"].values())
    assert history["bins"] * history["bin_ps"] >= run["time_ps"]
    counters = {a["id"]: a for a in run["allocations"]}
    for m in history["heat"]["maps"]:
        for name in ("accesses", "faults", "evicted_bytes"):
            assert sum(m.get(name, [])[2::3]) == counters[m["allocation"]].get(name, 0), (run["memory"], m["allocation"], name)
    assert len(history["kernels"]["begin_ps"]) == run["launches"]
print(runs, "runs,", sums, "sums")
END
run python3 sums.py run.ffr
expect_status 0
expect test "$(cut -d' ' -f1 out)" -gt 15
run "$farfault" run --machine gtx480 --memory uvm,tbn,demand,sl -o little.ffr --gpu-memory 60% "$workloads/vectoradd" 200000
run python3 sums.py little.ffr
expect_status 0

# The timeline by the format's rules.
cat >trace.py <<'END'
import json, sys
trace = json.load(open(sys.argv[1]))
last, ends, names, seen = 0, {}, {}, set()
for e in trace["traceEvents"]:
    assert {"ph", "ts", "pid", "tid", "name"} <= set(e) and e["ph"] in "XCM", e
    assert e["ts"] >= last, e
    last = e["ts"]
    if e["ph"] == "M" and e["name"].endswith("_name"): names[e["pid"], e["tid"], e["name"]] = e["args"]["name"]
    if e["ph"] == "C": assert isinstance(e["args"]["value"], (int, float))
    if e["ph"] != "X": continue
    track = e["pid"], e["tid"]
    assert e["dur"] >= 0 and e["ts"] >= ends.get(track, 0) - 1e-9, e
    ends[track] = e["ts"] + e["dur"]
    assert (*track, "thread_name") in names and (track[0], 0, "process_name") in names
    seen.add(e["name"])
print(len(trace["traceEvents"]), sorted(seen))
END
run "$farfault" timeline run.ffr -o timeline.json
expect_status 0
expect_no_out
run python3 trace.py timeline.json
expect_status 0
for name in hotspot_step "'fault'" "'copy to GPU'" "'batch'" "'declared'" "'prefetch'"; do expect_out "$name"; done
expect cmp timeline.json <("$farfault" timeline run.ffr)

# Pictures: whole SVG files that say what they show, the same bytes twice.
run "$farfault" report run.ffr --svg pictures
expect_status 0
expect_no_err
"$farfault" report again.ffr --svg pictures-again >/dev/null
expect diff -r pictures pictures-again
expect test "$(ls pictures | wc -l)" -eq $((1 + 3 * $(tr , '\n' <<<"$managers" | wc -l)))
cat >pictures.py <<'END'
import glob, sys, xml.etree.ElementTree as xml
for path in sorted(glob.glob(sys.argv[1] + "/*.svg")):
    root = xml.parse(path).getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    width, height = float(root.get("width")), float(root.get("height"))
    texts = [e.text for e in root.iter("{http://www.w3.org/2000/svg}text")]
    assert any("hotspot" in t for t in texts) and len(texts) > 8, path
    for e in root.iter("{http://www.w3.org/2000/svg}rect"):
        if e.get("width") == "100%": continue
        x, y, w, h = (float(e.get(k)) for k in ("x", "y", "width", "height"))
        assert x >= 0 and y >= 0 and w >= 0 and h >= 0 and x + w <= width + 1 and y + h <= height + 1, (path, e.attrib)
    print(path, " ".join(texts))
END
run python3 pictures.py pictures
expect_status 0
expect_out "pictures/heat-uvm.svg"
expect_out "resident, not accessed far-faults"
expect_out "Simulated time by memory manager"
run "$farfault" report run.json --svg only
expect_status 0
expect_err "run.json: holds no history, so only times.svg was written"
expect test "$(ls only)" = times.svg
run "$farfault" report run.ffr --svg run.json
expect_status 1
expect_err "run.json: is there, and is no folder"
run "$farfault" report run.ffr --svg no/folder
expect_status 1

# No history, no file, a broken one.
run "$farfault" timeline run.json
expect_status 2
expect_err "run.json: holds no history"
expect_no_out
run "$farfault" timeline no/such
expect_status 2
head -c 20000 run.ffr >cut.ffr
run "$farfault" timeline cut.ffr -o none.json
expect_status 2
expect_err "cut.ffr:"
expect test ! -e none.json
sed 's/"bins": [0-9]*/"bins": 999/' run.ffr >broken.ffr
run "$farfault" timeline broken.ffr
expect_status 2
expect_err 'broken.ffr: is damaged, or was changed'
unsealed run.ffr | sed 's/"bins": [0-9]*/"bins": 999/' >broken.ffr
run "$farfault" timeline broken.ffr
expect_status 2
expect_err 'broken.ffr: "bins" is not a number in range'
run "$farfault" timeline run.ffr -o no/folder/t.json
expect_status 1
expect_err "no/folder/t.json"
finish
