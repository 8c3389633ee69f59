/* SPDX-License-Identifier: Apache-2.0 */
/* Bit sets per basic block, for the analyses in liveness.c and pending.c, and the registers of one instruction.
 *
 * Only the registers that an analysis cares about get a bit (`bit_of`). A table that would be larger than
 * DATAFLOW_WORDS is not made: the analyses then give a coarse but safe answer. */
#ifndef FF_PTX_DATAFLOW_H
#define FF_PTX_DATAFLOW_H

#include "ptx/analysis/cfg.h"

#define DATAFLOW_WORDS ((size_t)1 << 24) /* of 8 bytes, per table */
enum { DATAFLOW_PASSES = 100 };          /* over a function; compilers' code needs loop depth + 2 */

typedef struct dataflow {
  uint32_t *bit_of; /* register -> bit or PTX_NO_REG */
  uint32_t bit_count;
  size_t words; /* per set */
} dataflow;

static inline bool bit_get(const uint64_t *set, uint32_t bit) { return set[bit / 64] >> (bit % 64) & 1; }
static inline void bit_set(uint64_t *set, uint32_t bit) { set[bit / 64] |= UINT64_C(1) << (bit % 64); }
static inline void bit_clear(uint64_t *set, uint32_t bit) { set[bit / 64] &= ~(UINT64_C(1) << (bit % 64)); }

typedef struct touched { /* the registers of one instruction; grows, freed with free(regs) */
  uint32_t *regs;
  uint32_t room, reads, writes; /* regs[0, reads) are read, regs[reads, reads + writes) written */
} touched;

void ptx_touched(const ptx_instr *instr, touched *t);
/* Gives `reg` a bit if it has none. */
void ptx_dataflow_add(dataflow *flow, uint32_t reg);

#endif
