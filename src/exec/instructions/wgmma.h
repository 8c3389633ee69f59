/* SPDX-License-Identifier: Apache-2.0 */
/* wgmma.mma_async and wgmma.mma_async.sp (PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions"): what the
 * decoder hands to the handler in wgmma.isa.c.
 *
 * Four warps multiply a matrix A of 64 rows by B; each has 16 of the rows and computes them by itself. Operands in
 * shared memory are named by 64-bit descriptors. */
#ifndef FF_EXEC_WGMMA_H
#define FF_EXEC_WGMMA_H

#include "exec/core.h"

#define WGMMA_ROWS 16u /* of a warp */
#define WGMMA_COLUMNS 256u
#define WGMMA_A_BYTES 32u /* of a row of A */
#define WGMMA_B_BYTES 64u /* of a row of B, at most */
#define WGMMA_ACCUMULATORS 128u

typedef struct exec_wgmma { /* side data */
  exec_sync sync;           /* first: the lanes of the warp wait for one another */
  uint16_t columns;         /* N */
  uint8_t depth;            /* K: elements; words of b1 */
  uint8_t held;             /* elements of a row of A that there are: K, with .sp half of it */
  uint8_t a_type, b_type, d_type;
  bool a_shared;             /* A is in shared memory, else in registers */
  bool a_across, b_across;   /* transposed: elements of a column are neighbours */
  bool a_negated, b_negated; /* imm-scale-a, imm-scale-b are -1 */
  bool saturates;
  bool sparse;        /* .sp: metadata say which elements of A are there (sparse.h) */
  uint8_t selector;   /* sp-sel: which lanes of a group of four hold them */
  uint32_t metadata;  /* slot */
  bool keeps_negated; /* scale-d is written !p */
  uint32_t keeps;     /* slot of scale-d: false: D is not added */
  uint32_t a_descriptor, b_descriptor;
  uint32_t a[4], d[WGMMA_ACCUMULATORS]; /* slots */
} exec_wgmma;

#endif
