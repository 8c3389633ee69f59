/* SPDX-License-Identifier: Apache-2.0 */
/* What colocate.c counts and keeps, and colocate_linear.c solves.
 *
 * The kept instances are a reservoir: kept_count == min(instances, COLOCATE_KEPT), asserted at the deep check level,
 * and each instance so far is among them with the same probability. */
#ifndef FF_PARTITION_COLOCATE_PRIVATE_H
#define FF_PARTITION_COLOCATE_PRIVATE_H

#include "base/memory.h"
#include "partition/colocate.h"

enum {
  COLOCATE_KEPT = 4096, /* instances */
  COLOCATE_LINES = 128, /* of each: the first, and the others drawn from it if there are more */
  COLOCATE_NO_RANGE = 0xffffffff,
};

/* as they were touched, without repeats in a row */
typedef struct colocate_kept {
  uint64_t *lines;
  uint32_t count;
} colocate_kept;

typedef struct colocate_early {
  uint64_t instances, lines, pair_beside[STACK_MAP_PAIRS], baseline_beside;
} colocate_early;

struct colocate {
  uint32_t bits, range_count;
  colocate_range *ranges;
  uint64_t *touched; /* the first instance that touched the range, counted from 1; 0: none */
  bool complete;
  uint32_t pairs; /* that may be taken: the lowest ones */
  uint32_t lean;  /* of equals the last of the first so many is taken; 0: the first */
  uint32_t last;  /* the range found last */
  uint64_t instances;
  uint64_t pair_colocated[STACK_MAP_PAIRS], baseline_colocated;
  /* of `lines`, those in the stack of their instance's first one */
  uint64_t lines, pair_beside[STACK_MAP_PAIRS], baseline_beside;
  stack_map baseline;
  /* lines by the address bits that the pairs have among them: what the stacks' shares are made of */
  uint64_t *lines_by_bits;
  /* what the first instances said: after each of the first EARLY_ALL, then after each 1 % more */
  FF_VEC(colocate_early) early;
  uint64_t next_early;
  colocate_kept kept[COLOCATE_KEPT];
  uint32_t kept_count;
  uint64_t random;
};

/* Index of the range that has the address, or COLOCATE_NO_RANGE. */
uint32_t colocate_range_of(const colocate *c, uint64_t address);
/* splitmix64 */
uint64_t colocate_random(uint64_t *state);

#endif
