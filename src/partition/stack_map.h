/* SPDX-License-Identifier: Apache-2.0 */
/* Which memory stack has an address (Hsieh et al., ISCA 2016, section 3.2): bit i of the stack's number is the parity
 * of the address under a mask.
 *
 *   BITS      "12:13": two neighbouring bits of the address are the number (the paper's ten choices are 7:8 to 16:17 for four stacks)
 *   baseline  lines of 128 bytes go round the stacks, XORed with higher bits
 *   linear    any independent masks (partition/colocate.h finds them)
 *
 * stack_map_make refuses masks that depend on each other: so each stack has the same share of any aligned range that
 * has all their bits. A stack and a local address together name one address, as the masks are independent in the
 * pivots, too: that is asserted at the deep check level. */
#ifndef FF_PARTITION_STACK_MAP_H
#define FF_PARTITION_STACK_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

enum {
  STACK_MAP_BITS = 4,     /* of a stack's number: at most 16 stacks */
  STACK_MAP_LOWEST = 7,   /* a line of 128 bytes lies in one stack */
  STACK_MAP_HIGHEST = 40, /* masks have bits up to here */
  STACK_MAP_PAIRS = 10,   /* choices of the paper: lowest bit 7 to 16 */
};

typedef struct stack_map {
  uint32_t bits; /* 2^bits stacks; 0: one */
  uint32_t flip; /* XORed onto the number: sets one allocation's map apart from another's */
  uint64_t masks[STACK_MAP_BITS];
  /* falling: these address bits follow from the stack and the others; stack_map_make sets them */
  uint32_t pivots[STACK_MAP_BITS];
} stack_map;

/* From masks. FF_INVALID: they are not independent, or have bits below a line or above STACK_MAP_HIGHEST. */
ff_status stack_map_make(const uint64_t *masks, uint32_t bits, uint32_t flip, stack_map *map, ff_error *error);
/* Lines go round, XORed with higher bits. */
stack_map stack_map_baseline(uint32_t bits);
/* The address bits lowest .. lowest + bits - 1. lowest: STACK_MAP_LOWEST to STACK_MAP_HIGHEST - bits + 1. */
stack_map stack_map_pair(uint32_t lowest, uint32_t bits);
/* "baseline" or "12:13" (as many neighbouring bits as there are in `bits`; with one stack bit "12"). FF_INVALID, with
 * what would do. */
ff_status stack_map_parse(const char *text, uint32_t bits, stack_map *map, ff_error *error);
/* "12:13", "baseline", or "linear 0x.../0x..."; into `text`, which is returned. */
char *stack_map_text(const stack_map *map, char *text, uint32_t room);

static inline uint32_t stack_of(const stack_map *map, uint64_t address) {
  uint32_t stack = map->flip;
  for (uint32_t i = 0; i < map->bits; i++) stack ^= (uint32_t)__builtin_parityll(address & map->masks[i]) << i;
  return stack;
}

/* The address without its pivots: dense within a stack. */
static inline uint64_t stack_local(const stack_map *map, uint64_t address) {
  for (uint32_t i = 0; i < map->bits; i++) {
    uint64_t low = (UINT64_C(1) << map->pivots[i]) - 1;
    address = (address >> 1 & ~low) | (address & low);
  }
  return address;
}

#endif
