#!/usr/bin/env bash
# libfarfault as installed: found by pkg-config and by CMake, shared and static; its headers C11 and C++11; nothing but its interface is
# seen; an example linked in each way finds the virtual GPU of the installation, also from elsewhere. $3: the build folder.
source "$(dirname "$0")/common.sh"
export FARFAULT_DRIVER=virtual FARFAULT_MACHINE=gp100
cc=${CC:-cc}

run cmake --install "$3" --prefix "$work/place"
expect_status 0
export PKG_CONFIG_PATH=$work/place/lib/pkgconfig
run pkg-config --modversion farfault
expect_out "$(sed -n 's/^project(farfault VERSION \([0-9.]*\).*/\1/p' "$source/CMakeLists.txt")"
functions=$(grep -c '^FF_API ' "$source/include/farfault/farfault.h")
run nm -D --defined-only place/lib/libfarfault.so.1
expect test "$(grep -c ' T ff_' out)" -eq "$functions"
expect test "$(grep -cv ' T ff_' out)" -eq 0
run nm -g --defined-only place/lib/libfarfault.a
expect test "$(grep -c ' T ff_' out)" -eq "$functions"
expect test "$(grep ' [A-Z] ' out | grep -cv ' T ff_')" -eq 0

# The headers: nothing else has to be included before them, in either language.
echo '#include <farfault/farfault.h>
#include <farfault/virtual.h>
int main(void) { return ff_library_version() != FF_VERSION; }' >version.c
cp version.c version.cpp
flags=$(pkg-config --cflags farfault) libs=$(pkg-config --libs farfault)
strict="-pedantic -Wall -Wextra -Werror"
# shellcheck disable=SC2086 # words
{
  run $cc -std=c11 $strict $flags version.c $libs -o version_c
  expect_status 0
  run "$(command -v g++ || command -v clang++)" -std=c++11 $strict $flags -c version.cpp -o version.o
  expect_status 0
  run $cc version.o $libs -o version_cpp
  expect_status 0
  run $cc -std=c11 $strict $flags "$source/examples/saxpy.c" $libs -o shared
  expect_status 0
  run $cc -std=c11 $strict $flags "$source/examples/saxpy.c" place/lib/libfarfault.a -ldl -lm -pthread -o static
  expect_status 0
}
for program in ./version_c ./version_cpp; do
  run $program
  expect_status 0
done
run ./shared
expect_status 0
expect_out "0 of 100000 values are wrong"

# A static program finds the virtual GPU by the farfault on PATH, in lib/farfault of its own installation, or where it is told.
PATH=$work/place/bin:$PATH run ./static
expect_status 0
expect_out "0 of 100000 values are wrong"
mkdir -p mine/bin mine/lib
cp static mine/bin
ln -s "$work/place/lib/farfault" mine/lib/farfault
run mine/bin/static
expect_status 0
FARFAULT_DRIVER=$work/place/lib/farfault/libcuda.so.1 run ./static
expect_status 0
FARFAULT_DRIVER=$work/nowhere.so run ./static
expect_status 1
expect_err nowhere.so

# find_package, from wherever the installation was moved to.
mv place moved
mkdir project
cat >project/CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.16)
project(mine LANGUAGES C)
find_package(farfault 0.1 REQUIRED)
add_executable(shared ${EXAMPLE})
target_link_libraries(shared PRIVATE farfault::farfault)
add_executable(static ${EXAMPLE})
target_link_libraries(static PRIVATE farfault::static)
END
run "${CMAKE:-cmake}" -S project -B project/build -DCMAKE_C_COMPILER="$cc" -DCMAKE_PREFIX_PATH="$work/moved" -DEXAMPLE="$source/examples/saxpy.c"
expect_status 0
run "${CMAKE:-cmake}" --build project/build
expect_status 0
run project/build/shared
expect_status 0
expect_out "0 of 100000 values are wrong"
PATH=$work/moved/bin:$PATH run project/build/static
expect_status 0
expect_out "0 of 100000 values are wrong"
sed -i 's/farfault 0.1/farfault 9.0/' project/CMakeLists.txt
run "${CMAKE:-cmake}" -S project -B project/newer -DCMAKE_PREFIX_PATH="$work/moved" -DEXAMPLE="$source/examples/saxpy.c"
expect test "$status" -ne 0
expect_err "requested version"
finish
