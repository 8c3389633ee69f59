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
CUresult cuCtxCreate_v2(CUcontext *, unsigned, CUdevice);
CUresult cuCtxDestroy_v2(CUcontext);
CUresult cuCtxGetFlags(unsigned *);
CUresult cuCtxSetFlags(unsigned);
CUresult cuDevicePrimaryCtxRetain(CUcontext *, CUdevice);
CUresult cuDevicePrimaryCtxGetState(CUdevice, unsigned *, int *);
CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice, unsigned);

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

static unsigned runtime_flags(void) {
  unsigned flags = ~0u;
  assert_int_equal(cudaGetDeviceFlags(&flags), 0);
  return flags;
}

/* CUDA 13.0, cuda_runtime_api.h, cudaGetDeviceFlags: of a context that the driver API has made, those of that context,
 * where cudaDeviceMapHost is not implicit. Else both interfaces say the same of the device. */
static void test_flags(void **state) {
  CUcontext own, popped;
  unsigned flags;
  int active;
  assert_int_equal(cudaSetDevice(1), 0);
  assert_int_equal(cudaSetDeviceFlags(cudaDeviceScheduleYield), 0);
  assert_int_equal(runtime_flags(), cudaDeviceScheduleYield | cudaDeviceMapHost);
  assert_int_equal(cuDevicePrimaryCtxGetState(1, &flags, &active), 0);
  assert_int_equal(flags, cudaDeviceScheduleYield);
  assert_int_equal(cuCtxGetFlags(&flags), 0);
  assert_int_equal(flags, cudaDeviceScheduleYield);
  assert_int_equal(cuDevicePrimaryCtxSetFlags_v2(1, cudaDeviceScheduleSpin), 0);
  assert_int_equal(runtime_flags(), cudaDeviceScheduleSpin | cudaDeviceMapHost);
  assert_int_equal(cuCtxCreate_v2(&own, cudaDeviceScheduleBlockingSync, 1), 0);
  assert_int_equal(runtime_flags(), cudaDeviceScheduleBlockingSync);
  assert_int_equal(cuCtxSetFlags(cudaDeviceScheduleYield | cudaDeviceMapHost), 0);
  assert_int_equal(runtime_flags(), cudaDeviceScheduleYield | cudaDeviceMapHost);
  assert_int_equal(cuCtxSetFlags(0), 0);
  assert_int_equal(runtime_flags(), 0);
  assert_int_equal(cuCtxPushCurrent_v2(primary[0]), 0);
  assert_int_equal(runtime_flags(), cudaDeviceMapHost);
  assert_int_equal(cuCtxPopCurrent_v2(&popped), 0);
  assert_int_equal(cuCtxDestroy_v2(own), 0);
  assert_int_equal(runtime_flags(), cudaDeviceScheduleSpin | cudaDeviceMapHost);
  assert_int_equal(cuCtxSetFlags(cudaDeviceScheduleYield), 0);
  assert_int_equal(runtime_flags(), cudaDeviceScheduleYield | cudaDeviceMapHost);
  assert_int_equal(cudaDeviceReset(), 0);
  assert_int_equal(runtime_flags(), cudaDeviceMapHost);
  assert_int_equal(cuDevicePrimaryCtxGetState(1, &flags, &active), 0);
  assert_int_equal(flags, 0);
  assert_int_equal(cuCtxPopCurrent_v2(&popped), 0);
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
      cmocka_unit_test(test_flags),
  };
  return cmocka_run_group_tests(tests, open_devices, NULL);
}
