/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of bytes against a plain array of flags. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/spans.h"

enum { BYTES = 64 };

static void compare(const spans *set, const bool *flags) {
  for (uint64_t begin = 0; begin < BYTES; begin++)
    for (uint64_t end = begin; end <= BYTES; end += 3) {
      uint64_t count = 0;
      for (uint64_t i = begin; i < end; i++) count += flags[i];
      assert_int_equal(spans_bytes(set, begin, end), count);
      assert_int_equal(spans_cover(set, begin, end), count == end - begin);
    }
  for (int inside = 0; inside < 2; inside++) {
    bool seen[BYTES] = {0};
    uint64_t at = 5;
    for (span s; spans_next(set, inside, &at, BYTES - 3, &s);) {
      assert_true(s.begin < s.end && s.begin >= 5 && s.end <= BYTES - 3);
      assert_true(s.begin == 5 || flags[s.begin - 1] != inside);
      assert_true(s.end == BYTES - 3 || flags[s.end] != inside);
      for (uint64_t i = s.begin; i < s.end; i++) {
        assert_int_equal(flags[i], inside);
        seen[i] = true;
      }
    }
    for (uint64_t i = 5; i < BYTES - 3; i++) assert_int_equal(seen[i], flags[i] == inside);
  }
}

static void behaves_as_flags(void **state) {
  srand(1);
  for (int round = 0; round < 200; round++) {
    spans set = {0};
    bool flags[BYTES] = {0};
    for (int i = 0; i < 20; i++) {
      uint64_t begin = (uint64_t)rand() % BYTES, end = (uint64_t)rand() % (BYTES + 1);
      bool add = rand() % 2;
      if (add) spans_add(&set, begin, end);
      else spans_remove(&set, begin, end);
      for (uint64_t b = begin; b < end; b++) flags[b] = add;
      spans_check(&set);
    }
    compare(&set, flags);
    spans_free(&set);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(behaves_as_flags)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
