/* SPDX-License-Identifier: Apache-2.0 */
/* Candidates by launch and pc (candidate_table.h): modules as texts, linked when the first kernel of one is asked for;
 * kernels in a hash table whose lists only grow at their heads, so that they are read without a lock.
 *
 * A thread takes the lock to add a kernel or to look at modules. An entry is complete before its list's head points to
 * it. */
#include "offload/candidate_table.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { BUCKETS = 256 };

typedef struct module {
  uint32_t id;
  bool linked_tried;
  FF_VEC(ptx_module *) parts;
  ptx_module *linked; /* NULL: the first part is all there is, or they cannot be linked */
} module;

typedef struct entry { /* a kernel that was asked for */
  struct entry *next;
  uint32_t kernel_index, module;
  uint64_t symbol;
  char *name;             /* trace_launch.kernel */
  offload_kernel *kernel; /* NULL: there is no code */
  uint32_t count;
  sim_candidate *candidates;      /* by pc */
  const offload_region **regions; /* theirs */
} entry;

struct offload_table {
  pthread_mutex_t lock;
  FF_VEC(module *) modules;
  _Atomic(entry *) buckets[BUCKETS];
  char *problem;
};

offload_table *offload_table_create(void) {
  offload_table *t = ff_alloc(sizeof *t);
  pthread_mutex_init(&t->lock, NULL);
  return t;
}

static void entry_free(entry *e) {
  offload_kernel_free(e->kernel);
  free(e->candidates);
  free(e->regions);
  free(e->name);
  free(e);
}

static void module_free(module *m) {
  if (m->linked) ptx_module_free(m->linked);
  for (size_t i = 0; i < m->parts.count; i++) ptx_module_free(m->parts.items[i]);
  free(m->parts.items);
  free(m);
}

void offload_table_free(offload_table *t) {
  if (!t) return;
  for (uint32_t b = 0; b < BUCKETS; b++)
    for (entry *e = t->buckets[b], *next; e; e = next) {
      next = e->next;
      entry_free(e);
    }
  for (size_t i = 0; i < t->modules.count; i++) module_free(t->modules.items[i]);
  free(t->modules.items);
  free(t->problem);
  pthread_mutex_destroy(&t->lock);
  free(t);
}

/* ---- modules ---- */

static void note_problem(offload_table *t, const char *problem) {
  if (!t->problem) t->problem = ff_strdup(problem);
}

static module *module_of(offload_table *t, uint32_t id, bool make) {
  for (size_t i = 0; i < t->modules.count; i++)
    if (t->modules.items[i]->id == id) return t->modules.items[i];
  if (!make) return NULL;
  module *m = ff_alloc(sizeof *m);
  m->id = id;
  FF_PUSH(&t->modules, m);
  return m;
}

void offload_table_operation(void *table, const trace_op *op) {
  offload_table *t = table;
  ptx_module *part;
  ff_error error;
  if (op->kind != TRACE_OP_MODULE || !op->module.bytes) return;
  pthread_mutex_lock(&t->lock);
  module *m = module_of(t, op->module.id, true);
  if (m->linked_tried) note_problem(t, "a module's code comes behind its kernels' launches");
  else if (ptx_module_parse("the recorded PTX", op->module.ptx, op->module.bytes, &part, &error))
    note_problem(t, error.message);
  else FF_PUSH(&m->parts, part);
  pthread_mutex_unlock(&t->lock);
}

static void link_module(offload_table *t, module *m) {
  ff_error error;
  if (m->linked_tried) return;
  m->linked_tried = true;
  if (m->parts.count < 2 || !ptx_link(m->parts.items, (uint32_t)m->parts.count, &m->linked, &error)) return;
  m->linked = NULL;
  note_problem(t, error.message);
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

static const ptx_func *in_code(const ptx_module *code, const trace_launch *launch) {
  if (!launch->symbol) return by_name(code, launch->kernel);
  for (uint32_t i = 0; i < code->func_count; i++)
    if (is_kernel(code->funcs[i]) && trace_symbol(code->funcs[i]->name) == launch->symbol) return code->funcs[i];
  return NULL;
}

static const ptx_func *function_of(offload_table *t, const trace_launch *launch) {
  module *m = module_of(t, launch->module, false);
  if (!m) return NULL;
  link_module(t, m);
  if (m->linked) return in_code(m->linked, launch);
  for (size_t i = 0; i < m->parts.count; i++) {
    const ptx_func *found = in_code(m->parts.items[i], launch);
    if (found) return found;
  }
  return NULL;
}

/* ---- kernels ---- */

static int by_pc(const void *a, const void *b) {
  const offload_region *x = *(const offload_region *const *)a, *y = *(const offload_region *const *)b;
  return x->entry < y->entry ? -1 : x->entry > y->entry;
}

static entry *entry_make(offload_table *t, const trace_launch *launch) {
  entry *e = ff_alloc(sizeof *e);
  *e = (entry){.kernel_index = launch->kernel_index,
               .module = launch->module,
               .symbol = launch->symbol,
               .name = ff_strdup(launch->kernel)};
  const ptx_func *func = function_of(t, launch);
  if (!func) return e;
  e->kernel = offload_analyze(func);
  e->regions = ff_alloc((e->kernel->chosen_count + (size_t)1) * sizeof *e->regions);
  e->candidates = ff_alloc((e->kernel->chosen_count + (size_t)1) * sizeof *e->candidates);
  for (uint32_t i = 0; i < e->kernel->region_count; i++)
    if (e->kernel->regions[i].chosen) e->regions[e->count++] = &e->kernel->regions[i];
  qsort(e->regions, e->count, sizeof *e->regions, by_pc);
  for (uint32_t i = 0; i < e->count; i++) e->candidates[i] = offload_candidate(e->regions[i]);
  return e;
}

static const entry *look_up(const offload_table *t, const trace_launch *launch) {
  const entry *e = atomic_load_explicit(&t->buckets[launch->kernel_index % BUCKETS], memory_order_acquire);
  for (; e; e = e->next)
    if (e->kernel_index == launch->kernel_index && e->module == launch->module && e->symbol == launch->symbol &&
        (e->symbol || !strcmp(e->name, launch->kernel)))
      break;
  return e;
}

static const entry *entry_of(offload_table *t, const trace_launch *launch) {
  const entry *found = look_up(t, launch);
  if (found) return found;
  pthread_mutex_lock(&t->lock);
  found = look_up(t, launch); /* another thread was faster */
  if (!found) {
    _Atomic(entry *) *bucket = &t->buckets[launch->kernel_index % BUCKETS];
    entry *made = entry_make(t, launch);
    made->next = atomic_load_explicit(bucket, memory_order_relaxed);
    atomic_store_explicit(bucket, made, memory_order_release);
    found = made;
  }
  pthread_mutex_unlock(&t->lock);
  return found;
}

static uint32_t index_of(const entry *e, uint32_t pc) { /* e->count: none */
  uint32_t low = 0, high = e->count;
  while (low < high) {
    uint32_t middle = (low + high) / 2;
    if (e->candidates[middle].pc < pc) low = middle + 1;
    else high = middle;
  }
  return low < e->count && e->candidates[low].pc == pc ? low : e->count;
}

const sim_candidate *offload_table_find(void *table, const trace_launch *launch, uint32_t pc) {
  const entry *e = entry_of(table, launch);
  uint32_t i = index_of(e, pc);
  return i < e->count ? &e->candidates[i] : NULL;
}

const offload_region *offload_table_region(offload_table *t, const trace_launch *launch, uint32_t pc) {
  const entry *e = entry_of(t, launch);
  uint32_t i = index_of(e, pc);
  return i < e->count ? e->regions[i] : NULL;
}

const offload_kernel *offload_table_kernel(offload_table *t, const trace_launch *launch) {
  return entry_of(t, launch)->kernel;
}

const char *offload_table_problem(offload_table *t) {
  pthread_mutex_lock(&t->lock);
  const char *problem = t->problem;
  pthread_mutex_unlock(&t->lock);
  return problem;
}

bool offload_table_any(void *table, const trace_launch *launch) {
  const offload_kernel *kernel = offload_table_kernel(table, launch);
  return kernel && kernel->chosen_count;
}
