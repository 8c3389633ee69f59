/* SPDX-License-Identifier: Apache-2.0 */
/* Several programs on one device: one of them is as alone, threads make no difference, shares of SMs, threads and time
 * give the times that they must.
 *
 * Blocks of the kernel `busy` keep an SM of the rig's 15 occupied for 100 us (a `round`); they touch no memory. */
#include "tenants.h"

enum { SMS = 15 };
#define ROUND (100 * US)

static void busy(trace_writer *w, uint64_t b, uint32_t i, const void *c) { /* 25,000 instructions of 4 ns */
  for (int n = 0; n < 5; n++) rig_issue(w, 5000);
}
/* One block fills an SM. */
#define BUSY(n)                                                                                      \
  {                                                                                                  \
    .kind = PLAN_KERNEL, .kernel = {.blocks = (n), .warps = 1, .shared_bytes = 49152, .warp = busy } \
  }
#define BUSY_TIMES(n, times) \
  { .kind = PLAN_KERNEL, .kernel = {.blocks = (n), .warps = 1, .shared_bytes = 49152, .warp = busy}, .repeat = (times) }
#define SYNC \
  { .kind = PLAN_SYNC }
#define END \
  { .kind = PLAN_END }

static void set_sms(bench *b, uint32_t lane, uint32_t first, uint32_t count) {
  b->lanes[lane].given.sm_first = first;
  b->lanes[lane].given.sm_count = count;
}

static ps time_of(const bench *b, uint32_t lane) { return b->lanes[lane].r.result.counters.time_ps; }

/* ---- one tenant is as alone ---- */

static void mixed(trace_writer *w, uint64_t b, uint32_t i, const void *c) {
  for (uint64_t n = 0; n < 12; n++) {
    uint64_t line = RIG_BASE + ((b * 7919 + i * 131 + n * 37) * 128) % (6 << 20);
    if (n % 5 == 4) rig_store(w, line);
    else if (n % 7 == 6) rig_access(w, TRACE_ATOMIC, TRACE_RETURNS, line, 3);
    else rig_load(w, line);
    rig_issue(w, 3 + (uint32_t)(b % 5));
    if (n % 3 == 2) trace_put_wait(w, 1);
  }
}

static const plan_step mixture[] = {
    {.kind = PLAN_STREAM, .kernel = {.stream = 1}},
    {.kind = PLAN_ALLOC, .bytes = 6 << 20},
    {.kind = PLAN_ALLOC, .at = 8 << 20, .bytes = 100000},
    {.kind = PLAN_H2D, .bytes = 3 << 20},
    {.kind = PLAN_KERNEL, .kernel = {.blocks = 200, .warps = 3, .warp = mixed}},
    {.kind = PLAN_KERNEL,
     .kernel = {.blocks = 40, .warps = 8, .registers = 64, .warp = mixed, .stream = 1, .name = "parallel"}},
    {.kind = PLAN_HOST, .repeat = 3},
    SYNC,
    {.kind = PLAN_D2H, .at = 8 << 20, .bytes = 100000},
    {.kind = PLAN_FREE, .at = 8 << 20},
    {.kind = PLAN_KERNEL, .kernel = {.blocks = 31, .warps = 1, .warp = mixed}, .repeat = 3},
    END};

static void host_costs(machine_spec *s) {
  s->api_us = 1.25;
  s->launch_us = 3;
  s->sync_us = 5;
  s->malloc_us = 10;
  s->launch_latency_us = 2;
}

static void test_one_tenant_is_as_alone(void **state) {
  static const char *const managers[] = {"copy", "ideal", "demand"};
  for (int hash = 0; hash < 2; hash++)
    for (int m = 0; m < 3; m++)
      for (int i = SIM_ISOLATION_NONE; i <= SIM_ISOLATION_SM_MEMORY - !hash; i++) {
        bench b;
        bench_open(&b, (sim_isolation)i, 1);
        b.manager = managers[m];
        host_costs(&b.spec);
        if (hash) bench_hashed(&b.spec);
        b.lanes[0].plan = mixture;
        sim_counters alone = bench_alone(&b);
        bench_run(&b);
        sim_counters shared = b.lanes[0].r.result.counters;
        if (i < SIM_ISOLATION_SM_MEMORY) { /* there an allocation is in single frames, and lies elsewhere */
          counters_equal(&alone, &shared);
        } else {
          assert_int_equal(alone.sectors, shared.sectors);
          assert_int_equal(alone.warp_instructions, shared.warp_instructions);
          assert_int_equal(alone.h2d_bytes, shared.h2d_bytes);
        }
        bench_close(&b);
      }
}

/* ---- threads make no difference ---- */

static const plan_step small[] = {
    {.kind = PLAN_ALLOC, .bytes = 1 << 20},
    {.kind = PLAN_KERNEL, .kernel = {.blocks = 9, .warps = 2, .warp = mixed}, .repeat = 2},
    SYNC,
    END};
static const plan_step longer[] = {
    {.kind = PLAN_ALLOC, .bytes = 6 << 20},
    {.kind = PLAN_KERNEL, .kernel = {.blocks = 40, .warps = 4, .warp = mixed}, .repeat = 3},
    SYNC,
    {.kind = PLAN_KERNEL, .kernel = {.blocks = 20, .warps = 1, .warp = mixed}, .repeat = 2},
    END};

static void four(bench *b, int isolation, bool jitter) {
  bench_open(b, (sim_isolation)isolation, 4);
  host_costs(&b->spec);
  bench_hashed(&b->spec);
  b->jitter = jitter;
  b->borrow = isolation == SIM_ISOLATION_SM;
  static const uint32_t first[] = {0, 4, 8, 12}, count[] = {4, 4, 4, 3};
  for (uint32_t i = 0; i < 4; i++) {
    set_sms(b, i, first[i], count[i]);
    b->lanes[i].given.colours = 3ull << 2 * i;
    b->lanes[i].given.thread_share = 0.25;
    b->lanes[i].given.loops = i >= 2;
    b->lanes[i].plan = i == 1 || i == 2 ? small : longer;
  }
  if (isolation >= SIM_ISOLATION_SM) b->page = "4K";
  bench_run(b);
}

static void test_threads_make_no_difference(void **state) {
  for (int i = SIM_ISOLATION_NONE; i <= SIM_ISOLATION_SM_MEMORY; i++) {
    bench once, again;
    four(&once, i, false);
    four(&again, i, true);
    for (uint32_t n = 0; n < 4; n++) {
      const lane *a = &once.lanes[n], *b = &again.lanes[n];
      assert_int_equal(a->passes, b->passes);
      counters_equal(&a->r.result.counters, &b->r.result.counters);
      assert_int_equal(a->history->kernels.count, b->history->kernels.count);
      assert_memory_equal(a->history->kernels.items, b->history->kernels.items,
                          a->history->kernels.count * sizeof *a->history->kernels.items);
      assert_memory_equal(&a->tenant, &b->tenant, sizeof a->tenant);
    }
    bench_close(&once);
    bench_close(&again);
  }
}

/* ---- SMs ---- */

static const plan_step thirty[] = {BUSY(30), SYNC, END};
static const plan_step sixty[] = {BUSY(60), SYNC, END};
static const plan_step five[] = {BUSY(5), SYNC, END};

static void test_time_goes_by_the_share_of_sms(void **state) {
  for (uint32_t sms = 1; sms <= SMS; sms += 2) {
    bench b;
    bench_open(&b, SIM_ISOLATION_SM, 1);
    set_sms(&b, 0, SMS - sms, sms);
    b.lanes[0].plan = thirty;
    bench_run(&b);
    assert_int_equal(time_of(&b, 0), (30 + sms - 1) / sms * ROUND);
    bench_close(&b);
  }
}

static void test_neighbours_on_other_sms_are_not_noticed(void **state) {
  ps times[2][2];
  for (int neighbour = 0; neighbour < 2; neighbour++) {
    bench b;
    bench_open(&b, SIM_ISOLATION_SM, 2);
    set_sms(&b, 0, 0, 5);
    set_sms(&b, 1, 5, 10);
    b.lanes[0].plan = thirty;
    b.lanes[1].plan = sixty;
    b.lanes[1].given.idle = !neighbour;
    bench_run(&b);
    times[neighbour][0] = time_of(&b, 0);
    if (neighbour) assert_int_equal(time_of(&b, 1), 6 * ROUND);
    bench_close(&b);
  }
  assert_int_equal(times[0][0], 6 * ROUND);
  assert_int_equal(times[1][0], 6 * ROUND);
}

/* ---- lending: to kernels whose blocks have been short, from when the first one of them is over ---- */

#define QUICK_ROUND (40 * US)
static void quick(trace_writer *w, uint64_t b, uint32_t i, const void *c) {
  for (int n = 0; n < 5; n++) rig_issue(w, 2000);
}
#define QUICK(n)                                                                                      \
  {                                                                                                   \
    .kind = PLAN_KERNEL, .kernel = {.blocks = (n), .warps = 1, .shared_bytes = 49152, .warp = quick } \
  }
static const plan_step late[] = {{.kind = PLAN_HOST}, QUICK(20), SYNC, END}; /* after 250 us */
static const plan_step many[] = {QUICK(10 + 150), SYNC, END};
static const plan_step few[] = {QUICK(5), SYNC, END};

static void lending(bench *b, const plan_step *owner, const plan_step *borrower) {
  bench_open(b, SIM_ISOLATION_SM, 2);
  b->borrow = true;
  b->spec.api_us = 250;
  set_sms(b, 0, 0, 5);
  set_sms(b, 1, 5, 10);
  b->lanes[0].plan = owner;
  b->lanes[1].plan = borrower;
  b->lanes[0].given.idle = !owner;
  bench_run(b);
}

static void test_idle_sms_are_lent(void **state) {
  bench b;
  lending(&b, NULL, many);
  assert_int_equal(time_of(&b, 1), 11 * QUICK_ROUND); /* a round on 10, ten on 15 */
  assert_int_equal(b.lanes[1].tenant.borrowed_ps, 10 * QUICK_ROUND);
  bench_close(&b);
}

static void test_sms_are_not_lent_to_long_blocks(void **state) {
  bench b;
  static const plan_step slow[] = {BUSY(30), SYNC, END};
  lending(&b, NULL, slow);
  assert_int_equal(time_of(&b, 1), 3 * ROUND);
  assert_int_equal(b.lanes[1].tenant.borrowed_ps, 0);
  bench_close(&b);
}

static void test_lent_sms_are_taken_back(void **state) {
  bench b;
  static const plan_step borrower[] = {QUICK(10 + 6 * 15 + 4 * 10 + 3 * 15), SYNC, END};
  lending(&b, late, borrower);
  /* The owner's kernel begins at 250 us and has its five SMs at 280: four rounds, until 440. The other had 10, then 15
   * for six rounds, 10 for four, 15 again. */
  assert_int_equal(time_of(&b, 0), 440 * US);
  assert_int_equal(b.lanes[0].tenant.take_back_ps, 30 * US);
  assert_int_equal(time_of(&b, 1), 14 * QUICK_ROUND);
  assert_int_equal(b.lanes[1].tenant.borrowed_ps, 9 * QUICK_ROUND);
  bench_close(&b);
}

static void test_sms_are_lent_when_their_owner_is_over(void **state) {
  bench b;
  lending(&b, few, many);
  assert_int_equal(time_of(&b, 0), QUICK_ROUND);
  assert_int_equal(time_of(&b, 1), 11 * QUICK_ROUND);
  bench_close(&b);
}

/* ---- shares of threads ---- */

/* 32 warps on 2 schedulers: 6250 * 16 cycles */
static void busy_warps(trace_writer *w, uint64_t b, uint32_t i, const void *c) {
  for (int n = 0; n < 5; n++) rig_issue(w, 1250);
}
/* 1024 of an SM's 1536 threads */
static const plan_step thousands[] = {
    {.kind = PLAN_KERNEL, .kernel = {.blocks = 66, .warps = 32, .warp = busy_warps}}, SYNC, END};

static void test_shares_of_threads(void **state) {
  static const double shares[] = {0.04, 0.1, 0.25, 0.5, 0.75, 1};
  for (int i = 0; i < 6; i++) {
    bench b;
    bench_open(&b, SIM_ISOLATION_MPS, 2);
    b.lanes[0].given.thread_share = shares[i];
    b.lanes[0].plan = thousands;
    b.lanes[1].given.idle = true;
    bench_run(&b);
    uint64_t at_once = (uint64_t)(shares[i] * SMS * 1536) / 1024; /* on as many SMs */
    if (!at_once) at_once = 1;                                    /* a block that is larger than the share */
    if (at_once > SMS) at_once = SMS;
    assert_int_equal(time_of(&b, 0), (66 + at_once - 1) / at_once * ROUND);
    bench_close(&b);
  }
}

static void test_shares_of_threads_side_by_side(void **state) {
  bench b;
  bench_open(&b, SIM_ISOLATION_MPS, 2);
  for (int i = 0; i < 2; i++) {
    b.lanes[i].plan = thousands;
    b.lanes[i].given.thread_share = i ? 0.3 : 0.5; /* 11 and 6 blocks: more than the 15 SMs have room for */
  }
  bench_run(&b);
  /* Both at once on 15 SMs: 132 blocks take nine rounds at least; none is faster than its share allows. */
  ps first = time_of(&b, 0), second = time_of(&b, 1);
  assert_true(first >= 6 * ROUND && second >= 11 * ROUND);
  assert_true((first > second ? first : second) <= 12 * ROUND);
  bench_close(&b);
}

/* ---- MPS: blocks that take 32 KiB of shared memory, next to programs that take none. An SM that has divided its
 * memory for those is no room for such a block until it is empty. ---- */

/* 14 warps on 2 schedulers: 175 us alone on an SM, of which three fill it but for 192 threads */
static void busy_half(trace_writer *w, uint64_t b, uint32_t i, const void *c) {
  for (int n = 0; n < 5; n++) rig_issue(w, 1250);
}
#define BARE(n, times) \
  { .kind = PLAN_KERNEL, .kernel = {.blocks = (n), .warps = 14, .warp = busy_half}, .repeat = (times) }
#define SHARING(n, count, code)                                                                            \
  {                                                                                                        \
    .kind = PLAN_KERNEL, .kernel = {.blocks = (n), .warps = (count), .shared_bytes = 32768, .warp = code } \
  }
#define LATER(turns) \
  { .kind = PLAN_HOST, .repeat = (turns) } /* times 60 us */

static void long_busy(trace_writer *w, uint64_t b, uint32_t i, const void *c) { /* 20 rounds */
  for (int n = 0; n < 100; n++) rig_issue(w, 5000);
}
/* 47 warps on 2 schedulers: 48 us */
static void short_busy(trace_writer *w, uint64_t b, uint32_t i, const void *c) { rig_issue(w, 500); }

static void dividing(bench *b, uint32_t count, const plan_step *const *plans) {
  bench_open(b, SIM_ISOLATION_MPS, count);
  b->spec.compute_minor = 0;
  b->spec.exact_allocation = 0;
  b->spec.l1_bytes = 128 << 10;
  b->spec.shared_bytes = 96 << 10;
  b->spec.api_us = 60;
  for (uint32_t i = 0; i < count; i++) b->lanes[i].plan = plans[i];
  bench_run(b);
}

static const history_kernel *last_kernel(const bench *b, uint32_t lane) {
  return &b->lanes[lane].history->kernels.items[b->lanes[lane].history->kernels.count - 1];
}

/* The others' kernels come and go, so that each SM always has blocks. */
static void test_another_division_of_an_sm_is_waited_for(void **state) {
  static const plan_step bare[] = {BARE(45, 20), SYNC, END}, bare_later[] = {LATER(1), BARE(45, 20), SYNC, END},
                         sharing[] = {LATER(3), SHARING(60, 4, busy_half), SYNC, END};
  bench b;
  dividing(&b, 3, (const plan_step *const[]){bare, bare_later, sharing});
  ps end = last_kernel(&b, 2)->end;
  assert_true(end < time_of(&b, 0) / 2 && end < time_of(&b, 1) / 2);
  bench_close(&b);
}

/* A kernel that began before is not held up. */
static void test_another_division_waits_for_earlier_kernels(void **state) {
  static const plan_step bare[] = {BARE(45 * 8, 1), SYNC, END},
                         sharing[] = {LATER(3), SHARING(15, 1, busy_half), SYNC, END};
  bench b;
  dividing(&b, 2, (const plan_step *const[]){bare, sharing});
  assert_true(last_kernel(&b, 1)->end > last_kernel(&b, 0)->end);
  bench_close(&b);
}

/* SMs that were kept for a kernel and that it did not need have other blocks at once: three of its five blocks start on
 * the SM that is empty, the last two there at 160 us. The others, of 47 warps, have room on all other SMs only. */
static void test_kept_sms_are_given_back(void **state) {
  static const plan_step lasting[] = {{.kind = PLAN_KERNEL, .kernel = {.blocks = 14, .warps = 1, .warp = long_busy}},
                                      SYNC,
                                      END},
                         sharing[] = {LATER(1), SHARING(5, 1, busy), SYNC, END},
                         refused[] = {LATER(2),
                                      {.kind = PLAN_KERNEL, .kernel = {.blocks = 14, .warps = 47, .warp = short_busy}},
                                      SYNC,
                                      END};
  bench b;
  dividing(&b, 3, (const plan_step *const[]){lasting, sharing, refused});
  ps end = last_kernel(&b, 2)->end;
  assert_true(end > 160 * US && end < 250 * US);
  bench_close(&b);
}

/* ---- time slices ---- */

static ps busy_until(const lane *l) { return l->history->kernels.items[l->history->kernels.count - 1].end; }

#define SLICE_ROUND (150 * US) /* 14 of them and a slice of 2 ms is over */

static void slices(bench *b, const plan_step *first, const plan_step *second) {
  bench_open(b, SIM_ISOLATION_NONE, 2);
  b->spec.issue_interval = 6;
  b->lanes[0].plan = first;
  b->lanes[1].plan = second;
  bench_run(b);
}

static const plan_step short_ones[] = {BUSY_TIMES(15, 20), SYNC, END};
static const plan_step long_one[] = {BUSY(15 * 100), SYNC, END};
static const plan_step ping_pong[] = {BUSY(15), SYNC, BUSY(15), SYNC, BUSY(15), SYNC, BUSY(15), SYNC, END};

static void test_one_tenant_at_a_time(void **state) {
  bench b;
  slices(&b, short_ones, short_ones);
  /* 40 rounds of all SMs: the tenant that runs, runs on all, and no round is lost. */
  ps end0 = busy_until(&b.lanes[0]), end1 = busy_until(&b.lanes[1]);
  assert_int_equal(end0 > end1 ? end0 : end1, 40 * SLICE_ROUND);
  assert_true((end0 < end1 ? end0 : end1) >= 20 * SLICE_ROUND);
  bench_close(&b);
}

static void test_time_slices_share_fairly(void **state) {
  bench b;
  slices(&b, long_one, long_one); /* each 100 rounds: seven slices of 14, and two */
  assert_int_equal(busy_until(&b.lanes[0]), 198 * SLICE_ROUND);
  assert_int_equal(busy_until(&b.lanes[1]), 200 * SLICE_ROUND);
  bench_close(&b);
}

/* A program that synchronises between kernels goes on at once, and not when a slice is over. */
static void test_who_synchronises_goes_on_in_time(void **state) {
  bench b;
  slices(&b, ping_pong, ping_pong);
  const history_kernel *x = b.lanes[0].history->kernels.items, *y = b.lanes[1].history->kernels.items;
  for (int i = 0; i < 4; i++) { /* by turns: the one's kernel queues while the other's runs */
    assert_int_equal(x[i].end, (2 * i + 1) * SLICE_ROUND);
    assert_int_equal(y[i].end, (2 * i + 2) * SLICE_ROUND);
  }
  bench_close(&b);
}

static const plan_step sixty_rounds[] = {BUSY(15 * 60), SYNC, END};
static void test_a_slice_is_not_cut_by_one_before(void **state) {
  bench b;
  slices(&b, sixty_rounds, ping_pong);
  /* 14 rounds of the first, one of the other, and so on: the slice of its kernel, which was over early, ends none of
   * the first. */
  const history_kernel *y = b.lanes[1].history->kernels.items;
  for (int i = 0; i < 4; i++) assert_int_equal(y[i].end, 15 * (i + 1) * SLICE_ROUND);
  assert_int_equal(busy_until(&b.lanes[0]), 64 * SLICE_ROUND);
  bench_close(&b);
}

static const plan_step late_one[] = {{.kind = PLAN_HOST}, BUSY(15), SYNC, END};
static void test_an_idle_owner_keeps_nobody_waiting(void **state) {
  bench b;
  bench_open(&b, SIM_ISOLATION_NONE, 2);
  b.spec.api_us = 250;
  static const plan_step early[] = {BUSY(15), SYNC, END};
  b.lanes[0].plan = early;
  b.lanes[1].plan = late_one;
  bench_run(&b);
  assert_int_equal(busy_until(&b.lanes[1]), 350 * US); /* though the first one's slice would go on until 2 ms */
  bench_close(&b);
}

/* ---- programs that loop ---- */

static void test_loops_until_the_others_are_over(void **state) {
  bench b;
  bench_open(&b, SIM_ISOLATION_SM, 3);
  for (uint32_t i = 0; i < 3; i++) {
    set_sms(&b, i, 5 * i, 5);
    b.lanes[i].plan = i ? five : sixty;
    b.lanes[i].given.loops = i;
  }
  bench_run(&b);
  assert_int_equal(time_of(&b, 0), 12 * ROUND);
  for (uint32_t i = 1; i < 3; i++) assert_between(b.lanes[i].passes, 11, 12);
  bench_close(&b);
}

static void test_loops_under_time_slices(void **state) {
  bench b;
  bench_open(&b, SIM_ISOLATION_NONE, 2);
  static const plan_step fifteen[] = {BUSY(15), SYNC, END};
  b.lanes[0].plan = short_ones;
  b.lanes[1].plan = fifteen;
  b.lanes[1].given.loops = true;
  bench_run(&b);
  assert_between(b.lanes[1].passes, 19, 20); /* by turns: the other is there again as soon as it is over */
  assert_int_equal(busy_until(&b.lanes[0]), (20 + b.lanes[1].passes) * ROUND);
  bench_close(&b);
}

/* But for its kernels nothing takes a program that loops time: neither calls nor synchronisations. */
static void test_who_loops_spends_no_time_on_calls(void **state) {
  bench b;
  static const plan_step calls[] = {
      {.kind = PLAN_HOST, .repeat = 50}, {.kind = PLAN_ALLOC, .bytes = 4096}, BUSY(5), SYNC, END};
  bench_open(&b, SIM_ISOLATION_SM, 2);
  set_sms(&b, 0, 0, 5);
  set_sms(&b, 1, 5, 5);
  b.spec.api_us = b.spec.sync_us = b.spec.malloc_us = 20;
  b.lanes[0].plan = sixty;
  b.lanes[1].plan = calls;
  b.lanes[1].given.loops = true;
  bench_run(&b);
  assert_between(b.lanes[1].passes, 11, 12); /* of the 1.2 ms and more */
  bench_close(&b);
}

static const plan_step nothing[] = {{.kind = PLAN_HOST}, END};
static void test_a_loop_without_kernels_does_not_stand_in_the_way(void **state) {
  bench b;
  bench_open(&b, SIM_ISOLATION_SM, 2);
  set_sms(&b, 0, 0, 5);
  set_sms(&b, 1, 5, 10);
  b.lanes[0].plan = nothing;
  b.spec.api_us = 3;
  b.lanes[1].plan = five;
  b.lanes[1].given.loops = true;
  bench_run(&b);
  assert_int_equal(time_of(&b, 0), 3 * US);
  assert_int_equal(b.lanes[1].passes, 0);
  bench_close(&b);
}

/* ---- what cannot be ---- */

static void refused(sim_device_options o, ff_status expected, const char *message) {
  ff_error error = {0};
  sim_device *d = NULL;
  assert_int_equal(sim_device_create(&o, &d, &error), expected);
  if (!strstr(error.message, message)) fail_msg("\"%s\" is not in \"%s\"", message, error.message);
}

static void test_errors(void **state) {
  machine_spec spec = rig_spec();
  sim_tenant t[9] = {{.sm_count = 5}, {.sm_first = 4, .sm_count = 5}};
  refused((sim_device_options){.spec = &spec, .tenants = t}, FF_LIMIT, "1 to 8");
  refused((sim_device_options){.spec = &spec, .tenants = t, .count = 9}, FF_LIMIT, "not 9");
  refused((sim_device_options){.spec = &spec, .tenants = t, .count = 2, .isolation = SIM_ISOLATION_SM}, FF_INVALID,
          "SMs 4 to 8");
  t[1] = (sim_tenant){.sm_first = 10, .sm_count = 6};
  refused((sim_device_options){.spec = &spec, .tenants = t, .count = 2, .isolation = SIM_ISOLATION_SM}, FF_INVALID,
          "there are 15 SMs");
  t[1] = (sim_tenant){.sm_first = UINT32_MAX, .sm_count = 2};
  refused((sim_device_options){.spec = &spec, .tenants = t, .count = 2, .isolation = SIM_ISOLATION_SM}, FF_INVALID,
          "SMs");
  refused((sim_device_options){.spec = &spec, .tenants = t, .count = 1, .isolation = SIM_ISOLATION_SM_MEMORY},
          FF_UNSUPPORTED, "address_map");
  refused((sim_device_options){.spec = &spec, .set = "no_such=1", .tenants = t, .count = 1}, FF_NOT_FOUND, "no_such");
  sim_device *d;
  sim *s;
  assert_int_equal(sim_device_create(&(sim_device_options){.spec = &spec, .tenants = t, .count = 1}, &d, NULL), FF_OK);
  trace_program *p = trace_program_create(0);
  assert_int_equal(sim_create(p, &(sim_options){.spec = &spec, .manager = "copy", .device = d, .tenant = 1}, &s, NULL),
                   FF_INVALID);
  trace_program_free(p);
  sim_device_free(d);
  sim_device_free(NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_one_tenant_is_as_alone),
      cmocka_unit_test(test_threads_make_no_difference),
      cmocka_unit_test(test_time_goes_by_the_share_of_sms),
      cmocka_unit_test(test_neighbours_on_other_sms_are_not_noticed),
      cmocka_unit_test(test_idle_sms_are_lent),
      cmocka_unit_test(test_sms_are_not_lent_to_long_blocks),
      cmocka_unit_test(test_lent_sms_are_taken_back),
      cmocka_unit_test(test_sms_are_lent_when_their_owner_is_over),
      cmocka_unit_test(test_shares_of_threads),
      cmocka_unit_test(test_shares_of_threads_side_by_side),
      cmocka_unit_test(test_another_division_of_an_sm_is_waited_for),
      cmocka_unit_test(test_another_division_waits_for_earlier_kernels),
      cmocka_unit_test(test_kept_sms_are_given_back),
      cmocka_unit_test(test_one_tenant_at_a_time),
      cmocka_unit_test(test_time_slices_share_fairly),
      cmocka_unit_test(test_who_synchronises_goes_on_in_time),
      cmocka_unit_test(test_a_slice_is_not_cut_by_one_before),
      cmocka_unit_test(test_an_idle_owner_keeps_nobody_waiting),
      cmocka_unit_test(test_loops_until_the_others_are_over),
      cmocka_unit_test(test_loops_under_time_slices),
      cmocka_unit_test(test_who_loops_spends_no_time_on_calls),
      cmocka_unit_test(test_a_loop_without_kernels_does_not_stand_in_the_way),
      cmocka_unit_test(test_errors),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
