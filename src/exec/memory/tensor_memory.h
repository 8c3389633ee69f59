/* SPDX-License-Identifier: Apache-2.0 */
/* Tensor memory (PTX ISA, "Tensor Memory"): 128 lanes of 512 columns of 32 bits, which a block allocates by columns.
 *
 * An SM has this much, and blocks that share one wait for each other's columns. Which blocks share an SM is known to
 * the simulation alone, so each block has a tensor memory of its own here: of two blocks the second begins as if the
 * first had freed its columns. Only warps of one block wait for each other.
 *
 * An address is lane << 16 | column. */
#ifndef FF_EXEC_TENSOR_MEMORY_H
#define FF_EXEC_TENSOR_MEMORY_H

#include "exec/core.h"

#define TENSOR_LANES 128u
#define TENSOR_COLUMNS 512u
#define TENSOR_UNIT 32u /* columns: allocations are 1, 2, 4, 8 or 16 of them */
#define TENSOR_UNITS (TENSOR_COLUMNS / TENSOR_UNIT)
#define TENSOR_WARP_LANES 32u /* of each warp of a group of four */

/* taken == the union of the units of all allocations, which do not overlap: allocation n begins at unit n and has
 * units[n] of them, if that is not 0. */
typedef struct tensor_memory {
  uint16_t taken;              /* a bit per unit */
  uint8_t units[TENSOR_UNITS]; /* of the allocation that begins here; 0: none does */
  uint32_t line[TENSOR_UNITS]; /* of PTX: where it was made */
  uint32_t most;               /* columns: no allocation may be larger than the one before it */
  bool relinquished;
  bool used;     /* by this block: what follows is its own */
  uint8_t group; /* .cta_group of the block's instructions; 0: not said yet */
  /* .cta_group::2: columns that a warp of the block waits to allocate, together with one of the other block of the
   * pair; that one has done it: the first of them, and 1 */
  uint32_t asked, granted;
  uint32_t cells[TENSOR_LANES][TENSOR_COLUMNS];
} tensor_memory;

typedef struct tensor_place { /* a part of tensor memory, as an instruction names it */
  uint32_t lane, column;
} tensor_place;

/* The block's tensor memory, for an instruction with this .cta_group (0: it names none). A fault if another one was
 * used before. */
tensor_memory *core_tensor_memory(core_warp *w, const exec_instr *i, uint32_t lane, uint32_t group);
/* The other block of the pair: of those whose ranks in the cluster differ in the last bit. A fault if there is none, or
 * all its threads have exited. */
core_block *core_tensor_peer(core_warp *w, const exec_instr *i, uint32_t lane);
/* The same of another block. */
tensor_memory *core_tensor_memory_of(core_warp *w, const exec_instr *i, uint32_t lane, core_block *block,
                                     uint32_t group);
/* What an instruction does for one thread in one block's tensor memory. */
typedef void core_tensor_step(core_warp *w, const exec_instr *i, uint32_t lane, core_block *block);
/* Does it for each active thread: in its own block, and with .cta_group::2 then in the other block of the pair. */
void core_tensor_each(core_warp *w, const exec_instr *i, uint32_t group, core_tensor_step *step);

/* The place of an address, after a check that `lanes` lanes and `columns` columns from there on exist and are
 * allocated; a fault says which are not. what: of which operand. */
tensor_place core_tensor_place(core_warp *w, const exec_instr *i, uint32_t lane, const tensor_memory *memory,
                               uint32_t address, uint32_t lanes, uint32_t columns, const char *what);

/* tcgen05.alloc: true: the running split goes on; false: it waits for columns (parked). */
bool core_tensor_alloc(core_warp *w, const exec_instr *i);
/* tcgen05.dealloc and .relinquish_alloc_permit: handlers. */
void core_tensor_dealloc(exec_warp *x, const exec_instr *i);
void core_tensor_relinquish(exec_warp *x, const exec_instr *i);

/* The last threads of the block execute exit at i: a fault if columns are allocated. */
void core_tensor_exit(core_warp *w, const exec_instr *i);

#endif
