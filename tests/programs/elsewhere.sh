#!/usr/bin/env bash
# A process in which something lies where the virtual GPU's memory would be: its memory is elsewhere, the program computes the same, and the
# recording and what is simulated have the same bytes. $3: the folder of fixtures, $4: the workloads, $5: is the build one with a sanitizer?
source "$(dirname "$0")/common.sh"
program=$3/elsewhere
library=$3/libtaken.so
workloads=$4
first=208000001000
# A page in each of the places that are tried, so that the host has to find one.
places=(200000000000 28fffffff000 300000001000 380000000000 400000000000 480000000000 600000000000 180000000000 680000000000)

simulated() { sed '/^ "host": {/,$d' "$1" | grep -v '"command"'; }

# A program that maps it itself, wherever that is, and however many.
run "$farfault" record --threads 1 -o plain.fft "$program"
expect_status 0
expect_out good
run "$farfault" record --threads 1 -o again.fft "$program"
expect cmp plain.fft again.fft
several=("$first" "20fffffff000" "$first 280000000000")
[[ $5 == 1 ]] || several+=("${places[*]}") # in some of these places lies a sanitizer's own memory
for taken in "${several[@]}"; do
  # shellcheck disable=SC2086 # the addresses are words
  run "$farfault" record --threads 1 -o moved.fft "$program" $taken
  expect_status 0
  expect_out good
  run "$farfault" trace dump --records plain.fft # the command lines differ, which the files have too
  cp out plain.dump
  run "$farfault" trace dump --records moved.fft
  expect test "$(wc -l <out)" -gt 1000
  expect cmp plain.dump out
done

# What a library has mapped before the program begins: the command line is the same, and so are all bytes.
if [[ ! $5 == 1 ]]; then # else it would have to come behind the sanitizer's
  all=$(IFS=,; echo "${places[*]}")
  record() { run env LD_PRELOAD="$library" TAKEN="$1" "$farfault" record --threads 1 -o "$2" "${@:3}"; }
  for command in "$program" "$workloads/vectoradd 10000 2" "$workloads/hosttouch 3 0 16 1" "$workloads/spmv 1000 16" "$3/textures" "$3/mapping"; do
    # shellcheck disable=SC2086 # the command's words
    record "" plain.fft $command
    expect_status 0
    for taken in $first "$all"; do
      # shellcheck disable=SC2086
      record "$taken" moved.fft $command
      expect_status 0
      expect cmp plain.fft moved.fft
    done
  done
  for taken in "" $first; do
    run env LD_PRELOAD="$library" TAKEN=$taken "$farfault" run --threads 1 --memory copy,uvm,replay --json "json$taken" "$program"
    expect_status 0
    expect_out good
  done
  expect cmp <(simulated json) <(simulated json$first)
  run env LD_PRELOAD="$library" TAKEN=$first "$farfault" memcheck "$program" # its bits lie by offset, too
  expect_status 0
  expect_err "ERROR SUMMARY: 0 errors"
fi

# Where there are no addresses at all, that is said.
if [[ ! $5 == 1 ]]; then
  run bash -c 'ulimit -v 500000000; exec "$@"' - "$farfault" run --memory none "$program"
  expect_err "cannot reserve 1 TiB of addresses"
fi
finish
