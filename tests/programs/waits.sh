#!/usr/bin/env bash
# No simulation waits for ever: a program of four launches of 16,384 blocks through sets of managers of which some keep launches back, run and
# recorded; each manager says the same alone, in parallel with others, and when the program runs. $3: the folder of the workloads.
source "$(dirname "$0")/common.sh"
workloads=$3
of() { grep "^$1," "$2" | cut -d, -f1-7,9-; } # all but the ratio to the first manager
limited() { run timeout -k 5 240 "$@"; } # a watchdog, far from what it takes

limited "$farfault" record -o four.fft "$workloads/vectoradd" 4194304 4
expect_status 0
limited "$farfault" sim four.fft --machine h200 --memory copy,segments --csv together.csv
expect_status 0
expect test "$(grep -c incomplete out)" -eq 0
limited "$farfault" sim four.fft --machine h200 --memory segments --csv alone.csv
expect_status 0
expect_out "segments"
expect cmp <(of segments together.csv) <(of segments alone.csv)
limited "$farfault" run --machine h200 --memory segments,copy,ideal --csv run.csv "$workloads/vectoradd" 4194304 4
expect_status 0
expect cmp <(of segments run.csv) <(of segments alone.csv)
expect cmp <(of copy run.csv) <(of copy together.csv)
finish
