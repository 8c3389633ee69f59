/* SPDX-License-Identifier: Apache-2.0 */
/* Memory pools: handles, attributes, who may use them, other processes (engine_pool.h). Their memory is in
 * engine_pool_parts.c.
 *
 * Freed memory is parked: kernels and copies find it freed, but the pool keeps it. What is held beyond the release
 * threshold is given back when the device is synchronised or room is needed; from the stream's or event's
 * synchronisation on it does not count as reserved.
 *
 * A *place* is a kind of memory and a location, as one number (place_of). Each place has a default pool and a current
 * one. Memory is a device's: its pool's, or if that has none, that of the stream it was first allocated in.
 *
 * Another process has a pool by a file that holds its token only, and each allocation by a file of its own
 * (engine_ipc.h). In an imported pool nothing is allocated; what is freed goes as soon as its freeing is over. */
#include <string.h>

#include "driver/engine/engine_graph.h"
#include "driver/engine/engine_internal.h"
#include "driver/engine/engine_ipc.h"
#include "driver/engine/engine_pool_parts.h"

enum {                                     /* places: device memory of device n is n; managed memory that prefers it */
       PLACE_MANAGED = ENGINE_DEVICES_MAX, /* + n */
       PLACE_MANAGED_ANYWHERE = 2 * ENGINE_DEVICES_MAX,
       PLACE_MANAGED_HOST,
       PLACE_MANAGED_NODE, /* the host's one NUMA node */
       PLACE_HOST,         /* pinned memory */
       PLACE_NODE,
       PLACES
};

static struct {
  FF_VEC(engine_pool *) pools; /* all that ever were */
  engine_pool *first[PLACES], *current[PLACES];
  bool on_host; /* one of `pools` is, or was */
} all;

/* ---- pools ---- */

static cudaError_t device_place(int device, int first, int *place) {
  *place = first + device;
  return engine_device_exists(device) ? cudaSuccess : cudaErrorInvalidDevice;
}

/* "Gets the current memory pool for a memory location", CUDA Driver API: which types go with which locations. */
static cudaError_t place_of(engine_pool_type type, cudaMemLocation location, int *place) {
  bool managed = type == ENGINE_POOL_MANAGED;
  if (type != ENGINE_POOL_PINNED && !managed) return cudaErrorInvalidValue;
  switch (location.type) {
  case cudaMemLocationTypeDevice: return device_place(location.id, managed ? PLACE_MANAGED : 0, place);
  case cudaMemLocationTypeInvalid:
    *place = PLACE_MANAGED_ANYWHERE;
    return managed ? cudaSuccess : cudaErrorInvalidValue;
  case cudaMemLocationTypeHost: *place = managed ? PLACE_MANAGED_HOST : PLACE_HOST; return cudaSuccess;
  case cudaMemLocationTypeHostNuma:
    *place = managed ? PLACE_MANAGED_NODE : PLACE_NODE;
    return location.id ? cudaErrorInvalidValue : cudaSuccess;
  default: return cudaErrorInvalidValue;
  }
}

static bool is_host(const engine_pool *pool) { return pool->place >= PLACE_HOST; }
bool pool_is_managed(const engine_pool *pool) { return pool->place >= PLACE_MANAGED && !is_host(pool); }

int pool_device(const engine_pool *pool) {
  return pool->place >= PLACE_MANAGED_ANYWHERE ? -1 : pool->place % (int)ENGINE_DEVICES_MAX;
}

int pool_preferred(const engine_pool *pool) {
  if (!pool_is_managed(pool) || pool->place == PLACE_MANAGED_ANYWHERE) return cudaInvalidDeviceId;
  return pool->place < PLACE_MANAGED_ANYWHERE ? pool_device(pool) : cudaCpuDeviceId;
}

static engine_pool *pool_make(int place, uint64_t most) {
  engine_pool *pool = ff_alloc(sizeof *pool);
  *pool = (engine_pool){.live = true, .place = place, .reuse = {1, 1, 1}, .most = most};
  for (int device = 0; device < (int)ENGINE_DEVICES_MAX; device++)
    if (pool_is_managed(pool) || device == place) pool->access[device] = ENGINE_ACCESS_READ_WRITE;
  FF_PUSH(&all.pools, pool);
  if (is_host(pool)) all.on_host = true;
  return pool;
}

static engine_pool *default_of(int place) {
  if (!all.first[place]) all.first[place] = all.current[place] = pool_make(place, 0);
  return all.first[place];
}

static bool is_live(const engine_pool *pool) {
  for (size_t i = 0; i < all.pools.count; i++)
    if (all.pools.items[i] == pool) return pool->live;
  return false;
}

static cudaError_t may_share(int place, int handles) {
  if (!handles) return cudaSuccess;
  if (place == PLACE_HOST) return cudaErrorInvalidValue; /* the manual: it is not IPC capable */
  return handles == ENGINE_POOL_FILE_DESCRIPTOR && place < PLACE_MANAGED ? cudaSuccess : cudaErrorNotSupported;
}

/* Where a device that is not there is only a wrong value. */
static cudaError_t as_value(cudaError_t error) {
  return error == cudaErrorInvalidDevice ? cudaErrorInvalidValue : error;
}

cudaError_t engine_pool_create(engine_pool_type type, cudaMemLocation location, uint64_t most, int handles,
                               bool decompress, engine_pool **pool) {
  if (!pool) return cudaErrorInvalidValue;
  cudaError_t error = engine_enter();
  if (error) return error;
  int place;
  error = as_value(place_of(type, location, &place));
  if (!error && type == ENGINE_POOL_MANAGED && most) error = cudaErrorInvalidValue; /* the manual: it must be 0 */
  if (!error) error = may_share(place, handles);
  if (!error) {
    *pool = pool_make(place, most);
    (*pool)->shareable = handles != 0;
    (*pool)->decompress = decompress;
  }
  engine_leave();
  return error;
}

static cudaError_t get_pool(engine_pool_type type, cudaMemLocation location, bool first, engine_pool **pool) {
  if (!pool) return cudaErrorInvalidValue;
  cudaError_t error = engine_enter();
  if (error) return error;
  int place;
  error = place_of(type, location, &place);
  if (!first) error = as_value(error);
  if (!error) {
    engine_pool *the_default = default_of(place);
    *pool = first ? the_default : all.current[place];
  }
  engine_leave();
  return error;
}

cudaError_t engine_pool_default(engine_pool_type type, cudaMemLocation location, engine_pool **pool) {
  return get_pool(type, location, true, pool);
}
cudaError_t engine_pool_current(engine_pool_type type, cudaMemLocation location, engine_pool **pool) {
  return get_pool(type, location, false, pool);
}

cudaError_t engine_pool_set_current(engine_pool_type type, cudaMemLocation location, engine_pool *pool) {
  cudaError_t error = engine_enter();
  if (error) return error;
  int place;
  error = as_value(place_of(type, location, &place));
  if (!error && (!is_live(pool) || pool->place != place || pool->imported)) error = cudaErrorInvalidValue;
  if (!error) {
    default_of(place);
    all.current[place] = pool;
  }
  engine_leave();
  return error;
}

cudaError_t engine_pool_of(uint64_t address, engine_pool **pool) {
  cudaError_t error = engine_enter();
  if (error) return error;
  const pool_part *p = pool_part_of(exec_memory_find(ff_engine.memory, address));
  *pool = p && p->used ? p->block->pool : NULL;
  engine_leave();
  return error;
}

/* ---- giving back ---- */

engine_memory pool_memory(const engine_pool *pool) {
  return is_host(pool) ? ENGINE_PINNED : pool_is_managed(pool) ? ENGINE_MANAGED : ENGINE_DEVICE;
}

static void give_back_excess(bool surrender) {
  for (size_t i = 0; i < all.pools.count; i++)
    pool_give_back(all.pools.items[i], all.pools.items[i]->live ? all.pools.items[i]->threshold : 0, surrender);
}

void engine_pools_synchronised(int device) {
  if (pool_memory_none()) return;
  pool_memory_waited(device, NULL, NULL);
  give_back_excess(false);
}

void engine_pools_synchronised_stream(const engine_stream *stream) {
  if (pool_memory_none()) return;
  pool_memory_waited(ENGINE_ANY_DEVICE, stream, NULL);
  give_back_excess(true);
}

void engine_pools_synchronised_event(const engine_event *event) {
  if (pool_memory_none()) return;
  pool_memory_waited(ENGINE_ANY_DEVICE, NULL, event);
  give_back_excess(true);
}

void pools_give_back(void) {
  for (size_t i = 0; i < all.pools.count; i++) pool_give_back(all.pools.items[i], 0, false);
}

cudaError_t engine_pool_destroy(engine_pool *pool) {
  cudaError_t error = engine_enter();
  if (error) return error;
  if (!is_live(pool) || pool == default_of(pool->place)) error = cudaErrorInvalidValue;
  else {
    pool->live = false;
    engine_shared_close(&pool->file);
    if (all.current[pool->place] == pool) all.current[pool->place] = default_of(pool->place);
    pool_give_back(pool, 0, false);
  }
  engine_leave();
  return error;
}

cudaError_t engine_pool_trim(engine_pool *pool, uint64_t keep) {
  cudaError_t error = engine_enter();
  if (error) return error;
  if (is_live(pool)) pool_give_back(pool, keep, false);
  else error = cudaErrorInvalidValue;
  engine_leave();
  return error;
}

/* All that is the device's was freed or is about to be; pools stay, but for those that are destroyed. */
void engine_pools_reset(int device) {
  pool_memory_reset(device);
  for (size_t i = 0; i < all.pools.count; i++) {
    engine_pool *pool = all.pools.items[i];
    if (pool_device(pool) != device) continue;
    pool->used_high = pool->reserved_high = 0;
    if (pool != all.first[pool->place]) pool->live = false;
    engine_shared_close(&pool->file);
    all.current[pool->place] = all.first[pool->place];
  }
}

/* ---- allocating ---- */

/* The devices that may use a captured allocation: those that may use the pool, of device memory, now. */
static void note_access(const engine_pool *pool, cudaMemAccessDesc *list, engine_node_params *node) {
  node->memory.device = pool->place;
  node->memory.access = list;
  for (int device = 0; engine_device_exists(device); device++)
    if (device != pool->place && pool->access[device] != ENGINE_ACCESS_NONE)
      list[node->memory.access_count++] =
          (cudaMemAccessDesc){.location = {cudaMemLocationTypeDevice, device}, .flags = pool->access[device]};
}

cudaError_t engine_pool_allocate(engine_pool *pool, uint64_t bytes, cudaStream_t handle, const char *call,
                                 uint64_t *address) {
  cudaError_t error = engine_enter();
  if (error) return error;
  engine_stream *stream = engine_stream_find(handle);
  bool taken = false;
  engine_node_params node = {.kind = ENGINE_NODE_ALLOC, .memory = {.bytes = bytes}};
  cudaMemAccessDesc list[ENGINE_DEVICES_MAX];
  pool_part *part = NULL;
  *address = 0;
  if (!pool) {
    default_of(engine_device_of(stream)); /* whose place is its number */
    pool = all.current[engine_device_of(stream)];
  }
  if (!stream) error = engine_stream_error(handle);
  else if (!is_live(pool) || pool->imported) error = cudaErrorInvalidValue;
  else if (pool_memory(pool) != ENGINE_DEVICE) error = engine_capture_refuse(stream); /* no alloc node is of it */
  else if (bytes) {
    note_access(pool, list, &node);
    error = engine_capture_take(stream, &node, true, &taken);
  }
  if (!error && taken) *address = node.memory.address;
  if (!error && !taken && bytes) error = pool_part_take(pool, bytes, stream, call, &part);
  if (part) *address = part->allocation->address;
  engine_leave();
  return error;
}

/* ---- freeing ---- */

/* Memory of a pool in use that starts there. `stream` NULL: the host has waited for whatever used it. */
bool engine_pool_take_back(uint64_t address, engine_stream *stream) {
  const exec_allocation *allocation = exec_memory_find(ff_engine.memory, address);
  pool_part *p = allocation && allocation->address == address && !allocation->freed ? pool_part_of(allocation) : NULL;
  if (!p || !p->used) return false;
  engine_host_access_collect(false);
  pool_part_free(p, stream);
  return true;
}

static cudaError_t free_in(uint64_t address, engine_stream *stream) {
  bool found;
  cudaError_t error = engine_graph_free_address(address, stream, &found);
  if (found) return error;
  return engine_pool_take_back(address, stream) ? cudaSuccess : engine_free_locked(address, 1u << ENGINE_DEVICE);
}

cudaError_t engine_pool_free(uint64_t address, cudaStream_t handle) {
  cudaError_t error = engine_enter();
  if (error) return error;
  engine_stream *stream = engine_stream_find(handle);
  bool taken = false;
  engine_node_params node = {.kind = ENGINE_NODE_FREE, .memory = {.address = address}};
  error = stream ? engine_capture_take(stream, &node, true, &taken) : engine_stream_error(handle);
  if (!error && !taken && address) error = free_in(address, stream);
  engine_leave();
  return error;
}

/* ---- other processes ---- */

static cudaError_t make_file(engine_pool *pool) {
  engine_shared_head head = {.bytes = EXEC_PAGE_BYTES, .device = pool_device(pool), .kind = ENGINE_SHARED_POOL};
  if (!ipc_token_make(pool->token)) return cudaErrorOperatingSystem;
  memcpy(head.note, pool->token, sizeof pool->token);
  return engine_shared_make(&pool->file, &head) ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t engine_pool_export(engine_pool *pool, int *descriptor) {
  if (!descriptor) return cudaErrorInvalidValue;
  cudaError_t error = engine_enter();
  if (error) return error;
  if (!is_live(pool) || !pool->shareable) error = cudaErrorInvalidValue;
  else if (!pool->file.open) error = make_file(pool);
  int given = error ? -1 : engine_shared_give(&pool->file);
  if (!error && given < 0) error = cudaErrorOperatingSystem;
  if (!error) *descriptor = given;
  engine_leave();
  return error;
}

cudaError_t engine_pool_import(int descriptor, engine_pool **pool) {
  if (!pool) return cudaErrorInvalidValue;
  engine_shared file;
  engine_shared_head head;
  cudaError_t error = engine_enter();
  if (error) return error;
  if (!engine_shared_take(&file, descriptor, ENGINE_SHARED_POOL, &head)) error = cudaErrorInvalidValue;
  else {
    engine_shared_close(&file); /* its token is all there is */
    engine_pool *made = pool_make(engine_device_exists(head.device) ? head.device : engine_device_of(NULL), 0);
    made->imported = true;
    memcpy(made->token, head.note, sizeof made->token);
    *pool = made;
  }
  engine_leave();
  return error;
}

cudaError_t engine_pool_export_pointer(uint64_t address, void *data) {
  if (!data) return cudaErrorInvalidValue;
  cudaError_t error = engine_enter();
  if (error) return error;
  const exec_allocation *allocation = exec_memory_find(ff_engine.memory, address);
  const pool_part *p = pool_part_of(allocation);
  engine_pool *pool = p && p->used && allocation->address == address ? p->block->pool : NULL;
  if (!pool || !pool->shareable) error = cudaErrorInvalidValue;
  else if (!pool->file.open) error = make_file(pool);
  if (!error) error = engine_ipc_export_pooled(allocation, pool->token, data);
  engine_leave();
  return error;
}

cudaError_t engine_pool_import_pointer(engine_pool *pool, const void *data, uint64_t *address) {
  if (!data || !address) return cudaErrorInvalidValue;
  cudaError_t error = engine_enter();
  if (error) return error;
  const exec_allocation *allocation;
  if (!is_live(pool) || !pool->imported) error = cudaErrorInvalidValue;
  else error = engine_ipc_import_pooled(data, pool->token, &allocation);
  if (!error) {
    pool_block_import(pool, allocation);
    engine_peers_changed();
    *address = allocation->address;
  }
  engine_leave();
  return error;
}

/* ---- attributes ---- */

static cudaError_t set_locked(engine_pool *pool, int attribute, const void *value) {
  uint64_t number = 0;
  memcpy(&number, value, attribute <= ENGINE_POOL_REUSE_INTERNAL ? sizeof(int) : sizeof number);
  switch (attribute) {
  case ENGINE_POOL_REUSE_EVENTS:
  case ENGINE_POOL_REUSE_OPPORTUNISTIC:
  case ENGINE_POOL_REUSE_INTERNAL: pool->reuse[attribute - 1] = (int)number; return cudaSuccess;
  case ENGINE_POOL_RELEASE_THRESHOLD: pool->threshold = number; return cudaSuccess;
  case ENGINE_POOL_RESERVED_HIGH:
  case ENGINE_POOL_USED_HIGH: /* may only be set back */
    if (number) return cudaErrorInvalidValue;
    if (attribute == ENGINE_POOL_USED_HIGH) pool->used_high = pool->used;
    else pool->reserved_high = pool->reserved;
    return cudaSuccess;
  default: return cudaErrorInvalidValue;
  }
}

cudaError_t engine_pool_set(engine_pool *pool, int attribute, const void *value) {
  if (!value || attribute < ENGINE_POOL_REUSE_EVENTS || attribute > ENGINE_POOL_USED_HIGH) return cudaErrorInvalidValue;
  cudaError_t error = engine_enter();
  if (error) return error;
  error = is_live(pool) ? set_locked(pool, attribute, value) : cudaErrorInvalidValue;
  engine_leave();
  return error;
}

static cudaMemLocation location_of(const engine_pool *pool) {
  switch (pool->place) {
  case PLACE_MANAGED_ANYWHERE: return (cudaMemLocation){cudaMemLocationTypeInvalid, 0};
  case PLACE_HOST:
  case PLACE_MANAGED_HOST: return (cudaMemLocation){cudaMemLocationTypeHost, 0};
  case PLACE_NODE:
  case PLACE_MANAGED_NODE: return (cudaMemLocation){cudaMemLocationTypeHostNuma, 0};
  default: return (cudaMemLocation){cudaMemLocationTypeDevice, pool_device(pool)};
  }
}

static uint64_t attribute_of(const engine_pool *pool, int attribute) {
  switch (attribute) {
  case ENGINE_POOL_TYPE: return pool_is_managed(pool) ? ENGINE_POOL_MANAGED : ENGINE_POOL_PINNED;
  case ENGINE_POOL_HANDLES: return pool->shareable ? ENGINE_POOL_FILE_DESCRIPTOR : 0;
  case ENGINE_POOL_LOCATION: return (uint64_t)location_of(pool).id;
  case ENGINE_POOL_LOCATION_TYPE: return (uint64_t)location_of(pool).type;
  case ENGINE_POOL_MOST: return pool->most;
  case ENGINE_POOL_DECOMPRESS: return pool->decompress;
  case ENGINE_POOL_DOMAIN: return (uint64_t)-1;
  case ENGINE_POOL_RELEASE_THRESHOLD: return pool->threshold;
  case ENGINE_POOL_RESERVED: return pool->reserved;
  case ENGINE_POOL_RESERVED_HIGH: return pool->reserved_high;
  case ENGINE_POOL_USED: return pool->used;
  case ENGINE_POOL_USED_HIGH: return pool->used_high;
  default: return (uint64_t)(unsigned)pool->reuse[attribute - 1];
  }
}

static size_t size_of(int attribute) {
  bool number =
      (attribute > ENGINE_POOL_REUSE_INTERNAL && attribute <= ENGINE_POOL_USED_HIGH) || attribute == ENGINE_POOL_MOST;
  return number ? sizeof(uint64_t) : sizeof(int);
}

cudaError_t engine_pool_get(engine_pool *pool, int attribute, void *value) {
  if (!value || attribute < ENGINE_POOL_REUSE_EVENTS || attribute > ENGINE_POOL_DOMAIN) return cudaErrorInvalidValue;
  cudaError_t error = engine_enter();
  if (error) return error;
  uint64_t number = is_live(pool) ? attribute_of(pool, attribute) : 0;
  if (is_live(pool)) memcpy(value, &number, size_of(attribute));
  else error = cudaErrorInvalidValue;
  engine_leave();
  return error;
}

/* The host is not among `access`: it has all of managed and of its own memory, and none of a device's, whatever is set.
 */
static int host_access(const engine_pool *pool) {
  return pool->place >= PLACE_MANAGED ? ENGINE_ACCESS_READ_WRITE : ENGINE_ACCESS_NONE;
}

static bool is_host_location(cudaMemLocation location) {
  return location.type == cudaMemLocationTypeHost || (location.type == cudaMemLocationTypeHostNuma && !location.id);
}

static cudaError_t access_location(const engine_pool *pool, cudaMemLocation location) {
  if (!is_live(pool)) return cudaErrorInvalidValue;
  if (is_host_location(location)) return cudaSuccess;
  if (location.type != cudaMemLocationTypeDevice) return cudaErrorInvalidValue;
  return engine_device_exists(location.id) ? cudaSuccess : cudaErrorInvalidDevice;
}

static cudaError_t set_access(engine_pool *pool, cudaMemLocation location, int access) {
  if (is_host_location(location)) return access == host_access(pool) ? cudaSuccess : cudaErrorInvalidValue;
  /* every device keeps managed memory, and a pool's own device the pool */
  if (pool_is_managed(pool) && access != ENGINE_ACCESS_READ_WRITE) return cudaErrorInvalidValue;
  if (location.id == pool->place && access != ENGINE_ACCESS_READ_WRITE) return cudaErrorInvalidDevice;
  pool->access[location.id] = access;
  engine_peers_changed();
  return cudaSuccess;
}

cudaError_t engine_pool_set_access(engine_pool *pool, cudaMemLocation location, int access) {
  if (access != ENGINE_ACCESS_NONE && access != ENGINE_ACCESS_READ && access != ENGINE_ACCESS_READ_WRITE)
    return cudaErrorInvalidValue;
  cudaError_t error = engine_enter();
  if (error) return error;
  error = access_location(pool, location);
  if (!error) error = set_access(pool, location, access);
  engine_leave();
  return error;
}

cudaError_t engine_pool_access(engine_pool *pool, cudaMemLocation location, int *access) {
  if (!access) return cudaErrorInvalidValue;
  cudaError_t error = engine_enter();
  if (error) return error;
  error = as_value(access_location(pool, location));
  if (!error) *access = is_host_location(location) ? host_access(pool) : pool->access[location.id];
  engine_leave();
  return error;
}

/* 0: it is no pool's; else what that device may do with it. */
bool engine_pool_allows(const exec_allocation *allocation, int device, int *access) {
  const pool_part *p = pool_part_of(allocation);
  if (p) *access = p->block->pool->access[device];
  return p != NULL;
}

bool engine_pools_on_host(void) { return all.on_host; }

void engine_pools_check(void) {
  for (size_t i = 0; i < all.pools.count; i++) pool_memory_check(all.pools.items[i]);
}
