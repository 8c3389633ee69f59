/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels bound to a range of SMs (--bind-sms): the program's modules get the persistent form of each kernel
 * (ptx/rewrite/persistent.h), and every launch becomes one of that form, in order on the same stream.
 *
 *   module parsed and linked --engine_bound_module--> its code is the rewritten text, which has each kernel twice
 *   launch packed --engine_bound_launch--> the same launch of NAME__persistent, on a queue of its stream
 *
 * A launch that cannot be bound runs on all SMs, and a note of the run says why: kernels that the rewriting refuses,
 * streams of green contexts, which have SMs of their own. Kernels that kernels launch are not bound. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/engine/engine_internal.h"
#include "ptx/rewrite/persistent.h"

ff_status engine_bound_module(engine_module *module, ff_error *error) {
  const ptx_persistent_options options = {0};
  ff_text name = {0};
  ptx_module *code;
  if (!ff_engine.options.sm_count) return FF_OK;
  ptx_persistents *made = ptx_persistent_make(engine_module_code(module), &options);
  ff_text_add(&name, "module %u with persistent blocks", module->number);
  ff_status status = ptx_module_parse(name.chars, made->text.chars, made->text.length, &code, error);
  free(name.chars);
  if (status) {
    ptx_persistent_free(made);
    return status;
  }
  if (module->linked) ptx_module_free(module->linked);
  module->linked = code;
  module->bound = made;
  return FF_OK;
}

static void note_unbound(const engine_launch *launch, const char *reason) {
  ff_text note = {0};
  ff_text_add(&note, "%.100s is not bound to SMs: %.300s", launch->function->title, reason);
  session_note(ff_engine.session, note.chars);
  free(note.chars);
}

/* The kernel's persistent form, ready on that device; NULL: there is none, and why was noted. */
static engine_function *persistent_form(const engine_launch *launch, int device) {
  engine_module *home = launch->function->home;
  const ptx_persistent_kernel *found =
      home->bound ? ptx_persistent_find(home->bound, engine_kernels_home_name(launch->function)) : NULL;
  engine_function *form =
      found && found->persistent_name ? engine_function_of_locked(home, found->persistent_name) : NULL;
  if (!form) {
    note_unbound(launch, found && found->reason ? found->reason : "its code has no persistent form");
    return NULL;
  }
  if (!form->title) form->title = ff_strdup(launch->function->title); /* reports call it as the program does */
  if (!engine_function_load_locked(form, device)) return form;
  note_unbound(launch, "its persistent form cannot be loaded");
  return NULL;
}

/* Two counters that are zero; 0: no memory. */
static uint64_t queue_of(engine_stream *stream) {
  if (stream->queue) return stream->queue;
  stream->queue = engine_allocate_hidden(stream->device, sizeof(ptx_persistent_queue), "queue of blocks");
  if (stream->queue) memset((void *)(uintptr_t)stream->queue, 0, sizeof(ptx_persistent_queue));
  return stream->queue;
}

void engine_bound_forget(engine_stream *stream) {
  if (stream->queue) engine_release_hidden(stream->queue);
  stream->queue = 0;
}

bool engine_bound_launch(const engine_launch *launch, const engine_function_info *info, engine_stream *stream,
                         const unsigned char *params, engine_bound *out) {
  const session_options *options = &ff_engine.options;
  engine_occupancy occupancy;
  if (!options->sm_count) return false;
  if (stream->green) {
    note_unbound(launch, "its stream is of a green context, which has SMs of its own");
    return false;
  }
  engine_function *form = persistent_form(launch, stream->device);
  if (!form) return false;
  engine_function_info_locked(form, stream->device, &out->info);
  out->info.carveout = info->carveout; /* as the program set them, of the kernel that it knows */
  out->info.cache_preference = info->cache_preference;
  engine_occupancy_of(&out->info, launch->block[0] * launch->block[1] * launch->block[2], launch->dynamic_shared,
                      &occupancy);
  if (!occupancy.blocks || !queue_of(stream)) {
    note_unbound(launch, occupancy.blocks ? "there is no memory for its queue" : "no persistent block fits on an SM");
    return false;
  }
  uint32_t bytes = out->info.kernel.param_bytes, offset = bytes - (uint32_t)sizeof(ptx_persistent_params);
  ptx_persistent_params own = {.queue = stream->queue,
                               .sm_first = options->sm_first,
                               .sm_count = options->sm_count,
                               .grid = {launch->grid[0], launch->grid[1], launch->grid[2]},
                               .turn = stream->turn};
  stream->turn ^= 1;
  out->launch = *launch;
  out->launch.function = form;
  out->launch.grid[0] =
      ptx_persistent_blocks(occupancy.blocks, engine_stream_sms(stream), options->sm_count, launch->grid);
  out->launch.grid[1] = out->launch.grid[2] = 1;
  out->params = ff_alloc(bytes + 8);
  memcpy(out->params, params, info->kernel.param_bytes);
  memcpy(out->params + offset, &own, sizeof own);
  return true;
}
