/* SPDX-License-Identifier: Apache-2.0 */
/* Address hashes: every kind in range and evenly spread, the published masks as they stand, broken ones refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "known_hashes.h"
#include "partition/gf2.h"
#include "unit/near.h"

static address_hash *made(const hash_spec *spec) {
  address_hash *hash = NULL;
  ff_error error;
  if (hash_create(spec, &hash, &error)) fail_msg("%s", error.message);
  return hash;
}

static uint64_t seed = 88172645463325252;
static uint64_t random_bits(void) {
  seed ^= seed << 13;
  seed ^= seed >> 7;
  seed ^= seed << 17;
  return seed;
}

static hash_spec other(hash_kind kind, uint32_t modules, uint64_t piece, uint64_t polynomial) {
  return (hash_spec){.kind = kind,
                     .module_count = modules,
                     .bank_count = 48,
                     .set_count = 96,
                     .row_bytes = 1024,
                     .piece_bytes = piece,
                     .polynomial = polynomial};
}

/* In range for any address, the same for all bytes of a line, and the module alone is the place's. */
static void in_range(const hash_spec *spec) {
  address_hash *hash = made(spec);
  for (int i = 0; i < 20000; i++) {
    uint64_t at = random_bits() >> (i % 3 ? 24 + random_bits() % 30 : 0);
    hash_place p = hash_of(hash, at), end = hash_of(hash, at | 127);
    assert_true(p.module < spec->module_count && p.bank < spec->bank_count && p.set < spec->set_count);
    assert_true(p.module == end.module && p.bank == end.bank && p.set == end.set && p.row == end.row);
    assert_int_equal(hash_module(hash, at), p.module);
  }
  assert_int_equal(hash_spec_of(hash)->module_count, spec->module_count);
  hash_free(hash);
}

static const uint32_t counts[] = {1, 5, 6, 8, 10, 80};

static void test_range(void **state) {
  in_range(&gtx1080_hash);
  in_range(&v100_hash);
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
    for (uint64_t piece = 128; piece <= 1 << 20; piece <<= 3) {
      hash_spec modulo = other(HASH_MODULO, counts[i], piece, 0), around = other(HASH_INTERLEAVE, counts[i], piece, 0);
      hash_spec polynomial = other(HASH_POLYNOMIAL, counts[i], piece, 0x1002d),
                small = other(HASH_POLYNOMIAL, counts[i], piece, 0x83);
      in_range(&modulo);
      in_range(&around);
      in_range(&polynomial);
      in_range(&small);
    }
}

/* Bit by bit, mask by mask. Banks and sets of a module are what their masks say in addition to the module's: those of
 * the published lists behind the first ones, which are the module's (gtx1080). */
static void test_parity(void **state) {
  address_hash *hash = made(&gtx1080_hash);
  for (int i = 0; i < 20000; i++) {
    uint64_t at = random_bits() >> 28;
    uint32_t module = 0, bank = 0, set = 0;
    for (uint32_t m = 0; m < 3; m++) module |= gf2_product(gtx1080_hash.modules.masks[m], at) << m;
    for (uint32_t m = 3; m < 7; m++) bank |= gf2_product(gtx1080_hash.banks.masks[m], at) << (m - 3);
    for (uint32_t m = 3; m < 10; m++) set |= gf2_product(gtx1080_hash.sets.masks[m], at) << (m - 3);
    hash_place p = hash_of(hash, at);
    assert_true(p.module == module && p.bank == bank && p.set == set);
  }
  hash_free(hash);
}

/* The published numbers together tell the same addresses apart as module and bank (set) do: of two addresses. */
static void same_classes(const hash_spec *spec) {
  address_hash *hash = made(spec);
  gf2_space banks = gf2_span(spec->banks.masks, spec->banks.count), sets = gf2_span(spec->sets.masks, spec->sets.count);
  gf2_space bank_differences = gf2_null(&banks, (UINT64_C(1) << 37) - 1),
            set_differences = gf2_null(&sets, (UINT64_C(1) << 37) - 1);
  int same_banks = 0;
  for (int i = 0; i < 20000; i++) {
    uint64_t at = random_bits() >> 28, difference = 0;
    const gf2_space *of = i % 2 ? &bank_differences : &set_differences;
    for (uint32_t r = 0; r < of->rank; r++) difference ^= random_bits() & 1 ? of->rows[r] : 0;
    if (i % 4 < 2) difference = random_bits() >> 28;
    hash_place a = hash_of(hash, at), b = hash_of(hash, at ^ difference);
    bool same_bank = a.module == b.module && a.bank == b.bank, same_set = a.module == b.module && a.set == b.set;
    same_banks += same_bank;
    assert_int_equal(same_bank, !gf2_reduce(&bank_differences, difference));
    assert_int_equal(same_set, !gf2_reduce(&set_differences, difference));
  }
  assert_true(same_banks > 4000);
  hash_free(hash);
}

/* Each row of each bank holds row_bytes: 2^18 (2^20) bytes that differ in the low bits alone fill one row of every
 * bank. */
static void whole_rows(const hash_spec *spec) {
  address_hash *hash = made(spec);
  uint64_t bytes = spec->row_bytes * spec->module_count * spec->bank_count,
           *filled = calloc(spec->module_count * spec->bank_count, sizeof *filled);
  uint64_t base = UINT64_C(0x1234) * bytes, row = hash_of(hash, base).row;
  for (uint64_t at = 0; at < bytes; at += 128) {
    hash_place p = hash_of(hash, base + at);
    assert_true(p.row == row);
    filled[p.module * spec->bank_count + p.bank] += 128;
  }
  for (uint32_t b = 0; b < spec->module_count * spec->bank_count; b++) assert_int_equal(filled[b], spec->row_bytes);
  assert_true(hash_of(hash, base + bytes).row != row);
  free(filled);
  hash_free(hash);
}

/* Masks of any bits: each row of each bank has row_bytes, wherever the masks' bits are. */
static void test_rows(void **state) {
  enum { BITS = 17, MODULES = 3, BANKS = 2 };
  uint16_t *lines = malloc((1 << BITS) * sizeof *lines);
  for (int round = 0; round < 200; round++) {
    uint32_t low = 7 + (uint32_t)(random_bits() % 5);
    hash_spec spec = {.kind = HASH_XOR,
                      .module_count = 1 << MODULES,
                      .bank_count = 1 << BANKS,
                      .set_count = 1,
                      .row_bytes = UINT64_C(256) << random_bits() % 4};
    gf2_space all = {.rank = 0};
    while (all.rank < MODULES + BANKS) {
      uint64_t mask = random_bits() % (1 << BITS) >> low << low;
      if (!gf2_add(&all, mask)) continue;
      spec.banks.masks[spec.banks.count++] = mask;
      if (all.rank <= MODULES) spec.modules.masks[spec.modules.count++] = mask;
    }
    address_hash *hash = made(&spec);
    uint32_t rows = 0;
    hash_place first[1 << (BITS - 7)];
    memset(lines, 0, (1 << BITS) * sizeof *lines);
    for (uint64_t at = 0; at < 1 << BITS; at += 128) {
      hash_place p = hash_of(hash, at);
      uint32_t r = 0;
      while (r < rows && (first[r].module != p.module || first[r].bank != p.bank || first[r].row != p.row)) r++;
      if (r == rows) first[rows++] = p;
      lines[r]++;
    }
    assert_int_equal(rows, (1 << BITS) / spec.row_bytes);
    for (uint32_t r = 0; r < rows; r++) assert_int_equal(lines[r] * 128, spec.row_bytes);
    hash_free(hash);
  }
  free(lines);
}

static void test_published(void **state) {
  same_classes(&gtx1080_hash);
  same_classes(&v100_hash);
  whole_rows(&gtx1080_hash);
  whole_rows(&v100_hash);
}

/* 64 MiB line by line, or the like: no module, bank or set has more than its part and a bit (exactly its part where the
 * hash is linear). */
static void even(const hash_spec *spec, uint64_t lines, double slack) {
  address_hash *hash = made(spec);
  uint32_t *modules = calloc(spec->module_count, sizeof *modules), *banks = calloc(spec->bank_count, sizeof *banks),
           *sets = calloc(spec->set_count, sizeof *sets);
  for (uint64_t i = 0; i < lines; i++) {
    hash_place p = hash_of(hash, i * 128);
    modules[p.module]++;
    banks[p.bank]++;
    sets[p.set]++;
  }
  for (uint32_t m = 0; m < spec->module_count; m++)
    assert_within((double)modules[m] * spec->module_count / (double)lines, 1, slack);
  for (uint32_t b = 0; b < spec->bank_count; b++)
    assert_within((double)banks[b] * spec->bank_count / (double)lines, 1, slack);
  for (uint32_t s = 0; s < spec->set_count; s++)
    assert_within((double)sets[s] * spec->set_count / (double)lines, 1, slack);
  free(modules);
  free(banks);
  free(sets);
  hash_free(hash);
}

static void test_even(void **state) {
  even(&gtx1080_hash, 1 << 19, 0);
  even(&v100_hash, 1 << 19, 0);
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    hash_spec modulo = other(HASH_MODULO, counts[i], 512, 0), polynomial = other(HASH_POLYNOMIAL, counts[i], 512, 0);
    even(&modulo, 16 * 384 * counts[i], 0); /* 16 rounds through all rows of all banks */
    even(&polynomial, 1 << 19, .06);
  }
}

/* Interleave and modulo by plain division. */
static void test_division(void **state) {
  for (int round = 0; round < 300; round++) {
    hash_spec spec =
        other(round % 2 ? HASH_MODULO : HASH_INTERLEAVE, 1 + (uint32_t)(random_bits() % (round % 3 ? 100 : 65536)),
              UINT64_C(128) << random_bits() % 12, 0);
    spec.bank_count = 1 + (uint32_t)(random_bits() % 64);
    spec.set_count = (uint32_t)(random_bits() % 1000000 + 1);
    address_hash *hash = made(&spec);
    for (int i = 0; i < 300; i++) {
      uint64_t at = random_bits() >> random_bits() % 40, piece = at / spec.piece_bytes,
               local = piece / spec.module_count * spec.piece_bytes + at % spec.piece_bytes;
      hash_place p = hash_of(hash, at);
      assert_true(p.module == piece % spec.module_count && p.bank == local / spec.row_bytes % spec.bank_count);
      assert_true(p.set == local / 128 % spec.set_count && p.row == local / spec.row_bytes / spec.bank_count);
    }
    hash_free(hash);
  }
}

/* Strides are what hashing is for: with powers of two no module has more than twice its part, but where the pieces go
 * round a power of two of them. */
static void test_strides(void **state) {
  hash_spec specs[] = {gtx1080_hash,
                       v100_hash,
                       other(HASH_POLYNOMIAL, 8, 512, 0),
                       other(HASH_POLYNOMIAL, 6, 512, 0),
                       other(HASH_POLYNOMIAL, 80, 512, 0),
                       other(HASH_MODULO, 5, 512, 0)};
  for (size_t s = 0; s < sizeof specs / sizeof *specs; s++) {
    address_hash *hash = made(&specs[s]);
    for (uint32_t bit = 10; bit < 20; bit++) {
      uint32_t most = 0, *modules = calloc(specs[s].module_count, sizeof *modules);
      for (uint64_t i = 0; i < 4096; i++) {
        uint32_t now = ++modules[hash_module(hash, i << bit)];
        if (now > most) most = now;
      }
      if (most > 2 * 4096 / specs[s].module_count) fail_msg("hash %zu, stride 2^%u: %u of 4096", s, bit, most);
      free(modules);
    }
    hash_free(hash);
  }
  hash_spec around = other(HASH_INTERLEAVE, 8, 512, 0);
  address_hash *hash = made(&around);
  for (uint64_t i = 0; i < 100; i++) assert_int_equal(hash_module(hash, i * 4096), 0);
  hash_free(hash);
}

/* Eight neighbours go to eight modules, whatever the polynomial's degree. */
static void test_neighbours(void **state) {
  static const uint64_t polynomials[] = {0, 0x83, 0x1002d, 0x100009};
  for (size_t p = 0; p < sizeof polynomials / sizeof *polynomials; p++) {
    hash_spec spec = other(HASH_POLYNOMIAL, 8, 512, polynomials[p]);
    address_hash *hash = made(&spec);
    for (uint64_t piece = 0; piece < 8000; piece += 8) {
      uint32_t seen = 0;
      for (uint64_t i = 0; i < 8; i++) seen |= 1u << hash_module(hash, (piece + i) * 512);
      assert_int_equal(seen, 0xff);
    }
    hash_free(hash);
  }
}

/* The polynomial that is chosen: x comes back to 1 after all other remainders, not before. */
static void test_primitive(void **state) {
  for (uint32_t modules = 2; modules < 1 << 15; modules = modules % 2 ? modules + 1 : modules * 2 - 1) {
    hash_spec spec = other(HASH_POLYNOMIAL, modules, 512, 0);
    address_hash *hash = made(&spec);
    uint64_t polynomial = hash_spec_of(hash)->polynomial, top = UINT64_C(1) << (63 - __builtin_clzll(polynomial)),
             x = 1, count = 0;
    do {
      x <<= 1;
      if (x & top) x ^= polynomial;
      count++;
    } while (x != 1);
    assert_int_equal(count, top - 1);
    assert_true(top >= modules);
    hash_free(hash);
  }
}

static void refused(hash_spec spec, const char *says) {
  address_hash *hash = NULL;
  ff_error error = {0};
  assert_int_equal(hash_create(&spec, &hash, &error), FF_INVALID);
  if (!strstr(error.message, says)) fail_msg("%s", error.message);
  assert_null(hash);
}

static void test_refused(void **state) {
  hash_spec s = gtx1080_hash;
  s.modules.masks[1] = 0;
  refused(s, "mask 1 of the modules is empty");
  s = gtx1080_hash;
  s.banks.masks[4] |= 1 << 6;
  refused(s, "mask 4 of the banks has a bit within a line");
  s = gtx1080_hash;
  s.sets.masks[5] |= UINT64_C(1) << 37;
  refused(s, "mask 5 of the sets has a bit above 36");
  s = gtx1080_hash;
  s.modules.masks[2] = s.modules.masks[0] ^ s.modules.masks[1];
  refused(s, "modules");
  s = gtx1080_hash;
  s.module_count = 7;
  refused(s, "3 independent masks tell 8 modules apart, but there are 7");
  /* of all modules together, not of one */
  s = gtx1080_hash;
  s.bank_count = 128;
  refused(s, "4 independent masks tell 16 banks of a module apart, but there are 128");
  s = gtx1080_hash;
  s.set_count = 64;
  refused(s, "7 independent masks tell 128 sets of a slice apart, but there are 64");
  s = gtx1080_hash;
  s.banks.masks[6] = s.banks.masks[5] ^ s.banks.masks[0];
  refused(s, "3 independent masks tell 8 banks");
  s = gtx1080_hash;
  s.row_bytes = 3000;
  refused(s, "no modules, banks, sets or rows");
  s = gtx1080_hash;
  s.module_count = 0;
  refused(s, "no modules");
  s = gtx1080_hash;
  s.modules.count = HASH_MASKS + 1;
  refused(s, "more than 16 masks");
  s = gtx1080_hash;
  s.row_bytes = UINT64_C(1) << 31;
  refused(s, "rows above 1 GiB");
  refused(other(HASH_MODULO, 70000, 256, 0), "above 65536 modules or banks");
  refused(other(HASH_MODULO, 5, 64, 0), "at least 128");
  refused(other(HASH_MODULO, 5, 3000, 0), "power of two");
  refused(other(HASH_POLYNOMIAL, 5, 512, 0x1002c), "odd");
  refused(other(HASH_POLYNOMIAL, 5, 512, 1), "degree");
  refused(other(HASH_POLYNOMIAL, 5, 512, UINT64_C(1) << 32 | 1), "degree");
  refused(other(HASH_POLYNOMIAL, 80, 512, 0x25), "too small for 80");
  assert_string_equal(hash_kind_name(HASH_INTERLEAVE), "interleave");
  assert_string_equal(hash_kind_name(HASH_POLYNOMIAL), "polynomial");
  assert_null(hash_kind_name(HASH_POLYNOMIAL + 1));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_range),     cmocka_unit_test(test_parity),     cmocka_unit_test(test_rows),
      cmocka_unit_test(test_published), cmocka_unit_test(test_even),       cmocka_unit_test(test_division),
      cmocka_unit_test(test_strides),   cmocka_unit_test(test_neighbours), cmocka_unit_test(test_primitive),
      cmocka_unit_test(test_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
