/* SPDX-License-Identifier: Apache-2.0 */
/* Operations in bytecode, by their rows in operations.def.
 *
 *   operation: number, types of results, flags, attributes, operands, regions
 *   operand: the number of a value. Values are numbered as they come; when a region ends, the numbers of the values in
 *            it are free again, and the results of the operation around it get the next.
 *
 * Regions are read by a recursion of at most TILE_DEPTH_MAX. */
#include "tile/read.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { HINT_NONE, HINT_ANY, HINT_OWN }; /* how well an architecture's name fits */
enum { ATTRIBUTE_INTEGER = 1, ATTRIBUTE_FLOAT, ATTRIBUTE_BOOL, ATTRIBUTE_TYPE, ATTRIBUTE_STRING, ATTRIBUTE_ARRAY };
enum { ATTRIBUTE_DATA = 7, ATTRIBUTE_DIV_BY, ATTRIBUTE_SAME, ATTRIBUTE_DICTIONARY, ATTRIBUTE_HINTS, ATTRIBUTE_BOUNDED };

static const tile_form forms[] = {
#define X(name, number, text, since, results, flags, attributes, operands, regions, rule) \
  [number] = {text, since, results, flags, attributes, operands, regions, rule},
#include "tile/operations.def"
#undef X
};

const tile_form *tile_form_of(uint64_t number) {
  return number < sizeof forms / sizeof *forms && forms[number].text ? &forms[number] : NULL;
}

const char *tile_opcode_name(tile_opcode opcode) {
  const tile_form *form = tile_form_of((uint64_t)opcode);
  return form ? form->text : "?";
}

typedef struct body_reader {
  tile_reader *r;
  tile_span span;
  tile_function *function;
  uint64_t place, op_count;    /* among the lines; operations so far */
  FF_VEC(tile_value *) values; /* those that an operand can name */
} body_reader;

/* ---- attributes that say what they are ---- */

static uint32_t attribute_kind(tile_reader *r, tile_span *span, uint32_t depth) {
  size_t start = span->at;
  uint64_t kind = reader_varint(r, span);
  if (depth > READ_NESTING_MAX) reader_fail(r, span, start, FF_PARSE, "attributes are nested too deep");
  if (kind <= ATTRIBUTE_BOUNDED) return (uint32_t)kind;
  reader_fail(r, span, start, FF_UNSUPPORTED, "an attribute of number %" PRIu64 " is not known", kind);
  return 0;
}

/* An integer or a floating-point number with its type; its bits. */
static uint64_t read_number(tile_reader *r, tile_span *span, uint32_t kind, tile_scalar *scalar) {
  size_t start = span->at;
  uint64_t bits;
  *scalar = TILE_I1;
  if (kind == ATTRIBUTE_BOOL) return reader_byte(r, span) != 0;
  const tile_type *type = reader_type(r, span);
  if (r->status != FF_OK) return 0;
  if (type->kind != TILE_KIND_SCALAR || type->scalar == TILE_POINTER) {
    reader_fail(r, span, start, FF_PARSE, "a number whose type is no number's");
    return 0;
  }
  *scalar = type->scalar;
  uint32_t width = type->scalar == TILE_TF32 ? 19 : tile_scalar_bits(type->scalar);
  if (kind == ATTRIBUTE_INTEGER) bits = reader_varint(r, span);
  else bits = width <= 8 ? reader_byte(r, span) : (uint64_t)reader_signed(r, span);
  if (width < 64 && bits >> width) reader_fail(r, span, start, FF_PARSE, "a number of more than %u bits", width);
  return type->scalar == TILE_TF32 ? bits << 13 : bits;
}

static void skip_attribute(tile_reader *r, tile_span *span, uint32_t depth);

static void skip_list(tile_reader *r, tile_span *span, bool names, uint32_t depth) {
  uint32_t count = reader_count(r, span, 1);
  for (uint32_t i = 0; i < count && r->status == FF_OK; i++) {
    if (names) reader_string(r, span);
    skip_attribute(r, span, depth + 1);
  }
}

/* Two optional numbers, said by the bits of a byte. */
static void read_pair(tile_reader *r, tile_span *span, bool *has_first, int64_t *first, bool *has_second,
                      int64_t *second) {
  uint8_t flags = reader_byte(r, span);
  *has_first = flags & 1;
  *has_second = flags & 2;
  if (*has_first) *first = reader_signed(r, span);
  if (*has_second) *second = reader_signed(r, span);
}

static void skip_attribute(tile_reader *r, tile_span *span, uint32_t depth) {
  size_t start = span->at;
  uint32_t kind = attribute_kind(r, span, depth);
  tile_scalar scalar;
  bool has[2];
  int64_t numbers[2];
  if (r->status != FF_OK) return;
  switch (kind) {
  case ATTRIBUTE_INTEGER:
  case ATTRIBUTE_FLOAT:
  case ATTRIBUTE_BOOL: read_number(r, span, kind, &scalar); break;
  case ATTRIBUTE_TYPE: reader_type(r, span); break;
  case ATTRIBUTE_STRING: reader_string(r, span); break;
  case ATTRIBUTE_ARRAY: skip_list(r, span, false, depth); break;
  case ATTRIBUTE_DICTIONARY:
  case ATTRIBUTE_HINTS: skip_list(r, span, true, depth); break;
  case ATTRIBUTE_DIV_BY:
    reader_varint(r, span);
    read_pair(r, span, &has[0], &numbers[0], &has[1], &numbers[1]);
    break;
  case ATTRIBUTE_BOUNDED: read_pair(r, span, &has[0], &numbers[0], &has[1], &numbers[1]); break;
  default: reader_fail(r, span, start, FF_UNSUPPORTED, "an attribute of number %u is not expected here", kind);
  }
}

void reader_skip_attribute(tile_reader *r, tile_span *span) { skip_attribute(r, span, 0); }

/* ---- hints of a function ---- */

static void take_hint(tile_function *f, const char *name, uint64_t value) {
  if (value < 1 || value > 1024) return; /* no hint */
  if (!strcmp(name, "num_cta_in_cga")) f->clusters = (int32_t)value;
  if (!strcmp(name, "occupancy")) f->occupancy = (int32_t)value;
  if (!strcmp(name, "num_worker_warps_per_cta")) f->warps = (int32_t)value;
}

/* Hints of one architecture, into `f`. */
static void read_hints(tile_reader *r, tile_span *span, tile_function *f) {
  size_t start = span->at;
  tile_scalar scalar;
  if (attribute_kind(r, span, 0) != ATTRIBUTE_DICTIONARY) {
    reader_fail(r, span, start, FF_PARSE, "hints of an architecture that are no dictionary");
    return;
  }
  uint32_t count = reader_count(r, span, 2);
  for (uint32_t i = 0; i < count && r->status == FF_OK; i++) {
    const char *name = reader_string(r, span);
    tile_span ahead = *span;
    uint64_t kind = reader_varint(r, &ahead);
    if (kind == ATTRIBUTE_INTEGER) take_hint(f, name, read_number(r, &ahead, ATTRIBUTE_INTEGER, &scalar));
    skip_attribute(r, span, 1);
  }
}

static int hint_fit(const char *architecture) {
  return !strcmp(architecture, "sm_90") ? HINT_OWN : !strcmp(architecture, "default") ? HINT_ANY : HINT_NONE;
}

static void prefer(int32_t *to, int32_t hint, int fit, int *have) {
  if (!hint || fit <= *have) return;
  *to = hint;
  *have = fit;
}

void reader_hints(tile_reader *r, tile_span *span, tile_function *function) {
  size_t start = span->at;
  int warps = HINT_NONE, occupancy = HINT_NONE, clusters = HINT_NONE;
  if (attribute_kind(r, span, 0) != ATTRIBUTE_HINTS) {
    reader_fail(r, span, start, FF_PARSE, "hints of a function are no hints");
    return;
  }
  uint32_t count = reader_count(r, span, 2);
  for (uint32_t i = 0; i < count && r->status == FF_OK; i++) {
    tile_function found = {0};
    int fit = hint_fit(reader_string(r, span));
    read_hints(r, span, &found);
    prefer(&function->warps, found.warps, fit, &warps);
    prefer(&function->occupancy, found.occupancy, fit, &occupancy);
    prefer(&function->clusters, found.clusters, fit, &clusters);
  }
}

/* ---- attributes of operations ---- */

static void read_same(tile_reader *r, tile_span *span, tile_op *op) {
  uint32_t count = reader_count(r, span, 8);
  int64_t *same = ff_arena_alloc(r->arena, count * sizeof *same);
  for (uint32_t i = 0; i < count; i++) same[i] = (int64_t)reader_fixed(r, span, 8);
  op->assumed.same = same;
  op->assumed.same_count = count;
}

static void read_assumed(tile_reader *r, tile_span *span, tile_op *op) {
  size_t start = span->at;
  switch (attribute_kind(r, span, 0)) {
  case ATTRIBUTE_DIV_BY:
    op->assumed.kind = TILE_ASSUME_DIV_BY;
    op->assumed.divisor = reader_varint(r, span);
    read_pair(r, span, &op->assumed.has_every, &op->assumed.every, &op->assumed.has_along, &op->assumed.along);
    break;
  case ATTRIBUTE_SAME:
    op->assumed.kind = TILE_ASSUME_SAME;
    read_same(r, span, op);
    break;
  case ATTRIBUTE_BOUNDED:
    op->assumed.kind = TILE_ASSUME_BOUNDED;
    read_pair(r, span, &op->assumed.has_lower, &op->assumed.lower, &op->assumed.has_upper, &op->assumed.upper);
    break;
  default: reader_fail(r, span, start, FF_PARSE, "an assumption of no known kind");
  }
}

static void read_identities(tile_reader *r, tile_span *span, tile_op *op) {
  size_t start = span->at;
  uint32_t count = reader_count(r, span, 2);
  const uint32_t most = sizeof op->identities / sizeof *op->identities;
  if (count > most) reader_fail(r, span, start, FF_UNSUPPORTED, "%u operands; the most is %u", count, most);
  op->identity_count = count;
  for (uint32_t i = 0; i < count && r->status == FF_OK; i++) {
    uint32_t kind = attribute_kind(r, span, 0);
    tile_scalar scalar;
    if (kind < ATTRIBUTE_INTEGER || kind > ATTRIBUTE_BOOL)
      reader_fail(r, span, start, FF_PARSE, "an identity that is no number");
    op->identities[i].bits = read_number(r, span, kind, &scalar);
    op->identities[i].scalar = scalar;
  }
}

static void read_permutation(tile_reader *r, tile_span *span, tile_op *op) {
  uint32_t count = reader_count(r, span, 4);
  int32_t *permutation = ff_arena_alloc(r->arena, count * sizeof *permutation);
  for (uint32_t i = 0; i < count; i++) permutation[i] = (int32_t)(uint32_t)reader_fixed(r, span, 4);
  op->permutation = permutation;
  op->permutation_count = count;
}

static void read_inbounds(tile_reader *r, tile_span *span, tile_op *op) {
  size_t start = span->at;
  uint32_t count = reader_count(r, span, 1);
  if (count > TILE_RANK_MAX) reader_fail(r, span, start, FF_PARSE, "bounds of %u dimensions", count);
  for (uint32_t i = 0; i < count && r->status == FF_OK; i++)
    if (reader_byte(r, span)) op->inbounds |= (uint8_t)(1u << i);
}

static uint8_t read_reduction(tile_reader *r, tile_span *span) {
  static const tile_rmw kinds[] = {TILE_RMW_ADD, TILE_RMW_MIN, TILE_RMW_MAX,  TILE_RMW_AND,
                                   TILE_RMW_OR,  TILE_RMW_XOR, TILE_RMW_UMIN, TILE_RMW_UMAX};
  return (uint8_t)kinds[reader_below(r, span, sizeof kinds / sizeof *kinds, "kind of reduction")];
}

static int64_t read_size(tile_reader *r, tile_span *span) {
  return (int64_t)reader_below(r, span, UINT64_C(1) << 31, "number of this size");
}

static void skip_hints(tile_reader *r, tile_span *span) { skip_list(r, span, true, 0); }

static void read_scope(tile_reader *r, tile_span *span, tile_op *op) {
  op->scope = (uint8_t)reader_below(r, span, TILE_SCOPE_SYSTEM + 1, "scope");
  op->has_scope = true;
}

static bool has(const char *flags, uint64_t word, char flag) {
  if (*flags >= '0' && *flags <= '9') flags++;
  const char *found = strchr(flags, flag);
  return found && (word >> (found - flags) & 1);
}

static void read_attribute(body_reader *b, tile_op *op, char kind, const tile_form *form, uint64_t flags) {
  tile_reader *r = b->r;
  tile_span *span = &b->span;
  switch (kind) {
  case 'r': op->rounding = (uint8_t)reader_below(r, span, TILE_ROUND_AWAY + 1, "rounding"); break;
  case 'o': op->overflow = (uint8_t)reader_below(r, span, 4, "kind of overflow"); break;
  case 'p': op->predicate = (uint8_t)reader_below(r, span, TILE_GE + 1, "comparison"); break;
  case 'c': op->ordered = reader_below(r, span, 2, "order of comparison"); break;
  case 's': op->lhs_signed = reader_below(r, span, 2, "signedness"); break;
  case 'l': op->rhs_signed = reader_below(r, span, 2, "signedness"); break;
  case 'm': op->ordering = (uint8_t)reader_below(r, span, TILE_ACQ_REL + 1, "memory order"); break;
  case 'x': read_scope(r, span, op); break;
  case 'y':
    if (has(form->flags, flags, 'S')) read_scope(r, span, op);
    break;
  case 'h':
    if (has(form->flags, flags, 'H')) skip_hints(r, span);
    break;
  case 'k': op->rmw = (uint8_t)reader_below(r, span, TILE_RMW_XCHG + 1, "atomic operation"); break;
  case 'K': op->rmw = read_reduction(r, span); break;
  case 'b': read_inbounds(r, span, op); break;
  case 'd': op->number = read_size(r, span); break;
  case 'a': op->alignment = read_size(r, span); break;
  case 'e': op->reverse = reader_byte(r, span) != 0; break;
  case 'i': read_identities(r, span, op); break;
  case 'q': op->string = reader_string(r, span); break;
  case 'A': read_assumed(r, span, op); break;
  case 'D': reader_constant(r, span, op->results[0].type, &op->data, &op->data_bytes, &op->data_splat); break;
  default: read_permutation(r, span, op);
  }
}

static void read_attributes(body_reader *b, tile_op *op, const tile_form *form, uint64_t flags) {
  for (const char *kind = form->attributes; *kind && b->r->status == FF_OK; kind++) {
    uint32_t since = 1;
    if (*kind >= '0' && *kind <= '9') since = (uint32_t)(*kind++ - '0');
    if (b->r->minor >= since) read_attribute(b, op, *kind, form, flags);
    else if (*kind == 'r') op->rounding = TILE_ROUND_FULL; /* what it was before there was a choice */
  }
}

static uint64_t read_flags(body_reader *b, tile_op *op, const char *flags) {
  uint32_t since = 1;
  if (*flags >= '0' && *flags <= '9') since = (uint32_t)(*flags++ - '0');
  if (!*flags || b->r->minor < since) return 0;
  size_t start = b->span.at;
  uint64_t word = reader_varint(b->r, &b->span);
  if (word >> strlen(flags)) reader_fail(b->r, &b->span, start, FF_PARSE, "flags 0x%" PRIx64 ", not all known", word);
  op->flush_to_zero = has(flags, word, 'z');
  op->propagate_nan = has(flags, word, 'n');
  op->saturating = has(flags, word, 't');
  op->is_unsigned = has(flags, word, 'u');
  op->fast = has(flags, word, 'f');
  op->global = has(flags, word, 'g');
  return word;
}

/* ---- values ---- */

static void define(tile_value *value, const tile_type *type, body_reader *b, tile_op *op, tile_block *block,
                   uint32_t index) {
  *value = (tile_value){.type = type, .id = b->function->value_count++, .op = op, .block = block, .index = index};
}

static void read_results(body_reader *b, tile_op *op, const char *form) {
  size_t start = b->span.at;
  bool counted = *form == 'c';
  if (counted) form++;
  uint32_t count = counted ? reader_count(b->r, &b->span, 1) : (uint32_t)(*form - '0');
  if (*form != '*' && count != (uint32_t)(*form - '0'))
    reader_fail(b->r, &b->span, start, FF_PARSE, "%u results, not %c", count, *form);
  if (b->r->status != FF_OK) return;
  op->results = ff_arena_alloc(b->r->arena, count * sizeof *op->results);
  op->result_count = count;
  for (uint32_t i = 0; i < count && b->r->status == FF_OK; i++) {
    start = b->span.at;
    const tile_type *type = reader_type(b->r, &b->span);
    if (type && (type->kind == TILE_KIND_SCALAR || type->kind == TILE_KIND_FUNCTION))
      reader_fail(b->r, &b->span, start, FF_PARSE, "result %u has a type that no value has", i);
    define(&op->results[i], type, b, op, NULL, i);
  }
}

static void add_operand(body_reader *b, tile_op *op) {
  uint32_t number = reader_below(b->r, &b->span, b->values.count, "value");
  if (b->r->status == FF_OK) op->operands[op->operand_count++] = b->values.items[number];
}

static uint32_t add_counted(body_reader *b, tile_op *op) {
  uint32_t count = reader_count(b->r, &b->span, 1);
  tile_value **all = ff_arena_alloc(b->r->arena, (op->operand_count + count + 4) * sizeof *all); /* 4: see below */
  if (op->operand_count) memcpy(all, op->operands, op->operand_count * sizeof *all);
  op->operands = all;
  for (uint32_t i = 0; i < count && b->r->status == FF_OK; i++) add_operand(b, op);
  return count;
}

/* Operands one after the other. At most 5 are not in counted lists, at most 3 of these behind one. */
static void read_single_operands(body_reader *b, tile_op *op, const tile_form *form, uint64_t flags) {
  op->operands = ff_arena_alloc(b->r->arena, 6 * sizeof *op->operands);
  for (const char *kind = form->operands; *kind && b->r->status == FF_OK; kind++) {
    uint32_t first = op->operand_count;
    switch (*kind) {
    case 'i':
      op->index_first = first;
      op->index_count = add_counted(b, op);
      break;
    case 'j':
      op->stride_first = first;
      op->stride_count = add_counted(b, op);
      break;
    case 'a': add_counted(b, op); break;
    case 'v': add_operand(b, op); break;
    default:
      if (!has(form->flags, flags, *kind)) break;
      *(*kind == 'M' ? &op->mask : *kind == 'P' ? &op->padding : &op->token) = (int32_t)first;
      add_operand(b, op);
    }
  }
}

/* All operands as one list with a count: those of `form` one by one, then the rest. */
static void read_listed_operands(body_reader *b, tile_op *op, const char *form) {
  size_t start = b->span.at;
  uint32_t fixed = (uint32_t)strspn(form, "v");
  uint32_t count = add_counted(b, op);
  if (count < fixed || (form[fixed] == 'T' && count > 1)) {
    reader_fail(b->r, &b->span, start, FF_PARSE, "%u operands", count);
  } else if (form[fixed] == 'i') {
    op->index_first = fixed;
    op->index_count = count - fixed;
  } else if (form[fixed] == 'T' && count) {
    op->token = 0;
  }
}

/* ---- regions ---- */

static tile_op *read_op(body_reader *b, tile_block *block, uint32_t depth);

static bool is_terminator(tile_opcode opcode) {
  return opcode == TILE_OP_BREAK || opcode == TILE_OP_CONTINUE || opcode == TILE_OP_RETURN || opcode == TILE_OP_YIELD;
}

/* The operations so far become the block's. */
static void end_block(body_reader *b, tile_block *block, size_t at, tile_op **ops, size_t count) {
  if (b->r->status != FF_OK) return;
  if (!count || !is_terminator(ops[count - 1]->opcode)) {
    reader_fail(b->r, &b->span, at, FF_PARSE, "ends without a terminator");
    return;
  }
  for (size_t i = 0; i + 1 < count; i++)
    if (is_terminator(ops[i]->opcode)) {
      reader_fail(b->r, &b->span, ops[i]->offset, FF_PARSE, "operations follow a terminator");
      return;
    }
  block->op_count = (uint32_t)count;
  block->ops = ff_arena_alloc(b->r->arena, count * sizeof(tile_op *));
  memcpy(block->ops, ops, count * sizeof *ops);
}

static void read_arguments(body_reader *b, tile_block *block) {
  uint32_t count = reader_count(b->r, &b->span, 1);
  block->arguments = ff_arena_alloc(b->r->arena, count * sizeof *block->arguments);
  block->argument_count = count;
  for (uint32_t i = 0; i < count && b->r->status == FF_OK; i++) {
    size_t start = b->span.at;
    const tile_type *type = reader_type(b->r, &b->span);
    if (type && (type->kind == TILE_KIND_SCALAR || type->kind == TILE_KIND_FUNCTION))
      reader_fail(b->r, &b->span, start, FF_PARSE, "argument %u has a type that no value has", i);
    define(&block->arguments[i], type, b, NULL, block, i);
    FF_PUSH(&b->values, &block->arguments[i]);
  }
}

static void read_block(body_reader *b, tile_block *block, uint32_t depth) {
  size_t start = b->span.at, outer = b->values.count;
  read_arguments(b, block);
  uint32_t count = reader_count(b->r, &b->span, 2);
  tile_op **ops = ff_arena_alloc(b->r->arena, count * sizeof(tile_op *));
  uint32_t read = 0;
  while (read < count && b->r->status == FF_OK) ops[read++] = read_op(b, block, depth);
  end_block(b, block, start, ops, read);
  b->values.count = outer;
}

/* The `else` of an `if` may be absent: the same as one that yields nothing. */
static void add_empty_else(body_reader *b, tile_op *op, tile_block *block) {
  tile_op *yield = ff_arena_alloc(b->r->arena, sizeof *yield);
  *yield =
      (tile_op){.opcode = TILE_OP_YIELD, .offset = op->offset, .mask = -1, .padding = -1, .token = -1, .block = block};
  read_check_op(b->r, yield);
  end_block(b, block, op->offset, &yield, 1);
}

static void read_regions(body_reader *b, tile_op *op, uint32_t count, uint32_t depth) {
  size_t start = b->span.at;
  uint64_t said = reader_varint(b->r, &b->span);
  if (b->r->status == FF_OK && said != count)
    reader_fail(b->r, &b->span, start, FF_PARSE, "%" PRIu64 " regions, not %u", said, count);
  if (b->r->status == FF_OK && depth >= TILE_DEPTH_MAX)
    reader_fail(b->r, &b->span, start, FF_UNSUPPORTED, "regions are nested deeper than %u", TILE_DEPTH_MAX);
  for (uint32_t i = 0; i < count && b->r->status == FF_OK; i++) {
    tile_block *block = op->regions[i] = ff_arena_alloc(b->r->arena, sizeof *block);
    block->parent = op;
    start = b->span.at;
    uint64_t blocks = reader_varint(b->r, &b->span);
    if (blocks == 1) read_block(b, block, depth + 1);
    else if (blocks == 0 && i == 1) add_empty_else(b, op, block);
    else reader_fail(b->r, &b->span, start, FF_PARSE, "%" PRIu64 " blocks in a region", blocks);
  }
  op->region_count = count;
}

/* ---- operations ---- */

static const tile_form *read_opcode(body_reader *b, tile_op *op) {
  size_t start = b->span.at;
  uint64_t number = reader_varint(b->r, &b->span);
  const tile_form *form = tile_form_of(number);
  if (b->r->status != FF_OK) return NULL;
  if (!form) {
    reader_fail(b->r, &b->span, start, FF_UNSUPPORTED, "an operation of number %" PRIu64 " is not known", number);
    return NULL;
  }
  op->opcode = (tile_opcode)number;
  b->r->part = form->text;
  if (!form->since) reader_fail(b->r, &b->span, start, FF_PARSE, "is not for inside of functions");
  else if (b->r->minor < form->since)
    reader_fail(b->r, &b->span, start, FF_PARSE, "came with version 13.%u; the file is of version 13.%u", form->since,
                b->r->minor);
  return b->r->status == FF_OK ? form : NULL;
}

/* The operation may be half filled after a failure. */
static tile_op *read_op(body_reader *b, tile_block *block, uint32_t depth) {
  tile_op *op = ff_arena_alloc(b->r->arena, sizeof *op);
  const char *part = b->r->part;
  op->block = block;
  op->offset = (uint32_t)b->span.at;
  op->mask = op->padding = op->token = -1;
  op->line = read_lines_find(b->r, b->place, ++b->op_count, &op->file);
  const tile_form *form = read_opcode(b, op);
  if (!form) return op;
  read_results(b, op, form->results);
  uint64_t flags = read_flags(b, op, form->flags);
  read_attributes(b, op, form, flags);
  if (*form->operands == '#') read_listed_operands(b, op, form->operands + 1);
  else read_single_operands(b, op, form, flags);
  if (form->regions) read_regions(b, op, form->regions, depth);
  b->r->part = form->text;
  if (b->r->status == FF_OK) read_check_op(b->r, op);
  for (uint32_t i = 0; i < op->result_count && b->r->status == FF_OK; i++) FF_PUSH(&b->values, &op->results[i]);
  if (b->r->status == FF_OK) b->r->part = part;
  return op;
}

void reader_body(tile_reader *r, tile_span span, tile_function *function, uint64_t place) {
  body_reader b = {.r = r, .span = span, .function = function, .place = place};
  FF_VEC(tile_op *) ops = {0};
  const tile_type *type = function->type;
  if (r->argument_room < type->input_count) {
    reader_fail(r, &span, span.at, FF_UNSUPPORTED, "functions have too many arguments for the size of the file");
    return;
  }
  r->argument_room -= type->input_count;
  tile_block *body = function->body = ff_arena_alloc(r->arena, sizeof *body);
  body->argument_count = type->input_count;
  body->arguments = ff_arena_alloc(r->arena, type->input_count * sizeof *body->arguments);
  for (uint32_t i = 0; i < type->input_count; i++) {
    define(&body->arguments[i], type->inputs[i], &b, NULL, body, i);
    FF_PUSH(&b.values, &body->arguments[i]);
  }
  while (b.span.at < b.span.end && r->status == FF_OK) FF_PUSH(&ops, read_op(&b, body, 0));
  end_block(&b, body, span.at, ops.items, ops.count);
  free(ops.items);
  free(b.values.items);
}
