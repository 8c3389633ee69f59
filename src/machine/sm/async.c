/* SPDX-License-Identifier: Apache-2.0 */
/* Asynchronous copies and mbarriers in time.
 *
 *     the n-th arrival at an mbarrier is there at  until(n) = max(until(n - 1), arrival)
 *     AWAIT of n more:  needs += n, goes on at max(time, until(needs)), or when that arrival is made
 *
 * All arrivals of an mbarrier are numbered one after the other, whatever its phases: what a warp awaits has been
 * counted where the program ran. The last RING of them are kept; older ones are over. */
#include "machine/sm/async.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/memory.h"

enum { RING = 32, WARPS = 32 }; /* arrivals that are kept; warps of a block, at most */

typedef struct mbarrier {
  struct mbarrier *next; /* of the block */
  uint32_t id;
  uint32_t arrived;
  uint32_t first_waiting; /* by warp.next */
  uint32_t needs[WARPS];  /* by warp of the block: needs_of */
  ps until[RING];         /* of arrival n, at n % RING */
} mbarrier;

static mbarrier *mbarrier_of(block *b, uint32_t id) {
  for (mbarrier *m = b->mbarriers; m; m = m->next)
    if (m->id == id) return m;
  mbarrier *m = ff_alloc(sizeof *m);
  *m = (mbarrier){.next = b->mbarriers, .id = id};
  b->mbarriers = m;
  return m;
}

/* Arrivals that the warp's last AWAIT at it waited for. */
static uint32_t *needs_of(mbarrier *m, const warp *w) {
  FF_CHECK(w->number < WARPS);
  return &m->needs[w->number];
}

static ps until(const mbarrier *m, uint32_t n) { return n + RING <= m->arrived ? 0 : m->until[n % RING]; }

/* Of the warps that wait at it, those whose arrivals are all there go on; `time`: all do, then. */
static void release(front_end *f, block *b, mbarrier *m, const ps *time) {
  uint32_t *link = &m->first_waiting;
  while (*link) {
    warp *w = f->warps->items[*link];
    uint32_t needs = *needs_of(m, w);
    if (!time && needs > m->arrived) {
      link = &w->next;
      continue;
    }
    *link = w->next;
    w->next = 0;
    b->waiting--;
    ps there = time ? *time : until(m, needs);
    event_push(f->heap, there > w->slept ? there : w->slept, EVENT_WARP, w->index);
  }
}

static void arrive(front_end *f, warp *w, uint32_t id, ps time) {
  mbarrier *m = mbarrier_of(w->block, id);
  ps before = m->arrived ? m->until[m->arrived % RING] : 0;
  m->arrived++;
  m->until[m->arrived % RING] = time > before ? time : before;
  release(f, w->block, m, NULL);
}

static void wait_until(warp *w, ps arrival, ps *time) {
  if (arrival <= *time) return;
  w->counters->warp_stall_ps += arrival - *time;
  *time = arrival;
}

static bool await(warp *w, uint32_t id, uint32_t count, ps *time) {
  mbarrier *m = mbarrier_of(w->block, id);
  uint32_t needs = *needs_of(m, w) += count;
  if (needs <= m->arrived) {
    wait_until(w, until(m, needs), time);
    return false;
  }
  w->next = m->first_waiting;
  m->first_waiting = w->index;
  w->block->waiting++;
  warp_sleep(w, *time);
  return true;
}

static void wait_for_groups(warp *w, uint32_t left, ps *time) {
  if (left < w->groups && left < COPY_GROUPS)
    wait_until(w, w->group_arrival[(w->groups - 1 - left) % COPY_GROUPS], time);
}

bool async_record(front_end *f, warp *w, uint64_t word, ps *time) {
  switch (trace_async_what(word)) {
  case TRACE_GROUP: w->group_arrival[w->groups++ % COPY_GROUPS] = w->copied; return false;
  case TRACE_WAIT_GROUPS: wait_for_groups(w, trace_async_count(word), time); return false;
  case TRACE_ARRIVE: arrive(f, w, trace_async_id(word), *time); return false;
  case TRACE_ARRIVE_COPIED: arrive(f, w, trace_async_id(word), w->copied > *time ? w->copied : *time); return false;
  case TRACE_AWAIT: return await(w, trace_async_id(word), trace_async_count(word), time);
  case TRACE_ASYNC_COUNT: break;
  }
  return false;
}

void async_unmet(front_end *f, block *b, ps time) {
  for (mbarrier *m = b->mbarriers; m; m = m->next) release(f, b, m, &time);
}

void async_free(block *b) {
  while (b->mbarriers) {
    mbarrier *m = b->mbarriers;
    b->mbarriers = m->next;
    free(m);
  }
}
