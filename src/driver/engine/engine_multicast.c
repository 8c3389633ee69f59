/* SPDX-License-Identifier: Apache-2.0 */
/* Multicast objects: teams of devices (Driver API, "Multicast Object Management"). An object has a handle as memory has
 * (engine_vmm.c), and is mapped and released as that; behind its addresses lies the memory that was bound to it, of
 * each device (exec/memory/multicast.h).
 *
 *     create --add, for each device--> whole --bind, unbind--> whole; mapped before or after
 *
 * Bound memory of cuMemCreate is kept until it is unbound or the object goes; a pool's is unbound when it is freed.
 * Bindings of a device do not overlap. The objects of other processes cannot be had: the memory of their devices is not
 * in this one. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "driver/engine/engine_peer.h"
#include "driver/engine/engine_pool_parts.h"
#include "driver/engine/engine_vmm.h"
#include "exec/memory/multicast.h"
#include "machine/spec/links.h"

typedef struct binding {
  uint32_t member;
  uint64_t offset, bytes; /* in the object */
  uint64_t memory, from;  /* its handle, and where in it; of a pool's memory 0, and its address */
} binding;

struct engine_team {
  exec_multicast view; /* .members: as many as are to be added */
  uint32_t count;      /* that have been added */
  int devices[EXEC_TEAM_MAX];
  FF_VEC(binding) bindings;
};

typedef struct team_note { /* in a file that is given to other processes */
  int64_t process;
  uint64_t handle;
} team_note;
_Static_assert(sizeof(team_note) <= sizeof((engine_shared_head *)0)->note, "the file has room for it");

static bool is_whole(uint64_t number) { return number % ENGINE_GRANULARITY == 0; }

/* The machine has a switch between its devices that adds up, and instructions that ask it to. */
static bool supported(void) {
  const machine_spec *machine = ff_engine.machine;
  return machine->switch_gbs > 0 && machine->compute_major >= 9;
}

/* ---- teams ---- */

uint32_t engine_team_set(const engine_team *team) {
  uint32_t set = 0;
  for (uint32_t n = 0; n < team->count; n++) set |= UINT32_C(1) << team->devices[n];
  return set;
}

bool engine_team_has(const engine_team *team, int device) { return engine_team_set(team) >> device & 1; }

static bool member_of(const engine_team *team, int device, uint32_t *member) {
  for (*member = 0; *member < team->count; ++*member)
    if (team->devices[*member] == device) return true;
  return false;
}

/* A file that stands for the object where it is given to others. */
static bool make_file(engine_created *p) {
  engine_shared_head head = {.bytes = p->bytes, .device = p->device, .kind = ENGINE_SHARED_TEAM};
  const team_note note = {.process = getpid(), .handle = engine_created_handle(p)};
  memcpy(head.note, &note, sizeof note);
  return engine_shared_make(&p->shared, &head);
}

static cudaError_t create(uint32_t devices, uint64_t bytes, bool shared, uint64_t *handle) {
  if (!supported()) {
    engine_say_once("cuMulticastCreate",
                    "cuMulticastCreate: a multicast object needs several GPUs of compute capability 9.0 with a switch "
                    "between them (a machine with switch_gbs: dgx-h100)");
    return cudaErrorNotSupported;
  }
  if (!bytes || !is_whole(bytes) || !devices || devices > engine_devices() || bytes > EXEC_ARENA_BYTES)
    return cudaErrorInvalidValue;
  engine_created *p = engine_created_new(engine_device_of(NULL), bytes);
  engine_team *team = p->team = ff_alloc(sizeof *team);
  team->view = (exec_multicast){.members = devices, .piece_bytes = ENGINE_GRANULARITY};
  team->view.host = ff_alloc(bytes / ENGINE_GRANULARITY * devices * sizeof *team->view.host);
  if (shared && !make_file(p)) {
    p->references = 0;
    engine_created_settle(p);
    return cudaErrorMemoryAllocation;
  }
  engine_append_host();
  *handle = engine_created_handle(p);
  return cudaSuccess;
}

cudaError_t engine_multicast_create(uint32_t devices, uint64_t bytes, bool shared, uint64_t *handle) {
  cudaError_t error = engine_enter();
  if (error) return error;
  error = create(devices, bytes, shared, handle);
  engine_leave();
  return error;
}

cudaError_t engine_multicast_add(uint64_t handle, int device) {
  cudaError_t error = engine_enter();
  if (error) return error;
  engine_created *p = engine_created_of(handle);
  uint32_t member;
  if (!p || !p->team) error = cudaErrorInvalidValue;
  else if (!engine_device_exists(device)) error = cudaErrorInvalidDevice;
  else if (p->team->count == p->team->view.members || member_of(p->team, device, &member))
    error = cudaErrorInvalidValue;
  else {
    p->team->devices[p->team->count++] = device;
    engine_append_host();
    if (p->team->count == p->team->view.members) engine_created_told(p);
    pthread_cond_broadcast(&ff_engine.behind_done);
  }
  engine_leave();
  return error;
}

/* Who ends the wait: a thread that adds the last device, or releases the object, or whose kernel faults, after which no
 * device can be added any more. */
cudaError_t engine_team_whole(uint64_t handle, engine_created **object) {
  for (;;) {
    engine_created *p = *object = engine_created_of(handle);
    if (ff_engine.sticky) return ff_engine.sticky;
    if (ff_engine.phase != ENGINE_READY) return cudaErrorCudartUnloading;
    if (!p || !p->team) return cudaErrorInvalidValue;
    if (p->team->count == p->team->view.members) return cudaSuccess;
    engine_say_once("multicast waits",
                    "the program waits until all %u devices of a multicast object have been added (%u have): "
                    "another thread must call cuMulticastAddDevice",
                    p->team->view.members, p->team->count);
    pthread_cond_wait(&ff_engine.behind_done, &ff_engine.lock);
  }
}

/* ---- bindings ---- */

/* What lies behind the pieces of a binding: the memory, or nothing. */
static void show(engine_team *team, const binding *b, unsigned char *from) {
  for (uint64_t at = 0; at < b->bytes; at += ENGINE_GRANULARITY)
    team->view.host[(b->offset + at) / ENGINE_GRANULARITY * team->view.members + b->member] = from ? from + at : NULL;
}

static void unbind_at(engine_team *team, size_t at) {
  const binding b = team->bindings.items[at];
  show(team, &b, NULL);
  team->bindings.items[at] = team->bindings.items[--team->bindings.count];
  if (!b.memory) return;
  engine_created *memory = engine_created_bound(b.memory); /* perhaps without a handle */
  memory->bindings--;
  engine_created_settle(memory);
}

void engine_team_end(engine_team *team) {
  while (team->bindings.count) unbind_at(team, 0);
  free(team->bindings.items);
  free(team->view.host);
  free(team);
  pthread_cond_broadcast(&ff_engine.behind_done);
}

static bool overlaps(const engine_team *team, const binding *b) {
  for (size_t i = 0; i < team->bindings.count; i++) {
    const binding *other = &team->bindings.items[i];
    if (other->member == b->member && other->offset < b->offset + b->bytes && b->offset < other->offset + other->bytes)
      return true;
  }
  return false;
}

static bool inside(uint64_t offset, uint64_t bytes, uint64_t whole) {
  return bytes && is_whole(offset | bytes) && offset <= whole && bytes <= whole - offset;
}

static void add(engine_team *team, const binding *b, unsigned char *from) {
  FF_PUSH(&team->bindings, *b);
  show(team, b, from);
  engine_append_host();
}

static cudaError_t bind(engine_created *object, uint64_t offset, engine_created *memory, uint64_t memory_handle,
                        uint64_t from, uint64_t bytes) {
  engine_team *team = object->team;
  binding b = {.offset = offset, .bytes = bytes, .memory = memory_handle, .from = from};
  if (!memory || memory->team || !inside(offset, bytes, object->bytes) || !inside(from, bytes, memory->bytes))
    return cudaErrorInvalidValue;
  if (!member_of(team, memory->device, &b.member)) return cudaErrorInvalidDevice;
  if (overlaps(team, &b)) return cudaErrorInvalidValue;
  unsigned char *view = engine_created_view(memory);
  if (!view) return cudaErrorMemoryAllocation;
  memory->bindings++;
  add(team, &b, view + from);
  return cudaSuccess;
}

/* Memory of cudaMallocAsync is at its addresses for the host, too. */
static cudaError_t bind_pool(engine_created *object, uint64_t offset, const exec_allocation *allocation,
                             uint64_t address, uint64_t bytes) {
  engine_team *team = object->team;
  binding b = {.offset = offset, .bytes = bytes, .from = address};
  if (!inside(offset, bytes, object->bytes) || !is_whole(address) ||
      bytes > allocation->address + allocation->bytes - address)
    return cudaErrorInvalidValue;
  if (!member_of(team, engine_memory_device(allocation), &b.member)) return cudaErrorInvalidDevice;
  if (overlaps(team, &b)) return cudaErrorInvalidValue;
  add(team, &b, (unsigned char *)(uintptr_t)address);
  return cudaSuccess;
}

/* In use, of a device's pool; else NULL. */
static const exec_allocation *pool_memory_at(uint64_t address) {
  const exec_allocation *allocation = exec_memory_find(ff_engine.memory, address);
  bool device = allocation && !allocation->freed && allocation->kind == EXEC_MEMORY_DEVICE;
  const pool_part *part = device ? pool_part_of(allocation) : NULL;
  return part && part->used ? allocation : NULL;
}

cudaError_t engine_multicast_bind(uint64_t handle, uint64_t offset, uint64_t memory, uint64_t from, uint64_t bytes) {
  cudaError_t error = engine_enter();
  if (error) return error;
  engine_created *object;
  error = engine_team_whole(handle, &object);
  if (!error) error = bind(object, offset, engine_created_of(memory), memory, from, bytes);
  engine_leave();
  return error;
}

cudaError_t engine_multicast_bind_address(uint64_t handle, uint64_t offset, uint64_t address, uint64_t bytes) {
  cudaError_t error = engine_enter();
  if (error) return error;
  engine_created *object;
  uint64_t from = 0, memory = 0;
  error = engine_team_whole(handle, &object);
  engine_created *bound = engine_created_at(address, &from, &memory);
  const exec_allocation *of_pool = bound ? NULL : pool_memory_at(address);
  const bool over = error && error != cudaErrorInvalidValue; /* a fault, or the process ends */
  if (!over && !bound && !of_pool && engine_pointer_find_locked(address).memory == ENGINE_DEVICE) {
    engine_say_once("cuMulticastBindAddr",
                    "cuMulticastBindAddr: only memory of cuMemCreate and cudaMallocAsync can be bound");
    error = cudaErrorNotSupported;
  }
  if (!error && of_pool) error = bind_pool(object, offset, of_pool, address, bytes);
  else if (!error) error = bind(object, offset, bound, memory, from, bytes);
  engine_leave();
  return error;
}

/* All bindings of the member that begin in the range, each of which must lie in it. */
static cudaError_t unbind(engine_team *team, uint32_t member, uint64_t offset, uint64_t bytes) {
  bool any = false;
  for (size_t i = 0; i < team->bindings.count; i++) {
    const binding *b = &team->bindings.items[i];
    if (b->member != member || b->offset >= offset + bytes || offset >= b->offset + b->bytes) continue;
    if (b->offset < offset || b->offset + b->bytes > offset + bytes) return cudaErrorInvalidValue;
    any = true;
  }
  for (size_t i = 0; i < team->bindings.count;) {
    const binding *b = &team->bindings.items[i];
    if (b->member == member && b->offset - offset < bytes) unbind_at(team, i);
    else i++;
  }
  return any ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t engine_multicast_unbind(uint64_t handle, int device, uint64_t offset, uint64_t bytes) {
  cudaError_t error = engine_enter();
  if (error) return error;
  engine_created *p = engine_created_of(handle);
  uint32_t member;
  if (!p || !p->team || !inside(offset, bytes, p->bytes)) error = cudaErrorInvalidValue;
  else if (!member_of(p->team, device, &member)) error = cudaErrorInvalidDevice;
  else error = unbind(p->team, member, offset, bytes);
  if (!error) engine_append_host();
  engine_leave();
  return error;
}

static bool forget(engine_created *p, void *context) {
  const int *device = context;
  uint32_t member;
  if (!member_of(p->team, *device, &member)) return true;
  for (size_t i = p->team->bindings.count; i-- > 0;)
    if (p->team->bindings.items[i].member == member) unbind_at(p->team, i);
  return true;
}

void engine_teams_forget(int device) { engine_teams_each(forget, &device); }

static bool forget_range(engine_created *p, void *context) {
  const exec_allocation *allocation = context;
  for (size_t i = p->team->bindings.count; i-- > 0;) {
    const binding *b = &p->team->bindings.items[i];
    if (!b->memory && b->from - allocation->address < allocation->bytes) unbind_at(p->team, i);
  }
  return true;
}

void engine_teams_forget_pool(exec_allocation allocation) { engine_teams_each(forget_range, &allocation); }

/* ---- mappings, other holders ---- */

cudaError_t engine_team_map(engine_created *p, uint64_t address, uint64_t bytes, uint64_t handle, const char *name,
                            const exec_allocation **mapping) {
  return engine_status_error(
      exec_memory_map_multicast(ff_engine.memory, address, bytes, &p->team->view, handle, name, mapping, NULL));
}

cudaError_t engine_team_import(const engine_shared_head *head, uint64_t *handle) {
  team_note note;
  memcpy(&note, head->note, sizeof note);
  if (note.process != getpid()) {
    engine_say_once("multicast of another process",
                    "cuMemImportFromShareableHandle: a multicast object of another process: the virtual GPU has none");
    return cudaErrorNotSupported;
  }
  engine_created *p = engine_created_of(note.handle);
  if (!p || !p->team) return cudaErrorInvalidValue; /* all its handles have been released */
  p->references++;
  engine_append_host();
  *handle = note.handle;
  return cudaSuccess;
}
