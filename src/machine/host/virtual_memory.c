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
 * A multicast object has no memory of its own: its mappings are memory of its devices, which each of them reaches
 * through the switch.
 *
 * Memory that is released while it is mapped is given back with its last mapping. What the program counts of accesses,
 * copies and faults belongs to the reservation: mappings come and go in it without number.
 *
 * `created` and `reserved` are sorted; the `mappings` of created memory is the number of live allocations with
 * `mapping` set and its id in `memory`: asserted after each operation at the deep check level. A trace may say
 * anything: what does not fit is passed over. */
#include "machine/host/virtual_memory.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "machine/host/hints.h"
#include "machine/host/host.h"
#include "machine/memory/address_map.h"
#include "machine/memory/hierarchy.h"
#include "machine/memory/tlb.h"
#include "machine/observe/observer.h"

#define NO_MEMORY UINT32_MAX /* a mapping of memory that the trace has not created */

static bool counts_created(const mappings *v) { return v->manager->placement == MANAGER_PROGRAM; }

/* ---- memory ---- */

static size_t created_place(const mappings *v, uint32_t id) {
  size_t low = 0, high = v->created.count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (v->created.items[middle].id < id) low = middle + 1;
    else high = middle;
  }
  return low;
}

static created_memory *created_find(const mappings *v, uint32_t id) {
  size_t at = created_place(v, id);
  return at < v->created.count && v->created.items[at].id == id ? &v->created.items[at] : NULL;
}

static void create(mappings *v, const trace_op *op) {
  created_memory *known = v->host->failed ? NULL : created_find(v, op->alloc.id);
  if (known) known->released = false; /* mapped, and it has a handle again */
  if (known) return;
  host_spend(v->host, v->t->create);
  if (v->host->failed) return;
  record_sample(v->observer, v->host->clock);
  owners_set team = (owners_set)op->alloc.address;
  if (counts_created(v) && !team &&
      !host_take_memory(v->host, (host_memory){op->alloc.bytes, op->alloc.bytes, op->alloc.bytes}, op->alloc.name))
    return;
  size_t at = created_place(v, op->alloc.id);
  FF_PUSH(&v->created, ((created_memory){0}));
  memmove(&v->created.items[at + 1], &v->created.items[at], (v->created.count - 1 - at) * sizeof *v->created.items);
  v->created.items[at] = (created_memory){.id = op->alloc.id, .bytes = op->alloc.bytes, .team = team};
}

/* Gives it back if nothing refers to it any more. */
static void created_settle(mappings *v, created_memory *m) {
  if (!m->released || m->mappings) return;
  if (counts_created(v) && !m->team) host_give_memory(v->host, (host_memory){m->bytes, m->bytes, m->bytes});
  v->created.count--;
  memmove(m, m + 1, (size_t)(v->created.items + v->created.count - m) * sizeof *m);
}

static void release(mappings *v, const trace_op *op) {
  host_spend(v->host, v->t->release);
  created_memory *m = v->host->failed ? NULL : created_find(v, op->free.id);
  if (!m) return;
  record_sample(v->observer, v->host->clock);
  m->released = true;
  created_settle(v, m);
}

/* ---- addresses ---- */

/* The first reservation that ends behind `address`. */
static size_t reserved_place(const mappings *v, uint64_t address) {
  size_t low = 0, high = v->reserved.count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (v->reserved.items[middle].address + v->reserved.items[middle].bytes > address) high = middle;
    else low = middle + 1;
  }
  return low;
}

static const reserved_range *reserved_find(const mappings *v, uint64_t address) {
  size_t at = reserved_place(v, address);
  return at < v->reserved.count && v->reserved.items[at].address <= address ? &v->reserved.items[at] : NULL;
}

static void reserve(mappings *v, const trace_op *op) {
  host_spend(v->host, v->t->reserve);
  uint64_t address = op->alloc.address, bytes = op->alloc.bytes;
  size_t at = reserved_place(v, address);
  bool overlaps = at < v->reserved.count && v->reserved.items[at].address < address + bytes;
  if (v->host->failed || !bytes || overlaps) return;
  FF_PUSH(&v->reserved, ((reserved_range){0}));
  memmove(&v->reserved.items[at + 1], &v->reserved.items[at], (v->reserved.count - 1 - at) * sizeof *v->reserved.items);
  v->reserved.items[at] = (reserved_range){address, bytes, op->alloc.id, counters_of_allocation(v->observer, op)};
}

static void unreserve(mappings *v, const trace_op *op) {
  host_spend(v->host, v->t->reserve);
  size_t at = reserved_place(v, op->map.address);
  if (v->host->failed || at == v->reserved.count || v->reserved.items[at].address != op->map.address) return;
  record_released(v->observer, v->reserved.items[at].owner, v->host->clock);
  v->reserved.count--;
  memmove(&v->reserved.items[at], &v->reserved.items[at + 1], (v->reserved.count - at) * sizeof *v->reserved.items);
}

/* ---- mappings ---- */

/* Memory of other devices: like the host's, it is reached over a link. */
static void map_foreign(mappings *v, const trace_op *op, owners_set team) {
  const reserved_range *range = v->host->failed ? NULL : reserved_find(v, op->map.address);
  if (!range) return;
  uint32_t index = pager_map(v->pager, op->map.address, op->map.bytes, TRACE_MEMORY_PINNED, range->owner);
  if (!index) return;
  if (team) v->pager->allocations.items[index].team = team;
  else v->pager->allocations.items[index].device = (uint8_t)(1 + v->host->op_device);
  if (!team) host_take_elsewhere(v->host, op->map.address, op->map.bytes, "(mapped memory)");
}

static owners_set team_of(const mappings *v, uint32_t id) {
  const created_memory *m = created_find(v, id);
  return m ? m->team : (owners_set)0;
}

static void map(mappings *v, const trace_op *op) {
  if (v->host->failed) return;
  record_sample(v->observer, v->host->clock);
  const reserved_range *range = reserved_find(v, op->map.address);
  created_memory *m = created_find(v, op->map.memory);
  trace_op made = {.kind = TRACE_OP_ALLOC,
                   .alloc = {.address = op->map.address,
                             .bytes = op->map.bytes,
                             .memory = TRACE_MEMORY_DEVICE,
                             .id = range ? range->id : 0,
                             .initialised = m && m->used,
                             .name = "(mapped memory)"}};
  host_memory memory = host_memory_for(v->host, made.alloc.address, made.alloc.bytes);
  if (!counts_created(v) && !host_take_memory(v->host, memory, made.alloc.name)) return;
  uint32_t index = pager_map(v->pager, made.alloc.address, made.alloc.bytes, hints_memory(v->hints, &made),
                             range ? range->owner : counters_of_allocation(v->observer, &made));
  if (!index && !counts_created(v)) host_give_memory(v->host, memory);
  if (!index) return;
  pager_allocation *a = &v->pager->allocations.items[index];
  address_map_allocated(v->map, a->address, a->bytes);
  a->mapping = true;
  a->memory = m ? m->id : NO_MEMORY;
  if (!made.alloc.initialised) pager_map_blank(v->pager, index);
  if (m) {
    m->mappings++;
    m->used = true;
  }
  hints_allocated(v->hints, &made);
}

/* Nothing that was cached of it may be found by what is mapped there next. Where pages move, they take that with
 * them. */
static void forget_cached(mappings *v, uint64_t address, uint64_t bytes) {
  if (manager_pages(v->manager)) return;
  tlb_forget_range(v->gmmu, address, bytes);
  uint64_t last = (address + bytes - 1) >> PAGER_CHUNK_SHIFT;
  for (uint64_t chunk = address >> PAGER_CHUNK_SHIFT; chunk <= last; chunk++)
    if (pager_chunk_made(v->pager, chunk)) l2_discard(v->memory, chunk << PAGER_CHUNK_SHIFT, FF_BLOCK_BYTES);
}

void mappings_show(mappings *v, uint64_t address, uint64_t bytes) {
  bool touched = v->observer->allocations.items[0]->counters.accesses; /* of no allocation's memory */
  if (!touched || !manager_pages(v->manager)) return;
  tlb_forget_range(v->gmmu, address, bytes);
  l2_discard(v->memory, address & ~(uint64_t)(TRACE_LINE_BYTES - 1), bytes + TRACE_LINE_BYTES);
}

static void drop_mapping(mappings *v, pager_allocation a) {
  forget_cached(v, a.address, a.bytes);
  if (!manager_pages(v->manager)) address_map_give(v->map, a.address, a.bytes);
  hints_released(v->hints, a.address);
  pager_unmap(v->pager, a.address);
  if (!counts_created(v)) host_give_memory(v->host, host_memory_for(v->host, a.address, a.bytes));
  created_memory *m = created_find(v, a.memory);
  if (!m) return;
  m->mappings--;
  created_settle(v, m);
}

/* The first mapping that lies in the range whole; 0: there is none. */
static uint32_t mapping_in(const mappings *v, uint64_t address, uint64_t end) {
  const pager *p = v->pager;
  for (size_t at = pager_first_behind(p, address); at < p->by_address.count; at++) {
    const pager_allocation *a = &p->allocations.items[p->by_address.items[at]];
    if (a->address >= end) return 0;
    if (a->mapping && a->address >= address && a->address + a->bytes <= end) return p->by_address.items[at];
  }
  return 0;
}

/* Other devices' memory in the range. */
static void unmap_foreign(mappings *v, const trace_op *op) {
  const pager *p = v->pager;
  for (size_t at = pager_first_behind(p, op->map.address); at < p->by_address.count;) {
    const pager_allocation *a = &p->allocations.items[p->by_address.items[at]];
    if (a->address - op->map.address >= op->map.bytes) break;
    bool foreign = a->kind == TRACE_MEMORY_PINNED && reserved_find(v, a->address);
    if (foreign && a->device) host_give_elsewhere(v->host, a->address, a->bytes);
    if (foreign) pager_unmap(v->pager, a->address);
    else at++;
  }
}

static void unmap(mappings *v, const trace_op *op) {
  if (manager_pages(v->manager)) host_wait_for_device(v->host);
  host_spend(v->host, v->t->unmap);
  if (v->host->failed) return;
  record_sample(v->observer, v->host->clock);
  for (uint32_t index; (index = mapping_in(v, op->map.address, op->map.address + op->map.bytes)) != 0;)
    drop_mapping(v, v->pager->allocations.items[index]);
  unmap_foreign(v, op);
}

/* A range may have mappings of several devices' memory: its unmapping is for all devices. */
void mapping_foreign(mappings *v, const trace_op *op) {
  switch (op->kind) {
  case TRACE_OP_CREATE:
    if (op->alloc.address) create(v, op);
    else host_spend(v->host, v->t->create);
    break;
  case TRACE_OP_RELEASE:
    if (team_of(v, op->free.id)) release(v, op);
    else host_spend(v->host, v->t->release);
    break;
  case TRACE_OP_MAP:
    host_spend(v->host, v->t->map);
    map_foreign(v, op, team_of(v, op->map.memory));
    break;
  default: mapping_process(v, op); break;
  }
}

static void check(const mappings *v) {
  uint32_t mapped = 0, counted = 0;
  for (size_t i = 0; i < v->created.count; i++) {
    FF_ASSERT(!i || v->created.items[i - 1].id < v->created.items[i].id);
    mapped += v->created.items[i].mappings;
  }
  for (size_t i = 1; i < v->reserved.count; i++)
    FF_ASSERT(v->reserved.items[i - 1].address + v->reserved.items[i - 1].bytes <= v->reserved.items[i].address);
  for (size_t i = 1; i < v->pager->allocations.count; i++) {
    const pager_allocation *a = &v->pager->allocations.items[i];
    if (!a->live || !a->mapping || a->memory == NO_MEMORY) continue;
    const created_memory *m = created_find(v, a->memory);
    FF_ASSERT(m && m->mappings);
    counted++;
  }
  FF_ASSERT(counted == mapped);
}

void mapping_process(mappings *v, const trace_op *op) {
  switch (op->kind) {
  case TRACE_OP_RESERVE: reserve(v, op); break;
  case TRACE_OP_UNRESERVE: unreserve(v, op); break;
  case TRACE_OP_CREATE: create(v, op); break;
  case TRACE_OP_RELEASE: release(v, op); break;
  case TRACE_OP_MAP:
    host_spend(v->host, v->t->map);
    if (team_of(v, op->map.memory)) map_foreign(v, op, team_of(v, op->map.memory));
    else map(v, op);
    break;
  case TRACE_OP_UNMAP: unmap(v, op); break;
  default: host_spend(v->host, v->t->set_access); break;
  }
  if (ff_check_level >= 2) check(v);
}

void mappings_free(mappings *v) {
  free(v->created.items);
  free(v->reserved.items);
}
