/* SPDX-License-Identifier: Apache-2.0 */
/* Who has which task: in order, once, again when a worker is lost, and given up when it costs too many. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "sweep/work_queue.h"

static void in_order_and_once(void **state) {
  work_queue h;
  work_queue_start(&h, 3, 2);
  assert_int_equal(work_queue_next(&h, 0), -1); /* no process has joined */
  work_queue_join(&h, 0, 1, 0);
  work_queue_join(&h, 1, 2, 0);
  assert_int_equal(work_queue_next(&h, 0), 0);
  assert_int_equal(work_queue_next(&h, 0), -1); /* no room */
  assert_int_equal(work_queue_next(&h, 1), 1);
  assert_true(work_queue_done(&h, 0));
  assert_false(work_queue_done(&h, 0));
  assert_false(work_queue_done(&h, 3));
  assert_int_equal(work_queue_next(&h, 0), 2);
  assert_int_equal(work_queue_next(&h, 1), -1);
  assert_false(work_queue_finished(&h));
  assert_true(work_queue_done(&h, 1) && work_queue_done(&h, 2));
  assert_true(work_queue_finished(&h));
  work_queue_free(&h);
}

static void lost_and_there_again(void **state) {
  work_queue h;
  work_queue_start(&h, 4, 2);
  work_queue_join(&h, 0, 1, 0);
  work_queue_join(&h, 1, 2, 0);
  assert_int_equal(work_queue_next(&h, 1), 0);
  assert_int_equal(work_queue_next(&h, 1), 1);
  work_queue_heard(&h, 0, 10);
  assert_int_equal(work_queue_lost(&h, 10, 10), -1); /* not more than the patience */
  assert_int_equal(work_queue_lost(&h, 10.5, 10), 1);
  assert_int_equal(work_queue_lost(&h, 10.5, 10), -1);
  assert_int_equal(work_queue_next(&h, 1), -1); /* nothing for the lost */
  assert_int_equal(work_queue_next(&h, 0), 0);  /* what it had comes first */
  work_queue_heard(&h, 1, 11);
  assert_int_equal(work_queue_next(&h, 1), 1);
  assert_true(work_queue_done(&h, 0));  /* from the one that had been lost: good as well */
  assert_false(work_queue_done(&h, 0)); /* and late from the other */
  assert_int_equal(h.workers[0].busy, 0);
  assert_int_equal(work_queue_next(&h, 0), 2);
  work_queue_free(&h);
}

static void hopeless(void **state) {
  work_queue h;
  work_queue_start(&h, 2, 1);
  for (int i = 0; i < HANDOUT_LOSSES; i++) {
    assert_int_equal(work_queue_hopeless(&h), -1);
    work_queue_join(&h, 0, 1, i);
    assert_int_equal(work_queue_next(&h, 0), 0);
    assert_int_equal(work_queue_lost(&h, i + 0.5, 0.1), 0);
  }
  assert_int_equal(work_queue_hopeless(&h), 0);
  assert_int_equal(work_queue_hopeless(&h), -1);
  work_queue_join(&h, 0, 1, 9);
  assert_int_equal(work_queue_next(&h, 0), 1);
  assert_true(work_queue_done(&h, 1));
  assert_true(work_queue_finished(&h));
  work_queue_free(&h);
}

/* Whatever happens in whatever order: every task gets done, and each counts once. */
static void random_order(void **state) {
  srand(1);
  for (int round = 0; round < 50; round++) {
    enum { TASKS = 40, WORKERS = 5 };
    work_queue h;
    uint32_t counted[TASKS] = {0};
    FF_VEC(uint32_t) out = {0}; /* what was handed out and may come back, also from the lost */
    work_queue_start(&h, TASKS, WORKERS);
    for (double now = 0; !work_queue_finished(&h); now++) {
      uint32_t worker = (uint32_t)rand() % WORKERS;
      int64_t task;
      switch (rand() % 5) {
      case 0: work_queue_join(&h, worker, 1 + (uint32_t)rand() % 3, now); break;
      case 1:
      case 2:
        if ((task = work_queue_next(&h, worker)) >= 0) FF_PUSH(&out, (uint32_t)task);
        break;
      case 3:
        if (out.count) {
          size_t at = (size_t)rand() % out.count;
          uint32_t one = out.items[at];
          out.items[at] = out.items[--out.count];
          counted[one] += work_queue_done(&h, one);
        }
        break;
      default:
        work_queue_lost(&h, now, 20);
        if ((task = work_queue_hopeless(&h)) >= 0) counted[task]++;
      }
    }
    for (int i = 0; i < TASKS; i++) assert_int_equal(counted[i], 1);
    free(out.items);
    work_queue_free(&h);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(in_order_and_once), cmocka_unit_test(lost_and_there_again),
                                     cmocka_unit_test(hopeless), cmocka_unit_test(random_order)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
