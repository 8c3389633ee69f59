#!/usr/bin/env bash
# The layering test finds what it looks for: a forbidden include, an unknown folder, a cycle.
set -uo pipefail
layers=$1/tests/programs/layers.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/src/{low,high,other}
printf 'low:\nhigh: low\n' >"$work/src/layers.txt"
rmdir "$work/src/other"
for i in $(seq 60); do echo '#include "low/x.h"' >"$work/src/high/$i.c"; done
passed=0 failed=0
expect() { # expect TEXT|"" : with a text the test must fail and say it
  if [[ -z $1 ]]; then "$layers" "$work" >"$work/out" 2>&1; else ! "$layers" "$work" >"$work/out" 2>&1 && grep -q "$1" "$work/out"; fi
  if [[ $? -eq 0 ]]; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "wrong: '$1'"; cat "$work/out"; fi
}
expect ""
echo '#  include "high/y.h"' >"$work/src/low/a.h"
expect "src/low/a.h:1: low must not include high/"
rm "$work/src/low/a.h"
mkdir "$work/src/other"
expect "src/other is not in"
rmdir "$work/src/other"
printf 'low: high\nhigh: low\n' >"$work/src/layers.txt"
expect "has a cycle"
echo "$passed passed, $failed failed"
[[ $failed -eq 0 ]]
