/* SPDX-License-Identifier: Apache-2.0 */
/* A program on the driver API whose numbers depend on where its host memory lies: a kernel reads 1 MiB that malloc gave
 * and that is registered, and copies go from and to it. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver_call.h"

#define BYTES ((size_t)1 << 20)

static const char code[] =
    ".version 7.0\n.target sm_50\n.address_size 64\n"
    ".visible .entry add(.param .u64 from, .param .u64 to)\n{\n.reg .b32 %r<6>;\n.reg .b64 %rd<6>;\n"
    "ld.param.u64 %rd1, [from];\nld.param.u64 %rd2, [to];\nmov.u32 %r2, %tid.x;\nmov.u32 %r3, %ctaid.x;\nmov.u32 %r4, %ntid.x;\nmad.lo.s32 %r2, %r3, %r4, %r2;\n"
    "mul.wide.u32 %rd3, %r2, 4;\nadd.u64 %rd4, %rd1, %rd3;\nadd.u64 %rd5, %rd2, %rd3;\nld.global.u32 %r5, [%rd4];\nadd.u32 %r5, %r5, 1;\nst.global.u32 [%rd5], %r5;\nret;\n}\n";

int main(void) {
  void *module, *kernel;
  uint64_t seen, made;
  char *memory, *data;
  module = driver_open(code);
  CALL(cuModuleGetFunction, (void **, void *, const char *), &kernel, module, "add");
  CALL(cuMemAlloc_v2, (uint64_t *, size_t), &made, BYTES); /* from here on simulations run, which allocate, too */
  memory = malloc(BYTES + 4096);
  data = memory + 16; /* wherever that is in its page */
  memset(data, 7, BYTES);
  CALL(cuMemHostRegister_v2, (void *, size_t, unsigned), data, BYTES, 2);
  CALL(cuMemHostGetDevicePointer_v2, (uint64_t *, void *, unsigned), &seen, data, 0);
  void *arguments[] = {&seen, &made};
  CALL(cuLaunchKernel,
       (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **), kernel,
       BYTES / 1024, 1, 1, 256, 1, 1, 0, NULL, arguments, NULL);
  CALL(cuMemcpyDtoH_v2, (void *, uint64_t, size_t), data, made, BYTES);
  for (size_t i = 0; i < BYTES; i += 4)
    if (data[i] != 8) return 1;
  CALL(cuMemHostUnregister, (void *), data);
  CALL(cuMemFree_v2, (uint64_t), made);
  free(memory);
  puts("good");
  return 0;
}
