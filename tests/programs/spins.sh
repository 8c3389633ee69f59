#!/usr/bin/env bash
# Nothing hangs: kernels that wait for another block, another kernel, a copy or the host, in every form, end however they
# are executed; one that waits for ever is told of. $3: the folder of fixtures.
source "$(dirname "$0")/common.sh"
export XDG_CACHE_HOME=$work/cache
mkdir "$XDG_CACHE_HOME"
ways=("--memory none --threads 1 --execute interpret" "--memory none --threads 2 --execute compile" "--memory copy,demand"
  "--memory uvm --execute compile" "--memory none --threads 3")
for scene in grid streams host managed copy; do
  for form in acquire volatile cas sleep plain one all; do
    for way in "${ways[@]}"; do
      one_in 3 || continue
      read -ra words <<<"$way"
      run timeout 60 "$farfault" run "${words[@]}" "$3/spins" $scene $form
      expect_status 0
      expect_out right
    done
  done
done

# What will not come: said once, after ten seconds.
run timeout 11.5 "$farfault" run --memory none "$3/spins" never all
expect_status 124
expect test "$(grep -c 'a block has been waiting for 10 s for memory that it reads to change' err)" -eq 1
expect_err "in kernel follow, block ("
finish
