/* SPDX-License-Identifier: Apache-2.0 */
/* Allocations as the program sees them: device, managed, pinned, registered, and what any pointer is.
 *
 * exec/memory/address_space.h holds the bytes; this file adds CUDA's side: the owner of an allocation (the program may
 * free only its own), its flags, how much fits the machine, and the operations of the access stream. Managed memory may
 * exceed the GPU's memory (it is paged); device memory may not. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/engine/engine_internal.h"
#include "driver/engine/engine_ipc.h"
#include "driver/engine/engine_range.h"
#include "driver/engine/engine_site.h"
#include "driver/injection/nvtx.h"
#include "exec/memory/space.h"

static const exec_memory_kind kinds[] = {[ENGINE_DEVICE] = EXEC_MEMORY_DEVICE,
                                         [ENGINE_MANAGED] = EXEC_MEMORY_MANAGED,
                                         [ENGINE_PINNED] = EXEC_MEMORY_PINNED,
                                         [ENGINE_REGISTERED] = EXEC_MEMORY_REGISTERED};
static const trace_memory_kind trace_kinds[] = {[ENGINE_DEVICE] = TRACE_MEMORY_DEVICE,
                                                [ENGINE_MANAGED] = TRACE_MEMORY_MANAGED,
                                                [ENGINE_PINNED] = TRACE_MEMORY_PINNED,
                                                [ENGINE_REGISTERED] = TRACE_MEMORY_PINNED};

static engine_memory memory_of(exec_memory_kind kind) {
  switch (kind) {
  case EXEC_MEMORY_DEVICE: return ENGINE_DEVICE;
  case EXEC_MEMORY_MANAGED: return ENGINE_MANAGED;
  case EXEC_MEMORY_PINNED: return ENGINE_PINNED;
  case EXEC_MEMORY_REGISTERED: return ENGINE_REGISTERED;
  case EXEC_MEMORY_SYSTEM: return ENGINE_PAGEABLE;
  }
  return ENGINE_PAGEABLE;
}

/* ---- notes on exec's allocations ---- */

uint64_t engine_whole_pages(uint64_t bytes) {
  return (bytes + EXEC_PAGE_BYTES - 1) / EXEC_PAGE_BYTES * EXEC_PAGE_BYTES;
}

void engine_name_allocation(char name[64], const char *call) {
  const char *range = farfault_nvtx_range(), *site = ff_engine.trace ? engine_site(NULL) : "";
  char title[128];
  snprintf(title, sizeof title, "%s%s%.63s", site, site[0] ? " " : "", call);
  size_t whole = range ? strlen(range) : 0, other = strlen(title) + sizeof " ()";
  if (!range || other >= 64) {
    snprintf(name, 64, "%.63s", title);
    return;
  }
  size_t left = 64 - other, cut = whole > left ? whole - left : 0;
  while (cut && ((unsigned char)range[cut] & 0xc0) == 0x80) cut++; /* not within a character */
  snprintf(name, 64, "%s (%.60s)", range + cut, title);
}

static engine_note note_of(const exec_allocation *allocation) {
  return allocation->id < ff_engine.notes.count ? ff_engine.notes.items[allocation->id] : (engine_note){0};
}

/* In device_used. */
static bool counts(const exec_allocation *allocation) {
  return allocation->kind == EXEC_MEMORY_DEVICE && note_of(allocation).owner != ENGINE_OWNER_IMPORT;
}

/* What the simulator takes for an allocation or a free, too (machine/host/host.c). */
static void spend_call(engine_owner owner) {
  if (owner == ENGINE_OWNER_PROGRAM) engine_time_host(ff_engine.machine->malloc_us);
}

void engine_note_allocation(int device, const exec_allocation *allocation, unsigned flags, engine_owner owner,
                            const char *name, trace_memory_kind memory) {
  while (ff_engine.notes.count <= allocation->id) FF_PUSH(&ff_engine.notes, (engine_note){0});
  ff_engine.notes.items[allocation->id] =
      (engine_note){.allocation = allocation, .flags = flags, .device = device, .owner = owner};
  if (counts(allocation)) ff_engine.device_used[device] += engine_whole_pages(allocation->bytes);
  engine_peers_changed();
  trace_op op = {.kind = TRACE_OP_ALLOC, .stream = engine_origin(device)};
  op.alloc.address = allocation->address;
  op.alloc.bytes = allocation->bytes;
  op.alloc.memory = memory;
  op.alloc.id = allocation->id;
  op.alloc.initialised = owner != ENGINE_OWNER_PROGRAM;
  if (owner == ENGINE_OWNER_PROGRAM) engine_name_allocation(op.alloc.name, name);
  else snprintf(op.alloc.name, sizeof op.alloc.name, "%s", name);
  if (memory == TRACE_MEMORY_MANAGED) engine_host_access_begin();
  engine_append(&op);
  spend_call(owner);
  if (memory == TRACE_MEMORY_MANAGED) engine_host_access_track(allocation, owner == ENGINE_OWNER_MODULE);
}

void engine_forget_allocation(const exec_allocation *allocation) {
  int device = engine_memory_device(allocation);
  engine_host_access_forget(allocation);
  trace_op op = {.kind = TRACE_OP_FREE, .stream = engine_origin(device)};
  op.free.address = allocation->address;
  op.free.id = allocation->id;
  engine_append(&op);
  spend_call(note_of(allocation).owner);
  engine_ipc_forget(allocation);
  if (counts(allocation)) ff_engine.device_used[device] -= engine_whole_pages(allocation->bytes);
  if (allocation->id < ff_engine.notes.count) ff_engine.notes.items[allocation->id].owner = ENGINE_OWNER_NONE;
}

/* ---- allocating ---- */

bool engine_memory_fits(int device, engine_memory memory, uint64_t bytes) {
  if (bytes >= EXEC_ARENA_BYTES) return false;
  if (memory != ENGINE_DEVICE) return true;
  uint64_t used = ff_engine.device_used[device];
  return used <= ff_engine.gpu_memory && engine_whole_pages(bytes) <= ff_engine.gpu_memory - used;
}

cudaError_t engine_allocate_locked(int device, engine_memory memory, uint64_t bytes, unsigned flags, const char *call,
                                   uint64_t *address) {
  if (!engine_memory_fits(device, memory, bytes)) {
    session_note_no_room(ff_engine.session, call, bytes, ff_engine.device_used[device]);
    return cudaErrorMemoryAllocation;
  }
  char title[64], name[64];
  uint64_t number = ff_engine.allocations + 1;
  snprintf(title, sizeof title, "%.40s #%llu", call, (unsigned long long)number);
  snprintf(name, sizeof name, "%.40s (%llu bytes)", title, (unsigned long long)bytes);
  const exec_allocation *allocation;
  if (exec_memory_allocate(ff_engine.memory, bytes, 512, kinds[memory], name, &allocation, NULL))
    return cudaErrorMemoryAllocation;
  ff_engine.allocations = number;
  engine_note_allocation(device, allocation, flags, ENGINE_OWNER_PROGRAM, title, trace_kinds[memory]);
  *address = allocation->address;
  return cudaSuccess;
}

cudaError_t engine_allocate(engine_memory memory, uint64_t bytes, unsigned flags, const char *call, uint64_t *address) {
  FF_ASSERT(bytes && memory < ENGINE_REGISTERED);
  cudaError_t error = engine_enter_apart();
  if (error) return error;
  error = engine_capture_unsafe();
  if (!error) error = engine_allocate_locked(engine_device_of(NULL), memory, bytes, flags, call, address);
  engine_leave();
  return error;
}

uint64_t engine_allocate_hidden(int device, uint64_t bytes, const char *name) {
  const exec_allocation *allocation;
  if (exec_memory_allocate(ff_engine.memory, bytes, 512, EXEC_MEMORY_DEVICE, name, &allocation, NULL)) return 0;
  exec_memory_exempt(allocation);
  engine_note_allocation(device, allocation, 0, ENGINE_OWNER_MODULE, name, TRACE_MEMORY_DEVICE);
  return allocation->address;
}

void engine_release_hidden(uint64_t address) {
  engine_forget_allocation(exec_memory_find(ff_engine.memory, address));
  exec_memory_release(ff_engine.memory, address, NULL);
}

/* ---- freeing ---- */

/* The live allocation that starts at `address` and belongs to the program; NULL otherwise. */
static const exec_allocation *owned_at(uint64_t address) {
  const exec_allocation *allocation = exec_memory_find(ff_engine.memory, address);
  if (!allocation || allocation->freed || allocation->address != address || allocation->range != EXEC_ALLOCATED)
    return NULL;
  return note_of(allocation).owner == ENGINE_OWNER_PROGRAM ? allocation : NULL;
}

cudaError_t engine_free_locked(uint64_t address, unsigned allowed) {
  bool graph = false;
  cudaError_t error = engine_capture_unsafe();
  if (!error && allowed >> ENGINE_DEVICE & 1) error = engine_graph_free_address(address, NULL, &graph);
  if (error || graph) return error;
  /* "This API will not perform any implicit synchronization when the pointer was allocated with cudaMallocAsync",
   * cudaFree */
  if (allowed >> ENGINE_DEVICE & 1 && engine_pool_take_back(address, NULL)) {
    engine_append_host();
    return cudaSuccess;
  }
  const exec_allocation *allocation = owned_at(address);
  if (!allocation || !(allowed >> memory_of(allocation->kind) & 1)) return cudaErrorInvalidValue;
  engine_host_access_collect(false);
  /* the simulations know by themselves that freeing waits for the device */
  engine_time_wait_device(engine_memory_device(allocation));
  engine_forget_allocation(allocation);
  return engine_status_error(exec_memory_release(ff_engine.memory, address, NULL));
}

cudaError_t engine_free(uint64_t address, unsigned allowed) {
  cudaError_t error = engine_enter();
  if (error) return error;
  const exec_allocation *there = engine_devices() > 1 ? exec_memory_find(ff_engine.memory, address) : NULL;
  if (there) engine_deferred_wait_device(engine_memory_device(there)); /* another than the current one */
  error = ff_engine.sticky ? ff_engine.sticky : engine_free_locked(address, allowed);
  engine_leave();
  return error;
}

/* Frees everything that the program allocated there; module variables went with their modules. */
void engine_memory_reset(int device) {
  for (size_t id = 0; id < ff_engine.notes.count; id++) {
    const engine_note note = ff_engine.notes.items[id];
    if (note.owner != ENGINE_OWNER_PROGRAM || note.device != device) continue;
    engine_forget_allocation(note.allocation);
    if (note.allocation->kind == EXEC_MEMORY_REGISTERED)
      exec_memory_unregister(ff_engine.memory, (void *)(uintptr_t)note.allocation->address, NULL);
    else exec_memory_release(ff_engine.memory, note.allocation->address, NULL);
  }
}

/* ---- registering host memory ---- */

static bool overlaps_known(uint64_t address, uint64_t bytes) {
  const exec_allocation *allocation = exec_memory_find(ff_engine.memory, address);
  if (allocation && !allocation->freed) return true;
  allocation = exec_memory_find(ff_engine.memory, address + bytes - 1);
  return allocation && !allocation->freed;
}

static cudaError_t register_locked(void *host, uint64_t bytes, unsigned flags) {
  engine_system_hide((uint64_t)(uintptr_t)host, bytes);
  if (overlaps_known((uint64_t)(uintptr_t)host, bytes)) return cudaErrorHostMemoryAlreadyRegistered;
  const exec_allocation *allocation;
  ff_status status = exec_memory_register(ff_engine.memory, host, bytes, &allocation, NULL);
  if (status) return engine_status_error(status);
  char title[64];
  snprintf(title, sizeof title, "cudaHostRegister #%llu", (unsigned long long)++ff_engine.allocations);
  engine_note_allocation(engine_device_of(NULL), allocation, flags, ENGINE_OWNER_PROGRAM, title, TRACE_MEMORY_PINNED);
  return cudaSuccess;
}

cudaError_t engine_host_register(void *host, uint64_t bytes, unsigned flags) {
  if (!host || !bytes || (uint64_t)(uintptr_t)host + bytes < bytes) return cudaErrorInvalidValue;
  cudaError_t error = engine_enter();
  if (error) return error;
  error = engine_capture_unsafe();
  if (!error) error = register_locked(host, bytes, flags);
  engine_leave();
  return error;
}

cudaError_t engine_host_unregister(void *host) {
  if (!host) return cudaErrorInvalidValue;
  cudaError_t error = engine_enter();
  if (error) return error;
  const exec_allocation *around = exec_memory_find(ff_engine.memory, (uint64_t)(uintptr_t)host);
  const exec_allocation *allocation = owned_at((uint64_t)(uintptr_t)host);
  const bool inside = around && !around->freed && around->kind == EXEC_MEMORY_REGISTERED;
  if (inside && allocation != around) error = cudaErrorInvalidValue; /* not where it begins */
  else if (!inside) error = cudaErrorHostMemoryNotRegistered;
  else {
    engine_time_wait_device(engine_memory_device(allocation));
    engine_forget_allocation(allocation);
    error = engine_status_error(exec_memory_unregister(ff_engine.memory, host, NULL));
  }
  engine_leave();
  return error;
}

/* ---- asking ---- */

engine_pointer engine_pointer_find_locked(uint64_t address) {
  const exec_allocation *allocation = exec_memory_find(ff_engine.memory, address);
  if (!allocation || allocation->freed || allocation->kind == EXEC_MEMORY_SYSTEM)
    return (engine_pointer){.memory = ENGINE_PAGEABLE};
  if (allocation->range == EXEC_RESERVED)
    return (engine_pointer){
        .memory = ENGINE_PAGEABLE, .address = allocation->address, .bytes = allocation->bytes, .range = EXEC_RESERVED};
  int device = engine_device_of(NULL);
  bool mapped = allocation->range == EXEC_MAPPED;
  return (engine_pointer){
      .range = allocation->range,
      .memory = memory_of(allocation->kind),
      .address = allocation->address,
      .bytes = allocation->bytes,
      .id = allocation->id,
      .flags = note_of(allocation).flags,
      .device = engine_memory_device(allocation),
      .readable = mapped ? engine_mapped_may(allocation, device, false) : engine_peer_may(device, allocation, false),
      .writable = !allocation->read_only &&
                  (mapped ? engine_mapped_may(allocation, device, true) : engine_peer_may(device, allocation, true))};
}

engine_pointer engine_pointer_find(uint64_t address) {
  engine_pointer pointer = {.memory = ENGINE_PAGEABLE};
  if (!engine_started() || pthread_mutex_lock(&ff_engine.lock)) return pointer;
  pointer = engine_pointer_find_locked(address);
  pthread_mutex_unlock(&ff_engine.lock);
  return pointer;
}

cudaError_t engine_memory_info(int device, uint64_t *free_bytes, uint64_t *total_bytes) {
  cudaError_t error = engine_enter_apart();
  if (error) return error;
  uint64_t used = ff_engine.device_used[device < 0 ? engine_device_of(NULL) : device];
  *total_bytes = ff_engine.gpu_memory;
  *free_bytes = used < ff_engine.gpu_memory ? ff_engine.gpu_memory - used : 0;
  engine_append_host();
  engine_leave();
  return cudaSuccess;
}

/* ---- hints ---- */

static bool managed_range(uint64_t address, uint64_t bytes) {
  engine_pointer pointer = engine_pointer_find_locked(address);
  return pointer.memory == ENGINE_MANAGED && bytes && bytes <= pointer.bytes - (address - pointer.address);
}

/* Is all of it the program's own memory, which kernels may touch? All of it is known then. */
static bool system_range(uint64_t address, uint64_t bytes) {
  uint64_t done = 0, part = 1;
  if (address + bytes < address) return false;
  for (; part && done < bytes; done += part)
    part = engine_system_part(address + done, bytes - done, engine_device_of(NULL));
  return bytes && part;
}

static void advise_part(uint64_t address, uint64_t bytes, int advice, int device) {
  trace_op op = {.kind = TRACE_OP_ADVISE};
  op.hint.address = address;
  op.hint.bytes = bytes;
  op.hint.advice = advice;
  op.hint.device = device;
  engine_append(&op);
}

void engine_advise_managed(uint64_t address, uint64_t bytes, int advice, int device) {
  engine_host_access_collect(false);
  advise_part(address, bytes, advice, device);
  engine_range_advise(address, bytes, advice, device);
  engine_time_host(ff_engine.machine->api_us);
}

cudaError_t engine_advise(uint64_t address, uint64_t bytes, int advice, int device) {
  if (advice < cudaMemAdviseSetReadMostly || advice > cudaMemAdviseUnsetAccessedBy) return cudaErrorInvalidValue;
  cudaError_t error = engine_enter();
  if (error) return error;
  if (managed_range(address, bytes)) {
    engine_advise_managed(address, bytes, advice, device);
  } else if (system_range(address, bytes)) {
    for (uint64_t done = 0, part; done < bytes; done += part) {
      part = engine_system_part(address + done, bytes - done, engine_device_of(NULL));
      advise_part(address + done, part, advice, device);
    }
    engine_time_host(ff_engine.machine->api_us);
  } else {
    error = cudaErrorInvalidValue;
  }
  engine_leave();
  return error;
}

void engine_prefetch_on(engine_stream *stream, uint64_t address, uint64_t bytes, int device) {
  engine_host_access_collect(false);
  trace_op op = {.kind = TRACE_OP_PREFETCH, .stream = stream->number};
  op.hint.address = address;
  op.hint.bytes = bytes;
  op.hint.device = device;
  engine_append(&op);
  if (managed_range(address, bytes)) engine_range_prefetch(address, bytes, device);
  engine_time_spend(stream, engine_time_transfer(bytes, device < 0 ? TRACE_D2H : TRACE_H2D), false, false);
}

static cudaError_t prefetch(engine_stream *stream, uint64_t address, uint64_t bytes, int device) {
  bool taken;
  cudaError_t error = engine_deferred_prefetch(stream, address, bytes, device, &taken);
  if (!error && !taken) engine_prefetch_on(stream, address, bytes, device);
  return error;
}

/* Each piece is a prefetch of its own. */
static cudaError_t prefetch_system(engine_stream *stream, uint64_t address, uint64_t bytes, int device) {
  cudaError_t error = cudaSuccess;
  for (uint64_t done = 0, part; done < bytes && !error; done += part) {
    part = engine_system_part(address + done, bytes - done, stream->device);
    error = part ? prefetch(stream, address + done, part, device) : cudaErrorInvalidValue; /* unmapped meanwhile */
  }
  return error;
}

cudaError_t engine_prefetch(uint64_t address, uint64_t bytes, int device, cudaStream_t handle) {
  cudaError_t error = engine_enter_stream(handle);
  if (error) return error;
  engine_stream *stream = engine_stream_find(handle);
  if (!stream) error = engine_stream_error(handle);
  else if (!managed_range(address, bytes) && !system_range(address, bytes)) error = cudaErrorInvalidValue;
  else if (managed_range(address, bytes)) error = prefetch(stream, address, bytes, device);
  else error = prefetch_system(stream, address, bytes, device);
  engine_leave();
  return error;
}
