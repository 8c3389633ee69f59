/* SPDX-License-Identifier: Apache-2.0 */
/* What a pass of a transform is: one launch that transforms many lines of `length` elements, each within one block.
 * Host and kernels share this file, so it has plain types and nothing else; a pass lies in device memory, written when
 * its plan is made.
 *
 * A line takes one element of every loop. The address of element p of a line, in elements of the buffer's format:
 *
 *   position = sum of index x loop.in_position + p x in_step          within the dimension that is transformed
 *   address  = sum of index x loop.in + position x in_stride
 *
 * and the same with out_ for element k of the result. Every pass is a forward transform; an inverse one swaps the real
 * and the imaginary parts before and after. Between the two, in this order:
 *
 *   load:  mirror (a real signal's half spectrum), swap, x before[position]
 *   store: x turn (k x sum of index x loop.turn), swap, x after[position], swap */
#ifndef FF_CUFFT_PASS_H
#define FF_CUFFT_PASS_H

enum {
  CUFFT_PASS_LOOPS = 12,
  CUFFT_PASS_STAGES = 12,
  /* 8 bytes each that a block has for a line, in front of its data in shared memory; even: data is aligned to 16
   * bytes */
  CUFFT_PASS_BASES = 6,
  CUFFT_THREADS_MAX = 256,
  CUFFT_PASS_PAD = 4 /* after 2^4 elements in shared memory one is left free */
};

/* Butterflies of a radix that a thread has at a time: some 12 to 16 elements, that all radices need about as many
 * registers. */
#define CUFFT_BUTTERFLIES(radix) ((radix) >= 9 ? 1 : (radix) >= 6 ? 2 : (radix) == 5 ? 3 : 4)

enum cufft_format {
  CUFFT_COMPLEX,
  CUFFT_REAL,
  CUFFT_HALF_COMPLEX,
  CUFFT_HALF_REAL,
  CUFFT_BFLOAT_COMPLEX,
  CUFFT_BFLOAT_REAL
};

/* When parts are swapped. Inverse: if the plan is executed as an inverse transform. */
enum cufft_swap { CUFFT_SWAP_NEVER, CUFFT_SWAP_ALWAYS, CUFFT_SWAP_INVERSE };

typedef struct cufft_stage {
  unsigned radix;
  unsigned before;                          /* product of the radices of earlier stages */
  unsigned butterflies;                     /* of a line: length / radix */
  unsigned turn_step;                       /* length / (before x radix) */
  unsigned by_lines;                        /* 1: adjacent threads have adjacent lines; 0: adjacent butterflies */
  unsigned before_magic, butterflies_magic; /* for divisions */
} cufft_stage;

typedef struct cufft_loop {
  unsigned long long count;
  long long in, out, in_position, out_position, turn;
} cufft_loop;

typedef struct cufft_pass {
  unsigned long long turns;         /* device addresses of tables. e(k / length), k < length */
  unsigned long long fine, coarse;  /* e(k / modulus), k < 2^fine_bits; e(k x 2^fine_bits / modulus); 0: no turn */
  unsigned long long before, after; /* 0: none */
  unsigned long long lines;
  long long in_step, in_stride, out_step, out_stride;
  unsigned long long in_limit, out_limit; /* positions from there on are read as 0, and not written */
  /* positions above half of it are read at mirror - position, conjugated; 0: none */
  unsigned long long mirror;
  unsigned length, length_magic, lines_per_block, lines_magic; /* magic: for divisions by the other */
  unsigned position_pitch, line_pitch;                         /* in shared memory, elements */
  unsigned in_format, out_format;
  unsigned swap_load, swap_store, swap_after;
  unsigned fine_bits;
  unsigned loop_count, stage_count;
  cufft_loop loops[CUFFT_PASS_LOOPS]; /* the first is the fastest */
  cufft_stage stages[CUFFT_PASS_STAGES];
} cufft_pass;

#endif
