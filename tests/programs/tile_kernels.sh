#!/usr/bin/env bash
# Kernels in Tile IR, made at random, against plain Python: interpreted and as native code, with a machine's times, and under the checkers, which would
# see it if threads exchanged a tile's elements without a barrier in between.
source "$(dirname "$0")/common.sh"
export PYTHONDONTWRITEBYTECODE=1
tiles=$source/tests/tile/run_tiles.py
rounds=24 checked=6
[[ -z ${FARFAULT_FEWER-} ]] || rounds=10 checked=3
run "$farfault" run --memory none --execute interpret python3 "$tiles" --rounds $rounds
expect_status 0
expect_out ", 0 failed"
run "$farfault" run --memory none --execute auto --threads 2 python3 "$tiles" --seed 1000 --rounds $rounds
expect_status 0
expect_out ", 0 failed"
run "$farfault" run --memory copy,uvm --machine h100 python3 "$tiles" --seed 2000 --rounds 3
expect_status 0
expect_out ", 0 failed"
for checker in memcheck racecheck; do
  run "$farfault" $checker python3 "$tiles" --seed 3000 --rounds $checked
  expect_status 0
  expect_out ", 0 failed"
done
finish
