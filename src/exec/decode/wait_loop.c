/* SPDX-License-Identifier: Apache-2.0 */
/* Loads by which a loop waits for another thread: they look past caches that are not coherent, and a condition on which
 * the innermost loop around them is left depends on what they read. `while (*(volatile int *)flag == 0) ;` is one; a
 * loop that reads a cell as often as a counter says is none. */
#include <stdlib.h>

#include "base/memory.h"
#include "exec/decode/decode.h"
#include "ptx/analysis/dataflow.h"

enum { REGISTERS = 64, LOOP_INSTRUCTIONS = 1024 }; /* of an instruction; of a loop that only waits, at most */

typedef struct wait_loop {
  const ptx_cfg *cfg;
  const ptx_func *func;
  uint32_t first, last; /* orders of its blocks */
} wait_loop;

static bool heads_loop(const ptx_cfg *cfg, uint32_t block) {
  const ptx_block *b = &cfg->blocks[block];
  if (b->loop_end > b->order) return true;
  for (uint32_t s = 0; s < b->successor_count; s++)
    if (b->successors[s] == block) return true;
  return false;
}

/* The innermost loop around a block. */
static bool find_loop(const ptx_cfg *cfg, uint32_t block, wait_loop *loop) {
  uint32_t at = cfg->blocks[block].order;
  if (!cfg->blocks[block].reachable || !(cfg->blocks[block].loop_depth || heads_loop(cfg, block))) return false;
  for (uint32_t order = at + 1; order-- > 0;) {
    const ptx_block *b = &cfg->blocks[cfg->by_order[order]];
    if (b->loop_end < at || !heads_loop(cfg, cfg->by_order[order])) continue;
    loop->first = order, loop->last = b->loop_end;
    return true;
  }
  return false;
}

static bool within(const wait_loop *loop, uint32_t block) {
  uint32_t order = loop->cfg->blocks[block].order;
  return order >= loop->first && order <= loop->last;
}

/* What is computed from a register that depends on the load depends on it. False: nothing new. */
static bool spread_to(const ptx_instr *instr, uint8_t *depends) {
  uint32_t regs[REGISTERS], count = ptx_instr_reads(instr, regs, REGISTERS);
  bool any = false, new = false;
  for (uint32_t r = 0; r < count && r < REGISTERS; r++) any |= depends[regs[r]];
  if (!any) return false;
  count = ptx_instr_writes(instr, regs, REGISTERS);
  for (uint32_t r = 0; r < count && r < REGISTERS; r++) {
    new |= !depends[regs[r]];
    depends[regs[r]] = 1;
  }
  return new;
}

static bool spread(const wait_loop *loop, uint8_t *depends) {
  bool new = false;
  for (uint32_t order = loop->first; order <= loop->last; order++) {
    const ptx_block *b = &loop->cfg->blocks[loop->cfg->by_order[order]];
    for (uint32_t n = b->first; n < b->end; n++) new |= spread_to(&loop->func->instrs[n], depends);
  }
  return new;
}

/* Does a branch out of the loop depend on it? */
static bool decides(const wait_loop *loop, const uint8_t *depends) {
  for (uint32_t order = loop->first; order <= loop->last; order++) {
    const ptx_block *b = &loop->cfg->blocks[loop->cfg->by_order[order]];
    uint32_t regs[REGISTERS], count = ptx_instr_reads(&loop->func->instrs[b->end - 1], regs, REGISTERS);
    bool leaves = false, depending = false;
    for (uint32_t s = 0; s < b->successor_count; s++) leaves |= !within(loop, b->successors[s]);
    for (uint32_t r = 0; r < count && r < REGISTERS; r++) depending |= depends[regs[r]];
    if (leaves && depending && b->successor_count > 1) return true;
  }
  return false;
}

static uint32_t instructions(const wait_loop *loop) {
  uint32_t count = 0;
  for (uint32_t order = loop->first; order <= loop->last; order++) {
    const ptx_block *b = &loop->cfg->blocks[loop->cfg->by_order[order]];
    count += b->end - b->first;
  }
  return count;
}

bool decode_waits_by(const decoder *d) {
  wait_loop loop = {.cfg = d->cfg, .func = d->func};
  if (!find_loop(d->cfg, d->cfg->block_of[d->index], &loop) || instructions(&loop) > LOOP_INSTRUCTIONS) return false;
  uint8_t *depends = ff_alloc(d->func->reg_count + 1);
  uint32_t regs[REGISTERS], count = ptx_instr_writes(d->instr, regs, REGISTERS);
  for (uint32_t r = 0; r < count && r < REGISTERS; r++) depends[regs[r]] = 1;
  for (int passes = 0; passes < DATAFLOW_PASSES && spread(&loop, depends); passes++) continue;
  bool result = decides(&loop, depends);
  free(depends);
  return result;
}
