/* SPDX-License-Identifier: Apache-2.0 */
/* A transform as its passes: what the stand-in for cuFFT decides on the host, without a GPU.
 *
 * A dimension whose length is a product of 2, 3, 5 and 7 takes one pass if a line fits into a block, else one per
 * factor of the length (Cooley and Tukey; Bailey's "four-step" order). Any other length n becomes a convolution with a
 * chirp, by two transforms of a power of two of at least 2n - 1 (Bluestein).
 *
 *   a pass reads and writes buffers: the caller's two and up to three pieces of the work area
 *   every element of the result is written once, and never before all of its line was read: so lines may be transformed
 *   in place */
#ifndef FF_CUFFT_PLAN_H
#define FF_CUFFT_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "driver/stand_ins/cufft/cufft_pass.h"

enum { CUFFT_RANKS = 3 };

typedef enum cufft_kind { CUFFT_KIND_C2C, CUFFT_KIND_R2C, CUFFT_KIND_C2R } cufft_kind;

/* How an array lies in memory, in elements of its format; strides of the dimensions, the fastest last. */
typedef struct cufft_layout {
  enum cufft_format format;
  int64_t strides[CUFFT_RANKS], distance; /* distance: of two transforms of the batch */
} cufft_layout;

typedef struct cufft_shape {
  int rank;
  int64_t lengths[CUFFT_RANKS], batch; /* of the signal: all at least 1 */
  cufft_kind kind;
  bool is_double;
  bool bluestein_only;
  cufft_layout in, out; /* in the place of the plan's: differ where it is executed in place */
} cufft_shape;

typedef enum cufft_buffer { CUFFT_IN, CUFFT_OUT, CUFFT_WORK_A, CUFFT_WORK_B, CUFFT_WORK_C, CUFFT_BUFFERS } cufft_buffer;

typedef enum cufft_table_kind {
  CUFFT_TABLE_TURNS,   /* e(k / length), k < count */
  CUFFT_TABLE_COARSE,  /* e(k x step / length), k < count */
  CUFFT_TABLE_CHIRP,   /* exp(-pi i k^2 / length), k < count */
  CUFFT_TABLE_SPECTRUM /* of the conjugated chirp of `length`, cyclic in `count`, divided by count */
} cufft_table_kind;

typedef struct cufft_table {
  cufft_table_kind kind;
  uint64_t length, count, step;
  uint64_t offset; /* in the plan's tables, bytes */
} cufft_table;

enum { CUFFT_NO_TABLE = -1 };

/* A pass as it will be launched. The tables' addresses in `pass` are filled in when the tables have one. */
typedef struct cufft_step {
  cufft_pass pass;
  cufft_buffer from, to;
  int turns, fine, coarse, before, after; /* tables, by number, or CUFFT_NO_TABLE */
  unsigned threads, shared_bytes;
  uint64_t blocks;
  bool mixed, special; /* which kernel */
} cufft_step;

typedef FF_VEC(cufft_step) cufft_steps;
typedef FF_VEC(cufft_table) cufft_tables;

typedef struct cufft_program {
  cufft_steps steps;
  uint64_t work_bytes[CUFFT_BUFFERS]; /* of CUFFT_WORK_*; the caller's are 0 */
} cufft_program;

/* The passes of a transform, and the tables they need in addition to those that are there. in_place: the two buffers
 * are one. The owner frees both with cufft_program_free and free(tables->items). False: lengths are too large for 63
 * bits. */
bool cufft_program_make(const cufft_shape *shape, bool in_place, cufft_program *program, cufft_tables *tables);
void cufft_program_free(cufft_program *program);

/* Where the tables lie behind each other; the bytes of all. */
uint64_t cufft_tables_place(cufft_tables *tables, bool is_double);
/* Their numbers, in that many bytes. */
void cufft_tables_fill(const cufft_tables *tables, bool is_double, void *bytes);

/* Bytes of an element. */
size_t cufft_format_bytes(enum cufft_format format, bool is_double);

#endif
