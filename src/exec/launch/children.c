/* SPDX-License-Identifier: Apache-2.0 */
/* Dynamic parallelism: kernels that threads of a kernel launch (CUDA Programming Guide, "CUDA Dynamic Parallelism").
 *
 * The part of CUDA's device runtime that is PTX runs as it is; the system calls that it makes are here. A launched
 * kernel runs when the launching one has finished, which the guide allows: nothing promises that it starts before, and
 * no thread can wait for it. The order (by block, then as its warps ran; a stream or event of the device orders nothing
 * further) does not depend on the number of host threads: a kernel that launches others is run by one.
 *
 * A parameter buffer is a block of the device heap behind a header that a launch reads back and does not trust. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "exec/memory/access.h"
#include "exec/launch/fault.h"
#include "exec/memory/heap.h"
#include "exec/instructions/host_call.h"
#include "exec/decode/program.h"

/* Results as the device runtime translates them, to cudaErrorInvalidValue and so on. */
enum {
  CNP_SUCCESS = 0,
  CNP_INVALID_VALUE = 1,
  CNP_OUT_OF_MEMORY = 4,
  CNP_INVALID_CONFIGURATION = 7,
  CNP_PENDING_COUNT = 12
};
enum { CUDA_SUCCESS, CUDA_INVALID_VALUE = 1, CUDA_PENDING_COUNT = 69 }; /* of cudaError_t */

/* Streams of cudaGraphLaunch: when the graph of the kernel has ended; at once; the same, beside that graph. */
#define GRAPH_TAIL UINT64_C(0x0100000000000000)
#define GRAPH_AT_ONCE UINT64_C(0x0200000000000000)
#define GRAPH_SIBLING UINT64_C(0x0300000000000000)
#define STREAM_TAIL 3u         /* cudaStreamTailLaunch; every other stream is like the next */
#define MAX_PENDING (1u << 20) /* children of one launch */
#define MAGIC UINT64_C(0x6368696c64206172)

typedef struct parameter_buffer { /* before the parameters */
  uint64_t magic, kernel;
  uint32_t grid[3], block[3], dynamic_shared, unused;
} parameter_buffer;

/* The kernel at an address that a symbol gave; NULL: none. */
static const ptx_func *kernel_at(const core_launch *launch, uint64_t address) {
  const ptx_module *module = launch->kernel->program->module;
  uint64_t distance = address - EXEC_CODE_WINDOW, index = distance / 16 - 1;
  if (!distance || distance % 16 || index >= module->func_count) return NULL;
  const ptx_func *func = module->funcs[index];
  return func->entry && func->has_body ? func : NULL;
}

static bool good_shape(const uint32_t grid[3], const uint32_t block[3]) {
  for (int n = 0; n < 3; n++)
    if (!grid[n] || !block[n] || grid[n] > (n ? 65535u : (uint32_t)INT32_MAX) || block[n] > EXEC_MAX_THREADS)
      return false;
  return (uint64_t)block[0] * block[1] * block[2] <= EXEC_MAX_THREADS;
}

/* (kernel, dim3 grid, dim3 block, shared bytes): where the parameters go; 0: no memory, or no such kernel. */
static uint64_t parameter_buffer_for(core_warp *w, const exec_call *call, uint32_t lane) {
  parameter_buffer header = {.magic = MAGIC,
                             .kernel = core_argument(w, call, 0, lane),
                             .dynamic_shared = (uint32_t)core_argument(w, call, 3, lane)};
  for (uint32_t n = 0; n < 3; n++) {
    header.grid[n] = core_argument_word(w, call, 1, n, lane);
    header.block[n] = core_argument_word(w, call, 2, n, lane);
  }
  const ptx_func *func = kernel_at(w->launch, header.kernel);
  if (!func) return 0;
  uint64_t address = core_device_malloc(w, sizeof header + exec_param_bytes(func) + 16);
  if (!address) return 0;
  memcpy((void *)(uintptr_t)address, &header, sizeof header);
  return address + sizeof header;
}

static uint64_t add_child(core_launch *launch, const exec_child *child) {
  uint64_t result = CNP_SUCCESS;
  pthread_mutex_lock(&launch->lock);
  if (launch->children.count >= MAX_PENDING) result = CNP_PENDING_COUNT;
  else FF_PUSH(&launch->children, *child);
  pthread_mutex_unlock(&launch->lock);
  return result;
}

/* (parameter buffer, stream) */
static uint64_t launch_child(core_warp *w, const exec_call *call, uint32_t lane) {
  uint64_t params = core_argument(w, call, 0, lane), address = params - sizeof(parameter_buffer);
  parameter_buffer header;
  const void *place = core_global_bytes(w, address, sizeof header);
  if (!place) return CNP_INVALID_VALUE;
  memcpy(&header, place, sizeof header);
  const ptx_func *func = header.magic == MAGIC ? kernel_at(w->launch, header.kernel) : NULL;
  uint32_t bytes = func ? exec_param_bytes(func) : 0;
  const void *values = func ? core_global_bytes(w, params, bytes ? bytes : 1) : NULL;
  if (!values) return CNP_INVALID_VALUE;
  if (!good_shape(header.grid, header.block)) {
    core_device_free(w, address);
    return CNP_INVALID_CONFIGURATION;
  }
  exec_child child = {.kernel = func->name,
                      .dynamic_shared = header.dynamic_shared,
                      .at = w->block->index,
                      .tail = core_argument(w, call, 1, lane) == STREAM_TAIL,
                      .params = ff_alloc(bytes + 16u)};
  memcpy(child.grid, header.grid, sizeof child.grid);
  memcpy(child.block, header.block, sizeof child.block);
  memcpy(child.params, values, bytes);
  core_device_free(w, address);
  uint64_t result = add_child(w->launch, &child);
  if (result) free(child.params);
  return result;
}

/* (graph, stream). Nothing translates what it gives: a cudaError_t. */
static uint64_t launch_graph(core_warp *w, const exec_call *call, uint32_t lane) {
  uint64_t graph = core_argument(w, call, 0, lane), stream = core_argument(w, call, 1, lane);
  exec_child child = {.at = w->block->index, .tail = stream == GRAPH_TAIL};
  if (!graph || (!child.tail && stream != GRAPH_AT_ONCE && stream != GRAPH_SIBLING)) return CUDA_INVALID_VALUE;
  child.params = ff_alloc(sizeof graph);
  memcpy(child.params, &graph, sizeof graph);
  if (add_child(w->launch, &child) == CNP_SUCCESS) return CUDA_SUCCESS;
  free(child.params);
  return CUDA_PENDING_COUNT;
}

/* (where the handle goes, flags): streams and events of the device. */
static uint64_t new_handle(core_warp *w, const exec_instr *i, const exec_call *call, uint32_t lane) {
  uint64_t handle = 16 + __atomic_add_fetch(&w->launch->handles, 1, __ATOMIC_RELAXED);
  core_write_memory(w, i, lane, core_argument(w, call, 0, lane), &handle, sizeof handle);
  return CNP_SUCCESS;
}

static uint32_t *last_error(core_warp *w, uint32_t lane) {
  core_block *block = w->block;
  if (!block->errors) block->errors = ff_alloc(EXEC_MAX_THREADS * sizeof *block->errors);
  return &block->errors[w->index * EXEC_LANES + lane];
}

/* (where the answer goes): an int */
static uint64_t answer(core_warp *w, const exec_instr *i, const exec_call *call, uint32_t lane, uint32_t value) {
  core_write_memory(w, i, lane, core_argument(w, call, 0, lane), &value, sizeof value);
  return CNP_SUCCESS;
}

/* (where the answer goes, attribute, device): an int */
static uint64_t attribute(core_warp *w, const exec_instr *i, const exec_call *call, uint32_t lane) {
  const exec_devices *devices = w->launch->request->devices;
  uint32_t device = core_argument_word(w, call, 2, 0, lane);
  int value;
  if (device >= devices->count || !devices->attribute(device, (int)core_argument(w, call, 1, lane), &value))
    return CNP_INVALID_VALUE;
  return answer(w, i, call, lane, (uint32_t)value);
}

/* (where the answer goes, limit): a size_t */
static uint64_t limit(core_warp *w, const exec_instr *i, const exec_call *call, uint32_t lane) {
  const exec_devices *devices = w->launch->request->devices;
  uint32_t which = core_argument_word(w, call, 1, 0, lane);
  if (which >= devices->limit_count) return CNP_INVALID_VALUE;
  uint64_t value = devices->limits[which];
  core_write_memory(w, i, lane, core_argument(w, call, 0, lane), &value, sizeof value);
  return CNP_SUCCESS;
}

static uint64_t about_devices(core_warp *w, const exec_instr *i, const exec_call *call, uint32_t lane) {
  const exec_devices *devices = w->launch->request->devices;
  if (!devices) return CNP_INVALID_VALUE;
  switch (call->host) {
  case EXEC_HOST_DEVICE: return answer(w, i, call, lane, devices->number);
  case EXEC_HOST_DEVICE_COUNT: return answer(w, i, call, lane, devices->count);
  case EXEC_HOST_ATTRIBUTE: return attribute(w, i, call, lane);
  default: return limit(w, i, call, lane);
  }
}

uint64_t core_child_call(core_warp *w, const exec_instr *i, uint32_t lane) {
  const exec_call *call = i->side;
  switch (call->host) {
  case EXEC_HOST_PARAMETER_BUFFER: return w->launch->request->children ? parameter_buffer_for(w, call, lane) : 0;
  case EXEC_HOST_LAUNCH: return w->launch->request->children ? launch_child(w, call, lane) : CNP_INVALID_VALUE;
  case EXEC_HOST_GRAPH_LAUNCH: return w->launch->request->children ? launch_graph(w, call, lane) : CUDA_INVALID_VALUE;
  case EXEC_HOST_NEW_HANDLE: return new_handle(w, i, call, lane);
  case EXEC_HOST_SET_ERROR: return *last_error(w, lane) = (uint32_t)core_argument(w, call, 0, lane);
  case EXEC_HOST_LAST_ERROR: return *last_error(w, lane);
  case EXEC_HOST_DEVICE:
  case EXEC_HOST_DEVICE_COUNT:
  case EXEC_HOST_ATTRIBUTE:
  case EXEC_HOST_LIMIT: return about_devices(w, i, call, lane);
  default: return CNP_SUCCESS;
  }
}

/* By block; within one as they came. */
static int by_place(const void *a, const void *b) {
  const exec_child *x = a, *y = b;
  if (x->tail != y->tail) return x->tail ? 1 : -1;
  return x->at < y->at ? -1 : x->at > y->at;
}

void core_children_finish(core_launch *launch) {
  exec_children *to = launch->request->children;
  size_t count = launch->children.count;
  /* keeps the order within a block */
  for (size_t n = 0; n < count; n++) launch->children.items[n].at = launch->children.items[n].at << 20 | n;
  if (count) qsort(launch->children.items, count, sizeof *launch->children.items, by_place);
  if (to && launch->fault.kind == EXEC_FAULT_NONE) {
    for (size_t n = 0; n < count; n++) FF_PUSH(to, launch->children.items[n]);
    free(launch->children.items);
    launch->children = (exec_children){0};
  }
  exec_children_free(&launch->children);
}

void exec_children_free(exec_children *children) {
  for (size_t n = 0; n < children->count; n++) free(children->items[n].params);
  free(children->items);
  *children = (exec_children){0};
}
