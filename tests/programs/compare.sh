#!/usr/bin/env bash
# farfault compare: runs, recordings and databases next to each other; what counts as a change, the exit status, what is refused.
source "$(dirname "$0")/common.sh"
workloads=$3
golden=$source/tests/unit/report/golden

common=(--memory "copy,uvm" --machine gtx480)
for n in a b; do
  run "$farfault" record -o $n.fft "$workloads/vectoradd" $([[ $n = a ]] && echo 20000 || echo 40000)
  expect_status 0
  run "$farfault" sim "${common[@]}" --json $n.json $n.fft
  expect_status 0
  run "$farfault" sim "${common[@]}" -o $n.ffr $n.fft
  expect_status 0
done

# ---- the same, and not ----
run "$farfault" compare a.json a.ffr
expect_status 0
expect_out "a.json (before), a.ffr (after): no change in"
run "$farfault" compare a.json b.json
expect_status 1
expect grep -qE '^uvm +h2d_bytes .* worse$' out
expect grep -qE '^copy +vectoradd +time ' out
expect grep -qE '^uvm +gpu\.c:[0-9]+ cuMemAlloc #1 +h2d_bytes ' out
expect_out "note: the programs differ"
cp out table
run "$farfault" compare --threshold 1000% a.json b.json
expect_status 0
run "$farfault" compare --worse b.json a.json # everything got better
expect_status 0
expect_out " 0 worse"
run "$farfault" compare --worse a.json b.json
expect_status 1
run "$farfault" compare a.json a.ffr b.json # any of them
expect_status 1
expect test "$(grep -c '(before)' out)" -eq 2
sed 's/"memory": "uvm"/"memory": "uvm2"/' a.json >other.json
run "$farfault" compare a.json other.json # what only one of them has is no changed number
expect_status 1
expect_out "no change in"
expect_out " rows with no number of both"
run "$farfault" compare --metric launches a.json b.json
expect_status 0

# ---- a program that was edited: its allocations stand in other lines ----
sed 's/gpu\.c:[0-9]*/gpu.c:7/' a.json >moved.json
expect grep -q 'gpu.c:7 cuMemAlloc #1' moved.json
run "$farfault" compare a.json moved.json
expect_status 0

# ---- recordings are simulated ----
run "$farfault" compare "${common[@]}" a.fft b.fft
expect_status 1
expect test "$(tail -n +3 out)" = "$(tail -n +3 table)"
run "$farfault" compare "${common[@]}" a.fft a.json
expect_status 0
run "$farfault" compare --memory nonsense a.fft a.json
expect_status 2
expect_err "nonsense"
expect_err "a.fft: the simulation ended with status 64"

# ---- databases ----
for n in a b; do
  printf 'trace: [x.fft]\nmachine: gtx480\nmemory: [copy, uvm]\nset: {fault_us: [10, 20]}\n' >study.yaml
  cp $n.fft x.fft
  run "$farfault" sweep study.yaml -o $n.db
  expect_status 0
done
run "$farfault" compare a.db a.db
expect_status 0
run "$farfault" compare a.db b.db
expect_status 1
expect grep -qE '^uvm fault_us=20 on gtx480: x.fft +h2d_bytes ' out
expect grep -qE '^copy( fault_us=[0-9]*)? on gtx480: x.fft +vectoradd +time ' out
sqlite3 b.db "UPDATE points SET state = 'refused', error = 'why' WHERE memory = 'copy'"
run "$farfault" compare --worse a.db b.db
expect_status 1
expect_out "could not run it after"

# ---- JSON ----
run "$farfault" compare a.json b.json --json -
expect_status 1
expect python3 -c 'import json
found = json.load(open("out"))
assert len(found) == 1 and found[0]["worse"] > 3 and found[0]["threshold"] == 0, found
change = found[0]["changes"][0]
assert change["level"] == "run" and change["after"] > change["before"] and change["verdict"] == "worse", change'
run "$farfault" compare a.json b.json --json changes.json
expect cmp out table
expect test -s changes.json
run "$farfault" compare a.json b.json --json /dev/full
expect_status 2
expect_err "/dev/full"

# ---- the page ----
if [[ -e ${farfault%/*}/../share/farfault/report.html ]]; then
  run "$farfault" compare a.json b.json --html page.html
  expect_status 1
  expect cmp out table
  expect grep -q '^<script type="application/json" id="data">{"kind":"comparison","file":"a.json",' page.html
  run "$farfault" compare a.json a.ffr --html page.html
  expect_status 0
  run "$farfault" compare a.json a.ffr --html no/such/page.html
  expect_status 2
  expect_err "no/such/page.html"
fi

# ---- what is refused ----
run "$farfault" compare a.json
expect_status 64
expect_err "which runs?"
run "$farfault" compare a.json nowhere.json
expect_status 2
expect_err "nowhere.json: cannot open"
run "$farfault" compare a.json "$source/machines/gtx480.yaml"
expect_status 2
expect_err "is a machine file"
head -c 300 a.json >cut.json
run "$farfault" compare a.json cut.json
expect_status 2
expect_err "cut.json:"
head -c 3000 a.db >cut.db
run "$farfault" compare a.db cut.db
expect_status 2
run "$farfault" compare --threshold 5x a.json b.json
expect_status 64
expect_err "--threshold: '5x' is no share"
run "$farfault" compare --metric fault a.json b.json
expect_status 64
expect_err "did you mean 'faults'?"
run "$farfault" compare "$golden/sample.json" "$golden/sample.json"
expect_status 0
finish
