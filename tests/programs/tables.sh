#!/usr/bin/env bash
# Tables on a terminal: columns that fit, the less important ones left out first, a line that says which; --wide, files and pipes have all.
source "$(dirname "$0")/common.sh"
pretender=$here/pretender.sh
report_sample=$source/tests/unit/report/golden/sample.json
on() { # on COLUMNS COMMAND...: as run, on a terminal
  shown="on $1 columns: ${*:2}"
  python3 "$here/on_terminal.py" "$@" >out 2>err </dev/null
  status=$?
}
fits() { expect test "$(awk -v most="$1" 'length($0) > most' out)" = ""; }
full="memory     time  ratio  kernels  transfers  far-faults    to GPU  to CPU  link used  TLB miss"

run "$farfault" run "$pretender"
expect_err "$full"
grep -v '^(not shown' err >all
on 200 "$farfault" run "$pretender"
expect_out "$full"
expect cmp out all
on 80 "$farfault" run "$pretender"
expect_status 0
fits 80
expect_out "memory     time  ratio  kernels  transfers  far-faults    to GPU  to CPU"
expect_out "(not shown: link used, TLB miss; --wide shows all)"
expect test "$(sed '/^(not shown/d' out | wc -l)" -eq "$(wc -l <all)"
on 60 "$farfault" run "$pretender"
fits 60
expect grep -q '^memory     time  ratio  far-faults    to GPU' out
on 80 "$farfault" run --wide "$pretender"
expect cmp out all
on 200 env COLUMNS=80 "$farfault" run "$pretender" # the shell's word on the width
expect_out "(not shown: link used, TLB miss; --wide shows all)"
on 80 env COLUMNS=nonsense "$farfault" run "$pretender"
expect_out "(not shown: link used, TLB miss; --wide shows all)"
on 80 env COLUMNS=99999999999999999999 "$farfault" run "$pretender"
expect_out "(not shown: link used, TLB miss; --wide shows all)"
on 80 env COLUMNS=1 "$farfault" run "$pretender"
expect grep -qx 'memory     time' out
# What is no terminal gets everything, whatever COLUMNS says.
COLUMNS=80 run "$farfault" run "$pretender"
expect cmp err all
COLUMNS=80 run "$farfault" list managers
cp out managers
on 400 "$farfault" list managers
expect cmp out managers

# Colours, on a terminal only, and not where they are not wanted: without them it is the same text.
colours() { # colours COUNT ENVIRONMENT...: the program on a terminal, whose table has so many coloured cells
  on 200 env -u NO_COLOR "${@:2}" "$farfault" run --memory "copy,demand,ideal" --machine gtx480 "$pretender"
  expect test "$(grep -o $'\033\[3[0-9]m' out | wc -l)" -eq "$1"
  expect test "$(grep -o $'\033\[0m' out | wc -l)" -eq "$1"
  sed $'s/\033\\[[0-9]*m//g' out >plain
}
on 200 "$farfault" run --memory "copy,demand,ideal" --machine gtx480 "$pretender"
cp out without
expect test "$(grep -c $'\033' without)" -eq 0 # NO_COLOR is set
colours 0 NO_COLOR=1 TERM=xterm
colours 0 TERM=dumb
colours 0 -u TERM
colours "$(awk '/^[a-z]+ +[0-9.]+ [a-z]+ +[0-9.]+x/ && ($4 + 0 < 0.98 || $4 + 0 > 1.02)' without | wc -l)" TERM=xterm
expect cmp plain without
colours "$(awk '/^[a-z]+ +[0-9.]+ [a-z]+ +[0-9.]+x/ && ($4 + 0 < 0.98 || $4 + 0 > 1.02)' without | wc -l)" NO_COLOR= TERM=xterm
run env -u NO_COLOR TERM=xterm "$farfault" run --memory "copy,demand,ideal" --machine gtx480 "$pretender"
expect test "$(grep -c $'\033' err)" -eq 0 # a pipe
sed 's/"time_ps": [0-9]*/"time_ps": 9/' "$report_sample" >slower.json
on 200 env -u NO_COLOR TERM=xterm "$farfault" compare "$report_sample" slower.json
expect grep -q $'\033\[3[12]m' out
expect grep -q $'\033\[32mbetter\033\[0m$' out

# Every command with a table: it fits, and --wide is what a pipe gets.
report=$source/tests/unit/report/golden/sample.json
for command in "list managers" "list policies" "list machines" "list counters" "report -v $report" "report -v $source/tests/unit/report/golden/stacks.json"; do
  # shellcheck disable=SC2086 # words
  {
    run "$farfault" $command
    cp out piped
    on 80 "$farfault" $command
    expect_status 0
    fits 80
    on 80 "$farfault" $command --wide
    expect cmp out piped
  }
done
# Descriptions go on in a further line, under themselves, word by word.
on 80 "$farfault" list managers
expect grep -qE '^demand +block +none +demand paging, blocking' out
expect test "$(awk '/^demand /{ on = 1 } /^replay /{ on = 0 } on' out | cut -c37- | tr -s '\n ' ' ' | sed "s|^ ||; s| \$||")" = "$(sed -n 's/^demand .*\(demand paging.*\)/\1/p' managers)"
# Sentences go on in a further line; in a file or a pipe, and with --wide, they are one.
run "$farfault" report -v "$report"
grep '^executed: ' out >sentence
expect test "$(awk 'length($0) > 80' sentence)" != ""
on 80 "$farfault" report -v "$report"
expect test "$(sed -n '/^executed: /,/^[a-z ]*memory\b/p' out | head -2 | tr '\n' ' ')" = "$(cat sentence) "
# What might go into a file stays as it is.
run "$farfault" machine new --like h100
cp out machine
on 80 "$farfault" machine new --like h100
expect cmp out machine
# Messages, too: on a terminal only.
run "$farfault" list nosuchlist
cp err message
expect test "$(awk 'length($0) > 80' message)" != ""
on 80 "$farfault" list nosuchlist
expect_status 64
fits 80
expect grep -q '^  [a-z]' out
expect test "$(tr -s '\n ' '  ' <out)" = "$(tr -s '\n ' '  ' <message)"
# What a command is asked for stays, whatever else is left out.
on 80 "$farfault" machine show h100
fits 80
expect grep -qE '^sm_count +132$' out
expect_out "(not shown: group, unit, source; --wide shows all)"
on 80 "$farfault" machine diff a100 h100
fits 80
expect grep -qE '^sm_count +108 +132 +1\.22x$' out
expect_out "(not shown: unit; --wide shows all)"
finish
