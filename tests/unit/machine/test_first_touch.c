/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that was never written: where the GPU touches it first it comes as zeros, with the far-fault's time and
 * nothing on the link. What counts as written, what as touched; and a machine on which it moves all the same. */
#include "rig.h"

#include "policy/manager.h"

#define PAGE(n) (RIG_BASE + (uint64_t)(n)*4096)
enum { PAGES = 64 };

typedef struct pages {
  uint64_t first, count;
  bool write;
} pages;

static void touch_pages(trace_writer *w, uint64_t b, uint32_t i, const void *context) {
  const pages *p = context;
  for (uint64_t n = p->first; n < p->first + p->count; n++) {
    if (p->write) rig_store(w, PAGE(n));
    else rig_load_wait(w, PAGE(n));
  }
}

static rig r;
static pages kept[16];
static unsigned kept_count;

static void gpu(const char *how, uint64_t first, uint64_t count) {
  kept[kept_count] = (pages){first, count, *how == 'w'};
  rig_launch(&r, (rig_kernel){.blocks = 1, .warps = 1, .warp = touch_pages, .context = &kept[kept_count++]});
  rig_sync(&r);
}
static void cpu(const char *how, uint64_t first, uint64_t count) {
  rig_op(&r, (trace_op){.kind = TRACE_OP_HOST_TOUCH, .touch = {PAGE(first), count * 4096, *how == 'w'}});
}
static void advise(trace_advice advice, int device, uint64_t first, uint64_t count) {
  rig_op(&r, (trace_op){.kind = TRACE_OP_ADVISE, .hint = {PAGE(first), count * 4096, (int32_t)advice, device}});
}
static void prefetch(int device, uint64_t first, uint64_t count) {
  rig_op(&r, (trace_op){.kind = TRACE_OP_PREFETCH, .hint = {PAGE(first), count * 4096, 0, device}});
}

/* Pages: to the GPU, as zeros, to the host; faults of the GPU, of the host, and the host's on what holds nothing. */
typedef struct expected {
  uint64_t in, zeros, out, faults, host_faults, first_touches;
} expected;

static sim_counters run(const char *manager, const char *prefetcher, uint64_t memory, bool moves, uint64_t bytes,
                        void (*steps)(void)) {
  kept_count = 0;
  rig_open(&r, manager);
  r.prefetch = prefetcher;
  r.gpu_memory = memory;
  r.spec.fault_batch_us = 10;
  r.spec.first_touch_moves = moves;
  rig_start(&r);
  rig_op(&r, (trace_op){.kind = TRACE_OP_HOST_TOUCH}); /* of nothing: the host's touches are recorded */
  rig_alloc(&r, RIG_BASE, bytes, TRACE_MEMORY_MANAGED);
  steps();
  sim_counters c = rig_finish(&r)->counters;
  assert_string_equal(r.result.error, "");
  pager_check_all(r.sim->pager);
  uint64_t of_allocation = 0, of_kernels = 0;
  for (uint32_t i = 0; i < r.result.allocation_count; i++)
    of_allocation += r.result.allocations[i].counters.zero_filled_bytes;
  for (uint32_t i = 0; i < r.result.kernel_count; i++) of_kernels += r.result.kernels[i].counters.zero_filled_bytes;
  assert_int_equal(of_allocation, c.zero_filled_bytes);
  assert_true(of_kernels <= c.zero_filled_bytes);
  rig_close(&r);
  return c;
}

static void check(const char *manager, void (*steps)(void), expected e) {
  sim_counters c = run(manager, "none", 0, false, PAGES * 4096, steps);
  if (c.h2d_bytes != e.in * 4096 || c.zero_filled_bytes != e.zeros * 4096 || c.d2h_bytes != e.out * 4096 ||
      c.faults != e.faults || c.host_faults != e.host_faults || c.host_first_touches != e.first_touches)
    fail_msg("%s: in %g, zeros %g, out %g, faults %d, host faults %d, first touches %d", manager,
             (double)c.h2d_bytes / 4096, (double)c.zero_filled_bytes / 4096, (double)c.d2h_bytes / 4096, (int)c.faults,
             (int)c.host_faults, (int)c.host_first_touches);
}

static void gpu_reads(void) { gpu("r", 0, 4); }
static void gpu_writes_host_reads(void) {
  gpu("w", 0, 4);
  cpu("r", 0, 4);
  gpu("r", 0, 4);
}
static void host_writes(void) {
  cpu("w", 0, 2);
  gpu("r", 0, 4);
}
static void host_reads(void) {
  cpu("r", 0, 2);
  gpu("r", 0, 4);
}
static void gpu_and_host_read(void) {
  gpu("r", 0, 4);
  cpu("r", 0, 4);
  gpu("r", 0, 4);
}
static void program_prefetches(void) {
  cpu("w", 0, 1);
  prefetch(0, 0, 4);
  gpu("r", 0, 4);
}
static void copied(void) {
  rig_h2d(&r, PAGE(1), 4096);
  gpu("r", 0, 4);
}
static void stored_over_the_link(void) {
  advise(TRACE_ADVICE_SET_ACCESSED_BY, 0, 0, 2);
  gpu("w", 0, 1);
  advise(TRACE_ADVICE_UNSET_ACCESSED_BY, 0, 0, 2);
  gpu("r", 0, 2);
}
static void read_mostly(void) {
  advise(TRACE_ADVICE_SET_READ_MOSTLY, 0, 0, 4);
  gpu("r", 0, 4);
  cpu("r", 0, 4);
  gpu("r", 0, 4);
}

/* Under `replay` what was written counts; under `uvm`, whose driver keeps no account of that, what was touched. */
static void test_who_is_first(void **state) {
  check("replay", gpu_reads, (expected){.zeros = 4, .faults = 4});
  check("uvm", gpu_reads, (expected){.zeros = 4, .faults = 4});
  check("replay", gpu_writes_host_reads, (expected){.zeros = 4, .in = 4, .out = 4, .faults = 8, .host_faults = 4});
  check("uvm", gpu_writes_host_reads, (expected){.zeros = 4, .in = 4, .out = 4, .faults = 8, .host_faults = 4});
  check("replay", host_writes, (expected){.zeros = 2, .in = 2, .faults = 4, .first_touches = 2});
  check("uvm", host_writes, (expected){.zeros = 2, .in = 2, .faults = 4, .first_touches = 2});
  check("replay", host_reads, (expected){.zeros = 4, .faults = 4});
  check("uvm", host_reads, (expected){.zeros = 2, .in = 2, .faults = 4, .first_touches = 2});
  check("replay", gpu_and_host_read, (expected){.zeros = 8, .faults = 8, .host_faults = 4});
  check("uvm", gpu_and_host_read, (expected){.zeros = 4, .in = 4, .out = 4, .faults = 8, .host_faults = 4});
  check("replay", program_prefetches, (expected){.zeros = 3, .in = 1, .first_touches = 1});
  check("uvm", program_prefetches, (expected){.zeros = 3, .in = 1, .first_touches = 1});
  check("replay", copied, (expected){.zeros = 3, .in = 1, .faults = 4});
  check("uvm", copied, (expected){.zeros = 3, .in = 1, .faults = 4});
  check("replay", stored_over_the_link, (expected){.zeros = 1, .in = 1, .faults = 2});
  check("uvm", stored_over_the_link, (expected){.zeros = 1, .in = 1, .faults = 2});
  check("replay", read_mostly, (expected){.zeros = 4, .faults = 4, .host_faults = 4});
  check("uvm", read_mostly, (expected){.zeros = 4, .out = 4, .faults = 4, .host_faults = 4});
}

/* A far-fault takes its service, and not a byte of the link; one that moves takes the same, the link being free. */
static void test_time(void **state) {
  sim_counters zeros = run("replay", "none", 0, false, PAGES * 4096, gpu_reads),
               moves = run("replay", "none", 0, true, PAGES * 4096, gpu_reads);
  assert_int_equal(zeros.time_ps, moves.time_ps);
  assert_int_equal(zeros.fault_wait_ps, 4 * 20 * US);
  assert_int_equal(zeros.h2d_busy_ps, 0);
  assert_int_equal(moves.h2d_busy_ps, 4 * 256 * NS);
  assert_int_equal(moves.zero_filled_bytes, 0);
  assert_int_equal(moves.h2d_bytes, 4 * 4096);
}

/* Under `uvm` a batch of zeros takes a microsecond after fault_batch_us, as one that moves nothing; a page 256 ns. */
static void test_time_of_batches(void **state) {
  sim_counters zeros = run("uvm", "none", 0, false, PAGES * 4096, gpu_reads),
               moves = run("uvm", "none", 0, true, PAGES * 4096, gpu_reads);
  assert_int_equal(zeros.fault_wait_ps - moves.fault_wait_ps, 4 * (1000 - 256) * NS);
  assert_int_equal(zeros.h2d_bytes, 0);
  assert_true(zeros.fault_batches == 4 && moves.fault_batches == 4); /* a page at a time */
}

static void gpu_reads_all(void) { gpu("r", 0, PAGES); }
static void half_was_written(void) {
  cpu("w", 0, PAGES / 2 - 1); /* not a whole number of groups */
  gpu("r", 0, PAGES);
}

/* What a prefetcher brings along comes as zeros too, and is told apart from what moves. */
static void test_prefetched(void **state) {
  static const char *const managers_[] = {"replay", "uvm"}, *const prefetchers[] = {"sl", "tbn", "density",
                                                                                    "sequential"};
  for (int m = 0; m < 2; m++)
    for (int p = 0; p < 4; p++) {
      sim_counters c = run(managers_[m], prefetchers[p], 0, false, PAGES * 4096, gpu_reads_all);
      assert_int_equal(c.h2d_bytes, 0);
      assert_int_equal(c.zero_filled_bytes, PAGES * 4096);
      assert_true(c.faults < PAGES);
    }
  for (int m = 0; m < 2; m++)
    for (int p = 0; p < 4; p++) {
      sim_counters c = run(managers_[m], prefetchers[p], 0, false, PAGES * 4096, half_was_written);
      bool populates = m == 1 && p == 2; /* the host's faults bring it the group's last page */
      assert_int_equal(c.h2d_bytes, (PAGES / 2 - !populates) * 4096);
      assert_int_equal(c.zero_filled_bytes, (PAGES / 2 + !populates) * 4096);
    }
}

static void gpu_reads_twice(void) {
  gpu("r", 0, PAGES);
  gpu("r", 0, PAGES);
}
static void gpu_reads_blocks(void) {
  for (int i = 0; i < 6; i++) gpu("r", (uint64_t)(i % 3) * 512, 1);
}

/* What was never written goes without a transfer and comes again as zeros. The driver has no dirty bit: it copies the
 * zeros, and brings them again. */
static void test_eviction(void **state) {
  sim_counters c = run("replay", "none", 16 * 4096, false, PAGES * 4096, gpu_reads_twice);
  assert_int_equal(c.refaults, PAGES);
  assert_int_equal(c.zero_filled_bytes, 2 * PAGES * 4096);
  assert_int_equal(c.h2d_bytes + c.d2h_bytes, 0);
  c = run("uvm", "none", 2 * FF_BLOCK_BYTES, false, 3 * FF_BLOCK_BYTES, gpu_reads_blocks);
  assert_int_equal(c.zero_filled_bytes, 3 * 4096);
  assert_int_equal(c.h2d_bytes, 3 * 4096);
  assert_int_equal(c.d2h_bytes, 4 * 4096);
}

static void host_writes_all(void) { cpu("w", 0, 1024); }

/* The host's first touches have the driver's tree too: 6 of them in 2 MiB, as P100 counts. They take no time. */
static void test_first_touches_of_the_host(void **state) {
  sim_counters c = run("uvm", NULL, 0, false, 2 * FF_BLOCK_BYTES, host_writes_all);
  assert_int_equal(c.host_first_touches, 12);
  assert_int_equal(c.host_faults + c.time_ps, 0);
  c = run("replay", NULL, 0, false, 2 * FF_BLOCK_BYTES, host_writes_all);
  assert_int_equal(c.host_first_touches, 1024);
}

/* Where the host's stores are not recorded, managed memory may have been written at any time: it moves. */
static void test_writes_that_are_not_seen(void **state) {
  for (int managed = 0; managed < 2; managed++) {
    kept_count = 0;
    rig_open(&r, "replay");
    r.prefetch = "none";
    r.spec.first_touch_moves = 0;
    rig_start(&r);
    rig_alloc(&r, RIG_BASE, PAGES * 4096, managed ? TRACE_MEMORY_MANAGED : TRACE_MEMORY_DEVICE);
    gpu("r", 0, 4);
    const sim_counters *c = &rig_finish(&r)->counters;
    assert_int_equal(c->h2d_bytes, managed * 4 * 4096);
    assert_int_equal(c->zero_filled_bytes, !managed * 4 * 4096);
    rig_close(&r);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_who_is_first),
      cmocka_unit_test(test_time),
      cmocka_unit_test(test_time_of_batches),
      cmocka_unit_test(test_prefetched),
      cmocka_unit_test(test_eviction),
      cmocka_unit_test(test_first_touches_of_the_host),
      cmocka_unit_test(test_writes_that_are_not_seen),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
