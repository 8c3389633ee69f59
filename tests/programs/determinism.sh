#!/usr/bin/env bash
# The same run twice gives the same bytes, but for the host's section: by default also if blocks race (bfs: its threads look at each
# other's marks), for programs whose blocks do not race also on several threads. $3: the folder of the workloads, $4: of the fixtures.
source "$(dirname "$0")/common.sh"
workloads=$3 fixtures=$4

simulated() { sed -e '/^ "host": {/,$d' -e '/^ "notes": \[\]/d' -e '/^ "notes": \[$/,/^ \]/d' "$1"; } # a note says how many threads there were
check() { # check "THREADS..." PROGRAM ARGUMENTS...: THREADS 0 stands for the default
  local counts=$1 program=$2 name i=0
  name=$(basename "$program")
  shift 2
  for threads in $counts; do
    i=$((i + 1))
    local chosen=(--threads "$threads")
    [[ $threads -eq 0 ]] && chosen=()
    run "$farfault" run --machine gtx480 "${chosen[@]}" --json "$name.$i" "$program" "$@"
    expect_status 0
    cp out "$name.out.$i"
    [[ $i -eq 1 ]] && continue
    expect cmp <(simulated "$name.1") <(simulated "$name.$i")
    expect cmp "$name.out.1" "$name.out.$i"
  done
  expect test "$(grep -c '"error"' "$name.1")" -eq 0
  expect test "$(grep -c '"complete": true' "$name.1")" -eq 5
}
check "1 1 2 3" "$workloads/vectoradd" 20000
check "1 1 2 3" "$workloads/matmul" 64
check "0 0 0 0 0 0 1" "$workloads/bfs" 10000 8
check "0 0 0" "$fixtures/registered" # reads registered memory of malloc's

# Recordings are the same bytes, whatever executes the kernels.
for i in 1 2 3 4; do
  execute=auto
  [[ $i -ge 3 ]] && execute=interpret
  run "$farfault" record -o "bfs.$i.fft" --execute "$execute" "$workloads/bfs" 10000 8
  expect_status 0
  [[ $i -gt 1 ]] && expect cmp bfs.1.fft "bfs.$i.fft"
done

# More threads are said to leave that to the program; nothing is said where nothing is simulated.
run "$farfault" run --memory copy --threads 2 --json two.json "$workloads/vectoradd" 1000
expect_err "note: 2 threads executed kernels: if blocks race, numbers may differ from run to run"
expect grep -q '"2 threads executed kernels' two.json
run "$farfault" record -o two.fft --threads 2 "$workloads/vectoradd" 1000
expect_err "note: 2 threads executed kernels"
run "$farfault" sim two.fft --memory copy
expect_out "note: 2 threads executed kernels"
FARFAULT_THREADS=3 run "$farfault" run --memory copy --json three.json "$workloads/vectoradd" 1000
expect_err "note: 3 threads executed kernels"
run "$farfault" run --memory none --threads 2 "$workloads/vectoradd" 1000
expect test "$(grep -c 'threads executed' err)" -eq 0
run "$farfault" run --memory copy --json one.json "$workloads/vectoradd" 1000
expect test "$(grep -c 'threads executed' err)" -eq 0
expect grep -q '"threads": 1' one.json
finish
