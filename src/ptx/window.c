/* SPDX-License-Identifier: Apache-2.0 */
/* Adds to a module, for each kernel, a second one that runs a window of its grid.
 *
 * The second is a copy whose reads of %ctaid.x ... %nctaid.z are reads of six registers. A kernel fills them first, from the
 * special registers and its six added parameters; a function gets them as six added arguments, so that whole chains of
 * calls are copied. Names of copies are the originals' with `__window` behind them, or a number too if that is taken. */
#include "ptx/window.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ptx/module.h"
#include "ptx/window_facts.h"

enum { WORDS = 6, PROLOGUE_MOST = 9, NAME_ROOM = 24 };
#define PARAMETERS_MOST 4096u /* bytes that every GPU takes; newer ones take 32764 */

static const char *const word_names[WORDS] = {"window_first_x", "window_first_y", "window_first_z", "window_grid_x", "window_grid_y", "window_grid_z"};
static const ptx_sreg ctaid[3] = {PTX_SREG_CTAID_X, PTX_SREG_CTAID_Y, PTX_SREG_CTAID_Z};

typedef struct maker {
  const ptx_module *module;
  ff_arena arena;      /* of the copies */
  ptx_window_facts *facts;
  ptx_func **copies;   /* per function of the module; NULL: not copied */
  ff_map names;        /* of the copies */
  FF_VEC(ptx_func *) funcs; /* of the new module */
} maker;

typedef struct copier { /* of one function's body */
  maker *m;
  const ptx_func *from;
  ptx_func *to;
  uint32_t first_reg;  /* the six registers */
  uint32_t shift;      /* instructions put in front */
} copier;

uint32_t ptx_param_layout(const ptx_func *func, uint32_t *offsets) {
  uint64_t at = 0;
  for (uint32_t i = 0; i < func->param_count; i++) {
    const ptx_var *var = func->params[i];
    at = (at + var->align - 1) / var->align * var->align;
    if (offsets) offsets[i] = at > UINT32_MAX ? UINT32_MAX : (uint32_t)at;
    at += var->size;
    if (at >= UINT32_MAX) return UINT32_MAX;
  }
  return (uint32_t)at;
}

/* ---- operands ---- */

static ptx_operand no_operand(ptx_operand_kind kind) { return (ptx_operand){.kind = kind, .reg = PTX_NO_REG, .reg2 = PTX_NO_REG}; }

static ptx_operand reg_operand(uint32_t reg) {
  ptx_operand operand = no_operand(PTX_OPERAND_REG);
  operand.reg = reg;
  return operand;
}

static ptx_operand *copy_operands(copier *c, const ptx_operand *operands, uint32_t count) {
  if (!count) return NULL;
  ptx_operand *copy = ff_arena_alloc(&c->m->arena, count * sizeof *copy);
  for (uint32_t i = 0; i < count; i++) {
    uint32_t which;
    copy[i] = operands[i];
    if (copy[i].kind == PTX_OPERAND_SREG && ptx_window_sreg(copy[i].sreg, &which)) copy[i] = reg_operand(c->first_reg + which);
    if (copy[i].kind == PTX_OPERAND_LABEL) copy[i].label += c->shift;
    if (copy[i].symbol && copy[i].symbol->var && copy[i].symbol->var->func == c->from)
      copy[i].symbol = &c->to->vars[copy[i].symbol->var->index]->symbol;
    copy[i].elements = copy_operands(c, operands[i].elements, operands[i].element_count);
  }
  return copy;
}

/* ---- instructions ---- */

static ptx_instr *add_instr(copier *c, ptx_opcode opcode, ptx_type type, uint32_t operand_count) {
  ptx_instr *instr = &c->to->instrs[c->to->instr_count++];
  *instr = (ptx_instr){.opcode = opcode, .place = c->from->place, .guard = PTX_NO_REG, .operand_count = (uint8_t)operand_count, .vector = 1};
  instr->operands = ff_arena_alloc(&c->m->arena, operand_count * sizeof *instr->operands);
  instr->types[instr->type_count++] = type;
  instr->type_words = 1;
  return instr;
}

static void add_param_load(copier *c, uint32_t word, const ptx_var *param) {
  ptx_instr *load = add_instr(c, PTX_OP_LD, PTX_U32, 2);
  load->mods[load->mod_count++] = PTX_MOD_PARAM;
  load->mod_set[PTX_MOD_PARAM / 64] |= UINT64_C(1) << (PTX_MOD_PARAM % 64);
  load->type_words = 2; /* the second of ld.param.u32 */
  load->operands[0] = reg_operand(c->first_reg + word);
  load->operands[1] = no_operand(PTX_OPERAND_ADDRESS);
  load->operands[1].symbol = &param->symbol;
}

/* In a kernel the offset becomes the block's index in the whole grid; a function is passed that. */
static void add_block_index(copier *c, uint32_t dimension, uint32_t scratch) {
  ptx_instr *read = add_instr(c, PTX_OP_MOV, PTX_U32, 2);
  read->operands[0] = reg_operand(scratch);
  read->operands[1] = no_operand(PTX_OPERAND_SREG);
  read->operands[1].sreg = ctaid[dimension];
  ptx_instr *add = add_instr(c, PTX_OP_ADD, PTX_U32, 3);
  add->operands[0] = add->operands[1] = reg_operand(c->first_reg + dimension);
  add->operands[2] = reg_operand(scratch);
}

/* mov.u16 takes a special register's low half; of a register that is a conversion. */
static void narrow(const ptx_instr *from, ptx_instr *to) {
  uint32_t which;
  if (from->opcode != PTX_OP_MOV || from->operand_count != 2 || from->type_count != 1 || ptx_type_bits(from->types[0]) != 16) return;
  if (from->operands[1].kind != PTX_OPERAND_SREG || !ptx_window_sreg(from->operands[1].sreg, &which)) return;
  to->opcode = PTX_OP_CVT;
  to->types[0] = PTX_U16;
  to->types[to->type_count++] = PTX_U32;
  to->type_words |= 1u << (to->mod_count + to->type_count - 1);
}

/* A call of a copied function: the copy, with six more arguments. */
static void redirect(copier *c, ptx_instr *instr) {
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
    more[at + 1] = no_operand(PTX_OPERAND_LIST);
    memcpy(more + at + 2, instr->operands + at + 1, (instr->operand_count - at - 1u) * sizeof *more);
    instr->operands = more;
    instr->operand_count++;
  }
  ptx_operand *list = &instr->operands[at + 1];
  ptx_operand *elements = ff_arena_alloc(&c->m->arena, (list->element_count + WORDS) * sizeof *elements);
  if (list->element_count) memcpy(elements, list->elements, list->element_count * sizeof *elements);
  for (uint32_t word = 0; word < WORDS; word++) elements[list->element_count + word] = reg_operand(c->first_reg + word);
  list->elements = elements;
  list->element_count += WORDS;
}

static void copy_body(copier *c, const ptx_var *const *params) {
  ptx_func *to = c->to;
  to->instrs = ff_arena_alloc(&c->m->arena, (c->from->instr_count + WORDS + PROLOGUE_MOST) * sizeof *to->instrs);
  to->instr_count = 0;
  for (uint32_t word = 0; word < WORDS; word++) add_param_load(c, word, params[word]);
  for (uint32_t dimension = 0; dimension < 3 && to->entry; dimension++) add_block_index(c, dimension, c->first_reg + WORDS);
  c->shift = to->instr_count;
  for (uint32_t i = 0; i < c->from->instr_count; i++) {
    const ptx_instr *from = &c->from->instrs[i];
    ptx_instr *instr = &to->instrs[to->instr_count++];
    *instr = *from;
    instr->operands = copy_operands(c, from->operands, from->operand_count);
    narrow(from, instr);
    if (instr->opcode == PTX_OP_CALL) redirect(c, instr);
  }
  to->labels = ff_arena_alloc(&c->m->arena, (to->label_count + 1) * sizeof *to->labels);
  for (uint32_t i = 0; i < to->label_count; i++) {
    to->labels[i] = c->from->labels[i];
    to->labels[i].at += c->shift;
  }
}

/* ---- functions ---- */

static ptx_var *new_param(maker *m, ptx_func *func, uint32_t word) {
  ptx_var *var = ff_arena_alloc(&m->arena, sizeof *var);
  *var = (ptx_var){.name = word_names[word], .place = func->place, .space = PTX_SPACE_PARAM, .type = PTX_U32, .vector = 1, .align = 4,
                   .size = 4, .reg = PTX_NO_REG, .func = func};
  var->symbol = (ptx_symbol){var->name, var, NULL};
  return var;
}

/* The new parameters are the last of the parameters, and stand behind everything in the list of variables: their order there is
 * put right at the end, so that the index of each variable is that of its original meanwhile. */
static void copy_variables(maker *m, const ptx_func *from, ptx_func *to, ptx_var **added) {
  to->vars = ff_arena_alloc(&m->arena, (from->var_count + WORDS) * sizeof *to->vars);
  for (uint32_t i = 0; i < from->var_count; i++) {
    ptx_var *var = ff_arena_alloc(&m->arena, sizeof *var);
    *var = *from->vars[i];
    var->func = to;
    var->symbol.var = var;
    to->vars[i] = var;
  }
  to->params = ff_arena_alloc(&m->arena, (from->param_count + WORDS) * sizeof *to->params);
  to->results = ff_arena_alloc(&m->arena, (from->result_count + 1) * sizeof *to->results);
  for (uint32_t i = 0; i < from->param_count; i++) to->params[i] = to->vars[from->params[i]->index];
  for (uint32_t i = 0; i < from->result_count; i++) to->results[i] = to->vars[from->results[i]->index];
  for (uint32_t word = 0; word < WORDS; word++) to->params[from->param_count + word] = added[word] = new_param(m, to, word);
  to->param_count += WORDS;
}

/* Parameters and results first, as in every function. */
static void order_variables(ptx_func *to, uint32_t old_count, uint32_t headed, ptx_var **added) {
  for (uint32_t i = old_count; i > headed; i--) to->vars[i - 1 + WORDS] = to->vars[i - 1];
  memcpy(to->vars + headed, added, WORDS * sizeof *added);
  to->var_count = old_count + WORDS;
  for (uint32_t i = 0; i < to->var_count; i++) to->vars[i]->index = i;
}

static void add_registers(maker *m, const ptx_func *from, ptx_func *to) {
  static const char *const reg_names[WORDS + 1] = {"%window_block_x", "%window_block_y", "%window_block_z", "%window_grid_x",
                                                   "%window_grid_y", "%window_grid_z", "%window_part"};
  to->reg_count = from->reg_count + WORDS + 1;
  to->regs = ff_arena_alloc(&m->arena, to->reg_count * sizeof *to->regs);
  if (from->reg_count) memcpy(to->regs, from->regs, from->reg_count * sizeof *to->regs);
  for (uint32_t word = 0; word <= WORDS; word++)
    to->regs[from->reg_count + word] = (ptx_reg){reg_names[word], PTX_U32, 1};
}

static bool is_taken(const maker *m, const char *name) {
  return ff_map_get(&m->names, name) || ptx_find_func(m->module, name) || ptx_find_var(m->module, name);
}

static const char *free_name(maker *m, const char *name) {
  size_t room = strlen(name) + NAME_ROOM;
  char *made = ff_arena_alloc(&m->arena, room);
  snprintf(made, room, "%s__window", name);
  for (uint32_t n = 2; is_taken(m, made); n++) snprintf(made, room, "%s__window%u", name, n);
  return made;
}

/* The shell of a copy, so that others can call it. */
static void announce(maker *m, const ptx_func *from) {
  ptx_func *to = ff_arena_alloc(&m->arena, sizeof *to);
  *to = *from;
  to->name = free_name(m, from->name);
  to->linkage = from->entry ? PTX_LINK_VISIBLE : PTX_LINK_NONE;
  to->symbol = (ptx_symbol){to->name, NULL, to};
  to->index = (uint32_t)m->funcs.count;
  m->copies[from->index] = to;
  ff_map_set(&m->names, to->name, to);
  FF_PUSH(&m->funcs, to);
}

static void fill(maker *m, const ptx_func *from) {
  ptx_func *to = m->copies[from->index];
  ptx_var *added[WORDS];
  copy_variables(m, from, to, added);
  add_registers(m, from, to);
  copier c = {m, from, to, from->reg_count, 0};
  copy_body(&c, (const ptx_var *const *)added);
  order_variables(to, from->var_count, from->param_count + from->result_count, added);
}

/* ---- the module ---- */

static bool has_register_parameters(const ptx_func *func) {
  for (uint32_t i = 0; i < func->param_count; i++)
    if (func->params[i]->space == PTX_SPACE_REG) return true;
  return false;
}

/* Functions that the prologue cannot be passed to: an old form of PTX. */
static const char *old_form(const maker *m, ff_arena *arena) {
  for (uint32_t i = 0; i < m->module->func_count; i++) {
    const ptx_func *func = m->module->funcs[i];
    if (func->entry || !func->has_body || !m->facts[i].reads || !has_register_parameters(func)) continue;
    ff_text text = {0};
    ff_text_add(&text, "the function %s reads %%ctaid or %%nctaid and has parameters in registers", func->name);
    const char *reason = ff_arena_strndup(arena, text.chars, text.length);
    free(text.chars);
    return reason;
  }
  return NULL;
}

static void judge(const maker *m, const ptx_func *func, const char *old, ptx_window_kernel *kernel) {
  uint32_t bytes = ptx_param_layout(func, NULL);
  kernel->reason = m->facts[func->index].reason;
  if (!kernel->reason && m->facts[func->index].reads) kernel->reason = old;
  if (!kernel->reason && has_register_parameters(func)) kernel->reason = "its parameters are in registers";
  if (!kernel->reason && (bytes > PARAMETERS_MOST || (bytes + 3) / 4 * 4 + sizeof(ptx_window_params) > PARAMETERS_MOST))
    kernel->reason = "its parameters leave no room for six more (4096 bytes)";
  if (kernel->reason) return;
  kernel->offset = (bytes + 3) / 4 * 4;
  kernel->bytes = kernel->offset + (uint32_t)sizeof(ptx_window_params);
}

static void list_kernels(maker *m, ptx_windows *windows) {
  const ptx_module *module = m->module;
  const char *old = old_form(m, &windows->arena);
  windows->kernels = ff_arena_alloc(&windows->arena, (module->func_count + 1) * sizeof *windows->kernels);
  for (uint32_t i = 0; i < module->func_count; i++) {
    const ptx_func *func = module->funcs[i];
    if (!func->entry || !func->has_body) continue;
    ptx_window_kernel *kernel = &windows->kernels[windows->kernel_count++];
    kernel->name = ff_arena_strndup(&windows->arena, func->name, strlen(func->name));
    judge(m, func, old, kernel);
    if (kernel->reason) continue;
    announce(m, func);
    const char *name = m->copies[i]->name;
    kernel->window_name = ff_arena_strndup(&windows->arena, name, strlen(name));
  }
}

static void make_copies(maker *m) {
  for (uint32_t i = 0; i < m->module->func_count; i++) {
    const ptx_func *func = m->module->funcs[i];
    if (!func->entry && func->has_body && m->facts[i].reads && !has_register_parameters(func)) announce(m, func);
  }
  for (uint32_t i = 0; i < m->module->func_count; i++)
    if (m->copies[i]) fill(m, m->module->funcs[i]);
}

ptx_windows *ptx_windows_make(const ptx_module *module) {
  ptx_windows *windows = ff_alloc(sizeof *windows);
  maker m = {.module = module};
  m.facts = ptx_window_facts_find(module, &windows->arena);
  m.copies = ff_alloc((module->func_count + 1) * sizeof *m.copies);
  for (uint32_t i = 0; i < module->func_count; i++) FF_PUSH(&m.funcs, module->funcs[i]);
  list_kernels(&m, windows);
  make_copies(&m);
  ptx_module whole = *module;
  whole.funcs = m.funcs.items;
  whole.func_count = (uint32_t)m.funcs.count;
  ptx_print_module(&whole, &windows->text);
  free(m.funcs.items);
  ff_map_free(&m.names);
  free(m.copies);
  free(m.facts);
  ff_arena_free(&m.arena);
  return windows;
}

void ptx_windows_free(ptx_windows *windows) {
  if (!windows) return;
  free(windows->text.chars);
  ff_arena_free(&windows->arena);
  free(windows);
}

const ptx_window_kernel *ptx_windows_find(const ptx_windows *windows, const char *name) {
  for (uint32_t i = 0; i < windows->kernel_count; i++)
    if (strcmp(windows->kernels[i].name, name) == 0) return &windows->kernels[i];
  return NULL;
}
