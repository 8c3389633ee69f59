/* SPDX-License-Identifier: Apache-2.0 */
/* Memory modules behind an address hash, with several tenants and with one: divided memory is not shared by anybody,
 * and pointer chases that meet in a bank, in a module or nowhere take the times of Jain 2019, figure 8, which follow
 * from the DRAM's row cycle and from the L2's MSHRs. */
#include "tenants.h"

/* ---- divided memory ---- */

/* memory-bound: eight lines at once */
static void stream_through(trace_writer *w, uint64_t b, uint32_t i, const void *c) {
  for (uint64_t n = 0; n < 32; n++) {
    rig_access(w, n % 4 == 3 ? TRACE_STORE : TRACE_LOAD, TRACE_BYPASS_L1, RIG_BASE + (b * 4 + i) * 4096 + n * 128, 15);
    if (n % 8 == 7) trace_put_wait(w, 0);
  }
}
static const plan_step streaming[] = {
    {.kind = PLAN_ALLOC, .bytes = 4 << 20},
    {.kind = PLAN_KERNEL, .kernel = {.blocks = 200, .warps = 4, .warp = stream_through}, .repeat = 2},
    {.kind = PLAN_SYNC},
    {.kind = PLAN_END}};

static uint32_t modules_used; /* by anybody: a bit for each */
static void see_modules(bench *b) {
  const device *d = b->lanes[0].r.sim ? b->lanes[0].r.sim->d : b->lanes[1].r.sim->d;
  modules_used = 0;
  for (uint32_t i = 0; i < d->spec.l2_slices; i++) modules_used |= (uint32_t)(d->slices[i].port.free > 0) << i;
}

/* Which lanes run; their counters. */
static uint32_t two(sim_isolation isolation, bool first, bool second, sim_counters out[2]) {
  bench b;
  bench_open(&b, isolation, 2);
  bench_hashed(&b.spec);
  /* what is in the middle is for all tenants: here there is none of it, */
  b.spec.walk_cache_bytes = b.spec.l2_tlb_entries = 0;
  b.spec.walkers = 1024; /* and page walkers for all warps at once */
  b.spec.dram_gbs = 50;
  b.page = "4K";
  b.inspect = see_modules;
  for (uint32_t i = 0; i < 2; i++) {
    lane *l = &b.lanes[i];
    l->plan = streaming;
    l->given = (sim_tenant){
        .sm_first = i ? 7 : 0, .sm_count = i ? 8 : 7, .colours = i ? 0xf0 : 0x0f, .idle = i ? !second : !first};
  }
  bench_run(&b);
  for (uint32_t i = 0; i < 2; i++) out[i] = b.lanes[i].r.result.counters;
  bench_close(&b);
  return modules_used;
}

static void test_divided_memory_is_nobody_elses(void **state) {
  sim_counters first[2], second[2], both[2];
  uint32_t a = two(SIM_ISOLATION_SM_MEMORY, true, false, first), b = two(SIM_ISOLATION_SM_MEMORY, false, true, second);
  assert_int_equal(__builtin_popcount(a), 4);
  assert_int_equal(__builtin_popcount(b), 4);
  assert_int_equal(a & b, 0);
  assert_int_equal(two(SIM_ISOLATION_SM_MEMORY, true, true, both), a | b);
  for (int i = 0; i < 2; i++) {
    const sim_counters *alone = i ? &second[1] : &first[0];
    assert_int_equal(alone->sectors, both[i].sectors);
    assert_near(both[i].l2_misses, alone->l2_misses, 0.001);
    assert_near(both[i].dram_read_bytes, alone->dram_read_bytes, 0.001);
    /* Not to the picosecond: how far an access of many lines goes at once depends on when the next event of any
     * tenant is (warp_access.c). */
    assert_near(both[i].kernel_ps, alone->kernel_ps, 0.005);
  }
}

static void test_shared_memory_is_felt(void **state) {
  sim_counters first[2], both[2];
  assert_int_equal(two(SIM_ISOLATION_SM, true, false, first), 0xff); /* all modules, for any tenant */
  assert_int_equal(two(SIM_ISOLATION_SM, true, true, both), 0xff);
  assert_true((double)both[0].kernel_ps > 1.2 * (double)first[0].kernel_ps);
}

/* ---- lent memory ---- */

static const plan_step for_long[] = {
    {.kind = PLAN_ALLOC, .bytes = 4 << 20},
    {.kind = PLAN_KERNEL, .kernel = {.blocks = 200, .warps = 4, .warp = stream_through}, .repeat = 8},
    {.kind = PLAN_SYNC},
    {.kind = PLAN_END}};
static const plan_step later[] = {{.kind = PLAN_HOST}, /* after 600 us */
                                  {.kind = PLAN_ALLOC, .bytes = 4 << 20},
                                  {.kind = PLAN_KERNEL, .kernel = {.blocks = 100, .warps = 4, .warp = stream_through}},
                                  {.kind = PLAN_SYNC},
                                  {.kind = PLAN_END}};

/* check_sectors: of check words (ECC) with each four sectors on the bus */
static void borrow_checked(bench *b, bool lends, const plan_step *owner, double gbs, uint32_t check_sectors) {
  bench_open(b, SIM_ISOLATION_SM_MEMORY, 2);
  bench_hashed(&b->spec);
  b->spec.dram_gbs = gbs;
  b->spec.dram_check_sectors = check_sectors;
  b->spec.api_us = 600;
  b->page = "4K";
  b->borrow = lends;
  b->lanes[0].plan = for_long;
  b->lanes[1].plan = owner;
  for (uint32_t i = 0; i < 2; i++)
    b->lanes[i].given =
        (sim_tenant){.sm_first = i ? 7 : 0, .sm_count = i ? 8 : 7, .colours = i ? 0xf0 : 0x0f, .idle = i && !owner};
  bench_run(b);
}

static void borrow(bench *b, bool lends, const plan_step *owner) { borrow_checked(b, lends, owner, 50, 0); }

static void test_memory_of_an_idle_tenant_is_lent(void **state) {
  bench without, with;
  borrow(&without, false, NULL);
  borrow(&with, true, NULL);
  assert_int_equal(without.lanes[0].tenant.lent_bytes, 0);
  assert_true(with.lanes[0].tenant.lent_bytes > 0);
  assert_true(with.lanes[0].r.result.counters.kernel_ps < without.lanes[0].r.result.counters.kernel_ps);
  bench_close(&without);
  bench_close(&with); /* all frames go back: frames_check */
}

static void test_lent_memory_is_taken_back(void **state) {
  bench b;
  borrow(&b, true, later);
  assert_true(b.lanes[0].tenant.lent_bytes > 0);
  double lent_ps = (double)b.lanes[0].tenant.lent_bytes * 1e12 / (b.spec.dram_gbs * 1e9);
  assert_between(b.lanes[1].tenant.take_back_ps, 1, (ps)(1.5 * lent_ps)); /* all of it moves at that rate; and walks */
  ps owner_began = b.lanes[1].history->kernels.items[0].begin;
  /* it was idle for long enough, and is not alone then */
  assert_true(owner_began >= 600 * US && b.lanes[0].history->kernels.items[0].end < owner_began);
  bench_close(&b);
}

/* Where check words take half of the bus, half as many pages are moved away: these, too, are back within 100 us. */
static void test_lent_memory_with_check_words(void **state) {
  for (uint32_t check_sectors = 0; check_sectors <= 4; check_sectors += 4) {
    bench b;
    borrow_checked(&b, true, later, 30, check_sectors);
    assert_between(b.lanes[1].tenant.take_back_ps, 1, 100 * US);
    bench_close(&b);
  }
}

/* ---- MSHRs of more than a line; sides of the L2 ---- */

static void two_lines(trace_writer *w, uint64_t b, uint32_t i, const void *apart) {
  rig_load_wait(w, RIG_BASE + (1 << 20)); /* translates */
  for (uint64_t n = 0; n < 2; n++)
    rig_access(w, TRACE_LOAD, TRACE_BYPASS_L1, RIG_BASE + n * *(const uint32_t *)apart, 15);
  for (uint32_t n = 0; n < 2; n++) trace_put_wait(w, n);
}
static uint64_t mshr_bytes;
static void one_mshr(machine_spec *s) {
  s->page_bytes = 2 << 20;
  s->l2_mshrs = 1;
  s->l2_mshr_bytes = mshr_bytes;
}
static ps pair(uint64_t bytes, uint32_t apart) {
  mshr_bytes = bytes;
  return rig_run(one_mshr, (rig_kernel){.blocks = 1, .warps = 1, .warp = two_lines, .context = &apart}).kernel_ps;
}

static void test_an_mshr_may_hold_a_piece(void **state) {
  enum { SAME_SLICE = 256 * 12 };
  ps one_after_the_other = pair(0, 128);
  assert_int_equal(pair(128, 128), one_after_the_other);
  /* the second line's row is open, too: only the wait is saved */
  assert_true(pair(256, 128) + 100 * NS < one_after_the_other);
  assert_true(pair(256, SAME_SLICE) > pair(256, 128) + 100 * NS); /* another piece waits still */
  assert_int_equal(pair(256, SAME_SLICE), pair(0, SAME_SLICE));
}

static void two_sides(machine_spec *s) {
  s->page_bytes = 2 << 20;
  bench_masks(&s->side_masks, 1, (uint64_t[]){BIT(8) | BIT(12)});
  s->side_latency = 37;
}
static void one_line(trace_writer *w, uint64_t b, uint32_t i, const void *at) {
  rig_load_wait(w, RIG_BASE + (1 << 20));
  if (b == *(const uint32_t *)at % 2) rig_load_wait(w, RIG_BASE + (*(const uint32_t *)at & ~1u)); /* by SM 0 or 1 */
}
static ps side_time(rig_tweak tweak, uint32_t at, uint32_t sm) {
  uint32_t which = at | sm;
  return rig_run(tweak, (rig_kernel){.blocks = 2, .warps = 1, .warp = one_line, .context = &which}).kernel_ps;
}

static void test_the_other_side_is_further(void **state) {
  static const uint32_t near[] = {0, 4096 + 256}, far[] = {256, 4096};
  for (int i = 0; i < 2; i++) {
    assert_int_equal(side_time(two_sides, far[i], 0) - side_time(two_sides, near[i], 0), 37 * NS);
    assert_int_equal(side_time(two_sides, near[i], 1) - side_time(two_sides, far[i], 1), 37 * NS);
  }
}

/* ---- figure 8 ---- */

enum { GRANULE = 1024, CHASES = 30, LONG = 60, SHORT = 20 };
#define SPAN (UINT64_C(1) << 29)

typedef struct chase { /* accesses one after the other, each to a row of its own */
  uint64_t rows[8192];
  uint32_t count, chases, length;
} chase;
static chase primary, others;

static machine_spec gtx1080;

/* `count` addresses of a module's bank, all in different rows. */
static void collect(const address_hash *hash, uint32_t module, uint32_t bank, uint32_t count, chase *out) {
  static uint8_t seen[1 << 20];
  memset(seen, 0, sizeof seen);
  out->count = 0;
  for (uint64_t a = 0; a < SPAN && out->count < count; a += GRANULE) {
    hash_place p = hash_of(hash, a);
    if (p.module != module || p.bank != bank) continue;
    assert_true(p.row < sizeof seen);
    if (!seen[p.row]++) out->rows[out->count++] = a;
  }
  assert_int_equal(out->count, count);
}

static void follow(trace_writer *w, uint64_t b, uint32_t i, const void *context) {
  const chase *c = context;
  for (uint32_t n = 0; n < c->length; n++) {
    rig_access(w, TRACE_LOAD, TRACE_BYPASS_L1, RIG_BASE + c->rows[n * c->chases + b], 1);
    trace_put_wait(w, 0);
  }
}

/* When the primary, of `length` accesses, is over, in parallel with n other chases that go on longer. */
static ps primary_time(uint32_t length, uint32_t n) {
  rig r;
  rig_open(&r, "ideal");
  r.spec = gtx1080;
  rig_start(&r);
  rig_alloc(&r, RIG_BASE, SPAN, TRACE_MEMORY_DEVICE);
  for (uint32_t s = 1; s < 3; s++)
    rig_op(&r, (trace_op){.kind = TRACE_OP_STREAM_CREATE, .stream = s, .stream_create = {TRACE_STREAM_NON_BLOCKING}});
  others.chases = n;
  others.length = n ? others.count / n : 0;
  primary.chases = 1;
  primary.length = length;
  if (n)
    rig_launch(
        &r, (rig_kernel){.blocks = n, .warps = 1, .warp = follow, .context = &others, .stream = 1, .name = "others"});
  rig_launch(
      &r, (rig_kernel){.blocks = 1, .warps = 1, .warp = follow, .context = &primary, .stream = 2, .name = "primary"});
  rig_sync(&r);
  const sim_result *result = rig_finish(&r);
  ps time = 0, end = 0;
  for (uint32_t k = 0; k < result->kernel_count; k++) {
    if (!strcmp(result->kernels[k].name, "primary")) time = result->kernels[k].counters.time_ps;
    end = result->kernels[k].counters.time_ps > end ? result->kernels[k].counters.time_ps : end;
  }
  assert_true(time > 0 && (!n || end > time));
  rig_close(&r);
  return time;
}

/* Cycles per access of the primary. */
static double latency(uint32_t n) {
  double cycle = 1e6 / gtx1080.clock_mhz;
  return (double)(primary_time(LONG, n) - primary_time(SHORT, n)) / (LONG - SHORT) / cycle;
}

static address_hash *figure_open(void) {
  static const char *const set = "page_bytes=1G,launch_us=0,launch_latency_us=0";
  hash_spec wanted;
  address_hash *hash;
  assert_int_equal(machine_spec_load("gtx1080", &gtx1080, NULL), FF_OK);
  assert_int_equal(machine_spec_set_all(&gtx1080, set, NULL), FF_OK);
  assert_int_equal(machine_spec_hash(&gtx1080, &wanted, NULL), FF_OK);
  assert_int_equal(hash_create(&wanted, &hash, NULL), FF_OK);
  return hash;
}

static double alone_cycles(void) { /* L2, way to the DRAM, a row opened after another, the sectors */
  double dram = gtx1080.clock_mhz / gtx1080.dram_clock_mhz, ns = gtx1080.clock_mhz / 1000;
  return gtx1080.l2_latency + gtx1080.dram_latency + (gtx1080.t_rp + gtx1080.t_rcd + gtx1080.t_cl) * dram +
         32 / (gtx1080.dram_gbs / (double)gtx1080.channels) * ns;
}
static double row_cycles(void) { return gtx1080.t_rc * gtx1080.clock_mhz / gtx1080.dram_clock_mhz; }

/* All in one bank: as many rows are opened between two accesses of one chase as there are chases. */
static void test_chases_in_one_bank(void **state) {
  address_hash *hash = figure_open();
  collect(hash, 3, 5, CHASES * 60, &others); /* of the same rows: the primary has the last ones */
  collect(hash, 3, 5, CHASES * 60 + LONG, &primary);
  memmove(primary.rows, primary.rows + CHASES * 60, LONG * sizeof *primary.rows);
  static const uint32_t counts[] = {0, 2, 8, 14};
  for (int i = 0; i < 4; i++) {
    double expected = (counts[i] + 1) * row_cycles();
    if (expected < alone_cycles()) expected = alone_cycles();
    assert_near(latency(counts[i]), expected, 0.03);
  }
  hash_free(hash);
}

static void test_chases_in_another_bank_meet_at_the_mshrs(void **state) {
  address_hash *hash = figure_open();
  collect(hash, 3, 5, 24 * LONG, &others);
  collect(hash, 3, 6, LONG, &primary);
  double alone = latency(0), few = latency(8), full = latency(14), more = latency(20), most = latency(24);
  assert_near(alone, alone_cycles(), 0.02);
  assert_near(few, alone, 0.03);
  assert_near(full, alone, 0.01);
  assert_near((most - more) / 4, row_cycles(), 0.02); /* one MSHR is free again for each row that was opened */
  /* It begins where all 16 are held: each chase is on its way to the L2 and back for some rows' time, without one. */
  double bend = 20 - (more - alone) / row_cycles();
  assert_between(bend, 16 + gtx1080.l2_latency / row_cycles() - 1, 16 + gtx1080.l2_latency / row_cycles());
  hash_free(hash);
}

static void test_chases_in_another_module_are_not_noticed(void **state) {
  address_hash *hash = figure_open();
  collect(hash, 3, 5, 24 * LONG, &others);
  collect(hash, 4, 5, LONG, &primary);
  double alone = latency(0);
  assert_near(latency(8), alone, 0.001);
  assert_near(latency(24), alone, 0.001);
  hash_free(hash);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_divided_memory_is_nobody_elses),
      cmocka_unit_test(test_shared_memory_is_felt),
      cmocka_unit_test(test_memory_of_an_idle_tenant_is_lent),
      cmocka_unit_test(test_lent_memory_is_taken_back),
      cmocka_unit_test(test_lent_memory_with_check_words),
      cmocka_unit_test(test_an_mshr_may_hold_a_piece),
      cmocka_unit_test(test_the_other_side_is_further),
      cmocka_unit_test(test_chases_in_one_bank),
      cmocka_unit_test(test_chases_in_another_bank_meet_at_the_mshrs),
      cmocka_unit_test(test_chases_in_another_module_are_not_noticed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
