/* SPDX-License-Identifier: Apache-2.0 */
/* What the access stream says of asynchronous copies and of mbarriers: its ASYNC records (trace/stream.h).
 *
 * A copy is over when it is issued, and a wait for one is over at once; when it would have been is the timing half's
 * matter. An mbarrier's arrivals are numbered over the block's whole life, and a wait that succeeds waits for all that
 * were made until the phase ended:
 *
 *     awaited by a warp <= over <= arrivals                                                     (core_phases_check)
 *
 * Arrivals from other blocks of the cluster are not counted: as at the cluster's barrier, a block waits for its own. Of
 * an mbarrier that they end a phase of, the phase is over with what the block itself has done for it. */
#include "base/check.h"
#include "base/memory.h"
#include "exec/memory/access.h"

enum { PHASES = 64, COUNT_MAX = 0xffff }; /* mbarriers of a block that are followed; a count of a record */

typedef struct phase { /* of one mbarrier */
  uint32_t offset;     /* in shared memory */
  uint32_t arrivals;   /* ARRIVE records so far; */
  uint32_t over;       /* how many those were when the last phase ended */
  bool odd;            /* the phase that it is in */
  uint32_t awaited[EXEC_MAX_WARPS];
} phase;

struct core_phases {
  uint32_t count;
  phase items[PHASES];
};

void core_phases_check(const core_block *block) {
  const core_phases *phases = block->phases;
  for (uint32_t n = 0; phases && n < phases->count; n++)
    for (uint32_t w = 0; w < block->warp_count; w++)
      FF_ASSERT(phases->items[n].awaited[w] <= phases->items[n].over &&
                phases->items[n].over <= phases->items[n].arrivals);
}

void core_phases_start(core_block *block) {
  if (block->phases) block->phases->count = 0;
}

/* NULL: the object is another block's, or one too many. */
static phase *phase_of(const core_warp *w, const uint64_t *object) {
  core_block *block = w->block;
  ptrdiff_t offset = (const unsigned char *)object - w->shared;
  if (offset < 0 || offset >= (ptrdiff_t)w->shared_bytes) return NULL;
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

/* Has the object's phase ended since something was done to it last? */
void core_trace_mbarrier_before(core_warp *w, const uint64_t *object) {
  phase *p = phase_of(w, object);
  if (!p || p->odd == *object >> 63) return;
  p->odd = *object >> 63;
  p->over = p->arrivals;
}

static void put(core_warp *w, const exec_instr *i, trace_async what, uint32_t id, uint32_t count) {
  core_trace_issue(w, i->index + 1);
  trace_put_async(w->trace, what, id, count);
  w->looks = 0;
}

void core_trace_mbarrier(core_warp *w, const exec_instr *i, const uint64_t *object, core_mbarrier_event event) {
  phase *p = phase_of(w, object);
  if (!p) return;
  uint32_t id = (uint32_t)(p - w->block->phases->items);
  switch (event) {
  case CORE_MBARRIER_STARTS:
    p->odd = *object >> 63;
    p->over = p->arrivals;
    break;
  case CORE_MBARRIER_ARRIVES:
  case CORE_MBARRIER_COPIES:
    p->arrivals++;
    put(w, i, event == CORE_MBARRIER_COPIES ? TRACE_ARRIVE_COPIED : TRACE_ARRIVE, id, 0);
    break;
  case CORE_MBARRIER_IS_OVER:
    for (uint32_t *awaited = &p->awaited[w->index]; *awaited < p->over;) {
      uint32_t more = p->over - *awaited < COUNT_MAX ? p->over - *awaited : COUNT_MAX;
      put(w, i, TRACE_AWAIT, id, more);
      *awaited += more;
    }
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
