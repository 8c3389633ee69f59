/* SPDX-License-Identifier: Apache-2.0 */
/* Linear maps of ranges: instances with known answers, noise, and what no map can do. Each test asserts that they are
 * no worse than the best pair (solves). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "partition/colocate.h"
#include "partition/wide.h"
#include "unit/near.h"

enum { LINE = 128 };

static uint64_t seed = 88172645463325252;
static uint64_t random_bits(void) {
  seed ^= seed << 13;
  seed ^= seed >> 7;
  seed ^= seed << 17;
  /* as it is, a number is a linear map of the one before, and that would be found */
  return seed * UINT64_C(2685821657736338717) >> 8;
}

static double pair_share(const colocate *c) { return colocate_pair_share(c, colocate_best_pair(c) - STACK_MAP_LOWEST); }

/* Solves, checks the maps, and says how many instances of a range of lines lie together under them. */
static double solves(colocate *c, uint32_t ranges, stack_map *maps) {
  stack_map again[8], baseline = stack_map_baseline(2);
  colocate_complete(c);
  double share = colocate_linear(c, maps);
  assert_within(colocate_share(c, maps, &baseline), share, 1e-12);
  assert_true(share >= pair_share(c) - 1e-12 || colocate_instances(c) > 4096);
  assert_within(colocate_linear(c, again), share, 0);
  assert_memory_equal(maps, again, ranges * sizeof *maps); /* the same again */
  for (uint32_t i = 0; i < ranges; i++) {
    stack_map made;
    assert_int_equal(stack_map_make(maps[i].masks, maps[i].bits, maps[i].flip, &made, NULL), FF_OK); /* independent */
    assert_memory_equal(&made, &maps[i], sizeof made);
  }
  return share;
}

static void spreads(const stack_map *map, uint64_t from, uint64_t lines) {
  uint64_t stacks[4] = {0};
  for (uint64_t i = 0; i < lines; i++) stacks[stack_of(map, from + i * LINE)]++;
  for (uint32_t s = 0; s < 4; s++) assert_true((double)stacks[s] <= COLOCATE_UNEVEN * (double)lines / 4);
}

/* a[i] of 4 bytes and b[i] of 8: a line of a meets two of b. No pair of bits can do that, but each range with its
 * own. */
static void test_elements_of_two_sizes(void **state) {
  colocate_range ranges[] = {{1 << 24, 1 << 20}, {2 << 24, 1 << 21}};
  stack_map maps[2];
  colocate *c = colocate_create(2, ranges, 2);
  for (uint64_t i = 0; i < 8192; i++)
    colocate_instance(c,
                      (uint64_t[]){ranges[0].address + i * LINE, ranges[1].address + 2 * i * LINE,
                                   ranges[1].address + (2 * i + 1) * LINE},
                      3);
  assert_true(pair_share(c) < 0.6);
  assert_within(solves(c, 2, maps), 1, 0);
  spreads(&maps[0], ranges[0].address, 8192);
  spreads(&maps[1], ranges[1].address, 16384);
  colocate_free(c);
}

/* a[i] and b[i ^ 1023]: all bits of the offset are set that a pair could be. */
static void test_offset_that_no_pair_meets(void **state) {
  colocate_range ranges[] = {{1 << 24, 1 << 20}, {2 << 24, 1 << 20}};
  stack_map maps[2];
  colocate *c = colocate_create(2, ranges, 2);
  for (uint64_t i = 0; i < 4096; i++)
    colocate_instance(c, (uint64_t[]){ranges[0].address + i * LINE, ranges[1].address + (i ^ 0x3ff) * LINE}, 2);
  assert_true(pair_share(c) < 0.01);
  assert_within(solves(c, 2, maps), 1, 0);
  colocate_free(c);
}

/* a[i], b[i] with carries: not linear, but nearly so at bits above the offset. */
static void test_offset_with_carries(void **state) {
  colocate_range ranges[] = {{1 << 24, 1 << 21}, {(2 << 24) + 1280, 1 << 21}, {(3 << 24) + (1 << 14) + 512, 1 << 21}};
  stack_map maps[3];
  colocate *c = colocate_create(2, ranges, 3);
  for (uint64_t i = 0; i < 16000; i++)
    colocate_instance(
        c, (uint64_t[]){ranges[0].address + i * LINE, ranges[1].address + i * LINE, ranges[2].address + i * LINE}, 3);
  double pair = pair_share(c), share = solves(c, 3, maps);
  assert_true(share > 0.95 && share > pair + 0.02);
  colocate_free(c);
}

/* in[i][j] and out[j][i]: a permutation of bits. */
static void test_transpose(void **state) {
  colocate_range ranges[] = {{1 << 24, 1 << 20}, {2 << 24, 1 << 20}};
  stack_map maps[2];
  colocate *c = colocate_create(2, ranges, 2);
  for (uint64_t i = 0; i < 64; i++)
    for (uint64_t j = 0; j < 128; j++)
      colocate_instance(
          c, (uint64_t[]){ranges[0].address + (i * 128 + j) * LINE, ranges[1].address + (j * 64 + i) * LINE}, 2);
  assert_true(pair_share(c) < 0.6);
  assert_within(solves(c, 2, maps), 1, 0);
  spreads(&maps[0], ranges[0].address, 8192);
  spreads(&maps[1], ranges[1].address, 8192);
  colocate_free(c);
}

/* One instance in ten goes anywhere; and a third of all is a gather, which nothing can colocate. */
static void noisy(uint64_t noise, bool gather) {
  colocate_range ranges[] = {{1 << 24, 1 << 20}, {2 << 24, 1 << 21}, {4 << 24, 1 << 20}};
  stack_map maps[3];
  uint64_t clean = 0, all = 0;
  colocate *c = colocate_create(2, ranges, 3);
  for (uint64_t i = 0; i < 4000; i++) {
    uint64_t n = random_bits() % 8192;
    if (gather && i % 3 == 0)
      colocate_instance(c,
                        (uint64_t[]){ranges[0].address + n * LINE, ranges[2].address + random_bits() % 8192 * LINE,
                                     ranges[2].address + random_bits() % 8192 * LINE},
                        3);
    else {
      bool is_noise = random_bits() % 100 < noise;
      uint64_t m = is_noise ? random_bits() % 8192 : n;
      colocate_instance(c, (uint64_t[]){ranges[0].address + n * LINE, ranges[1].address + 2 * m * LINE}, 2);
      clean += !is_noise;
    }
    all++;
  }
  double share = solves(c, 3, maps);
  assert_true(share >= (double)clean / (double)all);
  assert_true(pair_share(c) < share - 0.2);
  colocate_free(c);
}
static void test_noise(void **state) {
  noisy(10, false);
  noisy(30, false);
  noisy(10, true);
}

/* Two kernels whose data has nothing to do with each other: each gets its own maps. */
static void test_components(void **state) {
  colocate_range ranges[] = {
      {1 << 24, 1 << 20}, {2 << 24, 1 << 21}, {4 << 24, 1 << 22}, {8 << 24, 1 << 20}, {16 << 24, 1 << 20}};
  stack_map maps[5];
  colocate *c = colocate_create(2, ranges, 5);
  for (uint64_t i = 0; i < 8192; i++) {
    colocate_instance(c, (uint64_t[]){ranges[0].address + i * LINE, ranges[1].address + 2 * i * LINE}, 2);
    colocate_instance(c, (uint64_t[]){ranges[2].address + 4 * i * LINE, ranges[3].address + i * LINE}, 2);
  }
  assert_true(solves(c, 5, maps) == 1);
  for (uint32_t i = 0; i < 4; i++) spreads(&maps[i], ranges[i].address, ranges[i].bytes / LINE);
  stack_map baseline = stack_map_baseline(2);
  assert_memory_equal(&maps[4], &baseline, sizeof baseline); /* it was not touched */
  colocate_free(c);
}

/* Nothing to be had: random lines. And instances of which there are too few, or that touch nothing known. */
static void test_no_map(void **state) {
  colocate_range ranges[] = {{1 << 24, 1 << 20}, {2 << 24, 1 << 20}};
  stack_map maps[2];
  colocate *c = colocate_create(2, ranges, 2);
  for (uint64_t i = 0; i < 2000; i++)
    colocate_instance(
        c,
        (uint64_t[]){ranges[0].address + random_bits() % 8192 * LINE, ranges[1].address + random_bits() % 8192 * LINE},
        2);
  assert_true(solves(c, 2, maps) < 0.35);
  colocate_free(c);
  c = colocate_create(2, ranges, 2);
  assert_within(solves(c, 2, maps), 0, 0);
  colocate_instance(c, &ranges[0].address, 1);
  assert_within(solves(c, 2, maps), 1, 0);
  colocate_free(c);
  c = colocate_create(2, NULL, 0);
  for (uint64_t i = 0; i < 100; i++) colocate_instance(c, (uint64_t[]){i * LINE, i * LINE}, 2);
  assert_within(colocate_linear(c, maps), 1, 0);
  colocate_free(c);
}

/* A range that is one line, met by instances of one stack only: masks are made up for it. */
static void test_small_range(void **state) {
  colocate_range ranges[] = {{1 << 24, 128}, {2 << 24, 1 << 20}};
  stack_map maps[2];
  colocate *c = colocate_create(2, ranges, 2);
  for (uint64_t i = 0; i < 8192; i++) {
    uint64_t lines[] = {ranges[1].address + i * LINE, ranges[0].address};
    colocate_instance(c, lines, i % 4 == 2 ? 2 : 1);
  }
  assert_true(solves(c, 2, maps) == 1);
  colocate_free(c);
}

/* Against the definition, over vectors of 70 columns of which few are used. */
static void test_wide(void **state) {
  for (int round = 0; round < 200; round++) {
    wide_space space = wide_create(70);
    uint64_t vectors[6][2], null[140], v[2];
    uint32_t own[70], count = (uint32_t)(random_bits() % 7), grew = 0;
    for (uint32_t i = 0; i < count; i++) {
      vectors[i][0] = random_bits() & random_bits() & 0xf00000000000000f;
      vectors[i][1] = random_bits() & 0x21;
      memcpy(v, vectors[i], sizeof v);
      grew += wide_add(&space, v);
    }
    assert_int_equal(grew, space.rank);
    uint32_t found = wide_null(&space, null, own);
    assert_int_equal(found + space.rank, 70);
    for (uint32_t i = 0; i < found; i++) {
      for (uint32_t k = 0; k < count; k++)
        assert_int_equal(
            __builtin_parityll(null[2 * i] & vectors[k][0]) ^ __builtin_parityll(null[2 * i + 1] & vectors[k][1]), 0);
      for (uint32_t k = 0; k < found; k++) assert_int_equal(wide_bit(null + 2 * i, own[k]), i == k);
    }
    for (uint32_t sum = 0; sum < 1u << count; sum++) { /* all sums are in it */
      memset(v, 0, sizeof v);
      for (uint32_t i = 0; i < count; i++)
        if (sum >> i & 1) {
          v[0] ^= vectors[i][0];
          v[1] ^= vectors[i][1];
        }
      assert_true(wide_contains(&space, v));
    }
    v[0] = 1 << 5;
    v[1] = 0;
    assert_false(wide_contains(&space, v));
    wide_free(&space);
  }
  uint64_t v[2] = {UINT64_C(0xf) << 60, 0x9};
  assert_int_equal(wide_bits(v, 60, 8), 0x9f);
  assert_int_equal(wide_bits(v, 64, 3), 1);
  assert_int_equal(wide_bits(v, 63, 0), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_wide),
      cmocka_unit_test(test_elements_of_two_sizes),
      cmocka_unit_test(test_offset_that_no_pair_meets),
      cmocka_unit_test(test_offset_with_carries),
      cmocka_unit_test(test_transpose),
      cmocka_unit_test(test_noise),
      cmocka_unit_test(test_components),
      cmocka_unit_test(test_no_map),
      cmocka_unit_test(test_small_range),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
