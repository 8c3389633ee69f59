/* SPDX-License-Identifier: Apache-2.0 */
/* Masks from differences: see recover.h.
 *
 *   split -> solve many subsets of one half -> judge each on the other half -> keep the likeliest
 *         -> again among the pairs that it explains (fewer of them are false) -> until nothing gets better
 *
 * The likelihood of a span of rank r: a pair is true with probability 1 - e and then lies, uniformly, among the
 * differences that the masks allow (one in 2^r); else it is false and lies anywhere. One more mask that holds on all
 * pairs makes each pair twice as likely; a mask that holds on half of them costs the other half r bits each. So neither
 * too many nor too few masks win. */
#include "partition/recover.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/memory.h"

enum {
  /* pairs in a row that tell nothing new: a subset is large enough (a missing one is overlooked in 2^-8 of the
   * cases) */
  SETTLED = 8,
  SUBSETS = 1500, /* of each round */
  ROUNDS = 6,
  ENOUGH = 8, /* conflicts beyond the dimension, in each half */
};

/* bits. One bit may be lost where half of all pairs of a bank are in one row */
static const double not_linear_residue = 1.5;
static const double least_explained = 0.85; /* of the held-out conflicts, beyond chance, else there is no mask */

typedef struct list {
  uint64_t *items;
  size_t count;
} list;

static uint64_t random_next(uint64_t *state) { /* splitmix64 */
  uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31;
}

static bool holds(uint64_t mask, uint64_t difference) { return !gf2_product(mask, difference); }

static bool all_hold(const gf2_space *s, uint64_t difference) {
  for (uint32_t i = 0; i < s->rank; i++)
    if (!holds(s->rows[i], difference)) return false;
  return true;
}

/* Masks of the space, less those that always hold: one from each coset, so that equal spans are equal rows. */
static gf2_space space_without(const gf2_space *space, const gf2_space *always) {
  gf2_space out = {.rank = 0};
  for (uint32_t i = 0; i < space->rank; i++) gf2_add(&out, gf2_reduce(always, space->rows[i]));
  return out;
}

static uint64_t mirror(uint64_t v) {
  uint64_t out = 0;
  for (uint32_t bit = 0; bit < GF2_BITS; bit++) out |= (v >> bit & 1) << (GF2_BITS - 1 - bit);
  return out;
}

uint32_t recover_basis(const gf2_space *space, uint64_t masks[RECOVER_MASKS]) {
  uint64_t rows[GF2_BITS];
  for (uint32_t i = 0; i < space->rank; i++) rows[i] = mirror(space->rows[i]);
  gf2_space mirrored = gf2_span(rows, space->rank);
  for (uint32_t i = 0; i < mirrored.rank; i++) masks[i] = mirror(mirrored.rows[i]);
  return mirrored.rank;
}

/* ---- one subset ---- */

/* Share of pairs beyond what chance gives a span of that rank: 0 to 1. */
static double beyond_chance(uint32_t rank, double explained) {
  double chance = exp2(-(double)rank);
  return rank ? fmax(0, (explained - chance) / (1 - chance)) : 0;
}

/* log2 of the likelihood; a span that too few pairs agree with is none. */
static double score(uint32_t rank, size_t explained, size_t count) {
  if (beyond_chance(rank, (double)explained / (double)count) < least_explained) return -INFINITY;
  double wrong = ((double)(count - explained) + 0.5) / ((double)count + 1);
  return (double)explained * log2((1 - wrong) * exp2((double)rank) + wrong) + (double)(count - explained) * log2(wrong);
}

static size_t count_explained(const gf2_space *s, const list *pairs) {
  size_t count = 0;
  for (size_t i = 0; i < pairs->count; i++) count += all_hold(s, pairs->items[i]);
  return count;
}

/* Draws without replacement (the list is reordered) until SETTLED pairs in a row were in the span of those before;
 * false: the pairs ran out. */
static bool solve_subset(list *pairs, uint64_t bits, const gf2_space *always, uint64_t *random, gf2_space *out) {
  gf2_space b = {.rank = 0};
  uint32_t settled = 0, full = (uint32_t)__builtin_popcountll(bits);
  size_t i = 0;
  for (; i < pairs->count && settled < SETTLED && b.rank < full; i++) {
    size_t k = i + (size_t)(random_next(random) % (pairs->count - i));
    uint64_t drawn = pairs->items[k];
    pairs->items[k] = pairs->items[i];
    pairs->items[i] = drawn;
    settled = gf2_add(&b, drawn) ? 0 : settled + 1;
  }
  gf2_space masks = gf2_null(&b, bits);
  *out = space_without(&masks, always);
  return settled == SETTLED || b.rank == full;
}

/* ---- the search ---- */

typedef struct search {
  list solving, judging; /* halves of the conflicts */
  uint64_t bits, random;
  gf2_space always, best; /* masks that hold on all pairs looked at; the likeliest so far */
  double best_score;
  uint32_t subsets, solved;
  bool settled; /* some subset was large enough */
} search;

static bool search_round(search *s, list *from) {
  bool better = false;
  for (uint32_t i = 0; i < SUBSETS; i++) {
    gf2_space found;
    s->subsets++;
    if (!solve_subset(from, s->bits, &s->always, &s->random, &found)) continue;
    s->settled = true;
    if (gf2_equal(&found, &s->best)) {
      s->solved++;
      continue;
    }
    double value = score(found.rank, count_explained(&found, &s->judging), s->judging.count);
    if (value <= s->best_score) continue;
    s->best = found;
    s->best_score = value;
    s->solved = 1;
    better = true;
  }
  return better;
}

static void search_all(search *s) {
  list explained = {ff_alloc((s->solving.count + 1) * sizeof(uint64_t)), 0};
  bool better = search_round(s, &s->solving);
  for (uint32_t round = 1; round < ROUNDS && better && s->best.rank; round++) {
    explained.count = 0;
    for (size_t i = 0; i < s->solving.count; i++)
      if (all_hold(&s->best, s->solving.items[i])) explained.items[explained.count++] = s->solving.items[i];
    better = search_round(s, &explained);
  }
  free(explained.items);
}

/* Masks that hold on every pair, conflict or not, say nothing of banks: a bit that never differs, two bits that always
 * differ together. */
static void find_always(const recover_sample *sample, search *s) {
  gf2_space all = {.rank = 0};
  for (size_t i = 0; i < sample->conflict_count; i++) s->bits |= sample->conflicts[i];
  for (size_t i = 0; i < sample->other_count; i++) s->bits |= sample->others[i];
  uint32_t full = (uint32_t)__builtin_popcountll(s->bits);
  for (size_t i = 0; i < sample->other_count && all.rank < full; i++) gf2_add(&all, sample->others[i]);
  if (!sample->other_count) return; /* then nothing is known of it */
  for (size_t i = 0; i < sample->conflict_count && all.rank < full; i++) gf2_add(&all, sample->conflicts[i]);
  s->always = gf2_null(&all, s->bits);
}

static void split(const recover_sample *sample, search *s) {
  uint64_t *all = ff_alloc((sample->conflict_count + 1) * sizeof *all);
  if (sample->conflict_count) memcpy(all, sample->conflicts, sample->conflict_count * sizeof *all);
  for (size_t i = sample->conflict_count; i > 1; i--) {
    size_t k = (size_t)(random_next(&s->random) % i);
    uint64_t other = all[k];
    all[k] = all[i - 1];
    all[i - 1] = other;
  }
  s->solving = (list){all, sample->conflict_count / 2};
  s->judging = (list){all + s->solving.count, sample->conflict_count - s->solving.count};
}

/* ---- what is said of it ---- */

static double share(uint64_t mask, const uint64_t *items, size_t count) {
  size_t true_on = 0;
  for (size_t i = 0; i < count; i++) true_on += holds(mask, items[i]);
  return count ? (double)true_on / (double)count : NAN;
}

static double share_of_all(const gf2_space *s, const uint64_t *items, size_t count) {
  list pairs = {(uint64_t *)items, count};
  return count ? (double)count_explained(s, &pairs) / (double)count : NAN;
}

static void describe(const recover_sample *sample, const search *s, recover_result *r) {
  const gf2_space *best = &s->best;
  uint64_t shown[RECOVER_MASKS];
  recover_basis(best, shown);
  double held_out = share_of_all(best, s->judging.items, s->judging.count);
  double explained = share_of_all(best, sample->conflicts, sample->conflict_count) * (double)sample->conflict_count;
  double others =
      sample->other_count ? share_of_all(best, sample->others, sample->other_count) * (double)sample->other_count : 0;
  r->rank = best->rank;
  r->nullity = (uint32_t)__builtin_popcountll(s->bits) - s->always.rank - best->rank;
  for (uint32_t i = 0; i < best->rank; i++)
    r->masks[i] = (recover_mask){shown[i], share(shown[i], s->judging.items, s->judging.count),
                                 share(shown[i], sample->others, sample->other_count)};
  r->confidence = beyond_chance(best->rank, held_out);
  r->spurious = fmin(1, exp2(r->nullity - explained));
  r->false_pairs = 1 - explained / (double)sample->conflict_count;
  r->missed = explained + others > 0 ? others / (explained + others) : 0;
  r->residue = sample->tested ? -(double)best->rank - log2(explained / (double)sample->tested) : NAN;
}

static recover_verdict judge(const recover_sample *sample, const search *s, const recover_result *r) {
  size_t need = r->nullity + ENOUGH;
  if (!s->settled || s->solving.count < need) return RECOVER_TOO_FEW;
  if (!r->rank) return RECOVER_NOT_LINEAR;
  return sample->tested && r->residue > not_linear_residue ? RECOVER_PARTLY : RECOVER_LINEAR;
}

static void check_masks(const search *s, const recover_result *r) {
  for (uint32_t i = 0; i < r->rank; i++) {
    uint64_t mask = r->masks[i].bits, lowest = mask & -mask;
    FF_ASSERT(mask && !(mask & ~s->bits) && gf2_reduce(&s->always, mask));
    for (uint32_t k = 0; k < r->rank; k++) FF_ASSERT(k == i || !(r->masks[k].bits & lowest));
    FF_ASSERT(!i || lowest > (r->masks[i - 1].bits & -r->masks[i - 1].bits));
  }
}

void recover_masks(const recover_sample *sample, recover_result *result) {
  search s = {.random = sample->seed};
  *result = (recover_result){.verdict = RECOVER_TOO_FEW, .residue = NAN, .spurious = 1};
  find_always(sample, &s);
  split(sample, &s);
  result->bits = s.bits;
  if (s.judging.count && s.bits) {
    search_all(&s);
    describe(sample, &s, result);
    result->subsets = s.subsets;
    result->solved = s.solved;
    result->verdict = judge(sample, &s, result);
  }
  if (result->verdict == RECOVER_NOT_LINEAR || result->verdict == RECOVER_TOO_FEW) result->rank = 0;
  if (ff_check_level >= 2) check_masks(&s, result);
  free(s.solving.items);
}

uint32_t recover_list(const recover_result *result, uint64_t masks[RECOVER_MASKS]) {
  for (uint32_t i = 0; i < result->rank; i++) masks[i] = result->masks[i].bits;
  return result->rank;
}

const char *recover_verdict_name(recover_verdict verdict) {
  static const char *const names[] = {"linear", "partly linear", "not linear", "too few pairs"};
  return (size_t)verdict < sizeof names / sizeof *names ? names[verdict] : "?";
}
