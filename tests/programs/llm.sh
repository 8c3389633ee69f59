#!/usr/bin/env bash
# The workload llm under every manager, its own streaming against the link's bandwidth, and its study in the small size. $3: the folder of the
# workloads. FARFAULT_GOLDEN=write writes llm_small.csv.
source "$(dirname "$0")/common.sh"
workloads=$3

value() { # value FILE MANAGER COLUMN, from the CSV
  awk -F, -v manager="$2" -v name="$3" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) column = i } $1 == manager { print $column }' "$1"
}

# Its tokens are right under every manager, with keys and values in a pool and in pages of their own; every manager can run it.
managers=$("$farfault" list managers | awk 'NR > 1 { printf "%s%s", (NR > 2 ? "," : ""), $1 }')
for own_pages in 0 1; do
  run "$farfault" run --machine rtx3090 --memory "$managers" --gpu-memory 16M --csv all.csv "$workloads/llm" 2 2 100 3 2 18 3 2 $own_pages
  expect_status 0
  expect_out "PASSED"
  for manager in ${managers//,/ }; do expect test "$(value all.csv "$manager" complete)" = 1; done
done
# What pages: in half of the memory, too.
for manager in auto segments zero-copy replay; do
  run "$farfault" run --machine rtx3090 --memory $manager --gpu-memory 50% --csv half.csv "$workloads/llm" 2 2 100 3 2 18 3 2 1
  expect_status 0
  expect_out "PASSED"
  expect test "$(value half.csv $manager complete)" = 1
done
run "$farfault" run "$workloads/llm" 1 1 32 1 64 512 512
expect_status 2
expect_err "slots times pages"

# Streaming by hand: a layer of width 256 is 10 x 256 x 256 numbers of two bytes, three layers come in each step and one ahead of a step that
# never is; the embedding and the table of positions come once, a batch is less than 8 KiB. The link's bandwidth bounds the time.
run "$farfault" run --machine rtx3090 --memory copy --csv hand.csv "$workloads/llm" 3 4 256 3 2 12 4 0 0
expect_status 0
steps=$(sed -n 's/.*prompts, \([0-9]*\) steps.*/\1/p' out)
layer=$((10 * 256 * 256 * 2)) bytes=$(value hand.csv copy h2d_bytes)
rest=$((bytes - (3 * steps + 1) * layer - 256 * 256 * 2 - 1024 * 64 * 4))
expect test "$rest" -gt 0
expect test "$rest" -lt $((steps * 8192))
expect awk -v us="$(value hand.csv copy time_us)" -v bytes=$((3 * steps * layer)) 'BEGIN { bound = bytes / 25e3; exit !(us >= bound && us < 2 * bound) }'

# The study.
run "$source/scripts/llm-memory.sh" -b "$workloads/.." -s small -o small.csv
expect_status 0
expect_no_err
[[ ${FARFAULT_GOLDEN-} != write ]] || cp small.csv "$here/llm_small.csv"
if cmp -s small.csv "$here/llm_small.csv"; then pass; else
  diff -u "$here/llm_small.csv" small.csv | head -20
  wrong "the small study gives other numbers than llm_small.csv: FARFAULT_GOLDEN=write ctest -R programs/llm writes it"
fi
expect test "$(grep -c ',done,' small.csv)" -gt 20
run "$source/scripts/llm-memory.sh" -b "$workloads/.." -s huge
expect_status 64
run "$source/scripts/llm-memory.sh" -b "$workloads/.." -s small -o nowhere/x.csv
expect_status 1
finish
