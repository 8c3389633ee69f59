/* SPDX-License-Identifier: Apache-2.0 */
/* Copies whose reads of %ctaid and %nctaid are reads of registers: see grid_copy.h.
 *
 * While a body is copied, labels are places in the original; `where` says at the end where those stand. Added labels
 * come behind them: label n is place instr_count + 1 + n. */
#include "ptx/rewrite/grid_copy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_ROOM = 40 };

/* ---- names ---- */

static bool is_taken(const ptx_grid_maker *m, const char *name) {
  return ff_map_get(&m->taken, name) || ptx_find_func(m->module, name) || ptx_find_var(m->module, name);
}

const char *ptx_grid_free_name(ptx_grid_maker *m, const char *name, const char *suffix) {
  size_t room = strlen(name) + NAME_ROOM;
  char *made = ff_arena_alloc(&m->arena, room);
  snprintf(made, room, "%s%s", name, suffix);
  for (uint32_t n = 2; is_taken(m, made); n++) snprintf(made, room, "%s%s%u", name, suffix, n);
  ff_map_set(&m->taken, made, made);
  return made;
}

void ptx_grid_start(ptx_grid_maker *m, const ptx_module *module, const ptx_window_facts *facts,
                    const ptx_grid_names *names) {
  *m = (ptx_grid_maker){.module = module, .facts = facts, .names = names};
  m->copies = ff_alloc((module->func_count + (size_t)1) * sizeof *m->copies);
  for (uint32_t i = 0; i < module->func_count; i++) FF_PUSH(&m->funcs, module->funcs[i]);
}

const char *ptx_grid_announce(ptx_grid_maker *m, const ptx_func *from) {
  ptx_func *to = ff_arena_alloc(&m->arena, sizeof *to);
  *to = *from;
  to->name = ptx_grid_free_name(m, from->name, m->names->suffix);
  to->linkage = from->entry ? PTX_LINK_VISIBLE : PTX_LINK_NONE;
  to->symbol = (ptx_symbol){to->name, NULL, to};
  to->index = (uint32_t)m->funcs.count;
  m->copies[from->index] = to;
  FF_PUSH(&m->funcs, to);
  return to->name;
}

bool ptx_grid_register_parameters(const ptx_func *func) {
  for (uint32_t i = 0; i < func->param_count; i++)
    if (func->params[i]->space == PTX_SPACE_REG) return true;
  return false;
}

const char *ptx_grid_old_form(const ptx_module *module, const ptx_window_facts *facts, ff_arena *arena) {
  for (uint32_t i = 0; i < module->func_count; i++) {
    const ptx_func *func = module->funcs[i];
    if (func->entry || !func->has_body || !facts[i].reads || !ptx_grid_register_parameters(func)) continue;
    ff_text text = {0};
    ff_text_add(&text, "the function %s reads %%ctaid or %%nctaid and has parameters in registers", func->name);
    const char *reason = ff_arena_strndup(arena, text.chars, text.length);
    free(text.chars);
    return reason;
  }
  return NULL;
}

/* ---- variables and registers ---- */

static ptx_var *place_variable(ptx_func *to, ptx_var *var) {
  var->func = to;
  var->symbol = (ptx_symbol){var->name, var, NULL};
  var->index = to->var_count;
  to->vars[to->var_count++] = var;
  return var;
}

static void copy_variable(ptx_grid_copy *c, const ptx_var *from) {
  ptx_var *var = ff_arena_alloc(&c->m->arena, sizeof *var);
  *var = *from;
  c->vars[from->index] = place_variable(c->to, var);
}

/* Parameters and results first, as in every function. */
static void copy_variables(ptx_grid_copy *c, ptx_var *added, uint32_t added_count, ptx_var *others,
                           uint32_t other_count) {
  const ptx_func *from = c->from;
  ptx_func *to = c->to;
  uint32_t headed = from->param_count + from->result_count;
  to->vars = ff_arena_alloc(&c->m->arena, (from->var_count + added_count + (size_t)other_count + 1) * sizeof *to->vars);
  to->params = ff_arena_alloc(&c->m->arena, (from->param_count + (size_t)added_count + 1) * sizeof *to->params);
  to->results = ff_arena_alloc(&c->m->arena, (from->result_count + (size_t)1) * sizeof *to->results);
  c->vars = ff_alloc((from->var_count + (size_t)1) * sizeof *c->vars);
  to->var_count = 0;
  for (uint32_t i = 0; i < headed; i++) copy_variable(c, from->vars[i]);
  for (uint32_t i = 0; i < from->param_count; i++) to->params[i] = c->vars[from->params[i]->index];
  for (uint32_t i = 0; i < from->result_count; i++) to->results[i] = c->vars[from->results[i]->index];
  for (uint32_t i = 0; i < added_count; i++) to->params[to->param_count++] = place_variable(to, &added[i]);
  for (uint32_t i = headed; i < from->var_count; i++) copy_variable(c, from->vars[i]);
  for (uint32_t i = 0; i < other_count; i++) place_variable(to, &others[i]);
}

static void add_registers(ptx_grid_copy *c, const ptx_grid_register *registers, uint32_t count) {
  const ptx_func *from = c->from;
  ptx_func *to = c->to;
  to->reg_count = from->reg_count + PTX_GRID_WORDS + count;
  to->regs = ff_arena_alloc(&c->m->arena, to->reg_count * sizeof *to->regs);
  if (from->reg_count) memcpy(to->regs, from->regs, from->reg_count * sizeof *to->regs);
  for (uint32_t n = 0; n < PTX_GRID_WORDS; n++)
    to->regs[from->reg_count + n] = (ptx_reg){c->m->names->regs[n], PTX_U32, 1};
  for (uint32_t n = 0; n < count; n++)
    to->regs[from->reg_count + PTX_GRID_WORDS + n] = (ptx_reg){registers[n].name, registers[n].type, 1};
}

void ptx_grid_begin(ptx_grid_copy *c, ptx_grid_maker *m, const ptx_func *from, ptx_var *added, uint32_t added_count,
                    ptx_var *others, uint32_t other_count, const ptx_grid_register *registers,
                    uint32_t register_count) {
  *c = (ptx_grid_copy){.m = m, .from = from, .to = m->copies[from->index], .first_reg = from->reg_count};
  copy_variables(c, added, added_count, others, other_count);
  add_registers(c, registers, register_count);
  c->where = ff_alloc((from->instr_count + (size_t)1 + PTX_GRID_LABELS) * sizeof *c->where);
  for (uint32_t n = 0; n < PTX_GRID_LABELS; n++) c->where[from->instr_count + 1 + n] = UINT32_MAX;
}

/* ---- instructions ---- */

static ptx_operand *copy_operands(ptx_grid_copy *c, const ptx_operand *operands, uint32_t count) {
  if (!count) return NULL;
  ptx_operand *copy = ff_arena_alloc(&c->m->arena, count * sizeof *copy);
  for (uint32_t i = 0; i < count; i++) {
    uint32_t which;
    copy[i] = operands[i];
    if (copy[i].kind == PTX_OPERAND_SREG && ptx_window_sreg(copy[i].sreg, &which))
      copy[i] = ptx_build_reg(c->first_reg + which);
    if (copy[i].symbol && copy[i].symbol->var && copy[i].symbol->var->func == c->from)
      copy[i].symbol = &c->vars[copy[i].symbol->var->index]->symbol;
    copy[i].elements = copy_operands(c, operands[i].elements, operands[i].element_count);
  }
  return copy;
}

ptx_instr *ptx_grid_add(ptx_grid_copy *c, const char *opcode, const ptx_operand *operands, uint32_t count) {
  ptx_instr instr = ptx_build_instr(&c->m->arena, opcode, operands, count);
  instr.place = c->original ? c->original->place : c->from->place;
  if (c->original) {
    instr.source_file = c->original->source_file;
    instr.source_line = c->original->source_line;
  }
  FF_PUSH(&c->instrs, instr);
  return &c->instrs.items[c->instrs.count - 1];
}

/* mov.u16 takes a special register's low half; of a register that is a conversion. */
static void narrow(const ptx_instr *from, ptx_instr *to) {
  uint32_t which;
  if (from->opcode != PTX_OP_MOV || from->operand_count != 2 || from->type_count != 1 ||
      ptx_type_bits(from->types[0]) != 16)
    return;
  if (from->operands[1].kind != PTX_OPERAND_SREG || !ptx_window_sreg(from->operands[1].sreg, &which)) return;
  to->opcode = PTX_OP_CVT;
  to->types[0] = PTX_U16;
  to->types[to->type_count++] = PTX_U32;
  to->type_words |= 1u << (to->mod_count + to->type_count - 1);
}

/* A call of a copied function: the copy, with six more arguments. */
static void redirect(ptx_grid_copy *c, ptx_instr *instr) {
  uint32_t at = instr->operand_count && instr->operands[0].kind == PTX_OPERAND_LIST;
  if (at >= instr->operand_count) return;
  ptx_operand *callee = &instr->operands[at];
  ptx_func *copy = callee->symbol && callee->symbol->func ? c->m->copies[callee->symbol->func->index] : NULL;
  if (!copy || copy->entry) return;
  callee->symbol = &copy->symbol;
  bool has_list = at + 1u < instr->operand_count && instr->operands[at + 1].kind == PTX_OPERAND_LIST;
  if (!has_list) { /* (results), callee, [target list] -> one more between */
    ptx_operand *more = ff_arena_alloc(&c->m->arena, (instr->operand_count + 1u) * sizeof *more);
    memcpy(more, instr->operands, (at + 1) * sizeof *more);
    more[at + 1] = ptx_build_operand(PTX_OPERAND_LIST);
    memcpy(more + at + 2, instr->operands + at + 1, (instr->operand_count - at - 1u) * sizeof *more);
    instr->operands = more;
    instr->operand_count++;
  }
  ptx_operand *list = &instr->operands[at + 1];
  ptx_operand *elements = ff_arena_alloc(&c->m->arena, (list->element_count + PTX_GRID_WORDS) * sizeof *elements);
  if (list->element_count) memcpy(elements, list->elements, list->element_count * sizeof *elements);
  for (uint32_t word = 0; word < PTX_GRID_WORDS; word++)
    elements[list->element_count + word] = ptx_build_reg(c->first_reg + word);
  list->elements = elements;
  list->element_count += PTX_GRID_WORDS;
}

ptx_instr *ptx_grid_instr(ptx_grid_copy *c, const ptx_instr *from) {
  ptx_instr instr = *from;
  instr.operands = copy_operands(c, from->operands, from->operand_count);
  narrow(from, &instr);
  if (instr.opcode == PTX_OP_CALL) redirect(c, &instr);
  FF_PUSH(&c->instrs, instr);
  return &c->instrs.items[c->instrs.count - 1];
}

/* ---- labels ---- */

void ptx_grid_here(ptx_grid_copy *c, uint32_t index) { c->where[index] = (uint32_t)c->instrs.count; }
void ptx_grid_label_here(ptx_grid_copy *c, uint32_t label) { ptx_grid_here(c, c->from->instr_count + 1 + label); }

ptx_operand ptx_grid_label(const ptx_grid_copy *c, uint32_t label) {
  ptx_operand operand = ptx_build_operand(PTX_OPERAND_LABEL);
  operand.label = c->from->instr_count + 1 + label;
  return operand;
}

static void move_labels(const ptx_grid_copy *c, ptx_operand *operands, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    if (operands[i].kind == PTX_OPERAND_LABEL) operands[i].label = c->where[operands[i].label];
    move_labels(c, operands[i].elements, operands[i].element_count);
  }
}

static int by_place(const void *a, const void *b) {
  const ptx_label *x = a, *y = b;
  return x->at < y->at ? -1 : x->at > y->at;
}

static void make_labels(ptx_grid_copy *c) {
  const ptx_func *from = c->from;
  ptx_func *to = c->to;
  to->labels = ff_arena_alloc(&c->m->arena, (from->label_count + (size_t)PTX_GRID_LABELS) * sizeof *to->labels);
  for (uint32_t i = 0; i < from->label_count; i++)
    to->labels[i] = (ptx_label){from->labels[i].name, c->where[from->labels[i].at]};
  for (uint32_t n = 0; n < PTX_GRID_LABELS; n++) {
    uint32_t at = c->where[from->instr_count + 1 + n];
    if (at != UINT32_MAX) to->labels[to->label_count++] = (ptx_label){c->m->names->labels[n], at};
  }
  if (to->label_count > from->label_count) qsort(to->labels, to->label_count, sizeof *to->labels, by_place);
}

void ptx_grid_end(ptx_grid_copy *c) {
  ptx_func *to = c->to;
  for (size_t n = 0; n < c->instrs.count; n++)
    move_labels(c, c->instrs.items[n].operands, c->instrs.items[n].operand_count);
  make_labels(c);
  to->instr_count = (uint32_t)c->instrs.count;
  to->instrs = ff_arena_alloc(&c->m->arena, (c->instrs.count + 1) * sizeof *to->instrs);
  if (c->instrs.count) memcpy(to->instrs, c->instrs.items, c->instrs.count * sizeof *to->instrs);
  free(c->instrs.items);
  free(c->where);
  free(c->vars);
}

/* ---- functions ---- */

static void fill_function(ptx_grid_maker *m, const ptx_func *from) {
  ptx_grid_copy c;
  ptx_var *added = ff_arena_alloc(&m->arena, PTX_GRID_WORDS * sizeof *added);
  for (uint32_t word = 0; word < PTX_GRID_WORDS; word++)
    added[word] = (ptx_var){.name = m->names->params[word],
                            .place = from->place,
                            .space = PTX_SPACE_PARAM,
                            .type = PTX_U32,
                            .vector = 1,
                            .align = 4,
                            .size = 4,
                            .reg = PTX_NO_REG};
  ptx_grid_begin(&c, m, from, added, PTX_GRID_WORDS, NULL, 0, NULL, 0);
  for (uint32_t word = 0; word < PTX_GRID_WORDS; word++)
    PTX_GRID_ADD(&c, "ld.param.u32", ptx_build_reg(c.first_reg + word), ptx_build_at_symbol(&added[word].symbol));
  for (uint32_t i = 0; i < from->instr_count; i++) {
    ptx_grid_here(&c, i);
    ptx_grid_instr(&c, &from->instrs[i]);
  }
  ptx_grid_here(&c, from->instr_count);
  ptx_grid_end(&c);
}

void ptx_grid_functions(ptx_grid_maker *m) {
  for (uint32_t i = 0; i < m->module->func_count; i++) {
    const ptx_func *func = m->module->funcs[i];
    if (!func->entry && func->has_body && m->facts[i].reads && !ptx_grid_register_parameters(func))
      ptx_grid_announce(m, func);
  }
  for (uint32_t i = 0; i < m->module->func_count; i++)
    if (m->copies[i] && !m->copies[i]->entry) fill_function(m, m->module->funcs[i]);
}

void ptx_grid_print(const ptx_grid_maker *m, ff_text *out) {
  ptx_module whole = *m->module;
  whole.funcs = m->funcs.items;
  whole.func_count = (uint32_t)m->funcs.count;
  ptx_print_module(&whole, out);
}

void ptx_grid_free(ptx_grid_maker *m) {
  free(m->funcs.items);
  ff_map_free(&m->taken);
  free(m->copies);
  ff_arena_free(&m->arena);
}
