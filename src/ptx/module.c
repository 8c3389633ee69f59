/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a module's making and of its life, and finding things in it by name. */
#include "ptx/module.h"

#include <stdlib.h>
#include <string.h>

void ptx_module_index(ptx_module *module) {
  for (uint32_t i = 0; i < module->func_count; i++)
    if (!ff_map_get(&module->func_names, module->funcs[i]->name))
      ff_map_set(&module->func_names, module->funcs[i]->name, module->funcs[i]);
  for (uint32_t i = 0; i < module->var_count; i++)
    if (!ff_map_get(&module->var_names, module->vars[i]->name))
      ff_map_set(&module->var_names, module->vars[i]->name, module->vars[i]);
}

ptx_func *ptx_find_func(const ptx_module *module, const char *name) {
  const ptx_func *func = ff_map_get(&module->func_names, name);
  return func ? func->symbol.func : NULL;
}

ptx_var *ptx_find_var(const ptx_module *module, const char *name) { return ff_map_get(&module->var_names, name); }

void ptx_func_take_directives(ptx_func *func, const ptx_func *from) {
  memcpy(func->maxntid, from->maxntid, sizeof func->maxntid);
  memcpy(func->reqntid, from->reqntid, sizeof func->reqntid);
  memcpy(func->cluster, from->cluster, sizeof func->cluster);
  func->minnctapersm = from->minnctapersm;
  if (from->maxnreg) func->maxnreg = from->maxnreg;
  func->noreturn = from->noreturn;
}

void ptx_module_free(ptx_module *module) {
  if (!module) return;
  ptx_linker_free(module);
  ptx_parser_free(module);
  pthread_mutex_destroy(&module->lock);
  ff_arena arena = module->arena;
  ff_map_free(&module->func_names);
  ff_map_free(&module->var_names);
  free(module);
  ff_arena_free(&arena);
}
