/* SPDX-License-Identifier: Apache-2.0 */
/* Adds to a module, for each kernel, a second one that runs a window of its grid.
 *
 * The second is a copy whose reads of %ctaid.x ... %nctaid.z are reads of six registers (grid_copy.h). It fills them
 * first, from the special registers and its six added parameters. */
#include "ptx/rewrite/window.h"

#include <stdlib.h>
#include <string.h>

#include "ptx/rewrite/grid_copy.h"

static const ptx_grid_names names = {
    "__window",
    {"window_first_x", "window_first_y", "window_first_z", "window_grid_x", "window_grid_y", "window_grid_z"},
    {"%window_block_x", "%window_block_y", "%window_block_z", "%window_grid_x", "%window_grid_y", "%window_grid_z"},
    {NULL}};
static const ptx_grid_register part = {"%window_part", PTX_U32};
static const ptx_sreg ctaid[3] = {PTX_SREG_CTAID_X, PTX_SREG_CTAID_Y, PTX_SREG_CTAID_Z};

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

/* The offset becomes the block's index in the whole grid. */
static void add_block_index(ptx_grid_copy *c, uint32_t dimension) {
  ptx_operand index = ptx_build_reg(c->first_reg + dimension), scratch = ptx_build_reg(c->first_reg + PTX_GRID_WORDS);
  PTX_GRID_ADD(c, "mov.u32", scratch, ptx_build_sreg(ctaid[dimension]));
  PTX_GRID_ADD(c, "add.u32", index, index, scratch);
}

static void fill(ptx_grid_maker *m, const ptx_func *from) {
  ptx_grid_copy c;
  ptx_var *added = ff_arena_alloc(&m->arena, PTX_GRID_WORDS * sizeof *added);
  for (uint32_t word = 0; word < PTX_GRID_WORDS; word++)
    added[word] = (ptx_var){.name = names.params[word],
                            .place = from->place,
                            .space = PTX_SPACE_PARAM,
                            .type = PTX_U32,
                            .vector = 1,
                            .align = 4,
                            .size = 4,
                            .reg = PTX_NO_REG};
  ptx_grid_begin(&c, m, from, added, PTX_GRID_WORDS, NULL, 0, &part, 1);
  for (uint32_t word = 0; word < PTX_GRID_WORDS; word++)
    PTX_GRID_ADD(&c, "ld.param.u32", ptx_build_reg(c.first_reg + word), ptx_build_at_symbol(&added[word].symbol));
  for (uint32_t dimension = 0; dimension < 3; dimension++) add_block_index(&c, dimension);
  for (uint32_t i = 0; i < from->instr_count; i++) {
    ptx_grid_here(&c, i);
    ptx_grid_instr(&c, &from->instrs[i]);
  }
  ptx_grid_here(&c, from->instr_count);
  ptx_grid_end(&c);
}

/* ---- the module ---- */

static void judge(const ptx_window_facts *facts, const ptx_func *func, const char *old, ptx_window_kernel *kernel) {
  uint32_t bytes = ptx_param_layout(func, NULL);
  kernel->reason = facts[func->index].reason;
  if (!kernel->reason && facts[func->index].reads) kernel->reason = old;
  if (!kernel->reason && ptx_grid_register_parameters(func)) kernel->reason = "its parameters are in registers";
  if (!kernel->reason &&
      (bytes > PTX_PARAMETERS_MAX || (bytes + 3) / 4 * 4 + sizeof(ptx_window_params) > PTX_PARAMETERS_MAX))
    kernel->reason = "its parameters leave no room for six more (4096 bytes)";
  if (kernel->reason) return;
  kernel->offset = (bytes + 3) / 4 * 4;
  kernel->bytes = kernel->offset + (uint32_t)sizeof(ptx_window_params);
}

static void list_kernels(ptx_grid_maker *m, ptx_windows *windows) {
  const ptx_module *module = m->module;
  const char *old = ptx_grid_old_form(module, m->facts, &windows->arena);
  windows->kernels = ff_arena_alloc(&windows->arena, (module->func_count + 1) * sizeof *windows->kernels);
  for (uint32_t i = 0; i < module->func_count; i++) {
    const ptx_func *func = module->funcs[i];
    if (!func->entry || !func->has_body) continue;
    ptx_window_kernel *kernel = &windows->kernels[windows->kernel_count++];
    kernel->name = ff_arena_strndup(&windows->arena, func->name, strlen(func->name));
    judge(m->facts, func, old, kernel);
    if (kernel->reason) continue;
    const char *name = ptx_grid_announce(m, func);
    kernel->window_name = ff_arena_strndup(&windows->arena, name, strlen(name));
  }
}

ptx_windows *ptx_windows_make(const ptx_module *module) {
  ptx_windows *windows = ff_alloc(sizeof *windows);
  ptx_grid_maker m;
  ptx_window_facts *facts = ptx_window_facts_find(module, false, &windows->arena);
  ptx_grid_start(&m, module, facts, &names);
  list_kernels(&m, windows);
  ptx_grid_functions(&m);
  for (uint32_t i = 0; i < module->func_count; i++)
    if (m.copies[i] && m.copies[i]->entry) fill(&m, module->funcs[i]);
  ptx_grid_print(&m, &windows->text);
  ptx_grid_free(&m);
  free(facts);
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
