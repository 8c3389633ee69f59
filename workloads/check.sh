#!/bin/sh
# check.sh PROGRAM "DEFAULT ARGUMENTS" "SMALL ARGUMENTS": the test of one workload. The program must know the defaults that
# the table gives it, and with the small arguments say PASSED and exit with 0.
program=$1
known=$("$program" --help | sed -n '1s/[^=]*=\([0-9]*\)\]/ \1/gp' | sed 's/^ *//')
if [ "$known" != "$2" ]; then
  echo "workloads.tsv says that the default is '$2', the program says '$known'"
  exit 1
fi
# shellcheck disable=SC2086 # the arguments are words
output=$("$program" $3)
status=$?
printf '%s\n' "$output"
[ $status -eq 0 ] || { echo "exit status $status"; exit 1; }
case $output in
  *": PASSED ("*) exit 0 ;;
  *) echo "it did not say PASSED"; exit 1 ;;
esac
