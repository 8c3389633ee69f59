/* SPDX-License-Identifier: Apache-2.0 */
/* mma, wmma.mma and movmatrix for a whole warp, and the addresses by which wmma.load, wmma.store, ldmatrix and stmatrix
 * become ordinary accesses.
 *
 * Products of f16, bf16, tf32 and fp8 elements are summed as the device's tensor cores do (tensor_sum.h); those with
 * scales in double precision, k ascending from C's element on, and rounded once to the result's type. f64 is a chain of
 * fused multiply-adds in the same order. */
#include "exec/instructions/matrix.h"
#include "exec/instructions/lanes.h"
#include "exec/instructions/ops_half.h"
#include "exec/instructions/small_floats.h"
#include "exec/instructions/sparse.h"
#include "exec/instructions/tensor_sum.h"

void ISA(core_mma)(exec_warp *x, const exec_instr *i);
void ISA(core_quad_mma)(exec_warp *x, const exec_instr *i);
void ISA(core_movmatrix)(exec_warp *x, const exec_instr *i);
void ISA(core_matrix_address)(exec_warp *x, const exec_instr *i);
void ISA(core_row_address)(exec_warp *x, const exec_instr *i);

/* ---- fragments to matrices and back ---- */

/* e2m3 and e3m2 in the low bits of a byte, e2m1 in its middle or, eight in a register, without room around it ("Matrix
 * fragments for mma.m16n8k32" and "... m16n8k64"). */
INLINE double tiny_float(const exec_fragment *f, uint32_t bits) {
  if (f->type == PTX_E2M3) return finite_float(bits & 0x3f, 2, 3);
  if (f->type == PTX_E3M2) return finite_float(bits & 0x3f, 3, 2);
  return finite_float((f->packed == 8 ? bits : bits >> 2) & 0xf, 2, 1);
}

/* Element n of a register, in all lanes. */
INLINE void reals_of(const exec_warp *x, const exec_fragment *f, uint32_t r, uint32_t n, double value[32]) {
  const uint32_t *word = exec_u32(x, f->slot[r]);
  uint32_t shift = n * 32 / f->packed;
  switch ((ptx_type)f->type) {
  case PTX_F16: EVERY_LANE value[l] = ops_of_f16(word[l] >> shift & 0xffff); break;
  case PTX_BF16: EVERY_LANE value[l] = ops_of_bf16(word[l] >> shift & 0xffff); break;
  case PTX_TF32: EVERY_LANE value[l] = ops_f32_of(word[l] & 0xffffe000u); break;
  case PTX_E4M3:
    for (uint32_t l = 0; l < 32; l++) value[l] = small_float(word[l] >> shift & 0xff, 4, 3, false);
    break;
  case PTX_E5M2:
    for (uint32_t l = 0; l < 32; l++) value[l] = small_float(word[l] >> shift & 0xff, 5, 2, true);
    break;
  case PTX_E2M1:
  case PTX_E2M3:
  case PTX_E3M2:
    for (uint32_t l = 0; l < 32; l++) value[l] = tiny_float(f, word[l] >> shift);
    break;
  case PTX_F64: memcpy(value, exec_u64(x, f->slot[r]), 32 * sizeof *value); break;
  default: EVERY_LANE value[l] = ops_f32_of(word[l]); break;
  }
}

INLINE void integers_of(const exec_warp *x, const exec_fragment *f, uint32_t r, uint32_t n, int32_t value[32]) {
  const uint32_t *word = exec_u32(x, f->slot[r]);
  uint32_t bits = 32u / f->packed, left = 32 - bits - n * bits, right = 32 - bits;
  bool is_signed = ptx_type_class((ptx_type)f->type) == 'S';
  if (is_signed) EVERY_LANE value[l] = (int32_t)(word[l] << left) >> right;
  else EVERY_LANE value[l] = (int32_t)(word[l] << left >> right);
}

/* For every element that the fragment holds: its lane values are moved to or from the matrix (rows by columns). */
#define EACH_ELEMENT(f)                                    \
  for (uint32_t r_ = 0, at_ = 0; r_ < (f)->distinct; r_++) \
    for (uint32_t n_ = 0; n_ < (f)->packed; n_++, at_++)

INLINE void read_reals(const exec_warp *x, const exec_fragment *f, double *matrix) {
  EACH_ELEMENT(f) {
    double value[32];
    exec_tile tile = exec_tile_of(f, at_);
    reals_of(x, f, r_, n_, value);
    for (uint32_t l = 0; l < 32; l++) matrix[(tile.row + l / 4) * f->columns + tile.column + l % 4 * f->run] = value[l];
  }
}

INLINE void read_integers(const exec_warp *x, const exec_fragment *f, int32_t *matrix) {
  EACH_ELEMENT(f) {
    int32_t value[32];
    exec_tile tile = exec_tile_of(f, at_);
    integers_of(x, f, r_, n_, value);
    for (uint32_t l = 0; l < 32; l++) matrix[(tile.row + l / 4) * f->columns + tile.column + l % 4 * f->run] = value[l];
  }
}

INLINE uint32_t single_bits(double value) {
  float rounded = (float)value;
  return rounded != rounded ? 0x7fffffffu : ops_u32_of(rounded);
}

/* Element n of a register, in the mask's lanes; what the register holds besides it stays. */
INLINE void set_reals(const exec_warp *x, const exec_fragment *f, uint32_t r, uint32_t n, uint32_t mask,
                      const double value[32]) {
  uint32_t word[32], *to = exec_u32(x, f->slot[r]), shift = n * 16, kept = ~(0xffffu << shift);
  switch ((ptx_type)f->type) {
  case PTX_F64:
    EACH_LANE(mask)
    exec_u64(x, f->slot[r])[l] = value[l] != value[l] ? UINT64_C(0x7fffffffffffffff) : ops_u64_of(value[l]);
    return;
  case PTX_F16: EVERY_LANE word[l] = (to[l] & kept) | ops_f16_rn(ops_odd32(value[l])) << shift; break;
  default: EVERY_LANE word[l] = single_bits(value[l]); break;
  }
  lanes_copy32(to, word, mask);
}

INLINE void write_reals(const core_warp *w, const exec_fragment *f, const double *matrix) {
  EACH_ELEMENT(f) {
    double value[32];
    exec_tile tile = exec_tile_of(f, at_);
    for (uint32_t l = 0; l < 32; l++) value[l] = matrix[(tile.row + l / 4) * f->columns + tile.column + l % 4 * f->run];
    set_reals(&w->x, f, r_, n_, w->active, value);
  }
}

INLINE void write_integers(const core_warp *w, const exec_fragment *f, const int32_t *matrix) {
  EACH_ELEMENT(f) {
    exec_tile tile = exec_tile_of(f, at_);
    uint32_t *word = exec_u32(&w->x, f->slot[r_]);
    EACH_LANE(w->active) word[l] = (uint32_t)matrix[(tile.row + l / 4) * f->columns + tile.column + l % 4 * f->run];
  }
}

/* ---- which columns A has ---- */

/* For every element of the packed A its column. */
static void matrix_columns(const exec_warp *x, const exec_matrix *mma, uint8_t *column) {
  const uint32_t *metadata = exec_u32(x, mma->metadata);
  for (uint32_t m = 0; m < mma->a.rows; m++)
    sparse_row_columns(metadata, 32u / mma->a.packed, mma->a.columns, mma->selector, m, column + m * mma->a.columns);
}

/* ---- D = A * B + C: a is M x K, b is N x K, c is M x N ---- */

typedef struct sizes {
  uint32_t m, n, k;
} sizes;

/* b seen as K x N */
static void turn(sizes s, const double *b, double *across) {
  for (uint32_t n = 0; n < s.n; n++)
    for (uint32_t k = 0; k < s.k; k++) across[k * s.n + n] = b[n * s.k + k];
}

/* In double precision, k ascending from C's element on. */
static void multiply_doubles(sizes s, const double *a, const double *b, double *c, bool fused) {
  double across[MATRIX_ELEMENTS];
  turn(s, b, across);
  for (uint32_t m = 0; m < s.m; m++) {
    double *row = c + m * s.n;
    for (uint32_t k = 0; k < s.k; k++) {
      double left = a[m * s.k + k];
      const double *right = across + k * s.n;
      if (fused)
        for (uint32_t n = 0; n < s.n; n++) row[n] = ops_fma64(left, right[n], row[n]);
      else
        for (uint32_t n = 0; n < s.n; n++) row[n] += left * right[n];
    }
  }
}

/* As the tensor cores. a is M x `held`; column: NULL, or which column each of A's elements stands in. */
static void multiply_reals(const core_warp *w, const exec_matrix *mma, sizes s, uint32_t held, const uint8_t *column,
                           const double *a, const double *b, double *c) {
  double across[MATRIX_ELEMENTS];
  int32_t left[MATRIX_ELEMENTS], right[MATRIX_ELEMENTS];
  tensor_rule rule = tensor_rule_of(w->launch->config->compute, (ptx_type)mma->a.type, false);
  turn(s, b, across);
  tensor_exponents(a, s.m * held, (ptx_type)mma->a.type, left);
  tensor_exponents(across, s.k * s.n, (ptx_type)mma->b.type, right);
  for (uint32_t m = 0; m < s.m; m++) {
    tensor_operands o = {.left = a + m * held,
                         .across = across,
                         .left_exponents = left + m * held,
                         .across_exponents = right,
                         .row = column ? column + m * held : NULL,
                         .count = held,
                         .columns = s.n,
                         .stride = s.n};
    tensor_sum(&o, rule, (ptx_type)mma->d.type, c + m * s.n);
  }
}

/* ---- factors of blocks ---- */

static double scale_of(uint8_t type, uint32_t byte) {
  if (type == PTX_UE4M3) return small_float(byte & 0x7f, 4, 3, false);
  return byte == 0xff ? __builtin_nan("") : ldexp(1, (int32_t)byte - 127); /* ue8m0 */
}

/* Multiplies each row, of B each column, by its factors. */
static void scale_rows(const exec_warp *x, const exec_matrix *mma, bool is_a, double *matrix) {
  const exec_scale *s = is_a ? &mma->scale_a : &mma->scale_b;
  const exec_fragment *f = is_a ? &mma->a : &mma->b;
  const uint32_t *words = exec_u32(x, s->data);
  uint32_t first = exec_u32(x, s->byte)[0], thread = exec_u32(x, s->thread)[0], length = f->columns / mma->scales;
  for (uint32_t row = 0; row < f->rows; row++) {
    uint32_t lane = is_a ? row % 8 * 4 + (thread & 1) * 2 + row / 8 : row * 4 + (thread & 3);
    for (uint32_t n = 0; n < mma->scales; n++) {
      double scale = scale_of(mma->scale_type, words[lane] >> ((first + n) % 4 * 8) & 0xff);
      for (uint32_t k = n * length; k < (n + 1) * length; k++) matrix[row * f->columns + k] *= scale;
    }
  }
}

/* a is M x K / 2; element k of a row stands in that column. */
static void multiply_sparse_reals(const exec_matrix *mma, const uint8_t *column, const double *a, const double *b,
                                  double *c) {
  uint32_t held = mma->a.columns, depth = mma->b.columns;
  for (uint32_t m = 0; m < mma->a.rows; m++)
    for (uint32_t n = 0; n < mma->b.rows; n++) {
      double *sum = &c[m * mma->b.rows + n];
      for (uint32_t k = 0; k < held; k++) *sum += a[m * held + k] * b[n * depth + column[m * held + k]];
    }
}

static void real_mma(core_warp *w, const exec_matrix *mma) {
  double a[MATRIX_ELEMENTS], b[MATRIX_ELEMENTS], c[MATRIX_ELEMENTS];
  read_reals(&w->x, &mma->a, a);
  read_reals(&w->x, &mma->b, b);
  read_reals(&w->x, &mma->c, c);
  if (mma->scales) {
    scale_rows(&w->x, mma, true, a);
    scale_rows(&w->x, mma, false, b);
  }
  uint8_t column[MATRIX_ELEMENTS];
  sizes s = {mma->a.rows, mma->b.rows, mma->b.columns};
  if (mma->chunks) matrix_columns(&w->x, mma, column);
  if (mma->scales && mma->chunks) multiply_sparse_reals(mma, column, a, b, c);
  else if (mma->scales || mma->a.type == PTX_F64) multiply_doubles(s, a, b, c, mma->a.type == PTX_F64);
  else multiply_reals(w, mma, s, mma->a.columns, mma->chunks ? column : NULL, a, b, c);
  write_reals(w, &mma->d, c);
}

INLINE int32_t accumulated(int64_t sum, bool saturates) {
  if (saturates) sum = sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum;
  return (int32_t)(uint32_t)(uint64_t)sum;
}

static void sparse_integer_mma(core_warp *w, const exec_matrix *mma) {
  int32_t a[MATRIX_ELEMENTS], b[MATRIX_ELEMENTS], c[MATRIX_ELEMENTS];
  uint8_t column[MATRIX_ELEMENTS];
  read_integers(&w->x, &mma->a, a);
  read_integers(&w->x, &mma->b, b);
  read_integers(&w->x, &mma->c, c);
  matrix_columns(&w->x, mma, column);
  uint32_t held = mma->a.columns, depth = mma->b.columns;
  for (uint32_t m = 0; m < mma->a.rows; m++)
    for (uint32_t n = 0; n < mma->b.rows; n++) {
      int32_t sum = 0; /* at most 64 products of 16 bits */
      for (uint32_t k = 0; k < held; k++) sum += a[m * held + k] * b[n * depth + column[m * held + k]];
      c[m * mma->b.rows + n] = accumulated((int64_t)c[m * mma->b.rows + n] + sum, mma->saturates);
    }
  write_integers(w, &mma->d, c);
}

static void integer_mma(core_warp *w, const exec_matrix *mma) {
  int32_t a[MATRIX_ELEMENTS], b[MATRIX_ELEMENTS], c[MATRIX_ELEMENTS];
  read_integers(&w->x, &mma->a, a);
  read_integers(&w->x, &mma->b, b);
  read_integers(&w->x, &mma->c, c);
  uint32_t depth = mma->a.columns;
  for (uint32_t m = 0; m < mma->a.rows; m++)
    for (uint32_t n = 0; n < mma->b.rows; n++) {
      const int32_t *left = a + m * depth, *right = b + n * depth;
      int32_t sum = 0; /* at most 64 products of 16 bits */
      if (mma->a.type != PTX_B1)
        for (uint32_t k = 0; k < depth; k++) sum += left[k] * right[k];
      else
        for (uint32_t k = 0; k < depth; k++)
          sum += __builtin_popcount((uint32_t)(mma->ands ? left[k] & right[k] : left[k] ^ right[k]));
      c[m * mma->b.rows + n] = accumulated((int64_t)c[m * mma->b.rows + n] + sum, mma->saturates);
    }
  write_integers(w, &mma->d, c);
}

void ISA(core_mma)(exec_warp *x, const exec_instr *i) {
  const exec_matrix *matrix = i->side;
  if (matrix->chunks && matrix->c.type == PTX_S32) sparse_integer_mma((core_warp *)x, matrix);
  else if (matrix->c.type == PTX_S32) integer_mma((core_warp *)x, matrix);
  else real_mma((core_warp *)x, matrix);
}

/* ---- m8n8k4 with f16: four products, each by eight lanes (4q to 4q+3, and 16 more) ---- */

typedef struct quad_place {
  uint32_t row, column;
} quad_place;

/* Element e of A, of B seen transposed, or of C, in lane l. */
static quad_place quad_multiplicand(uint32_t l, uint32_t e, bool rows_by_lane) {
  uint32_t high = l >= 16 ? 4 : 0;
  return rows_by_lane ? (quad_place){l % 4 + high, e} : (quad_place){e + high, l % 4};
}
static quad_place quad_accumulator(uint32_t l, uint32_t e, bool half) {
  uint32_t high = l >= 16 ? 4 : 0;
  if (half) return (quad_place){l % 4 + high, e};
  return (quad_place){(l & 1) + (e & 2) + high, (e & 4) + (l & 2) + (e & 1)};
}

void ISA(core_quad_mma)(exec_warp *x, const exec_instr *i) {
  core_warp *w = (core_warp *)x;
  const exec_matrix *mma = i->side;
  double a[4][32], b[4][32], c[4][64], value[32];
  for (uint32_t e = 0; e < 4; e++) {
    reals_of(x, &mma->a, e / 2, e % 2, value);
    for (uint32_t l = 0; l < 32; l++) {
      quad_place at = quad_multiplicand(l, e, !mma->a_column);
      a[l % 16 / 4][at.row * 4 + at.column] = value[l];
    }
    reals_of(x, &mma->b, e / 2, e % 2, value);
    for (uint32_t l = 0; l < 32; l++) {
      quad_place at = quad_multiplicand(l, e, mma->b_column);
      b[l % 16 / 4][at.row * 4 + at.column] = value[l];
    }
  }
  for (uint32_t e = 0; e < 8; e++) {
    reals_of(x, &mma->c, e / mma->c.packed, e % mma->c.packed, value);
    for (uint32_t l = 0; l < 32; l++) {
      quad_place at = quad_accumulator(l, e, mma->c.type == PTX_F16);
      c[l % 16 / 4][at.row * 8 + at.column] = value[l];
    }
  }
  for (uint32_t q = 0; q < 4; q++) multiply_reals(w, mma, (sizes){8, 8, 4}, 4, NULL, a[q], b[q], c[q]);
  EACH_LANE(w->active)
  for (uint32_t e = 0; e < 8; e++) {
    quad_place at = quad_accumulator(l, e, mma->d.type == PTX_F16);
    double sum = c[l % 16 / 4][at.row * 8 + at.column];
    uint32_t *word = &exec_u32(x, mma->d.slot[e / mma->d.packed])[l], shift = e % 2 * 16;
    if (mma->d.type == PTX_F16) *word = (*word & ~(0xffffu << shift)) | ops_f16_rn(ops_odd32(sum)) << shift;
    else *word = single_bits(sum);
  }
}

/* ---- movmatrix: the transpose of 8 x 8 elements of 16 bits ---- */

void ISA(core_movmatrix)(exec_warp *x, const exec_instr *i) {
  const exec_matrix *matrix = i->side;
  uint32_t from[32];
  memcpy(from, exec_u32(x, matrix->a.slot[0]), sizeof from);
  uint32_t *to = exec_u32(x, matrix->d.slot[0]);
  EACH_LANE(((core_warp *)x)->active) {
    uint32_t row = l / 4, column = l % 4 * 2, shift = row % 2 * 16; /* element (column, row) of the source */
    uint32_t low = from[column * 4 + row / 2] >> shift & 0xffff,
             high = from[(column + 1) * 4 + row / 2] >> shift & 0xffff;
    to[l] = low | high << 16;
  }
}

/* ---- addresses ---- */

/* dst = src[0] + the place of an element of a matrix whose rows or columns are src[1] elements apart. */
void ISA(core_matrix_address)(exec_warp *x, const exec_instr *i) {
  const exec_place_of_element *e = i->side;
  const uint32_t *stride = exec_u32(x, i->src[1]);
  EACH_LANE(x->mask) {
    uint64_t row = e->tile.row + l / 4, column = e->tile.column + l % 4 * (uint64_t)e->run;
    uint64_t apart = (uint64_t)stride[l] * e->stride_bits,
             bits = e->across ? column * apart + row * e->bits : row * apart + column * e->bits;
    if (e->wide) exec_u64(x, i->dst)[l] = exec_u64(x, i->src[0])[l] + bits / 8;
    else exec_u32(x, i->dst)[l] = exec_u32(x, i->src[0])[l] + (uint32_t)(bits / 8);
  }
}

/* dst = the address that another lane has of a row of 16 bytes + this lane's place in it. aux: matrix | element << 8 |
 * transposed << 16 | wide << 17 */
void ISA(core_row_address)(exec_warp *x, const exec_instr *i) {
  uint32_t matrix = i->aux & 0xff, element = i->aux >> 8 & 0xff;
  bool transposed = i->aux >> 16 & 1, wide = i->aux >> 17 & 1;
  EACH_LANE(x->mask) {
    uint32_t row = transposed ? l % 4 * 2 + element : l / 4, add = transposed ? l / 4 * 2 : l % 4 * 4,
             from = matrix * 8 + row;
    if (wide) exec_u64(x, i->dst)[l] = exec_u64(x, i->src[0])[from] + add;
    else exec_u32(x, i->dst)[l] = exec_u32(x, i->src[0])[from] + add;
  }
}
