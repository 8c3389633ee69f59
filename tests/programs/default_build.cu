/* SPDX-License-Identifier: Apache-2.0 */
/* Most ways in which a program and its CUDA runtime meet, in one program whose output says whether each has worked: compiled by nvcc
 * without any option and with the shared runtime, both must print and do the same (default_build.sh). */
#include <cooperative_groups.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

static void check(cudaError_t error, int line) {
  if (!error) return;
  printf("line %d: %s\n", line, cudaGetErrorString(error));
  exit(1);
}
#define CHECK(call) check(call, __LINE__)

__device__ int offset;
__constant__ int factors[4];
__managed__ int shared_with_host = 5;

__global__ void reverse(int *out) {
  extern __shared__ int values[];
  values[threadIdx.x] = threadIdx.x * factors[1] + offset;
  __syncthreads();
  out[threadIdx.x] = values[blockDim.x - 1 - threadIdx.x] + shared_with_host;
  if (threadIdx.x) return;
  printf("a kernel says %d\n", shared_with_host);
  shared_with_host += 4;
}

__global__ void meet(int *out) {
  auto grid = cooperative_groups::this_grid();
  if (grid.thread_rank() == 0) out[0] = 77;
  grid.sync();
  if (grid.thread_rank() == grid.size() - 1) out[1] = out[0] + 1;
}

template <typename T> __global__ void scale(T *data, T by) { data[threadIdx.x] *= by; }

static void CUDART_CB remember(void *where) { *(int *)where = 3; }

static void symbols() {
  int start = 100, table[4] = {1, 2, 3, 4}, back = 0, *out;
  CHECK(cudaMemcpyToSymbol(offset, &start, sizeof start));
  CHECK(cudaMemcpyToSymbol(factors, table, sizeof table));
  CHECK(cudaMemcpyFromSymbol(&back, offset, sizeof back));
  CHECK(cudaMallocManaged(&out, 4096));
  reverse<<<1, 32, 128>>>(out);
  CHECK(cudaDeviceSynchronize());
  printf("symbols: %d %d %d %d\n", back, out[0], out[31], shared_with_host);
  CHECK(cudaFree(out));
}

static void cooperative() {
  int *out;
  CHECK(cudaMallocManaged(&out, 4096));
  void *arguments[] = {&out};
  CHECK(cudaLaunchCooperativeKernel((void *)meet, dim3(4), dim3(64), arguments, 0, 0));
  CHECK(cudaDeviceSynchronize());
  printf("cooperative: %d %d\n", out[0], out[1]);
  CHECK(cudaFree(out));
}

static void streams() {
  float *host, *device, milliseconds;
  int called = 0;
  cudaStream_t stream;
  cudaEvent_t start, stop;
  CHECK(cudaMallocHost(&host, 512));
  CHECK(cudaMalloc(&device, 512));
  for (int i = 0; i < 128; i++) host[i] = (float)i;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaEventCreate(&start));
  CHECK(cudaEventCreate(&stop));
  CHECK(cudaEventRecord(start, stream));
  CHECK(cudaMemcpyAsync(device, host, 512, cudaMemcpyHostToDevice, stream));
  scale<float><<<1, 128, 0, stream>>>(device, 2.0f);
  CHECK(cudaMemcpyAsync(host, device, 512, cudaMemcpyDeviceToHost, stream));
  CHECK(cudaEventRecord(stop, stream));
  CHECK(cudaLaunchHostFunc(stream, remember, &called));
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaEventElapsedTime(&milliseconds, start, stop));
  printf("streams: %g, called %d, time %s\n", host[100], called, milliseconds > 0 ? "passes" : "stands");
  scale<float><<<1, 128, 0, cudaStreamPerThread>>>(device, 2.0f);
  CHECK(cudaStreamSynchronize(cudaStreamPerThread));
  CHECK(cudaStreamDestroy(stream));
  CHECK(cudaFreeHost(host));
  CHECK(cudaFree(device));
}

static void questions() {
  cudaDeviceProp properties;
  cudaFuncAttributes attributes;
  int blocks, grid, block;
  CHECK(cudaGetDeviceProperties(&properties, 0));
  CHECK(cudaFuncGetAttributes(&attributes, reverse));
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, reverse, 128, 0));
  CHECK(cudaOccupancyMaxPotentialBlockSize(&grid, &block, reverse));
  printf("questions: %s, %d threads, %d blocks, %d x %d\n", properties.name, attributes.maxThreadsPerBlock, blocks, grid, block);
}

static void failures() {
  void *much;
  reverse<<<1, 2000>>>(nullptr);
  printf("failures: %s,", cudaGetErrorName(cudaGetLastError()));
  printf(" %s,", cudaGetErrorName(cudaMalloc(&much, size_t(1) << 60)));
  printf(" %s\n", cudaGetErrorName(cudaPeekAtLastError()));
  cudaGetLastError();
  fflush(stdout);
  pid_t child = fork();
  if (!child) _exit(cudaMalloc(&much, 4) == cudaErrorInitializationError ? 7 : 1);
  int status = 0;
  waitpid(child, &status, 0);
  printf("a child: %d\n", WEXITSTATUS(status));
}

struct at_exit { /* its destructor runs when the program ends */
  int *pointer = nullptr;
  ~at_exit() { printf("at exit: %s\n", cudaGetErrorName(cudaFree(pointer))); }
} held;

int main() {
  symbols();
  cooperative();
  streams();
  questions();
  failures();
  CHECK(cudaDeviceReset());
  symbols(); /* a new device: the variables have their first values again */
  CHECK(cudaMalloc(&held.pointer, 4));
  return 0;
}
