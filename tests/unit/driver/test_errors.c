/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of CUDA's error numbers: order, names, texts, what is sticky, and the way between runtime and driver. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "driver/cuda_abi.h"
#include "driver/errors.h"

static const int numbers[] = {
#define X(number, runtime, driver, sticky, text) number,
#include "driver/errors.def"
#undef X
};
#define COUNT (sizeof numbers / sizeof *numbers)

static void test_order(void **state) {
  assert_true(numbers[0] > 0);
  for (size_t i = 1; i < COUNT; i++) assert_true(numbers[i] > numbers[i - 1]);
  assert_int_equal(COUNT, 140); /* CUDA 13.5 has 138 runtime errors besides success, two more are the driver's own */
}

static void test_names(void **state) {
  static const struct {
    int number;
    const char *runtime, *driver, *text;
  } known[] = {
      {0, "cudaSuccess", "CUDA_SUCCESS", "no error"},
      {1, "cudaErrorInvalidValue", "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
      {2, "cudaErrorMemoryAllocation", "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
      {3, "cudaErrorInitializationError", "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
      {9, "cudaErrorInvalidConfiguration", NULL, "invalid configuration argument"},
      {35, "cudaErrorInsufficientDriver", NULL, "CUDA driver version is insufficient for CUDA runtime version"},
      {98, "cudaErrorInvalidDeviceFunction", NULL, "invalid device function"},
      {101, "cudaErrorInvalidDevice", "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
      {202, NULL, "CUDA_ERROR_CONTEXT_ALREADY_CURRENT", "context already current"},
      {400, "cudaErrorInvalidResourceHandle", "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
      {500, "cudaErrorSymbolNotFound", "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
      {600, "cudaErrorNotReady", "CUDA_ERROR_NOT_READY", "device not ready"},
      {700, "cudaErrorIllegalAddress", "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
      {710, "cudaErrorAssert", "CUDA_ERROR_ASSERT", "device-side assert triggered"},
      {719, "cudaErrorLaunchFailure", "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
      {801, "cudaErrorNotSupported", "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
      {999, "cudaErrorUnknown", "CUDA_ERROR_UNKNOWN", "unknown error"},
      {10000, "cudaErrorApiFailureBase", NULL, "api failure base"},
  };
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    int n = known[i].number;
    assert_string_equal(cuda_error_name(n), known[i].runtime ? known[i].runtime : "unrecognized error code");
    assert_string_equal(cuda_error_string(n), known[i].runtime ? known[i].text : "unrecognized error code");
    if (known[i].driver) {
      assert_string_equal(cuda_result_name(n), known[i].driver);
      assert_string_equal(cuda_result_string(n), known[i].text);
    } else {
      assert_null(cuda_result_name(n));
      assert_null(cuda_result_string(n));
    }
  }
}

static void test_unknown(void **state) {
  static const int unknown[] = {-1, 11, 14, 97, 99, 1000, 9999, 10001, INT32_MAX, INT32_MIN};
  for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
    assert_string_equal(cuda_error_name(unknown[i]), "unrecognized error code");
    assert_string_equal(cuda_error_string(unknown[i]), "unrecognized error code");
    assert_null(cuda_result_name(unknown[i]));
    assert_false(cuda_error_sticky(unknown[i]));
    assert_int_equal(cuda_error_to_result(unknown[i]), 999);
    assert_int_equal(cuda_result_to_error(unknown[i]), 999);
  }
}

/* Names are whole, of their kind, and used once. */
static void test_consistent(void **state) {
  for (size_t i = 0; i < COUNT; i++) {
    const char *runtime = cuda_error_name(numbers[i]), *driver = cuda_result_name(numbers[i]);
    bool in_runtime = strncmp(runtime, "cudaError", 9) == 0;
    assert_true(in_runtime || driver);
    if (driver) assert_int_equal(strncmp(driver, "CUDA_ERROR_", 11), 0);
    for (size_t k = 0; k < i; k++) {
      if (in_runtime) assert_string_not_equal(runtime, cuda_error_name(numbers[k]));
      if (driver && cuda_result_name(numbers[k])) assert_string_not_equal(driver, cuda_result_name(numbers[k]));
    }
  }
}

static void test_mapping(void **state) {
  for (size_t i = 0; i < COUNT; i++) {
    int result = cuda_error_to_result(numbers[i]), error = cuda_result_to_error(numbers[i]);
    assert_non_null(cuda_result_name(result));
    assert_string_not_equal(cuda_error_name(error), "unrecognized error code");
    if (cuda_result_name(numbers[i])) assert_int_equal(result, numbers[i]);
  }
  assert_int_equal(cuda_error_to_result(0), 0);
  assert_int_equal(cuda_result_to_error(0), 0);
  assert_int_equal(cuda_error_to_result(cudaErrorInvalidConfiguration), 1);
  assert_int_equal(cuda_error_to_result(cudaErrorInvalidSymbol), 500);
  assert_int_equal(cuda_error_to_result(cudaErrorInvalidDeviceFunction), 400);
  assert_int_equal(cuda_result_to_error(202), cudaErrorDeviceUninitialized);
}

/* The faults of a kernel stay; mistakes of the host do not. */
static void test_sticky(void **state) {
  static const int sticky[] = {cudaErrorIllegalAddress,      cudaErrorLaunchTimeout,      cudaErrorAssert,
                               cudaErrorHardwareStackError,  cudaErrorIllegalInstruction, cudaErrorMisalignedAddress,
                               cudaErrorInvalidAddressSpace, cudaErrorInvalidPc,          cudaErrorLaunchFailure};
  static const int passing[] = {cudaSuccess,
                                cudaErrorInvalidValue,
                                cudaErrorMemoryAllocation,
                                cudaErrorInvalidConfiguration,
                                cudaErrorNotReady,
                                cudaErrorLaunchOutOfResources,
                                cudaErrorCooperativeLaunchTooLarge,
                                cudaErrorNotSupported};
  for (size_t i = 0; i < sizeof sticky / sizeof *sticky; i++) assert_true(cuda_error_sticky(sticky[i]));
  for (size_t i = 0; i < sizeof passing / sizeof *passing; i++) assert_false(cuda_error_sticky(passing[i]));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_order),      cmocka_unit_test(test_names),   cmocka_unit_test(test_unknown),
      cmocka_unit_test(test_consistent), cmocka_unit_test(test_mapping), cmocka_unit_test(test_sticky),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
