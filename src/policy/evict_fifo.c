/* SPDX-License-Identifier: Apache-2.0 */
/* fifo: the unit that came first goes first. A unit's place is that of the first page of its present stay: pages that come
 * to it later do not change it, and neither do uses. */
#include <stdlib.h>

#include "policy/pages.h"
#include "policy/policies.h"
#include "policy/units.h"

typedef struct order { units set; uint64_t arrivals; } order;

static void *create(const char *argument, const char **problem) {
  uint64_t bytes = pages_unit_bytes(argument, FF_PAGE_BYTES, problem);
  if (!bytes) return NULL;
  order *o = ff_alloc(sizeof *o);
  units_init(&o->set, bytes);
  return o;
}

static void destroy(void *state) {
  order *o = state;
  units_free(&o->set);
  free(o);
}

static void evict(void *state, ff_view *view, uint64_t bytes) { units_evict(&((order *)state)->set, view, bytes, NULL); }

static void unit_arrived(void *context, uint64_t address) {
  order *o = context;
  if (!units_has(&o->set, address)) units_put(&o->set, address, ++o->arrivals);
}
static void arrived(void *state, ff_view *view, uint64_t address, uint64_t bytes) {
  order *o = state;
  units_each(o->set.unit_bytes, address, bytes, unit_arrived, o);
}

static void left(void *state, ff_view *view, uint64_t address, uint64_t bytes) {
  units_left(&((order *)state)->set, view, address, bytes);
}

const ff_policy policy_evict_fifo = {
    .version = FF_POLICY_VERSION,
    .name = "fifo",
    .summary = "first in, first out: a unit keeps the place of its first page's arrival",
    .create = create,
    .destroy = destroy,
    .evict = evict,
    .arrived = arrived,
    .left = left,
};
