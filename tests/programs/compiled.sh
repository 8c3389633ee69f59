#!/usr/bin/env bash
# Compiled kernels tell the same as interpreted ones: every bundled workload records the same bytes in both modes, and what is
# simulated of a run is the same. $3: the folder of the workloads, $4: farfault-compile.
source "$(dirname "$0")/common.sh"
workloads=$3
export FARFAULT_COMPILER=$4 XDG_CACHE_HOME=$work/cache
mkdir "$XDG_CACHE_HOME"
images() { find "$XDG_CACHE_HOME" -type f | wc -l; }

recorded() { # recorded HOW: $words[] as HOW executes it, in HOW.fft
  run "$farfault" record --threads 1 --execute "$1" -o program.fft "$workloads/${words[0]}" "${words[@]:1}"
  expect_status 0
  mv program.fft "$1.fft"
  cp out "$1.out"
}

while IFS=$'\t' read -r name _ _ small _; do
  [[ $name != name ]] && one_in 3 || continue
  read -ra words <<<"$name $small"
  before=$(images)
  recorded interpret
  expect test "$(images)" -eq "$before"
  recorded compile
  [[ $name == hosttouch ]] || expect test "$(images)" -gt "$before"
  expect cmp interpret.fft compile.fft
  expect cmp interpret.out compile.out
done <"$source/workloads/workloads.tsv"

# From the same stream the same report; with the counters of the launches, which the program without a stream has, too.
simulated() { sed '/^ "host": {/,$d' "$1"; }
same_run() { # same_run PROGRAM ARGUMENTS...
  for how in interpret compile; do
    run "$farfault" run --threads 1 --execute $how --memory "$memory" --json $how.json "$workloads/$1" "${@:2}"
    expect_status 0
  done
  expect cmp <(simulated interpret.json) <(simulated compile.json)
  expect test "$(wc -l <compile.json)" -gt 20
}
memory=copy,demand,uvm
same_run matmul 64
same_run bfs 1000 8
same_run reduce 20000 16
memory=none
same_run matmul 64
same_run bfs 1000 8
same_run libor 300 10
finish
