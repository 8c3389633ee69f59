/* SPDX-License-Identifier: Apache-2.0 */
/* The ordered set of units against one that keeps a key for each unit in an array and looks for the smallest: the same
 * members, keys and order after any operations, and little memory where what came together is kept together. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "policy/units.h"

enum { BLOCKS = 3, KEYS = 4 };
#define FIRST (UINT64_C(7) << 40)

typedef enum where { NOWHERE, ORDERED, ASIDE } where;
typedef struct model { /* by the unit's place behind FIRST */
  uint64_t unit_bytes, count;
  uint64_t *keys;
  where *at;
} model;

static uint64_t seed;
static uint64_t random_below(uint64_t limit) {
  seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
  return (seed >> 33) % limit;
}

static uint64_t address(const model *m, uint64_t n) { return FIRST + n * m->unit_bytes; }

/* The first in the order; count: none is in it. */
static uint64_t smallest(const model *m) {
  uint64_t best = m->count;
  for (uint64_t n = 0; n < m->count; n++)
    if (m->at[n] == ORDERED && (best == m->count || m->keys[n] < m->keys[best])) best = n;
  return best;
}

static void compare(const units *set, const model *m) {
  uint64_t first = smallest(m);
  units_check(set);
  assert_int_equal(units_count(set) != 0, first < m->count);
  if (first < m->count) {
    unit found = units_at(set, 0);
    assert_int_equal(found.address, address(m, first));
    assert_int_equal(found.key, m->keys[first]);
  }
  for (uint64_t n = 0; n < m->count; n++) {
    assert_int_equal(units_has(set, address(m, n)), m->at[n] != NOWHERE);
    assert_int_equal(units_key(set, address(m, n)), m->at[n] == NOWHERE ? 0 : m->keys[n]);
  }
}

static void put(units *set, model *m, uint64_t n, uint64_t key) {
  units_put(set, address(m, n), key);
  m->at[n] = ORDERED;
  m->keys[n] = key;
}

static void step(units *set, model *m) {
  uint64_t n = random_below(m->count), length = 1 + random_below(random_below(8) ? 4 : 200), first = smallest(m);
  uint64_t key = 1 + random_below(KEYS);
  switch (random_below(6)) {
  case 0:
  case 1:
    for (uint64_t i = n; i < n + length && i < m->count; i++) put(set, m, i, key);
    break;
  case 2:
    for (uint64_t i = n; i < n + length && i < m->count; i++) {
      units_drop(set, address(m, i));
      m->at[i] = NOWHERE;
    }
    break;
  case 3:
    if (first == m->count) break;
    units_drop(set, address(m, first));
    m->at[first] = NOWHERE;
    break;
  case 4:
    if (m->at[n] != ORDERED) break;
    units_put_aside(set, address(m, n));
    m->at[n] = ASIDE;
    break;
  default:
    units_put_back(set, address(m, n));
    if (m->at[n] == ASIDE) m->at[n] = ORDERED;
  }
}

static void compare_random(uint64_t unit_bytes, bool apart) {
  model m = {.unit_bytes = unit_bytes, .count = BLOCKS * FF_BLOCK_BYTES / unit_bytes};
  units set;
  units_init(&set, unit_bytes);
  set.apart = apart;
  m.keys = ff_alloc(m.count * sizeof *m.keys);
  m.at = ff_alloc(m.count * sizeof *m.at);
  for (int steps = 0; steps < 1200; steps++) {
    step(&set, &m);
    compare(&set, &m);
  }
  free(m.keys);
  free(m.at);
  units_free(&set);
}

static void random_operations_keep_the_order(void **state) {
  for (seed = 1; seed < 4; seed++) {
    compare_random(FF_PAGE_BYTES, false);
    compare_random(FF_GROUP_BYTES, false);
    compare_random(FF_BLOCK_BYTES, false);
    compare_random(FF_PAGE_BYTES, true);
  }
}

/* From low to high, from high to low, and with a hole that is filled at last. */
static void what_came_together_is_one_run(void **state) {
  enum { UNITS = FF_BLOCK_PAGES };
  for (int order = 0; order < 3; order++) {
    units set;
    units_init(&set, FF_PAGE_BYTES);
    for (uint64_t i = 0; i < UNITS; i++) {
      uint64_t n = order == 0 ? i : order == 1 ? UNITS - 1 - i : (i + UNITS / 2 + 1) % UNITS;
      units_put(&set, FIRST + n * FF_PAGE_BYTES, 5);
    }
    assert_int_equal(units_count(&set), 1);
    units_put(&set, FIRST + 9 * FF_PAGE_BYTES, 6); /* in the middle */
    assert_int_equal(units_count(&set), 3);
    units_put(&set, FIRST + 9 * FF_PAGE_BYTES, 5);
    assert_int_equal(units_count(&set), 1);
    for (uint64_t n = 0; n < UNITS; n++) { /* what leaves from the front leaves the run where it is */
      assert_int_equal(units_at(&set, 0).address, FIRST + n * FF_PAGE_BYTES);
      units_drop(&set, FIRST + n * FF_PAGE_BYTES);
      assert_int_equal(units_count(&set), n + 1 < UNITS);
    }
    units_free(&set);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(random_operations_keep_the_order),
      cmocka_unit_test(what_came_together_is_one_run),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
