/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of the program's own, which no call allocated: that it becomes known costs the host no time, also if kernels
 * have touched it before; and how the manager hmm moves it. */
#include "rig.h"

#define PAGE(n) (RIG_BASE + (uint64_t)(n)*4096)
enum { BLOCK_PAGES = 512, MALLOC_PS = 7000000, HOST_FAULT_PS = 3000000 };

typedef struct pages {
  uint32_t first, count;
  bool write;
} pages;

static rig r;
static pages kept[8];
static uint32_t kept_count;

static void touch_pages(trace_writer *w, uint64_t b, uint32_t i, const void *context) {
  const pages *p = context;
  for (uint32_t n = p->first; n < p->first + p->count; n++) {
    if (p->write) rig_store(w, PAGE(n));
    else rig_load_wait(w, PAGE(n));
  }
}

static void gpu(bool write, uint32_t first, uint32_t count) {
  kept[kept_count] = (pages){first, count, write};
  rig_launch(&r, (rig_kernel){.blocks = 1, .warps = 1, .warp = touch_pages, .context = &kept[kept_count++]});
  rig_sync(&r);
}

static void show(uint64_t bytes, bool system) {
  trace_op op = {.kind = TRACE_OP_ALLOC,
                 .alloc = {.address = RIG_BASE,
                           .bytes = bytes,
                           .memory = TRACE_MEMORY_MANAGED,
                           .id = ++r.allocations,
                           .initialised = system, /* else by a call */
                           .system = system}};
  rig_op(&r, op);
}

static void begin(const char *manager, uint64_t memory) {
  rig_open(&r, manager);
  kept_count = 0;
  r.prefetch = "none";
  r.gpu_memory = memory;
  r.spec.malloc_us = MALLOC_PS / 1e6;
  r.spec.host_fault_us = HOST_FAULT_PS / 1e6;
  r.spec.fault_batch_us = 10;
  rig_start(&r);
  rig_op(&r, (trace_op){.kind = TRACE_OP_HOST_TOUCH}); /* of nothing: the host's touches are recorded */
}

static sim_result *end(void) {
  rig_finish(&r);
  assert_string_equal(r.result.error, "");
  if (manager_pages(r.sim->manager)) pager_check_all(r.sim->pager);
  return &r.result;
}

static void test_no_call(void **state) {
  static const char *const managers[] = {"copy", "uvm", "hmm", "ats"};
  for (size_t i = 0; i < sizeof managers / sizeof *managers; i++) {
    ps times[2];
    for (int system = 0; system < 2; system++) {
      begin(managers[i], 0);
      show(1 << 20, system);
      rig_op(&r, (trace_op){.kind = TRACE_OP_FREE, .free = {.address = RIG_BASE, .id = 1}});
      times[system] = end()->counters.time_ps;
      rig_close(&r);
    }
    assert_int_equal(times[1], 0);
    assert_int_equal(times[0], 2 * MALLOC_PS);
  }
}

/* A kernel touches it before it is known: so far it is always there, and from then on it is the host's. */
static void test_known_late(void **state) {
  static const char *const managers[] = {"demand", "uvm", "hmm", "ats", "auto", "copy"};
  for (size_t i = 0; i < sizeof managers / sizeof *managers; i++) {
    begin(managers[i], 0);
    gpu(false, 0, 8);
    show(1 << 20, true);
    gpu(true, 0, 8);
    bool moves = manager_pages(r.sim->manager) && !r.sim->manager->reaches;
    sim_counters c = end()->counters;
    assert_int_equal(c.faults, moves ? 8 : 0);
    if (moves) assert_int_equal(c.h2d_bytes, 8 * 4096);
    rig_close(&r);
  }
}

/* Each page that is touched first faults and moves; what the host then touches comes back, and no other page. */
static void test_first_touch(void **state) {
  begin("hmm", 0);
  show(BLOCK_PAGES * 4096, true);
  gpu(true, 0, 20);
  gpu(false, 0, 20); /* they are there */
  rig_op(&r, (trace_op){.kind = TRACE_OP_HOST_TOUCH, .touch = {PAGE(5), 3 * 4096, true}});
  gpu(false, 0, 20);
  sim_counters c = end()->counters;
  assert_int_equal(c.faults, 20 + 3);
  assert_int_equal(c.h2d_bytes, (20 + 3) * 4096);
  assert_int_equal(c.d2h_bytes, 3 * 4096);
  assert_int_equal(c.host_faults, 3);
  rig_close(&r);
}

/* One page too many: a page goes under hmm, 2 MiB under uvm. */
static void test_room(void **state) {
  static const struct {
    const char *manager;
    uint32_t out;
  } rows[] = {{"hmm", 1}, {"uvm", BLOCK_PAGES}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    begin(rows[i].manager, 2 * BLOCK_PAGES * 4096);
    show(3 * BLOCK_PAGES * 4096, true);
    gpu(true, 0, 2 * BLOCK_PAGES + 1);
    sim_counters c = end()->counters;
    assert_int_equal(c.faults, 2 * BLOCK_PAGES + 1);
    assert_int_equal(c.d2h_bytes, rows[i].out * 4096);
    rig_close(&r);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_no_call),
      cmocka_unit_test(test_known_late),
      cmocka_unit_test(test_first_touch),
      cmocka_unit_test(test_room),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
