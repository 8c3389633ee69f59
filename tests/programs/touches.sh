#!/usr/bin/env bash
# What the host touched does not depend on the kernel moving pages to other frames meanwhile (memory compaction, which root can ask for).
source "$(dirname "$0")/common.sh"
hosttouch=$4/hosttouch
if [[ -w /proc/sys/vm/compact_memory ]]; then
  (while sleep 0.03; do echo 1 >/proc/sys/vm/compact_memory; done) &
  compaction=$!
fi
run "$farfault" run --machine gp100 --memory gp100 -- "$hosttouch" 3 2048 2048 1
expect_status 0
cp out first
for _ in $(seq 30); do
  "$farfault" run --machine gp100 --memory gp100 -- "$hosttouch" 3 2048 2048 1 >out 2>err
  cmp -s first out || differ=1
done
expect test -z "${differ:-}"
[[ -n ${compaction:-} ]] && kill "$compaction"
finish
