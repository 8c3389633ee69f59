/* SPDX-License-Identifier: Apache-2.0 */
/* The ranges of NVTX: nesting, domains, ranges that another thread ends, names that are too long or too many. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <wchar.h>

#include <cmocka.h>

#include "driver/injection/nvtx.h"

int nvtxRangePushA(const char *message);
int nvtxRangePushW(const wchar_t *message);
int nvtxRangePop(void);
uint64_t nvtxRangeStartA(const char *message);
void nvtxRangeEnd(uint64_t range);
nvtx_domain *nvtxDomainCreateA(const char *name);
nvtx_domain *nvtxDomainCreateW(const wchar_t *name);

static void a_path_has_all_ranges(void **state) {
  (void)state;
  assert_null(farfault_nvtx_range());
  assert_int_equal(nvtxRangePushA("step"), 0);
  assert_string_equal(farfault_nvtx_range(), "step");
  assert_int_equal(nvtxRangePushW(L"\u00e9\u20ac\U0001f600"), 1);
  const char *path = farfault_nvtx_range();
  assert_string_equal(path, "step/\u00e9\u20ac\U0001f600");
  assert_int_equal(nvtxRangePop(), 1);
  assert_int_equal(nvtxRangePushA("\u00e9\u20ac\U0001f600"), 1);
  assert_ptr_equal(farfault_nvtx_range(), path); /* the same text */
  assert_int_equal(nvtxRangePop(), 1);
  assert_int_equal(nvtxRangePushA(NULL), 1);
  assert_string_equal(farfault_nvtx_range(), "step/");
  assert_int_equal(nvtxRangePop(), 1);
  assert_int_equal(nvtxRangePop(), 0);
  assert_int_equal(nvtxRangePop(), -1);
  assert_null(farfault_nvtx_range());
}

static void domains_have_levels_of_their_own(void **state) {
  (void)state;
  nvtx_domain *library = nvtxDomainCreateA("library");
  assert_ptr_equal(nvtxDomainCreateW(L"library"), library);
  assert_ptr_not_equal(nvtxDomainCreateA("other"), library);
  assert_int_equal(farfault_nvtx_push(NULL, "mine"), 0);
  assert_int_equal(farfault_nvtx_push(library, "its"), 0);
  assert_int_equal(farfault_nvtx_push(library, "inner"), 1);
  assert_string_equal(farfault_nvtx_range(), "mine/library:its/library:inner");
  assert_int_equal(farfault_nvtx_pop(NULL), 0); /* from below the others */
  assert_string_equal(farfault_nvtx_range(), "library:its/library:inner");
  assert_int_equal(farfault_nvtx_pop(library), 1);
  assert_int_equal(farfault_nvtx_pop(library), 0);
  assert_int_equal(farfault_nvtx_pop(library), -1);
}

static int told;
static void tell(void) { told++; }

/* farfault_nvtx_watched, and how often the watcher was told since the last call. */
static void expect_watched(unsigned open, int times) {
  assert_int_equal(farfault_nvtx_watched(), open);
  assert_int_equal(told, times);
  told = 0;
}

static void *leave_one_open(void *unused) {
  nvtxRangePushA("watched");
  return unused;
}

static void ranges_of_a_name_are_watched(void **state) {
  (void)state;
  pthread_t thread;
  nvtxRangePushA("watched"); /* before it is asked for */
  farfault_nvtx_watch("watched", tell);
  expect_watched(1, 0);
  nvtxRangePushA("other");
  nvtxRangePushA("watched_too");
  expect_watched(1, 0);
  uint64_t started = nvtxRangeStartA("watched");
  expect_watched(2, 1);
  nvtxRangePop(); /* watched_too */
  nvtxRangePop();
  expect_watched(2, 0);
  nvtxRangePop();
  expect_watched(1, 1);
  nvtxRangeEnd(started);
  expect_watched(0, 1);
  assert_int_equal(pthread_create(&thread, NULL, leave_one_open, NULL), 0);
  assert_int_equal(pthread_join(thread, NULL), 0);
  expect_watched(0, 2);               /* its range ended with it */
  nvtxRangePushA("watched, seq = 5"); /* as paths have it: without PyTorch's number */
  expect_watched(1, 1);
  nvtxRangePop();
  farfault_nvtx_watch("library:watched", tell);
  told = 0;
  nvtx_domain *library = nvtxDomainCreateA("library");
  nvtxRangePushA("watched");
  farfault_nvtx_push(library, "watched");
  expect_watched(1, 1);
  farfault_nvtx_pop(library);
  nvtxRangePop();
  expect_watched(0, 1);
}

static void *end_it(void *number) {
  assert_null(farfault_nvtx_range());
  nvtxRangePushA("of this thread");
  assert_string_equal(farfault_nvtx_range(), "of this thread");
  nvtxRangeEnd(*(uint64_t *)number);
  return NULL; /* with an open range */
}

static void any_thread_ends_a_started_range(void **state) {
  (void)state;
  pthread_t thread;
  uint64_t first = nvtxRangeStartA("first"), second = nvtxRangeStartA("second");
  assert_true(first && second && first != second);
  assert_string_equal(farfault_nvtx_range(), "first/second");
  assert_int_equal(nvtxRangePop(), -1); /* these are ended, not popped */
  assert_int_equal(pthread_create(&thread, NULL, end_it, &first), 0);
  assert_int_equal(pthread_join(thread, NULL), 0);
  assert_string_equal(farfault_nvtx_range(), "second");
  nvtxRangeEnd(first);
  nvtxRangeEnd(0);
  nvtxRangeEnd(second);
  assert_null(farfault_nvtx_range());
}

static void long_names_are_cut(void **state) {
  (void)state;
  char name[200], wanted[64];
  memset(name, 'x', sizeof name);
  memcpy(name + 61, "\u20ac", 3); /* its last byte would be the 64th */
  name[sizeof name - 1] = '\0';
  memset(wanted, 'x', sizeof wanted);
  wanted[61] = '\0';
  nvtxRangePushA(name);
  assert_string_equal(farfault_nvtx_range(), wanted);
  for (int i = 0; i < 10; i++) nvtxRangePushA("0123456789abcdef");
  assert_int_equal(strlen(farfault_nvtx_range()), 7 * 17 - 1); /* the outer ones are left out */
  assert_memory_equal(farfault_nvtx_range(), "0123456789abcdef/0", 18);
  for (int i = 0; i < 11; i++) assert_int_equal(nvtxRangePop(), 10 - i);
}

/* PyTorch's emit_nvtx numbers each operator; what it adds to that stays. */
static void numbers_of_operators_are_left_out(void **state) {
  static const char *const names[][2] = {{"aten::mm, seq = 4, op_id = 44", "aten::mm"},
                                         {"aten::div, op_id = 28", "aten::div"},
                                         {"aten::mm, op_id = 7, sizes = [[2, 3]]", "aten::mm, sizes = [[2, 3]]"},
                                         {"mine, seq = , op_id = x", "mine, seq = , op_id = x"},
                                         {"mine, seq = 12a", "mine, seq = 12a"},
                                         {", op_id = 1", ""}};
  (void)state;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    nvtxRangePushA(names[i][0]);
    assert_string_equal(farfault_nvtx_range(), names[i][1]);
    nvtxRangePop();
  }
}

static void deep_nesting_is_counted(void **state) {
  (void)state;
  for (int i = 0; i < 2000; i++) assert_int_equal(nvtxRangePushA("d"), i);
  for (int i = 2000; i-- > 0;) assert_int_equal(nvtxRangePop(), i);
  assert_int_equal(nvtxRangePop(), -1);
}

static void there_is_an_end_of_paths(void **state) {
  (void)state;
  char name[32];
  for (int i = 0; i < 10000; i++) {
    snprintf(name, sizeof name, "step %d", i);
    nvtxRangePushA(name);
    assert_string_equal(farfault_nvtx_range(),
                        i < 3000 || !strcmp(farfault_nvtx_range(), name) ? name : "(further ranges)");
    nvtxRangePop();
  }
  nvtxRangePushA("step 9999");
  assert_string_equal(farfault_nvtx_range(), "(further ranges)");
  nvtxRangePop();
  nvtxRangePushA("step 17"); /* that was there before */
  assert_string_equal(farfault_nvtx_range(), "step 17");
  nvtxRangePop();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_path_has_all_ranges),
      cmocka_unit_test(domains_have_levels_of_their_own),
      cmocka_unit_test(any_thread_ends_a_started_range),
      cmocka_unit_test(long_names_are_cut),
      cmocka_unit_test(numbers_of_operators_are_left_out),
      cmocka_unit_test(deep_nesting_is_counted),
      cmocka_unit_test(ranges_of_a_name_are_watched),
      cmocka_unit_test(there_is_an_end_of_paths),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
