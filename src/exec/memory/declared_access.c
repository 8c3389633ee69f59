/* SPDX-License-Identifier: Apache-2.0 */
/* Declared uses (Wilt 2017, R3): an access of the program's memory that the launch does not declare is a fault.
 *
 * core_block.ranges is NULL exactly when the launch declares nothing (asserted); then no access is checked here. With
 * declarations every access of global memory is checked before it touches a byte; one whose lanes lie in one range, the
 * usual case, passes after two comparisons. Exempt allocations (module variables, the heap, parameters) need no
 * declaration. */
#include <stdlib.h>

#include "base/check.h"
#include "base/memory.h"
#include "exec/memory/access.h"
#include "exec/launch/fault.h"

static void fill(ptx_use_range *ranges, const exec_launch_request *request, const uint32_t block[3]) {
  for (uint32_t n = 0; n < request->use_count; n++) ranges[n] = ptx_use_range_of(&request->uses[n], block);
}

void core_declared_prepare(core_launch *launch) {
  const exec_launch_request *request = launch->request;
  launch->ranges = NULL;
  if (!request->uses) return;
  for (uint32_t n = 0; n < request->use_count; n++)
    if (request->uses[n].block_bytes) return; /* every block has its own */
  launch->ranges = ff_alloc((request->use_count + (size_t)1) * sizeof *launch->ranges);
  fill(launch->ranges, request, (const uint32_t[3]){0, 0, 0});
}

void core_declared_start(core_block *block) {
  const core_launch *launch = block->launch;
  const exec_launch_request *request = launch->request;
  block->ranges = launch->ranges;
  FF_ASSERT(request->uses || !launch->ranges);
  if (!request->uses || launch->ranges) return;
  if (block->own_ranges_room < request->use_count) {
    free(block->own_ranges);
    block->own_ranges = ff_alloc(request->use_count * sizeof *block->own_ranges);
    block->own_ranges_room = request->use_count;
  }
  fill(block->own_ranges, request, block->ctaid);
  block->ranges = block->own_ranges;
  FF_ASSERT(block->ranges);
}

/* ---- checking ---- */

static uint32_t needed(const exec_access *a) {
  return a->op == EXEC_OP_LOAD ? PTX_USE_READ : a->op == EXEC_OP_STORE ? PTX_USE_WRITE : PTX_USE_READ | PTX_USE_WRITE;
}

static bool holds(const ptx_use_range *range, uint64_t low, uint64_t end, uint32_t need) {
  return low >= range->low && end <= range->high && (range->mode & need) == need;
}

/* Is [low, end) inside one use? Asks the one first that the instruction met last. */
static bool in_one_use(const core_warp *w, exec_access *a, uint64_t low, uint64_t end, uint32_t need) {
  const ptx_use_range *ranges = w->block->ranges;
  uint32_t count = w->launch->request->use_count, last = __atomic_load_n(&a->use, __ATOMIC_RELAXED);
  if (end < low) return false;
  if (last < count && holds(&ranges[last], low, end, need)) return true;
  for (uint32_t n = 0; n < count; n++) {
    if (!holds(&ranges[n], low, end, need)) continue;
    __atomic_store_n(&a->use, n, __ATOMIC_RELAXED);
    return true;
  }
  return false;
}

void core_declared_check_lane(core_warp *w, const exec_instr *i, uint32_t lane, uint64_t address, uint32_t bytes) {
  exec_access *a = (exec_access *)(uintptr_t)i->side;
  uint32_t need = needed(a);
  if (a->space == PTX_SPACE_CONST || in_one_use(w, a, address, address + bytes, need)) return;
  const exec_span *span = exec_memory_span(w->launch->memory, address);
  if (span && span->info.exempt && !span->info.freed) return;
  if (!ptx_use_covers(w->block->ranges, w->launch->request->use_count, address, bytes, need))
    core_fault_undeclared(w, i, lane, address, bytes, need);
}

void core_declared_check(core_warp *w, const exec_instr *i, const uint64_t *value, uint32_t bytes, bool ordered) {
  exec_access *a = (exec_access *)(uintptr_t)i->side;
  uint64_t add = (uint64_t)i->immediate, low = value[__builtin_ctz(w->active)] + add,
           high = value[31 - __builtin_clz(w->active)] + add;
  if (a->space == PTX_SPACE_CONST) return;
  for (uint32_t m = ordered ? 0 : w->active; m; m &= m - 1) {
    uint64_t address = value[__builtin_ctz(m)] + add;
    low = address < low ? address : low;
    high = address > high ? address : high;
  }
  if (in_one_use(w, a, low, high + bytes, needed(a))) return;
  for (uint32_t m = w->active; m; m &= m - 1) {
    uint32_t lane = (uint32_t)__builtin_ctz(m);
    core_declared_check_lane(w, i, lane, value[lane] + add, bytes);
  }
}
