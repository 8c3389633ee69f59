/* SPDX-License-Identifier: Apache-2.0 */
/* Launches that write no records: what they touch (trace/touched.h).
 *
 * Accesses come to the footprint of the worker that makes them, by the functions that make records of others
 * (access_records.c); in the end those of all workers are one. Instructions are counted as where no stream is wanted. A
 * page is one piece where one allocation has all of it; else each of its lines is one. */
#include "base/check.h"
#include "base/memory.h"
#include "exec/core.h"
#include "exec/memory/space.h"
#include "trace/touched.h"

static bool meets(void *context, uint64_t page) {
  const core_launch *launch = context;
  const exec_span *span = exec_memory_span(launch->memory, page);
  return !span || page + EXEC_PAGE_BYTES > span->info.address + span->info.bytes;
}

void core_touched_begin(core_worker *worker, core_launch *launch) {
  if (worker->touched_shape == launch->shape) return;
  if (!worker->touched) {
    worker->touched = ff_alloc(sizeof *worker->touched);
    footprint_open(worker->touched, meets, launch);
  }
  footprint_clear(worker->touched);
  worker->touched->context = launch;
  worker->touched_shape = launch->shape;
}

void core_touched_block(core_block *block) { footprint_block(block->worker->touched, block->index); }

/* Workers see the same allocations, so that they have divided no page in two ways. */
static void join(footprint *all, const footprint *other) {
  for (size_t i = 0; i < other->pieces.count; i++) {
    bool joined = footprint_join(all, &other->pieces.items[i]);
    FF_ASSERT(joined);
  }
}

void core_touched_end(core_launch *launch, footprint **footprints, uint32_t count, uint64_t instructions) {
  footprint *all = NULL, none;
  for (uint32_t n = 0; n < count; n++) {
    if (!footprints[n]) continue;
    if (all) join(all, footprints[n]);
    else all = footprints[n];
  }
  if (!all) footprint_open(all = &none, meets, launch);
  trace_launch_touch(launch->trace, all, instructions);
  if (all == &none) footprint_free(&none);
}
