/* SPDX-License-Identifier: Apache-2.0 */
/* What the access stream says of asynchronous copies and of mbarriers: its ASYNC records (trace/stream.h).
 *
 * A copy is over when it is issued, and a wait for one is over at once; when it would have been is the timing half's
 * matter. An mbarrier's arrivals are numbered over the block's whole life, those of its own block and those of others
 * of its cluster each by themselves, and a wait that succeeds waits for all that were made until the phase ended:
 *
 *     awaited by a warp <= over <= arrivals                                  of both                (core_phases_check)
 *
 * Two numberings, as a simulation may leave out the other blocks. A worker runs all blocks of a cluster, so they are
 * one thread's here. */
#include "base/check.h"
#include "base/memory.h"
#include "exec/memory/access.h"

enum { PHASES = 64, COUNT_MAX = 0xffff }; /* mbarriers of a block that are followed; a count of a record */

typedef struct series { /* of arrivals */
  uint32_t arrivals;    /* records so far; */
  uint32_t over;        /* how many those were when the last phase ended */
  uint32_t awaited[EXEC_MAX_WARPS];
} series;

typedef struct phase { /* of one mbarrier */
  uint32_t offset;     /* in shared memory */
  bool odd;            /* the phase that it is in */
  series own, far;     /* of the block, and of others of its cluster */
} phase;

struct core_phases {
  uint32_t count;
  phase items[PHASES];
};

void core_phases_check(const core_block *block) {
  const core_phases *phases = block->phases;
  for (uint32_t n = 0; phases && n < 2 * phases->count; n++) {
    const series *s = n % 2 ? &phases->items[n / 2].far : &phases->items[n / 2].own;
    FF_ASSERT(s->over <= s->arrivals);
    for (uint32_t w = 0; w < block->warp_count; w++) FF_ASSERT(s->awaited[w] <= s->over);
  }
}

void core_phases_start(core_block *block) {
  if (block->phases) block->phases->count = 0;
}

/* The block in whose shared memory the object is; NULL: in none of the cluster's. */
static core_block *home_of(const core_warp *w, const uint64_t *object) {
  const core_cluster *cluster = w->block->cluster;
  const unsigned char *at = (const unsigned char *)object;
  for (uint32_t n = 0; n < cluster->count; n++) {
    core_block *block = cluster->blocks[n];
    if (at >= block->shared && at < block->shared + block->shared_bytes) return block;
  }
  return NULL;
}

/* Of an object in the block's shared memory; NULL: it is one too many. */
static phase *phase_of(core_block *block, const uint64_t *object) {
  ptrdiff_t offset = (const unsigned char *)object - block->shared;
  if (!block->phases) {
    block->phases = ff_alloc(sizeof *block->phases);
    block->phases->count = 0;
  }
  core_phases *phases = block->phases;
  for (uint32_t n = 0; n < phases->count; n++)
    if (phases->items[n].offset == (uint32_t)offset) return &phases->items[n];
  if (phases->count == PHASES) return NULL;
  phase *p = &phases->items[phases->count++];
  *p = (phase){.offset = (uint32_t)offset};
  return p;
}

static void end_phase(phase *p, const uint64_t *object) {
  p->odd = *object >> 63;
  p->own.over = p->own.arrivals;
  p->far.over = p->far.arrivals;
}

/* Has the object's phase ended since something was done to it last? */
void core_trace_mbarrier_before(core_warp *w, const uint64_t *object) {
  core_block *home = home_of(w, object);
  phase *p = home ? phase_of(home, object) : NULL;
  if (p && p->odd != *object >> 63) end_phase(p, object);
}

static void put(core_warp *w, const exec_instr *i, trace_async what, uint32_t id, uint32_t count) {
  core_trace_issue(w, i->index + 1);
  trace_put_async(w->trace, what, id, count);
  w->looks = 0;
}

static void put_arrival(core_warp *w, const exec_instr *i, phase *p, uint32_t id, const core_block *home, bool copied) {
  int32_t away = (int32_t)home->rank - (int32_t)w->block->rank;
  if (home == w->block) {
    p->own.arrivals++;
    put(w, i, copied ? TRACE_ARRIVE_COPIED : TRACE_ARRIVE, id, 0);
  } else {
    p->far.arrivals++;
    put(w, i, copied ? TRACE_ARRIVE_FAR_COPIED : TRACE_ARRIVE_FAR, id, (uint32_t)away & COUNT_MAX);
  }
}

static void put_awaits(core_warp *w, const exec_instr *i, series *s, trace_async what, uint32_t id) {
  for (uint32_t *awaited = &s->awaited[w->index]; *awaited < s->over;) {
    uint32_t more = s->over - *awaited < COUNT_MAX ? s->over - *awaited : COUNT_MAX;
    put(w, i, what, id, more);
    *awaited += more;
  }
}

void core_trace_mbarrier(core_warp *w, const exec_instr *i, const uint64_t *object, core_mbarrier_event event) {
  core_block *home = home_of(w, object);
  phase *p = home ? phase_of(home, object) : NULL;
  if (!p) return;
  uint32_t id = (uint32_t)(p - home->phases->items);
  switch (event) {
  case CORE_MBARRIER_STARTS: end_phase(p, object); break;
  case CORE_MBARRIER_ARRIVES: put_arrival(w, i, p, id, home, false); break;
  case CORE_MBARRIER_COPIES: put_arrival(w, i, p, id, home, true); break;
  case CORE_MBARRIER_IS_OVER:
    if (home != w->block) break; /* waits are for mbarriers of the own block */
    put_awaits(w, i, &p->own, TRACE_AWAIT, id);
    put_awaits(w, i, &p->far, TRACE_AWAIT_FAR, id);
    w->looks = 0;
    break;
  case CORE_MBARRIER_NOTHING: break;
  }
}

/* cp.async.commit_group, .wait_group immediate, .wait_all */
void core_copy_group(exec_warp *x, const exec_instr *i) {
  core_warp *w = (core_warp *)x;
  if (!w->trace) return;
  uint64_t left = (uint64_t)i->immediate;
  if (i->aux != CORE_COPIES_WAIT) put(w, i, TRACE_GROUP, 0, 0);
  if (i->aux != CORE_COPIES_COMMIT) put(w, i, TRACE_WAIT_GROUPS, 0, left < COUNT_MAX ? (uint32_t)left : COUNT_MAX);
}
