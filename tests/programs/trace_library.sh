#!/usr/bin/env bash
# The public library for traces, as installed: found by pkg-config, its header C11 and C++, the example compiled with the shared and the
# static one, its traces read by farfault. $3: the build folder.
source "$(dirname "$0")/common.sh"

run cmake --install "$3" --component trace --prefix "$work/place"
expect_status 0
export PKG_CONFIG_PATH=$work/place/lib/pkgconfig
run pkg-config --modversion farfault-trace
expect_out "$(sed -n 's/^#define FF_TRACE_VERSION \([0-9]*\)u/\1/p' "$source/include/farfault/trace.h").$(sed -n 's/^project(farfault VERSION \([0-9.]*\).*/\1/p' "$source/CMakeLists.txt")"
# Nothing but the interface is seen.
run nm -D --defined-only place/lib/libfarfault-trace.so
expect_status 0
expect test "$(grep -c ' T ff_trace_' out)" -eq "$(grep -c '^FF_TRACE_API' "$source/include/farfault/trace.h")"
expect test "$(grep -cv ' T ff_trace_' out)" -eq 0
run nm -g --defined-only place/lib/libfarfault-trace.a
expect test "$(grep ' [A-Z] ' out | grep -cv ' T ff_trace_')" -eq 0

cc=${CC:-cc}
echo '#include <farfault/trace.h>
int main(void) { return ff_trace_library_version() != FF_TRACE_VERSION; }' >version.c
cp version.c version.cpp
flags=$(pkg-config --cflags farfault-trace) libs=$(pkg-config --libs farfault-trace)
# shellcheck disable=SC2086 # words
{
  run $cc -std=c11 -pedantic -Wall -Wextra -Werror $flags version.c $libs -o version_c
  expect_status 0
  compiler=$(command -v g++ || command -v clang++)
  run "$compiler" -std=c++11 -pedantic -Wall -Wextra -Werror $flags -c version.cpp -o version_cpp.o
  expect_status 0
  run $cc version_cpp.o $libs -o version_cpp
  expect_status 0
  run $cc -std=c11 -pedantic -Wall -Wextra -Werror $flags "$source/examples/trace_strided.c" $libs -o shared
  expect_status 0
  run $cc -std=c11 $flags "$source/examples/trace_strided.c" place/lib/libfarfault-trace.a $(pkg-config --libs libzstd libxxhash) -o static
  expect_status 0
}
for program in ./version_c ./version_cpp; do
  run $program
  expect_status 0
done
run ./shared shared.fft 1
expect_status 0
expect_out "1 launch, 4096 accesses to 4096 lines in $(stat -c %s shared.fft) bytes"
run ./static static.fft 1
expect_status 0
expect cmp shared.fft static.fft
run ./static far.fft 8
expect_out "1 launch, 4096 accesses to 32768 lines"
expect test ! -e "$(echo ./*.tmp-*)"

# What farfault says of it.
run "$farfault" trace check shared.fft
expect_status 0
expect_out "good: 1 frame, 4 operations, 4096 warp accesses"
run "$farfault" trace dump --records --block 1 --launch 0 shared.fft
expect_out "add_one"
expect_out "0x10000400/32/f"
run "$farfault" sim shared.fft --memory copy,demand,uvm --machine gtx480 --json out.json
expect_status 0
expect_out "trace_strided on gtx480"
expect grep -q '"warp_instructions": *16384' out.json
# A file is not replaced by half of one, and what is no file is not replaced at all.
run ./static /dev/null 1
expect_status 1
expect_err "no regular file"
run ./static no/such/folder.fft
expect_status 1
expect_err "cannot write there: no/such: No such file or directory"
finish
