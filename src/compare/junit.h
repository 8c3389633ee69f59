/* SPDX-License-Identifier: Apache-2.0 */
/* Verdicts as JUnit XML, as CI systems read it: testsuites, testsuite, testcase, failure, error. Texts may be anything:
 * what XML cannot hold (control characters, bytes that are no UTF-8) becomes '?'. No times are in it: the same verdicts
 * are the same bytes. */
#ifndef FF_COMPARE_JUNIT_H
#define FF_COMPARE_JUNIT_H

#include "base/memory.h"
#include "base/text.h"

typedef enum junit_verdict { JUNIT_PASSED, JUNIT_FAILED, JUNIT_ERROR } junit_verdict;

typedef struct junit_case {
  char *name, *message; /* owned; message: why it is no pass, or what was seen */
  junit_verdict verdict;
} junit_case;

typedef struct junit_suite {
  char *name; /* owned */
  FF_VEC(junit_case) cases;
} junit_suite;

/* Copies the texts. */
void junit_add(junit_suite *suite, const char *name, junit_verdict verdict, const char *message);
void junit_write(const junit_suite *suites, size_t count, ff_text *out);
void junit_free(junit_suite *suite);

#endif
