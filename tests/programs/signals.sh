#!/usr/bin/env bash
# Ctrl-C and its like: one signal stops, with the results so far; two end at once; whatever the program, its threads or the
# simulations are at. $3: the folder of the workloads. The limits are watchdogs, far from what it takes.
source "$(dirname "$0")/common.sh"
workloads=$3
set -m # jobs get SIGINT, and process groups of their own

# worked PROCESS: the processor time, in hundredths of seconds, of its process group, with that of processes that have ended.
worked() { cat /proc/[0-9]*/stat 2>/dev/null | sed 's/^.*) //' | awk -v group="$1" '$3 == group { sum += $12 + $13 + $14 + $15 } END { print sum + 0 }'; }

# interrupt SIGNAL COUNT SECONDS COMMAND...: as an interrupt from outside, COUNT times, when the command has worked for SECONDS of processor time.
interrupt() {
  local name=$1 count=$2 seconds=$3 process watchdog i
  shift 3
  shown="$name x$count: $*"
  "$@" >out 2>err </dev/null &
  process=$!
  { sleep 90 && kill -KILL -- -$process; } 2>/dev/null &
  watchdog=$!
  for ((i = 0; i < 600 && $(worked $process) < 10#${seconds/./}; i++)); do sleep 0.05; done
  for ((i = 0; i < count; i++)); do
    [[ $i -eq 0 ]] || sleep 0.6
    kill -"$name" $process 2>/dev/null
  done
  wait $process
  status=$?
  kill -TERM -- -$watchdog 2>/dev/null
  wait $watchdog 2>/dev/null
}

# A kernel that runs for long; a host thread far ahead of the simulation; many small launches.
for count in 1 2; do
  interrupt INT $count 0.80 "$farfault" run --memory uvm,copy "$workloads/matmul" 2048
  expect_status 130
  expect_err "was ended by signal 2"
  [[ $count -gt 1 ]] || expect_err "(incomplete)" # a second signal may come before the table does
  interrupt TERM $count 0.80 "$farfault" run --memory uvm --machine gtx480 "$workloads/hotspot" 64 64 100000
  expect_status 143
  [[ $count -gt 1 ]] || expect_err "(incomplete)"
done

# Simulations of a recording, fed to several and read by one.
run "$farfault" record -o long.fft "$workloads/vectoradd" 4194304 8
expect_status 0
for count in 1 2; do
  for memory in uvm,demand,copy,segments uvm; do
    interrupt INT $count 0.40 "$farfault" sim long.fft --memory $memory --gpu-memory 50%
    expect_status 130
    [[ $count -gt 1 ]] || expect_out "(incomplete)"
  done
done

# Recording; what runs simulations in processes of their own.
interrupt INT 1 0.80 "$farfault" record -o broken.fft "$workloads/matmul" 2048
expect_status 130
expect test -s broken.fft
interrupt TERM 1 0.40 "$farfault" advise long.fft
expect_status 143
expect_no_out
interrupt INT 2 0.80 "$farfault" reproduce zheng2016
expect_status 130
printf 'trace: long.fft\nmachine: gtx480\nmemory: [uvm, demand]\ngpu-memory: [30%%, 50%%]\n' >long.yaml
interrupt TERM 1 0.80 "$farfault" sweep long.yaml
expect_status 143
expect_err "stopped: "
interrupt INT 1 0.40 "$farfault" share long.fft long.fft --machine gtx1080
expect_status 130
finish
