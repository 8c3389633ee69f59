/* SPDX-License-Identifier: Apache-2.0 */
/* A program of virtual memory management: data of eight pieces behind one reservation, through four pieces of GPU
 * memory. Exit status 0: every word is what it must be. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver_call.h"

#define PIECE ((size_t)2 << 20)
enum { PIECES = 8, FRAMES = 4, WORDS = 2048 }; /* WORDS of each piece are used: its first half, and its last */

static const char code[] =
    ".version 7.0\n.target sm_50\n.address_size 64\n"
    ".visible .entry twice(.param .u64 to)\n{\n.reg .b32 %r<6>;\n.reg .b64 %rd<4>;\n"
    "ld.param.u64 %rd1, [to];\nmov.u32 %r2, %tid.x;\nmov.u32 %r3, %ctaid.x;\nmov.u32 %r4, %ntid.x;\nmad.lo.s32 %r2, %r3, %r4, %r2;\n"
    "mul.wide.u32 %rd2, %r2, 4;\nadd.u64 %rd3, %rd1, %rd2;\nld.global.u32 %r5, [%rd3];\nadd.u32 %r5, %r5, %r5;\nst.global.u32 [%rd3], %r5;\nret;\n}\n";

static void map(uint64_t at, uint64_t memory) {
  const int access[3] = {1, 0, 3};
  CALL(cuMemMap, (uint64_t, size_t, size_t, uint64_t, unsigned long long), at, PIECE, 0, memory, 0);
  CALL(cuMemSetAccess, (uint64_t, size_t, const void *, size_t), at, PIECE, access, 1);
}

static void copy_in(uint64_t to, const void *from, size_t bytes) {
  CALL(cuMemcpyHtoD_v2, (uint64_t, const void *, size_t), to, from, bytes);
}
static void copy_out(void *to, uint64_t from, size_t bytes) {
  CALL(cuMemcpyDtoH_v2, (void *, uint64_t, size_t), to, from, bytes);
}

int main(void) {
  static uint32_t words[WORDS], back[WORDS];
  const int properties[8] = {1, 0, 1, 0};
  void *module, *kernel;
  uint64_t at, memory[FRAMES];
  module = driver_open(code);
  CALL(cuModuleGetFunction, (void **, void *, const char *), &kernel, module, "twice");
  CALL(cuMemAddressReserve, (uint64_t *, size_t, size_t, uint64_t, unsigned long long), &at, PIECES * PIECE, 0, 0, 0);
  for (int i = 0; i < FRAMES; i++)
    CALL(cuMemCreate, (uint64_t *, size_t, const void *, unsigned long long), &memory[i], PIECE, properties, 0);
  for (int round = 0; round < 2 * PIECES; round++) {
    /* half here, half in the next piece */
    uint64_t low = at + (size_t)(round % (PIECES - 1)) * PIECE, edge = low + PIECE - WORDS * 2;
    for (uint32_t i = 0; i < WORDS; i++) words[i] = i * 2654435761u + (uint32_t)round;
    map(low, memory[round % FRAMES]);
    map(low + PIECE, memory[(round + 1) % FRAMES]);
    copy_in(edge, words, sizeof words);
    void *arguments[] = {&edge};
    CALL(cuLaunchKernel,
         (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **),
         kernel, WORDS / 256, 1, 1, 256, 1, 1, 0, NULL, arguments, NULL);
    copy_out(back, edge, sizeof back);
    for (uint32_t i = 0; i < WORDS; i++)
      if (back[i] != 2 * words[i]) return 1;
    CALL(cuMemUnmap, (uint64_t, size_t), low, 2 * PIECE);
  }
  for (int i = 0; i < FRAMES; i++) CALL(cuMemRelease, (uint64_t), memory[i]);
  CALL(cuMemAddressFree, (uint64_t, size_t), at, PIECES * PIECE);
  puts("good");
  return 0;
}
