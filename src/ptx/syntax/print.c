/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions and operands as PTX text. print_module.c writes whole modules with it. */
#include "ptx/syntax/print.h"

#include <inttypes.h>

#define put(p, ...) ff_text_add((p)->out, __VA_ARGS__)

const char *ptx_printed_reg(const ptx_printer *p, uint32_t reg) {
  if (reg == PTX_NO_REG) return "_";
  return p->reg_names ? p->reg_names[reg] : p->func->regs[reg].name;
}

const char *ptx_printed_symbol(const ptx_printer *p, const ptx_symbol *symbol) {
  const ptx_var *var = symbol->var;
  if (!var) return p->func_names ? p->func_names[symbol->func->index] : symbol->func->name;
  const char **names = var->func ? p->var_names : p->global_names;
  return names ? names[var->index] : var->name;
}

/* ---- operands ---- */

static void put_offset(ptx_printer *p, int64_t offset) {
  if (offset < 0) put(p, "+-%" PRIu64, 0 - (uint64_t)offset);
  else if (offset) put(p, "+%" PRId64, offset);
}

static void put_selector(ptx_printer *p, uint32_t selector) {
  if (!selector) return;
  put(p, ".%c", selector >> 28 == 0xB ? 'b' : 'h');
  for (uint32_t left = selector >> 16 & 0xff; left-- > 0;) put(p, "%u", selector >> (4 * left) & 0xf);
}

static void put_label(ptx_printer *p, uint32_t at) {
  if (p->label_names) {
    put(p, "%s", p->label_names[at]);
    return;
  }
  for (uint32_t i = 0; i < p->func->label_count; i++) {
    if (p->func->labels[i].at != at) continue;
    put(p, "%s", p->func->labels[i].name);
    return;
  }
}

static void put_elements(ptx_printer *p, const ptx_operand *o, const char *open, const char *close) {
  put(p, "%s", open);
  for (uint32_t i = 0; i < o->element_count; i++) {
    if (i) put(p, ", ");
    ptx_put_operand(p, &o->elements[i]);
  }
  put(p, "%s", close);
}

static void put_address(ptx_printer *p, const ptx_operand *o) {
  if (o->element_count) {
    put_elements(p, o, "[", "]");
    return;
  }
  put(p, "[");
  if (o->reg != PTX_NO_REG) put(p, "%s", ptx_printed_reg(p, o->reg));
  else if (o->symbol) put(p, "%s", ptx_printed_symbol(p, o->symbol));
  else put(p, "%" PRId64, o->offset);
  if (o->reg != PTX_NO_REG || o->symbol) put_offset(p, o->offset);
  put(p, "]");
}

static void put_register(ptx_printer *p, const ptx_operand *o) {
  if (o->negated) put(p, p->func->regs[o->reg].type == PTX_PRED ? "!" : "-");
  put(p, "%s", ptx_printed_reg(p, o->reg));
  put_selector(p, o->selector);
}

void ptx_put_operand(ptx_printer *p, const ptx_operand *o) {
  switch (o->kind) {
  case PTX_OPERAND_NONE: put(p, "_"); break;
  case PTX_OPERAND_REG: put_register(p, o); break;
  case PTX_OPERAND_REG_PAIR: put(p, "%s|%s", ptx_printed_reg(p, o->reg), ptx_printed_reg(p, o->reg2)); break;
  case PTX_OPERAND_INT: put(p, "%" PRId64, (int64_t)o->bits); break;
  case PTX_OPERAND_F32: put(p, "0f%08" PRIX32, (uint32_t)o->bits); break;
  case PTX_OPERAND_F64: put(p, "0d%016" PRIX64, o->bits); break;
  case PTX_OPERAND_SREG: put(p, "%s", ptx_sreg_text(o->sreg)); break;
  case PTX_OPERAND_SYMBOL:
    put(p, "%s", ptx_printed_symbol(p, o->symbol));
    put_offset(p, o->offset);
    break;
  case PTX_OPERAND_ADDRESS: put_address(p, o); break;
  case PTX_OPERAND_LABEL: put_label(p, o->label); break;
  case PTX_OPERAND_VECTOR:
    put_elements(p, o, "{", "}");
    if (o->reg2 != PTX_NO_REG) put(p, "|%s", ptx_printed_reg(p, o->reg2));
    break;
  case PTX_OPERAND_LIST: put_elements(p, o, "(", ")"); break;
  case PTX_OPERAND_LABELS:
    if (p->list_name) put(p, "%s", p->list_name);
    else put_elements(p, o, "{", "}");
    break;
  case PTX_OPERAND_PROTOTYPE: put(p, "%s", p->list_name ? p->list_name : ".callprototype"); break;
  }
}

/* ---- instructions ---- */

/* The address that .unified stands behind: the first one, if the last word of the opcode is .unified; else NULL. */
static const ptx_operand *unified_address(const ptx_instr *instr) {
  uint32_t words = (uint32_t)instr->mod_count + instr->type_count;
  if (!instr->mod_count || instr->mods[instr->mod_count - 1] != PTX_MOD_UNIFIED) return NULL;
  if (instr->type_words >> (words - 1) & 1) return NULL;
  for (uint32_t i = 0; i < instr->operand_count; i++)
    if (instr->operands[i].kind == PTX_OPERAND_ADDRESS) return &instr->operands[i];
  return NULL;
}

static void put_opcode(ptx_printer *p, const ptx_instr *instr) {
  uint32_t mods = 0, types = 0, words = (uint32_t)instr->mod_count + instr->type_count;
  if (unified_address(instr)) words--;
  put(p, "%s", ptx_opcode_text(instr->opcode));
  for (uint32_t i = 0; i < words; i++) {
    bool type = instr->type_words >> i & 1;
    put(p, ".%s", type ? ptx_type_text(instr->types[types++]) : ptx_mod_text((ptx_mod)instr->mods[mods++]));
  }
}

void ptx_put_instr(ptx_printer *p, const ptx_instr *instr) {
  if (instr->guard != PTX_NO_REG) put(p, "@%s%s ", instr->guard_negated ? "!" : "", ptx_printed_reg(p, instr->guard));
  if (instr->opcode == PTX_OP_UNKNOWN) {
    put(p, "%s;", instr->text);
    return;
  }
  put_opcode(p, instr);
  const ptx_operand *unified = unified_address(instr);
  for (uint32_t i = 0; i < instr->operand_count; i++) {
    put(p, i ? ", " : " ");
    ptx_put_operand(p, &instr->operands[i]);
    if (&instr->operands[i] == unified) put(p, ".unified");
  }
  put(p, ";");
}

void ptx_print_instr(const ptx_func *func, const ptx_instr *instr, ff_text *out) {
  ptx_printer printer = {.out = out, .func = func};
  ptx_put_instr(&printer, instr);
}
