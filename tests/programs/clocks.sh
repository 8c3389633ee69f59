#!/usr/bin/env bash
# --virtual-time: what a program measures by the clocks of the C library is what was simulated, and its own processor time. $3: the folder of fixtures.
source "$(dirname "$0")/common.sh"
ln -s "$3/clocks" clocks
virtual() { run timeout 60 "$farfault" run --machine gtx480 --virtual-time "$@"; }
# between LOW VALUE HIGH, whole numbers
between() { if [[ $2 -ge $1 && $2 -lt $3 ]]; then pass; else wrong "$shown: $2 is not from $1 to $3"; fi; }
own=2000000 # nanoseconds that the program and what calls cost at most take; the machine may be slow

# Copies and kernels take what the table says, on each run, and cudaEventElapsedTime says the same.
for i in 1 2 3; do
  virtual --memory copy,demand --json times.json ./clocks times
  expect_status 0
  expect_err "note: the program's clocks showed its processor time and the simulated time of copy"
  read -r copy day_copy kernel day_kernel event _ <out
  transfer=$(sed -n 's/^ *"transfer_ps": \([0-9]*\)...,/\1/p' times.json | head -1)
  between 1000000 "$transfer" 2000000
  between "$transfer" "$copy" $((transfer + own))
  between $((transfer - 1000)) "$day_copy" $((transfer + own))
  between "$event" "$kernel" $((event + own))
  between $((event - 1000)) "$day_kernel" $((event + own))
  between 2000000 "$event" 4000000
done

# The first manager answers; under demand paging the copy takes nothing.
virtual --memory demand,copy ./clocks times
expect_err "the simulated time of demand"
read -r copy _ <out
between 0 "$copy" 900000

# Without managers, and while recording, there is a rough guess, which is said.
virtual --memory none ./clocks times
expect_status 0
expect_err "a rough guess of the GPU's"
run timeout 60 "$farfault" record --virtual-time -o times.fft ./clocks times
expect_status 0
expect_err "a rough guess of the GPU's"

# Loops that look until their time has come end, computing or sleeping.
virtual --memory copy ./clocks until
expect_status 0
read -r computing sleeping <out
between 2 "$computing" 1000000000
between 9 "$sleeping" 12

# Time never falls, whichever thread asks; a thread's time is there when it was joined; a child's clock goes on.
virtual --memory copy ./clocks threads
expect_status 0
virtual --memory copy ./clocks fork
expect_status 0

# Each way to sleep takes what was asked for, of the host's time, too.
from=$(date +%s%N)
virtual --memory copy ./clocks sleeps
between 100000000 $(($(date +%s%N) - from)) 60000000000
read -r -a slept <out
expect test "${#slept[@]}" -eq 5
for span in "${slept[@]}"; do between 20000000 "$span" $((20000000 + own)); done

virtual --memory copy ./clocks limits
expect_status 0

# A kernel that waits for the program gives way by the host's time, which does not stand still.
virtual --memory copy,demand ./clocks waits
expect_status 0
expect_out "answered"

# Off unless asked for.
run timeout 60 "$farfault" run --memory copy --machine gtx480 env
expect test "$(grep -c farfault-clock out)" -eq 0
run timeout 60 "$farfault" run --memory copy --machine gtx480 ./clocks times
expect test "$(grep -c "clocks showed" err)" -eq 0
virtual --memory copy env
expect_out "libfarfault-clock.so"
finish
