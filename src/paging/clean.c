/* SPDX-License-Identifier: Apache-2.0 */
/* Cleaning: dirty pages are copied to the CPU while the link there has nothing to do, and stay in GPU memory. Later
 * their eviction drops them, and the host reads them without a transfer.
 *
 * A piece is the first run of dirty pages in what the evictor proposes, within one group of 64 KiB. Its pages count as
 * clean from the moment the copy is decided, with the bytes that they hold then: a page that the GPU writes to
 * meanwhile is dirty again, and keeps its place. Until the copy has ended, memory that such a page leaves is not free
 * for others (the machine sees to that), and the host waits for it. */
#include "paging/pager.h"

bool pager_wants_clean(const pager *p) {
  return p->config.evict && p->config.evict->clean && p->config.hooks.cleaned && !p->config.copy_clean &&
         !p->config.ranges && p->resident;
}

static bool is_dirty(const pager_unit *unit) {
  return unit->state == PAGER_RESIDENT && !unit->fresh && !unit->cpu_newest;
}

void pager_clean_unit(pager *p, pager_unit *unit, bool for_host, uint64_t address) {
  FF_CHECK(unit->gpu_newest);
  unit->cpu_newest = true;
  unit->cleaned = true;
  (for_host ? pager_tier_put : pager_tier_arrive)(p, unit, address);
  p->cleaned += pager_bytes(p, unit);
  pager_moved(p, unit, false);
  p->config.hooks.cleaned(p->config.hooks.context, address, unit);
  pager_remark(p, address);
}

/* The first run of dirty units in the range. Returns its bytes. */
static uint64_t clean_range(pager *p, const pager_range *range, uint64_t *address) {
  uint64_t limit = p->config.unit_bytes > FF_GROUP_BYTES ? p->config.unit_bytes : FF_GROUP_BYTES, bytes = 0, end = 0;
  pager_held h = pager_held_begin(p, range->address, range->bytes);
  for (pager_unit *unit; (unit = pager_held_next(&h));) {
    if (bytes && (!is_dirty(unit) || h.address != end || h.address / limit != *address / limit)) break;
    if (!is_dirty(unit)) continue;
    if (!bytes) *address = h.address;
    pager_clean_unit(p, unit, false, h.address);
    bytes += pager_bytes(p, unit);
    end = h.address + pager_bytes(p, unit);
  }
  return bytes;
}

uint64_t pager_clean(pager *p, uint64_t *address) {
  FF_ASSERT(!p->cleaning.bytes);
  p->view.now = p->now;
  p->to_evict.count = 0;
  p->proposals = &p->to_evict;
  p->config.evict->clean(p->config.evict_state, &p->view);
  p->proposals = NULL;
  uint64_t bytes = 0;
  for (size_t i = 0; i < p->to_evict.count && !bytes; i++) bytes = clean_range(p, &p->to_evict.items[i], address);
  p->cleaning.address = *address;
  p->cleaning.bytes = bytes;
  p->cleaning.until = p->now;
  pager_check(p);
  return bytes;
}

void pager_clean_until(pager *p, uint64_t time) { p->cleaning.until = time; }

void pager_clean_end(pager *p) { p->cleaning.bytes = 0; }

uint64_t pager_cleaning(const pager *p, uint64_t address, uint64_t bytes) {
  if (!p->cleaning.bytes) return 0;
  uint64_t end = address + bytes < address ? UINT64_MAX : address + bytes;
  return address < p->cleaning.address + p->cleaning.bytes && p->cleaning.address < end ? p->cleaning.until : 0;
}
