/* SPDX-License-Identifier: Apache-2.0 */
/* Candidates by launch and pc (candidate_table.h): the code (recorded_code.h), and kernels in a hash table whose lists
 * only grow at their heads, so that they are read without a lock.
 *
 * A thread takes the lock to add a kernel or to look at modules. An entry is complete before its list's head points to
 * it. */
#include "offload/candidate_table.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "offload/recorded_code.h"

enum { BUCKETS = 256 };

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
  recorded_code *code;
  _Atomic(entry *) buckets[BUCKETS];
};

offload_table *offload_table_create(void) {
  offload_table *t = ff_alloc(sizeof *t);
  pthread_mutex_init(&t->lock, NULL);
  t->code = recorded_code_create();
  return t;
}

static void entry_free(entry *e) {
  offload_kernel_free(e->kernel);
  free(e->candidates);
  free(e->regions);
  free(e->name);
  free(e);
}

void offload_table_free(offload_table *t) {
  if (!t) return;
  for (uint32_t b = 0; b < BUCKETS; b++)
    for (entry *e = t->buckets[b], *next; e; e = next) {
      next = e->next;
      entry_free(e);
    }
  recorded_code_free(t->code);
  pthread_mutex_destroy(&t->lock);
  free(t);
}

void offload_table_operation(void *table, const trace_op *op) {
  offload_table *t = table;
  if (op->kind != TRACE_OP_MODULE) return;
  pthread_mutex_lock(&t->lock);
  recorded_code_add(t->code, op->module.id, op->module.ptx, op->module.bytes);
  pthread_mutex_unlock(&t->lock);
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
  const ptx_func *func = recorded_code_find(t->code, launch->module, launch->symbol, launch->kernel);
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
  const char *problem = recorded_code_problem(t->code);
  pthread_mutex_unlock(&t->lock);
  return problem;
}

bool offload_table_any(void *table, const trace_launch *launch) {
  const offload_kernel *kernel = offload_table_kernel(table, launch);
  return kernel && kernel->chosen_count;
}
