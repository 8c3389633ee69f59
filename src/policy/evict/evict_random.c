/* SPDX-License-Identifier: Apache-2.0 */
/* random: any unit of which something can go, with equal chances. The set's order is not used, only that its heap is an
 * array. */
#include <stdlib.h>

#include "policy/pages.h"
#include "policy/policies.h"
#include "policy/units.h"

static void *create(const char *argument, const char **problem) {
  uint64_t bytes = pages_unit_bytes(argument, FF_PAGE_BYTES, problem);
  if (!bytes) return NULL;
  units *set = ff_alloc(sizeof *set);
  units_init(set, bytes);
  set->apart = true; /* so that the heap has each unit */
  return set;
}

static void destroy(void *state) {
  units_free(state);
  free(state);
}

static void evict(void *state, ff_view *view, uint64_t bytes) {
  units *set = state;
  FF_VEC(uint64_t) taken = {0};
  for (uint64_t proposed = 0; proposed < bytes && units_count(set);) {
    uint64_t address = units_at(set, view->random(view) % units_count(set)).address;
    bool gone;
    uint64_t goes = units_propose(view, set->unit_bytes, address, &gone);
    proposed += goes;
    if (!goes && !gone) {
      units_put_aside(set, address);
      continue;
    }
    units_drop(set, address); /* so that it is not drawn twice */
    if (!gone) FF_PUSH(&taken, address);
  }
  for (size_t i = 0; i < taken.count; i++) units_put(set, taken.items[i], 0);
  free(taken.items);
}

static void unit_arrived(void *context, uint64_t address) { units_put(context, address, 0); }
static void arrived(void *state, ff_view *view, uint64_t address, uint64_t bytes) {
  units *set = state;
  units_fit(set, view);
  units_each(set->unit_bytes, address, bytes, unit_arrived, state);
}

static void settled(void *state, ff_view *view, uint64_t address, uint64_t bytes) {
  units_settled(state, address, bytes);
}

static void left(void *state, ff_view *view, uint64_t address, uint64_t bytes) {
  units_left(state, view, address, bytes);
}

const ff_policy policy_evict_random = {
    .version = FF_POLICY_VERSION,
    .name = "random",
    .summary = "any, with equal chances",
    .create = create,
    .destroy = destroy,
    .evict = evict,
    .arrived = arrived,
    .left = left,
    .settled = settled,
};
