/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that graphs allocate while they run (CUDA C++ Programming Guide, "Graph Memory Nodes").
 *
 * An alloc node has addresses from the moment it is made, and memory only from its run to that of what frees it.
 * Addresses are a reservation, memory comes in *chunks* that are mapped there. A chunk that was freed is used again by
 * what runs later in the same stream, or when what freed it is over; else there is a new one. Chunks stay until they
 * are trimmed.
 *
 *     memory->chunk == c  <=>  chunk c is mapped at memory->address;  memory->allocated  =>  its chunk is used
 *     `used`, as the attribute means it: the bytes of what is mapped; `reserved`: of all chunks
 *
 * Within a graph an alloc node that comes after the freeing of an earlier one gets the same addresses, if they are as
 * many. */
#include <stdlib.h>
#include <string.h>

#include "driver/engine/engine_graph_private.h"

typedef struct chunk {    /* number i is items[i - 1] */
  uint64_t bytes, handle; /* 0 bytes: none */
  int device;
  engine_graph_memory *mapped;
  bool used;
  uint32_t stream;            /* freed in, */
  uint64_t sequence, time_ps; /* behind this recording; 0: by the host */
} chunk;

static struct {
  engine_graph_memory *all;
  FF_VEC(chunk) chunks;
  struct {
    uint64_t used, used_high, reserved, reserved_high;
  } on[ENGINE_DEVICES_MAX];
} graph_memory;

static uint64_t granules(uint64_t bytes) {
  return (bytes + ENGINE_GRANULARITY - 1) / ENGINE_GRANULARITY * ENGINE_GRANULARITY;
}

/* ---- addresses ---- */

engine_graph_memory *engine_graph_memory_at(uint64_t address) {
  for (engine_graph_memory *m = graph_memory.all; m; m = m->next)
    if (m->address == address) return m;
  return NULL;
}

bool engine_graph_address(uint64_t address) {
  for (const engine_graph_memory *m = graph_memory.all; m; m = m->next)
    if (address >= m->address && address - m->address < m->bytes) return true;
  return false;
}

/* All that ever had it in the graph was freed before the node. */
static bool over_before(const engine_node *node, const engine_graph_memory *memory) {
  for (size_t i = 0; i < node->graph->nodes.count; i++) {
    const engine_node *n = node->graph->nodes.items[i];
    if (n->memory == memory && (!n->freed_by || !engine_node_depends(node, n->freed_by))) return false;
  }
  return true;
}

cudaError_t engine_graph_memory_check(const engine_node_params *params) {
  if (!engine_device_exists(params->memory.device)) return cudaErrorInvalidValue;
  if (!params->memory.bytes || params->memory.access_count > ENGINE_DEVICES_MAX) return cudaErrorInvalidValue;
  for (size_t i = 0; i < params->memory.access_count; i++) {
    const cudaMemAccessDesc *a = &params->memory.access[i];
    if (a->location.type != cudaMemLocationTypeDevice) return cudaErrorInvalidValue;
    if (a->flags != ENGINE_ACCESS_NONE && a->flags != ENGINE_ACCESS_READ && a->flags != ENGINE_ACCESS_READ_WRITE)
      return cudaErrorInvalidValue;
    if (!engine_device_exists(a->location.id)) return cudaErrorInvalidValue;
  }
  return cudaSuccess;
}

static bool is_like(const engine_graph_memory *m, const engine_node_params *params, uint64_t bytes) {
  size_t count = params->memory.access_count;
  return m->bytes == bytes && m->device == params->memory.device && m->access_count == count &&
         (!count || !memcmp(m->access, params->memory.access, count * sizeof *m->access));
}

engine_graph_memory *engine_graph_memory_make(engine_node *node, const engine_node_params *params, cudaError_t *error) {
  uint64_t bytes = params->memory.bytes;
  *error = cudaSuccess;
  if (bytes > EXEC_ARENA_BYTES / 2) {
    *error = cudaErrorMemoryAllocation;
    return NULL;
  }
  bytes = granules(bytes);
  for (size_t i = 0; i < node->graph->nodes.count; i++) {
    engine_graph_memory *m = node->graph->nodes.items[i]->memory;
    if (!m || !is_like(m, params, bytes) || !over_before(node, m)) continue;
    m->references++;
    return m;
  }
  uint64_t address;
  *error = engine_reserve_locked(bytes, 0, 0, &address);
  if (*error) return NULL;
  engine_graph_memory *made = ff_alloc(sizeof *made);
  *made = (engine_graph_memory){.address = address,
                                .bytes = bytes,
                                .device = params->memory.device,
                                .access_count = params->memory.access_count,
                                .references = 1,
                                .next = graph_memory.all};
  if (made->access_count) memcpy(made->access, params->memory.access, made->access_count * sizeof *made->access);
  graph_memory.all = made;
  return made;
}

static chunk *chunk_of(const engine_graph_memory *memory) {
  return memory->chunk ? &graph_memory.chunks.items[memory->chunk - 1] : NULL;
}

static void unmap(engine_graph_memory *memory) {
  chunk *c = chunk_of(memory);
  if (!c) return;
  engine_unmap_locked(memory->address, memory->bytes);
  c->mapped = NULL;
  memory->chunk = 0;
  graph_memory.on[memory->device].used -= memory->bytes;
}

static void memory_drop(engine_graph_memory *memory) { /* no node has it, and it is not allocated */
  engine_graph_memory **at = &graph_memory.all;
  while (*at != memory) at = &(*at)->next;
  *at = memory->next;
  unmap(memory);
  engine_unreserve_locked(memory->address);
  free(memory);
}

void engine_graph_memory_release(engine_graph_memory *memory) {
  if (--memory->references || memory->allocated) return;
  memory_drop(memory);
}

/* ---- memory ---- */

static void raise(uint64_t *high, uint64_t now) {
  if (*high < now) *high = now;
}

static bool reusable(const chunk *c, const engine_stream *stream) {
  return !c->sequence || c->stream == stream->number || engine_happened(c->device, c->sequence, c->time_ps);
}

/* The smallest that fits and that nothing in another stream may still be using; 0: there is none. */
static uint32_t find_chunk(int device, uint64_t bytes, const engine_stream *stream) {
  uint32_t best = 0;
  for (size_t i = 0; i < graph_memory.chunks.count; i++) {
    const chunk *c = &graph_memory.chunks.items[i];
    if (c->used || c->device != device || c->bytes < bytes ||
        (best && graph_memory.chunks.items[best - 1].bytes <= c->bytes))
      continue;
    if (reusable(c, stream)) best = (uint32_t)i + 1;
  }
  return best;
}

static uint32_t make_chunk(int device, uint64_t bytes) {
  uint64_t handle;
  if (engine_memory_create_locked(device, bytes, "", 0, false, &handle)) return 0;
  size_t at = 0;
  while (at < graph_memory.chunks.count && graph_memory.chunks.items[at].bytes) at++;
  if (at == graph_memory.chunks.count) FF_PUSH(&graph_memory.chunks, ((chunk){0}));
  graph_memory.chunks.items[at] = (chunk){.bytes = bytes, .handle = handle, .device = device};
  graph_memory.on[device].reserved += bytes;
  raise(&graph_memory.on[device].reserved_high, graph_memory.on[device].reserved);
  return (uint32_t)at + 1;
}

static void set_access(const engine_graph_memory *memory, bool access) {
  const exec_allocation *mapping = exec_memory_find(ff_engine.memory, memory->address);
  for (size_t i = 0; i < memory->access_count; i++)
    engine_mapped_open(mapping, memory->access[i].location.id,
                       access ? (unsigned)memory->access[i].flags : ENGINE_ACCESS_NONE);
  engine_mapped_open(mapping, memory->device, access ? ENGINE_ACCESS_READ_WRITE : ENGINE_ACCESS_NONE);
}

cudaError_t engine_graph_memory_take(engine_graph_memory *memory, engine_stream *stream) {
  if (memory->allocated) return cudaErrorInvalidValue;
  if (!memory->chunk) { /* what was there before is its own: one launch of an exec waits for the one before */
    uint32_t number = find_chunk(memory->device, memory->bytes, stream);
    if (!number) number = make_chunk(memory->device, memory->bytes);
    if (!number) return cudaErrorMemoryAllocation;
    chunk *c = &graph_memory.chunks.items[number - 1];
    if (c->mapped) unmap(c->mapped);
    cudaError_t error = engine_map_locked(memory->address, memory->bytes, c->handle);
    if (error) return error;
    c->mapped = memory;
    memory->chunk = number;
    graph_memory.on[memory->device].used += memory->bytes;
    raise(&graph_memory.on[memory->device].used_high, graph_memory.on[memory->device].used);
  }
  chunk_of(memory)->used = true;
  memory->allocated = true;
  set_access(memory, true);
  return cudaSuccess;
}

cudaError_t engine_graph_memory_give(engine_graph_memory *memory, engine_stream *stream) {
  if (!memory->allocated) return cudaErrorInvalidValue;
  chunk *c = chunk_of(memory);
  set_access(memory, false);
  memory->allocated = false;
  c->used = false;
  c->sequence = 0;
  if (stream) {
    engine_stream_record(stream);
    c->stream = stream->number;
    c->sequence = ff_engine.last_sequence;
    c->time_ps = engine_stream_ready(stream);
  }
  if (!memory->references) memory_drop(memory);
  return cudaSuccess;
}

/* cudaFree and cudaFreeAsync of what a graph allocated and did not free. */
cudaError_t engine_graph_free_address(uint64_t address, engine_stream *stream, bool *found) {
  engine_graph_memory *memory = engine_graph_memory_at(address);
  *found = memory != NULL;
  return memory ? engine_graph_memory_give(memory, stream) : cudaSuccess;
}

void engine_graph_memory_clear(int device) {
  for (engine_graph_memory **at = &graph_memory.all; *at;) {
    engine_graph_memory *m = *at;
    if (m->device != device) {
      at = &m->next;
      continue;
    }
    *at = m->next;
    free(m); /* reservations and memory go with all others */
  }
  for (size_t i = 0; i < graph_memory.chunks.count; i++)
    if (graph_memory.chunks.items[i].device == device) graph_memory.chunks.items[i] = (chunk){0};
  memset(&graph_memory.on[device], 0, sizeof graph_memory.on[device]);
}

/* ---- asking ---- */

static uint64_t *attribute_place(int device, int attribute) {
  switch (attribute) {
  case ENGINE_GRAPH_USED: return &graph_memory.on[device].used;
  case ENGINE_GRAPH_USED_HIGH: return &graph_memory.on[device].used_high;
  case ENGINE_GRAPH_RESERVED: return &graph_memory.on[device].reserved;
  case ENGINE_GRAPH_RESERVED_HIGH: return &graph_memory.on[device].reserved_high;
  default: return NULL;
  }
}

cudaError_t engine_graph_memory_attribute(int device, int attribute, uint64_t *value) {
  if (!value || !attribute_place(0, attribute)) return cudaErrorInvalidValue;
  cudaError_t error = engine_enter();
  if (error) return error;
  if (engine_device_exists(device)) *value = *attribute_place(device, attribute);
  else error = cudaErrorInvalidDevice;
  engine_leave();
  return error;
}

cudaError_t engine_graph_memory_reset_high(int device, int attribute, const uint64_t *value) {
  cudaError_t error = engine_enter();
  if (error) return error;
  bool high = attribute == ENGINE_GRAPH_USED_HIGH || attribute == ENGINE_GRAPH_RESERVED_HIGH;
  if (!engine_device_exists(device)) error = cudaErrorInvalidDevice;
  else if (!high || !value || *value) error = cudaErrorInvalidValue; /* only back to what there is now, by 0 */
  else *attribute_place(device, attribute) = *attribute_place(device, attribute - 1);
  engine_leave();
  return error;
}

static void trim(int device) {
  for (size_t i = 0; i < graph_memory.chunks.count; i++) {
    chunk *c = &graph_memory.chunks.items[i];
    if (!c->bytes || c->device != device || c->used ||
        (c->sequence && !engine_happened(c->device, c->sequence, c->time_ps)))
      continue;
    if (c->mapped) unmap(c->mapped);
    engine_memory_release_locked(c->handle);
    graph_memory.on[device].reserved -= c->bytes;
    *c = (chunk){0};
  }
}

cudaError_t engine_graph_memory_trim(int device) {
  cudaError_t error = engine_enter();
  if (error) return error;
  if (engine_device_exists(device)) trim(device);
  else error = cudaErrorInvalidDevice;
  engine_leave();
  return error;
}

void engine_graph_memory_references_check(void) {
  for (const engine_graph_memory *m = graph_memory.all; m; m = m->next) {
    uint32_t references = 0;
    for (const engine_graph *g = ff_graphs.graphs; g; g = g->next)
      for (size_t i = 0; i < g->nodes.count; i++) references += g->nodes.items[i]->memory == m;
    FF_ASSERT(references == m->references && (references || m->allocated));
  }
}
