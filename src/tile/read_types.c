/* SPDX-License-Identifier: Apache-2.0 */
/* Types in bytecode: a number for the kind, then what the kind needs; other types by their index. A type is read when
 * it is first needed. */
#include "tile/read.h"

#include <inttypes.h>
#include <string.h>

enum { TYPE_POINTER = 12, TYPE_TILE, TYPE_TENSOR_VIEW, TYPE_PARTITION_VIEW, TYPE_FUNCTION, TYPE_TOKEN };
enum { TYPE_GATHER_VIEW = 20, TYPE_STRIDED_VIEW = 21 };

#define FARTHEST (INT64_C(1) << 48) /* elements: no address space is larger, and in bytes it is far from 64 bits */

static const struct scalar_row {
  uint8_t number, bits, since; /* in the bytecode; minor version */
  const char *name;
} scalars[] = {
    [TILE_I1] = {0, 1, 1, "i1"},         [TILE_I4] = {22, 4, 3, "i4"},     [TILE_I8] = {1, 8, 1, "i8"},
    [TILE_I16] = {2, 16, 1, "i16"},      [TILE_I32] = {3, 32, 1, "i32"},   [TILE_I64] = {4, 64, 1, "i64"},
    [TILE_F16] = {5, 16, 1, "f16"},      [TILE_BF16] = {6, 16, 1, "bf16"}, [TILE_F32] = {7, 32, 1, "f32"},
    [TILE_TF32] = {8, 32, 1, "tf32"},    [TILE_F64] = {9, 64, 1, "f64"},   [TILE_E4M3] = {10, 8, 1, "e4m3"},
    [TILE_E5M2] = {11, 8, 1, "e5m2"},    [TILE_E8M0] = {18, 8, 2, "e8m0"}, [TILE_E2M1] = {19, 4, 3, "e2m1"},
    [TILE_POINTER] = {12, 64, 1, "ptr"},
};

uint32_t tile_scalar_bits(tile_scalar scalar) { return scalars[scalar].bits; }

const char *tile_scalar_name(tile_scalar scalar) { return scalars[scalar].name; }

static bool same_tensor(const tile_type *a, const tile_type *b) { return a == b || (a && b && tile_type_equal(a, b)); }

static bool same_inputs(const tile_type *a, const tile_type *b) {
  if (a->input_count != b->input_count) return false;
  for (uint32_t i = 0; i < a->input_count; i++)
    if (!tile_type_equal(a->inputs[i], b->inputs[i])) return false;
  return true;
}

bool tile_type_equal(const tile_type *a, const tile_type *b) {
  if (a == b) return true;
  return a->kind == b->kind && a->scalar == b->scalar && a->pointee == b->pointee && a->rank == b->rank &&
         !memcmp(a->shape, b->shape, sizeof a->shape) && !memcmp(a->strides, b->strides, sizeof a->strides) &&
         same_tensor(a->tensor, b->tensor) && !memcmp(a->dim_map, b->dim_map, sizeof a->dim_map) &&
         !memcmp(a->traversal, b->traversal, sizeof a->traversal) && a->sparse_dim == b->sparse_dim &&
         a->padding == b->padding && same_inputs(a, b);
}

/* ---- reading ---- */

static const tile_type *read_type(tile_reader *r, uint64_t index, uint32_t depth);

static const tile_type *inner(tile_reader *r, tile_span *span, uint32_t depth) {
  uint32_t index = reader_below(r, span, r->types.count, "type");
  return read_type(r, index, depth + 1);
}

/* A list of `width`-byte numbers, at most TILE_RANK_MAX; its length. */
static uint32_t read_list(tile_reader *r, tile_span *span, uint32_t width, int64_t *numbers) {
  size_t start = span->at;
  uint32_t count = reader_count(r, span, width);
  if (count > TILE_RANK_MAX) {
    reader_fail(r, span, start, FF_UNSUPPORTED, "a rank of %u; the most is %u", count, TILE_RANK_MAX);
    return 0;
  }
  for (uint32_t i = 0; i < count; i++) {
    uint64_t bits = reader_fixed(r, span, width);
    numbers[i] = width == 4 ? (int32_t)(uint32_t)bits : (int64_t)bits;
  }
  return count;
}

static void read_list32(tile_reader *r, tile_span *span, int32_t *numbers, uint32_t count) {
  int64_t wide[TILE_RANK_MAX] = {0};
  size_t start = span->at;
  if (read_list(r, span, 4, wide) != count) reader_fail(r, span, start, FF_PARSE, "not as many numbers as dimensions");
  for (uint32_t i = 0; i < count; i++) numbers[i] = (int32_t)wide[i];
}

/* The shape of a tile: each dimension a power of two, not too many elements. */
static void read_tile_shape(tile_reader *r, tile_span *span, uint32_t width, tile_type *t) {
  size_t start = span->at;
  uint64_t elements = 1;
  t->rank = read_list(r, span, width, t->shape);
  for (uint32_t d = 0; d < t->rank && r->status == FF_OK; d++) {
    int64_t n = t->shape[d];
    if (n < 1 || (n & (n - 1)))
      reader_fail(r, span, start, FF_PARSE, "dimension %u of a tile is %" PRId64 ", no power of two", d, n);
    else if (n > TILE_ELEMENTS_MAX || (elements *= (uint64_t)n) > TILE_ELEMENTS_MAX)
      reader_fail(r, span, start, FF_UNSUPPORTED, "a tile of more than %u elements", TILE_ELEMENTS_MAX);
  }
}

static void need_scalar(tile_reader *r, tile_span *span, size_t at, const tile_type *element) {
  if (element && element->kind != TILE_KIND_SCALAR)
    reader_fail(r, span, at, FF_PARSE, "an element that is neither a number nor a pointer");
}

/* A word before the other parts, whose lowest bit says that one follows them; since 13.`since`. */
static bool read_flag(tile_reader *r, tile_span *span, uint32_t since) {
  return r->minor >= since && (reader_varint(r, span) & 1);
}

static void read_pointer(tile_reader *r, tile_span *span, tile_type *t, uint32_t depth) {
  size_t start = span->at;
  bool attribute = read_flag(r, span, 4);
  const tile_type *to = inner(r, span, depth);
  need_scalar(r, span, start, to);
  if (attribute) reader_varint(r, span);
  t->kind = TILE_KIND_SCALAR;
  t->scalar = TILE_POINTER;
  if (to) t->pointee = to->scalar;
}

static void take_element(tile_type *t, const tile_type *element) {
  if (!element) return;
  t->scalar = element->scalar;
  t->pointee = element->pointee;
}

static void read_tile(tile_reader *r, tile_span *span, tile_type *t, uint32_t depth) {
  size_t start = span->at;
  const tile_type *element = inner(r, span, depth);
  need_scalar(r, span, start, element);
  t->kind = TILE_KIND_TILE;
  take_element(t, element);
  read_tile_shape(r, span, 8, t);
}

static void read_tensor_view(tile_reader *r, tile_span *span, tile_type *t, uint32_t depth) {
  size_t start = span->at;
  bool attribute = read_flag(r, span, 4);
  const tile_type *element = inner(r, span, depth);
  need_scalar(r, span, start, element);
  t->kind = TILE_KIND_TENSOR_VIEW;
  take_element(t, element);
  t->rank = read_list(r, span, 8, t->shape);
  uint32_t strides = read_list(r, span, 8, t->strides);
  if (attribute) reader_varint(r, span);
  if (strides != t->rank) reader_fail(r, span, start, FF_PARSE, "%u dimensions with %u strides", t->rank, strides);
  for (uint32_t d = 0; d < t->rank && r->status == FF_OK; d++) {
    if (t->shape[d] != TILE_DYNAMIC && (t->shape[d] < 0 || t->shape[d] > FARTHEST))
      reader_fail(r, span, start, FF_PARSE, "dimension %u of a tensor is %" PRId64, d, t->shape[d]);
    else if (t->strides[d] != TILE_DYNAMIC && (t->strides[d] < -FARTHEST || t->strides[d] > FARTHEST))
      reader_fail(r, span, start, FF_PARSE, "stride %u of a tensor is %" PRId64, d, t->strides[d]);
  }
}

static void read_padding(tile_reader *r, tile_span *span, tile_type *t) {
  static const tile_padding paddings[] = {TILE_PAD_ZERO, TILE_PAD_NEGATIVE_ZERO, TILE_PAD_NAN, TILE_PAD_INFINITY,
                                          TILE_PAD_NEGATIVE_INFINITY};
  t->padding = paddings[reader_below(r, span, sizeof paddings / sizeof *paddings, "padding value")];
}

static void check_view(tile_reader *r, tile_span *span, size_t at, const tile_type *t) {
  uint32_t seen = 0;
  if (r->status != FF_OK) return;
  if (t->tensor->kind != TILE_KIND_TENSOR_VIEW)
    reader_fail(r, span, at, FF_PARSE, "a view of something that is no tensor");
  else if (t->tensor->rank != t->rank)
    reader_fail(r, span, at, FF_PARSE, "tiles of rank %u of a tensor of rank %u", t->rank, t->tensor->rank);
  if (t->kind == TILE_KIND_GATHER_VIEW) return;
  for (uint32_t d = 0; d < t->rank && r->status == FF_OK; d++) {
    int32_t to = t->dim_map[d];
    if (to < 0 || (uint32_t)to >= t->rank || (seen >> to & 1))
      reader_fail(r, span, at, FF_PARSE, "dimension %u of a tile is dimension %d of the tensor", d, to);
    else seen |= 1u << to;
  }
}

static void read_view(tile_reader *r, tile_span *span, tile_type *t, tile_kind kind, uint32_t depth) {
  size_t start = span->at;
  bool padding = read_flag(r, span, 3);
  t->kind = kind;
  read_tile_shape(r, span, 4, t);
  if (kind == TILE_KIND_STRIDED_VIEW) read_list32(r, span, t->traversal, t->rank);
  t->tensor = inner(r, span, depth);
  take_element(t, t->tensor);
  if (kind == TILE_KIND_GATHER_VIEW) t->sparse_dim = reader_below(r, span, t->rank, "dimension");
  else read_list32(r, span, t->dim_map, t->rank);
  if (r->minor < 3) padding = reader_byte(r, span) != 0;
  if (padding) read_padding(r, span, t);
  for (uint32_t d = 0; kind == TILE_KIND_STRIDED_VIEW && d < t->rank; d++)
    if (t->traversal[d] < 1) reader_fail(r, span, start, FF_PARSE, "tiles that are %d elements apart", t->traversal[d]);
  check_view(r, span, start, t);
}

static void read_function_type(tile_reader *r, tile_span *span, tile_type *t, uint32_t depth) {
  size_t start = span->at;
  t->kind = TILE_KIND_FUNCTION;
  t->input_count = reader_count(r, span, 1);
  t->inputs = ff_arena_alloc(r->arena, t->input_count * sizeof *t->inputs);
  for (uint32_t i = 0; i < t->input_count && r->status == FF_OK; i++) {
    t->inputs[i] = inner(r, span, depth);
    if (r->status == FF_OK && (t->inputs[i]->kind != TILE_KIND_TILE || t->inputs[i]->rank))
      reader_fail(r, span, start, FF_UNSUPPORTED, "argument %u of a function is no scalar", i);
  }
  t->result_count = reader_count(r, span, 1);
  if (t->result_count) reader_fail(r, span, start, FF_UNSUPPORTED, "a function with results");
}

static void read_kind(tile_reader *r, tile_span *span, tile_type *t, uint32_t depth) {
  size_t start = span->at;
  uint64_t number = reader_varint(r, span);
  uint32_t since = 1;
  if (r->status != FF_OK) return;
  if (number == TYPE_GATHER_VIEW || number == TYPE_STRIDED_VIEW) since = 3;
  switch (number) {
  case TYPE_POINTER: read_pointer(r, span, t, depth); break;
  case TYPE_TILE: read_tile(r, span, t, depth); break;
  case TYPE_TENSOR_VIEW: read_tensor_view(r, span, t, depth); break;
  case TYPE_PARTITION_VIEW: read_view(r, span, t, TILE_KIND_PARTITION_VIEW, depth); break;
  case TYPE_GATHER_VIEW: read_view(r, span, t, TILE_KIND_GATHER_VIEW, depth); break;
  case TYPE_STRIDED_VIEW: read_view(r, span, t, TILE_KIND_STRIDED_VIEW, depth); break;
  case TYPE_FUNCTION: read_function_type(r, span, t, depth); break;
  case TYPE_TOKEN: t->kind = TILE_KIND_TOKEN; break;
  default:
    for (tile_scalar s = TILE_I1; s < TILE_POINTER; s++) {
      if (scalars[s].number != number) continue;
      t->kind = TILE_KIND_SCALAR;
      t->scalar = s;
      since = scalars[s].since;
      break;
    }
    if (t->kind != TILE_KIND_SCALAR || scalars[t->scalar].number != number)
      reader_fail(r, span, start, FF_UNSUPPORTED, "a type of number %" PRIu64 " is not known", number);
  }
  if (r->status == FF_OK && r->minor < since)
    reader_fail(r, span, start, FF_PARSE, "a type that came with version 13.%u in a file of version 13.%u", since,
                r->minor);
}

/* NULL after a failure. */
static const tile_type *read_type(tile_reader *r, uint64_t index, uint32_t depth) {
  if (r->status != FF_OK) return NULL;
  if (r->type_items[index]) return r->type_items[index];
  tile_span span = reader_item(r, &r->types, index);
  const char *part = r->part;
  tile_type *type = ff_arena_alloc(r->arena, sizeof *type);
  r->part = "a type";
  if (depth > READ_NESTING_MAX) reader_fail(r, &span, span.at, FF_PARSE, "types are nested too deep, or in themselves");
  else read_kind(r, &span, type, depth);
  if (r->status != FF_OK) return NULL;
  r->part = part;
  return r->type_items[index] = type;
}

const tile_type *reader_type(tile_reader *r, tile_span *span) {
  uint32_t index = reader_below(r, span, r->types.count, "type");
  return r->status == FF_OK ? read_type(r, index, 0) : NULL;
}
