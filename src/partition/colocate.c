/* SPDX-License-Identifier: Apache-2.0 */
/* Counting instances under all pairs of bits at once.
 *
 * Lines of an instance are in one stack under a pair of bits exactly if these bits of the lines are all equal: if they
 * are clear in the OR of each line's difference to the first. So an instance costs an XOR and an OR a line, and ten
 * tests. How lines spread over the stacks comes from one histogram over all bits that the pairs have among them (one
 * addition a line), summed up when it is asked for. */
#include "partition/colocate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/memory.h"
#include "partition/colocate_private.h"

enum { EARLY_ALL = 256 };

static uint32_t histogram_bits(const colocate *c) { return STACK_MAP_PAIRS - 1 + c->bits; }

/* A line that two ranges have belongs to the first. */
static colocate_range whole_lines(colocate_range range, uint64_t free_from) {
  uint64_t line = UINT64_C(1) << STACK_MAP_LOWEST, begin = range.address & ~(line - 1),
           end = (range.address + range.bytes + line - 1) & ~(line - 1);
  if (begin < free_from) begin = free_from;
  return (colocate_range){begin, end > begin ? end - begin : 0};
}

colocate *colocate_create(uint32_t bits, const colocate_range *ranges, uint32_t count) {
  FF_ASSERT(bits <= STACK_MAP_BITS);
  colocate *c = ff_alloc(sizeof *c);
  *c = (colocate){.bits = bits,
                  .range_count = count,
                  .last = COLOCATE_NO_RANGE,
                  .baseline = stack_map_baseline(bits),
                  .random = 1,
                  .next_early = 1,
                  .pairs = STACK_MAP_PAIRS};
  c->ranges = ff_alloc(count * sizeof *ranges + 1);
  for (uint32_t i = 0; i < count; i++) {
    FF_CHECK(!i || ranges[i].address >= ranges[i - 1].address + ranges[i - 1].bytes);
    c->ranges[i] = whole_lines(ranges[i], i ? c->ranges[i - 1].address + c->ranges[i - 1].bytes : 0);
  }
  c->touched = ff_alloc(count * sizeof *c->touched + 1);
  c->lines_by_bits = ff_alloc(sizeof(uint64_t) << histogram_bits(c));
  return c;
}

static uint64_t range_end(const colocate_range *range) { return range->address + range->bytes; }

/* Lines that neighbours share only at their ends stay with the lower one; what overlaps by more becomes one range. */
void colocate_add_range(colocate *c, colocate_range range) {
  uint64_t line = UINT64_C(1) << STACK_MAP_LOWEST;
  uint32_t first = 0, behind;
  colocate_range added = whole_lines(range, 0);
  while (first < c->range_count && range_end(&c->ranges[first]) <= added.address) first++;
  if (first < c->range_count && c->ranges[first].address < added.address &&
      range_end(&c->ranges[first]) <= range.address / line * line + line && range.address % line)
    added = whole_lines(range, range_end(&c->ranges[first++]));
  if (!added.bytes) return;
  uint64_t touched = 0;
  for (behind = first; behind < c->range_count && c->ranges[behind].address < range_end(&added); behind++) {
    const colocate_range *other = &c->ranges[behind];
    uint64_t begin = other->address < added.address ? other->address : added.address,
             end = range_end(other) > range_end(&added) ? range_end(other) : range_end(&added);
    added = (colocate_range){begin, end - begin};
    if (c->touched[behind] && (!touched || c->touched[behind] < touched)) touched = c->touched[behind];
  }
  uint32_t gone = behind - first, count = c->range_count - gone + 1, rest = c->range_count - behind;
  if (!gone) {
    c->ranges = ff_realloc(c->ranges, count * sizeof *c->ranges);
    c->touched = ff_realloc(c->touched, count * sizeof *c->touched);
  }
  memmove(c->ranges + first + 1, c->ranges + behind, rest * sizeof *c->ranges);
  memmove(c->touched + first + 1, c->touched + behind, rest * sizeof *c->touched);
  c->ranges[first] = added;
  c->touched[first] = touched;
  c->range_count = count;
  c->last = COLOCATE_NO_RANGE;
}

uint32_t colocate_range_count(const colocate *c) { return c->range_count; }
colocate_range colocate_range_at(const colocate *c, uint32_t i) { return c->ranges[i]; }

void colocate_free(colocate *c) {
  if (!c) return;
  for (uint32_t i = 0; i < c->kept_count; i++) free(c->kept[i].lines);
  free(c->lines_by_bits);
  free(c->touched);
  free(c->early.items);
  free(c->ranges);
  free(c);
}

uint64_t colocate_random(uint64_t *state) {
  uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31;
}

static bool in_range(const colocate_range *range, uint64_t address) { return address - range->address < range->bytes; }

uint32_t colocate_range_of(const colocate *c, uint64_t address) {
  uint32_t low = 0, high = c->range_count;
  while (low < high) { /* the last that does not begin behind it */
    uint32_t middle = low + (high - low) / 2;
    if (c->ranges[middle].address <= address) low = middle + 1;
    else high = middle;
  }
  if (low && in_range(&c->ranges[low - 1], address)) return low - 1;
  return COLOCATE_NO_RANGE;
}

/* ---- counting ---- */

static void touch(colocate *c, uint64_t line) {
  if (c->last < c->range_count && in_range(&c->ranges[c->last], line)) return;
  uint32_t range = colocate_range_of(c, line);
  if (range == COLOCATE_NO_RANGE) return;
  c->last = range;
  if (!c->touched[range]) c->touched[range] = c->instances + 1;
}

static void keep(colocate_kept *kept, const uint64_t *lines, uint32_t count, uint64_t random) {
  uint32_t most = count < COLOCATE_LINES ? count : COLOCATE_LINES;
  kept->lines = ff_realloc(kept->lines, most * sizeof *lines);
  kept->lines[0] = lines[0];
  kept->count = 1;
  for (uint32_t i = 1; i < most; i++) {
    uint64_t line = lines[count == most ? i : 1 + colocate_random(&random) % (count - 1)];
    if (line != kept->lines[kept->count - 1]) kept->lines[kept->count++] = line;
  }
}

void colocate_instance(colocate *c, const uint64_t *lines, uint32_t count) {
  uint64_t different = 0, first = lines[0], mask = (UINT64_C(1) << histogram_bits(c)) - 1;
  uint32_t wanted = (1u << c->bits) - 1, home = stack_of(&c->baseline, first);
  bool baseline = true;
  for (uint32_t i = 0; i < count; i++) {
    uint64_t line = lines[i], d = line ^ first;
    bool beside = !d || stack_of(&c->baseline, line) == home;
    baseline &= beside;
    c->baseline_beside += beside;
    for (uint32_t k = 0; k < STACK_MAP_PAIRS; k++) c->pair_beside[k] += !(d >> (STACK_MAP_LOWEST + k) & wanted);
    different |= d;
    c->lines_by_bits[line >> STACK_MAP_LOWEST & mask]++;
    touch(c, line);
  }
  for (uint32_t i = 0; i < STACK_MAP_PAIRS; i++)
    c->pair_colocated[i] += !(different >> (STACK_MAP_LOWEST + i) & wanted);
  c->baseline_colocated += baseline;
  c->lines += count;
  uint64_t slot = c->instances < COLOCATE_KEPT ? c->instances : colocate_random(&c->random) % (c->instances + 1);
  c->instances++;
  if (c->instances == c->next_early) {
    colocate_early early = {.instances = c->instances};
    memcpy(early.pair_beside, c->pair_beside, sizeof early.pair_beside);
    early.lines = c->lines;
    early.baseline_beside = c->baseline_beside;
    FF_PUSH(&c->early, early);
    c->next_early += 1 + (c->instances >= EARLY_ALL ? c->instances / 100 : 0);
  }
  if (slot >= COLOCATE_KEPT) return;
  keep(&c->kept[slot], lines, count, slot + c->instances);
  if (c->kept_count <= slot) c->kept_count = (uint32_t)slot + 1;
  FF_CHECK_DEEP(c->kept_count == (c->instances < COLOCATE_KEPT ? c->instances : COLOCATE_KEPT));
}

/* ---- what was found ---- */

uint64_t colocate_instances(const colocate *c) { return c->instances; }
bool colocate_touched(const colocate *c, uint32_t i) { return c->touched[i] != 0; }
static double share(uint64_t part, uint64_t whole) { return whole ? (double)part / (double)whole : 0; }
double colocate_pair_share(const colocate *c, uint32_t i) { return share(c->pair_colocated[i], c->instances); }
double colocate_baseline_share(const colocate *c) { return share(c->baseline_colocated, c->instances); }

double colocate_pair_beside(const colocate *c, uint32_t i) { return share(c->pair_beside[i], c->lines); }
double colocate_baseline_beside(const colocate *c) { return share(c->baseline_beside, c->lines); }

static double uneven(const uint64_t *stacks, uint32_t count) {
  uint64_t all = 0, most = 0;
  for (uint32_t s = 0; s < count; s++) {
    all += stacks[s];
    if (stacks[s] > most) most = stacks[s];
  }
  return all ? (double)most * count / (double)all : 1;
}

double colocate_pair_uneven(const colocate *c, uint32_t i) {
  uint64_t stacks[1 << STACK_MAP_BITS] = {0};
  for (uint64_t k = 0; k < UINT64_C(1) << histogram_bits(c); k++)
    stacks[k >> i & ((1u << c->bits) - 1)] += c->lines_by_bits[k];
  return uneven(stacks, 1u << c->bits);
}

/* Bytes below `end` that the pair gives to the stack: of each whole turn around the stacks the same. */
static uint64_t bytes_below(uint64_t end, uint32_t stack, uint32_t lowest, uint32_t bits) {
  uint64_t each = UINT64_C(1) << lowest, rest = end & ((each << bits) - 1), before = stack * each;
  uint64_t begun = rest > before ? rest - before : 0; /* of the turn that is not whole */
  return (end >> (lowest + bits) << lowest) + (begun < each ? begun : each);
}

/* Of the ranges that the first so many instances touched. */
static double uneven_bytes(const colocate *c, uint32_t i, uint64_t instances) {
  uint64_t stacks[1 << STACK_MAP_BITS] = {0};
  uint32_t lowest = STACK_MAP_LOWEST + i;
  for (uint32_t r = 0; r < c->range_count; r++) {
    if (!c->touched[r] || c->touched[r] > instances) continue;
    for (uint32_t s = 0; s < 1u << c->bits; s++)
      stacks[s] += bytes_below(range_end(&c->ranges[r]), s, lowest, c->bits) -
                   bytes_below(c->ranges[r].address, s, lowest, c->bits);
  }
  return uneven(stacks, 1u << c->bits);
}

double colocate_pair_uneven_bytes(const colocate *c, uint32_t i) { return uneven_bytes(c, i, c->instances); }
void colocate_complete(colocate *c) { c->complete = true; }

void colocate_bound(colocate *c, uint32_t highest) {
  c->pairs = highest < STACK_MAP_LOWEST                      ? 1
             : highest >= STACK_MAP_LOWEST + STACK_MAP_PAIRS ? STACK_MAP_PAIRS
                                                             : highest - STACK_MAP_LOWEST + 1;
}

void colocate_lean(colocate *c, uint32_t to) { c->lean = to < STACK_MAP_LOWEST ? 0 : to - STACK_MAP_LOWEST + 1; }

static bool is_worth(uint64_t pair, uint64_t baseline, uint64_t lines) {
  return (double)pair >= (double)baseline + COLOCATE_WORTH * (double)lines;
}

bool colocate_worth(const colocate *c, uint32_t lowest) {
  return is_worth(c->pair_beside[lowest - STACK_MAP_LOWEST], c->baseline_beside, c->lines);
}

static uint32_t best_pair(const uint64_t *beside, const double *unevens, uint32_t pairs, uint32_t lean) {
  double least = unevens[0];
  uint32_t best = STACK_MAP_PAIRS;
  for (uint32_t i = 1; i < pairs; i++)
    if (unevens[i] < least) least = unevens[i];
  for (uint32_t i = 0; i < pairs; i++)
    if (unevens[i] <= least * COLOCATE_UNEVEN &&
        (best == STACK_MAP_PAIRS || beside[i] > beside[best] || (i < lean && beside[i] == beside[best])))
      best = i;
  return STACK_MAP_LOWEST + best;
}

uint32_t colocate_best_pair(const colocate *c) {
  double unevens[STACK_MAP_PAIRS];
  bool any = false;
  for (uint32_t r = 0; r < c->range_count; r++) any |= c->touched[r] != 0;
  for (uint32_t i = 0; i < STACK_MAP_PAIRS; i++)
    unevens[i] = c->complete || !any ? colocate_pair_uneven(c, i) : colocate_pair_uneven_bytes(c, i);
  return best_pair(c->pair_beside, unevens, c->pairs, c->complete ? 0 : c->lean);
}

uint32_t colocate_early_pair(const colocate *c, double share, uint64_t *instances, bool *worth) {
  double wanted = ceil(share * (double)c->instances);
  const colocate_early *early = NULL;
  double unevens[STACK_MAP_PAIRS];
  *instances = 0;
  *worth = false;
  for (size_t i = 0; i < c->early.count && (!early || (double)early->instances < wanted); i++)
    early = &c->early.items[i];
  if (!early) return STACK_MAP_LOWEST;
  *instances = early->instances;
  for (uint32_t i = 0; i < STACK_MAP_PAIRS; i++) unevens[i] = uneven_bytes(c, i, early->instances);
  uint32_t lowest = best_pair(early->pair_beside, unevens, c->pairs, c->lean);
  *worth = is_worth(early->pair_beside[lowest - STACK_MAP_LOWEST], early->baseline_beside, early->lines);
  return lowest;
}

/* Lines of the instance that lie in the stack of its first one. */
static uint32_t lines_beside(const colocate *c, const colocate_kept *instance, const stack_map *maps,
                             const stack_map *other) {
  uint32_t home = 0, count = 0;
  for (uint32_t i = 0; i < instance->count; i++) {
    uint32_t range = colocate_range_of(c, instance->lines[i]);
    uint32_t stack = stack_of(range == COLOCATE_NO_RANGE ? other : &maps[range], instance->lines[i]);
    if (!i) home = stack;
    count += stack == home;
  }
  return count;
}

double colocate_share(const colocate *c, const stack_map *maps, const stack_map *other) {
  uint64_t colocated = 0;
  for (uint32_t i = 0; i < c->kept_count; i++)
    colocated += lines_beside(c, &c->kept[i], maps, other) == c->kept[i].count;
  return share(colocated, c->kept_count);
}

double colocate_beside(const colocate *c, const stack_map *maps, const stack_map *other) {
  uint64_t beside = 0, lines = 0;
  for (uint32_t i = 0; i < c->kept_count; i++) {
    beside += lines_beside(c, &c->kept[i], maps, other);
    lines += c->kept[i].count;
  }
  return share(beside, lines);
}
