/* SPDX-License-Identifier: Apache-2.0 */
/* The loop that runs the events of one simulation: each goes to the part that put it. */
#include "machine/event_loop.h"

#include <stddef.h>

#include "base/check.h"
#include "machine/answers.h"
#include "machine/host/streams.h"
#include "machine/memory/far_fault.h"
#include "machine/observe/observer.h"
#include "machine/sm/rounds.h"
#include "machine/sm/sm.h"
#include "machine/tenants/device.h"

/* The warp of an event; NULL: it is another event, or there is none in that place. */
static inline warp *warp_at(const event_heap *heap, const warp_table *warps, uint32_t place) {
  if (!place || place >= heap->count || event_kind_of(heap->items[place]) != EVENT_WARP) return NULL;
  return warps->items[event_index(heap->items[place])];
}

/* What comes soon is fetched into the host's caches meanwhile (the warps of 132 SMs, their streams and the tables that
 * their accesses look into do not fit there): first the warp itself, then what it will look at, in the order in which
 * one says where the next is. */
static inline void prefetch_warp(const warp *w) {
  for (size_t byte = 0; byte < offsetof(warp, group_arrival); byte += 64) __builtin_prefetch((const char *)w + byte);
}

static inline void prefetch_records(const warp *w) {
  __builtin_prefetch(w->cursor.at);
  __builtin_prefetch(w->scheduler);
  if (w->record) __builtin_prefetch(w->record);
}

static inline warp *warp_ahead(const event_wheel *w, const front_end *f, uint32_t distance) {
  uint32_t place = w->at + distance;
  if (place >= w->run.count || event_kind_of(w->run.items[place]) != EVENT_WARP) return NULL;
  return f->warps->items[event_index(w->run.items[place])];
}

/* By the run: each at its distance from the next event. */
static inline void prefetch_ahead(const event_wheel *wheel, const front_end *f) {
  enum { TABLES_NEAR = 1, TABLES_FAR = 4, RECORDS = 8, WARPS = 12, PLACES = 15 };
  warp *w;
  if (wheel->at + PLACES < wheel->run.count)
    __builtin_prefetch(&f->warps->items[event_index(wheel->run.items[wheel->at + PLACES])]);
  if ((w = warp_ahead(wheel, f, WARPS))) prefetch_warp(w);
  if ((w = warp_ahead(wheel, f, RECORDS))) prefetch_records(w);
  if ((w = warp_ahead(wheel, f, TABLES_FAR))) access_prefetch(f->accesses, w);
  if ((w = warp_ahead(wheel, f, TABLES_NEAR))) access_prefetch_near(f->accesses, w);
}

void loop_prefetch(const event_heap *heap, const front_end *f) {
  if (heap->wheel && heap->wheel->moved) {
    prefetch_ahead(heap->wheel, f);
    return;
  }
  /* when its event has come within two levels of the first, and when that is one level */
  const warp *next = warp_at(heap, f->warps, heap->risen[0]), *later = warp_at(heap, f->warps, heap->risen[1]);
  if (next) {
    __builtin_prefetch(next->cursor.at);
    __builtin_prefetch(next->scheduler);
    access_prefetch(f->accesses, next);
  }
  if (later) prefetch_warp(later);
}

void loop_run_event(event_loop *l, event e) {
  uint32_t index = event_own_index(e);
  ps time = event_time(e);
  /* else it follows from an operation that the host put late: event_back */
  if (l->agenda->now < time) l->agenda->now = time;
  l->pager->now = l->agenda->now;
  if (__builtin_expect(time >= l->observer->next_sample, 0)) record_sample(l->observer, time);
  loop_prefetch(l->agenda->heap, l->front);
  if (event_kind_of(e) != EVENT_WARP) l->agenda->pending--;
  switch (event_kind_of(e)) {
  case EVENT_WARP: warp_wake(l->front, l->d->warps.items[event_index(e)], time); break;
  case EVENT_NODE_READY: node_ready(l->streams, l->streams->nodes.items[index]); break;
  case EVENT_KERNEL_BEGIN: node_begin_kernel(l->streams, l->streams->nodes.items[index], time); break;
  case EVENT_DEPART: pager_depart(l->pager, index); break;
  case EVENT_FLIGHT:
    pager_complete(l->pager, index);
    fault_idle(l->faults);
    break;
  case EVENT_LINK_IDLE: fault_link_idle(l->faults); break;
  case EVENT_CLEAN: fault_clean_over(l->faults); break;
  case EVENT_ROOM: pager_retry(l->pager); break;
  case EVENT_BATCH: fault_batch(l->faults); break;
  case EVENT_SLICE: break; /* no simulation's: device.c */
  case EVENT_NODE_DONE: node_done(l->streams, l->streams->nodes.items[index], time); break;
  }
  if (__builtin_expect(l->answers->askers != 0, 0)) answers_yield(l->answers);
}

bool loop_stopped(const event_loop *l) { return device_stopped(l->d, l->tenant); }

void run_until(event_loop *l, ps limit) {
  if (l->rounds) {
    rounds_run(l->rounds, limit, NULL);
    return;
  }
  if (l->d->whole->shared) {
    device_wait(l->d, l->tenant, WAIT_TIME, limit, NULL);
  } else {
    while (l->agenda->heap->next_time <= limit) loop_run_event(l, event_pop(l->agenda->heap));
  }
  FF_CHECK_DEEP(loop_stopped(l) || event_next(l->agenda->heap) > limit);
}

void run_until_done(event_loop *l, node *n) {
  if (l->rounds) {
    rounds_run(l->rounds, UINT64_MAX, n);
    return;
  }
  if (l->d->whole->shared) {
    if (!n->done) device_wait(l->d, l->tenant, WAIT_NODE, 0, n);
    return;
  }
  while (!n->done) {
    FF_ASSERT(event_any(l->agenda->heap)); /* an operation that nothing will ever end */
    loop_run_event(l, event_pop(l->agenda->heap));
  }
}

void run_all(event_loop *l) {
  if (l->rounds) {
    rounds_run(l->rounds, UINT64_MAX, NULL);
    return;
  }
  if (l->d->whole->shared) {
    device_wait(l->d, l->tenant, WAIT_ALL, 0, NULL);
    return;
  }
  while (event_any(l->agenda->heap)) loop_run_event(l, event_pop(l->agenda->heap));
}
