#!/usr/bin/env bash
# A program with NVIDIA's own CUDA runtime, linked in and stripped (12, 13, the newest) or as the shared library (11), prints and simulates
# on our libcuda what it does with our libcudart of that version. The runtimes come from PyPI and are kept in BUILD/cuda; where they cannot
# be had, the test is skipped and says which is missing. $3: the folder of fixtures, $4: BUILD.
source "$(dirname "$0")/common.sh"
fixtures=$3
libraries=$(cd "$(dirname "$farfault")/../lib/farfault" && pwd -P)

package() { "$source/scripts/cuda-packages.sh" "$build" "$1" 2>err || { rc=$?; cat err >&2; exit $rc; }; }
build=$4
for name in nvidia-cuda-runtime-cu11 nvidia-cuda-runtime-cu12 nvidia-cuda-runtime==13.0.88 nvidia-cuda-runtime; do
  folders+=("$(package $name)") || exit
done
shared_11=${folders[0]}/nvidia/cuda_runtime/lib

# compile MAJOR NAME: NAME.o; with our runtime: NAME.ours
compile() {
  cc -O1 -Wall -Wextra -Werror -DVERSION="$1" -DFATBIN="\"$fixtures/private_runtimes.fatbin\"" -c "$here/private_runtimes.c" -o "$2.o" &&
    cc "$2.o" "$libraries/libcudart.so.$3" -Wl,--allow-shlib-undefined -ldl -lpthread -o "$2.ours" && pass || wrong "compiling $2"
}
# inside NAME ARCHIVE: with NVIDIA's runtime inside, and no symbols: NAME.nvidia
inside() {
  cc "$1.o" "$2" -ldl -lrt -lpthread -o "$1.nvidia" && strip "$1.nvidia" && pass || wrong "linking $1"
  expect test -z "$(nm "$1.nvidia" 2>/dev/null)"
}
compile 11 11 11.0
compile 12 12 12
compile 13 13 13
compile 13 newest 13
inside 12 "${folders[1]}/nvidia/cuda_runtime/lib/libcudart_static.a"
inside 13 "${folders[2]}/nvidia/cu13/lib/libcudart_static.a"
inside newest "${folders[3]}/nvidia/cu13/lib/libcudart_static.a"

# The JSON without what is of the host and of the program's name.
plain() { python3 -c '
import json, sys
run = json.load(open(sys.argv[1]))
del run["host"], run["command"]
for result in run["runs"]: # where code lies differs between runtimes
  for kernel in result.get("kernels", []): kernel.pop("site", None)
  for allocation in result.get("allocations", []): allocation["name"] = allocation["name"].split(" ", 1)[-1] if ":" in allocation["name"] or "+0x" in allocation["name"] else allocation["name"]
print(json.dumps(run, indent=1))' "$1.json" >"$1.plain"; }
# alone NAME FOLDERS PROGRAM: without `farfault run`, and with a line on stderr for each table that is asked for
alone() {
  run env LD_LIBRARY_PATH="$2" FARFAULT_DEVICES=2 FARFAULT_THREADS=1 FARFAULT_MEMORY=copy,demand FARFAULT_RESULTS="$work/$1.json" FARFAULT_PRIVATE_RUNTIMES=trace "$3"
  expect_status 0
  mv out "$1.out"
  plain "$1"
}
with_run() { # with_run NAME PROGRAM
  run "$farfault" run --devices 2 --threads 1 --memory copy,demand --json "$1.json" "$2"
  expect_status 0
  mv out "$1.out"
  plain "$1"
}
same() { # same A B
  expect cmp "$1.out" "$2.out"
  expect cmp "$1.plain" "$2.plain"
}

for name in 11 12 13 newest; do
  alone $name "$libraries" ./$name.ours
  expect test "$(grep -c cuGetExportTable err)" = 0
  expect test "$(grep -c '"memory": "demand@1"' $name.plain)" = 1
  # What the program is to print, so that not two broken ones are the same.
  for line in "symbols: 2 3, 16 bytes, 3, somewhere" "meeting: 137" "streams: priority -1, called 11, time passes" "by a graph: 2997000" "devices: 2" "cudaMemcpy3DPeerAsync(&rows, NULL): cudaSuccess" \
    "cudaGetLastError(): cudaErrorInvalidConfiguration" "cudaGetLastError(): cudaErrorIllegalAddress" "a child: 3" "cudaFree(held): cudaSuccess" "at the very end: answered"; do
    expect grep -qF "$line" $name.out
  done
  [ $name = 11 ] || expect grep -qF "a library: 2 kernels, 2 of 3 listed, first among them, 16 bytes" $name.out
  expect test "$(grep -c '^combined: 5994000$' $name.out)" = 2
  expect test "$(grep -c '^meeting: 5$' $name.out)" = 2 # after the reset too
done
# Functions of the driver are of the runtime's version at the most, not of the driver's.
expect grep -qx "cuMemPrefetchAsync: the first form" 11.out
expect grep -qx "cuMemPrefetchAsync: _v2" 12.out
expect grep -qx "cuMemcpyBatchAsync: the first form" 12.out
expect test "$(grep -c '^runtime 1[123]$' 11.out 12.out 13.out | grep -c ':1$')" = 3

alone nvidia_11 "$shared_11:$libraries" ./11.ours
expect_err ": RUNTIME"
same 11 nvidia_11
for name in 12 13 newest; do
  alone nvidia_$name "$libraries" ./$name.nvidia
  expect_err ": INTEGRITY"
  same $name nvidia_$name
  with_run run_$name ./$name.nvidia
  same $name run_$name
  run "$farfault" run --memory none --private-runtimes=off ./$name.nvidia
  expect_status 1
  expect_err "$name.nvidia has a CUDA runtime inside that needs private tables of the driver, which are switched off here"
done
# Runtimes check that the driver's answer fits its version: to theirs and to later ones.
for name in 12 13; do
  export FARFAULT_DRIVER_VERSION=$name.9
  alone later_$name "$libraries" ./$name.nvidia
  unset FARFAULT_DRIVER_VERSION
  expect grep -qw ${name}090 later_$name.out
  sed -i "s/\b${name}090\b/13050/" later_$name.out
  expect test "$(grep -c "asks for functions" err)" = 0 # a program may ask for those of any version
  same $name later_$name
done
# A runtime refuses a driver of an older major version, and a line says why: for once, and only then.
run "$farfault" run --memory none --driver-version 12.9 ./13.nvidia
expect_status 1
expect_out "cudaErrorInsufficientDriver"
expect_err "13.nvidia asks for functions of CUDA 13.0, and the driver says that it is of CUDA 12.9 (--driver-version)"
expect test "$(grep -c "asks for functions" err)" = 1
run "$farfault" run --memory none --driver-version 12.9 ./newest.nvidia # asks for no function that is newer than the driver
expect_status 1
expect_out "cudaErrorInsufficientDriver"
run "$farfault" run --memory none --driver-version 11.8 ./13.nvidia
expect_status 1
expect_err "13.nvidia asks for functions of CUDA 12.0, and the driver says that it is of CUDA 11.8"
run "$farfault" run --memory none --driver-version 12.6 ./12.nvidia
expect_status 0
expect test "$(grep -c "asks for functions" err)" = 0
with_run run_11 ./11.ours
same 11 run_11
finish
