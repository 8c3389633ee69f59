/* SPDX-License-Identifier: Apache-2.0 */
/* Loads by which a loop waits for another thread: they look past caches that are not coherent, and a condition on which
 * the innermost loop around them is left depends on what they read. `while (*(volatile int *)flag == 0) ;` is one; a
 * loop that reads a cell as often as a counter says is none.
 *
 * A load that may be answered by such a cache counts if the loop can be meant for nothing else: it is short, it writes
 * nothing but shared memory and calls nothing, and the address stays the same. */
#include <stdlib.h>

#include "base/memory.h"
#include "exec/decode/decode.h"
#include "ptx/analysis/dataflow.h"

enum { REGISTERS = 64 }; /* of an instruction */
/* of a loop that only waits, at most: by any load, by a plain one */
enum { LOOP_INSTRUCTIONS = 1024, PLAIN_INSTRUCTIONS = 64 };

bool exec_reads_anew(const ptx_instr *instr) {
  return ptx_has(instr, PTX_MOD_VOLATILE) || ptx_has(instr, PTX_MOD_RELAXED) || ptx_has(instr, PTX_MOD_ACQUIRE) ||
         ptx_has(instr, PTX_MOD_CV);
}

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

/* Is the loop left when what the load reads has changed? */
static bool left_by(const wait_loop *loop, const ptx_instr *load) {
  uint8_t *depends = ff_alloc(loop->func->reg_count + 1);
  uint32_t regs[REGISTERS], count = ptx_instr_writes(load, regs, REGISTERS);
  for (uint32_t r = 0; r < count && r < REGISTERS; r++) depends[regs[r]] = 1;
  for (int passes = 0; passes < DATAFLOW_PASSES && spread(loop, depends); passes++) continue;
  bool result = decides(loop, depends);
  free(depends);
  return result;
}

bool decode_waits_by(const decoder *d) {
  wait_loop loop = {.cfg = d->cfg, .func = d->func};
  return find_loop(d->cfg, d->cfg->block_of[d->index], &loop) && instructions(&loop) <= LOOP_INSTRUCTIONS &&
         left_by(&loop, d->instr);
}

/* ---- plain loads ---- */

static bool changes_memory(const ptx_instr *instr) {
  switch (instr->opcode) {
  case PTX_OP_ST: return ptx_instr_space(instr) != PTX_SPACE_SHARED;
  case PTX_OP_ATOM:
  case PTX_OP_CALL:
  case PTX_OP_CLUSTERLAUNCHCONTROL:
  case PTX_OP_CP:
  case PTX_OP_MBARRIER:
  case PTX_OP_MULTIMEM:
  case PTX_OP_RED:
  case PTX_OP_SURED:
  case PTX_OP_SUST:
  case PTX_OP_TCGEN05:
  case PTX_OP_TENSORMAP:
  case PTX_OP_UNKNOWN:
  case PTX_OP_WMMA: return true;
  default: return false;
  }
}

static bool writes_any(const ptx_instr *instr, const uint32_t *regs, uint32_t count) {
  uint32_t written[REGISTERS], writes = ptx_instr_writes(instr, written, REGISTERS);
  for (uint32_t r = 0; r < writes && r < REGISTERS; r++)
    for (uint32_t n = 0; n < count; n++)
      if (written[r] == regs[n]) return true;
  return false;
}

static bool only_looks(const wait_loop *loop, const ptx_instr *load) {
  uint32_t regs[REGISTERS], count = ptx_instr_reads(load, regs, REGISTERS);
  if (count > REGISTERS) return false;
  for (uint32_t order = loop->first; order <= loop->last; order++) {
    const ptx_block *b = &loop->cfg->blocks[loop->cfg->by_order[order]];
    for (uint32_t n = b->first; n < b->end; n++)
      if (changes_memory(&loop->func->instrs[n]) || writes_any(&loop->func->instrs[n], regs, count)) return false;
  }
  return true;
}

bool exec_waits_plainly(const ptx_func *func, const ptx_cfg *cfg, uint32_t index) {
  wait_loop loop = {.cfg = cfg, .func = func};
  const ptx_instr *instr = &func->instrs[index];
  ptx_space space = ptx_instr_space(instr);
  if (instr->opcode != PTX_OP_LD || (space != PTX_SPACE_GLOBAL && space != PTX_SPACE_GENERIC)) return false;
  if (ptx_has(instr, PTX_MOD_NC) || !find_loop(cfg, cfg->block_of[index], &loop)) return false;
  return instructions(&loop) <= PLAIN_INSTRUCTIONS && only_looks(&loop, instr) && left_by(&loop, instr);
}
