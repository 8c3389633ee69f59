/* SPDX-License-Identifier: Apache-2.0 */
/* Colocation by pairs of bits: counts against the definition, the choice of the best pair, ranges, many instances. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "partition/colocate.h"
#include "unit/near.h"

static uint64_t seed = 88172645463325252;
static uint64_t random_bits(void) {
  seed ^= seed << 13;
  seed ^= seed >> 7;
  seed ^= seed << 17;
  return seed;
}

static bool together(const stack_map *map, const uint64_t *lines, uint32_t count) {
  for (uint32_t i = 1; i < count; i++)
    if (stack_of(map, lines[i]) != stack_of(map, lines[0])) return false;
  return true;
}

static uint32_t lines_beside(const stack_map *map, const uint64_t *lines, uint32_t count) {
  uint32_t beside = 0;
  for (uint32_t i = 0; i < count; i++) beside += stack_of(map, lines[i]) == stack_of(map, lines[0]);
  return beside;
}

/* Lines that differ in few bits, so that each choice has instances of both kinds. */
static uint32_t random_instance(uint64_t *lines) {
  uint32_t count = 1 + (uint32_t)(random_bits() % 9);
  lines[0] = random_bits() >> 30 << 7;
  for (uint32_t i = 1; i < count; i++)
    lines[i] = lines[random_bits() % i] ^ (random_bits() % 3 ? UINT64_C(128) << random_bits() % 14 : 0);
  return count;
}

static void test_against_definition(void **state) {
  for (uint32_t bits = 0; bits <= STACK_MAP_BITS; bits++) {
    colocate *c = colocate_create(bits, NULL, 0);
    uint64_t expected[STACK_MAP_PAIRS] = {0}, baseline_expected = 0, lines[9], beside[STACK_MAP_PAIRS] = {0},
             baseline_beside = 0, stacks[STACK_MAP_PAIRS][1 << STACK_MAP_BITS] = {{0}}, all = 0;
    stack_map baseline = stack_map_baseline(bits);
    enum { INSTANCES = 3000 };
    for (uint32_t n = 0; n < INSTANCES; n++) {
      uint32_t count = random_instance(lines);
      colocate_instance(c, lines, count);
      baseline_expected += together(&baseline, lines, count);
      baseline_beside += lines_beside(&baseline, lines, count);
      all += count;
      for (uint32_t i = 0; i < STACK_MAP_PAIRS; i++) {
        stack_map map = stack_map_pair(STACK_MAP_LOWEST + i, bits);
        expected[i] += together(&map, lines, count);
        beside[i] += lines_beside(&map, lines, count);
        for (uint32_t k = 0; k < count; k++) stacks[i][stack_of(&map, lines[k])]++;
      }
    }
    assert_int_equal(colocate_instances(c), INSTANCES);
    assert_within(colocate_baseline_share(c), (double)baseline_expected / INSTANCES, 1e-12);
    assert_within(colocate_baseline_beside(c), (double)baseline_beside / (double)all, 1e-12);
    for (uint32_t i = 0; i < STACK_MAP_PAIRS; i++) {
      assert_within(colocate_pair_share(c, i), (double)expected[i] / INSTANCES, 1e-12);
      assert_within(colocate_pair_beside(c, i), (double)beside[i] / (double)all, 1e-12);
      uint64_t most = 0;
      for (uint32_t s = 0; s < 1u << bits; s++) most = stacks[i][s] > most ? stacks[i][s] : most;
      assert_within(colocate_pair_uneven(c, i), (double)(most << bits) / (double)all, 1e-12);
    }
    /* All instances are kept: the sample says the same. */
    stack_map map = stack_map_pair(9, bits);
    assert_within(colocate_share(c, NULL, &map), colocate_pair_share(c, 2), 1e-12);
    assert_within(colocate_share(c, NULL, &baseline), colocate_baseline_share(c), 1e-12);
    colocate_free(c);
  }
}

/* A[i] and B[i], apart by a multiple of 2^14: bits 7 to 13 colocate all; the lowest pair wins. */
static void test_fixed_offset(void **state) {
  colocate_range ranges[] = {{1 << 24, 1 << 20}, {5 << 24, 1 << 20}, {9 << 24, 1 << 20}};
  colocate *c = colocate_create(2, ranges, 3);
  for (uint64_t i = 0; i < 2048; i++) {
    uint64_t lines[] = {(1 << 24) + i * 128, (5 << 24) + (1 << 14) + i * 128};
    colocate_instance(c, lines, 2);
  }
  for (uint32_t i = 0; i < 6; i++) assert_within(colocate_pair_share(c, i), 1, 0);
  for (uint32_t i = 6; i < 8; i++) assert_true(colocate_pair_share(c, i) < 0.01); /* bit 14 is there */
  assert_int_equal(colocate_best_pair(c), 7);
  assert_true(colocate_touched(c, 0) && colocate_touched(c, 1) && !colocate_touched(c, 2));
  colocate_free(c);
}

/* All within 16 KiB: from bit 14 on everything is in one stack, and that is no use. */
static void test_uneven_is_no_choice(void **state) {
  colocate *c = colocate_create(2, NULL, 0);
  for (uint64_t i = 0; i < 127; i++) {
    /* neighbours: the higher the bits, the better */
    uint64_t lines[] = {(1 << 24) + i * 128, (1 << 24) + (i + 1) * 128};
    colocate_instance(c, lines, 2);
  }
  assert_within(colocate_pair_share(c, 9), 1, 0);
  assert_within(colocate_pair_uneven(c, 9), 4, 0);
  assert_int_equal(colocate_best_pair(c), 12);
  colocate_free(c);
  c = colocate_create(2, NULL, 0); /* one line: all pairs are as uneven, and the first is taken */
  colocate_instance(c, (uint64_t[]){4096}, 1);
  assert_int_equal(colocate_best_pair(c), 7);
  colocate_free(c);
  c = colocate_create(2, NULL, 0); /* nothing at all */
  assert_int_equal(colocate_best_pair(c), 7);
  assert_within(colocate_baseline_share(c), 0, 0);
  assert_within(colocate_share(c, NULL, &(stack_map){0}), 0, 0);
  colocate_free(c);
}

/* The first instances of many see one page; how the data spreads is then a matter of the ranges. A table that all
 * instances read does not count against a pair. */
static void test_first_of_many(void **state) {
  colocate_range ranges[] = {{(1 << 24) + 4096, 1 << 20}, {5 << 24, 128}};
  colocate *c = colocate_create(2, ranges, 2);
  for (uint64_t i = 0; i < 31; i++) {
    uint64_t lines[] = {(1 << 24) + 4096 + i * 128, (1 << 24) + 4096 + (i + 1) * 128};
    colocate_instance(c, lines, 2);
  }
  for (uint32_t i = 0; i < STACK_MAP_PAIRS; i++) {
    uint64_t most = 0, stacks[4] = {0};
    for (uint64_t byte = ranges[0].address; byte < ranges[0].address + ranges[0].bytes; byte += 128)
      stacks[byte >> (7 + i) & 3]++;
    for (uint32_t s = 0; s < 4; s++) most = stacks[s] > most ? stacks[s] : most;
    assert_within(colocate_pair_uneven_bytes(c, i), (double)most * 4 / (1 << 13), 1e-12);
  }
  assert_int_equal(colocate_best_pair(c), 12); /* all together */
  colocate_complete(c);
  assert_int_equal(colocate_best_pair(c), 10); /* if these were all: the highest that spreads them */
  colocate_free(c);
  c = colocate_create(2, ranges, 2);
  for (uint64_t i = 0; i < 4096; i++) {
    uint64_t lines[] = {(1 << 24) + 4096 + (i & ~UINT64_C(63)) * 128, 5 << 24, (1 << 24) + 4096 + i * 128};
    colocate_instance(c, lines, 3);
  }
  colocate_complete(c);
  assert_true(colocate_pair_uneven(c, 0) > 2);
  assert_int_equal(colocate_best_pair(c), 16); /* fewest blocks lie across its boundaries */
  colocate_free(c);
}

/* Instances of 32 lines: 24 that are 16 KiB apart, and 8 that follow an index and lie anywhere. No map has one of them
 * in one stack, and yet pairs below bit 14 have a quarter of the 8 and all of the 24 beside: (24 + 2) / 32. */
static void test_never_all_together(void **state) {
  colocate_range ranges[] = {{1 << 24, 1 << 20}, {5 << 24, 1 << 20}};
  colocate *c = colocate_create(2, ranges, 2);
  for (uint64_t i = 0; i < 4096; i++) {
    uint64_t lines[32];
    for (uint64_t n = 0; n < 24; n++) lines[n] = (1 << 24) + i % 128 * 128 + n * 16384;
    for (uint64_t n = 24; n < 32; n++) lines[n] = (5 << 24) + (random_bits() >> 20 & ((1 << 20) - 1) & ~UINT64_C(127));
    colocate_instance(c, lines, 32);
  }
  colocate_complete(c);
  assert_true(colocate_pair_share(c, 0) < 0.01 && colocate_baseline_share(c) < 0.01);
  assert_within(colocate_pair_beside(c, 0), 26.0 / 32, 0.01);
  assert_true(colocate_baseline_beside(c) < 0.35);
  uint32_t best = colocate_best_pair(c);
  assert_in_range(best, 7, 12);
  assert_true(colocate_worth(c, best));
  colocate_free(c);
}

/* Two variables in one line, one at the end of another's line: lines are what counts. */
static void test_ranges_are_lines(void **state) {
  colocate_range ranges[] = {{1000, 8}, {1016, 4}, {1020, 300}, {4096, 0}, {8192 - 4, 4}};
  colocate *c = colocate_create(2, ranges, 5);
  colocate_instance(c, (uint64_t[]){896}, 1);
  assert_true(colocate_touched(c, 0) && !colocate_touched(c, 1) && !colocate_touched(c, 2));
  colocate_instance(c, (uint64_t[]){1024, 8192 - 128, 4096}, 3);
  assert_true(!colocate_touched(c, 1) && colocate_touched(c, 2) && !colocate_touched(c, 3) && colocate_touched(c, 4));
  colocate_free(c);
}

/* Allocations that come while instances do; what is freed and allocated anew is one range. */
static void test_ranges_come(void **state) {
  colocate *c = colocate_create(2, NULL, 0);
  colocate_instance(c, (uint64_t[]){8192}, 1);
  colocate_add_range(c, (colocate_range){8192, 4096});
  colocate_add_range(c, (colocate_range){65536, 4096});
  colocate_add_range(c, (colocate_range){4096, 4096}); /* next to the first, before it */
  assert_int_equal(colocate_range_count(c), 3);
  colocate_instance(c, (uint64_t[]){8192 + 4096 - 128}, 1);
  assert_true(!colocate_touched(c, 0) && colocate_touched(c, 1) && !colocate_touched(c, 2));
  colocate_add_range(c, (colocate_range){10000, 10000}); /* overlaps */
  assert_int_equal(colocate_range_count(c), 3);
  colocate_range range = colocate_range_at(c, 1);
  assert_true(range.address == 8192 && range.address + range.bytes == 20096);
  assert_true(!colocate_touched(c, 0) && colocate_touched(c, 1) && !colocate_touched(c, 2));
  colocate_add_range(c, (colocate_range){20090, 300}); /* begins in the last line: the rest is a range of its own */
  assert_int_equal(colocate_range_count(c), 4);
  range = colocate_range_at(c, 2);
  assert_true(range.address == 20096 && range.bytes == 384 && !colocate_touched(c, 2));
  colocate_add_range(c, (colocate_range){4096 + 100, 100});
  colocate_add_range(c, (colocate_range){20092, 2}); /* nothing of its own */
  assert_int_equal(colocate_range_count(c), 4);
  colocate_add_range(c, (colocate_range){0, 1 << 20});
  assert_int_equal(colocate_range_count(c), 1);
  assert_true(colocate_touched(c, 0));
  colocate_free(c);
}

/* What the first instances choose is not good for those that follow. */
static void test_early(void **state) {
  colocate_range ranges[] = {{1 << 24, 1 << 20}, {2 << 24, 1 << 20}};
  colocate *c = colocate_create(2, ranges, 2);
  bool worth;
  uint64_t seen;
  assert_int_equal(colocate_early_pair(c, 0.5, &seen, &worth), 7);
  assert_int_equal(seen, 0);
  assert_false(worth);
  for (uint64_t i = 0; i < 100000; i++) {
    uint64_t line = i % 8192 * 128;
    colocate_instance(c, (uint64_t[]){(1 << 24) + line, (2 << 24) + (line ^ (i < 1000 ? 128 : 384))}, 2);
  }
  assert_int_equal(colocate_early_pair(c, 0.001, &seen, &worth), 8);
  assert_int_equal(seen, 100);
  assert_true(worth);
  assert_int_equal(colocate_early_pair(c, 1e-9, &seen, &worth), 8);
  assert_int_equal(seen, 1);
  assert_int_equal(colocate_early_pair(c, 0.25, &seen, &worth), 9);
  assert_true(seen >= 25000 && seen <= 25250);
  assert_within(colocate_pair_share(c, 1), 0.01, 1e-9);
  assert_int_equal(colocate_best_pair(c), 9);
  assert_true(colocate_worth(c, 9));
  assert_false(colocate_worth(c, 8)); /* 1 % */
  colocate_bound(c, 8);
  assert_int_equal(colocate_best_pair(c), 8);
  colocate_bound(c, 3);
  assert_int_equal(colocate_best_pair(c), 7);
  colocate_free(c);
}

/* The first instances tell no pairs apart but those from 13:14 on: the lowest is taken, or the highest of equals up to
 * some bit. When all are known, the lowest. */
static void test_lean(void **state) {
  colocate_range ranges[] = {{1 << 24, 1 << 22}};
  colocate *c = colocate_create(2, ranges, 1);
  bool worth;
  uint64_t seen;
  for (uint64_t i = 0; i < 1000; i++)
    colocate_instance(c, (uint64_t[]){(1 << 24) + i * 128, (1 << 24) + (1 << 14) + i * 128}, i % 3 ? 2 : 1);
  assert_int_equal(colocate_best_pair(c), 7);
  colocate_lean(c, 10);
  assert_int_equal(colocate_best_pair(c), 10);
  assert_int_equal(colocate_early_pair(c, 0.01, &seen, &worth), 10);
  colocate_lean(c, 14);
  assert_int_equal(colocate_best_pair(c), 12); /* 13:14 and 14:15 keep fewer together */
  colocate_bound(c, 9);
  assert_int_equal(colocate_best_pair(c), 9);
  colocate_lean(c, 3);
  assert_int_equal(colocate_best_pair(c), 7);
  colocate_lean(c, 14);
  colocate_complete(c);
  assert_int_equal(colocate_best_pair(c), 7);
  colocate_free(c);
}

/* More instances than are kept: the sample is of all of them, and always the same. */
static double sampled(void) {
  colocate *c = colocate_create(2, NULL, 0);
  uint64_t lines[300];
  for (uint64_t n = 0; n < 40000; n++) { /* the second half is apart */
    for (uint64_t i = 0; i < 300; i++) lines[i] = n * 4096 + (n < 20000 || i % 2 ? 0 : 128);
    colocate_instance(c, lines, n % 100 ? 2 : 300);
  }
  stack_map map = stack_map_pair(7, 2);
  double share = colocate_share(c, NULL, &map);
  assert_within(colocate_pair_share(c, 0), 0.5, 0);
  colocate_free(c);
  return share;
}
static void test_sample(void **state) {
  double share = sampled();
  assert_within(share, 0.5, 0.04); /* five standard deviations of 4096 draws */
  assert_within(sampled(), share, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_lean),
      cmocka_unit_test(test_against_definition),
      cmocka_unit_test(test_fixed_offset),
      cmocka_unit_test(test_uneven_is_no_choice),
      cmocka_unit_test(test_first_of_many),
      cmocka_unit_test(test_never_all_together),
      cmocka_unit_test(test_ranges_are_lines),
      cmocka_unit_test(test_ranges_come),
      cmocka_unit_test(test_early),
      cmocka_unit_test(test_sample),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
