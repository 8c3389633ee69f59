/* SPDX-License-Identifier: Apache-2.0 */
/* tcgen05.mma for the threads that issue it, one after the other (PTX ISA, "TensorCore 5th Generation Matrix Multiply
 * and accumulate Operations").
 *
 * Sums are taken as the device's tensor cores do (tensor_sum.h); of products with factors of blocks in double
 * precision, k ascending from D's element on, rounded once.
 *
 * In tensor memory (layouts D and F of "Data Path Layout Organization") row r of D is lane r where M is 128, and lane
 * r % 16 + r / 16 * 32 where it is 64; a column of D is a column. Of two blocks (layouts A and B) each has half of the
 * rows: of 256 as of 128, of 128 those in lanes 0 to 63, and the upper half of their columns in lanes 64 to 127. A is
 * as D, a column having 32 bits of a row. Elements of 4 and 6 bits have a byte each there, and in shared memory 16
 * bytes for sixteen of them; those of kinds mxf4 and mxf4nvf4 are two in a byte in both.
 *
 * Factors of blocks ("Block Scaling") of row r of A, or column r of B, are in lane r % 32 of each of the four parts of
 * tensor memory, in column r / 32, from a byte on that the instruction descriptor names. */
#include "exec/instructions/tcgen05_mma.h"

#include "exec/instructions/ops_half.h"
#include "exec/instructions/small_floats.h"
#include "exec/instructions/sparse.h"
#include "exec/instructions/tcgen05_descriptor.h"
#include "exec/instructions/tensor_sum.h"

void ISA(core_tensor_mma)(exec_warp *x, const exec_instr *i);

typedef struct product { /* what one block has of an mma of one thread */
  core_warp *w;
  const exec_instr *i;
  uint32_t lane;
  const exec_tensor_mma *m;
  tcgen05_description is;
  core_block *block;
  tensor_memory *memory;
  uint32_t rows;  /* of A and D that the block has */
  uint32_t parts; /* of D's columns: each has lanes of its own (layouts B, E and G); A is in all of them */
  tensor_place d, a_factors, b_factors;
  uint32_t disabled[4]; /* a bit per lane of tensor memory */
  bool keeps;
  uint32_t held;       /* elements of a row of A that there are: with .sp half of K */
  uint32_t depth;      /* bytes of a row of B */
  tensor_place sparse; /* the metadata */
} product;

/* ---- A and B: SHARED_DEPTH_BYTES a row ---- */

static const char *name_of(char which) { return which == 'A' ? "matrix A" : "matrix B"; }

static void read_shared(const product *p, char which, uint32_t slot, ptx_type type, bool across, uint32_t rows,
                        uint32_t depth, unsigned char *to) {
  uint64_t descriptor = exec_u64(&p->w->x, slot)[p->lane];
  shared_matrix matrix = tensor_matrix_of(p->w, p->i, p->lane, p->block, name_of(which), descriptor, across);
  if (across && matrix.wide_atoms != (type == PTX_TF32))
    tensor_bad_descriptor(p->w, p->i, p->lane, name_of(which), descriptor,
                          type == PTX_TF32 ? "a transposed matrix of 32-bit elements needs atoms of 32 bytes"
                                           : "atoms of 32 bytes are for 32-bit elements");
  if (across) shared_columns(p->w, p->i, &matrix, ptx_type_bits(type) / 8, 0, rows, depth, to);
  else if (matrix.swizzle && matrix.pitch < depth)
    tensor_bad_descriptor(p->w, p->i, p->lane, name_of(which), descriptor, "its swizzled rows are shorter than K");
  else shared_rows(p->w, p->i, &matrix, 0, rows, depth, to);
}

INLINE uint32_t lane_of_row(const product *p, uint32_t row) {
  return p->rows == 64 && p->parts == 1 ? row % 16 + row / 16 * 32 : row;
}

/* The lanes from the first to the last that a matrix of M rows has. */
static uint32_t lanes_of(const product *p) { return p->rows == 64 && p->parts == 1 ? 112 : 128; }

static tensor_place place(const product *p, const bulk_address *a, uint32_t columns, const char *what) {
  uint32_t address = (uint32_t)core_bulk_address(p->w, a, p->lane), lane = address >> 16;
  if (lane && !(lanes_of(p) == 112 && lane == 16))
    core_fault(p->w, p->i, p->lane, EXEC_FAULT_ILLEGAL_ADDRESS, address,
               "%s begins in lane %u of tensor memory: with M %u it must begin in lane 0%s", what, lane, p->is.rows,
               lanes_of(p) == 112 ? " or 16" : "");
  return core_tensor_place(p->w, p->i, p->lane, p->memory, address, lanes_of(p), columns, what);
}

static void read_tensor(const product *p, unsigned char *to) {
  tensor_place at = place(p, &p->m->a, SHARED_DEPTH_BYTES / 4, "matrix A");
  if (at.lane != p->d.lane)
    core_fault(p->w, p->i, p->lane, EXEC_FAULT_ILLEGAL_ADDRESS, 0,
               "matrix A begins in lane %u of tensor memory, D in lane %u: they must begin in the same", at.lane,
               p->d.lane);
  for (uint32_t row = 0; row < p->rows; row++, to += SHARED_DEPTH_BYTES) {
    const uint32_t *from = &p->memory->cells[at.lane + lane_of_row(p, row)][at.column];
    memcpy(to, from, SHARED_DEPTH_BYTES);
    if (p->parts == 2 && memcmp(from, p->memory->cells[64 + row] + at.column, SHARED_DEPTH_BYTES))
      core_fault(p->w, p->i, p->lane, EXEC_FAULT_ILLEGAL_INSTRUCTION, 0,
                 "matrix A in tensor memory: lanes %u and %u differ, with M 128 of two blocks both must have its row",
                 row, 64 + row);
  }
}

/* ---- elements ---- */

/* How elements of 4 and 6 bits stand in a row. */
typedef enum packing { IN_BYTES, SIXTEEN_IN_A_CHUNK, WITHOUT_GAPS } packing;

INLINE packing packing_of(const product *p, bool in_tensor) {
  bool dense = p->m->kind == TCGEN05_MXF4 || p->m->kind == TCGEN05_MXF4NVF4;
  return dense ? WITHOUT_GAPS : in_tensor ? IN_BYTES : SIXTEEN_IN_A_CHUNK;
}

INLINE uint32_t tiny_bits(const unsigned char *row, uint32_t k, uint32_t width, packing how) {
  if (how == IN_BYTES) return width == 4 ? row[k] >> 2 & 15 : row[k] & 63;
  if (how == WITHOUT_GAPS) return row[k / 2] >> k % 2 * 4 & 15;
  uint32_t at = k % 16 * width;
  uint16_t word;
  memcpy(&word, row + k / 16 * 16 + at / 8, 2);
  return word >> at % 8 & ((1u << width) - 1);
}

/* Element k of a row; small: the numbers of a type of 8 bits and less. */
INLINE double real_of(ptx_type type, const double *small, const unsigned char *row, uint32_t k, packing how) {
  uint16_t half;
  uint32_t word;
  switch (type) {
  case PTX_F16: memcpy(&half, row + 2 * k, 2); return ops_of_f16(half);
  case PTX_BF16: memcpy(&half, row + 2 * k, 2); return ops_of_bf16(half);
  case PTX_TF32: memcpy(&word, row + 4 * k, 4); return ops_f32_of(word & 0xffffe000u);
  case PTX_E4M3:
  case PTX_E5M2: return small[row[k]];
  default: return small[tiny_bits(row, k, ptx_type_bits(type), how)];
  }
}

INLINE int32_t integer_of(ptx_type type, const unsigned char *row, uint32_t k) {
  return type == PTX_S8 ? (int8_t)row[k] : row[k];
}

/* ---- D ---- */

/* Where a row of D is, or of its upper half of columns; NULL: it is not to be changed. */
INLINE uint32_t *cells_of(const product *p, uint32_t row, uint32_t part) {
  uint32_t lane = p->d.lane + lane_of_row(p, row) + part * (TENSOR_LANES / p->parts);
  return p->disabled[lane / 32] >> lane % 32 & 1 ? NULL : &p->memory->cells[lane][p->d.column];
}

static void read_sums(const product *p, const uint32_t *cells, double *sum) {
  uint32_t columns = p->is.columns / p->parts;
  double scale = 1.0 / (1u << p->m->scale);
  if (!p->keeps) memset(sum, 0, columns * sizeof *sum);
  else if (p->is.d_type == PTX_F16)
    for (uint32_t n = 0; n < columns; n++) sum[n] = scale * ops_of_f16(cells[n] & 0xffff);
  else
    for (uint32_t n = 0; n < columns; n++) sum[n] = scale * ops_f32_of(cells[n]);
}

static void write_sums(const product *p, const double *sum, uint32_t *cells) {
  uint32_t columns = p->is.columns / p->parts;
  for (uint32_t n = 0; n < columns; n++) {
    float single = (float)sum[n];
    if (p->is.d_type == PTX_F16) cells[n] = ops_f16_rn(ops_odd32(sum[n]));
    else cells[n] = single != single ? 0x7fffffffu : ops_u32_of(single);
  }
}

/* ---- which columns A has ---- */

/* Where the metadata are (layouts of "Sparsity Metadata"; CUTLASS's tmem_e_frg and tmem_e_frg_ws): in one column, of an
 * even pair the one that the selector names, or in two. With .ws and less than 128 rows all parts of tensor memory have
 * them. */
static tensor_place find_metadata(const product *p) {
  uint32_t columns = p->m->kind == TCGEN05_F16 || p->m->kind == TCGEN05_TF32 ? 1 : 2,
           address = (uint32_t)core_bulk_address(p->w, &p->m->metadata, p->lane);
  if (p->is.selector && address % 2)
    core_fault(p->w, p->i, p->lane, EXEC_FAULT_UNSUPPORTED, address,
               "not supported: a sparsity selector of 1 with metadata in an odd column");
  tensor_place at = core_tensor_place(p->w, p->i, p->lane, p->memory, address + p->is.selector, TENSOR_LANES, columns,
                                      "the metadata");
  for (uint32_t lane = p->rows; p->m->stationary && lane < TENSOR_LANES; lane++)
    if (memcmp(p->memory->cells[lane] + at.column, p->memory->cells[lane % p->rows] + at.column, columns * 4))
      core_fault(p->w, p->i, p->lane, EXEC_FAULT_ILLEGAL_INSTRUCTION, address,
                 "the metadata: lanes %u and %u of tensor memory differ, all parts must have the same", lane % p->rows,
                 lane);
  return at;
}

/* The four bits of a chunk of a row (layouts of "Sparsity Metadata"). Elements of 16 and 32 bits: half a word has four
 * chunks, rows 8 to 15 of sixteen have the upper halves of rows 0 to 7, and the second four chunks are eight lanes
 * further; smaller ones: two words of the row's lane. */
static uint32_t chunk_bits(const product *p, uint32_t row, uint32_t chunk) {
  bool large = p->m->kind == TCGEN05_F16 || p->m->kind == TCGEN05_TF32;
  uint32_t lane = large ? row % 8 + row / 16 * 16 + chunk / 4 * 8 : row,
           column = p->sparse.column + (large ? 0 : chunk / 8),
           shift = large ? row / 8 % 2 * 16 + chunk % 4 * 4 : chunk % 8 * 4;
  return p->memory->cells[lane][column] >> shift & 15;
}

/* For each element of a row of A its column. */
static void find_columns(const product *p, uint32_t row, uint8_t *column) {
  if (!p->m->sparse) {
    for (uint32_t k = 0; k < p->held; k++) column[k] = (uint8_t)k;
    return;
  }
  bool single = p->m->kind == TCGEN05_TF32, tiny = p->m->kind == TCGEN05_MXF4 || p->m->kind == TCGEN05_MXF4NVF4;
  uint32_t element_bits = single ? 32 : tiny ? 4 : 8; /* 8: as 16 and 6, and 4 in a byte each */
  for (uint32_t k = 0; k < p->held; k++) {
    uint32_t chunk = k / sparse_kept(element_bits), bits = chunk_bits(p, row, chunk);
    bool good = single ? bits == 14 || bits == 4
                       : (bits & 3) != bits >> 2 && bits != 1 && bits != 2 && bits != 3 && bits != 7 && bits != 11;
    if (!good)
      core_fault(p->w, p->i, p->lane, EXEC_FAULT_ILLEGAL_INSTRUCTION, 0,
                 "the metadata of row %u have 0x%x for its chunk %u, which the manual does not define", row, bits,
                 chunk);
    column[k] = (uint8_t)sparse_column(element_bits, bits, k);
  }
}

/* ---- factors of blocks ---- */

static double factor_of(uint8_t type, uint32_t byte) {
  if (type == PTX_UE4M3) return small_float(byte & 0x7f, 4, 3, false);
  return byte == 0xff ? __builtin_nan("") : ldexp(1, (int32_t)byte - 127); /* ue8m0 */
}

/* Where the factors are: after a check that all four parts of tensor memory have the same. `rows` of A or B. */
static tensor_place find_factors(const product *p, const bulk_address *a, uint32_t first, uint32_t rows,
                                 const char *what) {
  /* the upper two bits of the address are not looked at: compilers keep the byte's number there */
  uint32_t address = (uint32_t)core_bulk_address(p->w, a, p->lane) & 0x3fffffffu,
           mask = UINT32_MAX >> (32 - 8 * p->m->scales) << 8 * first;
  tensor_place at = core_tensor_place(p->w, p->i, p->lane, p->memory, address, TENSOR_LANES, (rows + 31) / 32, what);
  for (uint32_t row = 0; row < rows; row++)
    for (uint32_t part = 1; part < 4; part++) {
      uint32_t lane = row % 32, column = at.column + row / 32;
      if ((p->memory->cells[lane][column] ^ p->memory->cells[lane + 32 * part][column]) & mask)
        core_fault(
            p->w, p->i, p->lane, EXEC_FAULT_ILLEGAL_INSTRUCTION, address,
            "%s: lanes %u and %u of tensor memory differ in column %u, all four parts must have the same factors", what,
            lane, lane + 32 * part, column);
    }
  return at;
}

/* Factor n of a row of A, or a column of B. */
INLINE double factor_at(const product *p, tensor_place at, uint32_t first, uint32_t row, uint32_t n) {
  uint32_t word = p->memory->cells[row % 32][at.column + row / 32];
  return factor_of(p->is.factor_type, word >> (first + n) * 8 & 0xff);
}

static void scale_row(const product *p, uint32_t row, double *left) {
  uint32_t length = p->held / p->m->scales;
  for (uint32_t n = 0; n < p->m->scales; n++) {
    double factor = factor_at(p, p->a_factors, p->is.a_factor, row, n);
    for (uint32_t k = n * length; k < (n + 1) * length; k++) left[k] *= factor;
  }
}

static void scale_columns(const product *p, double *across) {
  uint32_t length = p->is.depth / p->m->scales, columns = p->is.columns;
  for (uint32_t column = 0; column < columns; column++)
    for (uint32_t n = 0; n < p->m->scales; n++) {
      double factor = factor_at(p, p->b_factors, p->is.b_factor, column, n);
      for (uint32_t k = n * length; k < (n + 1) * length; k++) across[k * columns + column] *= factor;
    }
}

/* ---- products ---- */

static void multiply_reals(const product *p, const unsigned char *a, const unsigned char *b) {
  uint32_t columns = p->is.columns, width = columns / p->parts, depth = p->is.depth;
  double across[TCGEN05_DEPTH * TCGEN05_COLUMNS], left[TCGEN05_DEPTH], sum[TCGEN05_COLUMNS];
  int32_t across_exponents[TCGEN05_DEPTH * TCGEN05_COLUMNS], left_exponents[TCGEN05_DEPTH];
  uint8_t place[TCGEN05_DEPTH];
  ptx_type a_type = (ptx_type)p->is.a_type, b_type = (ptx_type)p->is.b_type;
  const double *a_small = small_floats(a_type), *b_small = small_floats(b_type);
  packing a_how = packing_of(p, p->m->a_in_tensor), b_how = packing_of(p, false);
  bool negated = p->is.a_negated != p->is.b_negated;
  for (uint32_t n = 0; n < columns; n++)
    for (uint32_t k = 0; k < depth; k++) across[k * columns + n] = real_of(b_type, b_small, b + n * p->depth, k, b_how);
  tensor_rule rule = tensor_rule_of(100, a_type, false);
  if (p->m->scales) scale_columns(p, across);
  else tensor_exponents(across, depth * columns, b_type, across_exponents);
  for (uint32_t line = 0; line < p->rows * p->parts; line++) {
    uint32_t row = line % p->rows, part = line / p->rows, *cells = cells_of(p, row, part);
    if (!cells) continue;
    find_columns(p, row, place);
    for (uint32_t k = 0; k < p->held; k++) left[k] = real_of(a_type, a_small, a + row * SHARED_DEPTH_BYTES, k, a_how);
    if (p->m->scales) scale_row(p, row, left);
    read_sums(p, cells, sum);
    if (negated)
      for (uint32_t k = 0; k < p->held; k++) left[k] = -left[k];
    if (p->m->scales) {
      for (uint32_t k = 0; k < p->held; k++) {
        const double *right = across + place[k] * columns + part * width;
        for (uint32_t n = 0; n < width; n++) sum[n] += left[k] * right[n];
      }
    } else {
      tensor_exponents(left, p->held, a_type, left_exponents);
      tensor_operands o = {.left = left,
                           .across = across + part * width,
                           .left_exponents = left_exponents,
                           .across_exponents = across_exponents + part * width,
                           .row = place,
                           .count = p->held,
                           .columns = width,
                           .stride = columns};
      tensor_sum(&o, rule, (ptx_type)p->is.d_type, sum);
    }
    write_sums(p, sum, cells);
  }
}

INLINE uint32_t limited(int64_t sum, bool saturates) {
  if (saturates) sum = sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum;
  return (uint32_t)(uint64_t)sum;
}

static void multiply_integers(const product *p, const unsigned char *a, const unsigned char *b) {
  uint32_t columns = p->is.columns, width = columns / p->parts, depth = p->is.depth;
  int32_t across[TCGEN05_DEPTH * TCGEN05_COLUMNS], sum[TCGEN05_COLUMNS];
  uint8_t place[TCGEN05_DEPTH];
  for (uint32_t n = 0; n < columns; n++)
    for (uint32_t k = 0; k < depth; k++)
      across[k * columns + n] = integer_of((ptx_type)p->is.b_type, b + n * p->depth, k);
  for (uint32_t line = 0; line < p->rows * p->parts; line++) {
    uint32_t row = line % p->rows, part = line / p->rows, *cells = cells_of(p, row, part);
    if (!cells) continue;
    memset(sum, 0, width * sizeof *sum);
    find_columns(p, row, place);
    for (uint32_t k = 0; k < p->held; k++) { /* 32 products of 16 bits */
      int32_t factor = integer_of((ptx_type)p->is.a_type, a + row * SHARED_DEPTH_BYTES, k);
      const int32_t *right = across + place[k] * columns + part * width;
      for (uint32_t n = 0; n < width; n++) sum[n] += factor * right[n];
    }
    for (uint32_t n = 0; n < width; n++)
      cells[n] = limited((p->keeps ? (int64_t)(int32_t)cells[n] : 0) + sum[n], p->is.saturates);
  }
}

/* For the access stream: a quarter of the product, as the tensor cores of all four schedulers share it, in 512
 * multiply-adds of half precision. A row of K, 32 bytes, takes as long as sixteen of these whatever its elements
 * are. */
static uint32_t units_of(const product *p) { return (p->rows * p->is.columns * 16 / 4 + 511) / 512; }

/* With a zero-column mask: the columns that are multiplied begin behind its shift, and some are zeros instead. Columns
 * whose elements are neighbours come in chunks. Returns the first one. */
static unsigned char *read_masked_b(const product *p, unsigned char *b) {
  uint64_t bits = exec_u64(&p->w->x, p->m->zero_mask)[p->lane];
  tcgen05_zero_mask mask = core_tensor_zero_mask(p->w, p->i, p->lane, bits, &p->is);
  uint32_t chunk = p->is.b_across ? SHARED_CHUNK * 8 / ptx_type_bits((ptx_type)p->is.b_type) : 1,
           columns = (p->is.columns + mask.shift + chunk - 1) / chunk * chunk;
  read_shared(p, 'B', p->m->b_descriptor, (ptx_type)p->is.b_type, p->is.b_across, columns, p->depth, b);
  b += mask.shift * p->depth;
  for (uint32_t n = 0; n < p->is.columns; n++)
    if (mask.zero[n / 64] >> n % 64 & 1) memset(b + n * p->depth, 0, p->depth);
  return b;
}

/* Half `rank` of B's columns, or all of them, from the block's shared memory. */
static void read_b(const product *p, unsigned char *b) {
  uint32_t columns = p->is.columns / p->m->group, rank = p->m->group == 2 ? p->block->rank & 1 : 0;
  read_shared(p, 'B', p->m->b_descriptor, (ptx_type)p->is.b_type, p->is.b_across, columns, p->depth,
              b + rank * columns * p->depth);
}

static void begin(product *p, core_warp *w, const exec_instr *i, uint32_t lane, core_block *block) {
  const exec_tensor_mma *m = i->side;
  *p = (product){.w = w, .i = i, .lane = lane, .m = m, .block = block};
  p->memory = core_tensor_memory_of(w, i, lane, block, m->group);
  p->is = core_tensor_describe(w, i, lane, exec_u32(&w->x, m->description)[lane]);
  p->rows = p->is.rows / m->group;
  p->held = m->sparse ? p->is.depth / 2 : p->is.depth;
  p->depth = m->sparse ? 2 * SHARED_DEPTH_BYTES : SHARED_DEPTH_BYTES;
  p->parts = m->stationary ? TENSOR_LANES / p->rows : m->group == 2 && p->rows == 64 ? 2 : 1;
  p->d = place(p, &m->d, p->is.columns / p->parts, "matrix D");
  uint32_t predicate = *exec_pred(&w->x, m->keeps), first = m->group == 2 ? (block->rank & 1) * 4 : 0;
  p->keeps = ((m->keeps_negated ? ~predicate : predicate) >> lane & 1) != 0;
  for (uint32_t n = 0; m->masks && n < 4; n++) p->disabled[n] = exec_u32(&w->x, m->mask[first + n])[lane];
  if (m->sparse) p->sparse = find_metadata(p);
  if (!m->scales) return;
  p->a_factors = find_factors(p, &m->a_factors, p->is.a_factor, p->rows, "the factors of A");
  p->b_factors = find_factors(p, &m->b_factors, p->is.b_factor, p->is.columns, "the factors of B");
}

static void multiply(const product *p, const unsigned char *b) {
  unsigned char a[TCGEN05_ROWS * SHARED_DEPTH_BYTES];
  if (p->m->a_in_tensor) read_tensor(p, a);
  else read_shared(p, 'A', p->m->a_descriptor, (ptx_type)p->is.a_type, p->is.a_across, p->rows, SHARED_DEPTH_BYTES, a);
  if (p->is.d_type == PTX_S32) multiply_integers(p, a, b);
  else multiply_reals(p, a, b);
}

static void one_thread(core_warp *w, const exec_instr *i, uint32_t lane) {
  const exec_tensor_mma *m = i->side;
  unsigned char room[(TCGEN05_COLUMNS + TCGEN05_COLUMN_SHIFT) * 2 * SHARED_DEPTH_BYTES], *b = room;
  product own, other;
  begin(&own, w, i, lane, w->block);
  if (m->zeroes) b = read_masked_b(&own, b);
  else read_b(&own, b);
  if (m->group == 2) {
    begin(&other, w, i, lane, core_tensor_peer(w, i, lane));
    read_b(&other, b);
  }
  if (w->trace) core_trace_tensor(w, i, units_of(&own));
  multiply(&own, b);
  if (m->group == 2) multiply(&other, b);
}

void ISA(core_tensor_mma)(exec_warp *x, const exec_instr *i) {
  core_warp *w = (core_warp *)x;
  for (uint32_t lanes = w->active; lanes; lanes &= lanes - 1) one_thread(w, i, (uint32_t)__builtin_ctz(lanes));
}
