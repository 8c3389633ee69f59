#!/usr/bin/env bash
# What cannot run on the virtual GPU is refused before it runs, with the nvcc option that helps. $3: the folder of fixtures.
source "$(dirname "$0")/common.sh"
fixtures=$3

run "$farfault" run "$fixtures/no_ptx"
expect_status 2
expect_no_out
expect_err "no_ptx: has GPU machine code (sm_90) but no PTX"
expect_err "-gencode arch=compute_90,code=compute_90"
run "$farfault" disasm "$fixtures/no_ptx"
expect_status 2
expect_err "no_ptx"
run "$farfault" run "$fixtures/old_cuda"
expect_status 2
expect_err "old_cuda: needs libcudart.so.10.2; the virtual GPU stands in for CUDA 11, 12 and 13"

# An RPATH would win over LD_LIBRARY_PATH: then, and only then, libcudart is preloaded.
libraries=$(cd "$(dirname "$farfault")/../lib/farfault" && pwd -P)
if [[ -e $libraries/libcudart.so.12 ]]; then
  [[ $libraries == *[\ :\;\$]* ]] && libraries=$(realpath "$TMPDIR")/farfault- # a link stands for it
  run "$farfault" run "$fixtures/with_rpath"
  expect_status 0
  expect grep -q "^preload: $libraries.*/libcudart.so.12\$" out
  run "$farfault" run "$fixtures/with_ptx"
  expect_status 0
  expect test "$(grep -c 'preload: none\|preload: .*/libfarfault-preload.so$' out)" = 1
fi
finish
