/* SPDX-License-Identifier: Apache-2.0 */
/* See tiers.h: a table of places by address, and a list of them for each tier by when they moved.
 *
 * Of shared tiers each step that changes them is kept until the next meeting, with what undoes it. Steps are taken back
 * in reverse order, so that each finds its neighbours, and the first free place, as it left them. */
#include "paging/tiers.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/memory.h"

typedef enum step_kind { STEP_MADE, STEP_FREED, STEP_LEFT, STEP_ENTERED } step_kind;

typedef struct tier_step {
  tier_place before; /* FREED, LEFT: the place */
  uint32_t at;
  step_kind kind;
} tier_step;

struct tiers {
  tier of[TIERS_MAX];
  uint32_t count, host;
  FF_VEC(tier_place) places; /* [0]: none */
  uint32_t free_place, used_places;
  uint32_t *buckets;
  uint32_t bucket_count; /* a power of two */
  bool waiting;
  /* shared ones: */
  tier_log *log; /* NULL: they are not */
  uint32_t device;
  bool again; /* what was noted is done again, now that of the device `by` */
  uint32_t by;
  FF_VEC(tier_step) steps;                       /* since the last meeting */
  uint64_t peaks[TIERS_MAX];                     /* at the last meeting */
  tier_moved moved[TIER_LOG_DEVICES][TIERS_MAX]; /* between the last two, as all together have it */
};

tiers *tiers_create(const uint64_t *capacities, uint32_t count, uint32_t host) {
  tiers *t = ff_alloc(sizeof *t);
  FF_ASSERT(count <= TIERS_MAX && host < count);
  t->count = count;
  t->host = host;
  for (uint32_t i = 0; i < count; i++) t->of[i].capacity = capacities[i];
  FF_PUSH(&t->places, ((tier_place){0}));
  t->bucket_count = 256;
  t->buckets = ff_alloc(t->bucket_count * sizeof *t->buckets);
  return t;
}

void tiers_free(tiers *t) {
  if (!t) return;
  free(t->places.items);
  free(t->buckets);
  free(t->steps.items);
  free(t);
}

void tiers_grow(tiers *t, uint64_t bytes) { t->of[t->host].capacity += bytes; }
uint32_t tiers_count(const tiers *t) { return t->count; }
tier *tiers_of(tiers *t, uint32_t number) { return &t->of[number]; }
bool tiers_waiting(const tiers *t) { return t->waiting; }
void tiers_settled(tiers *t) { t->waiting = false; }

/* ---- shared tiers: notes and steps ---- */

void tiers_share(tiers *t, tier_log *log, uint32_t device) {
  FF_ASSERT(!t->used_places && device < TIER_LOG_DEVICES);
  t->log = log;
  t->device = device;
}

static void note(tiers *t, tier_note_kind kind, uint64_t address, uint32_t bytes, uint64_t now) {
  if (t->log)
    tier_log_note(t->log, t->device,
                  (tier_note){.address = address, .time = now, .bytes = bytes, .kind = (uint8_t)kind});
}

static void step(tiers *t, step_kind kind, uint32_t at) {
  if (t->log && !t->again) FF_PUSH(&t->steps, ((tier_step){.before = t->places.items[at], .at = at, .kind = kind}));
}

static void moved(tiers *t, uint32_t number, uint64_t read, uint64_t written) {
  t->waiting = true;
  if (!t->log) return;
  if (!t->again) {
    tier_log_moved(t->log, t->device, number, (tier_moved){.read = read, .written = written});
    return;
  }
  t->moved[t->by][number].read += read;
  t->moved[t->by][number].written += written;
}

/* ---- places by address ---- */

static uint32_t *bucket_of(const tiers *t, uint64_t address) {
  return &t->buckets[(address * UINT64_C(0x9e3779b97f4a7c15)) >> 32 & (t->bucket_count - 1)];
}

static uint32_t find(const tiers *t, uint64_t address) {
  uint32_t at = *bucket_of(t, address);
  while (at && t->places.items[at].address != address) at = t->places.items[at].next;
  return at;
}

tier_place *tiers_find(tiers *t, uint64_t address) {
  uint32_t at = find(t, address);
  return at ? &t->places.items[at] : NULL;
}

static void buckets_grow(tiers *t) {
  free(t->buckets);
  t->bucket_count *= 2;
  t->buckets = ff_alloc(t->bucket_count * sizeof *t->buckets);
  for (uint32_t i = 1; i < t->places.count; i++) {
    if (!t->places.items[i].bytes) continue;
    uint32_t *bucket = bucket_of(t, t->places.items[i].address);
    t->places.items[i].next = *bucket;
    *bucket = i;
  }
}

static uint32_t make(tiers *t, uint64_t address, uint32_t bytes) {
  uint32_t at = t->free_place;
  if (++t->used_places > t->bucket_count) buckets_grow(t);
  if (at) {
    t->free_place = t->places.items[at].next;
  } else {
    FF_ASSERT(t->places.count < UINT32_MAX);
    FF_PUSH(&t->places, ((tier_place){0}));
    at = (uint32_t)t->places.count - 1;
  }
  uint32_t *bucket = bucket_of(t, address);
  t->places.items[at] = (tier_place){.address = address, .bytes = bytes, .next = *bucket};
  *bucket = at;
  step(t, STEP_MADE, at);
  return at;
}

static void forget(tiers *t, uint32_t at) {
  uint32_t *link = bucket_of(t, t->places.items[at].address);
  while (*link != at) link = &t->places.items[*link].next;
  *link = t->places.items[at].next;
  t->places.items[at] = (tier_place){.next = t->free_place};
  t->free_place = at;
  t->used_places--;
}

/* ---- a tier's places, by when they moved ---- */

static void unlink_place(tiers *t, uint32_t at) {
  const tier_place *place = &t->places.items[at];
  tier *from = &t->of[place->tier];
  *(place->newer ? &t->places.items[place->newer].older : &from->newest) = place->older;
  *(place->older ? &t->places.items[place->older].newer : &from->oldest) = place->newer;
  from->used -= place->bytes;
}

static void leave(tiers *t, uint32_t at) {
  step(t, STEP_LEFT, at);
  unlink_place(t, at);
}

/* The tier's next place below is made by those that moved longest ago; the last tier has no next one. */
static void enter(tiers *t, uint32_t number, uint32_t at) {
  tier *to = &t->of[number];
  uint32_t bytes = t->places.items[at].bytes;
  while (number + 1 < t->count && to->used + bytes > to->capacity && to->oldest) {
    uint32_t victim = to->oldest;
    uint32_t gone = t->places.items[victim].bytes;
    leave(t, victim);
    to->down += gone;
    t->of[number + 1].written += gone;
    moved(t, number, gone, 0);
    moved(t, number + 1, 0, gone);
    enter(t, number + 1, victim);
  }
  tier_place *place = &t->places.items[at];
  place->tier = number;
  place->newer = 0;
  place->older = to->newest;
  *(to->newest ? &t->places.items[to->newest].newer : &to->oldest) = at;
  to->newest = at;
  to->used += bytes;
  if (to->used > to->peak) to->peak = to->used;
  step(t, STEP_ENTERED, at);
}

/* ---- what moves ---- */

static tier_place *put(tiers *t, uint32_t number, uint64_t address, uint32_t bytes) {
  uint32_t at = find(t, address);
  if (at) leave(t, at);
  else at = make(t, address, bytes);
  FF_ASSERT(t->places.items[at].bytes == bytes);
  t->places.items[at].ready = 0;
  enter(t, number, at);
  return &t->places.items[at];
}

static tier_place *arrive(tiers *t, uint64_t address, uint32_t bytes) {
  if (t->host) {
    t->of[0].written += bytes;
    moved(t, 0, 0, bytes);
  }
  return put(t, 0, address, bytes);
}

static tier_place *raise_place(tiers *t, uint64_t address) {
  uint32_t at = find(t, address);
  if (!at) return NULL;
  uint32_t from = t->places.items[at].tier, bytes = t->places.items[at].bytes;
  leave(t, at);
  if (from != t->host) {
    t->of[from].to_host += bytes;
    moved(t, from, bytes, 0);
    moved(t, t->host, 0, bytes);
  }
  enter(t, t->host, at);
  return &t->places.items[at];
}

static void read_place(tiers *t, uint64_t address, uint32_t bytes) {
  uint32_t at = find(t, address);
  if (!at) {
    put(t, t->host, address, bytes); /* what was never written has been the host's all along */
    return;
  }
  uint32_t number = t->places.items[at].tier;
  leave(t, at);
  enter(t, number, at);
  if (number == t->host) return;
  t->of[number].to_gpu += bytes;
  moved(t, number, bytes, 0);
}

static void drop(tiers *t, uint64_t address) {
  uint32_t at = find(t, address);
  if (!at) return;
  leave(t, at);
  step(t, STEP_FREED, at);
  forget(t, at);
}

tier_place *tiers_put(tiers *t, uint64_t address, uint32_t bytes, uint64_t now) {
  note(t, TIER_PUT, address, bytes, now);
  return put(t, t->host, address, bytes);
}

tier_place *tiers_arrive(tiers *t, uint64_t address, uint32_t bytes, uint64_t now) {
  note(t, TIER_ARRIVE, address, bytes, now);
  return arrive(t, address, bytes);
}

tier_place *tiers_raise(tiers *t, uint64_t address, uint64_t now) {
  note(t, TIER_RAISE, address, 0, now);
  return raise_place(t, address);
}

void tiers_read(tiers *t, uint64_t address, uint32_t bytes, uint64_t now) {
  note(t, TIER_READ, address, bytes, now);
  read_place(t, address, bytes);
}

void tiers_drop(tiers *t, uint64_t address, uint64_t now) {
  note(t, TIER_DROP, address, 0, now);
  drop(t, address);
}

void tiers_forget(tiers *t, uint64_t bits, uint64_t mask) {
  for (uint32_t i = 1; i < t->places.count; i++)
    if (t->places.items[i].bytes && (t->places.items[i].address & mask) == bits) drop(t, t->places.items[i].address);
}

/* ---- shared tiers: meetings ---- */

static void put_back(tiers *t, uint32_t at, const tier_place *before) {
  tier_place *place = &t->places.items[at];
  tier *of = &t->of[before->tier];
  place->tier = before->tier;
  place->newer = before->newer;
  place->older = before->older;
  *(place->newer ? &t->places.items[place->newer].older : &of->newest) = at;
  *(place->older ? &t->places.items[place->older].newer : &of->oldest) = at;
  of->used += place->bytes;
}

static void remember(tiers *t, uint32_t at, const tier_place *before) {
  FF_ASSERT(t->free_place == at);
  uint32_t *bucket = bucket_of(t, before->address);
  t->free_place = t->places.items[at].next;
  t->places.items[at] = *before;
  t->places.items[at].next = *bucket;
  *bucket = at;
  t->used_places++;
}

static void take_back(tiers *t, const tier_step *s) {
  switch (s->kind) {
  case STEP_MADE: forget(t, s->at); break;
  case STEP_FREED: remember(t, s->at, &s->before); break;
  case STEP_LEFT: put_back(t, s->at, &s->before); break;
  case STEP_ENTERED: unlink_place(t, s->at); break;
  }
}

static void do_again(tiers *t, const tier_note *n) {
  t->by = n->device;
  switch ((tier_note_kind)n->kind) {
  case TIER_ARRIVE: arrive(t, n->address, n->bytes); break;
  case TIER_PUT: put(t, t->host, n->address, n->bytes); break;
  case TIER_RAISE: raise_place(t, n->address); break;
  case TIER_READ: read_place(t, n->address, n->bytes); break;
  case TIER_DROP: drop(t, n->address); break;
  }
}

/* Of all places, in the order of each tier. */
static uint64_t digest(const tiers *t) {
  uint64_t sum = 1;
  for (uint32_t i = 0; i < t->count; i++)
    for (uint32_t at = t->of[i].newest; at; at = t->places.items[at].older)
      sum = (sum ^ (t->places.items[at].address + i)) * UINT64_C(0x9e3779b97f4a7c15);
  return sum | 1;
}

void tiers_met(tiers *t) {
  size_t count;
  FF_ASSERT(t->log && !t->waiting);
  const tier_note *notes = tier_log_notes(t->log, &count);
  while (t->steps.count) take_back(t, &t->steps.items[--t->steps.count]);
  for (uint32_t i = 0; i < t->count; i++) t->of[i].peak = t->peaks[i];
  memset(t->moved, 0, sizeof t->moved);
  t->again = true;
  for (size_t i = 0; i < count; i++) do_again(t, &notes[i]);
  t->again = t->waiting = false;
  for (uint32_t i = 0; i < t->count; i++) {
    t->of[i].to_gpu = t->of[i].to_host = t->of[i].written = t->of[i].down = 0;
    t->peaks[i] = t->of[i].peak;
  }
  if (ff_check_level >= 2) tier_log_say_digest(t->log, t->device, digest(t));
}

static uint64_t beyond(uint64_t all, uint64_t own) { return all > own ? all - own : 0; }

tier_moved tiers_owed(const tiers *t, uint32_t device, uint32_t number) {
  tier_moved all = t->moved[device][number], own = tier_log_moved_by(t->log, device, number);
  return (tier_moved){.read = beyond(all.read, own.read), .written = beyond(all.written, own.written)};
}

void tiers_check(const tiers *t) {
  uint64_t used[TIERS_MAX] = {0};
  uint32_t places = 0;
  for (uint32_t i = 1; i < t->places.count; i++) {
    const tier_place *place = &t->places.items[i];
    if (!place->bytes) continue;
    FF_ASSERT(find(t, place->address) == i);
    used[place->tier] += place->bytes;
    places++;
  }
  FF_ASSERT(places == t->used_places);
  for (uint32_t i = 0; i < t->count; i++)
    FF_ASSERT(used[i] == t->of[i].used && (i + 1 == t->count || used[i] <= t->of[i].capacity));
}
