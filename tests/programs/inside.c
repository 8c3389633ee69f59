/* SPDX-License-Identifier: Apache-2.0 */
/* A program with a CUDA runtime linked into it, as nvcc makes it by default; but this runtime is a dud: each of its
 * functions says so and fails. VERSION: 11, 12 or 13, the names that it has. As a library (LIBRARY) it has run_inside
 * instead of main.
 *
 * Its result is 0 only if its kernel has run: if something stands in for every function of the runtime. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct {
  unsigned x, y, z;
} dim3;
#ifdef __clang__ /* no caller may know what a function does, as with a runtime that was compiled elsewhere */
#define RUNTIME __attribute__((noinline, optnone, visibility("hidden")))
#else
#define RUNTIME __attribute__((noipa, visibility("hidden")))
#endif
#define DUD(type, name, parameters)           \
  RUNTIME type name parameters;               \
  RUNTIME type name parameters {              \
    fprintf(stderr, "the dud's " #name "\n"); \
    return (type)(uintptr_t)999;              \
  }
DUD(void **, __cudaRegisterFatBinary, (void *wrapper))
DUD(void *, __cudaRegisterFatBinaryEnd, (void **handle))
DUD(void *, __cudaUnregisterFatBinary, (void **handle))
DUD(void *, __cudaRegisterFunction,
    (void **handle, const char *host, char *device, const char *name, int limit, void *tid, void *bid, void *block,
     void *grid, int *warp))
DUD(void *, __cudaRegisterVar,
    (void **handle, char *host, char *device, const char *name, int external, size_t size, int constant, int global))
DUD(int, cudaMalloc, (void **pointer, size_t bytes))
DUD(int, cudaFree, (void *pointer))
DUD(int, cudaMemcpy, (void *to, const void *from, size_t bytes, int kind))
DUD(int, cudaMemcpyToSymbol, (const void *symbol, const void *from, size_t bytes, size_t offset, int kind))
DUD(int, cudaLaunchKernel, (const void *function, dim3 grid, dim3 block, void **arguments, size_t shared, void *stream))
DUD(int, cudaDeviceSynchronize, (void))
DUD(int, cudaRuntimeGetVersion, (int *version))
#if VERSION == 11
DUD(int, cudaBindTexture, (size_t * offset, const void *texture, const void *pointer, const void *format, size_t size))
void *keep[] = {cudaBindTexture};
#elif VERSION == 12
DUD(int, cudaGetDeviceProperties_v2, (void *properties, int device))
DUD(int, __cudaGetKernel, (void **kernel, const void *host))
void *keep[] = {cudaGetDeviceProperties_v2, __cudaGetKernel};
#else
DUD(int, __cudaGetKernel, (void **kernel, const void *host))
void *keep[] = {__cudaGetKernel};
#endif

static const char ptx[] =
    ".version 6.0\n.target sm_50\n.address_size 64\n"
    ".global .u32 offset;\n"
    ".visible .entry fill(.param .u64 out) {\n"
    "  .reg .u64 %d<3>;\n  .reg .u32 %r<3>;\n"
    "  ld.param.u64 %d0, [out];\n  mov.u32 %r0, %tid.x;\n  ld.global.u32 %r1, [offset];\n  add.u32 %r1, %r1, %r0;\n"
    "  mul.wide.u32 %d1, %r0, 4;\n  add.u64 %d1, %d0, %d1;\n  st.global.u32 [%d1], %r1;\n  ret;\n}\n";
static char offset_shadow;
static void **handle;

static void fill(void *out) {
  void *arguments[] = {&out};
  cudaLaunchKernel((const void *)fill, (dim3){1, 1, 1}, (dim3){32, 1, 1}, arguments, 0, NULL);
}

static void unregister(void) { __cudaUnregisterFatBinary(handle); }

/* What nvcc's constructor is called. */
static void register_all(void) __asm__("_ZL24__sti____cudaRegisterAllv");
__attribute__((constructor, used, noinline)) static void register_all(void) {
  handle = __cudaRegisterFatBinary((void *)(uintptr_t)ptx); /* the virtual GPU takes a text for a fat binary */
  __cudaRegisterFunction(handle, (const char *)fill, "fill", "fill", -1, NULL, NULL, NULL, NULL, NULL);
  __cudaRegisterVar(handle, &offset_shadow, "offset", "offset", 0, 4, 0, 1);
  __cudaRegisterFatBinaryEnd(handle);
  atexit(unregister);
}

__attribute__((visibility("default"))) int run_inside(void);
int run_inside(void) {
  unsigned *device = NULL, host[32] = {0}, start = 100, wrong = 0;
  int version = 0;
  cudaRuntimeGetVersion(&version);
  printf("version %d\n", version / 1000);
  if (cudaMalloc((void **)&device, sizeof host) || cudaMemcpyToSymbol(&offset_shadow, &start, 4, 0, 1)) return 1;
  fill(device);
  if (cudaDeviceSynchronize() || cudaMemcpy(host, device, sizeof host, 2)) return 1;
  for (unsigned i = 0; i < 32; i++) wrong += host[i] != start + i;
  printf("%u wrong\n", wrong);
  return cudaFree(device) || wrong;
}

#ifndef LIBRARY
int main(void) { return run_inside(); }
#endif
