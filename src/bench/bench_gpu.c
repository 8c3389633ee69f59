/* SPDX-License-Identifier: Apache-2.0 */
/* The GPU of a benchmark: its context, module and clock. */
#include <time.h>

#include "bench/bench.h"

ff_status bench_open(bench_gpu *gpu, ff_error *error) {
  int device = 0;
  *gpu = (bench_gpu){0};
  BENCH_DO(cuda_open(NULL, &gpu->driver, error));
  BENCH_TRY(gpu, DeviceGet, &device, 0);
  BENCH_TRY(gpu, DevicePrimaryCtxRetain, &gpu->context, device);
  BENCH_TRY(gpu, CtxSetCurrent, gpu->context);
  BENCH_TRY(gpu, ModuleLoadDataEx, &gpu->module, bench_ptx, 0, NULL, NULL);
  return FF_OK;
}

void bench_close(bench_gpu *gpu) {
  int device = 0;
  if (gpu->module) gpu->driver->ModuleUnload(gpu->module);
  if (gpu->context && !gpu->driver->DeviceGet(&device, 0)) gpu->driver->DevicePrimaryCtxRelease(device);
  *gpu = (bench_gpu){0};
}

double bench_now(const bench_gpu *gpu) {
  uint64_t picoseconds;
  if (gpu->driver->host_time && !gpu->driver->host_time(&picoseconds)) return (double)picoseconds * 1e-12;
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

ff_status bench_kernel(const bench_gpu *gpu, const char *name, cuda_function *kernel, ff_error *error) {
  BENCH_TRY(gpu, ModuleGetFunction, kernel, gpu->module, name);
  return FF_OK;
}

ff_status bench_launch(const bench_gpu *gpu, cuda_function kernel, uint32_t grid_x, uint32_t grid_y, cuda_stream stream,
                       void **arguments, ff_error *error) {
  BENCH_TRY(gpu, LaunchKernel, kernel, grid_x, grid_y, 1, 256, 1, 1, 0, stream, arguments, NULL);
  return FF_OK;
}
