/* SPDX-License-Identifier: Apache-2.0 */
/* The race engine: single cases by hand, and random programs against a model that keeps for every thread the set of all
 * accesses it knows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "check/race.h"

/* ---- by hand: two blocks of two warps ---- */

typedef struct fixture {
  race *race;
  race_block *block[2];
  race_found found[3];
} fixture;

static fixture open_race(void) {
  fixture f = {.race = race_create(UINT64_C(1) << 30)};
  race_launch(f.race, 2);
  for (uint32_t n = 0; n < 2; n++) f.block[n] = race_block_begin(f.race, n, 256);
  return f;
}

static void close_race(fixture *f) {
  for (uint32_t n = 0; n < 2; n++) race_block_end(f->block[n]);
  race_free(f->race);
}

#define GLOBAL UINT64_C(0x200000000000)
static uint32_t touch(fixture *f, uint32_t block, uint32_t warp, uint32_t lane, uint64_t address, uint32_t bytes,
                      uint32_t flags, uint32_t pc) {
  return race_access(f->block[block], warp, lane, address < 256, address, bytes, flags, pc, UINT32_MAX, f->found, 3);
}

static void hazards_of_each_kind(void **state) {
  fixture f = open_race();
  assert_int_equal(touch(&f, 0, 0, 3, 16, 4, RACE_WRITE, 1), 0);
  assert_int_equal(touch(&f, 0, 0, 3, 16, 4, RACE_READ, 2), 0); /* its own */
  assert_int_equal(touch(&f, 0, 1, 0, 16, 4, RACE_READ, 3), 1);
  assert_int_equal(f.found[0].hazard, RACE_RAW);
  assert_int_equal(f.found[0].before_pc, 1);
  assert_int_equal(f.found[0].before.lane, 3);
  assert_false(f.found[0].lockstep);
  assert_int_equal(touch(&f, 0, 0, 3, 16, 4, RACE_WRITE, 4), 1);
  assert_int_equal(f.found[0].hazard, RACE_WAR);
  /* the write and the read, which is not ordered with it either */
  assert_int_equal(touch(&f, 0, 1, 1, 16, 4, RACE_WRITE, 5), 2);
  assert_int_equal(touch(&f, 1, 0, 0, 16, 4, RACE_WRITE, 6), 0); /* another block's shared memory */
  close_race(&f);
}

static void barriers_order(void **state) {
  fixture f = open_race();
  touch(&f, 0, 0, 3, 16, 4, RACE_WRITE, 1);
  race_barrier(f.block[0]);
  assert_int_equal(touch(&f, 0, 1, 0, 16, 4, RACE_READ, 2), 0);
  assert_int_equal(touch(&f, 0, 0, 0, 16, 4, RACE_READ, 3), 0);
  touch(&f, 0, 0, 3, GLOBAL, 4, RACE_WRITE, 4);
  race_barrier(f.block[0]);
  race_barrier(f.block[1]);
  assert_int_equal(touch(&f, 1, 0, 3, GLOBAL, 4, RACE_READ, 5), 1); /* a block's barrier is its own */
  close_race(&f);
}

static void bytes_are_told_apart(void **state) {
  fixture f = open_race();
  touch(&f, 0, 0, 0, GLOBAL + 8, 4, RACE_WRITE, 1);
  race_barrier(f.block[0]);
  assert_int_equal(touch(&f, 0, 0, 0, GLOBAL + 9, 1, RACE_WRITE, 2), 0);
  assert_int_equal(touch(&f, 0, 1, 0, GLOBAL + 10, 1, RACE_WRITE, 3), 0);
  assert_int_equal(touch(&f, 0, 1, 0, GLOBAL + 8, 2, RACE_WRITE, 4), 1);
  assert_int_equal(f.found[0].before_pc, 2);
  assert_int_equal(touch(&f, 0, 0, 0, GLOBAL + 12, 4, RACE_WRITE, 5), 0);
  close_race(&f);
}

static void lanes_of_a_warp(void **state) {
  fixture f = open_race();
  touch(&f, 0, 0, 0, 16, 4, RACE_WRITE, 1);
  assert_int_equal(touch(&f, 0, 0, 1, 16, 4, RACE_READ, 2), 1);
  assert_true(f.found[0].lockstep);
  touch(&f, 0, 0, 0, 20, 4, RACE_WRITE, 3);
  race_meet(f.block[0], 0, 0x3, 0xff, true); /* lanes 0 and 1 */
  assert_int_equal(touch(&f, 0, 0, 1, 20, 4, RACE_READ, 4), 0);
  assert_int_equal(touch(&f, 0, 0, 2, 20, 4, RACE_READ, 5), 1);
  race_meet(f.block[0], 0, 0xff, 0xff, true);
  assert_int_equal(touch(&f, 0, 0, 2, 20, 4, RACE_WRITE, 6), 0);
  /* lanes that have parted since: no step to keep */
  touch(&f, 0, 1, 0, 32, 4, RACE_WRITE, 7);
  race_access(f.block[0], 1, 1, true, 36, 4, RACE_WRITE, 8, 0x2, f.found, 3);
  assert_int_equal(touch(&f, 0, 1, 2, 32, 4, RACE_READ, 9), 1);
  assert_false(f.found[0].lockstep);
  /* half of a warp that runs together, apart from the others */
  race_access(f.block[0], 1, 4, true, 40, 4, RACE_WRITE, 10, 0xffff, f.found, 3);
  assert_int_equal(race_access(f.block[0], 1, 5, true, 40, 4, RACE_READ, 11, 0xffff, f.found, 3), 1);
  assert_true(f.found[0].lockstep);
  assert_int_equal(race_access(f.block[0], 1, 20, true, 40, 4, RACE_READ, 12, 0xffff0000, f.found, 3), 1);
  assert_false(f.found[0].lockstep);
  close_race(&f);
}

static void flags_pass_knowledge_on(void **state) {
  fixture f = open_race();
  uint32_t load = RACE_READ | RACE_STRONG | RACE_ACQUIRES, store = RACE_WRITE | RACE_STRONG;
  touch(&f, 0, 0, 0, GLOBAL, 4, RACE_WRITE, 1);
  touch(&f, 0, 0, 0, GLOBAL + 64, 4, store, 2); /* without a fence: nothing is passed on */
  race_synchronise(f.block[0], 0, 0, false, GLOBAL + 64, store);
  assert_int_equal(touch(&f, 1, 1, 5, GLOBAL + 64, 4, load, 3), 0);
  race_synchronise(f.block[1], 1, 5, false, GLOBAL + 64, load);
  assert_int_equal(touch(&f, 1, 1, 5, GLOBAL, 4, RACE_READ, 4), 1);
  touch(&f, 0, 0, 0, GLOBAL + 128, 4, RACE_WRITE, 5);
  race_fence(f.block[0], 0, true); /* of the block's scope: not for the other block */
  race_synchronise(f.block[0], 0, 0, false, GLOBAL + 64, store);
  race_synchronise(f.block[1], 1, 5, false, GLOBAL + 64, load);
  assert_int_equal(touch(&f, 1, 1, 5, GLOBAL + 128, 4, RACE_READ, 6), 1);
  race_synchronise(f.block[0], 1, 9, false, GLOBAL + 64, load);
  assert_int_equal(touch(&f, 0, 1, 9, GLOBAL + 128, 4, RACE_READ, 7), 0);
  touch(&f, 0, 0, 0, GLOBAL + 192, 4, RACE_WRITE, 8);
  race_fence(f.block[0], 0, false);
  race_synchronise(f.block[0], 0, 0, false, GLOBAL + 64, store);
  race_synchronise(f.block[1], 1, 5, false, GLOBAL + 64, load);
  assert_int_equal(touch(&f, 1, 1, 5, GLOBAL + 192, 4, RACE_READ, 9), 0);
  assert_int_equal(touch(&f, 1, 0, 5, GLOBAL + 192, 4, RACE_READ, 10), 1); /* another warp has not looked */
  race_barrier(f.block[1]);
  assert_int_equal(touch(&f, 1, 0, 6, GLOBAL + 192, 4, RACE_READ, 11), 0); /* now it has been told */
  close_race(&f);
}

static void atomics_do_not_race(void **state) {
  fixture f = open_race();
  uint32_t atomic = RACE_ATOMIC | RACE_STRONG;
  assert_int_equal(touch(&f, 0, 0, 0, GLOBAL, 4, atomic, 1), 0);
  assert_int_equal(touch(&f, 1, 0, 0, GLOBAL, 4, atomic, 2), 0);
  assert_int_equal(touch(&f, 1, 1, 0, GLOBAL, 4, RACE_READ, 3), 1);
  assert_int_equal(touch(&f, 0, 0, 0, GLOBAL + 4, 4, atomic | RACE_BLOCK_SCOPE, 4), 0);
  assert_int_equal(touch(&f, 1, 0, 0, GLOBAL + 4, 4, atomic, 5), 1); /* the other one's was for its block only */
  close_race(&f);
}

static void the_same_value_is_benign(void **state) {
  fixture f = open_race();
  touch(&f, 0, 0, 0, GLOBAL, 4, RACE_WRITE, 1);
  assert_int_equal(touch(&f, 1, 0, 0, GLOBAL, 4, RACE_WRITE | RACE_SAME, 2), 1);
  assert_true(f.found[0].benign);
  assert_int_equal(touch(&f, 1, 1, 0, GLOBAL, 4, RACE_READ, 3), 1); /* with the write that changed it */
  assert_int_equal(f.found[0].before_pc, 1);
  assert_false(f.found[0].benign);
  close_race(&f);
}

static void some_warps_meet(void **state) {
  fixture f = open_race();
  touch(&f, 0, 0, 0, 16, 4, RACE_WRITE, 1);
  race_arrive(f.block[0], 0, 3);
  touch(&f, 0, 0, 0, 20, 4, RACE_WRITE, 2); /* behind the arrival */
  race_arrive(f.block[0], 1, 3);
  race_depart(f.block[0], 1, 3);
  race_barrier_over(f.block[0], 3);
  assert_int_equal(touch(&f, 0, 1, 0, 16, 4, RACE_READ, 3), 0);
  assert_int_equal(touch(&f, 0, 1, 0, 20, 4, RACE_READ, 4), 1);
  close_race(&f);
}

static void launches_are_ordered(void **state) {
  fixture f = open_race();
  touch(&f, 0, 0, 0, GLOBAL, 4, RACE_WRITE, 1);
  for (uint32_t n = 0; n < 2; n++) race_block_end(f.block[n]);
  race_launch(f.race, 2);
  for (uint32_t n = 0; n < 2; n++) f.block[n] = race_block_begin(f.race, n, 256);
  assert_int_equal(touch(&f, 1, 0, 0, GLOBAL, 4, RACE_WRITE, 2), 0);
  close_race(&f);
}

static void memory_is_bounded(void **state) {
  fixture f = open_race();
  race_free(f.race);
  f.race = race_create(1 << 20); /* 21 pages of 4 KiB */
  race_launch(f.race, 1);
  race_block *b = race_block_begin(f.race, 0, 0), *other = race_block_begin(f.race, 1, 0);
  for (uint64_t page = 0; page < 1000; page++)
    race_access(b, 0, 0, false, GLOBAL + page * 4096, 4, RACE_WRITE, 1, UINT32_MAX, f.found, 3);
  assert_true(race_overflowed(f.race));
  /* the first ones are followed */
  assert_int_equal(race_access(other, 0, 0, false, GLOBAL, 4, RACE_WRITE, 2, UINT32_MAX, f.found, 3), 1);
  race_launch(f.race, 1);
  /* and others in the next launch */
  race_access(b, 0, 0, false, GLOBAL + 999 * 4096, 4, RACE_WRITE, 3, UINT32_MAX, f.found, 3);
  assert_int_equal(race_access(other, 0, 0, false, GLOBAL + 999 * 4096, 4, RACE_WRITE, 4, UINT32_MAX, f.found, 3), 1);
  race_block_end(b);
  race_block_end(other);
  for (uint32_t n = 0; n < 2; n++) free(f.block[n]);
  race_free(f.race);
}

static void new_memory_is_new(void **state) {
  fixture f = open_race();
  for (uint32_t word = 0; word < 4096; word++) touch(&f, 0, 0, 0, GLOBAL + 4 * word, 4, RACE_WRITE, 1);
  touch(&f, 0, 0, 0, GLOBAL + 3 * 4096 + 1, 1, RACE_WRITE, 1); /* a page of bytes */
  race_forget(f.race, GLOBAL + 4092, 8200);
  assert_int_equal(touch(&f, 1, 0, 0, GLOBAL + 4088, 4, RACE_WRITE, 2), 1);
  assert_int_equal(touch(&f, 1, 0, 0, GLOBAL + 4092, 4, RACE_WRITE, 2), 0);
  assert_int_equal(touch(&f, 1, 0, 0, GLOBAL + 8192, 4, RACE_WRITE, 2), 0);
  assert_int_equal(touch(&f, 1, 0, 0, GLOBAL + 12288, 1, RACE_WRITE, 2), 0);
  assert_int_equal(touch(&f, 1, 0, 0, GLOBAL + 12292, 1, RACE_WRITE, 2), 1);
  race_forget(f.race, GLOBAL - 4096, 100); /* where nothing is known */
  close_race(&f);
}

/* A chain of blocks longer than a view has room for: no false alarm at its end. */
static void long_chains(void **state) {
  enum { BLOCKS = 3 * RACE_VIEW_BLOCKS };
  race *r = race_create(UINT64_C(1) << 30);
  race_found found[3];
  uint32_t strong = RACE_ATOMIC | RACE_STRONG | RACE_ACQUIRES;
  race_launch(r, 1);
  race_block **blocks = calloc(BLOCKS, sizeof *blocks);
  for (uint32_t n = 0; n < BLOCKS; n++) {
    blocks[n] = race_block_begin(r, n, 0);
    race_access(blocks[n], 0, 0, false, GLOBAL + 8 * n, 4, RACE_WRITE, n, UINT32_MAX, found, 3);
    race_fence(blocks[n], 0, false);
    race_synchronise(blocks[n], 0, 0, false, GLOBAL + (1 << 20), strong);
  }
  for (uint32_t n = 0; n < BLOCKS; n++)
    assert_int_equal(
        race_access(blocks[BLOCKS - 1], 0, 0, false, GLOBAL + 8 * n, 4, RACE_READ, 1, UINT32_MAX, found, 3), 0);
  /* what a block does after its part of the chain is known to no other block */
  race_access(blocks[0], 0, 0, false, GLOBAL + (2 << 20), 4, RACE_WRITE, 7, UINT32_MAX, found, 3);
  assert_int_equal(
      race_access(blocks[BLOCKS - 1], 0, 0, false, GLOBAL + (2 << 20), 4, RACE_READ, 8, UINT32_MAX, found, 3), 1);
  for (uint32_t n = 0; n < BLOCKS; n++) race_block_end(blocks[n]);
  free(blocks);
  race_free(r);
}

/* ---- at random: three blocks of two warps of four lanes ---- */

enum {
  BLOCKS = 3,
  WARPS = 2,
  LANES = 4,
  THREADS = BLOCKS * WARPS * LANES,
  EVENTS = 400,
  WORDS = 8,
  VARIABLES = 3,
  ROUNDS = 400
};
typedef struct set {
  uint64_t bits[(EVENTS + 63) / 64];
} set;

typedef struct event {
  uint32_t block, warp, lane, flags;
  uint64_t address;
  uint32_t bytes;
  bool shared;
} event;
typedef struct variable {
  set device, block;
  uint32_t owner;
} variable;

typedef struct model {
  event events[EVENTS];
  uint32_t count;
  set others[BLOCKS][WARPS];     /* what each warp knows of other warps */
  set own[BLOCKS][WARPS][LANES]; /* what each lane knows of its warp */
  set fenced[BLOCKS][WARPS][2];
  bool has_fence[BLOCKS][WARPS][2];
  variable variables[VARIABLES];
  set gate[BLOCKS];
} model;

static uint32_t random_state;
static uint32_t pick(uint32_t below) {
  random_state = random_state * 1664525u + 1013904223u;
  return (random_state >> 8) % below;
}

static bool has(const set *s, uint32_t e) { return s->bits[e / 64] >> (e % 64) & 1; }
static void add(set *s, uint32_t e) { s->bits[e / 64] |= UINT64_C(1) << (e % 64); }
static void unite(set *to, const set *from) {
  for (size_t n = 0; n < sizeof to->bits / sizeof to->bits[0]; n++) to->bits[n] |= from->bits[n];
}
static set events_of(const model *m, uint32_t block, uint32_t warp, uint32_t lanes) {
  set s = {{0}};
  for (uint32_t e = 0; e < m->count; e++)
    if (m->events[e].block == block && m->events[e].warp == warp && (lanes >> m->events[e].lane & 1)) add(&s, e);
  return s;
}

static bool knows(const model *m, uint32_t block, uint32_t warp, uint32_t lane, uint32_t e) {
  bool mine = m->events[e].block == block && m->events[e].warp == warp;
  return has(mine ? &m->own[block][warp][lane] : &m->others[block][warp], e);
}

static bool conflict(const model *m, uint32_t a, uint32_t b) {
  const event *x = &m->events[a], *y = &m->events[b];
  uint32_t writes = RACE_WRITE | RACE_ATOMIC;
  if (x->shared != y->shared || (x->shared && x->block != y->block)) return false;
  if (x->address + x->bytes <= y->address || y->address + y->bytes <= x->address) return false;
  if (!(x->flags & writes) && !(y->flags & writes)) return false;
  bool meet = (x->flags & RACE_STRONG) && (y->flags & RACE_STRONG);
  return !meet || (x->block != y->block && ((x->flags | y->flags) & RACE_BLOCK_SCOPE));
}

/* All that a warp knows and has done. */
static set all_of(const model *m, uint32_t block, uint32_t warp) {
  set s = m->others[block][warp], done = events_of(m, block, warp, 15);
  unite(&s, &done);
  return s;
}

static void meet_lanes(model *m, uint32_t block, uint32_t warp, uint32_t lanes) {
  set s = events_of(m, block, warp, lanes);
  for (uint32_t l = 0; l < LANES; l++)
    if (lanes >> l & 1) unite(&s, &m->own[block][warp][l]);
  for (uint32_t l = 0; l < LANES; l++)
    if (lanes >> l & 1) m->own[block][warp][l] = s;
}

static void give(variable *v, set *to, const set *from, bool has_any, bool adds) {
  static const set none;
  if (!adds) *to = has_any ? *from : none;
  else if (has_any) unite(to, from);
}

static void model_fence(model *m, uint32_t block, uint32_t warp, bool block_scope) {
  m->fenced[block][warp][0] = all_of(m, block, warp);
  m->has_fence[block][warp][0] = true;
  if (block_scope) return;
  m->fenced[block][warp][1] = m->fenced[block][warp][0];
  m->has_fence[block][warp][1] = true;
}

static void learn_set(model *m, uint32_t block, uint32_t warp, uint32_t lane, const set *s) {
  set mine = events_of(m, block, warp, 15);
  unite(&m->others[block][warp], s); /* its own events in there are never asked for */
  for (size_t n = 0; n < sizeof mine.bits / sizeof mine.bits[0]; n++)
    m->own[block][warp][lane].bits[n] |= s->bits[n] & mine.bits[n];
}

static void model_synchronise(model *m, uint32_t block, uint32_t warp, uint32_t lane, uint32_t number, uint32_t flags) {
  static const set none;
  variable *v = &m->variables[number];
  if (flags & RACE_RELEASES) model_fence(m, block, warp, flags & RACE_BLOCK_SCOPE);
  if (flags & RACE_ACQUIRES) {
    set device = v->device, within = v->owner == block ? v->block : none;
    learn_set(m, block, warp, lane, &device);
    learn_set(m, block, warp, lane, &within);
  }
  if (!(flags & (RACE_WRITE | RACE_ATOMIC))) return;
  bool adds = flags & RACE_ATOMIC;
  if (!m->has_fence[block][warp][0] && adds) return;
  give(v, &v->device, &m->fenced[block][warp][1], m->has_fence[block][warp][1], adds);
  if (v->owner != block) v->block = none, v->owner = block;
  give(v, &v->block, &m->fenced[block][warp][0], m->has_fence[block][warp][0], adds);
}

typedef struct tally {
  uint32_t hazards, found, expected;
} tally;

static void do_access(model *m, race_block **blocks, bool *raced, tally *t) {
  static const uint32_t kinds[] = {RACE_READ,
                                   RACE_READ,
                                   RACE_WRITE,
                                   RACE_ATOMIC | RACE_STRONG,
                                   RACE_READ | RACE_STRONG,
                                   RACE_WRITE | RACE_STRONG,
                                   RACE_ATOMIC | RACE_STRONG | RACE_BLOCK_SCOPE};
  uint32_t e = m->count, block = pick(BLOCKS), warp = pick(WARPS), lane = pick(LANES), word = pick(WORDS),
           bytes = pick(6) ? 4 : 1;
  bool shared = word >= WORDS / 2;
  event *now = &m->events[m->count++];
  *now = (event){block, warp,  lane, kinds[pick(7)], (shared ? 0 : GLOBAL) + word * 4u + (bytes == 1 ? pick(4) : 0),
                 bytes, shared};
  race_found found[3];
  uint32_t count =
      race_access(blocks[block], warp, lane, shared, now->address, bytes, now->flags, e, UINT32_MAX, found, 3);
  for (uint32_t n = 0; n < count; n++) { /* never a false alarm */
    uint32_t before = found[n].before_pc;
    assert_true(before < e && conflict(m, before, e) && !knows(m, block, warp, lane, before));
    assert_int_equal(found[n].before.block, m->events[before].block);
    assert_int_equal(found[n].before.lane, m->events[before].lane);
  }
  uint32_t expected = 0, readers = 0, writes = RACE_WRITE | RACE_ATOMIC;
  bool with_read = false, with_last = false; /* the last write of its bytes */
  for (uint32_t b = 0; b < e; b++) {
    const event *before = &m->events[b];
    bool hazard = conflict(m, b, e) && !knows(m, block, warp, lane, b),
         overlaps = before->address < now->address + bytes && now->address < before->address + before->bytes;
    bool here = before->shared == shared && (!shared || before->block == block);
    expected += hazard;
    with_read |= hazard && !(before->flags & writes);
    if (here && overlaps && before->flags & writes) with_last = hazard;
    readers += here && before->flags & RACE_READ && before->address / 4 == now->address / 4;
  }
  /* The first race of a word is found, but for what atomics that are not ordered among themselves hide, if all its
   * readers are kept. */
  bool *seen = &raced[word + (shared ? block * WORDS : 0)];
  if (!*seen && (with_last || (with_read && !(now->flags & RACE_STRONG) && readers <= 2))) {
    t->expected++;
    assert_true(count > 0);
  }
  t->hazards += expected != 0;
  t->found += count != 0;
  *seen |= expected != 0;
  add(&m->own[block][warp][lane], e);
}

static void do_order(model *m, race_block **blocks) {
  uint32_t block = pick(BLOCKS), warp = pick(WARPS), lane = pick(LANES), what = pick(12);
  race_block *b = blocks[block];
  if (what == 0) { /* the whole block */
    race_arrive(b, 0, 0);
    race_arrive(b, 1, 0);
    race_barrier(b);
    race_barrier_over(b, 0);
    set s = all_of(m, block, 0), other = all_of(m, block, 1);
    unite(&s, &other);
    for (uint32_t w = 0; w < WARPS; w++) {
      m->others[block][w] = s;
      for (uint32_t l = 0; l < LANES; l++) m->own[block][w][l] = s;
    }
  } else if (what == 1) { /* one warp arrives, the other waits */
    race_arrive(b, warp, 5);
    set s = all_of(m, block, warp);
    race_arrive(b, !warp, 5);
    race_depart(b, !warp, 5);
    race_barrier_over(b, 5);
    unite(&m->others[block][!warp], &s);
    meet_lanes(m, block, !warp, 15);
  } else if (what == 2) {
    uint32_t lanes = 1 + pick(15);
    race_meet(b, warp, lanes, 15, true);
    meet_lanes(m, block, warp, lanes);
  } else if (what == 3) {
    race_meet(b, warp, 15, 15, false);
  } else if (what < 7) {
    bool scope = pick(2);
    race_fence(b, warp, scope);
    model_fence(m, block, warp, scope);
  } else {
    static const uint32_t kinds[] = {RACE_READ | RACE_STRONG | RACE_ACQUIRES,
                                     RACE_WRITE | RACE_STRONG,
                                     RACE_ATOMIC | RACE_STRONG | RACE_ACQUIRES,
                                     RACE_ATOMIC | RACE_STRONG,
                                     RACE_WRITE | RACE_STRONG | RACE_RELEASES,
                                     RACE_ATOMIC | RACE_STRONG | RACE_ACQUIRES | RACE_RELEASES | RACE_BLOCK_SCOPE};
    uint32_t variable = pick(VARIABLES), flags = kinds[pick(6)];
    race_synchronise(b, warp, lane, false, GLOBAL + 4096 + variable * 4, flags);
    model_synchronise(m, block, warp, lane, variable, flags);
  }
}

static void random_programs(void **state) {
  tally t = {0};
  for (uint32_t round = 0; round < ROUNDS; round++) {
    static model m;
    bool raced[WORDS * (BLOCKS + 1)] = {false};
    random_state = round * 7919 + 1;
    memset(&m, 0, sizeof m);
    for (uint32_t v = 0; v < VARIABLES; v++) m.variables[v].owner = BLOCKS;
    race *r = race_create(UINT64_C(1) << 30);
    race_launch(r, WARPS);
    race_block *blocks[BLOCKS];
    for (uint32_t n = 0; n < BLOCKS; n++) blocks[n] = race_block_begin(r, n, 64);
    uint32_t often = 1 + pick(4);
    while (m.count < EVENTS / 4) {
      if (pick(1 + often)) do_order(&m, blocks);
      else do_access(&m, blocks, raced, &t);
    }
    for (uint32_t n = 0; n < BLOCKS; n++) race_block_end(blocks[n]);
    race_free(r);
  }
  print_message("%u accesses raced, %u were found, %u had to be\n", t.hazards, t.found, t.expected);
  assert_true(t.expected > 500 && t.found * 10 >= t.hazards * 8);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(hazards_of_each_kind),     cmocka_unit_test(barriers_order),
      cmocka_unit_test(bytes_are_told_apart),     cmocka_unit_test(lanes_of_a_warp),
      cmocka_unit_test(flags_pass_knowledge_on),  cmocka_unit_test(atomics_do_not_race),
      cmocka_unit_test(the_same_value_is_benign), cmocka_unit_test(some_warps_meet),
      cmocka_unit_test(launches_are_ordered),     cmocka_unit_test(memory_is_bounded),
      cmocka_unit_test(new_memory_is_new),        cmocka_unit_test(long_chains),
      cmocka_unit_test(random_programs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
