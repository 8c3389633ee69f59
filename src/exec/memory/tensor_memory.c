/* SPDX-License-Identifier: Apache-2.0 */
/* Tensor memory: who has which columns, and what may be touched (PTX ISA, "Tensor Memory Allocation and Management
 * Instructions").
 *
 * Who ends a wait for columns: another warp of the block, by tcgen05.dealloc (core_barrier_retry), and with
 * .cta_group::2 a warp of the other block of the pair, by allocating as well. If all of them wait as well, the block
 * cannot go on, and core_fault_deadlock says so. */
#include "exec/memory/tensor_memory.h"

#include <string.h>

#include "exec/instructions/tcgen05.h"
#include "exec/launch/checker.h"
#include "exec/launch/fault.h"
#include "ptx/ir.h"

/* NULL: there is none. */
static core_block *peer_of(const core_block *block) {
  uint32_t rank = block->rank ^ 1;
  return rank < block->cluster->count ? block->cluster->blocks[rank] : NULL;
}

core_block *core_tensor_peer(core_warp *w, const exec_instr *i, uint32_t lane) {
  core_block *peer = peer_of(w->block);
  if (!peer)
    core_fault(w, i, lane, EXEC_FAULT_ILLEGAL_INSTRUCTION, 0,
               ".cta_group::2 in block %u of a cluster of %u: there is no other block of its pair", w->block->rank,
               w->block->cluster->count);
  if (!peer->live_threads)
    core_fault(w, i, lane, EXEC_FAULT_ILLEGAL_INSTRUCTION, 0,
               ".cta_group::2, and all threads of the other block of the pair have exited");
  return peer;
}

tensor_memory *core_tensor_memory(core_warp *w, const exec_instr *i, uint32_t lane, uint32_t group) {
  return core_tensor_memory_of(w, i, lane, w->block, group);
}

tensor_memory *core_tensor_memory_of(core_warp *w, const exec_instr *i, uint32_t lane, core_block *block,
                                     uint32_t group) {
  if (!block->tensor) block->tensor = ff_alloc(sizeof *block->tensor);
  tensor_memory *memory = block->tensor;
  if (!memory->used) {
    memset(memory, 0, sizeof *memory);
    memory->used = true;
    memory->most = TENSOR_COLUMNS;
  }
  if (group && memory->group && group != memory->group)
    core_fault(w, i, lane, EXEC_FAULT_ILLEGAL_INSTRUCTION, 0,
               ".cta_group::%u, but the block has executed tcgen05 with .cta_group::%u: a kernel must use one of them",
               group, memory->group);
  if (group) memory->group = (uint8_t)group;
  return memory;
}

void core_tensor_each(core_warp *w, const exec_instr *i, uint32_t group, core_tensor_step *step) {
  for (uint32_t lanes = w->active; lanes; lanes &= lanes - 1) {
    uint32_t lane = (uint32_t)__builtin_ctz(lanes);
    step(w, i, lane, w->block);
    if (group == 2) step(w, i, lane, core_tensor_peer(w, i, lane));
  }
}

/* A bit per unit that has one of the columns. */
static uint32_t units_of(uint32_t column, uint32_t columns) {
  uint32_t first = column / TENSOR_UNIT, last = (column + columns - 1) / TENSOR_UNIT;
  return (2u << last) - (1u << first);
}

tensor_place core_tensor_place(core_warp *w, const exec_instr *i, uint32_t lane, const tensor_memory *memory,
                               uint32_t address, uint32_t lanes, uint32_t columns, const char *what) {
  tensor_place at = {.lane = address >> 16, .column = address & 0xffff};
  if (at.lane + lanes > TENSOR_LANES || at.column + columns > TENSOR_COLUMNS)
    core_fault(w, i, lane, EXEC_FAULT_ILLEGAL_ADDRESS, address,
               "%s at 0x%x of tensor memory goes over its end: %u lanes from %u on, %u columns from %u on; there are "
               "128 lanes and 512 columns",
               what, address, lanes, at.lane, columns, at.column);
  uint32_t missing = units_of(at.column, columns) & ~(uint32_t)memory->taken;
  if (missing) {
    uint32_t first = (uint32_t)__builtin_ctz(missing) * TENSOR_UNIT;
    core_fault(w, i, lane, EXEC_FAULT_ILLEGAL_ADDRESS, address,
               "%s at 0x%x of tensor memory touches columns %u to %u; columns %u to %u are not allocated", what,
               address, at.column, at.column + columns - 1, first, first + TENSOR_UNIT - 1);
  }
  return at;
}

/* ---- allocations ---- */

/* These are executed by whole warps, and all threads say the same. */
static void check_warp(core_warp *w, const exec_instr *i, uint32_t slot) {
  const exec_tensor_allocation *a = i->side;
  uint32_t first = (uint32_t)__builtin_ctz(w->active);
  if (w->active != EXEC_ALL_LANES)
    core_fault(w, i, first, EXEC_FAULT_ILLEGAL_INSTRUCTION, 0,
               "%u threads of the warp execute this: all 32 must, and none may have exited",
               core_lane_count(w->active));
  if (slot == EXEC_NO_OFFSET) return;
  const uint32_t *value = exec_u32(&w->x, slot);
  for (uint32_t l = 1; l < EXEC_LANES; l++)
    if (value[l] != value[0])
      core_fault(w, i, l, EXEC_FAULT_ILLEGAL_INSTRUCTION, 0,
                 "thread 0 of the warp names 0x%x, thread %u 0x%x: all must "
                 "name the same %s",
                 value[0], l, value[l], slot == a->columns ? "number of columns" : "address");
}

static uint32_t columns_of(core_warp *w, const exec_instr *i) {
  const exec_tensor_allocation *a = i->side;
  check_warp(w, i, a->columns);
  uint32_t columns = exec_u32(&w->x, a->columns)[0];
  if (columns < TENSOR_UNIT || columns > TENSOR_COLUMNS || (columns & (columns - 1)))
    core_fault(w, i, 0, EXEC_FAULT_ILLEGAL_INSTRUCTION, 0,
               "%u columns of tensor memory: 32, 64, 128, 256 or 512 can be allocated", columns);
  return columns;
}

/* The first unit of `units` that are not taken and begin at a multiple of their number; TENSOR_UNITS: there are
 * none. */
static uint32_t find_free(uint32_t taken, uint32_t units) {
  uint32_t wanted = (1u << units) - 1, at = 0;
  while (at < TENSOR_UNITS && (taken & wanted << at)) at += units;
  return at;
}

static void take(tensor_memory *memory, uint32_t first, uint32_t units, uint32_t line) {
  memory->most = units * TENSOR_UNIT;
  memory->taken |= (uint16_t)(((1u << units) - 1) << first);
  memory->units[first] = (uint8_t)units;
  memory->line[first] = line;
}

static uint32_t line_of(const core_warp *w, const exec_instr *i) {
  const ptx_func *func = w->function->source;
  return i->index < func->instr_count ? func->instrs[i->index].place.line : 0;
}

static void wait_for_columns(core_warp *w, const exec_instr *i) {
  core_block *block = w->block;
  core_barrier *waiting = &block->barriers[EXEC_TENSOR_BARRIER];
  core_count(w, i->index);
  waiting->arrived += w->active_count;
  block->barriers_waiting |= 1u << EXEC_TENSOR_BARRIER;
  core_park(w, i, SPLIT_BARRIER, EXEC_TENSOR_BARRIER, 0);
}

static void give_address(core_warp *w, const exec_instr *i, uint32_t column) {
  const exec_tensor_allocation *a = i->side;
  exec_instr at = *i;
  at.side = &a->access;
  uint64_t to = core_bulk_address(w, &a->to, 0);
  memcpy(core_bytes_at(w, &at, 0, to, 4, 4), &column, 4);
  exec_checker *checker = w->launch->checker;
  if (checker) checker->wrote(checker, w, 0, PTX_SPACE_SHARED, to & (EXEC_WINDOW_BYTES - 1), 4);
}

/* .cta_group::2: the second of two warps, one in each block of the pair, allocates the same columns for both. Until
 * then, and while there are none, TENSOR_UNITS: who ends this wait is the other block's warp, or who frees columns: of
 * either block, as a warp of that one waits as well, and tries again. */
static uint32_t allocate_both(core_warp *w, const exec_instr *i, tensor_memory *memory, uint32_t columns) {
  uint32_t units = columns / TENSOR_UNIT, granted = memory->granted;
  memory->granted = 0;
  if (granted) return (granted - 1) / TENSOR_UNIT;
  core_block *peer = core_tensor_peer(w, i, 0);
  tensor_memory *other = core_tensor_memory_of(w, i, 0, peer, 2);
  memory->asked = columns;
  if (!other->asked) return TENSOR_UNITS;
  if (other->asked != columns)
    core_fault(w, i, 0, EXEC_FAULT_ILLEGAL_INSTRUCTION, 0,
               "%u columns of tensor memory, but the other block of the pair allocates %u", columns, other->asked);
  uint32_t first = find_free((uint32_t)memory->taken | other->taken, units);
  if (first >= TENSOR_UNITS) return TENSOR_UNITS;
  take(memory, first, units, line_of(w, i));
  take(other, first, units, line_of(w, i));
  memory->asked = other->asked = 0;
  other->granted = first * TENSOR_UNIT + 1;
  core_barrier_retry(peer, EXEC_TENSOR_BARRIER);
  return first;
}

bool core_tensor_alloc(core_warp *w, const exec_instr *i) {
  const exec_tensor_allocation *a = i->side;
  uint32_t columns = columns_of(w, i), units = columns / TENSOR_UNIT;
  tensor_memory *memory = core_tensor_memory(w, i, 0, a->group);
  if (memory->relinquished)
    core_fault(w, i, 0, EXEC_FAULT_ILLEGAL_INSTRUCTION, 0,
               "the block has given up the right to allocate tensor memory (tcgen05.relinquish_alloc_permit)");
  if (columns > memory->most)
    core_fault(w, i, 0, EXEC_FAULT_ILLEGAL_INSTRUCTION, 0,
               "an allocation of %u columns after one of %u: a block's allocations may not become larger", columns,
               memory->most);
  uint32_t first = a->group == 2 ? allocate_both(w, i, memory, columns) : find_free(memory->taken, units);
  if (first >= TENSOR_UNITS) {
    wait_for_columns(w, i);
    return false;
  }
  if (a->group == 1) take(memory, first, units, line_of(w, i));
  w->block->moved = true;
  give_address(w, i, first * TENSOR_UNIT);
  return true;
}

void core_tensor_dealloc(exec_warp *x, const exec_instr *i) {
  core_warp *w = (core_warp *)x;
  const exec_tensor_allocation *a = i->side;
  uint32_t columns = columns_of(w, i);
  check_warp(w, i, a->address);
  tensor_memory *memory = core_tensor_memory(w, i, 0, a->group);
  uint32_t address = exec_u32(x, a->address)[0], unit = address / TENSOR_UNIT;
  if (address % TENSOR_UNIT || unit >= TENSOR_UNITS || !memory->units[unit])
    core_fault(w, i, 0, EXEC_FAULT_ILLEGAL_ADDRESS, address, "no allocation of tensor memory begins at 0x%x", address);
  if (memory->units[unit] * TENSOR_UNIT != columns)
    core_fault(w, i, 0, EXEC_FAULT_ILLEGAL_ADDRESS, address,
               "%u columns are freed; the allocation at 0x%x, made at line %u, has %u", columns, address,
               memory->line[unit], memory->units[unit] * TENSOR_UNIT);
  memory->taken &= (uint16_t)~units_of(address, columns);
  memory->units[unit] = 0;
  core_barrier_retry(w->block, EXEC_TENSOR_BARRIER); /* of a pair, it goes on only with a warp of each block */
}

void core_tensor_relinquish(exec_warp *x, const exec_instr *i) {
  core_warp *w = (core_warp *)x;
  const exec_tensor_allocation *a = i->side;
  check_warp(w, i, EXEC_NO_OFFSET);
  core_tensor_memory(w, i, 0, a->group)->relinquished = true;
  core_barrier_retry(w->block, EXEC_TENSOR_BARRIER); /* those that wait learn that they may not */
}

void core_tensor_exit(core_warp *w, const exec_instr *i) {
  const tensor_memory *memory = w->block->tensor;
  if (!memory || !memory->used || !memory->taken) return;
  uint32_t first = (uint32_t)__builtin_ctz(memory->taken), columns = memory->units[first] * TENSOR_UNIT;
  core_fault(
      w, i, (uint32_t)__builtin_ctz(w->active), EXEC_FAULT_ILLEGAL_INSTRUCTION, 0,
      "the block ends with %u columns of tensor memory allocated, at 0x%x by tcgen05.alloc at line %u: they must "
      "be freed before",
      columns, first * TENSOR_UNIT, memory->line[first]);
}
