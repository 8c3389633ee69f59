/* SPDX-License-Identifier: Apache-2.0 */
/* Algebra over GF(2) compared with the definition: in spaces of ten bits every vector is asked whether it is in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "known_hashes.h"
#include "partition/gf2.h"

enum { SMALL = 10, ALL = 1 << SMALL };
typedef struct naive {
  bool in[ALL];
} naive;

static uint64_t seed = 88172645463325252;
static uint64_t random_bits(void) {
  seed ^= seed << 13;
  seed ^= seed >> 7;
  seed ^= seed << 17;
  return seed;
}

/* All sums of some of the vectors. */
static naive naive_span(const uint64_t *vectors, size_t count) {
  naive out = {.in = {true}};
  for (size_t v = 0; v < count; v++)
    for (uint64_t x = 0; x < ALL; x++)
      if (out.in[x]) out.in[x ^ vectors[v]] = true;
  return out;
}

static void is_naive(const gf2_space *space, const naive *expected) {
  uint64_t count = 0;
  for (uint64_t x = 0; x < ALL; x++) {
    assert_int_equal(!gf2_reduce(space, x), expected->in[x]);
    count += expected->in[x];
  }
  assert_true(count == UINT64_C(1) << space->rank);
}

/* The form that gf2.h promises. */
static void is_reduced(const gf2_space *space) {
  for (uint32_t i = 0; i < space->rank; i++) {
    uint64_t pivot = UINT64_C(1) << (63 - __builtin_clzll(space->rows[i]));
    for (uint32_t j = 0; j < space->rank; j++) assert_true(j == i || !(space->rows[j] & pivot));
    assert_true(!i || space->rows[i - 1] > space->rows[i]);
  }
}

static size_t random_vectors(uint64_t *vectors) {
  size_t count = random_bits() % 9;
  uint64_t sparse = random_bits() % 2 ? random_bits() : UINT64_MAX;
  for (size_t i = 0; i < count; i++) vectors[i] = random_bits() % ALL & sparse;
  return count;
}

static void test_against_definition(void **state) {
  for (int round = 0; round < 2000; round++) {
    uint64_t a[9], b[18], bits = random_bits() % 3 ? ALL - 1 : random_bits() % ALL;
    size_t a_count = random_vectors(a), b_count = random_vectors(b);
    gf2_space left = gf2_span(a, a_count), right = gf2_span(b, b_count);
    naive in_left = naive_span(a, a_count), in_right = naive_span(b, b_count), null = {.in = {false}},
          both = {.in = {false}};
    is_reduced(&left);
    is_naive(&left, &in_left);
    for (uint64_t x = 0; x < ALL; x++) {
      both.in[x] = in_left.in[x] && in_right.in[x];
      null.in[x] = !(x & ~bits);
      for (size_t i = 0; i < a_count; i++) null.in[x] &= !gf2_product(a[i], x);
    }
    gf2_space null_left = gf2_null(&left, bits), common = gf2_intersection(&left, &right), sum = gf2_sum(&left, &right),
              seen = gf2_restrict(&left, bits);
    is_naive(&null_left, &null);
    is_naive(&common, &both);
    is_reduced(&common);
    memcpy(b + b_count, a, a_count * sizeof *a);
    naive in_sum = naive_span(b, a_count + b_count);
    is_naive(&sum, &in_sum);
    for (size_t i = 0; i < a_count; i++) a[i] &= bits;
    naive in_seen = naive_span(a, a_count);
    is_naive(&seen, &in_seen);
    assert_int_equal(left.rank + right.rank, sum.rank + common.rank);
  }
}

/* The same space from other vectors has the same rows; what is added twice adds nothing; a remainder has no pivot's
 * bit. */
static void test_unique(void **state) {
  for (int round = 0; round < 500; round++) {
    uint64_t vectors[70], mixed[140];
    size_t count = 1 + random_bits() % 70;
    for (size_t i = 0; i < count; i++) vectors[i] = random_bits();
    for (size_t i = 0; i < 2 * count; i++)
      mixed[i] = vectors[count - 1 - i % count] ^ (i < count && i ? mixed[i - 1] : 0);
    gf2_space a = gf2_span(vectors, count), b = gf2_span(mixed, 2 * count);
    assert_true(gf2_equal(&a, &b));
    assert_false(gf2_add(&b, vectors[0]));
    is_reduced(&a);
    uint64_t v = random_bits(), rest = gf2_reduce(&a, v);
    assert_true(!gf2_reduce(&a, v ^ rest) && gf2_reduce(&a, rest) == rest);
    gf2_space null = gf2_null(&a, UINT64_MAX), again = gf2_null(&null, UINT64_MAX);
    assert_int_equal(a.rank + null.rank, 64);
    assert_true(gf2_equal(&a, &again));
  }
}

static gf2_space of_masks(const hash_masks *m) { return gf2_span(m->masks, m->count); }

/* What is published of the two GPUs: ranks, and that the modules are what banks and sets have in common. */
static void known(const hash_spec *spec, uint32_t banks, uint32_t sets, uint32_t modules) {
  gf2_space b = of_masks(&spec->banks), s = of_masks(&spec->sets), m = of_masks(&spec->modules),
            common = gf2_intersection(&b, &s);
  assert_int_equal(b.rank, banks);
  assert_int_equal(s.rank, sets);
  assert_int_equal(m.rank, modules);
  assert_true(gf2_equal(&common, &m));
}
static void test_known(void **state) {
  known(&gtx1080_hash, 7, 10, 3);
  known(&v100_hash, 9, 10, 5);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_definition), cmocka_unit_test(test_unique),
                                     cmocka_unit_test(test_known)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
