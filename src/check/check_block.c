/* SPDX-License-Identifier: Apache-2.0 */
/* The bits of check_block.h. Byte n of shared memory is bit n % 8 of byte n / 8; of local memory that byte is one of
 * 32, a lane each. */
#include "check/check_block.h"

#include <string.h>

#include "ptx/analysis/cfg.h"

typedef struct carried { /* a register whose value in these lanes came out of local memory where nothing was written */
  const ptx_func *func;
  uint32_t depth, reg; /* of the call; the register */
  uint32_t lanes;
} carried;

typedef struct local_bits {
  unsigned char *bits; /* rows of 32 bytes: 8 bytes of every lane */
  uint32_t rows;
  FF_VEC(carried) carried;
} local_bits;

struct check_block {
  unsigned char *shared;
  uint32_t warp_count;
  local_bits local[]; /* per warp */
};

check_block *check_block_create(const core_block *block) {
  check_block *state = ff_alloc(sizeof *state + block->warp_count * sizeof *state->local);
  state->warp_count = block->warp_count;
  state->shared = ff_alloc(block->shared_bytes / 8 + 8);
  return state;
}

void check_block_free(check_block *state) {
  if (!state) return;
  for (uint32_t n = 0; n < state->warp_count; n++) {
    free(state->local[n].bits);
    free(state->local[n].carried.items);
  }
  free(state->shared);
  free(state);
}

/* Functions without variables of their own take some of the stack, too. */
static bool knows(const check_block *state, const core_warp *w, ptx_space space, uint64_t offset) {
  return space == PTX_SPACE_SHARED || offset / 8 < state->local[w->index].rows;
}

/* The bits of bytes offset & ~7 and the seven behind it. */
static unsigned char *bits_of(const check_block *state, const core_warp *w, ptx_space space, uint32_t lane,
                              uint64_t offset) {
  if (space == PTX_SPACE_SHARED) return &state->shared[offset / 8];
  return &state->local[w->index].bits[offset / 8 * EXEC_LANES + lane];
}

/* Those of the bytes offset ... end - 1 that have their bits in one byte with offset's. */
static uint32_t mask_of(uint64_t offset, uint64_t end) {
  uint64_t last = (offset | 7) + 1 < end ? (offset | 7) + 1 : end;
  return ((1u << (last - offset)) - 1) << (offset & 7);
}

static void change(check_block *state, const core_warp *w, ptx_space space, uint32_t lane, uint64_t offset,
                   uint32_t bytes, bool set) {
  for (uint64_t at = offset, end = offset + bytes; at < end; at = (at | 7) + 1) {
    if (!knows(state, w, space, at)) continue;
    unsigned char *bits = bits_of(state, w, space, lane, at), mask = (unsigned char)mask_of(at, end);
    *bits = set ? *bits | mask : (unsigned char)(*bits & ~mask);
  }
}

void check_block_set(check_block *state, const core_warp *w, ptx_space space, uint32_t lane, uint64_t offset,
                     uint32_t bytes) {
  change(state, w, space, lane, offset, bytes, true);
}

bool check_block_any(const check_block *state, const core_warp *w, ptx_space space, uint32_t lane, uint64_t offset,
                     uint32_t bytes) {
  for (uint64_t at = offset, end = offset + bytes; at < end; at = (at | 7) + 1)
    if (!knows(state, w, space, at) || *bits_of(state, w, space, lane, at) & mask_of(at, end)) return true;
  return false;
}

/* ---- frames ---- */

static void make_room(local_bits *local, uint32_t stack) {
  uint32_t rows = (stack + 7) / 8;
  if (rows <= local->rows) return;
  local->bits = ff_realloc(local->bits, (size_t)rows * EXEC_LANES);
  memset(local->bits + (size_t)local->rows * EXEC_LANES, 0, (size_t)(rows - local->rows) * EXEC_LANES);
  local->rows = rows;
}

void check_block_enter(check_block *state, const core_warp *w, const exec_frame *frame) {
  local_bits *local = &state->local[w->index];
  make_room(local, frame->stack);
  /* both are multiples of 16 */
  for (uint32_t row = frame->local / 8; row < (frame->local + frame->function->local_bytes) / 8; row++)
    for (uint32_t m = frame->lanes; m; m &= m - 1) local->bits[row * EXEC_LANES + (uint32_t)__builtin_ctz(m)] = 0;
}

/* ---- values that are only copied ---- */

static const ptx_operand *element_of(const ptx_instr *instr, uint32_t operand, uint32_t element) {
  const ptx_operand *data = &instr->operands[operand];
  return data->kind == PTX_OPERAND_VECTOR ? &data->elements[element] : data;
}

/* A store to local memory, or to a structure among the parameters and results of a call; or a choice, perhaps of the
 * other value: compilers load before they know whether they need it. */
static bool is_copy(const ptx_instr *instr, uint32_t reg) {
  ptx_space space = ptx_instr_space(instr);
  if (instr->opcode == PTX_OP_SELP)
    return instr->operand_count == 4 && instr->operands[3].reg != reg && instr->guard != reg;
  if (instr->opcode != PTX_OP_ST || instr->operand_count < 2 || instr->guard == reg || instr->operands[0].reg == reg)
    return false;
  const ptx_var *var = instr->operands[0].symbol ? instr->operands[0].symbol->var : NULL;
  return space == PTX_SPACE_LOCAL || (space == PTX_SPACE_PARAM && var && var->size > ptx_type_bits(var->type) / 8);
}

static bool has(const uint32_t *regs, uint32_t count, uint32_t reg) {
  while (count && regs[count - 1] != reg) count--;
  return count > 0;
}

enum { ROOM = 256 }; /* registers of one instruction; a call with more counts as one that uses them all */

/* Does the function nothing with the register but copy it? *written: by how many instructions. */
static bool only_copied(const ptx_func *func, uint32_t reg, uint32_t *written) {
  uint32_t regs[ROOM];
  *written = 0;
  for (uint32_t n = 0; n < func->instr_count; n++) {
    const ptx_instr *instr = &func->instrs[n];
    uint32_t count = ptx_instr_reads(instr, regs, ROOM);
    if (count > ROOM || (has(regs, count, reg) && !is_copy(instr, reg))) return false;
    count = ptx_instr_writes(instr, regs, ROOM);
    *written += count > ROOM || has(regs, count, reg);
  }
  return true;
}

static carried *find_carried(local_bits *local, const core_warp *w, uint32_t reg) {
  for (size_t n = 0; n < local->carried.count; n++) {
    carried *c = &local->carried.items[n];
    if (c->func == w->function->source && c->depth == w->frame->depth && c->reg == reg) return c;
  }
  return NULL;
}

bool check_block_carry(check_block *state, const exec_watched *a, uint32_t lane, uint32_t element) {
  const ptx_func *func = a->warp->function->source;
  const ptx_instr *load = &func->instrs[a->instr->index];
  if (load->opcode != PTX_OP_LD) return false;
  const ptx_operand *to = element_of(load, 0, element);
  if (to->kind != PTX_OPERAND_REG) return to->kind == PTX_OPERAND_NONE; /* the sink */
  local_bits *local = &state->local[a->warp->index];
  carried *known = find_carried(local, a->warp, to->reg);
  if (!known) {
    uint32_t written;
    if (!only_copied(func, to->reg, &written)) return false;
    if (written != 1) return true; /* it is not followed: what it is stored to counts as written */
    FF_PUSH(&local->carried, ((carried){func, a->warp->frame->depth, to->reg, 0}));
    known = &local->carried.items[local->carried.count - 1];
  }
  known->lanes |= 1u << lane;
  return true;
}

void check_block_loaded(check_block *state, const exec_watched *a, uint32_t lane) {
  local_bits *local = &state->local[a->warp->index];
  const ptx_instr *load = &a->warp->function->source->instrs[a->instr->index];
  if (!local->carried.count || load->opcode != PTX_OP_LD) return;
  for (uint32_t e = 0; e < a->access->elements; e++) {
    const ptx_operand *to = element_of(load, 0, e);
    carried *known = to->kind == PTX_OPERAND_REG ? find_carried(local, a->warp, to->reg) : NULL;
    if (known) known->lanes &= ~(1u << lane);
  }
}

void check_block_stored(check_block *state, const exec_watched *a, uint32_t lane) {
  local_bits *local = &state->local[a->warp->index];
  const exec_reach *at = &a->at[lane];
  uint32_t bytes = a->access->bytes;
  check_block_set(state, a->warp, at->space, lane, at->address, a->bytes);
  const ptx_instr *store = &a->warp->function->source->instrs[a->instr->index];
  if (at->space != PTX_SPACE_LOCAL || !local->carried.count || store->opcode != PTX_OP_ST) return;
  for (uint32_t e = 0; e < a->access->elements; e++) {
    const ptx_operand *from = element_of(store, 1, e);
    const carried *known = from->kind == PTX_OPERAND_REG ? find_carried(local, a->warp, from->reg) : NULL;
    if (known && known->lanes >> lane & 1)
      change(state, a->warp, at->space, lane, at->address + e * bytes, bytes, false);
  }
}
