/* SPDX-License-Identifier: Apache-2.0 */
/* Finds what a function sees of the grid: its own instructions first, then, along the calls, those of others.
 *
 * Reasons against windows, besides code that is not there: special registers that tell a launch or a cluster from
 * others, the workspace of cooperative launches (%envreg), barriers of clusters, and loops that end when a polled value
 * changes: another block may have to change it, and that block may stand in a later window. */
#include <stdlib.h>
#include <string.h>

#include "ptx/analysis/callers.h"
#include "ptx/analysis/cfg.h"
#include "ptx/rewrite/window_facts.h"

typedef struct finder {
  const ptx_module *module;
  ff_arena *arena;
  ptx_window_facts *facts;
  ptx_callers *callers;
  const ptx_func *func;
  bool polling;
} finder;

bool ptx_window_sreg(ptx_sreg sreg, uint32_t *which) {
  switch (sreg) {
  case PTX_SREG_CTAID_X: *which = 0; return true;
  case PTX_SREG_CTAID_Y: *which = 1; return true;
  case PTX_SREG_CTAID_Z: *which = 2; return true;
  case PTX_SREG_NCTAID_X: *which = 3; return true;
  case PTX_SREG_NCTAID_Y: *which = 4; return true;
  case PTX_SREG_NCTAID_Z: *which = 5; return true;
  default: return false;
  }
}

static void refuse(finder *f, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void refuse(finder *f, const char *format, ...) {
  va_list args;
  va_start(args, format);
  ptx_refuse(f->arena, &f->facts[f->func->index].reason, format, args);
  va_end(args);
}

/* ---- one instruction ---- */

static bool tells_launches_apart(ptx_sreg sreg) {
  return sreg == PTX_SREG_GRIDID || sreg == PTX_SREG_IS_EXPLICIT_CLUSTER || sreg == PTX_SREG_CLUSTER_CTARANK ||
         sreg == PTX_SREG_CLUSTER_NCTARANK || (sreg >= PTX_SREG_CLUSTERID_X && sreg <= PTX_SREG_CLUSTER_NCTAID_Z) ||
         (sreg >= PTX_SREG_ENVREG0 && sreg <= PTX_SREG_ENVREG31);
}

static void see_operand(finder *f, const ptx_instr *instr, const ptx_operand *operand, bool callee) {
  uint32_t which, line = instr->place.line;
  if (operand->kind == PTX_OPERAND_SREG && ptx_window_sreg(operand->sreg, &which))
    f->facts[f->func->index].reads = true;
  if (operand->kind == PTX_OPERAND_SREG && tells_launches_apart(operand->sreg))
    refuse(f, "%s reads %s at line %u, which differs when only a part of its grid is launched", f->func->name,
           ptx_sreg_text(operand->sreg), line);
  if (operand->symbol && operand->symbol->func && !callee) f->facts[operand->symbol->func->index].address_taken = true;
  for (uint32_t i = 0; i < operand->element_count; i++) see_operand(f, instr, &operand->elements[i], false);
}

/* Functions that the device's run-time system has; they do not see the grid. */
static bool is_provided(const char *name) {
  static const char *const names[] = {"vprintf", "malloc", "free", "__assertfail"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strcmp(name, names[i]) == 0) return true;
  return false;
}

static void see_call(finder *f, const ptx_instr *instr) {
  ptx_call parts = ptx_call_parts(instr);
  const ptx_func *callee = parts.callee && parts.callee->symbol ? parts.callee->symbol->func : NULL;
  if (!callee) {
    f->facts[f->func->index].indirect = true;
    return;
  }
  if (!callee->has_body && !is_provided(callee->name))
    refuse(f, "%s calls %s at line %u, whose code is not in the module", f->func->name, callee->name,
           instr->place.line);
  ptx_callers_add(f->callers, callee->index, f->func->index);
}

/* A statement that the parser does not know could do anything with a word like these. */
static bool may_name_the_grid(const char *text) {
  static const char *const words[] = {"ctaid", "cluster", "gridid", "envreg", "call"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (strstr(text, words[i])) return true;
  return false;
}

static void see_instr(finder *f, const ptx_instr *instr) {
  uint32_t line = instr->place.line;
  const ptx_operand *callee = instr->opcode == PTX_OP_CALL ? ptx_call_parts(instr).callee : NULL;
  for (uint32_t i = 0; i < instr->operand_count; i++)
    see_operand(f, instr, &instr->operands[i], &instr->operands[i] == callee);
  switch (instr->opcode) {
  case PTX_OP_CALL: see_call(f, instr); break;
  case PTX_OP_CLUSTERLAUNCHCONTROL:
  case PTX_OP_MAPA:
  case PTX_OP_GETCTARANK:
    refuse(f, "%s asks for another block at line %u (%s)", f->func->name, line, ptx_opcode_text(instr->opcode));
    break;
  case PTX_OP_BAR:
  case PTX_OP_BARRIER:
    if (ptx_has(instr, PTX_MOD_CLUSTER))
      refuse(f, "%s waits for other blocks at line %u (a barrier of the cluster)", f->func->name, line);
    break;
  case PTX_OP_UNKNOWN:
    if (may_name_the_grid(instr->text))
      refuse(f, "%s has a statement at line %u that is not known and may depend on the grid", f->func->name, line);
    break;
  default: break;
  }
}

/* ---- loops that poll ---- */

/* A load that sees what other blocks write meanwhile. Compare-and-swap and exchange are left out: a loop around them
 * takes a lock or makes an atomic operation, and the thread that holds the lock is running. */
static bool polls(const ptx_instr *instr) {
  ptx_space space = ptx_instr_space(instr);
  if (space != PTX_SPACE_GLOBAL && space != PTX_SPACE_GENERIC) return false;
  if (instr->opcode == PTX_OP_ATOM) return !ptx_has(instr, PTX_MOD_CAS) && !ptx_has(instr, PTX_MOD_EXCH);
  return instr->opcode == PTX_OP_LD && (ptx_has(instr, PTX_MOD_VOLATILE) || ptx_has(instr, PTX_MOD_ACQUIRE) ||
                                        ptx_has(instr, PTX_MOD_RELAXED) || ptx_has(instr, PTX_MOD_MMIO));
}

enum { REGS_SEEN = 64, TAINT_PASSES = 4 };

static bool any_tainted(const ptx_instr *instr, const bool *tainted) {
  uint32_t regs[REGS_SEEN], count = ptx_instr_reads(instr, regs, REGS_SEEN);
  for (uint32_t i = 0; i < count && i < REGS_SEEN; i++)
    if (tainted[regs[i]]) return true;
  return count > REGS_SEEN;
}

static void taint(const ptx_instr *instr, bool *tainted) {
  uint32_t regs[REGS_SEEN], count = ptx_instr_writes(instr, regs, REGS_SEEN);
  for (uint32_t i = 0; i < count && i < REGS_SEEN; i++) tainted[regs[i]] = true;
}

/* Does the block's last instruction leave the loop [first, last] of orders on a tainted condition? */
static bool leaves_on(const ptx_func *func, const ptx_cfg *cfg, const ptx_block *block, uint32_t first, uint32_t last,
                      const bool *tainted) {
  const ptx_instr *end = &func->instrs[block->end - 1];
  bool leaves = end->opcode == PTX_OP_EXIT || end->opcode == PTX_OP_RET;
  for (uint32_t i = 0; i < block->successor_count; i++) {
    uint32_t order = cfg->blocks[block->successors[i]].order;
    if (order < first || order > last) leaves = true;
  }
  return leaves && any_tainted(end, tainted);
}

/* Line of the load in the loop headed by `head` that its end depends on, or 0. */
static uint32_t polling_line(const ptx_func *func, const ptx_cfg *cfg, const ptx_block *head, bool *tainted) {
  uint32_t line = 0;
  memset(tainted, 0, func->reg_count * sizeof *tainted);
  for (int pass = 0; pass < TAINT_PASSES; pass++)
    for (uint32_t order = head->order; order <= head->loop_end; order++) {
      const ptx_block *block = &cfg->blocks[cfg->by_order[order]];
      for (uint32_t i = block->first; i < block->end; i++) {
        const ptx_instr *instr = &func->instrs[i];
        bool source = polls(instr);
        if (source && !line) line = instr->place.line;
        if (source || any_tainted(instr, tainted)) taint(instr, tainted);
      }
    }
  for (uint32_t order = head->order; line && order <= head->loop_end; order++)
    if (leaves_on(func, cfg, &cfg->blocks[cfg->by_order[order]], head->order, head->loop_end, tainted)) return line;
  return 0;
}

static bool is_loop(const ptx_cfg *cfg, const ptx_block *block) {
  for (uint32_t i = 0; i < block->predecessor_count; i++)
    if (cfg->blocks[block->predecessors[i]].order >= block->order) return true;
  return false;
}

static void see_loops(finder *f) {
  bool any = false;
  for (uint32_t i = 0; i < f->func->instr_count && !any; i++) any = polls(&f->func->instrs[i]);
  if (!any) return;
  ptx_cfg *cfg = ptx_cfg_build(f->func);
  bool *tainted = ff_alloc(f->func->reg_count + 1);
  for (uint32_t b = 0; b < cfg->block_count; b++) {
    const ptx_block *block = &cfg->blocks[b];
    if (!block->reachable || !is_loop(cfg, block)) continue;
    uint32_t line = polling_line(f->func, cfg, block, tainted);
    if (line)
      refuse(f, "%s polls memory in a loop at line %u: it may wait for a block that does not run yet", f->func->name,
             line);
  }
  free(tainted);
  ptx_cfg_free(cfg);
}

/* ---- the module ---- */

static void see_func(finder *f, const ptx_func *func) {
  f->func = func;
  if (func->cluster[0] || func->cluster[1] || func->cluster[2])
    refuse(f, "%s is launched in clusters of blocks", func->name);
  for (uint32_t i = 0; i < func->var_count; i++) {
    const ptx_var *var = func->vars[i];
    for (uint32_t k = 0; k < var->init_count; k++)
      if (var->inits[k].symbol->func) f->facts[var->inits[k].symbol->func->index].address_taken = true;
  }
  for (uint32_t i = 0; i < func->instr_count; i++) see_instr(f, &func->instrs[i]);
  if (!f->polling) see_loops(f);
}

static bool take_over(void *context, uint32_t to, uint32_t from) {
  ptx_window_facts *facts = context, *caller = &facts[to];
  const ptx_window_facts *callee = &facts[from];
  bool news = (callee->reads && !caller->reads) || (callee->indirect && !caller->indirect) ||
              (callee->reason && !caller->reason);
  caller->reads |= callee->reads;
  caller->indirect |= callee->indirect;
  if (!caller->reason) caller->reason = callee->reason;
  return news;
}

/* A call by address reaches any function whose address is taken. */
static void judge_indirect(finder *f) {
  const ptx_func *reached = NULL;
  const char *reason = NULL;
  for (uint32_t i = 0; i < f->module->func_count; i++) {
    if (!f->facts[i].address_taken) continue;
    if (f->facts[i].reads && !reached) reached = f->module->funcs[i];
    if (f->facts[i].reason && !reason) reason = f->facts[i].reason;
  }
  for (uint32_t i = 0; i < f->module->func_count; i++) {
    f->func = f->module->funcs[i];
    if (!f->facts[i].indirect) continue;
    if (reason) refuse(f, "%s", reason);
    if (reached)
      refuse(f, "%s calls a function by its address, and %s, which may be it, reads %%ctaid or %%nctaid", f->func->name,
             reached->name);
  }
}

ptx_window_facts *ptx_window_facts_find(const ptx_module *module, bool polling, ff_arena *arena) {
  finder f = {.module = module, .arena = arena, .polling = polling};
  f.facts = ff_alloc((module->func_count + 1) * sizeof *f.facts);
  f.callers = ptx_callers_create(module->func_count);
  for (uint32_t i = 0; i < module->var_count; i++)
    for (uint32_t k = 0; k < module->vars[i]->init_count; k++)
      if (module->vars[i]->inits[k].symbol->func)
        f.facts[module->vars[i]->inits[k].symbol->func->index].address_taken = true;
  for (uint32_t i = 0; i < module->func_count; i++)
    if (module->funcs[i]->has_body) see_func(&f, module->funcs[i]);
  ptx_callers_spread(f.callers, take_over, f.facts);
  judge_indirect(&f);
  ptx_callers_free(f.callers);
  return f.facts;
}
