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

void trace_lines_collect(trace_line_set *set, const uint64_t address[TRACE_LANES], uint64_t add, uint32_t bytes,
                         uint32_t mask) {
  uint8_t table[TABLE];
  uint32_t n = 0;
  uint64_t last = UINT64_MAX;
  memset(table, 0xff, sizeof table);
  set->count = 0;
  for (uint32_t m = mask; m; m &= m - 1) {
    uint64_t own = address[__builtin_ctz(m)] + add, line = own / TRACE_LINE_BYTES;
    uint32_t offset = (uint32_t)(own % TRACE_LINE_BYTES);
    if (line != last) {
      uint32_t slot = (uint32_t)(line * UINT64_C(0x9E3779B97F4A7C15) >> 58);
      while ((n = table[slot]) != 0xff && set->line[n] != line) slot = (slot + 1) % TABLE;
      if (n == 0xff) {
        n = table[slot] = (uint8_t)set->count++;
        set->line[n] = line;
        set->lanes[n] = set->sectors[n] = 0;
      }
      last = line;
    }
    set->lanes[n]++;
    set->sectors[n] |= (2u << (offset + bytes - 1) / TRACE_SECTOR_BYTES) - (1u << offset / TRACE_SECTOR_BYTES);
  }
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
  uint32_t shift = bytes <= 4 ? 2 : bytes <= 8 ? 3 : 4, lanes = (TRACE_LANES * 4) >> shift, rounds = 0;
  for (uint32_t first = 0; first < TRACE_LANES; first += lanes) {
    uint32_t group = lanes == 32 ? mask : mask & (((1u << lanes) - 1) << first);
    rounds += bank_rounds(offset, group, shift, lanes);
  }
  return bytes > 16 ? rounds * (bytes / 16) : rounds;
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
