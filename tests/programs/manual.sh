#!/usr/bin/env bash
# Manual pages: one of the program and of every command, the same each time, without errors for mandoc and for man, with what --help has.
source "$(dirname "$0")/common.sh"

check() { # check NAME FILE
  if command -v mandoc >/dev/null; then
    run mandoc -T lint -W warning "$2"
    grep -v 'missing date, using ""' out >rest # a date would make every build another one
    if [[ -s rest ]]; then wrong "$1: $(cat rest)"; else pass; fi
  fi
  if command -v man >/dev/null && man --version >/dev/null 2>&1; then
    LC_ALL=C.UTF-8 MANWIDTH=100 run man --warnings -l "$2"
    expect_status 0
    expect_no_err
  fi
}
command -v mandoc >/dev/null || echo "mandoc is not here: the pages are not checked by it"

run "$farfault" help --man
expect_status 0
expect_no_err
cp out farfault.1
expect_out '.TH FARFAULT 1 "" "farfault '
check farfault farfault.1
run "$farfault" --help
commands=$(sed -n 's/^  \([a-z]*\)  .*/\1/p' out)
expect test -n "$commands"
for command in $commands; do
  expect grep -qF "farfault\\-$command" farfault.1
  run "$farfault" help --man "$command"
  expect_status 0
  expect_no_err
  cp out "$command.1"
  run "$farfault" help --man "$command"
  expect cmp -s out "$command.1"
  check "$command" "$command.1"
  for section in NAME SYNOPSIS DESCRIPTION OPTIONS EXAMPLES "SEE ALSO"; do expect grep -qx "\.SH $section" "$command.1"; done
  run "$farfault" "$command" --help
  for option in $(grep -oE -- '--[a-z][a-z0-9-]+' out | sort -u); do expect grep -qF -- "${option//-/\\-}" "$command.1"; done
  command -v mandoc >/dev/null || continue
  # Each word of the help's example, as a reader of the page sees it.
  sed -n '/^Example:/,/^$/p' out | tr -s ' ' '\n' | sed '/^$/d' | sort -u >words
  mandoc -T utf8 -O width=500 "$command.1" | sed 's/.\x08//g' | tr -s ' ' '\n' | sort -u >seen
  expect test -s words
  missing=$(grep -v '^Example:$' words | comm -23 - seen)
  expect test -z "$missing"
done
expect grep -qx '\.SH EXIT STATUS' run.1
expect grep -qF 'farfault\-report (1)' run.1
if command -v mandoc >/dev/null; then # what a reader sees is what the help says
  mandoc -T utf8 run.1 | sed 's/.\x08//g' | tr -s ' \n' ' ' >text
  for words in 'farfault run [OPTION ...] [--] PROGRAM [ARGUMENTS]' '-m, --memory=MANAGER,... memory managers to compare (default: copy,demand,replay,ideal;' \
    'farfault run --memory copy,demand,replay,ideal ./saxpy 1000000' '--watermark=LOW[:HIGH]' './mine.so'; do expect grep -qF -- "$words" text; done
fi
run "$farfault" help --man xyzzy
expect_status 64
expect_err "no command 'xyzzy'"
finish
