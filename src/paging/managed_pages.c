/* SPDX-License-Identifier: Apache-2.0 */
/* Managed memory page by page, as its first implementation kept it (Wilt, "Managed Memory: Belated Comments on
 * Implementation", 2017): both sides have the same addresses, and a page is at any time
 *
 *                         pager_managed_unmap (a launch; dirty pages are copied to the GPU)
 *     the CPU's: mapped ------------------------------------------------------------------> the GPU's: its copy alone is valid
 *                       <------------------------------------------------------------------
 *                         pager_managed_fault (the CPU touches it; its bytes come back, written or not: the GPU has no
 *                         dirty bit)
 *
 * A mapped page's newest bytes are in host memory, any other's in GPU memory. A page is dirty if the CPU has written it
 * since it was mapped; what is dirty is in pager.dirty, which may also name pages that are so no longer. All of that is
 * asserted (is_mapped, pager_managed_check). */
#include <stdlib.h>

#include "paging/pager.h"

bool pager_managed_pages(const pager *p) { return p->config.manager->cpu_fault_bytes != 0; }

static bool is_managed(const pager *p, const pager_unit *unit) {
  return p->allocations.items[unit->allocation].kind == TRACE_MEMORY_MANAGED;
}

static bool is_mapped(const pager *p, const pager_unit *unit) {
  bool mapped = unit->mapped == p->unmappings;
  FF_CHECK(mapped ? unit->cpu_newest : unit->gpu_newest);
  return mapped;
}

static void moved(pager *p, const pager_unit *unit, bool in) {
  p->config.hooks.moved(p->config.hooks.context, p->allocations.items[unit->allocation].owner, in,
                        pager_bytes(p, unit));
}

/* ---- launches ---- */

static int by_number(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

static void add_page(pager *p, uint64_t address, uint64_t bytes) {
  pager_range *last = p->to_bring.count ? &p->to_bring.items[p->to_bring.count - 1] : NULL;
  if (last && last->address + last->bytes == address) last->bytes += bytes;
  else FF_PUSH(&p->to_bring, ((pager_range){address, bytes}));
}

bool pager_managed_unmap(pager *p) {
  bool touched = p->touched;
  if (ff_check_level >= 2) pager_managed_check(p);
  p->to_bring.count = 0;
  if (p->dirty.count) qsort(p->dirty.items, p->dirty.count, sizeof *p->dirty.items, by_number);
  for (size_t i = 0; i < p->dirty.count; i++) {
    pager_unit *unit = pager_find(p, p->dirty.items[i]);
    /* freed, or twice in the list */
    if (!is_managed(p, unit) || !is_mapped(p, unit) || unit->gpu_newest) continue;
    unit->gpu_newest = true;
    add_page(p, p->dirty.items[i] & ~(FF_PAGE_BYTES - 1), pager_bytes(p, unit));
    moved(p, unit, true);
  }
  p->dirty.count = 0;
  p->touched = false;
  p->unmappings = (p->unmappings + 1) & PAGER_INDEX_MAX;
  return touched;
}

/* ---- the CPU's accesses ---- */

static void map(pager *p, pager_unit *unit, pager_moves *moves) {
  unit->cpu_newest = unit->gpu_newest;
  unit->mapped = p->unmappings & PAGER_INDEX_MAX;
  moves->units++;
  moves->bytes += pager_bytes(p, unit);
  moved(p, unit, false);
}

pager_moves pager_managed_fault(pager *p, uint64_t address) {
  pager_moves moves = {0};
  pager_unit *unit = pager_find(p, address);
  p->touched = true;
  if (is_mapped(p, unit)) return moves;
  uint32_t allocation = unit->allocation;
  uint64_t bytes = p->config.manager->cpu_fault_bytes;
  pager_walk w = pager_walk_begin(p, address & ~(bytes - 1), bytes);
  while ((unit = pager_walk_next(&w)))
    if (unit->allocation == allocation && !is_mapped(p, unit)) map(p, unit, &moves);
  return moves;
}

static void write_unit(pager *p, pager_unit *unit, uint64_t address) {
  if (unit->gpu_newest) FF_PUSH(&p->dirty, address);
  pager_written(unit, PAGER_CPU);
}

void pager_managed_dirty(pager *p, uint64_t address, uint64_t bytes) {
  pager_walk w = pager_walk_begin(p, address, bytes);
  for (pager_unit *unit; (unit = pager_walk_next(&w));)
    if (is_managed(p, unit) && is_mapped(p, unit)) write_unit(p, unit, w.address);
}

/* ---- copies ---- */

static uint64_t copied_bytes(const pager_walk *w) { return (w->last < w->end ? w->last : w->end) - w->address; }

pager_moves pager_managed_read(pager *p, uint64_t address, uint64_t bytes) {
  pager_moves moves = {0};
  pager_walk w = pager_walk_begin(p, address, bytes);
  for (pager_unit *unit; (unit = pager_walk_next(&w));) {
    if (!is_managed(p, unit) || is_mapped(p, unit)) continue;
    moves.units++;
    moves.bytes += copied_bytes(&w);
  }
  return moves;
}

pager_moves pager_managed_write(pager *p, uint64_t address, uint64_t bytes) {
  pager_moves moves = {0};
  pager_walk w = pager_walk_begin(p, address, bytes);
  for (pager_unit *unit; (unit = pager_walk_next(&w));) {
    if (!is_managed(p, unit)) continue;
    if (is_mapped(p, unit)) {
      p->touched = true;
      write_unit(p, unit, w.address);
      continue;
    }
    pager_written(unit, PAGER_GPU);
    moves.units++;
    moves.bytes += copied_bytes(&w);
  }
  return moves;
}

/* ---- checks ---- */

static bool is_dirty(const pager *p, const pager_unit *unit) {
  return is_managed(p, unit) && is_mapped(p, unit) && !unit->gpu_newest;
}

static int by_place(const void *a, const void *b) {
  const pager_unit *const *x = a, *const *y = b;
  return (*x > *y) - (*x < *y);
}

/* As many units are dirty as pager.dirty names dirty ones. */
void pager_managed_check(pager *p) {
  FF_VEC(const pager_unit *) named = {0};
  size_t different = 0, dirty = 0;
  for (size_t i = 0; i < p->dirty.count; i++) {
    const pager_unit *unit = pager_find(p, p->dirty.items[i]);
    if (is_dirty(p, unit)) FF_PUSH(&named, unit);
  }
  if (named.count) qsort(named.items, named.count, sizeof *named.items, by_place);
  for (size_t i = 0; i < named.count; i++) different += !i || named.items[i] != named.items[i - 1];
  for (size_t i = 1; i < p->allocations.count; i++) {
    const pager_allocation *a = &p->allocations.items[i];
    if (!a->live || a->kind != TRACE_MEMORY_MANAGED) continue;
    pager_walk w = pager_walk_begin(p, a->address, a->bytes);
    for (const pager_unit *unit; (unit = pager_walk_next(&w));) dirty += unit->allocation == i && is_dirty(p, unit);
  }
  FF_ASSERT(different == dirty);
  free(named.items);
}
