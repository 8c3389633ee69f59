/* SPDX-License-Identifier: Apache-2.0 */
/* An estimate that is shown: it runs down like a clock, follows what lasts, and does not follow what jumps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/estimate.h"

#define NEAR(a, b, most) assert_true(fabs((a) - (b)) <= (most))

/* Right estimates are shown as they are. */
static void test_clock(void **state) {
  ff_estimate e = {0};
  for (double now = 0; now < 59; now += 0.2) NEAR(ff_estimate_take(&e, 100 + now, 60 - now), 60 - now, 1e-9);
}

/* Every second one is twice as much: what is shown moves by little from one line to the next. */
static void test_jumps(void **state) {
  ff_estimate e = {0};
  double last = ff_estimate_take(&e, 0, 45), now = 0;
  for (int i = 1; i < 100; i++) {
    now += 0.2;
    double shown = ff_estimate_take(&e, now, i % 2 ? 30 : 60);
    NEAR(shown, last, 1.5);
    assert_true(shown > 30 && shown < 60);
    last = shown;
  }
}

/* One that stays is believed, within some time constants, however often it is given. */
static void test_lasting(void **state) {
  for (double step = 0.1; step < 2; step *= 2) {
    ff_estimate e = {0};
    double shown = ff_estimate_take(&e, 0, 10);
    assert_true(ff_estimate_take(&e, step, 100) < 10 + 90 * step / 5 + 1);
    for (double now = 2 * step; now < 26; now += step) shown = ff_estimate_take(&e, now, 100);
    NEAR(shown, 100, 10);
  }
}

/* What is shown rises only where it was wrong by a quarter and three seconds. */
static void test_shown(void **state) {
  ff_estimate e = {0};
  NEAR(ff_estimate_show(&e, 0, 20), 20, 1e-9);
  for (double now = 1; now < 60; now += 1) NEAR(ff_estimate_show(&e, now, 24), 20, 1e-9);
  NEAR(ff_estimate_show(&e, 1000, 60), 60, 1e-9);
  NEAR(ff_estimate_show(&e, 2000, 0.2), 1, 1e-9);
  NEAR(ff_estimate_show(&e, 3000, 3.5), 1, 1e-9);
  NEAR(ff_estimate_show(&e, 4000, 6), 6, 1e-9);
  char text[32];
  assert_string_equal(ff_estimate_text(5, text), "about 5 s");
  assert_string_equal(ff_estimate_text(90, text), "about 2 min");
  assert_string_equal(ff_estimate_text(7200, text), "about 2 h");
}

static void test_restart(void **state) {
  ff_estimate e = {0};
  ff_estimate_take(&e, 0, 1000);
  ff_estimate_restart(&e);
  NEAR(ff_estimate_take(&e, 1, 3), 3, 1e-9);
  NEAR(ff_estimate_take(&e, 1, 500), 3, 1e-9); /* no time has passed */
  assert_true(ff_estimate_take(&e, 100, 1) >= 0);
}

static void test_round(void **state) {
  static const double cases[][2] = {{0.4, 0}, {9.4, 9},   {12, 10},   {13, 15},  {59, 60},
                                    {64, 60}, {130, 120}, {140, 150}, {700, 720}};
  for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) NEAR(ff_estimate_round(cases[i][0]), cases[i][1], 1e-9);
}

static void test_period(void **state) {
  static const struct {
    const char *said;
    double seconds;
  } cases[] = {{"2.5", 2.5}, {"0", INFINITY}, {"", 30}, {"-1", 30}, {"soon", 30}, {"nan", 30}};
  unsetenv("FARFAULT_PROGRESS_SECONDS");
  assert_true(ff_progress_period() == 30);
  for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
    setenv("FARFAULT_PROGRESS_SECONDS", cases[i].said, 1);
    assert_true(ff_progress_period() == cases[i].seconds);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_clock),   cmocka_unit_test(test_jumps),
                                     cmocka_unit_test(test_lasting), cmocka_unit_test(test_restart),
                                     cmocka_unit_test(test_round),   cmocka_unit_test(test_period),
                                     cmocka_unit_test(test_shown)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
