/* SPDX-License-Identifier: Apache-2.0 */
/* The ordered set of numbers against an array of flags, near the edges of its levels, and with numbers of all 64
 * bits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/numbers.h"

static uint64_t state_ = 88172645463325252u;
static uint64_t next_random(void) { /* xorshift64 */
  state_ ^= state_ << 13;
  state_ ^= state_ >> 7;
  state_ ^= state_ << 17;
  return state_;
}

enum { RANGE = 9000 };

static void check(const ff_numbers *set, const bool *flags, uint64_t at) {
  uint64_t above = at, below = at, found = 0;
  while (above < RANGE && !flags[above]) above++;
  while (below != UINT64_MAX && !flags[below]) below--;
  assert_int_equal(ff_numbers_has(set, at), flags[at]);
  assert_int_equal(ff_numbers_next(set, at, &found), above < RANGE);
  if (above < RANGE) assert_int_equal(found, above);
  assert_int_equal(ff_numbers_previous(set, at, &found), below != UINT64_MAX);
  if (below != UINT64_MAX) assert_int_equal(found, below);
}

static void test_against_flags(void **state) {
  static bool flags[RANGE];
  ff_numbers set = {0};
  size_t count = 0;
  for (int step = 0; step < 40000; step++) {
    uint64_t number = next_random() % (step % 3000 < 300 ? 40 : RANGE);
    bool add = next_random() % 100 < (step / 4000 % 2 ? 10 : 40); /* fuller and emptier */
    count += add && !flags[number];
    count -= !add && flags[number];
    flags[number] = add;
    (add ? ff_numbers_add : ff_numbers_remove)(&set, number);
    assert_int_equal(set.count, count);
    check(&set, flags, next_random() % RANGE);
  }
  ff_numbers_free(&set);
}

static void test_edges(void **state) {
  static const uint64_t numbers[] = {
      0,         1, 63, 64, 4095, 4096, UINT64_C(1) << 36, (UINT64_C(1) << 60) - 1, UINT64_C(1) << 60, UINT64_MAX - 1,
      UINT64_MAX};
  enum { COUNT = sizeof numbers / sizeof *numbers };
  ff_numbers set = {0};
  uint64_t found;
  assert_false(ff_numbers_next(&set, 0, &found));
  assert_false(ff_numbers_previous(&set, UINT64_MAX, &found));
  ff_numbers_remove(&set, 5); /* nothing */
  for (size_t i = 0; i < COUNT; i++) {
    ff_numbers_add(&set, numbers[i]);
    ff_numbers_add(&set, numbers[i]);
    assert_int_equal(set.count, i + 1);
    assert_true(ff_numbers_previous(&set, UINT64_MAX, &found));
    assert_true(found == numbers[i]);
  }
  for (size_t i = 0; i + 1 < COUNT; i++) {
    assert_true(ff_numbers_next(&set, numbers[i] + 1, &found) && found == numbers[i + 1]);
    assert_true(ff_numbers_previous(&set, numbers[i + 1] - 1, &found) && found == numbers[i]);
  }
  for (size_t i = 0; i < COUNT; i++) ff_numbers_remove(&set, numbers[i]);
  assert_int_equal(set.count, 0);
  assert_false(ff_numbers_next(&set, 0, &found));
  ff_numbers_free(&set);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_flags), cmocka_unit_test(test_edges)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
