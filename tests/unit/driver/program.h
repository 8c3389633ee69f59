/* SPDX-License-Identifier: Apache-2.0 */
/* A CUDA program in miniature: PTX texts that tests register as nvcc's host code would, and short checks. */
#ifndef FF_TESTS_DRIVER_PROGRAM_H
#define FF_TESTS_DRIVER_PROGRAM_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "driver/runtime_api/cudart.h"
#include "fatbin/fatbin.h"

#define PTX_HEAD ".version 7.0\n.target sm_75\n.address_size 64\n"

#define expect(call, error) assert_string_equal(cudaGetErrorName(call), #error)
#define succeed(call) expect(call, cudaSuccess)

typedef struct wrapper {
  uint32_t magic, version;
  const void *data, *extra;
  struct wrapper *next; /* not for the library: what was registered lives as long as the program */
} wrapper;
static wrapper *registered_wrappers;

/* Registers `count` PTX texts: one as a plain fat binary, several as after a device link. The memory stays. */
static inline void **register_ptx(const char *const *texts, uint32_t count) {
  const void **images = calloc(count + 1, sizeof *images);
  wrapper *made = calloc(1, sizeof *made);
  for (uint32_t i = 0; i < count; i++) {
    fatbin_item item = {.kind = FATBIN_KIND_PTX,
                        .arch = 75,
                        .version_major = 7,
                        .packing = FATBIN_ZSTD,
                        .bytes = texts[i],
                        .size = strlen(texts[i]) + 1};
    ff_text bytes = {0};
    assert_int_equal(fatbin_encode(&item, 1, &bytes, NULL), FF_OK);
    images[i] = bytes.chars;
  }
  ff_text empty = {0};
  if (count > 1) assert_int_equal(fatbin_encode(NULL, 0, &empty, NULL), FF_OK);
  *made = (wrapper){.magic = FATBIN_WRAPPER_MAGIC,
                    .version = count > 1 ? 2 : 1,
                    .data = count > 1 ? empty.chars : images[0],
                    .extra = images,
                    .next = registered_wrappers};
  registered_wrappers = made;
  void **handle = __cudaRegisterFatBinary(made);
  return handle;
}

/* A host stub for a kernel: an address of its own. */
#define STUB(name) static char name[1]

static inline void register_kernel(void **handle, const char *stub, const char *name) {
  __cudaRegisterFunction(handle, stub, (char *)(uintptr_t)name, name, -1, NULL, NULL, NULL, NULL, NULL);
}

static inline cudaError_t launch(const void *stub, unsigned grid, unsigned block, void **arguments) {
  return cudaLaunchKernel(stub, (dim3){grid, 1, 1}, (dim3){block, 1, 1}, arguments, 0, NULL);
}

#endif
