/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of each function of a module: found when it is first asked for, then kept. */
#include "exec/decode/function_facts.h"

#include <stdlib.h>

#include "base/check.h"
#include "exec/decode/decode.h"
#include "exec/decode/facts_store.h"
#include "exec/instructions/host_call.h"
#include "ptx/analysis/cfg.h"
#include "ptx/rewrite/persistent.h"

struct exec_facts_table {
  pthread_mutex_t lock; /* of all that follows, as far as nothing else is said */
  ptx_module *module;
  exec_facts **of;  /* by ptx_func.index; NULL: not asked for yet, or its body is wrong */
  ff_error **wrong; /* by ptx_func.index; NULL: as far as is known, its body is not */
  uint32_t users;
  pthread_mutex_t taking; /* of both that follow; it is locked before the other one */
  exec_func_list taken;
  bool has_taken;
};

typedef struct finder { /* of one function's facts */
  exec_facts *facts;
  exec_func_list callees, taken;
  FF_VEC(const ptx_var *) vars;
} finder;

/* Does it read what other blocks may write? They do not write to a block's own shared memory. */
static bool looks(const ptx_instr *instr) {
  switch (instr->opcode) {
  case PTX_OP_LD: return ptx_instr_space(instr) != PTX_SPACE_SHARED && exec_reads_anew(instr);
  case PTX_OP_ATOM: return ptx_instr_space(instr) != PTX_SPACE_SHARED;
  case PTX_OP_MULTIMEM: return ptx_has(instr, PTX_MOD_LD_REDUCE);
  case PTX_OP_MEMBAR:
  case PTX_OP_FENCE: return true;
  default: return false;
  }
}

/* Does it look in a loop of its own? */
static bool waits_alone(const ptx_func *func, const ptx_cfg *cfg) {
  /* where the first of the loops begins that end here or behind */
  uint32_t loops_from = func->instr_count;
  for (uint32_t n = func->instr_count; n-- > 0;) {
    const ptx_instr *instr = &func->instrs[n];
    if (instr->opcode == PTX_OP_BRX) loops_from = 0;
    if (instr->opcode == PTX_OP_BRA && instr->operand_count && instr->operands[0].label < loops_from)
      loops_from = instr->operands[0].label;
    if (n >= loops_from && (looks(instr) || exec_waits_plainly(func, cfg, n))) return true;
  }
  return false;
}

static void add_var(finder *f, const ptx_var *var) {
  for (size_t n = 0; n < f->vars.count; n++)
    if (f->vars.items[n] == var) return;
  FF_PUSH(&f->vars, var);
}

static void add_func(exec_func_list *list, const ptx_func *func) {
  for (size_t n = 0; n < list->count; n++)
    if (list->items[n] == func) return;
  FF_PUSH(list, func);
}

static void add_taken(exec_func_list *list, const ptx_instr *instr) {
  for (uint32_t k = 0; instr->opcode != PTX_OP_CALL && k < instr->operand_count; k++)
    if (instr->operands[k].symbol && instr->operands[k].symbol->func) add_func(list, instr->operands[k].symbol->func);
}

/* The functions whose addresses a function takes. */
static void add_all_taken(const ptx_func *func, exec_func_list *list) {
  for (uint32_t n = 0; n < func->instr_count; n++) add_taken(list, &func->instrs[n]);
}

static void look_at_operand(finder *f, const ptx_operand *operand) {
  const ptx_var *var = operand->symbol ? operand->symbol->var : NULL;
  if (var && !var->func) add_var(f, var);
  for (uint32_t e = 0; e < operand->element_count; e++) look_at_operand(f, &operand->elements[e]);
}

static void look_at_call(finder *f, const ptx_instr *instr) {
  const ptx_operand *callee = ptx_call_parts(instr).callee;
  if (!callee || callee->kind != PTX_OPERAND_SYMBOL) {
    f->facts->calls_indirect = true;
    return;
  }
  if (!callee->symbol->func) return;
  add_func(&f->callees, callee->symbol->func);
  uint32_t host = exec_host_function(callee->symbol->name);
  f->facts->prints |= host == EXEC_HOST_VPRINTF;
  f->facts->launches |= host == EXEC_HOST_PARAMETER_BUFFER || host == EXEC_HOST_GRAPH_LAUNCH;
}

static void look_at_register(exec_facts *facts, ptx_sreg sreg) {
  facts->reads_smid |= sreg == PTX_SREG_SMID;
  facts->reads_reserved |= sreg >= PTX_SREG_RESERVED_SMEM_OFFSET_BEGIN && sreg <= PTX_SREG_RESERVED_SMEM_OFFSET_1;
}

static void look_at(finder *f, const ptx_func *func, const ptx_instr *instr) {
  f->facts->waits_in_loop |= looks(instr);
  if (instr->opcode == PTX_OP_MOV && instr->operand_count > 1 && instr->operands[1].kind == PTX_OPERAND_SREG)
    look_at_register(f->facts, instr->operands[1].sreg);
  f->facts->pulls |= ptx_persistent_pulls(func, instr);
  if (instr->opcode == PTX_OP_CALL) look_at_call(f, instr);
  f->facts->allocates |= instr->opcode == PTX_OP_ALLOCA;
  f->facts->uses_mbarriers |= instr->opcode == PTX_OP_MBARRIER;
  for (uint32_t k = 0; k < instr->operand_count; k++) look_at_operand(f, &instr->operands[k]);
}

static exec_facts *find(const ptx_func *func) {
  exec_facts *facts = ff_alloc(sizeof *facts);
  finder f = {.facts = facts};
  facts->instr_count = func->instr_count;
  for (uint32_t v = 0; v < func->var_count; v++)
    if (func->vars[v]->space == PTX_SPACE_SHARED) add_var(&f, func->vars[v]);
  for (uint32_t n = 0; n < func->instr_count; n++) look_at(&f, func, &func->instrs[n]);
  add_all_taken(func, &f.taken);
  ptx_cfg *cfg = ptx_cfg_build(func);
  facts->waits = waits_alone(func, cfg);
  facts->waits_in_loop |= facts->waits;
  facts->registers = ptx_register_estimate(func, cfg);
  ptx_cfg_free(cfg);
  facts->local_bytes = exec_local_bytes(func);
  facts->stack_bytes = exec_stack_bytes(func);
  facts->callees = f.callees.items;
  facts->callee_count = (uint32_t)f.callees.count;
  facts->vars = f.vars.items;
  facts->var_count = (uint32_t)f.vars.count;
  facts->taken = f.taken.items;
  facts->taken_count = (uint32_t)f.taken.count;
  return facts;
}

exec_facts_table *exec_facts_create(const ptx_module *module) {
  exec_facts_table *table = ff_alloc(sizeof *table);
  table->module = (ptx_module *)(uintptr_t)module; /* its bodies may be read */
  table->of = ff_alloc((module->func_count + 1) * sizeof(exec_facts *));
  table->wrong = ff_alloc((module->func_count + 1) * sizeof(ff_error *));
  table->users = 1;
  pthread_mutex_init(&table->lock, NULL);
  pthread_mutex_init(&table->taking, NULL);
  return table;
}

exec_facts_table *exec_facts_share(exec_facts_table *table) {
  pthread_mutex_lock(&table->lock);
  table->users++;
  pthread_mutex_unlock(&table->lock);
  return table;
}

static void free_facts(exec_facts *facts) {
  if (!facts) return;
  free(facts->callees);
  free(facts->vars);
  free(facts->taken);
  free(facts);
}

void exec_facts_free(exec_facts_table *table) {
  if (!table) return;
  pthread_mutex_lock(&table->lock);
  uint32_t users = --table->users;
  pthread_mutex_unlock(&table->lock);
  if (users) return;
  for (uint32_t f = 0; f < table->module->func_count; f++) {
    free_facts(table->of[f]);
    free(table->wrong[f]);
  }
  free(table->of);
  free(table->wrong);
  free(table->taken.items);
  pthread_mutex_destroy(&table->lock);
  pthread_mutex_destroy(&table->taking);
  free(table);
}

typedef struct search {
  exec_facts *found;
  bool stays;
} search;

static bool look_at_func(void *context, const ptx_func *func) {
  search *s = context;
  s->found = find(func);
  bool shares = false; /* the facts, and the kernel's layout, have its own shared variables */
  for (uint32_t v = 0; v < func->var_count; v++) shares |= func->vars[v]->space == PTX_SPACE_SHARED;
  return s->stays || shares;
}

/* Looks at a function, whose body may be known to be wrong. */
static ff_status look_once(exec_facts_table *table, ptx_func *func, bool (*look)(void *, const ptx_func *),
                           void *context, ff_error *error) {
  ff_error **wrong = &table->wrong[func->index], found = {0};
  if (!*wrong) {
    ff_status status = ptx_func_look(func, look, context, &found);
    if (status == FF_OK) return FF_OK;
    found.status = status;
    if (status == FF_LIMIT) return ff_fail(error, status, "%s", found.message);
    *wrong = ff_alloc(sizeof **wrong);
    **wrong = found;
  }
  return ff_fail(error, (*wrong)->status, "%s", (*wrong)->message);
}

ff_status exec_facts_find(exec_facts_table *table, ptx_func *func, bool stays, ff_error *error) {
  pthread_mutex_lock(&table->lock);
  ff_status status = FF_OK;
  if (!table->of[func->index]) {
    search s = {.stays = stays};
    status = look_once(table, func, look_at_func, &s, error);
    table->of[func->index] = s.found;
  }
  pthread_mutex_unlock(&table->lock);
  return status;
}

/* ---- functions whose address is taken ---- */

typedef struct taken_search {
  exec_func_list found;
  bool *known; /* by ptx_func.index: it is in the list */
} taken_search;

static void note_taken(taken_search *search, const ptx_func *func) {
  if (!func || search->known[func->index]) return;
  search->known[func->index] = true;
  FF_PUSH(&search->found, func);
}

static bool look_for_taken(void *context, const ptx_func *func) {
  exec_func_list list = {0};
  add_all_taken(func, &list);
  for (size_t n = 0; n < list.count; n++) note_taken(context, list.items[n]);
  free(list.items);
  return false;
}

/* Of a kernel, which nobody calls by its address, nothing else is wanted; of the others, all facts. */
static ff_status find_taken_in(exec_facts_table *table, taken_search *search, ptx_func *func, ff_error *error) {
  if (func->entry) {
    pthread_mutex_lock(&table->lock);
    ff_status status = look_once(table, func, look_for_taken, search, error);
    pthread_mutex_unlock(&table->lock);
    return status;
  }
  ff_status status = exec_facts_find(table, func, false, error);
  if (status != FF_OK) return status;
  const exec_facts *facts = exec_facts_of(table, func);
  for (uint32_t n = 0; n < facts->taken_count; n++) note_taken(search, facts->taken[n]);
  return FF_OK;
}

static ff_status find_taken(exec_facts_table *table, taken_search *search, ff_error *error) {
  const ptx_module *module = table->module;
  for (uint32_t v = 0; v < module->var_count; v++)
    for (uint32_t n = 0; n < module->vars[v]->init_count; n++)
      note_taken(search, module->vars[v]->inits[n].symbol->func);
  for (uint32_t f = 0; f < module->func_count; f++) {
    if (!module->funcs[f]->has_body) continue;
    ff_status status = find_taken_in(table, search, module->funcs[f], error);
    if (status == FF_LIMIT) return status; /* at another time it might be read, and run */
  }
  return FF_OK;
}

/* `taking` is held. */
static bool recall(exec_facts_table *table) {
  const ptx_func **taken = ff_alloc((table->module->func_count + 1) * sizeof *taken);
  uint32_t count;
  pthread_mutex_lock(&table->lock);
  table->has_taken = exec_facts_load(table->module, table->of, taken, &count);
  pthread_mutex_unlock(&table->lock);
  for (uint32_t n = 0; table->has_taken && n < count; n++) FF_PUSH(&table->taken, taken[n]);
  free(taken);
  return table->has_taken;
}

bool exec_facts_recall(exec_facts_table *table) {
  pthread_mutex_lock(&table->taking);
  bool found = recall(table);
  pthread_mutex_unlock(&table->taking);
  return found;
}

/* `taking` is held. */
static ff_status look_at_all(exec_facts_table *table, ff_error *error) {
  taken_search search = {.known = ff_alloc(table->module->func_count + 1)};
  ff_status status = find_taken(table, &search, error);
  free(search.known);
  if (status != FF_OK) {
    free(search.found.items);
    return status;
  }
  table->taken = search.found;
  table->has_taken = true;
  pthread_mutex_lock(&table->lock);
  exec_facts_keep(table->module, table->of, table->taken.items, (uint32_t)table->taken.count);
  pthread_mutex_unlock(&table->lock);
  return FF_OK;
}

ff_status exec_facts_taken(exec_facts_table *table, const exec_func_list **taken, ff_error *error) {
  pthread_mutex_lock(&table->taking);
  ff_status status = table->has_taken || recall(table) ? FF_OK : look_at_all(table, error);
  pthread_mutex_unlock(&table->taking);
  *taken = &table->taken;
  return status;
}

const exec_facts *exec_facts_of(exec_facts_table *table, const ptx_func *func) {
  pthread_mutex_lock(&table->lock);
  const exec_facts *found = table->of[func->index];
  pthread_mutex_unlock(&table->lock);
  FF_CHECK(found);
  return found;
}
