/* SPDX-License-Identifier: Apache-2.0 */
/* Facts along the calls of a module: see callers.h. */
#include "ptx/analysis/callers.h"

#include <stdlib.h>
#include <string.h>

typedef struct edge {
  uint32_t caller, next;
} edge; /* a list per callee; next: UINT32_MAX at its end */

struct ptx_callers {
  uint32_t func_count;
  FF_VEC(edge) edges;
  uint32_t first[]; /* per callee */
};

ptx_callers *ptx_callers_create(uint32_t func_count) {
  ptx_callers *c = ff_alloc(sizeof *c + func_count * sizeof *c->first);
  c->func_count = func_count;
  for (uint32_t i = 0; i < func_count; i++) c->first[i] = UINT32_MAX;
  return c;
}

void ptx_callers_add(ptx_callers *c, uint32_t callee, uint32_t caller) {
  edge added = {caller, c->first[callee]};
  c->first[callee] = (uint32_t)c->edges.count;
  FF_PUSH(&c->edges, added);
}

void ptx_callers_spread(const ptx_callers *c, bool (*take_over)(void *context, uint32_t caller, uint32_t callee),
                        void *context) {
  FF_VEC(uint32_t) work = {0};
  for (uint32_t i = 0; i < c->func_count; i++) FF_PUSH(&work, i);
  while (work.count) {
    uint32_t callee = work.items[--work.count];
    for (uint32_t e = c->first[callee]; e != UINT32_MAX; e = c->edges.items[e].next)
      if (take_over(context, c->edges.items[e].caller, callee)) FF_PUSH(&work, c->edges.items[e].caller);
  }
  free(work.items);
}

void ptx_callers_free(ptx_callers *c) {
  free(c->edges.items);
  free(c);
}

void ptx_refuse(ff_arena *arena, const char **reason, const char *format, va_list arguments) {
  ff_error error;
  if (*reason) return;
  ff_vfail(&error, FF_UNSUPPORTED, format, arguments);
  *reason = ff_arena_strndup(arena, error.message, strlen(error.message));
}
