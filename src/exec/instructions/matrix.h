/* SPDX-License-Identifier: Apache-2.0 */
/* Matrices held by a warp (PTX ISA, "Warp-level matrix instructions"): how the elements of a fragment lie in the
 * registers of the 32 lanes, and what the decoder hands to the handlers in matrix.isa.c.
 *
 * One rule gives every layout that the manual draws for mma (but m8n8k4 with f16): lanes 4g to 4g+3 hold row g of every
 * tile of 8 rows, each lane `run` elements side by side; tiles follow one another down the rows first. B is seen
 * transposed (N rows of K). For wmma, whose layout the manual leaves open, the same rule is used. */
#ifndef FF_EXEC_MATRIX_H
#define FF_EXEC_MATRIX_H

#include "exec/core.h"

#define MATRIX_REGISTERS 8u   /* of a fragment, at most */
#define MATRIX_ELEMENTS 1024u /* of A, B or C in the largest shape (m16n8k64); words for single bits */

typedef struct exec_fragment {
  uint8_t type; /* ptx_type of an element; b1 is seen as words of 32 */
  uint8_t registers;
  uint8_t distinct; /* how many registers hold elements of their own; the others repeat them (wmma, f16) */
  uint8_t packed;   /* elements per register */
  uint8_t run;      /* elements of a row that a lane holds side by side */
  uint8_t rows;     /* a multiple of 8 */
  uint8_t columns;  /* a multiple of 4 * run */
  uint32_t slot[MATRIX_REGISTERS];
} exec_fragment;

/* .block_scale ("Block Scaling for mma.sync"): of each row of A, or column of B, `scales` bytes from `byte` on. Rows g
 * and g + 8 of A have theirs in lanes 4g + 2 thread and the one after, column g of B in lane 4g + thread. All are
 * slots. */
typedef struct exec_scale {
  uint32_t data, byte, thread;
} exec_scale;

typedef struct exec_matrix { /* side data of mma, wmma.mma and movmatrix */
  exec_sync sync;            /* first: the lanes wait for one another */
  exec_fragment a, b, c, d;
  uint8_t saturates;          /* .satfinite */
  uint8_t ands;               /* b1: and.popc, else xor.popc */
  uint8_t a_column, b_column; /* m8n8k4 with f16: .col */
  /* mma.sp ("Sparse matrix storage"): `a` has K / 2 columns; of each chunk of a row of A four bits of metadata say
   * which of its columns these are. 0: dense. */
  uint8_t chunks;    /* in a row of A */
  uint8_t selector;  /* which lanes of a group of four hold the metadata */
  uint32_t metadata; /* slot */
  uint8_t scales;    /* .block_scale: factors along K; 0: without */
  uint8_t scale_type;
  exec_scale scale_a, scale_b;
} exec_matrix;

/* Where element `at` (register * packed + n) of lane 4g + t lies: row + g, column + t * run. */
typedef struct exec_tile {
  uint32_t row, column;
} exec_tile;
static inline exec_tile exec_tile_of(const exec_fragment *f, uint32_t at) {
  uint32_t tile = at / f->run, down = f->rows / 8u;
  return (exec_tile){tile % down * 8, tile / down * 4 * f->run + at % f->run};
}

/* Side data of MATRIX_ADDRESS: the address of one element, or of a run, in each lane. */
typedef struct exec_place_of_element {
  exec_tile tile;
  uint32_t run;
  uint32_t bits;        /* of an element in memory */
  uint32_t stride_bits; /* of what the stride counts */
  bool across;          /* neighbours of a row are a stride apart, else neighbours of a column */
  bool wide;
} exec_place_of_element;

#endif
