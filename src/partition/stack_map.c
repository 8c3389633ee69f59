/* SPDX-License-Identifier: Apache-2.0 */
/* Masks, and the address bits that they make superfluous. */
#include "partition/stack_map.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "partition/gf2.h"

/* the bits XORed onto one of the stack's number are so many beyond as there are in it, and this */
enum { BASELINE_STEP = 3 };

/* The bits that a local address lacks follow from the stack and the local address. */
static void check_pivots(const stack_map *map) {
  uint64_t pivots = 0;
  for (uint32_t i = 0; i < map->bits; i++) {
    FF_ASSERT(!i || map->pivots[i] < map->pivots[i - 1]);
    pivots |= UINT64_C(1) << map->pivots[i];
  }
  gf2_space masks = gf2_span(map->masks, map->bits);
  FF_ASSERT(gf2_restrict(&masks, pivots).rank == map->bits);
}

/* The lowest bit of each mask after elimination: masks that are independent have as many. The lowest, so that local
 * addresses are dense over any range that the masks spread, and rows of the DRAM are filled whole. */
ff_status stack_map_make(const uint64_t *masks, uint32_t bits, uint32_t flip, stack_map *map, ff_error *error) {
  uint64_t left[STACK_MAP_BITS],
      allowed = ((UINT64_C(2) << STACK_MAP_HIGHEST) - 1) & ~((UINT64_C(1) << STACK_MAP_LOWEST) - 1);
  if (bits > STACK_MAP_BITS)
    return ff_fail(error, FF_INVALID, "a stack's number has at most %d bits, not %" PRIu32, STACK_MAP_BITS, bits);
  *map = (stack_map){.bits = bits, .flip = flip & ((1u << bits) - 1)};
  for (uint32_t i = 0; i < bits; i++) {
    if (masks[i] & ~allowed)
      return ff_fail(error, FF_INVALID, "the mask 0x%" PRIx64 " has bits other than %d to %d of the address", masks[i],
                     STACK_MAP_LOWEST, STACK_MAP_HIGHEST);
    left[i] = map->masks[i] = masks[i];
  }
  for (uint32_t i = 0; i < bits; i++) {
    uint32_t best = i; /* the one whose lowest bit is lowest */
    for (uint32_t k = i + 1; k < bits; k++)
      if (left[k] && (!left[best] || (left[k] & -left[k]) < (left[best] & -left[best]))) best = k;
    uint64_t row = left[best];
    if (!row) return ff_fail(error, FF_INVALID, "the masks of a map to stacks depend on each other");
    left[best] = left[i];
    left[i] = row;
    map->pivots[bits - 1 - i] = (uint32_t)__builtin_ctzll(row);
    for (uint32_t k = i + 1; k < bits; k++)
      if (left[k] & row & -row) left[k] ^= row;
  }
  if (ff_check_level >= 2) check_pivots(map);
  return FF_OK;
}

stack_map stack_map_baseline(uint32_t bits) {
  uint64_t masks[STACK_MAP_BITS] = {0};
  stack_map map;
  for (uint32_t i = 0; i < bits; i++)
    for (uint32_t bit = STACK_MAP_LOWEST + i; bit <= STACK_MAP_HIGHEST; bit += bits + BASELINE_STEP)
      masks[i] |= UINT64_C(1) << bit;
  stack_map_make(masks, bits, 0, &map, NULL);
  return map;
}

stack_map stack_map_pair(uint32_t lowest, uint32_t bits) {
  uint64_t masks[STACK_MAP_BITS] = {0};
  stack_map map;
  for (uint32_t i = 0; i < bits; i++) masks[i] = UINT64_C(1) << (lowest + i);
  stack_map_make(masks, bits, 0, &map, NULL);
  return map;
}

ff_status stack_map_parse(const char *text, uint32_t bits, stack_map *map, ff_error *error) {
  char *end = NULL;
  if (!strcmp(text, "baseline")) {
    *map = stack_map_baseline(bits);
    return FF_OK;
  }
  uint64_t low = *text >= '0' && *text <= '9' ? strtoull(text, &end, 10) : 0, high = low;
  bool good = end && end != text && end - text <= 2;
  if (good && *end == ':' && end[1] >= '0' && end[1] <= '9') {
    char *last = end + 1;
    high = strtoull(last, &end, 10);
    good = end - last <= 2;
  }
  uint32_t most = STACK_MAP_HIGHEST - (bits ? bits - 1 : 0);
  if (!good || *end || high + 1 != low + bits || low < STACK_MAP_LOWEST || low > most)
    return ff_fail(
        error, FF_INVALID,
        "'%.40s' is no map to %u stacks: 'baseline', or %u neighbouring bits of the address from %d:%u to %u:%d", text,
        1u << bits, bits, STACK_MAP_LOWEST, STACK_MAP_LOWEST + bits - 1, most, STACK_MAP_HIGHEST);
  *map = stack_map_pair((uint32_t)low, bits);
  return FF_OK;
}

static bool same_masks(const stack_map *a, const stack_map *b) {
  return a->flip == b->flip && !memcmp(a->masks, b->masks, a->bits * sizeof *a->masks);
}

char *stack_map_text(const stack_map *map, char *text, uint32_t room) {
  stack_map baseline = stack_map_baseline(map->bits),
            pair = map->bits ? stack_map_pair((uint32_t)__builtin_ctzll(map->masks[0]), map->bits) : baseline;
  if (same_masks(map, &baseline)) snprintf(text, room, "baseline");
  else if (same_masks(map, &pair))
    snprintf(text, room, "%d:%d", __builtin_ctzll(map->masks[0]), __builtin_ctzll(map->masks[map->bits - 1]));
  else {
    uint32_t used = (uint32_t)snprintf(text, room, "linear");
    for (uint32_t i = 0; i < map->bits && used < room; i++)
      used += (uint32_t)snprintf(text + used, room - used, "%c0x%" PRIx64, i ? '/' : ' ', map->masks[i]);
    if (map->flip && used < room) snprintf(text + used, room - used, "^%u", map->flip);
  }
  return text;
}
