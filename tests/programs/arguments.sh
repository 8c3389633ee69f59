#!/usr/bin/env bash
# Wrong arguments: refused before anything runs, with the word that is wrong, what was meant, and status 64.
source "$(dirname "$0")/common.sh"

cat >program <<'X'
#!/bin/sh
touch ran
X
chmod +x program
usage() { # usage EXPECTED ARGUMENTS...
  local expected=$1
  shift
  run "$farfault" "$@"
  expect_status 64
  expect_no_out
  expect_err "$expected"
  expect test ! -e ran
}
usage "which program?" run
usage "unrecognized option '--memroy'" run --memroy copy ./program
usage "no memory manager 'cpoy': did you mean 'copy'?" run --memory cpoy ./program
usage "no memory manager 'xyzzy': there are copy" run --memory copy,xyzzy ./program
usage "memory manager 'copy' is named twice" run --memory copy,demand,copy ./program
usage "--memory is empty" run --memory= ./program
usage "--memory names no manager" run --memory , ./program
usage "no machine 'h20': did you mean 'h200'?" run --machine h20 ./program
usage "is not a size" run --gpu-memory lots ./program
usage "is less than one page" run --gpu-memory 100 ./program
usage "is less than one page" run --gpu-memory 0% ./program
usage "a machine has no value 'fault_uss': did you mean 'fault_us'?" run --set fault_uss=5 ./program
usage "'fault_us' is not NAME=VALUE" run --set fault_us ./program
usage "out of range" run --set fault_us=-5 ./program
usage "--threads: '0' is not a number from 1" run --threads 0 ./program
usage "--threads: 'x' is not a number" run --threads x ./program
usage "--threads: '99999' is not a number" run --threads 99999 ./program
usage "--max-instructions: '-5' is not a number" run --max-instructions -5 ./program
usage "--max-instructions: '99999999999G' is not a number" run --max-instructions 99999999999G ./program
usage "--machine is longer than" run --machine "$(printf 'x%.0s' {1..300})" ./program
usage "which list?" list
usage "no list 'machine': did you mean 'machines'?" list machine
usage "one list at a time" list machines managers
usage "which file?" disasm
usage "which file?" report
usage "one file at a time" report a b
finish
