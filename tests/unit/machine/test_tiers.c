/* SPDX-License-Identifier: Apache-2.0 */
/* Tiers below GPU memory: bytes and times as anyone can do them on paper. The link carries 16 GB/s (a page of 4 KiB in
 * 256 ns); the tier "slow" reads 4 GB/s (1024 ns) and writes 2 GB/s (2048 ns), 100 us after it was asked. */
#include "rig.h"

#include "machine/spec/choice.h"

#define PAGE UINT64_C(4096)
#define READ_PS (1024 * NS)
#define WRITE_PS (2048 * NS)
#define LINK_PS (256 * NS)
#define LATENCY (100 * US)

enum { PAGES = 1024 }; /* 4 MiB, of which the host's memory holds 2 MiB */
#define BYTES (PAGES * PAGE)

/* One warp touches pages one after the other. */
typedef struct pages {
  uint64_t first, count;
  bool write;
} pages;

static void touch_pages(trace_writer *w, uint64_t b, uint32_t i, const void *context) {
  const pages *p = context;
  for (uint64_t n = 0; n < p->count; n++) {
    rig_load_wait(w, RIG_BASE + (p->first + n) * PAGE);
    if (p->write) rig_store(w, RIG_BASE + (p->first + n) * PAGE);
  }
}

static void launch(rig *r, const pages *p) {
  rig_launch(r, (rig_kernel){.blocks = 1, .warps = 1, .warp = touch_pages, .context = p});
}

static rig begin(const char *manager, bool mapped) {
  rig r;
  rig_open(&r, manager);
  r.spec.fault_us = 0;
  r.spec.host_memory_bytes = BYTES / 2;
  r.spec.below_host = (machine_tier_table){.count = 1,
                                           .tiers = {{.name = "slow",
                                                      .bytes = 1 << 30,
                                                      .unit_bytes = mapped ? 64 : 4096,
                                                      .read_gbs = 4,
                                                      .write_gbs = 2,
                                                      .latency_us = 100,
                                                      .mapped = mapped}}};
  return r;
}

static const sim_tier *slow(const rig *r) { return &r->result.tiers.of[1]; }

/* The host writes N bytes, its memory holds half of them: the first half goes down, and the host waits for that. */
static void test_host_writes_more_than_it_holds(void **state) {
  rig r = begin("replay", false);
  rig_start(&r);
  rig_alloc(&r, RIG_BASE, BYTES, TRACE_MEMORY_DEVICE);
  rig_h2d(&r, RIG_BASE, BYTES);
  const sim_result *result = rig_finish(&r);
  assert_string_equal(result->error, "");
  assert_int_equal(result->tiers.count, 2);
  assert_string_equal(result->tiers.of[0].name, "host");
  assert_int_equal(result->tiers.of[0].peak_bytes, BYTES / 2);
  assert_int_equal(result->tiers.of[0].read_bytes, BYTES / 2);
  assert_int_equal(result->tiers.of[0].written_bytes, 0);
  assert_int_equal(slow(&r)->peak_bytes, BYTES / 2);
  assert_int_equal(slow(&r)->written_bytes, BYTES / 2);
  assert_int_equal(slow(&r)->read_bytes, 0);
  assert_int_equal(slow(&r)->waits, 1);
  assert_int_equal(slow(&r)->wait_ps, LATENCY + PAGES / 2 * WRITE_PS);
  assert_int_equal(result->counters.time_ps, LATENCY + PAGES / 2 * WRITE_PS);
  rig_close(&r);
}

/* Far-faults one after the other on what has gone down: each waits for the tier's latency and read, then for the link.
 * Where the host's memory holds all, the same faults wait for the link alone. Nothing is written: the GPU only
 * reads. */
static void test_far_faults_read_the_tier(void **state) {
  enum { FAULTS = 8 };
  ps kernel_ps[2];
  for (int lower = 0; lower < 2; lower++) {
    pages p = {0, FAULTS, false};
    rig r = begin("replay", false);
    if (!lower) r.spec.host_memory_bytes = BYTES;
    rig_start(&r);
    rig_alloc(&r, RIG_BASE, BYTES, TRACE_MEMORY_DEVICE);
    rig_h2d(&r, RIG_BASE, BYTES);
    launch(&r, &p);
    const sim_result *result = rig_finish(&r);
    assert_int_equal(result->counters.faults, FAULTS);
    assert_int_equal(result->counters.h2d_bytes, FAULTS * PAGE);
    assert_int_equal(slow(&r)->written_bytes, lower ? BYTES / 2 : 0);
    assert_int_equal(slow(&r)->read_bytes, lower ? FAULTS * PAGE : 0);
    assert_int_equal(slow(&r)->waits, lower ? 1 + FAULTS : 0);
    kernel_ps[lower] = result->counters.kernel_ps;
    rig_close(&r);
  }
  assert_int_equal(kernel_ps[1] - kernel_ps[0], FAULTS * (LATENCY + READ_PS));
}

/* A transfer of many pages from the slower tier ends a page's time on the link after its last page was read; one that
 * lies half in the host's memory carries that half meanwhile. */
static void test_pieces_follow_each_other(void **state) {
  static const struct {
    uint64_t first, count, lower;
  } cases[] = {{0, 64, 64}, {PAGES / 2 - 8, 16, 8}, {PAGES / 2 - 1, 512, 1}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    rig r = begin("replay", false);
    rig_start(&r);
    rig_alloc(&r, RIG_BASE, BYTES, TRACE_MEMORY_DEVICE);
    rig_h2d(&r, RIG_BASE, BYTES);
    uint64_t sequence;
    rig_record(&r, 0, &sequence);
    rig_copy(&r, TRACE_D2D, RIG_BASE + BYTES, RIG_BASE + cases[i].first * PAGE, cases[i].count * PAGE, true, 0);
    const sim_result *result = rig_finish(&r);
    assert_int_equal(slow(&r)->read_bytes, cases[i].lower * PAGE);
    ps read = LATENCY + cases[i].lower * READ_PS, link = cases[i].count * LINK_PS,
       over = read + LINK_PS > link ? read + LINK_PS : link;
    ps written = LATENCY + PAGES / 2 * WRITE_PS, copied = result->counters.time_ps - written;
    assert_int_equal(result->counters.transfer_ps, link);
    ps device = (ps)(2.0 * (double)(cases[i].count * PAGE) / 384 * 1000 + 0.5);
    assert_true(copied >= over + device - 1 && copied <= over + device + 1);
    rig_close(&r);
  }
}

/* GPU memory of 2 MiB below which the host's memory is full: each page that is written and evicted sends the one that
 * moved longest ago down. */
static void test_evicted_pages_send_others_down(void **state) {
  pages all = {0, PAGES, true};
  rig r = begin("replay", false);
  r.gpu_memory = BYTES / 2;
  rig_start(&r);
  rig_alloc(&r, RIG_BASE, BYTES, TRACE_MEMORY_DEVICE);
  rig_h2d(&r, RIG_BASE, BYTES);
  launch(&r, &all);
  const sim_result *result = rig_finish(&r);
  /* The first 512 come from below, and give up their places as they are written. For each of the last 512 one of these
   * goes back to the host's memory, which is full; what has moved longest ago there is the page that is wanted next: it
   * goes down, and is read at once. */
  assert_int_equal(result->counters.h2d_bytes, BYTES);
  assert_int_equal(result->counters.written_back_bytes, BYTES / 2);
  assert_int_equal(slow(&r)->read_bytes, BYTES);
  assert_int_equal(slow(&r)->written_bytes, BYTES);
  assert_int_equal(result->tiers.of[0].peak_bytes, BYTES / 2);
  rig_close(&r);
}

/* What comes back when the host touches or copies it is in the host's memory after that, and others are not. */
static void test_host_reads_what_went_down(void **state) {
  rig r = begin("replay", false);
  rig_start(&r);
  rig_alloc(&r, RIG_BASE, BYTES, TRACE_MEMORY_DEVICE);
  rig_h2d(&r, RIG_BASE, BYTES);
  rig_d2h(&r, RIG_BASE, 4 * PAGE);
  rig_d2h(&r, RIG_BASE, 4 * PAGE);
  const sim_result *result = rig_finish(&r);
  assert_int_equal(slow(&r)->read_bytes, 4 * PAGE);
  assert_int_equal(result->tiers.of[0].written_bytes, 4 * PAGE);
  assert_int_equal(slow(&r)->written_bytes, BYTES / 2 + 4 * PAGE);
  /* read and written at once; the write is the longer one */
  assert_int_equal(result->counters.time_ps, 2 * LATENCY + (PAGES / 2 + 4) * WRITE_PS);
  rig_close(&r);
}

/* Memory that the GPU reaches over the link: in a mapped tier it is read in place, a paged one gives the page up. */
static void test_reached_in_place_or_brought_up(void **state) {
  enum { LINES = 4 };
  for (int mapped = 0; mapped < 2; mapped++) {
    pages p = {0, LINES, false};
    rig r = begin("replay", mapped);
    r.advise = "all:cpu";
    rig_start(&r);
    rig_alloc(&r, RIG_BASE, BYTES, TRACE_MEMORY_MANAGED);
    rig_h2d(&r, RIG_BASE, BYTES);
    launch(&r, &p);
    const sim_result *result = rig_finish(&r);
    assert_string_equal(result->error, "");
    assert_int_equal(result->counters.h2d_bytes, 0);
    assert_int_equal(slow(&r)->read_bytes, mapped ? result->counters.remote_bytes : LINES * PAGE);
    assert_int_equal(result->tiers.of[0].written_bytes, mapped ? 0 : LINES * PAGE);
    rig_close(&r);
  }
}

/* A line of a mapped tier takes that tier's latency and its time, then the link's: a warp that reads one after the
 * other waits so much longer for each. */
static void test_lines_of_a_mapped_tier(void **state) {
  enum { LINES = 4 };
  ps kernel_ps[2];
  for (int lower = 0; lower < 2; lower++) {
    pages p = {0, LINES, false};
    rig r = begin("replay", true);
    if (!lower) r.spec.host_memory_bytes = BYTES;
    r.advise = "all:cpu";
    rig_start(&r);
    rig_alloc(&r, RIG_BASE, BYTES, TRACE_MEMORY_MANAGED);
    rig_h2d(&r, RIG_BASE, BYTES);
    launch(&r, &p);
    kernel_ps[lower] = rig_finish(&r)->counters.kernel_ps;
    rig_close(&r);
  }
  assert_int_equal(kernel_ps[1] - kernel_ps[0], LINES * (LATENCY + 128 * NS / 4));
}

/* Three tiers: what does not fit the second goes on to the third. */
static void test_a_tier_gives_to_the_next(void **state) {
  rig r = begin("replay", false);
  r.spec.below_host.tiers[1] = r.spec.below_host.tiers[0];
  r.spec.below_host.count = 2;
  strcpy(r.spec.below_host.tiers[1].name, "slower");
  r.spec.below_host.tiers[0].bytes = BYTES / 4;
  rig_start(&r);
  rig_alloc(&r, RIG_BASE, BYTES, TRACE_MEMORY_DEVICE);
  rig_h2d(&r, RIG_BASE, BYTES);
  const sim_result *result = rig_finish(&r);
  assert_int_equal(result->tiers.count, 3);
  assert_int_equal(result->tiers.of[1].peak_bytes, BYTES / 4);
  assert_int_equal(result->tiers.of[1].written_bytes, BYTES / 2);
  assert_int_equal(result->tiers.of[1].read_bytes, BYTES / 4);
  assert_int_equal(result->tiers.of[2].peak_bytes, BYTES / 4);
  assert_int_equal(result->tiers.of[2].written_bytes, BYTES / 4);
  rig_close(&r);
}

static void test_memory_that_no_tier_holds(void **state) {
  rig r = begin("replay", false);
  r.spec.below_host.tiers[0].bytes = 2 << 20;
  rig_start(&r);
  rig_alloc(&r, RIG_BASE, BYTES + 1, TRACE_MEMORY_DEVICE);
  assert_non_null(strstr(rig_finish(&r)->error, "the tiers below it hold 4.00 MiB"));
  rig_close(&r);
}

/* Everything fits: not a picosecond more than without tiers, under every manager that pages. */
static void test_nothing_changes_where_all_fits(void **state) {
  static const char *const names[] = {"replay", "demand", "uvm", "segments", "auto", "hmm", "partial-multi"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    ps time[2];
    for (int with = 0; with < 2; with++) {
      pages all = {0, 256, true};
      rig r = begin(names[i], false);
      r.gpu_memory = 4 << 20;
      r.spec.host_memory_bytes = with ? 2 * BYTES : 0;
      rig_start(&r);
      rig_alloc(&r, RIG_BASE, BYTES, TRACE_MEMORY_DEVICE);
      rig_h2d(&r, RIG_BASE, BYTES);
      launch(&r, &all);
      rig_d2h(&r, RIG_BASE, BYTES);
      const sim_result *result = rig_finish(&r);
      assert_string_equal(result->error, "");
      assert_int_equal(result->tiers.count, with ? 2 : 0);
      if (with) assert_int_equal(slow(&r)->written_bytes + slow(&r)->read_bytes + slow(&r)->waits, 0);
      time[with] = result->counters.time_ps;
      rig_close(&r);
    }
    assert_int_equal(time[0], time[1]);
  }
}

int main(void) {
  ff_check_level = 2;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_host_writes_more_than_it_holds), cmocka_unit_test(test_far_faults_read_the_tier),
      cmocka_unit_test(test_pieces_follow_each_other),       cmocka_unit_test(test_evicted_pages_send_others_down),
      cmocka_unit_test(test_host_reads_what_went_down),      cmocka_unit_test(test_reached_in_place_or_brought_up),
      cmocka_unit_test(test_lines_of_a_mapped_tier),         cmocka_unit_test(test_a_tier_gives_to_the_next),
      cmocka_unit_test(test_memory_that_no_tier_holds),      cmocka_unit_test(test_nothing_changes_where_all_fits),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
