#!/usr/bin/env bash
# `farfault report --html`: what is written where, what is refused, and how much of a large sweep a page holds. $3: the workloads' folder.
# What the page then does is tests/browser's.
source "$(dirname "$0")/common.sh"
sample=$source/tests/unit/report/golden/sample.json

run "$farfault" report "$sample" --html page.html
expect_status 0
expect_out "saxpy" # the table is printed all the same
expect_no_err
expect grep -q '^<script type="application/json" id="data">{"kind":"run","file":"sample.json","counters":\[\["time_ps","ps",' page.html
expect test "$(grep -c '"schema": 1' page.html)" -eq 1
cp page.html first.html
run "$farfault" report "$sample" --html page.html
expect cmp -s page.html first.html # the same again, in its place
expect test "$(ls | wc -l)" -eq 5  # tmp, out, err and the two pages
expect test "$(wc -c <page.html)" -lt 1000000
expect test "$(grep -cE '(src|href)="?https?:' page.html)" -eq 0
run "$farfault" report "$sample" --html no/such/page.html
expect_status 1
expect_err "no/such/page.html: cannot write there"
run "$farfault" report "$sample" --html ""
expect_status 64
expect_err "--html: the file's name is empty"
run "$farfault" report "$sample" --html /dev/stdout
expect_status 0
expect_out "</html>"

# ---- advice ----
item='{"title":"t","text":"x","now":"uvm","then":"auto","time_now_ps":2000,"time_then_ps":1000,"gain_percent":50.0,"commands":["c"]}'
advice() { printf '{"schema":1,"program":"p","machine":"m","baseline":"uvm","summary":"s","verdict":"v","advice":[%s],"settings":[1]}' "$1" >"$2"; }
advice "$item" advice.json
run "$farfault" report "$sample" --html page.html --advice advice.json
expect_status 0
expect grep -q '"advice":{"program":"p",.*"gain_percent":50.0,.*},"run":{' page.html
expect test "$(grep -c '"settings"' page.html)" -eq 0
advice "${item/50.0/\"x\"}" wrong.json
run "$farfault" report "$sample" --html never.html --advice wrong.json
expect_status 2
expect_err 'wrong.json: is no advice of `farfault advise --json`: "gain_percent" is not as it writes it'
advice "${item/\"c\"/3}" wrong.json
run "$farfault" report "$sample" --html never.html --advice wrong.json
expect_err '"commands" is not'
advice 5 wrong.json
run "$farfault" report "$sample" --html never.html --advice wrong.json
expect_err '"title" is not'
run "$farfault" report "$sample" --html never.html --advice "$sample"
expect_err '"program" is not'
printf '{"schema":1,' >wrong.json
run "$farfault" report "$sample" --html never.html --advice wrong.json
expect_err "wrong.json:1:"
run "$farfault" report "$sample" --html never.html --advice no.json
expect_err "no.json: cannot open"
expect test ! -e never.html
run "$farfault" report "$sample" --advice advice.json
expect_status 64
expect_err "--advice: it is for the page of a run (--html)"
mkdir alone
cp "$farfault" alone/farfault
run alone/farfault report "$sample" --html page2.html
expect_status 1
expect_err "--html: this farfault was built without the page"
expect test ! -e page2.html

if [[ -x $3/vectoradd ]]; then
  printf 'trace: a.fft\nmachine: gtx480\nmemory: [copy, ideal]\n' >a.yaml
  "$farfault" record -o a.fft -- "$3/vectoradd" 1000 >/dev/null 2>&1
  "$farfault" sweep a.yaml -o a.db >/dev/null 2>&1
  run "$farfault" report a.db --html a.html --csv a.csv
  expect_status 0
  expect_out "ideal"
  expect_no_err
  expect grep -q '{"kind":"results","file":"a.db",' a.html
  expect grep -q '"results":{"total": 2, "points": ' a.html
  expect test "$(wc -l <a.csv)" -eq 3
  python3 - <<'X'
import sqlite3
db = sqlite3.connect("a.db")
db.row_factory = sqlite3.Row
row = dict(db.execute("SELECT * FROM points WHERE point = 1").fetchone())
names = ", ".join('"%s"' % name for name in row)
for number in range(3, 5003):
    row["point"], row["key"], row["comparable"] = number, str(number), str(number)
    db.execute("INSERT INTO points(%s) VALUES(%s)" % (names, ", ".join("?" * len(row))), list(row.values()))
db.commit()
X
  run "$farfault" report a.db --html a.html
  expect_status 0
  expect_err "--html: the page holds the first 5000 of 5002 points"
  expect grep -q '"results":{"total": 5002, "points": ' a.html
  expect test "$(grep -o '"trace_checksum":' a.html | wc -l)" -eq 5000
  head -c 3000 a.db >cut.db
  run "$farfault" report cut.db --html cut.html
  expect_status 2
  expect_err "cut.db"
  expect test ! -e cut.html
fi
finish
