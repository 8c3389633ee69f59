/* SPDX-License-Identifier: Apache-2.0 */
/* What declaring costs (Wilt 2017, R7): the processor time of a launch that declares 1 to 64 segments, everything
 * resident, compared with a bare cuLaunchKernel of the same kernel, and with one whose pointers are
 * cuMemAllocManaged's.
 *
 *     bench_launch [ROUNDS]     (FARFAULT_DRIVER as the library's)
 *
 * The three alternate in batches; the medians of the batches are compared, in all threads. The virtual GPU runs the
 * kernel inside the call (one block of 32 threads that returns), so its part is in all; simulations are off. */
#include <stdio.h>
#include <stdlib.h>

#include <time.h>

#include "farfault/farfault.h"
#include "runtime/cuda.h"

enum { MOST = 64, BATCH = 100, BYTES = 1 << 16, ATTACH_GLOBAL = 1 };

static double now(void) { /* ns of the process on processors: other work does not count */
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
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

/* The PTX of an empty kernel that takes so many pointers. */
static void write_code(int pointers, char *code, size_t size) {
  int at = snprintf(code, size, ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry nothing(");
  for (int i = 0; i < pointers; i++)
    at += snprintf(code + at, size - (size_t)at, "%s.param .u64 p%d", i ? ", " : "", i);
  snprintf(code + at, size - (size_t)at, ")\n{ ret; }\n");
}

typedef struct bare { /* the driver's own launch */
  const cuda_driver *driver;
  cuda_module module;
  cuda_function function;
  cuda_stream stream;
  cuda_address device, managed[MOST];
  void *plain[MOST], *of_managed[MOST];
} bare;

static void bare_open(bare *b, const char *code) {
  need(b->driver->ModuleLoadDataEx(&b->module, code, 0, NULL, NULL) ||
           b->driver->ModuleGetFunction(&b->function, b->module, "nothing") ||
           b->driver->StreamCreate(&b->stream, CUDA_STREAM_NON_BLOCKING),
       "the bare launch");
}

static void bare_close(bare *b) {
  b->driver->StreamDestroy(b->stream);
  b->driver->ModuleUnload(b->module);
}

static double bare_batch(bare *b, void **pointers) {
  double start = now();
  for (int i = 0; i < BATCH; i++) b->driver->LaunchKernel(b->function, 1, 1, 1, 32, 1, 1, 0, b->stream, pointers, NULL);
  double took = (now() - start) / BATCH;
  b->driver->StreamSynchronize(b->stream);
  return took;
}

/* One row: launches of so many pointers. */
static void measure(ff_gpu *gpu, bare *b, ff_segment **segments, int count, int rounds) {
  char code[4096];
  ff_module *module;
  ff_kernel *kernel;
  ff_use uses[MOST] = {0};
  ff_argument arguments[MOST] = {0};
  double *declared = malloc((size_t)rounds * 3 * sizeof *declared), *plain = declared + rounds,
         *managed = plain + rounds;
  write_code(count, code, sizeof code);
  need(ff_module_load(gpu, "nothing", code, 0, &module), "ff_module_load");
  need(ff_kernel_find(module, "nothing", &kernel), "ff_kernel_find");
  for (int i = 0; i < count; i++) {
    uses[i] = (ff_use){.segment = segments[i], .access = i % 2 ? FF_READ_WRITE : FF_READ};
    arguments[i] = (ff_argument)FF_ADDRESS(segments[i]);
  }
  ff_launch_request request = {.kernel = kernel,
                               .block = {32},
                               .arguments = arguments,
                               .argument_count = (uint32_t)count,
                               .uses = uses,
                               .use_count = (uint32_t)count};
  need(ff_launch(gpu, &request, NULL), "ff_launch");
  need(ff_wait_all(gpu), "ff_wait_all");
  bare_open(b, code);
  for (int r = 0; r < rounds; r++) {
    plain[r] = bare_batch(b, b->plain);
    managed[r] = bare_batch(b, b->of_managed);
    double start = now();
    for (int i = 0; i < BATCH; i++) need(ff_launch(gpu, &request, NULL), "ff_launch");
    declared[r] = (now() - start) / BATCH;
    need(ff_wait_all(gpu), "ff_wait_all");
  }
  double x = median(plain, rounds), m = median(managed, rounds), s = median(declared, rounds);
  printf("%8d  %11.0f  %12.0f  %12.0f  %11.0f  %11.1f\n", count, x, m, s, s - x, (s - x) / count);
  bare_close(b);
  free(declared);
}

int main(int argc, char **argv) {
  int rounds = argc > 1 ? atoi(argv[1]) : 200;
  if (rounds < 1) rounds = 1;
  ff_gpu *gpu;
  ff_segment *segments[MOST];
  ff_error error;
  cuda_context context;
  bare b = {0};
  need(ff_open(NULL, &gpu), "ff_open");
  for (int i = 0; i < MOST; i++) need(ff_segment_create(gpu, NULL, BYTES, &segments[i]), "ff_segment_create");
  need(cuda_open(NULL, &b.driver, &error), "cuda_open");
  need(b.driver->DevicePrimaryCtxRetain(&context, 0) || b.driver->CtxSetCurrent(context), "the context");
  for (int i = 0; i < MOST; i++) {
    need(b.driver->MemAllocManaged(&b.managed[i], BYTES, ATTACH_GLOBAL), "cuMemAllocManaged");
    b.plain[i] = &b.device;
    b.of_managed[i] = &b.managed[i];
  }
  printf("pointers  bare launch  managed, ns  segments, ns  declaring ns  ns a segment\n");
  for (int count = 1; count <= MOST; count *= 2) measure(gpu, &b, segments, count, rounds);
  for (int i = 0; i < MOST; i++) b.driver->MemFree(b.managed[i]);
  b.driver->CtxSetCurrent(NULL);
  b.driver->DevicePrimaryCtxRelease(0);
  return ff_close(gpu) != FF_SUCCESS;
}
