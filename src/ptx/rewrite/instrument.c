/* SPDX-License-Identifier: Apache-2.0 */
/* Adds to a module, for each kernel, a second one that checks its accesses.
 *
 *   @p ld.global.f32 d, [a+8];    becomes    add.s64 address, a, 8;  selp.b32 answer, 1, 0, p;
 *                                            call (answer), farfault_check, (table, address, 4, 1, 17, answer);
 *                                            setp.eq good, answer, 1;  setp.eq bad, answer, 2;
 *                                            @good ld.global.f32 d, [a+8];  @bad mov.b32 d, 0;
 *
 * No branch is added, so that control flow stays that of the original. What is made is a module in memory, which is
 * printed: the printer sees to it that no two names clash. Names of copies are the originals' with `__checked` behind
 * them, or a number too if that is taken. */
#include "ptx/rewrite/instrument.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "ptx/rewrite/build.h"
#include "ptx/rewrite/instrument_checker.h"

enum { NAME_ROOM = 24 };
#define PARAMETERS_MAX 4096u /* bytes that every GPU takes; newer ones take 32764 */

/* The registers that a copy has more than its original. */
typedef enum extra { TABLE, ADDRESS, ANSWER, BYTES, ZERO, GOOD, BAD, EXTRAS } extra;
static const struct {
  const char *name;
  ptx_type type;
} extras[EXTRAS] = {{"%check_table", PTX_B64}, {"%check_address", PTX_B64}, {"%check_answer", PTX_B32},
                    {"%check_bytes", PTX_B32}, {"%check_zero", PTX_B64},    {"%check_good", PTX_PRED},
                    {"%check_bad", PTX_PRED}};

typedef struct maker {
  const ptx_module *module;
  ptx_checked *checked;
  ff_arena arena; /* of the copies */
  ptx_check_facts *facts;
  ptx_func **copies;        /* per function of the module; NULL: not copied */
  ff_map names;             /* of the copies */
  FF_VEC(ptx_func *) funcs; /* of the new module */
  FF_VEC(ptx_check_site) sites;
  ptx_module *checker;
  ptx_func *check; /* the checking function; of the new module */
} maker;

typedef struct copier { /* of one function's body */
  maker *m;
  const ptx_func *from;
  ptx_func *to;
  FF_VEC(ptx_instr) instrs;
  const ptx_instr *original; /* what is being copied; NULL: the prologue */
} copier;

/* ---- operands ---- */

static ptx_operand extra_operand(const copier *c, extra which) { return ptx_build_reg(c->from->reg_count + which); }

static ptx_operand list_operand(copier *c, const ptx_operand *elements, uint32_t count) {
  return ptx_build_list(&c->m->arena, PTX_OPERAND_LIST, elements, count);
}

/* Symbols of the function's own variables become those of the copy. Labels are put right when all is copied. */
static ptx_operand *copy_operands(copier *c, const ptx_operand *operands, uint32_t count) {
  if (!count) return NULL;
  ptx_operand *copy = ff_arena_alloc(&c->m->arena, count * sizeof *copy);
  for (uint32_t i = 0; i < count; i++) {
    copy[i] = operands[i];
    if (copy[i].symbol && copy[i].symbol->var && copy[i].symbol->var->func == c->from)
      copy[i].symbol = &c->to->vars[copy[i].symbol->var->index]->symbol;
    copy[i].elements = copy_operands(c, operands[i].elements, operands[i].element_count);
  }
  return copy;
}

/* ---- instructions ---- */

/* opcode: "add.s64". */
static ptx_instr *add(copier *c, const char *opcode, const ptx_operand *operands, uint32_t count) {
  ptx_instr instr = ptx_build_instr(&c->m->arena, opcode, operands, count);
  instr.place = c->original ? c->original->place : c->from->place;
  if (c->original) {
    instr.source_file = c->original->source_file;
    instr.source_line = c->original->source_line;
  }
  FF_PUSH(&c->instrs, instr);
  return &c->instrs.items[c->instrs.count - 1];
}

#define ADD(c, opcode, ...)                          \
  add(c, opcode, (const ptx_operand[]){__VA_ARGS__}, \
      (uint32_t)(sizeof((const ptx_operand[]){__VA_ARGS__}) / sizeof(ptx_operand)))

static void add_address(copier *c, const ptx_operand *address) {
  ptx_operand target = extra_operand(c, ADDRESS);
  if (address->reg != PTX_NO_REG) {
    ADD(c, "add.s64", target, ptx_build_reg(address->reg), ptx_build_int((uint64_t)address->offset));
    return;
  }
  ptx_operand base = ptx_build_int((uint64_t)address->offset);
  if (address->symbol) {
    base = ptx_build_symbol(address->symbol);
    base.offset = address->offset;
    if (base.symbol->var && base.symbol->var->func == c->from)
      base.symbol = &c->to->vars[base.symbol->var->index]->symbol;
  }
  ADD(c, "mov.u64", target, base);
}

static void add_call(copier *c, const ptx_check_access *access) {
  ptx_operand active = ptx_build_int(1), bytes = ptx_build_int(access->bytes), answer = extra_operand(c, ANSWER);
  uint32_t what = access->need | (access->generic ? (uint32_t)PTX_CHECK_GENERIC : 0u);
  if (c->original->guard != PTX_NO_REG) {
    bool negated = c->original->guard_negated;
    ADD(c, "selp.b32", answer, ptx_build_int(!negated), ptx_build_int(negated), ptx_build_reg(c->original->guard));
    active = answer;
  }
  if (access->size) {
    bytes = extra_operand(c, BYTES);
    ADD(c, "min.u32", bytes, ptx_build_reg(access->size->reg), ptx_build_int(access->bytes));
  }
  ptx_operand arguments[] = {extra_operand(c, TABLE), extra_operand(c, ADDRESS),        bytes,
                             ptx_build_int(what),     ptx_build_int(c->m->sites.count), active};
  ADD(c, "call", list_operand(c, &answer, 1), ptx_build_symbol(&c->m->check->symbol), list_operand(c, arguments, 6));
  ADD(c, "setp.eq.u32", extra_operand(c, GOOD), answer, ptx_build_int(1));
  FF_PUSH(&c->m->sites, ((ptx_check_site){c->from, c->original}));
}

/* The register is 0 where the access was refused. */
static void add_zero(copier *c, const ptx_operand *target) {
  if (target->kind != PTX_OPERAND_REG || target->reg == PTX_NO_REG) return;
  uint32_t bits = ptx_type_bits(c->from->regs[target->reg].type);
  ptx_operand zero = extra_operand(c, ZERO);
  ptx_instr *made;
  if (bits == 128) {
    ADD(c, "mov.u64", zero, ptx_build_int(0));
    ptx_operand halves = list_operand(c, (const ptx_operand[]){zero, zero}, 2);
    halves.kind = PTX_OPERAND_VECTOR;
    made = ADD(c, "mov.b128", *target, halves);
  } else if (bits == 8) {
    ADD(c, "mov.u64", zero, ptx_build_int(0));
    made = ADD(c, "cvt.u8.u64", *target, zero);
  } else if (bits == 16 || bits == 32 || bits == 64) {
    made = ADD(c, bits == 16 ? "mov.b16" : bits == 32 ? "mov.b32" : "mov.b64", *target, ptx_build_int(0));
  } else {
    return;
  }
  made->guard = c->from->reg_count + BAD;
}

static void copy_plain(copier *c, const ptx_instr *from) {
  ptx_instr copy = *from;
  copy.operands = copy_operands(c, from->operands, from->operand_count);
  FF_PUSH(&c->instrs, copy);
}

static void copy_access(copier *c, const ptx_instr *from, const ptx_check_access *access) {
  const ptx_operand *target = from->operands;
  add_address(c, access->address);
  add_call(c, access);
  if (access->loads) ADD(c, "setp.eq.u32", extra_operand(c, BAD), extra_operand(c, ANSWER), ptx_build_int(2));
  copy_plain(c, from);
  ptx_instr *copied = &c->instrs.items[c->instrs.count - 1];
  copied->guard = c->from->reg_count + GOOD;
  copied->guard_negated = false;
  if (!access->loads) return;
  if (target->kind != PTX_OPERAND_VECTOR) add_zero(c, target);
  else
    for (uint32_t e = 0; e < target->element_count; e++) add_zero(c, &target->elements[e]);
}

/* A call of a copied function: the copy, with the table behind the other arguments. */
static void copy_call(copier *c, const ptx_instr *from) {
  ptx_call parts = ptx_call_parts(from);
  ptx_func *copy = parts.callee && parts.callee->symbol && parts.callee->symbol->func
                       ? c->m->copies[parts.callee->symbol->func->index]
                       : NULL;
  copy_plain(c, from);
  if (!copy || copy->entry) return;
  ptx_instr *call = &c->instrs.items[c->instrs.count - 1];
  uint32_t at = parts.results != NULL, count = parts.arguments ? parts.arguments->element_count : 0;
  ptx_operand *elements = ff_arena_alloc(&c->m->arena, (count + 1) * sizeof *elements);
  if (count) memcpy(elements, call->operands[at + 1].elements, count * sizeof *elements);
  elements[count] = extra_operand(c, TABLE);
  ptx_operand *operands = ff_arena_alloc(&c->m->arena, (at + 2) * sizeof *operands);
  if (at) operands[0] = call->operands[0];
  operands[at] = ptx_build_symbol(&copy->symbol);
  operands[at + 1] = ptx_build_operand(PTX_OPERAND_LIST);
  operands[at + 1].elements = elements;
  operands[at + 1].element_count = count + 1;
  call->operands = operands;
  call->operand_count = (uint8_t)(at + 2);
}

/* ---- bodies ---- */

static void move_labels(ptx_operand *operands, uint32_t count, const uint32_t *where) {
  for (uint32_t i = 0; i < count; i++) {
    if (operands[i].kind == PTX_OPERAND_LABEL) operands[i].label = where[operands[i].label];
    move_labels(operands[i].elements, operands[i].element_count, where);
  }
}

static void copy_instr(copier *c, const ptx_instr *from) {
  ptx_check_access access;
  c->original = from;
  if (from->opcode == PTX_OP_CALL) copy_call(c, from);
  else if (ptx_check_access_of(from, &access)) copy_access(c, from, &access);
  else copy_plain(c, from);
}

static void copy_body(copier *c, const ptx_var *table) {
  const ptx_func *from = c->from;
  ptx_func *to = c->to;
  uint32_t *where = ff_alloc((from->instr_count + (size_t)1) * sizeof *where);
  ptx_operand address = ptx_build_operand(PTX_OPERAND_ADDRESS);
  address.symbol = &table->symbol;
  ADD(c, "ld.param.u64", extra_operand(c, TABLE), address);
  for (uint32_t i = 0; i < from->instr_count; i++) {
    where[i] = (uint32_t)c->instrs.count;
    copy_instr(c, &from->instrs[i]);
  }
  where[from->instr_count] = (uint32_t)c->instrs.count;
  for (size_t n = 0; n < c->instrs.count; n++)
    move_labels(c->instrs.items[n].operands, c->instrs.items[n].operand_count, where);
  to->labels = ff_arena_alloc(&c->m->arena, (from->label_count + (size_t)1) * sizeof *to->labels);
  for (uint32_t i = 0; i < from->label_count; i++)
    to->labels[i] = (ptx_label){from->labels[i].name, where[from->labels[i].at]};
  to->instr_count = (uint32_t)c->instrs.count;
  to->instrs = ff_arena_alloc(&c->m->arena, (c->instrs.count + 1) * sizeof *to->instrs);
  memcpy(to->instrs, c->instrs.items, c->instrs.count * sizeof *to->instrs);
  free(c->instrs.items);
  free(where);
}

/* ---- functions ---- */

static ptx_var *copy_variable(maker *m, const ptx_var *from, ptx_func *to, uint32_t index) {
  ptx_var *var = ff_arena_alloc(&m->arena, sizeof *var);
  *var = *from;
  var->func = to;
  var->symbol = (ptx_symbol){var->name, var, NULL};
  var->index = index;
  to->vars[index] = var;
  return var;
}

/* The table's address is the last variable; order_variables puts it behind the parameters, where the printer expects
 * it. */
static ptx_var *copy_variables(maker *m, const ptx_func *from, ptx_func *to) {
  const ptx_var table = {.name = "check_table",
                         .place = from->place,
                         .space = PTX_SPACE_PARAM,
                         .type = PTX_U64,
                         .vector = 1,
                         .align = 8,
                         .size = 8,
                         .reg = PTX_NO_REG};
  to->vars = ff_arena_alloc(&m->arena, (from->var_count + (size_t)1) * sizeof *to->vars);
  to->params = ff_arena_alloc(&m->arena, (from->param_count + (size_t)1) * sizeof *to->params);
  to->results = ff_arena_alloc(&m->arena, (from->result_count + (size_t)1) * sizeof *to->results);
  for (uint32_t i = 0; i < from->var_count; i++) copy_variable(m, from->vars[i], to, i);
  for (uint32_t i = 0; i < from->param_count; i++) to->params[i] = to->vars[from->params[i]->index];
  for (uint32_t i = 0; i < from->result_count; i++) to->results[i] = to->vars[from->results[i]->index];
  ptx_var *added = copy_variable(m, &table, to, from->var_count);
  to->params[to->param_count++] = added;
  to->var_count++;
  return added;
}

/* Parameters and results first, as in every function. */
static void order_variables(ptx_func *to) {
  ptx_var *added = to->vars[to->var_count - 1];
  uint32_t headed = to->param_count - 1 + to->result_count;
  memmove(to->vars + headed + 1, to->vars + headed, (to->var_count - 1 - headed) * sizeof *to->vars);
  to->vars[headed] = added;
  for (uint32_t i = 0; i < to->var_count; i++) to->vars[i]->index = i;
}

static void add_registers(maker *m, const ptx_func *from, ptx_func *to) {
  to->reg_count = from->reg_count + EXTRAS;
  to->regs = ff_arena_alloc(&m->arena, to->reg_count * sizeof *to->regs);
  if (from->reg_count) memcpy(to->regs, from->regs, from->reg_count * sizeof *to->regs);
  for (uint32_t n = 0; n < EXTRAS; n++) to->regs[from->reg_count + n] = (ptx_reg){extras[n].name, extras[n].type, 1};
}

static bool is_taken(const maker *m, const char *name) {
  return ff_map_get(&m->names, name) || ptx_find_func(m->module, name) || ptx_find_var(m->module, name);
}

static const char *free_name(maker *m, const char *name, const char *suffix) {
  size_t room = strlen(name) + NAME_ROOM;
  char *made = ff_arena_alloc(&m->arena, room);
  snprintf(made, room, "%s%s", name, suffix);
  for (uint32_t n = 2; is_taken(m, made); n++) snprintf(made, room, "%s%s%u", name, suffix, n);
  return made;
}

static void enter(maker *m, ptx_func *func) {
  func->symbol = (ptx_symbol){func->name, NULL, func};
  func->index = (uint32_t)m->funcs.count;
  ff_map_set(&m->names, func->name, func);
  FF_PUSH(&m->funcs, func);
}

/* The shell of a copy, so that others can call it. */
static void announce(maker *m, const ptx_func *from) {
  ptx_func *to = ff_arena_alloc(&m->arena, sizeof *to);
  *to = *from;
  to->name = free_name(m, from->name, "__checked");
  to->linkage = from->entry ? PTX_LINK_VISIBLE : PTX_LINK_NONE;
  m->copies[from->index] = to;
  enter(m, to);
}

static void fill(maker *m, const ptx_func *from) {
  copier c = {.m = m, .from = from, .to = m->copies[from->index]};
  ptx_var *table = copy_variables(m, from, c.to);
  add_registers(m, from, c.to);
  copy_body(&c, table);
  order_variables(c.to);
  bool bounded = from->maxntid[0] || from->reqntid[0] || from->maxnreg;
  if (from->entry && !bounded) { /* else its registers may be too many for large blocks */
    c.to->maxntid[0] = 1024;
    c.to->maxntid[1] = c.to->maxntid[2] = 1;
  }
}

/* ---- the checking function ---- */

static bool is_listed(const ptx_var *var) { return var->space == PTX_SPACE_GLOBAL && var->size && !var->unsized; }

static uint32_t count_variables(const ptx_module *module, bool *constants) {
  uint32_t count = 0;
  *constants = false;
  for (uint32_t i = 0; i < module->var_count; i++) {
    count += is_listed(module->vars[i]);
    *constants |= module->vars[i]->space == PTX_SPACE_CONST;
  }
  return count;
}

/* Addresses and sizes of the module's variables, as initial values. */
static void list_variables(maker *m, ptx_var *list, uint32_t count) {
  unsigned char *data = ff_arena_alloc(&m->arena, 16 * (size_t)count);
  list->data = data;
  list->inits = ff_arena_alloc(&m->arena, count * sizeof *list->inits);
  for (uint32_t i = 0; i < m->module->var_count; i++) {
    ptx_var *var = m->module->vars[i];
    if (!is_listed(var)) continue;
    uint64_t at = 16 * (uint64_t)list->init_count;
    memcpy(data + at + 8, &var->size, sizeof var->size);
    list->inits[list->init_count++] = (ptx_init){.at = at, .bytes = 8, .symbol = &var->symbol, .generic = true};
  }
}

static void make_checker(maker *m, ptx_var **list) {
  bool constants;
  uint32_t variables = count_variables(m->module, &constants);
  ff_text text = {0};
  ff_error error;
  ptx_checker_print(m->module, constants, variables, &text);
  ff_status status = ptx_module_parse("check", text.chars, text.length, &m->checker, &error);
  FF_ASSERT(status == FF_OK && m->checker->func_count == 1);
  free(text.chars);
  m->check = m->checker->funcs[0];
  m->check->name = free_name(m, PTX_CHECKER_NAME, "");
  enter(m, m->check);
  *list = variables ? m->checker->vars[0] : NULL;
  if (!variables) return;
  (*list)->name = free_name(m, PTX_CHECKER_VARIABLES, "");
  (*list)->index = m->module->var_count;
  list_variables(m, *list, variables);
}

/* ---- the module ---- */

static uint32_t parameter_bytes(const ptx_func *func) {
  uint64_t at = 0;
  for (uint32_t i = 0; i < func->param_count; i++) {
    const ptx_var *var = func->params[i];
    at = (at + var->align - 1) / var->align * var->align + var->size;
    if (at > PARAMETERS_MAX) return UINT32_MAX;
  }
  return (uint32_t)at;
}

static void judge(const maker *m, const ptx_func *func, ptx_checked_kernel *kernel) {
  uint32_t bytes = parameter_bytes(func);
  kernel->reason = m->facts[func->index].reason;
  kernel->heap = m->facts[func->index].heap;
  if (!kernel->reason && (bytes == UINT32_MAX || (bytes + 7) / 8 * 8 + 8 > PARAMETERS_MAX))
    kernel->reason = "its parameters leave no room for one more (4096 bytes)";
  if (kernel->reason) return;
  kernel->offset = (bytes + 7) / 8 * 8;
  kernel->bytes = kernel->offset + 8;
}

static void list_kernels(maker *m, ptx_checked *checked) {
  const ptx_module *module = m->module;
  checked->kernels = ff_arena_alloc(&checked->arena, (module->func_count + (size_t)1) * sizeof *checked->kernels);
  for (uint32_t i = 0; i < module->func_count; i++) {
    const ptx_func *func = module->funcs[i];
    if (!func->entry || !func->has_body) continue;
    ptx_checked_kernel *kernel = &checked->kernels[checked->kernel_count++];
    kernel->name = ff_arena_strndup(&checked->arena, func->name, strlen(func->name));
    judge(m, func, kernel);
    if (kernel->reason) continue;
    announce(m, func);
    const char *name = m->copies[i]->name;
    kernel->checked_name = ff_arena_strndup(&checked->arena, name, strlen(name));
  }
}

static void make_copies(maker *m) {
  for (uint32_t i = 0; i < m->module->func_count; i++) {
    const ptx_func *func = m->module->funcs[i];
    if (!func->entry && func->has_body && m->facts[i].touches && !m->facts[i].reason) announce(m, func);
  }
  for (uint32_t i = 0; i < m->module->func_count; i++)
    if (m->copies[i]) fill(m, m->module->funcs[i]);
}

static void print(const maker *m, ptx_var *list, ff_text *out) {
  ptx_module whole = *m->module;
  whole.funcs = m->funcs.items;
  whole.func_count = (uint32_t)m->funcs.count;
  whole.vars = ff_alloc((m->module->var_count + (size_t)1) * sizeof *whole.vars);
  if (m->module->var_count) memcpy(whole.vars, m->module->vars, m->module->var_count * sizeof *whole.vars);
  if (list) whole.vars[whole.var_count++] = list;
  ptx_print_module(&whole, out);
  free(whole.vars);
}

ptx_checked *ptx_instrument(const ptx_module *module) {
  ptx_checked *checked = ff_alloc(sizeof *checked);
  maker m = {.module = module, .checked = checked};
  ptx_var *list = NULL;
  m.facts = ptx_check_facts_find(module, &checked->arena);
  m.copies = ff_alloc((module->func_count + (size_t)1) * sizeof *m.copies);
  for (uint32_t i = 0; i < module->func_count; i++) FF_PUSH(&m.funcs, module->funcs[i]);
  list_kernels(&m, checked);
  if (checked->kernel_count) make_checker(&m, &list);
  make_copies(&m);
  print(&m, list, &checked->text);
  checked->site_count = (uint32_t)m.sites.count;
  checked->sites = ff_arena_alloc(&checked->arena, (m.sites.count + 1) * sizeof *checked->sites);
  if (m.sites.count) memcpy(checked->sites, m.sites.items, m.sites.count * sizeof *checked->sites);
  ptx_module_free(m.checker);
  free(m.sites.items);
  free(m.funcs.items);
  ff_map_free(&m.names);
  free(m.copies);
  free(m.facts);
  ff_arena_free(&m.arena);
  return checked;
}

void ptx_checked_free(ptx_checked *checked) {
  if (!checked) return;
  ff_arena_free(&checked->arena);
  free(checked->text.chars);
  free(checked);
}

const ptx_checked_kernel *ptx_checked_find(const ptx_checked *checked, const char *name) {
  for (uint32_t i = 0; i < checked->kernel_count; i++)
    if (strcmp(checked->kernels[i].name, name) == 0) return &checked->kernels[i];
  return NULL;
}
