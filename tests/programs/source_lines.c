/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels with lines of a source (.loc), one of which stores in a function that it calls, on managed memory that the
 * host wrote; on each GPU. "plain": the PTX names no lines. Exit status 0: the sum is right. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver_call.h"

enum { WORDS = 1 << 17, BYTES = WORDS * 4 };

#define LOC(line) ".loc 1 " #line " 3\n"
#define INDEX                                                                                             \
  "mov.u32 %r2, %tid.x;\nmov.u32 %r3, %ctaid.x;\nmov.u32 %r4, %ntid.x;\nmad.lo.s32 %r2, %r3, %r4, %r2;\n" \
  "mul.wide.u32 %rd2, %r2, 4;\nadd.u64 %rd3, %rd1, %rd2;\nadd.u64 %rd5, %rd4, %rd2;\n"
static const char code[] =
    ".version 7.2\n.target sm_50\n.address_size 64\n"
    ".func put(.param .u64 to, .param .u32 word)\n{\n.reg .b32 %r<3>;\n.reg .b64 %rd<3>;\n"
    "ld.param.u64 %rd1, [to];\nld.param.u32 %r1, [word];\n" LOC(
        3) "st.global.u32 [%rd1], %r1;\nret;\n}\n"
           ".visible .entry scale(.param .u64 to, .param .u64 from)\n{\n.reg .b32 %r<9>;\n.reg .b64 %rd<6>;\n"
           "ld.param.u64 %rd1, [to];\nld.param.u64 %rd4, [from];\n" INDEX
           ".loc 1 7 5, function_name $names, inlined_at 1 12 9\nld.global.u32 %r6, [%rd5];\n" LOC(
               12) "shl.b32 %r6, %r6, 1;\n"
                   "{\n.param .b64 a;\n.param .b32 b;\nst.param.b64 [a], %rd3;\nst.param.b32 [b], %r6;\ncall.uni put, (a, b);\n}\nret;\n}\n"
                   ".visible .entry add(.param .u64 to, .param .u64 from)\n{\n.reg .b32 %r<9>;\n.reg .b64 %rd<6>;\n"
                   "ld.param.u64 %rd1, [to];\nld.param.u64 %rd4, [from];\n" INDEX LOC(
                       20) "ld.global.u32 %r5, [%rd3];\n"
                           "ld.global.u32 %r6, [%rd5];\nadd.u32 %r5, %r5, %r6;\n" LOC(
                               21) "st.global.u32 [%rd3], %r5;\nret;\n}\n"
                                   ".file 1 \"/src/lines.cu\"\n.section .debug_str\n{\n$names:\n.b8 112,0\n}\n";

/* Without its .loc lines. */
static char *plain_code(void) {
  char *copy = strdup(code), *to = copy;
  if (!copy) exit(2);
  for (const char *line = code; *line;) {
    size_t length = strcspn(line, "\n") + 1;
    if (strncmp(line, ".loc", 4)) memmove(to, line, length), to += length;
    line += length;
  }
  *to = '\0';
  return copy;
}

static void launch(void *module, const char *name, void **arguments) {
  void *kernel;
  CALL(cuModuleGetFunction, (void **, void *, const char *), &kernel, module, name);
  CALL(cuLaunchKernel,
       (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **), kernel,
       WORDS / 256, 1, 1, 256, 1, 1, 0, NULL, arguments, NULL);
}

static uint32_t *managed(void) {
  uint64_t address;
  CALL(cuMemAllocManaged, (uint64_t *, size_t, unsigned), &address, BYTES, 1);
  return (uint32_t *)(uintptr_t)address;
}

static bool good_on(int number, const char *text) {
  void *context, *module;
  CALL(cuCtxCreate_v2, (void **, unsigned, int), &context, 0, number);
  CALL(cuModuleLoadData, (void **, const void *), &module, text);
  uint32_t *from = managed(), *to = managed();
  for (uint32_t i = 0; i < WORDS; i++) from[i] = i, to[i] = 1;
  void *arguments[] = {&to, &from};
  launch(module, "scale", arguments);
  launch(module, "add", arguments);
  CALL(cuCtxSynchronize, (void));
  for (uint32_t i = 0; i < WORDS; i++)
    if (to[i] != 3 * i) return false;
  return true;
}

int main(int argc, char **argv) {
  int count = 0;
  library = dlopen("libcuda.so.1", RTLD_NOW);
  if (!library) return 3;
  CALL(cuInit, (unsigned), 0);
  CALL(cuDeviceGetCount, (int *), &count);
  char *plain = argc > 1 && !strcmp(argv[1], "plain") ? plain_code() : NULL;
  bool good = true;
  for (int i = 0; i < count && good; i++) good = good_on(i, plain ? plain : code);
  free(plain);
  return good ? 0 : 1;
}
