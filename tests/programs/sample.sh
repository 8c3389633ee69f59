#!/usr/bin/env bash
# Sampling (--sample): what is said of it, what is refused, and that nothing but times changes: every bundled workload in its small size and some that
# repeat launches, each with and without. $3: the folder of the workloads.
source "$(dirname "$0")/common.sh"
workloads=$3

value() { # value FILE MANAGER COLUMN, from the CSV
  awk -F, -v manager="$2" -v name="$3" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) column = i } $1 == manager { print $column }' "$1"
}
# paired FILE MANAGER COLUMN...: the same with sampling.
paired() {
  local file=$1 manager=$2 column
  shift 2
  for column; do
    if [[ -n $(value "$file" "$manager" "$column") && $(value "$file" "$manager" "$column") == $(value "$file" "$manager+sample=on" "$column") ]]; then pass; else
      wrong "$shown: $column is $(value "$file" "$manager" "$column") and, with sampling, $(value "$file" "$manager+sample=on" "$column")"
    fi
  done
}
moves="faults h2d_bytes d2h_bytes evicted_bytes remote_bytes launches blocks warp_instructions accesses lines sectors"

# One line says it; the JSON has it; without the option there is no word of it.
run "$farfault" run -m copy --sample on --json on.json "$workloads/hotspot" 100 80 40
expect_status 0
expect_err "copy: 7 launches timed, 33 estimated ("
expect grep -q '"sampling": {' on.json
expect grep -q '"estimated": 33,' on.json
run "$farfault" report on.json
expect_out "copy: 7 launches timed, 33 estimated ("
run "$farfault" run -m copy --json off.json "$workloads/hotspot" 100 80 40
expect test "$(grep -c 'sampling\|estimated' off.json err)" = $'off.json:0\nerr:0'
# Launches that are foreseen to be skipped have no records; while another manager is timed in full, all have them.
words() { sed -n 's/.*"stream_words": \([0-9]*\).*/\1/p' "$1"; }
expect test "$(words off.json)" -gt $(($(words on.json) * 3))
run "$farfault" run -m copy,copy+sample=on --sample none --json both.json "$workloads/hotspot" 100 80 40
expect test "$(words both.json)" = "$(words off.json)"
run "$farfault" run -m copy --sample 8 "$workloads/hotspot" 100 80 40
expect_err "copy: 12 launches timed, 28 estimated ("
run "$farfault" run -m copy,copy+sample=on --sample none "$workloads/hotspot" 100 80 40
expect_err "copy+sample=on: 7 launches timed, 33 estimated ("
expect_err "; beside all timed: time "

# The same twice; and from a recording.
run "$farfault" run -m copy --sample on --json twice.json "$workloads/hotspot" 100 80 40
expect test "$(sed '/"host"/,$d' on.json)" = "$(sed '/"host"/,$d' twice.json)"
run "$farfault" record -o hotspot.fft "$workloads/hotspot" 100 80 40
run "$farfault" sim -m copy --sample on --json sim.json hotspot.fft
expect test "$(sed '1,/"runs"/d; /"host"/,$d; /"machine"/d' on.json)" = "$(sed '1,/"runs"/d; /"host"/,$d; /"machine"/d' sim.json)"

# A recording with footprints: what is left out is not read, and nothing else is another.
for job in "hotspot 100 80 40" "srad 70 45 20" "kmeans 1000 5 6 20 0" "spmv 1000 16 40" "llm 2 2 100 3 2 18 3 12 0" "bfs 2000 8 0" "cfd 40 30 20"; do
  # shellcheck disable=SC2086 # the arguments are words
  run "$farfault" record --machine v100 -o plain.fft "$workloads/"$job
  run "$farfault" trace cut --footprints -o feet.fft plain.fft
  expect_status 0
  run "$farfault" trace check feet.fft
  expect_status 0
  for manager in copy demand uvm partial-multi; do
    for sample in on none; do
      run "$farfault" sim --machine v100 -m $manager --sample $sample --json plain.json plain.fft
      run "$farfault" sim --machine v100 -m $manager --sample $sample --json feet.json feet.fft
      expect_status 0
      expect test "$(sed '/"host"/,$d' plain.json)" = "$(sed '/"host"/,$d' feet.json)"
    done
  done
done
# The waves of a long launch, 640 blocks each.
run "$farfault" record --machine v100 -o plain.fft "$workloads/vectoradd" 4000000 1
run "$farfault" trace cut --footprints -o feet.fft plain.fft
run "$farfault" sim --machine v100 -m ideal --sample on --json plain.json plain.fft
expect_out " blocks of timed ones ("
run "$farfault" sim --machine v100 -m ideal --sample on --json feet.json feet.fft
expect test "$(sed '/"host"/,$d' plain.json)" = "$(sed '/"host"/,$d' feet.json)"
run "$farfault" sim --machine v100 -m copy,uvm --sample on --csv plain.csv plain.fft
run "$farfault" sim --machine v100 -m copy,uvm --sample on --csv feet.csv feet.fft
expect cmp plain.csv feet.csv
run "$farfault" trace cut -o again.fft feet.fft
expect cmp again.fft feet.fft

# What is refused.
for wrong in 1 17 yes 3x; do
  run "$farfault" run --sample $wrong "$workloads/vectoradd" 100 1
  expect_status 64
  expect_err "--sample: '$wrong' is neither none, nor on, nor a number of launches from 2 to 16"
done
run "$farfault" run -m copy+sample=check "$workloads/vectoradd" 100 1
expect_status 64
run "$farfault" run -m copy+sample=on --sample check "$workloads/vectoradd" 100 1
expect_status 64
expect_err "says itself how it samples"
run "$farfault" run -m oracle --sample on "$workloads/vectoradd" 100 1
expect_err "needs every launch timed"
expect test "$status" != 0
# Before the program begins.
for wrong in "--lines" "--profile-range" "--devices 2" "--devices 2 -m copy,uvm+sample=3 --sample none"; do
  # shellcheck disable=SC2086
  run "$farfault" run --sample on $wrong sh -c "echo begun >begun"
  expect_err "farfault: sample: "
  expect_err "needs every launch timed"
  expect test "$status" != 0
  expect test ! -e begun
done
run "$farfault" run -m copy+sample=none --sample on --lines "$workloads/vectoradd" 100 1
expect_status 0

# Nothing but times changes.
while IFS=$'\t' read -r name _ _ small _; do
  [[ $name != name ]] || continue
  # shellcheck disable=SC2086 # the arguments are words
  run "$farfault" run --machine v100 -m copy,demand,uvm --sample check --csv pairs.csv "$workloads/$name" $small
  expect_status 0
  for manager in copy demand uvm; do
    # shellcheck disable=SC2086
    paired pairs.csv $manager $moves
  done
done <"$source/workloads/workloads.tsv"
for job in "hotspot 100 80 60" "srad 70 45 20" "kmeans 1000 5 6 20 0" "cfd 40 30 20" "spmv 1000 16 40" "llm 2 2 100 3 2 18 3 12 0"; do
  # shellcheck disable=SC2086
  run "$farfault" run --machine v100 -m copy,demand,uvm,ideal --sample check --csv pairs.csv "$workloads/"$job
  expect_status 0
  for manager in copy demand uvm ideal; do
    # shellcheck disable=SC2086
    paired pairs.csv $manager $moves
    expect awk -v a="$(value pairs.csv $manager time_us)" -v b="$(value pairs.csv "$manager+sample=on" time_us)" 'BEGIN { exit !(a > 0 && b / a < 1.03 && a / b < 1.03) }'
  done
  expect test "$(grep -c ' 0 estimated' err)" = 0
done

# In too little memory, too: nothing is skipped while something may have to go.
run "$farfault" run --machine gtx480 -m demand,uvm,segments --gpu-memory 80% --sample check --csv pairs.csv "$workloads/kmeans" 8192 8 8 10 0
for manager in demand uvm segments; do
  # shellcheck disable=SC2086
  paired pairs.csv $manager $moves
done
finish
