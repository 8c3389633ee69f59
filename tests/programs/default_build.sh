#!/usr/bin/env bash
# A program that nvcc has compiled without any option runs as it does with the shared runtime, stripped or not: the same output, and the
# same access stream, so the same results to the last digit. nvcc is that of CUDA_HOME, else the one on PATH, else one from PyPI, which is
# kept in BUILD/cuda; where none can be had, the test is skipped. $3: BUILD.
source "$(dirname "$0")/common.sh"
build=$3
[[ $(uname -m) == x86_64 ]] || { echo "skipped: needs x86-64, where a runtime in a program is replaced"; exit 77; }
libraries=$(cd "$(dirname "$farfault")/../lib/farfault" && pwd -P)
toolkit_libraries=()
if [[ -x ${CUDA_HOME:-}/bin/nvcc ]]; then
  nvcc=$CUDA_HOME/bin/nvcc
elif ! nvcc=$(PATH=$PATH:/usr/local/cuda/bin command -v nvcc); then
  folder=$("$source/scripts/cuda-packages.sh" "$build" nvidia-cuda-nvcc==13.0.88 nvidia-cuda-crt==13.0.88 nvidia-nvvm==13.0.88 \
    nvidia-cuda-runtime==13.0.88 nvidia-cuda-cccl==13.0.85) || { rc=$?; echo "skipped: there is no nvcc"; exit $rc; }
  nvcc=$folder/nvidia/cu13/bin/nvcc
fi
toolkit=$(realpath "$(dirname "$(readlink -f "$nvcc")")/..")
if [[ ! -e $toolkit/lib64 && -e $toolkit/lib/libcudart_static.a ]]; then # a package: nvcc does not look there, and it has no libcudart.so
  mkdir link
  ln -s "$(find "$toolkit/lib" -name 'libcudart.so.*' | head -1)" link/libcudart.so
  toolkit_libraries=(-L"$toolkit/lib" -L"$work/link")
fi

# both NAME OPTION... FILE...: compiled once; linked as NAME.static, without an option, and as NAME.shared; NAME.stripped has no symbols
both() {
  local name=$1
  shift
  mkdir "$name"
  (cd "$name" && "$nvcc" -c -arch=compute_75 "$@") 2>log && "$nvcc" "${toolkit_libraries[@]}" "$name"/*.o ${linked:-} -o "$name.static" 2>>log &&
    "$nvcc" -cudart shared "${toolkit_libraries[@]}" "$name"/*.o ${linked:-} -o "$name.shared" 2>>log &&
    strip "$name.static" -o "$name.stripped" && pass || wrong "nvcc $*: $(cat log)"
}
# The JSON without what is of the host, of the program's name, and of where code lies in each build.
plain() { python3 -c '
import json, sys
run = json.load(open(sys.argv[1]))
del run["host"], run["command"]
for result in run["runs"]:
  for kernel in result.get("kernels", []): kernel.pop("site", None)
  for allocation in result.get("allocations", []): allocation["name"] = allocation["name"].split("+0x")[-1].split(" ", 1)[-1]
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
  for kind in static shared stripped; do
    run "$farfault" run --threads 1 --memory copy,demand --json "$name.$kind.json" "./$name.$kind"
    expect_status 0
    mv out "$name.$kind.out"
    plain "$name.$kind.json" >"$name.$kind.plain"
  done
  for kind in static stripped; do
    expect cmp "$name.$kind.out" "$name.shared.out"
    expect cmp "$name.$kind.plain" "$name.shared.plain"
  done
done
expect grep -q "symbols: 100 167 105 9" plain.static.out
expect grep -q "cooperative: 77 78" plain.static.out
expect grep -q "streams: 200, called 3, time passes" plain.static.out
expect grep -q "a child: 7" plain.static.out
expect test "$(grep -c 'a kernel says 5' plain.static.out)" = 2
expect grep -q "parts: 961" parts.static.out

# A record of the one is a record of the other.
for kind in static shared stripped; do
  run "$farfault" record --threads 1 -o "$kind.fft" "./plain.$kind"
  expect_status 0
  run "$farfault" sim "$kind.fft" --memory uvm --csv "$kind.csv"
  expect_status 0
done
expect cmp static.csv shared.csv
expect cmp stripped.csv shared.csv

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
if "$nvcc" nvrtc.cpp -o nvrtc -L"$toolkit/lib64/stubs" -lnvrtc -lcuda >log 2>&1; then
  for architecture in compute_80 sm_90; do
    run env LD_LIBRARY_PATH="$toolkit/lib64" "$farfault" run --memory none ./nvrtc --gpu-architecture=$architecture
    expect_status 0
    expect_out "nvrtc: 4 3"
  done
fi

# Alone: the runtime that is inside runs, unless it is not served.
for kind in static stripped; do
  run env LD_LIBRARY_PATH="$libraries" ./parts.$kind
  expect_status 0
  expect_out "parts: 961"
  run env LD_LIBRARY_PATH="$libraries" FARFAULT_PRIVATE_RUNTIMES=off ./parts.$kind
  expect_status 3
  expect_err "parts.$kind has a CUDA runtime inside that needs private tables of the driver, which are switched off here"
done
finish
