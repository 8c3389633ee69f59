/* SPDX-License-Identifier: Apache-2.0 */
/* A program whose kernel stores one byte next to an allocation that has neighbours of the same kind and size: red_zones
 * KIND BYTES OFFSET [too], for memcheck. The offset is from the allocation's start if it is negative, else from its
 * end; "last": its last byte. "too": before that, the same store is done behind the end of the first of the neighbours.
 * KIND: device, managed, pitched, pool, reused, pinned, array, variable, constant, heap. Prints what the alignment of
 * the allocations is. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver_call.h"

static const char code[] =
    ".version 8.0\n.target sm_75\n.address_size 64\n.file 1 \"/src/beside.cu\"\n"
    ".global .align 4 .b8 first[4096];\n.global .align 4 .b8 second[4096];\n.global .align 4 .b8 third[4096];\n.global .align 4 .b8 small[100];\n"
    ".const .align 4 .b8 left[4096];\n.const .align 4 .b8 middle[4096];\n.const .align 4 .b8 right[4096];\n"
    ".extern .func (.param .b64 r) malloc (.param .b64 n);\n"
    ".visible .entry store(.param .u64 a)\n{\n.reg .b32 %r<4>;\n.reg .b64 %rd<4>;\n.reg .pred %p<2>;\n"
    "ld.param.u64 %rd1, [a];\nmov.u32 %r1, %tid.x;\nsetp.ne.u32 %p1, %r1, 5;\n.loc 1 7 0\n@!%p1 st.global.u8 [%rd1], %r1;\nret;\n}\n"
    ".visible .entry load(.param .u64 a)\n{\n.reg .b32 %r<4>;\n.reg .b64 %rd<4>;\n.reg .pred %p<2>;\n"
    "ld.param.u64 %rd1, [a];\nmov.u32 %r1, %tid.x;\nsetp.ne.u32 %p1, %r1, 5;\n.loc 1 8 0\n@!%p1 ld.global.u8 %r2, [%rd1];\nret;\n}\n"
    ".visible .entry heap(.param .u64 n, .param .u64 offset)\n{\n.reg .b64 %rd<12>;\n.reg .b32 %r<4>;\n"
    "ld.param.u64 %rd1, [n];\nld.param.u64 %rd2, [offset];\n"
    "{\n.param .b64 n;\nst.param.b64 [n], %rd1;\n.param .b64 r;\ncall.uni (r), malloc, (n);\nld.param.b64 %rd3, [r];\n}\n"
    "{\n.param .b64 n;\nst.param.b64 [n], %rd1;\n.param .b64 r;\ncall.uni (r), malloc, (n);\nld.param.b64 %rd4, [r];\n}\n"
    "{\n.param .b64 n;\nst.param.b64 [n], %rd1;\n.param .b64 r;\ncall.uni (r), malloc, (n);\nld.param.b64 %rd5, [r];\n}\n"
    "st.u8 [%rd4], 1;\nadd.u64 %rd6, %rd4, %rd2;\n.loc 1 9 0\nst.u8 [%rd6], 1;\nret;\n}\n";

enum { NEIGHBOURS = 3 };

static void *module;

static void launch(const char *name, unsigned threads, uint64_t a, uint64_t b) {
  void *kernel, *arguments[] = {&a, &b};
  CALL(cuModuleGetFunction, (void **, void *, const char *), &kernel, module, name);
  CALL(cuLaunchKernel,
       (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **), kernel,
       1, 1, 1, threads, 1, 1, 0, NULL, arguments, NULL);
}

static uint64_t allocate_from_pool(size_t bytes) {
  uint64_t address;
  CALL(cuMemAllocAsync, (uint64_t *, size_t, void *), &address, bytes, NULL);
  return address;
}

/* Next to an array, whose memory has no address, a linear one. */
static uint64_t next_to_array(size_t bytes) {
  /* CUDA_ARRAY_DESCRIPTOR of unsigned bytes */
  struct {
    size_t width, height;
    int format;
    unsigned channels;
  } shape = {bytes, 0, 1, 1};
  uint64_t address;
  void *array;
  CALL(cuArrayCreate_v2, (void **, const void *), &array, &shape);
  CALL(cuMemAlloc_v2, (uint64_t *, size_t), &address, bytes);
  CALL(cuArrayCreate_v2, (void **, const void *), &array, &shape);
  return address;
}

static uint64_t variable(const char *name) {
  uint64_t address;
  size_t bytes;
  CALL(cuModuleGetGlobal_v2, (uint64_t *, size_t *, void *, const char *), &address, &bytes, module, name);
  return address;
}

/* One of a kind; *bytes becomes as many as it has. */
static uint64_t allocate(const char *kind, size_t *bytes) {
  uint64_t address = 0;
  void *host;
  size_t pitch, rows = 16;
  if (!strcmp(kind, "device")) CALL(cuMemAlloc_v2, (uint64_t *, size_t), &address, *bytes);
  if (!strcmp(kind, "managed")) CALL(cuMemAllocManaged, (uint64_t *, size_t, unsigned), &address, *bytes, 1);
  if (!strcmp(kind, "pool")) address = allocate_from_pool(*bytes);
  if (!strcmp(kind, "array")) address = next_to_array(*bytes);
  if (!strcmp(kind, "reused")) {
    CALL(cuMemFreeAsync, (uint64_t, void *), allocate_from_pool(*bytes), NULL);
    address = allocate_from_pool(*bytes);
  }
  if (!strcmp(kind, "pitched")) {
    CALL(cuMemAllocPitch_v2, (uint64_t *, size_t *, size_t, size_t, unsigned), &address, &pitch, *bytes, rows, 4);
    if (pitch % 512) printf("the pitch is %zu\n", pitch);
    *bytes = pitch * rows;
  }
  if (!strcmp(kind, "pinned")) {
    CALL(cuMemHostAlloc, (void **, size_t, unsigned), &host, *bytes, 2);
    address = (uint64_t)(uintptr_t)host;
  }
  return address;
}

int main(int argc, char **argv) {
  const char *kind = argc > 3 ? argv[1] : "device";
  size_t bytes = argc > 3 ? strtoull(argv[2], NULL, 10) : 4096;
  bool last = argc > 3 && !strcmp(argv[3], "last");
  int64_t offset = argc > 3 ? strtoll(argv[3], NULL, 10) : 0;
  uint64_t address[NEIGHBOURS] = {0}, bits = 0;
  module = driver_open(code);
  if (!strcmp(kind, "heap")) {
    launch("heap", 1, bytes, (uint64_t)(offset < 0 ? offset : offset + (int64_t)bytes));
  } else {
    for (int n = 0; n < NEIGHBOURS; n++) {
      size_t had = bytes;
      address[n] = allocate(kind, &bytes);
      bits |= address[n];
      if (n + 1 < NEIGHBOURS) bytes = had;
    }
    if (!strcmp(kind, "variable")) address[1] = variable(bytes == 100 ? "small" : "second");
    if (!strcmp(kind, "constant")) address[1] = variable("middle");
    if (argc > 4) launch("store", 32, address[0] + bytes, 0);
    launch(!strcmp(kind, "constant") ? "load" : "store", 32,
           address[1] + (last ? bytes - 1 : (uint64_t)(offset < 0 ? offset : offset + (int64_t)bytes)), 0);
  }
  if (((int (*)(void))dlsym(library, "cuCtxSynchronize"))()) return 5;
  printf("aligned to %llu\n", (unsigned long long)(bits ? bits & -bits : 0));
  return 0;
}
