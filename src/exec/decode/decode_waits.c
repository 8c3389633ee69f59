/* SPDX-License-Identifier: Apache-2.0 */
/* Where a warp waits for the values that its loads bring: a list of load numbers before each instruction that has to.
 *
 * In the order of the PTX that is the first instruction which touches the register. A compiler moves loads up: within
 * a basic block, arithmetic that needs a value goes behind loads that do not need that arithmetic. Instructions are
 * not moved here; instead the wait moves down to where a compiler could not have helped it:
 *   - a memory access, branch, barrier or call that needs, maybe by way of arithmetic, the value;
 *   - what may look at shared memory, or lets others look, after a store of the value there: such a store goes behind
 *     loads from global memory, as they cannot mean the same place;
 *   - the end of the block, and what writes the register again.
 * The wait at the first place stays as an early one, for machines that issue in the order of the PTX (machine value
 * `hoists_loads`). A wait moves only past loads from global memory; past anything else it would gain nothing.
 *
 * The lists have spills, too (decode_spills.c), where they are made. */
#include <stdlib.h>
#include <string.h>

#include "exec/decode/decode.h"
#include "ptx/analysis/dataflow.h"
#include "ptx/syntax/pending.h"

enum { MOVED_MAX = 64 }; /* waits of a block that are on their way down; a register for each has to be there */

typedef struct wait_place { /* a wait that moves: before `early` in the order of the PTX, before `late` at last */
  uint32_t reg, early, late;
} wait_place;

typedef struct mover {
  decoder *d;
  const bool *pending;
  uint64_t *needs; /* per register: bits of `open` that its value needs */
  touched t;
  FF_VEC(wait_place) open, done; /* of this block; of all */
  uint64_t left;                 /* bits of `open` that have no late place yet */
  uint64_t stored;               /* those that a store to shared memory needs */
  uint32_t *next_load;           /* per instruction of the block: the next load at or behind it */
} mover;

/* Arithmetic, and nothing that others see. */
static bool moves_down(const ptx_instr *instr) {
  switch (instr->opcode) {
  case PTX_OP_ADD:
  case PTX_OP_SUB:
  case PTX_OP_MUL:
  case PTX_OP_MAD:
  case PTX_OP_FMA:
  case PTX_OP_MUL24:
  case PTX_OP_MAD24:
  case PTX_OP_DIV:
  case PTX_OP_REM:
  case PTX_OP_ABS:
  case PTX_OP_NEG:
  case PTX_OP_MIN:
  case PTX_OP_MAX:
  case PTX_OP_AND:
  case PTX_OP_OR:
  case PTX_OP_XOR:
  case PTX_OP_NOT:
  case PTX_OP_CNOT:
  case PTX_OP_LOP3:
  case PTX_OP_SHL:
  case PTX_OP_SHR:
  case PTX_OP_SHF:
  case PTX_OP_PRMT:
  case PTX_OP_BFE:
  case PTX_OP_BFI:
  case PTX_OP_POPC:
  case PTX_OP_CLZ:
  case PTX_OP_BREV:
  case PTX_OP_DP2A:
  case PTX_OP_DP4A:
  case PTX_OP_SAD:
  case PTX_OP_SETP:
  case PTX_OP_SET:
  case PTX_OP_SELP:
  case PTX_OP_SLCT:
  case PTX_OP_CVT:
  case PTX_OP_MOV:
  case PTX_OP_CVTA:
  case PTX_OP_RCP:
  case PTX_OP_SQRT:
  case PTX_OP_RSQRT:
  case PTX_OP_SIN:
  case PTX_OP_COS:
  case PTX_OP_LG2:
  case PTX_OP_EX2:
  case PTX_OP_TANH:
  case PTX_OP_COPYSIGN:
  case PTX_OP_TESTP: return true;
  default: return false;
  }
}

static bool is_plain(const ptx_instr *instr) {
  return !ptx_has(instr, PTX_MOD_VOLATILE) && !ptx_has(instr, PTX_MOD_RELAXED) && !ptx_has(instr, PTX_MOD_RELEASE) &&
         !ptx_has(instr, PTX_MOD_ACQUIRE) && !ptx_has(instr, PTX_MOD_MMIO) && !ptx_has(instr, PTX_MOD_ASYNC);
}

static bool stores_to_shared(const ptx_instr *instr) {
  return instr->opcode == PTX_OP_ST && ptx_instr_space(instr) == PTX_SPACE_SHARED && is_plain(instr);
}

/* Loads and stores that cannot mean shared memory. */
static bool is_elsewhere(const ptx_instr *instr) {
  if (instr->opcode != PTX_OP_LD && instr->opcode != PTX_OP_LDU && instr->opcode != PTX_OP_ST) return false;
  ptx_space space = ptx_instr_space(instr);
  return space != PTX_SPACE_SHARED && space != PTX_SPACE_GENERIC && is_plain(instr);
}

/* The waits of these bits are before n at the latest. */
static void settle(mover *m, uint64_t bits, uint32_t n) {
  for (uint64_t b = bits & m->left; b; b &= b - 1) m->open.items[__builtin_ctzll(b)].late = n;
  m->left &= ~bits;
}

static uint64_t open_wait(mover *m, uint32_t reg, uint32_t n) {
  if (m->open.count == MOVED_MAX) return 0;
  wait_place place = {.reg = reg, .early = n, .late = n};
  FF_PUSH(&m->open, place);
  uint64_t bit = UINT64_C(1) << (m->open.count - 1);
  m->left |= bit;
  return bit;
}

static uint64_t needed(const mover *m) {
  uint64_t bits = 0;
  for (uint32_t k = 0; k < m->t.reads; k++) bits |= m->needs[m->t.regs[k]];
  return bits & m->left;
}

/* A register that is written again: its load has to be waited for before. */
static uint64_t overwritten(const mover *m) {
  uint64_t bits = 0;
  for (uint64_t left = m->left; left; left &= left - 1) {
    uint32_t i = (uint32_t)__builtin_ctzll(left);
    for (uint32_t k = 0; k < m->t.writes; k++)
      if (m->t.regs[m->t.reads + k] == m->open.items[i].reg) bits |= UINT64_C(1) << i;
  }
  return bits;
}

static void visit(mover *m, uint32_t n) {
  const ptx_instr *instr = &m->d->func->instrs[n];
  bool guarded = instr->guard != PTX_NO_REG, stores = stores_to_shared(instr), moves = stores || moves_down(instr);
  ptx_touched(instr, &m->t);
  settle(m, overwritten(m), n);
  if (!moves && !is_elsewhere(instr)) settle(m, m->stored, n);
  uint64_t bits = needed(m);
  if (!moves) {
    settle(m, bits, n);
    bits = 0;
  }
  for (uint32_t k = 0; m->pending[n] && k < m->t.reads + m->t.writes; k++) {
    uint32_t reg = m->t.regs[k];
    if (m->d->load_number[reg] == EXEC_NO_OFFSET) continue;
    bool again = false;
    for (uint64_t left = m->left; left; left &= left - 1) again |= m->open.items[__builtin_ctzll(left)].reg == reg;
    if (again) continue;
    if (moves && k < m->t.reads && m->open.count < MOVED_MAX) {
      bits |= open_wait(m, reg, n);
    } else {
      wait_place here = {.reg = reg, .early = n, .late = n};
      FF_PUSH(&m->done, here);
    }
  }
  if (stores) m->stored |= bits;
  for (uint32_t k = 0; k < m->t.writes; k++) {
    uint64_t *needs = &m->needs[m->t.regs[m->t.reads + k]];
    *needs = bits | (guarded ? *needs : 0);
  }
}

static void visit_block(mover *m, const ptx_block *block) {
  uint32_t load = block->end;
  for (uint32_t n = block->end; n-- > block->first;)
    m->next_load[n] = load = ptx_is_pending_load(&m->d->func->instrs[n]) ? n : load;
  m->left = m->stored = 0;
  m->open.count = 0;
  for (uint32_t n = block->first; n < block->end; n++) {
    if (n + 1 == block->end) settle(m, m->left, n);
    visit(m, n);
  }
  settle(m, m->left, block->end - 1); /* of the last instruction: not moved at all */
  for (uint32_t i = 0; i < m->open.count; i++) {
    wait_place *place = &m->open.items[i];
    if (m->next_load[place->early] >= place->late) place->late = place->early;
    FF_PUSH(&m->done, *place);
  }
  for (uint32_t n = block->first; n < block->end; n++) {
    ptx_touched(&m->d->func->instrs[n], &m->t);
    for (uint32_t k = 0; k < m->t.writes; k++) m->needs[m->t.regs[m->t.reads + k]] = 0;
  }
}

/* A value has come before it is stored. */
static bool waits_first(const decoder *d, const ptx_spill *spill) {
  return !spill->load && d->load_number[spill->reg] != EXEC_NO_OFFSET;
}

static void count_spills(const decoder *d, uint32_t *lengths) {
  for (uint32_t n = 0; n < d->spills.count; n++) {
    const ptx_spill *spill = &d->spills.items[n];
    lengths[spill->at] += 1 + waits_first(d, spill);
    if (spill->load) lengths[spill->needed]++;
  }
}

static void add_entry(const decoder *d, uint32_t *lists, uint32_t code, uint32_t entry) {
  uint32_t *list = lists + d->code.items[code].wait - 1;
  list[++list[0]] = entry;
}

static void add_spills(const decoder *d, uint32_t *lists, const uint32_t *first_of) {
  for (uint32_t n = 0; n < d->spills.count; n++) {
    const ptx_spill *spill = &d->spills.items[n];
    if (waits_first(d, spill)) add_entry(d, lists, first_of[spill->at], d->load_number[spill->reg]);
    add_entry(d, lists, first_of[spill->at], n | EXEC_WAIT_SPILL);
  }
  for (uint32_t n = 0; n < d->spills.count; n++) {
    const ptx_spill *spill = &d->spills.items[n];
    if (spill->load) add_entry(d, lists, first_of[spill->needed], d->load_number[spill->reg]);
  }
}

/* The lists, by instruction: a wait that moves is in two of them. */
static void make_lists(mover *m, const uint32_t *first_of) {
  decoder *d = m->d;
  uint32_t count = d->func->instr_count, total = 0;
  uint32_t *lengths = ff_alloc((count + (size_t)1) * sizeof *lengths);
  for (size_t i = 0; i < m->done.count; i++) {
    const wait_place *place = &m->done.items[i];
    lengths[place->late]++;
    if (place->early != place->late) lengths[place->early]++;
  }
  count_spills(d, lengths);
  for (uint32_t n = 0; n < count; n++) total += lengths[n] ? lengths[n] + 1 : 0;
  uint32_t *lists = ff_arena_alloc(d->arena, (total + (size_t)1) * sizeof *lists), at = 0;
  for (uint32_t n = 0; n < count; n++) {
    if (!lengths[n]) continue;
    exec_instr *i = &d->code.items[first_of[n]];
    i->wait = at + 1;
    i->attention |= EXEC_ATTEND_WAIT;
    lists[at] = 0;
    at += lengths[n] + 1;
  }
  for (size_t i = 0; i < m->done.count; i++) {
    const wait_place *place = &m->done.items[i];
    uint32_t number = d->load_number[place->reg];
    bool moves = place->early != place->late;
    add_entry(d, lists, first_of[place->late], number | (moves ? EXEC_WAIT_LATE : 0));
    if (moves) add_entry(d, lists, first_of[place->early], number | EXEC_WAIT_EARLY);
  }
  add_spills(d, lists, first_of);
  d->out->waits = lists;
  free(lengths);
}

void decode_waits(decoder *d, const uint32_t *first_of) {
  bool *pending = ptx_pending_loads(d->func, d->cfg);
  mover m = {.d = d, .pending = pending};
  m.needs = ff_alloc((d->func->reg_count + (size_t)1) * sizeof *m.needs);
  m.next_load = ff_alloc((d->func->instr_count + (size_t)1) * sizeof *m.next_load);
  for (uint32_t b = 0; b < d->cfg->block_count; b++) visit_block(&m, &d->cfg->blocks[b]);
  make_lists(&m, first_of);
  free(pending);
  free(m.needs);
  free(m.next_load);
  free(m.t.regs);
  free(m.open.items);
  free(m.done.items);
}
