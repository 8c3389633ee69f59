/* SPDX-License-Identifier: Apache-2.0 */
/* For each range its own linear map, so that lines which meet in instances are in one stack.
 *
 * One bit of the stack's number is, for a line x in range A, m_A * x + c_A over GF(2). Lines x in A and y in B that
 * meet want
 *
 *   m_A * x + c_A + m_B * y + c_B = 0
 *
 * for the unknown masks m (of the address bits that vary in the range) and constants c of all ranges: a homogeneous
 * system whose null space holds each bit of the number. Some instances can never be colocated, and one of their
 * equations may leave nothing in that space. So:
 *
 *   instances are grouped by the set of ranges that they touch
 *   of each group, instances are taken in random order as long as every range keeps masks enough; several orders; the
 *   one that explains most is kept groups are put together, larger ones first, those left out that leave a range
 *   without masks ranges that no group connects are solved apart: `bits` vectors of the null space that spread the
 *   lines over the stacks in addition to that and to the best pair: each range in turn tries pairs of bits of its own
 *   (offsets with carries are nearly, but not quite linear)
 *
 * Half of the kept instances are solved with, the other half judges. The best pair stays where what comes out is worse
 * than it over all of them (asserted at the deep check level). */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/memory.h"
#include "partition/colocate_private.h"
#include "partition/gf2.h"
#include "partition/wide.h"

enum {
  RANGES = 64, /* in the system, those touched most: sets of them are words */
  GROUPS = 32,
  FEWEST = 32,     /* instances: of fewer nothing is learned but the pair */
  SETTLED = 12,    /* instances in a row that tell nothing new, or cannot be met */
  ORDERS = 24,     /* of each group */
  EXPLAINED = 256, /* instances of a group that say how much an order explains */
  TRIES = 300,     /* choices of vectors for ranges that belong together */
  TRAINING = 1024, /* instances that choices are looked at with, as long as they have not more than */
  POINTS = 8192,   /* lines together */
  SWEEPS = 3,
  OWN_LOWEST = 26, /* pairs that a range tries for itself begin at STACK_MAP_LOWEST to this */
  WORK = 60000000, /* words of rows that the orders may add up, all together: about a tenth of a second */
};
#define UNEVENER 1.1 /* than the best pair, a solution may be that spreads worse than COLOCATE_UNEVEN */
#define GAIN 0.005   /* of the judging instances: better by less than that is chance */

typedef struct point {
  uint64_t line;
  uint32_t range;
} point; /* range: in the system */
typedef struct instance {
  point *points;
  uint32_t count;
  uint64_t set;
} instance;
/* range: colocate's; line: any one of it; the constant's column follows the mask's */
typedef struct member {
  uint32_t range, bits, column;
  uint64_t vary, line, touches;
} member;
typedef struct group {
  uint64_t set;
  uint32_t *instances, count;
  wide_space space;
  uint32_t explained;
} group;

typedef struct linear {
  const colocate *c;
  uint32_t bits;
  stack_map pair;
  member members[RANGES];
  uint32_t member_count, columns;
  instance *instances; /* all kept ones in random order; even ones are solved with, odd ones judge */
  uint32_t instance_count;
  group groups[GROUPS];
  uint32_t group_count;
  wide_space all, trial;   /* of the groups put together; scratch */
  uint64_t *vector, *null; /* scratch: a vector; a null space */
  uint32_t *own;
  uint64_t component[RANGES]; /* ranges that belong together with this one, as a set */
  stack_map solved[RANGES];
  uint64_t random;
  int64_t work;
} linear;

static uint32_t count_bits(uint64_t v) { return (uint32_t)__builtin_popcountll(v); }
static uint64_t one(uint32_t i) { return UINT64_C(1) << i; }

/* ---- the system ---- */

static int by_touches(const void *a, const void *b) {
  const member *left = a, *right = b;
  if (left->touches != right->touches) return left->touches > right->touches ? -1 : 1;
  return left->range < right->range ? -1 : left->range > right->range;
}

/* The ranges that are touched most, and the address bits that vary in each. */
static void find_members(linear *l) {
  const colocate *c = l->c;
  member *all = ff_alloc(c->range_count * sizeof *all + 1);
  for (uint32_t i = 0; i < c->range_count; i++) all[i].range = i;
  for (uint32_t i = 0; i < c->kept_count; i++)
    for (uint32_t k = 0; k < c->kept[i].count; k++) {
      uint64_t line = c->kept[i].lines[k];
      uint32_t range = colocate_range_of(c, line);
      if (range == COLOCATE_NO_RANGE) continue;
      if (!all[range].touches++) all[range].line = line;
      all[range].vary |= line ^ all[range].line;
    }
  qsort(all, c->range_count, sizeof *all, by_touches);
  while (l->member_count < RANGES && l->member_count < c->range_count && all[l->member_count].touches) {
    member *m = &l->members[l->member_count];
    *m = all[l->member_count++];
    m->vary &= (one(STACK_MAP_HIGHEST + 1) - 1) & ~(one(STACK_MAP_LOWEST) - 1);
    m->bits = count_bits(m->vary);
    m->column = l->columns;
    l->columns += m->bits + 1;
  }
  free(all);
}

static void find_instances(linear *l) {
  const colocate *c = l->c;
  uint32_t *place = ff_alloc(c->range_count * sizeof *place + 1);
  for (uint32_t i = 0; i < c->range_count; i++) place[i] = COLOCATE_NO_RANGE;
  for (uint32_t i = 0; i < l->member_count; i++) place[l->members[i].range] = i;
  l->instances = ff_alloc(c->kept_count * sizeof *l->instances + 1);
  l->instance_count = c->kept_count;
  for (uint32_t i = 0; i < c->kept_count; i++) {
    instance *in = &l->instances[i];
    in->points = ff_alloc(c->kept[i].count * sizeof *in->points);
    for (uint32_t k = 0; k < c->kept[i].count; k++) {
      uint32_t range = colocate_range_of(c, c->kept[i].lines[k]);
      range = range == COLOCATE_NO_RANGE ? COLOCATE_NO_RANGE : place[range];
      in->points[in->count++] = (point){c->kept[i].lines[k], range};
      if (range != COLOCATE_NO_RANGE) in->set |= one(range);
    }
  }
  for (uint32_t i = l->instance_count; i > 1; i--) { /* warps take turns: every second one may be another kind */
    uint32_t k = (uint32_t)(colocate_random(&l->random) % i);
    instance other = l->instances[k];
    l->instances[k] = l->instances[i - 1];
    l->instances[i - 1] = other;
  }
  free(place);
}

static int by_count(const void *a, const void *b) {
  const group *left = a, *right = b;
  if (left->count != right->count) return left->count > right->count ? -1 : 1;
  return left->set < right->set ? -1 : left->set > right->set;
}

/* Of the even instances; sets beyond the first GROUPS that are seen are left out. */
static void find_groups(linear *l) {
  for (uint32_t i = 0; i < l->instance_count; i += 2) {
    uint32_t g = 0;
    while (g < l->group_count && l->groups[g].set != l->instances[i].set) g++;
    if (g == GROUPS || !l->instances[i].set) continue;
    if (g == l->group_count) {
      l->groups[l->group_count++] = (group){.set = l->instances[i].set, .space = wide_create(l->columns)};
      l->groups[g].instances = ff_alloc((l->instance_count / 2 + 1) * sizeof *l->groups[g].instances);
    }
    l->groups[g].instances[l->groups[g].count++] = i;
  }
  qsort(l->groups, l->group_count, sizeof *l->groups, by_count);
}

/* ---- equations ---- */

static void add_point(linear *l, const point *p) {
  const member *m = &l->members[p->range];
  uint32_t column = m->column;
  for (uint64_t vary = m->vary; vary; vary &= vary - 1) {
    if (p->line & vary & -vary) wide_flip(l->vector, column);
    column++;
  }
  wide_flip(l->vector, column);
}

static void equation(linear *l, const point *a, const point *b) {
  memset(l->vector, 0, l->all.words * sizeof *l->vector);
  add_point(l, a);
  add_point(l, b);
}

/* Adds an instance's equations; says whether that was news. */
static bool add_instance(linear *l, const instance *in, wide_space *to) {
  const point *first = NULL;
  bool news = false;
  for (uint32_t i = 0; i < in->count; i++) {
    if (in->points[i].range == COLOCATE_NO_RANGE) continue;
    if (!first) first = &in->points[i];
    equation(l, first, &in->points[i]);
    l->work -= (int64_t)(to->rank + 1) * to->words;
    news |= wide_add(to, l->vector);
  }
  return news;
}

static bool is_explained(linear *l, const instance *in, const wide_space *by) {
  const point *first = NULL;
  for (uint32_t i = 0; i < in->count; i++) {
    if (in->points[i].range == COLOCATE_NO_RANGE) continue;
    if (!first) first = &in->points[i];
    equation(l, first, &in->points[i]);
    l->work -= (int64_t)(by->rank + 1) * by->words;
    if (!wide_contains(by, l->vector)) return false;
  }
  return true;
}

/* Do the masks of each range in the set have the rank that a map needs? */
static bool is_feasible(linear *l, const wide_space *space, uint64_t set) {
  uint32_t count = wide_null(space, l->null, l->own);
  l->work -= (int64_t)count * (space->words + space->rank);
  for (; set; set &= set - 1) {
    const member *m = &l->members[__builtin_ctzll(set)];
    uint32_t needed = m->bits < l->bits ? m->bits : l->bits;
    gf2_space masks = {.rank = 0};
    for (uint32_t i = 0; i < count && masks.rank < needed; i++)
      gf2_add(&masks, wide_bits(l->null + (size_t)i * space->words, m->column, m->bits));
    if (masks.rank < needed) return false;
  }
  return true;
}

/* ---- one group ---- */

static void shuffle(linear *l, uint32_t *items, uint32_t count) {
  for (uint32_t i = count; i > 1; i--) {
    uint32_t k = (uint32_t)(colocate_random(&l->random) % i), other = items[k];
    items[k] = items[i - 1];
    items[i - 1] = other;
  }
}

/* Takes instances as long as that leaves masks. false: they ran out before nothing was new any more. */
static bool solve_order(linear *l, const group *g, wide_space *space) {
  uint32_t settled = 0;
  space->rank = 0;
  for (uint32_t i = 0; i < g->count && l->work > 0; i++) {
    wide_copy(&l->trial, space);
    bool accepted = add_instance(l, &l->instances[g->instances[i]], &l->trial) && is_feasible(l, &l->trial, g->set);
    if (accepted) wide_copy(space, &l->trial);
    settled = accepted ? 0 : settled + 1;
    if (settled == SETTLED) return true;
  }
  return false;
}

/* An equation more costs what one explained instance brings: else false instances would be taken for nothing. */
static void solve_group(linear *l, group *g) {
  wide_space space = wide_create(l->columns);
  int64_t best = 0;
  for (uint32_t order = 0; order < ORDERS && l->work > 0; order++) {
    shuffle(l, g->instances, g->count);
    if (!solve_order(l, g, &space)) continue;
    uint32_t explained = 0, looked = g->count < EXPLAINED ? g->count : EXPLAINED;
    for (uint32_t i = g->count - looked; i < g->count; i++)
      explained += is_explained(l, &l->instances[g->instances[i]], &space);
    int64_t score = (int64_t)explained - space.rank / 4;
    /* by chance a map to four stacks explains a quarter of pairs */
    if (explained * 4 < looked || score <= best) continue;
    best = score;
    g->explained = explained;
    wide_copy(&g->space, &space);
    if (explained == looked) break;
  }
  wide_free(&space);
}

/* ---- all together ---- */

static void merge_groups(linear *l) {
  uint64_t accepted = 0;
  for (uint32_t i = 0; i < l->group_count; i++) {
    group *g = &l->groups[i];
    if (!g->explained) continue;
    wide_copy(&l->trial, &l->all);
    for (uint32_t r = 0; r < g->space.rank; r++) {
      memcpy(l->vector, g->space.rows + (size_t)r * g->space.words, g->space.words * sizeof *l->vector);
      wide_add(&l->trial, l->vector);
    }
    if (!is_feasible(l, &l->trial, accepted | g->set)) continue;
    wide_copy(&l->all, &l->trial);
    accepted |= g->set;
    uint64_t together = g->set;
    for (uint32_t k = 0; k < l->member_count; k++)
      if (g->set & one(k)) together |= l->component[k];
    for (uint32_t k = 0; k < l->member_count; k++)
      if (together & one(k)) l->component[k] = together;
  }
}

/* The address bits whose columns are set. */
static uint64_t spread_bits(uint64_t columns, uint64_t vary) {
  uint64_t out = 0;
  for (; vary; vary &= vary - 1) {
    if (columns & 1) out |= vary & -vary;
    columns >>= 1;
  }
  return out;
}

/* The map of a range from `bits` vectors. Ranges that vary in fewer bits than a map needs get further ones, which do
 * not vary in what was seen. */
static bool make_map(const linear *l, const member *m, uint64_t *const *vectors, stack_map *map) {
  uint64_t masks[STACK_MAP_BITS];
  uint32_t flip = 0;
  gf2_space span = {.rank = 0};
  uint64_t still = (one(STACK_MAP_HIGHEST + 1) - 1) & ~(one(STACK_MAP_LOWEST) - 1) & ~m->vary;
  for (uint32_t i = 0; i < l->bits; i++) {
    masks[i] = spread_bits(wide_bits(vectors[i], m->column, m->bits), m->vary);
    flip |= (uint32_t)wide_bit(vectors[i], m->column + m->bits) << i;
    if (gf2_add(&span, masks[i])) continue;
    if (m->bits >= l->bits || !still) return false;
    masks[i] |= still & -still;
    flip ^= (uint32_t)gf2_product(still & -still, m->line) << i;
    gf2_add(&span, masks[i]);
    still &= still - 1;
  }
  return !stack_map_make(masks, l->bits, flip, map, NULL);
}

/* ---- how good maps are ---- */

typedef struct verdict {
  uint32_t colocated, looked;
  uint64_t lines[1 << STACK_MAP_BITS];
} verdict;

static double uneven(const linear *l, const verdict *v) {
  uint64_t all = 0, most = 0;
  for (uint32_t s = 0; s < 1u << l->bits; s++) {
    all += v->lines[s];
    if (v->lines[s] > most) most = v->lines[s];
  }
  return all ? (double)(most << l->bits) / (double)all : 1;
}

/* What others may be when the best pair is so. */
static double uneven_limit(const linear *l, const verdict *pair) {
  double limit = uneven(l, pair) * UNEVENER;
  return limit > COLOCATE_UNEVEN ? limit : COLOCATE_UNEVEN;
}

static uint32_t stack_at(const linear *l, const stack_map *maps, const point *p) {
  return stack_of(p->range == COLOCATE_NO_RANGE ? &l->pair : &maps[p->range], p->line);
}

static void judge_instance(const linear *l, const instance *in, const stack_map *maps, verdict *v) {
  uint32_t home = stack_at(l, maps, &in->points[0]);
  bool together = true;
  for (uint32_t k = 0; k < in->count; k++) {
    uint32_t stack = stack_at(l, maps, &in->points[k]);
    together &= stack == home;
    v->lines[stack]++;
  }
  v->colocated += together;
  v->looked++;
}

/* Every second instance from `from` on, of those that touch only ranges in `within`: at most `most`, of so many POINTS
 * at most; UINT32_MAX: all. */
static verdict judge(const linear *l, const stack_map *maps, uint32_t from, uint32_t most, uint64_t within) {
  verdict v = {0};
  uint64_t points = 0;
  for (uint32_t i = from; i < l->instance_count && v.looked < most && (most == UINT32_MAX || points < POINTS); i += 2) {
    const instance *in = &l->instances[i];
    if (!in->set || (in->set & ~within)) continue;
    points += in->count;
    judge_instance(l, in, maps, &v);
  }
  return v;
}
static verdict judge_all(const linear *l, const stack_map *maps, uint32_t from, uint32_t most) {
  return judge(l, maps, from, most, UINT64_MAX);
}

/* ---- ranges that belong together ---- */

/* `bits` sums of one to three vectors, single ones first. */
static void draw(linear *l, uint32_t attempt, const uint32_t *from, uint32_t count, uint64_t **vectors) {
  uint32_t words = l->all.words;
  for (uint32_t i = 0; i < l->bits; i++) {
    memset(vectors[i], 0, words * sizeof **vectors);
    uint32_t terms = 1 + (attempt > TRIES / 3) + (attempt > 2 * TRIES / 3);
    for (uint32_t t = 0; t < terms; t++) {
      const uint64_t *v = l->null + (size_t)from[colocate_random(&l->random) % count] * words;
      for (uint32_t w = 0; w < words; w++) vectors[i][w] ^= v[w];
    }
  }
}

static void solve_component(linear *l, uint64_t set) {
  uint32_t count = wide_null(&l->all, l->null, l->own), found = 0, words = l->all.words, best = 0;
  uint32_t *from = ff_alloc((count + 1) * sizeof *from);
  uint64_t *storage = ff_alloc((size_t)STACK_MAP_BITS * words * sizeof *storage), *vectors[STACK_MAP_BITS];
  stack_map maps[RANGES];
  for (uint32_t i = 0; i < STACK_MAP_BITS; i++) vectors[i] = storage + (size_t)i * words;
  memcpy(maps, l->solved, sizeof maps);
  verdict pair = judge(l, maps, 0, TRAINING, set);
  double limit = uneven_limit(l, &pair);
  for (uint32_t i = 0; i < count; i++) /* a vector belongs to the ranges of its own column */
    for (uint32_t m = 0; m < l->member_count; m++)
      if ((set & one(m)) && l->own[i] >= l->members[m].column && l->own[i] <= l->members[m].column + l->members[m].bits)
        from[found++] = i;
  for (uint32_t attempt = 0; attempt < TRIES && found; attempt++) {
    draw(l, attempt, from, found, vectors);
    bool made = true;
    for (uint32_t m = 0; m < l->member_count && made; m++)
      if (set & one(m)) made = make_map(l, &l->members[m], vectors, &maps[m]);
    if (!made) continue;
    verdict v = judge(l, maps, 0, TRAINING, set);
    if (v.colocated <= best || uneven(l, &v) > limit) continue;
    best = v.colocated;
    if (best > pair.colocated) memcpy(l->solved, maps, sizeof maps);
    if (best == v.looked) break;
  }
  free(storage);
  free(from);
}

/* ---- each range for itself ---- */

enum { NO_OTHER = 1 << STACK_MAP_BITS, CONFLICT }; /* instead of a stack */

/* The stack of an instance's lines in other ranges. */
static uint32_t others_stack(const linear *l, const instance *in, const stack_map *maps, uint32_t range) {
  uint32_t home = NO_OTHER;
  for (uint32_t i = 0; i < in->count; i++) {
    if (in->points[i].range == range) continue;
    uint32_t stack = stack_at(l, maps, &in->points[i]);
    if (home != NO_OTHER && stack != home) return CONFLICT;
    home = stack;
  }
  return home;
}

/* The instances, one after the other, that choices for the range are looked at with. */
typedef struct looked {
  uint32_t instance, home;
} looked;
static uint32_t find_looked(const linear *l, const stack_map *maps, uint32_t range, looked *out) {
  uint32_t count = 0, points = 0;
  for (uint32_t i = 0; i < l->instance_count && count < TRAINING && points < POINTS; i += 2) {
    const instance *in = &l->instances[i];
    if (!(in->set & one(range))) continue;
    points += in->count;
    out[count++] = (looked){i, others_stack(l, in, maps, range)};
  }
  return count;
}

/* The range's lines of the instance by bits of the address; CONFLICT: they are not all in one stack. */
static uint32_t own_stack(const linear *l, const instance *in, uint32_t range, uint32_t lowest) {
  uint32_t home = NO_OTHER, mask = (1u << l->bits) - 1;
  for (uint32_t i = 0; i < in->count; i++) {
    if (in->points[i].range != range) continue;
    uint32_t stack = (uint32_t)(in->points[i].line >> lowest) & mask;
    if (home != NO_OTHER && stack != home) return CONFLICT;
    home = stack;
  }
  return home;
}

/* Instances that are together if the range has that pair of bits, for each number that may be XORed onto the
 * stack's. */
static void count_flips(const linear *l, const looked *list, uint32_t count, uint32_t range, uint32_t lowest,
                        uint32_t *together) {
  uint32_t any = 0, by_flip[1 << STACK_MAP_BITS] = {0};
  for (uint32_t i = 0; i < count; i++) {
    if (list[i].home == CONFLICT) continue;
    uint32_t own = own_stack(l, &l->instances[list[i].instance], range, lowest);
    if (own == CONFLICT) continue;
    if (list[i].home == NO_OTHER) any++;
    else by_flip[own ^ list[i].home]++;
  }
  for (uint32_t flip = 0; flip < 1u << l->bits; flip++) together[flip] = any + by_flip[flip];
}

static uint32_t count_now(const linear *l, const looked *list, uint32_t count, const stack_map *maps) {
  verdict v = {0};
  for (uint32_t i = 0; i < count; i++)
    if (list[i].home != CONFLICT) judge_instance(l, &l->instances[list[i].instance], maps, &v);
  return v.colocated;
}

/* Tries own pairs of bits, in each of the ways to number the stacks, for one range; keeps what colocates more. */
static bool improve_range(const linear *l, stack_map *maps, uint32_t range, double limit, looked *list) {
  stack_map best = maps[range];
  uint32_t count = find_looked(l, maps, range, list), most = count_now(l, list, count, maps),
           together[1 << STACK_MAP_BITS];
  bool better = false;
  for (uint32_t lowest = STACK_MAP_LOWEST; lowest <= OWN_LOWEST; lowest++) {
    if (!(l->members[range].vary >> lowest & ((1u << l->bits) - 1))) continue;
    count_flips(l, list, count, range, lowest, together);
    for (uint32_t flip = 0; flip < 1u << l->bits; flip++) {
      if (together[flip] <= most) continue;
      maps[range] = stack_map_pair(lowest, l->bits);
      maps[range].flip = flip;
      verdict v = judge_all(l, maps, 0, TRAINING);
      if (uneven(l, &v) > limit) continue;
      most = together[flip];
      best = maps[range];
      better = true;
    }
  }
  maps[range] = best;
  return better;
}

static void improve(const linear *l, stack_map *maps, double limit) {
  bool better = true;
  looked *list = ff_alloc(TRAINING * sizeof *list);
  for (uint32_t sweep = 0; sweep < SWEEPS && better; sweep++) {
    better = false;
    for (uint32_t i = 0; i < l->member_count; i++) better |= improve_range(l, maps, i, limit, list);
  }
  free(list);
}

/* ---- the choice ---- */

static void consider(const linear *l, const stack_map *maps, double limit, stack_map *best, double *best_share) {
  verdict v = judge_all(l, maps, 1, UINT32_MAX);
  if (!v.looked || uneven(l, &v) > limit) return;
  double share = (double)v.colocated / v.looked;
  if (share < *best_share + GAIN) return;
  *best_share = share;
  memcpy(best, maps, RANGES * sizeof *best);
}

static void solve(linear *l, stack_map *best) {
  stack_map pairs[RANGES], own[RANGES];
  for (uint32_t i = 0; i < RANGES; i++) pairs[i] = best[i] = l->solved[i] = l->pair;
  l->all = wide_create(l->columns);
  l->trial = wide_create(l->columns);
  l->vector = ff_alloc(l->all.words * sizeof *l->vector + 1);
  l->null = ff_alloc((size_t)l->columns * l->all.words * sizeof *l->null + 1);
  l->own = ff_alloc(l->columns * sizeof *l->own + 1);
  for (uint32_t i = 0; i < l->member_count; i++) l->component[i] = one(i);
  find_groups(l);
  for (uint32_t i = 0; i < l->group_count; i++) solve_group(l, &l->groups[i]);
  merge_groups(l);
  for (uint64_t left = l->member_count < 64 ? one(l->member_count) - 1 : UINT64_MAX; left;) {
    uint64_t set = l->component[__builtin_ctzll(left)];
    solve_component(l, set);
    left &= ~set;
  }
  verdict v = judge_all(l, pairs, 1, UINT32_MAX);
  double share = v.looked ? (double)v.colocated / v.looked : 0, limit = uneven_limit(l, &v);
  consider(l, l->solved, limit, best, &share);
  memcpy(own, l->solved, sizeof own);
  improve(l, own, limit);
  consider(l, own, limit, best, &share);
  improve(l, pairs, limit);
  consider(l, pairs, limit, best, &share);
}

static void linear_free(linear *l) {
  for (uint32_t i = 0; i < l->instance_count; i++) free(l->instances[i].points);
  for (uint32_t i = 0; i < l->group_count; i++) {
    free(l->groups[i].instances);
    wide_free(&l->groups[i].space);
  }
  free(l->instances);
  wide_free(&l->all);
  wide_free(&l->trial);
  free(l->vector);
  free(l->null);
  free(l->own);
  free(l);
}

double colocate_linear(const colocate *c, stack_map *maps) {
  stack_map pair = stack_map_pair(colocate_best_pair(c), c->bits);
  for (uint32_t i = 0; i < c->range_count; i++) maps[i] = c->touched[i] ? pair : c->baseline;
  double least = colocate_share(c, maps, &c->baseline);
  if (!c->bits || c->kept_count < FEWEST || least > 1 - GAIN) return least;
  linear *l = ff_alloc(sizeof *l);
  *l = (linear){.c = c, .bits = c->bits, .pair = pair, .random = 1, .work = WORK};
  find_members(l);
  find_instances(l);
  stack_map best[RANGES];
  solve(l, best);
  for (uint32_t i = 0; i < l->member_count; i++) maps[l->members[i].range] = best[i];
  double share = colocate_share(c, maps, &c->baseline);
  if (share < least)
    for (uint32_t i = 0; i < l->member_count; i++) maps[l->members[i].range] = pair;
  linear_free(l);
  FF_CHECK_DEEP(colocate_share(c, maps, &c->baseline) >= least);
  return share < least ? least : share;
}
