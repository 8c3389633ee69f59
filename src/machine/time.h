/* SPDX-License-Identifier: Apache-2.0 */
/* Time, and the servers and places that requests wait for.
 *
 * Time is picoseconds since the program's first operation. Two times travel with every request below the SM: `ask`,
 * when it would arrive if nothing but fixed latencies lay before it, and `at` >= ask, when it does arrive. A server
 * counts its backlog from `ask` (requests are made nearly in that order, so a late one does not hold the server idle
 * for the others) and serves the request no earlier than `at`:
 *
 *     begin = max(free, ask);  free = begin + service;  the request is served at max(begin, at) */
#ifndef FF_MACHINE_TIME_H
#define FF_MACHINE_TIME_H

#include <stdbool.h>
#include <stdint.h>

#include "machine/arena.h"

typedef uint64_t ps;

/* A duration of `count` pieces of which each takes `fixed` picoseconds << 20. */
static inline ps fixed_ps(uint64_t count, uint64_t fixed) { return (count * fixed) >> 20; }

typedef struct server {
  ps free;
} server;
static inline ps server_turn(server *s, ps ask, ps service) { /* `begin`, which does not depend on `at` */
  ps begin = s->free > ask ? s->free : ask;
  s->free = begin + service;
  return begin;
}
static inline ps server_take(server *s, ps ask, ps at, ps service) {
  ps begin = server_turn(s, ask, service);
  return begin > at ? begin : at;
}

/* A number of equal places, each held until a known time (MSHRs, page walkers); a place that was never taken is held
 * until 0. The times stand in order in a window that slides over twice its length: what is taken next mostly ends last,
 * so that this is a step or two, where a heap would be several that no host processor can predict. */
typedef struct slots {
  ps *until;
  uint32_t first, capacity;
  uint32_t open; /* places, the last ones, whose time is not known yet: SLOTS_OPEN */
} slots;
void slots_init(slots *s, arena *a, uint64_t capacity);
static inline ps slots_wait(const slots *s, ps at) { /* when one is free, at the earliest */
  return s->until[s->first] > at ? s->until[s->first] : at;
}
void slots_hold(slots *s, ps until); /* takes the place that slots_wait spoke of */
/* Asks the host's caches for what slots_wait and slots_hold will look at first. */
__attribute__((always_inline)) static inline void slots_prefetch(const slots *s) {
  __builtin_prefetch(&s->until[s->first]);
  __builtin_prefetch(&s->until[s->first + s->capacity - 1]);
}
/* A place may be held until a time that is not known yet, and is told later: slots_answer, for any one of these. */
#define SLOTS_OPEN UINT64_MAX
static inline bool slots_open(const slots *s) { return s->open != 0; }
void slots_answer(slots *s, ps until);

/* Division by a number that is known when the machine is made: a multiplication for all dividends below `limit`. */
typedef struct divider {
  uint64_t by, magic, limit;
} divider;
static inline divider divider_make(uint64_t by) {
  return (divider){by, by > 1 ? UINT64_MAX / by + 1 : 0, by > 1 ? UINT64_MAX / by : 0};
}
static inline uint64_t divide(uint64_t x, const divider *d) {
  return x < d->limit ? (uint64_t)((unsigned __int128)x * d->magic >> 64) : x / d->by;
}
static inline uint64_t modulo(uint64_t x, const divider *d) { return x - divide(x, d) * d->by; }

/* A call of the program's, by the host's clock: from when it was made to when the host went on. */
typedef struct host_call {
  ps began, returned;
} host_call;

#endif
