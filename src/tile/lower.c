/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels, parameters and control flow. Conditions are scalars and so equal in all threads: branches never part the
 * threads of a block, and a barrier may stand anywhere.
 *
 * A value that a loop carries, or that both sides of an `if` give, has registers of its own; at the end of a body all
 * its new values are in registers before the first of these is set (one may be another's new value). */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "tile/lower.h"
#include "tile/tile.h"

#define FILES_MAX 1000u /* that lines are told of */

/* Where break and continue of a loop, or the yields of an `if`, go. */
typedef struct target {
  struct target *outer;
  tile_op *op;
  lowered **carried; /* for, loop: the registers of the carried values; else NULL */
  uint32_t carried_count;
  lowered **results;  /* loop, if: of the results */
  uint32_t next, end; /* labels: of the next iteration, behind all */
} target;

/* ---- labels ---- */

/* A label that several ways lead to: what the code before it left is not known behind it. */
static void place_label(lower *l, uint32_t label) {
  if (!l->status) ff_text_add(l->text, "L%u:\n", label);
  l->scratch_known = false;
  l->stored = l->loaded = l->loaded_copies = true;
}

static uint32_t new_label(lower *l) { return l->labels++; }

/* ---- values ---- */

lowered *lower_value(lower *l, const tile_value *value) {
  if (!value->lowered) { /* only after an error, or for a token */
    if (!l->status && value->type->kind != TILE_KIND_TOKEN)
      lower_fail(l, value->op, FF_INTERNAL, "result %u was not lowered", value->index);
    lowered *empty = lower_alloc(l, sizeof *empty);
    empty->splat = true;
    empty->divisor = 1;
    empty->registers = lower_alloc(l, sizeof(uint32_t));
    return empty;
  }
  return value->lowered;
}

static lowered *new_value(lower *l, const tile_type *type, const tile_layout *layout) {
  lowered *value = lower_alloc(l, sizeof *value);
  value->class = lower_class(type->scalar);
  value->divisor = 1;
  value->splat = layout == NULL;
  if (layout) value->layout = *layout;
  uint32_t count = layout ? 1u << layout->registers : 1;
  value->registers = lower_alloc(l, count * sizeof(uint32_t));
  for (uint32_t r = 0; r < count; r++) value->registers[r] = lower_register(l, value->class);
  return value;
}

lowered *lower_result(lower *l, tile_value *result, const tile_layout *layout) {
  /* A tile of one element is the same in all threads. */
  lowered *value = new_value(l, result->type, layout && layout->bits ? layout : NULL);
  result->lowered = value;
  return value;
}

lowered *lower_alias(lower *l, tile_value *result, const lowered *as) {
  lowered *value = lower_alloc(l, sizeof *value);
  *value = *as;
  result->lowered = value;
  return value;
}

uint32_t lower_scalar(lower *l, const tile_value *value) {
  const lowered *v = lower_value(l, value);
  FF_CHECK(!v->lazy); /* a broadcast to one element is the value itself */
  return v->registers[0];
}

bool lower_known(const tile_value *value, uint64_t *constant) {
  const tile_op *op = value->op;
  if (!op || op->opcode != TILE_OP_CONSTANT || value->type->scalar > TILE_I64) return false;
  if (!op->data_splat && tile_elements(value->type) != 1) return false;
  uint32_t bytes = lower_bytes(value->type->scalar);
  if (op->data_bytes < bytes) return false;
  *constant = 0;
  memcpy(constant, op->data, bytes); /* little-endian, as this host */
  return true;
}

/* ---- layouts of results ---- */

static const tile_op *terminator(const tile_block *block) { return block->ops[block->op_count - 1]; }

/* The layout in which a value is best kept: that of the matrix product which makes it, or the usual one. Looks through
 * a few operations that keep layouts. */
static tile_layout best_layout(lower *l, const tile_value *value, uint32_t depth) {
  const tile_op *op = value->op;
  tile_layout layout;
  if (op && (op->opcode == TILE_OP_MMAF || op->opcode == TILE_OP_MMAI) && lower_matrix_layout(l, op, &layout))
    return layout;
  if (op && depth) {
    const tile_layout usual = layout_default(l, value->type);
    switch (op->opcode) {
    case TILE_OP_ADDF:
    case TILE_OP_SUBF:
    case TILE_OP_MULF:
    case TILE_OP_DIVF:
    case TILE_OP_FMA:
    case TILE_OP_ADDI:
    case TILE_OP_MULI:
    case TILE_OP_SELECT:
    case TILE_OP_FTOF:
    case TILE_OP_ITOF:
      for (uint32_t i = 0; i < op->operand_count; i++)
        if (op->operands[i]->type->kind == TILE_KIND_TILE) {
          layout = best_layout(l, op->operands[i], depth - 1);
          if (!layout_equal(&layout, &usual)) return layout;
        }
      break;
    case TILE_OP_FOR: {
      const tile_op *last = terminator(op->regions[0]);
      if (value->index < last->operand_count) return best_layout(l, last->operands[value->index], depth - 1);
      break;
    }
    case TILE_OP_IF: {
      const tile_op *last = terminator(op->regions[0]);
      if (last->opcode == TILE_OP_YIELD && value->index < last->operand_count)
        return best_layout(l, last->operands[value->index], depth - 1);
      break;
    }
    default: break;
    }
  }
  return layout_default(l, value->type);
}

/* Registers for a carried value; NULL for a token. */
static lowered *carried_value(lower *l, const tile_op *op, const tile_type *type, const tile_layout *layout) {
  if (type->kind == TILE_KIND_TOKEN) return NULL;
  if (type->kind != TILE_KIND_TILE) {
    lower_fail(l, op, FF_PARSE, "only tiles and tokens can be carried");
    return NULL;
  }
  return new_value(l, type, layout->bits ? layout : NULL);
}

static uint32_t register_count(const lowered *value) { return value->splat ? 1 : 1u << value->layout.registers; }

/* A mark for each register of a class that there is now. */
static lower_mark *marks_of(lower *l, register_class class) {
  if (l->mark_count[class] <= l->registers[class]) {
    l->mark_count[class] = 2 * (l->registers[class] + 1);
    l->marks[class] = lower_alloc(l, l->mark_count[class] * sizeof(lower_mark));
  }
  return l->marks[class];
}

/* Whether a register of `carried` is one of `fresh`, but for the same place of both. Marks each register of the one and
 * looks at each of the other: kernels may carry many tiles. */
static bool any_shared(lower *l, lowered *const *carried, lowered *const *fresh, uint32_t count) {
  bool shared = false;
  uint32_t turn = ++l->mark_turn;
  for (uint32_t looks = 0; looks < 2; looks++) {
    uint32_t place = 0;
    for (uint32_t i = 0; i < count; i++) {
      if (!carried[i]) continue;
      lower_mark *marks = marks_of(l, carried[i]->class);
      for (uint32_t r = 0; r < register_count(carried[i]); r++, place++) {
        if (!looks) marks[carried[i]->registers[r]] = (lower_mark){.turn = turn, .place = place};
        else {
          const lower_mark *mark = &marks[fresh[i]->registers[r]];
          shared = shared || (mark->turn == turn && mark->place != place);
        }
      }
    }
  }
  return shared;
}

/* Sets the carried values to those of the operands; of all, before any is set, the new one is in registers of its own
 * if it could be another carried value. */
static void set_carried(lower *l, const tile_op *op, lowered *const *carried, tile_value *const *values,
                        uint32_t count) {
  lowered **fresh = lower_alloc(l, (count ? count : 1) * sizeof(lowered *));
  for (uint32_t i = 0; i < count; i++) {
    if (!carried[i]) continue;
    if (values[i]->type->kind != TILE_KIND_TILE || lower_class(values[i]->type->scalar) != carried[i]->class) {
      lower_fail(l, op, FF_PARSE, "value %u has not the type of what it replaces", i);
      return;
    }
    const lowered *value = lower_value(l, values[i]);
    if (carried[i]->splat) {
      fresh[i] = lower_alloc(l, sizeof *fresh[i]);
      *fresh[i] = *value;
      fresh[i]->registers = lower_alloc(l, sizeof(uint32_t));
      fresh[i]->registers[0] = lower_scalar(l, values[i]);
    } else {
      if (!value->splat && !value->lazy && value->layout.bits != carried[i]->layout.bits) {
        lower_fail(l, op, FF_PARSE, "value %u has not the shape of what it replaces", i);
        return;
      }
      fresh[i] = layout_convert(l, value, values[i]->type->scalar, &carried[i]->layout);
    }
  }
  if (l->status) return;
  bool alone = !any_shared(l, carried, fresh, count); /* no register that is set is read later in this same list */
  for (uint32_t pass = alone; pass < 2; pass++)
    for (uint32_t i = 0; i < count; i++) {
      if (!carried[i]) continue;
      uint32_t n = register_count(carried[i]);
      char letter = lower_letter(carried[i]->class);
      if (pass == 0) { /* copies first */
        lowered *copy = lower_alloc(l, sizeof *copy);
        *copy = *fresh[i];
        copy->registers = lower_alloc(l, n * sizeof(uint32_t));
        for (uint32_t r = 0; r < n; r++) {
          copy->registers[r] = lower_register(l, carried[i]->class);
          lower_emit(l, "mov.%s %%%c%u, %%%c%u;", lower_untyped(carried[i]->class), letter, copy->registers[r], letter,
                     fresh[i]->registers[r]);
        }
        fresh[i] = copy;
        continue;
      }
      for (uint32_t r = 0; r < n; r++)
        if (carried[i]->registers[r] != fresh[i]->registers[r])
          lower_emit(l, "mov.%s %%%c%u, %%%c%u;", lower_untyped(carried[i]->class), letter, carried[i]->registers[r],
                     letter, fresh[i]->registers[r]);
    }
}

/* ---- elementwise ---- */

void lower_elementwise(lower *l, tile_op *op, lower_element_fn *element) {
  tile_value *result = &op->results[0];
  uint32_t count = op->operand_count < 8 ? op->operand_count : 8;
  uint32_t from[8] = {0};
  const tile_type *type = result->type;
  const tile_layout usual = layout_default(l, type);
  tile_layout layout = usual;
  bool splat = true, chosen = false;
  for (uint32_t i = 0; i < count; i++) {
    if (op->operands[i]->type->kind != TILE_KIND_TILE || tile_elements(op->operands[i]->type) != tile_elements(type)) {
      lower_fail(l, op, FF_PARSE, "operand %u has not the shape of the result", i);
      return;
    }
    const lowered *value = lower_value(l, op->operands[i]);
    if (value->splat) continue;
    splat = false;
    if (!value->lazy && !chosen && !layout_equal(&value->layout, &usual)) {
      layout = value->layout;
      chosen = true;
    }
  }
  lowered *operands[8];
  for (uint32_t i = 0; i < count; i++) {
    lowered *value = lower_value(l, op->operands[i]);
    operands[i] = splat ? value : layout_convert(l, value, op->operands[i]->type->scalar, &layout);
  }
  lowered *to = lower_result(l, result, splat ? NULL : &layout);
  uint32_t registers = to->splat ? 1 : 1u << layout.registers;
  for (uint32_t r = 0; r < registers && !l->status; r++) {
    bool repeated = r > 0; /* the same operands as the register before: a splat's */
    for (uint32_t i = 0; i < count; i++) {
      repeated = repeated && operands[i]->registers[r] == from[i];
      from[i] = operands[i]->registers[r];
    }
    if (repeated) to->registers[r] = to->registers[r - 1];
    else element(l, op, to->registers[r], from);
  }
}

/* ---- control flow ---- */

static void lower_op(lower *l, tile_op *op);

void lower_block(lower *l, tile_block *block) {
  for (uint32_t i = 0; i + 1 < block->op_count && !l->status; i++) lower_op(l, block->ops[i]);
}

void lower_block_constants(lower *l, tile_block *block) {
  for (uint32_t i = 0; i + 1 < block->op_count && !l->status; i++)
    if (block->ops[i]->opcode == TILE_OP_CONSTANT) lower_op(l, block->ops[i]);
}

void lower_block_again(lower *l, tile_block *block) {
  for (uint32_t i = 0; i + 1 < block->op_count && !l->status; i++)
    if (block->ops[i]->opcode != TILE_OP_CONSTANT) lower_op(l, block->ops[i]);
}

static target *innermost_loop(lower *l, const tile_op *op) {
  target *t = l->loop;
  while (t && t->op->opcode == TILE_OP_IF) t = t->outer;
  if (!t) lower_fail(l, op, FF_PARSE, "it stands in no loop");
  return t;
}

/* The end of a block: values to where they go, and the branch there. */
static void lower_terminator(lower *l, const tile_op *op) {
  target *t = l->loop;
  switch (op->opcode) {
  case TILE_OP_RETURN: lower_emit(l, "ret;"); return;
  case TILE_OP_YIELD:
    if (!t || t->op->opcode != TILE_OP_IF || op->operand_count != t->op->result_count) break;
    set_carried(l, op, t->results, op->operands, op->operand_count);
    lower_emit(l, "bra.uni L%u;", t->end);
    return;
  case TILE_OP_CONTINUE:
    if (!(t = innermost_loop(l, op)) || op->operand_count != t->carried_count) break;
    set_carried(l, op, t->carried, op->operands, op->operand_count);
    lower_emit(l, "bra.uni L%u;", t->next);
    return;
  case TILE_OP_BREAK:
    if (!(t = innermost_loop(l, op)) || t->op->opcode != TILE_OP_LOOP || op->operand_count != t->op->result_count)
      break;
    set_carried(l, op, t->results, op->operands, op->operand_count);
    lower_emit(l, "bra.uni L%u;", t->end);
    return;
  default: break;
  }
  lower_fail(l, op, FF_PARSE, "it cannot end this block, or has the wrong number of operands");
}

static void lower_body(lower *l, tile_block *block) {
  lower_block(l, block);
  if (!l->status) lower_terminator(l, terminator(block));
}

/* The values that a loop begins with, in registers of its own, as arguments of its body from `first` on. */
static lowered **begin_carried(lower *l, tile_op *op, uint32_t first_operand, uint32_t first_argument) {
  tile_block *body = op->regions[0];
  uint32_t count = op->operand_count - first_operand;
  if (body->argument_count != first_argument + count) {
    lower_fail(l, op, FF_PARSE, "its body takes another number of values");
    return NULL;
  }
  lowered **carried = lower_alloc(l, (count ? count : 1) * sizeof *carried);
  const tile_op *last = terminator(body);
  for (uint32_t i = 0; i < count; i++) {
    tile_value *argument = &body->arguments[first_argument + i];
    tile_layout layout = {0};
    if (argument->type->kind == TILE_KIND_TILE) {
      bool continues = last->opcode == TILE_OP_CONTINUE && i < last->operand_count &&
                       last->operands[i]->type->kind == TILE_KIND_TILE &&
                       tile_elements(last->operands[i]->type) == tile_elements(argument->type);
      layout = continues ? best_layout(l, last->operands[i], 4) : layout_default(l, argument->type);
    }
    carried[i] = carried_value(l, op, argument->type, &layout);
    argument->lowered = carried[i];
  }
  if (!l->status) set_carried(l, op, carried, op->operands + first_operand, count);
  return carried;
}

static void lower_for(lower *l, tile_op *op) {
  tile_block *body = op->regions[0];
  if (op->operand_count < 3 || op->result_count != op->operand_count - 3 || !body->argument_count) {
    lower_fail(l, op, FF_PARSE, "a wrong number of operands or results");
    return;
  }
  const tile_type *type = body->arguments[0].type;
  for (uint32_t i = 0; i < 3; i++)
    if (op->operands[i]->type->kind != TILE_KIND_TILE || op->operands[i]->type->scalar != type->scalar ||
        tile_elements(op->operands[i]->type) != 1)
      lower_fail(l, op, FF_PARSE, "bounds and step are not scalars of one type");
  uint32_t bits = tile_scalar_bits(type->scalar);
  if (type->kind != TILE_KIND_TILE || (bits != 32 && bits != 64) || lower_class(type->scalar) == CLASS_HALF)
    lower_fail(l, op, FF_UNSUPPORTED, "counts in %s", tile_scalar_name(type->scalar));
  if (l->status) return;
  lowered **carried = begin_carried(l, op, 3, 1);
  if (l->status) return;
  char letter = lower_letter(lower_class(type->scalar)), sign = op->is_unsigned ? 'u' : 's';
  uint32_t upper = lower_scalar(l, op->operands[1]), step = lower_scalar(l, op->operands[2]);
  lowered *counter = new_value(l, type, NULL);
  lower_emit(l, "mov.b%u %%%c%u, %%%c%u;", bits, letter, counter->registers[0], letter,
             lower_scalar(l, op->operands[0]));
  uint64_t lower_divisor = lower_value(l, op->operands[0])->divisor,
           step_divisor = lower_value(l, op->operands[2])->divisor;
  counter->divisor = lower_divisor < step_divisor ? lower_divisor : step_divisor;
  body->arguments[0].lowered = counter;
  uint32_t head = new_label(l), p = lower_register(l, CLASS_PREDICATE);
  target t = {.outer = l->loop,
              .op = op,
              .carried = carried,
              .carried_count = op->operand_count - 3,
              .next = new_label(l),
              .end = new_label(l)};
  l->loop = &t;
  place_label(l, head);
  lower_emit(l, "setp.ge.%c%u %%p%u, %%%c%u, %%%c%u;", sign, bits, p, letter, counter->registers[0], letter, upper);
  lower_emit(l, "@%%p%u bra.uni L%u;", p, t.end);
  lower_body(l, body);
  place_label(l, t.next);
  uint64_t known_step;
  if (lower_known(op->operands[2], &known_step) && known_step == 1) {
    lower_emit(l, "add.s%u %%%c%u, %%%c%u, %%%c%u;", bits, letter, counter->registers[0], letter, counter->registers[0],
               letter, step);
  } else { /* the last step may lead beyond the end of the type */
    uint32_t next = lower_register(l, lower_class(type->scalar));
    lower_emit(l, "add.s%u %%%c%u, %%%c%u, %%%c%u;", bits, letter, next, letter, counter->registers[0], letter, step);
    lower_emit(l, "setp.le.%c%u %%p%u, %%%c%u, %%%c%u;", sign, bits, p, letter, next, letter, counter->registers[0]);
    lower_emit(l, "@%%p%u bra.uni L%u;", p, t.end);
    lower_emit(l, "mov.b%u %%%c%u, %%%c%u;", bits, letter, counter->registers[0], letter, next);
  }
  lower_emit(l, "bra.uni L%u;", head);
  place_label(l, t.end);
  l->loop = t.outer;
  for (uint32_t i = 0; i < op->result_count; i++) op->results[i].lowered = carried[i];
}

/* Registers for the results of an operation whose blocks give them. */
static lowered **result_values(lower *l, tile_op *op) {
  lowered **results = lower_alloc(l, (op->result_count ? op->result_count : 1) * sizeof *results);
  for (uint32_t i = 0; i < op->result_count; i++) {
    tile_layout layout = {0};
    if (op->results[i].type->kind == TILE_KIND_TILE) layout = best_layout(l, &op->results[i], 4);
    results[i] = carried_value(l, op, op->results[i].type, &layout);
    op->results[i].lowered = results[i];
  }
  return results;
}

static void lower_loop(lower *l, tile_op *op) {
  lowered **carried = begin_carried(l, op, 0, 0);
  if (l->status) return;
  target t = {.outer = l->loop,
              .op = op,
              .carried = carried,
              .carried_count = op->operand_count,
              .next = new_label(l),
              .end = new_label(l)};
  t.results = result_values(l, op);
  l->loop = &t;
  place_label(l, t.next);
  lower_body(l, op->regions[0]);
  place_label(l, t.end);
  l->loop = t.outer;
}

static void lower_if(lower *l, tile_op *op) {
  const tile_type *type = op->operands[0]->type;
  if (type->kind != TILE_KIND_TILE || type->scalar != TILE_I1 || tile_elements(type) != 1 || op->region_count != 2) {
    lower_fail(l, op, FF_PARSE, "its condition is no scalar of i1");
    return;
  }
  uint32_t condition = lower_scalar(l, op->operands[0]), other = new_label(l);
  target t = {.outer = l->loop, .op = op, .end = new_label(l)};
  t.results = result_values(l, op);
  l->loop = &t;
  lower_emit(l, "@!%%p%u bra.uni L%u;", condition, other);
  lower_body(l, op->regions[0]);
  place_label(l, other);
  if (op->regions[1]->op_count) lower_body(l, op->regions[1]);
  place_label(l, t.end);
  l->loop = t.outer;
}

static void lower_block_numbers(lower *l, tile_op *op, const char *special) {
  for (uint32_t i = 0; i < op->result_count; i++) {
    lowered *value = lower_result(l, &op->results[i], NULL);
    if (value->class != CLASS_WORD) lower_fail(l, op, FF_PARSE, "its results are not i32");
    lower_emit(l, "mov.u32 %%r%u, %%%s.%c;", value->registers[0], special, "xyz"[i < 3 ? i : 2]);
  }
}

/* The place in the program's text, for what is told by line. */
static void lower_place(lower *l, const tile_op *op) {
  if (!op->line || !op->file || strpbrk(op->file, "\"\\\n")) return;
  if (l->line == op->line && l->file && !strcmp(l->file, op->file)) return;
  size_t i = 0;
  while (i < l->shared->files.count && strcmp(l->shared->files.items[i], op->file) != 0) i++;
  if (i == FILES_MAX) return;
  if (i == l->shared->files.count) FF_PUSH(&l->shared->files, op->file);
  if (!l->status) ff_text_add(l->text, "  .loc %zu %u 0\n", i + 1, op->line);
  l->line = op->line;
  l->file = op->file;
}

static void lower_op(lower *l, tile_op *op) {
  lower_place(l, op);
  switch (op->opcode) {
  case TILE_OP_FOR: lower_for(l, op); return;
  case TILE_OP_LOOP: lower_loop(l, op); return;
  case TILE_OP_IF: lower_if(l, op); return;
  case TILE_OP_GET_TILE_BLOCK_ID: lower_block_numbers(l, op, "ctaid"); return;
  case TILE_OP_GET_NUM_TILE_BLOCKS: lower_block_numbers(l, op, "nctaid"); return;
  default: break;
  }
  if (!lower_elements_op(l, op) && !lower_memory_op(l, op) && !lower_view_op(l, op) && !lower_shape_op(l, op) &&
      !lower_matrix_op(l, op) && !lower_print_op(l, op))
    lower_fail(l, op, FF_UNSUPPORTED, "the virtual GPU cannot run this operation of Tile IR yet");
}

/* ---- kernels ---- */

/* More threads for kernels whose tiles would fill the registers of four warps. */
static uint32_t largest_tile(const tile_block *block, uint32_t depth) {
  uint32_t most = 1;
  for (uint32_t i = 0; i < block->op_count; i++) {
    const tile_op *op = block->ops[i];
    for (uint32_t r = 0; r < op->result_count; r++)
      if (op->results[r].type->kind == TILE_KIND_TILE && tile_elements(op->results[r].type) > most)
        most = tile_elements(op->results[r].type);
    for (uint32_t r = 0; r < op->region_count && depth; r++) {
      uint32_t inside = largest_tile(op->regions[r], depth - 1);
      if (inside > most) most = inside;
    }
  }
  return most;
}

static uint32_t thread_bits_of(const tile_function *function) {
  int32_t warps = function->warps;
  if (warps > 0 && warps <= 16 && !(warps & (warps - 1))) return 5 + (uint32_t)__builtin_ctz((uint32_t)warps);
  return largest_tile(function->body, TILE_DEPTH_MAX) > 16384 ? 8 : 7;
}

static const char *parameter_type(tile_scalar scalar) {
  switch (tile_scalar_bits(scalar)) {
  case 64: return "b64";
  case 32: return "b32";
  case 16: return "b16";
  default: return "b8";
  }
}

static void load_parameter(lower *l, tile_value *argument, uint32_t i) {
  lowered *value = lower_result(l, argument, NULL);
  tile_scalar scalar = argument->type->scalar;
  if (scalar == TILE_I1) {
    uint32_t byte = lower_register(l, CLASS_WORD);
    lower_emit(l, "ld.param.u8 %%r%u, [tile_parameter_%u];", byte, i);
    lower_emit(l, "setp.ne.u32 %%p%u, %%r%u, 0;", value->registers[0], byte);
    return;
  }
  const char *type = tile_scalar_bits(scalar) == 16 && value->class == CLASS_WORD ? "u16" : parameter_type(scalar);
  lower_emit(l, "ld.param.%s %%%c%u, [tile_parameter_%u];", strcmp(type, "b8") ? type : "u8",
             lower_letter(value->class), value->registers[0], i);
}

static ff_status lower_function(lower_module *m, const tile_function *function, ff_error *error) {
  ff_arena arena = {0};
  ff_text body = {0}, *text = &m->kernels;
  lower l = {.shared = m,
             .module = m->module,
             .function = function,
             .text = &body,
             .data = text,
             .thread_bits = thread_bits_of(function),
             .architecture = 80,
             .arena = &arena,
             .error = error,
             .scratch_known = true};
  l.thread = lower_register(&l, CLASS_WORD);
  l.scratch[0] = lower_register(&l, CLASS_WORD);
  l.scratch[1] = lower_register(&l, CLASS_WORD);
  for (uint32_t i = 0; i < function->body->argument_count && !l.status; i++) {
    tile_value *argument = &function->body->arguments[i];
    if (argument->type->kind != TILE_KIND_TILE || tile_elements(argument->type) != 1)
      lower_fail(&l, NULL, FF_UNSUPPORTED, "parameter %u is no scalar", i);
    else load_parameter(&l, argument, i);
  }
  if (!l.status) lower_body(&l, function->body);
  if (!l.status) {
    ff_text_add(text, "\n.visible .entry %s(", function->name);
    for (uint32_t i = 0; i < function->body->argument_count; i++)
      ff_text_add(text, "%s\n  .param .%s tile_parameter_%u", i ? "," : "",
                  parameter_type(function->body->arguments[i].type->scalar), i);
    ff_text_add(text, ")\n.reqntid %u\n{\n", 1u << l.thread_bits);
    for (uint32_t c = 0; c < CLASS_COUNT; c++)
      if (l.registers[c])
        ff_text_add(text, "  .reg .%s %%%c<%u>;\n", lower_untyped(c), lower_letter(c), l.registers[c] + 1);
    if (l.scratch_bytes) {
      ff_text_add(text, "  .shared .align 16 .b8 tile_scratch[%u];\n", 2 * l.scratch_bytes);
      ff_text_add(text, "  mov.u32 %%r%u, tile_scratch;\n  add.u32 %%r%u, %%r%u, %u;\n", l.scratch[0], l.scratch[1],
                  l.scratch[0], l.scratch_bytes);
    }
    if (l.prints) ff_text_add(text, "  .local .align 8 .b8 tile_print_buffer[8];\n");
    ff_text_add(text, "  mov.u32 %%r%u, %%tid.x;\n", l.thread);
    ff_text_add_bytes(text, body.chars ? body.chars : "", body.length);
    ff_text_add(text, "}\n");
  }
  m->helpers |= l.helpers;
  m->prints = m->prints || l.prints;
  if (m->architecture < l.architecture) m->architecture = l.architecture;
  free(body.chars);
  ff_arena_free(&arena);
  return l.status;
}

static void add_global(ff_text *text, const tile_global *global) {
  uint64_t alignment = global->alignment ? global->alignment : 16;
  size_t bytes = global->data_bytes * (global->data_splat ? tile_elements(global->type) : 1);
  ff_text_add(text, "\n%s.global .align %llu .b8 %s[%zu] = {", global->hidden ? "" : ".visible ",
              (unsigned long long)alignment, global->name, bytes);
  lower_bytes_text(text, global->data, global->data_bytes, bytes);
  ff_text_add(text, "};\n");
}

static bool is_word(const char *name) { /* a name that PTX takes */
  if (!*name || (*name >= '0' && *name <= '9')) return false;
  for (const char *c = name; *c; c++)
    if (!((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') || *c == '_' || *c == '$'))
      return false;
  return true;
}

/* All globals and kernels into m->kernels. */
static ff_status lower_all(lower_module *m, ff_error *error) {
  const tile_module *module = m->module;
  ff_status status = FF_OK;
  for (uint32_t i = 0; i < module->global_count && !status; i++) {
    const tile_global *global = &module->globals[i];
    if (!is_word(global->name))
      status = ff_fail(error, FF_UNSUPPORTED, "Tile IR: the global's name \"%.60s\" is none in PTX", global->name);
    else if (global->alignment & (global->alignment - 1) || global->alignment > 4096 || !global->data_bytes)
      status = ff_fail(error, FF_PARSE, "Tile IR: the global \"%.60s\" has an impossible alignment, or no bytes",
                       global->name);
    else add_global(&m->kernels, global);
    if (!status && m->kernels.length > LOWER_TEXT_MAX)
      status = ff_fail(error, FF_LIMIT, "Tile IR: the module's globals take more than 256 MiB of text");
  }
  for (uint32_t i = 0; i < module->function_count && !status; i++) {
    if (!module->functions[i].entry) continue;
    if (!is_word(module->functions[i].name))
      status = ff_fail(error, FF_UNSUPPORTED, "Tile IR: the kernel's name \"%.60s\" is none in PTX",
                       module->functions[i].name);
    else status = lower_function(m, &module->functions[i], error);
  }
  return status;
}

static void add_module(ff_text *text, const lower_module *m) {
  ff_text_add(text, "// Translated from Tile IR %u.%u.\n.version 8.7\n.target sm_%u\n.address_size 64\n",
              m->module->version / 100, m->module->version % 100, m->architecture);
  for (size_t i = 0; i < m->files.count; i++) ff_text_add(text, ".file %zu \"%s\"\n", i + 1, m->files.items[i]);
  if (m->prints)
    ff_text_add(text, "\n.extern .func (.param .b32 printed) vprintf (.param .b64 text, .param .b64 values);\n"
                      ".extern .func __assertfail (.param .b64 message, .param .b64 file, .param .b32 line, "
                      ".param .b64 function, .param .b64 size);\n");
  ff_text functions = {0};
  lower_helpers_text(m->helpers, &functions);
  ff_text_add_bytes(text, functions.chars ? functions.chars : "", functions.length);
  free(functions.chars);
  ff_text_add_bytes(text, m->kernels.chars ? m->kernels.chars : "", m->kernels.length);
}

ff_status tile_to_ptx(const void *bytes, size_t size, char **ptx, size_t *length, ff_error *error) {
  tile_module *module;
  ff_status status = tile_module_read(bytes, size, &module, error);
  if (status) return status;
  lower_module m = {.module = module, .architecture = 80};
  status = lower_all(&m, error);
  ff_text text = {0};
  if (!status) add_module(&text, &m);
  free(m.kernels.chars);
  free(m.files.items);
  tile_module_free(module);
  if (status) return status;
  *ptx = text.chars;
  *length = text.length;
  return FF_OK;
}
