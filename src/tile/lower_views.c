/* SPDX-License-Identifier: Apache-2.0 */
/* Tensor views, the views of tiles on them, and loads, stores and reductions through these.
 *
 * The address of an element is the tensor's base plus, for each dimension, coordinate x stride. A coordinate is
 *
 *   the tile's origin (the same in all threads) + the thread's part + the register's part (known here)
 *
 * so one address register for the thread, and constants or multiples of strides for its other elements. Each dimension
 * is compared with the tensor's shape; where the shape is known to be a multiple of the tile, once. */
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "tile/lower_memory.h"

/* The elements of one load or store through a view. */
typedef struct access {
  const tile_op *op;
  const tile_type *view, *tensor_type;
  const lowered_tensor *tensor;
  tile_layout layout;
  tile_scalar scalar;
  uint32_t bytes; /* of an element; 1 if two elements share a byte: then all offsets are halved in the end */
  bool halves;    /* two elements share a byte */
  uint32_t stride[TILE_RANK_MAX]; /* 'd', in bytes: of the tensor's dimensions whose strides are not known here */
  uint32_t registers;             /* 1 << layout.registers */
  uint32_t base;                  /* 'd': the address of register 0's element, but for a sparse dimension */
  uint32_t first[TILE_RANK_MAX], bits[TILE_RANK_MAX];        /* of the element's number, per dimension of the tile */
  uint32_t in_tensor[TILE_RANK_MAX];                         /* the tensor's dimension */
  uint32_t mask[TILE_RANK_MAX];                              /* register bits that lie in the dimension */
  uint32_t origin[TILE_RANK_MAX], coordinate[TILE_RANK_MAX]; /* 'd': the tile's; with the thread's part */
  bool known_inside[TILE_RANK_MAX];                          /* no comparison */
  bool whole[TILE_RANK_MAX];                                 /* one comparison for all registers */
  const lowered *sparse;           /* indices of a gather view's sparse dimension, in `layout` */
  uint32_t *inside[TILE_RANK_MAX]; /* predicates by register & mask */
  uint32_t *offset;                /* 'd' by register & dynamic: added to base */
  uint32_t *all_inside;            /* predicates by register & checked */
  uint32_t dynamic, checked;
  bool any_check;
  uint32_t vector; /* elements that go in one instruction */
} access;

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

static void lower_make_tensor_view(lower *l, tile_op *op) {
  const tile_type *type = op->results[0].type;
  if (type->kind != TILE_KIND_TENSOR_VIEW || op->operands[0]->type->scalar != TILE_POINTER) {
    lower_fail(l, op, FF_PARSE, "it makes no tensor view of a pointer");
    return;
  }
  lowered_tensor *tensor = lower_alloc(l, sizeof *tensor);
  tensor->base = lower_scalar(l, op->operands[0]);
  tensor->base_divisor = lower_value(l, op->operands[0])->divisor;
  uint32_t shapes = 0, strides = 0;
  for (uint32_t d = 0; d < type->rank; d++) {
    tensor->shape_divisor[d] = memory_power_of(type->shape[d]);
    tensor->stride_divisor[d] = memory_power_of(type->strides[d]);
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
  lowered *value = lower_alloc(l, sizeof *value);
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

/* Whether two elements of 4 bits that share a byte are neighbours in dimension `fast` of the tile, as far as the types
 * say: what is known at run time only is as the specification wants it. */
static bool pairs_up(const access *a, uint32_t fast) {
  if (a->view->kind == TILE_KIND_STRIDED_VIEW && a->view->traversal[fast] & 1) return false;
  if (a->view->kind == TILE_KIND_GATHER_VIEW && a->view->sparse_dim == fast) return false;
  for (uint32_t d = 0; d < a->tensor_type->rank; d++) {
    int64_t size = a->tensor_type->shape[d], stride = a->tensor_type->strides[d];
    int64_t even = d == a->in_tensor[fast] ? size : size == 1 ? 0 : stride;
    if (even != TILE_DYNAMIC && even & 1) return false;
  }
  return true;
}

/* Neighbours in memory in one thread and in neighbouring threads: the dimension of stride 1 runs fastest. */
static tile_layout memory_layout(lower *l, const tile_type *tile, const access *a) {
  uint32_t fast = tile->rank ? tile->rank - 1 : 0;
  bool found = false;
  for (uint32_t k = 0; k < tile->rank; k++)
    if (a->tensor_type->strides[a->in_tensor[k]] == 1 && tile->shape[k] > 1) {
      fast = k;
      found = true;
    }
  tile_layout usual = layout_default(l, tile);
  if (a->halves) {
    if (!found || !pairs_up(a, fast))
      lower_fail(l, a->op, FF_UNSUPPORTED, "elements of 4 bits that do not come in pairs");
    if (!usual.registers) { /* a pair is one thread's */
      usual.registers = 1;
      for (uint32_t b = 0; b < usual.bits; b++) usual.of[b] = (uint8_t)(b ? LAYOUT_THREAD + b - 1 : 0);
    }
  }
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

/* How many neighbours of register 0 can go in one instruction, if all are inside of the tensor or none. */
static uint32_t vector_of(const access *a, bool all_inside) {
  uint32_t fast = TILE_RANK_MAX, n = 1;
  if (a->halves) return 2;
  for (uint32_t k = 0; k < a->view->rank; k++)
    if (a->tensor_type->strides[a->in_tensor[k]] == 1 && a->mask[k] & 1) fast = k;
  if (fast == TILE_RANK_MAX || a->scalar == TILE_I1 || (a->sparse && a->view->sparse_dim == fast)) return 1;
  while (n < 4 && n * a->bytes < 16 && lower_log2(n) < a->bits[fast] &&
         a->layout.of[a->first[fast] + lower_log2(n)] == lower_log2(n))
    n *= 2;
  uint64_t aligned = a->tensor->base_divisor;
  for (uint32_t d = 0; d < a->tensor_type->rank; d++) { /* another dimension may have the stride 1, too */
    if (d == a->in_tensor[fast] || a->tensor_type->shape[d] == 1) continue;
    if (a->tensor->stride_divisor[d] * a->bytes < aligned) aligned = a->tensor->stride_divisor[d] * a->bytes;
  }
  uint64_t step = memory_power_of(step_of(a, fast)) * a->bytes;
  if (step < aligned) aligned = step;
  bool inside = all_inside || a->known_inside[fast];
  while (n > 1 && (aligned % (n * a->bytes) || (!inside && a->tensor->shape_divisor[a->in_tensor[fast]] % n))) n /= 2;
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
  a->bytes = lower_bytes(a->scalar);
  a->halves = tile_scalar_bits(a->scalar) == 4;
  uint32_t bit = 0;
  for (uint32_t k = a->view->rank; k-- > 0;) {
    a->first[k] = bit;
    a->bits[k] = lower_log2((uint64_t)a->view->shape[k]);
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
  if (a->halves) { /* added in the end */
    a->base = lower_register(l, CLASS_DOUBLE);
    lower_emit(l, "mov.u64 %%d%u, 0;", a->base);
  }
  a->offset = lower_alloc(l, a->registers * sizeof(uint32_t));
  a->all_inside = lower_alloc(l, a->registers * sizeof(uint32_t));
  for (uint32_t k = 0; k < a->view->rank; k++) {
    uint32_t d = a->in_tensor[k];
    bool sparse = a->view->kind == TILE_KIND_GATHER_VIEW && a->view->sparse_dim == k;
    for (uint32_t b = 0; b < a->bits[k]; b++)
      if (!(layout->of[a->first[k] + b] & LAYOUT_THREAD)) a->mask[k] |= 1u << layout->of[a->first[k] + b];
    a->inside[k] = lower_alloc(l, a->registers * sizeof(uint32_t));
    a->whole[k] = !sparse && a->view->kind == TILE_KIND_PARTITION_VIEW &&
                  a->tensor->shape_divisor[d] % (uint64_t)a->view->shape[k] == 0;
    if (!a->known_inside[k]) {
      a->any_check = true;
      if (!a->whole[k]) a->checked |= a->mask[k];
    }
    bool dynamic = a->tensor_type->strides[d] == TILE_DYNAMIC;
    if (dynamic || sparse) a->dynamic |= a->mask[k];
    if (dynamic) a->stride[d] = stride_bytes(l, a, d);
    if (sparse) continue; /* each register has a coordinate of its own */
    uint32_t origin = widen(l, a->op, a->op->operands[a->op->index_first + k]);
    int64_t step = step_of(a, k);
    uint32_t c = origin;
    if (step != 1) {
      c = lower_register(l, CLASS_DOUBLE);
      lower_emit(l, "mul.lo.u64 %%d%u, %%d%u, %lld;", c, origin, (long long)step);
    }
    a->origin[k] = c;
    uint32_t part;
    if (layout_thread_part(l, layout, a->first[k], a->bits[k], &part)) {
      uint32_t wide = lower_register(l, CLASS_DOUBLE), sum = lower_register(l, CLASS_DOUBLE);
      lower_emit(l, "cvt.u64.u32 %%d%u, %%r%u;", wide, part);
      lower_emit(l, "add.u64 %%d%u, %%d%u, %%d%u;", sum, c, wide);
      c = sum;
    }
    a->coordinate[k] = c;
    uint32_t address = lower_register(l, CLASS_DOUBLE);
    if (dynamic) lower_emit(l, "mad.lo.u64 %%d%u, %%d%u, %%d%u, %%d%u;", address, c, a->stride[d], a->base);
    else
      lower_emit(l, "mad.lo.u64 %%d%u, %%d%u, %lld, %%d%u;", address, c,
                 (long long)(a->tensor_type->strides[d] * a->bytes), a->base);
    a->base = address;
  }
  a->vector = vector_of(a, false);
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
    all = lower_both(l, all, one);
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
      uint32_t sum = lower_register(l, CLASS_DOUBLE), stride = a->stride[d];
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
    if (a->halves) {
      uint32_t half = lower_register(l, CLASS_DOUBLE);
      lower_emit(l, "shr.u64 %%d%u, %%d%u, 1;", half, *known);
      lower_emit(l, "add.u64 %%d%u, %%d%u, %%d%u;", half, half, a->tensor->base);
      *known = half;
    }
  }
  snprintf(text, size, "[%%d%u%+lld]", *known, (long long)(a->halves ? constant / 2 : constant));
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

/* What is done with each of the registers of an access. */
typedef void element_access(lower *l, const tile_op *op, tile_scalar scalar, uint32_t *registers, uint32_t count,
                            const char *address, uint32_t predicate, uint64_t pad);

typedef struct accessed {
  element_access *each;
  uint32_t *registers;
  uint32_t owner; /* a predicate of those that do it, or NO_REGISTER */
  uint64_t pad;
} accessed;

static void access_each(lower *l, access *a, const accessed *what) {
  char address[64];
  for (uint32_t r = 0; r < a->registers && !l->status; r += a->vector)
    what->each(l, a->op, a->scalar, what->registers + r, a->vector, address_text(l, a, r, address, sizeof address),
               lower_both(l, inside_all(l, a, r), what->owner), what->pad);
}

/* The predicate that the whole tile lies inside of the tensor: the same in all threads. */
static uint32_t tile_inside(lower *l, const access *a) {
  uint32_t all = NO_REGISTER;
  for (uint32_t k = 0; k < a->view->rank; k++) {
    if (a->known_inside[k]) continue;
    uint32_t end = lower_register(l, CLASS_DOUBLE), one = lower_register(l, CLASS_PREDICATE);
    lower_emit(l, "add.u64 %%d%u, %%d%u, %lld;", end, a->origin[k], (long long)a->view->shape[k]);
    lower_emit(l, "setp.le.u64 %%p%u, %%d%u, %%d%u;", one, end,
               shape_register(l, a->tensor_type, a->tensor, a->in_tensor[k]));
    all = lower_both(l, all, one);
  }
  return all;
}

/* The access of all registers; tiles of many go one way, without further comparisons, if they are inside as a whole. */
static void access_all(lower *l, access *a, const accessed *what, bool vectors) {
  if (!vectors && !a->halves) a->vector = 1;
  if (!a->any_check || a->registers < 4 || a->sparse || a->halves) {
    access_each(l, a, what);
    return;
  }
  uint32_t partly = l->labels++, done = l->labels++;
  lower_emit(l, "@!%%p%u bra.uni L%u;", tile_inside(l, a), partly);
  access whole = *a; /* what it makes on the way stays on the way */
  whole.any_check = false;
  if (vectors) whole.vector = vector_of(a, true);
  whole.offset = lower_alloc(l, a->registers * sizeof(uint32_t));
  access_each(l, &whole, what);
  lower_emit(l, "bra.uni L%u;", done);
  if (l->status) return;
  ff_text_add(l->text, "L%u:\n", partly);
  access_each(l, a, what);
  if (!l->status) ff_text_add(l->text, "L%u:\n", done);
}

static void load_one(lower *l, const tile_op *op, tile_scalar scalar, uint32_t *to, uint32_t count, const char *address,
                     uint32_t predicate, uint64_t pad) {
  char order[32];
  memory_order_text(order, sizeof order, op->ordering, op->scope);
  for (uint32_t i = 0; predicate && i < count; i++) lower_set(l, lower_class(scalar), to[i], pad);
  memory_load(l, order, scalar, to, count, address, predicate);
}

static bool tile_of_view(const tile_type *type, const access *a) {
  return type->kind == TILE_KIND_TILE && type->scalar == a->scalar && type->rank == a->view->rank &&
         !memcmp(type->shape, a->view->shape, type->rank * sizeof *type->shape);
}

static void lower_load_view(lower *l, tile_op *op) {
  access a;
  memory_before(l, op, false);
  if (!access_begin(l, &a, op, op->operands[0])) return;
  const tile_type *type = op->results[0].type;
  if (!tile_of_view(type, &a)) {
    lower_fail(l, op, FF_PARSE, "its result has not the view's shape or element");
    return;
  }
  tile_layout layout = memory_layout(l, type, &a);
  access_sparse(l, &a, &layout);
  if (l->status) return;
  access_address(l, &a, &layout);
  lowered *result = lower_result(l, &op->results[0], &layout);
  bool share = memory_must_share(l, op, &layout);
  accessed what = {.each = load_one,
                   .registers = result->registers,
                   .pad = padding_bits(a.scalar, a.view->padding),
                   .owner = share ? memory_owner(l, &layout) : NO_REGISTER};
  access_all(l, &a, &what, true);
  if (share) memory_share(l, result, a.scalar);
  memory_after(l, op, false);
  memory_note_copies(l, &layout);
}

/* A store, or with `each` an atomic operation without a result, of each element by its owner. */
static void store_through_view(lower *l, tile_op *op, const tile_value *view, const tile_value *value_operand,
                               element_access *each, bool vectors) {
  access a;
  memory_before(l, op, true);
  if (!access_begin(l, &a, op, view)) return;
  if (!tile_of_view(value_operand->type, &a)) {
    lower_fail(l, op, FF_PARSE, "its value has not the view's shape or element");
    return;
  }
  tile_layout layout = memory_layout(l, value_operand->type, &a);
  const lowered *value = layout_convert(l, lower_value(l, value_operand), a.scalar, &layout);
  access_sparse(l, &a, &layout);
  if (l->status) return;
  access_address(l, &a, &layout);
  accessed what = {.each = each, .registers = value->registers, .owner = memory_owner(l, &layout)};
  access_all(l, &a, &what, vectors);
  memory_after(l, op, true);
}

static void store_one(lower *l, const tile_op *op, tile_scalar scalar, uint32_t *from, uint32_t n, const char *address,
                      uint32_t predicate, uint64_t pad) {
  (void)pad;
  char order[32];
  memory_order_text(order, sizeof order, op->ordering, op->scope);
  memory_store(l, order, scalar, from, n, address, predicate);
}

static void reduce_one(lower *l, const tile_op *op, tile_scalar scalar, uint32_t *from, uint32_t n, const char *address,
                       uint32_t predicate, uint64_t pad) {
  (void)pad;
  FF_ASSERT(n == 1);
  char what[32], guard[24];
  lower_guard_text(guard, sizeof guard, predicate);
  if (!memory_rmw_text(l, op, scalar, what, sizeof what)) {
    lower_fail(l, op, FF_UNSUPPORTED, "this operation on %s", tile_scalar_name(scalar));
    return;
  }
  lower_emit(l, "%sred.relaxed.%s.global.%s %s, %%%c%u;", guard, memory_scope_text(op->scope), what, address,
             lower_letter(lower_class(scalar)), from[0]);
}


bool lower_view_op(lower *l, tile_op *op) {
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
  default: return false;
  }
}
