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

# NVRTC, if it is there: PTX as such, and where machine code for some GPU is asked for.
cat >nvrtc.cpp <<'CPP'
#include <cuda.h>
#include <nvrtc.h>
#include <cstdio>
#include <string>
#define CHECK(call) if ((call) != 0) return printf("%s\n", #call), 1
int main(int argc, char **argv) {
  const char *source = "template <int N> __global__ void add(float *data) { data[threadIdx.x] += N; }", *name;
  nvrtcProgram program;
  size_t size;
  CHECK(nvrtcCreateProgram(&program, source, "add.cu", 0, nullptr, nullptr));
  CHECK(nvrtcAddNameExpression(program, "add<3>"));
  CHECK(nvrtcCompileProgram(program, 1, argv + 1));
  CHECK(nvrtcGetLoweredName(program, "add<3>", &name));
  bool machine_code = std::string(argv[1]).find("sm_") != std::string::npos;
  CHECK(machine_code ? nvrtcGetCUBINSize(program, &size) : nvrtcGetPTXSize(program, &size));
  std::string image(size, 0);
  CHECK(machine_code ? nvrtcGetCUBIN(program, &image[0]) : nvrtcGetPTX(program, &image[0]));
  CUdevice device;
  CUcontext context;
  CUmodule module;
  CUfunction function;
  CUdeviceptr data;
  float host[32] = {1};
  CHECK(cuInit(0));
  CHECK(cuDeviceGet(&device, 0));
  CHECK(cuDevicePrimaryCtxRetain(&context, device));
  CHECK(cuCtxSetCurrent(context));
  CHECK(cuModuleLoadData(&module, image.data()));
  CHECK(cuModuleGetFunction(&function, module, name));
  CHECK(cuMemAlloc(&data, sizeof host));
  CHECK(cuMemcpyHtoD(data, host, sizeof host));
  void *arguments[] = {&data};
  CHECK(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, nullptr, arguments, nullptr));
  CHECK(cuMemcpyDtoH(host, data, sizeof host));
  printf("nvrtc: %g %g\n", host[0], host[31]);
}
CPP
toolkit=$(dirname "$(readlink -f "$nvcc")")/..
if "$nvcc" nvrtc.cpp -o nvrtc -L"$toolkit/lib64/stubs" -lnvrtc -lcuda >log 2>&1; then
  for architecture in compute_80 sm_90; do
    run env LD_LIBRARY_PATH="$toolkit/lib64" "$farfault" run --memory none ./nvrtc --gpu-architecture=$architecture
    expect_status 0
    expect_out "nvrtc: 4 3"
  done
fi

# Alone, it says what would help.
run env LD_LIBRARY_PATH="$(dirname "$farfault")/../lib/farfault" ./parts.static
expect_status 3
expect_err "farfault run"
expect_err "-cudart shared"
finish
