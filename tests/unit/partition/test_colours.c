/* SPDX-License-Identifier: Apache-2.0 */
/* Colours: the published table exactly, and for every kind of hash what a colour promises, by looking at the modules of
 * every line of many pages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "known_hashes.h"
#include "partition/colours.h"
#include "partition/gf2.h"

enum { LINE = 128 };

typedef struct rig {
  address_hash *hash;
  colours *colours;
} rig;

static rig rig_make(const hash_spec *spec, uint64_t page) {
  rig r = {NULL, NULL};
  ff_error error;
  if (hash_create(spec, &r.hash, &error) || colours_create(r.hash, page, &r.colours, &error))
    fail_msg("%s", error.message);
  return r;
}
static void rig_free(rig r) {
  colours_free(r.colours);
  hash_free(r.hash);
}

static uint64_t seed = 88172645463325252;
static uint64_t random_bits(void) {
  seed ^= seed << 13;
  seed ^= seed >> 7;
  seed ^= seed << 17;
  return seed;
}

/* Every line of `pages` pages: a module of its page's colour. And a colour is no larger than it must be: its modules
 * are joined by pages. */
static void promises(const hash_spec *spec, uint64_t page, uint32_t count, bool sampled) {
  rig r = rig_make(spec, page);
  uint32_t modules = colours_modules_in(r.colours, UINT64_MAX), *joined = calloc(modules, sizeof *joined),
           sets = modules;
  assert_int_equal(colours_count(r.colours), count);
  assert_int_equal(modules, spec->module_count);
  for (uint32_t m = 0; m < modules; m++) joined[m] = m;
  for (uint64_t i = 0; i < 6000 && page * i < UINT64_C(1) << 33; i++) {
    uint64_t at = (i < 3000 ? i : random_bits() % (UINT64_C(1) << 36) / page) * page;
    uint32_t first = joined[hash_module(r.hash, at)];
    for (uint64_t line = 0; line<page; line += page> 65536 ? 37 * LINE : LINE) {
      uint32_t module = hash_module(r.hash, at + line), other = joined[module];
      assert_int_equal(colours_of_module(r.colours, module), colours_of(r.colours, at));
      if (other != first) {
        sets--;
        for (uint32_t m = 0; m < modules; m++)
          if (joined[m] == other) joined[m] = first;
      }
    }
  }
  if (!sampled) assert_int_equal(sets, count);
  uint32_t all = 0;
  for (uint32_t c = 0; c < count; c++) {
    assert_true(colours_modules_in(r.colours, UINT64_C(1) << c) > 0);
    all += colours_modules_in(r.colours, UINT64_C(1) << c);
  }
  assert_int_equal(all, modules);
  assert_int_equal(colours_modules_in(r.colours, colours_all(r.colours)), modules);
  free(joined);
  rig_free(r);
}

/* The published table: pages of 1K to 64K and up. */
static void test_table(void **state) {
  static const uint32_t gtx1080[] = {8, 4, 2, 1, 1, 1, 1, 1}, v100[] = {32, 16, 8, 4, 2, 2, 1, 1};
  for (uint32_t i = 0; i < 8; i++) {
    promises(&gtx1080_hash, UINT64_C(1024) << i, gtx1080[i], false);
    promises(&v100_hash, UINT64_C(1024) << i, v100[i], false);
  }
  rig r = rig_make(&v100_hash, UINT64_C(2) << 20);
  assert_int_equal(colours_count(r.colours), 1);
  rig_free(r);
}

/* The formula: 2^(rank M - rank of M restricted to bits below p), for masks of any kind. */
static void test_random_masks(void **state) {
  for (int round = 0; round < 60; round++) {
    hash_spec spec = {.kind = HASH_XOR, .set_count = 1, .bank_count = 1, .row_bytes = 2048};
    gf2_space all = {.rank = 0};
    uint32_t wanted = 1 + (uint32_t)(random_bits() % 6), low = 7 + (uint32_t)(random_bits() % 4);
    while (spec.modules.count < wanted) {
      uint64_t mask = random_bits() % (UINT64_C(1) << 33) >> low << low;
      if (gf2_add(&all, mask)) spec.modules.masks[spec.modules.count++] = mask;
    }
    spec.module_count = 1u << wanted;
    for (uint32_t p = 7; p < 14; p++) {
      gf2_space within = gf2_restrict(&all, (UINT64_C(1) << p) - 1);
      promises(&spec, UINT64_C(1) << p, 1u << (wanted - within.rank), false);
    }
  }
}

static hash_spec modulo(hash_kind kind, uint32_t modules, uint64_t piece) {
  return (hash_spec){.kind = kind,
                     .module_count = modules,
                     .bank_count = 16,
                     .set_count = 128,
                     .row_bytes = 2048,
                     .piece_bytes = piece,
                     .polynomial = 0x1002d};
}

/* n consecutive pieces from each multiple of n on: classes stay apart exactly where n divides the modules. */
static void test_modulo(void **state) {
  static const struct {
    uint32_t modules;
    uint64_t piece, page;
    uint32_t count;
  } cases[] = {
      {6, 2048, 4096, 3},   {6, 4096, 4096, 6},   {6, 65536, 4096, 6},   {6, 1024, 4096, 1},
      {5, 2048, 4096, 1},   {5, 4096, 4096, 5},   {10, 2048, 4096, 5},   {80, 256, 4096, 5},
      {80, 4096, 4096, 40}, {80, 4096, 8192, 40}, {80, 4096, 16384, 20}, {80, 256, 65536, 1},
      {7, 256, 512, 1},     {1, 256, 4096, 1},    {128, 256, 256, 64},   {67, 256, 256, 64},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    for (hash_kind kind = HASH_INTERLEAVE; kind <= HASH_MODULO; kind++) {
      if (kind == HASH_XOR) continue;
      hash_spec spec = modulo(kind, cases[i].modules, cases[i].piece);
      /* more than 64 are put together by us, not by pages */
      promises(&spec, cases[i].page, cases[i].count, cases[i].modules > 64);
    }
}

/* A polynomial that scales to a power of two is linear, too: colours as the remainders' cosets say; to other counts
 * pages of two pieces join all. */
static void test_polynomial(void **state) {
  hash_spec spec = modulo(HASH_POLYNOMIAL, 80, 4096);
  promises(&spec, 4096, 40, true);
  spec.module_count = 10;
  promises(&spec, 4096, 10, false);
  promises(&spec, 8192, 5, false); /* two neighbours are half the modules apart */
  promises(&spec, 16384, 1, false);
  promises(&spec, 2 << 20, 1, true);
  spec.module_count = 32;
  promises(&spec, 4096, 32, false);
  promises(&spec, 16384, 8, false);
  spec.polynomial = 0x25; /* degree 5: each bit of the piece's number is a bit of the module */
  promises(&spec, 4096, 32, false);
  promises(&spec, 8192, 16, false);
  promises(&spec, 4096 * 32, 1, false);
}

static void test_equal_groups(void **state) {
  hash_spec spec = modulo(HASH_MODULO, 80, 4096);
  rig r = rig_make(&spec, 4096);
  for (uint32_t c = 0; c < 40; c++) assert_int_equal(colours_modules_in(r.colours, UINT64_C(1) << c), 2);
  assert_int_equal(colours_of_module(r.colours, 0), colours_of_module(r.colours, 1));
  assert_true(colours_all(r.colours) == (UINT64_C(1) << 40) - 1);
  rig_free(r);
}

static void test_linear(void **state) {
  rig r = rig_make(&v100_hash, 4096);
  assert_true(colours_linear(r.colours));
  for (int i = 0; i < 1000; i++) {
    uint64_t a = random_bits() >> 30, b = random_bits() >> 30;
    assert_int_equal(colours_of(r.colours, a) ^ colours_of(r.colours, b), colours_of(r.colours, a ^ b));
  }
  rig_free(r);
}

static void test_refused(void **state) {
  colours *c;
  ff_error error;
  assert_int_equal(colours_create(NULL, 64, &c, &error), FF_INVALID);
  assert_int_equal(colours_create(NULL, 5000, &c, &error), FF_INVALID);
  assert_int_equal(colours_create(NULL, UINT64_C(1) << 31, &c, &error), FF_INVALID);
  assert_int_equal(colours_create(NULL, 4096, &c, &error), FF_OK);
  assert_true(colours_count(c) == 1 && colours_all(c) == 1 && colours_of(c, 1 << 20) == 0 &&
              colours_modules_in(c, 1) == 1);
  colours_free(c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_table),      cmocka_unit_test(test_random_masks), cmocka_unit_test(test_modulo),
      cmocka_unit_test(test_polynomial), cmocka_unit_test(test_equal_groups), cmocka_unit_test(test_linear),
      cmocka_unit_test(test_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
