/* SPDX-License-Identifier: Apache-2.0 */
/* The stand-in for NVIDIA's profiling library: it says which version it is, and refuses to profile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef void callback(void *, int, unsigned, const void *);
int cuptiGetVersion(uint32_t *);
int cuptiGetResultString(int, const char **);
int cuptiGetErrorMessage(int, const char **);
int cuptiGetLastError(void);
int cuptiGetTimestamp(uint64_t *);
int cuptiSubscribe(void **, callback *, void *);
int cuptiActivityEnable(int);
int cuptiActivityFlushAll(uint32_t);
int cuptiProfilerInitialize(void *);
int cuptiFinalize(void);

enum { INVALID_PARAMETER = 1, NOT_SUPPORTED = 27 };

static void test_version(void **state) {
  uint32_t version = 0;
  assert_int_equal(cuptiGetVersion(&version), 0);
  assert_true(version >= 130000);
  assert_int_equal(cuptiGetVersion(NULL), INVALID_PARAMETER);
}

static void test_names(void **state) {
  const char *text = NULL;
  assert_int_equal(cuptiGetResultString(NOT_SUPPORTED, &text), 0);
  assert_string_equal(text, "CUPTI_ERROR_NOT_SUPPORTED");
  assert_int_equal(cuptiGetResultString(999, &text), 0);
  assert_string_equal(text, "CUPTI_ERROR_UNKNOWN");
  assert_int_equal(cuptiGetErrorMessage(0, &text), 0);
  assert_string_equal(text, "CUPTI_SUCCESS");
  assert_int_equal(cuptiGetResultString(500, &text), INVALID_PARAMETER);
  assert_int_equal(cuptiGetResultString(0, NULL), INVALID_PARAMETER);
}

static void never(void *data, int domain, unsigned id, const void *what) { fail(); }

static void test_refused(void **state) {
  void *subscriber;
  cuptiGetLastError();
  assert_int_equal(cuptiGetLastError(), 0);
  assert_int_equal(cuptiSubscribe(&subscriber, never, NULL), NOT_SUPPORTED);
  assert_int_equal(cuptiActivityEnable(10), NOT_SUPPORTED);
  assert_int_equal(cuptiActivityFlushAll(0), NOT_SUPPORTED);
  assert_int_equal(cuptiProfilerInitialize(NULL), NOT_SUPPORTED);
  assert_int_equal(cuptiGetLastError(), NOT_SUPPORTED);
  assert_int_equal(cuptiGetLastError(), 0);
  assert_int_equal(cuptiFinalize(), 0);
}

static void test_time(void **state) {
  uint64_t before = 0, after = 0;
  assert_int_equal(cuptiGetTimestamp(&before), 0);
  assert_int_equal(cuptiGetTimestamp(&after), 0);
  assert_true(before > 0 && after >= before);
  assert_int_equal(cuptiGetTimestamp(NULL), INVALID_PARAMETER);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_version),
      cmocka_unit_test(test_names),
      cmocka_unit_test(test_refused),
      cmocka_unit_test(test_time),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
