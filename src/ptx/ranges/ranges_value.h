/* SPDX-License-Identifier: Apache-2.0 */
/* The abstract values of the range analysis (ranges.h) and their arithmetic.
 *
 * A register of w bits holds, in block (x, y, z), the number `c[0] * x + c[1] * y + c[2] * z + e` modulo 2^w, where e
 * is in [lo, hi]; and over all blocks of the grid (or of those that get there) that number is in [min, max]. Adding,
 * subtracting and multiplying by a constant are exact modulo 2^w whatever wraps; where the number itself matters (a
 * comparison, a division, a widening) affine_as() first finds the number that the type reads, or gives the
 * bounds up.
 *
 * Of a value that is not `top`: lo <= hi, min <= max, min >= lo + least(c), max <= hi + most(c), with the least and the
 * most of c . (x, y, z) over the whole grid (affine_is_sound, at the deep level). Of a `top` only `points`, `zeros` and
 * `cause` are used. */
#ifndef FF_PTX_RANGES_VALUE_H
#define FF_PTX_RANGES_VALUE_H

#include <stdbool.h>
#include <stdint.h>

/* What a value may be an address into: bit i is segment i. */
/* a variable, a parameter, shared or local memory: no segment, address unknown */
#define AFFINE_OTHER (UINT64_C(1) << 62)
#define AFFINE_ANY (UINT64_C(1) << 63) /* came from memory, 64 bits: an address of anything */

typedef enum affine_cause { /* why nothing is known of a value */
                            AFFINE_COMPUTED,
                            AFFINE_LOADED,
                            AFFINE_ATOMIC,
                            AFFINE_EXCHANGED,
                            AFFINE_CALLED,
                            AFFINE_LOOPED,
                            AFFINE_CONVERTED
} affine_cause;

typedef struct affine {
  bool top;
  uint8_t zeros; /* so many low bits of the number are 0 */
  uint8_t cause; /* affine_cause */
  uint32_t line; /* of the cause; 0: none */
  uint32_t base; /* not 0: the value is that of a register at the head of a loop, + [step_lo, step_hi] */
  int64_t c[3], lo, hi, min, max;
  int64_t step_lo, step_hi;
  /* not 0: the value is that of a register at some moment, + root_offset, modulo 2^w; of a predicate: the */
  uint32_t root;
  int64_t root_offset; /* comparison that gave it */
  uint64_t points;
} affine;

/* The blocks that a statement is about: from first to last in each dimension. What is said of more blocks is true of
 * fewer. */
typedef struct affine_grid {
  int64_t first[3], last[3];
} affine_grid;

typedef struct affine_type { /* how an instruction reads a register */
  uint8_t bits;
  bool is_signed;
} affine_type;

bool affine_is_sound(const affine_grid *grid, const affine *v); /* the invariants above */
affine affine_constant(int64_t number);
affine affine_interval(int64_t min, int64_t max);
affine affine_top(uint32_t line, affine_cause cause);
bool affine_is_constant(const affine *v); /* one number, the same in all blocks */

/* Makes the bounds agree. False: there is no such number (the code is not reached). */
bool affine_tighten(const affine_grid *grid, affine *v);
/* The bounds of e if the value is written with other coefficients. */
void affine_reform(const affine_grid *grid, const affine *v, const int64_t c[3], int64_t *lo, int64_t *hi);

/* The number that the type reads; what does not fit becomes the type's whole range (`top` if that is unsigned 64
 * bits). */
affine affine_as(const affine_grid *grid, const affine *v, affine_type type);
affine affine_whole_type(affine_type type);

affine affine_add(const affine_grid *grid, const affine *a, const affine *b);
affine affine_subtract(const affine_grid *grid, const affine *a, const affine *b);
/* What a - b is modulo 2^w: known also if both come from one value. */
affine affine_difference(const affine_grid *grid, const affine *a, const affine *b);
affine affine_multiply(const affine_grid *grid, const affine *a, const affine *b);
/* Of numbers that a type has read: floor division, for v >= 0 or by a power of two, else as C rounds. by > 0. */
affine affine_divide(const affine_grid *grid, const affine *v, int64_t by, bool floor);
affine affine_remainder(const affine_grid *grid, const affine *v, int64_t by);
affine affine_and(const affine_grid *grid, const affine *a, const affine *b, affine_type type);
affine affine_or(const affine_grid *grid, const affine *a, const affine *b, affine_type type, bool exclusive);
affine affine_minimum(const affine_grid *grid, const affine *a, const affine *b);
affine affine_maximum(const affine_grid *grid, const affine *a, const affine *b);

/* The smallest value that covers both. */
affine affine_join(const affine_grid *grid, const affine *a, const affine *b);
/* The same where a is known of the blocks grid_a only, and b of grid_b: for the blocks of `grid`, which has both. */
affine affine_join_of(const affine_grid *grid, const affine_grid *grid_a, const affine *a, const affine_grid *grid_b,
                      const affine *b);
affine_grid affine_grid_join(const affine_grid *a, const affine_grid *b);
/* Leaves the blocks for which the value can be in its bounds; false: none. */
bool affine_grid_narrow(affine_grid *grid, const affine *v);
/* Both hold of one register. False: nothing does. */
bool affine_meet(const affine_grid *grid, const affine *a, const affine *b, uint8_t bits, affine *met);
bool affine_covers(const affine_grid *grid, const affine *outer, const affine *inner);
/* join, but so that it is reached in a few steps; `stage` counts them, from 0. */
affine affine_widen(const affine_grid *grid, const affine *old, const affine *new, uint8_t bits, uint32_t stage);
/* v + [0, times] steps, each in [step_lo, step_hi]. */
affine affine_repeat(const affine_grid *grid, const affine *v, int64_t step_lo, int64_t step_hi, int64_t times);

#endif
