/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the accesses that are to be checked, and the instructions that touch global memory in ways that are not
 * checked: a function that has one cannot be instrumented, and neither can its callers, because a check that misses
 * accesses would be none. */
#include "ptx/rewrite/instrument_facts.h"

#include <stdlib.h>
#include <string.h>

#include "ptx/analysis/callers.h"
#include "ptx/analysis/declared.h"

typedef struct finder {
  const ptx_module *module;
  ff_arena *arena;
  ptx_check_facts *facts;
  ptx_callers *callers;
  const ptx_func *func;
} finder;

static void refuse(finder *f, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void refuse(finder *f, const char *format, ...) {
  va_list args;
  va_start(args, format);
  ptx_refuse(f->arena, &f->facts[f->func->index].reason, format, args);
  va_end(args);
}

/* ---- accesses ---- */

/* A variable's bytes, named outright. */
static bool inside_variable(const ptx_operand *address, uint32_t bytes) {
  const ptx_var *var = address->symbol ? address->symbol->var : NULL;
  if (!var || address->reg != PTX_NO_REG) return false;
  if (var->space != PTX_SPACE_GLOBAL) return true; /* not global memory at all */
  if (address->offset < 0) return false;
  return (uint64_t)address->offset <= var->size && var->size - (uint64_t)address->offset >= bytes;
}

static bool may_be_global(ptx_space space) { return space == PTX_SPACE_GLOBAL || space == PTX_SPACE_GENERIC; }

static uint32_t access_bytes(const ptx_instr *instr) {
  uint32_t bits = instr->type_count ? ptx_type_bits(instr->types[instr->type_count - 1]) : 0;
  return (bits + 7) / 8 * (instr->vector ? instr->vector : 1);
}

static bool async_access(const ptx_instr *instr, ptx_check_access *access) {
  if (instr->operand_count < 3 || instr->operands[1].kind != PTX_OPERAND_ADDRESS ||
      instr->operands[2].kind != PTX_OPERAND_INT)
    return false;
  bool sized =
      instr->operand_count > 3 && instr->operands[3].kind == PTX_OPERAND_REG && !ptx_has(instr, PTX_MOD_L2__CACHE_HINT);
  *access = (ptx_check_access){
      .address = &instr->operands[1], .bytes = (uint32_t)instr->operands[2].bits, .need = PTX_USE_READ};
  if (sized) access->size = &instr->operands[3];
  else if (instr->operand_count > 3 && instr->operands[3].kind == PTX_OPERAND_INT &&
           instr->operands[3].bits < access->bytes)
    access->bytes = (uint32_t)instr->operands[3].bits;
  return true;
}

bool ptx_check_access_of(const ptx_instr *instr, ptx_check_access *access) {
  ptx_space space = ptx_instr_space(instr);
  uint32_t at;
  if (instr->opcode == PTX_OP_CP && ptx_has(instr, PTX_MOD_ASYNC)) return async_access(instr, access);
  switch (instr->opcode) {
  case PTX_OP_LD:
  case PTX_OP_LDU:
  case PTX_OP_ATOM: at = 1; break;
  case PTX_OP_ST:
  case PTX_OP_RED: at = 0; break;
  default: return false;
  }
  if (!may_be_global(space) || instr->operand_count <= at || instr->operands[at].kind != PTX_OPERAND_ADDRESS)
    return false;
  *access = (ptx_check_access){
      .address = &instr->operands[at], .bytes = access_bytes(instr), .generic = space == PTX_SPACE_GENERIC};
  bool loads = instr->opcode == PTX_OP_LD || instr->opcode == PTX_OP_LDU, stores = instr->opcode == PTX_OP_ST;
  access->need = loads ? PTX_USE_READ : stores ? PTX_USE_WRITE : PTX_USE_READ | PTX_USE_WRITE;
  access->loads = at == 1;
  return !inside_variable(access->address, access->bytes);
}

/* ---- what cannot be checked ---- */

static bool good_register(const ptx_func *func, uint32_t reg, uint32_t bits) {
  return reg == PTX_NO_REG ||
         (ptx_type_bits(func->regs[reg].type) == bits && ptx_type_class(func->regs[reg].type) != 'F');
}

static void see_access(finder *f, const ptx_instr *instr, const ptx_check_access *access) {
  const ptx_operand *address = access->address;
  uint32_t line = instr->place.line;
  f->facts[f->func->index].touches = true;
  if (address->element_count || !good_register(f->func, address->reg, 64))
    refuse(f, "%s has an address at line %u that is not one of 64 bits", f->func->name, line);
  if (access->size && !good_register(f->func, access->size->reg, 32))
    refuse(f, "%s copies at line %u under a condition that cannot be checked", f->func->name, line);
  if (!access->bytes) refuse(f, "%s has an access of unknown size at line %u", f->func->name, line);
}

/* Functions that the device's run-time system has. */
static bool is_provided(const char *name) {
  static const char *const names[] = {"vprintf", "malloc", "free", "__assertfail"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strcmp(name, names[i]) == 0) return true;
  return false;
}

static const ptx_func *callee_of(const ptx_instr *instr) {
  ptx_call parts = ptx_call_parts(instr);
  return parts.callee && parts.callee->symbol ? parts.callee->symbol->func : NULL;
}

static void see_call(finder *f, const ptx_instr *instr) {
  const ptx_func *callee = callee_of(instr);
  uint32_t line = instr->place.line;
  if (!callee) {
    refuse(f, "%s calls through a pointer at line %u", f->func->name, line);
    return;
  }
  if (callee->has_body) {
    ptx_callers_add(f->callers, callee->index, f->func->index);
    return;
  }
  if (!is_provided(callee->name))
    refuse(f, "%s calls %s at line %u, whose code is not in the module", f->func->name, callee->name, line);
  if (strcmp(callee->name, "malloc") == 0) f->facts[f->func->index].heap = true;
}

/* Asynchronous and matrix accesses and the like to another memory than the global one are none of ours. */
static bool stays_on_chip(const ptx_instr *instr) {
  if (ptx_instr_space(instr) != PTX_SPACE_SHARED) return false;
  return !ptx_has(instr, PTX_MOD_GLOBAL);
}

static void see_other(finder *f, const ptx_instr *instr) {
  bool unchecked = false;
  switch (instr->opcode) {
  case PTX_OP_CP: /* the bulk forms, cp.reduce; the others only wait */
    unchecked =
        ptx_has(instr, PTX_MOD_BULK) && !ptx_has(instr, PTX_MOD_COMMIT_GROUP) && !ptx_has(instr, PTX_MOD_WAIT_GROUP);
    break;
  case PTX_OP_WMMA:
    unchecked = (ptx_has(instr, PTX_MOD_LOAD) || ptx_has(instr, PTX_MOD_STORE)) && !stays_on_chip(instr);
    break;
  case PTX_OP_TEX:
  case PTX_OP_TLD4:
  case PTX_OP_SULD:
  case PTX_OP_SUST:
  case PTX_OP_SURED:
  case PTX_OP_MULTIMEM:
  case PTX_OP_TENSORMAP:
  case PTX_OP_DISCARD:
  case PTX_OP_MAPA:
  case PTX_OP_CLUSTERLAUNCHCONTROL:
  case PTX_OP_UNKNOWN: unchecked = true; break;
  case PTX_OP_CVTA: unchecked = ptx_instr_space(instr) == PTX_SPACE_PARAM && !ptx_has(instr, PTX_MOD_TO); break;
  default: break;
  }
  if (unchecked)
    refuse(f, "%s has an instruction at line %u whose accesses cannot be checked (%s)", f->func->name,
           instr->place.line, ptx_opcode_text(instr->opcode));
}

static void see_instr(finder *f, const ptx_instr *instr) {
  ptx_check_access access;
  bool asynchronous = ptx_has(instr, PTX_MOD_ASYNC) && (instr->opcode == PTX_OP_ST || instr->opcode == PTX_OP_RED);
  if (instr->opcode == PTX_OP_CALL) see_call(f, instr);
  else if (asynchronous && !stays_on_chip(instr))
    refuse(f, "%s has an asynchronous access at line %u that cannot be checked", f->func->name, instr->place.line);
  else if (!(instr->opcode == PTX_OP_CP && ptx_has(instr, PTX_MOD_BULK)) && ptx_check_access_of(instr, &access))
    see_access(f, instr, &access);
  else see_other(f, instr);
}

static void see_func(finder *f, const ptx_func *func) {
  f->func = func;
  if (f->module->address_size != 64) refuse(f, "the module's addresses have %u bits", f->module->address_size);
  for (uint32_t i = 0; i < func->param_count; i++)
    if (func->params[i]->space == PTX_SPACE_REG) refuse(f, "%s has parameters in registers", func->name);
  for (uint32_t i = 0; i < func->var_count; i++) /* a copy of the function would have another one */
    if (func->vars[i]->space == PTX_SPACE_GLOBAL || func->vars[i]->space == PTX_SPACE_CONST)
      refuse(f, "%s has a variable of its own in global memory, %s", func->name, func->vars[i]->name);
  for (uint32_t i = 0; i < func->instr_count; i++) see_instr(f, &func->instrs[i]);
}

/* ---- along the calls ---- */

static bool take_over(void *context, uint32_t to, uint32_t from) {
  ptx_check_facts *facts = context, *caller = &facts[to];
  const ptx_check_facts *callee = &facts[from];
  bool news =
      (callee->touches && !caller->touches) || (callee->heap && !caller->heap) || (callee->reason && !caller->reason);
  caller->touches |= callee->touches;
  caller->heap |= callee->heap;
  if (!caller->reason) caller->reason = callee->reason;
  return news;
}

ptx_check_facts *ptx_check_facts_find(const ptx_module *module, ff_arena *arena) {
  finder f = {.module = module, .arena = arena};
  f.facts = ff_alloc((module->func_count + (size_t)1) * sizeof *f.facts);
  f.callers = ptx_callers_create(module->func_count);
  for (uint32_t i = 0; i < module->func_count; i++) see_func(&f, module->funcs[i]);
  ptx_callers_spread(f.callers, take_over, f.facts);
  ptx_callers_free(f.callers);
  return f.facts;
}
