/* SPDX-License-Identifier: Apache-2.0 */
/* Loops that do nothing but wait for the clock, such as `while (clock64() - start < cycles) ;`: their rounds are taken
 * many at once.
 *
 * Such a loop is one basic block that branches to itself, computes in registers, and reads no register that an earlier
 * round has written: what a round computes depends on the clock alone. So a round may be tried at any later time, and
 * undone, as the next one writes all its registers again. It compares values that grow with the clock, so its condition
 * changes only once. The first round that some lane leaves is found by doubling and halving; the rounds before it are
 * only counted.
 *
 * Registers, the counts of instructions and the access stream become those of all rounds executed one by one
 * (test_spin.c compares them), unless a difference of 32 bits wraps, or a choice turns, so that the loop could be left
 * for less than SPIN_INSTRUCTIONS cycles (then it may be left at a later chance); only turns end in other places. */
#include "exec/launch/spin.h"

#include <stdlib.h>

#include "base/memory.h"

/* at most, at a time: other warps want to run, and a launch may be stopped */
#define SPIN_INSTRUCTIONS (UINT64_C(1) << 26)

typedef struct exec_spin { /* side data of the clock's first read */
  uint32_t head, branch;   /* decoded instructions from the loop's first to the read, from there to the branch */
  uint32_t first, last;    /* PTX instructions of the loop */
} exec_spin;

/* ---- finding them ---- */

static bool is_clock(uint32_t sreg) {
  return sreg == PTX_SREG_CLOCK || sreg == PTX_SREG_CLOCK_HI || sreg == PTX_SREG_CLOCK64 ||
         (sreg >= PTX_SREG_GLOBALTIMER && sreg <= PTX_SREG_GLOBALTIMER_HI);
}

static bool is_attended(const exec_instr *i) { return i->attention & (EXEC_ATTEND_WAIT | EXEC_ATTEND_MARK); }

/* Whatever touches memory has side data. */
static bool only_computes(const exec_instr *i) { return i->flow == EXEC_FLOW_NONE && !i->side && !is_attended(i); }

static bool uses_carry(const ptx_instr *instr) {
  return ptx_has(instr, PTX_MOD_CC) || instr->opcode == PTX_OP_ADDC || instr->opcode == PTX_OP_SUBC ||
         instr->opcode == PTX_OP_MADC;
}

/* Does the result only grow, or only fall, with an operand that does? Low halves of products of 32 bits wrap too
 * soon. */
static bool keeps_order(const ptx_instr *instr) {
  ptx_type type = instr->type_count ? instr->types[0] : PTX_TYPE_NONE;
  if (type && ptx_type_bits(type) < 32) return false;
  switch (instr->opcode) {
  case PTX_OP_MOV: return instr->operands[0].kind == PTX_OPERAND_REG && instr->operands[1].kind != PTX_OPERAND_VECTOR;
  case PTX_OP_ADD:
  case PTX_OP_SUB:
  case PTX_OP_DIV:
  case PTX_OP_SHR:
  case PTX_OP_CVT:
  case PTX_OP_BRA: return true;
  case PTX_OP_SELP: return true; /* now > start ? now - start : now + (0xffffffff - start) */
  case PTX_OP_MUL:
  case PTX_OP_MAD:
  case PTX_OP_FMA:
    return ptx_type_bits(type) == 64 || type == PTX_F32 || ptx_has(instr, PTX_MOD_WIDE) || ptx_has(instr, PTX_MOD_HI);
  case PTX_OP_SETP:
    return instr->operand_count == 3 && !ptx_has(instr, PTX_MOD_EQ) && !ptx_has(instr, PTX_MOD_NE) &&
           !ptx_has(instr, PTX_MOD_EQU) && !ptx_has(instr, PTX_MOD_NEU);
  default: return false;
  }
}

enum { UNTOUCHED, WRITTEN, NEW, OF_CLOCK }; /* a register: by the loop; in this round by now, and from the clock */

/* What the round does with its n-th instruction: is it the same in every round but for the clock? */
static bool is_alike(const ptx_instr *instr, uint8_t *state) {
  uint32_t regs[64], count = ptx_instr_reads(instr, regs, 64);
  bool of_clock = instr->operand_count > 1 && instr->operands[1].kind == PTX_OPERAND_SREG;
  if (count > 64) return false;
  for (uint32_t r = 0; r < count; r++) {
    if (state[regs[r]] == WRITTEN) return false;
    of_clock |= state[regs[r]] == OF_CLOCK;
  }
  if (of_clock && !keeps_order(instr)) return false;
  count = ptx_instr_writes(instr, regs, 64);
  for (uint32_t r = 0; r < count; r++) state[regs[r]] = of_clock ? OF_CLOCK : NEW;
  return true;
}

/* Does every round write what it reads, unless the loop does not write it at all? And is what it makes of the clock in
 * its order? */
static bool rounds_are_alike(const ptx_func *func, uint32_t first, uint32_t last) {
  uint8_t *state = ff_alloc(func->reg_count + 1);
  uint32_t regs[64];
  bool alike = true;
  for (uint32_t n = first; n <= last; n++) {
    uint32_t count = ptx_instr_writes(&func->instrs[n], regs, 64);
    alike = alike && count <= 64 && !uses_carry(&func->instrs[n]);
    for (uint32_t r = 0; alike && r < count; r++) state[regs[r]] = WRITTEN;
  }
  for (uint32_t n = first; alike && n <= last; n++) alike = is_alike(&func->instrs[n], state);
  free(state);
  return alike;
}

/* The first read of the clock in code[from, to); `to` if there is none, or not all of it only computes. */
static size_t clock_read(const decoder *d, size_t from, size_t to) {
  exec_handler reads = d->isa->moves[EXEC_MOVE_SREG];
  size_t found = to;
  for (size_t n = from; n < to; n++) {
    const exec_instr *i = &d->code.items[n];
    if (!only_computes(i)) return to;
    if (found == to && i->run[0] == reads && is_clock(i->aux)) found = n;
  }
  return found;
}

void exec_spin_find(decoder *d) {
  for (size_t n = 0; n < d->code.count; n++) {
    const exec_instr *branch = &d->code.items[n];
    if (branch->flow != EXEC_FLOW_BRA_IF || branch->target >= n || is_attended(branch)) continue;
    uint32_t first = d->code.items[branch->target].index, last = branch->index;
    const ptx_block *block = &d->cfg->blocks[d->cfg->block_of[last]];
    size_t read = block->first == first && block->end == last + 1 ? clock_read(d, branch->target, n) : n;
    if (read == n || !rounds_are_alike(d->func, first, last)) continue;
    exec_spin *spin = ff_arena_alloc(d->arena, sizeof *spin);
    *spin = (exec_spin){
        .head = (uint32_t)(read - branch->target), .branch = (uint32_t)(n - read), .first = first, .last = last};
    d->code.items[read].side = spin;
    /* compiled code leaves it to the interpreter, as it does not know it */
    d->code.items[read].run[0] = d->code.items[read].run[1] = core_spin;
  }
}

/* ---- running them ---- */

static uint64_t instructions(const exec_spin *spin) { return spin->last - spin->first + 1; } /* of a round */

static void compute(core_warp *w, const exec_instr *from, const exec_instr *to) {
  uint32_t form = w->x.mask != EXEC_ALL_LANES;
  for (; from < to; from++) from->run[form](&w->x, from);
}

/* A round from its head, as registers share slots; with the clock of the one that comes `rounds` later. Do all lanes go
 * on after it? */
static bool goes_on(core_warp *w, const exec_instr *i, uint64_t rounds) {
  const exec_spin *spin = i->side;
  const exec_instr *branch = i + spin->branch;
  uint64_t executed = w->executed;
  w->executed += rounds * instructions(spin);
  compute(w, i - spin->head, i);
  core_read_sreg(w, i);
  compute(w, i + 1, branch);
  w->executed = executed;
  uint32_t predicate = *exec_pred(&w->x, branch->guard);
  return !(w->active & (branch->guard_negated ? predicate : ~predicate));
}

/* So many rounds have been executed, and the next one has come to i. */
static void count_rounds(core_warp *w, const exec_instr *i, uint64_t rounds) {
  const exec_spin *spin = i->side;
  if (!w->trace) {
    w->executed += rounds * instructions(spin);
    w->thread_executed += rounds * instructions(spin) * w->active_count;
    w->budget -= (int32_t)(rounds * instructions(spin));
    return;
  }
  if (!rounds) return;
  core_count(w, spin->last + 1);
  w->segment = spin->first;
  core_trace_rounds(w, spin->first, spin->last, rounds - 1);
  core_count(w, i->index);
}

void core_spin(exec_warp *x, const exec_instr *i) {
  core_warp *w = (core_warp *)x;
  const exec_spin *spin = i->side;
  uint64_t low = 0, high = 1, most = SPIN_INSTRUCTIONS / instructions(spin);
  if (!w->starting && goes_on(w, i, 0)) {
    while (high <= most && goes_on(w, i, high)) {
      low = high;
      high *= 2;
    }
    while (high <= most && high - low > 1) {
      uint64_t middle = (low + high) / 2;
      if (goes_on(w, i, middle)) low = middle;
      else high = middle;
    }
    count_rounds(w, i, high <= most ? high : low);
  }
  compute(w, i - spin->head, i);
  core_read_sreg(w, i);
}
