/* SPDX-License-Identifier: Apache-2.0 */
/* How long tasks will still take: what ended says it, weights and groups count, and what is shown does not rise where
 * nothing new is known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <math.h>

#include <cmocka.h>

#include "base/tasks.h"

#define NEAR(a, b, most) assert_true(fabs((a) - (b)) <= (most))

typedef struct shown {
  double first, last, highest_rise;
  int rises;
} shown;

/* Runs all tasks, `at_once` at a time, each for lengths[i] seconds; looks every quarter of a second. */
static shown run(ff_tasks *t, const double *lengths) {
  shown s = {0};
  uint32_t next = 0, ended = 0, count = (uint32_t)t->list.count, running = 0;
  for (double now = 1000; ended < count; now += 0.25) {
    for (uint32_t i = 0; i < next; i++) {
      const ff_task *one = &t->list.items[i];
      if (one->state != FF_TASK_RUNS || now < one->begun + lengths[i]) continue;
      ff_tasks_end(t, i, now);
      running--;
      ended++;
    }
    for (; running < t->at_once && next < count; running++) ff_tasks_begin(t, next++, now);
    double left = ff_tasks_show(t, now);
    if ((ended == 0 && !(t->known > 0)) || now < 1002) assert_true(left == 0);
    if (ended && s.first == 0) s.first = left;
    if (s.last > 0 && left > s.last) {
      s.rises++;
      if (left > s.highest_rise * s.last) s.highest_rise = left / s.last;
    }
    s.last = left;
  }
  return s;
}

static void equal_tasks_run_down_like_a_clock(void **state) {
  double lengths[40];
  for (uint32_t at_once = 1; at_once < 4; at_once++) {
    ff_tasks t = {.at_once = at_once};
    for (int i = 0; i < 40; i++) {
      ff_tasks_add(&t, 7, 0);
      lengths[i] = 3;
    }
    shown s = run(&t, lengths);
    assert_int_equal(s.rises, 0);
    NEAR(s.first, 117.0 / at_once, 12);
    assert_true(s.last <= 1);
    ff_tasks_free(&t);
  }
}

/* One task that is four times as long as any before it: a clock that waits, not one that runs backwards. */
static void one_long_task_does_not_make_it_rise(void **state) {
  double lengths[20];
  ff_tasks t = {.at_once = 1};
  for (int i = 0; i < 20; i++) {
    ff_tasks_add(&t, 1, 0);
    lengths[i] = i == 10 ? 12 : 3;
  }
  shown s = run(&t, lengths);
  assert_int_equal(s.rises, 0);
  ff_tasks_free(&t);
}

/* Lengths as of a matrix of programs: short ones first, every kind comes again. */
static void kinds_are_learned(void **state) {
  double lengths[60], all = 0;
  ff_tasks t = {.at_once = 2};
  for (int i = 0; i < 60; i++) {
    static const double of_kind[] = {0.5, 1, 8, 2, 4, 1};
    ff_tasks_add(&t, 1 + i % 6, (uint32_t)(i % 6));
    all += lengths[i] = of_kind[i % 6];
  }
  shown s = run(&t, lengths);
  assert_true(s.rises <= 2 && s.highest_rise < 1.6);
  ff_tasks_free(&t);
  for (int i = 0; i < 12; i++) ff_tasks_add(&t, 1, (uint32_t)(i % 6));
  t.at_once = 1;
  for (uint32_t i = 0; i < 6; i++) {
    ff_tasks_begin(&t, i, 0);
    ff_tasks_end(&t, i, lengths[i]);
  }
  NEAR(ff_tasks_left(&t, 0), all / 10, 1e-9);
  ff_tasks_free(&t);
}

static void weights_count_where_no_kind_is_known(void **state) {
  ff_tasks t = {.at_once = 1};
  ff_tasks_add(&t, 2, 0);
  ff_tasks_add(&t, 6, 1);
  assert_true(ff_tasks_left(&t, 0) == 0);
  ff_tasks_begin(&t, 0, 10);
  ff_tasks_end(&t, 0, 14);
  NEAR(ff_tasks_left(&t, 14), 12, 1e-9);
  t.later = 5;
  NEAR(ff_tasks_left(&t, 14), 22, 1e-9);
  ff_tasks_begin(&t, 1, 14);
  NEAR(ff_tasks_left(&t, 16), 20, 1e-9);
  NEAR(ff_tasks_left(&t, 34), 2 + 5 * 24 / 8.0, 1e-9); /* overdue: a tenth more, and the others take longer, too */
  ff_tasks_free(&t);
}

/* A task takes what those of its own group took, whatever the others did. */
static void each_group_has_a_pace(void **state) {
  ff_tasks t = {.at_once = 1};
  for (uint32_t i = 0; i < 4; i++) ff_tasks_add(&t, 2, i % 2);
  for (uint32_t i = 0; i < 2; i++) {
    ff_tasks_begin(&t, i, 50);
    ff_tasks_end(&t, i, i ? 80 : 54);
  }
  NEAR(ff_tasks_left(&t, 80), 4 + 30, 1e-9);
  ff_tasks_begin(&t, 3, 80);
  ff_tasks_end(&t, 3, 110);
  NEAR(ff_tasks_left(&t, 110), 4, 1e-9);
  ff_tasks_free(&t);
}

/* Where nothing has ended, what is known before counts until a task takes longer than that says. */
static void what_was_known_gives_way(void **state) {
  ff_tasks t = {.at_once = 1, .known = 1};
  ff_tasks_add(&t, 10, 0);
  ff_tasks_add(&t, 10, 0);
  ff_tasks_begin(&t, 0, 100);
  NEAR(ff_tasks_left(&t, 104), 6 + 10, 1e-9);
  NEAR(ff_tasks_left(&t, 130), 3 + 30, 1e-9); /* three times as long so far */
  ff_tasks_free(&t);
}

/* However many run at once, it takes as long as the longest of them. */
static void the_longest_counts(void **state) {
  ff_tasks t = {.at_once = 8, .known = 1};
  ff_tasks_add(&t, 10, 0);
  ff_tasks_add(&t, 2, 0);
  NEAR(ff_tasks_left(&t, 0), 10, 1e-9);
  ff_tasks_free(&t);
}

static void no_number_is_no_trouble(void **state) {
  ff_tasks t = {0};
  assert_true(ff_tasks_show(&t, 1) == 0);
  ff_tasks_add(&t, 0, 3); /* as if it were 1 */
  ff_tasks_begin(&t, 0, 5);
  ff_tasks_end(&t, 0, 5); /* took no time */
  assert_true(ff_tasks_show(&t, 5) == 0);
  ff_tasks_add(&t, NAN, 0);
  assert_true(isfinite(ff_tasks_left(&t, 5)));
  ff_tasks_free(&t);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(equal_tasks_run_down_like_a_clock),
                                     cmocka_unit_test(one_long_task_does_not_make_it_rise),
                                     cmocka_unit_test(kinds_are_learned),
                                     cmocka_unit_test(weights_count_where_no_kind_is_known),
                                     cmocka_unit_test(each_group_has_a_pace),
                                     cmocka_unit_test(what_was_known_gives_way),
                                     cmocka_unit_test(the_longest_counts),
                                     cmocka_unit_test(no_number_is_no_trouble)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
