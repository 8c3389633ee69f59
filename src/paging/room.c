/* SPDX-License-Identifier: Apache-2.0 */
/* Where the pager asks policies (farfault/policy.h): what to bring along with a far-fault, and what to evict when GPU
 * memory is full. A proposal is walked unit by unit; what is not in the right state, not mapped or does not fit is
 * skipped.
 *
 *     pager_make_room:  enough free? -> all that the evictor proposes, in order -> whatever the hand comes upon
 *     pager_prefetch:   prefetcher's proposals, in order; neighbours travel in one transfer
 *     pager_keep_free:  free < low? -> the same until free >= high, before anyone waits for it
 *
 * A unit that came for a far-fault is not evicted before the access that wanted it was made, unless nothing else is
 * left: otherwise a memory of a few pages could throw out what it has just waited for, for ever. */
#include <stdlib.h>
#include <string.h>

#include "paging/pager.h"

enum { MAX_PROPOSALS = 1 << 16, GROUP_PAGES = FF_GROUP_BYTES / FF_PAGE_BYTES, MAX_SKIPS = 64 };

/* ---- what policies see ---- */

static void set_pages(ff_pages *pages, uint32_t first, uint32_t last, bool on) {
  while (first < last) {
    uint32_t end = first / 64 * 64 + 64 < last ? first / 64 * 64 + 64 : last;
    uint64_t bits = UINT64_MAX >> (64 - (end - first)) << first % 64;
    if (on) pages->word[first / 64] |= bits;
    else pages->word[first / 64] &= ~bits;
    first = end;
  }
}

/* The pages of the chunk that the unit lies in. */
static void pages_of(const pager *p, const pager_chunk *chunk, uint64_t window, const pager_unit *unit, uint32_t *first,
                     uint32_t *last) {
  const pager_allocation *a = &p->allocations.items[unit->allocation];
  uint64_t base = chunk->number << PAGER_CHUNK_SHIFT, end = window + p->config.unit_bytes;
  uint64_t from = a->address > window ? a->address : window,
           to = a->address + a->bytes < end ? a->address + a->bytes : end;
  *first = (uint32_t)((from - base) / FF_PAGE_BYTES);
  *last = (uint32_t)((to - base + FF_PAGE_BYTES - 1) / FF_PAGE_BYTES);
}

/* A block of memory that is handed out whole gives nothing back while it must keep one of its pages: then it keeps
 * all. */
static bool block_stays(const pager *p, const pager_chunk *chunk) { return p->config.whole_blocks && chunk->moves; }

/* The chunk is listed in the pager's sets as its windows say. */
static void list_chunk(pager *p, pager_chunk *chunk) {
  for (int s = 0; s < PAGER_SETS; s++) {
    bool listed = chunk->counts[s] && (s == PAGER_HELD || !block_stays(p, chunk));
    if (listed == chunk->listed[s]) continue;
    chunk->listed[s] = listed;
    (listed ? ff_numbers_add : ff_numbers_remove)(&p->chunks[s], chunk->number);
  }
}

static bool any_page(const ff_pages *pages) {
  uint64_t any = 0;
  for (size_t w = 0; w < sizeof pages->word / sizeof *pages->word; w++) any |= pages->word[w];
  return any != 0;
}

/* What the host may want back is found without looking at every page. */
static void list_owed(pager *p, pager_chunk *chunk) {
  bool owed = any_page(&chunk->dirty) || any_page(&chunk->cleaned);
  if (owed == chunk->owed_listed) return;
  chunk->owed_listed = owed;
  (owed ? ff_numbers_add : ff_numbers_remove)(&p->owed, chunk->number);
}

/* The window's bits in the chunk's sets. (Of partial pages, a page counts as valid for policies as soon as any of it is
 * held.) Returns whether the chunk has come to have the first of a set, or has lost the last. */
static bool mark_sets(const pager *p, pager_chunk *chunk, uint64_t window) {
  uint32_t u = (uint32_t)((window - (chunk->number << PAGER_CHUNK_SHIFT)) >> p->unit_shift);
  const pager_unit *unit = &chunk->units[u];
  int sets = pager_sets_of(p, unit);
  while (unit->sibling) {
    unit = p->siblings[unit->sibling];
    int others = pager_sets_of(p, unit);
    if (others > sets) sets = others;
  }
  bool turned = false;
  for (int s = 0; s < PAGER_SETS; s++) {
    uint64_t bit = UINT64_C(1) << (u % 64), *word = &chunk->windows[u / 64].in[s];
    bool in = s < sets;
    if (((*word & bit) != 0) == in) continue;
    *word ^= bit;
    chunk->counts[s] += in ? 1 : UINT32_MAX;
    turned |= chunk->counts[s] == in;
  }
  return turned;
}

/* What is known of the latest use in the window's group follows what the window's units have become. */
static void mark_use(pager *p, pager_chunk *chunk, uint64_t window) {
  uint64_t offset = window - (chunk->number << PAGER_CHUNK_SHIFT);
  uint32_t group = (uint32_t)(offset / FF_GROUP_BYTES);
  for (const pager_unit *unit = &chunk->units[offset >> p->unit_shift];; unit = p->siblings[unit->sibling]) {
    if (unit->last_use && unit->last_use >= chunk->group_use[group]) {
      if (unit->state == PAGER_RESIDENT) chunk->group_use[group] = unit->last_use;
      else chunk->group_stale |= UINT32_C(1) << group;
    }
    if (!unit->sibling) break;
  }
}

/* A unit that is a page, and alone in it: one bit in each set. */
static void mark_page(pager_chunk *chunk, uint32_t page, const pager_unit *u) {
  ff_pages *sets[5] = {&chunk->mapped, &chunk->valid, &chunk->moving, &chunk->dirty, &chunk->cleaned};
  bool mapped = u->allocation && (u->state != PAGER_REMOTE || pager_may_come(u)),
       resident = mapped && u->state == PAGER_RESIDENT;
  bool flies = mapped && u->state == PAGER_IN_FLIGHT;
  bool on[5] = {mapped, resident || flies, flies || (resident && u->fresh), resident && !u->cpu_newest,
                resident && u->cleaned};
  for (int i = 0; i < 5; i++)
    sets[i]->word[page / 64] = (sets[i]->word[page / 64] & ~(UINT64_C(1) << page % 64)) | (uint64_t)on[i] << page % 64;
}

/* Adds what one unit is to the sets, which were cleared before: first all that are not absent, then those that are
 * (an absent unit makes its pages invalid, unless it is a part of a page). */
static void mark_unit(const pager *p, pager_chunk *chunk, uint64_t window, const pager_unit *u, bool absent) {
  if (!u->allocation || (u->state == PAGER_REMOTE && !pager_may_come(u)) || absent != pager_may_come(u)) return;
  uint32_t first, last;
  pages_of(p, chunk, window, u, &first, &last);
  set_pages(&chunk->mapped, first, last, true);
  if (!absent || p->config.unit_bytes >= FF_PAGE_BYTES) set_pages(&chunk->valid, first, last, !absent);
  if (u->state == PAGER_IN_FLIGHT || (u->state == PAGER_RESIDENT && u->fresh))
    set_pages(&chunk->moving, first, last, true);
  if (u->state == PAGER_RESIDENT && !u->cpu_newest) set_pages(&chunk->dirty, first, last, true);
}

/* The place of all of the window at the offset: PAGER_RESIDENT, or PAGER_REMOTE; PAGER_ABSENT: of neither is it all. */
static pager_state place_of(const pager *p, const pager_chunk *chunk, uint64_t offset) {
  const pager_unit *unit = &chunk->units[offset >> p->unit_shift];
  pager_state place = unit->state;
  for (; unit->sibling && place == unit->state; unit = p->siblings[unit->sibling]) {}
  return place == unit->state && (place == PAGER_RESIDENT || place == PAGER_REMOTE) ? place : PAGER_ABSENT;
}

/* Does one page map the group: is all of it in GPU memory, or all of it where the GPU reaches it over the link? */
static bool group_is_whole(const pager *p, const pager_chunk *chunk, uint32_t group) {
  uint64_t mapped = chunk->mapped.word[group / 4] >> group % 4 * 16 & 0xffff,
           valid = chunk->valid.word[group / 4] >> group % 4 * 16 & 0xffff;
  if (mapped != 0xffff || (valid && valid != 0xffff)) return false;
  uint64_t begin = group * FF_GROUP_BYTES;
  pager_state place = place_of(p, chunk, begin); /* what is valid may be on its way still */
  bool whole = place != PAGER_ABSENT;
  uint64_t step = p->config.unit_bytes < FF_GROUP_BYTES ? p->config.unit_bytes : FF_GROUP_BYTES;
  /* from the end: what comes in order of address is not whole before its last unit has come */
  for (uint64_t at = begin + FF_GROUP_BYTES - step; whole && at > begin; at -= step)
    whole = place_of(p, chunk, at) == place;
  return whole;
}

/* Does one page map the block, of which one maps each group? */
static bool block_is_whole(const pager *p, const pager_chunk *chunk) {
  bool whole = chunk->whole_groups == UINT32_MAX && p->config.largest_leaf >= FF_BLOCK_BYTES;
  pager_state place = whole ? place_of(p, chunk, 0) : PAGER_ABSENT;
  for (uint64_t at = FF_GROUP_BYTES; whole && at < FF_BLOCK_BYTES; at += FF_GROUP_BYTES)
    whole = place_of(p, chunk, at) == place;
  return whole;
}

static void remap(pager *p, uint64_t address, uint64_t bytes, bool whole) {
  if (bytes > p->config.least_leaf) p->config.hooks.remapped(p->config.hooks.context, address, bytes, whole);
}

/* Groups from `first` to `last` have changed: the pages that map them follow. What is split is said before what
 * grows. */
static void mark_leaves(pager *p, pager_chunk *chunk, uint32_t first, uint32_t last) {
  uint64_t base = chunk->number << PAGER_CHUNK_SHIFT;
  uint32_t before = chunk->whole_groups;
  for (uint32_t g = first; g <= last; g++) {
    if (group_is_whole(p, chunk, g)) chunk->whole_groups |= UINT32_C(1) << g;
    else chunk->whole_groups &= ~(UINT32_C(1) << g);
  }
  bool block = block_is_whole(p, chunk);
  if (chunk->whole_block && !block) remap(p, base, FF_BLOCK_BYTES, false);
  for (uint32_t g = first; g <= last; g++)
    if ((before ^ chunk->whole_groups) >> g & 1)
      remap(p, base + g * FF_GROUP_BYTES, FF_GROUP_BYTES, chunk->whole_groups >> g & 1);
  if (!chunk->whole_block && block) remap(p, base, FF_BLOCK_BYTES, true);
  chunk->whole_block = block;
}

/* The pages that this window of units makes up, or the page that it is a part of. */
static void mark_pages(pager *p, pager_chunk *chunk, uint64_t window) {
  uint64_t base = chunk->number << PAGER_CHUNK_SHIFT, page = window & ~(FF_PAGE_BYTES - 1);
  uint64_t end = page + (p->config.unit_bytes > FF_PAGE_BYTES ? p->config.unit_bytes : FF_PAGE_BYTES);
  uint32_t from = (uint32_t)((page - base) / FF_PAGE_BYTES), to = (uint32_t)((end - base) / FF_PAGE_BYTES);
  const pager_unit *only = &chunk->units[(page - base) >> p->unit_shift];
  if (p->config.unit_bytes == FF_PAGE_BYTES && !only->sibling) {
    mark_page(chunk, from, only);
    return;
  }
  set_pages(&chunk->mapped, from, to, false);
  set_pages(&chunk->valid, from, to, false);
  set_pages(&chunk->moving, from, to, false);
  set_pages(&chunk->dirty, from, to, false);
  set_pages(&chunk->cleaned, from, to, false);
  for (int absent = 0; absent < 2; absent++)
    for (uint64_t at = page; at < end; at += p->config.unit_bytes)
      for (const pager_unit *u = &chunk->units[(at - base) >> p->unit_shift];; u = p->siblings[u->sibling]) {
        mark_unit(p, chunk, at, u, absent);
        if (!u->sibling) break;
      }
}

void pager_mark_windows(pager *p, pager_chunk *chunk, uint64_t first, uint64_t end) {
  if (chunk == p->zero_chunk) return;
  uint32_t word = (uint32_t)(first % FF_BLOCK_BYTES / FF_PAGE_BYTES / 64);
  bool turned = false, within = (end - 1) % FF_BLOCK_BYTES / FF_PAGE_BYTES / 64 == word;
  uint64_t moving = chunk->moving.word[word], owed = chunk->dirty.word[word] | chunk->cleaned.word[word];
  for (uint64_t window = first; window < end; window += p->config.unit_bytes) {
    turned |= mark_sets(p, chunk, window);
    mark_use(p, chunk, window);
    mark_pages(p, chunk, window);
  }
  uint64_t base = chunk->number << PAGER_CHUNK_SHIFT;
  if (p->config.largest_leaf)
    mark_leaves(p, chunk, (uint32_t)((first - base) / FF_GROUP_BYTES), (uint32_t)((end - 1 - base) / FF_GROUP_BYTES));
  if (!within || moving != chunk->moving.word[word] || owed != (chunk->dirty.word[word] | chunk->cleaned.word[word])) {
    chunk->moves = any_page(&chunk->moving);
    list_owed(p, chunk);
    turned |= p->config.whole_blocks;
  }
  if (turned) list_chunk(p, chunk);
}

void pager_mark_window(pager *p, pager_chunk *chunk, uint64_t window) {
  pager_mark_windows(p, chunk, window, window + p->config.unit_bytes);
}

/* ---- what policies are told ---- */

static void view_update(pager *p) {
  p->view.now = p->now;
  p->view.running_first = p->position;
  p->view.running_last = p->position_last;
}

/* Where memory is handed out in whole blocks, a block leaves as one: when its last unit does. */
void pager_tell(pager *p, uint64_t address, bool arrived) {
  const ff_policy *policies[] = {p->config.prefetch, p->config.evict};
  void *states[] = {p->config.prefetch_state, p->config.evict_state};
  uint64_t bytes = p->config.unit_bytes;
  if (!arrived && p->config.whole_blocks) {
    if (pager_chunk_at(p, address)->holding) return;
    bytes = FF_BLOCK_BYTES;
  }
  view_update(p);
  for (int i = 0; i < 2; i++) {
    if (!policies[i] || (i == 1 && p->config.evict_shares)) continue;
    if (arrived && policies[i]->arrived) policies[i]->arrived(states[i], &p->view, address & ~(bytes - 1), bytes);
    if (!arrived && policies[i]->left) policies[i]->left(states[i], &p->view, address & ~(bytes - 1), bytes);
  }
}

static void tell_settled(pager *p, uint64_t address, uint64_t bytes) {
  const ff_policy *policies[] = {p->config.prefetch, p->config.evict};
  void *states[] = {p->config.prefetch_state, p->config.evict_state};
  view_update(p);
  for (int i = 0; i < 2; i++)
    if (policies[i] && policies[i]->settled && !(i == 1 && p->config.evict_shares))
      policies[i]->settled(states[i], &p->view, address, bytes);
}

void pager_tell_settled(pager *p, pager_chunk *chunk, const ff_pages *before) {
  bool listens = (p->config.prefetch && p->config.prefetch->settled) || (p->config.evict && p->config.evict->settled);
  if (!listens || !any_page(before)) return;
  uint64_t base = chunk->number << PAGER_CHUNK_SHIFT;
  if (p->config.whole_blocks) {
    if (!block_stays(p, chunk) && chunk->holding) tell_settled(p, base, FF_BLOCK_BYTES);
    return;
  }
  for (uint32_t w = 0; w < FF_BLOCK_PAGES / 64; w++)
    for (uint64_t settled = before->word[w] & ~chunk->moving.word[w] & chunk->valid.word[w]; settled;) {
      uint32_t first = (uint32_t)__builtin_ctzll(settled);
      uint64_t behind = settled + (UINT64_C(1) << first); /* the bit behind the run; 0: it ends with the word */
      uint32_t end = behind & ~settled ? (uint32_t)__builtin_ctzll(behind & ~settled) : 64;
      tell_settled(p, base + (w * 64 + first) * FF_PAGE_BYTES, (end - first) * FF_PAGE_BYTES);
      settled &= end == 64 ? 0 : UINT64_MAX << end;
    }
}

void pager_remark(pager *p, uint64_t address) {
  pager_chunk *chunk = pager_chunk_at(p, address);
  ff_pages before = chunk->moving;
  pager_mark_window(p, chunk, address & ~(p->config.unit_bytes - 1));
  pager_tell_settled(p, chunk, &before);
}

/* What arrives is told as that; a block that is handed out whole may also have settled with it, or with what left. */
void pager_mark(pager *p, uint64_t address, const pager_unit *unit) {
  pager_chunk *chunk = pager_chunk_at(p, address);
  bool stayed = block_stays(p, chunk);
  pager_mark_window(p, chunk, address & ~(p->config.unit_bytes - 1));
  if (unit->state != PAGER_IN_FLIGHT) pager_tell(p, address, unit->state == PAGER_RESIDENT);
  if (stayed && !block_stays(p, chunk) && chunk->holding)
    tell_settled(p, address & ~(FF_BLOCK_BYTES - 1), FF_BLOCK_BYTES);
}

static pager *pager_of(const ff_view *view) { return (pager *)((char *)(uintptr_t)view - offsetof(pager, view)); }

static uint64_t view_free(const ff_view *view) { return pager_of(view)->free; }

/* Of a piece of the page table that was never looked up and that one allocation fills, all units are as they begin:
 * *unit. It is not made only to be shown to a policy, which may look at all of memory. false: it was, or several
 * allocations share it. */
static bool never_touched(const pager *p, uint64_t block, pager_unit *unit) {
  if (pager_chunk_made(p, block >> PAGER_CHUNK_SHIFT)) return false;
  size_t at = pager_first_behind(p, block);
  if (at == p->by_address.count) return false;
  uint32_t index = p->by_address.items[at];
  const pager_allocation *a = &p->allocations.items[index];
  if (a->address > block || a->address + a->bytes - block < FF_BLOCK_BYTES) return false;
  *unit = pager_unit_fresh(p, index, block);
  return true;
}

static void view_block(const ff_view *view, uint64_t address, ff_block *block) {
  pager_unit unit;
  if (never_touched(pager_of(view), address & ~(FF_BLOCK_BYTES - 1), &unit)) {
    *block = (ff_block){.address = address & ~(FF_BLOCK_BYTES - 1)};
    if (unit.state != PAGER_REMOTE || pager_may_come(&unit)) set_pages(&block->mapped, 0, FF_BLOCK_PAGES, true);
    if (unit.state == PAGER_RESIDENT) set_pages(&block->valid, 0, FF_BLOCK_PAGES, true);
    return;
  }
  const pager_chunk *chunk = pager_chunk_at(pager_of(view), address); /* of `zero_chunk` all sets are empty */
  *block = (ff_block){.address = address & ~(FF_BLOCK_BYTES - 1),
                      .mapped = chunk->mapped,
                      .valid = chunk->valid,
                      .moving = block_stays(pager_of(view), chunk) ? chunk->valid : chunk->moving,
                      .dirty = chunk->dirty};
}

static uint64_t view_blank_bytes(const ff_view *view, uint64_t address, uint64_t bytes) {
  pager *p = pager_of(view);
  uint64_t blank = 0;
  pager_unit fresh;
  if (bytes == FF_BLOCK_BYTES && !(address % FF_BLOCK_BYTES) && never_touched(p, address, &fresh))
    return pager_may_come(&fresh) && pager_blank(p, &fresh) ? FF_BLOCK_BYTES : 0;
  pager_walk w = pager_walk_begin(p, address, bytes);
  for (const pager_unit *unit; (unit = pager_walk_next(&w));)
    if (pager_may_come(unit) && pager_blank(p, unit)) blank += pager_bytes(p, unit);
  return blank;
}

static bool moves(const pager_allocation *a) {
  return a->kind == TRACE_MEMORY_DEVICE || a->kind == TRACE_MEMORY_MANAGED;
}

static bool view_next_allocation(const ff_view *view, uint64_t address, ff_allocation *allocation) {
  const pager *p = pager_of(view);
  for (size_t at = pager_first_behind(p, address); at < p->by_address.count; at++) {
    uint32_t index = p->by_address.items[at];
    const pager_allocation *a = &p->allocations.items[index];
    if (a->address < address || !moves(a)) continue;
    *allocation = (ff_allocation){.address = a->address, .bytes = a->bytes, .number = index};
    return true;
  }
  return false;
}

static bool view_allocation(const ff_view *view, uint64_t address, ff_allocation *allocation) {
  const pager *p = pager_of(view);
  size_t at = pager_first_behind(p, address);
  if (at == p->by_address.count) return false;
  uint32_t index = p->by_address.items[at];
  const pager_allocation *a = &p->allocations.items[index];
  if (a->address > address || !moves(a)) return false;
  *allocation = (ff_allocation){.address = a->address, .bytes = a->bytes, .number = index};
  return true;
}

uint64_t pager_latest_use(pager *p, uint64_t address, uint64_t bytes) {
  uint64_t latest = 0;
  pager_held h = pager_held_begin(p, address, bytes);
  for (const pager_unit *unit; (unit = pager_held_next(&h));)
    if (unit->state == PAGER_RESIDENT && unit->last_use > latest) latest = unit->last_use;
  return latest;
}

uint64_t pager_group_use(pager *p, pager_chunk *chunk, uint32_t group) {
  if (chunk->group_stale >> group & 1) {
    chunk->group_use[group] =
        pager_latest_use(p, (chunk->number << PAGER_CHUNK_SHIFT) + group * FF_GROUP_BYTES, FF_GROUP_BYTES);
    chunk->group_stale &= ~(UINT32_C(1) << group);
  }
  return chunk->group_use[group];
}

/* Whole groups of a block are answered from what is kept of them. */
static uint64_t view_last_use(const ff_view *view, uint64_t address, uint64_t bytes) {
  pager *p = pager_of(view);
  uint64_t offset = address % FF_BLOCK_BYTES, latest = 0;
  bool groups = (address | bytes) % FF_GROUP_BYTES == 0 && bytes <= FF_BLOCK_BYTES - offset &&
                p->config.unit_bytes <= FF_GROUP_BYTES;
  if (!groups) return pager_latest_use(p, address, bytes);
  pager_chunk *chunk = pager_chunk_at(p, address);
  if (!chunk->counts[PAGER_HELD]) return 0;
  for (uint32_t g = (uint32_t)(offset / FF_GROUP_BYTES); g < (offset + bytes) / FF_GROUP_BYTES; g++) {
    uint64_t use = pager_group_use(p, chunk, g);
    if (use > latest) latest = use;
  }
  return latest;
}

static uint64_t view_next_use(const ff_view *view, uint64_t address, uint64_t bytes) {
  const pager *p = pager_of(view);
  if (!p->config.future) return FF_NEVER;
  uint64_t next = trace_future_next_use(p->config.future, address, bytes, p->position);
  return next <= p->position_last ? p->position : next; /* blocks that run together have no order among them */
}

static uint64_t view_next_position(const ff_view *view, uint64_t address, uint64_t bytes) {
  const pager *p = pager_of(view);
  return p->config.future ? trace_future_next_use(p->config.future, address, bytes, p->position) : FF_NEVER;
}

static uint64_t view_first_touch(const ff_view *view, uint64_t index) {
  const pager *p = pager_of(view);
  return p->config.future ? trace_future_first_touch(p->config.future, index) : FF_NEVER;
}

static uint64_t view_random(ff_view *view) { /* splitmix64 */
  uint64_t x = pager_of(view)->random += UINT64_C(0x9e3779b97f4a7c15);
  x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
  return x ^ x >> 31;
}

static void view_propose(ff_view *view, uint64_t address, uint64_t bytes) {
  pager_proposals *proposals = pager_of(view)->proposals;
  if (!proposals || !bytes || proposals->count == MAX_PROPOSALS) return;
  if (bytes > UINT64_MAX - address) bytes = UINT64_MAX - address;
  FF_PUSH(proposals, ((pager_range){address, bytes}));
}

void pager_view_init(pager *p) {
  p->view = (ff_view){.unit_bytes = p->config.unit_bytes,
                      .capacity = p->config.memory_bytes,
                      .free_bytes = view_free,
                      .block = view_block,
                      .allocation = view_allocation,
                      .next_allocation = view_next_allocation,
                      .last_use = view_last_use,
                      .next_use = view_next_use,
                      .first_touch = view_first_touch,
                      .random = view_random,
                      .propose = view_propose,
                      .next_position = view_next_position,
                      .blank_bytes = view_blank_bytes};
}

/* ---- memory ---- */

uint64_t pager_room_wanted(pager *p, uint64_t address, const pager_unit *unit) {
  if (!p->config.whole_blocks) return pager_bytes(p, unit);
  return pager_chunk_at(p, address)->holding ? 0 : FF_BLOCK_BYTES;
}

void pager_room_take(pager *p, uint64_t address, const pager_unit *unit) {
  uint64_t bytes = pager_room_wanted(p, address, unit);
  FF_ASSERT(p->free >= bytes);
  p->free -= bytes;
  pager_chunk *chunk = pager_chunk_at(p, address);
  if (p->config.whole_blocks && !chunk->holding) p->held_blocks++;
  chunk->holding++;
  if (p->memory - p->free > p->resident_peak) p->resident_peak = p->memory - p->free;
}

void pager_room_give(pager *p, uint64_t address, const pager_unit *unit) {
  pager_chunk *chunk = pager_chunk_at(p, address);
  FF_ASSERT(chunk->holding);
  chunk->holding--;
  if (!p->config.whole_blocks) {
    p->free += pager_bytes(p, unit);
  } else if (!chunk->holding) {
    p->free += FF_BLOCK_BYTES;
    p->held_blocks--;
  }
}

uint64_t pager_room_ready(pager *p) {
  uint64_t at = p->room_at;
  p->room_at = 0;
  return at;
}

/* ---- eviction ---- */

static void evict(pager *p, const fault_request *request, pager_unit *unit, uint64_t address) {
  bool dirty = !unit->cpu_newest, write_back = dirty || (p->config.copy_clean && !unit->duplicate);
  FF_CHECK(!dirty || unit->gpu_newest);
  if (write_back) pager_tier_arrive(p, unit, address);
  uint64_t free_at = p->config.hooks.evicted(p->config.hooks.context, request, address, unit, write_back);
  if (p->room_at < free_at) p->room_at = free_at;
  unit->cpu_newest = true;
  unit->state = pager_away(unit);
  unit->duplicate = unit->cleaned = false;
  unit->populated |= write_back;
  unit->evicted = true;
  p->resident -= pager_bytes(p, unit);
  pager_room_give(p, address, unit);
  if (write_back) {
    p->moved_out += pager_bytes(p, unit);
    p->config.hooks.moved(p->config.hooks.context, p->allocations.items[unit->allocation].owner, false,
                          pager_bytes(p, unit));
  } else {
    p->dropped += pager_bytes(p, unit);
  }
  pager_note(p, unit, address, OWNERS_GIVES, 0);
  p->config.hooks.left(p->config.hooks.context, address, unit);
  pager_mark(p, address, unit);
}

static pager_set may_go(bool used_too) { return used_too ? PAGER_LOOSE : PAGER_SPARE; }

static void evict_range(pager *p, const fault_request *request, uint64_t address, uint64_t bytes, bool used_too) {
  pager_held h = pager_set_begin(p, may_go(used_too), address, bytes);
  for (pager_unit *unit; (unit = pager_held_next(&h));) evict(p, request, unit, h.address);
}

/* Of one window, in order of address: several small allocations may share it. */
static void sweep_window(pager *p, const fault_request *request, uint64_t window, uint64_t bytes, pager_set set) {
  p->hand_address = window + p->config.unit_bytes;
  for (size_t at = pager_first_behind(p, window); p->free < bytes && at < p->by_address.count; at++) {
    const pager_allocation *a = &p->allocations.items[p->by_address.items[at]];
    uint64_t address = a->address > window ? a->address : window;
    if (address - window >= p->config.unit_bytes) break;
    pager_unit *unit = pager_find(p, address);
    if (unit->state == PAGER_RESIDENT && pager_in_set(p, unit, set)) evict(p, request, unit, address);
  }
}

/* Of the chunk's windows the last one in [first, end) that holds anything, plus 1; 0: there is none. */
static uint32_t last_held(const pager_chunk *chunk, uint32_t first, uint32_t end) {
  while (first < end) {
    uint64_t word = chunk->windows[(end - 1) / 64].in[PAGER_HELD] & UINT64_MAX >> (63 - (end - 1) % 64);
    uint32_t found = word ? (end - 1) / 64 * 64 + 64 - (uint32_t)__builtin_clzll(word) : 0;
    if (word) return found > first ? found : 0;
    end = (end - 1) / 64 * 64;
  }
  return 0;
}

/* The address behind the last window in [begin, end), whole windows, that holds anything; of a block that goes whole or
 * not at all its first window counts. 0: there is none. */
static uint64_t behind_last_held(pager *p, uint64_t begin, uint64_t end) {
  uint64_t number;
  if (begin >= end || !ff_numbers_previous(&p->chunks[PAGER_HELD], (end - 1) >> PAGER_CHUNK_SHIFT, &number)) return 0;
  const pager_chunk *chunk = pager_chunk_at(p, number << PAGER_CHUNK_SHIFT);
  uint64_t base = number << PAGER_CHUNK_SHIFT;
  uint32_t windows = 1u << (PAGER_CHUNK_SHIFT - p->unit_shift),
           first = begin > base ? (uint32_t)((begin - base) >> p->unit_shift) : 0;
  if (end - base < FF_BLOCK_BYTES) windows = (uint32_t)((end - base) >> p->unit_shift);
  uint32_t found = first < windows ? last_held(chunk, first, windows) : 0;
  if (found && p->config.whole_blocks) found = pager_chunk_next(p, chunk, first, true) + 1;
  if (found) return base + ((uint64_t)found << p->unit_shift);
  return base > begin ? behind_last_held(p, begin, base) : 0;
}

/* A search that finds too little ends where all that holds anything has been passed once. */
static void hand_passes_all(pager *p, uint64_t hand, bool turned) {
  uint64_t behind = behind_last_held(p, 0, hand);
  if (!behind && !turned) behind = behind_last_held(p, hand, UINT64_MAX);
  if (behind && (!turned || behind > p->hand_address)) p->hand_address = behind;
}

/* Goes round all that is in the set, from where the last search ended. */
static void evict_by_hand(pager *p, const fault_request *request, uint64_t bytes, pager_set set) {
  uint64_t hand = p->hand_address;
  bool turned = false;                      /* something was found before the hand */
  for (int round = 0; round < 2; round++) { /* from the hand to the end, then from the beginning to it */
    pager_held h = pager_set_begin(p, set, round ? 0 : hand, round ? hand : UINT64_MAX);
    while (p->free < bytes && pager_held_next(&h)) {
      uint64_t window = h.address & ~(p->config.unit_bytes - 1), next = window + p->config.unit_bytes;
      h = pager_set_begin(p, set, next, next ? h.end - next : 0); /* 0: it was the topmost window of all */
      sweep_window(p, request, window, bytes, set);
      turned = round == 1;
    }
  }
  if (p->free < bytes) hand_passes_all(p, hand, turned);
}

/* Of whole blocks it is asked for one at a time: how much its pages make says nothing about the memory they hold. */
static void ask_evictor(pager *p, const fault_request *request, uint64_t bytes, bool used_too) {
  const ff_policy *policy = p->config.evict;
  if (!policy || !policy->evict) return;
  view_update(p);
  p->to_evict.count = 0;
  p->proposals = &p->to_evict;
  policy->evict(p->config.evict_state, &p->view, p->config.whole_blocks ? 1 : bytes);
  p->proposals = NULL;
  for (size_t i = 0; i < p->to_evict.count; i++)
    evict_range(p, request, p->to_evict.items[i].address, p->to_evict.items[i].bytes, used_too);
}

static void make_room_of(pager *p, const fault_request *request, uint64_t bytes, bool used_too) {
  for (uint64_t before = UINT64_MAX; p->free < bytes && p->resident < before;) { /* as long as it helps */
    before = p->resident;
    ask_evictor(p, request, bytes - p->free, used_too);
  }
  if (p->free < bytes) evict_by_hand(p, request, bytes, may_go(used_too));
}

bool pager_make_room(pager *p, const fault_request *request, uint64_t bytes) {
  if (p->free >= bytes) return true;
  if (!p->resident) return false;
  if (p->used_allocations && !p->no_unused && !p->config.manager->reaches) { /* first what no launch has declared */
    make_room_of(p, request, bytes, false);
    p->no_unused = p->free < bytes;
  }
  if (p->free < bytes && !p->spare_used) make_room_of(p, request, bytes, true);
  /* While something is on its way a landing comes, and what has come will have been used. */
  if (p->free < bytes && !p->spare_used && !p->in_flight) evict_by_hand(p, request, bytes, PAGER_HELD);
  pager_check(p);
  return p->free >= bytes;
}

/* ---- segments ---- */

/* What of it can go is spare no longer, or again. */
static void mark_declared(pager *p, const pager_allocation *a) {
  pager_held h = pager_held_begin(p, a->address, a->bytes);
  while (pager_held_next(&h)) {
    pager_chunk *chunk = h.chunk;
    if (mark_sets(p, chunk, h.address & ~(p->config.unit_bytes - 1))) list_chunk(p, chunk);
  }
}

void pager_declare(pager *p, uint32_t allocation, bool declared) {
  pager_allocation *a = &p->allocations.items[allocation];
  FF_ASSERT(a->live && (declared || a->users));
  if (declared) {
    p->used_allocations += !a->users++;
    if (a->users == 1) mark_declared(p, a);
  } else {
    p->used_allocations -= !--a->users;
    p->no_unused = false;
    if (!a->users) mark_declared(p, a);
  }
}

uint64_t pager_request(pager *p, const fault_request *request, uint64_t address, uint64_t bytes) {
  uint64_t before = p->in_flight;
  p->to_bring.count = 0;
  FF_PUSH(&p->to_bring, ((pager_range){address, bytes}));
  p->spare_used = true;
  pager_bring(p, request, true);
  p->spare_used = false;
  return p->in_flight - before;
}

/* ---- watermarks ---- */

static uint64_t watermark(const pager *p, uint64_t bytes, double share) {
  if (share > 0) bytes = (uint64_t)(share * (double)p->memory);
  if (bytes > p->memory / 2) bytes = p->memory / 2;
  return bytes & ~(FF_PAGE_BYTES - 1);
}

void pager_watermarks_set(pager *p) {
  const watermarks *w = &p->config.watermarks;
  p->low = watermark(p, w->low, w->low_share);
  p->high = watermark(p, w->high, w->high_share);
  if (p->high < p->low) p->high = p->low;
}

void pager_keep_free(pager *p, const fault_request *request) {
  if (p->free >= p->low || p->mapped <= p->memory || !p->resident) return;
  p->ahead = true;
  make_room_of(p, request, p->high, !p->used_allocations); /* what a launch has declared stays */
  p->ahead = false;
  pager_check(p);
}

/* ---- prefetch ---- */

static uint32_t *reached_of(pager_chunk *chunk, uint64_t address) {
  return &chunk->reached[address % FF_BLOCK_BYTES / FF_GROUP_BYTES];
}

/* A run of neighbouring units that travel together. */
typedef struct run {
  uint64_t address, end;
  pager_unit *first;
  uint32_t flight;
} run;

static void run_start(pager *p, const fault_request *request, run *r) {
  if (!r->flight) return;
  pager_tier_flight(p, r->flight, r->address, r->end - r->address);
  uint64_t lands = p->config.hooks.fetch(p->config.hooks.context, request, r->address, r->end - r->address, r->flight,
                                         r->first, pager_room_ready(p));
  pager_flight_set(p, r->flight, r->address, r->end - r->address, lands);
  const pager_hooks *hooks = &p->config.hooks;
  bool later = hooks->departs && hooks->departs(hooks->context, request, r->end - r->address, r->flight, lands);
  if (manager_departs(p->config.manager) && !later) pager_depart(p, r->flight);
  if (p->serving && !p->spare_used) FF_PUSH(&p->batch_flights, r->flight);
  *r = (run){0};
}

static void bring_range(pager *p, const fault_request *request, uint64_t address, uint64_t bytes, bool may_evict,
                        run *r) {
  pager_walk w = pager_walk_begin(p, address, bytes);
  for (pager_unit *unit; (unit = pager_walk_next(&w));) {
    /* a throttled request brings it by itself */
    if (!(p->counting ? pager_counted(unit) : pager_may_come(unit)) ||
        (unit->nacks && !p->serving && !p->config.ranges))
      continue;
    if (pager_stays(unit) || (!unit->nacks && pager_thrashes(p, pager_chunk_at(p, w.address), w.address))) continue;
    bool blank = pager_blank(p, unit) && !unit->nacks, zeroes = p->config.zeroes && pager_blank(p, unit);
    if (p->blank_only && !blank) continue;
    if (p->idles && blank && p->config.manager->reaches && !p->allocations.items[unit->allocation].users) {
      p->blank_skipped = true; /* the host may write it before any launch does */
      continue;
    }
    uint64_t wanted = pager_room_wanted(p, w.address, unit);
    if (p->free < wanted && !(may_evict && pager_make_room(p, request, wanted))) return;
    if (blank && (p->spare_used || p->config.manager->reaches || (zeroes && p->idles))) {
      pager_unit_appears(p, unit, w.address);
      continue;
    }
    uint64_t begin = w.first & ~(p->grain - 1);
    uint8_t source = zeroes ? 0 : pager_source(p, unit, w.address);
    bool joins = r->flight && source == r->first->source && zeroes == (r->first->flight_kind == PAGER_FLIGHT_ZEROED) &&
                 begin <= r->end && begin >= r->address &&
                 begin >> PAGER_CHUNK_SHIFT == r->address >> PAGER_CHUNK_SHIFT &&
                 /* what is reached meanwhile waits for its group only */
                 !(p->config.manager->reaches && begin % FF_GROUP_BYTES == 0);
    if (!joins) {
      run_start(p, request, r);
      *r = (run){.address = begin, .first = unit, .flight = pager_flight_take(p)};
    }
    r->end = (w.last + p->grain - 1) & ~(p->grain - 1);
    unit->departs = unit->state == PAGER_REMOTE;
    if (unit->starved) pager_starved_drop(p, unit); /* a gap that closes holds one whose far-fault waits for room */
    unit->state = PAGER_IN_FLIGHT;
    unit->flight = r->flight & PAGER_INDEX_MAX;
    unit->source = source & 31u;
    unit->flight_kind = unit->hints & PAGER_READ_MOSTLY ? PAGER_FLIGHT_COPIED : PAGER_FLIGHT_MOVED;
    if (zeroes) unit->flight_kind = PAGER_FLIGHT_ZEROED;
    unit->prefetched = !unit->nacks;
    if (p->serving && unit->flight_kind == PAGER_FLIGHT_MOVED) pager_thrash_event(p, w.address, PAGER_GPU, p->now);
    pager_room_take(p, w.address, unit);
    p->in_flight += pager_bytes(p, unit);
    *reached_of(pager_chunk_at(p, w.address), w.address) = 0;
    pager_mark(p, w.address, unit);
  }
}

void pager_bring(pager *p, const fault_request *request, bool may_evict) {
  run r = {0};
  for (size_t i = 0; i < p->to_bring.count; i++)
    bring_range(p, request, p->to_bring.items[i].address, p->to_bring.items[i].bytes, may_evict, &r);
  run_start(p, request, &r);
  pager_check(p);
}

void pager_ask_prefetcher(pager *p, const ff_fault *faults, size_t count) {
  const ff_policy *policy = p->config.prefetch;
  if (!policy || !policy->faulted) return;
  view_update(p);
  p->proposals = &p->to_bring;
  policy->faulted(p->config.prefetch_state, &p->view, faults, count);
  p->proposals = NULL;
}

void pager_prefetch(pager *p, const fault_request *request, const ff_fault *faults, size_t count) {
  p->to_bring.count = 0;
  pager_ask_prefetcher(p, faults, count);
  pager_bring(p, request, true);
}

/* ---- what the GPU reaches over the link ---- */

bool pager_reached(pager *p, const pager_unit *unit, uint64_t address, uint64_t bytes) {
  if (p->config.counters.threshold) return pager_count_access(p, unit, address);
  if (!p->config.prefetch || !p->config.prefetch->reached || !pager_may_come(unit)) return false;
  uint32_t *reached = reached_of(pager_chunk_at(p, address), address), before = *reached;
  if (*reached < UINT32_MAX / 2) *reached += (uint32_t)bytes;
  return before / FF_REACHED_BYTES != *reached / FF_REACHED_BYTES;
}

void pager_launching(pager *p, const uint32_t *allocations, size_t count) {
  const ff_policy *policy = p->config.prefetch;
  if (!policy || !policy->launching) return;
  ff_allocation *declared = ff_alloc((count + 1) * sizeof *declared);
  for (size_t i = 0; i < count; i++) {
    const pager_allocation *a = &p->allocations.items[allocations[i]];
    declared[i] = (ff_allocation){.address = a->address, .bytes = a->bytes, .number = allocations[i]};
  }
  view_update(p);
  p->to_bring.count = 0;
  p->proposals = &p->to_bring;
  policy->launching(p->config.prefetch_state, &p->view, declared, count);
  p->proposals = NULL;
  free(declared);
  p->blank_only = true;
  pager_bring(p, NULL, false);
  p->blank_only = false;
}

void pager_reached_tell(pager *p, const fault_request *request, uint64_t address, uint64_t queued) {
  if (p->config.counters.threshold) {
    pager_count_reached(p, request, address);
    return;
  }
  p->view.queued = queued;
  view_update(p);
  p->to_bring.count = 0;
  p->proposals = &p->to_bring;
  p->config.prefetch->reached(p->config.prefetch_state, &p->view, address & ~(FF_GROUP_BYTES - 1),
                              *reached_of(pager_chunk_at(p, address), address));
  p->proposals = NULL;
  pager_bring(p, request, true);
  pager_keep_free(p, request);
  p->view.queued = 0;
}

bool pager_wants_idle(const pager *p) { return p->config.prefetch && p->config.prefetch->idle; }

/* Again while what is proposed comes without a transfer, or is passed over, some times. */
void pager_idle(pager *p) {
  int skips = 0;
  p->idles = true;
  uint64_t flights = p->flight_count;
  for (uint64_t before = UINT64_MAX;
       pager_wants_idle(p) && p->free && before != p->filled && p->flight_count == flights;) {
    before = p->filled;
    p->blank_skipped = false;
    view_update(p);
    p->to_bring.count = 0;
    p->proposals = &p->to_bring;
    p->config.prefetch->idle(p->config.prefetch_state, &p->view);
    p->proposals = NULL;
    pager_bring(p, NULL, false);
    pager_keep_free(p, NULL);
    if (p->blank_skipped && skips++ < MAX_SKIPS) before = UINT64_MAX;
  }
  p->idles = false;
}
