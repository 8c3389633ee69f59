/* SPDX-License-Identifier: Apache-2.0 */
/* Modules as texts, linked when the first kernel of one is asked for (recorded_code.h). */
#include "offload/recorded_code.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

typedef struct module {
  uint32_t id;
  bool linked_tried;
  FF_VEC(ptx_module *) parts;
  ptx_module *linked; /* NULL: the first part is all there is, or they cannot be linked */
} module;

struct recorded_code {
  FF_VEC(module *) modules;
  char *problem;
};

recorded_code *recorded_code_create(void) { return ff_alloc(sizeof(recorded_code)); }

static void module_free(module *m) {
  if (m->linked) ptx_module_free(m->linked);
  for (size_t i = 0; i < m->parts.count; i++) ptx_module_free(m->parts.items[i]);
  free(m->parts.items);
  free(m);
}

void recorded_code_free(recorded_code *code) {
  if (!code) return;
  for (size_t i = 0; i < code->modules.count; i++) module_free(code->modules.items[i]);
  free(code->modules.items);
  free(code->problem);
  free(code);
}

const char *recorded_code_problem(const recorded_code *code) { return code->problem; }

static void note_problem(recorded_code *code, const char *problem) {
  if (!code->problem) code->problem = ff_strdup(problem);
}

static module *module_of(recorded_code *code, uint32_t id, bool make) {
  for (size_t i = 0; i < code->modules.count; i++)
    if (code->modules.items[i]->id == id) return code->modules.items[i];
  if (!make) return NULL;
  module *m = ff_alloc(sizeof *m);
  m->id = id;
  FF_PUSH(&code->modules, m);
  return m;
}

void recorded_code_add(recorded_code *code, uint32_t id, const char *ptx, uint64_t bytes) {
  ptx_module *part;
  ff_error error;
  if (!bytes) return;
  module *m = module_of(code, id, true);
  if (m->linked_tried) note_problem(code, "a module's code comes behind its kernels' launches");
  else if (ptx_module_parse("the recorded PTX", ptx, bytes, &part, &error)) note_problem(code, error.message);
  else FF_PUSH(&m->parts, part);
}

static void link_module(recorded_code *code, module *m) {
  ff_error error;
  if (m->linked_tried) return;
  m->linked_tried = true;
  if (m->parts.count < 2 || !ptx_link(m->parts.items, (uint32_t)m->parts.count, &m->linked, &error)) return;
  m->linked = NULL;
  note_problem(code, error.message);
}

/* ---- which function it is ---- */

static bool is_kernel(const ptx_func *func) { return func->entry && func->has_body; }

/* `saxpy(int, float*)` is _Z5saxpyiPf, whose name is in there with its length. NULL: none, or more than one. */
static const ptx_func *by_name(const ptx_module *code, const char *name) {
  const ptx_func *found = ptx_find_func(code, name);
  if (found) return is_kernel(found) ? found : NULL;
  char mangled[300];
  size_t length = strcspn(name, "(<");
  snprintf(mangled, sizeof mangled, "_Z%zu%.*s", length, (int)length, name);
  for (uint32_t i = 0; i < code->func_count; i++) {
    if (!is_kernel(code->funcs[i]) || strncmp(code->funcs[i]->name, mangled, strlen(mangled))) continue;
    if (found) return NULL;
    found = code->funcs[i];
  }
  return found;
}

static const ptx_func *in_code(const ptx_module *code, uint64_t symbol, const char *name) {
  if (!symbol) return by_name(code, name);
  for (uint32_t i = 0; i < code->func_count; i++)
    if (is_kernel(code->funcs[i]) && trace_symbol(code->funcs[i]->name) == symbol) return code->funcs[i];
  return NULL;
}

const ptx_func *recorded_code_find(recorded_code *code, uint32_t id, uint64_t symbol, const char *name) {
  module *m = module_of(code, id, false);
  if (!m) return NULL;
  link_module(code, m);
  if (m->linked) return in_code(m->linked, symbol, name);
  for (size_t i = 0; i < m->parts.count; i++) {
    const ptx_func *found = in_code(m->parts.items[i], symbol, name);
    if (found) return found;
  }
  return NULL;
}
