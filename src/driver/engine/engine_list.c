/* SPDX-License-Identifier: Apache-2.0 */
/* What is in a module (engine_list.h). */
#include "driver/engine/engine_list.h"

#include <stdlib.h>

#include "driver/engine/engine_internal.h"

/* The names of its kernels; they live as long as its code. */
static const char **kernel_names(const engine_module *module, uint32_t *count) {
  const ptx_module *code = engine_module_code(module);
  size_t apart = 0; /* parts of it, each a kernel */
  while (module->text && kernel_text_next(module->text, apart)) apart++;
  const char **names = ff_alloc((code->func_count + apart + 1) * sizeof *names);
  for (*count = 0; *count < apart; ++*count) names[*count] = kernel_text_next(module->text, *count);
  for (uint32_t i = 0; i < code->func_count; i++)
    if (code->funcs[i]->entry && code->funcs[i]->has_body) names[(*count)++] = code->funcs[i]->name;
  return names;
}

cudaError_t engine_module_kernels(engine_module *module, engine_function **list, uint32_t most, uint32_t *count) {
  cudaError_t error = engine_module_ready(module);
  if (!error) error = engine_enter();
  if (error) return error;
  const char **names = NULL;
  if (engine_handles_have(&ff_engine.handles, module, ENGINE_HANDLE_MODULE) && module->parts.count)
    names = kernel_names(module, count);
  else error = cudaErrorInvalidResourceHandle;
  engine_leave();
  for (uint32_t i = 0; !error && i < *count && i < most; i++) error = engine_function_find(module, names[i], &list[i]);
  free(names);
  return error;
}

cudaError_t engine_function_module(engine_function *function, engine_module **module) {
  cudaError_t error = engine_enter();
  if (error) return error;
  if (engine_handles_have(&ff_engine.handles, function, ENGINE_HANDLE_FUNCTION)) *module = function->module;
  else error = cudaErrorInvalidResourceHandle;
  engine_leave();
  return error;
}
