/* SPDX-License-Identifier: Apache-2.0 */
/* Histories: bins against a naive model that remembers everything, lists, maps, and whole simulations whose bins must
 * add up to their counters, under every manager. */
#include "rig.h"

#include <stdlib.h>

static uint64_t random_state = 88172645463325252u;
static uint64_t next_random(uint64_t below) {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return random_state % below;
}

/* ---- bins ---- */

static uint64_t sum_of(const sim_history *h, history_series series) {
  uint64_t sum = 0;
  for (uint32_t bin = 0; bin < h->bins; bin++) sum += h->series[series][bin];
  return sum;
}

typedef struct remembered {
  uint64_t time, amount;
} remembered;
enum { REMEMBERED = 2000 };

static void amounts_are_in_the_bins_of_their_times(void **state) {
  static remembered all[REMEMBERED];
  for (int round = 0; round < 20; round++) {
    sim_history *h = history_create();
    uint64_t span = UINT64_C(1) << (10 + 2 * round), latest = 0, expected[HISTORY_BINS] = {0};
    for (int i = 0; i < REMEMBERED; i++) {
      all[i] = (remembered){next_random(span), 1 + next_random(1000)};
      if (latest < all[i].time) latest = all[i].time;
      history_add(h, HISTORY_accesses, all[i].time, all[i].amount);
    }
    assert_true(latest >> h->shift < HISTORY_BINS);
    /* no wider than need be */
    assert_true(h->shift == HISTORY_FIRST_SHIFT || latest >> (h->shift - 1) >= HISTORY_BINS);
    assert_int_equal(h->bins, (latest >> h->shift) + 1);
    for (int i = 0; i < REMEMBERED; i++) expected[all[i].time >> h->shift] += all[i].amount;
    assert_memory_equal(h->series[HISTORY_accesses], expected, sizeof expected);
    history_free(h);
  }
}

/* Shared out in proportion: no bin is off by more than a unit per piece, and nothing is lost, however often bins are
 * merged. */
static void what_takes_time_is_shared_out_over_it(void **state) {
  sim_history *h = history_create();
  double expected[HISTORY_BINS] = {0};
  static struct { uint64_t begin, end, amount; } all[300];
  uint64_t total = 0;
  for (int i = 0; i < 300; i++) {
    all[i].begin = next_random(UINT64_C(1) << (13 + i / 15));
    all[i].end = all[i].begin + next_random(UINT64_C(1) << (12 + i / 15));
    total += all[i].amount = next_random(1 << 20);
    history_spread(h, HISTORY_h2d_bytes, all[i].begin, all[i].end, all[i].amount);
  }
  assert_int_equal(sum_of(h, HISTORY_h2d_bytes), total);
  for (int i = 0; i < 300; i++)
    for (uint32_t bin = 0; bin < h->bins; bin++) {
      double low = (double)((uint64_t)bin << h->shift), high = (double)((uint64_t)(bin + 1) << h->shift),
             begin = (double)all[i].begin, end = (double)all[i].end;
      if (all[i].begin == all[i].end) expected[bin] += begin >= low && begin < high ? (double)all[i].amount : 0;
      else if (end > low && begin < high)
        expected[bin] +=
            (double)all[i].amount * ((end < high ? end : high) - (begin > low ? begin : low)) / (end - begin);
    }
  for (uint32_t bin = 0; bin < h->bins; bin++) {
    double off = (double)h->series[HISTORY_h2d_bytes][bin] - expected[bin];
    assert_true(off < 301 && off > -301);
  }
  history_free(h);
}

static void one_transfer_over_two_bins_is_split_at_the_edge(void **state) {
  sim_history *h = history_create();
  history_spread(h, HISTORY_h2d_bytes, 4096 - 100, 4096 + 300, 1000);
  assert_int_equal(h->series[HISTORY_h2d_bytes][0], 250);
  assert_int_equal(h->series[HISTORY_h2d_bytes][1], 750);
  history_free(h);
  h = history_create();
  history_spread(h, HISTORY_d2h_bytes, 0, 4096, 7); /* ends where the next begins: there is no next */
  assert_int_equal(h->series[HISTORY_d2h_bytes][0], 7);
  assert_int_equal(h->bins, 1);
  history_free(h);
}

/* The level at the end of each bin is that of the last change before it, however wide bins have become. */
static void levels_are_those_at_the_ends(void **state) {
  for (int round = 0; round < 50; round++) {
    sim_history *h = history_create();
    static remembered all[REMEMBERED];
    uint64_t now = 0, level = 0, step = UINT64_C(1) << (6 + round % 20);
    for (int i = 0; i < REMEMBERED; i++) {
      now += next_random(step);
      history_level(h, HISTORY_resident_bytes, now, level);
      level = next_random(1000);
      all[i] = (remembered){now, level};
      /* ahead: it may widen the bins */
      if (next_random(10) == 0) history_add(h, HISTORY_accesses, now + next_random(8 * step), 1);
    }
    sim_history *copy = history_copy_of(h, now + 1, level);
    int i = 0;
    for (uint32_t bin = 0; bin < copy->bins; bin++) {
      uint64_t end = (uint64_t)(bin + 1) << copy->shift;
      while (i + 1 < REMEMBERED && all[i + 1].time < end) i++;
      assert_int_equal(copy->series[HISTORY_resident_bytes][bin], all[0].time < end ? all[i].amount : 0);
    }
    history_free(copy);
    history_free(h);
  }
}

/* ---- lists ---- */

static void lists_end_at_the_limit_and_count_on(void **state) {
  sim_history *h = history_create();
  for (uint64_t i = 0; i < HISTORY_EVENTS + 7; i++) {
    history_note_kernel(h, (history_kernel){.begin = i, .end = i + 1});
    history_note_transfer(h, (history_transfer){.begin = 3 * i, .end = 3 * i + 1, .bytes = 1, .pieces = 1, .in = true});
  }
  assert_int_equal(h->kernels.count, HISTORY_EVENTS);
  assert_int_equal(h->kernels_left_out, 7);
  assert_int_equal(h->transfers.count, HISTORY_EVENTS);
  assert_int_equal(h->transfers_left_out, 7);
  history_free(h);
}

static void note(sim_history *h, uint64_t begin, uint64_t end, history_cause cause, bool in) {
  history_note_transfer(
      h, (history_transfer){.begin = begin, .end = end, .bytes = end - begin, .pieces = 1, .cause = cause, .in = in});
}

static history_range range(uint64_t number, uint64_t begin, const char *name) {
  history_range r = {.number = number, .begin = begin};
  strcpy(r.name, name);
  return r;
}

/* By their numbers; one that is not closed lasts to the end, and an end without a begin is nothing. */
static void ranges_end_by_their_numbers(void **state) {
  (void)state;
  sim_history *h = history_create();
  history_note_range(h, range(1, 10, "outer"));
  history_note_range(h, range(2, 20, "inner"));
  history_end_range(h, 7, 25);
  history_end_range(h, 2, 30);
  history_end_range(h, 2, 40);
  history_note_range(h, range(3, 50, "open"));
  history_end_range(h, 1, 60);
  sim_history *c = history_copy_of(h, 100, 0);
  assert_int_equal(c->ranges.count, 3);
  assert_string_equal(c->ranges.items[1].name, "inner");
  assert_int_equal(c->ranges.items[0].end, 60);
  assert_int_equal(c->ranges.items[1].end, 30);
  assert_int_equal(c->ranges.items[2].end, 100);
  history_free(c);
  for (uint64_t i = 4; i < 4 + HISTORY_EVENTS; i++) {
    history_note_range(h, range(i, 60 + i, "many"));
    history_end_range(h, i, 61 + i);
  }
  assert_int_equal(h->ranges.count, HISTORY_EVENTS);
  assert_int_equal(h->ranges_left_out, 3);
  history_free(h);
}

/* Of a profiled run those in which something was counted: here all but the first and the last. */
static void ranges_in_which_nothing_is_counted_are_left_out(void **state) {
  (void)state;
  sim_history *h = history_create();
  h->profiled = h->paused = true;
  history_note_range(h, range(1, 10, "before"));
  history_end_range(h, 1, 20);
  history_note_range(h, range(2, 30, "around"));
  history_pause(h, false);
  history_note_range(h, range(3, 40, "in"));
  history_end_range(h, 3, 50);
  history_note_range(h, range(4, 60, "out of it"));
  history_pause(h, true);
  history_end_range(h, 4, 70);
  history_end_range(h, 2, 80);
  history_note_range(h, range(5, 90, "behind"));
  sim_history *c = history_copy_of(h, 100, 0);
  assert_int_equal(c->ranges.count, 3);
  assert_string_equal(c->ranges.items[0].name, "around");
  assert_string_equal(c->ranges.items[1].name, "in");
  assert_string_equal(c->ranges.items[2].name, "out of it");
  history_free(c);
  history_free(h);
}

static void transfers_without_a_gap_are_one(void **state) {
  sim_history *h = history_create();
  note(h, 0, 10, HISTORY_CAUSE_FAULT, true);
  note(h, 10, 30, HISTORY_CAUSE_FAULT, true);
  note(h, 30, 40, HISTORY_CAUSE_PREFETCH, true);   /* another cause */
  note(h, 5, 20, HISTORY_CAUSE_WRITE_BACK, false); /* the other direction */
  note(h, 40, 50, HISTORY_CAUSE_PREFETCH, true);
  note(h, 51, 60, HISTORY_CAUSE_PREFETCH, true); /* a gap */
  sim_history *copy = history_copy_of(h, 0, 0);
  assert_int_equal(copy->transfers.count, 4);
  const history_transfer *t = copy->transfers.items; /* in order of begin */
  assert_true(t[0].begin == 0 && t[0].end == 30 && t[0].bytes == 30 && t[0].pieces == 2 && t[0].in);
  assert_true(t[1].begin == 5 && t[1].end == 20 && !t[1].in);
  assert_true(t[2].begin == 30 && t[2].end == 50 && t[2].pieces == 2);
  assert_true(t[3].begin == 51 && t[3].pieces == 1);
  history_free(copy);
  history_free(h);
}

/* ---- maps ---- */

static void a_map_has_at_most_64_rows_of_whole_pages(void **state) {
  static const struct {
    uint64_t address, bytes, first, row_bytes;
    uint32_t rows;
  } cases[] = {{RIG_BASE, 1, RIG_BASE, 4096, 1},
               {RIG_BASE + 256, 4096, RIG_BASE, 4096, 2},
               {RIG_BASE, 64 * 4096, RIG_BASE, 4096, 64},
               {RIG_BASE, 64 * 4096 + 1, RIG_BASE, 8192, 33},
               {RIG_BASE, UINT64_C(1) << 40, RIG_BASE, UINT64_C(1) << 34, 64}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    sim_history *h = history_create();
    const history_map *m = history_map_of(h, 3, 17, cases[i].address, cases[i].bytes);
    assert_true(m->address == cases[i].first && UINT64_C(1) << m->row_shift == cases[i].row_bytes);
    assert_int_equal(m->rows, cases[i].rows);
    assert_int_equal(m->allocation, 17);
    assert_ptr_equal(history_map_of(h, 3, 17, cases[i].address, cases[i].bytes), m);
    history_free(h);
  }
}

static void there_are_64_maps_and_no_more(void **state) {
  sim_history *h = history_create();
  for (uint32_t i = 1; i <= HISTORY_MAPS; i++) assert_non_null(history_map_of(h, 2 * i, i, RIG_BASE + i * 4096, 4096));
  assert_null(history_map_of(h, 999, 999, RIG_BASE, 4096));
  assert_non_null(history_map_of(h, 2, 1, RIG_BASE + 4096, 4096));
  history_free(h);
}

static void blocks_begin_where_arguments_pointed(void **state) {
  sim_history *h = history_create();
  assert_null(history_block_at(h, 3, 0));
  history_note_block(h, 3, 17, 4096, 5); /* the first: there is one from 0 on, too */
  history_note_block(h, 3, 17, 1024 + 127, 6);
  history_note_block(h, 3, 17, 4096 + 64, 7); /* in the same line */
  history_note_block(h, 1, 16, 0, 8);
  static const uint64_t edges[][2] = {{0, 0}, {1023, 0}, {1024, 1}, {4095, 1}, {4096, 2}, {UINT64_MAX, 2}};
  for (size_t i = 0; i < sizeof edges / sizeof *edges; i++)
    history_block_at(h, 3, edges[i][0])->accesses += 1u << 8 * edges[i][1];
  history_block_at(h, 3, 5000)->faults++;
  sim_history *copy = history_copy_of(h, 1, 0); /* of allocation 16 there is one: it is left out */
  static const history_block expected[] = {{.offset = 0, .accesses = 2, .allocation = 17, .kernel = 5},
                                           {.offset = 1024, .accesses = 2 << 8, .allocation = 17, .kernel = 6},
                                           {4096, 2 << 16, 1, 17, 5}};
  assert_int_equal(copy->blocks.count, 3);
  assert_memory_equal(copy->blocks.items, expected, sizeof expected);
  history_free(copy);
  for (uint64_t i = 0; i < 100; i++) history_note_block(h, 1, 16, i * 256, 9);
  assert_int_equal(h->blocks_left_out, 100 - HISTORY_BLOCKS);
  assert_int_equal(history_block_at(h, 1, 99 * 256)->offset, (HISTORY_BLOCKS - 1) * 256);
  history_free(h);
}

static void a_maps_cells_are_merged_with_the_bins(void **state) {
  sim_history *h = history_create();
  history_map *m = history_map_of(h, 1, 1, RIG_BASE, 3 * 4096);
  uint64_t expected[HISTORY_MAP_BINS][3] = {{0}};
  static struct {
    uint64_t time;
    uint32_t row;
  } all[REMEMBERED];
  for (int i = 0; i < REMEMBERED; i++) {
    all[i].time = next_random(UINT64_C(1) << (12 + i / 100));
    all[i].row = (uint32_t)next_random(3);
    history_cell_at(h, m, all[i].time, RIG_BASE + all[i].row * 4096 + next_random(4096))->accesses++;
  }
  for (int i = 0; i < REMEMBERED; i++) expected[all[i].time >> (h->shift + HISTORY_MAP_SHIFT)][all[i].row]++;
  for (uint32_t bin = 0; bin < HISTORY_MAP_BINS; bin++)
    for (uint32_t row = 0; row < 3; row++) assert_int_equal(m->cells[bin * 3 + row].accesses, expected[bin][row]);
  history_free(h);
}

/* ---- whole simulations ---- */

static void wander(trace_writer *w, uint64_t block, uint32_t warp, const void *context) {
  for (uint64_t i = 0; i < 12; i++) {
    uint64_t page = (block * 7 + warp * 3 + i * (1 + block % 5)) % 160;
    trace_put_issue(w, 10, 0, 0, 0);
    rig_access(w, i % 3 == 2 ? TRACE_STORE : TRACE_LOAD, 0, RIG_BASE + page * 4096 + block % 32 * 128, 15);
    trace_put_wait(w, 0);
  }
}

static void launch_some(rig *r) {
  rig_alloc(r, RIG_BASE, 100 * 4096 + 300, TRACE_MEMORY_DEVICE);
  rig_alloc(r, RIG_BASE + 110 * 4096, 60 * 4096, TRACE_MEMORY_MANAGED);
  rig_h2d(r, RIG_BASE, 80 * 4096);
  rig_set(r, RIG_BASE + 50 * 4096 + 10, 9000);
  for (int i = 0; i < 3; i++) {
    rig_launch(r, (rig_kernel){.blocks = 40,
                               .warps = 4,
                               .warp = wander,
                               .name = i == 1 ? "second" : "first",
                               .use_count = 2,
                               .uses = {{RIG_BASE, 100 * 4096 + 300}, {RIG_BASE + 110 * 4096, 60 * 4096}}});
    rig_sync(r);
    rig_op(r, (trace_op){.kind = TRACE_OP_HOST_TOUCH, .touch = {RIG_BASE + 110 * 4096, 20 * 4096, i == 1}});
  }
  rig_d2h(r, RIG_BASE, 70 * 4096);
}

static void check_sums(const sim_result *result, const sim_history *h) {
  const sim_counters *c = &result->counters;
#define SAME(name)                                                            \
  if (sum_of(h, HISTORY_##name) != c->name)                                   \
    fail_msg("%s: the bins of " #name " make %llu, not %llu", result->memory, \
             (unsigned long long)sum_of(h, HISTORY_##name), (unsigned long long)c->name);
  /* clang-format off */
  SAME(h2d_bytes) SAME(d2h_bytes) SAME(h2d_busy_ps) SAME(d2h_busy_ps) SAME(remote_bytes) SAME(accesses) SAME(faults) SAME(faults_merged)
  SAME(faults_throttled) SAME(refaults) SAME(host_faults) SAME(prefetched_bytes) SAME(prefetched_unused_bytes) SAME(evicted_bytes) SAME(written_back_bytes)
  SAME(kernel_ps)
/* clang-format on */
#undef SAME
              uint64_t carried[2] = {0};
  for (size_t i = 0; i < h->transfers.count; i++)
    if (h->transfers.items[i].cause != HISTORY_CAUSE_REMOTE)
      carried[h->transfers.items[i].in] += h->transfers.items[i].bytes;
  assert_int_equal(carried[1], c->h2d_bytes);
  assert_int_equal(carried[0], c->d2h_bytes);
  uint64_t peak = 0;
  for (uint32_t bin = 0; bin < h->bins; bin++)
    peak = h->series[HISTORY_resident_bytes][bin] > peak ? h->series[HISTORY_resident_bytes][bin] : peak;
  assert_true(peak <= c->resident_peak_bytes);
  assert_true((uint64_t)h->bins << h->shift >= c->time_ps);
}

static const sim_allocation_result *allocation_of(const sim_result *result, uint32_t id) {
  for (uint32_t i = 0; i < result->allocation_count; i++)
    if (result->allocations[i].id == id) return &result->allocations[i];
  fail_msg("a map's allocation %u is none of the run", id);
  return NULL;
}

static void check_maps(const sim_result *result, const sim_history *h, bool paged, bool whole_pages) {
  assert_int_equal(h->maps.count, 2);
  uint64_t rows_resident = 0;
  for (size_t i = 0; i < h->maps.count; i++) {
    const history_map *m = h->maps.items[i];
    const sim_counters *c = &allocation_of(result, m->allocation)->counters;
    uint64_t accesses = 0, faults = 0, evicted = 0;
    uint32_t last = (h->bins - 1) >> HISTORY_MAP_SHIFT;
    for (uint32_t cell = 0; cell < HISTORY_MAP_BINS * m->rows; cell++) {
      accesses += m->cells[cell].accesses;
      faults += m->cells[cell].faults;
      evicted += m->cells[cell].evicted_bytes;
    }
    assert_int_equal(accesses, c->accesses);
    assert_int_equal(faults, c->faults);
    assert_int_equal(evicted, c->evicted_bytes);
    assert_int_equal(m->resident != NULL, paged);
    for (uint32_t row = 0; m->resident && row < m->rows; row++) rows_resident += m->resident[last * m->rows + row];
  }
  if (whole_pages) assert_int_equal(rows_resident, h->series[HISTORY_resident_bytes][h->bins - 1]);
}

static void check_lists(const sim_result *result, const sim_history *h) {
  assert_int_equal(h->kernels.count, 3);
  assert_string_equal(result->kernels[h->kernels.items[1].kernel].name, "second");
  uint64_t time = 0;
  for (size_t i = 0; i < 3; i++) {
    const history_kernel *k = &h->kernels.items[i];
    assert_int_equal(k->launch, i);
    assert_int_equal(k->blocks, 40);
    assert_true(!i || k->begin >= k[-1].end);
    time += k->end - k->begin;
  }
  assert_int_equal(time, result->counters.kernel_ps); /* they do not overlap */
  assert_int_equal(h->copies.count, 3);
  assert_int_equal(h->copies.items[0].kind, HISTORY_COPY_H2D);
  assert_int_equal(h->copies.items[1].kind, HISTORY_COPY_SET);
  assert_int_equal(h->copies.items[2].kind, HISTORY_COPY_D2H);
  uint64_t faults = 0;
  for (size_t i = 0; i < h->batches.count; i++) faults += h->batches.items[i].faults;
  if (h->batches.count) assert_int_equal(faults, result->counters.faults);
}

static void check_manager(const char *name, double share) {
  rig r;
  rig_open(&r, name);
  r.history = true;
  r.gpu_memory_share = share;
  r.spec.host_fault_us = 1;
  rig_start(&r);
  launch_some(&r);
  const sim_result *result = rig_finish(&r);
  if (!result->error[0]) {
    sim_history *h = sim_history_take(r.sim);
    check_sums(result, h);
    check_lists(result, h);
    check_maps(result, h, is_paged(r.sim), is_paged(r.sim) && r.sim->pager->config.unit_bytes >= FF_PAGE_BYTES);
    history_free(h);
  }
  rig_close(&r);
}

static void the_bins_of_every_manager_add_up_to_its_counters(void **state) {
  uint32_t count;
  const sim_manager *list = sim_managers(&count);
  assert_true(count >= 15);
  for (uint32_t i = 0; i < count; i++) {
    check_manager(list[i].name, 0);
    check_manager(list[i].name, 0.5);
  }
}

static void nothing_is_kept_unless_it_is_asked_for(void **state) {
  rig r;
  rig_open(&r, "replay");
  rig_start(&r);
  launch_some(&r);
  rig_finish(&r);
  assert_null(sim_history_take(r.sim));
  rig_close(&r);
}

/* 64 KiB come for one far-fault: to the picosecond, by hand. */
static void read_one(trace_writer *w, uint64_t block, uint32_t warp, const void *context) {
  rig_load_wait(w, RIG_BASE);
}

static void a_far_fault_is_where_it_belongs(void **state) {
  rig r;
  rig_open(&r, "replay");
  r.history = true;
  r.unit_bytes = 65536;
  r.spec.fault_us = 1; /* the link takes longer: 65536 bytes at 16 GB/s are 4.096 us */
  rig_start(&r);
  rig_alloc(&r, RIG_BASE, 1 << 20, TRACE_MEMORY_DEVICE);
  rig_launch(&r, (rig_kernel){.blocks = 1, .warps = 1, .warp = read_one});
  const sim_result *result = rig_finish(&r);
  sim_history *h = sim_history_take(r.sim);
  assert_int_equal(h->transfers.count, 1);
  const history_transfer *t = h->transfers.items;
  assert_true(t->in && t->cause == HISTORY_CAUSE_FAULT && t->bytes == 65536 && t->end - t->begin == 4096 * NS);
  assert_int_equal(h->kernels.items[0].end, result->counters.time_ps);
  uint32_t fault_bin = (uint32_t)(t->begin >> h->shift);
  assert_int_equal(h->series[HISTORY_faults][fault_bin], 1);
  assert_int_equal(h->series[HISTORY_resident_bytes][fault_bin], 65536); /* on its way */
  assert_int_equal(h->maps.items[0]->cells[(fault_bin >> HISTORY_MAP_SHIFT) * h->maps.items[0]->rows].faults, 1);
  history_free(h);
  rig_close(&r);
}

/* The second allocation is where the first was: what it has there is not the first one's. */
static void a_freed_allocation_holds_nothing(void **state) {
  rig r;
  rig_open(&r, "replay");
  r.history = true;
  rig_start(&r);
  for (int i = 0; i < 2; i++) {
    rig_alloc(&r, RIG_BASE, 4096, TRACE_MEMORY_DEVICE);
    rig_launch(&r, (rig_kernel){.blocks = 1, .warps = 1, .warp = read_one});
    rig_sync(&r);
    if (!i) rig_op(&r, (trace_op){.kind = TRACE_OP_FREE, .free = {.address = RIG_BASE, .id = 1}});
  }
  rig_finish(&r);
  sim_history *h = sim_history_take(r.sim);
  assert_int_equal(h->maps.count, 2);
  uint32_t first_freed = (uint32_t)(h->kernels.items[0].end >> (h->shift + HISTORY_MAP_SHIFT)),
           last = (h->bins - 1) >> HISTORY_MAP_SHIFT;
  assert_true(first_freed < last);
  assert_int_equal(h->maps.items[0]->resident[first_freed - 1], 4096);
  assert_int_equal(h->maps.items[1]->resident[first_freed - 1], 0);
  assert_int_equal(h->maps.items[0]->resident[last], 0);
  assert_int_equal(h->maps.items[1]->resident[last], 4096);
  history_free(h);
  rig_close(&r);
}

/* Memory for one unit of two: the second of 64 KiB drives out the first, of which the map has 16 rows. */
static void read_both(trace_writer *w, uint64_t block, uint32_t warp, const void *context) {
  rig_load_wait(w, RIG_BASE + 40000 / 128 * 128);
  rig_load_wait(w, RIG_BASE + 65536 * 17);
}

static void an_evicted_unit_is_in_all_its_rows(void **state) {
  rig r;
  rig_open(&r, "replay");
  r.history = true;
  r.unit_bytes = 65536;
  r.gpu_memory = 16 * 65536;
  rig_start(&r);
  rig_alloc(&r, RIG_BASE, 65536, TRACE_MEMORY_DEVICE);
  rig_alloc(&r, RIG_BASE + 65536, 32 * 65536, TRACE_MEMORY_DEVICE);
  rig_launch(&r, (rig_kernel){.blocks = 1, .warps = 1, .warp = read_both});
  for (uint64_t i = 0; i < 16; i++) rig_set(&r, RIG_BASE + (1 + i) * 65536, 65536); /* takes all there is */
  const sim_result *result = rig_finish(&r);
  sim_history *h = sim_history_take(r.sim);
  const history_map *m = h->maps.items[0];
  assert_int_equal(m->rows, 16);
  assert_int_equal(result->allocations[0].counters.evicted_bytes, 65536);
  for (uint32_t row = 0; row < 16; row++) {
    uint64_t evicted = 0;
    for (uint32_t bin = 0; bin < HISTORY_MAP_BINS; bin++) evicted += m->cells[bin * m->rows + row].evicted_bytes;
    assert_int_equal(evicted, 4096);
  }
  history_free(h);
  rig_close(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(amounts_are_in_the_bins_of_their_times),
      cmocka_unit_test(what_takes_time_is_shared_out_over_it),
      cmocka_unit_test(one_transfer_over_two_bins_is_split_at_the_edge),
      cmocka_unit_test(levels_are_those_at_the_ends),
      cmocka_unit_test(lists_end_at_the_limit_and_count_on),
      cmocka_unit_test(ranges_end_by_their_numbers),
      cmocka_unit_test(ranges_in_which_nothing_is_counted_are_left_out),
      cmocka_unit_test(transfers_without_a_gap_are_one),
      cmocka_unit_test(a_map_has_at_most_64_rows_of_whole_pages),
      cmocka_unit_test(there_are_64_maps_and_no_more),
      cmocka_unit_test(blocks_begin_where_arguments_pointed),
      cmocka_unit_test(a_maps_cells_are_merged_with_the_bins),
      cmocka_unit_test(the_bins_of_every_manager_add_up_to_its_counters),
      cmocka_unit_test(nothing_is_kept_unless_it_is_asked_for),
      cmocka_unit_test(a_far_fault_is_where_it_belongs),
      cmocka_unit_test(a_freed_allocation_holds_nothing),
      cmocka_unit_test(an_evicted_unit_is_in_all_its_rows),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
