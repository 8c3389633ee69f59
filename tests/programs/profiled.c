/* SPDX-License-Identifier: Apache-2.0 */
/* A program that does what the letters of its argument say, one after the other:
 *
 *     S X  cuProfilerStart, cuProfilerStop         R P  the same of the runtime
 *     a b  launches `first` in stream 1, `second` in stream 2, and does not wait      d  `second` in the default stream
 *     w    waits for the device                    t    the host writes to the managed memory
 *     c    copies to the device                    n    another allocation
 *
 * A second argument says how many MiB of managed memory there are, 1 to 64 (1). */
#include <stdint.h>
#include <string.h>

#include "driver_call.h"

enum { LEAST = 1 << 19, MOST = 32 << 20, THREADS = 256, MANAGED = 1 };

#define KERNEL(name, times)                                                                                     \
  ".visible .entry " name "(.param .u64 at)\n{\n.reg .b32 %r<9>;\n.reg .b64 %rd<6>;\n.reg .pred %p<3>;\n"       \
  "ld.param.u64 %rd1, [at];\nmov.u32 %r1, %tid.x;\nmov.u32 %r2, %ctaid.x;\nmad.lo.u32 %r1, %r2, 256, %r1;\n"    \
  "mul.wide.u32 %rd2, %r1, 4;\nadd.u64 %rd1, %rd1, %rd2;\nmov.u32 %r5, 0;\n"                                    \
  "AGAIN: ld.global.u32 %r3, [%rd1];\nadd.u32 %r3, %r3, 1;\nst.global.u32 [%rd1], %r3;\nadd.u32 %r5, %r5, 1;\n" \
  "setp.lt.u32 %p1, %r5, " times ";\n@%p1 bra AGAIN;\nret;\n}\n"

static const char code[] = ".version 7.0\n.target sm_50\n.address_size 64\n" KERNEL("first", "3") KERNEL("second", "5");

static void *module, *streams[2];
static uint64_t managed, device, bytes = LEAST; /* of each half of the managed memory, and of other allocations */

static void launch(const char *name, void *stream, uint64_t at) {
  void *kernel, *arguments[] = {&at};
  CALL(cuModuleGetFunction, (void **, void *, const char *), &kernel, module, name);
  CALL(cuLaunchKernel,
       (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **), kernel,
       (unsigned)(bytes / 4 / THREADS), 1, 1, THREADS, 1, 1, 0, stream, arguments, NULL);
}

/* Of the runtime: a library of its own over the same device. */
static void call_runtime(const char *name) {
  void *runtime = dlopen("libcudart.so.12", RTLD_NOW);
  int (*call)(void) = runtime ? (int (*)(void))dlsym(runtime, name) : NULL;
  if (!call || call()) exit(4);
}

static void act(char letter) {
  static char buffer[MOST];
  uint64_t more;
  switch (letter) {
  case 'S': CALL(cuProfilerStart, (void)); break;
  case 'X': CALL(cuProfilerStop, (void)); break;
  case 'R': call_runtime("cudaProfilerStart"); break;
  case 'P': call_runtime("cudaProfilerStop"); break;
  case 'a': launch("first", streams[0], managed); break;
  case 'b': launch("second", streams[1], managed + bytes); break;
  case 'd': launch("second", NULL, device); break;
  case 'w': CALL(cuCtxSynchronize, (void)); break;
  case 't': memset((void *)(uintptr_t)managed, 1, bytes); break;
  case 'c': CALL(cuMemcpyHtoD_v2, (uint64_t, const void *, size_t), device, buffer, bytes); break;
  case 'n': CALL(cuMemAlloc_v2, (uint64_t *, size_t), &more, bytes); break;
  default: exit(64);
  }
}

int main(int argc, char **argv) {
  if (argc != 2 && argc != 3) return 64;
  if (argc == 3) bytes *= strtoull(argv[2], NULL, 10);
  if (bytes < LEAST || bytes > MOST) return 64;
  module = driver_open(code);
  for (int i = 0; i < 2; i++) CALL(cuStreamCreate, (void **, unsigned), &streams[i], 0);
  CALL(cuMemAllocManaged, (uint64_t *, size_t, unsigned), &managed, 2 * bytes, MANAGED);
  CALL(cuMemAlloc_v2, (uint64_t *, size_t), &device, bytes);
  for (const char *letter = argv[1]; *letter; letter++) act(*letter);
  CALL(cuCtxSynchronize, (void));
  return 0;
}
