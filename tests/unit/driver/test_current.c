/* SPDX-License-Identifier: Apache-2.0 */
/* Which context is current for a thread that uses the runtime and the driver API: a call of the runtime makes the
 * primary one current, once. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "driver/driver_api/libcuda.h"
#include "driver/runtime_api/cudart.h"

CUresult cuInit(unsigned);
CUresult cuCtxGetCurrent(CUcontext *);
CUresult cuCtxPopCurrent_v2(CUcontext *);
CUresult cuCtxPushCurrent_v2(CUcontext);
CUresult cuDevicePrimaryCtxRetain(CUcontext *, CUdevice);

static CUcontext primary[2];

static CUcontext current(void) {
  CUcontext found = NULL;
  assert_int_equal(cuCtxGetCurrent(&found), 0);
  return found;
}

static void test_runtime_makes_current(void **state) {
  CUcontext popped;
  assert_null(current());
  assert_int_equal(cudaFree(NULL), 0);
  assert_ptr_equal(current(), primary[0]);
  assert_int_equal(cuCtxPopCurrent_v2(&popped), 0);
  assert_ptr_equal(popped, primary[0]);
  assert_null(current());
  assert_int_equal(cuCtxPopCurrent_v2(&popped), CUDA_ERROR_INVALID_CONTEXT);
  assert_int_equal(cudaSetDevice(1), 0);
  assert_ptr_equal(current(), primary[1]);
  assert_int_equal(cuCtxPopCurrent_v2(&popped), 0);
}

/* What the runtime has made current stays below what the program pushes. */
static void test_push_above(void **state) {
  CUcontext popped;
  assert_int_equal(cudaSetDevice(0), 0);
  assert_int_equal(cuCtxPushCurrent_v2(primary[1]), 0);
  assert_ptr_equal(current(), primary[1]);
  assert_int_equal(cudaDeviceSynchronize(), 0);
  assert_int_equal(cuCtxPopCurrent_v2(&popped), 0);
  assert_ptr_equal(popped, primary[1]);
  assert_ptr_equal(current(), primary[0]);
  assert_int_equal(cuCtxPopCurrent_v2(&popped), 0);
  assert_null(current());
}

static void *ask(void *found) { return cuCtxGetCurrent(found) ? found : NULL; }

static void test_other_thread(void **state) {
  CUcontext found = primary[0];
  pthread_t thread;
  void *failed = NULL;
  assert_int_equal(cudaFree(NULL), 0);
  assert_int_equal(pthread_create(&thread, NULL, ask, &found), 0);
  assert_int_equal(pthread_join(thread, &failed), 0);
  assert_null(failed);
  assert_null(found);
}

static int open_devices(void **state) {
  setenv("FARFAULT_MACHINE", "v100", 1);
  setenv("FARFAULT_DEVICES", "2", 1);
  return cuInit(0) || cuDevicePrimaryCtxRetain(&primary[0], 0) || cuDevicePrimaryCtxRetain(&primary[1], 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_runtime_makes_current),
      cmocka_unit_test(test_push_above),
      cmocka_unit_test(test_other_thread),
  };
  return cmocka_run_group_tests(tests, open_devices, NULL);
}
