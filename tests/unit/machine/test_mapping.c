/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses and memory apart in the simulation: what the calls cost, whose memory counts when, that an unmap does not
 * wait for the device but leaves nothing cached, and that every manager gets through. */
#include "rig.h"

#define PIECE (UINT64_C(2) << 20)
#define PLACE(i) (RIG_BASE + (uint64_t)(i)*PIECE)

static void reserve(rig *r, uint64_t address, uint64_t bytes) {
  rig_op(r, (trace_op){.kind = TRACE_OP_RESERVE,
                       .alloc = {.address = address, .bytes = bytes, .id = ++r->allocations, .name = "addresses"}});
}
static void create(rig *r, uint32_t id, uint64_t bytes) {
  rig_op(r, (trace_op){.kind = TRACE_OP_CREATE, .alloc = {.bytes = bytes, .id = id, .name = "memory"}});
}
static void release(rig *r, uint32_t id) { rig_op(r, (trace_op){.kind = TRACE_OP_RELEASE, .free = {.id = id}}); }
static uint64_t map(rig *r, uint64_t address, uint64_t bytes, uint32_t memory) {
  return rig_op(r, (trace_op){.kind = TRACE_OP_MAP, .map = {.address = address, .bytes = bytes, .memory = memory}});
}
static uint64_t range(rig *r, trace_op_kind kind, uint64_t address, uint64_t bytes) {
  return rig_op(r, (trace_op){.kind = kind, .map = {.address = address, .bytes = bytes}});
}

typedef struct reader {
  uint64_t address;
  uint32_t lines;
  trace_access_op op;
} reader;

static void read_lines(trace_writer *w, uint64_t block, uint32_t warp, const void *context) {
  const reader *read = context;
  (void)warp;
  for (uint32_t i = 0; i < read->lines; i++) {
    trace_put_issue(w, 1, 0, 0, 0);
    *trace_put_access(w, read->op, 2, 0, 0, UINT32_MAX, 1) =
        trace_line(read->address + (block * read->lines + i) * 128, 32, 15);
    trace_put_wait(w, 0);
  }
}

static void launch(rig *r, const reader *read, uint64_t blocks) {
  rig_launch(r, (rig_kernel){.blocks = blocks, .warps = 1, .warp = read_lines, .context = read});
}

/* ---- time ---- */

static void test_costs(void **state) {
  static const double us[6] = {1, 2, 4, 8, 16, 32};
  for (int given = 0; given < 2; given++) {
    rig r;
    rig_open(&r, "copy");
    r.spec.malloc_us = 100;
    if (given) {
      r.spec.reserve_us = us[0];
      r.spec.create_us = us[1];
      r.spec.release_us = us[2];
      r.spec.map_us = us[3];
      r.spec.unmap_us = us[4];
      r.spec.set_access_us = us[5];
    }
    rig_start(&r);
    reserve(&r, PLACE(0), 4 * PIECE);
    create(&r, 1, PIECE);
    map(&r, PLACE(0), PIECE, 1);
    range(&r, TRACE_OP_SET_ACCESS, PLACE(0), PIECE);
    release(&r, 1);
    range(&r, TRACE_OP_UNMAP, PLACE(0), PIECE);
    range(&r, TRACE_OP_UNRESERVE, PLACE(0), 4 * PIECE);
    const sim_result *result = rig_finish(&r);
    assert_string_equal(result->error, "");
    /* without figures of their own: malloc_us */
    assert_int_equal(result->counters.time_ps, given ? (1 + 2 + 8 + 32 + 4 + 16 + 1) * US : 7 * 100 * US);
    rig_close(&r);
  }
}

/* A kernel runs on one mapping; another one goes meanwhile. A free would wait for the kernel. */
static void test_no_wait(void **state) {
  reader read = {PLACE(0), 2000, TRACE_LOAD};
  for (int paged = 0; paged < 2; paged++) {
    rig r;
    rig_open(&r, paged ? "replay" : "copy");
    r.spec.unmap_us = 5;
    r.spec.reserve_us = r.spec.create_us = r.spec.map_us = 0.001;
    rig_start(&r);
    rig_op(&r, (trace_op){.kind = TRACE_OP_STREAM_CREATE, .stream = 1, .stream_create = {1}});
    rig_op(&r, (trace_op){.kind = TRACE_OP_STREAM_CREATE, .stream = 2, .stream_create = {1}});
    reserve(&r, PLACE(0), 4 * PIECE);
    create(&r, 1, PIECE);
    create(&r, 2, PIECE);
    map(&r, PLACE(0), PIECE, 1);
    map(&r, PLACE(1), PIECE, 2);
    rig_launch(&r, (rig_kernel){.blocks = 1, .warps = 1, .stream = 1, .warp = read_lines, .context = &read});
    uint64_t over;
    uint32_t event = rig_record(&r, 1, &over);
    uint64_t unmapped = range(&r, TRACE_OP_UNMAP, PLACE(1), PIECE);
    rig_op(&r, (trace_op){.kind = TRACE_OP_SYNC_EVENT, .event = {event}});
    const sim_result *result = rig_finish(&r);
    assert_string_equal(result->error, "");
    uint64_t host = sim_host_time(r.sim, unmapped), kernel = sim_event_time(r.sim, over);
    if (paged) assert_int_equal(host, kernel + 5 * US);
    else assert_in_range(host, 5 * US, 5 * US + 100 * NS);
    assert_true(kernel > 100 * US);
    rig_close(&r);
  }
}

/* ---- memory ---- */

static const sim_result *created(rig *r, const char *manager, uint64_t gpu_memory) {
  rig_open(r, manager);
  r->gpu_memory = gpu_memory;
  rig_start(r);
  reserve(r, PLACE(0), 64 * PIECE);
  create(r, 1, 3 * PIECE);
  for (int i = 0; i < 4; i++) map(r, PLACE(i * 4), 3 * PIECE, 1); /* four times the same */
  release(r, 1);
  for (int i = 0; i < 4; i++) {
    if (i == 3) create(r, 2, PIECE); /* the first is still there, by its last mapping */
    range(r, TRACE_OP_UNMAP, PLACE(i * 4), 3 * PIECE);
  }
  create(r, 3, 3 * PIECE);
  return rig_finish(r);
}

static void test_counted_once(void **state) {
  rig r;
  const sim_result *result = created(&r, "copy", 4 * PIECE);
  assert_string_equal(result->error, "");
  assert_int_equal(result->counters.footprint_bytes, 4 * PIECE);
  rig_close(&r);
  result = created(&r, "copy", 4 * PIECE - 4096); /* neither more nor less */
  assert_non_null(strstr(result->error, "with memory the program has 8.00 MiB in use"));
  rig_close(&r);
  result = created(&r, "replay", 4 * PIECE); /* there a mapping is an allocation */
  assert_string_equal(result->error, "");
  assert_int_equal(result->counters.footprint_bytes, 12 * PIECE);
  rig_close(&r);
}

/* ---- what is cached ---- */

/* The second launch reads the same addresses: with the mapping kept it hits, after unmap and map it must miss. */
static void test_nothing_stale(void **state) {
  reader read = {PLACE(0), 64, TRACE_LOAD};
  uint64_t misses[2], walks[2];
  for (int remapped = 0; remapped < 2; remapped++) {
    rig r;
    rig_open(&r, "copy");
    r.spec.sm_count = 1;
    rig_start(&r);
    reserve(&r, PLACE(0), 4 * PIECE);
    create(&r, 1, PIECE);
    create(&r, 2, PIECE);
    map(&r, PLACE(0), PIECE, 1);
    launch(&r, &read, 4);
    rig_sync(&r);
    if (remapped) {
      range(&r, TRACE_OP_UNMAP, PLACE(0), PIECE);
      map(&r, PLACE(0), PIECE, 2);
    }
    launch(&r, &read, 4);
    const sim_result *result = rig_finish(&r);
    assert_string_equal(result->error, "");
    misses[remapped] = result->counters.dram_read_bytes;
    walks[remapped] = result->counters.walks;
    if (remapped) assert_true(result->counters.tlb_shootdowns > 0);
    assert_int_equal(result->allocation_count, 1); /* both mappings count for the addresses */
    assert_string_equal(result->allocations[0].name, "addresses");
    assert_int_equal(result->allocations[0].counters.accesses, 2 * 4 * 64);
    rig_close(&r);
  }
  assert_in_range(misses[1] - misses[0], 4 * 64 * 128, 4 * 64 * 128 + 4096); /* all lines again, and some page table */
  assert_int_equal(walks[0], 8);
  assert_int_equal(walks[1], 16);
}

/* ---- all managers, and any trace ---- */

static void test_managers(void **state) {
  uint32_t count;
  const sim_manager *all = sim_managers(&count);
  for (uint32_t m = 0; m < count; m++) {
    static reader reads[6];
    rig r;
    rig_open(&r, all[m].name);
    /* too little where pages move */
    r.gpu_memory = manager_find(all[m].name)->placement == MANAGER_PROGRAM ? 3 * PIECE : 2 * PIECE;
    r.spec.fault_batch_us = r.spec.fault_block_us = 1;
    rig_start(&r);
    reserve(&r, PLACE(0), 16 * PIECE);
    create(&r, 1, 2 * PIECE);
    create(&r, 2, PIECE);
    for (int i = 0; i < 6; i++) {
      uint64_t at = PLACE(i * 2 % 8);
      /* over the edge of two mappings, where there are two */
      reads[i] = (reader){at + PIECE - 64 * 128, 64, i % 2 ? TRACE_STORE : TRACE_LOAD};
      map(&r, at, 2 * PIECE, 1);
      map(&r, at + 2 * PIECE, PIECE, 2);
      rig_h2d(&r, at + PIECE, 2 * PIECE); /* into both */
      rig_launch(&r, (rig_kernel){.blocks = 4,
                                  .warps = 1,
                                  .warp = read_lines,
                                  .context = &reads[i],
                                  .use_count = 1,
                                  .uses = {{PLACE(0), 16 * PIECE}}});
      rig_set(&r, at, 3 * PIECE);
      rig_d2h(&r, at, 3 * PIECE);
      range(&r, TRACE_OP_UNMAP, at, 3 * PIECE); /* both at once */
    }
    const sim_result *result = rig_finish(&r);
    if (*result->error) fail_msg("%s: %s", all[m].name, result->error);
    assert_int_equal(result->counters.accesses, 6 * 4 * 64);
    rig_close(&r);
  }
}

/* A trace may say anything. */
static void test_nonsense(void **state) {
  static const char *const names[] = {"copy", "uvm", "segments", "ideal"};
  for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
    rig r;
    rig_open(&r, names[n]);
    rig_start(&r);
    release(&r, 1);
    range(&r, TRACE_OP_UNMAP, PLACE(0), PIECE);
    range(&r, TRACE_OP_UNRESERVE, PLACE(0), PIECE);
    map(&r, PLACE(0), PIECE, 9);                                                  /* of nothing, nowhere */
    map(&r, PLACE(0), PIECE, 9);                                                  /* over itself */
    rig_op(&r, (trace_op){.kind = TRACE_OP_FREE, .free = {.address = PLACE(0)}}); /* not so */
    reserve(&r, PLACE(0), 4 * PIECE);
    reserve(&r, PLACE(1), 4 * PIECE);
    create(&r, 5, PIECE);
    create(&r, 3, PIECE);
    create(&r, 5, PIECE);
    map(&r, PLACE(2), PIECE, 5);
    release(&r, 5);
    release(&r, 5);
    range(&r, TRACE_OP_UNRESERVE, PLACE(0), 4 * PIECE); /* with a mapping in it */
    range(&r, TRACE_OP_UNMAP, PLACE(0), 0);
    range(&r, TRACE_OP_UNMAP, PLACE(2) + 4096, PIECE);
    range(&r, TRACE_OP_UNMAP, PLACE(0), 16 * PIECE);
    map(&r, PLACE(2), 100, 5);
    const sim_result *result = rig_finish(&r);
    assert_string_equal(result->error, "");
    rig_close(&r);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_costs),         cmocka_unit_test(test_no_wait),  cmocka_unit_test(test_counted_once),
      cmocka_unit_test(test_nothing_stale), cmocka_unit_test(test_managers), cmocka_unit_test(test_nonsense),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
