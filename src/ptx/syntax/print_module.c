/* SPDX-License-Identifier: Apache-2.0 */
/* A module as PTX text that parses back to the same module.
 *
 * A printed function has one flat scope: what the text declared in inner scopes is declared at the top, and a name that
 * would then stand twice, or hide one of the module's, gets a number behind it. Declarations of functions come first,
 * then variables, then bodies (functions before kernels), so that everything is declared before it is used. That is
 * why printing, parsing and printing again gives the same text, although the first text may have had scopes, comments,
 * pragmas and debugging sections. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ptx/syntax/print.h"

typedef struct writer {
  ptx_printer printer;
  ff_arena arena;   /* names that we make for the function in hand */
  ff_arena lasting; /* and for the module */
  ff_map module;    /* names of the module's things */
  ff_map taken;     /* names given in the function so far: name -> counter */
} writer;

#define put(w, ...) ff_text_add((w)->printer.out, __VA_ARGS__)

/* ---- names ---- */

static bool is_taken(const writer *w, const char *name) {
  return ff_map_get(&w->taken, name) || ff_map_get(&w->module, name);
}

static void take(writer *w, const char *name) {
  uint32_t *counter = ff_arena_alloc(&w->arena, sizeof *counter);
  ff_map_set(&w->taken, name, counter);
}

/* `name` itself if it is free, else name$1, name$2 ...; dots (of %v.x) become underlines. */
static const char *unique_name(writer *w, const char *name) {
  if (strchr(name, '.')) {
    char *plain = ff_arena_strndup(&w->arena, name, strlen(name));
    for (char *c = plain; *c; c++)
      if (*c == '.') *c = '_';
    name = plain;
  }
  if (!is_taken(w, name)) {
    take(w, name);
    return name;
  }
  if (!ff_map_get(&w->taken, name)) take(w, name);
  uint32_t *counter = ff_map_get(&w->taken, name);
  size_t room = strlen(name) + 12;
  char *made = ff_arena_alloc(&w->arena, room);
  do snprintf(made, room, "%s$%u", name, ++*counter);
  while (is_taken(w, made));
  take(w, made);
  return made;
}

/* A .reg parameter and its registers share a name: v, or v.x ... for a vector. */
static void name_register_parameter(writer *w, const ptx_var *var, const char *name) {
  static const char *const parts[] = {".x", ".y", ".z", ".w"};
  if (var->vector == 1) {
    w->printer.reg_names[var->reg] = name;
    return;
  }
  for (uint32_t i = 0; i < var->vector && i < 4; i++) {
    size_t room = strlen(name) + 3;
    char *made = ff_arena_alloc(&w->arena, room);
    snprintf(made, room, "%s%s", name, parts[i]);
    w->printer.reg_names[var->reg + i] = made;
  }
}

static void name_everything(writer *w, const ptx_func *func) {
  ptx_printer *p = &w->printer;
  p->func = func;
  p->reg_names = ff_arena_alloc(&w->arena, (func->reg_count + 1) * sizeof *p->reg_names);
  p->var_names = ff_arena_alloc(&w->arena, (func->var_count + 1) * sizeof *p->var_names);
  p->label_names = ff_arena_alloc(&w->arena, ((size_t)func->instr_count + 1) * sizeof *p->label_names);
  for (uint32_t i = 0; i < func->var_count; i++) {
    p->var_names[i] = unique_name(w, func->vars[i]->name);
    if (func->vars[i]->space == PTX_SPACE_REG) name_register_parameter(w, func->vars[i], p->var_names[i]);
  }
  for (uint32_t i = 0; i < func->reg_count; i++)
    if (!p->reg_names[i]) p->reg_names[i] = unique_name(w, func->regs[i].name);
  for (uint32_t i = 0; i < func->label_count; i++) {
    const ptx_label *label = &func->labels[i];
    if (!p->label_names[label->at]) p->label_names[label->at] = unique_name(w, label->name);
  }
}

static void forget_names(writer *w) {
  ff_map_free(&w->taken);
  ff_arena_free(&w->arena);
  ptx_printer old = w->printer;
  w->printer = (ptx_printer){.out = old.out, .global_names = old.global_names, .func_names = old.func_names};
}

/* After linking, private things of different modules may share a name: the later ones get a number behind it. Things
 * that other modules can see keep theirs. */
static const char *module_name(writer *w, const char *name, bool private) {
  uint32_t number = 0;
  const char *made = name;
  while (private && ff_map_get(&w->module, made)) {
    size_t room = strlen(name) + 12;
    char *text = ff_arena_alloc(&w->lasting, room);
    snprintf(text, room, "%s$%u", name, ++number);
    made = text;
  }
  ff_map_set(&w->module, made, (void *)(uintptr_t)name);
  return made;
}

static void name_module(writer *w, const ptx_module *module) {
  ptx_printer *p = &w->printer;
  p->global_names = ff_arena_alloc(&w->lasting, (module->var_count + 1) * sizeof *p->global_names);
  p->func_names = ff_arena_alloc(&w->lasting, (module->func_count + 1) * sizeof *p->func_names);
  for (int private = 0; private < 2; private ++) {
    for (uint32_t i = 0; i < module->var_count; i++)
      if ((module->vars[i]->linkage == PTX_LINK_NONE) == private)
        p->global_names[i] = module_name(w, module->vars[i]->name, private);
    for (uint32_t i = 0; i < module->func_count; i++)
      if ((module->funcs[i]->linkage == PTX_LINK_NONE) == private)
        p->func_names[i] = module_name(w, module->funcs[i]->name, private);
  }
}

/* ---- variables ---- */

static const char *space_text(ptx_space space) {
  static const char *const texts[] = {"", "reg", "sreg", "const", "global", "local", "param", "shared", "tex"};
  return texts[space];
}

static uint32_t element_bytes(const ptx_var *var) {
  uint32_t bits = ptx_type_bits(var->type);
  return ((bits ? bits : 64) + 7) / 8;
}

static uint32_t natural_align(const ptx_var *var) {
  uint32_t bytes = element_bytes(var) * var->vector;
  return bytes > 16 ? 16 : bytes;
}

/* .param .align 8 .b8 name[16] */
static void put_declaration(writer *w, const ptx_var *var, const char *name) {
  put(w, ".%s", space_text(var->space));
  if (var->managed) put(w, " .attribute(.managed)");
  if (var->align != natural_align(var)) put(w, " .align %u", var->align);
  if (var->vector > 1) put(w, " .v%u", var->vector);
  put(w, " .%s", ptx_type_text(var->type));
  if (var->pointer) put(w, " .ptr");
  put(w, " %s", name);
  uint64_t element = (uint64_t)element_bytes(var) * var->vector;
  if (var->unsized) put(w, "[]");
  else if (var->size != element) put(w, "[%" PRIu64 "]", var->size / element);
}

static double half_value(uint16_t bits) {
  uint32_t exponent = bits >> 10 & 31, fraction = bits & 1023;
  double magnitude = exponent ? ldexp(1024 + fraction, (int)exponent - 25) : ldexp(fraction, -24);
  if (exponent == 31) magnitude = fraction ? NAN : INFINITY;
  return bits >> 15 ? -magnitude : magnitude;
}

static void put_number(writer *w, const ptx_var *var, uint64_t at) {
  uint64_t bits = 0;
  uint32_t width = element_bytes(var);
  memcpy(&bits, var->data + at, width > 8 ? 8 : width);
  switch (var->type) {
  case PTX_F16: {
    double number = half_value((uint16_t)bits);
    memcpy(&bits, &number, sizeof bits);
  }
    /* fall through */
  case PTX_F64: put(w, "0d%016" PRIX64, bits); break;
  case PTX_BF16: bits <<= 16; /* fall through */
  case PTX_F32:
  case PTX_F16X2:
  case PTX_BF16X2: put(w, "0f%08" PRIX64, bits); break;
  default: put(w, "%" PRIu64, bits);
  }
}

static void put_init(writer *w, const ptx_init *init) {
  const char *name = ptx_printed_symbol(&w->printer, init->symbol);
  if (init->bytes == 1) put(w, "0x%" PRIX64 "(", UINT64_C(0xff) << init->shift);
  put(w, init->generic ? "generic(%s)" : "%s", name);
  if (init->offset < 0) put(w, "-%" PRIu64, 0 - (uint64_t)init->offset);
  else if (init->offset) put(w, "+%" PRId64, init->offset);
  if (init->bytes == 1) put(w, ")");
}

/* One past the last byte that is not zero. */
static uint64_t used_bytes(const ptx_var *var) {
  uint64_t used = var->size;
  while (used && !var->data[used - 1]) used--;
  if (var->init_count) {
    const ptx_init *last = &var->inits[var->init_count - 1];
    if (used < last->at + last->bytes) used = last->at + last->bytes;
  }
  return used;
}

static void put_initial(writer *w, const ptx_var *var) {
  if (!var->data) return;
  uint32_t width = element_bytes(var), next = 0;
  uint64_t used = used_bytes(var);
  bool braces = var->size != width;
  put(w, braces ? " = {" : " = ");
  for (uint64_t at = 0; at < used || (at == 0 && var->size); at += width) {
    if (at) put(w, ", ");
    if (next < var->init_count && var->inits[next].at == at) put_init(w, &var->inits[next++]);
    else put_number(w, var, at);
  }
  if (braces) put(w, "}");
}

static const char *linkage_text(ptx_linkage linkage) {
  static const char *const texts[] = {"", ".extern ", ".visible ", ".weak ", ".common "};
  return texts[linkage];
}

static void put_module_variable(writer *w, const ptx_var *var) {
  put(w, "%s", linkage_text(var->linkage));
  put_declaration(w, var, w->printer.global_names[var->index]);
  put_initial(w, var);
  put(w, ";\n");
}

/* ---- registers ---- */

/* The length of NAME if it is a name and "0", as the first of a range; 0 otherwise. */
static size_t range_prefix(const char *name) {
  size_t length = strlen(name);
  if (length < 2 || name[length - 1] != '0') return 0;
  char before = name[length - 2];
  return before >= '0' && before <= '9' ? 0 : length - 1;
}

/* How many registers from `first` on are called prefix0, prefix1, ... and have one type. */
static uint32_t range_length(const writer *w, const ptx_func *func, uint32_t first, size_t prefix) {
  const char *const *names = w->printer.reg_names;
  uint32_t count = 0;
  for (uint32_t reg = first; reg < func->reg_count && func->regs[reg].type == func->regs[first].type; reg++, count++) {
    char digits[12];
    snprintf(digits, sizeof digits, "%u", count);
    if (strncmp(names[reg], names[first], prefix) != 0 || strcmp(names[reg] + prefix, digits) != 0) break;
  }
  return count;
}

static void put_registers(writer *w, const ptx_func *func) {
  uint32_t reg = 0;
  for (uint32_t i = 0; i < func->var_count; i++) /* .reg parameters come first and are declared by the header */
    if (func->vars[i]->space == PTX_SPACE_REG) reg += func->vars[i]->vector;
  while (reg < func->reg_count) {
    const char *name = w->printer.reg_names[reg], *type = ptx_type_text(func->regs[reg].type);
    size_t prefix = range_prefix(name);
    uint32_t count = prefix ? range_length(w, func, reg, prefix) : 1;
    if (count > 1) put(w, "\t.reg .%s %.*s<%u>;\n", type, (int)prefix, name, count);
    else put(w, "\t.reg .%s %s;\n", type, name);
    reg += count;
  }
}

/* ---- functions ---- */

static void put_parameters(writer *w, ptx_var **vars, uint32_t count, bool named) {
  put(w, "(");
  for (uint32_t i = 0; i < count; i++) {
    const char *name = !named ? "_" : w->printer.var_names ? w->printer.var_names[vars[i]->index] : vars[i]->name;
    put(w, "%s", i ? ", " : "");
    put_declaration(w, vars[i], name);
  }
  put(w, ")");
}

static void put_dimensions(writer *w, const char *directive, const uint32_t dims[3]) {
  if (dims[0] || dims[1] || dims[2]) put(w, "\n.%s %u, %u, %u", directive, dims[0], dims[1], dims[2]);
}

static void put_header(writer *w, const ptx_func *func, bool body) {
  put(w, "%s%s ", linkage_text(func->linkage), func->entry ? ".entry" : ".func");
  if (func->result_count) {
    put_parameters(w, func->results, func->result_count, true);
    put(w, " ");
  }
  put(w, "%s", w->printer.func_names[func->index]);
  put_parameters(w, func->params, func->param_count, true);
  if (func->noreturn) put(w, " .noreturn");
  if (!body && !func->entry) return;
  put_dimensions(w, "maxntid", func->maxntid);
  put_dimensions(w, "reqntid", func->reqntid);
  put_dimensions(w, "reqnctapercluster", func->cluster);
  if (func->minnctapersm) put(w, "\n.minnctapersm %u", func->minnctapersm);
  if (func->maxnreg) put(w, "\n.maxnreg %u", func->maxnreg);
}

static void put_local_variables(writer *w, const ptx_func *func) {
  for (uint32_t i = func->param_count + func->result_count; i < func->var_count; i++) {
    put(w, "\t");
    put_declaration(w, func->vars[i], w->printer.var_names[i]);
    put_initial(w, func->vars[i]);
    put(w, ";\n");
  }
}

static void put_target_list(writer *w, const ptx_operand *operand) {
  bool calls = operand->element_count && operand->elements[0].kind == PTX_OPERAND_SYMBOL;
  put(w, calls ? ".calltargets " : ".branchtargets ");
  for (uint32_t i = 0; i < operand->element_count; i++) {
    if (i) put(w, ", ");
    ptx_put_operand(&w->printer, &operand->elements[i]);
  }
  put(w, ";\n");
}

/* In front of an instruction: the prototype or the list of targets that it names. */
static void put_list(writer *w, const ptx_operand *operand, const char *name) {
  const ptx_prototype *prototype = operand->prototype;
  w->printer.list_name = name;
  put(w, "%s: ", name);
  if (operand->kind == PTX_OPERAND_LABELS) {
    put_target_list(w, operand);
    return;
  }
  put(w, ".callprototype ");
  put_parameters(w, prototype->results, prototype->result_count, false);
  put(w, " _ ");
  put_parameters(w, prototype->params, prototype->param_count, false);
  put(w, ";\n");
}

static void put_statement(writer *w, const ptx_instr *instr) {
  const ptx_operand *last = instr->operand_count ? &instr->operands[instr->operand_count - 1] : NULL;
  if (last && (last->kind == PTX_OPERAND_LABELS || last->kind == PTX_OPERAND_PROTOTYPE))
    put_list(w, last, unique_name(w, "$list"));
  put(w, "\t");
  ptx_put_instr(&w->printer, instr);
  put(w, "\n");
}

static void put_body(writer *w, const ptx_func *func) {
  uint32_t file = 0, line = 0, label = 0;
  put(w, "\n{\n");
  put_registers(w, func);
  put_local_variables(w, func);
  for (uint32_t i = 0; i <= func->instr_count; i++) {
    if (label < func->label_count && func->labels[label].at == i) put(w, "%s:\n", w->printer.label_names[i]);
    while (label < func->label_count && func->labels[label].at == i) label++;
    if (i == func->instr_count) break;
    const ptx_instr *instr = &func->instrs[i];
    if (instr->source_file != file || instr->source_line != line) {
      file = instr->source_file;
      line = instr->source_line;
      put(w, "\t.loc %u %u 0\n", file, line);
    }
    put_statement(w, instr);
  }
  put(w, "}\n");
}

static void put_function(writer *w, const ptx_func *func) {
  if (!func->has_body) return;
  name_everything(w, func);
  put(w, "\n");
  put_header(w, func, true);
  put_body(w, func);
  forget_names(w);
}

/* ---- the whole ---- */

static void put_head(writer *w, const ptx_module *module) {
  put(w, ".version %u.%u\n", module->version_major, module->version_minor);
  if (module->target) {
    put(w, ".target sm_%u", module->target);
    if (module->target_suffix) put(w, "%c", module->target_suffix);
    put(w, "\n");
  }
  put(w, ".address_size %u\n\n", module->address_size);
  for (uint32_t i = 0; i < module->file_count; i++)
    if (module->files[i]) put(w, ".file %u \"%s\"\n", i, module->files[i]);
}

void ptx_print_module(const ptx_module *module, ff_text *out) {
  writer w = {.printer = {.out = out}};
  put_head(&w, module);
  name_module(&w, module);
  for (uint32_t i = 0; i < module->func_count; i++) {
    const ptx_func *func = module->funcs[i];
    if (func->entry && func->has_body) continue;
    if (func->has_body) name_everything(&w, func); /* parameters are called as in the definition that follows */
    put_header(&w, func, false);
    put(&w, ";\n");
    if (func->has_body) forget_names(&w);
  }
  for (uint32_t i = 0; i < module->var_count; i++) put_module_variable(&w, module->vars[i]);
  for (uint32_t i = 0; i < module->func_count; i++)
    if (!module->funcs[i]->entry) put_function(&w, module->funcs[i]);
  for (uint32_t i = 0; i < module->func_count; i++)
    if (module->funcs[i]->entry) put_function(&w, module->funcs[i]);
  for (uint32_t i = 0; i < module->func_count; i++)
    if (module->funcs[i]->alias)
      put(&w, ".alias %s, %s;\n", w.printer.func_names[i], w.printer.func_names[module->funcs[i]->alias->index]);
  ff_map_free(&w.module);
  ff_arena_free(&w.lasting);
}
