/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel launches: checks, arguments, the operation, the run, and what a fault becomes.
 *
 * A launch that cannot start is the caller's error (CUDA Runtime API, cudaLaunchKernel) and leaves no trace. A launch
 * that starts succeeds as a call; a fault while it runs is sticky and is met by the next call, as on a real
 * device, where the kernel runs after the call has returned. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/engine/engine_graph.h"
#include "driver/engine/engine_internal.h"
#include "driver/errors.h"
#include "driver/properties.h"
#include "driver/engine/engine_site.h"
#include "driver/injection/nvtx.h"
#include "exec/launch/native.h"
#include "trace/touched.h"

#define PRINT_HELD_BYTES (8u << 20) /* more than this is not held back until the next synchronisation */

/* ---- kernel printf ---- */

void engine_print_flush(void) {
  if (!ff_engine.printed.length) return;
  fwrite(ff_engine.printed.chars, 1, ff_engine.printed.length, stdout);
  ff_engine.printed.length = 0;
}

static void print(void *context, const char *text, size_t length) {
  (void)context;
  ff_text_add_bytes(&ff_engine.printed, text, length);
  if (ff_engine.printed.length > PRINT_HELD_BYTES) engine_print_flush();
}

/* ---- checks ---- */

static cudaError_t check_shape(const engine_launch *launch) {
  static const uint64_t grid_most[3] = {INT32_MAX, 65535, 65535}, block_most[3] = {1024, 1024, 64};
  uint64_t threads = 1;
  for (int i = 0; i < 3; i++) {
    if (!launch->grid[i] || launch->grid[i] > grid_most[i]) return cudaErrorInvalidConfiguration;
    if (!launch->block[i] || launch->block[i] > block_most[i]) return cudaErrorInvalidConfiguration;
    threads *= launch->block[i];
  }
  return threads <= 1024 ? cudaSuccess : cudaErrorInvalidConfiguration;
}

static uint32_t threads_of(const engine_launch *launch) {
  return launch->block[0] * launch->block[1] * launch->block[2];
}

static cudaError_t check_resources(const engine_launch *launch, const engine_function_info *info) {
  uint32_t threads = threads_of(launch), cluster[3];
  cudaError_t error = engine_cluster_find(launch, info, cluster);
  if (error) return error;
  if (threads > info->kernel.max_threads) return cudaErrorInvalidValue; /* more than .maxntid promises */
  if (threads > info->max_threads) {
    engine_say_once(
        launch->function->name,
        "a block of %u threads is too large for %.200s: of its %u registers for each (an estimate) an SM has "
        "enough for %u threads",
        threads, launch->function->title, info->kernel.registers, info->max_threads);
    return cudaErrorLaunchOutOfResources;
  }
  return launch->dynamic_shared > info->max_dynamic_shared ? cudaErrorInvalidValue : cudaSuccess;
}

static uint32_t resident_blocks(const engine_function_info *info, const engine_launch *launch,
                                const engine_stream *stream) {
  engine_occupancy occupancy;
  engine_occupancy_of(info, threads_of(launch), launch->dynamic_shared, &occupancy);
  uint64_t blocks = (uint64_t)occupancy.blocks * engine_stream_sms(stream);
  return blocks ? (uint32_t)blocks : 1;
}

static uint64_t grid_blocks(const engine_launch *launch) {
  return (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2];
}

/* ---- arguments ---- */

/* The parameter block, laid out as the PTX says; NULL with *error set if the caller gave too little. */
static unsigned char *pack_arguments(const engine_launch *launch, const exec_kernel_info *kernel, cudaError_t *error) {
  unsigned char *block = ff_alloc(kernel->param_bytes + 8); /* not empty */
  *error = cudaSuccess;
  if (launch->packed) {
    memcpy(block, launch->packed,
           launch->packed_bytes < kernel->param_bytes ? launch->packed_bytes : kernel->param_bytes);
    return block;
  }
  for (uint32_t i = 0; i < kernel->param_count; i++) {
    const exec_param *param = &kernel->params[i];
    if (launch->arguments && launch->arguments[i]) memcpy(block + param->offset, launch->arguments[i], param->size);
    else *error = cudaErrorInvalidValue;
    if (*error) break;
  }
  if (!*error) return block;
  free(block);
  return NULL;
}

/* ---- running ---- */

static cudaError_t fault_error(exec_fault_kind kind) {
  switch (kind) {
  case EXEC_FAULT_ILLEGAL_ADDRESS:
  case EXEC_FAULT_UNDECLARED: return cudaErrorIllegalAddress;
  case EXEC_FAULT_MISALIGNED: return cudaErrorMisalignedAddress;
  case EXEC_FAULT_INVALID_SPACE: return cudaErrorInvalidAddressSpace;
  case EXEC_FAULT_ASSERT: return cudaErrorAssert;
  case EXEC_FAULT_STACK: return cudaErrorHardwareStackError;
  case EXEC_FAULT_BARRIER:
  case EXEC_FAULT_TIMEOUT: return cudaErrorLaunchTimeout;
  case EXEC_FAULT_INVALID_PC: return cudaErrorInvalidPc;
  case EXEC_FAULT_ILLEGAL_INSTRUCTION: return cudaErrorIllegalInstruction;
  case EXEC_FAULT_UNSUPPORTED: return cudaErrorNotSupported;
  case EXEC_FAULT_TRAP:
  case EXEC_FAULT_INTERNAL:
  case EXEC_FAULT_NONE: break;
  }
  return cudaErrorLaunchFailure;
}

static bool waits_in_call; /* the kernel that runs cannot give way: the host thread that launched it waits, too */

static void say_waiting(const char *text) {
  engine_say(
      "%s\n  %s", text,
      waits_in_call
          ? "this launch returns when the kernel has finished: it cannot wait for what the same host thread does later"
          : "the program goes on meanwhile; calls that come after the kernel wait for it");
}

static exec_config configuration(const engine_function_info *info, const engine_launch *launch,
                                 const engine_stream *stream) {
  const machine_spec *m = ff_engine.machine;
  return (exec_config){
      .memory = ff_engine.memory,
      .threads = ff_engine.options.threads,
      .resident_blocks = resident_blocks(info, launch, stream),
      .sm_count = (uint32_t)m->sm_count,
      .sms = stream->green ? stream->green->list : NULL,
      .sms_count = stream->green ? stream->green->count : 0,
      .max_shared =
          (uint32_t)(m->shared_per_block_optin > m->shared_per_block ? m->shared_per_block_optin : m->shared_per_block),
      .stack_bytes = (uint32_t)ff_engine.limits[stream->device][cudaLimitStackSize],
      .heap_bytes = ff_engine.limits[stream->device][cudaLimitMallocHeapSize],
      .max_instructions = ff_engine.options.max_instructions,
      .compute = (uint32_t)(m->compute_major * 10 + m->compute_minor),
      .clock_hz = (uint64_t)(m->clock_mhz * 1e6),
      .print = print,
      .waiting = say_waiting,
      .waiting_ms = ENGINE_WAITING_MS,
      .give_way = engine_deferred_can() && !engine_graph_inside() ? engine_deferred_give_way : NULL,
      .isa = ff_engine.options.isa[0] ? ff_engine.options.isa : NULL,
      .cancel = (const volatile bool *)&ff_engine.stop, /* read by an atomic load */
      .progress_blocks = &ff_engine.progress->blocks_done,
  };
}

static void add_use(trace_launch *traced, uint64_t address) {
  engine_pointer pointer = engine_pointer_find_locked(address);
  const exec_allocation *own = exec_memory_find(ff_engine.memory, address);
  if (own && own->kind == EXEC_MEMORY_SYSTEM && !own->freed)
    pointer = (engine_pointer){.memory = ENGINE_MANAGED, .address = own->address, .bytes = own->bytes};
  else if (pointer.range != EXEC_ALLOCATED) { /* somewhere in a reservation: all that is mapped in it */
    const exec_allocation *holder = exec_memory_holder(exec_memory_find(ff_engine.memory, address));
    pointer = (engine_pointer){.memory = ENGINE_DEVICE, .address = holder->address, .bytes = holder->bytes};
  }
  if (pointer.memory != ENGINE_DEVICE && pointer.memory != ENGINE_MANAGED) return;
  for (uint32_t i = 0; i < traced->use_count; i++)
    if (traced->uses[i].address == pointer.address) return;
  if (traced->use_count < TRACE_USES_MAX)
    traced->uses[traced->use_count++] = (trace_use){pointer.address, pointer.bytes};
}

/* What the launch says that it will use: pointers, wherever in its parameters, and variables that its code names. */
static void note_uses(trace_launch *traced, const exec_kernel_info *kernel, const unsigned char *params) {
  for (uint32_t at = 0; at + 8 <= kernel->param_bytes; at += 8) {
    uint64_t word;
    memcpy(&word, params + at, sizeof word);
    add_use(traced, word);
  }
  for (uint32_t i = 0; i < kernel->variable_count; i++) add_use(traced, kernel->variables[i]);
}

/* As the stream has them: canonical addresses, in `uses`, and in each aligned word of the parameters that is in an
 * allocation, or its end. */
static void make_canonical(trace_launch *traced, const void *params, uint32_t bytes) {
  const exec_memory *memory = ff_engine.memory;
  unsigned char *copy = ff_alloc(bytes + 1);
  memcpy(copy, params, bytes);
  for (uint32_t at = 0; at + 8 <= bytes; at += 8) {
    uint64_t word, canonical;
    memcpy(&word, copy + at, sizeof word);
    bool points = exec_memory_find(memory, word) || (word && exec_memory_find(memory, word - 1));
    canonical = points ? exec_memory_canonical(memory, word) : 0;
    /* the end of registered memory */
    if (points && !canonical) canonical = exec_memory_canonical(memory, word - 1) + 1;
    if (canonical > 1) memcpy(copy + at, &canonical, sizeof canonical);
  }
  trace_launch_set_parameters(traced, copy, bytes);
  free(copy);
  for (uint32_t i = 0; i < traced->use_count; i++)
    traced->uses[i].address = exec_memory_canonical(memory, traced->uses[i].address);
}

/* As much of it as has room there. */
static void copy_text(char *to, size_t room, const char *text) {
  size_t length = strnlen(text, room - 1);
  memcpy(to, text, length);
  to[length] = '\0';
}

/* Of shared memory, in percent; -1: none. The older attribute is asked where the program has not set the newer one. */
static int preferred_carve_out(const engine_launch *launch, const engine_function_info *info) {
  static const int older[] = {[cudaFuncCachePreferNone] = -1,
                              [cudaFuncCachePreferShared] = 100,
                              [cudaFuncCachePreferL1] = 0,
                              [cudaFuncCachePreferEqual] = 50};
  if (launch->carve_out) return launch->carve_out - 1;
  return info->carveout >= 0 ? info->carveout : older[info->cache_preference];
}

/* May its blocks have footprints instead of records? A simulation that samples says so of kernels that it knows: from
 * the third launch on it is asked, and waited for. What a kernel that waits for other threads executes would be counted
 * otherwise than in records, where looks in vain count once. */
static bool may_touch_only(const engine_launch *launch, const engine_function_info *info) {
  const exec_kernel_info *kernel = &info->kernel;
  if (launch->function->runs++ < 2 || launch->cooperative || ff_engine.check) return false;
  return !kernel->may_wait && !kernel->uses_mbarriers && !kernel->reads_smid;
}

/* What the launch finds of the program's L2 controls (trace_l2_controls). */
static void note_l2_controls(trace_l2_controls *l2, const engine_launch *launch, int device) {
  static const uint8_t priorities[] = {TRACE_L2_NORMAL, TRACE_L2_FIRST, TRACE_L2_LAST}; /* by cudaAccessProperty */
  const cudaAccessPolicyWindow *window = &launch->window;
  const exec_memory *memory = ff_engine.memory;
  uint64_t address = (uint64_t)(uintptr_t)window->base_ptr;
  const size_t set_aside = ff_engine.limits[device][cudaLimitPersistingL2CacheSize], most = UINT32_MAX; /* of both */
  l2->set_aside = set_aside < most ? set_aside : most;
  l2->resets = ff_engine.l2_resets[device];
  if (!window->num_bytes || !exec_memory_find(memory, address)) return;
  l2->address = exec_memory_canonical(memory, address);
  l2->bytes = window->num_bytes < most ? window->num_bytes : most;
  l2->share = (uint32_t)(window->hitRatio * (float)TRACE_L2_SHARE + 0.5F);
  l2->hit = priorities[window->hitProp];
  l2->miss = priorities[window->missProp];
}

static trace_launch *trace_begin(const engine_launch *launch, const engine_function_info *info, engine_stream *stream,
                                 const void *params, bool touches) {
  trace_launch *traced = NULL;
  if (ff_engine.trace) {
    uint32_t warps = (threads_of(launch) + 31) / 32;
    traced = trace_launch_create(ff_engine.trace, grid_blocks(launch), warps);
    copy_text(traced->kernel, sizeof traced->kernel, launch->function->title);
    traced->id = ff_engine.launches;
    const char *range = launch->range ? launch->range : farfault_nvtx_range();
    copy_text(traced->range, sizeof traced->range, range ? range : "");
    copy_text(traced->site, sizeof traced->site, launch->site ? launch->site : "");
    memcpy(traced->grid, launch->grid, sizeof traced->grid);
    memcpy(traced->block, launch->block, sizeof traced->block);
    traced->shared_bytes = (uint32_t)(info->kernel.static_shared + launch->dynamic_shared);
    traced->registers = info->kernel.registers;
    traced->kernel_index = launch->function->index - 1;
    traced->carve_out = (uint8_t)(1 + preferred_carve_out(launch, info));
    traced->cooperative = launch->cooperative;
    note_l2_controls(&traced->l2, launch, stream->device);
    if (info->kernel.reads_smid) traced->smids = engine_stream_sms(stream);
    traced->module = launch->function->home->number;
    traced->symbol = trace_symbol(launch->function->name);
    engine_module_trace(launch->function->home);
    note_uses(traced, &info->kernel, params);
    make_canonical(traced, params, info->kernel.param_bytes);
    if (touches) trace_launch_may_ask(traced);
  }
  engine_append(&(trace_op){.kind = TRACE_OP_LAUNCH, .stream = stream->number, .launch = traced});
  return traced;
}

static void show_progress(const engine_launch *launch) {
  session_progress *progress = ff_engine.progress;
  copy_text(progress->kernel, sizeof progress->kernel, launch->function->title);
  progress->launches = ff_engine.launches + 1;
  progress->blocks_done = 0;
  progress->blocks_total = grid_blocks(launch);
}

/* The report says that a kernel failed, and why in one line; the whole message is the program's stderr's. */
static void note_fault(const char *kernel, const char *message) {
  ff_text note = {0};
  ff_text_add(&note, "kernel %s failed: %.*s", kernel, (int)strcspn(message, "\n"), message);
  session_note(ff_engine.session, note.chars);
  free(note.chars);
}

static void count_launches(void) {
  uint64_t compiled, all;
  exec_native_count(&compiled, &all);
  session_count_launches(ff_engine.session, compiled, all);
}

static void runs_no_more(const trace_launch *launch) {
  size_t kept = 0;
  for (size_t i = 0; i < ff_engine.running.count; i++)
    if (ff_engine.running.items[i] != launch) ff_engine.running.items[kept++] = ff_engine.running.items[i];
  ff_engine.running.count = kept;
}

/* No lock: a machine does not change. */
static bool attribute_of(uint32_t device, int attribute, int *value) {
  return properties_attribute(engine_machine(), (int)device, attribute, value);
}

/* Runs one kernel; what it launched is added to `children`. */
static cudaError_t run(const engine_launch *launch, const engine_function_info *info, engine_stream *stream,
                       const void *params, const engine_declared *declared, exec_children *children) {
  exec_config config = configuration(info, launch, stream);
  exec_stats stats = {0};
  exec_fault fault; /* both are written only where something is wrong */
  ff_error reason;
  show_progress(launch);
  engine_function_mark(launch->function, stream->device);
  engine_host_access_collect(true);
  engine_peers_show(stream->device);
  engine_system_show(params, info->kernel.param_bytes, stream->device);
  bool touches = may_touch_only(launch, info);
  exec_devices devices = {.number = (uint32_t)stream->device,
                          .count = (uint32_t)engine_devices(),
                          .attribute = attribute_of,
                          .limits = ff_engine.limits[stream->device],
                          .limit_count = cudaLimitCount};
  exec_launch_request request = {.kernel = launch->function->on[stream->device].code,
                                 .dynamic_shared = (uint32_t)launch->dynamic_shared,
                                 .params = params,
                                 .cooperative = launch->cooperative,
                                 .grids = launch->grids,
                                 .launch_id = ff_engine.launches + 1,
                                 .graph = engine_graph_inside(),
                                 .trace = trace_begin(launch, info, stream, params, touches),
                                 .children = children,
                                 .devices = &devices};
  if (declared) {
    request.uses = declared->uses;
    request.use_count = declared->count;
  }
  memcpy(request.grid, launch->grid, sizeof request.grid);
  memcpy(request.block, launch->block, sizeof request.block);
  engine_cluster_find(launch, info, request.cluster);
  if (request.trace) FF_PUSH(&ff_engine.running, request.trace); /* the process may end while readers are asked */
  request.touches = touches && request.trace && trace_launch_ask(request.trace);
  ff_engine.launches++;
  bool outer_waits = waits_in_call;
  waits_in_call = !config.give_way;
  if (ff_engine.check) check_launch(ff_engine.check, launch->function->title);
  ff_status status = exec_launch_checked(&config, &request, check_hooks(ff_engine.check), &stats, &fault, &reason);
  if (status == FF_FAULT) engine_name_functions(fault.message, sizeof fault.message);
  if (ff_engine.check && status == FF_FAULT && !ff_engine.stop) check_fault(ff_engine.check, &fault);
  runs_no_more(request.trace);
  waits_in_call = outer_waits;
  engine_host_access_settle_all();
  engine_system_settle(stream->device);
  if (request.trace) trace_launch_finish(request.trace);
  ff_engine.progress->warp_instructions += stats.warp_instructions;
  session_add_exec(ff_engine.session, &stats);
  count_launches();
  engine_time_spend(stream, engine_time_kernel(&stats, engine_stream_sms(stream)), true, false);
  if (ff_engine.stop) return cudaErrorCudartUnloading; /* stopped by us: nothing to say */
  if (status == FF_FAULT) {
    engine_say("%s", fault.message);
    note_fault(launch->function->title, fault.message);
    engine_fault_locked(fault_error(fault.kind), stream->device, fault.message);
  } else if (status) {
    engine_say("%s", reason.message);
    return status == FF_INVALID ? cudaErrorInvalidConfiguration : engine_status_error(status);
  }
  return cudaSuccess;
}

/* ---- kernels launched by kernels (exec/launch/children.c) ---- */

typedef struct child_stack {
  exec_children *items;
  size_t count, capacity;
} child_stack; /* the newest ones run next */

/* A kernel that cannot start is a fault of the one that launched it: the thread was told that it would. */
static cudaError_t child_refused(const exec_child *child, const engine_stream *stream, cudaError_t error) {
  ff_text message = {0};
  char *kernel = engine_demangle(child->kernel);
  ff_text_add(
      &message,
      "kernel %s, launched by a kernel with grid (%u,%u,%u), block (%u,%u,%u) and %u bytes of dynamic shared memory: %s",
      kernel, child->grid[0], child->grid[1], child->grid[2], child->block[0], child->block[1], child->block[2],
      child->dynamic_shared, cuda_error_string((int)error));
  engine_say("%s", message.chars);
  note_fault(kernel, message.chars);
  engine_fault_locked(cudaErrorLaunchFailure, stream->device, message.chars);
  free(message.chars);
  free(kernel);
  return cudaSuccess;
}

static void graph_refused(const char *launcher, const engine_stream *stream) {
  ff_text message = {0};
  ff_text_add(&message,
              "kernel %s launched a graph that does not exist, or was not instantiated with "
              "cudaGraphInstantiateFlagDeviceLaunch",
              launcher);
  engine_say("%s", message.chars);
  note_fault(launcher, message.chars);
  engine_fault_locked(cudaErrorLaunchFailure, stream->device, message.chars);
  free(message.chars);
}

static cudaError_t run_child(const exec_child *child, engine_module *module, engine_stream *stream,
                             exec_children *children) {
  engine_launch launch = {.function = engine_function_of_locked(module, child->kernel),
                          .dynamic_shared = child->dynamic_shared,
                          .packed = child->params};
  memcpy(launch.grid, child->grid, sizeof launch.grid);
  memcpy(launch.block, child->block, sizeof launch.block);
  if (!launch.function) return child_refused(child, stream, cudaErrorInvalidDeviceFunction);
  cudaError_t error = check_shape(&launch);
  if (!error) error = engine_function_load_locked(launch.function, stream->device);
  if (error) return child_refused(child, stream, error);
  engine_function_info info;
  engine_function_info_locked(launch.function, stream->device, &info);
  launch.packed_bytes = info.kernel.param_bytes;
  error = engine_tile_settle(&launch, &info, &launch);
  if (!error) error = check_resources(&launch, &info);
  if (error) return child_refused(child, stream, error);
  return run(&launch, &info, stream, child->params, NULL, children);
}

/* In order, each with all that it launches before the next. */
static cudaError_t run_children(const engine_launch *launch, exec_children *first, engine_stream *stream) {
  engine_module *module = launch->function->module;
  child_stack stack = {0};
  cudaError_t error = cudaSuccess;
  FF_VEC(size_t) next = {0};
  FF_PUSH(&stack, *first);
  FF_PUSH(&next, 0);
  *first = (exec_children){0};
  while (stack.count) {
    exec_children *top = &stack.items[stack.count - 1];
    size_t at = next.items[next.count - 1]++;
    if (at == top->count || error || ff_engine.stop || ff_engine.sticky) {
      exec_children_free(top);
      stack.count--;
      next.count--;
      continue;
    }
    exec_children children = {0};
    const exec_child *child = &top->items[at];
    if (child->kernel) error = run_child(child, module, stream, &children);
    else if (!engine_graph_ask(child)) graph_refused(launch->function->title, stream);
    FF_PUSH(&stack, children);
    FF_PUSH(&next, 0);
  }
  free(stack.items);
  free(next.items);
  return error;
}

cudaError_t engine_launch_pack_locked(const engine_launch *launch, int device, engine_function_info *info,
                                      unsigned char **params) {
  if (!engine_handles_have(&ff_engine.handles, launch->function, ENGINE_HANDLE_FUNCTION))
    return cudaErrorInvalidDeviceFunction;
  if (engine_module_device(launch->function->module, device) != device) return cudaErrorInvalidResourceHandle;
  cudaError_t error = check_shape(launch);
  if (!error) error = engine_function_load_locked(launch->function, device);
  if (error) return error;
  engine_function_info_locked(launch->function, device, info);
  engine_launch settled;
  error = engine_tile_settle(launch, info, &settled);
  if (!error) error = check_resources(&settled, info);
  if (!error) *params = pack_arguments(launch, &info->kernel, &error);
  return error;
}

static cudaError_t check_cooperative(const engine_launch *launch, const engine_function_info *info,
                                     const engine_stream *stream) {
  bool fits = !launch->cooperative || grid_blocks(launch) <= resident_blocks(info, launch, stream);
  return fits ? cudaSuccess : cudaErrorCooperativeLaunchTooLarge;
}

cudaError_t engine_launch_check_locked(const engine_launch *launch, uint32_t *lanes) {
  engine_function_info info;
  engine_launch settled;
  unsigned char *params;
  const engine_stream *stream = engine_stream_find(launch->stream);
  if (!stream) return engine_stream_error(launch->stream);
  cudaError_t error = engine_launch_pack_locked(launch, stream->device, &info, &params);
  if (error) return error;
  free(params);
  engine_tile_settle(launch, &info, &settled); /* no error: it was checked when it was packed */
  *lanes += info.kernel.may_wait && !stream->lane;
  return check_cooperative(&settled, &info, stream);
}

cudaError_t engine_launch_packed(const engine_launch *asked, const engine_function_info *info, engine_stream *stream,
                                 unsigned char *params, const engine_declared *declared) {
  exec_children children = {0};
  engine_bound bound;
  engine_launch settled;
  const engine_launch *launch = &settled;
  engine_tile_settle(asked, info, &settled); /* no error: it was checked when it was packed */
  cudaError_t error = check_cooperative(launch, info, stream);
  if (error) return error;
  engine_print_flush(); /* the manual: at the start of a launch */
  bool is_bound = engine_bound_launch(launch, info, stream, params, &bound);
  error = is_bound ? run(&bound.launch, &bound.info, stream, bound.params, declared, &children)
                   : run(launch, info, stream, params, declared, &children);
  if (is_bound) free(bound.params);
  if (children.count && !error) error = run_children(launch, &children, stream);
  exec_children_free(&children);
  return engine_graph_run_asked(stream, error);
}

cudaError_t engine_launch_on(const engine_launch *launch, engine_stream *stream) {
  engine_function_info info;
  unsigned char *params;
  cudaError_t error = engine_launch_pack_locked(launch, stream->device, &info, &params);
  if (error) return error;
  error = engine_launch_packed(launch, &info, stream, params, NULL);
  free(params);
  return error;
}

cudaError_t engine_launch_locked(const engine_launch *launch, engine_declared **declared) {
  engine_stream *stream = engine_stream_find(launch->stream);
  if (!stream) return engine_stream_error(launch->stream);
  /* the Programming Guide, "Stream and Event Behavior" */
  if (stream->device != engine_device_of(NULL)) return cudaErrorInvalidResourceHandle;
  bool taken;
  engine_node_params node = {.kind = ENGINE_NODE_KERNEL, .launch = *launch};
  if (!launch->has_window) node.launch.window = stream->attributes.window.accessPolicyWindow;
  node.launch.has_window = true;
  cudaError_t error = engine_capture_take(stream, &node, true, &taken);
  return error || taken ? error : engine_deferred_launch(&node.launch, stream, declared);
}

engine_launch engine_launch_noted(const engine_launch *launch) {
  engine_launch noted = *launch;
  noted.range = farfault_nvtx_range(); /* it may run later, on another thread */
  noted.site = ff_engine.trace ? engine_site(launch->function->name) : NULL;
  return noted;
}

static cudaError_t run_noted(const engine_launch *noted, engine_declared **declared) {
  cudaError_t error = engine_enter_stream(noted->stream);
  if (error) return error;
  error = engine_launch_locked(noted, declared);
  engine_leave();
  return error;
}

cudaError_t engine_launch_run(const engine_launch *launch) {
  engine_declared *declared = engine_declared_take();
  const engine_launch noted = engine_launch_noted(launch);
  cudaError_t error = cudaSuccess;
  if (launch->before) error = engine_event_record(launch->before, launch->stream);
  if (!error) error = run_noted(&noted, &declared);
  if (!error && launch->behind) error = engine_event_record(launch->behind, launch->stream);
  engine_declared_free(declared);
  return error;
}
