/* SPDX-License-Identifier: Apache-2.0 */
/* What the benchmarks have in common: a GPU, its clock, the kernels (bench_kernels.ptx), memory that the run takes.
 *
 *     bench_open -> bench_kernel, bench_launch, driver calls by BENCH_TRY -> bench_now -> bench_close
 *
 * One benchmark runs in a process of its own (cli/), because the virtual GPU reads its settings once
 * per process; so what a failed one leaves is freed by its end, and functions return at the first error. */
#ifndef FF_BENCH_BENCH_H
#define FF_BENCH_BENCH_H

#include <stdint.h>

#include "runtime/cuda.h"

extern const char bench_ptx[]; /* ends in a NUL */

typedef struct bench_gpu {
  const cuda_driver *driver;
  cuda_context context;
  cuda_module module;
} bench_gpu;

/* Device 0 of the driver that FARFAULT_DRIVER names. */
ff_status bench_open(bench_gpu *gpu, ff_error *error);
void bench_close(bench_gpu *gpu);
/* The host's clock in seconds, from some moment on: on the virtual GPU its virtual time, else the monotonic clock. */
double bench_now(const bench_gpu *gpu);

ff_status bench_kernel(const bench_gpu *gpu, const char *name, cuda_function *kernel, ff_error *error);
/* grid_x x grid_y blocks of 256 threads. */
ff_status bench_launch(const bench_gpu *gpu, cuda_function kernel, uint32_t grid_x, uint32_t grid_y, cuda_stream stream,
                       void **arguments, ff_error *error);

/* `driver->CALL(arguments)`, or return from the function that says this with the driver's error in `error`. */
#define BENCH_TRY(gpu, CALL, ...)                                                       \
  do {                                                                                  \
    int bench_result = (gpu)->driver->CALL(__VA_ARGS__);                                \
    if (bench_result) return cuda_fail((gpu)->driver, bench_result, "cu" #CALL, error); \
  } while (0)
/* A call that returns ff_status. */
#define BENCH_DO(call)                     \
  do {                                     \
    ff_status bench_status = (call);       \
    if (bench_status) return bench_status; \
  } while (0)

#endif
