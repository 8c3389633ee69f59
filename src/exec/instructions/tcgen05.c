/* SPDX-License-Identifier: Apache-2.0 */
/* tcgen05.ld, .st, .shift and .commit (PTX ISA, "Tensor Memory and Register Load/Store Instructions", "Tensor Memory
 * Data Movement Instructions", "TensorCore 5th Generation Async Synchronization Operations").
 *
 * All of tcgen05 is asynchronous; here an instruction is over when it is issued: a program may not look at what it
 * does before it has waited, nor change what it reads. So the waits and fences do nothing, and commit arrives at
 * once.
 *
 * Where register r of thread t of a warp lies, for the shapes ("Matrix fragments for shape ..."):
 *
 *              lane                     column
 *   32x32b     t                        r
 *   16x64b     t / 4 + 8 * (t % 2)      t / 2 % 2 + 2 * r
 *   16x128b    t / 4 + 8 * (r % 2)      t % 4 + 4 * (r / 2)
 *   16x256b    t / 4 + 8 * (r / 2 % 2)  2 * (t % 4) + r % 2 + 8 * (r / 4)
 *   16x32bx2   t % 16                   r, for the upper sixteen threads in the second access */
#include "exec/instructions/tcgen05.h"

#include <string.h>

#include "exec/instructions/redux.h"
#include "exec/launch/fault.h"

/* ---- ld, st ---- */

static uint32_t lane_at(uint32_t shape, uint32_t t, uint32_t r) {
  switch ((tcgen05_shape)shape) {
  case TCGEN05_32X32B: return t;
  case TCGEN05_16X64B: return t / 4 + 8 * (t % 2);
  case TCGEN05_16X128B: return t / 4 + 8 * (r % 2);
  case TCGEN05_16X256B: return t / 4 + 8 * (r / 2 % 2);
  case TCGEN05_16X32BX2: return t % 16;
  }
  return 0;
}

static uint32_t column_at(uint32_t shape, uint32_t t, uint32_t r) {
  switch ((tcgen05_shape)shape) {
  case TCGEN05_16X64B: return t / 2 % 2 + 2 * r;
  case TCGEN05_16X128B: return t % 4 + 4 * (r / 2);
  case TCGEN05_16X256B: return 2 * (t % 4) + r % 2 + 8 * (r / 4);
  default: return r;
  }
}

/* Columns that one access has. */
static uint32_t columns_of(const exec_tensor_move *m) {
  uint32_t words = m->shape == TCGEN05_16X64B || m->shape == TCGEN05_16X128B || m->shape == TCGEN05_16X256B
                       ? m->registers * 2u
                       : m->registers;
  return m->halves ? 2 * words : words;
}

static void move_word(uint32_t *cell, uint32_t *word, bool stores, bool halves) {
  if (stores && halves) {
    cell[0] = *word & 0xffff;
    cell[1] = *word >> 16;
  } else if (stores) {
    cell[0] = *word;
  } else {
    *word = halves ? (cell[0] & 0xffff) | cell[1] << 16 : cell[0];
  }
}

/* The address that all threads of the warp name, whose lanes are this warp's. */
static uint32_t common_address(core_warp *w, const exec_instr *i, uint32_t lanes) {
  const exec_tensor_move *m = i->side;
  if (w->active != EXEC_ALL_LANES)
    core_fault(w, i, (uint32_t)__builtin_ctz(w->active), EXEC_FAULT_ILLEGAL_INSTRUCTION, 0,
               "%u threads of the warp execute this: all 32 must, and none may have exited",
               core_lane_count(w->active));
  uint32_t address = (uint32_t)core_bulk_address(w, &m->at, 0);
  for (uint32_t l = 1; l < EXEC_LANES; l++)
    if ((uint32_t)core_bulk_address(w, &m->at, l) != address)
      core_fault(w, i, l, EXEC_FAULT_ILLEGAL_INSTRUCTION, address,
                 "thread 0 of the warp names 0x%x of tensor memory, thread %u 0x%x: all must name the same", address, l,
                 (uint32_t)core_bulk_address(w, &m->at, l));
  uint32_t first = w->index % 4 * TENSOR_WARP_LANES, lane = address >> 16;
  if (lane < first || lane + lanes > first + TENSOR_WARP_LANES)
    core_fault(w, i, 0, EXEC_FAULT_ILLEGAL_ADDRESS, address,
               "warp %u of the block touches lanes %u to %u of tensor memory; it can reach lanes %u to %u", w->index,
               lane, lane + lanes - 1, first, first + TENSOR_WARP_LANES - 1);
  return address;
}

/* .red: of what each thread has loaded, which is of one lane of tensor memory. The manual says what is reduced, but of
 * .abs and of NaNs nothing: they are as in redux.sync. */
static void reduce(exec_warp *x, const exec_tensor_move *m) {
  uint32_t keep = m->absolute ? 0x7fffffff : UINT32_MAX, result[EXEC_LANES];
  bool real = m->reduces >= EXEC_REDUX_FMIN;
  for (uint32_t r = 0; r < m->registers; r++) {
    const uint32_t *word = exec_u32(x, m->slot[r]);
    for (uint32_t t = 0; t < EXEC_LANES; t++) {
      uint32_t value = word[t] & keep, before = r ? result[t] : value;
      result[t] = real ? redux_float(m->reduces, m->nan, before, value)
                       : redux_integer(m->reduces, m->is_signed, before, value);
    }
  }
  memcpy(exec_u32(x, m->reduced), result, sizeof result);
}

void core_tensor_move(exec_warp *x, const exec_instr *i) {
  core_warp *w = (core_warp *)x;
  const exec_tensor_move *m = i->side;
  uint32_t lanes = m->shape == TCGEN05_32X32B ? 32 : 16, wide = m->halves ? 2 : 1;
  uint32_t address = common_address(w, i, lanes);
  tensor_memory *memory = core_tensor_memory(w, i, 0, 0);
  const char *what = m->stores ? "a store" : "a load";
  tensor_place at = core_tensor_place(w, i, 0, memory, address, lanes, columns_of(m), what), second = at;
  if (m->shape == TCGEN05_16X32BX2)
    second = core_tensor_place(w, i, 0, memory, address + m->split, lanes, columns_of(m), what);
  for (uint32_t r = 0; r < m->registers; r++) {
    uint32_t *word = exec_u32(x, m->slot[r]);
    for (uint32_t t = 0; t < EXEC_LANES; t++) {
      const tensor_place *from = m->shape == TCGEN05_16X32BX2 && t >= 16 ? &second : &at;
      uint32_t *row = memory->cells[from->lane + lane_at(m->shape, t, r)];
      move_word(row + from->column + wide * column_at(m->shape, t, r), &word[t], m->stores, m->halves);
    }
  }
  if (m->reduces) reduce(x, m);
}

/* ---- shift ---- */

/* The upper row of 32 gets the one below it, and so on; the last keeps what it has. Rows have 32 bytes. */
static void shift(core_warp *w, const exec_instr *i, uint32_t lane, core_block *block) {
  const exec_tensor_shift *s = i->side;
  uint32_t address = (uint32_t)core_bulk_address(w, &s->at, lane);
  tensor_memory *memory = core_tensor_memory_of(w, i, lane, block, s->group);
  tensor_place at = core_tensor_place(w, i, lane, memory, address, TENSOR_WARP_LANES, 8, "a shift");
  if (at.lane % TENSOR_WARP_LANES)
    core_fault(w, i, lane, EXEC_FAULT_MISALIGNED, address,
               "a shift begins in lane %u of tensor memory: it must be a multiple of 32", at.lane);
  for (uint32_t row = at.lane; row + 1 < at.lane + TENSOR_WARP_LANES; row++)
    memcpy(&memory->cells[row][at.column], &memory->cells[row + 1][at.column], 32);
}

void core_tensor_shift(exec_warp *x, const exec_instr *i) {
  const exec_tensor_shift *s = i->side;
  core_tensor_each((core_warp *)x, i, s->group, shift);
}

/* ---- commit ---- */

static void arrive(core_warp *w, const exec_instr *i, uint32_t lane, uint64_t address) {
  const exec_tensor_commit *c = i->side;
  exec_instr at = *i;
  at.side = &c->access;
  core_mbarrier_arrive(w, &at, lane, address);
}

/* A generic address outside the window of shared memory is undefined (PTX ISA, "tcgen05.commit"). Programs that give an
 * offset in 64 bits (ThunderKittens) run on GPUs, whose instruction takes 32; no mbarrier can be elsewhere. */
static uint64_t barrier_address(const core_warp *w, const exec_tensor_commit *c, uint32_t lane) {
  uint64_t address = core_bulk_address(w, &c->barrier, lane);
  bool offset = c->barrier.space == PTX_SPACE_GENERIC && address < EXEC_CLUSTER_BYTES;
  return offset ? address + EXEC_SHARED_WINDOW : address;
}

void core_tensor_commit(exec_warp *x, const exec_instr *i) {
  core_warp *w = (core_warp *)x;
  const exec_tensor_commit *c = i->side;
  for (uint32_t m = w->active; m; m &= m - 1) {
    uint32_t lane = (uint32_t)__builtin_ctz(m);
    uint64_t address = barrier_address(w, c, lane);
    core_tensor_memory(w, i, lane, c->group);
    if (c->ranks == EXEC_NO_OFFSET) {
      arrive(w, i, lane, address);
      continue;
    }
    for (uint32_t ranks = exec_u32(x, c->ranks)[lane] & 0xffff; ranks; ranks &= ranks - 1)
      arrive(w, i, lane, core_shared_map(w, (uint32_t)address, (uint32_t)__builtin_ctz(ranks)));
  }
}
