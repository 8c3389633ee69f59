#!/usr/bin/env bash
# farfault reproduce: what it refuses; the files; runs that are kept; an interruption. reproduce_all.sh has every paper.
source "$(dirname "$0")/common.sh"

run "$farfault" reproduce
expect_status 64
expect_err "which paper?"
run "$farfault" reproduce zheng2061
expect_status 64
expect_err "no paper 'zheng2061': did you mean 'zheng2016'?"
run "$farfault" reproduce xyzzy
expect_status 64
expect_err "there are zheng2016, zhang2019"
run "$farfault" reproduce zheng2016 wilt2017
expect_status 64
run "$farfault" reproduce zheng2016 --size huge
expect_status 64
expect_err "'huge' is neither small, normal nor full"
for jobs in 0 -1 x 1000000; do
  run "$farfault" reproduce zheng2016 --jobs=$jobs
  expect_status 64
done
run "$farfault" reproduce zheng2016 --csv nowhere/x.csv
expect_status 1
expect_err "nowhere/x.csv: cannot write there"
run "$farfault" reproduce zheng2016 --csv same --svg same
expect_status 64
expect_no_out

for wrong in "all --json x" "all --csv x" "all --svg x" "all wilt2017" "wilt2017 all"; do
  run "$farfault" reproduce $wrong
  expect_status 64
  expect_no_out
done
run "$farfault" reproduce wilt2017 --html nowhere/x.html
expect_status 1
expect_err "nowhere/x.html: cannot write there"

mkdir pictures
run "$farfault" reproduce wilt2017 --size small --jobs 2 --csv wilt2017.csv --svg pictures
expect_status 0
expect_no_err
cp out table
run "$farfault" reproduce hsieh2016 --size small --cells 0:20:1:x --recordings .
expect_status 64
expect_err "has no such shares"
run "$farfault" reproduce hsieh2016 --size small --cells 0:0:17:x --recordings nowhere
expect_status 1
expect_err "BP: "
expect test ! -e x

run "$farfault" reproduce jain2019 --size small --cells 0:0 --recordings .
expect_status 64
expect_err "'0:0' is not PROGRAM:FIRST:COUNT:FILE"
for cells in 62:0:1:x 0:50:1:x 0:49:2:x; do
  run "$farfault" reproduce jain2019 --size small --cells $cells --recordings .
  expect_status 64
  expect_err "has no such shares"
done
run "$farfault" reproduce wilt2017 --size small --cells 0:0:1:x --recordings .
expect_status 64
run "$farfault" reproduce jain2019 --size small --cells 0:25:1:x --recordings nowhere
expect_status 1
expect_err "MM under V100 alone: "
expect test ! -e x

# AlexNet's time is what its authors' clock measures: two of three images, without the weights' way to the GPU before.
run "$farfault" record --machine gtx1080 -o jain2019-small-AlexNet.fft "$3/alexnet" 67 16 3
expect_status 0
run "$farfault" reproduce jain2019 --size small --cells 6:9:1:measured --recordings .
expect_status 0
for range in "" --profile-range; do
  run "$farfault" sim $range --machine gtx1080 --json "simulated$range" jain2019-small-AlexNet.fft
  expect_status 0
done
measured=$(grep -m1 '"time_ps"' measured)
expect test "${measured//[^0-9]/}" = "$(grep -m1 '"time_ps"' simulated--profile-range | tr -dc 0-9)"
expect test "${measured//[^0-9]/}" != "$(grep -m1 '"time_ps"' simulated | tr -dc 0-9)"
expect test "$(grep -m1 '"launches"' measured | tr -dc 0-9)" = 28

# Once more, by one process at a time, and with the finished runs kept: the same bytes.
run "$farfault" reproduce wilt2017 --size small --csv again.csv --svg again.svg --keep kept
expect_status 0
expect cmp table out
expect cmp wilt2017.csv again.csv
expect cmp pictures/wilt2017.svg again.svg
sleep 1.1
ls -i kept/*.json >before
run "$farfault" reproduce wilt2017 --size small --csv kept.csv --json - --keep kept
expect_status 0
expect cmp before <(ls -i kept/*.json) # none was made again
expect_err "28 of 28 runs are in kept already"
expect cmp wilt2017.csv kept.csv
expect_out '"size": "small"'
echo broken >kept/wilt2017-small-0-KB-1.json
rm kept/wilt2017-small-4-KB-3.json
run "$farfault" reproduce wilt2017 --size small --csv kept.csv --keep kept
expect_status 0
expect_err "26 of 28 runs are in kept already"
expect cmp wilt2017.csv kept.csv

# Stopped: the table is over what there is, and no file is written.
"$farfault" reproduce zheng2016 --csv stopped.csv >out 2>err </dev/null &
process=$!
shown="farfault reproduce, stopped"
sleep 1
kill -TERM $process
wait $process
status=$?
expect_status 143
expect_err "incomplete: "
expect_err "no file was written"
expect test ! -e stopped.csv

# Killed: its children do not go on. What it leaves lies in a folder of its own.
mkdir left
TMPDIR=$PWD/left "$farfault" reproduce zheng2016 --csv killed.csv >/dev/null 2>&1 </dev/null &
process=$!
for ((i = 0; i < 100; i++)); do
  children=$(pgrep -P $process) && break
  sleep 0.1
done
shown="farfault reproduce, killed, with children $children"
expect test -n "$children"
kill -KILL $process
wait $process 2>/dev/null
for ((i = 0; i < 100; i++)); do
  ps -o stat= -p "${children//$'\n'/,}" | grep -qv Z || break # a zombie has ended
  sleep 0.1
done
expect test "$i" -lt 100
finish
