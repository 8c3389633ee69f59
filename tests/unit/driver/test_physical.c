/* SPDX-License-Identifier: Apache-2.0 */
/* farfaultPhysical: where the virtual GPU has its memory. An allocation is one piece of physical memory, also one of
 * nearly all there is; what is freed is had again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "driver/driver_api/libcuda.h"
#include "farfault/virtual.h"

CUresult cuInit(unsigned), cuDevicePrimaryCtxRetain(CUcontext *, CUdevice), cuCtxSetCurrent(CUcontext);
CUresult cuMemAlloc_v2(CUdeviceptr *, size_t), cuMemFree_v2(CUdeviceptr);

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)
#define succeed(call) assert_int_equal(call, CUDA_SUCCESS)

static uint64_t physical(uint64_t address) {
  uint64_t at = 0;
  succeed(farfaultPhysical(address, &at));
  return at;
}

static void one_piece(void **state) {
  CUdeviceptr a, b;
  succeed(cuMemAlloc_v2(&a, 7 * GIB));
  uint64_t base = physical(a);
  assert_int_equal(base % (2 * MIB), 0);
  for (uint64_t at = 0; at < 7 * GIB; at += 61 * MIB + 4096 + 128) assert_int_equal(physical(a + at), base + at);
  succeed(cuMemAlloc_v2(&b, 10 * MIB));
  assert_true(physical(b) >= base + 7 * GIB || physical(b) + 10 * MIB <= base);
  assert_int_equal(physical(b + 10 * MIB - 1), physical(b) + 10 * MIB - 1);
  succeed(cuMemFree_v2(a));
  succeed(cuMemAlloc_v2(&a, 7 * GIB));
  assert_int_equal(physical(a + 5 * GIB) - physical(a), 5 * GIB);
  succeed(cuMemFree_v2(a));
  succeed(cuMemFree_v2(b));
}

static void small_pieces(void **state) {
  CUdeviceptr many[200];
  for (int i = 0; i < 200; i++) succeed(cuMemAlloc_v2(&many[i], 4096));
  for (int i = 0; i < 200; i++)
    for (int j = 0; j < i; j++) assert_int_not_equal(physical(many[i]), physical(many[j]));
  for (int i = 0; i < 200; i++) succeed(cuMemFree_v2(many[i]));
  uint64_t at;
  assert_int_equal(farfaultPhysical(16, &at), CUDA_ERROR_INVALID_VALUE);
  assert_int_equal(farfaultPhysical(many[0], NULL), CUDA_ERROR_INVALID_VALUE);
}

int main(void) {
  setenv("FARFAULT_MEMORY", "copy", 1);
  setenv("FARFAULT_MACHINE", "gtx1080", 1);
  CUcontext context;
  if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context)) return 1;
  const struct CMUnitTest tests[] = {cmocka_unit_test(one_piece), cmocka_unit_test(small_pieces)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
