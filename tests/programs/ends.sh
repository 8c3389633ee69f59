#!/usr/bin/env bash
# However a program ends, the numbers are those of all it did; its end is its own. $3: the folder of fixtures.
source "$(dirname "$0")/common.sh"
ln -s "$3/ends" ends
program=./ends

# What every report of it must show under the manager copy: 4 MiB to the GPU, simulated to the end.
expect_copied() { # expect_copied JSON COMPLETE
  expect test "$(grep -c '"h2d_bytes": 4194304' "$1")" -ge 1
  expect grep -q "^ \"complete\": $2," "$1"
  expect grep -q '^   "complete": true,' "$1"
}
run "$farfault" run --memory copy --json exit.json "$program" exit
expect_status 0
expect_copied exit.json true
expect_err "note: the program launched no kernel"
run "$farfault" run --memory copy --json quick.json "$program" quick
expect_status 3
expect_copied quick.json true
# The preloaded library knows of _exit; builds with a sanitizer have none.
ways=(at-once forked)
[[ -e $(dirname "$farfault")/../lib/farfault/libfarfault-preload.so ]] || ways=()
for way in "${ways[@]}"; do
  run "$farfault" run --memory copy --json $way.json "$program" $way
  expect_status 4
  expect_copied $way.json true
done
run "$farfault" run --memory copy,demand --json abort.json "$program" abort
expect_status 134
expect_err "was ended by signal 6 (Aborted)"
expect_err "incomplete: the program did not end by itself; the numbers are of what it did until then"
expect_copied abort.json false

# A GPU that cannot start: the process may not have the addresses that it needs (nor would a sanitizer). The program ends
# by itself all the same.
if [[ ${#ways[@]} -gt 0 ]]; then
  run bash -c 'ulimit -v 900000000 && exec "$@"' bash "$farfault" run --memory copy "$program" exit
  expect_err "the virtual GPU cannot start: cannot reserve 1 TiB"
  expect_err "note: the virtual GPU could not start: nothing ran on it"
  expect test "$(grep -c 'did not end by itself' err)" -eq 0
fi

# A signal from outside, and one that the program takes itself.
for way in wait handled; do
  : >out # no word of an earlier program
  "$farfault" run --memory copy --json $way.json "$program" $way >out 2>err &
  process=$!
  for _ in {1..200}; do grep -q ready out 2>/dev/null && break; sleep 0.05; done
  kill -TERM $process
  wait $process
  status=$?
  shown="farfault run ends $way, TERM"
  expect test -s $way.json
  [[ $way == wait ]] || break
  expect_status 143
  expect_copied wait.json false
done
expect_status 5
expect_out taken
[[ ${#ways[@]} -eq 0 ]] || expect_copied handled.json true

# One that nothing can look at: the file says what it has not got.
: >out
"$farfault" run --memory copy -o kill.ffr "$program" wait >out 2>err &
process=$!
for _ in {1..200}; do grep -q ready out 2>/dev/null && break; sleep 0.05; done
sleep 1 # a snapshot
kill -KILL "$(pgrep -P $process)"
wait $process
status=$?
shown="farfault run ends wait, KILL"
expect_status 137
expect_err "kill.ffr has no history of what happened when: the program ended before it was written"

# A program that becomes another one: both are reported.
run "$farfault" run --memory copy --json exec.json "$program" exec
expect_status 0
expect test "$(grep -c '^farfault: .*ends ex' err)" -eq 2
expect_copied exec.json.2 true

# What does not fit is said, once; so is a size that is not the machine's.
run "$farfault" run --memory copy --gpu-memory 8M "$program" room
expect_status 0
expect test "$(grep -c '^2$' out)" -eq 2
expect test "$(grep -c 'note: .*instead of' err)" -eq 1
expect_err "note: machine h200 with 8.00 MiB of memory instead of"
run "$farfault" run --memory none "$program" idle
expect_status 0
expect_err "no manager was asked for"
run "$farfault" run --memory copy "$program" idle
expect_err "note: the program launched no kernel"

# A disk that is full where the results go, or takes no further file: said, and the results take another way.
for inodes in 64 1; do
  if ulimit -c 0 && mkdir -p full && mount -t tmpfs -o size=4k,nr_inodes=$inodes none full 2>/dev/null; then
    head -c 4096 /dev/zero 2>/dev/null >full/filler
    TMPDIR=$work/full run "$farfault" run --memory copy --json full.json "$program" exit
    umount full
    expect_status 0
    expect_copied full.json true
    if [[ $inodes -gt 1 ]]; then expect_err "has no room for the results: they went through /"; else expect_err "cannot make a temporary folder: No space left on device; using /"; fi
    expect test "$(grep -c 'did not use the virtual GPU' err)" -eq 0
  fi
done

# Processes that launch nothing and copy nothing, as a framework's helpers: one line for all of them, if another did more.
run "$farfault" run --memory copy sh -c "$program idle; $program exit; $program idle"
expect_status 0
expect test "$(grep -c '^memory ' err)" -eq 1
expect_err "(2 more processes of the program opened the GPU and launched nothing; --verbose shows them)"
run "$farfault" run --memory copy --verbose sh -c "$program idle; $program exit; $program idle"
expect test "$(grep -c '^memory ' err)" -eq 3
run "$farfault" run --memory copy "$program" idle
expect test "$(grep -c '^memory ' err)" -eq 1
expect test "$(grep -c 'more process' err)" -eq 0

# It ends while another thread waits for a simulation, which is seconds behind, to say whether a launch needs records.
if [[ -z ${FARFAULT_FEWER-} ]]; then
  run timeout 300 "$farfault" run --machine v100 --memory copy --sample on "$program" asking
  expect_status 0
  expect_err " launches timed, "
fi

# A program that uses both APIs: the driver is initialised when the runtime is.
run "$farfault" run --memory none "$program" runtime
expect_status 0
expect_out "before: 3"
expect_out "after: 0, a context"
finish
