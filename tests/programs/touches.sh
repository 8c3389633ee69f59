#!/usr/bin/env bash
# What the host touched is the same in every run, whatever the kernel does with the pages meanwhile.
source "$(dirname "$0")/common.sh"
hosttouch=$4/hosttouch
run "$farfault" run --machine gp100 --memory gp100 -- "$hosttouch" 3 2048 2048 1
expect_status 0
cp out first
for _ in $(seq 8); do
  "$farfault" run --machine gp100 --memory gp100 -- "$hosttouch" 3 2048 2048 1 >out 2>err
  cmp -s first out || differ=1
done
expect test -z "${differ:-}"
finish
