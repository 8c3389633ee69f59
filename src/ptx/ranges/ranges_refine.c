/* SPDX-License-Identifier: Apache-2.0 */
/* What a condition tells: narrower values for the registers that it compares, for those computed from them and for
 * those that they were computed from, as far as the instructions that defined them still hold.
 *
 * Also how often a loop can go round, from a comparison that it must pass to stay: a register grows by a constant in
 * each round, and the comparison's other side does not. */
#include "ptx/ranges/ranges_private.h"

typedef __int128 wide;

enum { DEPTH_MAX = 12, FOLLOWED_MAX = 64 };

typedef struct refiner {
  ranges_finder *f;
  ranges_state *state;
  uint32_t left; /* registers that may still be followed */
} refiner;

static bool narrow(refiner *r, uint32_t slot, const affine *found, int depth);

static bool narrower(const affine *new, const affine *old) {
  if (old->top) return !new->top;
  return !new->top &&
         (new->min > old->min || new->max < old->max || (wide) new->hi - new->lo < (wide)old->hi - old->lo);
}

/* ---- forward and backward ---- */

/* The registers computed from it, once more. */
static bool follow_users(refiner *r, uint32_t slot, int depth) {
  ranges_finder *f = r->f;
  for (uint32_t i = f->user_first[slot]; i < f->user_first[slot + 1]; i++) {
    const ptx_instr *instr = &f->func->instrs[f->users[i]];
    const ptx_operand *to = &instr->operands[0];
    uint32_t target = to->kind == PTX_OPERAND_REG ? ranges_slot(f, to->reg) : RANGES_NONE;
    if (target == RANGES_NONE || r->state->defs[target] != f->users[i]) continue;
    if (instr->opcode == PTX_OP_SELP || f->func->regs[to->reg].type == PTX_PRED) continue;
    affine again = ranges_evaluate(f, r->state, instr, to->reg);
    if (!narrow(r, target, &again, depth)) return false;
  }
  return true;
}

/* `type`: as the instruction reads it; if the register has more bits, they are not known. */
static bool narrow_operand(refiner *r, const ptx_operand *operand, const affine *found, ptx_type type, int depth) {
  uint32_t slot = operand->kind == PTX_OPERAND_REG && !operand->negated && !operand->selector
                      ? ranges_slot(r->f, operand->reg)
                      : RANGES_NONE;
  if (slot == RANGES_NONE || found->top || ptx_type_bits(r->f->func->regs[operand->reg].type) != ptx_type_bits(type))
    return true;
  affine plain = *found;
  plain.base = 0;
  plain.points = r->state->values[slot].points;
  plain.zeros = r->state->values[slot].zeros;
  return narrow(r, slot, &plain, depth);
}

/* d = a + b: a is d - b, modulo 2^bits; likewise the rest. */
static bool follow_source(refiner *r, uint32_t slot, int depth) {
  ranges_finder *f = r->f;
  uint32_t def = r->state->defs[slot];
  if (def == RANGES_NONE) return true;
  const ptx_instr *instr = &f->func->instrs[def];
  const ptx_operand *o = instr->operands;
  affine d = r->state->values[slot], a, b, v;
  if (!instr->type_count || !ranges_is_integer(instr->types[0]) || ptx_has(instr, PTX_MOD_SAT)) return true;
  d.base = 0;
  switch (instr->opcode) {
  case PTX_OP_ADD:
  case PTX_OP_SUB: {
    bool minus = instr->opcode == PTX_OP_SUB;
    a = ranges_operand(f, r->state, instr, &o[1]);
    b = ranges_operand(f, r->state, instr, &o[2]);
    a.base = b.base = 0;
    a.points = b.points = d.points = 0;
    v = minus ? affine_add(&r->state->blocks, &d, &b) : affine_subtract(&r->state->blocks, &d, &b);
    if (!narrow_operand(r, &o[1], &v, instr->types[0], depth)) return false;
    v = minus ? affine_subtract(&r->state->blocks, &a, &d) : affine_subtract(&r->state->blocks, &d, &a);
    return narrow_operand(r, &o[2], &v, instr->types[0], depth);
  }
  case PTX_OP_MOV: return o[0].kind != PTX_OPERAND_REG || narrow_operand(r, &o[1], &d, instr->types[0], depth);
  case PTX_OP_CVT:
    if (instr->type_count < 2 || !ranges_is_integer(instr->types[1]) ||
        ptx_type_bits(instr->types[1]) > ptx_type_bits(instr->types[0]))
      return true;
    return narrow_operand(r, &o[1], &d, instr->types[1], depth);
  default: return true;
  }
}

/* No two of its numbers are the same modulo 2^bits. */
static bool is_one_turn(const affine *v, uint32_t bits) {
  return !v->top && (bits >= 64 || (wide)v->max - v->min < (wide)1 << bits);
}

static bool narrow(refiner *r, uint32_t slot, const affine *found, int depth) {
  const ptx_reg *reg = &r->f->func->regs[r->f->reg_of[slot]];
  affine *old = &r->state->values[slot], met;
  uint32_t bits = ptx_type_bits(reg->type);
  if (!affine_meet(&r->state->blocks, old, found, (uint8_t)bits, &met)) return false;
  if (!narrower(&met, old)) return true;
  met.points = old->points;
  met.root = old->root;
  met.root_offset = old->root_offset;
  met.base = old->base;
  met.step_lo = old->step_lo;
  met.step_hi = old->step_hi;
  affine was = *old;
  *old = met;
  /* the same numbers: the old form with the new bounds */
  if (is_one_turn(&was, bits) && met.min >= was.min && met.max <= was.max) {
    was.min = met.min;
    was.max = met.max;
    if (!affine_grid_narrow(&r->state->blocks, &was)) return false;
  }
  if (!affine_grid_narrow(&r->state->blocks, &met) || !affine_tighten(&r->state->blocks, old)) return false;
  if (depth >= DEPTH_MAX || !r->left) return true;
  r->left--;
  return follow_source(r, slot, depth + 1) && follow_users(r, slot, depth + 1);
}

/* ---- comparisons ---- */

/* x is at most (at least) what y is, less `strict`. */
static affine bounded(const affine_grid *grid, const affine *x, const affine *y, bool above, int strict) {
  affine v = *x;
  int64_t lo, hi;
  if (v.top || y->top) return v;
  affine_reform(grid, y, v.c, &lo, &hi);
  if (above) { /* x < y */
    if ((wide)hi - strict < v.hi) v.hi = (int64_t)((wide)hi - strict);
    if ((wide)y->max - strict < v.max) v.max = (int64_t)((wide)y->max - strict);
  } else {
    if ((wide)lo + strict > v.lo) v.lo = (int64_t)((wide)lo + strict);
    if ((wide)y->min + strict > v.min) v.min = (int64_t)((wide)y->min + strict);
  }
  return v;
}

static bool is_empty(const affine_grid *grid, affine *v) {
  return v->lo > v->hi || v->min > v->max || !affine_tighten(grid, v);
}

/* a `comparison` b holds; a and b as the type reads them. One that is not known (unsigned, 64 bits) may be 2^63 or
 * more, which no value can say: only what is below another is. */
static bool narrow_compared(const affine_grid *grid, ptx_mod comparison, affine a, affine b, affine *narrow_a,
                            affine *narrow_b) {
  bool less = false, greater = false, strict = false, open_a = a.top, open_b = b.top;
  *narrow_a = a;
  *narrow_b = b;
  if (open_a && open_b) return true;
  switch (comparison) {
  case PTX_MOD_LT:
  case PTX_MOD_LO: less = strict = true; break;
  case PTX_MOD_LE:
  case PTX_MOD_LS: less = true; break;
  case PTX_MOD_GT:
  case PTX_MOD_HI: greater = strict = true; break;
  case PTX_MOD_GE:
  case PTX_MOD_HS: greater = true; break;
  case PTX_MOD_EQ: less = greater = true; break;
  case PTX_MOD_NE: break;
  default: return true;
  }
  if ((open_a && !less) || (open_b && !greater)) return true;
  if (open_a) a = affine_interval(0, INT64_MAX);
  if (open_b) b = affine_interval(0, INT64_MAX);
  affine x = a, y = b;
  if (less) {
    if (!open_b) x = bounded(grid, &x, &b, true, strict);
    y = bounded(grid, &y, &a, false, strict);
  }
  if (greater) {
    x = bounded(grid, &x, &b, false, strict);
    if (!open_a) y = bounded(grid, &y, &a, true, strict);
  }
  if (comparison == PTX_MOD_NE && affine_is_constant(&b)) {
    if (x.min == b.min) x.min++;
    if (x.max == b.min) x.max--;
  }
  if (is_empty(grid, &x) || is_empty(grid, &y)) return false;
  *narrow_a = x;
  *narrow_b = y;
  return true;
}

/* All registers that come from the one that was compared, which now is `found`. */
static bool narrow_root(refiner *r, const affine *compared, affine found, int depth) {
  if (!compared->root || found.top) return true;
  found.base = found.root = 0;
  for (uint32_t s = 0; s < r->f->slot_count; s++) {
    const affine *v = &r->state->values[s];
    if (v->root != compared->root || r->f->func->regs[r->f->reg_of[s]].type == PTX_PRED) continue;
    affine apart = affine_constant(v->root_offset), plain = found;
    plain.points = 0;
    plain = affine_add(&r->state->blocks, &plain, &apart);
    apart = affine_constant(compared->root_offset);
    plain = affine_subtract(&r->state->blocks, &plain, &apart);
    plain.points = v->points;
    plain.zeros = v->zeros;
    plain.root = 0;
    if (!plain.top && !narrow(r, s, &plain, depth)) return false;
  }
  r->f->steps += 1 + r->f->slot_count / 16;
  return true;
}

static bool refine(refiner *r, uint32_t pred, bool truth, int depth);

static bool refine_operand(refiner *r, const ptx_operand *operand, bool truth, int depth) {
  if (operand->kind != PTX_OPERAND_REG || r->f->func->regs[operand->reg].type != PTX_PRED) return true;
  return refine(r, operand->reg, truth != operand->negated, depth);
}

/* setp.CMP[.and|.or] p, a, b [, c] */
static bool refine_setp(refiner *r, const ptx_instr *instr, uint32_t pred, bool truth, int depth) {
  const ptx_operand *to = &instr->operands[0];
  ptx_mod comparison = ranges_comparison(instr);
  ptx_type type = instr->type_count ? instr->types[instr->type_count - 1] : PTX_TYPE_NONE;
  if (to->kind == PTX_OPERAND_REG_PAIR && to->reg2 == pred) {
    if (to->reg == pred) return true;
    comparison = ranges_opposite(comparison);
  }
  if (instr->operand_count > 3) {
    bool both = ptx_has(instr, PTX_MOD_AND) ? truth : ptx_has(instr, PTX_MOD_OR) && !truth;
    if (!both) return true; /* one of the two: which is not known */
    if (!refine_operand(r, &instr->operands[3], truth, depth + 1)) return false;
  }
  if (comparison == PTX_MODS || !ranges_is_integer(type)) return true;
  affine a = ranges_operand(r->f, r->state, instr, &instr->operands[1]),
         b = ranges_operand(r->f, r->state, instr, &instr->operands[2]);
  if ((a.points | b.points) & AFFINE_OTHER) return true;
  if (!truth) comparison = ranges_opposite(comparison);
  affine_type read = {(uint8_t)ptx_type_bits(type), ranges_compares_signed(instr, comparison)};
  a = affine_as(&r->state->blocks, &a, read);
  b = affine_as(&r->state->blocks, &b, read);
  affine x, y;
  if (!narrow_compared(&r->state->blocks, comparison, a, b, &x, &y)) return false;
  return narrow_operand(r, &instr->operands[1], &x, type, depth + 1) &&
         narrow_operand(r, &instr->operands[2], &y, type, depth + 1);
}

/* What a setp compared may be overwritten since: what it said of the values then goes for what was computed from
 * them. */
static bool refine_compared(refiner *r, const ranges_compared *made, uint32_t pred, bool truth, int depth) {
  const ptx_instr *instr = &r->f->func->instrs[made->instr];
  const ptx_operand *to = &instr->operands[0];
  ptx_mod comparison = ranges_comparison(instr);
  if (to->kind == PTX_OPERAND_REG_PAIR && to->reg2 == pred) {
    if (to->reg == pred) return true;
    comparison = ranges_opposite(comparison);
  }
  if (instr->operand_count > 3 && !(ptx_has(instr, PTX_MOD_AND) ? truth : ptx_has(instr, PTX_MOD_OR) && !truth))
    return true;
  if (comparison == PTX_MODS || ((made->a.points | made->b.points) & AFFINE_OTHER)) return true;
  if (!truth) comparison = ranges_opposite(comparison);
  affine_type read = {(uint8_t)ptx_type_bits(instr->types[instr->type_count - 1]),
                      ranges_compares_signed(instr, comparison)};
  affine a = affine_as(&r->state->blocks, &made->a, read), b = affine_as(&r->state->blocks, &made->b, read), x, y;
  if (!narrow_compared(&r->state->blocks, comparison, a, b, &x, &y)) return false;
  return narrow_root(r, &made->a, x, depth + 1) && narrow_root(r, &made->b, y, depth + 1);
}

static bool refine(refiner *r, uint32_t pred, bool truth, int depth) {
  ranges_finder *f = r->f;
  uint32_t slot = ranges_slot(f, pred);
  if (slot == RANGES_NONE || depth > DEPTH_MAX) return true;
  affine *v = &r->state->values[slot], is = affine_constant(truth);
  if (!v->top && (v->min > truth || v->max < truth)) return false;
  is.root = v->root;
  *v = is;
  uint32_t def = r->state->defs[slot];
  if (def == RANGES_NONE) return !is.root || refine_compared(r, &f->compared.items[is.root - 1], pred, truth, depth);
  const ptx_instr *instr = &f->func->instrs[def];
  bool logic = instr->type_count && instr->types[0] == PTX_PRED;
  switch (instr->opcode) {
  case PTX_OP_SETP: return refine_setp(r, instr, pred, truth, depth);
  case PTX_OP_AND:
  case PTX_OP_OR:
    if (!logic || truth != (instr->opcode == PTX_OP_AND)) return true;
    return refine_operand(r, &instr->operands[1], truth, depth + 1) &&
           refine_operand(r, &instr->operands[2], truth, depth + 1);
  case PTX_OP_NOT: return !logic || refine_operand(r, &instr->operands[1], !truth, depth + 1);
  case PTX_OP_MOV: return !logic || refine_operand(r, &instr->operands[1], truth, depth + 1);
  default: return true;
  }
}

bool ranges_refine(ranges_finder *f, ranges_state *state, uint32_t pred, bool truth) {
  refiner r = {f, state, FOLLOWED_MAX};
  return refine(&r, pred, truth, 0);
}

/* ---- trips ---- */

static void at_most(ranges_loop *loop, wide trips) {
  if (trips < 0) trips = 0;
  if (trips > INT64_MAX / 2) return;
  if (loop->trips < 0 || trips < loop->trips) loop->trips = (int64_t)trips;
}

/* The first value, less what is added to it in a round, that the comparison sees; false: not a register that goes in
 * steps. */
static bool is_stepping(const ranges_finder *f, const ranges_loop *loop, const affine *v, affine *first, affine *step) {
  if (!v->base || v->base < loop->base_first || v->base - loop->base_first >= f->slot_count || !loop->back)
    return false;
  uint32_t slot = v->base - loop->base_first;
  const affine *round = &loop->back->values[slot];
  if (round->base != v->base) return false;
  *first = loop->entry->values[slot];
  first->base = 0;
  affine offset = affine_interval(v->step_lo, v->step_hi);
  first->points = 0;
  *first = affine_add(&f->grid, first, &offset);
  *step = affine_interval(round->step_lo, round->step_hi);
  return !first->top;
}

/* Stays while first + k * step CMP limit. */
static void count(const ranges_finder *f, ranges_loop *loop, const ptx_instr *instr, ptx_mod comparison, affine first,
                  affine step, affine limit) {
  ptx_type type = instr->types[instr->type_count - 1];
  affine_type read = {(uint8_t)ptx_type_bits(type), ranges_compares_signed(instr, comparison)};
  wide size = (wide)1 << read.bits, highest = ((wide)1 << (read.bits - read.is_signed)) - 1,
       lowest = read.is_signed ? -((wide)1 << (read.bits - 1)) : 0;
  affine start = affine_as(&f->grid, &first, read), end = affine_as(&f->grid, &limit, read);
  step = affine_as(&f->grid, &step, (affine_type){read.bits, true});
  start.points = end.points = 0;
  bool exact = !start.top && !end.top && start.max - (wide)start.min <= (wide)first.max - first.min;
  affine distance = affine_subtract(&f->grid, &end, &start), apart = affine_difference(&f->grid, &limit, &first);
  apart = affine_as(&f->grid, &apart, (affine_type){read.bits, true});
  if (limit.root && limit.root == first.root && affine_is_constant(&apart) && !start.top &&
      (wide)start.min + apart.min >= lowest && (wide)start.max + apart.min <= highest) {
    distance = apart; /* one from the other, and nothing wraps between */
    end = affine_interval((int64_t)((wide)start.min + apart.min), (int64_t)((wide)start.max + apart.min));
  }
  switch (comparison) {
  case PTX_MOD_LT:
  case PTX_MOD_LO:
  case PTX_MOD_LE:
  case PTX_MOD_LS: {
    bool also = comparison == PTX_MOD_LE || comparison == PTX_MOD_LS;
    if (!exact || distance.top || step.min <= 0 ||
        (wide)end.max + also - 1 + step.max + ((wide)first.hi - first.lo) > highest)
      return;
    at_most(loop, ((wide)distance.max + also + step.min - 1) / step.min);
    return;
  }
  case PTX_MOD_GT:
  case PTX_MOD_HI:
  case PTX_MOD_GE:
  case PTX_MOD_HS: {
    bool also = comparison == PTX_MOD_GE || comparison == PTX_MOD_HS;
    if (!exact || distance.top || step.max >= 0 ||
        (wide)end.min - also + 1 + step.min - ((wide)first.hi - first.lo) < lowest)
      return;
    at_most(loop, (-(wide)distance.min + also - step.max - 1) / -(wide)step.max);
    return;
  }
  case PTX_MOD_NE: {
    limit.points = first.points = 0;
    distance = affine_difference(&f->grid, &limit, &first);
    if (distance.top || !affine_is_constant(&distance) || !affine_is_constant(&step) || !step.min) return;
    wide by = step.min, way = distance.min;
    if (by < 0) {
      by = -by;
      way = -way;
    }
    way %= size;
    if (way < 0) way += size;
    if (way % by == 0) at_most(loop, way / by);
    return;
  }
  default: return;
  }
}

static ptx_mod mirrored(ptx_mod comparison) {
  switch (comparison) {
  case PTX_MOD_LT: return PTX_MOD_GT;
  case PTX_MOD_LE: return PTX_MOD_GE;
  case PTX_MOD_GT: return PTX_MOD_LT;
  case PTX_MOD_GE: return PTX_MOD_LE;
  case PTX_MOD_LO: return PTX_MOD_HI;
  case PTX_MOD_LS: return PTX_MOD_HS;
  case PTX_MOD_HI: return PTX_MOD_LO;
  case PTX_MOD_HS: return PTX_MOD_LS;
  default: return comparison;
  }
}

static void count_from(ranges_finder *f, ranges_loop *loop, const ranges_state *state, const ptx_operand *pred,
                       bool truth, int depth);

static void count_setp(ranges_finder *f, ranges_loop *loop, const ranges_state *state, const ptx_instr *instr,
                       const ranges_compared *made, bool truth, int depth) {
  ptx_mod comparison = ranges_comparison(instr);
  if (instr->operands[0].kind != PTX_OPERAND_REG || comparison == PTX_MODS) return;
  if (instr->operand_count > 3) {
    bool both = ptx_has(instr, PTX_MOD_AND) ? truth : ptx_has(instr, PTX_MOD_OR) && !truth;
    if (!both) return;
    if (!made) count_from(f, loop, state, &instr->operands[3], truth, depth + 1);
  }
  if (!ranges_is_integer(instr->types[instr->type_count - 1])) return;
  if (!truth) comparison = ranges_opposite(comparison);
  affine a = made ? made->a : ranges_operand(f, state, instr, &instr->operands[1]),
         b = made ? made->b : ranges_operand(f, state, instr, &instr->operands[2]), first, step;
  if ((a.points | b.points) & AFFINE_OTHER) return;
  if (!b.base && is_stepping(f, loop, &a, &first, &step)) count(f, loop, instr, comparison, first, step, b);
  if (!a.base && is_stepping(f, loop, &b, &first, &step)) count(f, loop, instr, mirrored(comparison), first, step, a);
}

static void count_from(ranges_finder *f, ranges_loop *loop, const ranges_state *state, const ptx_operand *pred,
                       bool truth, int depth) {
  uint32_t slot = pred->kind == PTX_OPERAND_REG ? ranges_slot(f, pred->reg) : RANGES_NONE;
  if (slot == RANGES_NONE || depth > DEPTH_MAX) return;
  if (pred->negated) truth = !truth;
  if (state->defs[slot] == RANGES_NONE) {
    const ranges_compared *made = state->values[slot].root ? &f->compared.items[state->values[slot].root - 1] : NULL;
    if (made) count_setp(f, loop, state, &f->func->instrs[made->instr], made, truth, depth);
    return;
  }
  const ptx_instr *instr = &f->func->instrs[state->defs[slot]];
  bool logic = instr->type_count && instr->types[0] == PTX_PRED;
  if (instr->opcode == PTX_OP_SETP && instr->type_count) count_setp(f, loop, state, instr, NULL, truth, depth);
  else if (logic && (instr->opcode == PTX_OP_AND || instr->opcode == PTX_OP_OR) &&
           truth == (instr->opcode == PTX_OP_AND)) {
    count_from(f, loop, state, &instr->operands[1], truth, depth + 1);
    count_from(f, loop, state, &instr->operands[2], truth, depth + 1);
  } else if (logic && instr->opcode == PTX_OP_NOT) {
    count_from(f, loop, state, &instr->operands[1], !truth, depth + 1);
  } else if (logic && instr->opcode == PTX_OP_MOV) {
    count_from(f, loop, state, &instr->operands[1], truth, depth + 1);
  }
}

void ranges_count_trips(ranges_finder *f, ranges_loop *loop, const ranges_state *state, uint32_t pred, bool truth) {
  ptx_operand operand = {.kind = PTX_OPERAND_REG, .reg = pred, .reg2 = PTX_NO_REG};
  count_from(f, loop, state, &operand, truth, 0);
}
