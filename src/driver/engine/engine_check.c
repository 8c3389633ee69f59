/* SPDX-License-Identifier: Apache-2.0 */
/* The invariants of the engine while its lock is free, checked at the deep level: at every CHECK_EVERY-th call that
 * gives the lock back, and when the process ends. Pools, mappings, graphs, hints and textures have checks of their own,
 * in the files of their state.
 *
 *     handles == streams + events + green contexts + modules with their functions and variables + graphs with their
 *                nodes + execs + objects + arrays + mipmapped arrays
 *     device_used[d] == whole pages of the device allocations on d + bytes of the memory made on d by
 *     engine_memory_create
 *     host_pending == host functions in the list, and the one that runs == host_queued - host_over; pending of all
 *     streams <= host_pending; host_before of streams and events <= host_queued
 *     a kernel or function that is in use on a device belongs to a module that is loaded there; one that failed is
 *     loaded nowhere */
#include "driver/engine/engine_graph_private.h"

enum { CHECK_EVERY = 32 };

/* Every item of a list is a live handle of that kind; adds how many there are to *known. */
#define CHECK_LIST(type, first, handle_kind)                                 \
  do {                                                                       \
    size_t count = 0;                                                        \
    for (const type *item = (first); item; item = item->next, count++)       \
      FF_ASSERT(engine_handles_have(&ff_engine.handles, item, handle_kind)); \
    known += count;                                                          \
  } while (0)

static void check_loaded(const engine_module *m) {
  for (int d = 0; d < (int)ENGINE_DEVICES_MAX; d++) {
    FF_ASSERT(!m->programs[d] || !m->failed);
    for (const engine_function *f = m->functions; f; f = f->next)
      FF_ASSERT(f->module == m && (!f->on[d].code || m->programs[d]));
  }
  FF_ASSERT(!m->failed || m->error);
}

static size_t check_modules(void) {
  size_t known = 0;
  CHECK_LIST(engine_module, ff_engine.modules, ENGINE_HANDLE_MODULE);
  for (const engine_module *m = ff_engine.modules; m; m = m->next) {
    check_loaded(m);
    FF_ASSERT((m->next ? m->next->before : ff_engine.last_module) == m);
    CHECK_LIST(engine_function, m->functions, ENGINE_HANDLE_FUNCTION);
    CHECK_LIST(engine_variable, m->variables, ENGINE_HANDLE_VARIABLE);
  }
  return known;
}

static void check_handles(void) {
  size_t known = check_modules() + engine_graphs_check() + engine_arrays_check();
  CHECK_LIST(engine_stream, ff_engine.streams, ENGINE_HANDLE_STREAM);
  CHECK_LIST(engine_event, ff_engine.events, ENGINE_HANDLE_EVENT);
  CHECK_LIST(engine_green, ff_engine.greens, ENGINE_HANDLE_GREEN);
  FF_ASSERT(known == ff_engine.handles.count);
  for (const engine_stream *s = ff_engine.streams; s; s = s->next)
    FF_ASSERT(!s->gone && s->held >= s->pending && !engine_handles_have(&ff_engine.ended, s, ENGINE_HANDLE_STREAM));
}

static void check_greens(void) {
  for (const engine_green *g = ff_engine.greens; g; g = g->next) {
    const engine_stream *own[] = {g->main, g->join, g->fence};
    FF_ASSERT(g->main);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
      FF_ASSERT(!own[i] || (engine_stream_lives(own[i]) && own[i]->green == g));
  }
}

static void check_host_functions(void) {
  uint32_t listed = 0, pending = 0;
  for (const engine_host_call *c = ff_engine.host_first; c; c = c->next) listed++;
  for (const engine_stream *s = ff_engine.streams; s; s = s->next) pending += s->pending;
  for (int d = 0; d < (int)ENGINE_DEVICES_MAX; d++) pending += ff_engine.legacy[d].pending;
  for (const engine_stream *s = ff_engine.streams; s; s = s->next) FF_ASSERT(s->host_before <= ff_engine.host_queued);
  for (const engine_event *e = ff_engine.events; e; e = e->next) FF_ASSERT(e->host_before <= ff_engine.host_queued);
  for (int d = 0; d < (int)ENGINE_DEVICES_MAX; d++) FF_ASSERT(ff_engine.legacy[d].host_before <= ff_engine.host_queued);
  FF_ASSERT(ff_engine.host_queued - ff_engine.host_over == ff_engine.host_pending);
  FF_ASSERT(pending <= ff_engine.host_pending && listed <= ff_engine.host_pending);
  FF_ASSERT(listed + 1 >= ff_engine.host_pending); /* one may be running */
}

static void check_memory(void) {
  uint64_t used[ENGINE_DEVICES_MAX];
  for (int d = 0; d < (int)ENGINE_DEVICES_MAX; d++) used[d] = engine_vmm_check(d);
  for (size_t id = 0; id < ff_engine.notes.count; id++) {
    const engine_note *note = &ff_engine.notes.items[id];
    if (note->owner == ENGINE_OWNER_NONE || note->owner == ENGINE_OWNER_IMPORT) continue;
    FF_ASSERT(note->allocation->id == id);
    if (note->allocation->kind == EXEC_MEMORY_DEVICE)
      used[note->device] += engine_whole_pages(engine_pool_bytes(note->allocation));
  }
  for (int d = 0; d < (int)ENGINE_DEVICES_MAX; d++) FF_ASSERT(used[d] == ff_engine.device_used[d]);
}

void engine_check(void) {
  if (ff_engine.phase != ENGINE_READY) return;
  check_handles();
  check_greens();
  check_memory();
  check_host_functions();
  engine_pools_check();
  engine_ranges_check();
  engine_textures_check();
}

void engine_check_sometimes(void) {
  static uint32_t calls; /* under the lock */
  if (++calls % CHECK_EVERY == 0) engine_check();
}
