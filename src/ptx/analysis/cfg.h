/* SPDX-License-Identifier: Apache-2.0 */
/* Control flow and liveness of one PTX function. Built once per function, immutable.
 *
 * Basic blocks are in textual order (blocks[i].first ascending); `order` is a reverse postorder in which the blocks of
 * a loop are contiguous (no block outside a loop stands between two of its blocks) and in which a reconvergence point
 * comes after everything that branches to it: running the split of a warp with the smallest order first reconverges at
 * the earliest point (Diamos et al., thread frontiers). Loops nested deeper than 64 (fewer in functions of many
 * thousand blocks that are nearly all loops) are not told apart. cfg.c checks blocks, edges, order and postdominators
 * at the deep level. */
#ifndef FF_PTX_CFG_H
#define FF_PTX_CFG_H

#include "ptx/ir.h"

typedef struct ptx_block {
  uint32_t first, end;  /* instructions [first, end) */
  uint32_t *successors; /* block indices; fall-through first, branch targets after; none after ret/exit/trap */
  uint32_t successor_count;
  uint32_t *predecessors;
  uint32_t predecessor_count;
  uint32_t order;         /* position in the priority order described above, unique, from 0 */
  uint32_t loop_depth;    /* loops around it */
  uint32_t loop_end;      /* of the block that heads a loop: the order of the loop's last block; else its own order */
  uint32_t postdominator; /* immediate postdominator block, or PTX_NO_REG for the exit */
  bool reachable;
} ptx_block;

typedef struct ptx_cfg {
  ptx_block *blocks;
  uint32_t block_count;
  uint32_t *block_of; /* instruction -> block */
  uint32_t *by_order; /* order -> block */
} ptx_cfg;

ptx_cfg *ptx_cfg_build(const ptx_func *func);
void ptx_cfg_free(ptx_cfg *cfg);

/* Which registers an instruction reads and writes (guard included among the reads; a guarded write also keeps the old
 * value, so it counts as a read for liveness but not here). Returns how many; writes at most `room` indices. */
uint32_t ptx_instr_reads(const ptx_instr *instr, uint32_t *regs, uint32_t room);
uint32_t ptx_instr_writes(const ptx_instr *instr, uint32_t *regs, uint32_t room);

/* Registers per thread that this function needs in the hardware's terms: the most 32-bit registers that are live at
 * once (64-bit ones count two, predicates none), plus a small fixed overhead: an estimate of what ptxas would say. */
uint32_t ptx_register_estimate(const ptx_func *func, const ptx_cfg *cfg);

#endif
