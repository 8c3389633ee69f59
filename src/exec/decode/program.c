/* SPDX-License-Identifier: Apache-2.0 */
/* A linked module on the virtual GPU: its variables in memory, and its kernels, made when they are first asked for.
 *
 * A module variable gets its allocation when the program is made, and keeps it; those of the .const variables lie in
 * one range; a managed one's may be another program's (program_sharing.h). A kernel's shared memory holds the variables
 * of every function that it can reach, in the order in which they are found, without overlap (check_shared). */
#include "base/check.h"
#include "exec/launch/program_sharing.h"
#include "exec/instructions/host_call.h"
#include "exec/decode/function_facts.h"
#include "exec/decode/program.h"
#include "exec/texture/texture_table.h"
#include "ptx/rewrite/persistent.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- variables ---- */

/* Declared here and defined nowhere: what uses it faults. */
static bool is_undefined(const ptx_var *var) {
  return var->linkage == PTX_LINK_EXTERN && (var->space == PTX_SPACE_GLOBAL || var->space == PTX_SPACE_CONST);
}

static bool in_memory(const ptx_var *var) {
  return (var->space == PTX_SPACE_GLOBAL || var->space == PTX_SPACE_CONST || var->space == PTX_SPACE_TEX) &&
         !is_undefined(var);
}

/* .texref, .samplerref, .surfref, and variables of the old .tex space, which are texture references too. */
static bool is_opaque(const ptx_var *var) { return ptx_type_class(var->type) == 'O' || var->space == PTX_SPACE_TEX; }

static bool is_constant(const ptx_var *var) {
  return var->space == PTX_SPACE_CONST && !is_opaque(var) && !var->managed && !is_undefined(var);
}

static uint64_t function_address(const ptx_func *func) { return EXEC_CODE_WINDOW + 16 * ((uint64_t)func->index + 1); }

static ff_status place_variable(exec_program *program, const ptx_var *var, ff_error *error) {
  exec_memory_kind kind = var->managed ? EXEC_MEMORY_MANAGED : EXEC_MEMORY_DEVICE;
  if (var->managed && program->managed_from) {
    program->vars[var->index] = program->managed_from->vars[var->index];
    return FF_OK;
  }
  uint64_t bytes = is_opaque(var) && var->size < 8 ? 8 : var->size ? var->size : 1;
  ff_status status =
      exec_memory_allocate(program->memory, bytes, var->align, kind, var->name, &program->vars[var->index], error);
  if (status == FF_OK) exec_memory_exempt(program->vars[var->index]);
  if (status == FF_OK && is_opaque(var)) exec_texture_cells(program->memory, program->vars[var->index]->address, bytes);
  return status;
}

/* The .const variables lie together, as in one bank: the lower half of an address tells one from the others (mov.b32 of
 * a symbol). */
static ff_status place_constants(exec_program *program, ff_error *error) {
  const ptx_module *module = program->module;
  exec_wanted *wanted = ff_alloc((module->var_count + 1) * sizeof *wanted);
  const exec_allocation **made = ff_alloc((module->var_count + 1) * sizeof *made);
  uint32_t count = 0, at = 0;
  for (uint32_t v = 0; v < module->var_count; v++) {
    const ptx_var *var = module->vars[v];
    if (is_constant(var)) wanted[count++] = (exec_wanted){var->size ? var->size : 1, var->align, var->name};
  }
  ff_status status = exec_memory_allocate_row(program->memory, wanted, count, EXEC_MEMORY_DEVICE, made, error);
  for (uint32_t v = 0; v < module->var_count && status == FF_OK; v++) {
    if (!is_constant(module->vars[v])) continue;
    program->vars[v] = made[at++];
    exec_memory_exempt(program->vars[v]);
  }
  free(made);
  free(wanted);
  return status;
}

static ff_status place_variables(exec_program *program, ff_error *error) {
  const ptx_module *module = program->module;
  ff_status status = FF_OK;
  for (uint32_t v = 0; v < module->var_count && status == FF_OK; v++) {
    if (!in_memory(module->vars[v]) || program->vars[v]) continue;
    status = is_constant(module->vars[v]) ? place_constants(program, error)
                                          : place_variable(program, module->vars[v], error);
  }
  return status;
}

/* The value of an address in initialised data. */
static ff_status initial_address(const exec_program *program, const ptx_var *var, const ptx_init *init, uint64_t *value,
                                 ff_error *error) {
  const ptx_symbol *symbol = init->symbol;
  if (symbol->func) *value = function_address(symbol->func);
  else if (symbol->var && !symbol->var->func && program->vars[symbol->var->index])
    *value = program->vars[symbol->var->index]->address;
  else
    return ff_fail(error, FF_UNSUPPORTED, "%s:%u: the initial value of %s: %s %s", program->module->name,
                   var->place.line, var->name, symbol->name,
                   symbol->var && is_undefined(symbol->var) ? "is declared but defined nowhere"
                                                            : "has no address before a kernel runs");
  *value = (*value + (uint64_t)init->offset) >> (init->shift & 63);
  return FF_OK;
}

static ff_status fill_variable(const exec_program *program, const ptx_var *var, ff_error *error) {
  if (var->managed && program->managed_from) return FF_OK; /* has what the program wrote */
  unsigned char *memory = (unsigned char *)(uintptr_t)program->vars[var->index]->address;
  if (var->data) memcpy(memory, var->data, var->size);
  for (uint32_t n = 0; n < var->init_count; n++) {
    const ptx_init *init = &var->inits[n];
    uint64_t value;
    ff_status status = initial_address(program, var, init, &value, error);
    if (status != FF_OK) return status;
    if (init->bytes > 8 || init->at > var->size || var->size - init->at < init->bytes)
      return ff_fail(error, FF_PARSE, "%s:%u: an initial value of %s lies outside it", program->module->name,
                     var->place.line, var->name);
    memcpy(memory + init->at, &value, init->bytes);
  }
  if (var->space == PTX_SPACE_CONST) exec_memory_protect_constant(program->vars[var->index]);
  return FF_OK;
}

static ff_status fill_variables(const exec_program *program, ff_error *error) {
  ff_status status = FF_OK;
  for (uint32_t v = 0; v < program->module->var_count && status == FF_OK; v++)
    if (in_memory(program->module->vars[v])) status = fill_variable(program, program->module->vars[v], error);
  return status;
}

void exec_program_restart(exec_program *program) {
  for (uint32_t v = 0; v < program->module->var_count; v++) {
    const ptx_var *var = program->module->vars[v];
    if (!in_memory(var) || is_opaque(var)) continue;
    memset((void *)(uintptr_t)program->vars[v]->address, 0, var->size);
    ff_status filled = fill_variable(program, var, NULL);
    FF_CHECK(filled == FF_OK); /* as when the program was made */
    (void)filled;
  }
}

/* Bodies of the module that were only noticed so far (ptx_module_parse_later). */
static ff_status read_all(const exec_program *program, ff_error *error) {
  ff_status status = FF_OK;
  for (uint32_t f = 0; f < program->module->func_count && status == FF_OK; f++)
    status = ptx_func_read(program->module->funcs[f], error);
  return status;
}

/* Variables are handed to it by the caller; the rest is empty. */
static exec_program *make_program(const ptx_module *module, exec_memory *memory, struct exec_facts_table *facts) {
  exec_program *made = ff_alloc(sizeof *made);
  made->module = module;
  made->memory = memory;
  made->facts = facts;
  made->vars = ff_alloc((module->var_count + 1) * sizeof *made->vars);
  made->kernels = ff_alloc((module->func_count + 1) * sizeof(exec_kernel *));
  for (uint32_t v = 0; v < module->var_count; v++)
    if (module->vars[v]->space == PTX_SPACE_CONST) made->const_bytes += module->vars[v]->size;
  pthread_mutex_init(&made->lock, NULL);
  return made;
}

ff_status exec_program_create_sharing(const ptx_module *linked, exec_memory *memory, exec_program *managed_from,
                                      exec_program **program, ff_error *error) {
  if (linked->address_size != 64) return ff_fail(error, FF_UNSUPPORTED, "%s: .address_size 32", linked->name);
  bool same = managed_from && managed_from->module == linked;
  exec_program *made =
      make_program(linked, memory, same ? exec_facts_share(managed_from->facts) : exec_facts_create(linked));
  made->managed_from = managed_from;
  made->owns_managed = !managed_from;
  ff_status status = place_variables(made, error);
  if (status == FF_OK) status = fill_variables(made, error);
  if (status != FF_OK) {
    exec_program_free(made);
    return status;
  }
  made->managed_from = NULL;
  *program = made;
  return FF_OK;
}

ff_status exec_program_create(const ptx_module *linked, exec_memory *memory, exec_program **program, ff_error *error) {
  return exec_program_create_sharing(linked, memory, NULL, program, error);
}

static ff_status borrow_variable(exec_program *program, const exec_program *base, const ptx_var *var, ff_error *error) {
  const ptx_var *there = ptx_find_var(base->module, var->name);
  if (is_undefined(var) && (!there || is_undefined(there))) return FF_OK; /* what uses it says so */
  if (!there || there->size != var->size || !base->vars[there->index])
    return ff_fail(error, FF_INVALID, "%s: the variable %s is not that of %s", program->module->name, var->name,
                   base->module->name);
  program->vars[var->index] = base->vars[there->index];
  return FF_OK;
}

ff_status exec_program_create_part(const ptx_module *part, exec_program *base, exec_program **program,
                                   ff_error *error) {
  exec_program *made = make_program(part, base->memory, exec_facts_create(part));
  made->borrows = true;
  ff_status status = FF_OK;
  for (uint32_t v = 0; v < part->var_count && status == FF_OK; v++)
    if (in_memory(part->vars[v]) || is_undefined(part->vars[v]))
      status = borrow_variable(made, base, part->vars[v], error);
  if (status != FF_OK) {
    exec_program_free(made);
    return status;
  }
  *program = made;
  return FF_OK;
}

void exec_program_hand_over(exec_program *from, exec_program *to) {
  if (from->owns_managed) to->owns_managed = true;
  from->owns_managed = false;
}

static void free_kernel(exec_kernel *kernel) {
  if (!kernel) return;
  for (uint32_t n = 0; n < 2 * EXEC_ISAS; n++) ff_arena_free(&kernel->code[n].arena);
  if (kernel->params_memory) exec_memory_release(kernel->program->memory, kernel->params_memory->address, NULL);
  if (kernel->workspace) exec_memory_release(kernel->program->memory, kernel->workspace->address, NULL);
  free(kernel->reach);
  free(kernel->reach_at);
  free(kernel->shared.items);
  free(kernel->variables.items);
  ff_arena_free(&kernel->arena);
  free(kernel);
}

void exec_program_free(exec_program *program) {
  if (!program) return;
  for (uint32_t f = 0; f < program->module->func_count; f++) free_kernel(program->kernels[f]);
  free(program->kernels);
  for (uint32_t v = 0; v < program->module->var_count && !program->borrows; v++) {
    if (!program->vars[v] || (program->module->vars[v]->managed && !program->owns_managed)) continue;
    if (is_opaque(program->module->vars[v])) exec_texture_forget_cells(program->memory, program->vars[v]->address);
    exec_memory_release(program->memory, program->vars[v]->address, NULL);
  }
  free(program->vars);
  exec_facts_free(program->facts);
  pthread_mutex_destroy(&program->lock);
  free(program);
}

ff_status exec_program_variable(exec_program *program, const char *name, uint64_t *address, uint64_t *bytes,
                                ff_error *error) {
  const ptx_var *var = ptx_find_var(program->module, name);
  if (!var || !program->vars[var->index])
    return ff_fail(error, FF_NOT_FOUND, "%s: no .global or .const variable '%s'", program->module->name, name);
  *address = program->vars[var->index]->address;
  *bytes = var->size;
  return FF_OK;
}

void exec_program_expose(exec_program *program, const char *name) {
  const ptx_var *var = ptx_find_var(program->module, name);
  const exec_allocation *allocation = var ? program->vars[var->index] : NULL;
  if (allocation && allocation->read_only) exec_memory_unprotect(allocation);
}

/* ---- what a kernel reaches ---- */

/* The function's slot of reach_at, or the empty one where it would be. */
static uint32_t *reach_slot(const exec_kernel *kernel, const ptx_func *func) {
  uint32_t at = func->index & (kernel->reach_slots - 1);
  while (kernel->reach_at[at] && kernel->reach[kernel->reach_at[at] - 1] != func)
    at = (at + 1) & (kernel->reach_slots - 1);
  return &kernel->reach_at[at];
}

uint32_t exec_kernel_function(const exec_kernel *kernel, const ptx_func *func) {
  uint32_t at = *reach_slot(kernel, func);
  return at ? at - 1 : EXEC_NO_OFFSET;
}

static void grow_reach(exec_kernel *kernel) {
  kernel->reach_slots = kernel->reach_slots ? 2 * kernel->reach_slots : 4;
  kernel->reach = ff_realloc(kernel->reach, kernel->reach_slots / 2 * sizeof *kernel->reach);
  free(kernel->reach_at);
  kernel->reach_at = ff_alloc(kernel->reach_slots * sizeof *kernel->reach_at);
  for (uint32_t n = 0; n < kernel->reach_count; n++) *reach_slot(kernel, kernel->reach[n]) = n + 1;
}

static void add_reach(exec_kernel *kernel, const ptx_func *func) {
  if (!func->has_body || exec_kernel_function(kernel, func) != EXEC_NO_OFFSET) return;
  if (2 * (kernel->reach_count + 1) > kernel->reach_slots) grow_reach(kernel);
  kernel->reach[kernel->reach_count++] = func;
  *reach_slot(kernel, func) = kernel->reach_count;
}

static ptx_func *own_func(const exec_program *program, const ptx_func *func) {
  return program->module->funcs[func->index];
}

static ff_status find_reach(exec_kernel *kernel, ff_error *error) {
  exec_program *program = kernel->program;
  ff_status status = FF_OK;
  grow_reach(kernel);
  add_reach(kernel, kernel->func);
  for (uint32_t f = 0; f < kernel->reach_count; f++) {
    status = exec_facts_find(program->facts, own_func(program, kernel->reach[f]), true, error);
    if (status != FF_OK) return status;
    const exec_facts *facts = exec_facts_of(program->facts, kernel->reach[f]);
    kernel->info.may_wait |= f ? facts->waits_in_loop : facts->waits;
    kernel->info.reads_smid |= facts->reads_smid;
    kernel->info.uses_mbarriers |= facts->uses_mbarriers;
    kernel->reads_reserved |= facts->reads_reserved;
    kernel->pulls |= facts->pulls;
    kernel->prints |= facts->prints;
    kernel->launches |= facts->launches;
    kernel->recursive |= facts->calls_indirect | facts->allocates; /* how much stack it needs is unknown */
    for (uint32_t n = 0; n < facts->callee_count; n++) add_reach(kernel, facts->callees[n]);
    if (facts->launches) status = read_all(program, error); /* it may ask for any of them */
    if (status != FF_OK) return status;
    if (!facts->calls_indirect || kernel->reaches_taken) continue;
    kernel->reaches_taken = true;
    const exec_func_list *taken;
    status = exec_facts_taken(program->facts, &taken, error);
    if (status != FF_OK) return status;
    for (size_t t = 0; t < taken->count; t++)
      if (!taken->items[t]->entry) add_reach(kernel, taken->items[t]);
  }
  return status;
}

uint32_t exec_functions_of(const ptx_module *linked, const ptx_func *func, const ptx_func ***reach) {
  exec_program program = {.module = linked, .facts = exec_facts_create(linked)};
  exec_kernel kernel = {.program = &program, .func = func};
  ff_status found = find_reach(&kernel, NULL);
  FF_ASSERT(found == FF_OK); /* the module is whole */
  (void)found;
  exec_facts_free(program.facts);
  free(kernel.reach_at);
  *reach = kernel.reach;
  return kernel.reach_count;
}

#define DEEPEST_CHAIN 2000 /* of functions that call each other; beyond it the stack counts as unknown */

/* The deepest stack below reach[f], without going around a cycle: marks recursion. depth[]: 0 unknown, 1 on the way. */
static uint64_t deepest(exec_kernel *kernel, uint32_t f, uint64_t *depth, uint32_t level) {
  const exec_facts *facts = exec_facts_of(kernel->program->facts, kernel->reach[f]);
  uint64_t below = 0;
  if (depth[f] == 1 || level > DEEPEST_CHAIN) kernel->recursive = true;
  if (level > DEEPEST_CHAIN) return 0;
  if (depth[f]) return depth[f] == 1 ? 0 : depth[f] - 2;
  depth[f] = 1;
  for (uint32_t n = 0; n < facts->callee_count; n++) {
    uint32_t index = exec_kernel_function(kernel, facts->callees[n]);
    uint64_t found = index == EXEC_NO_OFFSET ? 0 : deepest(kernel, index, depth, level + 1);
    if (found > below) below = found;
  }
  depth[f] = facts->stack_bytes + below + 2;
  return depth[f] - 2;
}

/* ---- shared memory ---- */

static uint64_t align_up(uint64_t value, uint64_t align) { return (value + align - 1) & ~(align - 1); }

static void place_shared(exec_kernel *kernel, const ptx_var *var, uint64_t *total) {
  if (var->space != PTX_SPACE_SHARED) return;
  for (size_t n = 0; n < kernel->shared.count; n++)
    if (kernel->shared.items[n].var == var) return;
  uint64_t at = align_up(*total, var->align);
  FF_PUSH(&kernel->shared, ((exec_shared_var){var, (uint32_t)at}));
  if (!var->unsized && var->size) *total = at + var->size;
}

static void note_variable(exec_kernel *kernel, const ptx_var *var) {
  const exec_allocation *allocation =
      var->index < kernel->program->module->var_count ? kernel->program->vars[var->index] : NULL;
  if (!allocation) return;
  for (size_t n = 0; n < kernel->variables.count; n++)
    if (kernel->variables.items[n] == allocation->address) return;
  FF_PUSH(&kernel->variables, allocation->address);
}

/* Variables of a size lie one behind the other, aligned, and end at `total`; those without one begin there. */
static void check_shared(const exec_kernel *kernel, uint64_t total) {
  uint64_t end = 0;
  for (size_t n = 0; n < kernel->shared.count; n++) {
    const exec_shared_var *shared = &kernel->shared.items[n];
    FF_ASSERT(shared->offset % shared->var->align == 0);
    if (shared->var->unsized || !shared->var->size) {
      FF_ASSERT(shared->offset >= total);
      continue;
    }
    FF_ASSERT(shared->offset >= end);
    end = shared->offset + shared->var->size;
  }
  FF_ASSERT(end == total);
}

/* Variables of its functions, and those of the module that its functions name. Unsized ones begin where the rest
 * ends. */
static ff_status layout_shared(exec_kernel *kernel, ff_error *error) {
  uint64_t total = 0;
  for (uint32_t f = 0; f < kernel->reach_count; f++) {
    const exec_facts *facts = exec_facts_of(kernel->program->facts, kernel->reach[f]);
    for (uint32_t v = 0; v < facts->var_count; v++) {
      place_shared(kernel, facts->vars[v], &total);
      if (facts->vars[v]->space != PTX_SPACE_SHARED) note_variable(kernel, facts->vars[v]);
    }
  }
  if (total > EXEC_WINDOW_BYTES)
    return ff_fail(error, FF_LIMIT, "kernel %s: %" PRIu64 " bytes of shared memory", kernel->info.name, total);
  for (size_t n = 0; n < kernel->shared.count; n++) {
    const ptx_var *var = kernel->shared.items[n].var;
    if (var->unsized || !var->size)
      kernel->shared.items[n].offset = (uint32_t)align_up(total, var->align < 16 ? 16 : var->align);
  }
  if (ff_check_level >= 2) check_shared(kernel, total);
  kernel->info.static_shared = (uint32_t)total;
  kernel->info.variables = kernel->variables.items;
  kernel->info.variable_count = (uint32_t)kernel->variables.count;
  return FF_OK;
}

/* ---- addresses ---- */

static bool own_param(const ptx_func *func, const ptx_var *var) {
  for (uint32_t p = 0; p < func->param_count; p++)
    if (func->params[p] == var) return true;
  return false;
}

ff_status exec_symbol_address(const exec_kernel *kernel, const ptx_symbol *symbol, uint64_t *address, ff_error *error) {
  const ptx_var *var = symbol->var;
  if (symbol->func) {
    *address = function_address(symbol->func);
    return FF_OK;
  }
  if (!var->func && kernel->program->vars[var->index]) {
    *address = kernel->program->vars[var->index]->address;
    return FF_OK;
  }
  for (size_t n = 0; n < kernel->shared.count; n++)
    if (kernel->shared.items[n].var == var) {
      *address = kernel->shared.items[n].offset;
      return FF_OK;
    }
  for (uint32_t p = 0; p < kernel->func->param_count && kernel->params_memory; p++)
    if (kernel->func->params[p] == var) {
      *address = kernel->params_memory->address + kernel->info.params[p].offset;
      return FF_OK;
    }
  if (is_undefined(var)) return ff_fail(error, FF_NOT_FOUND, "%s is declared but defined nowhere", symbol->name);
  return ff_fail(error, FF_UNSUPPORTED, "the address of %s", symbol->name);
}

static bool takes_param_address(const ptx_func *func) {
  for (uint32_t n = 0; n < func->instr_count; n++) {
    const ptx_instr *instr = &func->instrs[n];
    for (uint32_t k = 0; instr->opcode != PTX_OP_CALL && k < instr->operand_count; k++) {
      const ptx_operand *operand = &instr->operands[k];
      if (operand->kind == PTX_OPERAND_SYMBOL && operand->symbol->var && own_param(func, operand->symbol->var))
        return true;
    }
  }
  return false;
}

/* ---- kernels ---- */

/* Where each parameter stands, into `params` unless that is NULL; the bytes of all. */
static uint32_t place_parameters(const ptx_func *func, exec_param *params) {
  uint64_t at = 0;
  for (uint32_t p = 0; p < func->param_count; p++) {
    const ptx_var *var = func->params[p];
    at = align_up(at, var->align);
    if (params) params[p] = (exec_param){(uint32_t)at, (uint32_t)var->size, var->align};
    at += var->size;
  }
  return at > UINT32_MAX ? UINT32_MAX : (uint32_t)at;
}

uint32_t exec_param_bytes(const ptx_func *func) { return place_parameters(func, NULL); }

static void layout_params(exec_kernel *kernel) {
  exec_param *params = ff_arena_alloc(&kernel->arena, (kernel->func->param_count + 1) * sizeof *params);
  kernel->info.params = params;
  kernel->info.param_count = kernel->func->param_count;
  kernel->info.param_bytes = place_parameters(kernel->func, params);
}

static uint32_t thread_limit(const ptx_func *func) {
  const uint32_t *given = func->reqntid[0] ? func->reqntid : func->maxntid;
  if (!given[0]) return EXEC_MAX_THREADS;
  uint64_t threads = 1;
  for (int n = 0; n < 3; n++) threads *= given[n] ? given[n] : 1;
  return threads < EXEC_MAX_THREADS ? (uint32_t)threads : EXEC_MAX_THREADS;
}

#define REGISTER_FILE 65536u   /* registers of an SM, */
#define REGISTERS_APART 256u   /* that a warp gets so many of at a time */
#define REGISTERS_OF_THREAD 8u /* and a thread so many */
#define MOST_REGISTERS 255u

/* At most (CUDA C++ Programming Guide, "Technical Specifications per Compute Capability"). */
static uint32_t warps_of_sm(uint32_t target) {
  switch (target) {
  case 75: return 32;
  case 86:
  case 87:
  case 88:
  case 89:
  case 110:
  case 120:
  case 121: return 48;
  default: return 64;
  }
}

/* The most that a thread can have where the kernel says how large its blocks get: the assembler keeps to it, so that
 * they can be launched (PTX ISA, "Performance-Tuning Directives"), but for more blocks than the target's SM has warps
 * for. 0: it does not say. */
static uint32_t registers_for_blocks(const ptx_func *func, uint32_t target) {
  if (!func->maxntid[0] && !func->reqntid[0]) return 0;
  uint32_t warps = (thread_limit(func) + EXEC_LANES - 1) / EXEC_LANES, blocks = func->minnctapersm;
  if (blocks > 1 && (uint64_t)warps * blocks <= warps_of_sm(target)) warps *= blocks;
  uint32_t of_warp = REGISTER_FILE / warps / REGISTERS_APART * REGISTERS_APART;
  return of_warp / EXEC_LANES / REGISTERS_OF_THREAD * REGISTERS_OF_THREAD;
}

static uint32_t register_count(const exec_kernel *kernel) {
  uint32_t most = 0;
  for (uint32_t f = 0; f < kernel->reach_count; f++) {
    uint32_t found = exec_facts_of(kernel->program->facts, kernel->reach[f])->registers;
    if (found > most) most = found;
  }
  return most > kernel->register_limit ? kernel->register_limit : most;
}

static uint32_t register_limit(const ptx_func *func, uint32_t target) {
  uint32_t limit = func->maxnreg ? func->maxnreg : registers_for_blocks(func, target);
  return limit && limit < MOST_REGISTERS ? limit : MOST_REGISTERS;
}

static ff_status describe(exec_kernel *kernel, ff_error *error) {
  exec_kernel_info *info = &kernel->info;
  const ptx_module *module = kernel->func->source; /* programs ask for what the kernel itself was compiled for */
  info->name = kernel->func->name;
  info->max_threads = thread_limit(kernel->func);
  memcpy(info->cluster, kernel->func->cluster, sizeof info->cluster);
  info->ptx_version = module->version_major * 10 + module->version_minor;
  info->target = module->target;
  layout_params(kernel);
  ff_status status = find_reach(kernel, error);
  if (status != FF_OK) return status;
  for (uint32_t f = 0; f < kernel->reach_count; f++) {
    if (exec_facts_of(kernel->program->facts, kernel->reach[f])->local_bytes > EXEC_MAX_LOCAL)
      return ff_fail(error, FF_LIMIT, "%s: more local memory than the %u KiB that a thread can have",
                     kernel->reach[f]->name, EXEC_MAX_LOCAL >> 10);
    kernel->pc_total += exec_facts_of(kernel->program->facts, kernel->reach[f])->instr_count;
  }
  uint64_t *depth = ff_alloc(kernel->reach_count * sizeof *depth);
  uint64_t local = deepest(kernel, 0, depth, 0);
  free(depth);
  if (local > EXEC_MAX_LOCAL)
    return ff_fail(error, FF_LIMIT, "kernel %s: %" PRIu64 " bytes of stack per thread", info->name, local);
  info->local_bytes = (uint32_t)local;
  kernel->register_limit = register_limit(kernel->func, info->target);
  info->registers = register_count(kernel);
  info->const_bytes = kernel->program->const_bytes > UINT32_MAX ? UINT32_MAX : (uint32_t)kernel->program->const_bytes;
  status = layout_shared(kernel, error);
  if (status == FF_OK && takes_param_address(kernel->func)) {
    status = exec_memory_allocate(kernel->program->memory, info->param_bytes ? info->param_bytes : 1, 0,
                                  EXEC_MEMORY_DEVICE, "kernel parameters", &kernel->params_memory, error);
    if (status == FF_OK) exec_memory_protect_constant(kernel->params_memory);
    if (status == FF_OK) exec_memory_exempt(kernel->params_memory);
  }
  return status;
}

static ff_status make_kernel(exec_program *program, ptx_func *func, exec_kernel **kernel, ff_error *error) {
  ff_status status = ptx_func_read(func, error);
  if (status != FF_OK) return status;
  exec_kernel *made = ff_alloc(sizeof *made);
  made->program = program;
  made->func = func;
  status = describe(made, error);
  if (status != FF_OK) {
    free_kernel(made);
    return status;
  }
  program->kernels[func->index] = made;
  *kernel = made;
  return FF_OK;
}

ff_status exec_program_kernel(exec_program *program, const char *name, exec_kernel **kernel, ff_error *error) {
  pthread_mutex_lock(&program->lock);
  ff_status status = FF_OK;
  ptx_func *func = ptx_find_func(program->module, name);
  exec_kernel *found = func ? program->kernels[func->index] : NULL;
  if (!func || !func->entry || !func->has_body)
    status = ff_fail(error, FF_NOT_FOUND, "%s: no kernel '%s'", program->module->name, name);
  else if (!found) status = make_kernel(program, func, &found, error);
  pthread_mutex_unlock(&program->lock);
  if (status == FF_OK) *kernel = found;
  return status;
}

static bool known(const ptx_func *func, const exec_bound *bound) {
  return bound->reg == PTX_NO_REG || bound->reg < func->reg_count;
}

ff_status exec_kernel_mark(exec_kernel *kernel, const exec_mark *marks, uint32_t count, ff_error *error) {
  for (uint32_t n = 0; n < count; n++) {
    const exec_mark *m = &marks[n];
    if ((n && m->entry <= marks[n - 1].entry) || m->entry >= kernel->func->instr_count ||
        m->exit > kernel->func->instr_count || m->exit == m->entry || !known(kernel->func, &m->from) ||
        !known(kernel->func, &m->to))
      return ff_fail(error, FF_INVALID,
                     "kernel %s: marked region %u, from %u to %u: out of order, or not in the kernel",
                     kernel->info.name, n, m->entry, m->exit);
  }
  pthread_mutex_lock(&kernel->program->lock);
  bool decoded = false;
  for (uint32_t n = 0; n < 2 * EXEC_ISAS; n++) decoded |= kernel->code[n].functions != NULL;
  if (!decoded) {
    kernel->marks = ff_arena_alloc(&kernel->arena, (count + (size_t)1) * sizeof *kernel->marks);
    if (count) memcpy(kernel->marks, marks, count * sizeof *marks);
    kernel->mark_count = count;
  }
  pthread_mutex_unlock(&kernel->program->lock);
  return FF_OK;
}

const exec_kernel_info *exec_kernel_describe(const exec_kernel *kernel) { return &kernel->info; }

/* PTX instructions of a kernel; of a larger one a function when it is first called. No larger one becomes native code
 * (MAX_INSTRUCTIONS of compile/kernel_describe.c), which would ask for all of them. */
#define DECODED_AT_ONCE 60000u

/* Reads the body again, if it was given back when its facts had been found: many may be more together than a module
 * may have. */
static ff_status read_again(const exec_kernel *kernel, uint32_t f, ff_error *error) {
  const ptx_func *func = kernel->reach[f];
  ff_status status = ptx_func_read(own_func(kernel->program, func), error);
  if (status == FF_OK && func->instr_count != exec_facts_of(kernel->program->facts, func)->instr_count)
    return ff_fail(error, FF_INTERNAL, "%s: %s is not what was found before", kernel->program->module->name,
                   func->name);
  return status;
}

/* NULL: its body cannot be read, and *error says why. */
static exec_function *decode_function(const exec_kernel *kernel, uint32_t f, const exec_isa_table *isa, exec_code *code,
                                      ff_error *error) {
  uint32_t pc_base = 0;
  for (uint32_t before = 0; before < f; before++)
    pc_base += exec_facts_of(kernel->program->facts, kernel->reach[before])->instr_count;
  if (read_again(kernel, f, error) != FF_OK) return NULL;
  exec_function *function = exec_decode(kernel, kernel->reach[f], pc_base, isa, &code->arena);
  function->number = f;
  return function;
}

/* The first `count` functions; the others are NULL. */
static ff_status decode_functions(const exec_kernel *kernel, uint32_t count, const exec_isa_table *isa, exec_code *code,
                                  ff_error *error) {
  for (uint32_t f = 0; f < count; f++) { /* before any memory is used */
    ff_status status = read_again(kernel, f, error);
    if (status != FF_OK) return status;
  }
  exec_function **functions = ff_arena_alloc(&code->arena, kernel->reach_count * sizeof *functions);
  for (uint32_t f = 0; f < count; f++) functions[f] = decode_function(kernel, f, isa, code, error);
  code->functions = functions;
  return FF_OK;
}

ff_status exec_kernel_code(exec_kernel *kernel, const exec_isa_table *isa, const exec_code **code, ff_error *error) {
  exec_code *wanted = &kernel->code[exec_isa_index(isa)];
  bool later = kernel->pc_total > DECODED_AT_ONCE && exec_isa_index(isa) < EXEC_ISAS;
  pthread_mutex_lock(&kernel->program->lock);
  ff_status status =
      wanted->functions ? FF_OK : decode_functions(kernel, later ? 1 : kernel->reach_count, isa, wanted, error);
  pthread_mutex_unlock(&kernel->program->lock);
  *code = wanted;
  return status;
}

const exec_function *exec_kernel_decode_later(exec_kernel *kernel, const exec_isa_table *isa, uint32_t f,
                                              ff_error *error) {
  exec_code *code = &kernel->code[exec_isa_index(isa)];
  exec_function *function = __atomic_load_n(&code->functions[f], __ATOMIC_ACQUIRE);
  if (function) return function;
  pthread_mutex_lock(&kernel->program->lock);
  function = code->functions[f];
  if (!function) {
    function = decode_function(kernel, f, isa, code, error);
    __atomic_store_n(&code->functions[f], function, __ATOMIC_RELEASE);
  }
  pthread_mutex_unlock(&kernel->program->lock);
  return function;
}

/* ---- printing ---- */

static void print_operand(ff_text *out, const char *name, uint32_t operand) {
  if (operand) ff_text_add(out, " %s=%s%u", name, operand & 1 ? "c" : "", operand & ~1u);
}

static void print_instr(ff_text *out, const exec_function *function, const exec_instr *i, uint32_t number) {
  static const char *const flows[] = {"",          "guarded",    "bra",  "bra-if",  "brx",  "call",  "call-indirect",
                                      "host-call", "ret",        "exit", "barrier", "sync", "yield", "pull",
                                      "trap",      "unsupported"};
  ff_text_add(out, "%5u %5u %c%c%c %-12s", number, i->rank, i->attention & EXEC_ATTEND_LEADER ? 'L' : '-',
              i->attention & EXEC_ATTEND_WAIT ? 'W' : '-', i->guard != EXEC_NO_GUARD ? '@' : '-', flows[i->flow]);
  print_operand(out, "d", i->dst);
  print_operand(out, "d2", i->dst2);
  for (int s = 0; s < 4; s++) print_operand(out, "s", i->src[s] == EXEC_NO_OFFSET ? 0 : i->src[s]);
  if (i->flow == EXEC_FLOW_BRA || i->flow == EXEC_FLOW_BRA_IF) ff_text_add(out, " -> %u", i->target);
  ff_text_add(out, "\t// ");
  if (i->flow == EXEC_FLOW_UNSUPPORTED) ff_text_add(out, "%s: ", (const char *)i->side);
  if (i->index < function->source->instr_count)
    ptx_print_instr(function->source, &function->source->instrs[i->index], out);
  ff_text_add(out, "\n");
}

void exec_kernel_print(const exec_kernel *kernel, ff_text *out) {
  const exec_code *code;
  exec_kernel *decoded = (exec_kernel *)(uintptr_t)kernel;
  const exec_isa_table *isa = exec_isa_find(NULL);
  if (!isa || exec_kernel_code(decoded, isa, &code, NULL) != FF_OK) return;
  for (uint32_t f = 0; f < kernel->reach_count; f++) {
    ff_error error = {0};
    const exec_function *function = exec_kernel_decode_later(decoded, isa, f, &error);
    if (!function) {
      ff_text_add(out, "%s: %s\n", kernel->reach[f]->name, error.message);
      continue;
    }
    ff_text_add(out, "%s: %u instructions, frame %u bytes, local %u bytes\n", function->name, function->count,
                function->frame_bytes, function->local_bytes);
    for (uint32_t n = 0; n < function->count; n++) print_instr(out, function, &function->code[n], n);
  }
}
