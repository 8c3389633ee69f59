/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of pools: which free parts a request gets, and when blocks come and go (engine_pool_parts.h).
 *
 * Invariants (engine_pools_check)
 *   - the rooms of a block's parts are its bytes, and each part begins where the one before it ends;
 *   - used == bytes of the pool's parts in use; reserved == bytes of its blocks that are not surrendered;
 *     used <= reserved. */
#include "driver/engine/engine_pool_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/engine/engine_ipc.h"
#include "driver/engine/engine_range.h"
#include "driver/engine/engine_vmm.h"
#include "exec/memory/visibility.h"

static struct {
  FF_VEC(pool_block *) blocks;
  FF_VEC(pool_block *) of; /* by allocation id; NULL: none */
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

static bool is_known(const engine_known *known, size_t count, const pool_part *p) {
  for (size_t i = 0; i < count; i++)
    if (known[i].stream == p->stream) return known[i].sequence >= p->sequence;
  return false;
}

static bool is_blocking(const engine_stream *stream) {
  return !(stream->flags & cudaStreamNonBlocking) && !engine_stream_is_legacy(stream);
}

/* Has the host that waits for all that is in the stream waited for what was in the part's before its freeing? The
 * default stream waits for the blocking ones. */
static bool is_waited(const engine_stream *stream, const pool_part *p) {
  if (p->stream == stream->number) return true;
  if (p->device == stream->device && engine_stream_is_legacy(stream) && p->blocking) return true;
  return is_known(stream->known.items, stream->known.count, p);
}

/* Does what is put into the stream from now on wait for it? That of a blocking one also waits for the default stream,
 * though nothing that is in it may do so yet. */
static bool comes_after(const engine_stream *stream, const pool_part *p) {
  return is_waited(stream, p) || (p->device == stream->device && p->legacy && is_blocking(stream));
}

/* ---- blocks ---- */

static pool_block *block_of(const exec_allocation *allocation) {
  return allocation && allocation->id < all.of.count ? all.of.items[allocation->id] : NULL;
}

pool_part *pool_part_of(const exec_allocation *allocation) {
  pool_block *block = block_of(allocation);
  pool_part *p = block ? block->parts : NULL;
  while (p && p->allocation != allocation) p = p->next;
  return p;
}

uint64_t engine_pool_bytes(const exec_allocation *allocation) {
  const pool_block *block = block_of(allocation);
  return block ? block->bytes : allocation->bytes;
}

const exec_allocation *engine_pool_next(const exec_allocation *allocation) {
  const pool_part *p = pool_part_of(allocation);
  return p && p->next ? p->next->allocation : NULL;
}

/* In use, all of it. */
static pool_part *block_add(engine_pool *pool, const exec_allocation *allocation) {
  pool_block *block = ff_alloc(sizeof *block);
  pool_part *p = ff_alloc(sizeof *p);
  *p = (pool_part){.allocation = allocation, .block = block, .room = allocation->bytes, .used = true};
  *block = (pool_block){.pool = pool, .bytes = allocation->bytes, .parts = p};
  snprintf(block->name, sizeof block->name, "%s", allocation->name);
  FF_PUSH(&all.blocks, block);
  while (all.of.count <= allocation->id) FF_PUSH(&all.of, NULL);
  all.of.items[allocation->id] = block;
  pool->reserved += block->bytes;
  return p;
}

/* Its parts, which are all free, are one. */
static void join_next(pool_part *p) {
  pool_part *next = p->next;
  exec_memory_join(ff_engine.memory, p->allocation, next->allocation, p->room + next->room);
  p->room += next->room;
  p->next = next->next;
  free(next);
}

/* The pool has it no more. Its memory, parked no longer, is one allocation as at first. */
static const exec_allocation *block_remove(pool_block *block) {
  pool_part *first = block->parts;
  const exec_allocation *allocation = first->allocation;
  while (first->next) join_next(first);
  exec_memory_park(allocation, false);
  exec_memory_name(allocation, block->name);
  if (!block->surrendered) block->pool->reserved -= block->bytes;
  all.of.items[allocation->id] = NULL;
  for (size_t i = 0; i < all.blocks.count; i++)
    if (all.blocks.items[i] == block) {
      memmove(&all.blocks.items[i], &all.blocks.items[i + 1], (all.blocks.count - i - 1) * sizeof block);
      all.blocks.count--;
      break;
    }
  free(first);
  free(block);
  return allocation;
}

/* Back to the device. All of it is free. */
static void block_drop(pool_block *block) {
  const exec_allocation *allocation = block_remove(block);
  uint64_t address = allocation->address;
  engine_forget_allocation(allocation);
  exec_memory_release(ff_engine.memory, address, NULL);
}

static bool is_over(const pool_part *p) { return !p->sequence || engine_happened(p->device, p->sequence, p->time_ps); }

/* Nobody uses it, nor will what is in streams. */
static bool is_idle(const pool_block *block) {
  for (const pool_part *p = block->parts; p; p = p->next)
    if (p->used) return false;
  for (const pool_part *p = block->parts; p; p = p->next)
    if (!is_over(p)) return false;
  return true;
}

/* "the pool will be guaranteed to have at least minBytesToKeep bytes reserved after the operation",
 * cudaMemPoolTrimTo */
static bool may_go(const pool_block *block, uint64_t keep) {
  return block->surrendered || !keep || block->pool->reserved - block->bytes >= keep;
}

void pool_give_back(engine_pool *pool, uint64_t keep, bool surrender) {
  for (size_t i = all.blocks.count; i-- > 0;) { /* one may go meanwhile */
    pool_block *block = all.blocks.items[i];
    if (block->pool != pool || (surrender && block->surrendered) || !may_go(block, keep) || !is_idle(block)) continue;
    if (!surrender) {
      block_drop(block);
      continue;
    }
    block->surrendered = true;
    pool->reserved -= block->bytes;
  }
}

void pool_memory_waited(int device, const engine_stream *stream, const engine_event *event) {
  for (size_t i = 0; i < all.blocks.count; i++)
    for (pool_part *p = all.blocks.items[i]->parts; p; p = p->next) {
      bool done = p->used || p->device == device;
      if (stream) done |= is_waited(stream, p);
      if (event)
        done |= is_known(event->known.items, event->known.count, p) ||
                (p->stream == event->stream_number && p->sequence <= event->sequence);
      if (done) p->sequence = 0;
    }
}

bool pool_memory_none(void) { return !all.blocks.count; }

void pool_memory_reset(int device) {
  for (size_t i = all.blocks.count; i-- > 0;) {
    pool_block *block = all.blocks.items[i];
    if (engine_memory_device(block->parts->allocation) != device) continue;
    for (pool_part *p = block->parts; p; p = p->next)
      if (p->used) pool_part_free(p, NULL);
    if (block->pool->imported) block_drop(block); /* engine_memory_reset frees only what this process has made */
    else block_remove(block);
  }
}

/* ---- taking ---- */

typedef enum fit { FIT_NONE, FIT_WAIT, FIT_LUCK, FIT_EVENTS, FIT_STREAM } fit; /* the last is best */

static fit fit_of(const pool_part *p, const engine_stream *stream) {
  const int *reuse = p->block->pool->reuse;
  if (!p->sequence || p->stream == stream->number) return FIT_STREAM;
  if (reuse[ENGINE_POOL_REUSE_EVENTS - 1] && comes_after(stream, p)) return FIT_EVENTS;
  if (reuse[ENGINE_POOL_REUSE_OPPORTUNISTIC - 1] && is_over(p)) return FIT_LUCK;
  return reuse[ENGINE_POOL_REUSE_INTERNAL - 1] ? FIT_WAIT : FIT_NONE;
}

static bool divides(const engine_pool *pool) {
  return !pool_is_managed(pool) && !pool->shareable && !pool->imported && !ff_engine.check &&
         !exec_memory_padding(ff_engine.memory);
}

/* Parts side by side that have room enough, the fewest from the first on. */
typedef struct choice {
  pool_part *first; /* NULL: none */
  fit fit;          /* the worst of them */
  uint64_t room;
  bool exact; /* one part, of which nothing is left over */
} choice;

static choice choice_at(pool_part *first, uint64_t bytes, const engine_stream *stream) {
  choice c = {.first = first, .fit = FIT_STREAM};
  bool whole = !divides(first->block->pool);
  for (pool_part *p = first; p && c.room < bytes; p = p->next) {
    fit its = p->used || p->hinted ? FIT_NONE : fit_of(p, stream);
    if (its < c.fit) c.fit = its;
    if (its == FIT_NONE) return (choice){0};
    c.room += p->room;
  }
  if (c.room < bytes || (whole && c.room != bytes)) return (choice){0};
  c.exact = c.room == first->room && engine_whole_pages(c.room) == engine_whole_pages(bytes);
  return c;
}

/* What fits exactly keeps large parts whole; then what can be had soonest; then the smallest. */
static bool is_better(const choice *a, const choice *b) {
  if (!b->first || a->exact != b->exact) return !b->first || a->exact;
  return a->fit != b->fit ? a->fit > b->fit : a->room < b->room;
}

static choice choose(const engine_pool *pool, uint64_t bytes, const engine_stream *stream, fit worst) {
  choice best = {0};
  for (size_t i = 0; i < all.blocks.count; i++) {
    pool_block *block = all.blocks.items[i];
    if (block->pool != pool || block->bytes < bytes) continue;
    for (pool_part *p = block->parts; p; p = p->next) {
      choice c = choice_at(p, bytes, stream);
      if (c.first && c.fit >= worst && is_better(&c, &best)) best = c;
      if (best.first && best.exact && best.fit == FIT_STREAM) return best;
    }
  }
  return best;
}

/* The free part `p` has `bytes` from now on; the rest is free as `last` was, the part that it is from. */
static void cut(pool_part *p, uint64_t bytes, pool_part last) {
  uint64_t kept = engine_whole_pages(bytes);
  if (kept >= p->room) {
    exec_memory_join(ff_engine.memory, p->allocation, NULL, bytes);
    return;
  }
  pool_part *rest = ff_alloc(sizeof *rest);
  *rest = last;
  rest->room = p->room - kept;
  rest->allocation = exec_memory_cut(ff_engine.memory, p->allocation, bytes, rest->room);
  rest->next = p->next;
  p->next = rest;
  p->room = kept;
}

static void name_part(const pool_part *p, uint64_t bytes, const char *call) {
  char name[64];
  snprintf(name, sizeof name, "%.32s (%llu bytes)", call, (unsigned long long)bytes);
  exec_memory_name(p->allocation, bytes == p->block->bytes ? p->block->name : name);
}

static pool_part *reuse(choice c, uint64_t bytes, engine_stream *stream, const char *call) {
  pool_part *p = c.first, last = *p;
  pool_block *block = p->block;
  uint64_t room = 0;
  for (pool_part *each = p; room < bytes; each = each->next) {
    if (fit_of(each, stream) == FIT_WAIT) engine_stream_wait_for(stream, each->event, each->time_ps);
    room += each->room;
    last = *each;
  }
  while (p->room < bytes) join_next(p);
  if (divides(block->pool)) cut(p, bytes, last);
  name_part(p, bytes, call);
  exec_memory_park(p->allocation, false);
  engine_peers_changed();
  if (pool_is_managed(block->pool)) engine_range_prefetch(p->allocation->address, bytes, cudaInvalidDeviceId);
  p->used = true;
  if (block->surrendered) block->pool->reserved += block->bytes;
  block->surrendered = false;
  engine_append_host();
  return p;
}

static bool exceeds(const engine_pool *pool, uint64_t bytes) {
  return pool->most && (bytes > pool->most || pool->reserved > pool->most - bytes);
}

/* Is there room for a new block? `device`: whose memory it is to be. */
static bool has_room(engine_pool *pool, int device, uint64_t bytes) {
  for (size_t i = all.blocks.count; i-- > 0 && exceeds(pool, bytes);) {
    pool_block *block = all.blocks.items[i];
    if (block->pool == pool && !block->surrendered && is_idle(block)) block_drop(block);
  }
  if (exceeds(pool, bytes)) return false;
  if (!engine_memory_fits(device, pool_memory(pool), bytes)) pools_give_back();
  return engine_memory_fits(device, pool_memory(pool), bytes);
}

/* of cudaMallocManaged */
static unsigned flags_of(const engine_pool *pool) { return pool_is_managed(pool) ? cudaMemAttachGlobal : 0; }

static cudaError_t make_block(engine_pool *pool, int device, uint64_t bytes, const char *call, pool_part **out) {
  uint64_t address;
  cudaError_t error = engine_allocate_locked(device, pool_memory(pool), bytes, flags_of(pool), call, &address);
  if (error) return error;
  if (pool_preferred(pool) != cudaInvalidDeviceId)
    engine_advise_managed(address, bytes, cudaMemAdviseSetPreferredLocation, pool_preferred(pool));
  *out = block_add(pool, exec_memory_find(ff_engine.memory, address));
  return cudaSuccess;
}

/* Free memory of the pool that the stream could have, but for its size, is not over yet: the host waits for the device,
 * so that it can be given back. False: there is none. */
static bool wait_for_free(engine_pool *pool, int device, const engine_stream *stream) {
  bool any = false;
  for (size_t i = 0; i < all.blocks.count && !any; i++)
    for (const pool_part *p = all.blocks.items[i]->pool == pool ? all.blocks.items[i]->parts : NULL; p; p = p->next)
      any |= !p->used && !p->hinted && p->device == device && !is_over(p) && fit_of(p, stream) != FIT_NONE;
  if (any) engine_synchronize_device_locked(device);
  return any;
}

static void raise(uint64_t *high, uint64_t now) {
  if (*high < now) *high = now;
}

static void count_used(engine_pool *pool, uint64_t bytes) {
  pool->used += bytes;
  raise(&pool->used_high, pool->used);
  raise(&pool->reserved_high, pool->reserved);
}

cudaError_t pool_part_take(engine_pool *pool, uint64_t bytes, engine_stream *stream, const char *call,
                           pool_part **part) {
  int device = pool_device(pool) < 0 ? stream->device : pool_device(pool);
  choice c = choose(pool, bytes, stream, FIT_LUCK);
  cudaError_t error = cudaSuccess;
  bool room = c.first || has_room(pool, device, bytes);
  /* "Failing to allocate and map more physical memory from the OS, the driver will look for memory whose availability
   * depends on another stream's pending progress", Programming Guide */
  if (!room) c = choose(pool, bytes, stream, FIT_WAIT);
  if (!c.first && !room && wait_for_free(pool, device, stream)) room = has_room(pool, device, bytes);
  if (c.first) *part = reuse(c, bytes, stream, call);
  else if (exceeds(pool, bytes)) error = cudaErrorMemoryAllocation;
  else error = make_block(pool, device, bytes, call, part);
  if (!error) count_used(pool, bytes);
  return error;
}

void pool_block_import(engine_pool *pool, const exec_allocation *allocation) {
  block_add(pool, allocation);
  count_used(pool, allocation->bytes);
}

/* ---- freeing ---- */

void pool_part_free(pool_part *p, engine_stream *stream) {
  uint64_t address = p->allocation->address, bytes = p->allocation->bytes;
  engine_pool *pool = p->block->pool;
  engine_ipc_forget(p->allocation); /* what was exported of it opens nothing any more */
  engine_teams_forget_pool(*p->allocation);
  p->used = false;
  p->hinted = pool_is_managed(pool) && engine_range_hinted(address, bytes, pool_preferred(pool));
  pool->used -= bytes;
  p->sequence = 0;
  if (stream) {
    p->event = engine_stream_record(stream);
    p->stream = stream->number;
    p->device = stream->device;
    p->legacy = engine_stream_is_legacy(stream);
    p->blocking = is_blocking(stream);
    p->sequence = ff_engine.last_sequence;
    p->time_ps = engine_stream_ready(stream);
    engine_time_host(ff_engine.machine->api_us);
  }
  exec_memory_park(p->allocation, true);
  if (bytes != p->room) exec_memory_join(ff_engine.memory, p->allocation, NULL, p->room);
}

/* ---- checks ---- */

static void block_check(const pool_block *block) {
  uint64_t room = 0, address = block->parts->allocation->address;
  bool used = false;
  for (const pool_part *p = block->parts; p; p = p->next) {
    FF_ASSERT(p->block == block && block_of(p->allocation) == block && p->allocation->address == address + room);
    FF_ASSERT(p->used ? p->allocation->bytes <= p->room : p->allocation->freed && p->allocation->bytes == p->room);
    room += p->room;
    used |= p->used;
  }
  FF_ASSERT(room == block->bytes && !(used && block->surrendered));
}

void pool_memory_check(const engine_pool *pool) {
  uint64_t used = 0, reserved = 0;
  for (size_t i = 0; i < all.blocks.count; i++) {
    const pool_block *block = all.blocks.items[i];
    if (block->pool != pool) continue;
    block_check(block);
    for (const pool_part *p = block->parts; p; p = p->next)
      if (p->used) used += p->allocation->bytes;
    if (!block->surrendered) reserved += block->bytes;
  }
  FF_ASSERT(pool->used == used && pool->reserved == reserved && used <= reserved);
}
