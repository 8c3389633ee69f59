#!/usr/bin/env bash
# The table in the README is what its command prints: the same rows and columns, as many far-faults, times as many as copy's
# within 5 %. $3: the folder of the workloads.
source "$(dirname "$0")/common.sh"
workloads=$3

line=$(grep -m1 '^\$ build/bin/farfault run ' "$source/README.md")
command=${line#\$ build/bin/farfault }
mkdir build
ln -s "$workloads" build/workloads
sed -n '/^memory  /,/^```/p' "$source/README.md" | grep -v '^```' >promised
expect test "$(wc -l <promised)" -gt 4
# shellcheck disable=SC2086 # the command is words
run "$farfault" $command
expect_status 0
sed -n '/^memory  /,$p' err >printed
expect cmp <(head -1 promised | tr -s ' ') <(head -1 printed | tr -s ' ')
expect test "$(wc -l <printed)" -eq "$(wc -l <promised)"
while read -r manager time unit ratio rest; do
  [[ $manager == memory ]] && continue
  read -r now_time now_unit now_ratio now_rest < <(sed -n "s/^$manager  *//p" printed)
  expect test "$unit" = "$now_unit"
  expect awk -v a="$time" -v b="$now_time" 'BEGIN { exit !(a <= b * 1.05 && b <= a * 1.05) }'
  expect awk -v a="${ratio%x}" -v b="${now_ratio%x}" 'BEGIN { exit !(a <= b * 1.05 && b <= a * 1.05) }'
  # time unit ratio | kernels unit transfers unit far-faults
  expect test "$(awk '{ print $5 }' <<<"$rest")" = "$(awk '{ print $5 }' <<<"$now_rest")"
done <promised
finish
