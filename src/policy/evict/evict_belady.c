/* SPDX-License-Identifier: Apache-2.0 */
/* belady: the unit whose next use is farthest away goes first (Belady's MIN, IBM Systems Journal 1966). It needs the
 * program's future, so its simulation begins when the program has ended. Positions are thread blocks in the program's
 * order; what runs at once uses its pages now.
 *
 * An answer of view->next_position stays right until the program has passed that position. So two orders are kept:
 * `soonest` finds the units whose answer may be out of date (they have the smallest positions), `farthest` finds the
 * victim. What was used by what ran when it was asked for, or has come to be, is used *now*: all such units are equal.
 * Where every unit that can go is used now, the future has nothing more to say, and the least recently used one goes.
 *
 *     farthest and oldest hold the same units, aside or not; soonest holds those of them that are used again
 *     key in soonest == 2 x position of the next use, + 1 if that is now
 *     key in farthest == ~position, NOW if that is now, ~FF_NEVER if there is none
 *     key in oldest <= the unit's latest arrival or use */
#include <stdlib.h>

#include "policy/pages.h"
#include "policy/policies.h"
#include "policy/units.h"

#define NOW UINT64_MAX

typedef struct belady {
  units soonest, farthest, oldest;
} belady;

static void *create(const char *argument, const char **problem) {
  uint64_t bytes = pages_unit_bytes(argument, FF_PAGE_BYTES, problem);
  if (!bytes) return NULL;
  belady *b = ff_alloc(sizeof *b);
  units_init(&b->soonest, bytes);
  units_init(&b->farthest, bytes);
  units_init(&b->oldest, bytes);
  return b;
}

static void destroy(void *state) {
  belady *b = state;
  units_free(&b->soonest);
  units_free(&b->farthest);
  units_free(&b->oldest);
  free(b);
}

static uint64_t soon_key(uint64_t position, bool now) { return 2 * position + now; }

/* Returns the unit's key in `soonest`, FF_NEVER if it is not used again. */
static uint64_t put(belady *b, const ff_view *view, uint64_t address) {
  uint64_t position = view->next_position(view, address, b->soonest.unit_bytes);
  if (position == FF_NEVER) {
    units_drop(&b->soonest, address);
    units_put(&b->farthest, address, ~FF_NEVER);
    return FF_NEVER;
  }
  bool now = position <= view->running_last;
  units_put(&b->soonest, address, soon_key(position, now));
  units_put(&b->farthest, address, now ? NOW : ~position);
  return soon_key(position, now);
}

/* Asks again for every unit whose use has passed, or is now and was not: twice per use of it at most. */
static void refresh(belady *b, const ff_view *view) {
  uint64_t passed = soon_key(view->running_first, true);
  for (unit first; units_count(&b->soonest) && (first = units_at(&b->soonest, 0)).key < passed;) {
    if (put(b, view, first.address) == first.key) return; /* nothing runs that is as far as that */
  }
}

/* Of the units that can go none is used later than another unit of the set. */
static bool all_equal(const belady *b) {
  uint64_t farthest = units_at(&b->farthest, 0).key;
  if (farthest == NOW || farthest == ~FF_NEVER) return farthest == NOW || !units_count(&b->soonest);
  return units_at(&b->soonest, 0).key == soon_key(~farthest, false);
}

static void evict(void *state, ff_view *view, uint64_t bytes) {
  belady *b = state;
  refresh(b, view);
  if (!units_count(&b->farthest)) return;
  if (all_equal(b)) units_evict(&b->oldest, view, bytes, units_last_used);
  else units_evict(&b->farthest, view, bytes, NULL);
}

typedef struct arrival {
  belady *order;
  const ff_view *view;
} arrival;
static void unit_arrived(void *context, uint64_t address) {
  const arrival *a = context;
  put(a->order, a->view, address);
  units_put(&a->order->oldest, address, a->view->now);
}
static void arrived(void *state, ff_view *view, uint64_t address, uint64_t bytes) {
  belady *b = state;
  units_fit(&b->soonest, view);
  units_fit(&b->farthest, view);
  units_fit(&b->oldest, view);
  units_each(b->soonest.unit_bytes, address, bytes, unit_arrived, &(arrival){b, view});
}

static void settled(void *state, ff_view *view, uint64_t address, uint64_t bytes) {
  belady *b = state;
  units_settled(&b->farthest, address, bytes);
  units_settled(&b->oldest, address, bytes);
}

static void left(void *state, ff_view *view, uint64_t address, uint64_t bytes) {
  belady *b = state;
  units_left(&b->soonest, view, address, bytes);
  units_left(&b->farthest, view, address, bytes);
  units_left(&b->oldest, view, address, bytes);
}

const ff_policy policy_evict_belady = {
    .version = FF_POLICY_VERSION,
    .name = "belady",
    .summary = "the farthest next use (runs when the program has ended)",
    .needs_future = true,
    .create = create,
    .destroy = destroy,
    .evict = evict,
    .arrived = arrived,
    .left = left,
    .settled = settled,
};
