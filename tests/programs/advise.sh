#!/usr/bin/env bash
# farfault advise: what it refuses; programs of which the answer is known; that its numbers are those of the commands it prints;
# the same bytes twice; interruption. $3: the folder of the workloads.
source "$(dirname "$0")/common.sh"
workloads=$3

record() { # FILE PROGRAM...
  run "$farfault" record --machine gtx480 -o "$1" -- "$workloads/$2" "${@:3}"
  expect_status 0
}

run "$farfault" advise
expect_status 64
expect_err "which trace?"
run "$farfault" advise a.fft b.fft
expect_status 64
run "$farfault" advise ""
expect_status 64
run "$farfault" advise nowhere.fft
expect_status 2
expect_err "nowhere.fft"
echo "no trace" >text
run "$farfault" advise text
expect_status 2
run "$farfault" advise --help
expect_status 0
expect_out "farfault advise saxpy.fft --gpu-memory 8G --quick -o advice.md"

# One streaming kernel: each byte is used once, so to reach it over the link is better than to move it.
record pin.fft vectoradd 100000
run "$farfault" advise pin.fft --machine nonsense
expect_status 64
run "$farfault" advise pin.fft --now uvn
expect_status 64
expect_err "did you mean 'uvm'?"
run "$farfault" advise pin.fft --now copy,uvm
expect_status 64
expect_err "is not one manager"
run "$farfault" advise pin.fft --gpu-memory x
expect_status 64
run "$farfault" advise pin.fft -o nowhere/advice.md
expect_status 1
expect_no_out
run "$farfault" advise pin.fft -o pin.fft
expect_status 64
run "$farfault" advise pin.fft -o advice.md
expect_status 0
expect_no_err
expect cmp out advice.md
expect_out "# Advice for $workloads/vectoradd 100000 on gtx480"
expect_out "Now, with copy:"
expect_out "uvm with hints on several allocations:"
for id in 1 2 3; do expect grep -Eq "^### [0-9]+\. .*[ /]$id:pin" out; done
expect grep -Eq '^### [0-9]+\. Pin allocation [123] \(`[a-z_]+\.c:[0-9]+ cuMemAlloc #[123]`, 390.62 KiB\) in host memory' out
expect_out "Today's GPUs and drivers have copy, uvm and zero-copy; the others are models."
# Every command that it prints can be run, and gives the time that stands in the table above it.
command=$(grep -m1 '^    farfault sim' out)
eval "run \"\$farfault\" ${command#*farfault}"
expect_status 0
expect test -n "$command"
while read -r memory time; do
  expect grep -qF "$time" <(grep -E "^    $memory " advice.md)
done < <(awk 'NR > 2 && $3 ~ /^[mnu]?s$/ { print $1, $2, $3 }' out)
run "$farfault" advise pin.fft
expect cmp out advice.md
# The file has all columns, also where the terminal has not.
run python3 "$here/on_terminal.py" 70 "$farfault" advise pin.fft --quick -o narrow.md
expect_out "--wide shows all"
run "$farfault" advise pin.fft --quick
expect cmp out narrow.md

# The same as JSON, and with less work.
run "$farfault" advise pin.fft --quick --json -
expect_status 0
expect_out '"baseline": "copy"'
expect_out '"paged": "uvm"'
expect_out '"memory": "uvm+advise=3:pin"'
expect_out '(--quick)'
expect test "$(grep -c '"stage": "capacity"' out)" -lt 20

# Points that are read whole by every launch: they are to come at once; with managed memory and that hint alone its copies stay faster.
record prefetch.fft kmeans 16384 8 8 2
run "$farfault" advise prefetch.fft --quick --now uvm
expect_status 0
expect_out "Now, with uvm:"
expect grep -Eq '^### 1\. uvm with hints on several allocations: 1:prefetch' out
expect grep -Eq '^### [0-9]+\. Prefetch allocation 1 ' out
expect grep -q 'far-faults, which waited .* become 0\.' out
run "$farfault" advise prefetch.fft --quick
expect_status 0
expect grep -Eq '^466 us -> 393 us \(15\.7 % less\)\. .* That is 1\.08 times copy\.$' out

# Scattered reads of 6 MiB in blocks of 2 MiB: what was evicted is missed at once. Few of them: pinned, they are viable with less memory.
record scattered.fft stringmatch 60000 200 20
run "$farfault" advise scattered.fft --quick
expect_status 0
expect_out "Less memory than that is not viable with what can be had today"
expect_out "A driver that paged so would get further: with auto"
expect_out "- uvm with less than 75 % of the memory: there it takes"
expect test "$(grep -c '^- uvm with less than 75 %' out)" -eq 1
record few.fft stringmatch 60000 16 20
run "$farfault" advise few.fft --quick --baseline uvm --gpu-memory 5M # as it was spelled once
expect_err "--baseline is now --now"
expect_status 0
expect grep -Eq '^### [0-9]+\. Pin allocation 1 \(`gpu\.c:[0-9]+ cuMemAlloc #1`, 2\.97 MiB\) in host memory .* - 9[0-9]\.[0-9] % less time$' out
expect_out "some of it again and again"
expect_out "Less memory is viable"
expect_out "--gpu-memory 5M"

# What a kernel declares and does not touch, and what its launches would gain by declaring at all.
run "$farfault" advise prefetch.fft --quick --json -
expect grep -q '"kind": "segments"' out
expect_out "Its copies become the host's writes in place, and cost nothing."

run "$farfault" trace cut --block 1000000 -o idle.fft pin.fft # a launch whose blocks do nothing
expect_status 0
run "$farfault" advise idle.fft --quick
expect_status 0
for id in 1 2; do expect grep -Eq "^### [0-9]+\. Do not declare allocation $id .* for .vectoradd. - [0-9.]+ % less time" out; done
expect_out "A parameter of \`vectoradd\` points to it, and none of its launches (1) touches it."

# Copies that do not fit.
record large.fft vectoradd 500000
run "$farfault" advise large.fft --quick --gpu-memory 4M
expect_status 0
expect_out "copy cannot run here: with gpu.c:"
expect grep -q 'cuMemAlloc #3 the program has' out
expect_out "copy cannot run with this memory, so the program would have to use managed memory"
expect grep -Eq '^    copy +cannot run ' out

# Broken and cut traces.
head -c 3000 scattered.fft >cut.fft
run "$farfault" advise cut.fft
expect_status 2
expect_err "farfault trace cut --repair"
expect_no_out
size=$(stat -c %s scattered.fft)
cp scattered.fft broken.fft
printf '\377\377\377\377' | dd of=broken.fft bs=1 seek=$((size / 2)) conv=notrunc status=none
run "$farfault" advise broken.fft
expect_status 2
expect_no_out

# With sampling: how many launches were timed is said, and the printed commands have the option, too.
record repeats.fft hotspot 64 64 30
run "$farfault" advise repeats.fft --quick --sample on --json sampled.json
expect_status 0
expect_out "Times, and so gains, are estimated"
expect grep -q '^    farfault sim .* --sample on ' out
expect python3 - <<'END'
import json, re
sampling = json.load(open('sampled.json'))['sampling']
said = re.search(r'of the (\d+) launches of all simulations (\d+) were timed', open('out').read())
assert int(said[1]) == sampling['timed'] + sampling['estimated'] and int(said[2]) == sampling['timed'], (said, sampling)
assert sampling['estimated'] > sampling['timed'] > 0, sampling
END
cp out sampled.md
command=$(grep -m1 '^    farfault sim' out)
eval "run \"\$farfault\" ${command#*farfault} --json one.json"
expect grep -q '"estimated": [1-9]' one.json
while read -r memory time; do
  expect grep -qF "$time" <(grep -E "^    $memory " sampled.md)
done < <(awk 'NR > 2 && $3 ~ /^[mnu]?s$/ { print $1, $2, $3 }' out)
run "$farfault" advise pin.fft --quick --sample 2
expect_out "No launch repeats often enough"
# One long launch: it is timed, but not all of its blocks are.
record waves.fft vectoradd 400000 1
run "$farfault" advise waves.fft --machine gtx480 --set sm_count=2 --quick --sample on --json waves.json
expect_out "of the timed ones"
expect grep -q '"blocks": [1-9]' waves.json
run "$farfault" advise pin.fft --sample check
expect_status 64
expect_err "farfault sim --memory uvm --sample check"
run "$farfault" advise pin.fft --sample 40
expect_status 64

# Stopped: it says so, and writes no file.
record long.fft stringmatch 60000 2000 10
"$farfault" advise long.fft -o stopped.md >out 2>err </dev/null &
process=$!
shown="farfault advise, stopped"
sleep 0.5
kill -TERM $process
wait $process
status=$?
expect_status 143
expect_err "incomplete: "
expect test ! -e stopped.md

# A simulation of the managers that did not end: no advice at all.
"$farfault" advise long.fft -o stopped.md >out 2>err </dev/null &
process=$!
shown="farfault advise, its simulation killed"
for _ in {1..600}; do # the process that simulates is a child of the `farfault sim` that it starts
  child=$(pgrep -P "$(pgrep -P $process | head -1)" 2>/dev/null | head -1) && [[ -n $child ]] && break
  sleep 0.05
done
kill -KILL "$child"
wait $process
status=$?
expect_status 1
expect_no_out
expect_err "no advice, as not all managers were simulated to the end"
expect test ! -e stopped.md
finish
