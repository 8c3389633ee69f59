/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that call the device runtime's functions for cooperative grids, as Numba makes them: declared, and defined
 * nowhere. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "driver/driver_api/libcuda.h"

CUresult cuInit(unsigned);
CUresult cuCtxCreate_v2(CUcontext *, unsigned, CUdevice);
CUresult cuMemAlloc_v2(CUdeviceptr *, size_t);
CUresult cuMemcpyDtoH_v2(void *, CUdeviceptr, size_t);
CUresult cuMemsetD32_v2(CUdeviceptr, unsigned, size_t);
CUresult cuModuleLoadData(CUmodule *, const void *);
CUresult cuModuleGetFunction(CUfunction *, CUmodule, const char *);
CUresult cuLaunchKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream,
                        void **, void **);
CUresult cuLaunchCooperativeKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                   CUstream, void **);

enum { BLOCKS = 6, THREADS = 40, ROUNDS = 3 };

/* Each round, each block writes to its own word and, when all have, adds what its neighbour wrote to its sum. */
static const char ptx[] =
    ".version 7.8\n.target sm_75\n.address_size 64\n"
    ".extern .func (.param .b64 result) cudaCGGetIntrinsicHandle(.param .b32 scope);\n"
    ".extern .func (.param .b32 result) cudaCGSynchronize(.param .b64 handle, .param .b32 flags);\n"
    ".visible .entry neighbours(.param .u64 words, .param .u64 sums) {\n"
    "  .reg .pred %p<3>; .reg .b32 %r<20>; .reg .b64 %rd<10>;\n"
    "  ld.param.u64 %rd1, [words]; ld.param.u64 %rd2, [sums];\n"
    "  { .param .b32 a; .param .b64 b; st.param.b32 [a], 1;\n"
    "    call.uni (b), cudaCGGetIntrinsicHandle, (a); ld.param.b64 %rd3, [b]; }\n"
    "  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %nctaid.x; mov.u32 %r3, %tid.x; mov.u32 %r9, 0; mov.u32 %r10, 0;\n"
    "  add.u32 %r4, %r1, 1; rem.u32 %r4, %r4, %r2;\n"
    "  mad.wide.u32 %rd4, %r1, 4, %rd1; mad.wide.u32 %rd5, %r4, 4, %rd1; mad.wide.u32 %rd6, %r1, 4, %rd2;\n"
    "  setp.ne.u32 %p1, %r3, 0;\n"
    "AGAIN:\n"
    "  mad.lo.u32 %r5, %r9, 100, %r1;\n"
    "  @!%p1 st.global.u32 [%rd4], %r5;\n"
    "  { .param .b64 a; .param .b32 b; .param .b32 c; st.param.b64 [a], %rd3; st.param.b32 [b], 0;\n"
    "    call.uni (c), cudaCGSynchronize, (a, b); ld.param.b32 %r11, [c]; }\n"
    "  ld.volatile.global.u32 %r6, [%rd5]; add.u32 %r10, %r10, %r6; mad.lo.u32 %r10, %r11, 100000, %r10;\n"
    "  { .param .b64 a; .param .b32 b; .param .b32 c; st.param.b64 [a], %rd3; st.param.b32 [b], 0;\n"
    "    call.uni (c), cudaCGSynchronize, (a, b); ld.param.b32 %r11, [c]; }\n"
    "  add.u32 %r9, %r9, 1; setp.lt.u32 %p2, %r9, 3; @%p2 bra AGAIN;\n"
    "  @!%p1 st.global.u32 [%rd6], %r10;\n"
    "  ret;\n}\n";

static CUdeviceptr words, sums;
static CUfunction kernel;

static int open_device(void **state) {
  CUcontext context;
  CUmodule module;
  setenv("FARFAULT_MACHINE", "v100", 1);
  return cuInit(0) || cuCtxCreate_v2(&context, 0, 0) || cuMemAlloc_v2(&words, BLOCKS * 4) ||
         cuMemAlloc_v2(&sums, BLOCKS * 4) || cuModuleLoadData(&module, ptx) ||
         cuModuleGetFunction(&kernel, module, "neighbours");
}

static void test_synchronises(void **state) {
  uint32_t found[BLOCKS];
  void *arguments[] = {&words, &sums};
  for (int again = 0; again < 2; again++) {
    assert_int_equal(cuMemsetD32_v2(words, 77, BLOCKS), 0);
    assert_int_equal(cuLaunchCooperativeKernel(kernel, BLOCKS, 1, 1, THREADS, 1, 1, 0, NULL, arguments), 0);
    assert_int_equal(cuMemcpyDtoH_v2(found, sums, sizeof found), 0);
    for (uint32_t b = 0; b < BLOCKS; b++) assert_int_equal(found[b], 3 * ((b + 1) % BLOCKS) + 100 * (0 + 1 + 2));
  }
}

/* Without a cooperative launch there is no handle, and synchronising is an error that the kernel gets: nothing
 * hangs. */
static void test_ordinary_launch(void **state) {
  uint32_t found[BLOCKS];
  void *arguments[] = {&words, &sums};
  assert_int_equal(cuLaunchKernel(kernel, BLOCKS, 1, 1, THREADS, 1, 1, 0, NULL, arguments, NULL), 0);
  assert_int_equal(cuMemcpyDtoH_v2(found, sums, sizeof found), 0);
  for (uint32_t b = 0; b < BLOCKS; b++) assert_true(found[b] >= ROUNDS * 100000);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_synchronises),
      cmocka_unit_test(test_ordinary_launch),
  };
  return cmocka_run_group_tests(tests, open_device, NULL);
}
