/* SPDX-License-Identifier: Apache-2.0 */
/* Slots, blocks, liveness and uniform values of one function. */
#include "compile/generator/emit_plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "exec/core.h"
#include "ptx/analysis/lane_facts.h"

#define MAX_SET_WORDS (UINT64_C(24) << 20) /* of one kind of set, of all blocks */

bool plan_ends_block(const native_instr *n) {
  return n->op == NATIVE_EXIT || n->op == NATIVE_BRANCH || n->op == NATIVE_BRANCH_IF ||
         n->op == NATIVE_BRANCH_INDEXED || n->op == NATIVE_SYNC;
}

bool plan_uniform_register(bool rows, uint32_t sreg) {
  return ptx_sreg_of_block((ptx_sreg)sreg) || (rows && (sreg == PTX_SREG_TID_Y || sreg == PTX_SREG_TID_Z));
}

bool plan_native_register(uint32_t sreg) {
  return plan_uniform_register(false, sreg) || sreg - PTX_SREG_TID_X <= PTX_SREG_TID_Z - PTX_SREG_TID_X ||
         sreg == PTX_SREG_LANEID;
}

bool plan_has_mode(const native_instr *n) { return n->op >= NATIVE_FADD_DIRECTED && n->op <= NATIVE_FMA_DIRECTED; }

/* Does the instruction give one value if its sources have one each? Operations on vectors only do not. */
static bool is_scalar(const plan *p, const native_instr *n) {
  if (plan_has_mode(n)) return false;
  switch (n->op) {
  case NATIVE_EXIT:
  case NATIVE_HANDLER:
  case NATIVE_NOTHING:
  case NATIVE_BRANCH:
  case NATIVE_BRANCH_IF:
  case NATIVE_BRANCH_INDEXED:
  case NATIVE_SYNC:
  case NATIVE_WARP_SYNC: return false;
  case NATIVE_ACCESS:
    return !n->store && (n->space == NATIVE_PARAM || n->space == NATIVE_GLOBAL || n->space == NATIVE_SHARED);
  case NATIVE_SREG: return plan_uniform_register(p->rows, n->aux);
  case NATIVE_SHUFFLE: return n->write_count == 1; /* its predicate is not */
  default: return true;
  }
}

/* ---- slots ---- */

static uint32_t add_slot(plan *p, uint32_t *table, uint32_t room, native_operand o) {
  uint32_t at = (o.offset * 2654435761u >> 7) & (room - 1), made = p->slot_count, same = made;
  for (; table[at] != NATIVE_NONE; at = (at + 1) & (room - 1)) {
    if (p->slots[table[at]].offset != o.offset) continue;
    if (p->slots[table[at]].bytes == o.bytes) return table[at];
    same = table[at];
  }
  p->slots[made] = (plan_slot){o.offset, same == made ? made : p->slots[same].twin, o.bytes};
  p->slots[same].twin = made;
  p->slot_count++;
  return table[at] = made;
}

static void number_slots(plan *p, uint32_t operand_count) {
  uint32_t room = 64, total = 0;
  for (uint32_t n = 0; n < p->count; n++) total += p->code[n].read_count + p->code[n].write_count;
  while (room < 2 * total) room *= 2;
  uint32_t *table = ff_alloc(room * sizeof *table);
  memset(table, 0xff, room * sizeof *table);
  p->slots = ff_alloc((total + 1) * sizeof *p->slots);
  p->slot_of = ff_alloc((operand_count + 1) * sizeof *p->slot_of);
  for (uint32_t n = 0; n < p->count; n++) {
    const native_instr *i = &p->code[n];
    for (uint32_t k = i->operands; k < i->operands + i->read_count + i->write_count; k++)
      p->slot_of[k] = p->operands[k].offset & 1 ? NATIVE_NONE : add_slot(p, table, room, p->operands[k]);
  }
  p->words = p->slot_count / 64 + 1;
  free(table);
}

/* ---- blocks ---- */

static void add_next(plan_block *block, uint32_t b) {
  for (uint32_t n = 0; n < block->next_count; n++)
    if (block->next[n] == b) return;
  block->next[block->next_count++] = b;
}

static void find_next(const plan *p, uint32_t b) {
  plan_block *block = &p->blocks[b];
  const native_instr *last = &p->code[block->end - 1];
  bool indexed = last->op == NATIVE_BRANCH_INDEXED;
  block->next = ff_alloc((indexed ? last->aux : 2) * sizeof *block->next);
  bool falls = last->op != NATIVE_BRANCH && !indexed &&
               !((last->flow == EXEC_FLOW_RET || last->flow == EXEC_FLOW_EXIT) && last->guard == NATIVE_NONE);
  if (falls && block->end < p->count) add_next(block, b + 1);
  if ((last->op == NATIVE_BRANCH || last->op == NATIVE_BRANCH_IF) && last->target < p->count)
    block->next[block->next_count++] = p->block_of[last->target];
  for (uint32_t t = 0; indexed && t < last->aux; t++) add_next(block, p->block_of[p->lists[last->target + t]]);
}

static bool find_blocks(plan *p) {
  uint8_t *leader = ff_alloc(p->count + 1);
  leader[0] = 1;
  for (uint32_t n = 0; n < p->count; n++) {
    const native_instr *i = &p->code[n];
    if (i->attention & EXEC_ATTEND_LEADER) leader[n] = 1;
    if (plan_ends_block(i)) leader[n + 1] = 1;
    if ((i->op == NATIVE_BRANCH || i->op == NATIVE_BRANCH_IF) && i->target < p->count) leader[i->target] = 1;
    for (uint32_t t = 0; i->op == NATIVE_BRANCH_INDEXED && t < i->aux; t++) leader[p->lists[i->target + t]] = 1;
  }
  for (uint32_t n = 0; n < p->count; n++) p->block_count += leader[n];
  if ((uint64_t)p->block_count * p->words > MAX_SET_WORDS) {
    p->block_count = 0;
    free(leader);
    return false;
  }
  p->blocks = ff_alloc((p->block_count + 1) * sizeof *p->blocks);
  p->block_of = ff_alloc((p->count + 1) * sizeof *p->block_of);
  uint32_t b = 0;
  for (uint32_t n = 0; n < p->count; n++) {
    if (leader[n]) p->blocks[b++].first = n;
    p->block_of[n] = b - 1;
    p->blocks[b - 1].end = n + 1;
  }
  free(leader);
  for (b = 0; b < p->block_count; b++) {
    plan_block *block = &p->blocks[b];
    find_next(p, b);
    uint64_t **sets[] = {&block->live_in, &block->live_out, &block->uniform_in, &block->uniform_out};
    for (int s = 0; s < 4; s++) *sets[s] = ff_alloc(p->words * sizeof(uint64_t));
  }
  return true;
}

/* ---- liveness ---- */

/* May anything be read where the interpreter goes on from here, or by a function that is called? */
static bool reads_all(const native_instr *i, uint32_t number) {
  if (i->op != NATIVE_EXIT) return false;
  if (i->flow == EXEC_FLOW_RET || i->flow == EXEC_FLOW_EXIT) return number != 0;
  return i->flow != EXEC_FLOW_BARRIER && i->flow != EXEC_FLOW_YIELD && i->flow != EXEC_FLOW_PULL;
}

void plan_live_before(const plan *p, const native_instr *i, uint64_t *live) {
  if (reads_all(i, p->number)) {
    memset(live, 0xff, p->words * sizeof *live);
    return;
  }
  bool part = i->guard != NATIVE_NONE;
  for (uint32_t w = 0; w < i->write_count && !part; w++) plan_drop(live, p->slot_of[i->operands + i->read_count + w]);
  for (uint32_t r = 0; r < i->read_count; r++)
    if (p->slot_of[i->operands + r] != NATIVE_NONE) plan_add(live, p->slot_of[i->operands + r]);
}

static void find_liveness(plan *p) {
  uint64_t *live = ff_alloc(p->words * sizeof *live);
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t b = p->block_count; b-- > 0;) {
      plan_block *block = &p->blocks[b];
      for (uint32_t s = 0; s < block->next_count; s++)
        for (uint32_t w = 0; w < p->words; w++) block->live_out[w] |= p->blocks[block->next[s]].live_in[w];
      memcpy(live, block->live_out, p->words * sizeof *live);
      for (uint32_t n = block->end; n-- > block->first;) plan_live_before(p, &p->code[n], live);
      if (!memcmp(live, block->live_in, p->words * sizeof *live)) continue;
      memcpy(block->live_in, live, p->words * sizeof *live);
      changed = true;
    }
  }
  free(live);
}

/* ---- uniform values ---- */

static bool operand_uniform(const plan *p, const uint64_t *uniform, uint32_t k) {
  if (p->slot_of[k] == NATIVE_NONE) return p->operands[k].constant != 0;
  return plan_has(uniform, p->slot_of[k]);
}

void plan_uniform_after(const plan *p, const native_instr *i, uint64_t *uniform) {
  bool one = is_scalar(p, i);
  uint32_t sources = i->op == NATIVE_SHUFFLE ? 3 : i->read_count; /* its mask does not choose what it gives */
  for (uint32_t r = 0; r < sources && one; r++) one = operand_uniform(p, uniform, i->operands + r);
  for (uint32_t w = 0; w < i->write_count; w++) {
    uint32_t slot = p->slot_of[i->operands + i->read_count + w];
    for (uint32_t twin = p->slots[slot].twin; twin != slot; twin = p->slots[twin].twin) plan_drop(uniform, twin);
    if (one) plan_add(uniform, slot);
    else plan_drop(uniform, slot);
  }
}

static bool spoil_at(const plan *p, uint32_t meet, const uint64_t *written, uint64_t *spoilt) {
  bool news = false;
  for (uint32_t w = 0; w < p->words; w++) {
    uint64_t add = written[w] & p->blocks[meet].live_in[w] & ~spoilt[meet * p->words + w];
    news |= add != 0;
    spoilt[meet * p->words + w] |= add;
  }
  return news;
}

/* What was written while lanes were apart is not the same where they meet. written: by block, what is written behind
 * its branch; NULL: not yet known. True: that was news. */
static bool spoil(plan *p, uint32_t b, uint64_t **written, uint64_t *spoilt) {
  const plan_hammock *hammock = p->blocks[b].hammock;
  if (hammock) return spoil_at(p, hammock->meet, hammock->written, spoilt);
  if (p->meets[b] >= p->block_count) return false;
  if (!written[b]) written[b] = plan_written_apart(p, b);
  return spoil_at(p, p->meets[b], written[b], spoilt);
}

static void flow_uniform(plan *p, uint32_t number, const uint64_t *spoilt) {
  for (uint32_t b = 0; b < p->block_count; b++) {
    memset(p->blocks[b].uniform_in, 0xff, p->words * sizeof(uint64_t));
    memset(p->blocks[b].uniform_out, 0xff, p->words * sizeof(uint64_t));
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t b = 0; b < p->block_count; b++)
      for (uint32_t s = 0; s < p->blocks[b].next_count; s++)
        for (uint32_t w = 0; w < p->words; w++)
          p->blocks[p->blocks[b].next[s]].uniform_in[w] &= p->blocks[b].uniform_out[w];
    for (uint32_t b = 0; b < p->block_count; b++) {
      plan_block *block = &p->blocks[b];
      uint64_t *now = ff_alloc(p->words * sizeof *now);
      for (uint32_t w = 0; w < p->words; w++) {
        block->uniform_in[w] &= ~spoilt[b * p->words + w];
        if (!b && number) block->uniform_in[w] = 0;
      }
      memcpy(now, block->uniform_in, p->words * sizeof *now);
      for (uint32_t n = block->first; n < block->end; n++) plan_uniform_after(p, &p->code[n], now);
      if (memcmp(now, block->uniform_out, p->words * sizeof *now)) {
        memcpy(block->uniform_out, now, p->words * sizeof *now);
        changed = true;
      }
      free(now);
    }
  }
}

bool plan_branches_together(const plan *p, uint32_t b) {
  const native_instr *last = &p->code[p->blocks[b].end - 1];
  if (last->op == NATIVE_BRANCH_INDEXED) return operand_uniform(p, p->blocks[b].uniform_out, last->operands);
  if (last->op != NATIVE_BRANCH_IF) return true;
  return operand_uniform(p, p->blocks[b].uniform_out, last->operands + last->read_count - 1);
}

static void find_uniform(plan *p, uint32_t number) {
  uint64_t *spoilt = ff_alloc((size_t)p->block_count * p->words * sizeof *spoilt);
  for (uint32_t s = 0; s < p->slot_count; s++) /* values of 128 bits are the handlers' alone */
    for (uint32_t b = 0; b < p->block_count && p->slots[s].bytes == 16; b++) plan_add(spoilt + (size_t)b * p->words, s);
  uint64_t **written = ff_alloc((p->block_count + (size_t)1) * sizeof *written);
  for (bool news = true; news;) {
    news = false;
    flow_uniform(p, number, spoilt);
    for (uint32_t b = 0; b < p->block_count; b++)
      if (!plan_branches_together(p, b)) news |= spoil(p, b, written, spoilt);
  }
  for (uint32_t b = 0; b < p->block_count; b++) free(written[b]);
  free(written);
  plan_find_steps(p, spoilt);
  free(spoilt);
}

plan *plan_make(const native_function *function, uint32_t number, const native_instr *code,
                const native_operand *operands, uint32_t operand_count, const uint32_t *lists, bool rows) {
  plan *p = ff_alloc(sizeof *p);
  p->rows = rows;
  p->code = code + function->first;
  p->operands = operands;
  p->lists = lists;
  p->count = function->count;
  p->number = number;
  number_slots(p, operand_count);
  if (!find_blocks(p)) {
    plan_free(p);
    return NULL;
  }
  find_liveness(p);
  plan_find_meetings(p);
  plan_find_hammocks(p);
  find_uniform(p, number);
  return p;
}

void plan_free(plan *p) {
  for (uint32_t b = 0; b < p->block_count; b++) {
    free(p->blocks[b].next);
    free(p->blocks[b].live_in);
    free(p->blocks[b].live_out);
    free(p->blocks[b].uniform_in);
    free(p->blocks[b].uniform_out);
    if (p->blocks[b].hammock) free(p->blocks[b].hammock->written);
    free(p->blocks[b].hammock);
  }
  free(p->blocks);
  free(p->block_of);
  free(p->steps);
  free(p->meets);
  free(p->slots);
  free(p->slot_of);
  free(p);
}
