/* SPDX-License-Identifier: Apache-2.0 */
/* lru: what the GPU has not used for the longest time goes first. A unit counts as used when it arrives, so that a page
 * that was prefetched, or whose access has not been tried again yet, is not the next victim.
 *
 *     recency of a unit == max(its latest arrival, the latest use of any of its pages)
 *
 * Uses are not reported to policies; the order is made right when it is needed: the key of the first unit is compared
 * with the view's last use, and if that is later the unit moves to where it belongs. Uses only raise the true value, so
 * a first unit whose key is true is the oldest of all. A unit moves at most once per time that it was
 * used. */
#include <stdlib.h>

#include "policy/pages.h"
#include "policy/policies.h"
#include "policy/units.h"

static void *create(const char *argument, const char **problem) {
  uint64_t bytes = pages_unit_bytes(argument, FF_PAGE_BYTES, problem);
  if (!bytes) return NULL;
  units *set = ff_alloc(sizeof *set);
  units_init(set, bytes);
  return set;
}

static void destroy(void *state) {
  units_free(state);
  free(state);
}

static void evict(void *state, ff_view *view, uint64_t bytes) { units_evict(state, view, bytes, units_last_used); }

typedef struct arrival {
  units *set;
  uint64_t now;
} arrival;
static void unit_arrived(void *context, uint64_t address) {
  const arrival *a = context;
  units_put(a->set, address, a->now);
}
static void arrived(void *state, ff_view *view, uint64_t address, uint64_t bytes) {
  units *set = state;
  units_fit(set, view);
  units_each(set->unit_bytes, address, bytes, unit_arrived, &(arrival){state, view->now});
}

static void settled(void *state, ff_view *view, uint64_t address, uint64_t bytes) {
  units_settled(state, address, bytes);
}

static void left(void *state, ff_view *view, uint64_t address, uint64_t bytes) {
  units_left(state, view, address, bytes);
}

const ff_policy policy_evict_lru = {
    .version = FF_POLICY_VERSION,
    .name = "lru",
    .summary = "least recently used or arrived",
    .create = create,
    .destroy = destroy,
    .evict = evict,
    .arrived = arrived,
    .left = left,
    .settled = settled,
};
