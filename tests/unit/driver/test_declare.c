/* SPDX-License-Identifier: Apache-2.0 */
/* farfaultDeclareUses: for the next launch of the same thread, through either interface, and for no other. */
#define _GNU_SOURCE
#include <pthread.h>

#include "farfault/virtual.h"
#include "program.h"

static const char code[] = PTX_HEAD
    ".visible .global .align 4 .u32 counter = 7;\n"
    ".visible .entry poke(.param .u64 p, .param .u32 at)\n{\n.reg .b32 %r<4>;\n.reg .b64 %rd<4>;\n"
    "ld.param.u64 %rd1, [p];\nld.param.u32 %r1, [at];\ncvt.u64.u32 %rd2, %r1;\nadd.u64 %rd3, %rd1, %rd2;\n"
    "ld.global.u32 %r2, [counter];\nadd.u32 %r2, %r2, 1;\nst.global.u32 [counter], %r2;\nst.global.u32 [%rd3], %r2;\nret;\n}\n";
STUB(poke);
static char *memory;

int cuInit(unsigned), cuDevicePrimaryCtxRetain(void **, int), cuCtxSetCurrent(void *);
int cuModuleLoadData(void **, const void *), cuModuleGetFunction(void **, void *, const char *), cuCtxSynchronize(void);
int cuLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                   void **);

static int set_up(void **state) {
  (void)state;
  const char *texts[] = {code};
  register_kernel(register_ptx(texts, 1), poke, "poke");
  succeed(cudaFree(NULL));
  assert_int_equal(cuInit(0), 0);
  return 0;
}

static int fresh(void **state) {
  (void)state;
  succeed(cudaMalloc((void **)&memory, 4096));
  return 0;
}

static int reset(void **state) {
  (void)state;
  cudaDeviceReset();
  return 0;
}

static cudaError_t poke_at(uint32_t at) { return launch(poke, 1, 1, (void *[]){&memory, &at}); }

static ff_virtual_use first_hundred(int read, int write) {
  return (ff_virtual_use){.base = (uintptr_t)memory, .bytes = 100, .read = read, .write = write, .segment = "hundred"};
}

static void declared_once(void **state) {
  (void)state;
  char name[] = "hundred";
  ff_virtual_use use = first_hundred(0, 1);
  use.segment = name;
  assert_int_equal(farfaultDeclareUses(&use, 1), 0);
  memset(name, 'x', sizeof name - 1); /* it was copied */
  use.bytes = 0;
  succeed(poke_at(96));
  succeed(cudaDeviceSynchronize());
  succeed(poke_at(100)); /* the declaration was for one launch */
  succeed(cudaDeviceSynchronize());
}

static void a_fault_is_sticky(void **state) {
  (void)state;
  ff_virtual_use use = first_hundred(0, 1);
  assert_int_equal(farfaultDeclareUses(&use, 1), 0);
  succeed(poke_at(97 + 3));
  expect(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  expect(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  expect(cudaMalloc((void **)&memory, 1), cudaErrorIllegalAddress);
}

static void none_may_be_touched(void **state) {
  (void)state;
  assert_int_equal(farfaultDeclareUses(NULL, 0), 0);
  succeed(poke_at(0));
  expect(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
}

static void the_last_declaration_counts(void **state) {
  (void)state;
  ff_virtual_use use = first_hundred(0, 1);
  assert_int_equal(farfaultDeclareUses(NULL, 0), 0);
  assert_int_equal(farfaultDeclareUses(&use, 1), 0);
  succeed(poke_at(0));
  succeed(cudaDeviceSynchronize());
  assert_int_equal(farfaultDeclareUses(NULL, 0), 0);
  assert_int_not_equal(farfaultDeclareUses(NULL, 1), 0); /* forgets it too */
  succeed(poke_at(0));
  succeed(cudaDeviceSynchronize());
}

/* A launch that is refused has used its declaration up. */
static void a_refused_launch_takes_it(void **state) {
  (void)state;
  uint32_t at = 0;
  assert_int_equal(farfaultDeclareUses(NULL, 0), 0);
  expect(cudaLaunchKernel(poke, (dim3){1, 1, 1}, (dim3){4096, 1, 1}, (void *[]){&memory, &at}, 0, NULL),
         cudaErrorInvalidConfiguration);
  succeed(poke_at(0));
  succeed(cudaDeviceSynchronize());
}

static void *launch_elsewhere(void *context) {
  *(cudaError_t *)context = poke_at(0);
  return NULL;
}

static void threads_have_their_own(void **state) {
  (void)state;
  pthread_t thread;
  cudaError_t other = cudaErrorUnknown;
  assert_int_equal(farfaultDeclareUses(NULL, 0), 0);
  assert_int_equal(pthread_create(&thread, NULL, launch_elsewhere, &other), 0);
  pthread_join(thread, NULL);
  succeed(other);
  succeed(cudaDeviceSynchronize());
  succeed(poke_at(0));
  expect(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
}

static void *declare_and_leave(void *context) { /* freed with the thread */
  ff_virtual_use use = first_hundred(1, 1);
  *(int *)context = farfaultDeclareUses(&use, 1);
  return NULL;
}

static void a_thread_may_end(void **state) {
  (void)state;
  pthread_t thread;
  int result = -1;
  assert_int_equal(pthread_create(&thread, NULL, declare_and_leave, &result), 0);
  pthread_join(thread, NULL);
  assert_int_equal(result, 0);
  succeed(poke_at(200));
  succeed(cudaDeviceSynchronize());
}

static void through_the_driver_api(void **state) {
  (void)state;
  void *context, *module, *function;
  uint32_t at = 100;
  ff_virtual_use use = first_hundred(0, 1);
  assert_int_equal(cuDevicePrimaryCtxRetain(&context, 0), 0);
  assert_int_equal(cuCtxSetCurrent(context), 0);
  assert_int_equal(cuModuleLoadData(&module, code), 0);
  assert_int_equal(cuModuleGetFunction(&function, module, "poke"), 0);
  assert_int_equal(farfaultDeclareUses(&use, 1), 0);
  assert_int_equal(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){&memory, &at}, NULL), 0);
  assert_int_equal(cuCtxSynchronize(), 700); /* CUDA_ERROR_ILLEGAL_ADDRESS */
}

/* Managed, pinned and registered memory are the program's as well. */
static void every_kind_of_memory(void **state) {
  (void)state;
  static _Alignas(4096) char host[4096];
  for (int kind = 0; kind < 3; kind++) {
    if (kind == 0) succeed(cudaMallocManaged((void **)&memory, 4096, cudaMemAttachGlobal));
    if (kind == 1) succeed(cudaHostAlloc((void **)&memory, 4096, 0));
    if (kind == 2) succeed(cudaHostRegister(memory = host, 4096, 0));
    ff_virtual_use use = first_hundred(1, 1);
    assert_int_equal(farfaultDeclareUses(&use, 1), 0);
    succeed(poke_at(96));
    succeed(cudaDeviceSynchronize());
    assert_int_equal(farfaultDeclareUses(&use, 1), 0);
    succeed(poke_at(100));
    expect(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
    cudaDeviceReset();
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(declared_once, fresh, reset),
                                     cmocka_unit_test_setup_teardown(a_fault_is_sticky, fresh, reset),
                                     cmocka_unit_test_setup_teardown(none_may_be_touched, fresh, reset),
                                     cmocka_unit_test_setup_teardown(the_last_declaration_counts, fresh, reset),
                                     cmocka_unit_test_setup_teardown(a_refused_launch_takes_it, fresh, reset),
                                     cmocka_unit_test_setup_teardown(threads_have_their_own, fresh, reset),
                                     cmocka_unit_test_setup_teardown(a_thread_may_end, fresh, reset),
                                     cmocka_unit_test_setup_teardown(through_the_driver_api, fresh, reset),
                                     cmocka_unit_test_setup_teardown(every_kind_of_memory, fresh, reset)};
  return cmocka_run_group_tests(tests, set_up, NULL);
}
