/* SPDX-License-Identifier: Apache-2.0 */
/* What declaring costs (Wilt 2017, R7): the host's time of a launch with eight declared uses, everything resident,
 * compared with a bare cuLaunchKernel of the same kernel.
 *
 *     bench_launch [ROUNDS]     (FARFAULT_DRIVER as the library's)
 *
 * The two alternate in batches; the medians of the batches are compared. The virtual GPU runs the kernel inside the
 * call (one block of 32 threads that returns), so its part is in both; simulations are off. */
#include <stdio.h>
#include <stdlib.h>

#include <time.h>

#include "farfault/farfault.h"
#include "runtime/cuda.h"

enum { USES = 8, BATCH = 100 };

static const char code[] =
    ".version 6.0\n.target sm_50\n.address_size 64\n"
    ".visible .entry nothing(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d, .param .u64 e, .param .u64 f, .param .u64 g, .param .u64 h)\n{ ret; }\n";

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void need(int result, const char *what) {
  if (!result) return;
  fprintf(stderr, "bench_launch: %s: %s\n", what, ff_message());
  exit(1);
}

static int compare(const void *a, const void *b) {
  return *(const double *)a < *(const double *)b ? -1 : *(const double *)a > *(const double *)b;
}
static double median(double *values, int count) {
  qsort(values, (size_t)count, sizeof *values, compare);
  return values[count / 2];
}

int main(int argc, char **argv) {
  int rounds = argc > 1 ? atoi(argv[1]) : 200;
  if (rounds < 1) rounds = 1;
  ff_gpu *gpu;
  ff_module *module;
  ff_kernel *kernel;
  ff_use uses[USES] = {0};
  ff_argument arguments[USES] = {0};
  ff_error error;
  need(ff_open(NULL, &gpu), "ff_open");
  need(ff_module_load(gpu, "nothing", code, 0, &module), "ff_module_load");
  need(ff_kernel_find(module, "nothing", &kernel), "ff_kernel_find");
  for (int i = 0; i < USES; i++) {
    ff_segment *segment;
    need(ff_segment_create(gpu, NULL, 4 << 20, &segment), "ff_segment_create");
    uses[i] = (ff_use){.segment = segment, .access = i % 2 ? FF_READ_WRITE : FF_READ};
    arguments[i] = (ff_argument)FF_ADDRESS(segment);
  }
  ff_launch_request request = {
      .kernel = kernel, .block = {32}, .arguments = arguments, .argument_count = USES, .uses = uses, .use_count = USES};
  need(ff_launch(gpu, &request, NULL), "ff_launch");
  need(ff_wait_all(gpu), "ff_wait_all");

  const cuda_driver *driver;
  cuda_context context;
  cuda_module bare;
  cuda_function function;
  cuda_stream stream;
  cuda_address address = 0;
  void *pointers[USES];
  for (int i = 0; i < USES; i++) pointers[i] = &address;
  need(cuda_open(NULL, &driver, &error), "cuda_open");
  need(driver->DevicePrimaryCtxRetain(&context, 0) || driver->CtxSetCurrent(context) ||
           driver->ModuleLoadDataEx(&bare, code, 0, NULL, NULL) ||
           driver->ModuleGetFunction(&function, bare, "nothing") ||
           driver->StreamCreate(&stream, CUDA_STREAM_NON_BLOCKING),
       "the bare launch");

  double *declared = malloc((size_t)rounds * sizeof *declared), *plain = malloc((size_t)rounds * sizeof *plain);
  for (int r = 0; r < rounds; r++) {
    double start = now();
    for (int i = 0; i < BATCH; i++) driver->LaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, pointers, NULL);
    plain[r] = (now() - start) / BATCH;
    driver->StreamSynchronize(stream);
    start = now();
    for (int i = 0; i < BATCH; i++) need(ff_launch(gpu, &request, NULL), "ff_launch");
    declared[r] = (now() - start) / BATCH;
    need(ff_wait_all(gpu), "ff_wait_all");
  }
  double a = median(plain, rounds), b = median(declared, rounds);
  printf("cuLaunchKernel %.2f us, ff_launch with %d uses %.2f us: %.2f us more\n", a, USES, b, b - a);
  free(declared);
  free(plain);
  driver->StreamDestroy(stream);
  driver->ModuleUnload(bare);
  driver->CtxSetCurrent(NULL);
  driver->DevicePrimaryCtxRelease(0);
  return ff_close(gpu) != FF_SUCCESS;
}
