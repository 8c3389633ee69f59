#!/usr/bin/env bash
# A program recorded and simulated later gives what running it gives; a recording that is broken off says so, and is never
# misread. $3: the folder of fixtures, $4: of the workloads (may be absent).
source "$(dirname "$0")/common.sh"
ln -s "$3/ends" ends

# Without its last section (what the run cost the host) a report of `sim` is that of `run`, byte for byte.
same_report() { # same_report RUN.json SIM.json
  expect diff <(sed '/^ "host": {/,$d' "$1") <(sed '/^ "host": {/,$d' "$2")
  expect test "$(wc -l <"$1")" -gt 50
}

run "$farfault" record -o early.fft ./ends exit
expect_status 0
expect_err "early.fft:"
expect_no_out
run "$farfault" trace info early.fft
expect_status 0
expect_out "./ends exit"
expect_out "complete      yes"
run "$farfault" run --memory copy,demand --json run.json ./ends exit
run "$farfault" sim --memory copy,demand --json sim.json early.fft
expect_status 0
expect_out "demand"
same_report run.json sim.json

# However the program ends: what it had done is there, and is said to be a part.
run "$farfault" record -o abort.fft ./ends abort
expect_status 134
expect_err "this is what it had done"
run "$farfault" sim --memory copy --json abort.json abort.fft
expect_status 0
expect grep -q '"h2d_bytes": 4194304' abort.json
expect grep -q '^ "complete": false' abort.json
"$farfault" record -o killed.fft ./ends wait >out 2>err &
process=$!
for _ in {1..200}; do grep -q ready out 2>/dev/null && break; sleep 0.05; done
pkill -KILL -P $process
wait $process
status=$?
shown="farfault record ends wait, KILL"
expect_status 137
run "$farfault" trace check killed.fft
expect_status 0
expect test -z "$(ls | grep part)"
# A program that becomes another one: a trace each.
run "$farfault" record -o exec.fft ./ends exec
expect_status 0
expect test -s exec.fft.2

# A program that closes all files that it has not opened: of a recording that is not whole no success is told.
for command in "record -o closed.fft" "run --memory copy --record closed.fft"; do
  # shellcheck disable=SC2086 # words
  run "$farfault" $command ./ends closes-all
  expect_status 1
  expect_err "cannot be written: its descriptor was closed"
  expect_err "closed.fft: its end is missing, though the program ended well"
done

# Nothing to record, nowhere to record to.
run "$farfault" record -o none.fft /bin/true
expect_status 1
expect_err "did not use the virtual GPU"
expect test ! -e none.fft
run "$farfault" record -o /nowhere/at/all.fft ./ends exit
expect_status 1
expect_err "/nowhere/at/all.fft: cannot write there"
run "$farfault" record -o ./ends ./ends exit
expect_status 64
run "$farfault" record ./ends exit
expect_status 64
expect_err "-o FILE says where"

# Files that are none, are cut, are damaged.
echo something else >no.fft
for command in "sim no.fft" "trace info no.fft" "trace check no.fft" "trace cut -o x.fft no.fft" "sim absent.fft"; do
  # shellcheck disable=SC2086 # words
  run "$farfault" $command
  expect_status 2
  expect_no_out
  expect test ! -e x.fft
done
expect_err "absent.fft: cannot be read"
head -c $(($(stat -c %s early.fft) - 40)) early.fft >cut.fft
run "$farfault" trace check cut.fft
expect_status 2
expect_err "was cut off"
run "$farfault" trace dump cut.fft
expect_status 2
expect_err "was cut off"
run "$farfault" sim --memory copy cut.fft
expect_status 2
expect_out "the recording was cut off: it ends early"
expect_out "incomplete: the recording ends early"
expect_err "cut.fft: its recording was cut off"
run "$farfault" trace cut --repair -o whole.fft cut.fft
expect_status 0
run "$farfault" trace check whole.fft
expect_status 0
{ head -c 250 early.fft; printf XXXX; tail -c +255 early.fft; } >damaged.fft # within the only frame
run "$farfault" trace check damaged.fft
expect_status 2
expect_err "is damaged"
run "$farfault" sim --memory copy damaged.fft
expect_status 2
expect_err "is damaged"
run "$farfault" trace cut -o whole.fft damaged.fft
expect_status 2
expect_err "--repair"
# A changed byte in the first frame, in its header and in its contents: what the other frames have is whole.
for at in 98 118; do
  cp early.fft nameless.fft
  head -c $((at + 1)) early.fft | tail -c 1 | tr '\000-\377' '\001-\377\000' | dd of=nameless.fft bs=1 seek=$at conv=notrunc 2>/dev/null
  for command in info dump check; do
    run "$farfault" trace $command nameless.fft
    expect_status 2
    expect_err "nameless.fft: its first frame is damaged; lost: the program's name, and the machine of the recording"
  done
  run "$farfault" sim --memory copy nameless.fft
  expect_status 0
  expect_err "the recording is damaged where it says on which machine it was made: h200 is simulated (--machine chooses another)"
  run "$farfault" sim --memory copy --machine gtx480 nameless.fft
  expect_status 0
  expect_no_err
  rm -f whole.fft
  run "$farfault" trace cut -o whole.fft nameless.fft
  expect_status 2
  expect_err "--repair"
  expect test ! -e whole.fft
  run "$farfault" trace cut --repair -o whole.fft nameless.fft
  expect_status 0
  run "$farfault" trace check whole.fft
  expect_status 0
  run "$farfault" sim --memory copy whole.fft
  expect_status 0
  expect_err "the recording does not say on which machine it was made: h200 is simulated (--machine chooses another)"
  printf 'title: t\ntrace: nameless.fft\nmemory: copy\n' >nameless.yaml
  run "$farfault" sweep nameless.yaml
  expect_status 2
  expect_err "nameless.fft: is incomplete or damaged"
done
run "$farfault" sim --memory copy --json early.fft early.fft
expect_status 64
expect_err "early.fft: is the trace"
for wrong in "trace" "trace inof early.fft" "trace info" "trace cut early.fft" "trace dump --launch x early.fft" "sim" "sim a b"; do
  # shellcheck disable=SC2086 # words
  run "$farfault" $wrong
  expect_status 64
done

workloads=${4:-}
[[ -x $workloads/vectoradd ]] || finish

# Every kind of program: explicit copies, managed memory with the host's touches, many launches, irregular accesses.
while read -r name arguments; do
  # shellcheck disable=SC2086 # words
  run "$farfault" record --machine gtx480 --threads 1 -o app.fft "$workloads/$name" $arguments
  expect_status 0
  cp out recorded
  # shellcheck disable=SC2086 # words
  run "$farfault" run --machine gtx480 --threads 1 --memory copy,uvm,replay+evict=belady --gpu-memory 60% --json run.json --record both.fft "$workloads/$name" $arguments
  # hosttouch asks for times, which are not known while it is only recorded: what it prints, and may do, differs.
  [[ $name == hosttouch ]] || { expect diff recorded out; expect cmp app.fft both.fft; }
  run "$farfault" sim both.fft --memory copy,uvm,replay+evict=belady --gpu-memory 60% --json sim.json
  expect_status 0
  same_report run.json sim.json
done <<'END'
vectoradd 20000
bfs 4096 4
hosttouch 40
reduce 40000 64
spmv 2000
END

# The last one has offload candidates: marks in pairs, which parts keep.
run "$farfault" trace info -v app.fft
expect_status 0
expect_out "device"
expect_out "marks         yes"
run "$farfault" trace check app.fft
expect_status 0
run "$farfault" trace dump --records app.fft
expect grep -q 'enter pc [0-9]*, trips [0-9]' out
expect test "$(grep -c 'enter pc' out)" -eq "$(grep -c 'leave pc' out)"
# Of launches that are not there nothing is written.
for none in "--kernel nosuch" "--launch 99" "--launch 90-99 --kernel nosuch"; do
  # shellcheck disable=SC2086 # options are words
  run "$farfault" trace cut $none -o nosuch.fft app.fft
  expect_status 2
  expect_err "app.fft: has no launch"
  expect test ! -e nosuch.fft
  # shellcheck disable=SC2086
  run "$farfault" trace dump $none app.fft
  expect_status 2
  expect_no_out
  expect_err "app.fft: has no launch"
done
expect_err "app.fft: has no launch 90-99 of a kernel with 'nosuch' in its name: there "

run "$farfault" trace cut --block 0-3 -o blocks.fft app.fft
run "$farfault" trace check blocks.fft
expect_status 0
run "$farfault" trace dump --records blocks.fft
expect_out "enter pc"
run "$farfault" trace info blocks.fft
expect_out "marks         yes"
run "$farfault" trace info --json - app.fft
expect_status 0
expect python3 -c "import json; d = json.load(open('out')); assert d['whole'] and d['kernels'] and d['allocations'] and d['accesses'] > 100"
run "$farfault" trace dump --records --launch 0 --block 0-1 app.fft
expect_status 0
expect_out "load pc"
expect_out "exit"
run "$farfault" trace cut --launch 0 -o first.fft app.fft
expect_status 0
run "$farfault" trace info first.fft
expect_out "launches      1"
run "$farfault" sim --memory copy first.fft
expect_status 0

# What it says is as wide as the terminal.
if command -v python3 >/dev/null; then
  run python3 "$here/on_terminal.py" 60 "$farfault" record -o wide.fft "$workloads/vectoradd" 1000
  expect_status 0
  expect_out "operations"
  expect test "$(grep -cE '^.{61}' out)" -eq 0
fi
finish
