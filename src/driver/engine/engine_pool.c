/* SPDX-License-Identifier: Apache-2.0 */
/* Memory pools: pieces that are allocated and freed in the order of streams (engine_pool.h).
 *
 * A *piece* is an allocation. Freed, it is parked: kernels and copies find it freed, but it keeps its memory, and an
 * allocation of as many bytes may have it again, if what its last owner's stream still does to it is over by then:
 *
 *     in the stream in which it was freed          in any case
 *     in one that has waited for that, by events   ENGINE_POOL_REUSE_EVENTS
 *     when the freeing is over, by luck            ENGINE_POOL_REUSE_OPPORTUNISTIC
 *     by making the stream wait                    ENGINE_POOL_REUSE_INTERNAL, before there is a new piece
 *
 * What is held beyond the release threshold is given back when the device is synchronised or room is needed; from the
 * stream's or event's synchronisation on it does not count as reserved. Invariants
 * (engine_pools_check):
 *
 *     used == bytes of the pool's pieces in use;  reserved == bytes of those that are not surrendered;  used <= reserved
 *
 * A *place* is a kind of memory and a location, as one number (place_of). Each place has a default pool and a current
 * one. A piece is a device's: its pool's, or if that has none, that of the stream it was first allocated in.
 *
 * Another process has a pool by a file that holds its token only, and each piece by a file of its own (engine_ipc.h).
 * In an imported pool there are no new pieces; a freed one goes as soon as its freeing is over. */
#include <stdlib.h>
#include <string.h>

#include "driver/engine/engine_graph.h"
#include "driver/engine/engine_internal.h"
#include "driver/engine/engine_ipc.h"
#include "driver/engine/engine_pool.h"
#include "driver/engine/engine_range.h"
#include "exec/memory/visibility.h"

struct engine_pool {
  bool live;
  int place;
  int reuse[3]; /* the first three attributes */
  int access[ENGINE_DEVICES_MAX];
  uint64_t threshold, most, used, used_high, reserved, reserved_high;
  bool shareable, imported; /* by file descriptors */
  uint64_t token[2];        /* of a pool that was exported or imported */
  engine_shared file;       /* once it was exported */
};

typedef struct piece {
  const exec_allocation *allocation; /* NULL: none */
  engine_pool *pool;
  bool used, surrendered;     /* surrendered: free, and no longer counted as reserved */
  bool hinted;                /* managed memory with hints of its last owner's, which nobody else may get */
  int device;                 /* whose stream it was freed in: */
  uint32_t stream, event;     /* this one, by this recording, */
  uint64_t sequence, time_ps; /* which is this operation; 0: the host has waited for it */
} piece;

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
  FF_VEC(piece) pieces;
  FF_VEC(uint32_t) of; /* by allocation id: place in `pieces` + 1; 0: none */
  bool on_host;        /* one of `pools` is, or was */
} all;

/* ---- what streams have waited for ---- */

static void know(engine_stream *stream, engine_known known) {
  for (size_t i = 0; i < stream->known.count; i++)
    if (stream->known.items[i].stream == known.stream) {
      if (stream->known.items[i].sequence < known.sequence) stream->known.items[i].sequence = known.sequence;
      return;
    }
  FF_PUSH(&stream->known, known);
}

void engine_known_record(engine_event *event, const engine_stream *stream) {
  event->known.count = 0;
  for (size_t i = 0; i < stream->known.count; i++) FF_PUSH(&event->known, stream->known.items[i]);
  event->stream_number = stream->number;
}

void engine_known_wait(engine_stream *stream, const engine_event *event) {
  for (size_t i = 0; i < event->known.count; i++) know(stream, event->known.items[i]);
  know(stream, (engine_known){event->stream_number, event->sequence});
}

static bool knows(const engine_stream *stream, const piece *p) {
  for (size_t i = 0; i < stream->known.count; i++)
    if (stream->known.items[i].stream == p->stream) return stream->known.items[i].sequence >= p->sequence;
  return false;
}

/* ---- pools ---- */

static piece *piece_of(const exec_allocation *allocation) {
  uint32_t at = allocation && allocation->id < all.of.count ? all.of.items[allocation->id] : 0;
  return at ? &all.pieces.items[at - 1] : NULL;
}

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
static bool is_managed(const engine_pool *pool) { return pool->place >= PLACE_MANAGED && !is_host(pool); }

/* -1: none */
static int device_of(const engine_pool *pool) {
  return pool->place >= PLACE_MANAGED_ANYWHERE ? -1 : pool->place % (int)ENGINE_DEVICES_MAX;
}

/* Where managed memory should be: a device, cudaCpuDeviceId, or cudaInvalidDeviceId. */
static int preferred_of(const engine_pool *pool) {
  if (!is_managed(pool) || pool->place == PLACE_MANAGED_ANYWHERE) return cudaInvalidDeviceId;
  return pool->place < PLACE_MANAGED_ANYWHERE ? device_of(pool) : cudaCpuDeviceId;
}

static engine_pool *pool_make(int place, uint64_t most) {
  engine_pool *pool = ff_alloc(sizeof *pool);
  *pool = (engine_pool){.live = true, .place = place, .reuse = {1, 1, 1}, .most = most};
  for (int device = 0; device < (int)ENGINE_DEVICES_MAX; device++)
    if (is_managed(pool) || device == place) pool->access[device] = ENGINE_ACCESS_READ_WRITE;
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

cudaError_t engine_pool_create(engine_pool_type type, cudaMemLocation location, uint64_t most, int handles,
                               engine_pool **pool) {
  if (!pool) return cudaErrorInvalidValue;
  cudaError_t error = engine_enter();
  if (error) return error;
  int place;
  error = place_of(type, location, &place);
  if (!error) error = may_share(place, handles);
  if (!error) {
    *pool = pool_make(place, most);
    (*pool)->shareable = handles != 0;
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
  error = place_of(type, location, &place);
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
  const piece *p = piece_of(exec_memory_find(ff_engine.memory, address));
  *pool = p && p->used ? p->pool : NULL;
  engine_leave();
  return error;
}

/* ---- pieces ---- */

static uint64_t bytes_of(const piece *p) { return p->allocation->bytes; }

/* Back to the device. It is free. */
static void piece_drop(piece *p) {
  uint64_t address = p->allocation->address;
  exec_memory_park(p->allocation, false);
  all.of.items[p->allocation->id] = 0;
  if (!p->surrendered) p->pool->reserved -= bytes_of(p);
  engine_forget_allocation(p->allocation);
  exec_memory_release(ff_engine.memory, address, NULL);
  *p = (piece){0};
}

static bool over(const piece *p) { return !p->sequence || engine_happened(p->device, p->sequence, p->time_ps); }

/* Gives back the pool's unused pieces whose freeing is over, down to `keep` bytes in all; `surrender`: it stays,
 * uncounted. */
static void give_back(engine_pool *pool, uint64_t keep, bool surrender) {
  for (size_t i = 0; i < all.pieces.count; i++) {
    piece *p = &all.pieces.items[i];
    if (!p->allocation || p->pool != pool || p->used || (surrender && p->surrendered)) continue;
    if (!p->surrendered && pool->reserved <= keep) continue;
    if (!over(p)) continue;
    if (surrender) {
      p->surrendered = true;
      pool->reserved -= bytes_of(p);
    } else {
      piece_drop(p);
    }
  }
}

void engine_pools_synchronised(int device) {
  if (!all.pieces.count) return;
  for (size_t i = 0; i < all.pieces.count; i++)
    if (all.pieces.items[i].device == device) all.pieces.items[i].sequence = 0;
  for (size_t i = 0; i < all.pools.count; i++)
    give_back(all.pools.items[i], all.pools.items[i]->live ? all.pools.items[i]->threshold : 0,
              device == ENGINE_ANY_DEVICE);
}

static void give_back_all(void) { /* room is needed */
  for (size_t i = 0; i < all.pools.count; i++) give_back(all.pools.items[i], 0, false);
}

cudaError_t engine_pool_destroy(engine_pool *pool) {
  cudaError_t error = engine_enter();
  if (error) return error;
  if (!is_live(pool) || pool == default_of(pool->place)) error = cudaErrorInvalidValue;
  else {
    pool->live = false;
    engine_shared_close(&pool->file);
    if (all.current[pool->place] == pool) all.current[pool->place] = default_of(pool->place);
    give_back(pool, 0, false);
  }
  engine_leave();
  return error;
}

cudaError_t engine_pool_trim(engine_pool *pool, uint64_t keep) {
  cudaError_t error = engine_enter();
  if (error) return error;
  if (is_live(pool)) give_back(pool, keep, false);
  else error = cudaErrorInvalidValue;
  engine_leave();
  return error;
}

/* All that is the device's was freed or is about to be; pools stay, but for those that are destroyed. */
void engine_pools_reset(int device) {
  for (size_t i = 0; i < all.pieces.count; i++) {
    piece *p = &all.pieces.items[i];
    if (!p->allocation || engine_memory_device(p->allocation) != device) continue;
    if (p->used) p->pool->used -= bytes_of(p);
    if (p->pool->imported) { /* engine_memory_reset frees only what this process has made */
      piece_drop(p);
      continue;
    }
    if (!p->used) exec_memory_park(p->allocation, false);
    if (!p->surrendered) p->pool->reserved -= bytes_of(p);
    all.of.items[p->allocation->id] = 0;
    *p = (piece){0};
  }
  for (size_t i = 0; i < all.pools.count; i++) {
    engine_pool *pool = all.pools.items[i];
    if (device_of(pool) != device) continue;
    pool->used_high = pool->reserved_high = 0;
    if (pool != all.first[pool->place]) pool->live = false;
    engine_shared_close(&pool->file);
    all.current[pool->place] = all.first[pool->place];
  }
}

/* ---- allocating ---- */

static void raise(uint64_t *high, uint64_t now) {
  if (*high < now) *high = now;
}

typedef enum fit { FIT_NONE, FIT_WAIT, FIT_LUCK, FIT_EVENTS, FIT_STREAM } fit; /* the last is best */

static fit fit_of(const piece *p, const engine_pool *pool, const engine_stream *stream) {
  if (!p->sequence || p->stream == stream->number) return FIT_STREAM;
  if (pool->reuse[ENGINE_POOL_REUSE_EVENTS - 1] && knows(stream, p)) return FIT_EVENTS;
  if (pool->reuse[ENGINE_POOL_REUSE_OPPORTUNISTIC - 1] && over(p)) return FIT_LUCK;
  return pool->reuse[ENGINE_POOL_REUSE_INTERNAL - 1] ? FIT_WAIT : FIT_NONE;
}

static piece *find_piece(const engine_pool *pool, uint64_t bytes, const engine_stream *stream) {
  piece *best = NULL;
  fit best_fit = FIT_NONE;
  for (size_t i = 0; i < all.pieces.count && best_fit < FIT_STREAM; i++) {
    piece *p = &all.pieces.items[i];
    if (!p->allocation || p->used || p->hinted || p->pool != pool || bytes_of(p) != bytes) continue;
    fit its = fit_of(p, pool, stream);
    if (its > best_fit) {
      best = p;
      best_fit = its;
    }
  }
  return best;
}

static void reuse(piece *p, engine_stream *stream) {
  if (fit_of(p, p->pool, stream) == FIT_WAIT) engine_stream_wait_for(stream, p->event, p->time_ps);
  exec_memory_park(p->allocation, false);
  engine_peers_changed();
  if (is_managed(p->pool)) engine_range_prefetch(p->allocation->address, bytes_of(p), cudaInvalidDeviceId);
  p->used = true;
  if (p->surrendered) p->pool->reserved += bytes_of(p);
  p->surrendered = false;
  engine_append_host();
}

/* of cudaMallocManaged */
static unsigned flags_of(const engine_pool *pool) { return is_managed(pool) ? cudaMemAttachGlobal : 0; }

static engine_memory memory_of(const engine_pool *pool) {
  return is_host(pool) ? ENGINE_PINNED : is_managed(pool) ? ENGINE_MANAGED : ENGINE_DEVICE;
}

/* In use. */
static piece *add_piece(engine_pool *pool, const exec_allocation *allocation) {
  size_t at = 0;
  while (at < all.pieces.count && all.pieces.items[at].allocation) at++;
  if (at == all.pieces.count) FF_PUSH(&all.pieces, ((piece){0}));
  all.pieces.items[at] = (piece){.allocation = allocation, .pool = pool, .used = true};
  while (all.of.count <= allocation->id) FF_PUSH(&all.of, 0);
  all.of.items[allocation->id] = (uint32_t)at + 1;
  pool->reserved += allocation->bytes;
  return &all.pieces.items[at];
}

static void count_used(engine_pool *pool, uint64_t bytes) {
  pool->used += bytes;
  raise(&pool->used_high, pool->used);
  raise(&pool->reserved_high, pool->reserved);
}

static cudaError_t make_piece(engine_pool *pool, uint64_t bytes, const engine_stream *stream, const char *call,
                              piece **out) {
  engine_memory memory = memory_of(pool);
  int device = device_of(pool) < 0 ? stream->device : device_of(pool);
  uint64_t address;
  if (pool->most && (bytes > pool->most || pool->reserved > pool->most - bytes))
    give_back(pool, pool->most > bytes ? pool->most - bytes : 0, false);
  if (pool->most && (bytes > pool->most || pool->reserved > pool->most - bytes)) return cudaErrorMemoryAllocation;
  if (!engine_memory_fits(device, memory, bytes)) give_back_all();
  cudaError_t error = engine_allocate_locked(device, memory, bytes, flags_of(pool), call, &address);
  if (error) return error;
  if (preferred_of(pool) != cudaInvalidDeviceId)
    engine_advise_managed(address, bytes, cudaMemAdviseSetPreferredLocation, preferred_of(pool));
  *out = add_piece(pool, exec_memory_find(ff_engine.memory, address));
  return cudaSuccess;
}

static cudaError_t allocate_locked(engine_pool *pool, uint64_t bytes, engine_stream *stream, const char *call,
                                   uint64_t *address) {
  piece *p = find_piece(pool, bytes, stream);
  cudaError_t error = cudaSuccess;
  if (p) reuse(p, stream);
  else error = make_piece(pool, bytes, stream, call, &p);
  if (error) return error;
  count_used(pool, bytes);
  *address = p->allocation->address;
  return cudaSuccess;
}

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
  *address = 0;
  if (!pool) {
    default_of(engine_device_of(stream)); /* whose place is its number */
    pool = all.current[engine_device_of(stream)];
  }
  if (!stream) error = engine_stream_error(handle);
  else if (!is_live(pool) || pool->imported) error = cudaErrorInvalidValue;
  else if (memory_of(pool) != ENGINE_DEVICE) error = engine_capture_refuse(stream); /* no alloc node is of it */
  else if (bytes) {
    note_access(pool, list, &node);
    error = engine_capture_take(stream, &node, true, &taken);
  }
  if (!error && taken) *address = node.memory.address;
  if (!error && !taken && bytes) error = allocate_locked(pool, bytes, stream, call, address);
  engine_leave();
  return error;
}

/* ---- freeing ---- */

/* A piece in use that starts there. `stream` NULL: the host has waited for whatever used it. */
bool engine_pool_take_back(uint64_t address, engine_stream *stream) {
  const exec_allocation *allocation = exec_memory_find(ff_engine.memory, address);
  piece *p = allocation && allocation->address == address && !allocation->freed ? piece_of(allocation) : NULL;
  if (!p || !p->used) return false;
  engine_host_access_collect(false);
  engine_ipc_forget(allocation); /* what was exported of it opens nothing any more */
  p->used = false;
  p->hinted = is_managed(p->pool) && engine_range_hinted(address, bytes_of(p), preferred_of(p->pool));
  p->pool->used -= bytes_of(p);
  p->sequence = 0;
  if (stream) {
    p->event = engine_stream_record(stream);
    p->stream = stream->number;
    p->device = stream->device;
    p->sequence = ff_engine.last_sequence;
    p->time_ps = engine_stream_ready(stream);
    engine_time_host(ff_engine.machine->api_us);
  }
  exec_memory_park(p->allocation, true);
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
  engine_shared_head head = {.bytes = EXEC_PAGE_BYTES, .device = device_of(pool), .kind = ENGINE_SHARED_POOL};
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
  const piece *p = piece_of(allocation);
  if (!p || !p->used || !p->pool->shareable || allocation->address != address) error = cudaErrorInvalidValue;
  else if (!p->pool->file.open) error = make_file(p->pool);
  if (!error) error = engine_ipc_export_pooled(allocation, p->pool->token, data);
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
    add_piece(pool, allocation);
    count_used(pool, allocation->bytes);
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

static uint64_t attribute_of(const engine_pool *pool, int attribute) {
  switch (attribute) {
  case ENGINE_POOL_RELEASE_THRESHOLD: return pool->threshold;
  case ENGINE_POOL_RESERVED: return pool->reserved;
  case ENGINE_POOL_RESERVED_HIGH: return pool->reserved_high;
  case ENGINE_POOL_USED: return pool->used;
  case ENGINE_POOL_USED_HIGH: return pool->used_high;
  default: return (uint64_t)(unsigned)pool->reuse[attribute - 1];
  }
}

cudaError_t engine_pool_get(engine_pool *pool, int attribute, void *value) {
  if (!value || attribute < ENGINE_POOL_REUSE_EVENTS || attribute > ENGINE_POOL_USED_HIGH) return cudaErrorInvalidValue;
  cudaError_t error = engine_enter();
  if (error) return error;
  uint64_t number = is_live(pool) ? attribute_of(pool, attribute) : 0;
  if (is_live(pool)) memcpy(value, &number, attribute <= ENGINE_POOL_REUSE_INTERNAL ? sizeof(int) : sizeof number);
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
  if ((is_managed(pool) || location.id == pool->place) && access != ENGINE_ACCESS_READ_WRITE)
    return cudaErrorInvalidValue; /* its own device, and every one of managed memory, keeps it */
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
  error = access_location(pool, location);
  if (!error) *access = is_host_location(location) ? host_access(pool) : pool->access[location.id];
  engine_leave();
  return error;
}

/* 0: it is no pool's; else what that device may do with it. */
bool engine_pool_allows(const exec_allocation *allocation, int device, int *access) {
  const piece *p = piece_of(allocation);
  if (p) *access = p->pool->access[device];
  return p != NULL;
}

bool engine_pools_on_host(void) { return all.on_host; }

/* ---- checks ---- */

void engine_pools_check(void) {
  for (size_t i = 0; i < all.pieces.count; i++) {
    const piece *p = &all.pieces.items[i];
    FF_ASSERT(!p->allocation || (piece_of(p->allocation) == p && !(p->used && p->surrendered)));
  }
  for (size_t n = 0; n < all.pools.count; n++) {
    const engine_pool *pool = all.pools.items[n];
    uint64_t used = 0, reserved = 0;
    for (size_t i = 0; i < all.pieces.count; i++) {
      const piece *p = &all.pieces.items[i];
      if (!p->allocation || p->pool != pool) continue;
      if (p->used) used += bytes_of(p);
      if (!p->surrendered) reserved += bytes_of(p);
    }
    FF_ASSERT(pool->used == used && pool->reserved == reserved && used <= reserved);
  }
}
