/* SPDX-License-Identifier: Apache-2.0 */
/* Sampling: launches that repeat are skipped, and nothing but times and what caches count is another for it. Random
 * programs under every manager, with and without. */
#include "rig.h"
#include "trace/touched.h"
#include "unit/share.h"

#include <pthread.h>

enum { MIB = 1 << 20, PAGE = 4096, LAUNCHES = 60 };

typedef struct work { /* of one launch: every warp loads and stores in pages of its own choice */
  uint64_t seed, stores_seed, pages;
  uint32_t loads, stores;
  uint64_t base; /* bytes behind RIG_BASE */
} work;

static uint64_t next_random(uint64_t *state) {
  *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return *state >> 33;
}

static void worker(trace_writer *w, uint64_t block, uint32_t warp, const void *context) {
  const work *k = context;
  uint64_t state = k->seed ^ (block * 64 + warp) * UINT64_C(0x9e3779b97f4a7c15);
  for (uint32_t i = 0; i < k->loads; i++) {
    rig_issue(w, 10);
    rig_load_wait(w, RIG_BASE + k->base + next_random(&state) % k->pages * PAGE + next_random(&state) % 32 * 128);
  }
  state ^= k->stores_seed;
  for (uint32_t i = 0; i < k->stores; i++) {
    rig_issue(w, 5);
    rig_store(w, RIG_BASE + k->base + next_random(&state) % k->pages * PAGE);
  }
  rig_issue(w, 3);
}

static rig_kernel kernel_of(const work *w) {
  return (rig_kernel){.blocks = 20, .warps = 4, .warp = worker, .context = w};
}

/* ---- what repeats ---- */

static void same_counts(const sim_counters *a, const sim_counters *b) {
  assert_int_equal(a->launches, b->launches);
  assert_int_equal(a->blocks, b->blocks);
#define X(name) assert_int_equal(a->name, b->name);
  SAMPLE_COUNTS(X)
#undef X
}

static void repeat(rig *r, uint32_t sample, const work *w, uint32_t launches) {
  rig_open(r, "ideal");
  r->budget = launches == LAUNCHES ? 0 : 4096; /* all but a page of the stream is read from the temporary file */
  r->sample = sample;
  rig_start(r);
  rig_alloc(r, RIG_BASE, 4 * MIB, TRACE_MEMORY_DEVICE);
  for (uint32_t i = 0; i < launches; i++) rig_launch(r, kernel_of(w));
  rig_finish(r);
}

static void only_some_are_timed(void **state) {
  work w = {.seed = 1, .pages = 256, .loads = 8, .stores = 4};
  rig full, sampled;
  repeat(&full, 0, &w, LAUNCHES);
  repeat(&sampled, 3, &w, LAUNCHES);
  const sim_counters *a = &full.result.counters, *b = &sampled.result.counters;
  assert_false(full.result.sampling.chosen);
  assert_true(sampled.result.sampling.chosen);
  assert_int_equal(sampled.result.sampling.timed + sampled.result.sampling.estimated, LAUNCHES);
  /* the first finds an empty L2; three more are alike; then 8, 16, 32 are skipped with one timed between */
  assert_int_equal(sampled.result.sampling.timed, 4 + 2);
  assert_near(b->kernel_ps, a->kernel_ps, 0.01);
  assert_near(b->time_ps, a->time_ps, 0.01);
  assert_true(sampled.result.sampling.estimated_ps < b->kernel_ps);
  same_counts(a, b);
  assert_int_equal(full.result.allocation_count, sampled.result.allocation_count);
  for (uint32_t i = 0; i < full.result.allocation_count; i++) {
    assert_int_equal(full.result.allocations[i].counters.lines, sampled.result.allocations[i].counters.lines);
    assert_int_equal(full.result.allocations[i].counters.store_accesses,
                     sampled.result.allocations[i].counters.store_accesses);
  }
  rig_close(&full);
  rig_close(&sampled);
}

/* Of launches that find no L2 controls and these by turns, how many are timed: more of two kinds than of one. */
static uint64_t timed_by_turns(trace_l2_controls controls) {
  work w = {.seed = 1, .pages = 256, .loads = 8, .stores = 4};
  rig r;
  rig_open(&r, "ideal");
  r.sample = 3;
  rig_start(&r);
  rig_alloc(&r, RIG_BASE, 4 * MIB, TRACE_MEMORY_DEVICE);
  for (uint32_t i = 0; i < LAUNCHES; i++) {
    rig_kernel kernel = kernel_of(&w);
    if (i % 2) kernel.l2 = controls;
    rig_launch(&r, kernel);
  }
  uint64_t timed = rig_finish(&r)->sampling.timed;
  rig_close(&r);
  return timed;
}

static void controls_of_the_l2_are_of_a_kind(void **state) {
  const uint64_t one_kind = timed_by_turns((trace_l2_controls){0});
  assert_int_equal(timed_by_turns((trace_l2_controls){.resets = 1}), one_kind);
  assert_true(timed_by_turns((trace_l2_controls){.set_aside = MIB}) > one_kind);
  assert_true(timed_by_turns((trace_l2_controls){.address = RIG_BASE, .bytes = MIB, .share = TRACE_L2_SHARE}) >
              one_kind);
}

/* Allocations that meet within a page, one of them within a line's reach of the next: each has the counts of its own
 * accesses, whether launches are skipped or not. */
static void every_line(trace_writer *w, uint64_t block, uint32_t warp, const void *context) {
  for (uint64_t i = 0; i < 96; i++) {
    rig_issue(w, 10);
    if ((i + block + warp) % 3) rig_load_wait(w, RIG_BASE + i * 128);
    else rig_store(w, RIG_BASE + i * 128);
  }
}

static void allocations_meet_in_a_page(void **state) {
  static const char *const names[] = {"ideal", "replay", "uvm", "segments", "partial-multi"};
  for (uint32_t m = 0; m < sizeof names / sizeof *names; m++) {
    rig runs[2];
    for (uint32_t s = 0; s < 2; s++) {
      rig *r = &runs[s];
      rig_open(r, names[m]);
      r->sample = 3 * s;
      rig_start(r);
      rig_alloc(r, RIG_BASE, 1000, TRACE_MEMORY_MANAGED);
      rig_alloc(r, RIG_BASE + 1024, 256, TRACE_MEMORY_MANAGED);
      rig_alloc(r, RIG_BASE + 1280, 4096, TRACE_MEMORY_MANAGED);
      rig_alloc(r, RIG_BASE + 5376, 6912, TRACE_MEMORY_MANAGED);
      for (uint32_t i = 0; i < 30; i++) rig_launch(r, (rig_kernel){.blocks = 20, .warps = 4, .warp = every_line});
      rig_finish(r);
    }
    assert_true(runs[1].result.sampling.estimated > 10);
    assert_int_equal(runs[0].result.counters.faults, runs[1].result.counters.faults);
    for (uint32_t i = 0; i < 4; i++) {
      const sim_counters *a = &runs[0].result.allocations[i].counters, *b = &runs[1].result.allocations[i].counters;
      assert_true(a->lines > 0);
      assert_int_equal(a->accesses, b->accesses);
      assert_int_equal(a->load_accesses, b->load_accesses);
      assert_int_equal(a->store_accesses, b->store_accesses);
      assert_int_equal(a->lines, b->lines);
      assert_int_equal(a->sectors, b->sectors);
    }
    rig_close(&runs[0]);
    rig_close(&runs[1]);
  }
}

static void as_many_as_are_asked_for(void **state) {
  work w = {.seed = 1, .pages = 256, .loads = 8, .stores = 4};
  rig r;
  repeat(&r, 16, &w, 20);
  assert_int_equal(r.result.sampling.timed, 17);
  rig_close(&r);
}

/* Twice the work is another group, and is not estimated from the first. */
static void other_counts_are_another_group(void **state) {
  work less = {.seed = 1, .pages = 256, .loads = 8, .stores = 4}, more = {.seed = 1, .pages = 256, .loads = 16};
  rig r;
  rig_open(&r, "ideal");
  r.sample = 3;
  rig_start(&r);
  rig_alloc(&r, RIG_BASE, 4 * MIB, TRACE_MEMORY_DEVICE);
  for (int i = 0; i < 6; i++) rig_launch(&r, kernel_of(&less));
  for (int i = 0; i < 3; i++) rig_launch(&r, kernel_of(&more));
  rig_finish(&r);
  assert_int_equal(r.result.sampling.estimated, 2);
  rig_close(&r);
}

/* Times that differ by more than 3 % are no group to estimate from: the same counts, in few lines or in many. */
static void unsteady_times_are_not_estimated(void **state) {
  work near = {.seed = 1, .pages = 1, .loads = 8, .stores = 4},
       far = {.seed = 1, .pages = 1024, .loads = 8, .stores = 4};
  rig r;
  rig_open(&r, "ideal");
  r.sample = 3;
  r.l2_flush = true;
  rig_start(&r);
  rig_alloc(&r, RIG_BASE, 4 * MIB, TRACE_MEMORY_DEVICE);
  for (int i = 0; i < 30; i++) rig_launch(&r, kernel_of(i % 2 ? &near : &far));
  rig_finish(&r);
  assert_int_equal(r.result.sampling.estimated, 0);
  rig_close(&r);
}

/* Launches of two kinds of pages by turns, each `every`th of the second one: their times are some per cent apart. */
static void by_turns(rig *r, uint32_t sample, uint64_t pages, uint64_t other_pages, uint32_t every) {
  work one = {.seed = 1, .pages = pages, .loads = 8, .stores = 4}, other = one;
  other.pages = other_pages;
  rig_open(r, "ideal");
  r->sample = sample;
  rig_start(r);
  rig_alloc(r, RIG_BASE, 4 * MIB, TRACE_MEMORY_DEVICE);
  for (uint32_t i = 0; i < LAUNCHES; i++) rig_launch(r, kernel_of(i % every ? &one : &other));
  rig_finish(r);
}

/* Two times by turns, each within 3 % of their mean (they are 3.8 % apart), are estimated by that: six launches must
 * have shown it. */
static void two_times_by_turns_are_estimated(void **state) {
  rig full, sampled, more;
  by_turns(&full, 0, 121, 293, 2);
  by_turns(&sampled, 3, 121, 293, 2);
  by_turns(&more, 5, 121, 293, 2);
  assert_int_equal(sampled.result.sampling.timed, 8 + 2); /* the first two find an empty L2; 8 and 16 are skipped */
  assert_int_equal(more.result.sampling.timed, 12 + 2);
  assert_near(sampled.result.counters.kernel_ps, full.result.counters.kernel_ps, 0.005);
  same_counts(&sampled.result.counters, &full.result.counters);
  rig_close(&full);
  rig_close(&sampled);
  rig_close(&more);
}
static void other_patterns_are_not(void **state) {
  rig farther, thirds;
  by_turns(&farther, 3, 97, 151, 2); /* 7.0 % */
  by_turns(&thirds, 3, 121, 293, 3);
  assert_int_equal(farther.result.sampling.estimated, 0);
  assert_int_equal(thirds.result.sampling.estimated, 0);
  rig_close(&farther);
  rig_close(&thirds);
}

/* As launches do; waves of blocks do not. */
static void only_launches_take_turns(void **state) {
  (void)state;
  for (int turns = 0; turns < 2; turns++) {
    sampler s = {.needed = 3};
    sample_groups groups = {0};
    sample_group *g = NULL;
    const sample_counts counts = {.warp_instructions = 100};
    for (int i = 0; i < 12; i++) g = sample_timed(&s, &groups, &counts, i % 2 ? 1307 : 1267, turns);
    assert_int_equal(g->steady, turns);
    free(groups.items);
  }
}

/* Kernels of two streams that run at once are timed, all of them. */
static void what_overlaps_is_timed(void **state) {
  work w = {.seed = 1, .pages = 256, .loads = 8, .stores = 4};
  rig r;
  rig_open(&r, "ideal");
  r.sample = 3;
  rig_start(&r);
  rig_alloc(&r, RIG_BASE, 4 * MIB, TRACE_MEMORY_DEVICE);
  for (uint32_t s = 1; s <= 2; s++) rig_op(&r, (trace_op){.kind = TRACE_OP_STREAM_CREATE, .stream = s});
  for (uint32_t i = 0; i < 40; i++) {
    rig_kernel k = kernel_of(&w);
    k.stream = 1 + i % 2;
    rig_launch(&r, k);
  }
  rig_finish(&r);
  assert_int_equal(r.result.sampling.estimated, 0);
  rig_close(&r);
}

/* Blocks that were told their SMs run on these: all such launches are timed. */
static void launches_that_read_smid_are_timed(void **state) {
  work w = {.seed = 1, .pages = 256, .loads = 8, .stores = 4};
  rig r;
  rig_open(&r, "ideal");
  r.sample = 3;
  rig_start(&r);
  rig_alloc(&r, RIG_BASE, 4 * MIB, TRACE_MEMORY_DEVICE);
  for (uint32_t i = 0; i < 40; i++) {
    rig_kernel k = kernel_of(&w);
    k.smids = 2;
    rig_launch(&r, k);
  }
  rig_finish(&r);
  assert_int_equal(r.result.sampling.timed, 40);
  assert_int_equal(r.result.sampling.estimated, 0);
  rig_close(&r);
}

/* What a skipped launch wrote must come back to the host. Each launch has the same loads, and writes other pages. */
static void skipped_launches_write(void **state) {
  sim_counters counters[2];
  for (uint32_t s = 0; s < 2; s++) {
    work w[30];
    rig r;
    rig_open(&r, "replay");
    r.sample = 3 * s;
    rig_start(&r);
    rig_alloc(&r, RIG_BASE, 4 * MIB, TRACE_MEMORY_MANAGED);
    work all = {.seed = 9, .pages = 1024, .loads = 200};
    rig_launch(&r, kernel_of(&all)); /* everything comes */
    for (uint32_t i = 0; i < 30; i++) {
      w[i] = (work){.seed = 5, .stores_seed = i, .pages = 1024, .loads = 20, .stores = 1};
      rig_launch(&r, kernel_of(&w[i]));
    }
    rig_sync(&r);
    rig_op(&r, (trace_op){.kind = TRACE_OP_HOST_TOUCH, .touch = {RIG_BASE, 1024 * PAGE, false}});
    rig_finish(&r);
    if (s) assert_in_range(r.result.sampling.estimated, 15, 27);
    counters[s] = r.result.counters;
    rig_close(&r);
  }
  assert_true(counters[0].d2h_bytes > 64 * PAGE);
  assert_int_equal(counters[0].d2h_bytes, counters[1].d2h_bytes);
  assert_int_equal(counters[0].h2d_bytes, counters[1].h2d_bytes);
  assert_int_equal(counters[0].faults, counters[1].faults);
}

/* One kernel writes a buffer that the next one reads, and no two launches have the same one: a timed reader finds in
 * the L2 what a skipped writer has put there. */
typedef struct part {
  uint64_t first; /* page */
  bool reads;
} part;

static void passes_on(trace_writer *w, uint64_t block, uint32_t warp, const void *context) {
  const part *p = context;
  for (uint32_t i = 0; i < 16; i++) {
    uint64_t address = RIG_BASE + p->first * PAGE + ((block * 4 + warp) * 16 + i) * 128;
    rig_issue(w, 10);
    if (p->reads) rig_load_wait(w, address);
    else rig_store(w, address);
  }
}

static void skipped_launches_fill_the_l2(void **state) {
  enum { PAIRS = 150, PAGES = 40 };
  static part parts[2 * PAIRS];
  ps times[2];
  for (uint32_t s = 0; s < 2; s++) {
    rig r;
    rig_open(&r, "ideal");
    r.sample = 3 * s;
    r.spec.page_bytes = 2 * MIB; /* a table of few translations, which stay */
    rig_start(&r);
    rig_alloc(&r, RIG_BASE, UINT64_C(64) * MIB, TRACE_MEMORY_DEVICE);
    for (uint32_t i = 0; i < 2 * PAIRS; i++) {
      parts[i] = (part){.first = i / 2 * PAGES, .reads = i % 2};
      rig_launch(
          &r,
          (rig_kernel){
              .name = i % 2 ? "reader" : "writer", .blocks = 20, .warps = 4, .warp = passes_on, .context = &parts[i]});
    }
    rig_finish(&r);
    times[s] = r.result.counters.kernel_ps;
    if (s) assert_true(r.result.sampling.estimated > PAIRS);
    rig_close(&r);
  }
  assert_near(times[1], times[0], 0.01);
}

/* ---- launches without records (trace/touched.h): the simulation runs beside the program ---- */

static void *simulate(void *sim) {
  sim_run(sim);
  return NULL;
}

static bool never_meets(void *context, uint64_t page) { return false; }

/* What the kernel's records touch. */
static uint64_t read_footprint(const rig_kernel *k, footprint *f) {
  trace_program *program = trace_program_create(0);
  trace_reader *reader = trace_reader_create(program);
  trace_launch *launch = trace_launch_create(program, k->blocks, k->warps);
  uint64_t instructions = 0;
  trace_op_append(program, &(trace_op){.kind = TRACE_OP_LAUNCH, .launch = launch});
  const trace_op *op = trace_reader_next_op(reader);
  for (uint64_t b = 0; b < k->blocks; b++) {
    rig_block(launch, k, b);
    trace_chunk *chunk = trace_reader_chunk(reader, op->launch, b);
    footprint_block(f, b);
    for (uint32_t w = 0; w < k->warps; w++) {
      trace_cursor cursor;
      trace_cursor_open(reader, chunk, w, &cursor);
      for (const uint64_t *word; trace_word_kind(*(word = trace_cursor_next(reader, &cursor))) != TRACE_EXIT;) {
        if (trace_word_kind(*word) == TRACE_ACCESS) footprint_access(f, word);
        if (trace_word_kind(*word) == TRACE_ISSUE) instructions += trace_issue_count(*word);
      }
      trace_cursor_close(reader, &cursor);
    }
    trace_reader_release(reader, chunk);
  }
  trace_launch_finish(launch);
  trace_reader_free(reader);
  trace_op_append(program, &(trace_op){.kind = TRACE_OP_END});
  trace_program_free(program);
  return instructions;
}

/* As a program does that asks. true: the launch had no records. */
static bool launch_asking(rig *r, rig_kernel k) {
  trace_launch *l = trace_launch_create(r->program, k.blocks, k.warps);
  snprintf(l->kernel, sizeof l->kernel, "kernel");
  l->grid[0] = (uint32_t)k.blocks;
  l->block[0] = k.warps * 32;
  trace_launch_may_ask(l);
  rig_op(r, (trace_op){.kind = TRACE_OP_LAUNCH, .launch = l});
  bool touches = trace_launch_ask(l);
  if (touches) {
    footprint f;
    footprint_open(&f, never_meets, NULL);
    uint64_t instructions = read_footprint(&k, &f);
    trace_launch_touch(l, &f, instructions);
    footprint_free(&f);
  } else {
    for (uint64_t b = 0; b < k.blocks; b++) rig_block(l, &k, b);
  }
  trace_launch_finish(l);
  return touches;
}

/* LAUNCHES launches like w[0], but for one of them, which is like w[1] (other; LAUNCHES: none), while the simulation
 * runs; without[i]: launch i had no records. */
static void run_asking(rig *r, uint32_t sample, const work w[2], uint32_t other, bool without[LAUNCHES]) {
  pthread_t thread;
  rig_open(r, "replay");
  r->sample = sample;
  rig_start(r);
  assert_int_equal(pthread_create(&thread, NULL, simulate, r->sim), 0);
  rig_alloc(r, RIG_BASE, 4 * MIB, TRACE_MEMORY_MANAGED);
  for (uint32_t i = 0; i < LAUNCHES; i++) without[i] = launch_asking(r, kernel_of(&w[i == other]));
  rig_op(r, (trace_op){.kind = TRACE_OP_END});
  pthread_join(thread, NULL);
  sim_snapshot(r->sim, &r->result);
  assert_true(r->result.complete);
}

static uint32_t count_of(const bool without[LAUNCHES]) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < LAUNCHES; i++) n += without[i];
  return n;
}

/* All that are skipped but the first, which tells what they touch; nothing else is another for it. */
static void launches_without_records(void **state) {
  work w[2] = {{.seed = 1, .pages = 256, .loads = 8, .stores = 4}};
  bool none[LAUNCHES], without[LAUNCHES];
  rig full, sampled, recorded;
  run_asking(&full, 0, w, LAUNCHES, none);
  run_asking(&sampled, 3, w, LAUNCHES, without);
  rig_open(&recorded, "replay");
  recorded.sample = 3;
  rig_start(&recorded);
  rig_alloc(&recorded, RIG_BASE, 4 * MIB, TRACE_MEMORY_MANAGED);
  for (uint32_t i = 0; i < LAUNCHES; i++) rig_launch(&recorded, kernel_of(&w[0]));
  rig_finish(&recorded);
  assert_int_equal(count_of(none), 0);
  assert_int_equal(count_of(without), sampled.result.sampling.estimated - 1);
  assert_int_equal(sampled.result.sampling.without_records, 0);
  assert_memory_equal(&sampled.result.counters, &recorded.result.counters, sizeof recorded.result.counters);
  assert_int_equal(sampled.result.sampling.timed, recorded.result.sampling.timed);
  assert_int_equal(sampled.result.sampling.estimated_ps, recorded.result.sampling.estimated_ps);
  assert_int_equal(sampled.result.sampling.interval_ps, recorded.result.sampling.interval_ps);
  same_counts(&full.result.counters, &sampled.result.counters);
  rig_close(&full);
  rig_close(&sampled);
  rig_close(&recorded);
}

/* Launch 20 has no records as those before it, but touches pages that are not there: it is timed by what it touches, so
 * that its pages come. Then the next launches have records. */
static void foreseen_and_not_resident(void **state) {
  work w[2] = {{.seed = 1, .pages = 128, .loads = 8, .stores = 4}, {.seed = 7, .pages = 1024, .loads = 8, .stores = 4}};
  bool none[LAUNCHES], without[LAUNCHES];
  rig full, sampled;
  run_asking(&full, 0, w, 20, none);
  run_asking(&sampled, 3, w, 20, without);
  assert_true(without[20] && !without[21]);
  assert_int_equal(sampled.result.sampling.without_records, 1);
  assert_true(full.result.counters.faults > 128);
  assert_int_equal(full.result.counters.faults, sampled.result.counters.faults);
  assert_int_equal(full.result.counters.h2d_bytes, sampled.result.counters.h2d_bytes);
  assert_int_equal(full.result.counters.warp_instructions, sampled.result.counters.warp_instructions);
  assert_true(count_of(without) > 20);
  rig_close(&full);
  rig_close(&sampled);
}

/* Launch 20 does less than was foreseen; all it touches is there. The kind is foreseen again after three alike. */
static void foreseen_and_of_another_group(void **state) {
  work w[2] = {{.seed = 1, .pages = 128, .loads = 20, .stores = 4}, {.seed = 1, .pages = 128, .loads = 10}};
  bool without[LAUNCHES];
  rig sampled;
  run_asking(&sampled, 3, w, 20, without);
  assert_true(without[20] && !without[21] && !without[22] && !without[23]);
  assert_int_equal(sampled.result.sampling.without_records, 1);
  assert_int_equal(sampled.result.sampling.timed + sampled.result.sampling.estimated, LAUNCHES);
  rig_close(&sampled);
}

/* What was touched last is freed, and the same kernel works on other memory: that is not resident, and not foreseen to
 * be. */
static void freed_memory_is_not_foreseen(void **state) {
  work first = {.seed = 1, .pages = 128, .loads = 8, .stores = 4}, second = first;
  second.base = 64 * MIB;
  rig r;
  pthread_t thread;
  bool without[LAUNCHES];
  rig_open(&r, "replay");
  r.sample = 3;
  rig_start(&r);
  assert_int_equal(pthread_create(&thread, NULL, simulate, r.sim), 0);
  rig_alloc(&r, RIG_BASE, 4 * MIB, TRACE_MEMORY_MANAGED);
  for (uint32_t i = 0; i < 20; i++) without[i] = launch_asking(&r, kernel_of(&first));
  rig_op(&r, (trace_op){.kind = TRACE_OP_FREE, .free = {.address = RIG_BASE}});
  rig_alloc(&r, RIG_BASE + second.base, 4 * MIB, TRACE_MEMORY_MANAGED);
  for (uint32_t i = 20; i < LAUNCHES; i++) without[i] = launch_asking(&r, kernel_of(&second));
  rig_op(&r, (trace_op){.kind = TRACE_OP_END});
  pthread_join(thread, NULL);
  sim_snapshot(r.sim, &r.result);
  assert_true(r.result.complete);
  assert_true(without[19] && !without[20]);
  assert_true(count_of(without) > 20);
  assert_int_equal(r.result.sampling.without_records, 0);
  rig_close(&r);
}

/* ---- the waves of a long launch: one block per SM, 15 in a wave ---- */

enum { WAVE = 15 };

static rig_kernel long_kernel(uint64_t blocks, void (*warp)(trace_writer *, uint64_t, uint32_t, const void *),
                              const void *context) {
  return (rig_kernel){.blocks = blocks, .warps = 2, .shared_bytes = 49152, .warp = warp, .context = context};
}

/* One launch; *r is for the caller to close. */
static void long_launch(rig *r, uint32_t sample, const char *manager, rig_kernel k) {
  rig_open(r, manager);
  r->sample = sample;
  rig_start(r);
  rig_alloc(r, RIG_BASE, 64 * MIB, TRACE_MEMORY_DEVICE);
  rig_launch(r, k);
  rig_finish(r);
}

static void computes(trace_writer *w, uint64_t block, uint32_t warp, const void *context) { rig_issue(w, 100); }

/* 500 and a half waves of blocks of 400 ns each: 501 times 400 ns, whether they are timed or not. Timed are: the first
 * wave, which is no measure, three, then two after 8, 16, 32, and each 64 that are skipped; the last full one and the
 * half one. */
static void like_waves_take_the_same(void **state) {
  rig full, sampled;
  rig_kernel k = long_kernel(500 * WAVE + 7, computes, NULL);
  long_launch(&full, 0, "ideal", k);
  long_launch(&sampled, 3, "ideal", k);
  const sim_counters *a = &full.result.counters, *b = &sampled.result.counters;
  assert_int_equal(a->kernel_ps, 501 * 400 * NS);
  assert_int_equal(b->kernel_ps, a->kernel_ps);
  assert_int_equal(b->time_ps, a->time_ps);
  assert_int_equal(sampled.result.kernels[0].counters.time_ps, a->kernel_ps);
  same_counts(a, b);
  assert_int_equal(sampled.result.sampling.timed, 1);
  assert_int_equal(sampled.result.sampling.estimated, 0);
  assert_int_equal(sampled.result.sampling.interval_ps, 0);
  assert_int_equal(sampled.result.sampling.blocks % WAVE, 0);
  assert_int_equal(sampled.result.sampling.estimated_ps, sampled.result.sampling.blocks / WAVE * 400 * NS);
  assert_in_range(sampled.result.sampling.blocks / WAVE, 470, 480);
  rig_close(&full);
  rig_close(&sampled);
}

/* With `needed` waves between the first and the last two there must be one to skip. */
static void few_waves_are_timed(void **state) {
  for (uint32_t waves = 6; waves <= 7; waves++) {
    rig r;
    long_launch(&r, 3, "ideal", long_kernel(waves * WAVE, computes, NULL));
    assert_int_equal(r.result.sampling.blocks, waves == 7 ? WAVE : 0);
    assert_int_equal(r.result.counters.kernel_ps, waves * 400 * NS);
    rig_close(&r);
  }
}

/* From some block on they do three times as much: these are other waves, and timed until they are known. */
static void changes(trace_writer *w, uint64_t block, uint32_t warp, const void *context) {
  rig_issue(w, block < 203 * WAVE ? 100 : 300);
}

static void other_blocks_are_noticed(void **state) {
  rig r;
  long_launch(&r, 3, "ideal", long_kernel(400 * WAVE, changes, NULL));
  assert_near(r.result.counters.kernel_ps, 203 * 400 * NS + 197 * 1200 * NS, 0.001);
  assert_in_range(r.result.sampling.blocks / WAVE, 300, 380);
  rig_close(&r);
}

/* The same counts, but from some block on no line is in the L2: only timing again can tell. */
static void misses_later(trace_writer *w, uint64_t block, uint32_t warp, const void *context) {
  for (uint32_t i = 0; i < 16; i++) {
    uint64_t line = block < 200 * WAVE ? i : ((block - 200 * WAVE) * 2 + warp) * 16 + i;
    rig_issue(w, 10);
    rig_load_wait(w, RIG_BASE + line * 128);
  }
}

static void other_times_are_noticed(void **state) {
  rig half, full, sampled;
  rig_kernel k = long_kernel(400 * WAVE, misses_later, NULL);
  long_launch(&half, 0, "ideal", long_kernel(200 * WAVE, misses_later, NULL));
  long_launch(&full, 0, "ideal", k);
  long_launch(&sampled, 3, "ideal", k);
  assert_true(full.result.counters.kernel_ps > 3 * half.result.counters.kernel_ps);
  assert_near(sampled.result.counters.kernel_ps, full.result.counters.kernel_ps, 0.1);
  assert_near(sampled.result.counters.l2_misses, full.result.counters.l2_misses, 0.2);
  assert_in_range(sampled.result.sampling.blocks / WAVE, 300, 380);
  rig_close(&half);
  rig_close(&full);
  rig_close(&sampled);
}

/* Each block has a page of its own, of which only those of the first half have come before. */
static void own_page(trace_writer *w, uint64_t block, uint32_t warp, const void *context) {
  rig_issue(w, 100);
  rig_load_wait(w, RIG_BASE + block * PAGE);
  rig_store(w, RIG_BASE + block * PAGE + 128);
}

static void absent_pages_still_fault(void **state) {
  sim_counters counters[2];
  for (uint32_t s = 0; s < 2; s++) {
    rig r;
    rig_open(&r, "replay");
    r.sample = 3 * s;
    rig_start(&r);
    rig_alloc(&r, RIG_BASE, 8 * MIB, TRACE_MEMORY_MANAGED);
    rig_launch(&r, long_kernel(30 * WAVE, own_page, NULL));
    rig_launch(&r, long_kernel(60 * WAVE, own_page, NULL));
    rig_sync(&r);
    rig_op(&r, (trace_op){.kind = TRACE_OP_HOST_TOUCH, .touch = {RIG_BASE, 60 * WAVE * PAGE, false}});
    rig_finish(&r);
    assert_in_range(r.result.sampling.blocks / WAVE, s ? 15 : 0, s ? 27 : 0);
    counters[s] = r.result.counters;
    rig_close(&r);
  }
  assert_int_equal(counters[0].faults, 60 * WAVE);
  assert_int_equal(counters[1].faults, 60 * WAVE);
  assert_int_equal(counters[1].d2h_bytes, counters[0].d2h_bytes);
  assert_int_equal(counters[1].d2h_bytes, 60 * WAVE * PAGE);
  assert_near(counters[1].time_ps, counters[0].time_ps, 0.01);
  same_counts(&counters[0], &counters[1]);
}

/* All count the same; the last access of one block is the first to its page. */
static void one_is_absent(trace_writer *w, uint64_t block, uint32_t warp, const void *context) {
  const uint64_t *absent = context;
  for (uint32_t i = 0; i < 60; i++) {
    rig_issue(w, 10);
    rig_load_wait(w, RIG_BASE + i * 128);
  }
  rig_store(w, RIG_BASE + (block == *absent && warp == 1 ? 100 * PAGE : 0));
}

/* What was read of its wave before counts nearly as much as a steady wave, if the block is the wave's last. */
static void a_wave_is_read_to_its_end(void **state) {
  for (uint64_t place = 0; place < WAVE; place++) {
    uint64_t absent = 40 * WAVE + place, faults[2];
    for (uint32_t s = 0; s < 2; s++) {
      rig r;
      rig_open(&r, "replay");
      r.sample = 3 * s;
      rig_start(&r);
      rig_alloc(&r, RIG_BASE, 8 * MIB, TRACE_MEMORY_MANAGED);
      rig_launch(&r, long_kernel(60 * WAVE, one_is_absent, &absent));
      rig_finish(&r);
      assert_in_range(r.result.sampling.blocks / WAVE, s ? 20 : 0, s ? 55 : 0);
      faults[s] = r.result.counters.faults;
      rig_close(&r);
    }
    assert_int_equal(faults[1], faults[0]);
  }
}

/* What comes behind in the stream waits for the whole launch; what comes beside it, in another, ends the skipping. */
static void others_come_at_their_time(void **state) {
  rig_kernel k = long_kernel(100 * WAVE, computes, NULL), beside = long_kernel(100 * WAVE, computes, NULL);
  ps times[2];
  for (uint32_t s = 0; s < 2; s++) {
    rig r;
    rig_open(&r, "ideal");
    r.sample = 3 * s;
    rig_start(&r);
    rig_alloc(&r, RIG_BASE, MIB, TRACE_MEMORY_DEVICE);
    for (uint32_t i = 1; i <= 2; i++) rig_op(&r, (trace_op){.kind = TRACE_OP_STREAM_CREATE, .stream = i});
    k.stream = 1;
    rig_launch(&r, k);
    k.name = "another";
    rig_launch(&r, k);
    beside.stream = 2;
    rig_launch(&r, beside);
    rig_finish(&r);
    times[s] = r.result.counters.time_ps;
    rig_close(&r);
  }
  assert_int_equal(times[0], times[1]);
}

/* ---- what is on its way ---- */

typedef struct rounds { /* every block touches these pages, one after the other, with 8 us before each */
  uint64_t first, pages;
} rounds;

static void goes_round(trace_writer *w, uint64_t block, uint32_t warp, const void *context) {
  const rounds *r = context;
  for (uint64_t i = 0; i < r->pages; i++) {
    rig_issue(w, 2000);
    rig_load_wait(w, RIG_BASE + (r->first + i) * PAGE);
  }
}

/* Pages that a prefetcher has asked for land while a launch runs that could be skipped: they are older than those that
 * it touches afterwards, and go first when memory becomes too small. A skipped launch would have touched all its pages
 * before they came. */
static void pages_on_their_way_land_in_between(void **state) {
  static const rounds ours = {.pages = 32}, one = {.first = 64, .pages = 1}, many = {.first = 512, .pages = 64};
  rig_kernel k = {.blocks = 15, .warps = 1, .warp = goes_round, .context = &ours};
  uint64_t bytes[2], estimated = 0;
  for (uint32_t s = 0; s < 2; s++) {
    rig r;
    rig_open(&r, "replay");
    r.sample = 3 * s;
    r.prefetch = "tbn";
    r.gpu_memory = 96 * PAGE;
    r.spec.link_h2d_gbs = 1;
    rig_start(&r);
    rig_alloc(&r, RIG_BASE, 80 * PAGE, TRACE_MEMORY_MANAGED);
    /* the first faults, three are timed, the others may be skipped */
    for (uint32_t i = 0; i < 7; i++) rig_launch(&r, k);
    rig_launch(&r, (rig_kernel){.name = "other", .blocks = 1, .warps = 1, .warp = goes_round, .context = &one});
    rig_launch(&r, k); /* while the other pages of that one's 64 KiB come */
    rig_sync(&r);
    rig_alloc(&r, RIG_BASE + 512 * PAGE, 64 * PAGE, TRACE_MEMORY_MANAGED);
    rig_launch(&r, (rig_kernel){.name = "other", .blocks = 1, .warps = 1, .warp = goes_round, .context = &many});
    rig_launch(&r, k);
    rig_finish(&r);
    estimated = r.result.sampling.estimated;
    bytes[s] = r.result.counters.h2d_bytes;
    rig_close(&r);
  }
  assert_true(bytes[0] > (32 + 16 + 64) * PAGE); /* some of the launch's pages had to go, and come again */
  assert_int_equal(bytes[0], bytes[1]);
  assert_in_range(estimated, 1, 3);
}

/* ---- random programs ---- */

/* Most launches are short; some have 20 waves. */
static rig_kernel random_kernel(uint64_t *state, const work *w) {
  return next_random(state) % 8 ? kernel_of(w) : long_kernel(20 * WAVE, worker, w);
}

static void random_operation(rig *r, uint64_t *state, const work *works, uint32_t count) {
  uint64_t address = RIG_BASE + next_random(state) % 512 * PAGE, bytes = (1 + next_random(state) % 512) * PAGE;
  switch (next_random(state) % 24) {
  case 0: rig_h2d(r, address, bytes); break;
  case 1: rig_d2h(r, address, bytes); break;
  case 2:
    rig_sync(r);
    rig_op(r, (trace_op){.kind = TRACE_OP_HOST_TOUCH, .touch = {address, bytes, next_random(state) % 2}});
    break;
  case 3: rig_set(r, address, bytes); break;
  default: rig_launch(r, random_kernel(state, &works[next_random(state) % count])); break;
  }
}

static void random_program(rig *r, uint64_t seed, const char *manager, uint64_t memory, uint32_t sample) {
  uint64_t state = seed;
  work works[3];
  rig_open(r, manager);
  r->sample = sample;
  r->gpu_memory = memory;
  r->budget = sample && seed % 3 == 0 ? 4096 : 0; /* what is read twice or three times lies in the temporary file */
  rig_start(r);
  rig_alloc(r, RIG_BASE, 4 * MIB, TRACE_MEMORY_MANAGED);
  rig_alloc(r, RIG_BASE + 16 * MIB, 2 * MIB, TRACE_MEMORY_DEVICE);
  for (uint32_t i = 0; i < 3; i++)
    works[i] = (work){.seed = next_random(&state),
                      .pages = 1 + next_random(&state) % 1024,
                      .loads = (uint32_t)(next_random(&state) % 12),
                      .stores = (uint32_t)(next_random(&state) % 4)};
  for (uint32_t i = 0; i < 80; i++) random_operation(r, &state, works, 3);
  rig_finish(r);
}

/* Whether what comes depends only on which pages are touched: no prefetcher looks at the order of far-faults, and no
 * access counter lets lines be reached over the link until their page has come. */
static bool orderless(const manager *m) {
  return m->placement != MANAGER_PAGED || (!m->prefetch && !m->batches && !m->ranges && !m->counters.threshold);
}

static bool near(uint64_t a, uint64_t b, bool equal) {
  uint64_t more = a > b ? a : b, less = a > b ? b : a;
  return equal ? a == b : more - less <= more / 25; /* 4 % */
}

static void compare(const manager *m, uint64_t seed, const sim_counters *a, const sim_counters *b) {
#define X(counter)                                                                                                \
  if (!near(a->counter, b->counter, orderless(m)))                                                                \
    fail_msg("%s, program %llu: " #counter " is %llu, and %llu with sampling", m->name, (unsigned long long)seed, \
             (unsigned long long)a->counter, (unsigned long long)b->counter);
  X(faults)
  X(h2d_bytes)
  X(d2h_bytes)
  X(evicted_bytes)
  X(written_back_bytes)
  X(remote_bytes) X(zero_filled_bytes) X(host_faults) X(pages_moved_in) X(pages_moved_out) X(resident_peak_bytes)
#undef X
}

static void pages_move_as_without(void **state) {
  uint64_t estimated = 0, blocks = 0;
  for (uint64_t seed = 1; seed <= fewer(5, 2); seed++)
    for (const manager *const *m = managers; *m; m++) {
      if (!strcmp((*m)->name, "oracle")) continue; /* is refused: it knows the future */
      uint64_t memory = seed % 2 ? 64 * MIB : 5 * MIB;
      rig full, sampled;
      random_program(&full, seed, (*m)->name, memory, 0);
      random_program(&sampled, seed, (*m)->name, memory, 3);
      compare(*m, seed, &full.result.counters, &sampled.result.counters);
      estimated += sampled.result.sampling.estimated;
      blocks += sampled.result.sampling.blocks;
      rig_close(&full);
      rig_close(&sampled);
    }
  assert_true(estimated > fewer(500, 3));
  assert_true(blocks > fewer(1000, 3));
}

/* What needs every launch timed is refused, and says so. */
static void refuses(void **state) {
  machine_spec spec = rig_spec();
  trace_program *program = trace_program_create(0);
  trace_future *future = trace_future_create();
  sim *made = NULL;
  ff_error error;
  sim_options options = {.spec = &spec, .manager = "copy", .sample = 3, .lines = true};
  assert_int_equal(sim_create(program, &options, &made, &error), FF_UNSUPPORTED);
  assert_non_null(strstr(error.message, "counting by instruction needs every launch timed"));
  options = (sim_options){.spec = &spec, .manager = "oracle", .sample = 3, .future = future};
  assert_int_equal(sim_create(program, &options, &made, &error), FF_UNSUPPORTED);
  assert_non_null(strstr(error.message, "needs every launch timed"));
  trace_future_free(future);
  trace_program_free(program);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(only_some_are_timed),
      cmocka_unit_test(controls_of_the_l2_are_of_a_kind),
      cmocka_unit_test(allocations_meet_in_a_page),
      cmocka_unit_test(as_many_as_are_asked_for),
      cmocka_unit_test(other_counts_are_another_group),
      cmocka_unit_test(unsteady_times_are_not_estimated),
      cmocka_unit_test(two_times_by_turns_are_estimated),
      cmocka_unit_test(only_launches_take_turns),
      cmocka_unit_test(other_patterns_are_not),
      cmocka_unit_test(what_overlaps_is_timed),
      cmocka_unit_test(launches_that_read_smid_are_timed),
      cmocka_unit_test(skipped_launches_write),
      cmocka_unit_test(skipped_launches_fill_the_l2),
      cmocka_unit_test(launches_without_records),
      cmocka_unit_test(foreseen_and_not_resident),
      cmocka_unit_test(foreseen_and_of_another_group),
      cmocka_unit_test(freed_memory_is_not_foreseen),
      cmocka_unit_test(like_waves_take_the_same),
      cmocka_unit_test(few_waves_are_timed),
      cmocka_unit_test(other_blocks_are_noticed),
      cmocka_unit_test(other_times_are_noticed),
      cmocka_unit_test(absent_pages_still_fault),
      cmocka_unit_test(a_wave_is_read_to_its_end),
      cmocka_unit_test(others_come_at_their_time),
      cmocka_unit_test(pages_on_their_way_land_in_between),
      cmocka_unit_test(pages_move_as_without),
      cmocka_unit_test(refuses),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
