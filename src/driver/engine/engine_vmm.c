/* SPDX-License-Identifier: Apache-2.0 */
/* Virtual memory management: reservations, memory that has no address, and mappings (Driver API, "Virtual Memory
 * Management"). exec/memory/address_space.h keeps the addresses, exec/memory/backing.h the bytes; this file has
 * the owners.
 *
 *     engine_memory_create --> references 1, mappings 0 --engine_map--> mappings + 1 --engine_unmap--> mappings - 1
 *                              engine_memory_retain: references + 1; engine_memory_release: references - 1
 *                              both 0: given back
 *
 * A handle is slot + 1 in its low half and the slot's generation in the high one, so that the handle of memory that was
 * given back is not taken for that of the slot's next memory. device_used counts each memory once, however often it is
 * mapped, and not what another process made. `mappings` says what each device may do with a mapping; kernels of the
 * device whose turn it is see that.
 *
 * Invariants (engine_vmm_check):
 *
 *     mappings of a memory, and of a reservation, are as many as `mappings` has in them; both lists are in order of
 *     address; a slot without bytes is spare; a memory with bytes has references, mappings or bindings
 *
 * A multicast object is a memory without bytes of its own (engine_multicast.c). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "driver/engine/engine_vmm.h"
#include "exec/memory/backing.h"
#include "exec/memory/multicast.h"
#include "exec/memory/visibility.h"

typedef engine_created physical;

typedef struct reservation {
  const exec_allocation *range;
  uint32_t number, mappings;
  int device;
} reservation;
typedef struct mapping {
  const exec_allocation *range;
  unsigned char access[ENGINE_DEVICES_MAX];
} mapping;

static struct {
  exec_backing backing;
  FF_VEC(physical) slots;
  FF_VEC(uint32_t) spare;
  FF_VEC(reservation) reservations; /* by address */
  FF_VEC(mapping) mappings;         /* likewise */
  uint32_t created, reserved;       /* so far */
} vmm;

static double cost(double microseconds) { return microseconds > 0 ? microseconds : ff_engine.machine->malloc_us; }

static void append_range(trace_op_kind kind, int device, uint64_t address, uint64_t bytes, double microseconds) {
  trace_op op = {.kind = kind, .stream = engine_origin(device)};
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
  return at < vmm.reservations.count && vmm.reservations.items[at].range->address <= address
             ? &vmm.reservations.items[at]
             : NULL;
}

cudaError_t engine_reserve_locked(uint64_t bytes, uint64_t alignment, uint64_t wanted, uint64_t *address) {
  char title[40], name[80];
  const exec_allocation *range;
  snprintf(title, sizeof title, "cuMemAddressReserve #%u", vmm.reserved + 1);
  snprintf(name, sizeof name, "%s (%llu bytes)", title, (unsigned long long)bytes);
  if (exec_memory_reserve(ff_engine.memory, bytes, alignment, wanted, name, &range, NULL))
    return cudaErrorMemoryAllocation;
  vmm.reserved++;
  size_t at = reservation_place(range->address);
  FF_PUSH(&vmm.reservations, ((reservation){0}));
  memmove(&vmm.reservations.items[at + 1], &vmm.reservations.items[at],
          (vmm.reservations.count - 1 - at) * sizeof(reservation));
  vmm.reservations.items[at] = (reservation){.range = range, .number = vmm.reserved, .device = engine_device_of(NULL)};
  trace_op op = {.kind = TRACE_OP_RESERVE, .stream = engine_origin(engine_device_of(NULL))};
  op.alloc.address = range->address;
  op.alloc.bytes = range->bytes;
  op.alloc.id = range->id;
  engine_name_allocation(op.alloc.name, title);
  engine_append(&op);
  engine_time_host(cost(ff_engine.machine->reserve_us));
  *address = range->address;
  return cudaSuccess;
}

cudaError_t engine_reserve(uint64_t bytes, uint64_t alignment, uint64_t wanted, uint64_t *address) {
  if (wanted % EXEC_PAGE_BYTES) return cudaErrorInvalidValue;
  if (!bytes || bytes % EXEC_PAGE_BYTES || (alignment & (alignment - 1)))
    return cudaErrorMemoryAllocation; /* as NVIDIA's driver says, by HIP's tests */
  cudaError_t error = engine_enter();
  if (error) return error;
  error = engine_reserve_locked(bytes, alignment, wanted, address);
  engine_leave();
  return error;
}

static cudaError_t unreserve_at(size_t at) {
  const exec_allocation *range = vmm.reservations.items[at].range;
  append_range(TRACE_OP_UNRESERVE, vmm.reservations.items[at].device, range->address, range->bytes,
               ff_engine.machine->reserve_us);
  ff_status status = exec_memory_release(ff_engine.memory, range->address, NULL);
  vmm.reservations.count--;
  memmove(&vmm.reservations.items[at], &vmm.reservations.items[at + 1],
          (vmm.reservations.count - at) * sizeof(reservation));
  return engine_status_error(status);
}

cudaError_t engine_unreserve_locked(uint64_t address) {
  const reservation *r = reservation_of(address);
  return r && r->range->address == address && !r->mappings ? unreserve_at((size_t)(r - vmm.reservations.items))
                                                           : cudaErrorInvalidValue;
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

uint64_t engine_created_handle(const physical *p) {
  return (uint64_t)p->generation << 32 | (uint64_t)(p - vmm.slots.items + 1);
}

physical *engine_created_bound(uint64_t handle) {
  uint64_t slot = (handle & UINT32_MAX) - 1;
  physical *p = slot < vmm.slots.count ? &vmm.slots.items[slot] : NULL;
  return p && p->bytes && p->generation == handle >> 32 ? p : NULL;
}

physical *engine_created_of(uint64_t handle) {
  physical *p = engine_created_bound(handle);
  return p && p->references ? p : NULL;
}

void engine_created_told(const physical *p) {
  trace_op op = {.kind = TRACE_OP_CREATE, .stream = engine_origin(p->device)};
  op.alloc.bytes = p->bytes;
  op.alloc.id = p->number;
  char title[32];
  if (p->team) op.alloc.address = engine_team_set(p->team);
  snprintf(title, sizeof title, "%s #%u", p->team ? "cuMulticastCreate" : "cuMemCreate", p->number);
  engine_name_allocation(op.alloc.name, title);
  engine_append(&op);
}

physical *engine_created_new(int device, uint64_t bytes) {
  if (!vmm.spare.count) {
    FF_PUSH(&vmm.spare, (uint32_t)vmm.slots.count);
    FF_PUSH(&vmm.slots, ((physical){0}));
  }
  physical *p = &vmm.slots.items[vmm.spare.items[--vmm.spare.count]];
  *p = (physical){
      .bytes = bytes, .generation = p->generation + 1, .references = 1, .number = ++vmm.created, .device = device};
  return p;
}

static uint64_t made(const physical *p) {
  engine_created_told(p);
  engine_time_host(cost(ff_engine.machine->create_us));
  return engine_created_handle(p);
}

/* Where the bytes are to lie: in a file of their own if `shared`. */
static cudaError_t find_place(int device, uint64_t bytes, const void *note, uint32_t note_bytes, uint64_t *offset,
                              engine_shared *shared) {
  ff_error reason;
  engine_shared_head head = {.bytes = bytes, .device = device};
  memcpy(head.note, note, note_bytes);
  if (shared && !engine_shared_make(shared, &head)) {
    engine_say_once("cuMemCreate", "cuMemCreate: no file in memory that processes could share");
    return cudaErrorMemoryAllocation;
  }
  if (!shared && exec_backing_take(&vmm.backing, bytes, offset, &reason)) {
    engine_say_once("cuMemCreate", "cuMemCreate: %s", reason.message);
    return cudaErrorMemoryAllocation;
  }
  return cudaSuccess;
}

cudaError_t engine_memory_create_locked(int device, uint64_t bytes, const void *note, uint32_t note_bytes, bool shared,
                                        uint64_t *handle) {
  uint64_t offset = 0;
  engine_shared file = {0};
  if (!engine_memory_fits(device, ENGINE_DEVICE, bytes)) {
    session_note_no_room(ff_engine.session, "cuMemCreate", bytes, ff_engine.device_used[device]);
    return cudaErrorMemoryAllocation;
  }
  cudaError_t error = find_place(device, bytes, note, note_bytes, &offset, shared ? &file : NULL);
  if (error) return error;
  physical *p = engine_created_new(device, bytes);
  p->offset = offset;
  p->shared = file;
  memcpy(p->note, note, note_bytes);
  ff_engine.device_used[device] += bytes;
  *handle = made(p);
  return cudaSuccess;
}

cudaError_t engine_memory_create(int device, uint64_t bytes, const void *note, uint32_t note_bytes, bool shared,
                                 uint64_t *handle) {
  FF_ASSERT(note_bytes <= ENGINE_NOTE_BYTES);
  if (!is_whole(bytes)) return cudaErrorInvalidValue;
  cudaError_t error = engine_enter();
  if (error) return error;
  error = engine_device_exists(device) ? engine_memory_create_locked(device, bytes, note, note_bytes, shared, handle)
                                       : cudaErrorInvalidDevice;
  engine_leave();
  return error;
}

cudaError_t engine_memory_export(uint64_t handle, int *descriptor) {
  cudaError_t error = engine_enter();
  if (error) return error;
  const physical *p = engine_created_of(handle);
  if (!p || !p->shared.open) error = cudaErrorInvalidValue;
  else if ((*descriptor = engine_shared_give(&p->shared)) < 0) error = cudaErrorOperatingSystem;
  engine_leave();
  return error;
}

/* It is the device's of the same number, where this process has one. */
cudaError_t engine_memory_import(int descriptor, uint64_t *handle) {
  engine_shared_head head;
  engine_shared file;
  cudaError_t error = engine_enter();
  if (error) return error;
  if (engine_shared_take(&file, descriptor, ENGINE_SHARED_TEAM, &head)) {
    engine_shared_close(&file);
    error = engine_team_import(&head, handle);
  } else if (!engine_shared_take(&file, descriptor, ENGINE_SHARED_CREATED, &head) || !is_whole(head.bytes))
    error = cudaErrorInvalidValue;
  else {
    physical *p = engine_created_new(engine_device_exists(head.device) ? head.device : 0, head.bytes);
    p->shared = file;
    p->imported = true;
    memcpy(p->note, head.note, sizeof p->note);
    *handle = made(p);
  }
  engine_leave();
  return error;
}

static void give_bytes(physical *p) {
  if (p->view) munmap(p->view, p->bytes);
  if (p->shared.open) engine_shared_close(&p->shared);
  else exec_backing_give(&vmm.backing, p->offset, p->bytes);
  if (!p->imported) ff_engine.device_used[p->device] -= p->bytes;
}

void engine_created_settle(physical *p) {
  if (!p->bytes || p->references || p->mappings || p->bindings) return;
  engine_team *team = p->team;
  if (!team) give_bytes(p);
  else if (p->shared.open) engine_shared_close(&p->shared);
  p->view = NULL;
  p->team = NULL;
  p->bytes = 0;
  FF_PUSH(&vmm.spare, (uint32_t)(p - vmm.slots.items));
  if (team) engine_team_end(team);
}

static void release_all(physical *p) {
  trace_op op = {.kind = TRACE_OP_RELEASE, .stream = engine_origin(p->device)};
  op.free.id = p->number;
  engine_append(&op);
  engine_time_host(cost(ff_engine.machine->release_us));
  p->references = 0;
  engine_created_settle(p);
}

void engine_memory_release_locked(uint64_t handle) { release_all(engine_created_of(handle)); }

cudaError_t engine_memory_release(uint64_t handle) {
  cudaError_t error = engine_enter();
  if (error) return error;
  physical *p = engine_created_of(handle);
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
  FF_ASSERT(note_bytes <= ENGINE_NOTE_BYTES);
  cudaError_t error = engine_enter();
  if (error) return error;
  const physical *p = engine_created_of(handle);
  if (p && !p->team) memcpy(note, p->note, note_bytes);
  else error = cudaErrorInvalidValue;
  engine_leave();
  return error;
}

cudaError_t engine_memory_owner(uint64_t handle, int *device) {
  cudaError_t error = engine_enter();
  if (error) return error;
  const physical *p = engine_created_of(handle);
  if (p && !p->team) *device = p->device;
  else error = cudaErrorInvalidValue;
  engine_leave();
  return error;
}

/* ---- mappings ---- */

static const exec_allocation *mapping_at(uint64_t address) {
  const exec_allocation *found = exec_memory_find(ff_engine.memory, address);
  return found && found->range == EXEC_MAPPED ? found : NULL;
}

static size_t mapping_place(uint64_t address) { /* of that address, or where it belongs */
  size_t low = 0, high = vmm.mappings.count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (vmm.mappings.items[middle].range->address >= address) high = middle;
    else low = middle + 1;
  }
  return low;
}

static mapping *mapping_of(const exec_allocation *range) { return &vmm.mappings.items[mapping_place(range->address)]; }

static void mapping_insert(const exec_allocation *range) {
  size_t at = mapping_place(range->address);
  FF_PUSH(&vmm.mappings, ((mapping){0}));
  memmove(&vmm.mappings.items[at + 1], &vmm.mappings.items[at], (vmm.mappings.count - 1 - at) * sizeof(mapping));
  vmm.mappings.items[at] = (mapping){.range = range};
}

static void mapping_remove(const exec_allocation *range) {
  size_t at = mapping_place(range->address);
  vmm.mappings.count--;
  memmove(&vmm.mappings.items[at], &vmm.mappings.items[at + 1], (vmm.mappings.count - at) * sizeof(mapping));
}

int engine_mapped_device(const exec_allocation *range) { return engine_created_bound(range->memory)->device; }

static bool allows(unsigned access, bool write) {
  return write ? access == ENGINE_ACCESS_READ_WRITE : access & ENGINE_ACCESS_READ;
}

bool engine_mapped_may(const exec_allocation *range, int device, bool write) {
  return allows(mapping_of(range)->access[device], write);
}

void engine_mapped_open(const exec_allocation *range, int device, unsigned access) {
  mapping_of(range)->access[device] = (unsigned char)access;
  if (engine_devices() == 1) exec_memory_open(range, allows(access, false), allows(access, true));
  engine_peers_changed();
}

void engine_vmm_show(int device) {
  for (size_t i = 0; i < vmm.mappings.count; i++) {
    unsigned access = vmm.mappings.items[i].access[device];
    exec_memory_open(vmm.mappings.items[i].range, allows(access, false), allows(access, true));
  }
}

cudaError_t engine_memory_retain(uint64_t address, uint64_t *handle) {
  cudaError_t error = engine_enter();
  if (error) return error;
  const exec_allocation *range = mapping_at(address);
  if (!range) error = cudaErrorInvalidValue;
  else {
    physical *p = engine_created_bound(range->memory);
    if (!p->references++) engine_created_told(p); /* its handle had been released */
    engine_append_host();
    *handle = range->memory;
  }
  engine_leave();
  return error;
}

static ff_status check_file(const physical *p, ff_error *reason) {
  if (!p->shared.open) return exec_backing_check(&vmm.backing, reason);
  if (engine_shared_lives(&p->shared)) return FF_OK;
  return ff_fail(reason, FF_NO_MEMORY, "the program has closed a file that the virtual GPU's memory lies in");
}

static cudaError_t map_memory(const physical *p, uint64_t address, uint64_t bytes, uint64_t handle, const char *name,
                              const exec_allocation **there) {
  ff_error reason;
  ff_status status = check_file(p, &reason);
  int file = p->shared.open ? p->shared.file : vmm.backing.file;
  if (!status)
    status = exec_memory_map(ff_engine.memory, address, bytes, file, p->offset, handle, name, there, &reason);
  if (status == FF_NO_MEMORY) engine_say_once("cuMemMap", "cuMemMap: %s", reason.message);
  return status ? engine_status_error(status) : cudaSuccess;
}

cudaError_t engine_map_locked(uint64_t address, uint64_t bytes, uint64_t handle) {
  physical *p = engine_created_of(handle);
  cudaError_t error = p && p->team ? engine_team_whole(handle, &p) : cudaSuccess;
  if (error) return error;
  reservation *r = reservation_of(address);
  const exec_allocation *there;
  char name[64];
  if (!p || !r || bytes > p->bytes) return cudaErrorInvalidValue;
  snprintf(name, sizeof name, "%s #%u in cuMemAddressReserve #%u", p->team ? "cuMulticastCreate" : "cuMemCreate",
           p->number, r->number);
  error = p->team ? engine_team_map(p, address, bytes, handle, name, &there)
                  : map_memory(p, address, bytes, handle, name, &there);
  if (error) return error;
  p->mappings++;
  r->mappings++;
  mapping_insert(there);
  trace_op op = {.kind = TRACE_OP_MAP, .stream = engine_origin(p->device)};
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

unsigned char *engine_created_view(physical *p) {
  if (p->view) return p->view;
  int file = p->shared.open ? p->shared.file : vmm.backing.file;
  ff_error reason;
  if (check_file(p, &reason)) return NULL;
  void *view = mmap(NULL, p->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, (off_t)p->offset);
  if (view == MAP_FAILED) return NULL;
  madvise(view, p->bytes, MADV_DONTFORK);
  return p->view = view;
}

void engine_teams_each(bool (*visit)(physical *p, void *context), void *context) {
  for (size_t i = 0; i < vmm.slots.count; i++)
    if (vmm.slots.items[i].bytes && vmm.slots.items[i].team && !visit(&vmm.slots.items[i], context)) return;
}

physical *engine_created_at(uint64_t address, uint64_t *offset, uint64_t *handle) {
  const exec_allocation *range = mapping_at(address);
  if (!range) return NULL;
  *offset = address - range->address;
  *handle = range->memory;
  return engine_created_bound(range->memory);
}

/* Is the range made of whole mappings without gaps? */
static bool whole_mappings(uint64_t address, uint64_t bytes) {
  const exec_allocation *range = mapping_at(address);
  uint64_t at = address;
  if (!bytes || address + bytes < address || !range || range->address != address) return false;
  for (; range && at - address < bytes; range = mapping_at(at)) at += range->bytes;
  return at - address == bytes;
}

bool engine_mapped_range(uint64_t address, uint64_t bytes, bool write) {
  for (uint64_t at = address; at - address < bytes;) {
    const exec_allocation *range = mapping_at(at);
    bool may = false;
    if (range && engine_created_bound(range->memory)->team) return false; /* only for multimem instructions */
    for (int device = 0; range && !may && engine_device_exists(device); device++)
      may = engine_mapped_may(range, device, write);
    if (!may) return false;
    at = range->address + range->bytes;
  }
  return true;
}

cudaError_t engine_unmap_locked(uint64_t address, uint64_t bytes) {
  engine_host_access_collect(false);
  append_range(TRACE_OP_UNMAP, engine_mapped_device(mapping_at(address)), address, bytes, ff_engine.machine->unmap_us);
  for (uint64_t at = address; at - address < bytes;) {
    const exec_allocation range = *mapping_at(at);
    mapping_remove(&range);
    ff_status status = exec_memory_unmap(ff_engine.memory, at, NULL);
    if (status) return engine_status_error(status);
    at += range.bytes;
    reservation_of(range.address)->mappings--;
    physical *p = engine_created_bound(range.memory);
    p->mappings--;
    engine_created_settle(p);
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

/* Is the device one of the team's, of each multicast object that is mapped in the range? */
static bool all_have(uint64_t address, uint64_t bytes, int device) {
  for (uint64_t at = address; at - address < bytes; at += mapping_at(at)->bytes) {
    const engine_team *team = engine_created_bound(mapping_at(at)->memory)->team;
    if (team && !engine_team_has(team, device)) return false;
  }
  return true;
}

cudaError_t engine_set_access(int device, uint64_t address, uint64_t bytes, unsigned access) {
  cudaError_t error = engine_enter();
  if (error) return error;
  if (!engine_device_exists(device)) error = cudaErrorInvalidDevice;
  else if (!whole_mappings(address, bytes)) error = cudaErrorInvalidValue;
  else if (access && !all_have(address, bytes, device)) error = cudaErrorInvalidDevice;
  else {
    append_range(TRACE_OP_SET_ACCESS, device, address, bytes, ff_engine.machine->set_access_us);
    for (uint64_t at = address; at - address < bytes;) {
      const exec_allocation *range = mapping_at(at);
      engine_mapped_open(range, device, access);
      at += range->bytes;
    }
  }
  engine_leave();
  return error;
}

cudaError_t engine_get_access(int device, uint64_t address, unsigned *access) {
  cudaError_t error = engine_enter();
  if (error) return error;
  const exec_allocation *range = mapping_at(address);
  if (!engine_device_exists(device)) error = cudaErrorInvalidDevice;
  else if (!range) error = cudaErrorInvalidValue;
  else *access = mapping_of(range)->access[device];
  engine_leave();
  return error;
}

/* ---- reset ---- */

/* In that range; and, wherever, what is of the device. */
static void unmap_all(const exec_allocation *in, int device) {
  for (size_t i = 0; i < vmm.mappings.count;) {
    const exec_allocation *range = vmm.mappings.items[i].range;
    bool inside = in && range->address - in->address < in->bytes;
    if (inside || (!in && engine_mapped_device(range) == device)) engine_unmap_locked(range->address, range->bytes);
    else i++;
  }
}

void engine_vmm_reset(int device) {
  for (size_t i = vmm.reservations.count; i-- > 0;) {
    if (vmm.reservations.items[i].device != device) continue;
    unmap_all(vmm.reservations.items[i].range, device);
    unreserve_at(i);
  }
  unmap_all(NULL, device);
  engine_teams_forget(device);
  for (size_t i = 0; i < vmm.slots.count; i++)
    if (vmm.slots.items[i].bytes && vmm.slots.items[i].device == device) release_all(&vmm.slots.items[i]);
}

/* ---- checks ---- */

static void check_reservation(const reservation *r, size_t *seen) {
  uint32_t count = 0;
  for (; *seen < vmm.mappings.count; ++*seen, count++) {
    const exec_allocation *range = vmm.mappings.items[*seen].range;
    if (range->address >= r->range->address + r->range->bytes) break;
    FF_ASSERT(range->range == EXEC_MAPPED && range->address >= r->range->address &&
              range->bytes <= r->range->address + r->range->bytes - range->address);
    FF_ASSERT(engine_created_bound(range->memory));
  }
  FF_ASSERT(count == r->mappings);
}

uint64_t engine_vmm_check(int device) {
  size_t seen = 0, spare = 0;
  uint64_t used = 0, mapped = 0, last = 0;
  for (size_t i = 0; i < vmm.reservations.count; i++) {
    FF_ASSERT(!i || vmm.reservations.items[i].range->address >= last);
    last = vmm.reservations.items[i].range->address + vmm.reservations.items[i].range->bytes;
    check_reservation(&vmm.reservations.items[i], &seen);
  }
  FF_ASSERT(seen == vmm.mappings.count);
  for (size_t i = 0; i < vmm.slots.count; i++) {
    const physical *p = &vmm.slots.items[i];
    spare += !p->bytes;
    mapped += p->mappings;
    FF_ASSERT(!p->bytes == !(p->references || p->mappings || p->bindings));
    FF_ASSERT(!p->bindings || (!p->team && p->view));
    if (p->device == device && !p->imported && !p->team) used += p->bytes;
  }
  FF_ASSERT(spare == vmm.spare.count && mapped == vmm.mappings.count);
  return used;
}
