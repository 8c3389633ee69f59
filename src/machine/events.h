/* SPDX-License-Identifier: Apache-2.0 */
/* The event queue: what happens next, in order of time, ties in order of insertion.
 *
 * Order of insertion is a number of 32 bits, so that a key is 128 bits and one comparison orders two events. Before it
 * would wrap, all events that are in the queue are numbered anew from 1, in the order that they have: once in 2^32
 * insertions, in which a queue of some thousand events is sorted.
 *
 * Time does not go back: an event is put no earlier than the latest one that was taken; that is asserted. There is one
 * exception, and it has a name: where the device has been simulated further than the host's clock (the rule of one
 * stream, host/host.c), the host's next operation is put where it belongs, at its own time, and event_back says so.
 * What has happened stays: a simulation's clock (agenda.now) does not go back with it. */
#ifndef FF_MACHINE_EVENTS_H
#define FF_MACHINE_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"
#include "machine/time.h"

typedef enum event_kind {
  EVENT_WARP,
  EVENT_NODE_READY,
  EVENT_NODE_DONE,
  EVENT_KERNEL_BEGIN,
  EVENT_FLIGHT,
  EVENT_DEPART,
  EVENT_BATCH,
  EVENT_LINK_IDLE,
  EVENT_CLEAN,
  EVENT_ROOM, /* far-faults that found no room are tried again */
  EVENT_SLICE
} event_kind;
/* key = time << 64 | order << 32 | kind << 28 | index: one comparison gives time, then order of insertion. An index
 * that is a simulation's own (not a warp's) has the tenant's number in its upper bits: agenda_add. */
enum { EVENT_TENANT_SHIFT = 24 };
typedef struct event {
  unsigned __int128 key;
} event;
static inline ps event_time(event e) { return (ps)(e.key >> 64); }
static inline event_kind event_kind_of(event e) { return (event_kind)((uint32_t)e.key >> 28); }
static inline uint32_t event_index(event e) { return (uint32_t)e.key & 0x0fffffff; }
static inline uint32_t event_own_index(event e) { return (uint32_t)e.key & ((1u << EVENT_TENANT_SHIFT) - 1); }
static inline uint32_t event_tenant(event e) { return (uint32_t)e.key >> EVENT_TENANT_SHIFT & 15; }

/* A queue of many events is mostly not sorted. What comes later than `unit`, a piece of time of 2^shift picoseconds,
 * may be in the wheel; what came out of it is in `run`, in order; everything else, and all of a short queue, is in the
 * heap. The least of run and heap comes before all that is in the wheel.
 *
 * Pieces have slots by the digits of their numbers, of EVENT_DIGIT bits each: an event is at the highest digit in which
 * its piece differs from `unit`, where its own is the larger one. So the first slot of the lowest digit that has any
 * comes next; if that is not the last digit's, its events are hung up anew, each at a lower one. An event is touched a
 * few times, whatever there are of others. */
enum { EVENT_DIGIT = 8, EVENT_DIGITS = 64 / EVENT_DIGIT, EVENT_SLOTS = 1 << EVENT_DIGIT };
typedef struct event_list { /* as they were put */
  event *items;
  uint32_t count, capacity;
} event_list;
typedef struct event_wheel {
  event_list run; /* from `at` on what is next, in order */
  uint32_t at;
  bool moved; /* the latest event was of the run */
  uint64_t unit;
  uint32_t shift;
  uint32_t inside;                              /* events in slots */
  uint32_t few;                                 /* a queue with a heap of so many does without a wheel */
  uint64_t any[EVENT_DIGITS][EVENT_SLOTS / 64]; /* a bit for each slot that has some */
  event_list slots[EVENT_DIGITS][EVENT_SLOTS];
} event_wheel;

typedef struct event_heap {
  event *items;
  event_wheel *wheel; /* NULL: all events are in `items` */
  uint32_t count, capacity, order;
  ps now;    /* of the latest event that was taken: none is put before it */
  bool hole; /* items[0] has been popped, and is counted still */
  /* Where an entry came to stand, one and two levels below the first, when one sank the last time: what is there now
   * comes soon. 0: nowhere. */
  uint32_t risen[2];
  ps first;     /* the time of the next event */
  ps next_time; /* the same, or `horizon` if that is earlier; both: UINT64_MAX: there is none */
  /* when a tenant that waits for a time goes on (device.c): no warp runs past it; UINT64_MAX: never */
  ps horizon;
  /* Of a slice of a GPU, which has a queue of its own (device.c), the horizon may be another slice's next event, too: a
   * warp that stops there goes on as if it had not. `own_horizon` is the horizon without that. */
  bool slice;
  ps own_horizon;
} event_heap;
/* An empty queue has a wheel from now on, for a GPU of so many SMs: the more, the shorter are its pieces of time. */
void event_heap_widen(event_heap *heap, uint64_t sms);
void event_heap_free(event_heap *heap);
/* time >= heap->now */
void event_push(event_heap *heap, ps time, event_kind kind, uint32_t index);
/* The same, before all that is in the queue for that time. */
void event_push_first(event_heap *heap, ps time, event_kind kind, uint32_t index);
/* The same in two steps: its turn among those for the same time now, the event itself later, before the queue has come
 * to its time. */
uint32_t event_reserve(event_heap *heap);
void event_push_reserved(event_heap *heap, ps time, uint32_t order, event_kind kind, uint32_t index);
event event_pop(event_heap *heap);
void event_back(event_heap *heap, ps time); /* the queue goes back to `time`, if it is past that */
ps event_next(const event_heap *heap);      /* time of the next event itself; UINT64_MAX: there is none */
/* The same without a look at the queue of a slice: heap->first is kept so. */
static inline ps event_first(const event_heap *heap) {
  FF_CHECK_DEEP(heap->first == event_next(heap));
  return heap->first;
}
/* next_time, without what other slices of the GPU have. */
static inline ps event_own_next(const event_heap *heap) {
  if (__builtin_expect(!heap->slice, 1)) return heap->next_time;
  ps next = event_first(heap);
  return next < heap->own_horizon ? next : heap->own_horizon;
}
static inline bool event_any(const event_heap *heap) {
  return heap->count > heap->hole || (heap->wheel && heap->wheel->at < heap->wheel->run.count);
}
/* What one simulation has in the event queue, which several may share: its time, and how many of the events are its
 * own. */
typedef struct agenda {
  event_heap *heap;
  uint32_t tenant;  /* its number */
  ps now;           /* of the latest event; between two events nothing happens */
  uint32_t pending; /* events of its own in the queue, warps' apart */
} agenda;
void agenda_add(agenda *a, ps time, event_kind kind, uint32_t index); /* an event of its own: any but EVENT_WARP */

#endif
