/* SPDX-License-Identifier: Apache-2.0 */
/* The invariants of a module that was parsed or linked (ir.h), checked at the deep level.
 *
 *     index of a function or variable == its place in its owner's list; owners point back
 *     a symbol is one of the module's own, or a variable of the function in which it stands
 *     registers, labels and variables of parameters that an instruction names are its function's
 *     alignments are powers of two; a name finds the first function or variable of that name */
#include <string.h>

#include "base/check.h"
#include "ptx/module.h"

static void check_symbol(const ptx_module *m, const ptx_func *func, const ptx_symbol *symbol) {
  if (!symbol) return;
  FF_ASSERT(!symbol->var != !symbol->func);
  if (symbol->func) {
    FF_ASSERT(symbol->func->index < m->func_count && m->funcs[symbol->func->index] == symbol->func);
  } else if (symbol->var->func) {
    FF_ASSERT(symbol->var->func == func && symbol->var->index < func->var_count);
    FF_ASSERT(func->vars[symbol->var->index] == symbol->var);
  } else {
    FF_ASSERT(symbol->var->index < m->var_count && m->vars[symbol->var->index] == symbol->var);
  }
}

static void check_operand(const ptx_func *func, const ptx_operand *o) {
  check_symbol(func->module, func, o->symbol);
  bool reg = o->kind == PTX_OPERAND_REG, pair = o->kind == PTX_OPERAND_REG_PAIR, based = o->kind == PTX_OPERAND_ADDRESS;
  FF_ASSERT(!reg || o->reg < func->reg_count);
  FF_ASSERT(!(pair || based) || o->reg < func->reg_count || o->reg == PTX_NO_REG);
  FF_ASSERT(!pair || o->reg2 < func->reg_count || o->reg2 == PTX_NO_REG);
  FF_ASSERT(o->kind != PTX_OPERAND_LABEL || o->label <= func->instr_count);
  for (uint32_t e = 0; e < o->element_count; e++) check_operand(func, &o->elements[e]);
}

static void check_var(const ptx_module *m, const ptx_func *func, const ptx_var *var, uint32_t index) {
  FF_ASSERT(var->index == index && var->func == func);
  FF_ASSERT(var->align && !(var->align & (var->align - 1)));
  FF_ASSERT(var->reg == PTX_NO_REG || (func && var->reg < func->reg_count));
  for (uint32_t i = 0; i < var->init_count; i++) check_symbol(m, func, var->inits[i].symbol);
}

static void check_func(const ptx_module *m, const ptx_func *func, uint32_t index) {
  FF_ASSERT(func->index == index && func->module == m && (func->has_body || !func->instr_count));
  for (uint32_t v = 0; v < func->var_count; v++) check_var(m, func, func->vars[v], v);
  for (uint32_t p = 0; p < func->param_count; p++) FF_ASSERT(func->params[p]->func == func);
  for (uint32_t r = 0; r < func->result_count; r++) FF_ASSERT(func->results[r]->func == func);
  for (uint32_t n = 0; n < func->instr_count; n++) {
    const ptx_instr *i = &func->instrs[n];
    FF_ASSERT(i->guard == PTX_NO_REG || i->guard < func->reg_count);
    for (uint32_t k = 0; k < i->operand_count; k++) check_operand(func, &i->operands[k]);
  }
}

void ptx_func_check(const ptx_func *func) { check_func(func->module, func, func->index); }

void ptx_module_check(const ptx_module *m) {
  for (uint32_t v = 0; v < m->var_count; v++) {
    check_var(m, NULL, m->vars[v], v);
    const ptx_var *first = ptx_find_var(m, m->vars[v]->name);
    FF_ASSERT(first && first->index <= v);
  }
  for (uint32_t f = 0; f < m->func_count; f++) check_func(m, m->funcs[f], f);
}
