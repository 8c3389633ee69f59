/* SPDX-License-Identifier: Apache-2.0 */
/* How often a loop goes round, from its counter (Hsieh et al., ISCA 2016, section 3.1.3).
 *
 * It can be said where the loop has one exit, a conditional branch that every trip passes, whose predicate compares a
 * counter with something that the loop does not write. A counter is a register that each trip adds a constant to: it,
 * or copies and sums with constants of it, each written once in the loop and once per trip. Pointers count as well as
 * indices; signed or unsigned, 32 or 64 bits; up or down. */
#include <stdlib.h>

#include "base/memory.h"
#include "offload/analysis.h"

enum { LONGEST_CHAIN = 16, BLOCKS_BACK = 64, MAX_BLOCKS = 4096 };

typedef struct search {
  const analysis *a;
  const loop *l;
  /* per register: the last instruction in the loop that writes it, and how many do */
  const uint32_t *defined_at, *defined_count;
  uint32_t exit_block;
  uint32_t *place; /* per block: 1 + its place in the row of blocks that every trip passes; 0: not one */
} search;

/* ---- numbers ---- */

uint32_t offload_trips_of(const offload_trips *t, uint64_t from, uint64_t to) {
  uint64_t mask = t->bits == 64 ? UINT64_MAX : UINT32_MAX;
  uint64_t first = ((t->from.reg == PTX_NO_REG ? 0 : from) + (uint64_t)t->from.value) & mask,
           last = ((t->to.reg == PTX_NO_REG ? 0 : to) + (uint64_t)t->to.value) & mask;
  bool up = t->step > 0;
  unsigned __int128 step = up ? (unsigned __int128)t->step : (unsigned __int128)-(__int128)t->step, more;
  if (t->compare == PTX_MOD_NE) {
    uint64_t way = (up ? last - first : first - last) & mask;
    if (way % step) return OFFLOAD_NEVER;
    more = way / step;
  } else {
    __int128 f = first, l = last;
    if (t->is_signed) {
      f = t->bits == 64 ? (int64_t)first : (int32_t)first;
      l = t->bits == 64 ? (int64_t)last : (int32_t)last;
    }
    bool equal = t->compare == PTX_MOD_LE || t->compare == PTX_MOD_GE;
    __int128 way = up ? l - f : f - l;
    if (way < 0 || (way == 0 && !equal)) more = 0;
    else more = equal ? (unsigned __int128)way / step + 1 : ((unsigned __int128)way + step - 1) / step;
  }
  if (!t->tested_first) more++;
  return more < OFFLOAD_NEVER ? (uint32_t)more : OFFLOAD_NEVER - 1;
}

/* ---- what every trip passes ---- */

static uint32_t common_dominator(const analysis *a, uint32_t x, uint32_t y) {
  while (x != y) { /* the order is one in which dominators come first */
    if (a->cfg->blocks[x].order > a->cfg->blocks[y].order) x = a->idom[x];
    else y = a->idom[y];
  }
  return x;
}

/* Marks the blocks that dominate all ways back to the header. */
static bool mark_row(search *s, uint32_t **row, uint32_t *length) {
  const ptx_block *header = &s->a->cfg->blocks[s->l->header];
  uint32_t last = OFFLOAD_NONE_INDEX, count = 0;
  for (uint32_t i = 0; i < header->predecessor_count; i++) {
    uint32_t from = header->predecessors[i];
    if (in_loop(s->a, s->l, from)) last = last == OFFLOAD_NONE_INDEX ? from : common_dominator(s->a, last, from);
  }
  if (last == OFFLOAD_NONE_INDEX) return false;
  for (uint32_t b = last;; b = s->a->idom[b]) {
    count++;
    if (b == s->l->header) break;
  }
  *row = ff_alloc(count * sizeof **row);
  *length = count;
  for (uint32_t b = last, at = count; at > 0; b = s->a->idom[b]) {
    (*row)[--at] = b;
    s->place[b] = at + 1;
  }
  return true;
}

static bool finds_exit(search *s) {
  const analysis *a = s->a;
  s->exit_block = OFFLOAD_NONE_INDEX;
  for (uint32_t order = s->l->first_order; order <= s->l->last_order; order++) {
    uint32_t b = a->cfg->by_order[order];
    for (uint32_t i = 0; i < a->cfg->blocks[b].successor_count; i++) {
      if (in_loop(a, s->l, a->cfg->blocks[b].successors[i]) || s->exit_block == b) continue;
      if (s->exit_block != OFFLOAD_NONE_INDEX) return false;
      s->exit_block = b;
    }
    if (a->ineligible[a->cfg->blocks[b].end - 1] == OFFLOAD_EXIT) return false;
  }
  return s->exit_block != OFFLOAD_NONE_INDEX && s->place[s->exit_block] && &a->loops[a->loop_of[s->exit_block]] == s->l;
}

/* ---- the counter ---- */

/* Instruction x comes before y in every trip; both are passed once in each. y: the function's instr_count is the trip's
 * end. */
static bool comes_before(const search *s, uint32_t x, uint32_t y) {
  if (y >= s->a->func->instr_count) return true;
  uint32_t bx = s->a->cfg->block_of[x], by = s->a->cfg->block_of[y];
  return bx == by ? x < y : s->place[bx] < s->place[by];
}

/* The one place in the loop that writes the register, if every trip passes it exactly once. */
static bool written_once(const search *s, uint32_t reg, uint32_t *at) {
  if (s->defined_count[reg] != 1) return false;
  *at = s->defined_at[reg];
  uint32_t block = s->a->cfg->block_of[*at];
  return s->a->func->instrs[*at].guard == PTX_NO_REG && s->place[block] && &s->a->loops[s->a->loop_of[block]] == s->l;
}

static bool is_integer(const ptx_instr *instr) {
  ptx_type type = instr->type_count ? instr->types[instr->type_count - 1] : PTX_TYPE_NONE;
  if (type == PTX_TYPE_NONE || instr->mod_count) return false;
  uint32_t bits = ptx_type_bits(type);
  char class = ptx_type_class(type);
  return (bits == 32 || bits == 64) && (class == 'U' || class == 'S' || class == 'B');
}

/* d = source + add */
static bool is_sum(const ptx_instr *instr, uint32_t *source, int64_t *add) {
  const ptx_operand *o = instr->operands;
  if (!is_integer(instr) || o[0].kind != PTX_OPERAND_REG) return false;
  if (instr->opcode == PTX_OP_MOV && o[1].kind == PTX_OPERAND_REG) {
    *source = o[1].reg;
    *add = 0;
    return true;
  }
  if (instr->opcode != PTX_OP_ADD && instr->opcode != PTX_OP_SUB) return false;
  bool swapped = instr->opcode == PTX_OP_ADD && o[1].kind == PTX_OPERAND_INT && o[2].kind == PTX_OPERAND_REG;
  const ptx_operand *reg = &o[swapped ? 2 : 1], *number = &o[swapped ? 1 : 2];
  if (reg->kind != PTX_OPERAND_REG || number->kind != PTX_OPERAND_INT) return false;
  *source = reg->reg;
  *add = (int64_t)(instr->opcode == PTX_OP_SUB ? -number->bits : number->bits);
  return true;
}

/* Goes back from instruction `at` through sums to what `reg` was when the trip began: *head + *add. */
static bool go_back(const search *s, uint32_t reg, uint32_t at, uint32_t *head, int64_t *add) {
  *add = 0;
  for (int i = 0; i < LONGEST_CHAIN; i++) {
    uint32_t where, source;
    int64_t more;
    if (!written_once(s, reg, &where)) return false;
    if (!comes_before(s, where, at)) {
      *head = reg;
      return true;
    }
    if (!is_sum(&s->a->func->instrs[where], &source, &more)) return false;
    *add = (int64_t)((uint64_t)*add + (uint64_t)more);
    reg = source;
    at = where;
  }
  return false;
}

/* ---- before the loop ---- */

static bool gives_constant(const ptx_instr *instr, int64_t *value) {
  if (instr->opcode != PTX_OP_MOV || instr->guard != PTX_NO_REG || instr->operands[0].kind != PTX_OPERAND_REG ||
      instr->operands[1].kind != PTX_OPERAND_INT)
    return false;
  *value = (int64_t)instr->operands[1].bits;
  return true;
}

static uint32_t only_predecessor(const analysis *a, uint32_t block, const loop *outside) {
  uint32_t only = OFFLOAD_NONE_INDEX;
  const ptx_block *b = &a->cfg->blocks[block];
  for (uint32_t i = 0; i < b->predecessor_count; i++) {
    uint32_t from = b->predecessors[i];
    if (!a->cfg->blocks[from].reachable || (outside && in_loop(a, outside, from))) continue;
    if (only != OFFLOAD_NONE_INDEX) return OFFLOAD_NONE_INDEX;
    only = from;
  }
  return block ? only : OFFLOAD_NONE_INDEX; /* the function's first block is entered from nowhere as well */
}

/* What the register holds where the loop is entered: a constant, if the way there says so. */
static offload_bound value_before(const search *s, uint32_t reg) {
  offload_bound bound = {reg, 0};
  uint32_t block = only_predecessor(s->a, s->l->header, s->l);
  for (int i = 0; i < BLOCKS_BACK && block != OFFLOAD_NONE_INDEX; i++) {
    const ptx_block *b = &s->a->cfg->blocks[block];
    for (uint32_t at = b->end; at-- > b->first;)
      for (uint32_t k = s->a->touch_first[at]; k < s->a->touch_first[at + 1]; k++) {
        if (s->a->touches[k].reg != reg || !(s->a->touches[k].flags & TOUCH_WRITE)) continue;
        if (gives_constant(&s->a->func->instrs[at], &bound.value)) bound.reg = PTX_NO_REG;
        return bound;
      }
    block = only_predecessor(s->a, block, NULL);
  }
  return bound;
}

/* ---- the comparison ---- */

typedef struct comparison {
  ptx_mod compare;
  bool is_signed, is_unsigned;
  uint32_t bits;
} comparison;

static bool read_comparison(const ptx_instr *setp, comparison *c) {
  ptx_type type = setp->type_count ? setp->types[setp->type_count - 1] : PTX_TYPE_NONE;
  if (setp->opcode != PTX_OP_SETP || setp->operand_count != 3 || setp->mod_count != 1 || setp->type_count != 1)
    return false;
  if (setp->operands[0].kind != PTX_OPERAND_REG) return false;
  *c = (comparison){.compare = setp->mods[0], .is_signed = ptx_type_class(type) == 'S', .bits = ptx_type_bits(type)};
  if (ptx_type_class(type) == 'F' || (c->bits != 32 && c->bits != 64)) return false;
  static const ptx_mod unsigned_ones[][2] = {
      {PTX_MOD_LO, PTX_MOD_LT}, {PTX_MOD_LS, PTX_MOD_LE}, {PTX_MOD_HI, PTX_MOD_GT}, {PTX_MOD_HS, PTX_MOD_GE}};
  for (int i = 0; i < 4; i++)
    if (c->compare == unsigned_ones[i][0]) {
      c->compare = unsigned_ones[i][1];
      c->is_signed = false;
    }
  return true;
}

static ptx_mod turned(ptx_mod compare) { /* a OP b -> b OP a */
  return compare == PTX_MOD_LT   ? PTX_MOD_GT
         : compare == PTX_MOD_GT ? PTX_MOD_LT
         : compare == PTX_MOD_LE ? PTX_MOD_GE
         : compare == PTX_MOD_GE ? PTX_MOD_LE
                                 : compare;
}

static ptx_mod negated(ptx_mod compare) {
  switch (compare) {
  case PTX_MOD_LT: return PTX_MOD_GE;
  case PTX_MOD_GE: return PTX_MOD_LT;
  case PTX_MOD_GT: return PTX_MOD_LE;
  case PTX_MOD_LE: return PTX_MOD_GT;
  case PTX_MOD_EQ: return PTX_MOD_NE;
  default: return PTX_MOD_EQ;
  }
}

static bool goes_there(ptx_mod compare, int64_t step) {
  if (compare == PTX_MOD_NE) return step != 0;
  return compare == PTX_MOD_LT || compare == PTX_MOD_LE ? step > 0
                                                        : (compare == PTX_MOD_GT || compare == PTX_MOD_GE) && step < 0;
}

/* Not written in the loop: a register or a number. A register that the function sets once, to a number, is that
 * number. */
static bool is_fixed(const search *s, const ptx_operand *o, offload_bound *bound) {
  *bound = (offload_bound){PTX_NO_REG, (int64_t)o->bits};
  if (o->kind == PTX_OPERAND_INT) return true;
  if (o->kind != PTX_OPERAND_REG || s->defined_count[o->reg]) return false;
  *bound = value_before(s, o->reg);
  return true;
}

/* The step of a counter that is 32 bits wide may be written as an unsigned number. */
static int64_t as_step(int64_t step, uint32_t bits) { return bits == 32 ? (int32_t)(uint32_t)step : step; }

static bool reads_test(const search *s, offload_trips *found) {
  const analysis *a = s->a;
  const ptx_block *block = &a->cfg->blocks[s->exit_block];
  const ptx_instr *branch = &a->func->instrs[block->end - 1];
  uint32_t at, head, same;
  int64_t add, step;
  comparison c;
  if (branch->opcode != PTX_OP_BRA || branch->guard == PTX_NO_REG || block->successor_count != 2) return false;
  if (!written_once(s, branch->guard, &at) || !comes_before(s, at, block->end - 1)) return false;
  const ptx_instr *setp = &a->func->instrs[at];
  if (!read_comparison(setp, &c)) return false;
  bool swapped = is_fixed(s, &setp->operands[1], &found->to);
  const ptx_operand *counter = &setp->operands[swapped ? 2 : 1];
  if (!swapped && !is_fixed(s, &setp->operands[2], &found->to)) return false;
  if (counter->kind != PTX_OPERAND_REG || !go_back(s, counter->reg, at, &head, &add)) return false;
  if (!go_back(s, head, a->func->instr_count, &same, &step) || same != head) return false;
  bool target_inside = in_loop(a, s->l, a->cfg->block_of[branch->operands[0].label]);
  found->compare = swapped ? turned(c.compare) : c.compare;
  if (target_inside == branch->guard_negated) found->compare = negated(found->compare);
  found->is_signed = c.is_signed;
  found->bits = c.bits;
  found->step = as_step(step, c.bits);
  found->from = value_before(s, head);
  found->from.value = (int64_t)((uint64_t)found->from.value + (uint64_t)add);
  return found->step != 0 && goes_there(found->compare, found->step);
}

/* A test in the header counts the trips before they are made, unless what they access is in the header, too. */
static bool is_tested_first(const search *s) {
  const analysis *a = s->a;
  const ptx_block *header = &a->cfg->blocks[s->l->header];
  if (s->exit_block != s->l->header) return false;
  uint32_t here = 0;
  for (uint32_t i = header->first; i < header->end; i++) here += a->accesses[i] != ACCESS_NONE;
  if (here) return false;
  for (uint32_t order = s->l->first_order + 1; order <= s->l->last_order; order++) {
    const ptx_block *b = &a->cfg->blocks[a->cfg->by_order[order]];
    for (uint32_t i = b->first; i < b->end; i++)
      if (a->accesses[i] != ACCESS_NONE) return true;
  }
  return false;
}

/* ---- the whole ---- */

/* Counts what the loop writes; with count false takes it back. */
static void count_writes(const analysis *a, const loop *l, uint32_t *defined_at, uint32_t *defined_count, bool count) {
  for (uint32_t order = l->first_order; order <= l->last_order; order++) {
    const ptx_block *b = &a->cfg->blocks[a->cfg->by_order[order]];
    for (uint32_t i = b->first; i < b->end; i++)
      for (uint32_t k = a->touch_first[i]; k < a->touch_first[i + 1]; k++) {
        if (!(a->touches[k].flags & TOUCH_WRITE)) continue;
        uint32_t reg = a->touches[k].reg;
        defined_at[reg] = i;
        defined_count[reg] = count ? defined_count[reg] + 1 : 0;
      }
  }
}

static void find_one(analysis *a, loop *l, uint32_t *defined_at, uint32_t *defined_count, uint32_t *place) {
  search s = {.a = a, .l = l, .defined_at = defined_at, .defined_count = defined_count, .place = place};
  uint32_t *row = NULL, length = 0;
  offload_trips found = {.from = {PTX_NO_REG, 0}, .to = {PTX_NO_REG, 0}};
  l->trips = (offload_trips){.kind = OFFLOAD_TRIPS_UNKNOWN, .from = {PTX_NO_REG, 0}, .to = {PTX_NO_REG, 0}};
  if (l->entered_elsewhere || l->last_order - l->first_order > MAX_BLOCKS) return;
  count_writes(a, l, defined_at, defined_count, true);
  if (mark_row(&s, &row, &length) && finds_exit(&s) && reads_test(&s, &found)) {
    found.tested_first = is_tested_first(&s);
    found.kind = OFFLOAD_TRIPS_KNOWN;
    if (found.from.reg == PTX_NO_REG && found.to.reg == PTX_NO_REG) {
      found.kind = OFFLOAD_TRIPS_STATIC;
      found.count = offload_trips_of(&found, 0, 0);
    }
    if (found.kind == OFFLOAD_TRIPS_KNOWN || (found.count && found.count < OFFLOAD_NEVER - 1)) l->trips = found;
  }
  count_writes(a, l, defined_at, defined_count, false);
  for (uint32_t i = 0; i < length; i++) place[row[i]] = 0;
  free(row);
}

void trips_find(analysis *a) {
  uint32_t *defined_at = ff_alloc((a->reg_count + 1) * sizeof *defined_at),
           *count = ff_alloc((a->reg_count + 1) * sizeof *count);
  uint32_t *place = ff_alloc((a->cfg->block_count + 1) * sizeof *place);
  for (uint32_t i = 0; i < a->loop_count; i++) find_one(a, &a->loops[i], defined_at, count, place);
  free(defined_at);
  free(count);
  free(place);
}
