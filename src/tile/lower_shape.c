/* SPDX-License-Identifier: Apache-2.0 */
/* Where elements go: constants, iota, reshape, permute, broadcast, cat, extract, insert, pack; and what combines the
 * elements of a dimension: reduce, scan.
 *
 * Most of these only change the numbers of elements, that is, the layout; a broadcast is put off until somebody says in
 * which layout it is wanted. A reduction halves its dimension until one element is left: first elements that one thread
 * has, then those of lanes, then those of warps. */
#include <string.h>

#include "base/check.h"
#include "tile/lower.h"

#define SLICES_MAX 64u /* of extract with an index that is known at run time only */

/* The first bit of dimension k in an element's number; *bits: how many it has. */
static uint32_t dimension_bits(const tile_type *type, uint32_t k, uint32_t *bits) {
  uint32_t first = 0;
  for (uint32_t d = type->rank; d-- > k + 1;) first += lower_log2((uint64_t)type->shape[d]);
  *bits = lower_log2((uint64_t)type->shape[k]);
  return first;
}

static bool is_tile(lower *l, const tile_op *op, const tile_value *value) {
  if (value->type->kind == TILE_KIND_TILE) return true;
  lower_fail(l, op, FF_PARSE, "an operand or result is no tile");
  return false;
}

/* The value with registers: in the usual layout if it is a splat or was put off. */
static lowered *with_registers(lower *l, const tile_value *value) {
  lowered *v = lower_value(l, value);
  if (!v->splat && !v->lazy) return v;
  tile_layout usual = layout_default(l, value->type);
  return layout_convert(l, v, value->type->scalar, &usual);
}

static lowered *in_layout(lower *l, tile_value *result, const tile_layout *layout, uint32_t *registers) {
  lowered *value = lower_alloc(l, sizeof *value);
  value->class = lower_class(result->type->scalar);
  value->divisor = 1;
  value->layout = *layout;
  value->splat = !layout->bits;
  value->registers = registers;
  result->lowered = value;
  return value;
}

/* ---- constants ---- */

static uint64_t element_bits(const tile_op *op, uint32_t element, uint32_t bytes) {
  uint64_t bits = 0;
  memcpy(&bits, op->data + (size_t)element * bytes, bytes); /* little-endian, as this host */
  return bits;
}

static void lower_constant(lower *l, tile_op *op) {
  tile_value *result = &op->results[0];
  if (!is_tile(l, op, result)) return;
  uint32_t bytes = lower_bytes(result->type->scalar);
  uint32_t count = tile_elements(result->type);
  if (op->data_bytes < (size_t)bytes * (op->data_splat ? 1 : count)) {
    lower_fail(l, op, FF_PARSE, "it has %zu bytes of data only", op->data_bytes);
    return;
  }
  if (op->data_splat || count == 1) {
    lowered *value = lower_result(l, result, NULL);
    uint64_t element = element_bits(op, 0, bytes);
    lower_set(l, value->class, value->registers[0], element);
    bool whole = result->type->scalar >= TILE_I4 && result->type->scalar <= TILE_I64;
    if (whole) value->divisor = element ? element & -element : UINT64_C(1) << 32;
    return;
  }
  /* Elements that differ lie in memory. */
  uint32_t number = l->constants++, of = (uint32_t)(l->function - l->module->functions);
  ff_text_add(l->data, "\n.global .align 16 .b8 tile_constant_%u_%u[%u] = {", of, number, count * bytes);
  lower_bytes_text(l->data, op->data, count * bytes, count * bytes);
  ff_text_add(l->data, "};\n");
  tile_layout layout = layout_default(l, result->type);
  lowered *value = lower_result(l, result, &layout);
  uint32_t base = lower_register(l, CLASS_DOUBLE), part;
  lower_emit(l, "mov.u64 %%d%u, tile_constant_%u_%u;", base, of, number);
  if (layout_thread_part(l, &layout, 0, layout.bits, &part))
    lower_emit(l, "mad.wide.u32 %%d%u, %%r%u, %u, %%d%u;", base, part, bytes, base);
  for (uint32_t r = 0; r < 1u << layout.registers; r++) {
    uint32_t to = value->registers[r];
    if (value->class == CLASS_PREDICATE) to = lower_register(l, CLASS_WORD);
    char letter = value->class == CLASS_PREDICATE ? 'r' : lower_letter(value->class);
    lower_emit(l, "ld.global.%s%u %%%c%u, [%%d%u+%u];", letter == 'r' && bytes < 4 ? "u" : "b", 8 * bytes, letter, to,
               base, layout_static(&layout, r) * bytes);
    if (value->class == CLASS_PREDICATE) lower_emit(l, "setp.ne.u32 %%p%u, %%r%u, 0;", value->registers[r], to);
  }
}

static void lower_iota(lower *l, tile_op *op) {
  tile_value *result = &op->results[0];
  if (!is_tile(l, op, result)) return;
  tile_layout layout = layout_default(l, result->type);
  lowered *value = lower_result(l, result, &layout);
  if (value->class != CLASS_WORD && value->class != CLASS_DOUBLE) {
    lower_fail(l, op, FF_UNSUPPORTED, "of %s", tile_scalar_name(result->type->scalar));
    return;
  }
  uint32_t part, bits = tile_scalar_bits(result->type->scalar);
  bool threads = layout_thread_part(l, &layout, 0, layout.bits, &part);
  uint32_t mask = bits >= 32 ? UINT32_MAX : (1u << bits) - 1;
  for (uint32_t r = 0; r < (value->splat ? 1u : 1u << layout.registers); r++) {
    uint32_t number = value->class == CLASS_WORD ? value->registers[r] : lower_register(l, CLASS_WORD);
    uint32_t element = value->splat ? 0 : layout_static(&layout, r);
    if (threads) lower_emit(l, "or.b32 %%r%u, %%r%u, %u;", number, part, element);
    else lower_emit(l, "mov.u32 %%r%u, %u;", number, element);
    if (tile_elements(result->type) - 1 > mask) lower_emit(l, "and.b32 %%r%u, %%r%u, %u;", number, number, mask);
    if (value->class == CLASS_DOUBLE) lower_emit(l, "cvt.u64.u32 %%d%u, %%r%u;", value->registers[r], number);
  }
}

/* ---- numbers of elements only ---- */

static void lower_reshape(lower *l, tile_op *op) {
  if (!is_tile(l, op, op->operands[0]) || !is_tile(l, op, &op->results[0])) return;
  if (tile_elements(op->operands[0]->type) != tile_elements(op->results[0].type))
    lower_fail(l, op, FF_PARSE, "to another number of elements");
  else lower_alias(l, &op->results[0], lower_value(l, op->operands[0]));
}

/* The value whose element e is element map(e) of `of`, made when it is needed; columns as in layout_gather. If `of` was
 * put off itself, the two maps become one. */
static void put_off(lower *l, tile_value *result, const lowered *of, uint32_t of_bits, const uint8_t *columns) {
  lowered *value = lower_alloc(l, sizeof *value);
  value->class = of->class;
  value->divisor = of->divisor;
  value->layout.bits = (uint8_t)lower_log2(tile_elements(result->type));
  value->lazy = of->lazy ? of->lazy : of;
  value->lazy_bits = of->lazy ? of->lazy_bits : of_bits;
  for (uint32_t b = 0; b < LAYOUT_BITS_MAX; b++)
    value->lazy_columns[b] = of->lazy && columns[b] != LAYOUT_FREE ? of->lazy_columns[columns[b]] : columns[b];
  result->lowered = value;
}

static void lower_broadcast(lower *l, tile_op *op) {
  const tile_type *from = op->operands[0]->type, *to = op->results[0].type;
  if (!is_tile(l, op, op->operands[0]) || !is_tile(l, op, &op->results[0])) return;
  const lowered *value = lower_value(l, op->operands[0]);
  uint8_t columns[LAYOUT_BITS_MAX];
  memset(columns, LAYOUT_FREE, sizeof columns);
  if (from->rank != to->rank) {
    lower_fail(l, op, FF_PARSE, "to another rank");
    return;
  }
  for (uint32_t k = 0; k < to->rank; k++) {
    uint32_t bits, from_bits, first = dimension_bits(to, k, &bits), source = dimension_bits(from, k, &from_bits);
    if (from->shape[k] != to->shape[k] && from->shape[k] != 1) {
      lower_fail(l, op, FF_PARSE, "dimension %u has neither one element nor as many as the result", k);
      return;
    }
    for (uint32_t b = 0; b < bits && from_bits; b++) columns[first + b] = (uint8_t)(source + b);
  }
  if (value->splat || tile_elements(from) == tile_elements(to)) lower_alias(l, &op->results[0], value);
  else put_off(l, &op->results[0], value, lower_log2(tile_elements(from)), columns);
}

static void lower_permute(lower *l, tile_op *op) {
  const tile_type *from = op->operands[0]->type, *to = op->results[0].type;
  if (!is_tile(l, op, op->operands[0]) || !is_tile(l, op, &op->results[0]) || from->rank != to->rank) {
    lower_fail(l, op, FF_PARSE, "to another rank");
    return;
  }
  uint8_t columns[LAYOUT_BITS_MAX];
  memset(columns, LAYOUT_FREE, sizeof columns);
  for (uint32_t k = 0; k < to->rank; k++) {
    uint32_t source_dimension = (uint32_t)op->permutation[k], bits, from_bits;
    if (source_dimension >= from->rank || from->shape[source_dimension] != to->shape[k]) {
      lower_fail(l, op, FF_PARSE, "dimension %u does not fit its permutation", k);
      return;
    }
    uint32_t first = dimension_bits(to, k, &bits), source = dimension_bits(from, source_dimension, &from_bits);
    for (uint32_t b = 0; b < bits; b++) columns[first + b] = (uint8_t)(source + b);
  }
  const lowered *value = lower_value(l, op->operands[0]);
  if (value->splat) lower_alias(l, &op->results[0], value);
  else if (value->lazy) put_off(l, &op->results[0], value, lower_log2(tile_elements(from)), columns);
  else {
    tile_layout layout = value->layout;
    for (uint32_t b = 0; b < layout.bits; b++) layout.of[b] = value->layout.of[columns[b]];
    in_layout(l, &op->results[0], &layout, value->registers);
  }
}

/* A predicate, of thread bit t. */
static uint32_t thread_bit(lower *l, uint32_t t) {
  uint32_t bit = lower_register(l, CLASS_WORD), predicate = lower_register(l, CLASS_PREDICATE);
  lower_emit(l, "and.b32 %%r%u, %%r%u, %u;", bit, l->thread, 1u << t);
  lower_emit(l, "setp.ne.u32 %%p%u, %%r%u, 0;", predicate, bit);
  return predicate;
}

/* to = condition ? yes : no. */
static void emit_select(lower *l, register_class class, uint32_t to, uint32_t yes, uint32_t no, uint32_t condition) {
  if (class == CLASS_PREDICATE) {
    uint32_t a = lower_register(l, CLASS_WORD), b = lower_register(l, CLASS_WORD);
    lower_emit(l, "selp.u32 %%r%u, 1, 0, %%p%u;", a, yes);
    lower_emit(l, "selp.u32 %%r%u, 1, 0, %%p%u;", b, no);
    lower_emit(l, "selp.u32 %%r%u, %%r%u, %%r%u, %%p%u;", a, a, b, condition);
    lower_emit(l, "setp.ne.u32 %%p%u, %%r%u, 0;", to, a);
    return;
  }
  char c = lower_letter(class);
  lower_emit(l, "selp.%s %%%c%u, %%%c%u, %%%c%u, %%p%u;", lower_untyped(class), c, to, c, yes, c, no, condition);
}

/* One above the other in one dimension: the new highest bit of its number says which, and is a bit of the register. */
static void lower_cat(lower *l, tile_op *op) {
  const tile_type *from = op->operands[0]->type, *to = op->results[0].type;
  if (!is_tile(l, op, op->operands[0]) || !is_tile(l, op, op->operands[1]) || !is_tile(l, op, &op->results[0])) return;
  if (op->number < 0 || op->number >= to->rank || tile_elements(op->operands[1]->type) != tile_elements(from) ||
      tile_elements(to) != 2 * tile_elements(from) || from->rank != to->rank) {
    lower_fail(l, op, FF_UNSUPPORTED, "tiles of unequal size");
    return;
  }
  const lowered *first = with_registers(l, op->operands[0]);
  const lowered *second = layout_convert(l, lower_value(l, op->operands[1]), to->scalar, &first->layout);
  uint32_t bits, at = dimension_bits(to, (uint32_t)op->number, &bits) + bits - 1;
  tile_layout layout = {.bits = (uint8_t)(first->layout.bits + 1), .registers = (uint8_t)(first->layout.registers + 1)};
  for (uint32_t b = 0; b < layout.bits; b++)
    layout.of[b] = b < at ? first->layout.of[b] : b == at ? first->layout.registers : first->layout.of[b - 1];
  uint32_t half = 1u << first->layout.registers;
  uint32_t *registers = lower_alloc(l, 2 * half * sizeof(uint32_t));
  memcpy(registers, first->registers, half * sizeof(uint32_t));
  memcpy(registers + half, second->registers, half * sizeof(uint32_t));
  in_layout(l, &op->results[0], &layout, registers);
}

/* ---- extract and insert ---- */

/* Part `slice` (slices numbered as elements are) of the value. */
static lowered *take_slice(lower *l, const tile_op *op, const tile_layout *layout, uint32_t slice) {
  const tile_type *from = op->operands[0]->type, *to = op->results[0].type;
  uint8_t columns[LAYOUT_BITS_MAX];
  memset(columns, LAYOUT_FREE, sizeof columns);
  uint32_t offset = 0;
  for (uint32_t k = to->rank; k-- > 0;) {
    uint32_t bits, from_bits, first = dimension_bits(to, k, &bits), source = dimension_bits(from, k, &from_bits);
    for (uint32_t b = 0; b < bits; b++) columns[first + b] = (uint8_t)(source + b);
    offset |= (slice & ((1u << (from_bits - bits)) - 1)) << (source + bits);
    slice >>= from_bits - bits;
  }
  return layout_gather(l, lower_value(l, op->operands[0]), from->scalar, lower_log2(tile_elements(from)), columns,
                       offset, layout);
}

static void lower_extract(lower *l, tile_op *op) {
  const tile_type *from = op->operands[0]->type, *to = op->results[0].type;
  if (!is_tile(l, op, op->operands[0]) || !is_tile(l, op, &op->results[0])) return;
  bool fits = from->rank == to->rank && op->index_count == to->rank;
  for (uint32_t k = 0; fits && k < to->rank; k++) fits = from->shape[k] >= to->shape[k];
  if (!fits) {
    lower_fail(l, op, FF_PARSE, "a tile that does not fit into its source");
    return;
  }
  tile_layout layout = layout_default(l, to);
  const lowered *source = lower_value(l, op->operands[0]);
  if (source->splat) {
    lower_alias(l, &op->results[0], source);
    return;
  }
  uint32_t slice = 0, slices = tile_elements(from) / tile_elements(to), shift = 0;
  bool known = true;
  for (uint32_t k = to->rank; k-- > 0;) {
    uint64_t index = 0;
    uint32_t parts = (uint32_t)(from->shape[k] / to->shape[k]);
    known = known && lower_known(op->operands[op->index_first + k], &index);
    slice |= ((uint32_t)index & (parts - 1)) << shift; /* an index that does not exist: undefined */
    shift += lower_log2(parts);
  }
  if (known) {
    in_layout(l, &op->results[0], &layout, take_slice(l, op, &layout, slice)->registers);
    return;
  }
  if (slices > SLICES_MAX) {
    lower_fail(l, op, FF_UNSUPPORTED, "one of %u slices, by an index that is not constant", slices);
    return;
  }
  uint32_t number = lower_register(l, CLASS_WORD), *registers = NULL;
  shift = 0;
  lower_emit(l, "mov.u32 %%r%u, 0;", number);
  for (uint32_t k = to->rank; k-- > 0;) {
    uint32_t index = lower_scalar(l, op->operands[op->index_first + k]), part = lower_register(l, CLASS_WORD);
    lower_emit(l, "shl.b32 %%r%u, %%r%u, %u;", part, index, shift);
    lower_emit(l, "or.b32 %%r%u, %%r%u, %%r%u;", number, number, part);
    shift += lower_log2((uint64_t)(from->shape[k] / to->shape[k]));
  }
  for (uint32_t s = 0; s < slices; s++) {
    lowered *taken = take_slice(l, op, &layout, s);
    if (!registers) {
      registers = taken->registers;
      continue;
    }
    uint32_t chosen = lower_register(l, CLASS_PREDICATE);
    uint32_t *next = lower_alloc(l, sizeof(uint32_t) << layout.registers);
    lower_emit(l, "setp.eq.u32 %%p%u, %%r%u, %u;", chosen, number, s);
    for (uint32_t r = 0; r < 1u << layout.registers; r++) {
      next[r] = lower_register(l, taken->class);
      emit_select(l, taken->class, next[r], taken->registers[r], registers[r], chosen);
    }
    registers = next;
  }
  in_layout(l, &op->results[0], &layout, registers);
}

/* Elements of the destination whose numbers, without the low bits, are the indices, become the source's. */
static void lower_insert(lower *l, tile_op *op) {
  const tile_type *part = op->operands[0]->type, *whole = op->operands[1]->type;
  if (!is_tile(l, op, op->operands[0]) || !is_tile(l, op, op->operands[1])) return;
  bool fits = part->rank == whole->rank && op->index_count == whole->rank && part->scalar == whole->scalar;
  for (uint32_t k = 0; fits && k < whole->rank; k++) fits = part->shape[k] <= whole->shape[k];
  if (!fits) {
    lower_fail(l, op, FF_PARSE, "a tile that does not fit into its destination");
    return;
  }
  const lowered *destination = with_registers(l, op->operands[1]);
  const tile_layout *layout = &destination->layout;
  uint8_t columns[LAYOUT_BITS_MAX];
  memset(columns, LAYOUT_FREE, sizeof columns);
  for (uint32_t k = 0; k < whole->rank; k++) {
    uint32_t bits, part_bits, first = dimension_bits(whole, k, &bits), source = dimension_bits(part, k, &part_bits);
    for (uint32_t b = 0; b < part_bits; b++) columns[first + b] = (uint8_t)(source + b);
  }
  const lowered *source = layout_gather(l, lower_value(l, op->operands[0]), part->scalar,
                                        lower_log2(tile_elements(part)), columns, 0, layout);
  uint32_t *registers = lower_alloc(l, sizeof(uint32_t) << layout->registers);
  for (uint32_t r = 0; r < 1u << layout->registers; r++) {
    uint32_t here = 0;
    for (uint32_t k = 0; k < whole->rank; k++) {
      uint32_t bits, part_bits, first = dimension_bits(whole, k, &bits), thread;
      dimension_bits(part, k, &part_bits);
      uint32_t slice = layout_static(layout, r) >> (first + part_bits) & ((1u << (bits - part_bits)) - 1);
      uint32_t index = lower_scalar(l, op->operands[op->index_first + k]);
      uint32_t equal = lower_register(l, CLASS_PREDICATE), number = lower_register(l, CLASS_WORD);
      if (layout_thread_part(l, layout, first + part_bits, bits - part_bits, &thread))
        lower_emit(l, "or.b32 %%r%u, %%r%u, %u;", number, thread, slice);
      else lower_emit(l, "mov.u32 %%r%u, %u;", number, slice);
      lower_emit(l, "setp.eq.u32 %%p%u, %%r%u, %%r%u;", equal, number, index);
      if (here) lower_emit(l, "and.pred %%p%u, %%p%u, %%p%u;", equal, equal, here);
      here = equal;
    }
    registers[r] = lower_register(l, source->class);
    if (here) emit_select(l, source->class, registers[r], source->registers[r], destination->registers[r], here);
    else registers[r] = source->registers[r]; /* of rank 0: the whole */
  }
  in_layout(l, &op->results[0], layout, registers);
}

/* ---- pack and unpack: a tile as bytes, and bytes as a tile ---- */

static bool rank_one(lower *l, const tile_op *op) {
  if (op->operands[0]->type->kind == TILE_KIND_TILE && op->operands[0]->type->rank == 1 &&
      op->results[0].type->kind == TILE_KIND_TILE && op->results[0].type->rank == 1 &&
      op->operands[0]->type->scalar != TILE_I1 && op->results[0].type->scalar != TILE_I1)
    return true;
  lower_fail(l, op, FF_UNSUPPORTED, "other than of rank 1 and of numbers");
  return false;
}

/* `bits` bits of a register of any class, from `from` on, as an 'r' register. */
static uint32_t take_bits(lower *l, register_class class, uint32_t value, uint32_t from, uint32_t bits) {
  uint32_t word = lower_register(l, CLASS_WORD);
  if (class == CLASS_DOUBLE) {
    uint32_t shifted = lower_register(l, CLASS_DOUBLE);
    lower_emit(l, "shr.u64 %%d%u, %%d%u, %u;", shifted, value, from);
    lower_emit(l, "cvt.u32.u64 %%r%u, %%d%u;", word, shifted);
    from = 0;
  } else if (class == CLASS_HALF) lower_emit(l, "cvt.u32.u16 %%r%u, %%h%u;", word, value);
  else word = value;
  uint32_t field = lower_register(l, CLASS_WORD);
  lower_emit(l, "bfe.u32 %%r%u, %%r%u, %u, %u;", field, word, from, bits);
  return field;
}

/* Fields of `field` bits of the source's elements, or (joins) elements of as many of the source's. */
static void lower_pack(lower *l, tile_op *op) {
  if (!rank_one(l, op)) return;
  const tile_type *from = op->operands[0]->type, *to = op->results[0].type;
  uint32_t from_size = tile_scalar_bits(from->scalar), to_size = tile_scalar_bits(to->scalar);
  if ((uint64_t)tile_elements(from) * from_size != (uint64_t)tile_elements(to) * to_size) {
    lower_fail(l, op, FF_PARSE, "to another number of bytes");
    return;
  }
  uint32_t source_bits = lower_log2(tile_elements(from));
  tile_layout layout = layout_default(l, to);
  lowered *result = lower_result(l, &op->results[0], &layout);
  uint32_t registers = result->splat ? 1 : 1u << layout.registers;
  uint8_t columns[LAYOUT_BITS_MAX];
  memset(columns, LAYOUT_FREE, sizeof columns);
  if (from_size >= to_size) { /* the low bits of an element's number say which field */
    uint32_t k = lower_log2(from_size / to_size), part;
    for (uint32_t b = k; b < layout.bits; b++) columns[b] = (uint8_t)(b - k);
    const lowered *source =
        layout_gather(l, lower_value(l, op->operands[0]), from->scalar, source_bits, columns, 0, &layout);
    bool threads = k && layout_thread_part(l, &layout, 0, k, &part);
    uint32_t by_thread = 0;
    if (threads) {
      by_thread = lower_register(l, CLASS_WORD);
      lower_emit(l, "mul.lo.u32 %%r%u, %%r%u, %u;", by_thread, part, to_size);
    }
    for (uint32_t r = 0; r < registers; r++) {
      uint32_t at = (layout_static(&layout, r) & ((1u << k) - 1)) * to_size, value = source->registers[r];
      if (threads) { /* bring the thread's field down first */
        uint32_t moved = lower_register(l, source->class == CLASS_HALF ? CLASS_WORD : source->class);
        if (source->class == CLASS_HALF) lower_emit(l, "cvt.u32.u16 %%r%u, %%h%u;", moved, value);
        bool wide = source->class == CLASS_DOUBLE;
        lower_emit(l, "shr.u%u %%%c%u, %%%c%u, %%r%u;", wide ? 64 : 32, wide ? 'd' : 'r', moved, wide ? 'd' : 'r',
                   source->class == CLASS_HALF ? moved : value, by_thread);
        lower_emit(l, "mov.b32 %%r%u, %%r%u;", result->registers[r],
                   take_bits(l, wide ? CLASS_DOUBLE : CLASS_WORD, moved, at, to_size));
      } else if (from_size == to_size && result->class == source->class)
        lower_emit(l, "mov.%s %%%c%u, %%%c%u;", lower_untyped(result->class), lower_letter(result->class),
                   result->registers[r], lower_letter(result->class), value);
      else if (result->class == CLASS_WORD)
        lower_emit(l, "mov.b32 %%r%u, %%r%u;", result->registers[r], take_bits(l, source->class, value, at, to_size));
      else lower_fail(l, op, FF_UNSUPPORTED, "to elements of %u bits", to_size);
    }
    return;
  }
  uint32_t k = lower_log2(to_size / from_size);
  for (uint32_t b = 0; b < layout.bits; b++) columns[b] = (uint8_t)(b + k);
  const lowered *source[16];
  for (uint32_t j = 0; j < 1u << k; j++)
    source[j] = layout_gather(l, lower_value(l, op->operands[0]), from->scalar, source_bits, columns, j, &layout);
  for (uint32_t r = 0; r < registers; r++) {
    uint32_t words[2] = {0, 0};
    for (uint32_t j = 0; j < 1u << k; j++) {
      uint32_t field = take_bits(l, source[j]->class, source[j]->registers[r], 0, from_size);
      uint32_t *word = &words[j * from_size / 32], shift = j * from_size % 32;
      if (!*word) *word = field;
      else {
        uint32_t sum = lower_register(l, CLASS_WORD);
        lower_emit(l, "bfi.b32 %%r%u, %%r%u, %%r%u, %u, %u;", sum, field, *word, shift, from_size);
        *word = sum;
      }
    }
    if (result->class == CLASS_DOUBLE)
      lower_emit(l, "mov.b64 %%d%u, {%%r%u, %%r%u};", result->registers[r], words[0], words[1]);
    else if (result->class == CLASS_HALF) lower_emit(l, "cvt.u16.u32 %%h%u, %%r%u;", result->registers[r], words[0]);
    else lower_emit(l, "mov.b32 %%r%u, %%r%u;", result->registers[r], words[0]);
  }
}

/* ---- reduce and scan ---- */

#define OPERANDS_MAX 8u

/* What a reduction keeps of each operand while it goes on. */
typedef struct folding {
  tile_op *op;
  uint32_t count; /* operands */
  tile_scalar scalar[OPERANDS_MAX];
  register_class class[OPERANDS_MAX];
  tile_layout layout; /* of all */
  uint32_t *registers[OPERANDS_MAX];
  bool commutes; /* which of two elements comes first does not matter */
} folding;

static void set_scalar(lower *l, tile_value *argument, register_class class, uint32_t value) {
  lowered *v = lower_alloc(l, sizeof *v);
  v->class = class;
  v->splat = true;
  v->divisor = 1;
  v->registers = lower_alloc(l, sizeof(uint32_t));
  v->registers[0] = value;
  argument->lowered = v;
}

/* result = body(current, previous), for all operands; constants of the body were lowered before. */
static void combine(lower *l, const folding *f, const uint32_t *current, const uint32_t *previous, uint32_t *result) {
  tile_block *body = f->op->regions[0];
  for (uint32_t i = 0; i < f->count; i++) {
    set_scalar(l, &body->arguments[2 * i], f->class[i], current[i]);
    set_scalar(l, &body->arguments[2 * i + 1], f->class[i], previous[i]);
  }
  lower_block_again(l, body);
  const tile_op *last = body->ops[body->op_count - 1];
  for (uint32_t i = 0; i < f->count; i++) result[i] = lower_scalar(l, last->operands[i]);
}

/* Whether the body is one such operation of its two arguments. */
static bool is_commutative(const tile_block *body) {
  if (body->op_count != 2 || body->argument_count != 2) return false;
  const tile_op *op = body->ops[0], *last = body->ops[1];
  for (uint32_t i = 0; i < 2; i++)
    if (op->operand_count != 2 || op->operands[i] == op->operands[1 - i] || op->operands[i]->block != body ||
        op->operands[i]->op)
      return false;
  if (last->operands[0] != &op->results[0]) return false;
  switch (body->ops[0]->opcode) {
  case TILE_OP_ADDF:
  case TILE_OP_ADDI:
  case TILE_OP_MULF:
  case TILE_OP_MULI:
  case TILE_OP_MAXF:
  case TILE_OP_MAXI:
  case TILE_OP_MINF:
  case TILE_OP_MINI:
  case TILE_OP_ANDI:
  case TILE_OP_ORI:
  case TILE_OP_XORI: return true;
  default: return false;
  }
}

static bool begin_folding(lower *l, tile_op *op, folding *f) {
  tile_block *body = op->regions[0];
  *f = (folding){.op = op, .count = op->operand_count};
  const tile_op *last = body->ops[body->op_count - 1];
  if (!f->count || f->count > OPERANDS_MAX || op->result_count != f->count || body->argument_count != 2 * f->count ||
      last->opcode != TILE_OP_YIELD || last->operand_count != f->count) {
    lower_fail(l, op, FF_PARSE, "its body does not take two values for each of 1 to %u operands", OPERANDS_MAX);
    return false;
  }
  const tile_type *type = op->operands[0]->type;
  if (!is_tile(l, op, op->operands[0]) || op->number < 0 || op->number >= type->rank) {
    lower_fail(l, op, FF_PARSE, "there is no such dimension");
    return false;
  }
  const tile_layout usual = layout_default(l, type);
  f->layout = usual;
  for (uint32_t i = 0; i < f->count; i++) {
    if (!is_tile(l, op, op->operands[i]) || tile_elements(op->operands[i]->type) != tile_elements(type)) {
      lower_fail(l, op, FF_PARSE, "its operands have different shapes");
      return false;
    }
    const lowered *value = lower_value(l, op->operands[i]);
    if (layout_equal(&f->layout, &usual) && !value->splat && !value->lazy) f->layout = value->layout;
  }
  for (uint32_t i = 0; i < f->count; i++) {
    f->scalar[i] = op->operands[i]->type->scalar;
    f->class[i] = lower_class(f->scalar[i]);
    f->registers[i] = layout_convert(l, lower_value(l, op->operands[i]), f->scalar[i], &f->layout)->registers;
    if (last->operands[i]->type->kind != TILE_KIND_TILE || last->operands[i]->type->scalar != f->scalar[i] ||
        tile_elements(last->operands[i]->type) != 1) {
      lower_fail(l, op, FF_PARSE, "its body yields another type");
      return false;
    }
  }
  f->commutes = is_commutative(body);
  lower_block_constants(l, body);
  return !l->status;
}

/* The layout without bit `bit` of the element's number. */
static tile_layout without_bit(const tile_layout *layout, uint32_t bit) {
  tile_layout rest = {.bits = (uint8_t)(layout->bits - 1), .registers = layout->registers};
  bool in_register = !(layout->of[bit] & LAYOUT_THREAD);
  if (in_register) rest.registers--;
  for (uint32_t b = 0; b < rest.bits; b++) {
    rest.of[b] = layout->of[b < bit ? b : b + 1];
    if (in_register && !(rest.of[b] & LAYOUT_THREAD) && rest.of[b] > layout->of[bit]) rest.of[b]--;
  }
  return rest;
}

/* Two elements of one thread become one. */
static void fold_registers(lower *l, folding *f, uint32_t bit) {
  uint32_t which = f->layout.of[bit], low_mask = (1u << which) - 1;
  tile_layout rest = without_bit(&f->layout, bit);
  uint32_t *next[OPERANDS_MAX];
  for (uint32_t i = 0; i < f->count; i++) next[i] = lower_alloc(l, sizeof(uint32_t) << rest.registers);
  for (uint32_t r = 0; r < 1u << rest.registers && !l->status; r++) {
    uint32_t low = (r & low_mask) | (r & ~low_mask) << 1, current[OPERANDS_MAX], previous[OPERANDS_MAX];
    uint32_t result[OPERANDS_MAX];
    for (uint32_t i = 0; i < f->count; i++) {
      previous[i] = f->registers[i][low];
      current[i] = f->registers[i][low | 1u << which];
    }
    combine(l, f, current, previous, result);
    for (uint32_t i = 0; i < f->count; i++) next[i][r] = result[i];
  }
  for (uint32_t i = 0; i < f->count; i++) f->registers[i] = next[i];
  f->layout = rest;
}

/* What the lane whose number differs in one bit has. */
static uint32_t from_lane(lower *l, register_class class, uint32_t value, uint32_t mask) {
  uint32_t result = lower_register(l, class);
  if (class == CLASS_WORD) {
    lower_emit(l, "shfl.sync.bfly.b32 %%r%u, %%r%u, %u, 31, -1;", result, value, mask);
  } else if (class == CLASS_DOUBLE) {
    uint32_t half[2], got[2];
    for (uint32_t i = 0; i < 2; i++) half[i] = lower_register(l, CLASS_WORD), got[i] = lower_register(l, CLASS_WORD);
    lower_emit(l, "mov.b64 {%%r%u, %%r%u}, %%d%u;", half[0], half[1], value);
    for (uint32_t i = 0; i < 2; i++)
      lower_emit(l, "shfl.sync.bfly.b32 %%r%u, %%r%u, %u, 31, -1;", got[i], half[i], mask);
    lower_emit(l, "mov.b64 %%d%u, {%%r%u, %%r%u};", result, got[0], got[1]);
  } else {
    uint32_t word = lower_register(l, CLASS_WORD);
    if (class == CLASS_HALF) lower_emit(l, "cvt.u32.u16 %%r%u, %%h%u;", word, value);
    else lower_emit(l, "selp.u32 %%r%u, 1, 0, %%p%u;", word, value);
    lower_emit(l, "shfl.sync.bfly.b32 %%r%u, %%r%u, %u, 31, -1;", word, word, mask);
    if (class == CLASS_HALF) lower_emit(l, "cvt.u16.u32 %%h%u, %%r%u;", result, word);
    else lower_emit(l, "setp.ne.u32 %%p%u, %%r%u, 0;", result, word);
  }
  return result;
}

/* The elements of two lanes, or of two warps, become one, which both have. */
static void fold_threads(lower *l, folding *f, uint32_t bit) {
  uint32_t thread = f->layout.of[bit] - LAYOUT_THREAD;
  tile_layout rest = without_bit(&f->layout, bit);
  uint32_t count = 1u << f->layout.registers, second = f->commutes ? 0 : thread_bit(l, thread);
  const lowered *half[OPERANDS_MAX][2];
  uint32_t *next[OPERANDS_MAX];
  for (uint32_t i = 0; i < f->count; i++) {
    next[i] = lower_alloc(l, count * sizeof(uint32_t));
    if (thread < 5) continue;
    lowered whole = {.class = f->class[i], .layout = f->layout, .registers = f->registers[i], .divisor = 1};
    uint8_t columns[LAYOUT_BITS_MAX];
    for (uint32_t b = 0; b < LAYOUT_BITS_MAX; b++) columns[b] = (uint8_t)(b < bit ? b : b + 1);
    for (uint32_t h = 0; h < 2; h++)
      half[i][h] = layout_gather(l, &whole, f->scalar[i], f->layout.bits, columns, h << bit, &rest);
  }
  for (uint32_t r = 0; r < count && !l->status; r++) {
    uint32_t current[OPERANDS_MAX], previous[OPERANDS_MAX], result[OPERANDS_MAX];
    for (uint32_t i = 0; i < f->count; i++) {
      if (thread >= 5) {
        previous[i] = half[i][0]->registers[r];
        current[i] = half[i][1]->registers[r];
        continue;
      }
      uint32_t mine = f->registers[i][r], other = from_lane(l, f->class[i], mine, 1u << thread);
      previous[i] = mine;
      current[i] = other;
      if (f->commutes) continue;
      previous[i] = lower_register(l, f->class[i]);
      current[i] = lower_register(l, f->class[i]);
      emit_select(l, f->class[i], previous[i], other, mine, second);
      emit_select(l, f->class[i], current[i], mine, other, second);
    }
    combine(l, f, current, previous, result);
    for (uint32_t i = 0; i < f->count; i++) next[i][r] = result[i];
  }
  for (uint32_t i = 0; i < f->count; i++) f->registers[i] = next[i];
  f->layout = rest;
}

static void lower_reduce(lower *l, tile_op *op) {
  folding f;
  if (!begin_folding(l, op, &f)) return;
  uint32_t bits, first = dimension_bits(op->operands[0]->type, (uint32_t)op->number, &bits);
  for (; bits && !l->status; bits--) {
    /* the highest bit that a register's number has; else the highest of a lane's number, else any */
    uint32_t chosen = first + bits - 1;
    for (uint32_t b = first; b < first + bits; b++) {
      bool better = !(f.layout.of[b] & LAYOUT_THREAD) ||
                    (f.layout.of[b] < LAYOUT_THREAD + 5 && f.layout.of[chosen] >= LAYOUT_THREAD + 5);
      if (better) chosen = b;
    }
    if (f.layout.of[chosen] & LAYOUT_THREAD) fold_threads(l, &f, chosen);
    else fold_registers(l, &f, chosen);
  }
  for (uint32_t i = 0; i < f.count && !l->status; i++) {
    if (!is_tile(l, op, &op->results[i]) || lower_log2(tile_elements(op->results[i].type)) != f.layout.bits ||
        op->results[i].type->scalar != f.scalar[i]) {
      lower_fail(l, op, FF_PARSE, "result %u has another shape or element", i);
      return;
    }
    in_layout(l, &op->results[i], &f.layout, f.registers[i]);
  }
}

/* Bit by bit of the dimension, from the lowest: the elements of each upper half take what the last of the lower half
 * has (the other way round if reversed), so that after bit b all are prefixes within 1 << (b + 1). */
static void lower_scan(lower *l, tile_op *op) {
  folding f;
  if (!begin_folding(l, op, &f)) return;
  uint32_t bits, first = dimension_bits(op->operands[0]->type, (uint32_t)op->number, &bits);
  uint32_t registers = 1u << f.layout.registers;
  const bool reverse = op->reverse;
  for (uint32_t b = first; b < first + bits && !l->status; b++) {
    uint8_t columns[LAYOUT_BITS_MAX];
    uint32_t offset = 0;
    for (uint32_t c = 0; c < LAYOUT_BITS_MAX; c++) columns[c] = c >= first && c <= b ? LAYOUT_FREE : (uint8_t)c;
    for (uint32_t c = first; c <= b; c++)
      if ((c < b) != reverse) offset |= 1u << c;
    const lowered *partner[OPERANDS_MAX];
    uint32_t *next[OPERANDS_MAX];
    for (uint32_t i = 0; i < f.count; i++) {
      lowered whole = {.class = f.class[i], .layout = f.layout, .registers = f.registers[i], .divisor = 1};
      partner[i] = layout_gather(l, &whole, f.scalar[i], f.layout.bits, columns, offset, &f.layout);
      next[i] = lower_alloc(l, registers * sizeof(uint32_t));
    }
    bool by_thread = f.layout.of[b] & LAYOUT_THREAD;
    uint32_t upper = by_thread ? thread_bit(l, f.layout.of[b] - LAYOUT_THREAD) : 0;
    for (uint32_t r = 0; r < registers && !l->status; r++) {
      bool takes = by_thread || (r >> f.layout.of[b] & 1) != reverse;
      uint32_t current[OPERANDS_MAX], previous[OPERANDS_MAX], result[OPERANDS_MAX];
      for (uint32_t i = 0; i < f.count; i++) {
        current[i] = result[i] = f.registers[i][r];
        previous[i] = partner[i]->registers[r];
      }
      if (takes) combine(l, &f, current, previous, result);
      for (uint32_t i = 0; i < f.count; i++) {
        next[i][r] = result[i];
        if (!takes || !by_thread) continue;
        next[i][r] = lower_register(l, f.class[i]);
        emit_select(l, f.class[i], next[i][r], reverse ? current[i] : result[i], reverse ? result[i] : current[i],
                    upper);
      }
    }
    for (uint32_t i = 0; i < f.count; i++) f.registers[i] = next[i];
  }
  for (uint32_t i = 0; i < f.count && !l->status; i++) {
    if (!is_tile(l, op, &op->results[i]) || lower_log2(tile_elements(op->results[i].type)) != f.layout.bits) {
      lower_fail(l, op, FF_PARSE, "result %u has another shape", i);
      return;
    }
    in_layout(l, &op->results[i], &f.layout, f.registers[i]);
  }
}

bool lower_shape_op(lower *l, tile_op *op) {
  switch (op->opcode) {
  case TILE_OP_CONSTANT: lower_constant(l, op); return true;
  case TILE_OP_IOTA: lower_iota(l, op); return true;
  case TILE_OP_RESHAPE: lower_reshape(l, op); return true;
  case TILE_OP_BROADCAST: lower_broadcast(l, op); return true;
  case TILE_OP_PERMUTE: lower_permute(l, op); return true;
  case TILE_OP_CAT: lower_cat(l, op); return true;
  case TILE_OP_EXTRACT: lower_extract(l, op); return true;
  case TILE_OP_INSERT: lower_insert(l, op); return true;
  case TILE_OP_PACK:
  case TILE_OP_UNPACK: lower_pack(l, op); return true;
  case TILE_OP_REDUCE: lower_reduce(l, op); return true;
  case TILE_OP_SCAN: lower_scan(l, op); return true;
  default: return false;
  }
}
