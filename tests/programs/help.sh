#!/usr/bin/env bash
# Help and version: of the program and of every command, on stdout, with an example; and what is no command.
source "$(dirname "$0")/common.sh"

# The help in ./out on 80 columns: an option stands where options stand, with its text from the 30th column on, there or in the line below; the
# example is of a shell.
check_lines() {
  expect test "$(awk 'length($0) > 79' out)" = ""
  expect grep -qE -- '^  -\?, --help {17}print this help$' out
  sed '/^Example/,$d' out | sed -n '/^  \(-[^-],\|   \) --/,/-V, --version/p' >options
  expect test "$(grep -vE -- '^$|^ [A-Z].*:$|^ {29}[^ ]|^  (-[^-],|   ) --[^ ]+$|^  (-[^-],|   ) --[a-z0-9-]+[^ ]* +[^ ]' options)" = ""
  expect test "$(grep -E -- '^  (-[^-],|   ) --' options | grep -vE -- '^.{28} [^ ]|^ +(-., )?--[^ ]+$')" = ""
  sed -n '/^Example/,/^$/p' out | sed 1d >shell
  expect test -s shell
  expect test "$(grep -v '^  \|^$' shell)" = ""
  expect bash -n shell
}

run "$farfault" --help
expect_status 0
expect_no_err
expect_out "Example:"
expect test "$(awk 'length($0) > 79' out)" = ""
for group in Run Check Simulate Report Research Hardware; do expect grep -q "^$group.*:$" out; done
commands=$(sed -n 's/^  \([a-z]*\)  .*/\1/p' out)
for command in run record sim share trace import report reproduce list disasm; do expect grep -qw "$command" <<<"$commands"; done
for command in $commands; do
  for way in "$command --help" "$command -h" "$command -?" "help $command"; do
    # shellcheck disable=SC2086 # two words
    run "$farfault" $way
    expect_status 0
    expect_no_err
    expect_out "Usage: farfault $command"
    expect_out "Example:"
  done
  check_lines
  run "$farfault" "$command" --usage
  expect_status 0
  expect_out "[-?|--help]"
  expect test "$(awk 'length($0) > 79' out)" = ""
done
run "$farfault" offload profile --help
check_lines
# Every option that the manual names is in the help; the other way round docs/options.md has them all (programs/usage).
run "$farfault" run --help
for option in $(sed -n '/^## farfault run/,/^## /p' "$source/docs/usage.md" | grep -oE -- '`-(-[a-z-]+|[a-z])`' | tr -d '`' | sort -u); do
  expect grep -qE -- "(^|[ ,])$option\b" out
done
version=$(sed -n 's/^project(farfault VERSION \([0-9.]*\).*/\1/p' "$source/CMakeLists.txt")
run "$farfault" --version
expect_status 0
expect_out "farfault $version"
run "$farfault" run --version
expect_out "farfault $version"

run "$farfault"
expect_status 64
expect_no_out
expect_err "Usage: farfault COMMAND"
run "$farfault" rnu
expect_status 64
expect_no_out
expect_err "no command 'rnu': did you mean 'run'?"
run "$farfault" xyzzy
expect_status 64
expect_err "no command 'xyzzy'"
run "$farfault" ./saxpy
expect_status 64
expect_err "did you mean 'farfault run ./saxpy'?"
finish
