#!/usr/bin/env bash
# tests/levels.tsv names tests that there are, with levels that scripts/test.sh knows. $3: the build folder.
source "$(dirname "$0")/common.sh"
levels=$source/tests/levels.tsv
run ctest --test-dir "$3" -N
expect_status 0
sed -n 's/^ *Test *#[0-9]*: //p' out | sort >there
grep -v '^#' "$levels" | cut -f1 | sort >named
expect test -s there
expect test -s named
expect test -z "$(comm -13 there named)"
expect test -z "$(uniq -d named)"
expect test -z "$(grep -v '^#' "$levels" | awk -F'\t' 'NF != 5 || $2 !~ /^(quick|test|all|-)$/ || $3 !~ /^(quick|test|all|-)$/')"
# What a command leaves out, a longer one runs.
for level in quick test all; do expect test -n "$(awk -F'\t' -v level=$level '!/^#/ && $2 == level' "$levels")"; done
run "$source/scripts/test.sh" "$work" sometimes
expect_status 64
expect_err "check-all"
finish
