#!/usr/bin/env bash
# A file that another command takes is refused with that command's name: each command with each kind of file. $3: the folder of the workloads.
source "$(dirname "$0")/common.sh"
workloads=$3

"$farfault" run -o app.ffr --record app.fft --memory copy --machine gtx480 "$workloads/vectoradd" 1000 >out 2>err || wrong "no run was made"
printf 'trace: app.fft\nmachine: gtx480\nmemory: copy\n' >study.yaml
"$farfault" sweep study.yaml -o study.db >out 2>err || wrong "no database was made"
"$farfault" timeline app.ffr -o timeline.json || wrong "no timeline was made"
cp "$source/machines/v100.yaml" machine.yaml
printf '// a comment\n.version 6.0\n.target sm_50\n.address_size 64\n.visible .entry nothing() { ret; }\n' >kernel.ptx
printf '<!DOCTYPE html>\n<html></html>\n' >page.html
printf 'MemcpyHtoD,0x7f0000000000,4096\nkernel-1.traceg\n' >kernelslist.g
cp "$workloads/vectoradd" program
declare -A what=([app.fft]="a trace of a recorded program" [app.ffr]="a saved run" [study.yaml]="a study" [study.db]="the database of a sweep"
  [timeline.json]="a timeline" [machine.yaml]="a machine file" [kernel.ptx]="PTX text" [page.html]="a page of a report" [kernelslist.g]="an Accel-Sim list of kernels"
  [program]="a program or a library")
declare -A use=([app.fft]="farfault sim app.fft" [app.ffr]="farfault report app.ffr" [study.yaml]="farfault sweep study.yaml" [study.db]="farfault results study.db"
  [timeline.json]="ui.perfetto.dev" [machine.yaml]="--machine machine.yaml" [kernel.ptx]="farfault disasm kernel.ptx" [page.html]="browser"
  [kernelslist.g]="farfault import accelsim kernelslist.g" [program]="farfault disasm program")

tried=0
mix() { # mix "FILES THAT IT TAKES" COMMAND...: all others are refused
  local file taken=$1
  shift
  for file in "${!what[@]}"; do
    [[ " $taken " == *" $file "* ]] && continue
    run "$farfault" "$@" "$file"
    [[ $1 == run ]] || expect_status 2
    expect_err "$file: is ${what[$file]}"
    expect_err "${use[$file]}"
    expect test "$(grep -c '' err)" -eq 1
    tried=$((tried + 1))
  done
}
for command in sim advise ranges share "trace info" "trace check" "offload profile"; do
  # shellcheck disable=SC2086 # words
  mix app.fft $command
done
mix "app.ffr study.db" report
mix "app.fft app.ffr study.db" compare app.ffr
mix app.ffr timeline
mix study.db results
mix study.yaml sweep
mix "kernel.ptx program" disasm
mix "kernel.ptx program" rewrite --sm-affinity
mix "kernel.ptx program app.fft" offload analyze
mix kernelslist.g import accelsim -o out.fft
mix program run
expect test "$tried" -gt 110
run "$farfault" sim app.fft --machine ./app.ffr
expect_status 2
expect_err "app.ffr: is a saved run, no machine file"
expect test ! -e out.fft
# What is taken is taken, and a file of no known kind is the reader's.
for command in "sim app.fft" "report app.ffr" "report study.db" "results study.db" "timeline app.ffr" "disasm kernel.ptx" "sim app.fft --machine ./machine.yaml"; do
  # shellcheck disable=SC2086 # words
  run "$farfault" $command
  expect_status 0
done
echo "some text" >text
run "$farfault" sim text
expect_status 2
expect_err "text: no trace"
run "$farfault" report text
expect_status 2
expect_err "not JSON"
finish
