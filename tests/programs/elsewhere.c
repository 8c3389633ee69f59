/* SPDX-License-Identifier: Apache-2.0 */
/* Something lies where the virtual GPU's memory would be: elsewhere [ADDRESS...] maps a page at each address, then uses
 * memory of every kind and checks what is in it; exit status 0: all is as it must be. As a library (-DLIBRARY), for
 * LD_PRELOAD: a constructor maps the pages that the variable TAKEN names, before the program begins. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096 };

static void take(const char *address) {
  void *wanted = (void *)(uintptr_t)strtoull(address, NULL, 16);
  char *got = mmap(wanted, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (got != wanted) abort();
  strcpy(got, "mine");
}

#ifdef LIBRARY
__attribute__((constructor)) static void take_all(void) {
  char *copy = getenv("TAKEN") ? strdup(getenv("TAKEN")) : NULL;
  for (char *rest = NULL, *word = copy ? strtok_r(copy, ",", &rest) : NULL; word; word = strtok_r(NULL, ",", &rest))
    take(word);
  free(copy);
}
#else
#include "driver_call.h"

enum { WORDS = 5000, BYTES = WORDS * 4 };

/* sum: words [from, end) of one array are added to those of another; chase: a pointer in memory is followed. */
static const char code[] =
    ".version 7.0\n.target sm_50\n.address_size 64\n.global .align 8 .u64 cell;\n"
    ".visible .entry sum(.param .u64 from, .param .u64 end, .param .u64 to)\n{\n.reg .b32 %r<8>;\n.reg .b64 %rd<8>;\n.reg .pred %p;\n"
    "ld.param.u64 %rd1, [from];\nld.param.u64 %rd2, [end];\nld.param.u64 %rd3, [to];\n"
    "mov.u32 %r2, %tid.x;\nmov.u32 %r3, %ctaid.x;\nmov.u32 %r4, %ntid.x;\nmad.lo.s32 %r2, %r3, %r4, %r2;\nmul.wide.u32 %rd4, %r2, 4;\n"
    "add.u64 %rd5, %rd1, %rd4;\nadd.u64 %rd6, %rd3, %rd4;\nsetp.ge.u64 %p, %rd5, %rd2;\n@%p bra DONE;\n"
    "ld.global.u32 %r5, [%rd5];\nld.global.u32 %r6, [%rd6];\nadd.u32 %r5, %r5, %r6;\nst.global.u32 [%rd6], %r5;\nDONE:\nret;\n}\n"
    ".visible .entry chase(.param .u64 from, .param .u64 end, .param .u64 to)\n{\n.reg .b32 %r<4>;\n.reg .b64 %rd<8>;\n"
    "ld.global.u64 %rd1, [cell];\nmov.u32 %r1, %tid.x;\nmul.wide.u32 %rd2, %r1, 516;\nadd.u64 %rd3, %rd1, %rd2;\nprefetch.global.L2 [%rd3];\n"
    "ld.u32 %r2, [%rd3];\nadd.u32 %r2, %r2, 1;\nst.u32 [%rd3], %r2;\nret;\n}\n";

static void *module;

static void launch(const char *name, uint64_t from, uint64_t to) {
  void *kernel;
  uint64_t end = from + BYTES;
  void *arguments[] = {&from, &end, &to};
  CALL(cuModuleGetFunction, (void **, void *, const char *), &kernel, module, name);
  CALL(cuLaunchKernel,
       (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **), kernel,
       !strcmp(name, "sum") ? (WORDS + 127) / 128 : 1, 1, 1, !strcmp(name, "sum") ? 128 : 32, 1, 1, 0, NULL, arguments,
       NULL);
}

static void copy_in(uint64_t to, const void *from, size_t bytes) {
  CALL(cuMemcpyHtoD_v2, (uint64_t, const void *, size_t), to, from, bytes);
}
static void copy_out(void *to, uint64_t from, size_t bytes) {
  CALL(cuMemcpyDtoH_v2, (void *, uint64_t, size_t), to, from, bytes);
}

static uint64_t mapped(void) {
  const int properties[8] = {1, 0, 1, 0}, access[3] = {1, 0, 3};
  const size_t bytes = (size_t)2 << 20;
  uint64_t at, memory;
  CALL(cuMemAddressReserve, (uint64_t *, size_t, size_t, uint64_t, unsigned long long), &at, bytes, 0, 0, 0);
  CALL(cuMemCreate, (uint64_t *, size_t, const void *, unsigned long long), &memory, bytes, properties, 0);
  CALL(cuMemMap, (uint64_t, size_t, size_t, uint64_t, unsigned long long), at, bytes, 0, memory, 0);
  CALL(cuMemSetAccess, (uint64_t, size_t, const void *, size_t), at, bytes, access, 1);
  return at;
}

static int check(uint64_t array, uint32_t factor) { /* words of value factor * their number */
  static uint32_t back[WORDS];
  copy_out(back, array, BYTES);
  for (uint32_t i = 0; i < WORDS; i++)
    if (back[i] != factor * i) return 1;
  return 0;
}

int main(int argc, char **argv) {
  static uint32_t words[WORDS];
  void *pinned;
  uint64_t device, managed, array, cell, seen;
  size_t size;
  for (int i = 1; i < argc; i++) take(argv[i]);
  for (uint32_t i = 0; i < WORDS; i++) words[i] = i;
  module = driver_open(code);
  CALL(cuMemAlloc_v2, (uint64_t *, size_t), &device, BYTES);
  CALL(cuMemAllocManaged, (uint64_t *, size_t, unsigned), &managed, BYTES, 1);
  CALL(cuMemHostAlloc, (void **, size_t, unsigned), &pinned, BYTES, 2);
  array = mapped();
  memcpy((void *)(uintptr_t)managed, words, BYTES);
  memcpy(pinned, words, BYTES);
  copy_in(device, words, BYTES);
  copy_in(array, words, BYTES);
  launch("sum", managed, device);
  launch("sum", (uint64_t)(uintptr_t)pinned, device);
  launch("sum", array, device);
  if (check(device, 4)) return 1;
  ((volatile uint32_t *)(uintptr_t)managed)[1] = 1; /* the host touches a page */
  char *host = mmap(NULL, BYTES + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
       *registered = host + 48;
  memcpy(registered, words, BYTES);
  CALL(cuMemHostRegister_v2, (void *, size_t, unsigned), registered, BYTES, 2);
  CALL(cuMemHostGetDevicePointer_v2, (uint64_t *, void *, unsigned), &seen, registered, 0);
  launch("sum", seen, device);
  copy_in(array, registered, BYTES);
  launch("sum", array, device);
  if (check(device, 6)) return 1;
  CALL(cuMemHostUnregister, (void *), registered);
  CALL(cuModuleGetGlobal_v2, (uint64_t *, size_t *, void *, const char *), &cell, &size, module, "cell");
  copy_in(cell, &managed, sizeof managed);
  launch("chase", managed, device);
  copy_out(words, managed, BYTES);
  if (words[0] != 1 || words[129] != 130 || words[1] != 1) return 1;
  for (int i = 1; i < argc; i++)
    if (strcmp((const char *)(uintptr_t)strtoull(argv[i], NULL, 16), "mine")) return 1;
  puts("good");
  return 0;
}
#endif
