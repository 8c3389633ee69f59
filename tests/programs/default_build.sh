#!/usr/bin/env bash
# A program that nvcc has compiled without any option runs as it does with the shared runtime: the same output, and the same access
# stream, so the same results to the last digit. $3: nvcc.
source "$(dirname "$0")/common.sh"
nvcc=$3
case $(uname -m) in x86_64) ;; *) echo "1 passed, 0 failed, 1 skipped"; exit ;; esac

both() { # both NAME OPTION... FILE...: compiled once, linked as NAME.static, without an option, and as NAME.shared
  local name=$1
  shift
  mkdir "$name"
  (cd "$name" && "$nvcc" -c -arch=compute_75 "$@") 2>log && "$nvcc" "$name"/*.o ${linked:-} -o "$name.static" 2>>log &&
    "$nvcc" -cudart shared "$name"/*.o ${linked:-} -o "$name.shared" 2>>log && pass || wrong "nvcc $*: $(cat log)"
}
# The JSON without what is of the host and of the program's name.
plain() { python3 -c '
import json, sys
run = json.load(open(sys.argv[1]))
del run["host"], run["command"]
print(json.dumps(run, indent=1))' "$1"; }

cat >parts.cu <<'CU'
#include <cstdio>
extern __device__ int square(int x);
__global__ void fill(int *out) { out[threadIdx.x] = square(threadIdx.x); }
int main() {
  int *out;
  if (cudaMallocManaged(&out, 128)) return 3;
  fill<<<1, 32>>>(out);
  cudaDeviceSynchronize();
  printf("parts: %d\n", out[31]);
}
CU
echo '__device__ int square(int x) { return x * x; }' >other.cu
both plain "$here/default_build.cu"
both own --default-stream per-thread "$here/default_build.cu"
linked=-arch=compute_75 both parts -rdc=true "$work/parts.cu" "$work/other.cu"
for name in plain own parts; do
  for kind in static shared; do
    run "$farfault" run --threads 1 --memory copy,demand --json "$name.$kind.json" "./$name.$kind"
    expect_status 0
    mv out "$name.$kind.out"
    plain "$name.$kind.json" >"$name.$kind.plain"
  done
  expect cmp "$name.static.out" "$name.shared.out"
  expect cmp "$name.static.plain" "$name.shared.plain"
done
expect grep -q "symbols: 100 167 105 9" plain.static.out
expect grep -q "cooperative: 77 78" plain.static.out
expect grep -q "streams: 200, called 3, time passes" plain.static.out
expect grep -q "a child: 7" plain.static.out
expect test "$(grep -c 'a kernel says 5' plain.static.out)" = 2
expect grep -q "parts: 961" parts.static.out

# A record of the one is a record of the other.
for kind in static shared; do
  run "$farfault" record --threads 1 -o "$kind.fft" "./plain.$kind"
  expect_status 0
  run "$farfault" sim "$kind.fft" --memory uvm --csv "$kind.csv"
  expect_status 0
done
expect cmp static.csv shared.csv

# Alone, it says what would help.
run env LD_LIBRARY_PATH="$(dirname "$farfault")/../lib/farfault" ./parts.static
expect_status 3
expect_err "farfault run"
expect_err "-cudart shared"
finish
