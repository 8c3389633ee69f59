/* SPDX-License-Identifier: Apache-2.0 */
/* Virtual memory management: ranges of addresses, memory without an address, and mappings of the one to the other.
 *
 *                     MANAGER_PROGRAM (copy)                          every other manager
 *   create, release   GPU memory is taken and given back: once,       only host time
 *                     however often it is mapped
 *   map               a device allocation that takes no memory        a device allocation like any other: its pages are on the
 *                                                                     CPU's side, whatever they held elsewhere
 *   unmap             at once; translations and cached lines go       waits for the device, as a free does; the pages go
 *
 * Memory that is released while it is mapped is given back with its last mapping. What the program counts of accesses,
 * copies and faults belongs to the reservation: mappings come and go in it without number.
 *
 * What always holds: s->mappings.created and s->mappings.reserved are sorted; the `mappings` of created memory is the
 * number of live allocations with `mapping` set and its id in `memory`. A trace may say anything: what does not fit is
 * passed over. */
#include <string.h>

#include "machine/simulation.h"

static bool counts_created(const sim *s) { return s->manager->placement == MANAGER_PROGRAM; }

/* ---- memory ---- */

static size_t created_place(const sim *s, uint32_t id) {
  size_t low = 0, high = s->mappings.created.count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (s->mappings.created.items[middle].id < id) low = middle + 1;
    else high = middle;
  }
  return low;
}

static created_memory *created_find(const sim *s, uint32_t id) {
  size_t at = created_place(s, id);
  return at < s->mappings.created.count && s->mappings.created.items[at].id == id ? &s->mappings.created.items[at]
                                                                                  : NULL;
}

static void create(sim *s, const trace_op *op) {
  created_memory *known = s->host.failed ? NULL : created_find(s, op->alloc.id);
  if (known) known->released = false; /* mapped, and it has a handle again */
  if (known) return;
  host_spend(s, s->t.create);
  if (s->host.failed) return;
  record_sample(&s->observer, s->host.clock);
  if (counts_created(s) &&
      !host_take_memory(s, (host_memory){op->alloc.bytes, op->alloc.bytes, op->alloc.bytes}, op->alloc.name))
    return;
  size_t at = created_place(s, op->alloc.id);
  FF_PUSH(&s->mappings.created, ((created_memory){0}));
  memmove(&s->mappings.created.items[at + 1], &s->mappings.created.items[at],
          (s->mappings.created.count - 1 - at) * sizeof *s->mappings.created.items);
  s->mappings.created.items[at] = (created_memory){.id = op->alloc.id, .bytes = op->alloc.bytes};
}

/* Gives it back if nothing refers to it any more. */
static void created_settle(sim *s, created_memory *m) {
  if (!m->released || m->mappings) return;
  if (counts_created(s)) host_give_memory(s, (host_memory){m->bytes, m->bytes, m->bytes});
  s->mappings.created.count--;
  memmove(m, m + 1, (size_t)(s->mappings.created.items + s->mappings.created.count - m) * sizeof *m);
}

static void release(sim *s, const trace_op *op) {
  host_spend(s, s->t.release);
  created_memory *m = s->host.failed ? NULL : created_find(s, op->free.id);
  if (!m) return;
  record_sample(&s->observer, s->host.clock);
  m->released = true;
  created_settle(s, m);
}

/* ---- addresses ---- */

/* The first reservation that ends behind `address`. */
static size_t reserved_place(const sim *s, uint64_t address) {
  size_t low = 0, high = s->mappings.reserved.count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (s->mappings.reserved.items[middle].address + s->mappings.reserved.items[middle].bytes > address) high = middle;
    else low = middle + 1;
  }
  return low;
}

static const reserved_range *reserved_find(const sim *s, uint64_t address) {
  size_t at = reserved_place(s, address);
  return at < s->mappings.reserved.count && s->mappings.reserved.items[at].address <= address
             ? &s->mappings.reserved.items[at]
             : NULL;
}

static void reserve(sim *s, const trace_op *op) {
  host_spend(s, s->t.reserve);
  uint64_t address = op->alloc.address, bytes = op->alloc.bytes;
  size_t at = reserved_place(s, address);
  bool overlaps = at < s->mappings.reserved.count && s->mappings.reserved.items[at].address < address + bytes;
  if (s->host.failed || !bytes || overlaps) return;
  FF_PUSH(&s->mappings.reserved, ((reserved_range){0}));
  memmove(&s->mappings.reserved.items[at + 1], &s->mappings.reserved.items[at],
          (s->mappings.reserved.count - 1 - at) * sizeof *s->mappings.reserved.items);
  s->mappings.reserved.items[at] =
      (reserved_range){address, bytes, op->alloc.id, counters_of_allocation(&s->observer, op)};
}

static void unreserve(sim *s, const trace_op *op) {
  host_spend(s, s->t.reserve);
  size_t at = reserved_place(s, op->map.address);
  if (s->host.failed || at == s->mappings.reserved.count || s->mappings.reserved.items[at].address != op->map.address)
    return;
  record_released(&s->observer, s->mappings.reserved.items[at].owner, s->host.clock);
  s->mappings.reserved.count--;
  memmove(&s->mappings.reserved.items[at], &s->mappings.reserved.items[at + 1],
          (s->mappings.reserved.count - at) * sizeof *s->mappings.reserved.items);
}

/* ---- mappings ---- */

static void map(sim *s, const trace_op *op) {
  host_spend(s, s->t.map);
  if (s->host.failed) return;
  record_sample(&s->observer, s->host.clock);
  const reserved_range *range = reserved_find(s, op->map.address);
  created_memory *m = created_find(s, op->map.memory);
  trace_op made = {.kind = TRACE_OP_ALLOC,
                   .alloc = {.address = op->map.address,
                             .bytes = op->map.bytes,
                             .memory = TRACE_MEMORY_DEVICE,
                             .id = range ? range->id : 0,
                             .initialised = m && m->used,
                             .name = "(mapped memory)"}};
  host_memory memory = host_memory_for(s, made.alloc.address, made.alloc.bytes);
  if (!counts_created(s) && !host_take_memory(s, memory, made.alloc.name)) return;
  uint32_t index = pager_map(s->pager, made.alloc.address, made.alloc.bytes, hints_memory(s, &made),
                             range ? range->owner : counters_of_allocation(&s->observer, &made));
  if (!index && !counts_created(s)) host_give_memory(s, memory);
  if (!index) return;
  pager_allocation *a = &s->pager->allocations.items[index];
  address_map_allocated(&s->placing, a->address, a->bytes);
  a->mapping = true;
  a->memory = op->map.memory;
  a->blank = s->manager->segments && !made.alloc.initialised;
  if (m) {
    m->mappings++;
    m->used = true;
  }
  hints_allocated(s, &made);
}

/* Nothing that was cached of it may be found by what is mapped there next. Where pages move, they take that with
 * them. */
static void forget_cached(sim *s, uint64_t address, uint64_t bytes) {
  if (is_paged(s)) return;
  tlb_forget_range(&s->gmmu, address, bytes);
  uint64_t last = (address + bytes - 1) >> PAGER_CHUNK_SHIFT;
  for (uint64_t chunk = address >> PAGER_CHUNK_SHIFT; chunk <= last; chunk++)
    if (pager_chunk_made(s->pager, chunk)) l2_discard(&s->memory, chunk << PAGER_CHUNK_SHIFT, FF_BLOCK_BYTES);
}

static void drop_mapping(sim *s, pager_allocation a) {
  forget_cached(s, a.address, a.bytes);
  if (!is_paged(s)) address_map_give(&s->placing, a.address, a.bytes);
  hints_released(s, a.address);
  pager_unmap(s->pager, a.address);
  if (!counts_created(s)) host_give_memory(s, host_memory_for(s, a.address, a.bytes));
  created_memory *m = created_find(s, a.memory);
  if (!m) return;
  m->mappings--;
  created_settle(s, m);
}

/* The first mapping that lies in the range whole; 0: there is none. */
static uint32_t mapping_in(const sim *s, uint64_t address, uint64_t end) {
  const pager *p = s->pager;
  for (size_t at = pager_first_behind(p, address); at < p->by_address.count; at++) {
    const pager_allocation *a = &p->allocations.items[p->by_address.items[at]];
    if (a->address >= end) return 0;
    if (a->mapping && a->address >= address && a->address + a->bytes <= end) return p->by_address.items[at];
  }
  return 0;
}

/* Other devices' memory in the range. */
static void unmap_foreign(sim *s, const trace_op *op) {
  const pager *p = s->pager;
  for (size_t at = pager_first_behind(p, op->map.address); at < p->by_address.count;) {
    const pager_allocation *a = &p->allocations.items[p->by_address.items[at]];
    if (a->address - op->map.address >= op->map.bytes) break;
    if (a->kind == TRACE_MEMORY_PINNED && reserved_find(s, a->address)) pager_unmap(s->pager, a->address);
    else at++;
  }
}

static void unmap(sim *s, const trace_op *op) {
  if (is_paged(s)) host_wait_for_device(s);
  host_spend(s, s->t.unmap);
  if (s->host.failed) return;
  record_sample(&s->observer, s->host.clock);
  for (uint32_t index; (index = mapping_in(s, op->map.address, op->map.address + op->map.bytes)) != 0;)
    drop_mapping(s, s->pager->allocations.items[index]);
  unmap_foreign(s, op);
}

/* Memory of another device: like the host's, it is reached over the link. */
static void map_foreign(sim *s, const trace_op *op) {
  host_spend(s, s->t.map);
  const reserved_range *range = s->host.failed ? NULL : reserved_find(s, op->map.address);
  if (range) pager_map(s->pager, op->map.address, op->map.bytes, TRACE_MEMORY_PINNED, range->owner);
}

/* A range may have mappings of several devices' memory: its unmapping is everybody's. */
void mapping_foreign(sim *s, const trace_op *op) {
  switch (op->kind) {
  case TRACE_OP_CREATE: host_spend(s, s->t.create); break;
  case TRACE_OP_RELEASE: host_spend(s, s->t.release); break;
  case TRACE_OP_MAP: map_foreign(s, op); break;
  default: mapping_process(s, op); break;
  }
}

void mapping_process(sim *s, const trace_op *op) {
  switch (op->kind) {
  case TRACE_OP_RESERVE: reserve(s, op); break;
  case TRACE_OP_UNRESERVE: unreserve(s, op); break;
  case TRACE_OP_CREATE: create(s, op); break;
  case TRACE_OP_RELEASE: release(s, op); break;
  case TRACE_OP_MAP: map(s, op); break;
  case TRACE_OP_UNMAP: unmap(s, op); break;
  default: host_spend(s, s->t.set_access); break;
  }
}
