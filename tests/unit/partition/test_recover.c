/* SPDX-License-Identifier: Apache-2.0 */
/* Hashes from pairs: the published ones with false pairs of both kinds, maps that are not linear, samples that say too
 * little. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "fgpu_masks.h"
#include "partition/gf2.h"
#include "partition/hash.h"
#include "partition/recover.h"

enum { LINE = 128 };

typedef struct oracle {
  uint64_t masks[32];
  uint32_t count;
  const address_hash *hash;
  uint64_t row_bytes;
} oracle;
typedef struct pairs {
  FF_VEC(uint64_t) conflicts, others;
  uint64_t tested, random;
} pairs;

static uint64_t next(pairs *p) {
  p->random = p->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (p->random >> 33 ^ p->random << 31) * UINT64_C(0xff51afd7ed558ccd) >> 7;
}

static bool conflict(const oracle *o, uint64_t a, uint64_t b) {
  if (o->hash) {
    hash_place x = hash_of(o->hash, a), y = hash_of(o->hash, b);
    return x.module == y.module && x.bank == y.bank && x.row != y.row;
  }
  for (uint32_t i = 0; i < o->count; i++)
    if (__builtin_parityll(o->masks[i] & (a ^ b))) return false;
  return true;
}

/* Random pairs until `wanted` conflicts; `wrong` of the conflicts are any pair, and as many are missed. */
static void draw(pairs *p, const oracle *o, uint32_t address_bits, size_t wanted, double wrong) {
  uint64_t below = UINT64_C(1) << address_bits;
  while (p->conflicts.count < wanted && p->tested < 1000000) {
    uint64_t a = next(p) % below / LINE * LINE, b = next(p) % below / LINE * LINE;
    p->tested++;
    if (!conflict(o, a, b)) FF_PUSH(&p->others, a ^ b);
    else if ((double)(next(p) % 1000000) / 1e6 < wrong) FF_PUSH(&p->others, a ^ b);
    else if ((double)(next(p) % 1000000) / 1e6 < wrong) FF_PUSH(&p->conflicts, next(p) % below / LINE * LINE);
    else FF_PUSH(&p->conflicts, a ^ b);
  }
}

static void recover(const pairs *p, recover_result *r) {
  recover_sample sample = {p->conflicts.items, p->others.items, p->conflicts.count, p->others.count, p->tested, 7};
  recover_masks(&sample, r);
}

static void pairs_free(pairs *p) {
  free(p->conflicts.items);
  free(p->others.items);
}

static bool same_span(const uint64_t *a, uint32_t a_count, const uint64_t *b, uint32_t b_count) {
  gf2_space x = gf2_span(a, a_count), y = gf2_span(b, b_count);
  return gf2_equal(&x, &y);
}

static void check_published(const published *p, int sets, double wrong, uint64_t seed) {
  oracle o = {.count = 0};
  o.count = published_masks(p, sets, o.masks);
  pairs drawn = {.random = seed};
  draw(&drawn, &o, p->address_bits, 160, wrong);
  recover_result r;
  recover(&drawn, &r);
  uint64_t found[RECOVER_MASKS];
  uint32_t count = recover_list(&r, found);
  if (r.verdict != RECOVER_LINEAR || count != o.count || !same_span(found, count, o.masks, o.count))
    fail_msg("%s %s, %g false, seed %llu: %s, rank %u", p->name, sets ? "sets" : "banks", wrong,
             (unsigned long long)seed, recover_verdict_name(r.verdict), count);
  assert_true(r.nullity == p->address_bits - 7 - o.count);
  assert_true(r.confidence > 1 - 4 * wrong - 0.06 && r.confidence <= 1);
  assert_true(fabs(r.residue) < 0.6 && r.spurious < 1e-9);
  if (wrong == 0) assert_true(r.confidence == 1 && r.false_pairs == 0 && r.missed == 0);
  else assert_true(r.false_pairs < 0.02 + 3 * wrong);
  for (uint32_t i = 0; i < count; i++)
    assert_true(r.masks[i].conflicts > 0.8 && r.masks[i].others > 0.4 && r.masks[i].others < 0.6);
  pairs_free(&drawn);
}

static void twenty_seeds(double wrong) {
  for (uint64_t seed = 1; seed <= 20; seed++)
    for (int sets = 0; sets < 2; sets++) {
      check_published(&gtx1080, sets, wrong, seed);
      check_published(&v100, sets, wrong, seed);
    }
}

static void published_exactly(void **state) {
  check_published(&gtx1080, 0, 0, 99);
  check_published(&v100, 1, 0, 99);
}
static void one_percent_false(void **state) { twenty_seeds(0.01); }
static void five_percent_false(void **state) { twenty_seeds(0.05); }

/* The basis: each mask's lowest bit in no other one, in increasing order. */
static void basis_is_reduced(void **state) {
  oracle o = {.count = 0};
  o.count = published_masks(&v100, 1, o.masks);
  pairs drawn = {.random = 3};
  draw(&drawn, &o, 34, 160, 0);
  recover_result r, again;
  recover(&drawn, &r);
  for (uint32_t i = 0; i < r.rank; i++)
    for (uint32_t k = 0; k < r.rank; k++) {
      uint64_t low = r.masks[i].bits & -r.masks[i].bits;
      assert_true(k == i || !(r.masks[k].bits & low));
      if (k < i) assert_true((r.masks[k].bits & -r.masks[k].bits) < low);
    }
  recover(&drawn, &again);
  assert_memory_equal(r.masks, again.masks, r.rank * sizeof *r.masks);
  pairs_free(&drawn);
}

static void not_linear(void **state) {
  hash_spec modulo = {.kind = HASH_MODULO,
                      .piece_bytes = 1024,
                      .module_count = 5,
                      .bank_count = 16,
                      .set_count = 128,
                      .row_bytes = 2048};
  hash_spec even = modulo, polynomial = modulo;
  even.module_count = 6;
  polynomial.kind = HASH_POLYNOMIAL;
  polynomial.polynomial = 0x11d;
  const hash_spec *const specs[] = {&modulo, &polynomial, &even};
  for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
    address_hash *hash;
    ff_error error;
    assert_int_equal(hash_create(specs[i], &hash, &error), FF_OK);
    oracle o = {.hash = hash};
    pairs drawn = {.random = 11};
    draw(&drawn, &o, 33, 300, 0.01);
    recover_result r;
    recover(&drawn, &r);
    assert_true(r.verdict == RECOVER_NOT_LINEAR ? r.rank == 0 : r.verdict == RECOVER_PARTLY);
    if (r.rank > 2)
      fail_msg("case %zu: %s, rank %u, residue %g, confidence %g", i, recover_verdict_name(r.verdict), r.rank,
               r.residue, r.confidence);
    if (r.rank) assert_true(r.residue > 2);
    uint64_t found[RECOVER_MASKS];
    gf2_space space = gf2_span(found, recover_list(&r, found));
    assert_true(specs[i] != &even || !gf2_reduce(&space, 1024)); /* a number modulo 6 has its lowest bit */
    pairs_free(&drawn);
    hash_free(hash);
  }
}

/* Pairs of one 2 MiB page: the masks without the bits above it; a bit that never differs is in no mask. */
static void in_one_page(void **state) {
  oracle o = {.count = 0};
  o.count = published_masks(&gtx1080, 0, o.masks);
  pairs drawn = {.random = 5};
  draw(&drawn, &o, 21, 160, 0.01);
  uint64_t restricted[16];
  for (uint32_t i = 0; i < o.count; i++) restricted[i] = o.masks[i] & ((1 << 21) - 1);
  recover_result r;
  recover(&drawn, &r);
  uint64_t found[RECOVER_MASKS];
  assert_int_equal(r.verdict, RECOVER_LINEAR);
  assert_true(same_span(found, recover_list(&r, found), restricted, o.count));
  assert_true(r.bits == ((1 << 21) - 128));
  pairs_free(&drawn);
}

/* Bits 8 and 9 always differ together: of what is said of both, nothing holds on conflicts only. */
static void what_always_holds_is_no_mask(void **state) {
  oracle o = {.masks = {1 << 10 | 1 << 12, 1 << 11 | 1 << 9}, .count = 2};
  pairs drawn = {.random = 5}, tied = {.random = 5};
  draw(&drawn, &o, 16, 400, 0);
  for (size_t i = 0; i < drawn.conflicts.count; i++)
    if ((drawn.conflicts.items[i] >> 8 & 1) == (drawn.conflicts.items[i] >> 9 & 1))
      FF_PUSH(&tied.conflicts, drawn.conflicts.items[i]);
  for (size_t i = 0; i < drawn.others.count; i++)
    if ((drawn.others.items[i] >> 8 & 1) == (drawn.others.items[i] >> 9 & 1))
      FF_PUSH(&tied.others, drawn.others.items[i]);
  recover_result r;
  recover(&tied, &r);
  assert_int_equal(r.verdict, RECOVER_LINEAR);
  assert_int_equal(r.rank, 2);
  assert_true(isnan(r.residue));
  pairs_free(&drawn);
  pairs_free(&tied);
}

static void too_few(void **state) {
  oracle o = {.count = 0};
  o.count = published_masks(&gtx1080, 0, o.masks);
  for (size_t wanted = 0; wanted < 40; wanted += 13) {
    pairs drawn = {.random = 5};
    draw(&drawn, &o, 33, wanted, 0);
    recover_result r;
    recover(&drawn, &r);
    assert_int_equal(r.verdict, RECOVER_TOO_FEW);
    assert_int_equal(r.rank, 0);
    pairs_free(&drawn);
  }
}

/* Differences that have nothing in common. */
static void noise_alone(void **state) {
  pairs drawn = {.random = 5};
  for (int i = 0; i < 300; i++) FF_PUSH(&drawn.conflicts, next(&drawn) % (UINT64_C(1) << 33));
  recover_result r;
  recover(&drawn, &r);
  assert_int_equal(r.verdict, RECOVER_NOT_LINEAR);
  assert_int_equal(r.rank, 0);
  pairs_free(&drawn);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(published_exactly),
      cmocka_unit_test(one_percent_false),
      cmocka_unit_test(five_percent_false),
      cmocka_unit_test(basis_is_reduced),
      cmocka_unit_test(not_linear),
      cmocka_unit_test(in_one_page),
      cmocka_unit_test(what_always_holds_is_no_mask),
      cmocka_unit_test(too_few),
      cmocka_unit_test(noise_alone),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
