/* SPDX-License-Identifier: Apache-2.0 */
/* Physical memory of virtual addresses, against a naive model: a page keeps its frame until it is given back, a frame
 * is one page of one tenant, large allocations are in one piece, divided memory has its colours; where no frame is left
 * an address stands for itself. */
#include "tenants.h"

enum { PAGES = 8192, STEP = 512, ALLOCATIONS = 40, FRAMES = 6144 /* 24 MiB */ };
#define NONE UINT64_MAX

typedef struct placed {
  uint64_t at, bytes;
} placed; /* bytes 0: free */

typedef struct model { /* of a tenant */
  sim *s;
  trace_program *program;
  uint64_t frame[PAGES]; /* physical address of the page, NONE: it has not been asked for */
  placed allocations[ALLOCATIONS];
} model;

typedef struct world {
  sim_device *device;
  model tenants[3];
  uint32_t count;
  uint64_t random;
} world;

static uint64_t next(world *w, uint64_t below) {
  w->random = w->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (w->random >> 33) % below;
}

static const uint64_t colour_sets[] = {0x03, 0x3c, 0xc0};

static void world_open(world *w, sim_isolation isolation, uint32_t count, uint64_t memory, const char *manager,
                       uint64_t seed) {
  machine_spec spec = rig_spec();
  ff_error error = {0};
  sim_tenant tenants[3];
  memset(w, 0, sizeof *w);
  w->count = count;
  w->random = seed;
  bench_hashed(&spec);
  spec.memory_bytes = memory;
  for (uint32_t i = 0; i < count; i++)
    tenants[i] = (sim_tenant){.sm_first = 5 * i, .sm_count = 5, .colours = colour_sets[i]};
  sim_device_options o = {.spec = &spec, .isolation = isolation, .tenants = tenants, .count = count};
  if (sim_device_create(&o, &w->device, &error)) fail_msg("%s", error.message);
  for (uint32_t i = 0; i < count; i++) {
    model *m = &w->tenants[i];
    m->program = trace_program_create(0);
    if (sim_create(m->program, &(sim_options){.spec = &spec, .manager = manager, .device = w->device, .tenant = i},
                   &m->s, &error))
      fail_msg("%s", error.message);
    for (uint32_t p = 0; p < PAGES; p++) m->frame[p] = NONE;
  }
}

static void world_close(world *w) {
  for (uint32_t i = 0; i < w->count; i++) {
    sim_free(w->tenants[i].s);
    trace_program_free(w->tenants[i].program);
  }
  assert_int_equal(frames_taken(w->device->frames, UINT64_MAX), 0);
  sim_device_free(w->device);
}

static uint64_t physical_of(model *m, uint64_t page) {
  return address_map_find(&m->s->placing, RIG_BASE + page * FRAME_BYTES);
}

/* No other page has it. */
static void assert_own(const world *w, const model *own, uint64_t page, uint64_t physical) {
  for (uint32_t i = 0; i < w->count; i++)
    for (uint32_t p = 0; p < PAGES; p++)
      if (w->tenants[i].frame[p] == physical && (&w->tenants[i] != own || p != page))
        fail_msg("the frame at %llx is page %u of tenant %u, too", (unsigned long long)physical, p, i);
}

/* Looking ahead, for the host's caches, and into the L2, for checks: places nothing, and knows what is placed. */
static void look(world *w, model *m, uint64_t page) {
  uint64_t address = RIG_BASE + page * FRAME_BYTES + 1234, taken = frames_taken(w->device->frames, UINT64_MAX),
           physical;
  memory_prefetch_far(&m->s->memory, &w->device->sms[0], address);
  memory_prefetch_near(&m->s->memory, &w->device->sms[0], address);
  l2_has_any(&m->s->memory, RIG_BASE + page * FRAME_BYTES, FRAME_BYTES);
  bool known = address_map_peek(&m->s->placing, address, &physical);
  assert_int_equal(frames_taken(w->device->frames, UINT64_MAX), taken);
  if (m->frame[page] != NONE) assert_true(known);
  if (known) assert_int_equal(address_map_find(&m->s->placing, address), physical);
}

static void touch(world *w, uint32_t number, uint64_t page) {
  model *m = &w->tenants[number];
  look(w, m, page);
  uint64_t physical = physical_of(m, page);
  assert_int_equal(physical % FRAME_BYTES, 0);
  assert_int_equal(address_map_find(&m->s->placing, RIG_BASE + page * FRAME_BYTES + 1234), physical + 1234);
  if (m->frame[page] != NONE) {
    assert_int_equal(physical, m->frame[page]);
    return;
  }
  assert_true(physical < w->device->spec.memory_bytes);
  assert_true(frames_is_taken(w->device->frames, physical));
  assert_own(w, m, page, physical);
  if (w->device->isolation == SIM_ISOLATION_SM_MEMORY)
    assert_true(colour_sets[number] >> colours_of(frames_colours(w->device->frames), physical) & 1);
  m->frame[page] = physical;
}

static bool free_place(const model *m, uint64_t at, uint64_t bytes) {
  for (uint32_t i = 0; i < ALLOCATIONS; i++)
    if (m->allocations[i].bytes && at < m->allocations[i].at + m->allocations[i].bytes &&
        m->allocations[i].at < at + bytes)
      return false;
  return true;
}

static void allocate(world *w, uint32_t number) {
  model *m = &w->tenants[number];
  uint64_t kind = next(w, 3), bytes = kind == 0   ? STEP * (1 + next(w, 40))
                                      : kind == 1 ? FRAME_BYTES * (1 + next(w, 64))
                                                  : FF_BLOCK_BYTES + STEP * next(w, 6000);
  uint64_t at = next(w, PAGES * FRAME_BYTES / STEP) * STEP;
  if (next(w, 2)) at = at / FF_BLOCK_BYTES * FF_BLOCK_BYTES;
  placed *p = &m->allocations[next(w, ALLOCATIONS)];
  if (p->bytes || at + bytes > PAGES * FRAME_BYTES || !free_place(m, at, bytes)) return;
  *p = (placed){at, bytes};
  address_map_allocated(&m->s->placing, RIG_BASE + at, bytes);
}

static void release(world *w, uint32_t number) {
  model *m = &w->tenants[number];
  placed *p = &m->allocations[next(w, ALLOCATIONS)];
  if (!p->bytes) return;
  address_map_give(&m->s->placing, RIG_BASE + p->at, p->bytes);
  for (uint64_t page = p->at / FRAME_BYTES; page * FRAME_BYTES < p->at + p->bytes; page++) {
    if (m->frame[page] == NONE) continue;
    bool whole = page * FRAME_BYTES >= p->at && (page + 1) * FRAME_BYTES <= p->at + p->bytes,
         taken = frames_is_taken(w->device->frames, m->frame[page]);
    if (whole) assert_false(taken);
    if (!taken) m->frame[page] = NONE; /* a page at the end may go with its allocation, or stay with a neighbour */
  }
  p->bytes = 0;
}

static void against_the_model(sim_isolation isolation, uint64_t seed) {
  world w;
  world_open(&w, isolation, 3, UINT64_C(1) << 28, "copy", seed);
  for (int n = 0; n < 1200; n++) {
    uint32_t number = (uint32_t)next(&w, 3);
    uint64_t what = next(&w, 10);
    if (what < 2) allocate(&w, number);
    else if (what < 3) release(&w, number);
    else touch(&w, number, next(&w, PAGES));
  }
  frames_check(w.device->frames);
  for (uint32_t i = 0; i < 3; i++) /* nothing has moved */
    for (uint32_t p = 0; p < PAGES; p++)
      if (w.tenants[i].frame[p] != NONE) assert_int_equal(physical_of(&w.tenants[i], p), w.tenants[i].frame[p]);
  world_close(&w);
}

static void test_against_a_model(void **state) {
  static const sim_isolation isolations[] = {SIM_ISOLATION_NONE, SIM_ISOLATION_MPS, SIM_ISOLATION_SM,
                                             SIM_ISOLATION_SM_MEMORY};
  for (int i = 0; i < 4; i++)
    for (uint64_t seed = 1; seed <= 3; seed++) against_the_model(isolations[i], seed * 977 + (uint64_t)i);
}

static void test_large_allocations_are_in_one_piece(void **state) {
  world w;
  world_open(&w, SIM_ISOLATION_NONE, 2, UINT64_C(1) << 28, "copy", 1);
  uint64_t bytes = 3 * FF_BLOCK_BYTES + 5000;
  for (uint32_t i = 0; i < 2; i++) {
    model *m = &w.tenants[i];
    address_map_allocated(&m->s->placing, RIG_BASE, bytes);
    uint64_t first = address_map_find(&m->s->placing, RIG_BASE);
    assert_int_equal(first % FF_BLOCK_BYTES, 0);
    for (uint64_t a = 0; a < bytes; a += 100)
      assert_int_equal(address_map_find(&m->s->placing, RIG_BASE + a), first + a);
  }
  assert_int_equal(frames_taken(w.device->frames, UINT64_MAX), 2 * (3 * 512 + 2));
  address_map_give(&w.tenants[0].s->placing, RIG_BASE, bytes);
  assert_int_equal(frames_taken(w.device->frames, UINT64_MAX), 3 * 512 + 2);
  /* a single frame now: the first that is free */
  uint64_t again = address_map_find(&w.tenants[0].s->placing, RIG_BASE + 8 * FRAME_BYTES);
  assert_int_equal(again, 0);
  world_close(&w);
}

/* A page of it was touched before it was there (by a neighbour on the same page): then it comes page by page. */
static void test_a_page_that_has_a_frame_keeps_it(void **state) {
  world w;
  world_open(&w, SIM_ISOLATION_NONE, 1, UINT64_C(1) << 28, "copy", 1);
  model *m = &w.tenants[0];
  uint64_t before = address_map_find(&m->s->placing, RIG_BASE + FF_BLOCK_BYTES);
  address_map_allocated(&m->s->placing, RIG_BASE, 2 * FF_BLOCK_BYTES);
  assert_int_equal(address_map_find(&m->s->placing, RIG_BASE + FF_BLOCK_BYTES), before);
  assert_int_equal(frames_taken(w.device->frames, UINT64_MAX), 1);
  world_close(&w);
}

static void test_without_frames_addresses_stand_for_themselves(void **state) {
  world w;
  world_open(&w, SIM_ISOLATION_SM, 2, FRAMES * (uint64_t)FRAME_BYTES, "ideal", 1);
  for (uint64_t p = 0; p < FRAMES; p++) assert_true(physical_of(&w.tenants[p % 2], p) < FRAMES * (uint64_t)FRAME_BYTES);
  assert_int_equal(frames_left(w.device->frames, UINT64_MAX), 0);
  uint64_t a = RIG_BASE + FRAMES * (uint64_t)FRAME_BYTES;
  assert_int_equal(address_map_find(&w.tenants[0].s->placing, a), a);
  /* and of two tenants not for each other */
  assert_int_equal(address_map_find(&w.tenants[1].s->placing, a), a | UINT64_C(1) << SPACE_SHIFT);
  address_map_give(&w.tenants[0].s->placing, RIG_BASE, 2 * FRAME_BYTES);
  assert_true(address_map_find(&w.tenants[0].s->placing, a + FRAME_BYTES) < FRAMES * (uint64_t)FRAME_BYTES);
  address_map_give(&w.tenants[0].s->placing, a, FRAME_BYTES); /* had none */
  assert_int_equal(frames_left(w.device->frames, UINT64_MAX), 0);
  world_close(&w);
}

static uint32_t lines_held(const device *d) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < d->spec.l2_slices; i++)
    for (uint64_t n = 0; n < d->slices[i].cache.sets.by * d->slices[i].cache.ways; n++)
      count += d->slices[i].cache.lines[n].tag != 0;
  return count;
}

static void test_frames_go_back_without_their_lines(void **state) {
  world w;
  world_open(&w, SIM_ISOLATION_NONE, 1, UINT64_C(1) << 28, "copy", 1);
  sim *s = w.tenants[0].s;
  sim_counters counters = {0};
  tally t = {&counters, &counters};
  address_map_allocated(&s->placing, RIG_BASE, FF_BLOCK_BYTES);
  for (uint64_t a = 0; a < 2 * FF_BLOCK_BYTES; a += 65536) { /* half of it in one piece, half in frames */
    request r = {.address = physical_address(&s->placing, RIG_BASE + a),
                 .sectors = 15,
                 .lanes = 32,
                 .op = TRACE_LOAD,
                 .tally = &t};
    l2_access(&s->memory, &r);
  }
  assert_int_equal(lines_held(w.device), 64);
  address_map_give(&s->placing, RIG_BASE, FF_BLOCK_BYTES);
  assert_int_equal(lines_held(w.device), 32);
  address_map_give(&s->placing, RIG_BASE + FF_BLOCK_BYTES, FF_BLOCK_BYTES);
  assert_int_equal(lines_held(w.device), 0);
  world_close(&w);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_against_a_model),
      cmocka_unit_test(test_large_allocations_are_in_one_piece),
      cmocka_unit_test(test_a_page_that_has_a_frame_keeps_it),
      cmocka_unit_test(test_without_frames_addresses_stand_for_themselves),
      cmocka_unit_test(test_frames_go_back_without_their_lines),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
