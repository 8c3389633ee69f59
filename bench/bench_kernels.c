/* SPDX-License-Identifier: Apache-2.0 */
/* What a launch costs where a program has many kernels: different small kernels in one module or several, launched one
 * after the other, through the driver API.
 *
 *     bench_kernels [KERNELS [MODULES [LAUNCHES [THREADS [MANAGED]]]]]     (FARFAULT_DRIVER as the library's)
 *
 * Defaults: 5000 kernels in 1 module, each launched once by 65,536 threads. The launches go round: the first KERNELS of
 * them are first launches. Each kernel adds a constant of its own to an element of an array in each thread, in 14
 * instructions; the sum is checked. With MANAGED the array is managed memory, and so are that many allocations of 4 KiB
 * that nothing touches, side by side (default: none; the driver is libcuda.so.1 then). Times are of all threads of the
 * process. Run it under `farfault run --memory MANAGER` to measure with simulations. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/text.h"
#include "runtime/cuda.h"

enum { BLOCK = 256, INSTRUCTIONS = 15 };

static const cuda_driver *driver;

static double now(void) { /* s of the process on processors: other work does not count */
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void need(int result, const char *what) {
  if (!result) return;
  fprintf(stderr, "bench_kernels: %s: error %d\n", what, result);
  exit(1);
}

static unsigned long argument(int argc, char **argv, int at, unsigned long otherwise) {
  char *end;
  if (at >= argc) return otherwise;
  unsigned long value = strtoul(argv[at], &end, 10);
  if (value && !*end && value <= 10000000) return value;
  fprintf(stderr, "bench_kernels: '%s': a number from 1 to 10000000 is wanted\n", argv[at]);
  exit(2);
}

/* As nvcc writes `p[i] += K` with `if (i < n)` before it. */
static void add_kernel(ff_text *code, unsigned long number) {
  ff_text_add(code,
              "\n.visible .entry _Z18elementwise_kernelILi%luEEvPjj(\n"
              "\t.param .u64 array,\n\t.param .u32 elements\n)\n{\n"
              "\t.reg .pred %%p<2>;\n\t.reg .b32 %%r<8>;\n\t.reg .b64 %%rd<5>;\n"
              "\tld.param.u64 %%rd1, [array];\n\tld.param.u32 %%r2, [elements];\n"
              "\tmov.u32 %%r3, %%ctaid.x;\n\tmov.u32 %%r4, %%ntid.x;\n\tmov.u32 %%r5, %%tid.x;\n"
              "\tmad.lo.s32 %%r1, %%r3, %%r4, %%r5;\n\tsetp.ge.u32 %%p1, %%r1, %%r2;\n\t@%%p1 bra $L__BB%lu_2;\n"
              "\tcvta.to.global.u64 %%rd2, %%rd1;\n\tmul.wide.u32 %%rd3, %%r1, 4;\n\tadd.s64 %%rd4, %%rd2, %%rd3;\n"
              "\tld.global.u32 %%r6, [%%rd4];\n\tadd.s32 %%r7, %%r6, %lu;\n\tst.global.u32 [%%rd4], %%r7;\n"
              "$L__BB%lu_2:\n\tret;\n}\n",
              number, number, number + 1, number);
}

typedef struct code {
  cuda_module *modules;
  cuda_function *kernels;
} code;

/* Kernel k is in module k modulo `modules`. */
static code load(unsigned long kernels, unsigned long modules, double *seconds) {
  code c = {.modules = calloc(modules, sizeof *c.modules), .kernels = calloc(kernels, sizeof *c.kernels)};
  char name[64];
  for (unsigned long m = 0; m < modules; m++) {
    ff_text text = {0};
    ff_text_add(&text, ".version 7.8\n.target sm_70\n.address_size 64\n");
    for (unsigned long k = m; k < kernels; k += modules) add_kernel(&text, k);
    double start = now();
    need(driver->ModuleLoadDataEx(&c.modules[m], text.chars, 0, NULL, NULL), "cuModuleLoadDataEx");
    for (unsigned long k = m; k < kernels; k += modules) {
      snprintf(name, sizeof name, "_Z18elementwise_kernelILi%luEEvPjj", k);
      need(driver->ModuleGetFunction(&c.kernels[k], c.modules[m], name), "cuModuleGetFunction");
    }
    *seconds += now() - start;
    free(text.chars);
  }
  return c;
}

/* Launches number `first` to `last` - 1; returns the seconds. */
static double launch(const code *c, unsigned long kernels, unsigned long first, unsigned long last, cuda_address array,
                     unsigned threads) {
  void *arguments[] = {&array, &threads};
  double start = now();
  for (unsigned long n = first; n < last; n++)
    need(driver->LaunchKernel(c->kernels[n % kernels], (threads + BLOCK - 1) / BLOCK, 1, 1,
                              threads < BLOCK ? threads : BLOCK, 1, 1, 0, NULL, arguments, NULL),
         "cuLaunchKernel");
  need(driver->CtxSynchronize(), "cuCtxSynchronize");
  return now() - start;
}

static void check(cuda_address array, unsigned threads, unsigned long kernels, unsigned long launches) {
  unsigned sum = 0, wrong = 0;
  unsigned *values = calloc(threads, sizeof *values);
  for (unsigned long n = 0; n < launches; n++) sum += (unsigned)(n % kernels) + 1;
  need(driver->MemcpyDtoH(values, array, threads * sizeof *values), "cuMemcpyDtoH");
  for (unsigned t = 0; t < threads; t++) wrong += values[t] != sum;
  free(values);
  if (!wrong) return;
  fprintf(stderr, "bench_kernels: %u of %u values are wrong\n", wrong, threads);
  exit(1);
}

/* The array, behind `count` others. libfarfault allocates no managed memory, so that its table of the driver has no
 * call for it. */
static cuda_address allocate_managed(unsigned long count, size_t bytes) {
  void *library = dlopen("libcuda.so.1", RTLD_LAZY);
  int (*allocate)(cuda_address *, size_t, unsigned) = NULL;
  cuda_address address = 0;
  if (library) *(void **)&allocate = dlsym(library, "cuMemAllocManaged");
  need(!allocate, "libcuda.so.1 with cuMemAllocManaged");
  for (unsigned long i = 0; i < count; i++) need(allocate(&address, 4096, 1), "cuMemAllocManaged");
  need(allocate(&address, bytes, 1), "cuMemAllocManaged");
  return address;
}

static void print_launches(const char *which, double seconds, unsigned long launches, unsigned threads) {
  double instructions = (double)launches * ((threads + 31) / 32) * INSTRUCTIONS;
  if (launches)
    printf("%-14s %9lu %10.1f us each, %7.1f million warp instructions a second\n", which, launches,
           seconds / (double)launches * 1e6, instructions / seconds / 1e6);
}

int main(int argc, char **argv) {
  unsigned long kernels = argument(argc, argv, 1, 5000), modules = argument(argc, argv, 2, 1);
  unsigned long launches = argument(argc, argv, 3, kernels), once = launches < kernels ? launches : kernels;
  unsigned threads = (unsigned)argument(argc, argv, 4, 65536);
  unsigned long managed = argument(argc, argv, 5, 0);
  double start = now(), loading = 0;
  cuda_context context;
  cuda_address array;
  ff_error error;
  if (modules > kernels) modules = kernels;
  if (cuda_open(NULL, &driver, &error)) {
    fprintf(stderr, "bench_kernels: %s\n", error.message);
    return 1;
  }
  need(driver->DevicePrimaryCtxRetain(&context, 0) || driver->CtxSetCurrent(context), "the context");
  if (managed) array = allocate_managed(managed, threads * sizeof(unsigned));
  else need(driver->MemAlloc(&array, threads * sizeof(unsigned)), "cuMemAlloc");
  need(driver->MemsetD8Async(array, 0, threads * sizeof(unsigned), NULL), "cuMemsetD8Async");
  double starting = now() - start;
  code c = load(kernels, modules, &loading);
  double first = launch(&c, kernels, 0, once, array, threads);
  double again = launch(&c, kernels, once, launches, array, threads);
  check(array, threads, kernels, launches);
  printf("%lu kernels in %lu modules, %u threads a launch; processor time:\n", kernels, modules, threads);
  printf("%-14s %23.1f ms\n%-14s %9lu %10.1f us each\n", "start", starting * 1e3, "kernels loaded", kernels,
         loading / (double)kernels * 1e6);
  print_launches("first launches", first, once, threads);
  print_launches("later launches", again, launches - once, threads);
  for (unsigned long m = 0; m < modules; m++) need(driver->ModuleUnload(c.modules[m]), "cuModuleUnload");
  driver->MemFree(array);
  free(c.modules);
  free(c.kernels);
  driver->CtxSetCurrent(NULL);
  driver->DevicePrimaryCtxRelease(0);
  return 0;
}
