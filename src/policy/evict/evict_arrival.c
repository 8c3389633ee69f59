/* SPDX-License-Identifier: Apache-2.0 */
/* Orders by arrival; uses change nothing in any of them.
 *
 * fifo: the unit that came first goes first. A unit's place is that of the first page of its present stay: pages that
 * come to it later do not change it.
 *
 * lifo: the unit that came last goes first, its place being that of its first page, too. Of data that is larger than
 * memory and swept over again and again a part stays, and the rest goes through what is left; lru and fifo keep nothing
 * of it until it is wanted again.
 *
 * lrm: least recently migrated, the order in which NVIDIA's managed-memory driver reclaims its 2 MiB chunks. Every
 * arrival of a page makes its unit the youngest; uses do not, because the driver does not see them. So a block that is
 * used all the time but is whole goes before one that has just got a page. */
#include <stdlib.h>

#include "policy/pages.h"
#include "policy/policies.h"
#include "policy/units.h"

typedef struct order {
  units set;
  uint64_t arrivals;
  bool renews;   /* a later page's arrival gives its unit a new place */
  bool youngest; /* the last one goes first */
} order;

static void *create(const char *argument, uint64_t otherwise, bool renews, bool youngest, const char **problem) {
  uint64_t bytes = pages_unit_bytes(argument, otherwise, problem);
  if (!bytes) return NULL;
  order *o = ff_alloc(sizeof *o);
  o->renews = renews;
  o->youngest = youngest;
  units_init(&o->set, bytes);
  o->set.apart = true; /* no two have one number */
  return o;
}

static void *create_fifo(const char *argument, const char **problem) {
  return create(argument, FF_PAGE_BYTES, false, false, problem);
}
static void *create_lifo(const char *argument, const char **problem) {
  return create(argument, FF_PAGE_BYTES, false, true, problem);
}
static void *create_lrm(const char *argument, const char **problem) {
  return create(argument, FF_BLOCK_BYTES, true, false, problem);
}

static void destroy(void *state) {
  order *o = state;
  units_free(&o->set);
  free(o);
}

static void evict(void *state, ff_view *view, uint64_t bytes) {
  units_evict(&((order *)state)->set, view, bytes, NULL);
}

static void unit_arrived(void *context, uint64_t address) {
  order *o = context;
  if (o->renews || !units_has(&o->set, address)) {
    uint64_t number = ++o->arrivals;
    units_put(&o->set, address, o->youngest ? UINT64_MAX - number : number);
  } else units_put_back(&o->set, address);
}
static void arrived(void *state, ff_view *view, uint64_t address, uint64_t bytes) {
  order *o = state;
  units_fit(&o->set, view);
  units_each(o->set.unit_bytes, address, bytes, unit_arrived, o);
}

static void settled(void *state, ff_view *view, uint64_t address, uint64_t bytes) {
  units_settled(&((order *)state)->set, address, bytes);
}

static void left(void *state, ff_view *view, uint64_t address, uint64_t bytes) {
  units_left(&((order *)state)->set, view, address, bytes);
}

const ff_policy policy_evict_fifo = {
    .version = FF_POLICY_VERSION,
    .name = "fifo",
    .summary = "first in, first out: a unit keeps the place of its first page's arrival",
    .create = create_fifo,
    .destroy = destroy,
    .evict = evict,
    .arrived = arrived,
    .left = left,
    .settled = settled,
};
const ff_policy policy_evict_lifo = {
    .version = FF_POLICY_VERSION,
    .name = "lifo",
    .summary = "last in, first out: of loops over more than memory holds a part stays",
    .create = create_lifo,
    .destroy = destroy,
    .evict = evict,
    .arrived = arrived,
    .left = left,
    .settled = settled,
};
const ff_policy policy_evict_lrm = {
    .version = FF_POLICY_VERSION,
    .name = "lrm",
    .summary = "least recently migrated (the driver): uses never refresh it",
    .create = create_lrm,
    .destroy = destroy,
    .evict = evict,
    .arrived = arrived,
    .left = left,
    .settled = settled,
};
