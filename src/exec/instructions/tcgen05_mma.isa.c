/* SPDX-License-Identifier: Apache-2.0 */
/* tcgen05.mma for the threads that issue it, one after the other (PTX ISA, "TensorCore 5th Generation Matrix Multiply
 * and accumulate Operations").
 *
 * Sums are taken as those of mma and wgmma: in double precision, k ascending from D's element on, rounded once.
 *
 * In tensor memory (layouts D and F of "Data Path Layout Organization") row r of D is lane r where M is 128, and lane
 * r % 16 + r / 16 * 32 where it is 64; a column of D is a column. A is as D, a column having 32 bits of a row. Elements
 * of 4 and 6 bits have a byte each there, and in shared memory 16 bytes for sixteen of them. */
#include "exec/instructions/tcgen05_mma.h"

#include "exec/instructions/ops_half.h"
#include "exec/instructions/shared_matrix.h"
#include "exec/instructions/small_floats.h"

void ISA(core_tensor_mma)(exec_warp *x, const exec_instr *i);

typedef struct product { /* one mma of one thread */
  core_warp *w;
  const exec_instr *i;
  uint32_t lane;
  const exec_tensor_mma *m;
  tcgen05_description is;
  tensor_memory *memory;
  tensor_place d;
  uint32_t disabled[4]; /* a bit per lane of tensor memory */
  bool keeps;
} product;

/* ---- A and B: SHARED_DEPTH_BYTES a row ---- */

static _Noreturn void bad_descriptor(const product *p, char which, uint64_t descriptor, const char *why) {
  core_fault(p->w, p->i, p->lane, EXEC_FAULT_ILLEGAL_INSTRUCTION, 0, "the descriptor of matrix %c is 0x%016llx: %s",
             which, (unsigned long long)descriptor, why);
}

/* Swizzling modes by the descriptor's number; 1 has atoms of 32 bytes. */
static shared_matrix describe(const product *p, char which, uint64_t descriptor, ptx_type type, bool across) {
  static const uint8_t swizzles[8] = {[0] = TENSOR_MAP_SWIZZLE_NONE,
                                      [1] = TENSOR_MAP_SWIZZLE_128,
                                      [2] = TENSOR_MAP_SWIZZLE_128,
                                      [4] = TENSOR_MAP_SWIZZLE_64,
                                      [6] = TENSOR_MAP_SWIZZLE_32};
  uint32_t mode = (uint32_t)(descriptor >> 61);
  if ((descriptor >> 46 & 7) != 1) bad_descriptor(p, which, descriptor, "bits 46 to 48 are not 0b001");
  if (descriptor >> 53 & 0xff) bad_descriptor(p, which, descriptor, "bits 53 to 60 are not 0");
  if (descriptor >> 52 & 1) bad_descriptor(p, which, descriptor, "absolute addresses are sm_103a's");
  if (mode == 3 || mode == 5 || mode == 7) bad_descriptor(p, which, descriptor, "there is no such swizzling mode");
  if (mode == 1 && !across) bad_descriptor(p, which, descriptor, "atoms of 32 bytes are for transposed matrices");
  if (across && (mode == 1) != (type == PTX_TF32))
    bad_descriptor(p, which, descriptor,
                   type == PTX_TF32 ? "a transposed matrix of 32-bit elements needs atoms of 32 bytes"
                                    : "atoms of 32 bytes are for 32-bit elements");
  shared_matrix matrix = shared_matrix_of(descriptor, swizzles[mode]);
  matrix.wide_atoms = mode == 1;
  return matrix;
}

static void read_shared(const product *p, char which, uint32_t slot, ptx_type type, bool across, uint32_t rows,
                        unsigned char *to) {
  uint64_t descriptor = exec_u64(&p->w->x, slot)[p->lane];
  shared_matrix matrix = describe(p, which, descriptor, type, across);
  if (across) shared_columns(p->w, p->i, &matrix, ptx_type_bits(type) / 8, 0, rows, to);
  else shared_rows(p->w, p->i, &matrix, 0, rows, to);
}

INLINE uint32_t lane_of_row(const product *p, uint32_t row) {
  return p->is.rows == 64 ? row % 16 + row / 16 * 32 : row;
}

/* The lanes from the first to the last that a matrix of M rows has. */
static uint32_t lanes_of(const product *p) { return p->is.rows == 64 ? 112 : 128; }

static tensor_place place(const product *p, const bulk_address *a, uint32_t columns, const char *what) {
  uint32_t address = (uint32_t)core_bulk_address(p->w, a, p->lane), lane = address >> 16;
  if (lane && !(p->is.rows == 64 && lane == 16))
    core_fault(p->w, p->i, p->lane, EXEC_FAULT_ILLEGAL_ADDRESS, address,
               "%s begins in lane %u of tensor memory: with M %u it must begin in lane 0%s", what, lane, p->is.rows,
               p->is.rows == 64 ? " or 16" : "");
  return core_tensor_place(p->w, p->i, p->lane, p->memory, address, lanes_of(p), columns, what);
}

static void read_tensor(const product *p, unsigned char *to) {
  tensor_place at = place(p, &p->m->a, SHARED_DEPTH_BYTES / 4, "matrix A");
  if (at.lane != p->d.lane)
    core_fault(p->w, p->i, p->lane, EXEC_FAULT_ILLEGAL_ADDRESS, 0,
               "matrix A begins in lane %u of tensor memory, D in lane %u: they must begin in the same", at.lane,
               p->d.lane);
  for (uint32_t row = 0; row < p->is.rows; row++, to += SHARED_DEPTH_BYTES)
    memcpy(to, &p->memory->cells[at.lane + lane_of_row(p, row)][at.column], SHARED_DEPTH_BYTES);
}

/* ---- elements ---- */

/* Of 4 and 6 bits: the bits of element k, in a byte of tensor memory or among sixteen in shared memory. */
INLINE uint32_t tiny_bits(const unsigned char *row, uint32_t k, uint32_t width, bool in_tensor) {
  if (in_tensor) return width == 4 ? row[k] >> 2 & 15 : row[k] & 63;
  uint32_t at = k % 16 * width;
  uint16_t word;
  memcpy(&word, row + k / 16 * 16 + at / 8, 2);
  return word >> at % 8 & ((1u << width) - 1);
}

/* Element k of a row; small: the numbers of a type of 8 bits and less. */
INLINE double real_of(ptx_type type, const double *small, const unsigned char *row, uint32_t k, bool in_tensor) {
  uint16_t half;
  uint32_t word;
  switch (type) {
  case PTX_F16: memcpy(&half, row + 2 * k, 2); return ops_of_f16(half);
  case PTX_BF16: memcpy(&half, row + 2 * k, 2); return ops_of_bf16(half);
  case PTX_TF32: memcpy(&word, row + 4 * k, 4); return ops_f32_of(word & 0xffffe000u);
  case PTX_E4M3:
  case PTX_E5M2: return small[row[k]];
  default: return small[tiny_bits(row, k, ptx_type_bits(type), in_tensor)];
  }
}

INLINE int32_t integer_of(ptx_type type, const unsigned char *row, uint32_t k) {
  return type == PTX_S8 ? (int8_t)row[k] : row[k];
}

/* ---- D ---- */

INLINE bool is_disabled(const product *p, uint32_t lane) { return p->disabled[lane / 32] >> lane % 32 & 1; }

static void read_sums(const product *p, const uint32_t *cells, double *sum) {
  uint32_t columns = p->is.columns;
  double scale = 1.0 / (1u << p->m->scale);
  if (!p->keeps) memset(sum, 0, columns * sizeof *sum);
  else if (p->is.d_type == PTX_F16)
    for (uint32_t n = 0; n < columns; n++) sum[n] = scale * ops_of_f16(cells[n] & 0xffff);
  else
    for (uint32_t n = 0; n < columns; n++) sum[n] = scale * ops_f32_of(cells[n]);
}

static void write_sums(const product *p, const double *sum, uint32_t *cells) {
  uint32_t columns = p->is.columns;
  for (uint32_t n = 0; n < columns; n++) {
    float single = (float)sum[n];
    if (p->is.d_type == PTX_F16) cells[n] = ops_f16_rn(ops_odd32(sum[n]));
    else cells[n] = single != single ? 0x7fffffffu : ops_u32_of(single);
  }
}

/* ---- products ---- */

static void multiply_reals(const product *p, const unsigned char *a, const unsigned char *b) {
  uint32_t columns = p->is.columns, depth = p->is.depth;
  double across[TCGEN05_DEPTH * TCGEN05_COLUMNS], left[TCGEN05_DEPTH], sum[TCGEN05_COLUMNS];
  ptx_type a_type = (ptx_type)p->is.a_type, b_type = (ptx_type)p->is.b_type;
  const double *a_small = small_floats(a_type), *b_small = small_floats(b_type);
  bool negated = p->is.a_negated != p->is.b_negated;
  for (uint32_t n = 0; n < columns; n++)
    for (uint32_t k = 0; k < depth; k++)
      across[k * columns + n] = real_of(b_type, b_small, b + n * SHARED_DEPTH_BYTES, k, false);
  for (uint32_t row = 0; row < p->is.rows; row++, a += SHARED_DEPTH_BYTES) {
    uint32_t lane = p->d.lane + lane_of_row(p, row), *cells = &p->memory->cells[lane][p->d.column];
    if (is_disabled(p, lane)) continue;
    for (uint32_t k = 0; k < depth; k++) left[k] = real_of(a_type, a_small, a, k, p->m->a_in_tensor);
    read_sums(p, cells, sum);
    for (uint32_t k = 0; k < depth; k++) {
      double factor = negated ? -left[k] : left[k];
      const double *right = across + k * columns;
      for (uint32_t n = 0; n < columns; n++) sum[n] += factor * right[n];
    }
    write_sums(p, sum, cells);
  }
}

INLINE uint32_t limited(int64_t sum, bool saturates) {
  if (saturates) sum = sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum;
  return (uint32_t)(uint64_t)sum;
}

static void multiply_integers(const product *p, const unsigned char *a, const unsigned char *b) {
  uint32_t columns = p->is.columns, depth = p->is.depth;
  int32_t across[TCGEN05_DEPTH * TCGEN05_COLUMNS], sum[TCGEN05_COLUMNS];
  for (uint32_t n = 0; n < columns; n++)
    for (uint32_t k = 0; k < depth; k++)
      across[k * columns + n] = integer_of((ptx_type)p->is.b_type, b + n * SHARED_DEPTH_BYTES, k);
  for (uint32_t row = 0; row < p->is.rows; row++, a += SHARED_DEPTH_BYTES) {
    uint32_t lane = p->d.lane + lane_of_row(p, row), *cells = &p->memory->cells[lane][p->d.column];
    if (is_disabled(p, lane)) continue;
    memset(sum, 0, columns * sizeof *sum);
    for (uint32_t k = 0; k < depth; k++) { /* 32 products of 16 bits */
      int32_t factor = integer_of((ptx_type)p->is.a_type, a, k), *right = across + k * columns;
      for (uint32_t n = 0; n < columns; n++) sum[n] += factor * right[n];
    }
    for (uint32_t n = 0; n < columns; n++)
      cells[n] = limited((p->keeps ? (int64_t)(int32_t)cells[n] : 0) + sum[n], p->is.saturates);
  }
}

static void multiply(core_warp *w, const exec_instr *i, uint32_t lane) {
  const exec_tensor_mma *m = i->side;
  product p = {.w = w, .i = i, .lane = lane, .m = m};
  unsigned char a[TCGEN05_ROWS * SHARED_DEPTH_BYTES], b[TCGEN05_COLUMNS * SHARED_DEPTH_BYTES];
  p.memory = core_tensor_memory(w, i, lane, m->group);
  p.is = core_tensor_describe(w, i, lane, exec_u32(&w->x, m->description)[lane]);
  p.d = place(&p, &m->d, p.is.columns, "matrix D");
  uint32_t predicate = *exec_pred(&w->x, m->keeps);
  p.keeps = ((m->keeps_negated ? ~predicate : predicate) >> lane & 1) != 0;
  for (uint32_t n = 0; m->masks && n < 4; n++) p.disabled[n] = exec_u32(&w->x, m->mask[n])[lane];
  if (m->a_in_tensor) read_tensor(&p, a);
  else read_shared(&p, 'A', m->a_descriptor, (ptx_type)p.is.a_type, p.is.a_across, p.is.rows, a);
  read_shared(&p, 'B', m->b_descriptor, (ptx_type)p.is.b_type, p.is.b_across, p.is.columns, b);
  if (p.is.d_type == PTX_S32) multiply_integers(&p, a, b);
  else multiply_reals(&p, a, b);
}

void ISA(core_tensor_mma)(exec_warp *x, const exec_instr *i) {
  core_warp *w = (core_warp *)x;
  for (uint32_t lanes = w->active; lanes; lanes &= lanes - 1) multiply(w, i, (uint32_t)__builtin_ctz(lanes));
}
