/* SPDX-License-Identifier: Apache-2.0 */
/* tcgen05 (PTX ISA, "TensorCore 5th Generation Family Instructions"): what the decoder hands to the handlers in
 * tcgen05.c and memory/tensor_memory.c. Side data begin with an exec_sync, as all lanes of a warp meet before most of
 * these instructions. */
#ifndef FF_EXEC_TCGEN05_H
#define FF_EXEC_TCGEN05_H

#include "exec/memory/bulk.h"
#include "exec/memory/tensor_memory.h"

#define TCGEN05_REGISTERS 128u

typedef struct exec_tensor_allocation { /* alloc, dealloc, relinquish_alloc_permit */
  exec_sync sync;
  exec_access access; /* alloc: of the word of shared memory that gets the address */
  uint8_t group;      /* .cta_group */
  bulk_address to;    /* alloc: that word */
  uint32_t address;   /* dealloc: slot */
  uint32_t columns;   /* slot */
} exec_tensor_allocation;

typedef enum tcgen05_shape {
  TCGEN05_32X32B,
  TCGEN05_16X64B,
  TCGEN05_16X128B,
  TCGEN05_16X256B,
  TCGEN05_16X32BX2
} tcgen05_shape;

typedef struct exec_tensor_move { /* ld, st */
  uint8_t shape;                  /* tcgen05_shape */
  bool stores;
  bool halves;                   /* .pack::16b, .unpack::16b: a register is the lower halves of two columns */
  bool is_signed, absolute, nan; /* of .red: .s32, .abs, .NaN */
  uint8_t reduces;               /* .red: EXEC_REDUX_MIN, _MAX, _FMIN or _FMAX; else 0 */
  uint16_t registers;            /* per thread */
  uint32_t split;                /* .16x32bx2: columns from the first access to the second */
  bulk_address at;               /* of tensor memory */
  uint32_t reduced;              /* .red: where the result goes */
  uint32_t slot[TCGEN05_REGISTERS];
} exec_tensor_move;

/* Which lanes of tensor memory get the rows of the source of cp. */
typedef enum tcgen05_spread {
  TCGEN05_ROWS_AS_LANES, /* .128x256b, .128x128b */
  TCGEN05_FOUR_LANES,    /* .4x256b: one lane of each warp */
  TCGEN05_PAIRS_02_13,   /* .64x128b.warpx2: twice */
  TCGEN05_PAIRS_01_23,
  TCGEN05_ALL_WARPS, /* .32x128b.warpx4: four times */
} tcgen05_spread;

typedef struct exec_tensor_copy { /* cp */
  uint8_t group;
  uint8_t rows, chunks; /* of the source: chunks of 16 bytes in a row */
  uint8_t spread, times;
  uint8_t element_bits; /* .b8x16.b4x16_p64, .b8x16.b6x16_p32: elements become bytes; 0: none do */
  bulk_address to;      /* of tensor memory */
  uint32_t descriptor;  /* slot */
} exec_tensor_copy;

typedef struct exec_tensor_shift {
  uint8_t group;
  bulk_address at; /* of tensor memory */
} exec_tensor_shift;

typedef struct exec_tensor_commit {
  exec_access access; /* of shared memory */
  uint8_t group;
  bulk_address barrier;
  uint32_t ranks; /* slot: .multicast::cluster; EXEC_NO_OFFSET: the mbarrier that the address names */
} exec_tensor_commit;

void core_tensor_move(exec_warp *x, const exec_instr *i);
void core_tensor_commit(exec_warp *x, const exec_instr *i);
void core_tensor_shift(exec_warp *x, const exec_instr *i);

#endif
