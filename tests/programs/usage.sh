#!/usr/bin/env bash
# docs/options.md is what `farfault help --markdown` prints, with a section for every command; docs/usage.md does not say the same options a second time.
source "$(dirname "$0")/common.sh"

run "$farfault" help --markdown
expect_status 0
expect_no_err
cp out options.md
[[ ${FARFAULT_GOLDEN-} != write ]] || cp options.md "$source/docs/options.md"
if cmp -s options.md "$source/docs/options.md"; then pass; else
  diff -u "$source/docs/options.md" options.md | head -20
  wrong "docs/options.md differs from the help texts: FARFAULT_GOLDEN=write ctest -R programs/usage writes it"
fi
run "$farfault" --help
commands=$(sed -n 's/^  \([a-z]*\)  .*/\1/p' out)
expect test -n "$commands"
for command in $commands; do
  sed -n "/^## farfault $command\$/,/^## /p" options.md >section
  expect test -s section
  run "$farfault" help "$command"
  for option in $(grep -oE -- '^ +(-[a-zA-Z], )?--[a-z][a-z0-9-]+' out | grep -oE -- "--[a-z0-9-]*[a-z0-9]" | grep -vxE -- '--(help|usage|version)'); do
    expect grep -qE -- "^\| .*\`$option[\`=[]" section
  done
done
# Only the options that several commands share are a table in the manual (programs/options checks that one).
sed '/^### Options are one language/,/^## /d' "$source/docs/usage.md" | grep -n '^| `-' >twice
expect test ! -s twice
finish
