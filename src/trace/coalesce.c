/* SPDX-License-Identifier: Apache-2.0 */
/* Coalescing and bank conflicts (coalesce.h).
 * All functions here are pure. */
#include "trace/coalesce.h"

#include <string.h>

#include "base/check.h"

/* ---- lines ---- */

#define TABLE 64u /* slots of the small hash table that finds a lane's line among those seen */

/* Each line once, with a lane and a sector at least; as many lanes as the mask has. */
static bool is_line_set(const trace_line_set *set, uint32_t mask) {
  uint32_t lanes = 0;
  for (uint32_t i = 0; i < set->count; i++) {
    if (!set->lanes[i] || !set->sectors[i] || set->sectors[i] > 15) return false;
    lanes += set->lanes[i];
    for (uint32_t j = 0; j < i; j++)
      if (set->line[i] == set->line[j]) return false;
  }
  return lanes == (uint32_t)__builtin_popcount(mask);
}

/* The lanes that are served together: all, or half or quarter warps if each has more bytes than a bank. */
static uint32_t group_lanes(uint32_t bytes) { return TRACE_LANES * 4 >> (bytes <= 4 ? 2 : bytes <= 8 ? 3 : 4); }

static uint32_t group_mask(uint32_t mask, uint32_t first, uint32_t lanes) {
  return lanes == TRACE_LANES ? mask : mask & (((1u << lanes) - 1) << first);
}

static uint32_t with_wide_lanes(uint32_t passes, uint32_t bytes) { return bytes > 16 ? passes * (bytes / 16) : passes; }

/* Adds three bits to a sum and a carry, in all 32 places. */
static inline uint32_t add_three(uint32_t *sum, uint32_t a, uint32_t b) {
  uint32_t both = *sum ^ a, carry = (*sum & a) | (both & b);
  *sum = both ^ b;
  return carry;
}

static inline uint32_t add_two(uint32_t *sum, uint32_t a) {
  uint32_t carry = *sum & a;
  *sum ^= a;
  return carry;
}

/* How many of the masks have the bit that most of them have; behind the last stand three zeros. The
 * bits of each place are added up in six planes. */
static uint32_t most_common(const uint32_t *masks, uint32_t count) {
  uint32_t ones = 0, twos = 0, fours = 0, eights = 0, sixteens = 0, all = 0, candidates = UINT32_MAX, most = 0;
  for (uint32_t i = 0; i < count; i += 4) {
    uint32_t a = add_three(&ones, masks[i], masks[i + 1]), b = add_three(&ones, masks[i + 2], masks[i + 3]);
    all |= add_two(&sixteens, add_two(&eights, add_two(&fours, add_three(&twos, a, b))));
  }
  const uint32_t planes[] = {all, sixteens, eights, fours, twos, ones};
  for (uint32_t p = 0; p < sizeof planes / sizeof *planes; p++) {
    uint32_t left = candidates & planes[p];
    candidates = left ? left : candidates;
    most = 2 * most + (left != 0);
  }
  return most;
}

/* Each line has one word in a bank, so a bank serves as many words as there are lines that lanes want from it. These
 * are lanes of more than four bytes, which go by groups. */
static uint32_t wide_passes(const trace_line_set *set, const uint8_t *line_of, const uint64_t *address, uint64_t add,
                            uint32_t bytes, uint32_t mask) {
  uint32_t lanes = group_lanes(bytes), passes = 0, banks[TRACE_LANES + 3] = {0}, width = bytes < 16 ? bytes : 16,
           word = (1u << width / 4) - 1;
  if (set->count == 1) return trace_plain_passes(bytes, mask);
  for (uint32_t first = 0; first < TRACE_LANES; first += lanes) {
    uint32_t group = group_mask(mask, first, lanes);
    if (!group) continue;
    memset(banks, 0, set->count * sizeof *banks);
    for (uint32_t m = group; m; m &= m - 1) {
      uint32_t lane = (uint32_t)__builtin_ctz(m);
      banks[line_of[lane]] |= word << ((address[lane] + add) % TRACE_LINE_BYTES & ~(width - 1)) / 4;
    }
    passes += most_common(banks, set->count);
  }
  return with_wide_lanes(passes, bytes);
}

/* The line's number in the set, where it comes in if it is new. */
static inline uint32_t number_of(uint8_t table[TABLE], trace_line_set *set, uint64_t line) {
  uint32_t slot = (uint32_t)(line * UINT64_C(0x9E3779B97F4A7C15) >> 58), n;
  while ((n = table[slot]) != 0xff && set->line[n] != line) slot = (slot + 1) % TABLE;
  if (n == 0xff) {
    n = table[slot] = (uint8_t)set->count++;
    set->line[n] = line;
  }
  return n;
}

/* Eight lanes whose addresses are `step` apart. */
static inline bool is_piece(const uint64_t *address, uint64_t step) {
  uint64_t off = 0;
  for (uint32_t l = 0; l < 8; l++) off |= address[l] ^ (address[0] + l * step);
  return !off;
}

/* What is known of a line: lanes:24 | sectors:8 | banks:32. Of lanes in banks first to last of it: */
static inline uint64_t known_of(uint32_t lanes, uint32_t first, uint32_t last) {
  uint64_t sectors = (2u << last / 8) - (1u << first / 8), banks = (UINT64_C(2) << last) - (UINT64_C(1) << first);
  return (uint64_t)lanes << 40 | sectors << 32 | banks;
}

typedef struct narrow {
  uint64_t last;                  /* line */
  uint64_t seen[TRACE_LANES + 1]; /* of each line; the last one is of no line */
  uint64_t now;                   /* of `last`, whose number is n */
  uint32_t n;
} narrow;

static inline void add_known(narrow *at, trace_line_set *set, uint8_t table[TABLE], uint64_t line, uint64_t known) {
  if (line != at->last) {
    uint32_t before = set->count;
    at->seen[at->n] = at->now;
    at->n = number_of(table, set, at->last = line);
    at->now = set->count == before ? at->seen[at->n] : 0;
  }
  at->now = (at->now + (known & ~((UINT64_C(1) << 40) - 1))) | (known & ((UINT64_C(1) << 40) - 1));
}

/* Lanes of up to four bytes are in one bank each. Threads mostly read rows of eight and more. */
static void collect_narrow(trace_line_set *set, uint8_t table[TABLE], const uint64_t *address, uint64_t add,
                           uint32_t bytes, uint32_t mask) {
  narrow at;
  at.last = UINT64_MAX;
  at.now = 0;
  at.n = TRACE_LANES;
  uint32_t banks[TRACE_LANES + 3];
  for (uint32_t m = mask; m;) {
    uint32_t lane = (uint32_t)__builtin_ctz(m);
    uint64_t own = address[lane] + add, line = own / TRACE_LINE_BYTES;
    uint32_t offset = (uint32_t)(own % TRACE_LINE_BYTES), end = offset + 8 * bytes;
    if (lane % 8 == 0 && (m >> lane & 0xff) == 0xff && end <= TRACE_LINE_BYTES && is_piece(address + lane, bytes)) {
      add_known(&at, set, table, line, known_of(8, offset / 4, (end - 1) / 4));
      m &= ~(0xffu << lane);
    } else {
      add_known(&at, set, table, line, known_of(1, offset / 4, offset / 4));
      m &= m - 1;
    }
  }
  at.seen[at.n] = at.now;
  for (uint32_t n = 0; n < set->count; n++) {
    set->lanes[n] = (uint32_t)(at.seen[n] >> 40);
    set->sectors[n] = (uint32_t)(at.seen[n] >> 32) & 15;
    banks[n] = (uint32_t)at.seen[n];
  }
  banks[set->count] = banks[set->count + 1] = banks[set->count + 2] = 0;
  set->passes = most_common(banks, set->count);
}

static void collect_wide(trace_line_set *set, uint8_t table[TABLE], const uint64_t *address, uint64_t add,
                         uint32_t bytes, uint32_t mask) {
  uint8_t line_of[TRACE_LANES];
  uint64_t last = UINT64_MAX;
  uint32_t n = 0;
  memset(set->lanes, 0, sizeof set->lanes);
  memset(set->sectors, 0, sizeof set->sectors);
  for (uint32_t m = mask; m; m &= m - 1) {
    uint64_t own = address[__builtin_ctz(m)] + add, line = own / TRACE_LINE_BYTES;
    uint32_t offset = (uint32_t)(own % TRACE_LINE_BYTES);
    if (line != last) n = number_of(table, set, last = line);
    line_of[__builtin_ctz(m)] = (uint8_t)n;
    set->lanes[n]++;
    set->sectors[n] |= (2u << (offset + bytes - 1) / TRACE_SECTOR_BYTES) - (1u << offset / TRACE_SECTOR_BYTES);
  }
  set->passes = wide_passes(set, line_of, address, add, bytes, mask);
}

void trace_lines_collect(trace_line_set *set, const uint64_t address[TRACE_LANES], uint64_t add, uint32_t bytes,
                         uint32_t mask) {
  uint8_t table[TABLE];
  memset(table, 0xff, sizeof table);
  set->count = 0;
  if (bytes <= 4) collect_narrow(set, table, address, add, bytes, mask);
  else collect_wide(set, table, address, add, bytes, mask);
  FF_CHECK_DEEP(is_line_set(set, mask));
}

/* ---- memories on the chip ---- */

/* Rounds in which the lanes of `mask` get their words of 1 << shift bytes, each bank serving one word a round to any
 * number of lanes. Which of them a bank serves first does not matter: it takes as many rounds as there are words. */
static uint32_t bank_rounds(const uint32_t *offset, uint32_t mask, uint32_t shift, uint32_t banks) {
  uint32_t rounds = 0, served[TRACE_LANES];
  for (uint32_t left; mask; mask = left, rounds++) {
    left = 0;
    for (uint32_t m = mask; m; m &= m - 1) {
      uint32_t word = offset[__builtin_ctz(m)] >> shift;
      served[word & (banks - 1)] = word;
    }
    for (uint32_t m = mask; m; m &= m - 1) {
      uint32_t word = offset[__builtin_ctz(m)] >> shift;
      left |= served[word & (banks - 1)] != word ? m & -m : 0;
    }
  }
  return rounds;
}

uint32_t trace_shared_passes(const uint32_t offset[TRACE_LANES], uint32_t bytes, uint32_t mask) {
  uint32_t shift = bytes <= 4 ? 2 : bytes <= 8 ? 3 : 4, lanes = group_lanes(bytes), rounds = 0;
  for (uint32_t first = 0; first < TRACE_LANES; first += lanes)
    rounds += bank_rounds(offset, group_mask(mask, first, lanes), shift, lanes);
  return with_wide_lanes(rounds, bytes);
}

uint32_t trace_shared_atomic_passes(const uint32_t offset[TRACE_LANES], uint32_t bytes, uint32_t mask) {
  uint32_t most = 0;
  for (uint32_t left = mask; left;) {
    uint32_t word = offset[__builtin_ctz(left)], lanes = 0;
    for (uint32_t m = left; m; m &= m - 1)
      if (offset[__builtin_ctz(m)] == word) lanes++, left &= ~(m & -m);
    if (lanes > most) most = lanes;
  }
  return trace_shared_passes(offset, bytes, mask) + (most ? most - 1 : 0);
}

uint32_t trace_plain_group_passes(uint32_t bytes, uint32_t mask) {
  uint32_t lanes = group_lanes(bytes), passes = 0;
  for (uint32_t first = 0; first < TRACE_LANES; first += lanes) passes += group_mask(mask, first, lanes) != 0;
  return with_wide_lanes(passes, bytes);
}

uint32_t trace_local_passes(const uint32_t offset[TRACE_LANES], uint32_t bytes, uint32_t mask) {
  uint32_t passes = 0, words = bytes > 4 ? bytes / 4 : 1;
  for (uint32_t left = mask; left; passes++) {
    uint32_t row = offset[__builtin_ctz(left)] / 4;
    for (uint32_t m = left; m; m &= m - 1)
      if (offset[__builtin_ctz(m)] / 4 == row) left &= ~(m & -m);
  }
  return passes * words;
}
