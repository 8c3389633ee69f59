/* SPDX-License-Identifier: Apache-2.0 */
/* Asynchronous copies and mbarriers in time.
 *
 *     the n-th arrival at an mbarrier is there at  until(n) = max(until(n - 1), arrival)
 *     AWAIT of n more:  needs += n, goes on at max(time, until(needs)), or when that arrival is made
 *
 * All arrivals of an mbarrier are numbered one after the other, whatever its phases: what a warp awaits has been
 * counted where the program ran. The last RING of them are kept; older ones are over.
 *
 * Arrivals from other blocks of the cluster have a numbering, and so an mbarrier here, of their own. It is the
 * launch's, by the number of the block that awaits: that one may not have started. A launch of which waves of blocks
 * may be left out (sample_waves.c) has none: they would lack arrivals.
 *
 *     dispatcher.held == its blocks of which all live warps wait, one for another block at least */
#include "machine/sm/async.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/memory.h"
#include "machine/sm/dispatch.h"
#include "machine/tenants/device.h"

/* arrivals that are kept; warps of a block, at most; lists of a launch */
enum { RING = 32, WARPS = 32, FAR_CHAINS = 1024 };

typedef struct mbarrier {
  struct mbarrier *next; /* of the block, or in its chain */
  uint64_t block;        /* far: in whose shared memory it is */
  bool far;              /* it counts the arrivals of other blocks */
  uint32_t id;
  uint32_t arrived;
  uint32_t first_waiting; /* by warp.next */
  uint32_t needs[WARPS];  /* by warp of the block: needs_of */
  ps until[RING];         /* of arrival n, at n % RING */
} mbarrier;

struct far_arrivals { /* of a launch */
  mbarrier *chains[FAR_CHAINS];
};

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

static mbarrier **far_chain(kernel *k, uint64_t block) {
  if (!k->far) k->far = ff_alloc(sizeof *k->far);
  return &k->far->chains[block % FAR_CHAINS];
}

static mbarrier *far_mbarrier_of(kernel *k, uint64_t block, uint32_t id) {
  mbarrier **chain = far_chain(k, block);
  for (mbarrier *m = *chain; m; m = m->next)
    if (m->block == block && m->id == id) return m;
  mbarrier *m = ff_alloc(sizeof *m);
  *m = (mbarrier){.next = *chain, .block = block, .id = id, .far = true};
  *chain = m;
  return m;
}

static ps until(const mbarrier *m, uint32_t n) { return n + RING <= m->arrived ? 0 : m->until[n % RING]; }

void async_goes_on(block *b) {
  if (!b->held) return;
  b->held = false;
  b->kernel->dispatch->held--;
}

/* Of the warps that wait at it, those whose arrivals are all there go on; `time`: all do, then. */
static void release(dispatcher *q, mbarrier *m, const ps *time) {
  uint32_t *link = &m->first_waiting;
  while (*link) {
    warp *w = q->d->warps.items[*link];
    uint32_t needs = *needs_of(m, w);
    if (!time && needs > m->arrived) {
      link = &w->next;
      continue;
    }
    *link = w->next;
    w->next = 0;
    w->block->waiting--;
    w->block->waiting_far -= m->far;
    async_goes_on(w->block);
    ps there = time ? *time : until(m, needs);
    warp_wake_at(w->sm, there > w->slept ? there : w->slept, w->index);
  }
}

static void arrive(dispatcher *q, mbarrier *m, ps time) {
  ps before = m->arrived ? m->until[m->arrived % RING] : 0;
  m->arrived++;
  m->until[m->arrived % RING] = time > before ? time : before;
  release(q, m, NULL);
}

static void arrive_far(warp *w, uint64_t word, ps time) {
  kernel *k = w->block->kernel;
  uint64_t block = w->block->number + (uint64_t)(int64_t)trace_async_away(word);
  if (block < k->blocks) arrive(k->dispatch, far_mbarrier_of(k, block, trace_async_id(word)), time);
}

static void wait_until(warp *w, ps arrival, ps *time) {
  if (arrival <= *time) return;
  w->counters->warp_stall_ps += arrival - *time;
  *time = arrival;
}

static bool await(warp *w, mbarrier *m, uint32_t count, ps *time) {
  uint32_t needs = *needs_of(m, w) += count;
  if (needs <= m->arrived) {
    wait_until(w, until(m, needs), time);
    return false;
  }
  w->next = m->first_waiting;
  m->first_waiting = w->index;
  w->block->waiting++;
  w->block->waiting_far += m->far;
  warp_sleep(w, *time);
  return true;
}

static void wait_for_groups(warp *w, uint32_t left, ps *time) {
  if (left < w->groups && left < COPY_GROUPS)
    wait_until(w, w->group_arrival[(w->groups - 1 - left) % COPY_GROUPS], time);
}

bool async_record(front_end *f, warp *w, uint64_t word, ps *time) {
  block *b = w->block;
  kernel *k = b->kernel;
  uint32_t id = trace_async_id(word), count = trace_async_count(word);
  ps copied = w->copied > *time ? w->copied : *time;
  if (trace_async_far(word) && k->sampled) return false;
  switch (trace_async_what(word)) {
  case TRACE_GROUP: w->group_arrival[w->groups++ % COPY_GROUPS] = w->copied; return false;
  case TRACE_WAIT_GROUPS: wait_for_groups(w, count, time); return false;
  case TRACE_ARRIVE: arrive(k->dispatch, mbarrier_of(b, id), *time); return false;
  case TRACE_ARRIVE_COPIED: arrive(k->dispatch, mbarrier_of(b, id), copied); return false;
  case TRACE_AWAIT: return await(w, mbarrier_of(b, id), count, time);
  case TRACE_ARRIVE_FAR: arrive_far(w, word, *time); return false;
  case TRACE_ARRIVE_FAR_COPIED: arrive_far(w, word, copied); return false;
  case TRACE_AWAIT_FAR: return await(w, far_mbarrier_of(k, b->number, id), count, time);
  case TRACE_ASYNC_COUNT: break;
  }
  return false;
}

void async_unmet(block *b, ps time) {
  for (mbarrier *m = b->mbarriers; m; m = m->next) release(b->kernel->dispatch, m, &time);
}

void async_held(block *b, ps time) {
  dispatcher *q = b->kernel->dispatch;
  q->held += !b->held;
  b->held = true;
  async_held_unmet(q, time);
}

void async_held_unmet(dispatcher *q, ps time) {
  if (!q->held || q->held < q->running_blocks) return;
  for (size_t i = 0; i < q->blocks.count; i++) {
    block *b = q->blocks.items[i];
    if (!b->held) continue;
    for (mbarrier *m = *far_chain(b->kernel, b->number); m; m = m->next)
      if (m->block == b->number) release(q, m, &time);
  }
}

void async_free(block *b) {
  while (b->mbarriers) {
    mbarrier *m = b->mbarriers;
    b->mbarriers = m->next;
    free(m);
  }
}

void async_over(block *b) {
  async_free(b);
  if (!b->kernel->far) return;
  for (mbarrier **link = far_chain(b->kernel, b->number); *link;) {
    mbarrier *m = *link;
    if (m->block != b->number) {
      link = &m->next;
      continue;
    }
    *link = m->next;
    free(m);
  }
}

void async_far_free(kernel *k) {
  for (uint32_t n = 0; k->far && n < FAR_CHAINS; n++)
    while (k->far->chains[n]) {
      mbarrier *m = k->far->chains[n];
      k->far->chains[n] = m->next;
      free(m);
    }
  free(k->far);
  k->far = NULL;
}
