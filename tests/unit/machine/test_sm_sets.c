/* SPDX-License-Identifier: Apache-2.0 */
/* Streams that are bound to some SMs (TRACE_OP_STREAM_SMS): kernels stay on them, those with others run in parallel,
 * one that may run anywhere takes what they leave. A block keeps an SM busy for 100 us; two do not fit at once. */
#include "rig.h"

enum { SMS = 15 };

static void busy(trace_writer *w, uint64_t b, uint32_t i, const void *c) { /* 25,000 instructions of 4 ns */
  for (int n = 0; n < 5; n++) rig_issue(w, 5000);
}

static void launch(rig *r, uint32_t stream, uint64_t blocks) {
  rig_launch(r, (rig_kernel){.blocks = blocks, .warps = 1, .shared_bytes = 49152, .warp = busy, .stream = stream});
}

static void bind(rig *r, uint32_t stream, uint32_t first, uint32_t count) {
  trace_op op = {.kind = TRACE_OP_STREAM_SMS, .stream = stream};
  for (uint32_t i = first; i < first + count; i++) op.sms.mask[i / 64] |= UINT64_C(1) << i % 64;
  rig_op(r, op);
}

static void begin(rig *r) {
  rig_open(r, "copy");
  rig_start(r);
  for (uint32_t n = 1; n <= 3; n++)
    rig_op(r, (trace_op){.kind = TRACE_OP_STREAM_CREATE, .stream = n, .stream_create = {TRACE_STREAM_NON_BLOCKING}});
}

/* How many rounds of blocks it was until all was over. */
static uint64_t rounds(rig *r) {
  rig_sync(r);
  ps time = rig_finish(r)->counters.time_ps;
  rig_close(r);
  assert_int_equal(time % (100 * US), 0);
  return time / (100 * US);
}

static void test_fewer_sms_take_longer(void **state) {
  for (uint32_t sms = 1; sms <= SMS; sms++) {
    rig r;
    begin(&r);
    bind(&r, 1, SMS - sms, sms);
    launch(&r, 1, 30);
    assert_int_equal(rounds(&r), (30 + sms - 1) / sms);
  }
}

static void test_disjoint_sets_run_side_by_side(void **state) {
  rig r;
  begin(&r);
  bind(&r, 1, 0, 5);
  bind(&r, 2, 5, 10);
  launch(&r, 1, 50);  /* ten rounds on five */
  launch(&r, 2, 100); /* ten on ten, in parallel, though the first one's blocks have not all started */
  assert_int_equal(rounds(&r), 10);
  begin(&r);
  bind(&r, 1, 0, 10);
  bind(&r, 2, 5, 10);
  launch(&r, 1, 50); /* five rounds on 0 to 9 */
  launch(&r, 2, 75); /* meanwhile on 10 to 14, five rounds; then the other 50 on ten */
  assert_int_equal(rounds(&r), 10);
}

static void test_who_may_run_anywhere_takes_the_rest(void **state) {
  rig r;
  begin(&r);
  bind(&r, 1, 0, 5);
  launch(&r, 1, 50);
  launch(&r, 2, 100); /* on ten SMs for ten rounds */
  launch(&r, 3, 15);  /* behind both: on all */
  assert_int_equal(rounds(&r), 11);
  begin(&r);
  bind(&r, 1, 0, 5);
  launch(&r, 2, 30); /* the first one has all SMs until all its blocks have started */
  launch(&r, 1, 5);
  assert_int_equal(rounds(&r), 3);
}

static void test_a_set_counts_for_what_follows(void **state) {
  rig r;
  begin(&r);
  bind(&r, 1, 0, 5);
  launch(&r, 1, 15);
  bind(&r, 1, 0, 0); /* all again: the launch before it keeps its five */
  launch(&r, 1, 15);
  assert_int_equal(rounds(&r), 4);
  begin(&r);
  bind(&r, 1, 10, 100); /* of which there are five */
  launch(&r, 1, 15);
  assert_int_equal(rounds(&r), 3);
}

static const char *failure(rig *r) {
  rig_op(r, (trace_op){.kind = TRACE_OP_END});
  sim_run(r->sim);
  sim_snapshot(r->sim, &r->result);
  return r->result.error;
}

static void test_no_such_sms(void **state) {
  rig r;
  begin(&r);
  bind(&r, 1, 100, 4);
  launch(&r, 1, 15);
  assert_string_equal(failure(&r), "stream 1 is bound to SMs that rig does not have: it has 15");
  rig_close(&r);
  begin(&r);
  for (uint32_t first = 0; first < SMS; first++)
    for (uint32_t count = 1; first + count <= SMS; count++) bind(&r, 1, first, count);
  launch(&r, 1, 15);
  assert_int_equal(rounds(&r), 15); /* 120 sets are few enough */
  begin(&r);
  for (uint32_t n = 1; n < 1000; n++) {
    trace_op op = {.kind = TRACE_OP_STREAM_SMS, .stream = 1, .sms = {{n}}};
    rig_op(&r, op);
  }
  assert_string_equal(failure(&r), "streams are bound to more than 256 different sets of SMs");
  rig_close(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_fewer_sms_take_longer),
      cmocka_unit_test(test_disjoint_sets_run_side_by_side),
      cmocka_unit_test(test_who_may_run_anywhere_takes_the_rest),
      cmocka_unit_test(test_a_set_counts_for_what_follows),
      cmocka_unit_test(test_no_such_sms),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
