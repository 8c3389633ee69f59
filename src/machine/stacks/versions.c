/* SPDX-License-Identifier: Apache-2.0 */
/* The version oracle for the caches of a machine with memory stacks, at the deepest check level
 * (Hsieh et al., ISCA 2016, section 4.4.2).
 *
 * Writes get numbers as they become *known*: one of the GPU at once, one of an instance in a stack when its answer has
 * come. Each cached line has the number that was the last one when it was filled. A hit is on a *stale* line if a
 * write that its reader must see has become known since:
 *
 *     L2                any write of an instance in a stack
 *     an SM's L1        a write of an instance that this SM had sent away
 *     an L1 in a stack  what was known when the instance began that now runs there
 *
 * (Caches of other SMs need not see a write before the next kernel begins.) And what an instance's block wrote before
 * it was sent away must be in memory before the instance reads there. A violation ends the program with the place, as
 * all such checks do: it would be a wrong result of the machine.
 *
 * It is told of writes and looks at hits; it changes no times and no counters. */
#include "machine/stacks/versions.h"

#include <stdlib.h>

#include "base/check.h"

typedef struct known_write { /* of a line, the last one of each kind */
  uint64_t line;             /* number + 1; 0: an empty place */
  uint32_t main, away;       /* numbers; 0: none */
  uint32_t away_sm;          /* that had sent away the instance which wrote */
  uint64_t main_block;       /* whose warp wrote: block.serial */
  ps over;                   /* `main` is in memory */
} known_write;

struct versions {
  uint32_t last;
  known_write *table;
  uint64_t capacity, count;
};

void versions_create(stacks *k) {
  if (ff_check_level < 2 || k->offload == SIM_OFFLOAD_IDEAL) return; /* that one has no steps that could be checked */
  k->versions = ff_alloc(sizeof *k->versions);
  k->versions->capacity = 1 << 12;
  k->versions->table = ff_alloc(k->versions->capacity * sizeof *k->versions->table);
}

void versions_free(stacks *k) {
  if (k->versions) free(k->versions->table);
  free(k->versions);
}

static known_write *place_of(const struct versions *v, uint64_t line) {
  uint64_t at = (line * UINT64_C(0x9e3779b97f4a7c15)) >> 20 & (v->capacity - 1);
  while (v->table[at].line && v->table[at].line != line) at = (at + 1) & (v->capacity - 1);
  return &v->table[at];
}

static void grow(struct versions *v) {
  known_write *old = v->table;
  uint64_t count = v->capacity;
  v->capacity *= 2;
  v->table = ff_alloc(v->capacity * sizeof *v->table);
  for (uint64_t i = 0; i < count; i++)
    if (old[i].line) *place_of(v, old[i].line) = old[i];
  free(old);
}

static known_write *entry_of(struct versions *v, uint64_t address) {
  if (2 * v->count >= v->capacity) grow(v);
  known_write *w = place_of(v, address / TRACE_LINE_BYTES + 1);
  v->count += !w->line;
  w->line = address / TRACE_LINE_BYTES + 1;
  return w;
}

uint32_t versions_now(const stacks *k) { return k->versions ? k->versions->last : 0; }

void versions_wrote(stacks *k, const block *by, uint64_t address, ps over) {
  if (!k->versions) return;
  known_write *w = entry_of(k->versions, address);
  *w = (known_write){w->line, ++k->versions->last, w->away, w->away_sm, by->serial, over};
}

void versions_answered(stacks *k, uint32_t sm, uint64_t address) {
  if (!k->versions) return;
  known_write *w = entry_of(k->versions, address);
  w->away = ++k->versions->last;
  w->away_sm = sm;
}

void versions_l2_hit(const stacks *k, uint64_t address, uint32_t filled) {
  if (!k->versions) return;
  const known_write *w = place_of(k->versions, address / TRACE_LINE_BYTES + 1);
  FF_ASSERT(w->away <= filled); /* the L2 has a line that a block in a stack has written since */
}

void versions_l1_hit(const stacks *k, const sm *m, uint64_t address, uint32_t filled) {
  if (!k->versions) return;
  const known_write *w = place_of(k->versions, address / TRACE_LINE_BYTES + 1);
  if (!m->stack) {
    /* the L1 has a line that a block which it sent to a stack has written since */
    FF_ASSERT(w->away <= filled || w->away_sm != m->index);
    return;
  }
  /* Which instance reads is not known here: all that run on this SM began no later than its last one. */
  FF_ASSERT(w->main <= filled || w->main > m->began_version);
  FF_ASSERT(w->away <= filled || w->away > m->began_version);
}

void versions_near_read(const stacks *k, const stack_instance *i, const block *by, uint64_t address, ps at) {
  if (!k->versions) return;
  const known_write *w = place_of(k->versions, address / TRACE_LINE_BYTES + 1);
  /* the stack reads what its requester's block has still under way */
  FF_ASSERT(!w->main || w->main > i->began_version || w->main_block != by->serial || at >= w->over);
}
