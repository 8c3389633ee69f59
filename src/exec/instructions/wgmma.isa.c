/* SPDX-License-Identifier: Apache-2.0 */
/* wgmma.mma_async, dense and sparse, for one of its four warps. It is asynchronous; here it is over when it is issued:
 * a program may neither read D nor change A and B before it has waited, and wgmma.wait_group waits for all four warps.
 *
 * Sums are taken as the device's tensor cores do (tensor_sum.h). */
#include "exec/instructions/wgmma.h"

#include <inttypes.h>

#include "exec/instructions/lanes.h"
#include "exec/instructions/ops_half.h"
#include "exec/instructions/shared_matrix.h"
#include "exec/instructions/small_floats.h"
#include "exec/instructions/sparse.h"
#include "exec/instructions/tensor_sum.h"

void ISA(core_wgmma)(exec_warp *x, const exec_instr *i);

_Static_assert(WGMMA_A_BYTES == SHARED_DEPTH_BYTES, "a row of A has 32 bytes");

/* ---- matrices in shared memory ---- */

static void read_shared(core_warp *w, const exec_instr *i, uint64_t descriptor, bool across, uint32_t first,
                        uint32_t rows, uint32_t depth, unsigned char *to) {
  uint32_t mode = (uint32_t)(descriptor >> 62);
  shared_matrix m = shared_matrix_of(w->block, descriptor, mode ? 4 - mode : TENSOR_MAP_SWIZZLE_NONE);
  if (across) shared_columns(w, i, &m, 2, first, rows, depth, to);
  else if (m.swizzle && m.pitch < depth)
    core_fault(w, i, (uint32_t)__builtin_ctz(w->active), EXEC_FAULT_ILLEGAL_INSTRUCTION, 0,
               "the matrix descriptor is 0x%016" PRIx64 ": its swizzled rows of %u bytes are shorter than K, %u bytes",
               descriptor, m.pitch, depth);
  else shared_rows(w, i, &m, first, rows, depth, to);
}

/* A in registers: as the A of mma.m16n8k. */
static void read_registers(const exec_warp *x, const exec_wgmma *g, unsigned char *to) {
  for (uint32_t r = 0; r < 4; r++) {
    const uint32_t *word = exec_u32(x, g->a[r]);
    for (uint32_t l = 0; l < 32; l++)
      memcpy(to + (l / 4 + r % 2 * 8) * WGMMA_A_BYTES + r / 2 * SHARED_CHUNK + l % 4 * 4, &word[l], 4);
  }
}

static void read_a(core_warp *w, const exec_instr *i, unsigned char *to) {
  const exec_wgmma *g = i->side;
  if (g->a_shared)
    read_shared(w, i, exec_u64(&w->x, g->a_descriptor)[0], g->a_across, w->index % 4 * WGMMA_ROWS, WGMMA_ROWS,
                WGMMA_A_BYTES, to);
  else read_registers(&w->x, g, to);
}

/* ---- elements ---- */

/* Rows of A or B as they were read, `depth` bytes each. */
typedef struct row_bytes {
  const unsigned char *start;
  uint32_t count, depth;
} row_bytes;

/* Element k of all rows, `step` apart in `to`. */
static void reals_of(ptx_type type, row_bytes rows, uint32_t k, double *to, uint32_t step) {
  const unsigned char *from = rows.start;
  const double *small = small_floats(type);
  for (uint32_t n = 0; n < rows.count; n++, from += rows.depth) {
    uint16_t half;
    uint32_t word;
    switch (type) {
    case PTX_F16:
      memcpy(&half, from + 2 * k, 2);
      to[n * step] = ops_of_f16(half);
      break;
    case PTX_BF16:
      memcpy(&half, from + 2 * k, 2);
      to[n * step] = ops_of_bf16(half);
      break;
    case PTX_TF32:
      memcpy(&word, from + 4 * k, 4);
      to[n * step] = ops_f32_of(word & 0xffffe000u);
      break;
    default: to[n * step] = small[from[k]]; break;
    }
  }
}

static void integers_of(ptx_type type, row_bytes rows, uint32_t k, int32_t *to, uint32_t step) {
  const unsigned char *from = rows.start;
  for (uint32_t n = 0; n < rows.count; n++, from += rows.depth) {
    if (type == PTX_B1) memcpy(&to[n * step], from + 4 * k, 4);
    else to[n * step] = type == PTX_S8 ? (int8_t)from[k] : from[k];
  }
}

/* ---- D: registers of f32 and s32 hold one element, those of f16 two ---- */

/* Of register r in lane l: its row; the column of its first element. */
INLINE uint32_t row_of(uint32_t l, uint32_t r, bool half) { return l / 4 + (half ? r % 2 : r / 2 % 2) * 8; }
INLINE uint32_t column_of(uint32_t l, uint32_t r, bool half) {
  return (half ? r / 2 : r / 4) * 8 + l % 4 * 2 + (half ? 0 : r % 2);
}

INLINE uint32_t register_count(const exec_wgmma *g) { return g->columns / (g->d_type == PTX_F16 ? 4u : 2u); }

static void read_sums(const exec_warp *x, const exec_wgmma *g, double *c) {
  bool half = g->d_type == PTX_F16;
  for (uint32_t r = 0; r < register_count(g); r++) {
    const uint32_t *word = exec_u32(x, g->d[r]);
    for (uint32_t l = 0; l < 32; l++) {
      double *at = &c[row_of(l, r, half) * g->columns + column_of(l, r, half)];
      at[0] = half ? ops_of_f16(word[l] & 0xffff) : ops_f32_of(word[l]);
      if (half) at[1] = ops_of_f16(word[l] >> 16);
    }
  }
}

static void write_sums(const exec_warp *x, const exec_wgmma *g, const double *c) {
  bool half = g->d_type == PTX_F16;
  for (uint32_t r = 0; r < register_count(g); r++) {
    uint32_t *word = exec_u32(x, g->d[r]);
    for (uint32_t l = 0; l < 32; l++) {
      const double *at = &c[row_of(l, r, half) * g->columns + column_of(l, r, half)];
      float single = (float)at[0];
      if (half) word[l] = ops_f16_rn(ops_odd32(at[0])) | ops_f16_rn(ops_odd32(at[1])) << 16;
      else word[l] = single != single ? 0x7fffffffu : ops_u32_of(single);
    }
  }
}

/* ---- which columns A has ---- */

static void find_columns(const exec_warp *x, const exec_wgmma *g, uint8_t *column) {
  for (uint32_t m = 0; m < WGMMA_ROWS; m++, column += g->held)
    if (g->sparse)
      sparse_row_columns(exec_u32(x, g->metadata), ptx_type_bits((ptx_type)g->a_type), g->held, g->selector, m, column);
    else
      for (uint32_t k = 0; k < g->held; k++) column[k] = (uint8_t)k;
}

/* ---- products ---- */

static bool keeps(const exec_warp *x, const exec_wgmma *g) {
  uint32_t predicate = *exec_pred(x, g->keeps);
  return ((g->keeps_negated ? ~predicate : predicate) & 1) != 0;
}

/* A of `held` elements a row; column: which column each of them is, which is a row of B. */
static void multiply_reals(core_warp *w, const exec_wgmma *g, row_bytes a_rows, row_bytes b_rows,
                           const uint8_t *column) {
  uint32_t columns = g->columns, held = g->held;
  double a[WGMMA_ROWS * WGMMA_A_BYTES], b[WGMMA_B_BYTES * WGMMA_COLUMNS], c[WGMMA_ROWS * WGMMA_COLUMNS];
  int32_t left[WGMMA_ROWS * WGMMA_A_BYTES], right[WGMMA_B_BYTES * WGMMA_COLUMNS];
  tensor_rule rule = tensor_rule_of(w->launch->config->compute, (ptx_type)g->a_type, true);
  for (uint32_t k = 0; k < held; k++) reals_of((ptx_type)g->a_type, a_rows, k, a + k, held);
  for (uint32_t k = 0; k < g->depth; k++) reals_of((ptx_type)g->b_type, b_rows, k, b + k * columns, 1);
  if (g->a_negated != g->b_negated)
    for (uint32_t n = 0; n < WGMMA_ROWS * held; n++) a[n] = -a[n];
  tensor_exponents(a, WGMMA_ROWS * held, (ptx_type)g->a_type, left);
  tensor_exponents(b, g->depth * columns, (ptx_type)g->b_type, right);
  if (keeps(&w->x, g)) read_sums(&w->x, g, c);
  else memset(c, 0, WGMMA_ROWS * columns * sizeof *c);
  for (uint32_t m = 0; m < WGMMA_ROWS; m++) {
    tensor_operands o = {.left = a + m * held,
                         .across = b,
                         .left_exponents = left + m * held,
                         .across_exponents = right,
                         .row = column + m * held,
                         .count = held,
                         .columns = columns,
                         .stride = columns};
    tensor_sum(&o, rule, (ptx_type)g->d_type, c + m * columns);
  }
  write_sums(&w->x, g, c);
}

INLINE int32_t limited(int64_t sum, bool saturates) {
  if (saturates) sum = sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum;
  return (int32_t)(uint32_t)(uint64_t)sum;
}

static void multiply_integers(core_warp *w, const exec_wgmma *g, row_bytes a_rows, row_bytes b_rows,
                              const uint8_t *column) {
  uint32_t columns = g->columns, held = g->held;
  int32_t a[WGMMA_ROWS * WGMMA_A_BYTES], b[WGMMA_B_BYTES * WGMMA_COLUMNS], c[WGMMA_ROWS * WGMMA_COLUMNS];
  for (uint32_t k = 0; k < held; k++) integers_of((ptx_type)g->a_type, a_rows, k, a + k, held);
  for (uint32_t k = 0; k < g->depth; k++) integers_of((ptx_type)g->b_type, b_rows, k, b + k * columns, 1);
  memset(c, 0, WGMMA_ROWS * columns * sizeof *c);
  for (uint32_t m = 0; m < WGMMA_ROWS; m++)
    for (uint32_t k = 0; k < held; k++) {
      int32_t left = a[m * held + k], *row = c + m * columns;
      const int32_t *right = b + column[m * held + k] * columns;
      if (g->a_type == PTX_B1)
        for (uint32_t n = 0; n < columns; n++) row[n] += __builtin_popcount((uint32_t)(left & right[n]));
      else
        for (uint32_t n = 0; n < columns; n++) row[n] += left * right[n]; /* 32 products of 16 bits */
    }
  bool add = keeps(&w->x, g);
  for (uint32_t r = 0; r < register_count(g); r++) {
    uint32_t *word = exec_u32(&w->x, g->d[r]);
    for (uint32_t l = 0; l < 32; l++) {
      int64_t old = add ? (int32_t)word[l] : 0;
      word[l] = (uint32_t)limited(old + c[row_of(l, r, false) * columns + column_of(l, r, false)], g->saturates);
    }
  }
}

void ISA(core_wgmma)(exec_warp *x, const exec_instr *i) {
  core_warp *w = (core_warp *)x;
  const exec_wgmma *g = i->side;
  unsigned char a[WGMMA_ROWS * WGMMA_A_BYTES], b[WGMMA_COLUMNS * WGMMA_B_BYTES];
  uint8_t column[WGMMA_ROWS * WGMMA_A_BYTES];
  uint32_t depth = g->sparse ? 2 * WGMMA_A_BYTES : WGMMA_A_BYTES;
  read_a(w, i, a);
  read_shared(w, i, exec_u64(x, g->b_descriptor)[0], g->b_across, 0, g->columns, depth, b);
  find_columns(x, g, column);
  row_bytes a_rows = {a, WGMMA_ROWS, WGMMA_A_BYTES}, b_rows = {b, g->columns, depth};
  if (g->d_type == PTX_S32) multiply_integers(w, g, a_rows, b_rows, column);
  else multiply_reals(w, g, a_rows, b_rows, column);
}
