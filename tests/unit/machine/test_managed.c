/* SPDX-License-Identifier: Apache-2.0 */
/* Managed memory page by page (cuda6, gm200, gp100): what a launch copies, what a touch of the CPU brings back, and
 * when. */
#include "rig.h"

#define PAGE(n) (RIG_BASE + (uint64_t)(n)*4096)
#define OTHER (RIG_BASE + (UINT64_C(64) << 20))
#define PAGE_PS (UINT64_C(4096) * 1000 / 16) /* a page over the rig's link */

typedef struct span {
  uint64_t at;
  uint32_t pages;
  bool store;
} span;

static void access_span(trace_writer *w, uint64_t b, uint32_t i, const void *context) {
  const span *t = context;
  for (uint32_t p = 0; p < t->pages; p++) {
    if (t->store) rig_store(w, t->at + p * 4096);
    else rig_load_wait(w, t->at + p * 4096);
  }
}
static void launch(rig *r, span t) {
  rig_launch(r, (rig_kernel){.blocks = 1, .warps = 1, .warp = access_span, .context = &t});
}

static void touch(rig *r, uint64_t address, uint64_t bytes, bool write) {
  rig_op(r, (trace_op){.kind = TRACE_OP_HOST_TOUCH, .touch = {.address = address, .bytes = bytes, .write = write}});
}

static void begin(rig *r, const char *manager) {
  rig_open(r, manager);
  r->spec.host_fault_us = 8;
  rig_start(r);
  rig_alloc(r, PAGE(0), 64 * 4096, TRACE_MEMORY_MANAGED);
}

/* Only what the CPU wrote goes in, in one copy per run of neighbours; nothing comes back at a synchronisation. */
static void test_dirty_pages_go_in(void **state) {
  rig r;
  begin(&r, "cuda6");
  touch(&r, PAGE(3), 2 * 4096, true);
  touch(&r, PAGE(9), 1, true);
  touch(&r, PAGE(9) + 100, 1, true);
  touch(&r, PAGE(20), 4096, false);
  launch(&r, (span){PAGE(0), 64, true});
  rig_sync(&r);
  launch(&r, (span){PAGE(0), 64, false});
  rig_sync(&r);
  sim_counters c = rig_finish(&r)->counters;
  assert_int_equal(c.h2d_bytes, 3 * 4096);
  assert_int_equal(c.pages_moved_in, 3);
  assert_int_equal(c.transfer_ps, 3 * PAGE_PS);
  assert_int_equal(c.d2h_bytes, 0);
  assert_int_equal(c.host_faults, 0);
  assert_int_equal(c.time_ps, c.kernel_ps + 3 * PAGE_PS);
  rig_close(&r);
}

/* Each page that the CPU touches after a launch is a fault of its own, once; reading does not make it dirty. */
static void test_faults_of_the_cpu(void **state) {
  rig r;
  begin(&r, "cuda6");
  launch(&r, (span){PAGE(0), 2, false});
  rig_sync(&r);
  touch(&r, PAGE(1), 3 * 4096, false);
  touch(&r, PAGE(2), 4096, true);      /* it is there */
  touch(&r, PAGE(5) + 4095, 2, false); /* two pages */
  launch(&r, (span){PAGE(2), 1, false});
  rig_sync(&r);
  touch(&r, PAGE(1), 1, false); /* again */
  sim_counters c = rig_finish(&r)->counters;
  assert_int_equal(c.host_faults, 6);
  assert_int_equal(c.d2h_bytes, 6 * 4096);
  assert_int_equal(c.h2d_bytes, 4096);
  assert_int_equal(c.time_ps, c.kernel_ps + 6 * (8 * US + PAGE_PS) + PAGE_PS);
  rig_close(&r);
}

/* gp100: what is not the CPU's of the 2 MiB around the page, cut to the allocation, comes with one fault. */
static void test_neighbours_come_along(void **state) {
  rig r;
  begin(&r, "gp100");
  rig_alloc(&r, OTHER, (2 << 20) + 4096, TRACE_MEMORY_MANAGED);
  launch(&r, (span){PAGE(0), 1, true});
  rig_sync(&r);
  touch(&r, PAGE(7), 1, true);
  for (int p = 0; p < 64; p++) touch(&r, PAGE(p), 1, false);
  touch(&r, OTHER + (2 << 20), 1, false);
  touch(&r, OTHER, 2 << 20, false);
  sim_counters c = rig_finish(&r)->counters;
  assert_int_equal(c.host_faults, 3);
  assert_int_equal(c.d2h_bytes, 64 * 4096 + (2 << 20) + 4096);
  assert_int_equal(c.time_ps, c.kernel_ps + 3 * 8 * US + (64 + 513) * PAGE_PS);
  rig_close(&r);
}

/* A launch that takes pages from the CPU pays for it once, whether or not any of them was written. */
static void test_unmapping_costs(void **state) {
  rig r;
  rig_open(&r, "gm200");
  r.spec.managed_launch_us = 47;
  rig_start(&r);
  rig_alloc(&r, PAGE(0), 64 * 4096, TRACE_MEMORY_MANAGED);
  launch(&r, (span){PAGE(0), 1, false});
  rig_sync(&r);
  touch(&r, PAGE(0), 1, false);
  launch(&r, (span){PAGE(0), 1, false});
  launch(&r, (span){PAGE(0), 1, false});
  rig_sync(&r);
  sim_counters c = rig_finish(&r)->counters;
  assert_int_equal(c.time_ps, c.kernel_ps + PAGE_PS + 47 * US);
  rig_close(&r);
}

/* Copies: what is the CPU's in host memory, the rest over the link; device memory as under `copy`. */
static void test_copies(void **state) {
  rig r;
  begin(&r, "cuda6");
  rig_alloc(&r, OTHER, 8 * 4096, TRACE_MEMORY_DEVICE);
  rig_h2d(&r, PAGE(0), 4 * 4096);       /* the CPU's still: host memory */
  launch(&r, (span){PAGE(0), 4, true}); /* 4 in */
  rig_sync(&r);
  touch(&r, PAGE(1), 1, false);                               /* 1 out */
  rig_h2d(&r, PAGE(0), 2 * 4096);                             /* page 0 over the link, 1 in host memory */
  rig_d2h(&r, PAGE(0), 3 * 4096);                             /* 0 and 2 over the link */
  rig_copy(&r, TRACE_D2D, OTHER, PAGE(0), 4 * 4096, true, 0); /* page 1 in */
  rig_h2d(&r, OTHER, 4096);
  launch(&r, (span){PAGE(0), 4, false});
  rig_set(&r, PAGE(0), 4096);
  rig_d2h(&r, PAGE(0), 4096);
  sim_counters c = rig_finish(&r)->counters;
  assert_int_equal(c.h2d_bytes, (4 + 1 + 1 + 1) * 4096);
  assert_int_equal(c.d2h_bytes, (1 + 2 + 1) * 4096);
  assert_int_equal(c.host_faults, 1);
  rig_close(&r);
}

/* What was dirty when it was freed does not go in, nor does it burden what comes in its place. */
static void test_freed_while_dirty(void **state) {
  rig r;
  begin(&r, "cuda6");
  touch(&r, PAGE(0), 64 * 4096, true);
  rig_op(&r, (trace_op){.kind = TRACE_OP_FREE, .free = {.address = PAGE(0)}});
  rig_alloc(&r, PAGE(0), 8 * 4096, TRACE_MEMORY_MANAGED);
  touch(&r, PAGE(1), 1, true);
  rig_alloc(&r, PAGE(32), 4096, TRACE_MEMORY_DEVICE);
  launch(&r, (span){PAGE(0), 8, true});
  touch(&r, PAGE(2), 1, true); /* the CPU's again, after a launch */
  rig_op(&r, (trace_op){.kind = TRACE_OP_FREE, .free = {.address = PAGE(0)}});
  sim_counters c = rig_finish(&r)->counters;
  assert_int_equal(c.h2d_bytes, 4096);
  assert_int_equal(c.d2h_bytes, 4096);
  rig_close(&r);
}

/* Random touches, copies and kernels against one flag per page and side. The version oracle checks what is read. */
static void test_random(void **state) {
  enum { PAGES = 64, STEPS = 3000 };
  static const char *const names[] = {"cuda6", "gp100"};
  for (int m = 0; m < 2; m++) {
    rig r;
    begin(&r, names[m]);
    bool mapped[PAGES], dirty[PAGES] = {false};
    for (int p = 0; p < PAGES; p++) mapped[p] = true;
    uint64_t in = 0, out = 0, faults = 0, random = 1;
    for (int step = 0; step < STEPS; step++) {
      random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
      uint32_t page = (uint32_t)(random >> 33) % PAGES, count = 1 + (uint32_t)(random >> 40) % 4,
               what = (uint32_t)(random >> 50) % 16;
      if (page + count > PAGES) count = PAGES - page;
      if (what < 12) {
        touch(&r, PAGE(page), count * 4096, what & 1);
        for (uint32_t p = page; p < page + count; p++) {
          if (!mapped[p]) {
            faults++;
            for (uint32_t q = m ? 0 : p; q < (m ? PAGES : p + 1); q++) {
              out += !mapped[q];
              mapped[q] = true;
            }
          }
          if (what & 1) dirty[p] = true;
        }
      } else if (what < 14) {
        launch(&r, (span){PAGE(page), count, what & 1});
        for (uint32_t p = 0; p < PAGES; p++) {
          in += dirty[p];
          mapped[p] = dirty[p] = false;
        }
      } else if (what == 14) {
        rig_h2d(&r, PAGE(page), count * 4096);
        for (uint32_t p = page; p < page + count; p++) {
          in += !mapped[p];
          dirty[p] = dirty[p] || mapped[p];
        }
      } else {
        rig_d2h(&r, PAGE(page), count * 4096);
        for (uint32_t p = page; p < page + count; p++) out += !mapped[p];
      }
    }
    sim_counters c = rig_finish(&r)->counters;
    assert_int_equal(c.h2d_bytes, in * 4096);
    assert_int_equal(c.d2h_bytes, out * 4096);
    assert_int_equal(c.host_faults, faults);
    rig_close(&r);
  }
}

/* ---- the measurements of Wilt, 2017 ---- */

typedef struct wilt_row {
  uint32_t pages;
  double us;
} wilt_row;

/* Microseconds per iteration of: launch nothing, wait, read and write a byte of each page. */
static double wilt(const char *name, uint32_t pages) {
  enum { ITERATIONS = 4 };
  rig r;
  uint64_t begin = 0, end;
  rig_open(&r, name);
  assert_int_equal(machine_spec_load(name, &r.spec, NULL), FF_OK);
  rig_start(&r);
  if (pages) rig_alloc(&r, PAGE(0), pages * 4096, TRACE_MEMORY_MANAGED);
  for (int i = 0; i <= ITERATIONS; i++) { /* the first finds nothing to unmap */
    if (i == 1) rig_record(&r, 0, &begin);
    rig_launch(&r, (rig_kernel){.blocks = 1, .warps = 1});
    rig_sync(&r);
    for (uint32_t p = 0; p < pages; p++) {
      touch(&r, PAGE(p), 1, false);
      touch(&r, PAGE(p), 1, true);
    }
  }
  rig_record(&r, 0, &end);
  rig_finish(&r);
  double us = (double)(sim_event_time(r.sim, end) - sim_event_time(r.sim, begin)) / 1e6 / ITERATIONS;
  rig_close(&r);
  return us;
}

/* The machine files took the rows of 0 and 1 page and, for GM200, the last; all others follow from the rules and the
 * link. */
static void test_rows_of_wilt(void **state) {
  static const wilt_row gm200[] = {{0, 47},     {1, 105},     {2, 104},      {4, 115},     {8, 134},
                                   {16, 213},   {32, 381},    {64, 649},     {128, 1247},  {256, 2221},
                                   {512, 4712}, {1024, 8458}, {2048, 17041}, {4096, 33992}};
  static const wilt_row gp100[] = {{0, 39},       {1, 47.15},     {2, 49.86},      {4, 57.84},     {8, 59.04},
                                   {16, 64.73},   {32, 79.08},    {64, 98.41},     {128, 137.15},  {256, 205.56},
                                   {512, 391.91}, {1024, 745.81}, {2048, 1543.91}, {4096, 3114.83}};
  for (size_t i = 0; i < sizeof gm200 / sizeof *gm200; i++) {
    double a = wilt("gm200", gm200[i].pages), b = wilt("gp100", gp100[i].pages);
    print_message("%5u pages: gm200 %8.2f us (%8.2f, %+5.1f %%)  gp100 %8.2f us (%8.2f, %+5.1f %%)\n", gm200[i].pages,
                  a, gm200[i].us, 100 * (a / gm200[i].us - 1), b, gp100[i].us, 100 * (b / gp100[i].us - 1));
    assert_near(a, gm200[i].us, 0.22);
    assert_near(b, gp100[i].us, 0.16);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_dirty_pages_go_in),
      cmocka_unit_test(test_faults_of_the_cpu),
      cmocka_unit_test(test_neighbours_come_along),
      cmocka_unit_test(test_unmapping_costs),
      cmocka_unit_test(test_copies),
      cmocka_unit_test(test_freed_while_dirty),
      cmocka_unit_test(test_random),
      cmocka_unit_test(test_rows_of_wilt),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
