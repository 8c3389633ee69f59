/* SPDX-License-Identifier: Apache-2.0 */
/* Tables in few columns: which are left out, in which order, what is said of it; sentences go on under themselves. */
#include "report/table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

static void expect_table(size_t width, const char *const *spare, const char *expected) {
  ff_text out = {0};
  table t;
  table_start(&t, "lrrw");
  t.spare = spare;
  table_names(&t, (const char *const[]){"name", "first", "second", "meaning", NULL});
  table_names(&t,
              (const char *const[]){"größe", "1", "22222222",
                                    "the size of what is meant, which a reader wants to know whatever it costs", NULL});
  table_fit(width);
  table_write(&t, 1, &out);
  table_fit(0);
  table_free(&t);
  assert_string_equal(out.chars, expected);
  free(out.chars);
}

static void any_width_has_all(void **state) {
  static const char whole[] =
      " name   first    second  meaning\n"
      " größe      1  22222222  the size of what is meant, which a reader wants to know whatever it costs\n";
  expect_table(0, NULL, whole);
  expect_table(1000, NULL, whole);
  expect_table(98, NULL, whole); /* exactly as wide as it is, in characters */
}

static void sentences_go_on_before_columns_go(void **state) {
  expect_table(97, NULL,
               " name   first    second  meaning\n"
               " größe      1  22222222  the size of what is meant, which a reader wants to know whatever it\n"
               "                         costs\n");
  expect_table(65, NULL,
               " name   first    second  meaning\n"
               " größe      1  22222222  the size of what is meant, which a\n"
               "                         reader wants to know whatever it costs\n");
}

static void columns_go_in_their_order(void **state) {
  static const char *const spare[] = {"first", "no such column", NULL};
  expect_table(64, spare,
               " name     second  meaning\n"
               " größe  22222222  the size of what is meant, which a reader\n"
               "                  wants to know whatever it costs\n"
               " (not shown: first; --wide shows all)\n");
  expect_table(64, spare,
               " name     second  meaning\n" /* it was said */
               " größe  22222222  the size of what is meant, which a reader\n"
               "                  wants to know whatever it costs\n");
  expect_table(64, NULL,
               " name   first  meaning\n" /* from the right, sentences last */
               " größe      1  the size of what is meant, which a reader wants\n"
               "               to know whatever it costs\n"
               " (not shown: second; --wide shows all)\n");
}

static void two_columns_stay(void **state) {
  expect_table(1, NULL,
               " name   first\n"
               " größe      1\n"
               " (not shown: second, meaning; --wide\n"
               " shows all)\n");
}

/* The colour is around the words, not around what fills the column, and takes no place. */
static void good_and_bad_have_colours(void **state) {
  static const char plain[] = "name  change\na       +5 %  worse\nb       -5 %\n";
  for (int on = 0; on < 2; on++) {
    ff_text out = {0};
    table t;
    table_start(&t, "lrl");
    table_names(&t, (const char *const[]){"name", "change", "", "a", "+5 %", NULL});
    table_tone(&t, TABLE_BAD);
    table_names(&t, (const char *const[]){"worse", "b", "-5 %", NULL});
    table_tone(&t, TABLE_GOOD);
    table_cell(&t, "%s", "");
    table_colour(on);
    table_write(&t, 0, &out);
    table_colour(false);
    table_free(&t);
    assert_string_equal(out.chars,
                        on ? "name  change\na       \033[31m+5 %\033[0m  worse\nb       \033[32m-5 %\033[0m\n" : plain);
    free(out.chars);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(any_width_has_all),
                                     cmocka_unit_test(sentences_go_on_before_columns_go),
                                     cmocka_unit_test(columns_go_in_their_order), cmocka_unit_test(two_columns_stay),
                                     cmocka_unit_test(good_and_bad_have_colours)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
