/* SPDX-License-Identifier: Apache-2.0 */
/* Caches, DRAM: the picosecond at which data is there, and what bandwidth cannot be passed.
 *
 * A warp that loads and waits takes exactly the load's latency, so an equality asserts both sides of the edge.
 * Latencies of the rig: L1 20 ns, L2 100 ns; DRAM: 100 ns + 12 ns to open a row + 12 ns column + the burst (32 B/ns
 * channel). */
#include "rig.h"

#define LINE(n) (RIG_BASE + (n)*128)
/* Lines of one channel: 256-byte pieces go round 12 slices, one per channel; a row holds eight pieces. */
#define CHANNEL_PIECE(n) (RIG_BASE + (uint64_t)(n)*256 * 12)
enum { BURST_LINE_NS = 4, OPEN_NS = 12, COLUMN_NS = 12, PRECHARGE_NS = 12 };

/* A prefix that fills the TLB (one 2 MiB page maps all) and touches nothing that the tests use. */
static void big_pages(machine_spec *s) { s->page_bytes = 2 << 20; }
static void warm(trace_writer *w) { rig_load_wait(w, RIG_BASE + (1 << 20)); }

static void nothing_more(trace_writer *w, uint64_t b, uint32_t i, const void *c) { warm(w); }
static ps beyond_warm(rig_tweak tweak, void (*warp)(trace_writer *, uint64_t, uint32_t, const void *)) {
  return rig_time(tweak, warp) - rig_time(tweak, nothing_more);
}

/* ---- latencies ---- */

static void one_miss(trace_writer *w, uint64_t b, uint32_t i, const void *c) {
  warm(w);
  rig_load_wait(w, LINE(0));
}
static void miss_then_hit(trace_writer *w, uint64_t b, uint32_t i, const void *c) {
  one_miss(w, b, i, c);
  rig_load_wait(w, LINE(0));
}
static void miss_then_l2(trace_writer *w, uint64_t b, uint32_t i, const void *c) {
  one_miss(w, b, i, c);
  rig_access(w, TRACE_LOAD, TRACE_BYPASS_L1, LINE(0), 15);
  trace_put_wait(w, 0);
}

#define DRAM_PATH (100 + 100) /* the L2's latency, and the way from there to the channel and back */

static void test_latencies(void **state) {
  ps miss = beyond_warm(big_pages, one_miss);
  assert_int_equal(miss, (DRAM_PATH + OPEN_NS + COLUMN_NS + BURST_LINE_NS) * NS);
  assert_int_equal(beyond_warm(big_pages, miss_then_hit) - miss, 20 * NS);
  assert_int_equal(beyond_warm(big_pages, miss_then_l2) - miss, 100 * NS);
}

static void same_row(trace_writer *w, uint64_t b, uint32_t i, const void *c) {
  warm(w);
  rig_load_wait(w, CHANNEL_PIECE(0));
  rig_load_wait(w, CHANNEL_PIECE(1)); /* the next 256 bytes of channel 0: the same row */
}
static void other_row(trace_writer *w, uint64_t b, uint32_t i, const void *c) {
  warm(w);
  rig_load_wait(w, CHANNEL_PIECE(0));
  rig_load_wait(w, CHANNEL_PIECE(8 * 16)); /* 16 banks further: the same bank, another row */
}
static void other_bank(trace_writer *w, uint64_t b, uint32_t i, const void *c) {
  warm(w);
  rig_load_wait(w, CHANNEL_PIECE(0));
  rig_load_wait(w, CHANNEL_PIECE(8 * 3));
}
static void long_row_cycle(machine_spec *s) {
  big_pages(s);
  s->t_rc = 1000;
}

static void permuted(machine_spec *s) {
  big_pages(s);
  s->bank_permutation = 1;
}

static void test_rows(void **state) {
  ps first = beyond_warm(big_pages, one_miss);
  assert_int_equal(beyond_warm(big_pages, same_row) - first, (DRAM_PATH + COLUMN_NS + BURST_LINE_NS) * NS);
  assert_int_equal(beyond_warm(big_pages, other_bank) - first, (DRAM_PATH + OPEN_NS + COLUMN_NS + BURST_LINE_NS) * NS);
  ps conflict = (DRAM_PATH + PRECHARGE_NS + OPEN_NS + COLUMN_NS + BURST_LINE_NS) * NS;
  assert_int_equal(beyond_warm(big_pages, other_row) - first, conflict);
  /* With a row cycle of 1 us the second opening waits for it: counted from the first opening, 100 ns after the load. */
  ps opened = 100 * NS, later = 1000 * NS + opened;
  ps expected = later + (OPEN_NS + COLUMN_NS + BURST_LINE_NS + 100) * NS;
  assert_int_equal(beyond_warm(long_row_cycle, other_row), expected);
}

static void whole_round(trace_writer *w, uint64_t b, uint32_t i, const void *c) {
  warm(w);
  for (uint64_t n = 0; n < 32; n++) rig_load_wait(w, CHANNEL_PIECE(8 * (48 + n)));
}
/* With permuted banks the 17th row is in another bank than the first; 32 rows are still two of each bank. */
static void test_rows_permute_the_banks(void **state) {
  ps first = beyond_warm(permuted, one_miss), opened = (DRAM_PATH + OPEN_NS + COLUMN_NS + BURST_LINE_NS) * NS;
  assert_int_equal(beyond_warm(permuted, other_row) - first, opened);
  assert_int_equal(beyond_warm(permuted, same_row) - first, (DRAM_PATH + COLUMN_NS + BURST_LINE_NS) * NS);
  assert_int_equal(beyond_warm(permuted, whole_round), beyond_warm(big_pages, whole_round));
}

/* ---- MSHRs ---- */

static void two_of_one_line(trace_writer *w, uint64_t b, uint32_t i, const void *c) {
  warm(w);
  rig_load(w, LINE(0));
  rig_load(w, LINE(0)); /* merges with the first: arrives when that does, not after an L1 hit's 20 ns */
  trace_put_wait(w, 0);
  rig_issue(w, 25);
}
static void two_of_one_line_in_l2(trace_writer *w, uint64_t b, uint32_t i, const void *c) {
  warm(w);
  for (int n = 0; n < 2; n++) rig_access(w, TRACE_LOAD, TRACE_BYPASS_L1, LINE(0), 15);
  trace_put_wait(w, 0);
  rig_issue(w, 25);
}
static void two_lines(trace_writer *w, uint64_t b, uint32_t i, const void *c) {
  warm(w);
  rig_load(w, CHANNEL_PIECE(0));
  rig_load(w, CHANNEL_PIECE(8));
  trace_put_wait(w, 0);
  trace_put_wait(w, 1);
}
static void one_mshr(machine_spec *s) {
  big_pages(s);
  s->l1_mshrs = 1;
}
static void one_l2_mshr(machine_spec *s) {
  big_pages(s);
  s->l2_mshrs = 1;
}

static void test_mshrs(void **state) {
  ps miss = beyond_warm(big_pages, one_miss);
  assert_int_equal(beyond_warm(big_pages, two_of_one_line), miss + 100 * NS);
  assert_int_equal(beyond_warm(big_pages, two_of_one_line_in_l2), miss + 100 * NS);
  /* Two lines at once: the second is a cycle behind at the unit and does not wait for the first. */
  assert_int_equal(beyond_warm(big_pages, two_lines), miss + 1 * NS + 3 * NS); /* and its burst follows on the bus */
  /* With one MSHR it begins when the first has arrived. */
  assert_int_equal(beyond_warm(one_mshr, two_lines), 2 * miss);
  /* With one MSHR in the slice: when the first has arrived there (50 ns before the SM). */
  assert_int_equal(beyond_warm(one_l2_mshr, two_lines), 2 * miss - 100 * NS);
}

/* ---- policies ---- */

static void store_then_load(trace_writer *w, uint64_t b, uint32_t i, const void *c) {
  warm(w);
  rig_store(w, LINE(0));
  rig_load_wait(w, LINE(0));
}

static void test_write_policies(void **state) {
  sim_counters c = rig_run(big_pages, (rig_kernel){.blocks = 1, .warps = 1, .warp = store_then_load});
  assert_int_equal(c.l1_hits, 0); /* the store did not allocate in the L1 */
  assert_int_equal(c.store_accesses, 1);
  assert_int_equal(c.dram_write_bytes, 0); /* write-back: it stays in the L2 */
  sim_counters before = rig_run(big_pages, (rig_kernel){.blocks = 1, .warps = 1, .warp = nothing_more});
  assert_int_equal(c.dram_read_bytes, before.dram_read_bytes); /* the load found it there */
  assert_int_equal(c.l2_hits, before.l2_hits + 4);
}

static void write_much(trace_writer *w, uint64_t b, uint32_t i, const void *c) { /* 4 MiB: more than the L2 */
  for (uint64_t l = 0; l < 128; l++) rig_store(w, LINE((b * 16 + i) * 128 + l));
}

static void test_dirty_lines_go_to_dram(void **state) {
  sim_counters c = rig_run(big_pages, (rig_kernel){.blocks = 16, .warps = 16, .warp = write_much});
  uint64_t written = 16 * 16 * 128 * 128, l2 = 1536 << 10;
  assert_true(c.dram_write_bytes >= written - l2 && c.dram_write_bytes < written);
}

static void with_few_dirty(machine_spec *s) {
  big_pages(s);
  s->l2_dirty_share = 0.25;
}
static void write_twice(trace_writer *w, uint64_t b, uint32_t i, const void *c) {
  write_much(w, b, i, c);
  write_much(w, b, i, c);
}
/* 1 MiB of an L2 of 1.5 MiB: a quarter of each set stays dirty. What is dirty already is not one more. */
static void test_more_dirty_lines_than_may_be_are_written_back(void **state) {
  uint64_t l2 = 1536 << 10;
  rig_kernel k = {.blocks = 1, .warps = 64, .warp = write_much};
  assert_int_equal(rig_run(big_pages, k).dram_write_bytes, 0);
  assert_int_equal(rig_run(with_few_dirty, k).dram_write_bytes, (1 << 20) - l2 / 4);
  rig_kernel twice = {.blocks = 1, .warps = 16, .warp = write_twice};
  assert_int_equal(rig_run(with_few_dirty, twice).dram_write_bytes, 0);
}

static void load_partial(trace_writer *w, uint64_t b, uint32_t i, const void *c) {
  warm(w);
  rig_access(w, TRACE_LOAD, 0, LINE(0), 1); /* one sector */
  trace_put_wait(w, 0);
  rig_access(w, TRACE_LOAD, 0, LINE(0), 3); /* that one and another */
  trace_put_wait(w, 0);
}

static void test_sectors(void **state) {
  sim_counters base = rig_run(big_pages, (rig_kernel){.blocks = 1, .warps = 1, .warp = nothing_more});
  sim_counters c = rig_run(big_pages, (rig_kernel){.blocks = 1, .warps = 1, .warp = load_partial});
  assert_int_equal(c.dram_read_bytes - base.dram_read_bytes, 2 * 32);
  assert_int_equal(c.l1_hits, 1);
  assert_int_equal(c.l1_misses - base.l1_misses, 2);
  assert_int_equal(c.sectors - base.sectors, 3);
}

/* Four ways: the fifth line of a set replaces the least recently used one. 16 KiB / 128 / 4 = 32 sets. */
static void five_of_a_set(trace_writer *w, uint64_t b, uint32_t i, const void *c) {
  for (uint64_t l = 0; l < 4; l++) rig_load_wait(w, LINE(l * 32));
  rig_load_wait(w, LINE(0));      /* hit: line 32 is now the oldest */
  rig_load_wait(w, LINE(4 * 32)); /* replaces it */
  rig_load_wait(w, LINE(0));      /* hit */
  rig_load_wait(w, LINE(32));     /* miss */
}

static void test_l1_replacement(void **state) {
  sim_counters c = rig_run(big_pages, (rig_kernel){.blocks = 1, .warps = 1, .warp = five_of_a_set});
  assert_int_equal(c.l1_hits, 2 * 4);
  assert_int_equal(c.l1_misses, 6 * 4);
}

static void test_l1_is_empty_when_a_kernel_begins(void **state) {
  rig r;
  rig_open(&r, "ideal");
  rig_start(&r);
  rig_alloc(&r, RIG_BASE, 4096, TRACE_MEMORY_DEVICE);
  for (int i = 0; i < 3; i++) rig_launch(&r, (rig_kernel){.blocks = 1, .warps = 1, .warp = one_miss});
  assert_int_equal(rig_finish(&r)->counters.l1_hits, 0);
  rig_close(&r);
}

/* Epochs tell kernels apart in the L1's tags; when they begin again, old tags must not be taken for new ones. */
static void test_l1_epochs_wrap(void **state) {
  rig r;
  rig_open(&r, "ideal");
  rig_start(&r);
  rig_launch(&r, (rig_kernel){.blocks = 1, .warps = 1, .warp = one_miss});
  rig_launch(&r, (rig_kernel){.blocks = 1, .warps = 1, .warp = one_miss});
  answers_lock(&r.sim->answers);
  host_process(&r.sim->host, trace_reader_next_op(r.sim->reader));
  answers_unlock(&r.sim->answers);
  assert_int_equal(r.sim->sms[0].l1_epoch, 1);
  r.sim->sms[0].l1_epoch = 0xffff;
  r.sim->dispatch.next_sm = 0; /* the second kernel runs on SM 0 as well */
  assert_int_equal(rig_finish(&r)->counters.l1_hits, 0);
  assert_int_equal(r.sim->sms[0].l1_epoch, 1);
  rig_close(&r);
}

static void atomics(trace_writer *w, uint64_t b, uint32_t i, const void *c) {
  warm(w);
  *trace_put_access(w, TRACE_ATOMIC, 2, TRACE_RETURNS, 0, ~0u, 1) = trace_line(LINE(0), 32, 1);
  *trace_put_access(w, TRACE_ATOMIC, 2, TRACE_RETURNS, 0, ~0u, 1) = trace_line(LINE(0), 1, 1);
  trace_put_wait(w, 0);
}

static void test_atomics(void **state) {
  /* At the slice the second one waits for the first one's 32 lanes, one per cycle; both wait for the line. */
  sim_counters c = rig_run(big_pages, (rig_kernel){.blocks = 1, .warps = 1, .warp = atomics});
  assert_int_equal(c.atomic_accesses, 2);
  ps fetch = (DRAM_PATH + OPEN_NS + COLUMN_NS + 1) * NS; /* a burst of one sector */
  assert_int_equal(beyond_warm(big_pages, atomics), fetch);
}

/* Of a warp's atomic operation on one line the last lane's is over so much later than one lane's. */
static void atomic_of_lanes(trace_writer *w, uint64_t b, uint32_t i, const void *c) {
  warm(w);
  *trace_put_access(w, TRACE_ATOMIC, 2, TRACE_RETURNS, 0, ~0u, 1) = trace_line(LINE(0), *(const uint32_t *)c, 1);
  trace_put_wait(w, 0);
}
static void with_pipes(machine_spec *spec) {
  big_pages(spec);
  spec->alu_latency = 4;
}
static void test_an_atomic_operation_ends_with_its_last_lane(void **state) {
  const uint32_t one = 1, all = 32;
  rig_kernel single = {.blocks = 1, .warps = 1, .warp = atomic_of_lanes, .context = &one}, whole = single;
  whole.context = &all;
  assert_int_equal(rig_run(with_pipes, whole).kernel_ps - rig_run(with_pipes, single).kernel_ps, 31 * NS);
  assert_int_equal(rig_run(big_pages, whole).kernel_ps, rig_run(big_pages, single).kernel_ps);
}

/* ---- bandwidth ---- */

static void stream_loads(trace_writer *w, uint64_t b, uint32_t i, const void *c) {
  for (uint64_t l = 0; l < 16; l++) {
    rig_issue(w, 1);
    rig_load(w, LINE((b * 8 + i) * 16 + l));
  }
  trace_put_wait(w, 0);
}
static void wide(machine_spec *s) {
  big_pages(s);
  s->l1_mshrs = 1024;
}
static void few_mshrs(machine_spec *s) {
  big_pages(s);
  s->l1_mshrs = 16;
}
static double gbs(uint64_t bytes, ps time) { return (double)bytes / (double)time * 1000; }

static void test_dram_bandwidth(void **state) {
  sim_counters c = rig_run(wide, (rig_kernel){.blocks = 1024, .warps = 8, .warp = stream_loads});
  double reached = gbs(c.dram_read_bytes, c.kernel_ps);
  assert_true(reached <= 384 && reached > 0.95 * 384);
  /* Little's law: 15 SMs with 16 lines each in flight, none faster than an open row's access. */
  c = rig_run(few_mshrs, (rig_kernel){.blocks = 1024, .warps = 8, .warp = stream_loads});
  reached = gbs(c.dram_read_bytes, c.kernel_ps);
  double bound = 15 * 16 * 128.0 / (DRAM_PATH + COLUMN_NS + BURST_LINE_NS);
  assert_true(reached <= bound && reached > 0.8 * bound);
}

static void three_quarters(machine_spec *s) {
  wide(s);
  s->dram_read_share = 0.75;
  s->dram_copy_share = 0.5; /* a write takes 2 / 0.5 - 1 / 0.75 times the peak's time */
}
static void stream_copy(trace_writer *w, uint64_t b, uint32_t i, const void *c) {
  for (uint64_t l = 0; l < 16; l++) {
    uint64_t line = (b * 8 + i) * 16 + l;
    rig_load(w, LINE(line));
    trace_put_wait(w, 0);
    rig_access(w, TRACE_STORE, 0, LINE(line + (1 << 17)), 15);
  }
}
/* Reads alone, and reads with as many writes, get their share of the peak. */
static void test_dram_shares(void **state) {
  sim_counters c = rig_run(three_quarters, (rig_kernel){.blocks = 1024, .warps = 8, .warp = stream_loads});
  double reached = gbs(c.dram_read_bytes, c.kernel_ps);
  assert_true(reached <= 0.75 * 384 && reached > 0.95 * 0.75 * 384);
  c = rig_run(three_quarters, (rig_kernel){.blocks = 1024, .warps = 8, .warp = stream_copy});
  assert_true(c.dram_write_bytes * 10 > c.dram_read_bytes * 9); /* the L2 keeps the others */
  double least = ((double)c.dram_read_bytes / 0.75 + (double)c.dram_write_bytes * (4 - 1 / 0.75)) / 384; /* ns */
  assert_true((double)c.kernel_ps >= least * NS && (double)c.kernel_ps < 1.1 * least * NS);
}

static void apart(machine_spec *s) { /* what is read and what is written would meet in banks */
  wide(s);
  s->bank_permutation = 1;
}
static void checked(machine_spec *s) {
  wide(s);
  s->dram_check_sectors = 1;
}
static void checked_shares(machine_spec *s) {
  three_quarters(s);
  s->dram_check_sectors = 1;
}
static void checked_batches(machine_spec *s) {
  apart(s);
  s->dram_write_batch = 16;
  s->dram_check_sectors = 1;
}
static void stream_sectors(trace_writer *w, uint64_t b, uint32_t i, const void *c) {
  for (uint64_t l = 0; l < 16; l++) rig_access(w, TRACE_LOAD, 0, LINE((b * 8 + i) * 16 + l), 1);
  trace_put_wait(w, 0);
}
/* A fifth sector goes with the four of a line, a second with one alone: reads, both directions, writes in batches. They
 * are no bytes of the program. */
static void test_check_words(void **state) {
  const rig_kernel lines = {.blocks = 1024, .warps = 8, .warp = stream_loads};
  sim_counters c = rig_run(checked, lines);
  double reached = gbs(c.dram_read_bytes, c.kernel_ps);
  assert_true(reached <= 0.8 * 384 && reached > 0.95 * 0.8 * 384);
  assert_int_equal(c.dram_read_bytes, rig_run(wide, lines).dram_read_bytes);
  c = rig_run(checked, (rig_kernel){.blocks = 1024, .warps = 8, .warp = stream_sectors});
  reached = gbs(c.dram_read_bytes, c.kernel_ps);
  assert_true(reached <= 384 / 2. && reached > 0.95 * 384 / 2);
  const rig_kernel copies = {.blocks = 1024, .warps = 8, .warp = stream_copy};
  c = rig_run(checked_shares, copies);
  double least = 1.25 * ((double)c.dram_read_bytes / 0.75 + (double)c.dram_write_bytes * (4 - 1 / 0.75)) / 384; /* ns */
  assert_true((double)c.kernel_ps >= least * NS && (double)c.kernel_ps < 1.1 * least * NS);
  c = rig_run(checked_batches, copies);
  least = 1.25 * (double)(c.dram_read_bytes + c.dram_write_bytes) / 384;
  assert_true((double)c.kernel_ps >= 0.99 * least * NS && (double)c.kernel_ps < 1.1 * least * NS);
}

/* ---- writes in batches ---- */

static void batches(machine_spec *s) { /* of 16 lines; to turn the bus takes as long as these */
  apart(s);
  s->dram_write_batch = 16;
  s->t_turn = 16 * BURST_LINE_NS;
}

static void test_batches_turn_the_bus_once(void **state) {
  sim_counters c = rig_run(batches, (rig_kernel){.blocks = 1024, .warps = 8, .warp = stream_copy});
  assert_true(c.dram_write_bytes * 10 > c.dram_read_bytes * 9);
  double least = ((double)c.dram_read_bytes + 2 * (double)c.dram_write_bytes) / 384; /* ns */
  assert_true((double)c.kernel_ps >= 0.99 * least * NS && (double)c.kernel_ps < 1.1 * least * NS);
  /* Writes alone turn nothing, and no more of them are taken over than memory can do. */
  sim_counters together = rig_run(batches, (rig_kernel){.blocks = 64, .warps = 16, .warp = write_much}),
               alone = rig_run(apart, (rig_kernel){.blocks = 64, .warps = 16, .warp = write_much});
  assert_true(gbs(together.dram_write_bytes, together.kernel_ps) <= 384);
  assert_true((double)together.kernel_ps < 1.05 * (double)alone.kernel_ps);
  assert_true((double)together.kernel_ps > 0.9 * (double)alone.kernel_ps);
}

static void written_through(machine_spec *s) {
  big_pages(s);
  s->l2_write_through = 1;
}
static void written_later(machine_spec *s) {
  written_through(s);
  s->dram_write_batch = 2;
}
static void a_write_between(trace_writer *w, uint64_t b, uint32_t i, const void *c) {
  warm(w);
  rig_load_wait(w, CHANNEL_PIECE(0));
  rig_store(w, CHANNEL_PIECE(8 * 16)); /* the same bank, another row */
  rig_issue(w, 25);
  rig_load_wait(w, CHANNEL_PIECE(1)); /* the first row */
}
/* A write that waits for others leaves the bank's row open. */
static void test_reads_go_before_writes(void **state) {
  ps first = beyond_warm(written_later, one_miss) + 25 * 4 * NS, hit = (DRAM_PATH + COLUMN_NS + BURST_LINE_NS) * NS;
  assert_int_equal(beyond_warm(written_later, a_write_between), first + hit);
  assert_int_equal(beyond_warm(written_through, a_write_between), first + hit + (PRECHARGE_NS + OPEN_NS) * NS);
}

static void slow_rows(machine_spec *s) {
  written_later(s);
  s->t_rc = 1000;
}
static void two_writes_between(trace_writer *w, uint64_t b, uint32_t i, const void *c) {
  warm(w);
  rig_load_wait(w, CHANNEL_PIECE(0));
  rig_store(w, CHANNEL_PIECE(8 * 16));
  rig_store(w, CHANNEL_PIECE(8 * 16 + 1)); /* both are to be done now, when the bank may open another row: in 1 us */
  rig_issue(w, 25);
  rig_load_wait(w, CHANNEL_PIECE(1));
}
/* A row takes what comes for it until it is closed. */
static void test_an_open_row_is_used(void **state) {
  ps first = beyond_warm(slow_rows, one_miss) + (25 * 4 + 1) * NS, hit = (DRAM_PATH + COLUMN_NS + BURST_LINE_NS) * NS;
  assert_int_equal(beyond_warm(slow_rows, two_writes_between), first + hit);
}

static void then_the_next_row(trace_writer *w, uint64_t b, uint32_t i, const void *c) {
  two_writes_between(w, b, i, c);
  rig_load_wait(w, CHANNEL_PIECE(8 * 16 + 2));
}
/* Who used the old row meanwhile has not opened the next one earlier: it opens 1 us after the first one, which did so
 * 100 ns after its load, and takes the two writes' bursts first. */
static void test_a_bank_is_never_ready_earlier(void **state) {
  ps opened = (100 + 1000 + OPEN_NS + 2 * BURST_LINE_NS) * NS;
  assert_int_equal(beyond_warm(slow_rows, then_the_next_row), opened + (COLUMN_NS + BURST_LINE_NS + 100) * NS);
}

static void many_rows_wait(machine_spec *s) {
  slow_rows(s);
  s->dram_rows = 4;
}
/* After a load, a batch of writes to each of two other rows, and another load. */
static void load_behind_rows(trace_writer *w, uint64_t piece) {
  warm(w);
  rig_load_wait(w, CHANNEL_PIECE(0));
  for (uint32_t n = 0; n < 2; n++)
    for (uint32_t k = 0; k < 2; k++) rig_store(w, CHANNEL_PIECE(8 * 16 * (1 + n) + k));
  rig_issue(w, 25);
  rig_load_wait(w, CHANNEL_PIECE(piece));
}
static void of_the_first_row(trace_writer *w, uint64_t b, uint32_t i, const void *c) { load_behind_rows(w, 1); }
static void of_the_row_between(trace_writer *w, uint64_t b, uint32_t i, const void *c) {
  load_behind_rows(w, 8 * 16 + 2);
}
/* So does one that is not the last before the next, and one that is not open yet, once it is: the row between opens 1
 * us after the first one, which did so 100 ns after its load, and the last one 1 us later. Without dram_rows the first
 * row is not joined, and the one between takes what comes as if it were open. */
static void test_rows_that_wait_are_used(void **state) {
  ps first = beyond_warm(slow_rows, one_miss) + (25 * 4 + 3) * NS, hit = (DRAM_PATH + COLUMN_NS + BURST_LINE_NS) * NS;
  assert_int_equal(beyond_warm(many_rows_wait, of_the_first_row), first + hit);
  assert_true(beyond_warm(slow_rows, of_the_first_row) > first + hit + 2000 * NS); /* behind both others */
  ps opened = (100 + 1000 + OPEN_NS) * NS;
  assert_int_equal(beyond_warm(many_rows_wait, of_the_row_between), opened + (COLUMN_NS + BURST_LINE_NS + 100) * NS);
  assert_int_equal(beyond_warm(slow_rows, of_the_row_between), first + hit);
}

static void paced_rows(machine_spec *s) {
  big_pages(s);
  s->t_rrd = 20;
}
static void many_rows(trace_writer *w, uint64_t b, uint32_t i, const void *c) {
  warm(w);
  for (uint32_t n = 0; n < 8; n++) rig_load(w, CHANNEL_PIECE(8 * n)); /* a bank each */
  for (uint32_t n = 0; n < 8; n++) trace_put_wait(w, n);
}
static void test_rows_are_opened_one_by_one(void **state) {
  ps first = beyond_warm(paced_rows, one_miss);
  assert_int_equal(beyond_warm(paced_rows, many_rows), first + 7 * 20 * NS);
  assert_true(beyond_warm(big_pages, many_rows) < first + 7 * 5 * NS);
}

static void reread(trace_writer *w, uint64_t b, uint32_t i, const void *c) {
  for (uint64_t n = 0; n < 8; n++)
    for (uint64_t l = 0; l < 32; l++) rig_access(w, TRACE_LOAD, TRACE_BYPASS_L1, LINE((l * 8 + i) % 256), 15);
}

static void test_l2_bandwidth(void **state) {
  sim_counters c = rig_run(wide, (rig_kernel){.blocks = 60, .warps = 8, .warp = reread});
  double reached = gbs(c.sectors * 32, c.kernel_ps); /* 12 slices of 32 bytes per cycle at 1 GHz */
  assert_true(reached <= 384 && reached > 0.9 * 384);
  assert_true((double)c.l2_hits > 0.98 * (double)c.sectors);
}

static void one_sm_port(machine_spec *s) {
  wide(s);
  s->sm_count = 1;
  s->sm_read_bytes = 16;
}
static void clusters(machine_spec *s) { /* 0 to 3, and 4 */
  wide(s);
  s->sm_count = 5;
  s->sm_read_bytes = 16;
  s->cluster_sms = 4;
  s->cluster_read_bytes = 40;
}
static void write_ports(machine_spec *s) {
  wide(s);
  s->sm_count = 2;
  s->sm_read_bytes = 1;
  s->sm_write_bytes = 8;
}
static void rewrite(trace_writer *w, uint64_t b, uint32_t i, const void *c) {
  for (uint64_t n = 0; n < 256; n++) rig_access(w, TRACE_STORE, 0, LINE((n * 8 + i) % 256), 15);
}
/* Bytes per ns that the ports let through, per SM, cluster and direction. */
static void test_network_ports(void **state) {
  sim_counters c = rig_run(one_sm_port, (rig_kernel){.blocks = 4, .warps = 8, .warp = reread});
  double reached = gbs(c.sectors * 32, c.kernel_ps);
  assert_true(reached <= 16 && reached > 0.95 * 16);
  c = rig_run(clusters, (rig_kernel){.blocks = 100, .warps = 8, .warp = reread});
  reached = gbs(c.sectors * 32, c.kernel_ps); /* 40 of the cluster and 16 of the SM that is alone in its own */
  assert_true(reached <= 56 && reached > 0.9 * 56);
  c = rig_run(write_ports, (rig_kernel){.blocks = 8, .warps = 8, .warp = rewrite});
  reached = gbs(c.sectors * 32, c.kernel_ps);
  assert_true(reached <= 16 && reached > 0.9 * 16);
}

static void test_stores_are_held_back(void **state) {
  sim_counters c = rig_run(big_pages, (rig_kernel){.blocks = 64, .warps = 16, .warp = write_much});
  assert_true(gbs(c.sectors * 32, c.kernel_ps) <= 384);
}

/* ---- what a kernel finds ---- */

static void store_line(trace_writer *w, uint64_t b, uint32_t i, const void *c) { rig_store(w, LINE(0)); }
static void load_line(trace_writer *w, uint64_t b, uint32_t i, const void *c) { rig_load_wait(w, LINE(0)); }

static sim_counters after_a_store(bool flush) {
  rig r;
  rig_open(&r, "ideal");
  r.l2_flush = flush;
  rig_start(&r);
  rig_alloc(&r, RIG_BASE, 1 << 20, TRACE_MEMORY_DEVICE);
  rig_launch(&r, (rig_kernel){.blocks = 1, .warps = 1, .warp = store_line});
  rig_launch(&r, (rig_kernel){.blocks = 1, .warps = 1, .warp = load_line});
  sim_counters c = rig_finish(&r)->counters;
  rig_close(&r);
  return c;
}

static void test_a_kernel_finds_the_l2_as_it_is_or_empty(void **state) {
  sim_counters keep = after_a_store(false), flush = after_a_store(true);
  assert_int_equal(keep.l2_hits, 4);
  assert_int_equal(flush.l2_hits, 0);
  assert_int_equal(flush.dram_read_bytes - keep.dram_read_bytes, 128); /* less a page walk's, in both */
  assert_int_equal(flush.dram_write_bytes, 0); /* what the flush writes back is not the program's */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_latencies),
      cmocka_unit_test(test_rows),
      cmocka_unit_test(test_rows_permute_the_banks),
      cmocka_unit_test(test_mshrs),
      cmocka_unit_test(test_write_policies),
      cmocka_unit_test(test_dirty_lines_go_to_dram),
      cmocka_unit_test(test_more_dirty_lines_than_may_be_are_written_back),
      cmocka_unit_test(test_sectors),
      cmocka_unit_test(test_l1_replacement),
      cmocka_unit_test(test_l1_is_empty_when_a_kernel_begins),
      cmocka_unit_test(test_l1_epochs_wrap),
      cmocka_unit_test(test_atomics),
      cmocka_unit_test(test_an_atomic_operation_ends_with_its_last_lane),
      cmocka_unit_test(test_dram_bandwidth),
      cmocka_unit_test(test_dram_shares),
      cmocka_unit_test(test_check_words),
      cmocka_unit_test(test_batches_turn_the_bus_once),
      cmocka_unit_test(test_reads_go_before_writes),
      cmocka_unit_test(test_an_open_row_is_used),
      cmocka_unit_test(test_rows_that_wait_are_used),
      cmocka_unit_test(test_a_bank_is_never_ready_earlier),
      cmocka_unit_test(test_rows_are_opened_one_by_one),
      cmocka_unit_test(test_l2_bandwidth),
      cmocka_unit_test(test_network_ports),
      cmocka_unit_test(test_stores_are_held_back),
      cmocka_unit_test(test_a_kernel_finds_the_l2_as_it_is_or_empty),
  };
  return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
