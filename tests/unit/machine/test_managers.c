/* SPDX-License-Identifier: Apache-2.0 */
/* Whole programs under each manager: what moves, what it costs, and that nothing is lost, counted twice or different
 * the second time. */
#include "rig.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../share.h"

#define PAGE(n) (RIG_BASE + (uint64_t)(n)*4096)
#define MANAGED (RIG_BASE + (UINT64_C(64) << 20))
#define PINNED (RIG_BASE + (UINT64_C(128) << 20))

#define EVERY (CHECKED_BUILD ? 3 : 1) /* under which managers the longest tests run whole programs */

typedef struct touch {
  uint64_t base;
  uint32_t pages;
  bool store;
} touch;
static void touch_pages(trace_writer *w, uint64_t b, uint32_t i, const void *context) {
  const touch *t = context;
  for (uint32_t p = 0; p < t->pages; p++) {
    if (t->store) rig_store(w, t->base + p * 4096);
    else rig_load_wait(w, t->base + p * 4096);
  }
}
static void launch_touch(rig *r, touch t) {
  rig_launch(r, (rig_kernel){.blocks = 1, .warps = 1, .warp = touch_pages, .context = &t});
}

static void begin(rig *r, const char *manager) {
  rig_open(r, manager);
  rig_start(r);
}

/* ---- the program's copies ---- */

static sim_counters in_work_out(const char *manager, bool store) {
  rig r;
  begin(&r, manager);
  rig_alloc(&r, PAGE(0), 100 * 4096, TRACE_MEMORY_DEVICE);
  rig_h2d(&r, PAGE(0), 100 * 4096);
  launch_touch(&r, (touch){PAGE(0), 10, store});
  rig_d2h(&r, PAGE(0), 100 * 4096);
  sim_counters c = rig_finish(&r)->counters;
  rig_close(&r);
  return c;
}

static void test_copies_under_each_manager(void **state) {
  for (int store = 0; store < 2; store++) {
    sim_counters copy = in_work_out("copy", store), ideal = in_work_out("ideal", store);
    assert_int_equal(copy.h2d_bytes, 100 * 4096);
    assert_int_equal(copy.d2h_bytes, 100 * 4096);
    assert_int_equal(copy.transfer_ps, 2 * 100 * 4096 * 1000 / 16);
    assert_int_equal(copy.time_ps, copy.transfer_ps + copy.kernel_ps);
    assert_int_equal(ideal.h2d_bytes + ideal.d2h_bytes, 0);
    assert_int_equal(ideal.time_ps, ideal.kernel_ps);
    assert_int_equal(ideal.kernel_ps, copy.kernel_ps);
    const char *paged[] = {"demand", "replay"};
    for (int m = 0; m < 2; m++) {
      sim_counters c = in_work_out(paged[m], store);
      assert_int_equal(c.faults, 10);
      assert_int_equal(c.h2d_bytes, 10 * 4096);             /* what the kernel touches, no more */
      assert_int_equal(c.d2h_bytes, store ? 10 * 4096 : 0); /* what it wrote */
      assert_int_equal(c.pages_moved_in, 10);
      assert_int_equal(c.pages_moved_out, store ? 10 : 0);
      assert_int_equal(c.host_faults, store ? 10 : 0);
      assert_int_equal(c.resident_peak_bytes, 10 * 4096);
      assert_int_equal(c.footprint_bytes, 100 * 4096);
    }
  }
}

/* A page that the host has written must come again; one that it has read and that was not written stays. */
static void test_pages_go_back_and_forth(void **state) {
  rig r;
  begin(&r, "replay");
  rig_alloc(&r, PAGE(0), 8 * 4096, TRACE_MEMORY_DEVICE);
  launch_touch(&r, (touch){PAGE(0), 4, false}); /* 4 in */
  rig_d2h(&r, PAGE(0), 8 * 4096);               /* clean: nothing comes back */
  launch_touch(&r, (touch){PAGE(0), 4, false}); /* still there */
  rig_h2d(&r, PAGE(0), 2 * 4096);               /* two are the CPU's now */
  launch_touch(&r, (touch){PAGE(0), 4, true});  /* 2 in, 4 dirty */
  rig_h2d(&r, PAGE(0), 100);                    /* part of a dirty page: it comes back first */
  rig_d2h(&r, PAGE(1), 1);                      /* one dirty page comes back */
  launch_touch(&r, (touch){PAGE(0), 4, false}); /* 2 in */
  const sim_counters *c = &rig_finish(&r)->counters;
  assert_int_equal(c->faults, 4 + 2 + 2);
  assert_int_equal(c->pages_moved_in, 8);
  assert_int_equal(c->pages_moved_out, 2);
  rig_close(&r);
}

static void test_set_writes_on_the_gpu(void **state) {
  const char *managers_[] = {"copy", "demand", "replay", "ideal"};
  for (int m = 0; m < 4; m++) {
    rig r;
    begin(&r, managers_[m]);
    rig_alloc(&r, PAGE(0), 10 * 4096 + 100, TRACE_MEMORY_DEVICE);
    rig_set(&r, PAGE(0), 10 * 4096 + 100); /* whole pages, the last one as far as it goes: nothing needs to come */
    launch_touch(&r, (touch){PAGE(0), 11, false});
    const sim_counters *c = &rig_finish(&r)->counters;
    assert_int_equal(c->faults, 0);
    assert_int_equal(c->h2d_bytes, 0);
    assert_near(c->time_ps - c->kernel_ps, (10 * 4096 + 100) * 1000.0 / 384, 1e-3); /* at GPU memory's bandwidth */
    rig_close(&r);
  }
}

static void test_copies_within_the_gpu(void **state) {
  const char *managers_[] = {"copy", "replay"};
  for (int m = 0; m < 2; m++) {
    rig r;
    begin(&r, managers_[m]);
    rig_alloc(&r, PAGE(0), 20 * 4096, TRACE_MEMORY_DEVICE);
    rig_copy(&r, TRACE_D2D, PAGE(10), PAGE(0), 10 * 4096, true, 0);
    launch_touch(&r, (touch){PAGE(0), 20, false});
    const sim_counters *c = &rig_finish(&r)->counters;
    assert_int_equal(c->d2d_bytes, 10 * 4096);
    assert_int_equal(c->faults, 0);
    assert_int_equal(c->h2d_bytes, m ? 10 * 4096 : 0); /* the source's pages came for it, in one transfer */
    rig_close(&r);
  }
}

static void test_pitched_copies(void **state) {
  rig r;
  begin(&r, "replay");
  rig_alloc(&r, PAGE(0), 64 * 4096, TRACE_MEMORY_DEVICE);
  launch_touch(&r, (touch){PAGE(0), 64, true});
  rig_op(&r, (trace_op){.kind = TRACE_OP_COPY,
                        .blocking = true,
                        .copy = {.to = 0x1000,
                                 .from = PAGE(0),
                                 .width = 100,
                                 .height = 16,
                                 .to_pitch = 100,
                                 .from_pitch = 4 * 4096,
                                 .direction = TRACE_D2H}});
  assert_int_equal(rig_finish(&r)->counters.pages_moved_out, 16); /* every fourth page */
  rig_close(&r);
}

/* ---- managed and pinned memory ---- */

static void test_managed_memory_moves_whole_under_copy(void **state) {
  rig r;
  begin(&r, "copy");
  rig_alloc(&r, MANAGED, 100 * 4096, TRACE_MEMORY_MANAGED);
  rig_alloc(&r, MANAGED + (1 << 20), 50 * 4096, TRACE_MEMORY_MANAGED);
  launch_touch(&r, (touch){MANAGED, 1, true});  /* both go in; one page of the first is written */
  launch_touch(&r, (touch){MANAGED, 1, true});  /* both are there */
  rig_sync(&r);                                 /* the first comes back, whole */
  launch_touch(&r, (touch){MANAGED, 1, false}); /* the host may have written both */
  rig_sync(&r);                                 /* no one wrote */
  const sim_counters *c = &rig_finish(&r)->counters;
  assert_int_equal(c->h2d_bytes, 2 * 150 * 4096);
  assert_int_equal(c->d2h_bytes, 100 * 4096);
  assert_int_equal(c->transfer_ps, (2 * 150 + 100) * 4096 * 1000 / 16);
  assert_int_equal(c->faults, 0);
  rig_close(&r);
}

static void host_touch(rig *r, uint64_t address, uint64_t bytes, bool write) {
  rig_op(r, (trace_op){.kind = TRACE_OP_HOST_TOUCH, .touch = {address, bytes, write}});
}

static void test_recorded_touches(void **state) {
  const char *managers_[] = {"copy", "replay"};
  for (int m = 0; m < 2; m++) {
    rig r;
    begin(&r, managers_[m]);
    rig_alloc(&r, MANAGED, 100 * 4096, TRACE_MEMORY_MANAGED);
    host_touch(&r, MANAGED, 100 * 4096, true);
    launch_touch(&r, (touch){MANAGED, 10, true});
    rig_sync(&r);
    host_touch(&r, MANAGED, 3 * 4096, false);
    launch_touch(&r, (touch){MANAGED, 10, false});
    rig_sync(&r);
    host_touch(&r, MANAGED, 4096, true);
    launch_touch(&r, (touch){MANAGED, 10, true});
    host_touch(&r, MANAGED, 4096, true); /* without waiting: under `copy` it waits for the kernel and the allocation */
    rig_sync(&r);
    const sim_counters *c = &rig_finish(&r)->counters;
    /* reads alone do not send it again; what is written in part comes back first */
    assert_int_equal(c->h2d_bytes, m ? (10 + 3 + 1) * 4096 : 2 * 100 * 4096);
    assert_int_equal(c->d2h_bytes, m ? (3 + 1) * 4096 : 2 * 100 * 4096);
    rig_close(&r);
  }
}

static void test_pinned_memory_is_reached_over_the_link(void **state) {
  const char *managers_[] = {"copy", "demand", "replay", "ideal"};
  for (int m = 0; m < 4; m++) {
    rig r;
    rig_open(&r, managers_[m]);
    r.spec.link_latency_us = 2;
    rig_start(&r);
    rig_alloc(&r, PINNED, 100 * 4096, TRACE_MEMORY_PINNED);
    launch_touch(&r, (touch){PINNED, 10, false});
    const sim_counters *c = &rig_finish(&r)->counters;
    assert_int_equal(c->remote_bytes, m < 3 ? 10 * 128 : 0);
    assert_int_equal(c->faults, 0);
    assert_int_equal(c->footprint_bytes, 0);
    if (m < 3) assert_true(c->kernel_ps > 10 * (2 * US + 128 * 1000 / 16));
    rig_close(&r);
  }
}

static void reach(trace_writer *w, uint64_t block, uint32_t warp, const void *context) {
  const int *ways = context; /* bit 0: a load, bit 1: a store */
  if (*ways & 1) rig_load(w, PINNED);
  if (*ways & 2) rig_store(w, PINNED + 4096);
}

/* With one place for each a load and a store, which use different directions of the link, are over when the longer one
 * is. */
static void test_loads_and_stores_over_the_link_have_places_of_their_own(void **state) {
  ps times[4];
  for (int ways = 1; ways < 4; ways++) {
    rig r;
    rig_open(&r, "copy");
    r.spec.link_latency_us = 2;
    r.spec.l1_mshrs = 1;
    rig_start(&r);
    rig_alloc(&r, PINNED, 100 * 4096, TRACE_MEMORY_PINNED);
    rig_launch(&r, (rig_kernel){.blocks = 1, .warps = 1, .warp = reach, .context = &ways});
    times[ways] = rig_finish(&r)->counters.kernel_ps;
    rig_close(&r);
  }
  assert_true(times[1] > 2 * US && times[2] > 2 * US);
  assert_true(times[3] < 3 * US);
}

static void test_prefetch_operations(void **state) {
  rig r;
  begin(&r, "replay");
  rig_alloc(&r, MANAGED, 100 * 4096, TRACE_MEMORY_MANAGED);
  rig_op(&r, (trace_op){.kind = TRACE_OP_PREFETCH, .hint = {MANAGED, 100 * 4096, 0, 0}});
  launch_touch(&r, (touch){MANAGED, 100, true});
  rig_op(&r, (trace_op){.kind = TRACE_OP_PREFETCH, .hint = {MANAGED, 50 * 4096, 0, -1}});
  rig_op(&r, (trace_op){.kind = TRACE_OP_ADVISE, .hint = {MANAGED, 50 * 4096, 1, 0}});
  const sim_counters *c = &rig_finish(&r)->counters;
  assert_int_equal(c->faults, 0);
  assert_int_equal(c->h2d_bytes, 100 * 4096);
  assert_int_equal(c->d2h_bytes, 50 * 4096);
  rig_close(&r);
}

/* ---- too much ---- */

/* More than fits: copy refuses, the others evict, ideal knows no limit. */
static void test_memory_too_small(void **state) {
  for (const manager *const *m = managers; *m; m++) {
    rig r;
    rig_open(&r, (*m)->name);
    r.gpu_memory = 4 << 20;
    r.spec.fault_us = 1;
    rig_start(&r);
    rig_alloc(&r, PAGE(0), 3 << 20, TRACE_MEMORY_DEVICE);
    rig_alloc(&r, PINNED, 4 << 20, TRACE_MEMORY_PINNED); /* takes none of it */
    launch_touch(&r, (touch){PAGE(0), 700, true});
    rig_alloc(&r, PAGE(1024), (3 << 20) + 1, TRACE_MEMORY_MANAGED);
    launch_touch(&r, (touch){PAGE(1024), 700, true});
    launch_touch(&r, (touch){PAGE(0), 700, false});
    rig_d2h(&r, PAGE(1024), 700 * 4096);
    rig_sync(&r);
    rig_op(&r, (trace_op){.kind = TRACE_OP_FREE, .free = {.address = PAGE(1024)}});
    const sim_result *result = rig_finish(&r);
    const sim_counters *c = &result->counters;
    bool paged = (*m)->placement == MANAGER_PAGED, copies = (*m)->placement == MANAGER_PROGRAM;
    if (copies) {
      assert_non_null(strstr(result->error, "array #3"));
      assert_non_null(strstr(result->error, "4.00 MiB"));
      assert_non_null(strstr(result->error, (*m)->name));
    } else {
      assert_string_equal(result->error, "");
    }
    assert_int_equal(c->launches, copies ? 1 : 3);
    if (paged && (*m)->reaches) { /* what does not fit is reached where it is */
      assert_true(c->faults == 0 && c->remote_bytes > 0 && c->resident_peak_bytes <= 4 << 20);
    } else if (paged) {
      assert_true(c->evicted_bytes >= 376 * 4096 && c->refaults > 0 && c->resident_peak_bytes <= 4 << 20);
      assert_true(c->written_back_bytes > 0 && c->written_back_bytes <= c->evicted_bytes);
      /* all of the second array, evicted or asked for */
      assert_true(c->d2h_bytes >= 700 * ((*m)->unit_bytes && (*m)->unit_bytes < 4096 ? (*m)->unit_bytes : 4096));
    } else {
      assert_int_equal(c->evicted_bytes + c->refaults + c->prefetched_bytes, 0);
    }
    assert_int_equal(trace_program_usage(r.program).memory_bytes, 0); /* what was not simulated was given back */
    rig_close(&r);
  }
}

static void test_just_enough_memory(void **state) {
  rig r;
  rig_open(&r, "replay");
  r.gpu_memory = 1 << 20;
  rig_start(&r);
  for (int round = 0; round < 3; round++) {
    rig_alloc(&r, PAGE(0), 1 << 20, TRACE_MEMORY_DEVICE);
    launch_touch(&r, (touch){PAGE(0), 256, true});
    rig_op(&r, (trace_op){.kind = TRACE_OP_FREE, .free = {.address = PAGE(0)}});
  }
  const sim_result *result = rig_finish(&r);
  assert_string_equal(result->error, "");
  assert_int_equal(result->counters.resident_peak_bytes, 1 << 20);
  assert_int_equal(result->counters.faults, 3 * 256); /* a new allocation is new memory */
  rig_close(&r);
}

static void test_unknown_manager_and_bad_machines(void **state) {
  trace_program *program = trace_program_create(0);
  machine_spec spec = rig_spec();
  sim *s = NULL;
  ff_error error;
  sim_options options = {.spec = &spec, .manager = "magic"};
  assert_int_equal(sim_create(program, &options, &s, &error), FF_NOT_FOUND);
  assert_non_null(strstr(error.message, "copy, demand, replay, "));
  options.manager = "copy";
  spec.page_bytes = 5000;
  assert_int_equal(sim_create(program, &options, &s, &error), FF_INVALID);
  spec.page_bytes = 4096;
  spec.fault_page_bytes = 4 << 20;
  assert_int_equal(sim_create(program, &options, &s, &error), FF_INVALID);
  uint32_t count;
  const sim_manager *list = sim_managers(&count);
  for (uint32_t i = 0; i < count; i++) assert_string_equal(list[i].name, managers[i]->name);
  assert_null(managers[count]);
  assert_string_equal(list[2].name, "replay");
  trace_program_free(program);
}

/* ---- a whole program with everything in it ---- */

static void mixed(trace_writer *w, uint64_t b, uint32_t i, const void *context) {
  uint64_t seed = (b * 8 + i) * UINT64_C(0x9e3779b97f4a7c15);
  trace_put_issue(w, 20, 4, 2, 1);
  for (int n = 0; n < 12; n++) {
    seed ^= seed >> 29;
    seed *= UINT64_C(0xbf58476d1ce4e5b9);
    uint32_t lines = 1 + seed % 8;
    uint64_t *at =
        trace_put_access(w, (trace_access_op)(seed >> 8 & 3), 2, TRACE_RETURNS * (seed >> 12 & 1), 0, ~0u, lines);
    for (uint32_t l = 0; l < lines; l++) {
      uint64_t array = seed >> 16 & 7, offset = (seed >> 20) % 4000 * 512 + l * 4096;
      uint64_t base = array < 3 ? MANAGED : RIG_BASE;
      if (array == 0) base = PINNED;
      at[l] = trace_line(base + offset, 4, 1 + l);
    }
    trace_put_issue(w, 5, 0, 0, 0);
    if (n % 3 == 0) trace_put_wait(w, seed >> 40 & 3);
    if (n % 4 == 1) trace_put_spill(w, n < 6, 1 + n % 4, 15, 4 * (seed >> 44 & 15), (uint32_t)n);
    if (n == 6) trace_put_barrier(w, 0, false, 8);
  }
}

static void everything(rig *r) {
  rig_alloc(r, RIG_BASE, 4 << 20, TRACE_MEMORY_DEVICE);
  rig_alloc(r, MANAGED, 4 << 20, TRACE_MEMORY_MANAGED);
  rig_alloc(r, PINNED, 4 << 20, TRACE_MEMORY_PINNED);
  rig_op(r, (trace_op){.kind = TRACE_OP_STREAM_CREATE, .stream = 1});
  rig_op(r, (trace_op){.kind = TRACE_OP_STREAM_CREATE, .stream = 2, .stream_create = {TRACE_STREAM_NON_BLOCKING}});
  rig_h2d(r, RIG_BASE, 4 << 20);
  for (uint32_t i = 0; i < 6; i++) {
    uint64_t sequence;
    char name[16];
    snprintf(name, sizeof name, "kernel_%u", i % 2);
    rig_launch(r,
               (rig_kernel){.blocks = 40, .warps = 8, .stream = i % 3, .warp = mixed, .registers = 20, .name = name});
    uint32_t event = rig_record(r, i % 3, &sequence);
    rig_op(r, (trace_op){.kind = TRACE_OP_STREAM_WAIT, .stream = (i + 1) % 3, .event = {event}});
    if (i == 2) rig_copy(r, TRACE_D2H, 0x1000, RIG_BASE + (1 << 20), 1 << 20, false, 1);
    if (i == 3) rig_copy(r, TRACE_D2D, RIG_BASE, RIG_BASE + (1 << 20), 1 << 19, false, 0);
    if (i == 4) rig_op(r, (trace_op){.kind = TRACE_OP_SYNC_EVENT, .event = {event}});
  }
  rig_set(r, RIG_BASE + 100, 1 << 20);
  rig_sync(r);
  rig_d2h(r, RIG_BASE, 4 << 20);
}

static const char *page; /* that TLB entries map */

static sim_result run_everything(const char *manager, uint64_t budget) {
  rig r;
  rig_open(&r, manager);
  r.page = page;
  r.spec.l2_tlb_entries = 32;
  r.spec.l2_tlb_ways = 4;
  r.spec.l2_tlb_latency = 10;
  r.budget = budget;
  r.spec.api_us = r.spec.launch_us = r.spec.sync_us = 1;
  r.spec.fault_us = 2;
  r.spec.l2_bytes = 192 << 10; /* so that dirty lines leave it */
  const struct manager *m = manager_find(manager);
  if (m->placement == MANAGER_PAGED) r.gpu_memory = m->whole_blocks ? 4 << 20 : 15 << 18; /* the kernels touch 4 MiB */
  rig_start(&r);
  everything(&r);
  rig_finish(&r);
  if (budget) assert_true(trace_program_usage(r.program).spilled_bytes > 0);
  assert_int_equal(trace_program_usage(r.program).memory_bytes, 0);
  sim_result result = r.result;
  memset(&r.result, 0, sizeof r.result);
  rig_close(&r);
  return result;
}

static void assert_same(const sim_result *a, const sim_result *b) {
  assert_memory_equal(&a->counters, &b->counters, sizeof a->counters);
  assert_int_equal(a->kernel_count, b->kernel_count);
  assert_int_equal(a->allocation_count, b->allocation_count);
  for (uint32_t i = 0; i < a->kernel_count; i++)
    assert_memory_equal(&a->kernels[i].counters, &b->kernels[i].counters, sizeof(sim_counters));
  for (uint32_t i = 0; i < a->allocation_count; i++)
    assert_memory_equal(&a->allocations[i].counters, &b->allocations[i].counters, sizeof(sim_counters));
}

static void test_the_same_twice_and_from_the_file(void **state) {
  for (int m = 0; managers[m]; m++) {
    if (m % EVERY) continue;
    const char *name = managers[m]->name;
    sim_result first = run_everything(name, 0), second = run_everything(name, 0), spilled = run_everything(name, 4096);
    assert_same(&first, &second);
    assert_same(&first, &spilled);
    sim_result_free(&first);
    sim_result_free(&second);
    sim_result_free(&spilled);
  }
}

static void test_totals_are_the_sum_of_their_parts(void **state) {
  for (int m = 0; managers[m]; m++) {
    if (m % EVERY) continue;
    sim_result r = run_everything(managers[m]->name, 0);
    assert_int_equal(r.kernel_count, 2);
    assert_int_equal(r.allocation_count, 4); /* and what lies in none: spills */
    sim_counters kernels = {0}, allocations = {0};
    for (uint32_t i = 0; i < r.kernel_count; i++) {
#define X(name, unit, help) kernels.name += r.kernels[i].counters.name;
#include "machine/observe/counters.def"
#undef X
    }
    for (uint32_t i = 0; i < r.allocation_count; i++) {
#define X(name, unit, help) allocations.name += r.allocations[i].counters.name;
#include "machine/observe/counters.def"
#undef X
    }
    assert_int_equal(kernels.warp_instructions, UINT64_C(6) * 40 * 8 * (20 + 12 * 5));
    assert_int_equal(kernels.blocks, 240);
    assert_int_equal(kernels.launches, 6);
    assert_int_equal(kernels.accesses, 6 * 40 * 8 * 12);
    assert_int_equal(r.counters.launches, 6);
#define SAME(name)                                 \
  assert_int_equal(r.counters.name, kernels.name); \
  assert_int_equal(r.counters.name, allocations.name);
    /* clang-format off */
    SAME(accesses) SAME(load_accesses) SAME(store_accesses) SAME(atomic_accesses) SAME(lines) SAME(sectors) SAME(l1_hits) SAME(l1_misses)
    SAME(l2_hits) SAME(l2_misses) SAME(dram_read_bytes) SAME(dram_write_bytes) SAME(dram_row_hits) SAME(dram_row_misses)
    SAME(tlb_lookups) SAME(tlb_misses) SAME(walks) SAME(walk_cache_hits) SAME(faults) SAME(faults_merged) SAME(faults_throttled)
    SAME(fault_wait_ps) SAME(remote_bytes) SAME(spill_stores) SAME(spill_loads)
/* clang-format on */
#undef SAME
                        assert_int_equal(r.counters.h2d_bytes, allocations.h2d_bytes);
    assert_int_equal(r.counters.d2h_bytes, allocations.d2h_bytes);
    assert_int_equal(r.counters.pages_moved_in, allocations.pages_moved_in);
    assert_int_equal(r.counters.pages_moved_out, allocations.pages_moved_out);
    assert_true(r.counters.transfer_ps <= r.counters.h2d_busy_ps + r.counters.d2h_busy_ps);
    assert_true(r.counters.transfer_ps >= r.counters.h2d_busy_ps && r.counters.transfer_ps >= r.counters.d2h_busy_ps);
    assert_true(r.counters.kernel_ps <= r.counters.time_ps && r.counters.transfer_ps <= r.counters.time_ps);
    sim_result_free(&r);
  }
}

/* The host and a kernel take a page from each other: throttled, at last pinned. The kernel is the first to touch it,
 * the host that of another one. */
static sim_result run_ping_pong(void) {
  rig r;
  rig_open(&r, "uvm");
  r.spec.first_touch_moves = 0;
  rig_start(&r);
  rig_op(&r, (trace_op){.kind = TRACE_OP_HOST_TOUCH}); /* of nothing: touches are recorded */
  rig_alloc(&r, MANAGED, 4096, TRACE_MEMORY_MANAGED);
  rig_alloc(&r, MANAGED + 4096, 4096, TRACE_MEMORY_MANAGED);
  host_touch(&r, MANAGED + 4096, 4096, true);
  for (int i = 0; i < 40; i++) {
    launch_touch(&r, (touch){MANAGED, 1, true});
    rig_sync(&r);
    host_touch(&r, MANAGED, 4096, true);
  }
  sim_result result = *rig_finish(&r);
  r.result = (sim_result){0};
  rig_close(&r);
  return result;
}

/* Whatever pages the TLBs map: nothing is lost (the checks), and everything that is counted above them is the same or
 * was slowed. */
static void test_pages_of_all_sizes(void **state) {
  static const char *const pages[] = {"4K", "64K", "2M", "auto"};
  for (int m = 0; managers[m]; m++) {
    if (m % EVERY) continue;
    uint64_t misses[4];
    for (int i = 0; i < 4; i++) {
      page = pages[i];
      sim_result r = run_everything(managers[m]->name, 0);
      assert_int_equal(r.counters.warp_instructions, UINT64_C(6) * 40 * 8 * (20 + 12 * 5));
      misses[i] = r.counters.tlb_misses;
      sim_result_free(&r);
    }
    assert_true(misses[2] <= misses[1] && misses[1] <= misses[0]);
    assert_true(misses[3] <= misses[0]);
  }
  page = NULL;
}

/* Every counter counts in some run. */
static void test_all_counters_count(void **state) {
  sim_counters sum = {0};
  for (int m = -1; m < 0 || managers[m]; m++) {
    sim_result r = m < 0 ? run_ping_pong() : run_everything(managers[m]->name, 0);
#define X(name, unit, help) sum.name += r.counters.name;
#include "machine/observe/counters.def"
#undef X
    sim_result_free(&r);
  }
#define X(name, unit, help) \
  if (!sum.name) fail_msg("the counter %s never counts", #name);
#include "machine/observe/counters.def"
#undef X
}

/* ---- the oracle, in a whole simulation ---- */

static void lose_a_write(void) {
  rig r;
  begin(&r, "replay");
  rig_alloc(&r, PAGE(0), 4096, TRACE_MEMORY_DEVICE);
  rig_set(&r, PAGE(0), 4096);
  launch_touch(&r, (touch){PAGE(0), 1, false});
  rig_op(&r, (trace_op){.kind = TRACE_OP_END});
  host_process(&r.sim->host, trace_reader_next_op(r.sim->reader)); /* the allocation */
  host_process(&r.sim->host, trace_reader_next_op(r.sim->reader)); /* the set */
  pager_break_for_test(r.sim->pager, PAGE(0));
  sim_run(r.sim);
}
static void lose_nothing(void) {
  rig r;
  begin(&r, "replay");
  rig_alloc(&r, PAGE(0), 4096, TRACE_MEMORY_DEVICE);
  rig_set(&r, PAGE(0), 4096);
  launch_touch(&r, (touch){PAGE(0), 1, false});
  rig_finish(&r);
}
static int signal_of(void (*function)(void)) {
  fflush(NULL);
  pid_t child = fork();
  if (!child) {
    signal(SIGABRT, SIG_DFL);
    ff_check_level = 1;
    if (!freopen("/dev/null", "w", stderr)) _exit(1);
    function();
    _exit(0);
  }
  int status;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void test_the_oracle_sees_a_lost_write(void **state) {
  assert_int_equal(signal_of(lose_nothing), 0);
  assert_int_equal(signal_of(lose_a_write), SIGABRT);
}

/* ---- what holds at a program's end ---- */

static enum { KEEP_NOTHING, KEEP_BYTES, KEEP_THREADS, KEEP_A_PLACE, KEEP_A_DECLARATION } kept;

static void keep(void) {
  rig r;
  ff_check_level = 2;
  begin(&r, "replay");
  rig_alloc(&r, PAGE(0), 4096, TRACE_MEMORY_DEVICE);
  launch_touch(&r, (touch){PAGE(0), 1, false});
  if (kept == KEEP_BYTES) r.sim->link.moved[1] = 1;
  if (kept == KEEP_THREADS) r.sim->sms[1].threads = 32;
  if (kept == KEEP_A_PLACE) slots_hold(&r.sim->sms[1].stores, UINT64_MAX);
  if (kept == KEEP_A_DECLARATION) r.sim->pager->used_allocations++;
  rig_finish(&r);
  rig_close(&r);
}

static void test_what_is_not_released_is_seen(void **state) {
  for (kept = KEEP_NOTHING; kept <= KEEP_A_DECLARATION; kept++)
    assert_int_equal(signal_of(keep), kept == KEEP_NOTHING ? 0 : SIGABRT);
}

/* ---- many small things ---- */

static void test_allocations_without_end(void **state) {
  rig r;
  begin(&r, "copy");
  for (int i = 0; i < 10000; i++) {
    rig_alloc(&r, PAGE(0), 4096, TRACE_MEMORY_DEVICE);
    rig_op(&r, (trace_op){.kind = TRACE_OP_FREE, .free = {.address = PAGE(0)}});
  }
  const sim_result *result = rig_finish(&r);
  /* without "(no allocation)", with one for the rest */
  assert_int_equal(result->allocation_count, ALLOCATIONS_SHOWN + 1 - 1);
  assert_int_equal(result->counters.footprint_bytes, 4096);
  rig_close(&r);
}

static void test_accesses_outside_of_all_allocations(void **state) {
  rig r;
  begin(&r, "replay");
  launch_touch(&r, (touch){PAGE(0), 10, true});
  const sim_result *result = rig_finish(&r);
  assert_int_equal(result->counters.faults, 0);
  assert_int_equal(result->allocation_count, 1);
  assert_string_equal(result->allocations[0].name, "(no allocation)");
  assert_int_equal(result->allocations[0].counters.accesses, 10);
  rig_close(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_copies_under_each_manager),
      cmocka_unit_test(test_pages_go_back_and_forth),
      cmocka_unit_test(test_set_writes_on_the_gpu),
      cmocka_unit_test(test_copies_within_the_gpu),
      cmocka_unit_test(test_pitched_copies),
      cmocka_unit_test(test_managed_memory_moves_whole_under_copy),
      cmocka_unit_test(test_recorded_touches),
      cmocka_unit_test(test_pinned_memory_is_reached_over_the_link),
      cmocka_unit_test(test_loads_and_stores_over_the_link_have_places_of_their_own),
      cmocka_unit_test(test_prefetch_operations),
      cmocka_unit_test(test_memory_too_small),
      cmocka_unit_test(test_just_enough_memory),
      cmocka_unit_test(test_unknown_manager_and_bad_machines),
      cmocka_unit_test(test_the_same_twice_and_from_the_file),
      cmocka_unit_test(test_totals_are_the_sum_of_their_parts),
      cmocka_unit_test(test_all_counters_count),
      cmocka_unit_test(test_pages_of_all_sizes),
      cmocka_unit_test(test_the_oracle_sees_a_lost_write),
      cmocka_unit_test(test_what_is_not_released_is_seen),
      cmocka_unit_test(test_allocations_without_end),
      cmocka_unit_test(test_accesses_outside_of_all_allocations),
  };
  return cmocka_run_group_tests_name("managers", tests, NULL, NULL);
}
