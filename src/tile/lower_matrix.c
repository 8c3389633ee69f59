/* SPDX-License-Identifier: Apache-2.0 */
/* mmaf and mmai: products of matrices, by mma.sync where it has the types and the tiles are large enough, else by
 * multiplying and adding.
 *
 * mma.sync multiplies 16 x K by K x 8, K being 32 bytes; where its elements are (PTX ISA, matrix fragments) are layouts
 * like all others. Its factors come by ldmatrix from shared memory, where they fit; else as any value comes to a
 * layout. The warps of a block share the rows and columns of the result; each has the rows of the left matrix and the
 * columns of the right one that it needs. */
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "tile/lower_elements.h"

#define SHARED_BYTES 65536u    /* of both matrices, for products without mma.sync */
#define PUBLISHED_BYTES 40960u /* of one, for those with it */

typedef struct shape {
  uint32_t batch, m, n, k; /* logarithms */
  tile_scalar scalar, sum; /* of the factors and of the result */
} shape;

typedef struct plan {
  uint32_t unit;                    /* logarithm of the elements in 32 bits */
  uint32_t row_warps, column_warps; /* logarithms */
  tile_layout left, right, sum;
} plan;

static bool shape_of(const tile_op *op, shape *s) {
  if (op->operand_count < 3) return false;
  const tile_type *a = op->operands[0]->type, *b = op->operands[1]->type, *c = op->operands[2]->type;
  if (a->kind != TILE_KIND_TILE || b->kind != TILE_KIND_TILE || c->kind != TILE_KIND_TILE || a->rank != b->rank ||
      a->rank != c->rank || (a->rank != 2 && a->rank != 3) || a->scalar != b->scalar ||
      op->results[0].type->kind != TILE_KIND_TILE || op->results[0].type->scalar != c->scalar ||
      tile_elements(op->results[0].type) != tile_elements(c))
    return false;
  uint32_t r = a->rank - 2;
  if (a->shape[r] != c->shape[r] || b->shape[r + 1] != c->shape[r + 1] || a->shape[r + 1] != b->shape[r] ||
      (r && (a->shape[0] != b->shape[0] || a->shape[0] != c->shape[0])))
    return false;
  *s = (shape){.batch = r ? lower_log2((uint64_t)a->shape[0]) : 0,
               .m = lower_log2((uint64_t)a->shape[r]),
               .n = lower_log2((uint64_t)b->shape[r + 1]),
               .k = lower_log2((uint64_t)a->shape[r + 1]),
               .scalar = a->scalar,
               .sum = c->scalar};
  if (op->opcode == TILE_OP_MMAF_SCALED) s->scalar = TILE_TF32; /* exact in tf32 after scaling: see scaled() */
  return true;
}

static uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }

/* Whether mma.sync can do it, and how. */
static bool plan_of(const lower *l, const tile_op *op, const shape *s, plan *p) {
  bool known = false;
  switch (s->scalar) {
  case TILE_F16: known = s->sum == TILE_F32 || s->sum == TILE_F16; break;
  case TILE_BF16:
  case TILE_TF32:
  case TILE_E4M3:
  case TILE_E5M2: known = s->sum == TILE_F32; break;
  case TILE_I8: known = s->sum == TILE_I32 && op->opcode == TILE_OP_MMAI; break;
  default: break;
  }
  if (!known) return false;
  *p = (plan){.unit = lower_log2(32 / tile_scalar_bits(s->scalar))};
  if (s->m < 4 || s->n < 3 || s->k < p->unit + 3 || l->thread_bits < 5) return false;
  uint32_t warps = l->thread_bits - 5, u = p->unit, steps = s->k - u - 3;
  p->row_warps = least((warps + 1) / 2, s->m - 4);
  p->column_warps = least(warps - p->row_warps, s->n - 3);
  p->row_warps = least(warps - p->column_warps, s->m - 4);
  uint32_t rows = s->m - 4 - p->row_warps, columns = s->n - 3 - p->column_warps;
  uint8_t row_of[LAYOUT_BITS_MAX], column_of[LAYOUT_BITS_MAX]; /* bits in threads; the others are set per matrix */
  for (uint32_t j = 0; j < s->m; j++)
    row_of[j] = (uint8_t)(LAYOUT_THREAD + (j < 3 ? 2 + j : 5 + j - (s->m - p->row_warps)));
  for (uint32_t j = 0; j < s->n; j++)
    column_of[j] = (uint8_t)(LAYOUT_THREAD + (j < 3 ? 2 + j : 5 + p->row_warps + j - (s->n - p->column_warps)));

  tile_layout *a = &p->left, *b = &p->right, *c = &p->sum;
  for (uint32_t i = 0; i < s->k; i++) { /* k is the low dimension of the left matrix, the high one of the right */
    bool lane = i == u || i == u + 1;
    a->of[i] = (uint8_t)(lane ? LAYOUT_THREAD + i - u : i < u ? i : i == u + 2 ? u + 1 : u + 2 + i - u - 3);
    b->of[s->n + i] = (uint8_t)(lane ? LAYOUT_THREAD + i - u : i < u ? i : i == u + 2 ? u : u + 1 + i - u - 3);
  }
  for (uint32_t j = 0; j < s->m; j++) {
    bool mine = j >= 3 && j < s->m - p->row_warps; /* in registers */
    a->of[s->k + j] = mine ? (uint8_t)(j == 3 ? u : u + 2 + steps + j - 4) : row_of[j];
    c->of[s->n + j] = mine ? (uint8_t)(j == 3 ? 1 : 2 + columns + j - 4) : row_of[j];
  }
  for (uint32_t j = 0; j < s->n; j++) {
    bool mine = j >= 3 && j < s->n - p->column_warps;
    b->of[j] = mine ? (uint8_t)(u + 1 + steps + j - 3) : column_of[j];
    c->of[j] = j == 0 ? 0 : j < 3 ? (uint8_t)(LAYOUT_THREAD + j - 1) : mine ? (uint8_t)(2 + j - 3) : column_of[j];
  }
  a->registers = (uint8_t)(u + 2 + steps + rows);
  b->registers = (uint8_t)(u + 1 + steps + columns);
  c->registers = (uint8_t)(2 + columns + rows);
  a->bits = (uint8_t)(s->m + s->k);
  b->bits = (uint8_t)(s->k + s->n);
  c->bits = (uint8_t)(s->m + s->n);
  tile_layout *const all[] = {a, b, c};
  for (uint32_t i = 0; i < 3; i++)
    for (uint32_t j = 0; j < s->batch; j++) all[i]->of[all[i]->bits++] = all[i]->registers++;
  return true;
}

bool lower_matrix_layout(lower *l, const tile_op *op, tile_layout *layout) {
  shape s;
  plan p;
  if (!shape_of(op, &s) || !plan_of(l, op, &s, &p)) return false;
  *layout = p.sum;
  return true;
}

/* ---- fragments by ldmatrix ---- */

/* A factor in shared memory, rows padded by 16 bytes so that eight of them lie in different banks. */
typedef struct published {
  uint32_t base;                 /* register */
  bool transposed;               /* k is not the dimension that runs along rows: ldmatrix.trans */
  uint32_t k_bytes, other_bytes; /* from one element to the next along k, and along m or n */
  uint32_t batch_bytes;
} published;

/* Whether bit `bit` of an element's number changes faster, where the value lies now, than bit `than`. */
static bool faster(const tile_layout *layout, uint32_t bit, uint32_t than) {
  uint32_t a = layout->of[bit], b = layout->of[than];
  if ((a & LAYOUT_THREAD) != (b & LAYOUT_THREAD)) return !(a & LAYOUT_THREAD) && a < 2;
  return a < b;
}

/* Brings a factor to shared memory, in the order in which it lies if ldmatrix can turn it; false: it does not fit.
 * `k_first`: of k's bits in an element's number; `low`, `high`: logarithms of the low and the high dimension. */
static bool publish(lower *l, const lowered *value, const shape *s, uint32_t k_first, uint32_t other, published *to) {
  uint32_t bytes = tile_scalar_bits(s->scalar) / 8, other_first = k_first ? 0 : s->k;
  tile_layout usual = {0};
  if (value->splat || value->lazy) {
    tile_type type = {.kind = TILE_KIND_TILE, .rank = 1, .shape = {INT64_C(1) << (s->batch + s->k + other)}};
    usual = layout_default(l, &type);
    value = layout_convert(l, value, s->scalar, &usual);
  }
  to->transposed = bytes == 2 && faster(&value->layout, other_first, k_first);
  uint32_t along = to->transposed ? other : s->k, rows = to->transposed ? s->k : other;
  uint32_t pitch = (bytes << along) + 16;
  to->k_bytes = to->transposed ? pitch : bytes;
  to->other_bytes = to->transposed ? bytes : pitch;
  to->batch_bytes = pitch << rows;
  if ((uint64_t)to->batch_bytes << s->batch > PUBLISHED_BYTES) return false;
  uint32_t weights[LAYOUT_BITS_MAX];
  for (uint32_t b = 0; b < s->k; b++) weights[k_first + b] = to->k_bytes << b;
  for (uint32_t b = 0; b < other; b++) weights[other_first + b] = to->other_bytes << b;
  for (uint32_t b = 0; b < s->batch; b++) weights[s->k + other + b] = to->batch_bytes << b;
  to->base = layout_publish(l, value, s->scalar, weights, to->batch_bytes << s->batch);
  return true;
}

/* What this thread's row of an 8 x 8 matrix adds to base: lanes 0 to 7 name the rows of the first matrix of ldmatrix,
 * 8 to 15 those of the second, and so on. The second matrix is 8 rows (or columns) further if `second_is_k` is false,
 * else 16 bytes further along k, and the third and fourth the other way. warp_bits: which warps have which part of m or
 * n, from bit `first` of the warp's number on, each `warp_bytes` apart. */
static uint32_t lane_address(lower *l, const published *p, uint32_t unit, bool second_is_k, uint32_t first,
                             uint32_t warp_bits, uint32_t warp_bytes) {
  uint32_t row = lower_register(l, CLASS_WORD), second = lower_register(l, CLASS_WORD);
  uint32_t third = lower_register(l, CLASS_WORD), address = lower_register(l, CLASS_WORD);
  lower_emit(l, "bfe.u32 %%r%u, %%r%u, 0, 3;", row, l->thread);
  lower_emit(l, "bfe.u32 %%r%u, %%r%u, 3, 1;", second, l->thread);
  lower_emit(l, "bfe.u32 %%r%u, %%r%u, 4, 1;", third, l->thread);
  /* A matrix has eight rows of 16 bytes: along k it is 8 elements of 16 bits, 1 << (unit + 2) of others. */
  uint32_t k_step = p->k_bytes << (unit + 2), other_step = p->other_bytes * 8;
  lower_emit(l, "mad.lo.u32 %%r%u, %%r%u, %u, %%r%u;", address, row, p->transposed ? p->k_bytes : p->other_bytes,
             p->base);
  lower_emit(l, "mad.lo.u32 %%r%u, %%r%u, %u, %%r%u;", address, second, second_is_k ? k_step : other_step, address);
  lower_emit(l, "mad.lo.u32 %%r%u, %%r%u, %u, %%r%u;", address, third, second_is_k ? other_step : k_step, address);
  if (warp_bits) {
    uint32_t warp = lower_register(l, CLASS_WORD);
    lower_emit(l, "bfe.u32 %%r%u, %%r%u, %u, %u;", warp, l->thread, 5 + first, warp_bits);
    lower_emit(l, "mad.lo.u32 %%r%u, %%r%u, %u, %%r%u;", address, warp, warp_bytes, address);
  }
  return address;
}

/* The registers of mma.sync for the left matrix: four for each 16 rows and step of k. */
static uint32_t *left_fragments(lower *l, const published *p, const shape *s, const plan *q) {
  uint32_t steps = s->k - q->unit - 3, rows = s->m - 4 - q->row_warps, count = 1u << (s->batch + rows + steps);
  uint32_t *words = lower_alloc(l, 4 * count * sizeof *words);
  uint32_t address = lane_address(l, p, q->unit, false, 0, q->row_warps, p->other_bytes << (4 + rows));
  for (uint32_t i = 0; i < count; i++) {
    uint32_t k = i & ((1u << steps) - 1), row = i >> steps & ((1u << rows) - 1), batch = i >> (steps + rows);
    uint32_t at = k * (p->k_bytes << (q->unit + 3)) + row * (p->other_bytes << 4) + batch * p->batch_bytes;
    for (uint32_t j = 0; j < 4; j++) words[4 * i + j] = lower_register(l, CLASS_WORD);
    lower_emit(l, "ldmatrix.sync.aligned.m8n8.x4%s.shared.b16 {%%r%u, %%r%u, %%r%u, %%r%u}, [%%r%u+%u];",
               p->transposed ? ".trans" : "", words[4 * i], words[4 * i + 1], words[4 * i + 2], words[4 * i + 3],
               address, at);
  }
  return words;
}

/* Those for the right matrix: two for each 8 columns and step of k; two of these columns in one instruction. */
static uint32_t *right_fragments(lower *l, const published *p, const shape *s, const plan *q) {
  uint32_t steps = s->k - q->unit - 3, columns = s->n - 3 - q->column_warps;
  uint32_t *words = lower_alloc(l, sizeof *words << (1 + s->batch + columns + steps));
  uint32_t address = lane_address(l, p, q->unit, true, q->row_warps, q->column_warps, p->other_bytes << (3 + columns));
  for (uint32_t batch = 0; batch < 1u << s->batch; batch++)
    for (uint32_t column = 0; column < 1u << columns; column += 2)
      for (uint32_t k = 0; k < 1u << steps; k++) {
        uint32_t at = k * (p->k_bytes << (q->unit + 3)) + column * (p->other_bytes << 3) + batch * p->batch_bytes;
        uint32_t *first = words + ((((size_t)batch << columns | column) << steps | k) << 1);
        uint32_t *second = first + ((size_t)2 << steps);
        for (uint32_t j = 0; j < 2; j++) {
          first[j] = lower_register(l, CLASS_WORD);
          if (columns) second[j] = lower_register(l, CLASS_WORD);
        }
        if (columns)
          lower_emit(l, "ldmatrix.sync.aligned.m8n8.x4%s.shared.b16 {%%r%u, %%r%u, %%r%u, %%r%u}, [%%r%u+%u];",
                     p->transposed ? ".trans" : "", first[0], first[1], second[0], second[1], address, at);
        else
          lower_emit(l, "ldmatrix.sync.aligned.m8n8.x2%s.shared.b16 {%%r%u, %%r%u}, [%%r%u+%u];",
                     p->transposed ? ".trans" : "", first[0], first[1], address, at);
      }
  return words;
}

/* ---- mma.sync ---- */

/* Registers of 32 bits, of elements that follow each other. */
static uint32_t *pack(lower *l, const lowered *value, uint32_t unit) {
  uint32_t count = 1u << (value->layout.registers - unit), *words = lower_alloc(l, count * sizeof *words);
  for (uint32_t i = 0; i < count; i++) {
    const uint32_t *from = value->registers + ((size_t)i << unit);
    if (!unit) {
      words[i] = from[0];
      continue;
    }
    words[i] = lower_register(l, CLASS_WORD);
    if (value->class == CLASS_HALF) {
      lower_emit(l, "mov.b32 %%r%u, {%%h%u, %%h%u};", words[i], from[0], from[1]);
      continue;
    }
    uint32_t low = lower_register(l, CLASS_WORD), high = lower_register(l, CLASS_WORD);
    lower_emit(l, "prmt.b32 %%r%u, %%r%u, %%r%u, 0x0040;", low, from[0], from[1]);
    lower_emit(l, "prmt.b32 %%r%u, %%r%u, %%r%u, 0x0040;", high, from[2], from[3]);
    lower_emit(l, "prmt.b32 %%r%u, %%r%u, %%r%u, 0x5410;", words[i], low, high);
  }
  return words;
}

static const char *factor_name(const tile_op *op, const shape *s, bool left) {
  switch (s->scalar) {
  case TILE_F16: return "f16";
  case TILE_BF16: return "bf16";
  case TILE_TF32: return "tf32";
  case TILE_E4M3: return "e4m3";
  case TILE_E5M2: return "e5m2";
  default: return (left ? op->lhs_signed : op->rhs_signed) ? "s8" : "u8";
  }
}

static void by_mma(lower *l, tile_op *op, const shape *s, const plan *p, const lowered *const factors[2]) {
  published place;
  uint32_t *a, *b;
  if (publish(l, factors[0], s, 0, s->m, &place)) a = left_fragments(l, &place, s, p);
  else a = pack(l, layout_convert(l, factors[0], s->scalar, &p->left), p->unit);
  if (publish(l, factors[1], s, s->n, s->n, &place)) b = right_fragments(l, &place, s, p);
  else b = pack(l, layout_convert(l, factors[1], s->scalar, &p->right), p->unit);
  const lowered *sum = layout_convert(l, lower_value(l, op->operands[2]), s->sum, &p->sum);
  lowered *result = lower_result(l, &op->results[0], &p->sum);
  if (l->status) return;
  bool halves = s->sum == TILE_F16;
  uint32_t *c = halves ? pack(l, sum, 1) : sum->registers, *d = result->registers;
  if (halves) {
    d = lower_alloc(l, sizeof(uint32_t) << (p->sum.registers - 1));
    for (uint32_t i = 0; i < 1u << (p->sum.registers - 1); i++) d[i] = lower_register(l, CLASS_WORD);
  }
  if (s->scalar == TILE_E4M3 || s->scalar == TILE_E5M2) l->architecture = l->architecture < 89 ? 89 : l->architecture;
  const char *sums = s->sum == TILE_I32 ? "s32" : halves ? "f16" : "f32";
  char name[96];
  snprintf(name, sizeof name, "mma.sync.aligned.m16n8k%u.row.col.%s.%s.%s.%s", 8u << p->unit, sums,
           factor_name(op, s, true), factor_name(op, s, false), sums);
  uint32_t steps = s->k - p->unit - 3, rows = s->m - 4 - p->row_warps, columns = s->n - 3 - p->column_warps;
  /* k outside: a sum is added to again only after all others were. */
  for (uint32_t k = 0; k < 1u << steps; k++)
    for (uint32_t i = 0; i < 1u << (s->batch + rows); i++)
      for (uint32_t j = 0; j < 1u << columns && !l->status; j++) {
        uint32_t batch = i >> rows;
        const uint32_t *x = a + (((size_t)i << steps | k) << 2),
                       *y = b + (((((size_t)batch << columns) | j) << steps | k) << 1);
        size_t at = ((size_t)i << columns | j) << (halves ? 1 : 2);
        const uint32_t *from = (k ? d : c) + at, *to = d + at;
        if (halves)
          lower_emit(l, "%s {%%r%u, %%r%u}, {%%r%u, %%r%u, %%r%u, %%r%u}, {%%r%u, %%r%u}, {%%r%u, %%r%u};", name, to[0],
                     to[1], x[0], x[1], x[2], x[3], y[0], y[1], from[0], from[1]);
        else
          lower_emit(l,
                     "%s {%%r%u, %%r%u, %%r%u, %%r%u}, {%%r%u, %%r%u, %%r%u, %%r%u}, {%%r%u, %%r%u}, "
                     "{%%r%u, %%r%u, %%r%u, %%r%u};",
                     name, to[0], to[1], to[2], to[3], x[0], x[1], x[2], x[3], y[0], y[1], from[0], from[1], from[2],
                     from[3]);
      }
  for (uint32_t i = 0; halves && i < 1u << (p->sum.registers - 1); i++)
    lower_emit(l, "mov.b32 {%%h%u, %%h%u}, %%r%u;", result->registers[2 * i], result->registers[2 * i + 1], d[i]);
}

/* ---- without mma.sync: both matrices in shared memory, and a loop over k ---- */

typedef struct product {
  const tile_op *op;
  const shape *s;
  tile_layout layout;   /* of the result */
  register_class class; /* of the sums while they are made */
  uint32_t *sums;
  uint32_t bytes;  /* of a factor */
  uint32_t k_bits; /* of a part: the matrices go in parts along k */
} product;

/* A factor in shared memory as the sums' type; `address` is of element k = 0 of this thread, `at` the register's part
 * in bytes. */
static uint32_t load_factor(lower *l, const product *x, uint32_t address, uint32_t at, bool is_signed) {
  uint32_t value = lower_register(l, x->class);
  switch (x->s->scalar) {
  case TILE_F64: lower_emit(l, "ld.shared.b64 %%d%u, [%%r%u+%u];", value, address, at); break;
  case TILE_F32:
  case TILE_TF32: lower_emit(l, "ld.shared.b32 %%r%u, [%%r%u+%u];", value, address, at); break;
  case TILE_F16:
  case TILE_BF16: {
    uint32_t half = lower_register(l, CLASS_HALF);
    lower_emit(l, "ld.shared.b16 %%h%u, [%%r%u+%u];", half, address, at);
    if (x->s->scalar == TILE_F16) lower_emit(l, "cvt.f32.f16 %%r%u, %%h%u;", value, half);
    else lower_emit(l, "mov.b32 %%r%u, {0, %%h%u};", value, half);
    break;
  }
  case TILE_E4M3:
  case TILE_E5M2: {
    uint32_t pair = lower_register(l, CLASS_WORD), byte = lower_register(l, CLASS_HALF),
             low = lower_register(l, CLASS_HALF);
    lower_emit(l, "ld.shared.u8 %%h%u, [%%r%u+%u];", byte, address, at);
    lower_emit(l, "cvt.rn.f16x2.%sx2 %%r%u, %%h%u;", x->s->scalar == TILE_E4M3 ? "e4m3" : "e5m2", pair, byte);
    lower_emit(l, "cvt.u16.u32 %%h%u, %%r%u;", low, pair);
    lower_emit(l, "cvt.f32.f16 %%r%u, %%h%u;", value, low);
    break;
  }
  default: lower_emit(l, "ld.shared.%s8 %%r%u, [%%r%u+%u];", is_signed ? "s" : "u", value, address, at); break;
  }
  return value;
}

/* scratch + the thread's part of the row (or column) x stride, in bytes. */
static uint32_t factor_address(lower *l, uint32_t base, uint32_t offset, const tile_layout *layout, uint32_t first,
                               uint32_t bits, uint32_t stride) {
  uint32_t address = lower_register(l, CLASS_WORD), part;
  lower_emit(l, "add.u32 %%r%u, %%r%u, %u;", address, base, offset);
  if (layout_thread_part(l, layout, first, bits, &part))
    lower_emit(l, "mad.lo.u32 %%r%u, %%r%u, %u, %%r%u;", address, part, stride, address);
  return address;
}

/* The sums of a part that lies in shared memory: left rows of 1 << k_bits elements, then the right matrix. */
static void multiply_part(lower *l, const product *x, uint32_t right_at) {
  const shape *s = x->s;
  uint32_t row = x->bytes << x->k_bits, column_step = x->bytes << s->n;
  uint32_t left_batch = row << s->m, right_batch = column_step << x->k_bits;
  uint32_t left = factor_address(l, l->scratch[0], 0, &x->layout, s->n, s->m, row);
  uint32_t right = factor_address(l, l->scratch[0], right_at, &x->layout, 0, s->n, x->bytes);
  uint32_t part;
  if (s->batch && layout_thread_part(l, &x->layout, s->n + s->m, s->batch, &part)) {
    lower_emit(l, "mad.lo.u32 %%r%u, %%r%u, %u, %%r%u;", left, part, left_batch, left);
    lower_emit(l, "mad.lo.u32 %%r%u, %%r%u, %u, %%r%u;", right, part, right_batch, right);
  }
  uint32_t counter = lower_register(l, CLASS_WORD), more = lower_register(l, CLASS_PREDICATE), label = l->labels++;
  lower_emit(l, "mov.u32 %%r%u, 0;", counter);
  if (!l->status) ff_text_add(l->text, "L%u:\n", label);
  uint32_t count = 1u << x->layout.registers, mask_m = (1u << s->m) - 1, mask_n = (1u << s->n) - 1;
  uint32_t *left_at = lower_alloc(l, count * sizeof(uint32_t)), *right_of = lower_alloc(l, count * sizeof(uint32_t));
  uint32_t *left_key = lower_alloc(l, count * sizeof(uint32_t)), *right_key = lower_alloc(l, count * sizeof(uint32_t));
  uint32_t lefts = 0, rights = 0;
  for (uint32_t r = 0; r < count && !l->status; r++) {
    uint32_t element = layout_static(&x->layout, r), batch = element >> (s->n + s->m);
    uint32_t a = (element >> s->n & mask_m) * row + batch * left_batch,
             b = (element & mask_n) * x->bytes + batch * right_batch;
    uint32_t i = 0, j = 0;
    while (i < lefts && left_key[i] != a) i++;
    if (i == lefts) left_key[lefts] = a, left_at[lefts++] = load_factor(l, x, left, a, x->op->lhs_signed);
    while (j < rights && right_key[j] != b) j++;
    if (j == rights) right_key[rights] = b, right_of[rights++] = load_factor(l, x, right, b, x->op->rhs_signed);
    if (s->sum == TILE_I32)
      lower_emit(l, "mad.lo.s32 %%r%u, %%r%u, %%r%u, %%r%u;", x->sums[r], left_at[i], right_of[j], x->sums[r]);
    else
      lower_emit(l, "fma.rn.f%u %%%c%u, %%%c%u, %%%c%u, %%%c%u;", x->class == CLASS_DOUBLE ? 64 : 32,
                 lower_letter(x->class), x->sums[r], lower_letter(x->class), left_at[i], lower_letter(x->class),
                 right_of[j], lower_letter(x->class), x->sums[r]);
  }
  lower_emit(l, "add.u32 %%r%u, %%r%u, %u;", left, left, x->bytes);
  lower_emit(l, "add.u32 %%r%u, %%r%u, %u;", right, right, column_step);
  lower_emit(l, "add.u32 %%r%u, %%r%u, 1;", counter, counter);
  lower_emit(l, "setp.lt.u32 %%p%u, %%r%u, %u;", more, counter, 1u << x->k_bits);
  lower_emit(l, "@%%p%u bra.uni L%u;", more, label);
}

/* Part c, along k, of a factor whose elements' numbers have `all` bits, those of k from `first` on. */
static const lowered *take_part(lower *l, const lowered *value, uint32_t all, const product *x, uint32_t first,
                                uint32_t c) {
  uint32_t dropped = x->s->k - x->k_bits;
  tile_type part = {.kind = TILE_KIND_TILE, .rank = 1, .shape = {INT64_C(1) << (all - dropped)}};
  tile_layout layout = layout_default(l, &part);
  uint8_t columns[LAYOUT_BITS_MAX];
  memset(columns, LAYOUT_FREE, sizeof columns);
  for (uint32_t b = 0; b < layout.bits; b++) columns[b] = (uint8_t)(b < first + x->k_bits ? b : b + dropped);
  return layout_gather(l, value, x->s->scalar, all, columns, c << (first + x->k_bits), &layout);
}

static void by_multiplying(lower *l, tile_op *op, const shape *s, const lowered *const factors[2]) {
  uint32_t bits = tile_scalar_bits(s->scalar);
  product x = {.op = op,
               .s = s,
               .layout = layout_default(l, op->results[0].type),
               .k_bits = s->k,
               .class = s->sum == TILE_F64 ? CLASS_DOUBLE : CLASS_WORD,
               .bytes = bits / 8};
  bool whole = s->scalar == TILE_I8 && s->sum == TILE_I32, real = s->scalar >= TILE_F16 && s->scalar <= TILE_F64;
  if (s->scalar == TILE_E4M3 || s->scalar == TILE_E5M2) {
    real = true;
    if (l->architecture < 89) l->architecture = 89;
  }
  if (!whole && !(real && (s->sum == TILE_F64) == (s->scalar == TILE_F64) &&
                  (s->sum == TILE_F64 || s->sum == TILE_F32 || s->sum == TILE_F16))) {
    lower_fail(l, op, FF_UNSUPPORTED, "products of %s in %s", tile_scalar_name(s->scalar), tile_scalar_name(s->sum));
    return;
  }
  while (x.k_bits && (((1u << s->m) + (1u << s->n)) * (uint64_t)x.bytes << (x.k_bits + s->batch)) > SHARED_BYTES)
    x.k_bits--;
  uint32_t right_at = ((x.bytes << (s->m + x.k_bits + s->batch)) + 15) & ~15u; /* vectors are aligned */
  uint32_t all = right_at + (x.bytes << (s->n + x.k_bits + s->batch));
  if (all > SHARED_BYTES) {
    lower_fail(l, op, FF_UNSUPPORTED, "tiles of that size, whose product mma.sync does not make");
    return;
  }
  if (l->scratch_bytes < (all + 1) / 2) l->scratch_bytes = ((all + 1) / 2 + 15) & ~15u; /* both halves, as one */
  const lowered *sum = layout_convert(l, lower_value(l, op->operands[2]), s->sum, &x.layout);
  uint32_t count = 1u << x.layout.registers;
  x.sums = lower_alloc(l, count * sizeof(uint32_t));
  for (uint32_t r = 0; r < count; r++) {
    x.sums[r] = lower_register(l, x.class);
    if (s->sum == TILE_F16) lower_emit(l, "cvt.f32.f16 %%r%u, %%h%u;", x.sums[r], sum->registers[r]);
    else
      lower_emit(l, "mov.%s %%%c%u, %%%c%u;", lower_untyped(x.class), lower_letter(x.class), x.sums[r],
                 lower_letter(x.class), sum->registers[r]);
  }
  for (uint32_t c = 0; c < 1u << (s->k - x.k_bits) && !l->status; c++) {
    const lowered *left = take_part(l, factors[0], s->batch + s->m + s->k, &x, 0, c);
    const lowered *right = take_part(l, factors[1], s->batch + s->k + s->n, &x, s->n, c);
    lower_barrier(l);
    layout_write(l, left, s->scalar, l->scratch[0], 0);
    layout_write(l, right, s->scalar, l->scratch[0], right_at);
    lower_barrier(l);
    multiply_part(l, &x, right_at);
    l->scratch_known = false;
  }
  lowered *result = lower_result(l, &op->results[0], &x.layout);
  for (uint32_t r = 0; r < count; r++)
    if (s->sum == TILE_F16) lower_emit(l, "cvt.rn.f16.f32 %%h%u, %%r%u;", result->registers[r], x.sums[r]);
    else result->registers[r] = x.sums[r];
}

/* ---- block-scaled factors ---- */

/* A factor times its scales, in f32. Both have at most four digits, so the product is exact, and has few enough digits
 * for tf32. `first`: of k's bits in an element's number; an element's scale is that of all with its higher bits. */
static const lowered *scaled(lower *l, tile_op *op, const shape *s, uint32_t which, uint32_t first,
                             const tile_layout *layout) {
  const tile_value *factor = op->operands[which], *scale = op->operands[3 + which];
  const tile_type *type = scale->type;
  uint32_t bits = layout->bits;
  bool fits = type->kind == TILE_KIND_TILE && type->rank == factor->type->rank;
  uint32_t scale_bits = fits ? lower_log2(tile_elements(type)) : 0, dropped = bits - scale_bits;
  if (!fits || scale_bits > bits || dropped > s->k || (type->scalar != TILE_E8M0 && type->scalar != TILE_E4M3) ||
      (factor->type->scalar != TILE_E4M3 && factor->type->scalar != TILE_E5M2 && factor->type->scalar != TILE_E2M1)) {
    lower_fail(l, op, FF_PARSE, "its scales do not fit its factors");
    return lower_value(l, factor);
  }
  uint8_t columns[LAYOUT_BITS_MAX];
  memset(columns, LAYOUT_FREE, sizeof columns);
  for (uint32_t b = 0; b < bits; b++)
    if (b < first) columns[b] = (uint8_t)b;
    else if (b >= first + dropped) columns[b] = (uint8_t)(b - dropped);
  const lowered *value = layout_convert(l, lower_value(l, factor), factor->type->scalar, layout);
  const lowered *scales = layout_gather(l, lower_value(l, scale), type->scalar, scale_bits, columns, 0, layout);
  lowered *result = lower_alloc(l, sizeof *result);
  *result = (lowered){.class = CLASS_WORD, .layout = *layout, .divisor = 1};
  result->registers = lower_alloc(l, sizeof(uint32_t) << layout->registers);
  for (uint32_t r = 0; r < 1u << layout->registers; r++) {
    result->registers[r] = lower_register(l, CLASS_WORD);
    lower_emit(l, "mul.rn.f32 %%r%u, %%r%u, %%r%u;", result->registers[r],
               element_to_f32(l, factor->type->scalar, value->registers[r]),
               element_to_f32(l, type->scalar, scales->registers[r]));
  }
  return result;
}

bool lower_matrix_op(lower *l, tile_op *op) {
  bool scales = op->opcode == TILE_OP_MMAF_SCALED;
  if (op->opcode != TILE_OP_MMAF && op->opcode != TILE_OP_MMAI && !scales) return false;
  shape s;
  plan p;
  if (!shape_of(op, &s)) {
    lower_fail(l, op, FF_PARSE, "its operands are no matrices that can be multiplied");
    return true;
  }
  bool mma = plan_of(l, op, &s, &p);
  const lowered *factors[2] = {lower_value(l, op->operands[0]), lower_value(l, op->operands[1])};
  if (scales) {
    tile_layout left = mma ? p.left : layout_default(l, op->operands[0]->type);
    tile_layout right = mma ? p.right : layout_default(l, op->operands[1]->type);
    factors[0] = scaled(l, op, &s, 0, 0, &left);
    factors[1] = scaled(l, op, &s, 1, s.n, &right);
  }
  if (l->status) return true;
  if (mma) by_mma(l, op, &s, &p, factors);
  else by_multiplying(l, op, &s, factors);
  return true;
}
