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

# An incomplete farfault says what is missing where it would only say that the program did not use the virtual GPU.
if [[ -e $(dirname "$farfault")/../lib/farfault/libcudart.so.12 ]]; then
  machine=$source/machines/gtx480.yaml
  mkdir -p partial/bin partial/lib/farfault
  cp "$farfault" partial/bin/farfault
  for file in "$(dirname "$farfault")"/../lib/farfault/lib*; do cp "$file" partial/lib/farfault; done
  begin="farfault: in $PWD/partial/lib/farfault there is no whole"
  end="either a build is writing it, or farfault is not installed completely"
  run partial/bin/farfault run --machine "$machine" /bin/true
  expect_err "/bin/true did not use the virtual GPU"
  expect test "$(wc -l <err)" -eq 1
  rm partial/lib/farfault/libcuda.so.1
  run partial/bin/farfault run --machine "$machine" /bin/true
  expect_status 0
  expect_err "/bin/true did not use the virtual GPU"
  expect_err "$begin libcuda.so.1: $end"
  truncate -s 4096 partial/lib/farfault/libcudart.so.13 # as a linker has it that has only begun
  ln -s nowhere partial/lib/farfault/libcuda.so.1
  for kind in run record memcheck; do
    file=()
    [[ $kind == record ]] && file=(-o x.fft)
    run partial/bin/farfault $kind "${file[@]}" --machine "$machine" /bin/true
    expect_err "did not use the virtual GPU"
    expect_err "$begin libcuda.so.1, libcudart.so.13: $end"
  done
  run partial/bin/farfault run --machine "$machine" "$fixtures/with_ptx" # needs libcudart.so.12 alone
  expect_status 0
  rm partial/lib/farfault/libcudart.so.12
  run partial/bin/farfault run --machine "$machine" "$fixtures/with_ptx"
  expect_status 2
  expect_err "with_ptx: needs libcudart.so.12, which is missing in "
  expect_err "/lib/farfault: $end"
  if [[ -e partial/lib/farfault/libfarfault-preload.so ]]; then # a sanitizer's build has none
    : >partial/lib/farfault/libfarfault-preload.so
    truncate -s 4096 partial/lib/farfault/libfarfault-gpu.so
    run partial/bin/farfault run --machine "$machine" /bin/true
    expect_err "$begin libcuda.so.1, libcudart.so.12, libcudart.so.13, libfarfault-gpu.so, libfarfault-preload.so: $end"
  fi
fi
finish
