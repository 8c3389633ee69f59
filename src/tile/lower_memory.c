/* SPDX-License-Identifier: Apache-2.0 */
/* Memory: tensor views and the views of tiles on them, loads, stores, atomic operations, globals.
 *
 * The address of an element is the tensor's base plus, for each dimension, coordinate x stride. A coordinate is
 *
 *   the tile's origin (the same in all threads) + the thread's part + the register's part (known here)
 *
 * so one address register for the thread, and constants or multiples of strides for its other elements. Each dimension
 * is compared with the tensor's shape; where the shape is known to be a multiple of the tile, once.
 *
 * Only the owners of elements store. Loads are made by all that want the value, but for those that other blocks may
 * write meanwhile: copies must agree, so that owners load and share. Tokens order what different threads do: a barrier
 * stands between two operations that a token may order. */
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "tile/lower.h"

#define NO_REGISTER 0u /* registers count from 1 */

/* The elements of one load or store through a view. */
typedef struct access {
  const tile_op *op;
  const tile_type *view, *tensor_type;
  const lowered_tensor *tensor;
  tile_layout layout;
  tile_scalar scalar;
  uint32_t bytes;     /* of an element */
  uint32_t registers; /* 1 << layout.registers */
  uint32_t base;      /* 'd': the address of register 0's element, but for a sparse dimension */
  uint32_t first[TILE_RANK_MAX], bits[TILE_RANK_MAX]; /* of the element's number, per dimension of the tile */
  uint32_t in_tensor[TILE_RANK_MAX];                  /* the tensor's dimension */
  uint32_t mask[TILE_RANK_MAX];                       /* register bits that lie in the dimension */
  uint32_t coordinate[TILE_RANK_MAX];                 /* 'd': origin and thread's part */
  bool known_inside[TILE_RANK_MAX];                   /* no comparison */
  bool whole[TILE_RANK_MAX];                          /* one comparison for all registers */
  const lowered *sparse;                              /* indices of a gather view's sparse dimension, in `layout` */
  uint32_t *inside[TILE_RANK_MAX];                    /* predicates by register & mask */
  uint32_t *offset;                                   /* 'd' by register & dynamic: added to base */
  uint32_t *all_inside;                               /* predicates by register & checked */
  uint32_t dynamic, checked;
  bool any_check;
  uint32_t vector; /* elements that go in one instruction */
} access;

static uint32_t log2_of(uint64_t power) { return (uint32_t)__builtin_ctzll(power); }

static uint32_t scalar_bytes(tile_scalar scalar) {
  uint32_t bits = tile_scalar_bits(scalar);
  return bits < 8 ? 1 : bits / 8;
}

/* ---- orders ---- */

static const char *scope_text(uint32_t scope) {
  return scope == TILE_SCOPE_BLOCK ? "cta" : scope == TILE_SCOPE_DEVICE ? "gpu" : "sys";
}

/* ".relaxed.gpu" and the like; "" if weak. */
static const char *order_text(char *text, size_t size, uint32_t ordering, uint32_t scope) {
  static const char *const names[] = {"", ".relaxed", ".acquire", ".release", ".acq_rel"};
  if (ordering == TILE_WEAK || ordering > TILE_ACQ_REL) *text = 0;
  else snprintf(text, size, "%s.%s", names[ordering], scope_text(scope));
  return text;
}

/* Before an operation: what its token may order was done by other threads, and what it releases. */
static void order_before(lower *l, const tile_op *op, bool writes) {
  bool releases = op->ordering == TILE_RELEASE || op->ordering == TILE_ACQ_REL;
  bool ordered = op->token >= 0 && (l->stored || (writes && l->loaded));
  /* A value that was loaded as copies, by each thread for itself, may decide what is stored, without a token. */
  if (releases || ordered || (writes && l->loaded_copies)) lower_barrier(l);
}

static uint32_t threads_of(const tile_layout *layout) { /* thread bits that elements lie in */
  uint32_t threads = 0;
  for (uint32_t b = 0; b < layout->bits; b++) threads += (layout->of[b] & LAYOUT_THREAD) != 0;
  return threads;
}

static void order_after(lower *l, const tile_op *op, bool writes) {
  if (op->ordering == TILE_ACQUIRE || op->ordering == TILE_ACQ_REL) lower_barrier(l);
  if (writes) l->stored = true;
  else l->loaded = true;
}

static void note_copies(lower *l, const tile_layout *layout) {
  if (threads_of(layout) < l->thread_bits) l->loaded_copies = true;
}

/* ---- views ---- */

/* A scalar integer as a 'd' register, zero-extended: shapes, strides and indices are unsigned. */
static uint32_t widen(lower *l, const tile_op *op, const tile_value *value) {
  const tile_type *type = value->type;
  if (type->kind != TILE_KIND_TILE || tile_elements(type) != 1 || type->scalar > TILE_I64 || type->scalar == TILE_I1) {
    lower_fail(l, op, FF_PARSE, "an index, shape or stride is no integer scalar");
    return NO_REGISTER;
  }
  uint32_t from = lower_scalar(l, value);
  if (lower_class(type->scalar) == CLASS_DOUBLE) return from;
  uint32_t wide = lower_register(l, CLASS_DOUBLE);
  lower_emit(l, "cvt.u64.u32 %%d%u, %%r%u;", wide, from);
  return wide;
}

/* The largest power of two that divides it; of 0, which all do, a large one. */
static uint64_t power_of(int64_t value) {
  uint64_t bits = (uint64_t)value;
  return bits ? bits & -bits : UINT64_C(1) << 32;
}

static void lower_make_tensor_view(lower *l, tile_op *op) {
  const tile_type *type = op->results[0].type;
  if (type->kind != TILE_KIND_TENSOR_VIEW || op->operands[0]->type->scalar != TILE_POINTER) {
    lower_fail(l, op, FF_PARSE, "it makes no tensor view of a pointer");
    return;
  }
  lowered_tensor *tensor = ff_arena_alloc(l->arena, sizeof *tensor);
  tensor->base = lower_scalar(l, op->operands[0]);
  tensor->base_divisor = lower_value(l, op->operands[0])->divisor;
  uint32_t shapes = 0, strides = 0;
  for (uint32_t d = 0; d < type->rank; d++) {
    tensor->shape_divisor[d] = power_of(type->shape[d]);
    tensor->stride_divisor[d] = power_of(type->strides[d]);
    if (type->shape[d] == TILE_DYNAMIC) {
      if (shapes >= op->index_count) break;
      const tile_value *value = op->operands[op->index_first + shapes++];
      tensor->shape[d] = widen(l, op, value);
      tensor->shape_divisor[d] = lower_value(l, value)->divisor;
    }
    if (type->strides[d] == TILE_DYNAMIC) {
      if (strides >= op->stride_count) break;
      const tile_value *value = op->operands[op->stride_first + strides++];
      tensor->strides[d] = widen(l, op, value);
      tensor->stride_divisor[d] = lower_value(l, value)->divisor;
    }
  }
  if (shapes != op->index_count || strides != op->stride_count)
    lower_fail(l, op, FF_PARSE, "another number of shapes or strides than its type leaves open");
  lowered *value = ff_arena_alloc(l->arena, sizeof *value);
  value->tensor = tensor;
  op->results[0].lowered = value;
}

static void lower_make_view(lower *l, tile_op *op) {
  if (op->operands[0]->type->kind != TILE_KIND_TENSOR_VIEW || !lower_value(l, op->operands[0])->tensor) {
    lower_fail(l, op, FF_PARSE, "it is made of no tensor view");
    return;
  }
  lower_alias(l, &op->results[0], lower_value(l, op->operands[0]));
}

/* A size of a tensor as a 'd' register. */
static uint32_t shape_register(lower *l, const tile_type *tensor_type, const lowered_tensor *tensor, uint32_t d) {
  if (tensor_type->shape[d] == TILE_DYNAMIC) return tensor->shape[d];
  uint32_t size = lower_register(l, CLASS_DOUBLE);
  lower_emit(l, "mov.u64 %%d%u, %lld;", size, (long long)tensor_type->shape[d]);
  return size;
}

/* Sizes of a tensor, or of the space of a view's indices. */
static void lower_shape_query(lower *l, tile_op *op) {
  const tile_type *view = op->operands[0]->type;
  const lowered *value = lower_value(l, op->operands[0]);
  const tile_type *tensor_type = view->kind == TILE_KIND_TENSOR_VIEW ? view : view->tensor;
  if (!value->tensor || !tensor_type || op->result_count != view->rank) {
    lower_fail(l, op, FF_PARSE, "it asks for the shape of no view, or for another number of sizes");
    return;
  }
  for (uint32_t k = 0; k < view->rank; k++) {
    bool mapped = view->kind == TILE_KIND_PARTITION_VIEW || view->kind == TILE_KIND_STRIDED_VIEW;
    uint32_t d = mapped ? (uint32_t)view->dim_map[k] : k;
    uint32_t size = shape_register(l, tensor_type, value->tensor, d);
    int64_t step = view->kind == TILE_KIND_TENSOR_VIEW                            ? 1
                   : view->kind == TILE_KIND_STRIDED_VIEW                         ? view->traversal[k]
                   : view->kind == TILE_KIND_GATHER_VIEW && view->sparse_dim == k ? 1
                                                                                  : view->shape[k];
    if (step > 1) {
      uint32_t tiles = lower_register(l, CLASS_DOUBLE);
      lower_emit(l, "add.u64 %%d%u, %%d%u, %lld;", tiles, size, (long long)step - 1);
      lower_emit(l, "div.u64 %%d%u, %%d%u, %lld;", tiles, tiles, (long long)step);
      size = tiles;
    }
    lowered *result = lower_result(l, &op->results[k], NULL);
    if (result->class == CLASS_DOUBLE) lower_emit(l, "mov.b64 %%d%u, %%d%u;", result->registers[0], size);
    else if (result->class == CLASS_WORD) lower_emit(l, "cvt.u32.u64 %%r%u, %%d%u;", result->registers[0], size);
    else lower_fail(l, op, FF_PARSE, "its results are no integers");
  }
}

/* ---- access through a view ---- */

/* Neighbours in memory in one thread and in neighbouring threads: the dimension of stride 1 runs fastest. */
static tile_layout memory_layout(const lower *l, const tile_type *tile, const access *a) {
  uint32_t fast = tile->rank ? tile->rank - 1 : 0;
  for (uint32_t k = 0; k < tile->rank; k++)
    if (a->tensor_type->strides[a->in_tensor[k]] == 1 && tile->shape[k] > 1) fast = k;
  const tile_layout usual = layout_default(l, tile);
  if (!tile->rank || fast == tile->rank - 1) return usual;
  tile_layout layout = usual;
  uint32_t place = 0; /* in the order with the fast dimension first */
  for (uint32_t b = 0; b < a->bits[fast]; b++) layout.of[a->first[fast] + b] = usual.of[place++];
  for (uint32_t b = 0; b < layout.bits; b++)
    if (b < a->first[fast] || b >= a->first[fast] + a->bits[fast]) layout.of[b] = usual.of[place++];
  return layout;
}

static int64_t step_of(const access *a, uint32_t k) { /* elements from one index to the next */
  if (a->view->kind == TILE_KIND_STRIDED_VIEW) return a->view->traversal[k];
  if (a->view->kind == TILE_KIND_GATHER_VIEW && a->view->sparse_dim == k) return 1;
  return a->view->shape[k];
}

/* How many neighbours of register 0 can go in one instruction. */
static uint32_t vector_of(const access *a) {
  uint32_t fast = TILE_RANK_MAX, n = 1;
  for (uint32_t k = 0; k < a->view->rank; k++)
    if (a->tensor_type->strides[a->in_tensor[k]] == 1 && a->mask[k] & 1) fast = k;
  if (fast == TILE_RANK_MAX || a->scalar == TILE_I1 || (a->sparse && a->view->sparse_dim == fast)) return 1;
  while (n < 4 && n * a->bytes < 16 && log2_of(n) < a->bits[fast] &&
         a->layout.of[a->first[fast] + log2_of(n)] == log2_of(n))
    n *= 2;
  uint64_t aligned = a->tensor->base_divisor;
  for (uint32_t d = 0; d < a->tensor_type->rank; d++)
    if (a->tensor_type->strides[d] != 1 && a->tensor->stride_divisor[d] * a->bytes < aligned)
      aligned = a->tensor->stride_divisor[d] * a->bytes;
  uint64_t step = power_of(step_of(a, fast)) * a->bytes;
  if (step < aligned) aligned = step;
  while (n > 1 &&
         (aligned % (n * a->bytes) || (!a->known_inside[fast] && a->tensor->shape_divisor[a->in_tensor[fast]] % n)))
    n /= 2;
  return n;
}

/* The view, its dimensions, and the layout that suits the memory. */
static bool access_begin(lower *l, access *a, const tile_op *op, const tile_value *view) {
  *a = (access){.op = op, .view = view->type, .tensor_type = view->type->tensor};
  if (!a->tensor_type || !lower_value(l, view)->tensor || op->index_count != a->view->rank) {
    lower_fail(l, op, FF_PARSE, "it has no view of tiles, or not one index for each dimension");
    return false;
  }
  a->tensor = lower_value(l, view)->tensor;
  a->scalar = a->tensor_type->scalar;
  a->bytes = scalar_bytes(a->scalar);
  if (tile_scalar_bits(a->scalar) == 4) {
    lower_fail(l, op, FF_UNSUPPORTED, "elements of 4 bits in memory");
    return false;
  }
  uint32_t bit = 0;
  for (uint32_t k = a->view->rank; k-- > 0;) {
    a->first[k] = bit;
    a->bits[k] = log2_of((uint64_t)a->view->shape[k]);
    bit += a->bits[k];
    a->in_tensor[k] = a->view->kind == TILE_KIND_GATHER_VIEW ? k : (uint32_t)a->view->dim_map[k];
    a->known_inside[k] = op->inbounds >> k & 1;
  }
  return true;
}

/* Stride of the tensor's dimension in bytes, as a 'd' register; only for dynamic ones. */
static uint32_t stride_bytes(lower *l, const access *a, uint32_t d) {
  uint32_t bytes = lower_register(l, CLASS_DOUBLE);
  lower_emit(l, "mul.lo.u64 %%d%u, %%d%u, %u;", bytes, a->tensor->strides[d], a->bytes);
  return bytes;
}

/* base + coordinates x strides for the thread; comparisons and offsets are made when a register needs them. */
static void access_address(lower *l, access *a, const tile_layout *layout) {
  a->layout = *layout;
  a->registers = 1u << layout->registers;
  a->base = a->tensor->base;
  a->offset = ff_arena_alloc(l->arena, a->registers * sizeof(uint32_t));
  a->all_inside = ff_arena_alloc(l->arena, a->registers * sizeof(uint32_t));
  for (uint32_t k = 0; k < a->view->rank; k++) {
    uint32_t d = a->in_tensor[k];
    bool sparse = a->view->kind == TILE_KIND_GATHER_VIEW && a->view->sparse_dim == k;
    for (uint32_t b = 0; b < a->bits[k]; b++)
      if (!(layout->of[a->first[k] + b] & LAYOUT_THREAD)) a->mask[k] |= 1u << layout->of[a->first[k] + b];
    a->inside[k] = ff_arena_alloc(l->arena, a->registers * sizeof(uint32_t));
    a->whole[k] = !sparse && a->view->kind == TILE_KIND_PARTITION_VIEW &&
                  a->tensor->shape_divisor[d] % (uint64_t)a->view->shape[k] == 0;
    if (!a->known_inside[k]) {
      a->any_check = true;
      if (!a->whole[k]) a->checked |= a->mask[k];
    }
    bool dynamic = a->tensor_type->strides[d] == TILE_DYNAMIC;
    if (dynamic || sparse) a->dynamic |= a->mask[k];
    if (sparse) continue; /* each register has a coordinate of its own */
    uint32_t origin = widen(l, a->op, a->op->operands[a->op->index_first + k]);
    int64_t step = step_of(a, k);
    uint32_t c = origin;
    if (step != 1) {
      c = lower_register(l, CLASS_DOUBLE);
      lower_emit(l, "mul.lo.u64 %%d%u, %%d%u, %lld;", c, origin, (long long)step);
    }
    uint32_t part;
    if (layout_thread_part(l, layout, a->first[k], a->bits[k], &part)) {
      uint32_t wide = lower_register(l, CLASS_DOUBLE), sum = lower_register(l, CLASS_DOUBLE);
      lower_emit(l, "cvt.u64.u32 %%d%u, %%r%u;", wide, part);
      lower_emit(l, "add.u64 %%d%u, %%d%u, %%d%u;", sum, c, wide);
      c = sum;
    }
    a->coordinate[k] = c;
    uint32_t address = lower_register(l, CLASS_DOUBLE);
    if (dynamic) lower_emit(l, "mad.lo.u64 %%d%u, %%d%u, %%d%u, %%d%u;", address, c, stride_bytes(l, a, d), a->base);
    else
      lower_emit(l, "mad.lo.u64 %%d%u, %%d%u, %lld, %%d%u;", address, c,
                 (long long)(a->tensor_type->strides[d] * a->bytes), a->base);
    a->base = address;
  }
  a->vector = vector_of(a);
}

/* The register's part of the coordinate in dimension k. */
static uint32_t static_coordinate(const access *a, uint32_t k, uint32_t r) {
  return layout_static(&a->layout, r) >> a->first[k] & ((1u << a->bits[k]) - 1);
}

/* The predicate that register r's element lies inside of the tensor in dimension k. */
static uint32_t inside_dimension(lower *l, access *a, uint32_t k, uint32_t r) {
  bool sparse = a->sparse && a->view->sparse_dim == k;
  uint32_t key = a->whole[k] ? 0 : r & a->mask[k], *known = &a->inside[k][key];
  if (*known) return *known;
  uint32_t size = shape_register(l, a->tensor_type, a->tensor, a->in_tensor[k]);
  uint32_t coordinate = a->coordinate[k], at = static_coordinate(a, k, r);
  if (sparse) {
    coordinate = a->sparse->registers[r];
    if (a->sparse->class == CLASS_WORD) {
      uint32_t wide = lower_register(l, CLASS_DOUBLE);
      lower_emit(l, "cvt.u64.u32 %%d%u, %%r%u;", wide, coordinate);
      coordinate = wide;
    }
  } else if (at && !a->whole[k]) {
    uint32_t moved = lower_register(l, CLASS_DOUBLE);
    lower_emit(l, "add.u64 %%d%u, %%d%u, %u;", moved, coordinate, at);
    coordinate = moved;
  }
  *known = lower_register(l, CLASS_PREDICATE);
  lower_emit(l, "setp.lt.u64 %%p%u, %%d%u, %%d%u;", *known, coordinate, size);
  return *known;
}

/* The predicate for all dimensions, or NO_REGISTER if nothing is compared. */
static uint32_t inside_all(lower *l, access *a, uint32_t r) {
  if (!a->any_check) return NO_REGISTER;
  uint32_t *known = &a->all_inside[r & a->checked];
  if (*known) return *known;
  uint32_t all = NO_REGISTER;
  for (uint32_t k = 0; k < a->view->rank; k++) {
    if (a->known_inside[k]) continue;
    uint32_t one = inside_dimension(l, a, k, r & a->checked);
    if (all) {
      uint32_t both = lower_register(l, CLASS_PREDICATE);
      lower_emit(l, "and.pred %%p%u, %%p%u, %%p%u;", both, all, one);
      all = both;
    } else all = one;
  }
  return *known = all;
}

/* "[%d7+64]": the address of register r's element. */
static const char *address_text(lower *l, access *a, uint32_t r, char *text, size_t size) {
  uint32_t *known = &a->offset[r & a->dynamic];
  int64_t constant = 0;
  for (uint32_t k = 0; k < a->view->rank; k++)
    if (a->tensor_type->strides[a->in_tensor[k]] != TILE_DYNAMIC && !(a->sparse && a->view->sparse_dim == k))
      constant += static_coordinate(a, k, r) * a->tensor_type->strides[a->in_tensor[k]] * a->bytes;
  if (!*known) {
    *known = a->base;
    for (uint32_t k = 0; k < a->view->rank; k++) {
      uint32_t d = a->in_tensor[k], at = static_coordinate(a, k, r);
      bool dynamic = a->tensor_type->strides[d] == TILE_DYNAMIC, sparse = a->sparse && a->view->sparse_dim == k;
      if (!sparse && (!dynamic || !at)) continue;
      uint32_t sum = lower_register(l, CLASS_DOUBLE), stride = NO_REGISTER;
      if (dynamic) stride = stride_bytes(l, a, d);
      if (!sparse) lower_emit(l, "mad.lo.u64 %%d%u, %%d%u, %u, %%d%u;", sum, stride, at, *known);
      else {
        uint32_t index = a->sparse->registers[r];
        if (a->sparse->class == CLASS_WORD) {
          uint32_t wide = lower_register(l, CLASS_DOUBLE);
          lower_emit(l, "cvt.u64.u32 %%d%u, %%r%u;", wide, index);
          index = wide;
        }
        if (dynamic) lower_emit(l, "mad.lo.u64 %%d%u, %%d%u, %%d%u, %%d%u;", sum, index, stride, *known);
        else
          lower_emit(l, "mad.lo.u64 %%d%u, %%d%u, %lld, %%d%u;", sum, index,
                     (long long)(a->tensor_type->strides[d] * a->bytes), *known);
      }
      *known = sum;
    }
  }
  snprintf(text, size, "[%%d%u%+lld]", *known, (long long)constant);
  return text;
}

/* The indices of a sparse dimension, one for each register. */
static void access_sparse(lower *l, access *a, const tile_layout *layout) {
  if (a->view->kind != TILE_KIND_GATHER_VIEW) return;
  uint32_t k = a->view->sparse_dim;
  const tile_value *index = a->op->operands[a->op->index_first + k];
  const tile_type *type = index->type;
  if (type->kind != TILE_KIND_TILE || tile_elements(type) != (uint32_t)a->view->shape[k] ||
      (type->scalar != TILE_I32 && type->scalar != TILE_I64)) {
    lower_fail(l, a->op, FF_PARSE, "the indices of its sparse dimension are no tile of that many i32 or i64");
    return;
  }
  uint8_t columns[LAYOUT_BITS_MAX];
  memset(columns, LAYOUT_FREE, sizeof columns);
  for (uint32_t b = 0; b < a->bits[k]; b++) columns[a->first[k] + b] = (uint8_t)b;
  a->sparse = layout_gather(l, lower_value(l, index), type->scalar, a->bits[k], columns, 0, layout);
}

/* ---- values in memory ---- */

/* "{%r1, %r2}" or "%r1". */
static const char *registers_text(char *text, size_t size, char letter, const uint32_t *registers, uint32_t n) {
  size_t at = (size_t)snprintf(text, size, "%s", n > 1 ? "{" : "");
  for (uint32_t i = 0; i < n; i++)
    at += (size_t)snprintf(text + at, size - at, "%s%%%c%u", i ? ", " : "", letter, registers[i]);
  if (n > 1) snprintf(text + at, size - at, "}");
  return text;
}

static const char *memory_type(tile_scalar scalar) {
  switch (scalar_bytes(scalar)) {
  case 1: return "u8";
  case 2: return lower_class(scalar) == CLASS_WORD ? "u16" : "b16";
  case 4: return "b32";
  default: return "b64";
  }
}

static void guard_text(char *text, size_t size, uint32_t predicate) {
  if (predicate) snprintf(text, size, "@%%p%u ", predicate);
  else *text = 0;
}

/* One load of n registers; i1 is a byte in memory. */
static void emit_load(lower *l, const char *order, tile_scalar scalar, const uint32_t *to, uint32_t n,
                      const char *address, uint32_t predicate) {
  char guard[24], text[96];
  guard_text(guard, sizeof guard, predicate);
  if (scalar == TILE_I1) {
    uint32_t byte = lower_register(l, CLASS_WORD);
    lower_emit(l, "%sld%s.global.u8 %%r%u, %s;", guard, order, byte, address);
    lower_emit(l, "%ssetp.ne.u32 %%p%u, %%r%u, 0;", guard, to[0], byte);
    return;
  }
  lower_emit(l, "%sld%s.global%s.%s %s, %s;", guard, order,
             n == 4   ? ".v4"
             : n == 2 ? ".v2"
                      : "",
             memory_type(scalar), registers_text(text, sizeof text, lower_letter(lower_class(scalar)), to, n), address);
}

static void emit_store(lower *l, const char *order, tile_scalar scalar, const uint32_t *from, uint32_t n,
                       const char *address, uint32_t predicate) {
  char guard[24], text[96];
  guard_text(guard, sizeof guard, predicate);
  uint32_t byte;
  char letter = lower_letter(lower_class(scalar));
  if (scalar == TILE_I1) {
    byte = lower_register(l, CLASS_WORD);
    lower_emit(l, "selp.u32 %%r%u, 1, 0, %%p%u;", byte, from[0]);
    from = &byte;
    letter = 'r';
  }
  lower_emit(l, "%sst%s.global%s.%s %s, %s;", guard, order,
             n == 4   ? ".v4"
             : n == 2 ? ".v2"
                      : "",
             memory_type(scalar), address, registers_text(text, sizeof text, letter, from, n));
}

/* The bits of what a view pads with. */
static uint64_t padding_bits(tile_scalar scalar, tile_padding padding) {
  static const struct {
    uint64_t sign, infinity, nan;
  } of[] = {
      [TILE_F16] = {0x8000, 0x7c00, 0x7e00},
      [TILE_BF16] = {0x8000, 0x7f80, 0x7fc0},
      [TILE_F32] = {0x80000000, 0x7f800000, 0x7fc00000},
      [TILE_TF32] = {0x80000000, 0x7f800000, 0x7fc00000},
      [TILE_F64] = {UINT64_C(1) << 63, UINT64_C(0x7ff) << 52, UINT64_C(0xfff) << 51},
      [TILE_E4M3] = {0x80, 0x7e, 0x7f}, /* no infinity: the largest number */
      [TILE_E5M2] = {0x80, 0x7c, 0x7e},
      [TILE_POINTER] = {0, 0, 0},
  };
  if (scalar >= sizeof of / sizeof *of) return 0;
  switch (padding) {
  case TILE_PAD_NEGATIVE_ZERO: return of[scalar].sign;
  case TILE_PAD_NAN: return of[scalar].nan;
  case TILE_PAD_INFINITY: return of[scalar].infinity;
  case TILE_PAD_NEGATIVE_INFINITY: return of[scalar].sign | of[scalar].infinity;
  default: return 0;
  }
}

static void emit_constant(lower *l, register_class class, uint32_t to, uint64_t bits) {
  if (class == CLASS_PREDICATE) lower_emit(l, "setp.ne.u32 %%p%u, %llu, 0;", to, (unsigned long long)(bits & 1));
  else lower_emit(l, "mov.%s %%%c%u, 0x%llx;", lower_untyped(class), lower_letter(class), to, (unsigned long long)bits);
}

static uint32_t both(lower *l, uint32_t a, uint32_t b) { /* predicates, NO_REGISTER: true */
  if (!a || !b) return a ? a : b;
  uint32_t result = lower_register(l, CLASS_PREDICATE);
  lower_emit(l, "and.pred %%p%u, %%p%u, %%p%u;", result, a, b);
  return result;
}

static uint32_t owner(lower *l, const tile_layout *layout) {
  uint32_t predicate;
  return layout_owner(l, layout, &predicate) ? predicate : NO_REGISTER;
}

/* After only owners have the value: in all threads. A splat's one register goes from thread 0 to all. */
static void share_result(lower *l, lowered *value, tile_scalar scalar) {
  lowered one = *value;
  if (value->splat) {
    one.splat = false;
    one.layout = (tile_layout){0};
  }
  value->registers = layout_share(l, &one, scalar)->registers;
}

static bool must_share(const lower *l, const tile_op *op, const tile_layout *layout) {
  return op->ordering != TILE_WEAK && threads_of(layout) < l->thread_bits;
}

static void lower_load_view(lower *l, tile_op *op) {
  access a;
  order_before(l, op, false);
  if (!access_begin(l, &a, op, op->operands[0])) return;
  const tile_type *type = op->results[0].type;
  if (type->kind != TILE_KIND_TILE || type->scalar != a.scalar || type->rank != a.view->rank ||
      memcmp(type->shape, a.view->shape, type->rank * sizeof *type->shape) != 0) {
    lower_fail(l, op, FF_PARSE, "its result has not the view's shape or element");
    return;
  }
  tile_layout layout = memory_layout(l, type, &a);
  access_sparse(l, &a, &layout);
  if (l->status) return;
  access_address(l, &a, &layout);
  lowered *result = lower_result(l, &op->results[0], &layout);
  char order[32], address[64];
  order_text(order, sizeof order, op->ordering, op->scope);
  uint64_t pad = padding_bits(a.scalar, a.view->padding);
  bool share = must_share(l, op, &layout);
  uint32_t mine = share ? owner(l, &layout) : NO_REGISTER;
  for (uint32_t r = 0; r < a.registers && !l->status; r += a.vector) {
    uint32_t inside = both(l, inside_all(l, &a, r), mine);
    for (uint32_t i = 0; inside && i < a.vector; i++) emit_constant(l, result->class, result->registers[r + i], pad);
    emit_load(l, order, a.scalar, result->registers + r, a.vector, address_text(l, &a, r, address, sizeof address),
              inside);
  }
  if (share) share_result(l, result, a.scalar);
  order_after(l, op, false);
  note_copies(l, &layout);
}

/* The operation that a store, or with `red` an atomic operation without a result, makes of each register. */
static void store_through_view(lower *l, tile_op *op, const tile_value *view, const tile_value *value_operand,
                               void emit(lower *, const tile_op *, tile_scalar, const uint32_t *, uint32_t,
                                         const char *, uint32_t),
                               bool vectors) {
  access a;
  order_before(l, op, true);
  if (!access_begin(l, &a, op, view)) return;
  const tile_type *type = value_operand->type;
  if (type->kind != TILE_KIND_TILE || type->scalar != a.scalar || type->rank != a.view->rank ||
      memcmp(type->shape, a.view->shape, type->rank * sizeof *type->shape) != 0) {
    lower_fail(l, op, FF_PARSE, "its value has not the view's shape or element");
    return;
  }
  tile_layout layout = memory_layout(l, type, &a);
  const lowered *value = layout_convert(l, lower_value(l, value_operand), a.scalar, &layout);
  access_sparse(l, &a, &layout);
  if (l->status) return;
  access_address(l, &a, &layout);
  if (!vectors) a.vector = 1;
  uint32_t mine = owner(l, &layout);
  char address[64];
  for (uint32_t r = 0; r < a.registers && !l->status; r += a.vector)
    emit(l, op, a.scalar, value->registers + r, a.vector, address_text(l, &a, r, address, sizeof address),
         both(l, inside_all(l, &a, r), mine));
  order_after(l, op, true);
}

static void store_one(lower *l, const tile_op *op, tile_scalar scalar, const uint32_t *from, uint32_t n,
                      const char *address, uint32_t predicate) {
  char order[32];
  order_text(order, sizeof order, op->ordering, op->scope);
  emit_store(l, order, scalar, from, n, address, predicate);
}

/* ---- atomic operations ---- */

/* "add.f32" and the like; NULL: there is none. */
static const char *rmw_text(lower *l, const tile_op *op, tile_scalar scalar, char *text, size_t size) {
  static const char *const names[] = {"and", "or", "xor", "add", "add", "max", "min", "max", "min", "exch"};
  if (op->rmw >= sizeof names / sizeof *names) return NULL;
  uint32_t bits = tile_scalar_bits(scalar);
  bool whole = scalar == TILE_I32 || scalar == TILE_I64;
  switch ((tile_rmw)op->rmw) {
  case TILE_RMW_ADDF:
    if (scalar == TILE_F16) snprintf(text, size, "add.noftz.f16");
    else if (scalar == TILE_BF16) snprintf(text, size, "add.noftz.bf16");
    else if (scalar == TILE_F32 || scalar == TILE_F64) snprintf(text, size, "add.f%u", bits);
    else return NULL;
    if (scalar == TILE_BF16 && l->architecture < 90) l->architecture = 90;
    return text;
  case TILE_RMW_XCHG:
    if (bits < 32) return NULL;
    snprintf(text, size, "exch.b%u", bits);
    return text;
  case TILE_RMW_AND:
  case TILE_RMW_OR:
  case TILE_RMW_XOR:
    if (!whole) return NULL;
    snprintf(text, size, "%s.b%u", names[op->rmw], bits);
    return text;
  case TILE_RMW_MAX:
  case TILE_RMW_MIN:
    if (!whole) return NULL;
    snprintf(text, size, "%s.s%u", names[op->rmw], bits);
    return text;
  default:
    if (!whole) return NULL;
    snprintf(text, size, "%s.u%u", names[op->rmw], bits);
    return text;
  }
}

static void reduce_one(lower *l, const tile_op *op, tile_scalar scalar, const uint32_t *from, uint32_t n,
                       const char *address, uint32_t predicate) {
  FF_ASSERT(n == 1);
  char what[32], guard[24];
  guard_text(guard, sizeof guard, predicate);
  if (!rmw_text(l, op, scalar, what, sizeof what)) {
    lower_fail(l, op, FF_UNSUPPORTED, "this operation on %s", tile_scalar_name(scalar));
    return;
  }
  lower_emit(l, "%sred.relaxed.%s.global.%s %s, %%%c%u;", guard, scope_text(op->scope), what, address,
             lower_letter(lower_class(scalar)), from[0]);
}

/* A layout for operands that go element by element: that of the first one which has another than the usual. */
static tile_layout common_layout(lower *l, const tile_op *op, const tile_type *type) {
  tile_layout usual = layout_default(l, type);
  for (uint32_t i = 0; i < op->operand_count; i++) {
    const tile_value *operand = op->operands[i];
    if (operand->type->kind != TILE_KIND_TILE || tile_elements(operand->type) != tile_elements(type)) continue;
    const lowered *value = lower_value(l, operand);
    if (!value->splat && !value->lazy && !layout_equal(&value->layout, &usual)) return value->layout;
  }
  return usual;
}

/* Operand i in that layout; fails if it has another number of elements. */
static const lowered *operand_in(lower *l, const tile_op *op, uint32_t i, const tile_layout *layout) {
  const tile_value *operand = op->operands[i];
  if (operand->type->kind != TILE_KIND_TILE || log2_of(tile_elements(operand->type)) != layout->bits) {
    lower_fail(l, op, FF_PARSE, "operand %u has another shape", i);
    return NULL;
  }
  return layout_convert(l, lower_value(l, operand), operand->type->scalar, layout);
}

static bool points(lower *l, const tile_op *op) {
  const tile_type *type = op->operands[0]->type;
  if (type->kind == TILE_KIND_TILE && type->scalar == TILE_POINTER) return true;
  lower_fail(l, op, FF_PARSE, "its first operand has no pointers");
  return false;
}

/* atomic_rmw_tko and atomic_cas_tko: each element once, by its owner. */
static void lower_atomic(lower *l, tile_op *op) {
  if (!points(l, op)) return;
  order_before(l, op, true);
  bool cas = op->opcode == TILE_OP_ATOMIC_CAS_TKO;
  const tile_type *type = op->results[0].type;
  tile_scalar scalar = type->scalar;
  tile_layout layout = common_layout(l, op, op->operands[0]->type);
  const lowered *pointers = operand_in(l, op, 0, &layout), *first = operand_in(l, op, 1, &layout);
  const lowered *second = cas ? operand_in(l, op, 2, &layout) : NULL;
  const lowered *mask = op->mask >= 0 ? operand_in(l, op, (uint32_t)op->mask, &layout) : NULL;
  if (l->status) return;
  if (log2_of(tile_elements(type)) != layout.bits || op->operands[1]->type->scalar != scalar) {
    lower_fail(l, op, FF_PARSE, "its result has another shape or element");
    return;
  }
  char what[32], order[32], guard[24];
  if (cas) {
    if (tile_scalar_bits(scalar) < 32) {
      lower_fail(l, op, FF_UNSUPPORTED, "on %s", tile_scalar_name(scalar));
      return;
    }
    snprintf(what, sizeof what, "cas.b%u", tile_scalar_bits(scalar));
  } else if (!rmw_text(l, op, scalar, what, sizeof what)) {
    lower_fail(l, op, FF_UNSUPPORTED, "this operation on %s", tile_scalar_name(scalar));
    return;
  }
  order_text(order, sizeof order, op->ordering == TILE_WEAK ? TILE_RELAXED : op->ordering, op->scope);
  lowered *result = lower_result(l, &op->results[0], &layout);
  uint32_t mine = owner(l, &layout);
  char letter = lower_letter(result->class);
  for (uint32_t r = 0; r < 1u << layout.registers; r++) {
    uint32_t predicate = both(l, mask ? mask->registers[r] : NO_REGISTER, mine);
    guard_text(guard, sizeof guard, predicate);
    if (predicate) emit_constant(l, result->class, result->registers[r], 0);
    if (cas)
      lower_emit(l, "%satom%s.global.%s %%%c%u, [%%d%u], %%%c%u, %%%c%u;", guard, order, what, letter,
                 result->registers[r], pointers->registers[r], letter, first->registers[r], letter,
                 second->registers[r]);
    else
      lower_emit(l, "%satom%s.global.%s %%%c%u, [%%d%u], %%%c%u;", guard, order, what, letter, result->registers[r],
                 pointers->registers[r], letter, first->registers[r]);
  }
  if (mine) share_result(l, result, scalar);
  order_after(l, op, true);
}

/* ---- tiles of pointers ---- */

static void lower_load_pointers(lower *l, tile_op *op) {
  if (!points(l, op)) return;
  order_before(l, op, false);
  const tile_type *type = op->results[0].type;
  tile_layout layout = common_layout(l, op, op->operands[0]->type);
  const lowered *pointers = operand_in(l, op, 0, &layout);
  const lowered *mask = op->mask >= 0 ? operand_in(l, op, (uint32_t)op->mask, &layout) : NULL;
  const lowered *padding = op->padding >= 0 ? operand_in(l, op, (uint32_t)op->padding, &layout) : NULL;
  if (l->status) return;
  if (type->kind != TILE_KIND_TILE || log2_of(tile_elements(type)) != layout.bits ||
      tile_scalar_bits(type->scalar) == 4) {
    lower_fail(l, op, type->kind == TILE_KIND_TILE ? FF_UNSUPPORTED : FF_PARSE,
               "its result has another shape, or elements of 4 bits");
    return;
  }
  lowered *result = lower_result(l, &op->results[0], &layout);
  bool share = must_share(l, op, &layout);
  uint32_t mine = share ? owner(l, &layout) : NO_REGISTER;
  char order[32], address[32];
  order_text(order, sizeof order, op->ordering, op->scope);
  char letter = lower_letter(result->class);
  for (uint32_t r = 0; r < 1u << layout.registers && !l->status; r++) {
    uint32_t predicate = both(l, mask ? mask->registers[r] : NO_REGISTER, mine);
    if (predicate && padding)
      lower_emit(l, "mov.%s %%%c%u, %%%c%u;", lower_untyped(result->class), letter, result->registers[r], letter,
                 padding->registers[r]);
    else if (predicate) emit_constant(l, result->class, result->registers[r], 0);
    snprintf(address, sizeof address, "[%%d%u]", pointers->registers[r]);
    emit_load(l, order, type->scalar, &result->registers[r], 1, address, predicate);
  }
  if (share) share_result(l, result, type->scalar);
  order_after(l, op, false);
  note_copies(l, &layout);
}

static void lower_store_pointers(lower *l, tile_op *op) {
  if (!points(l, op)) return;
  order_before(l, op, true);
  tile_layout layout = common_layout(l, op, op->operands[0]->type);
  const lowered *pointers = operand_in(l, op, 0, &layout), *value = operand_in(l, op, 1, &layout);
  const lowered *mask = op->mask >= 0 ? operand_in(l, op, (uint32_t)op->mask, &layout) : NULL;
  if (l->status) return;
  tile_scalar scalar = op->operands[1]->type->scalar;
  if (tile_scalar_bits(scalar) == 4) {
    lower_fail(l, op, FF_UNSUPPORTED, "elements of 4 bits in memory");
    return;
  }
  uint32_t mine = owner(l, &layout);
  char order[32], address[32];
  order_text(order, sizeof order, op->ordering, op->scope);
  for (uint32_t r = 0; r < 1u << layout.registers; r++) {
    snprintf(address, sizeof address, "[%%d%u]", pointers->registers[r]);
    emit_store(l, order, scalar, &value->registers[r], 1, address,
               both(l, mask ? mask->registers[r] : NO_REGISTER, mine));
  }
  order_after(l, op, true);
}

static void lower_get_global(lower *l, tile_op *op) {
  const tile_global *global = NULL;
  for (uint32_t i = 0; i < l->module->global_count; i++)
    if (!strcmp(l->module->globals[i].name, op->string)) global = &l->module->globals[i];
  lowered *result = lower_result(l, &op->results[0], NULL);
  if (!global || result->class != CLASS_DOUBLE) {
    lower_fail(l, op, FF_PARSE, "there is no global \"%.60s\", or it gives no pointer", op->string);
    return;
  }
  result->divisor = global->alignment ? power_of((int64_t)global->alignment) : 16;
  if (!l->status) ff_text_add(l->text, "  mov.u64 %%d%u, %s;\n", result->registers[0], op->string);
  lower_emit(l, "cvta.global.u64 %%d%u, %%d%u;", result->registers[0], result->registers[0]);
}

bool lower_memory_op(lower *l, tile_op *op) {
  switch (op->opcode) {
  case TILE_OP_MAKE_TENSOR_VIEW: lower_make_tensor_view(l, op); return true;
  case TILE_OP_MAKE_PARTITION_VIEW:
  case TILE_OP_MAKE_STRIDED_VIEW:
  case TILE_OP_MAKE_GATHER_SCATTER_VIEW: lower_make_view(l, op); return true;
  case TILE_OP_GET_TENSOR_SHAPE:
  case TILE_OP_GET_INDEX_SPACE_SHAPE: lower_shape_query(l, op); return true;
  case TILE_OP_LOAD_VIEW_TKO: lower_load_view(l, op); return true;
  case TILE_OP_STORE_VIEW_TKO:
    store_through_view(l, op, op->operands[1], op->operands[0], store_one, true);
    return true;
  case TILE_OP_ATOMIC_RED_VIEW_TKO:
    store_through_view(l, op, op->operands[0], op->operands[op->index_first + op->index_count], reduce_one, false);
    return true;
  case TILE_OP_LOAD_PTR_TKO: lower_load_pointers(l, op); return true;
  case TILE_OP_STORE_PTR_TKO: lower_store_pointers(l, op); return true;
  case TILE_OP_ATOMIC_RMW_TKO:
  case TILE_OP_ATOMIC_CAS_TKO: lower_atomic(l, op); return true;
  case TILE_OP_GET_GLOBAL: lower_get_global(l, op); return true;
  case TILE_OP_MAKE_TOKEN:
  case TILE_OP_JOIN_TOKENS: return true; /* order_before looks at what was done, not at which token */
  case TILE_OP_MEMORY_FENCE_ALIAS_TKO: lower_barrier(l); return true;
  case TILE_OP_GDC_LAUNCH_DEPENDENTS_TKO:
  case TILE_OP_GDC_WAIT_TKO:
    if (l->architecture < 90) l->architecture = 90;
    if (op->opcode == TILE_OP_GDC_WAIT_TKO) lower_emit(l, "griddepcontrol.wait;");
    else {
      lower_barrier(l); /* what all threads wrote */
      lower_emit(l, "griddepcontrol.launch_dependents;");
    }
    return true;
  default: return false;
  }
}
