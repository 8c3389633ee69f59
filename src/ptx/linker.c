/* SPDX-License-Identifier: Apache-2.0 */
/* Linking modules of relocatable device code (PTX ISA, "Linking Directives").
 *
 * Step 1 chooses, for every name that is not private to its module, the definition that counts: a .visible one, else
 * the first .weak, else the largest .common, else the first declaration. Step 2 copies what was chosen, and every
 * module's private things, into the new module. Step 3 copies the bodies and makes every symbol in them, and in
 * initial values, point to the copies.
 *
 * A body that is unread in its module (ptx_module_parse_later) is left so. When it is read, the linked function takes
 * it over, and in the module it is unread again.
 *
 * The inputs are not changed. All symbols in the new module point into it (ptx_module_check); names, registers, labels,
 * initial bytes and operands without symbols are shared with the inputs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "ptx/module.h"

typedef struct thing { /* what one name means after linking; exactly one of var and func is set */
  const ptx_var *var;
  const ptx_func *func;
  uint32_t module;
  ptx_var *new_var;
  ptx_func *new_func;
} thing;

typedef struct ptx_linker {
  ptx_module **modules;
  uint32_t count;
  ptx_module *linked;
  ff_map names; /* name -> thing, for names that modules share */
  ff_arena scratch;
  thing ***vars, ***funcs; /* [module][index] */
  FF_VEC(thing *) order;   /* in order of appearance */
  uint32_t *file_base;     /* of each module: the first number of its files */
  bool lasts;              /* bodies are unread */
  ff_error *error;
} linker;

/* ---- step 1: choosing definitions ---- */

/* How much a definition counts. */
static int var_strength(const ptx_var *var) {
  switch (var->linkage) {
  case PTX_LINK_EXTERN: return 0;
  case PTX_LINK_COMMON: return 1;
  case PTX_LINK_WEAK: return 2;
  default: return 3;
  }
}

static int func_strength(const ptx_func *func) {
  if (!func->has_body && !func->alias) return 0;
  return func->linkage == PTX_LINK_WEAK ? 2 : 3;
}

static thing *new_thing(linker *l, const ptx_var *var, const ptx_func *func, uint32_t module) {
  thing *t = ff_arena_alloc(&l->scratch, sizeof *t);
  *t = (thing){.var = var, .func = func, .module = module};
  FF_PUSH(&l->order, t);
  return t;
}

static ff_status twice(linker *l, const char *name, uint32_t first, uint32_t second, const char *how) {
  return ff_fail(l->error, FF_INVALID, "'%s' is defined %s in %s and in %s", name, how, l->modules[first]->name,
                 l->modules[second]->name);
}

static ff_status choose_var(linker *l, thing *t, const ptx_var *var, uint32_t module) {
  if (!t->var || t->var->space != var->space) return twice(l, var->name, t->module, module, "as different things");
  int old = var_strength(t->var), new = var_strength(var);
  if (old == 3 && new == 3) return twice(l, var->name, t->module, module, "twice:");
  bool larger = old == 1 && new == 1 && var->size > t->var->size;
  if (new > old || larger) {
    t->var = var;
    t->module = module;
  }
  return FF_OK;
}

static bool same_form(const ptx_func *a, const ptx_func *b) {
  if (a->entry != b->entry || a->param_count != b->param_count || a->result_count != b->result_count) return false;
  for (uint32_t i = 0; i < a->param_count; i++)
    if (a->params[i]->size != b->params[i]->size) return false;
  for (uint32_t i = 0; i < a->result_count; i++)
    if (a->results[i]->size != b->results[i]->size) return false;
  return true;
}

static ptx_func *own_func(const linker *l, const ptx_func *func, uint32_t module) {
  return l->modules[module]->funcs[func->index];
}

static ff_status choose_func(linker *l, thing *t, const ptx_func *func, uint32_t module) {
  if (!t->func) return twice(l, func->name, t->module, module, "as different things");
  ff_status status = ptx_func_read_head(own_func(l, t->func, t->module), l->error);
  if (status == FF_OK) status = ptx_func_read_head(own_func(l, func, module), l->error);
  if (status != FF_OK) return status;
  if (!same_form(t->func, func)) return twice(l, func->name, t->module, module, "with different parameters");
  int old = func_strength(t->func), new = func_strength(func);
  if (old == 3 && new == 3) return twice(l, func->name, t->module, module, "twice:");
  if (new > old) {
    t->func = func;
    t->module = module;
  }
  return FF_OK;
}

/* A private thing has no linkage word and is defined here; a bodiless function without one is a declaration. */
static bool is_private(const ptx_var *var, const ptx_func *func) {
  return var ? var->linkage == PTX_LINK_NONE : func->linkage == PTX_LINK_NONE && func_strength(func) > 0;
}

static ff_status meet(linker *l, const ptx_var *var, const ptx_func *func, uint32_t module, thing **meant) {
  const char *name = var ? var->name : func->name;
  bool private = is_private(var, func);
  thing *t = private ? NULL : ff_map_get(&l->names, name);
  if (t) {
    *meant = t;
    return var ? choose_var(l, t, var, module) : choose_func(l, t, func, module);
  }
  *meant = t = new_thing(l, var, func, module);
  if (!private) ff_map_set(&l->names, name, t);
  return FF_OK;
}

static ff_status choose_all(linker *l) {
  for (uint32_t m = 0; m < l->count; m++) {
    const ptx_module *module = l->modules[m];
    if (module->address_size != l->modules[0]->address_size)
      return ff_fail(l->error, FF_INVALID, "%s and %s have different address sizes", l->modules[0]->name, module->name);
    l->vars[m] = ff_arena_alloc(&l->scratch, module->var_count * sizeof **l->vars);
    l->funcs[m] = ff_arena_alloc(&l->scratch, module->func_count * sizeof **l->funcs);
    for (uint32_t i = 0; i < module->var_count; i++) {
      ff_status status = meet(l, module->vars[i], NULL, m, &l->vars[m][i]);
      if (status != FF_OK) return status;
    }
    for (uint32_t i = 0; i < module->func_count; i++) {
      ff_status status = meet(l, NULL, module->funcs[i], m, &l->funcs[m][i]);
      if (status != FF_OK) return status;
    }
  }
  return FF_OK;
}

/* ---- step 2: copies ---- */

static void *linked_alloc(linker *l, size_t bytes) { return ff_arena_alloc(&l->linked->arena, bytes); }

static ptx_var *copy_var(linker *l, const ptx_var *var, ptx_func *func) {
  ptx_var *copy = linked_alloc(l, sizeof *copy);
  *copy = *var;
  copy->func = func;
  copy->symbol.var = copy;
  return copy;
}

static ptx_var **pick(linker *l, ptx_var **old, uint32_t count, ptx_var **copies) {
  ptx_var **list = linked_alloc(l, count * sizeof *list);
  for (uint32_t i = 0; i < count; i++) list[i] = copies[old[i]->index];
  return list;
}

/* Everything that is declared in the function. */
static void copy_vars(linker *l, ptx_func *copy, const ptx_func *func) {
  copy->vars = linked_alloc(l, func->var_count * sizeof *copy->vars);
  copy->var_count = func->var_count;
  for (uint32_t i = 0; i < func->var_count; i++) copy->vars[i] = copy_var(l, func->vars[i], copy);
  copy->params = pick(l, func->params, func->param_count, copy->vars);
  copy->param_count = func->param_count;
  copy->results = pick(l, func->results, func->result_count, copy->vars);
}

static ptx_func *copy_func(linker *l, const ptx_func *func, uint32_t module) {
  ptx_func *copy = linked_alloc(l, sizeof *copy);
  *copy = *func;
  copy->module = l->linked;
  copy->symbol.func = copy;
  copy->later = copy->unread = NULL;
  copy_vars(l, copy, func);
  if (!func->unread) return copy;
  copy->unread = copy->later = linked_alloc(l, sizeof *copy->later);
  *copy->later =
      (struct ptx_later){.from = own_func(l, func, module), .module = module, .has_head = func->unread->has_head};
  l->lasts = true;
  return copy;
}

static void copy_things(linker *l) {
  ptx_module *linked = l->linked;
  linked->vars = linked_alloc(l, l->order.count * sizeof *linked->vars);
  linked->funcs = linked_alloc(l, l->order.count * sizeof *linked->funcs);
  for (size_t i = 0; i < l->order.count; i++) {
    thing *t = l->order.items[i];
    if (t->var) {
      t->new_var = copy_var(l, t->var, NULL);
      t->new_var->index = linked->var_count;
      linked->vars[linked->var_count++] = t->new_var;
    } else {
      t->new_func = copy_func(l, t->func, t->module);
      t->new_func->index = linked->func_count;
      linked->funcs[linked->func_count++] = t->new_func;
    }
  }
  for (size_t i = 0; i < l->order.count; i++) {
    thing *t = l->order.items[i];
    if (!t->func || !t->func->alias) continue;
    t->new_func->alias = l->funcs[t->module][t->func->alias->index]->new_func;
    t->new_func->symbol.func = t->new_func->alias;
  }
}

/* ---- step 3: symbols ---- */

/* Functions that the virtual GPU carries out itself, or that belong to launching kernels from kernels: they have no
 * body anywhere, and only a kernel that calls one learns whether it can. */
static bool is_provided(const char *name) {
  static const char *const whole[] = {"vprintf", "malloc", "free", "__assertfail", "__assert_fail"};
  static const char *const starts[] = {"cnp", "cuda", "__cuda"};
  for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
    if (strcmp(name, whole[i]) == 0) return true;
  for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
    if (strncmp(name, starts[i], strlen(starts[i])) == 0) return true;
  return false;
}

/* The new symbol for one of module `m`, seen in `func` (NULL: an initial value); NULL: undefined, and reported. */
static const ptx_symbol *translate(linker *l, uint32_t m, const ptx_func *func, ptx_place place,
                                   const ptx_symbol *old) {
  const ptx_var *var = old->var;
  if (var && var->func) return &func->vars[var->index]->symbol;
  const thing *t = var ? l->vars[m][var->index] : l->funcs[m][old->func->index];
  const ptx_symbol *new = t->new_var ? &t->new_var->symbol : &t->new_func->symbol;
  bool missing;
  if (t->new_var) missing = t->new_var->linkage == PTX_LINK_EXTERN && t->new_var->space != PTX_SPACE_SHARED;
  else missing = !new->func->has_body && !is_provided(new->func->name);
  if (!missing) return new;
  const ptx_module *module = l->modules[m];
  ff_fail_in_text(l->error, FF_NOT_FOUND, module->name, module->text, module->text_length, place.line, place.column,
                  "'%s' is declared but defined nowhere", old->name);
  return NULL;
}

static bool has_symbols(const ptx_operand *operands, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    if (operands[i].symbol || has_symbols(operands[i].elements, operands[i].element_count)) return true;
  return false;
}

/* NULL: a symbol is undefined. Without symbols the operands are shared. Elements nest at most a few levels deep. */
static ptx_operand *copy_operands(linker *l, uint32_t m, const ptx_func *func, ptx_place place, ptx_operand *operands,
                                  uint32_t count) {
  if (!has_symbols(operands, count)) return operands;
  ptx_operand *copy = linked_alloc(l, count * sizeof *copy);
  memcpy(copy, operands, count * sizeof *copy);
  for (uint32_t i = 0; i < count; i++) {
    if (copy[i].symbol && !(copy[i].symbol = translate(l, m, func, place, copy[i].symbol))) return NULL;
    if (!copy[i].element_count) continue;
    copy[i].elements = copy_operands(l, m, func, place, copy[i].elements, copy[i].element_count);
    if (!copy[i].elements) return NULL;
  }
  return copy;
}

static bool copy_body(linker *l, uint32_t m, ptx_func *func) {
  if (!func->instr_count) return true;
  const ptx_instr *old = func->instrs;
  func->instrs = linked_alloc(l, func->instr_count * sizeof *func->instrs);
  memcpy(func->instrs, old, func->instr_count * sizeof *func->instrs);
  for (uint32_t i = 0; i < func->instr_count; i++) {
    ptx_instr *instr = &func->instrs[i];
    if (instr->source_line) instr->source_file += l->file_base[m];
    instr->operands = copy_operands(l, m, func, instr->place, instr->operands, instr->operand_count);
    if (!instr->operands) return false;
  }
  return true;
}

static bool copy_inits(linker *l, uint32_t m, const ptx_func *func, ptx_var *var) {
  if (!var->init_count) return true;
  const ptx_init *old = var->inits;
  var->inits = linked_alloc(l, var->init_count * sizeof *var->inits);
  memcpy(var->inits, old, var->init_count * sizeof *var->inits);
  for (uint32_t i = 0; i < var->init_count; i++) {
    var->inits[i].symbol = translate(l, m, func, var->place, old[i].symbol);
    if (!var->inits[i].symbol) return false;
  }
  return true;
}

/* Files are numbered anew: those of module m follow those of the modules before it. Writes the first number of each. */
static void join_files(linker *l) {
  ptx_module *linked = l->linked;
  uint32_t total = 0, *base = l->file_base = ff_arena_alloc(&l->scratch, l->count * sizeof *base);
  for (uint32_t m = 0; m < l->count; m++) {
    base[m] = total;
    total += l->modules[m]->file_count;
  }
  linked->file_count = total;
  linked->files = linked_alloc(l, total * sizeof *linked->files);
  for (uint32_t m = 0; m < l->count; m++)
    for (uint32_t i = 0; i < l->modules[m]->file_count; i++) linked->files[base[m] + i] = l->modules[m]->files[i];
}

static ff_status copy_bodies(linker *l) {
  join_files(l);
  for (size_t i = 0; i < l->order.count; i++) {
    thing *t = l->order.items[i];
    bool good = t->var ? copy_inits(l, t->module, NULL, t->new_var) : copy_body(l, t->module, t->new_func);
    for (uint32_t v = 0; good && t->func && v < t->new_func->var_count; v++)
      good = copy_inits(l, t->module, t->new_func, t->new_func->vars[v]);
    if (!good) return FF_NOT_FOUND;
  }
  return FF_OK;
}

/* ---- the whole ---- */

static void describe(linker *l) {
  ptx_module *linked = l->linked;
  const ptx_module *first = l->modules[0];
  for (uint32_t m = 0; m < l->count; m++) {
    const ptx_module *module = l->modules[m];
    uint32_t version = module->version_major * 100 + module->version_minor;
    if (version > linked->version_major * 100 + linked->version_minor) {
      linked->version_major = module->version_major;
      linked->version_minor = module->version_minor;
    }
    if (module->target > linked->target || m == 0) {
      linked->target = module->target;
      linked->target_suffix = module->target_suffix;
    }
  }
  linked->address_size = first->address_size;
  linked->name = first->name;
  linked->text = l->count == 1 ? first->text : "";
  linked->text_length = l->count == 1 ? first->text_length : 0;
  if (l->count == 1) return;
  char name[512];
  snprintf(name, sizeof name, "%.400s and %u more", first->name, l->count - 1);
  linked->name = ff_arena_strndup(&linked->arena, name, strlen(name));
}

static void free_linker(linker *l) {
  if (!l) return;
  ff_map_free(&l->names);
  ff_arena_free(&l->scratch);
  free(l->order.items);
  free(l);
}

void ptx_linker_free(ptx_module *module) {
  for (uint32_t f = 0; module->linker && f < module->func_count; f++)
    if (module->funcs[f]->later) ff_arena_free(&module->funcs[f]->later->arena);
  free_linker(module->linker);
  module->linker = NULL;
}

ptx_module *const *ptx_module_made_of(ptx_module *const *module, uint32_t *count) {
  const linker *l = (*module)->linker;
  *count = l ? l->count : 1;
  return l ? l->modules : (*module)->parser ? module : NULL;
}

ff_status ptx_link(ptx_module *const *modules, uint32_t count, ptx_module **linked, ff_error *error) {
  *linked = NULL;
  if (!count) return ff_fail(error, FF_INVALID, "there is no module to link");
  linker *l = ff_alloc(sizeof *l);
  *l = (linker){.count = count, .linked = ff_alloc(sizeof *l->linked), .error = error};
  pthread_mutex_init(&l->linked->lock, NULL);
  l->modules = ff_arena_alloc(&l->scratch, count * sizeof *l->modules);
  memcpy(l->modules, modules, count * sizeof *l->modules);
  l->vars = ff_arena_alloc(&l->scratch, count * sizeof *l->vars);
  l->funcs = ff_arena_alloc(&l->scratch, count * sizeof *l->funcs);
  ff_status status = choose_all(l);
  if (status == FF_OK) {
    describe(l);
    copy_things(l);
    ptx_module_index(l->linked);
    status = copy_bodies(l);
  }
  ptx_module *made = l->linked;
  if (l->lasts) made->linker = l;
  else free_linker(l);
  if (status == FF_OK && ff_check_level >= 2) ptx_module_check(made);
  if (status == FF_OK) *linked = made;
  else ptx_module_free(made);
  return status;
}

/* ---- bodies that are read later ---- */

ff_status ptx_linked_read_head(ptx_func *func, ff_error *error) {
  struct ptx_later *later = func->later;
  if (later->has_head) return FF_OK;
  ff_status status = ptx_func_read_head(later->from, error);
  if (status != FF_OK) return status;
  pthread_mutex_lock(&later->from->module->lock); /* another module may be linked of it, too */
  ptx_func_take_directives(func, later->from);
  copy_vars(func->module->linker, func, later->from);
  pthread_mutex_unlock(&later->from->module->lock);
  later->has_head = true;
  return FF_OK;
}

/* The source's body, with its memory. The lock of the source's module is held, and what the source still has of the
 * body ends when this returns (ptx_func_look). */
static bool take_over(void *context, const ptx_func *looked_at) {
  ptx_func *func = context, *from = (ptx_func *)(uintptr_t)looked_at;
  struct ptx_later *own = func->later, *later = from->later;
  own->arena = later->arena;
  own->registers = later->registers;
  own->register_text = later->register_text;
  own->targets = later->targets;
  own->data = later->data;
  own->head_vars = func->vars;
  own->head_var_count = func->var_count;
  ptx_var **vars = ff_arena_alloc(&own->arena, from->var_count * sizeof *vars);
  for (uint32_t v = 0; v < from->var_count; v++) {
    vars[v] = v < func->var_count ? func->vars[v] : from->vars[v];
    vars[v]->reg = from->vars[v]->reg;
    vars[v]->func = func;
  }
  func->vars = vars;
  func->var_count = from->var_count;
  func->instrs = from->instrs;
  func->instr_count = from->instr_count;
  func->regs = from->regs;
  func->reg_count = from->reg_count;
  func->labels = from->labels;
  func->label_count = from->label_count;
  later->arena = (ff_arena){0};
  later->registers = later->register_text = later->targets = later->data = 0;
  return false;
}

/* In their place: the body is the linked function's alone. A list of functions that several calls name is met again. */
static bool translate_operands(linker *l, uint32_t m, const ptx_func *func, ptx_place place, ptx_operand *operands,
                               uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    const ptx_symbol *old = operands[i].symbol;
    bool done = !old || (old->func && old->func->module == l->linked);
    if (!done && !(operands[i].symbol = translate(l, m, func, place, old))) return false;
    if (!translate_operands(l, m, func, place, operands[i].elements, operands[i].element_count)) return false;
  }
  return true;
}

static bool translate_body(linker *l, uint32_t m, ptx_func *func) {
  for (uint32_t i = 0; i < func->instr_count; i++) {
    ptx_instr *instr = &func->instrs[i];
    if (instr->source_line) instr->source_file += l->file_base[m];
    if (!translate_operands(l, m, func, instr->place, instr->operands, instr->operand_count)) return false;
  }
  for (uint32_t v = 0; v < func->var_count; v++)
    for (uint32_t i = 0; i < func->vars[v]->init_count; i++) {
      ptx_init *init = &func->vars[v]->inits[i];
      if (!(init->symbol = translate(l, m, func, func->vars[v]->place, init->symbol))) return false;
    }
  return true;
}

ff_status ptx_linked_read(ptx_func *func, ff_error *error) {
  linker *l = func->module->linker;
  ptx_func *from = func->later->from;
  ff_status status = ptx_linked_read_head(func, error);
  if (status == FF_OK) status = ptx_func_look(from, take_over, func, error);
  if (status != FF_OK) return status;
  ptx_func_forget(from); /* if it was whole: its body is the linked function's now */
  l->error = error;
  if (translate_body(l, func->later->module, func)) return FF_OK;
  ptx_later_drop(func);
  if (error) error->status = FF_INVALID; /* the function is there; what it needs is not */
  return FF_INVALID;
}
