#!/usr/bin/env bash
# libfarfault-simulate as installed: found by pkg-config, its header C11 and C++, the example compiled, and what it prints compared with what
# the command says. $3: the build folder.
source "$(dirname "$0")/common.sh"

run cmake --install "$3" --component simulate --prefix "$work/place"
expect_status 0
export PKG_CONFIG_PATH=$work/place/lib/pkgconfig
run pkg-config --modversion farfault-simulate
expect_out "$(sed -n 's/^#define FF_SIMULATE_VERSION \([0-9]*\)u/\1/p' "$source/include/farfault/simulate.h").$(sed -n 's/^project(farfault VERSION \([0-9.]*\).*/\1/p' "$source/CMakeLists.txt")"
# Nothing but the interface is seen.
run nm -D --defined-only place/lib/libfarfault-simulate.so
expect_status 0
expect test "$(grep -c ' T ff_simulate_' out)" -eq "$(grep -c '^FF_SIMULATE_API' "$source/include/farfault/simulate.h")"
expect test "$(grep -cv ' T ff_simulate_' out)" -eq 0

cc=${CC:-cc}
echo '#include <farfault/simulate.h>
int main(void) { return ff_simulate_version() != FF_SIMULATE_VERSION; }' >version.c
cp version.c version.cpp
flags=$(pkg-config --cflags farfault-simulate) libs=$(pkg-config --libs farfault-simulate)
# shellcheck disable=SC2086 # words
{
  run $cc -std=c11 -pedantic -Wall -Wextra -Werror $flags version.c $libs -o version_c
  expect_status 0
  compiler=$(command -v g++ || command -v clang++)
  run "$compiler" -std=c++11 -pedantic -Wall -Wextra -Werror $flags -c version.cpp -o version_cpp.o
  expect_status 0
  run $cc version_cpp.o $libs -o version_cpp
  expect_status 0
  run $cc -std=c11 -pedantic -Wall -Wextra -Werror $flags "$source/examples/simulate_memory.c" $libs -o simulate_memory
  expect_status 0
}
for program in ./version_c ./version_cpp; do
  run $program
  expect_status 0
done

run "$farfault" record -o a.fft "$3/workloads/vectoradd" 50000
expect_status 0
# The library is alone in its folder: `farfault` comes from PATH, or is missed.
PATH=/usr/bin:/bin run ./simulate_memory a.fft
expect_status 1
expect_err "FF_SIMULATE_NOT_INSTALLED"
PATH=$(dirname "$farfault"):$PATH run ./simulate_memory a.fft
expect_status 0
expect_out "gpu-memory=100%: "
cp out said
for share in 100% 75% 50%; do
  run "$farfault" sim a.fft --memory demand,tbn,auto --gpu-memory $share --csv csv
  expect_status 0
  # columns: memory, machine, complete, error, time_us; the least time of those without an error
  best=$(awk -F, 'NR > 1 && $4 == ""' csv | sort -t, -g -k5 | head -n 1)
  expect grep -q "^gpu-memory=$share: ${best%%,*} is the fastest, $(cut -d, -f5 <<<"$best" | xargs printf %.1f) us with" said
done
PATH=$(dirname "$farfault"):$PATH run ./simulate_memory no.fft
expect_status 1
expect_err "simulate_memory: FF_SIMULATE_BAD_FILE: no.fft: cannot be read"
# The same library in the build folder finds the program next to it.
PATH=/usr/bin:/bin LD_LIBRARY_PATH=$3/lib run ./simulate_memory a.fft
expect_status 0
expect cmp out said
finish
