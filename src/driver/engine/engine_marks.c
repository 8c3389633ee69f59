/* SPDX-License-Identifier: Apache-2.0 */
/* Offload candidates in the access stream: a kernel's code is analysed before its first launch, if the stream has
 * marks.
 *
 * A kernel is marked before it is decoded, or not at all; marks change nothing else (exec_kernel_mark). */
#include <stdlib.h>

#include "driver/engine/engine_internal.h"
#include "offload/candidates.h"

static exec_mark mark_of(const offload_region *region) {
  const offload_trips *t = &region->trips;
  exec_mark mark = {.entry = region->entry, .exit = region->exit, .from.reg = PTX_NO_REG, .to.reg = PTX_NO_REG};
  if (t->kind == OFFLOAD_TRIPS_ONE) mark.trips = 1;
  if (t->kind == OFFLOAD_TRIPS_STATIC) mark.trips = t->count;
  if (t->kind != OFFLOAD_TRIPS_KNOWN) return mark;
  mark.from = (exec_bound){t->from.reg, t->from.value};
  mark.to = (exec_bound){t->to.reg, t->to.value};
  mark.step = t->step;
  mark.compare = t->compare;
  mark.tested_first = t->tested_first;
  mark.is_signed = t->is_signed;
  mark.bits = t->bits;
  return mark;
}

static int by_entry(const void *a, const void *b) {
  const exec_mark *x = a, *y = b;
  return x->entry < y->entry ? -1 : x->entry > y->entry;
}

void engine_function_mark(engine_function *function, int device) {
  engine_kernel *own = &function->on[device];
  if (own->marked || !ff_engine.trace || !trace_program_marks(ff_engine.trace)) return;
  own->marked = true;
  const ptx_func *code = engine_function_code(function);
  if (!code) return;
  offload_kernel *kernel = offload_analyze(code);
  exec_mark *marks = ff_alloc((kernel->chosen_count + (size_t)1) * sizeof *marks);
  uint32_t count = 0;
  for (uint32_t i = 0; i < kernel->region_count; i++)
    if (kernel->regions[i].chosen) marks[count++] = mark_of(&kernel->regions[i]);
  qsort(marks, count, sizeof *marks, by_entry);
  ff_error error;
  if (exec_kernel_mark(own->code, marks, count, &error)) engine_say_once(function->name, "%s", error.message);
  free(marks);
  offload_kernel_free(kernel);
}
