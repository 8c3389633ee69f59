/* SPDX-License-Identifier: Apache-2.0 */
/* A coherent link (ats) and migration by access counters: what lines over the link take, and when exactly a granule
 * comes. */
#include "rig.h"

#include "policy/manager.h"

#define BLOCK (UINT64_C(2) << 20)

/* ---- lines over the link ---- */

enum { BLOCKS = 15, WARPS = 32, LINES = 32 };

static void stream_lines(trace_writer *w, uint64_t b, uint32_t i, const void *context) {
  uint64_t first = (b * WARPS + i) * LINES;
  for (uint64_t n = first; n < first + LINES; n++) {
    if (*(const bool *)context) rig_store(w, RIG_BASE + n * 128);
    else rig_load(w, RIG_BASE + n * 128);
  }
  if (!*(const bool *)context) trace_put_wait(w, 0);
}

/* N lines take N * 128 bytes over the link's bandwidth, and the latency once; nothing faults, nothing moves. */
static void test_stream(void **state) {
  static const bool writes[] = {false, true};
  for (size_t i = 0; i < 2; i++) {
    rig r;
    rig_open(&r, "ats");
    r.access_counters = "none";
    r.spec.link_h2d_gbs = 450;
    r.spec.link_d2h_gbs = 300;
    r.spec.link_latency_us = 1;
    r.spec.l1_mshrs = 4096;
    r.spec.page_bytes = 2 << 20;
    rig_start(&r);
    rig_alloc(&r, RIG_BASE, 4 << 20, TRACE_MEMORY_MANAGED);
    rig_launch(&r, (rig_kernel){.blocks = BLOCKS, .warps = WARPS, .warp = stream_lines, .context = &writes[i]});
    sim_counters c = rig_finish(&r)->counters;
    rig_close(&r);
    double bytes = BLOCKS * WARPS * LINES * 128., transfer = bytes / (writes[i] ? 300e9 : 450e9) * 1e12;
    assert_int_equal(c.faults, 0);
    assert_int_equal(c.h2d_bytes, 0);
    assert_int_equal(c.remote_bytes, bytes);
    /* the first line leaves after its walk; a block is over when its lines have arrived */
    assert_between((double)c.kernel_ps, transfer + 1e6, transfer + 1e6 + 2e6);
  }
}

/* ---- the threshold ---- */

typedef struct script { /* of one warp: accesses to a block, instructions of core, accesses to another block */
  uint32_t first, delay, last;
  uint64_t other;
} script;

static void follow(trace_writer *w, uint64_t b, uint32_t i, const void *context) {
  const script *s = context;
  for (uint32_t n = 0; n < s->first; n++) rig_load_wait(w, RIG_BASE + n % 512 * 128);
  for (uint32_t n = 0; n < s->delay; n += 1000) rig_issue(w, 1000);
  for (uint32_t n = 0; n < s->last; n++) rig_load_wait(w, RIG_BASE + s->other + n % 512 * 128);
}

static rig r;

static void begin(const char *manager, const char *counters) {
  rig_open(&r, manager);
  r.access_counters = counters;
  r.spec.fault_batch_us = 10;
  rig_start(&r);
  rig_alloc(&r, RIG_BASE, 3 * BLOCK, TRACE_MEMORY_MANAGED);
}

static sim_counters end(const script *s) {
  rig_launch(&r, (rig_kernel){.blocks = 1, .warps = 1, .warp = follow, .context = s});
  rig_sync(&r);
  sim_counters c = rig_finish(&r)->counters;
  assert_string_equal(r.result.error, "");
  pager_check_all(r.sim->pager);
  rig_close(&r);
  return c;
}

static sim_counters run(const char *manager, const char *counters, script s) {
  begin(manager, counters);
  return end(&s);
}

/* An instruction takes 4 ns: enough of them for the service of 20 us and 2 MiB at 16 GB/s, 131 us. */
enum { LONG = 100000 };

static void test_threshold(void **state) {
  static const struct {
    const char *counters;
    uint32_t accesses;
    uint64_t moved;
  } rows[] = {{NULL, 255, 0},        {NULL, 256, BLOCK}, {"10", 9, 0},      {"10", 10, BLOCK}, {"10:64K", 9, 0},
              {"10:64K", 10, 65536}, {"1:2M", 1, BLOCK}, {"none", 2000, 0}, {"65535", 2000, 0}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    sim_counters c = run("ats", rows[i].counters, (script){.first = rows[i].accesses, .delay = LONG});
    assert_int_equal(c.h2d_bytes, rows[i].moved);
    assert_int_equal(c.remote_bytes, rows[i].accesses * 128);
    assert_int_equal(c.faults, 0);
    assert_int_equal(c.d2h_bytes, 0);
  }
}

/* Each granule has a count of its own. */
static void test_granules(void **state) {
  script apart = {.first = 255, .delay = LONG, .last = 255, .other = BLOCK};
  assert_int_equal(run("ats", NULL, apart).h2d_bytes, 0);
  apart.last = 256;
  assert_int_equal(run("ats", NULL, apart).h2d_bytes, BLOCK);
  script groups = {.first = 9, .delay = LONG, .last = 9, .other = 65536};
  assert_int_equal(run("ats", "10:64K", groups).h2d_bytes, 0);
  assert_int_equal(run("ats", "10:2M", groups).h2d_bytes, BLOCK);
}

/* What comes is reached over the link until its bytes begin to move: before, an access goes there; while they move, it
 * waits; then it is at home. */
static void test_arrival(void **state) {
  /* 12 us later: the group moves so that it has landed when the service of 20 us is over, 4.1 us before that */
  script s = {.first = 256, .delay = 3000, .last = 1};
  sim_counters c = run("ats", "256:64K", s);
  assert_int_equal(c.remote_bytes, 257 * 128);
  ps early = c.kernel_ps;
  s.delay = 4000; /* 16 us: it is on its way, and lands 8 us after the access of before */
  c = run("ats", "256:64K", s);
  assert_int_equal(c.remote_bytes, 256 * 128);
  assert_between(c.kernel_ps, early + 7500000, early + 8500000);
  s.delay = 6000; /* 24 us: it is there */
  sim_counters without = run("ats", "256:64K", (script){.first = 256, .delay = 6000});
  c = run("ats", "256:64K", s);
  assert_int_equal(c.remote_bytes, 256 * 128);
  assert_int_equal(c.h2d_bytes, 65536);
  assert_between(c.kernel_ps, without.kernel_ps, without.kernel_ps + 600000);
}

/* Accesses of one page after another until memory is full: what comes drives out what was used longest ago. */
static void test_room(void **state) {
  rig_open(&r, "ats");
  r.access_counters = "4";
  r.gpu_memory = BLOCK;
  rig_start(&r);
  rig_alloc(&r, RIG_BASE, 3 * BLOCK, TRACE_MEMORY_MANAGED);
  script s = {.first = 4, .delay = LONG, .last = 4, .other = BLOCK};
  sim_counters c = end(&s);
  assert_int_equal(c.h2d_bytes, 2 * BLOCK);
  assert_int_equal(c.d2h_bytes, 0); /* clean */
}

/* Under the driver's managed memory they bring what the program lets the GPU map, and only if they are chosen. */
static void test_uvm(void **state) {
  static const struct {
    const char *counters;
    trace_advice advice;
    int device;
    uint32_t accesses;
    uint64_t moved;
  } rows[] = {{NULL, TRACE_ADVICE_SET_ACCESSED_BY, 0, 300, 0},
              {"256", TRACE_ADVICE_SET_ACCESSED_BY, 0, 255, 0},
              {"256", TRACE_ADVICE_SET_ACCESSED_BY, 0, 256, BLOCK},
              {"256:64K", TRACE_ADVICE_SET_ACCESSED_BY, 0, 256, 65536},
              {"256", TRACE_ADVICE_SET_PREFERRED_LOCATION, -1, 300, 0}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    begin("uvm", rows[i].counters);
    rig_op(&r,
           (trace_op){.kind = TRACE_OP_ADVISE, .hint = {RIG_BASE, 3 * BLOCK, (int32_t)rows[i].advice, rows[i].device}});
    script s = {.first = rows[i].accesses, .delay = LONG};
    sim_counters c = end(&s);
    assert_int_equal(c.h2d_bytes, rows[i].moved);
    assert_int_equal(c.remote_bytes, rows[i].accesses * 128);
  }
}

/* What came stays when the host reads and writes it: the host has its bytes once over the link, without a fault, and
 * the GPU goes on reading it at home. */
static void store_and_wait(trace_writer *w, uint64_t b, uint32_t i, const void *context) {
  for (uint32_t n = 0; n < 4; n++) rig_load_wait(w, RIG_BASE);
  for (uint32_t n = 0; n < LONG; n += 1000) rig_issue(w, 1000);
  rig_store(w, RIG_BASE);
}

static void test_host(void **state) {
  begin("ats", "4:64K");
  rig_op(&r, (trace_op){.kind = TRACE_OP_HOST_TOUCH});
  rig_launch(&r, (rig_kernel){.blocks = 1, .warps = 1, .warp = store_and_wait});
  rig_sync(&r);
  for (uint32_t i = 0; i < 3; i++) /* read, read again, write */
    rig_op(&r, (trace_op){.kind = TRACE_OP_HOST_TOUCH, .touch = {RIG_BASE, 4096, i == 2}});
  script s = {.first = 10};
  sim_counters c = end(&s);
  assert_int_equal(c.remote_bytes, 4 * 128);
  assert_int_equal(c.h2d_bytes, 65536);
  assert_int_equal(c.d2h_bytes, 65536);
  assert_int_equal(c.host_faults, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_stream),  cmocka_unit_test(test_threshold), cmocka_unit_test(test_granules),
      cmocka_unit_test(test_arrival), cmocka_unit_test(test_room),      cmocka_unit_test(test_uvm),
      cmocka_unit_test(test_host),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
