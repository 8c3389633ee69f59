/* SPDX-License-Identifier: Apache-2.0 */
/* What one instruction computes, on abstract values (PTX ISA, "Instruction Set"). An instruction that is not here gives
 * a value of which nothing is known; that is true of any value. */
#include <string.h>

#include "ptx/ranges/ranges_private.h"

typedef __int128 wide;

typedef struct evaluator {
  ranges_finder *f;
  const ranges_state *state;
  const ptx_instr *instr;
  const affine_grid *grid;
} evaluator;

bool ranges_is_integer(ptx_type type) {
  char class = type == PTX_TYPE_NONE ? 'F' : ptx_type_class(type);
  uint32_t bits = type == PTX_TYPE_NONE ? 0 : ptx_type_bits(type);
  if (type == PTX_U16X2 || type == PTX_S16X2) return false;
  return (class == 'U' || class == 'S' || class == 'B') && (bits == 8 || bits == 16 || bits == 32 || bits == 64);
}

affine_type ranges_type(ptx_type type) {
  return (affine_type){(uint8_t)ptx_type_bits(type), ptx_type_class(type) == 'S'};
}

/* A number of 64 bits made in an unknown way may be an address. */
static affine unknown(const evaluator *e) {
  affine v = affine_top(e->instr->place.line, AFFINE_COMPUTED);
  if (e->instr->type_count && ptx_type_bits(e->instr->types[0]) >= 64) v.points = AFFINE_ANY;
  return v;
}

/* ---- operands ---- */

static affine special(const ranges_finder *f, const ranges_state *state, const ptx_instr *instr, ptx_sreg sreg) {
  const ptx_ranges_launch *launch = f->launch;
  uint64_t threads = (uint64_t)launch->block[0] * launch->block[1] * launch->block[2];
  switch (sreg) {
  case PTX_SREG_TID_X:
  case PTX_SREG_TID_Y:
  case PTX_SREG_TID_Z: return affine_interval(0, (int64_t)launch->block[sreg - PTX_SREG_TID_X] - 1);
  case PTX_SREG_NTID_X:
  case PTX_SREG_NTID_Y:
  case PTX_SREG_NTID_Z: return affine_constant(launch->block[sreg - PTX_SREG_NTID_X]);
  case PTX_SREG_NCTAID_X:
  case PTX_SREG_NCTAID_Y:
  case PTX_SREG_NCTAID_Z: return affine_constant(launch->grid[sreg - PTX_SREG_NCTAID_X]);
  case PTX_SREG_CTAID_X:
  case PTX_SREG_CTAID_Y:
  case PTX_SREG_CTAID_Z: {
    int d = sreg - PTX_SREG_CTAID_X;
    affine v = affine_interval(state->blocks.first[d], state->blocks.last[d]);
    if (affine_is_constant(&v)) return v;
    v.c[d] = 1;
    v.lo = v.hi = 0;
    return v;
  }
  case PTX_SREG_LANEID: return affine_interval(0, threads < 32 ? (int64_t)threads - 1 : 31);
  case PTX_SREG_WARP_SZ: return affine_constant(32);
  default: return affine_top(instr->place.line, AFFINE_COMPUTED);
  }
}

/* Parameters and variables of the module have made-up addresses: they are far from every real one, and from each
 * other. */
static affine symbol_address(const ranges_finder *f, const ptx_instr *instr, const ptx_symbol *symbol) {
  affine v = affine_top(instr->place.line, AFFINE_COMPUTED);
  v.points = AFFINE_OTHER;
  if (!symbol->var || (uint64_t)symbol->var->index >= (UINT64_C(1) << 20)) return v;
  const ptx_var *var = symbol->var;
  if (var->func == f->func && var->space == PTX_SPACE_PARAM)
    for (uint32_t p = 0; p < f->func->param_count; p++)
      if (f->func->params[p] == var) {
        v = affine_constant(RANGES_MADE_UP + f->param_offsets[p]);
        v.points = AFFINE_OTHER;
        return v;
      }
  if (var->func || (var->space != PTX_SPACE_GLOBAL && var->space != PTX_SPACE_CONST)) return v;
  v = affine_constant(RANGES_MADE_UP + (1 + (int64_t)var->index) * RANGES_MADE_UP_STEP);
  v.points = AFFINE_OTHER;
  return v;
}

affine ranges_operand(const ranges_finder *f, const ranges_state *state, const ptx_instr *instr,
                      const ptx_operand *operand) {
  affine v = affine_top(instr->place.line, AFFINE_COMPUTED), offset = affine_constant(operand->offset);
  switch (operand->kind) {
  case PTX_OPERAND_REG: {
    uint32_t slot = ranges_slot(f, operand->reg);
    if (slot == RANGES_NONE || operand->selector) return v;
    v = state->values[slot];
    if (!operand->negated) return v;
    if (f->func->regs[operand->reg].type != PTX_PRED) return affine_top(instr->place.line, AFFINE_COMPUTED);
    return affine_interval(1 - v.max, 1 - v.min);
  }
  case PTX_OPERAND_INT: return affine_constant((int64_t)operand->bits);
  case PTX_OPERAND_SREG: return special(f, state, instr, operand->sreg);
  case PTX_OPERAND_SYMBOL:
    v = symbol_address(f, instr, operand->symbol);
    return affine_add(&state->blocks, &v, &offset);
  default: return v;
  }
}

affine ranges_address(const ranges_finder *f, const ranges_state *state, const ptx_instr *instr,
                      const ptx_operand *operand) {
  affine offset = affine_constant(operand->offset), base;
  if (operand->kind != PTX_OPERAND_ADDRESS || operand->element_count)
    return affine_top(instr->place.line, AFFINE_COMPUTED);
  if (operand->reg != PTX_NO_REG) {
    uint32_t slot = ranges_slot(f, operand->reg);
    base = slot == RANGES_NONE ? affine_top(instr->place.line, AFFINE_COMPUTED) : state->values[slot];
  } else if (operand->symbol) {
    base = symbol_address(f, instr, operand->symbol);
  } else {
    return offset;
  }
  return affine_add(&state->blocks, &base, &offset);
}

static affine operand_at(const evaluator *e, uint32_t i) {
  if (i >= e->instr->operand_count) return unknown(e);
  return ranges_operand(e->f, e->state, e->instr, &e->instr->operands[i]);
}

static affine typed_operand(const evaluator *e, uint32_t i, affine_type type) {
  affine v = operand_at(e, i);
  return affine_as(e->grid, &v, type);
}

/* ---- products and quotients ---- */

static bool is_made_up(const affine *v) { return v->points & AFFINE_OTHER; }

/* Bits of a made-up address mean nothing. */
static bool any_made_up(const evaluator *e) {
  for (uint32_t i = 1; i < e->instr->operand_count; i++) {
    affine v = operand_at(e, i);
    if (is_made_up(&v)) return true;
  }
  return false;
}

static affine made_up(const evaluator *e) {
  affine v = unknown(e);
  v.points = AFFINE_OTHER | AFFINE_ANY;
  return v;
}

static affine high_product(const evaluator *e, affine_type type) {
  affine a = typed_operand(e, 1, type), b = typed_operand(e, 2, type);
  if (type.bits > 32 || a.top || b.top) return unknown(e);
  wide corners[4] = {(wide)a.min * b.min, (wide)a.min * b.max, (wide)a.max * b.min, (wide)a.max * b.max};
  wide low = corners[0], high = corners[0];
  for (int i = 1; i < 4; i++) {
    if (corners[i] < low) low = corners[i];
    if (corners[i] > high) high = corners[i];
  }
  affine v = affine_interval((int64_t)(low >> type.bits), (int64_t)(high >> type.bits)); /* arithmetic: gcc and clang */
  v.line = a.line ? a.line : b.line;
  v.cause = a.line ? a.cause : b.cause;
  return v;
}

static affine product(const evaluator *e) {
  affine_type type = ranges_type(e->instr->types[0]);
  if (ptx_has(e->instr, PTX_MOD_HI)) return high_product(e, type);
  if (ptx_has(e->instr, PTX_MOD_WIDE)) {
    affine a = typed_operand(e, 1, type), b = typed_operand(e, 2, type);
    a.base = b.base = a.root = b.root = 0; /* a narrower register wraps elsewhere */
    return affine_multiply(e->grid, &a, &b);
  }
  affine a = operand_at(e, 1), b = operand_at(e, 2);
  return affine_multiply(e->grid, &a, &b);
}

/* mul24 takes the low 24 bits of its operands. */
static affine product24(const evaluator *e) {
  bool is_signed = ptx_type_class(e->instr->types[0]) == 'S';
  affine a = typed_operand(e, 1, (affine_type){32, is_signed}), b = typed_operand(e, 2, (affine_type){32, is_signed});
  int64_t most = is_signed ? (1 << 23) - 1 : (1 << 24) - 1, least = is_signed ? -(1 << 23) : 0;
  if (ptx_has(e->instr, PTX_MOD_HI) || a.top || b.top) return unknown(e);
  if (a.min < least || b.min < least || a.max > most || b.max > most) return unknown(e);
  return affine_multiply(e->grid, &a, &b);
}

static affine quotient(const evaluator *e, bool remainder) {
  affine_type type = ranges_type(e->instr->types[0]);
  affine a = typed_operand(e, 1, type), b = typed_operand(e, 2, type), v = unknown(e);
  if (a.line) {
    v.line = a.line;
    v.cause = a.cause;
  }
  if (b.top || b.min <= 0) return v;
  if (affine_is_constant(&b)) {
    if (!a.top) return remainder ? affine_remainder(e->grid, &a, b.min) : affine_divide(e->grid, &a, b.min, false);
    if (type.is_signed) return v;
    affine rest = affine_interval(0, b.min - 1);
    return remainder ? rest : v;
  }
  if (a.top || a.min < 0) return v;
  int64_t largest_rest = a.max < b.max ? a.max : b.max - 1;
  affine found = remainder ? affine_interval(0, largest_rest) : affine_interval(a.min / b.max, a.max / b.min);
  found.line = v.line;
  found.cause = v.cause;
  return found;
}

/* ---- shifts ---- */

static affine shift_left(const evaluator *e) {
  uint32_t bits = ptx_type_bits(e->instr->types[0]);
  affine a = operand_at(e, 1), by = typed_operand(e, 2, (affine_type){32, false}), v = unknown(e);
  if (affine_is_constant(&by)) {
    if (by.min >= bits) return affine_constant(0);
    if (by.min > 62) return v;
    affine factor = affine_constant((int64_t)1 << by.min);
    return affine_multiply(e->grid, &a, &factor);
  }
  if (a.top || a.min < 0 || by.max >= bits || by.max > 62) return v;
  wide low = (wide)a.min << by.min, high = (wide)a.max << by.max;
  return high > INT64_MAX ? v : affine_interval((int64_t)low, (int64_t)high);
}

static affine shift_right(const evaluator *e) {
  affine_type type = ranges_type(e->instr->types[0]);
  affine a = typed_operand(e, 1, type), by = typed_operand(e, 2, (affine_type){32, false}), v = unknown(e);
  if (a.line) {
    v.line = a.line;
    v.cause = a.cause;
  }
  if (affine_is_constant(&by)) {
    int64_t amount = by.min < type.bits ? by.min : type.bits;
    if (amount == type.bits && !type.is_signed) return affine_constant(0);
    if (amount == type.bits) amount--;
    if (a.top) { /* unsigned, 64 bits */
      if (!amount) return a;
      affine rest = affine_interval(0, (int64_t)(UINT64_MAX >> amount));
      rest.line = v.line;
      rest.cause = v.cause;
      return rest;
    }
    if (amount > 62) return affine_interval(a.min < 0 ? -1 : 0, a.max < 0 ? -1 : 0);
    return affine_divide(e->grid, &a, (int64_t)1 << amount, true);
  }
  if (a.top || a.min < 0) return v;
  return affine_interval(by.max > 62 ? 0 : a.min >> by.max, by.min > 62 ? 0 : a.max >> by.min);
}

static affine extract_bits(const evaluator *e) {
  affine_type type = ranges_type(e->instr->types[0]);
  affine a = typed_operand(e, 1, (affine_type){type.bits, false}), at = typed_operand(e, 2, (affine_type){32, false});
  affine count = typed_operand(e, 3, (affine_type){32, false});
  if (!affine_is_constant(&at) || !affine_is_constant(&count) || at.min + count.min > type.bits || count.min > 62 ||
      at.min > 62)
    return unknown(e);
  if (!count.min) return affine_constant(0);
  int64_t unit = (int64_t)1 << count.min;
  if (type.is_signed) return affine_interval(-(unit / 2), unit / 2 - 1);
  if (a.top) return affine_interval(0, unit - 1);
  affine v = affine_divide(e->grid, &a, (int64_t)1 << at.min, true);
  return affine_remainder(e->grid, &v, unit);
}

/* ---- comparisons ---- */

ptx_mod ranges_comparison(const ptx_instr *instr) {
  for (uint32_t i = 0; i < instr->mod_count; i++) {
    switch ((ptx_mod)instr->mods[i]) {
    case PTX_MOD_EQ:
    case PTX_MOD_NE:
    case PTX_MOD_LT:
    case PTX_MOD_LE:
    case PTX_MOD_GT:
    case PTX_MOD_GE:
    case PTX_MOD_LO:
    case PTX_MOD_LS:
    case PTX_MOD_HI:
    case PTX_MOD_HS: return (ptx_mod)instr->mods[i];
    default: break;
    }
  }
  return PTX_MODS;
}

ptx_mod ranges_opposite(ptx_mod comparison) {
  switch (comparison) {
  case PTX_MOD_EQ: return PTX_MOD_NE;
  case PTX_MOD_NE: return PTX_MOD_EQ;
  case PTX_MOD_LT: return PTX_MOD_GE;
  case PTX_MOD_LE: return PTX_MOD_GT;
  case PTX_MOD_GT: return PTX_MOD_LE;
  case PTX_MOD_GE: return PTX_MOD_LT;
  case PTX_MOD_LO: return PTX_MOD_HS;
  case PTX_MOD_LS: return PTX_MOD_HI;
  case PTX_MOD_HI: return PTX_MOD_LS;
  case PTX_MOD_HS: return PTX_MOD_LO;
  default: return PTX_MODS;
  }
}

bool ranges_compares_signed(const ptx_instr *instr, ptx_mod comparison) {
  bool unsigned_word =
      comparison == PTX_MOD_LO || comparison == PTX_MOD_LS || comparison == PTX_MOD_HI || comparison == PTX_MOD_HS;
  return !unsigned_word && ptx_type_class(instr->types[instr->type_count - 1]) == 'S';
}

/* a and b as the type reads them. */
static int compare_numbers(const affine_grid *grid, ptx_mod comparison, const affine *a, const affine *b) {
  affine x = *a, y = *b;
  x.points = y.points = 0;
  affine d = affine_subtract(grid, &x, &y);
  if (d.top) {
    if (a->top || b->top) return -1;
    /* only its sign counts */
    d = affine_interval(a->max < b->min ? -1 : a->min > b->max ? 1 : -1, a->max < b->min ? -1 : 1);
    if (d.min == -1 && d.max == 1 && a->min == b->max) d = affine_interval(0, 1);
  }
  switch (comparison) {
  case PTX_MOD_EQ: return d.min == 0 && d.max == 0 ? 1 : d.min > 0 || d.max < 0 ? 0 : -1;
  case PTX_MOD_NE: return d.min == 0 && d.max == 0 ? 0 : d.min > 0 || d.max < 0 ? 1 : -1;
  case PTX_MOD_LT:
  case PTX_MOD_LO: return d.max < 0 ? 1 : d.min >= 0 ? 0 : -1;
  case PTX_MOD_LE:
  case PTX_MOD_LS: return d.max <= 0 ? 1 : d.min > 0 ? 0 : -1;
  case PTX_MOD_GT:
  case PTX_MOD_HI: return d.min > 0 ? 1 : d.max <= 0 ? 0 : -1;
  case PTX_MOD_GE:
  case PTX_MOD_HS: return d.min >= 0 ? 1 : d.max < 0 ? 0 : -1;
  default: return -1;
  }
}

int ranges_compare(const affine_grid *grid, const ptx_instr *instr, ptx_mod comparison, const affine *a,
                   const affine *b) {
  ptx_type type = instr->types[instr->type_count - 1];
  if (comparison == PTX_MODS || !ranges_is_integer(type) || is_made_up(a) || is_made_up(b)) return -1;
  affine_type read = {(uint8_t)ptx_type_bits(type), ranges_compares_signed(instr, comparison)};
  affine x = affine_as(grid, a, read), y = affine_as(grid, b, read);
  return compare_numbers(grid, comparison, &x, &y);
}

static affine truth(int known) { return known < 0 ? affine_interval(0, 1) : affine_constant(known); }

static int known(const affine *v) { return v->top || v->min != v->max ? -1 : v->min != 0; }

static int combined(const ptx_instr *instr, int first, int second) {
  if (ptx_has(instr, PTX_MOD_AND)) return first == 0 || second == 0 ? 0 : first < 0 || second < 0 ? -1 : 1;
  if (ptx_has(instr, PTX_MOD_OR)) return first == 1 || second == 1 ? 1 : first < 0 || second < 0 ? -1 : 0;
  if (ptx_has(instr, PTX_MOD_XOR)) return first < 0 || second < 0 ? -1 : first ^ second;
  return first;
}

static affine set_predicate(const evaluator *e, uint32_t reg) {
  const ptx_operand *to = &e->instr->operands[0];
  affine a = operand_at(e, 1), b = operand_at(e, 2),
         c = e->instr->operand_count > 3 ? operand_at(e, 3) : affine_constant(0);
  int result = ranges_compare(e->grid, e->instr, ranges_comparison(e->instr), &a, &b);
  bool second = to->kind == PTX_OPERAND_REG_PAIR && to->reg2 == reg && to->reg != reg;
  if (second && result >= 0) result = !result;
  return truth(e->instr->operand_count > 3 ? combined(e->instr, result, known(&c)) : result);
}

static affine predicate_logic(const evaluator *e) {
  affine a = operand_at(e, 1), b = operand_at(e, e->instr->operand_count > 2 ? 2 : 1);
  int x = known(&a), y = known(&b);
  switch (e->instr->opcode) {
  case PTX_OP_AND: return truth(x == 0 || y == 0 ? 0 : x < 0 || y < 0 ? -1 : 1);
  case PTX_OP_OR: return truth(x == 1 || y == 1 ? 1 : x < 0 || y < 0 ? -1 : 0);
  case PTX_OP_XOR: return truth(x < 0 || y < 0 ? -1 : x ^ y);
  case PTX_OP_NOT: return truth(x < 0 ? -1 : !x);
  case PTX_OP_MOV: return truth(x);
  default: return truth(-1);
  }
}

/* ---- choices ---- */

/* What an operand is if the predicate has that value; false: it cannot have it. */
static bool operand_if(const evaluator *e, uint32_t i, const ptx_operand *pred, bool truth_value, affine *v,
                       affine_grid *blocks) {
  ranges_state *state = ranges_copy(e->f, e->state);
  bool possible = ranges_refine(e->f, state, pred->reg, truth_value != pred->negated);
  if (possible) *v = ranges_operand(e->f, state, e->instr, &e->instr->operands[i]);
  *blocks = state->blocks;
  ranges_drop(e->f, state);
  return possible;
}

static affine choose(const evaluator *e) {
  affine p = operand_at(e, 3), a, b;
  const ptx_operand *pred = &e->instr->operands[3];
  if (known(&p) >= 0) return operand_at(e, known(&p) ? 1 : 2);
  a = operand_at(e, 1);
  b = operand_at(e, 2);
  affine_grid blocks_a = *e->grid, blocks_b = *e->grid;
  if (pred->kind == PTX_OPERAND_REG && !(affine_is_constant(&a) && affine_is_constant(&b))) {
    bool first = operand_if(e, 1, pred, true, &a, &blocks_a), second = operand_if(e, 2, pred, false, &b, &blocks_b);
    if (!first && second) return b;
    if (first && !second) return a;
    if (!first) blocks_a = blocks_b = *e->grid;
  }
  return affine_join_of(e->grid, &blocks_a, &a, &blocks_b, &b);
}

static affine absolute(const evaluator *e) {
  affine_type type = ranges_type(e->instr->types[0]);
  type.is_signed = true;
  affine v = typed_operand(e, 1, type);
  if (v.top || v.min == INT64_MIN) return unknown(e);
  if (v.min >= 0) return v;
  affine zero = affine_constant(0), minus = affine_subtract(e->grid, &zero, &v);
  return affine_maximum(e->grid, &v, &minus);
}

/* ---- moves ---- */

/* A register wider than what is put into it holds the number as the type extends it. */
static affine settle(const evaluator *e, const affine *v, ptx_type type, uint32_t reg) {
  uint32_t bits = ptx_type_bits(e->f->func->regs[reg].type);
  if (bits <= ptx_type_bits(type)) return *v;
  affine wider = affine_as(e->grid, v, ranges_type(type));
  wider.base = wider.root = 0;
  return wider;
}

static affine unpacked(const evaluator *e, const ptx_operand *to, uint32_t reg) {
  affine v = operand_at(e, 1);
  bool first = to->element_count && to->elements[0].kind == PTX_OPERAND_REG && to->elements[0].reg == reg;
  for (uint32_t i = 1; i < to->element_count; i++) first = first && to->elements[i].reg != reg;
  if (!first || is_made_up(&v)) return unknown(e);
  v.points = 0; /* of 64 bits the half points nowhere */
  v.base = v.root = 0;
  return v;
}

static affine packed(const evaluator *e, const ptx_operand *from) {
  affine v = unknown(e);
  v.points = AFFINE_ANY;
  if (from->element_count != 2 || ptx_type_bits(e->instr->types[0]) != 64) return v;
  affine low = ranges_operand(e->f, e->state, e->instr, &from->elements[0]),
         high = ranges_operand(e->f, e->state, e->instr, &from->elements[1]);
  if (!affine_is_constant(&high) || (uint32_t)high.min) return v;
  low = affine_as(e->grid, &low, (affine_type){32, false});
  low.base = low.root = 0;
  return low;
}

static affine move(const evaluator *e, uint32_t reg) {
  const ptx_operand *to = &e->instr->operands[0], *from = &e->instr->operands[1];
  if (e->instr->types[0] == PTX_PRED) return predicate_logic(e);
  if (to->kind == PTX_OPERAND_VECTOR) return unpacked(e, to, reg);
  if (from->kind == PTX_OPERAND_VECTOR) return packed(e, from);
  affine v = operand_at(e, 1);
  if (!ranges_is_integer(e->instr->types[0]) && from->kind != PTX_OPERAND_REG) return unknown(e);
  return settle(e, &v, e->instr->types[0], reg);
}

static affine convert(const evaluator *e, uint32_t reg) {
  const ptx_instr *instr = e->instr;
  if (instr->type_count < 2) return unknown(e);
  ptx_type to = instr->types[0], from = instr->types[1];
  if (!ranges_is_integer(to)) return unknown(e);
  affine_type target = ranges_type(to);
  affine v = affine_top(instr->place.line, AFFINE_CONVERTED);
  if (ranges_is_integer(from)) v = typed_operand(e, 1, ranges_type(from));
  if (ranges_is_integer(from) && ptx_type_bits(to) < ptx_type_bits(from)) {
    if (is_made_up(&v)) return made_up(e);
    if (ptx_type_bits(to) <= 32) v.points = 0;
  }
  if (ptx_type_bits(to) != ptx_type_bits(from)) v.base = v.root = 0;
  if (ptx_has(instr, PTX_MOD_SAT) && !v.top) {
    affine most = affine_whole_type(target), low = affine_constant(most.top ? 0 : most.min),
           high = affine_constant(most.max);
    v = affine_maximum(e->grid, &v, &low);
    if (!most.top) v = affine_minimum(e->grid, &v, &high);
  } else if (ptx_has(instr, PTX_MOD_SAT)) {
    v = affine_whole_type(target);
  }
  return settle(e, &v, to, reg);
}

static affine to_generic_or_back(const evaluator *e) {
  affine v = operand_at(e, 1);
  ptx_space space = ptx_instr_space(e->instr);
  if (space == PTX_SPACE_GLOBAL || space == PTX_SPACE_PARAM || space == PTX_SPACE_CONST) return v;
  v = unknown(e);
  v.points = AFFINE_OTHER;
  return v;
}

/* ---- memory ---- */

/* The bytes of a parameter, which this launch fixes. */
static affine parameter(const evaluator *e, uint64_t at, affine_type type) {
  const ptx_ranges_launch *launch = e->f->launch;
  uint32_t bytes = type.bits / 8u;
  uint64_t bits = 0;
  affine v = unknown(e);
  if (at > launch->param_bytes || bytes > launch->param_bytes - at || bytes > 8 || !bytes) return v;
  memcpy(&bits, (const unsigned char *)launch->params + at, bytes);
  if (type.is_signed && bytes < 8) bits = (uint64_t)((int64_t)(bits << (64 - type.bits)) >> (64 - type.bits));
  v = affine_constant((int64_t)bits); /* from 2^63 on it stands for itself less 2^64 */
  /* the end counts too: a pointer behind the last byte */
  for (uint32_t s = 0; bytes == 8 && s < launch->segment_count; s++)
    if (bits >= launch->segments[s].base && bits - launch->segments[s].base <= launch->segments[s].bytes)
      v.points |= UINT64_C(1) << s;
  return v;
}

static uint32_t element_of(const ptx_operand *to, uint32_t reg) {
  if (to->kind != PTX_OPERAND_VECTOR) return 0;
  for (uint32_t i = 0; i < to->element_count; i++)
    if (to->elements[i].kind == PTX_OPERAND_REG && to->elements[i].reg == reg) return i;
  return 0;
}

static affine from_memory(const evaluator *e, uint32_t reg, affine_cause cause) {
  affine v = affine_top(e->instr->place.line, cause);
  ptx_type type = e->instr->type_count ? e->instr->types[e->instr->type_count - 1] : PTX_TYPE_NONE;
  uint32_t bits = ptx_type_bits(e->f->func->regs[reg].type);
  if (bits >= 64) v.points = AFFINE_ANY;
  if (!ranges_is_integer(type) || ptx_type_bits(type) >= bits) return v;
  affine whole = affine_whole_type(ranges_type(type));
  whole.line = v.line;
  whole.cause = v.cause;
  return whole;
}

static affine load(const evaluator *e, uint32_t reg) {
  const ptx_instr *instr = e->instr;
  ptx_space space = ptx_instr_space(instr);
  ptx_type type = instr->type_count ? instr->types[0] : PTX_TYPE_NONE;
  if (instr->operand_count < 2 || !ranges_is_integer(type)) return from_memory(e, reg, AFFINE_LOADED);
  if (space != PTX_SPACE_PARAM && space != PTX_SPACE_GENERIC) return from_memory(e, reg, AFFINE_LOADED);
  affine address = ranges_address(e->f, e->state, instr, &instr->operands[1]);
  uint64_t offset = (uint64_t)address.min - (uint64_t)RANGES_MADE_UP;
  if (!affine_is_constant(&address) || address.points != AFFINE_OTHER || offset >= e->f->launch->param_bytes)
    return from_memory(e, reg, AFFINE_LOADED);
  const ptx_operand *to = &instr->operands[0];
  affine v = parameter(e, offset + (uint64_t)element_of(to, reg) * (ptx_type_bits(type) / 8), ranges_type(type));
  return settle(e, &v, type, reg);
}

/* ---- all ---- */

static affine integer(const evaluator *e) {
  const ptx_instr *instr = e->instr;
  affine_type type = ranges_type(instr->types[0]);
  affine a, b, c, zero = affine_constant(0), minus_one = affine_constant(-1);
  switch (instr->opcode) {
  case PTX_OP_ADD:
  case PTX_OP_SUB:
    a = operand_at(e, 1);
    b = operand_at(e, 2);
    if (ptx_has(instr, PTX_MOD_SAT)) {
      a = affine_as(e->grid, &a, type);
      b = affine_as(e->grid, &b, type);
    }
    if (instr->opcode == PTX_OP_SUB && !ptx_has(instr, PTX_MOD_SAT)) return affine_difference(e->grid, &a, &b);
    c = instr->opcode == PTX_OP_ADD ? affine_add(e->grid, &a, &b) : affine_subtract(e->grid, &a, &b);
    if (!ptx_has(instr, PTX_MOD_SAT)) return c;
    a = affine_whole_type(type);
    return !c.top && !a.top && c.min >= a.min && c.max <= a.max ? c : unknown(e);
  case PTX_OP_MAD:
    if (ptx_has(instr, PTX_MOD_SAT)) return unknown(e);
    a = product(e);
    b = operand_at(e, 3);
    return affine_add(e->grid, &a, &b);
  case PTX_OP_MAD24:
    if (ptx_has(instr, PTX_MOD_SAT)) return unknown(e);
    a = product24(e);
    b = operand_at(e, 3);
    return affine_add(e->grid, &a, &b);
  default: break;
  }
  if (any_made_up(e) && instr->opcode != PTX_OP_SELP) return made_up(e);
  switch (instr->opcode) {
  case PTX_OP_MUL: return product(e);
  case PTX_OP_MUL24: return product24(e);
  case PTX_OP_DIV: return quotient(e, false);
  case PTX_OP_REM: return quotient(e, true);
  case PTX_OP_SHL: return shift_left(e);
  case PTX_OP_SHR: return shift_right(e);
  case PTX_OP_BFE: return extract_bits(e);
  case PTX_OP_AND:
    a = operand_at(e, 1);
    b = operand_at(e, 2);
    return affine_and(e->grid, &a, &b, type);
  case PTX_OP_OR:
  case PTX_OP_XOR:
    a = operand_at(e, 1);
    b = operand_at(e, 2);
    return affine_or(e->grid, &a, &b, type, instr->opcode == PTX_OP_XOR);
  case PTX_OP_NOT: a = operand_at(e, 1); return affine_subtract(e->grid, &minus_one, &a);
  case PTX_OP_NEG: a = operand_at(e, 1); return affine_subtract(e->grid, &zero, &a);
  case PTX_OP_ABS: return absolute(e);
  case PTX_OP_MIN:
  case PTX_OP_MAX:
    a = typed_operand(e, 1, type);
    b = typed_operand(e, 2, type);
    if (instr->operand_count != 3 || ptx_has(instr, PTX_MOD_RELU)) return unknown(e);
    return instr->opcode == PTX_OP_MIN ? affine_minimum(e->grid, &a, &b) : affine_maximum(e->grid, &a, &b);
  case PTX_OP_SELP: return choose(e);
  case PTX_OP_SLCT:
    a = operand_at(e, 1);
    b = operand_at(e, 2);
    return affine_join(e->grid, &a, &b);
  case PTX_OP_POPC:
  case PTX_OP_CLZ: return affine_interval(0, type.bits);
  case PTX_OP_BFIND: return affine_interval(-1, type.bits);
  case PTX_OP_CNOT: return affine_interval(0, 1);
  case PTX_OP_SET: return affine_interval(-1, 0);
  default: return unknown(e);
  }
}

affine ranges_evaluate(ranges_finder *f, const ranges_state *state, const ptx_instr *instr, uint32_t reg) {
  evaluator e = {f, state, instr, &state->blocks};
  bool predicate = f->func->regs[reg].type == PTX_PRED;
  f->steps++;
  switch (instr->opcode) {
  case PTX_OP_MOV: return instr->type_count ? move(&e, reg) : unknown(&e);
  case PTX_OP_CVT: return predicate ? truth(-1) : convert(&e, reg);
  case PTX_OP_CVTA: return predicate ? truth(-1) : to_generic_or_back(&e);
  case PTX_OP_LD:
  case PTX_OP_LDU: return predicate ? truth(-1) : load(&e, reg);
  case PTX_OP_SETP: return instr->type_count ? set_predicate(&e, reg) : truth(-1);
  case PTX_OP_ATOM: return predicate ? truth(-1) : from_memory(&e, reg, AFFINE_ATOMIC);
  case PTX_OP_CALL: return predicate ? truth(-1) : from_memory(&e, reg, AFFINE_CALLED);
  case PTX_OP_SHFL:
  case PTX_OP_REDUX:
  case PTX_OP_VOTE:
  case PTX_OP_MATCH:
  case PTX_OP_ACTIVEMASK: return predicate ? truth(-1) : affine_top(instr->place.line, AFFINE_EXCHANGED);
  default: break;
  }
  if (predicate) return instr->type_count && instr->types[0] == PTX_PRED ? predicate_logic(&e) : truth(-1);
  return instr->type_count && ranges_is_integer(instr->types[0]) ? integer(&e) : unknown(&e);
}
