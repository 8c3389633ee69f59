#!/bin/bash
# Declared uses (R3) and the bundled workloads: with all that their launches' parameters point to declared, they compute what they did,
# checked by the virtual GPU or by instrumented code, whole and in windows; with less declared, both refuse the same access in the same words.
. "$(dirname "$0")/common.sh"
workloads=$3
library=$4
export FARFAULT_THREADS=1 REAL_LIBCUDA=$5/libcuda.so.1
plain=$5

by() { # by HOW NAME ARGUMENTS...
  local how=$1 name=$2
  shift 2
  run env LD_LIBRARY_PATH="$library:$plain" CHECK_BY="$how" "$workloads/$name" "$@"
}
# What the report says, without what differs: addresses, how the module is called, and which of a block's warps came first.
words() { sed -n 's/0x[0-9a-f]*/ADDRESS/; s/thread ([0-9,]*)/a thread/; s/  at .*:\([0-9]*\): /  line \1: /; /^farfault: undeclared\|^  /p' err | head -4; }

while IFS=$'\t' read -r name _ _ small _; do
  [[ $name != name && $name != hosttouch ]] && one_in 2 || continue
  read -ra arguments <<<"$small"
  run env LD_LIBRARY_PATH="$plain" "$workloads/$name" "${arguments[@]}"
  expect_status 0
  cp out expected
  for how in virtual code windows; do
    by "$how" "$name" "${arguments[@]}"
    expect_status 0
    expect cmp -s out expected
    expect_no_err
  done
  for less in CHECK_READ_ONLY=1 CHECK_SHORT=4 CHECK_SHORT=1000000000; do
    export "${less?}"
    by virtual "$name" "${arguments[@]}"
    words >virtual.words
    with=$status
    by code "$name" "${arguments[@]}"
    words >code.words
    if cmp -s virtual.words code.words && [[ $((with != 0)) -eq $((status == 3)) ]]; then pass; else
      wrong "$name with $less: $(cat virtual.words) / $(cat code.words), status $with and $status"
    fi
    [[ $less == CHECK_SHORT=4 ]] || expect [ -s code.words ]
    unset "${less%%=*}"
  done
done <"$source/workloads/workloads.tsv"
finish
