/* SPDX-License-Identifier: Apache-2.0 */
/* Virtual memory management: reservations, memory that has no address, and mappings (Driver API, "Virtual Memory
 * Management"). exec/memory.h keeps the addresses, exec/backing.h the bytes; here is who owns what.
 *
 *     engine_memory_create --> references 1, mappings 0 --engine_map--> mappings + 1 --engine_unmap--> mappings - 1
 *                              engine_memory_retain: references + 1; engine_memory_release: references - 1
 *                              both 0: given back
 *
 * A handle is slot + 1 in its low half and the slot's generation in the high one, so one that was given back is never
 * taken for what came after it. What always holds: device_used counts each memory once, however often it is mapped. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/engine_internal.h"
#include "exec/backing.h"

#define NOTE_BYTES 32u

typedef struct physical {
  uint64_t bytes, offset;          /* 0 bytes: the slot is free */
  uint32_t generation, references, mappings;
  uint32_t number;                 /* in the access stream, never used again */
  unsigned char note[NOTE_BYTES];
} physical;

typedef struct reservation { const exec_allocation *range; uint32_t number, mappings; } reservation;

static struct {
  exec_backing backing;
  FF_VEC(physical) slots;
  FF_VEC(uint32_t) spare;
  FF_VEC(reservation) reservations; /* by address */
  uint32_t created, reserved;       /* so far */
} vmm;

static double cost(double microseconds) { return microseconds > 0 ? microseconds : ff_engine.machine->malloc_us; }

static void append_range(trace_op_kind kind, uint64_t address, uint64_t bytes, double microseconds) {
  trace_op op = {.kind = kind};
  op.map.address = address;
  op.map.bytes = bytes;
  engine_append(&op);
  engine_time_host(cost(microseconds));
}

static bool is_whole(uint64_t number) { return number && number % ENGINE_GRANULARITY == 0; }

/* ---- reservations ---- */

static size_t reservation_place(uint64_t address) { /* the first that ends behind it */
  size_t low = 0, high = vmm.reservations.count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    const exec_allocation *range = vmm.reservations.items[middle].range;
    if (range->address + range->bytes > address) high = middle;
    else low = middle + 1;
  }
  return low;
}

static reservation *reservation_of(uint64_t address) {
  size_t at = reservation_place(address);
  return at < vmm.reservations.count && vmm.reservations.items[at].range->address <= address ? &vmm.reservations.items[at] : NULL;
}

cudaError_t engine_reserve_locked(uint64_t bytes, uint64_t alignment, uint64_t wanted, uint64_t *address) {
  char title[40], name[80];
  const exec_allocation *range;
  snprintf(title, sizeof title, "cuMemAddressReserve #%u", vmm.reserved + 1);
  snprintf(name, sizeof name, "%s (%llu bytes)", title, (unsigned long long)bytes);
  if (exec_memory_reserve(ff_engine.memory, bytes, alignment, wanted, name, &range, NULL)) return cudaErrorMemoryAllocation;
  vmm.reserved++;
  size_t at = reservation_place(range->address);
  FF_PUSH(&vmm.reservations, ((reservation){0}));
  memmove(&vmm.reservations.items[at + 1], &vmm.reservations.items[at], (vmm.reservations.count - 1 - at) * sizeof(reservation));
  vmm.reservations.items[at] = (reservation){.range = range, .number = vmm.reserved};
  trace_op op = {.kind = TRACE_OP_RESERVE};
  op.alloc.address = range->address;
  op.alloc.bytes = range->bytes;
  op.alloc.id = range->id;
  snprintf(op.alloc.name, sizeof op.alloc.name, "%s", title);
  engine_append(&op);
  engine_time_host(cost(ff_engine.machine->reserve_us));
  *address = range->address;
  return cudaSuccess;
}

cudaError_t engine_reserve(uint64_t bytes, uint64_t alignment, uint64_t wanted, uint64_t *address) {
  if (!bytes || (bytes | wanted) % EXEC_PAGE_BYTES || (alignment & (alignment - 1))) return cudaErrorInvalidValue;
  cudaError_t error = engine_enter();
  if (error) return error;
  error = engine_reserve_locked(bytes, alignment, wanted, address);
  engine_leave();
  return error;
}

static cudaError_t unreserve_at(size_t at) {
  const exec_allocation *range = vmm.reservations.items[at].range;
  append_range(TRACE_OP_UNRESERVE, range->address, range->bytes, ff_engine.machine->reserve_us);
  ff_status status = exec_memory_release(ff_engine.memory, range->address, NULL);
  vmm.reservations.count--;
  memmove(&vmm.reservations.items[at], &vmm.reservations.items[at + 1], (vmm.reservations.count - at) * sizeof(reservation));
  return engine_status_error(status);
}

cudaError_t engine_unreserve_locked(uint64_t address) {
  const reservation *r = reservation_of(address);
  return r && r->range->address == address && !r->mappings ? unreserve_at((size_t)(r - vmm.reservations.items)) : cudaErrorInvalidValue;
}

cudaError_t engine_unreserve(uint64_t address, uint64_t bytes) {
  cudaError_t error = engine_enter();
  if (error) return error;
  const reservation *r = reservation_of(address);
  if (!r || r->range->address != address || r->range->bytes != bytes || r->mappings) error = cudaErrorInvalidValue;
  else error = unreserve_at((size_t)(r - vmm.reservations.items));
  engine_leave();
  return error;
}

/* ---- memory ---- */

static uint64_t handle_of(const physical *p) { return (uint64_t)p->generation << 32 | (uint64_t)(p - vmm.slots.items + 1); }

/* Also of what is mapped only. NULL: there is none, or none any more. */
static physical *physical_of(uint64_t handle) {
  uint64_t slot = (handle & UINT32_MAX) - 1;
  physical *p = slot < vmm.slots.count ? &vmm.slots.items[slot] : NULL;
  return p && p->bytes && p->generation == handle >> 32 ? p : NULL;
}

static physical *referred(uint64_t handle) {
  physical *p = physical_of(handle);
  return p && p->references ? p : NULL;
}

static void append_create(const physical *p) {
  trace_op op = {.kind = TRACE_OP_CREATE};
  op.alloc.bytes = p->bytes;
  op.alloc.id = p->number;
  snprintf(op.alloc.name, sizeof op.alloc.name, "cuMemCreate #%u", p->number);
  engine_append(&op);
}

cudaError_t engine_memory_create_locked(uint64_t bytes, const void *note, uint32_t note_bytes, uint64_t *handle) {
  uint64_t offset;
  ff_error reason;
  if (!engine_memory_fits(ENGINE_DEVICE, bytes)) {
    session_note_no_room(ff_engine.session, "cuMemCreate", bytes, ff_engine.device_used);
    return cudaErrorMemoryAllocation;
  }
  if (exec_backing_take(&vmm.backing, bytes, &offset, &reason)) {
    engine_say_once("cuMemCreate", "cuMemCreate: %s", reason.message);
    return cudaErrorMemoryAllocation;
  }
  if (!vmm.spare.count) {
    FF_PUSH(&vmm.spare, (uint32_t)vmm.slots.count);
    FF_PUSH(&vmm.slots, ((physical){0}));
  }
  physical *p = &vmm.slots.items[vmm.spare.items[--vmm.spare.count]];
  *p = (physical){.bytes = bytes, .offset = offset, .generation = p->generation + 1, .references = 1, .number = ++vmm.created};
  memcpy(p->note, note, note_bytes);
  ff_engine.device_used += bytes;
  append_create(p);
  engine_time_host(cost(ff_engine.machine->create_us));
  *handle = handle_of(p);
  return cudaSuccess;
}

cudaError_t engine_memory_create(uint64_t bytes, const void *note, uint32_t note_bytes, uint64_t *handle) {
  FF_ASSERT(note_bytes <= NOTE_BYTES);
  if (!is_whole(bytes)) return cudaErrorInvalidValue;
  cudaError_t error = engine_enter();
  if (error) return error;
  error = engine_memory_create_locked(bytes, note, note_bytes, handle);
  engine_leave();
  return error;
}

/* Gives it back if nothing refers to it any more. */
static void settle(physical *p) {
  if (p->references || p->mappings) return;
  exec_backing_give(&vmm.backing, p->offset, p->bytes);
  ff_engine.device_used -= p->bytes;
  p->bytes = 0;
  FF_PUSH(&vmm.spare, (uint32_t)(p - vmm.slots.items));
}

static void release_all(physical *p) {
  trace_op op = {.kind = TRACE_OP_RELEASE};
  op.free.id = p->number;
  engine_append(&op);
  engine_time_host(cost(ff_engine.machine->release_us));
  p->references = 0;
  settle(p);
}

void engine_memory_release_locked(uint64_t handle) { release_all(referred(handle)); }

cudaError_t engine_memory_release(uint64_t handle) {
  cudaError_t error = engine_enter();
  if (error) return error;
  physical *p = referred(handle);
  if (!p) error = cudaErrorInvalidValue;
  else if (p->references == 1) release_all(p);
  else {
    p->references--;
    engine_append_host();
  }
  engine_leave();
  return error;
}

cudaError_t engine_memory_note(uint64_t handle, void *note, uint32_t note_bytes) {
  FF_ASSERT(note_bytes <= NOTE_BYTES);
  cudaError_t error = engine_enter();
  if (error) return error;
  const physical *p = referred(handle);
  if (p) memcpy(note, p->note, note_bytes);
  else error = cudaErrorInvalidValue;
  engine_leave();
  return error;
}

/* ---- mappings ---- */

static const exec_allocation *mapping_at(uint64_t address) {
  const exec_allocation *found = exec_memory_find(ff_engine.memory, address);
  return found && found->range == EXEC_MAPPED ? found : NULL;
}

cudaError_t engine_memory_retain(uint64_t address, uint64_t *handle) {
  cudaError_t error = engine_enter();
  if (error) return error;
  const exec_allocation *mapping = mapping_at(address);
  if (!mapping) error = cudaErrorInvalidValue;
  else {
    physical *p = physical_of(mapping->memory);
    if (!p->references++) append_create(p); /* its handle had been released */
    engine_append_host();
    *handle = mapping->memory;
  }
  engine_leave();
  return error;
}

cudaError_t engine_map_locked(uint64_t address, uint64_t bytes, uint64_t handle) {
  physical *p = referred(handle);
  reservation *r = reservation_of(address);
  const exec_allocation *mapping;
  ff_error reason;
  char name[64];
  if (!p || !r || bytes > p->bytes) return cudaErrorInvalidValue;
  snprintf(name, sizeof name, "cuMemCreate #%u in cuMemAddressReserve #%u", p->number, r->number);
  ff_status status = exec_backing_check(&vmm.backing, &reason);
  if (!status) status = exec_memory_map(ff_engine.memory, address, bytes, vmm.backing.file, p->offset, handle, name, &mapping, &reason);
  if (status == FF_NO_MEMORY) engine_say_once("cuMemMap", "cuMemMap: %s", reason.message);
  if (status) return engine_status_error(status);
  p->mappings++;
  r->mappings++;
  trace_op op = {.kind = TRACE_OP_MAP};
  op.map.address = address;
  op.map.bytes = bytes;
  op.map.memory = p->number;
  engine_append(&op);
  engine_time_host(cost(ff_engine.machine->map_us));
  return cudaSuccess;
}

cudaError_t engine_map(uint64_t address, uint64_t bytes, uint64_t handle) {
  if (!is_whole(address) || !is_whole(bytes) || address + bytes < address) return cudaErrorInvalidValue;
  cudaError_t error = engine_enter();
  if (error) return error;
  error = engine_map_locked(address, bytes, handle);
  engine_leave();
  return error;
}

/* Is the range made of whole mappings without gaps? */
static bool whole_mappings(uint64_t address, uint64_t bytes) {
  const exec_allocation *mapping = mapping_at(address);
  uint64_t at = address;
  if (!bytes || address + bytes < address || !mapping || mapping->address != address) return false;
  for (; mapping && at - address < bytes; mapping = mapping_at(at)) at += mapping->bytes;
  return at - address == bytes;
}

bool engine_mapped_range(uint64_t address, uint64_t bytes, bool write) {
  for (uint64_t at = address; at - address < bytes;) {
    const exec_allocation *mapping = mapping_at(at);
    if (!mapping || !exec_memory_may(mapping, write)) return false;
    at = mapping->address + mapping->bytes;
  }
  return true;
}

cudaError_t engine_unmap_locked(uint64_t address, uint64_t bytes) {
  engine_touch_collect(false);
  append_range(TRACE_OP_UNMAP, address, bytes, ff_engine.machine->unmap_us);
  for (uint64_t at = address; at - address < bytes;) {
    const exec_allocation mapping = *mapping_at(at);
    ff_status status = exec_memory_unmap(ff_engine.memory, at, NULL);
    if (status) return engine_status_error(status);
    at += mapping.bytes;
    reservation_of(mapping.address)->mappings--;
    physical *p = physical_of(mapping.memory);
    p->mappings--;
    settle(p);
  }
  return cudaSuccess;
}

cudaError_t engine_unmap(uint64_t address, uint64_t bytes) {
  cudaError_t error = engine_enter();
  if (error) return error;
  error = whole_mappings(address, bytes) ? engine_unmap_locked(address, bytes) : cudaErrorInvalidValue;
  engine_leave();
  return error;
}

cudaError_t engine_set_access(uint64_t address, uint64_t bytes, unsigned access) {
  cudaError_t error = engine_enter();
  if (error) return error;
  if (!whole_mappings(address, bytes)) error = cudaErrorInvalidValue;
  else {
    append_range(TRACE_OP_SET_ACCESS, address, bytes, ff_engine.machine->set_access_us);
    for (uint64_t at = address; at - address < bytes;) {
      const exec_allocation *mapping = mapping_at(at);
      exec_memory_set_access(mapping, access & ENGINE_ACCESS_READ, access == ENGINE_ACCESS_READ_WRITE);
      at += mapping->bytes;
    }
  }
  engine_leave();
  return error;
}

cudaError_t engine_get_access(uint64_t address, unsigned *access) {
  cudaError_t error = engine_enter();
  if (error) return error;
  const exec_allocation *mapping = mapping_at(address);
  if (!mapping) error = cudaErrorInvalidValue;
  else *access = exec_memory_may(mapping, true) ? ENGINE_ACCESS_READ_WRITE : exec_memory_may(mapping, false) ? ENGINE_ACCESS_READ : ENGINE_ACCESS_NONE;
  engine_leave();
  return error;
}

/* ---- reset ---- */

static void unmap_all(const exec_allocation *range) {
  for (uint64_t at = range->address; at - range->address < range->bytes;) {
    const exec_allocation *mapping = mapping_at(at);
    uint64_t bytes = mapping ? mapping->bytes : ENGINE_GRANULARITY;
    if (mapping) engine_unmap_locked(at, bytes);
    at += bytes;
  }
}

void engine_vmm_reset(void) {
  while (vmm.reservations.count) {
    size_t last = vmm.reservations.count - 1;
    if (vmm.reservations.items[last].mappings) unmap_all(vmm.reservations.items[last].range);
    unreserve_at(last);
  }
  for (size_t i = 0; i < vmm.slots.count; i++)
    if (vmm.slots.items[i].bytes) release_all(&vmm.slots.items[i]);
}
