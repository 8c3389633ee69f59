/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels whose one block reads 100 KiB four times; they differ in what they prefer of the L1 and shared memory. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

#include "driver_call.h"

enum { BYTES = 100 << 10, CARVE_OUT = 9, PREFER_SHARED = 1, PREFER_L1 = 2, PREFERRED_CARVE_OUT = 14 };

#define KERNEL(name)                                                                                                                      \
  ".visible .entry " name                                                                                                                 \
  "(.param .u64 from, .param .u64 to)\n{\n.reg .b32 %r<9>;\n.reg .b64 %rd<6>;\n.reg .pred %p<3>;\n"                                       \
  "ld.param.u64 %rd1, [from];\nld.param.u64 %rd2, [to];\nmov.u32 %r1, %tid.x;\nmov.u32 %r5, 0;\nmov.u32 %r7, 0;\n"                        \
  "ROUND: shl.b32 %r2, %r1, 2;\n"                                                                                                         \
  "NEXT: cvt.u64.u32 %rd3, %r2;\nadd.u64 %rd4, %rd1, %rd3;\nld.global.u32 %r3, [%rd4];\nadd.u32 %r5, %r5, %r3;\nadd.u32 %r2, %r2, 128;\n" \
  "setp.lt.u32 %p1, %r2, 102400;\n@%p1 bra NEXT;\nadd.u32 %r7, %r7, 1;\nsetp.lt.u32 %p2, %r7, 4;\n@%p2 bra ROUND;\n"                      \
  "mul.wide.u32 %rd5, %r1, 4;\nadd.u64 %rd5, %rd2, %rd5;\nst.global.u32 [%rd5], %r5;\nret;\n}\n"

static const char code[] = ".version 7.0\n.target sm_50\n.address_size 64\n" KERNEL("plain") KERNEL("older")
    KERNEL("least") KERNEL("most") KERNEL("launch");

static void *module;
static uint64_t from, to;

/* Both preferences; none of the one: -1. */
static void launch(const char *name, int cache, int carve_out) {
  void *kernel, *arguments[] = {&from, &to};
  CALL(cuModuleGetFunction, (void **, void *, const char *), &kernel, module, name);
  if (cache >= 0) CALL(cuFuncSetCacheConfig, (void *, unsigned), kernel, (unsigned)cache);
  if (carve_out >= 0) CALL(cuFuncSetAttribute, (void *, int, int), kernel, CARVE_OUT, carve_out);
  CALL(cuLaunchKernel,
       (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **), kernel,
       1, 1, 1, 32, 1, 1, 0, NULL, arguments, NULL);
}

/* What a launch prefers, whatever its kernel does. */
static void launch_preferring(const char *name, uint32_t percent) {
  struct {
    uint32_t id, pad;
    union {
      uint32_t carve_out;
      char room[64];
    } value;
  } attribute = {.id = PREFERRED_CARVE_OUT, .value.carve_out = percent};
  struct {
    uint32_t grid[3], block[3], shared;
    void *stream, *attributes;
    uint32_t count;
  } config = {{1, 1, 1}, {32, 1, 1}, 0, NULL, &attribute, 1};
  void *kernel, *arguments[] = {&from, &to};
  CALL(cuModuleGetFunction, (void **, void *, const char *), &kernel, module, name);
  CALL(cuFuncSetAttribute, (void *, int, int), kernel, CARVE_OUT, 0);
  CALL(cuLaunchKernelEx, (void *, void *, void **, void **), &config, kernel, arguments, NULL);
}

int main(void) {
  module = driver_open(code);
  CALL(cuMemAlloc_v2, (uint64_t *, size_t), &from, BYTES);
  CALL(cuMemAlloc_v2, (uint64_t *, size_t), &to, 128);
  CALL(cuMemsetD8_v2, (uint64_t, unsigned char, size_t), from, 1, BYTES);
  launch("plain", -1, -1);
  launch("older", PREFER_SHARED, -1);
  launch("least", PREFER_SHARED, 0); /* the newer one has the last word */
  launch("most", PREFER_L1, 100);
  launch_preferring("launch", 100);
  CALL(cuCtxSynchronize, (void));
  puts("good");
  return 0;
}
