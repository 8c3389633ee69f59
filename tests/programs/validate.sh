#!/usr/bin/env bash
# farfault validate: what it refuses; broken tables; the quick rows within their limits, twice the same; pages; tables of one's own; an error
# that grows fails. $3: the folder of the workloads.
source "$(dirname "$0")/common.sh"
workloads=$3
unset FARFAULT_CHECK # other tests have these programs' kinds with checks; here many simulations are compared

run "$farfault" validate latency
expect_status 64
expect_err "'latency' is no option"
run "$farfault" validate --group latncy
expect_status 64
expect_err "no group 'latncy': did you mean 'latency'?"
run "$farfault" validate --machine gtx480
expect_status 64
expect_err "no machine with rows 'gtx480'"
run "$farfault" validate --group launches --machine v100
expect_status 64
expect_err "no row is of all that was asked for"
run "$farfault" validate --set fault_us
expect_status 64
expect_err "'fault_us' is not NAME=VALUE"
for jobs in 0 -1 x 1000000; do
  run "$farfault" validate --jobs=$jobs
  expect_status 64
done
run "$farfault" validate --quick --html nowhere/x.html
expect_status 1
expect_err "nowhere/x.html: cannot write there"
run "$farfault" validate --quick --html same -o same
expect_status 64
expect_no_out
run "$farfault" validate --limits=none.tsv
expect_status 2
expect_err "none.tsv"

# Lists run nothing.
run "$farfault" validate --list
expect_status 0
expect_no_err
for group in latency stream cache l2cache strides launches managed; do expect_out "$group"; done
expect test "$(awk 'length > 80' out | wc -l)" -eq 0
run "$farfault" validate --list -v --group latency --machine v100
expect_status 0
expect test "$(grep -c KiB out)" -ge 15

# Tables: broken ones say where; one's own are run, with a program by its path and the time of a kernel.
header=$(head -1 "$source/validation/latency.tsv")
table() { # table FILE PROGRAM QUANTITY UNIT SILICON ROLE
  printf '%s\nmine\ta row\t1\tmy GPU\tgtx480\t-\tcopy\t%s\t%s\t%s\t%s\t%s\tquick\tthis test\n' "$header" "${@:2:5}" >"$1"
}
table broken.tsv "chase 4" latency cycles fast held
run "$farfault" validate --table broken.tsv
expect_status 2
expect_err "broken.tsv:2:"
expect_err "'fast' is no number above 0"
run "$farfault" validate --table none.tsv
expect_status 2
table own.tsv "$workloads/vectoradd 10000" "time_ps of vectoradd" us 5 held
run "$farfault" validate --table own.tsv -v --json own.json
expect_status 0
expect_no_err
expect_out "a row"
expect python3 -c 'import json; d = json.load(open("own.json")); r = d["rows"][0]; assert r["ours"] > 0 and abs(r["ratio"] - r["ours"] / 5) < 1e-4 and d["groups"][0]["scored"] == 1'
table input.tsv "$workloads/vectoradd 10000" "time_ps of vectoradd" us 5 input # shown, not counted
run "$farfault" validate --table input.tsv
expect_status 0
expect_out "0 of 1"
table absent.tsv "chase 4" "latncy" cycles 5 held
run "$farfault" validate --table absent.tsv --json absent.json
expect_status 1
expect_err "gave no value of latncy in cycles"
expect_err "incomplete"
expect test ! -e absent.json
table fails.tsv "chase none" latency cycles 5 held
run "$farfault" validate --table fails.tsv
expect_status 1
expect_err "chase none on gtx480: failed"
table gone.tsv "no_such_program" latency cycles 5 held
run "$farfault" validate --table gone.tsv
expect_status 1
expect_err "no_such_program"

# Programs that are not bundled: their rows are run with a folder of them, and left out without.
sed 's#\(\tcopy\t\)[^\t]*/vectoradd#\1{programs}/vectoradd#' own.tsv >folder.tsv
expect grep -q '{programs}/vectoradd 10000' folder.tsv
run "$farfault" validate --table folder.tsv
expect_status 64
expect_err "1 row is left out: its program is not bundled (--programs FOLDER)"
run "$farfault" validate --table folder.tsv --programs none
expect_status 1
expect_err "none/vectoradd"
run "$farfault" validate --table folder.tsv --programs "$workloads" --json folder.json
expect_status 0
expect_no_err
expect python3 -c 'import json; d = json.load(open("folder.json")); assert d["rows"][0]["ours"] == json.load(open("own.json"))["rows"][0]["ours"] and d["goals"] == []'

# The quick rows are within their limits; the same bytes again; a value that makes it worse fails.
run env FARFAULT_PROGRESS_SECONDS=2 "$farfault" validate --quick --limits --json quick.json --html quick.html -o quick.md
expect_status 0
expect grep -qE '^farfault: validate: [0-9]+ of [0-9]+ runs, at .*left$' err
sed -i '/^farfault: validate: [0-9]* of /d' err
expect_no_err
cp out first
expect test "$(awk 'length > 80' out | wc -l)" -eq 0
expect_out "latency, V100 and GH200"
expect grep -qE '^GV100 kernels, cycles +0 of [0-9]+ .* not run$' out
expect grep -qE '^managed, first touch +1 .* (yes|no)$' out
expect grep -q '^## Goals$' quick.md
expect grep -q '<h2>Goals</h2>' quick.html
expect python3 -c '
import json
d = json.load(open("quick.json"))
assert len(d["goals"]) >= 10 and all(g["scored"] <= g["held"] for g in d["goals"])
assert all((g["met"] in ("yes", "no")) == (0 < g["scored"] == g["held"]) for g in d["goals"])
assert len(d["rows"]) >= 40 and all(r["ours"] > 0 for r in d["rows"] if r["role"] == "held")
assert all(0 < g["scored"] <= g["rows"] and g["ratio"] > 0 and g["error"] >= 0 for g in d["groups"])
'
expect test "$(grep -c '<svg' quick.html)" -eq "$(grep -c '</svg>' quick.html)"
expect test "$(grep -c '<svg' quick.html)" -ge 8
expect test "$(grep -c '<script' quick.html)" -eq 0
expect grep -q "farfault validate --quick -o quick.md" quick.md
run "$farfault" validate --quick --group strides --machine h200 --json again.json
expect_status 0
run "$farfault" validate --quick --group strides --machine h200 --jobs 1 --json third.json
expect cmp again.json third.json
expect python3 -c '
import json
rows = lambda name: {r["row"]: r["ours"] for r in json.load(open(name))["rows"] if r["group"] == "strides" and r["machine"] == "h200"}
assert rows("again.json") == rows("quick.json") and len(rows("again.json")) >= 4
'
run "$farfault" validate --quick --group copies --machine v100 --set link_copy_us=60 --limits
expect_status 1
expect_out "with link_copy_us=60"
expect_err "above its limit of"
sed 's/link_copy_us: {value: /&9/' "$source/machines/v100.yaml" >v100.yaml
run "$farfault" validate --quick --group copies --machine ./v100.yaml --limits
expect_status 1
expect_err "copies of V100-PCIE-16GB: its mean error is"
finish
