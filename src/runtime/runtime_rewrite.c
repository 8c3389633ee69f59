/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels bound to a range of SMs by persistent blocks (ptx/rewrite/persistent.h), for partitions that no green context
 * carries.
 *
 * A module's bound form is made when the first launch needs it: of its text, or of the text whose kernels take part of
 * a grid (windows). It is a module of its own, so kernels that share variables with others cannot have one.
 *
 * Launches of one queue are in one stream; `turn` changes with each that the driver took. */
#include <string.h>

#include "ptx/ir.h"
#include "ptx/rewrite/persistent.h"
#include "runtime/runtime_check.h"

/* The text is read again, since the windows' module is not kept. */
static ff_result make_of_text(ff_module *m, bound_code *code, const char *text) {
  ptx_module *ptx;
  ff_error error;
  if (ptx_module_parse(m->name, text, strlen(text), &ptx, &error))
    return runtime_fail(FF_ERROR_CODE, "%.*s", (int)strcspn(error.message, "\n"), error.message);
  code->made = ptx_persistent_make(ptx, &(ptx_persistent_options){0});
  ptx_module_free(ptx);
  return FF_SUCCESS;
}

/* The bound form's code, and the kernel's name in what it was made of. */
static ff_result bound_form(ff_kernel *k, uint32_t form, bound_code **out, const char **name) {
  ff_module *m = k->module;
  bound_code *code = *out = &m->bound[form];
  const char *text = NULL;
  if (!m->ptx) return runtime_fail(FF_ERROR_CODE, "kernel '%s' cannot be bound to SMs: %s", k->name, m->reason);
  if (module_has_variables(m))
    return runtime_fail(
        FF_ERROR_CODE,
        "kernel '%s' cannot be bound to SMs: module '%s' has variables, and its rewritten form would have others",
        k->name, m->name);
  *name = check_entry(k);
  if (form == FORM_WINDOW) TRY(module_windows(k, &text, name));
  if (code->made) return FF_SUCCESS;
  if (text) return make_of_text(m, code, text);
  code->made = ptx_persistent_make(check_ptx(m), &(ptx_persistent_options){0});
  return FF_SUCCESS;
}

static ff_result bound_function(ff_kernel *k, uint32_t d, uint32_t form, cuda_function *function) {
  const char *name = NULL;
  bound_code *code;
  *function = k->bound[form][d];
  if (*function) return FF_SUCCESS;
  TRY(bound_form(k, form, &code, &name));
  const ptx_persistent_kernel *found = ptx_persistent_find(code->made, name);
  if (!found || !found->persistent_name)
    return runtime_fail(FF_ERROR_CODE, "kernel '%s' cannot be bound to SMs: %s", k->name,
                        found ? found->reason : "it has no body");
  TRY(module_load_image(k->module, d, code->made->text.chars, &code->loaded[d]));
  TRY(gpu_on(k->module->gpu, d));
  DRIVER_TRY(k->module->gpu, ModuleGetFunction, function, code->loaded[d], found->persistent_name);
  k->bound[form][d] = *function;
  return FF_SUCCESS;
}

ff_result rewrite_prepare(ff_gpu *gpu, const launch *l, const box *part, uint32_t stream, bound_launch *out) {
  const ff_partition *p = l->partition;
  uint32_t which = stream - partition_stream(p, 0);
  int fitting = 0;
  *out = (bound_launch){.queue = p->queues + which * sizeof(ptx_persistent_queue),
                        .numbers = {p->sm_first, p->sm_count, 0, 0, 0, p->turns[which]}};
  for (int i = 0; i < 3; i++) out->numbers[2 + i] = part->to[i] - part->from[i];
  TRY(bound_function(l->kernel, p->device, l->step ? FORM_WINDOW : FORM_WHOLE, &out->function));
  uint32_t threads = l->block[0] * l->block[1] * l->block[2];
  if (!gpu->driver->OccupancyBlocks || gpu->driver->OccupancyBlocks(&fitting, out->function, (int)threads, l->shared) ||
      fitting < 1)
    fitting = 1;
  out->blocks =
      ptx_persistent_blocks((uint32_t)fitting, gpu->devices[p->device].sm_count, p->sm_count, &out->numbers[2]);
  return FF_SUCCESS;
}

void rewrite_parameters(const bound_launch *b, void **pointers) {
  pointers[0] = (void *)(uintptr_t)&b->queue;
  for (int i = 0; i < BOUND_PARAMETERS - 1; i++) pointers[1 + i] = (void *)(uintptr_t)&b->numbers[i];
}

void rewrite_launched(ff_partition *p, uint32_t stream) { p->turns[stream - partition_stream(p, 0)] ^= 1; }

void rewrite_module_free(ff_module *m) {
  for (uint32_t form = 0; form < FORMS; form++) {
    for (uint32_t d = 0; d < m->gpu->device_count; d++) module_unload_image(m, d, &m->bound[form].loaded[d]);
    if (m->bound[form].made) ptx_persistent_free(m->bound[form].made);
  }
}
