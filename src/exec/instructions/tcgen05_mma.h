/* SPDX-License-Identifier: Apache-2.0 */
/* tcgen05.mma (PTX ISA, "TensorCore 5th Generation of MMA Instructions"): what the decoder hands to the handler in
 * tcgen05_mma.isa.c, and what an instruction descriptor says.
 *
 * One thread has a whole product done: D of M x N in tensor memory, A of M x K in shared or tensor memory, B of K x N
 * in shared memory. K is 32 bytes of a row. With .cta_group::2 the two blocks of a pair have half of the rows of A and
 * D and half of the columns of B each. */
#ifndef FF_EXEC_TCGEN05_MMA_H
#define FF_EXEC_TCGEN05_MMA_H

#include "exec/instructions/tcgen05.h"

#define TCGEN05_ROWS 128u
#define TCGEN05_COLUMNS 256u
#define TCGEN05_COLUMN_SHIFT 32u /* of B by a zero-column mask, at most */
#define TCGEN05_DEPTH 128u       /* elements of K, at most */

typedef enum tcgen05_kind {
  TCGEN05_F16,
  TCGEN05_TF32,
  TCGEN05_F8F6F4,
  TCGEN05_I8,
  TCGEN05_MXF8F6F4, /* from here on with factors of blocks */
  TCGEN05_MXF4,
  TCGEN05_MXF4NVF4,
} tcgen05_kind;

typedef struct exec_tensor_mma { /* side data */
  uint8_t kind;                  /* tcgen05_kind */
  uint8_t group;
  bool stationary;                                         /* .ws */
  bool sparse;                                             /* .sp: A has half of its elements */
  bool a_in_tensor;                                        /* A is in tensor memory, else in shared memory */
  bool keeps_negated;                                      /* enable-input-d is written !p */
  uint8_t scale;                                           /* scale-input-d: D counts 2^-scale */
  bool masks;                                              /* disable-output-lane */
  bool zeroes;                                             /* zero-column-mask-desc */
  uint8_t scales;                                          /* factors along K; 0: without */
  bulk_address d, a, a_factors, b_factors, metadata;       /* of tensor memory */
  uint32_t a_descriptor, b_descriptor, description, keeps; /* slots */
  uint32_t mask[8];                                        /* slots: four for each block */
  uint32_t zero_mask;                                      /* slot */
} exec_tensor_mma;

/* An instruction descriptor ("Instruction descriptor"), taken apart. */
typedef struct tcgen05_description {
  uint32_t rows, columns, depth; /* M, N, K */
  uint8_t a_type, b_type, d_type;
  bool a_negated, b_negated, a_across, b_across, saturates;
  uint8_t selector;                        /* .sp: which of two columns has the metadata */
  uint8_t shift;                           /* of columns by a zero-column mask, at most */
  uint8_t factor_type, a_factor, b_factor; /* PTX_UE8M0 or PTX_UE4M3; the first byte of a word that has a factor */
} tcgen05_description;

/* A zero-column mask descriptor ("Zero-Column Mask Descriptor"), taken apart. */
typedef struct tcgen05_zero_mask {
  uint32_t shift;                      /* columns of B that stand before the first one of the product */
  uint64_t zero[TCGEN05_COLUMNS / 64]; /* a bit per column of the product: B has zeros there */
} tcgen05_zero_mask;

/* A fault if the descriptor has a value that the manual does not define for M and N; unsupported, if it leaves out a
 * whole span or more. (tcgen05_describe.c) */
tcgen05_zero_mask core_tensor_zero_mask(core_warp *w, const exec_instr *i, uint32_t lane, uint64_t bits,
                                        const tcgen05_description *d);

/* A fault if the descriptor has a value that the manual does not define for the kind. (tcgen05_describe.c) */
tcgen05_description core_tensor_describe(core_warp *w, const exec_instr *i, uint32_t lane, uint32_t bits);

#endif
