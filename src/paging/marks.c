/* SPDX-License-Identifier: Apache-2.0 */
/* What follows from the states of units and is kept so that none has to be walked: the sets of pages that policies
 * see, the sets of windows that can be evicted, the latest use of each group, the pages of the page table. A unit whose
 * state has changed is *marked*, and policies are *told* if it came or left.
 *
 * Units that change in the same way one behind the other, as those of a transfer do, are marked at once
 * (pager_marks): the change of a unit costs some instructions, that of what is kept of its chunk some hundreds. No one
 * may look at what is kept in between, so they are marked before a policy is asked, before room is made and before a
 * warp is woken. */
#include "paging/pager.h"

/* ---- sets of pages and windows ---- */

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
bool pager_block_stays(const pager *p, const pager_chunk *chunk) { return p->config.whole_blocks && chunk->moves; }

/* The chunk is listed in the pager's sets as its windows say. */
static void list_chunk(pager *p, pager_chunk *chunk) {
  for (int s = 0; s < PAGER_SETS; s++) {
    bool listed = chunk->counts[s] && (s == PAGER_HELD || !pager_block_stays(p, chunk));
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
  while ((unit = pager_unit_next(p, chunk, unit))) {
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
  for (const pager_unit *unit = &chunk->units[offset >> p->unit_shift]; unit; unit = pager_unit_next(p, chunk, unit)) {
    if (unit->state == PAGER_IN_FLIGHT) { /* one that becomes writable was there before */
      if (unit->flight_kind == PAGER_FLIGHT_WRITABLE) chunk->group_stale |= UINT32_C(1) << group;
    } else if (unit->last_use && unit->last_use >= chunk->group_use[group]) {
      if (unit->state == PAGER_RESIDENT) chunk->group_use[group] = unit->last_use;
      else chunk->group_stale |= UINT32_C(1) << group;
    }
  }
}

/* What a unit that is alone in its window is: a bit each for the pages that policies see. */
typedef struct page_marks {
  bool mapped, valid, moving, dirty, cleaned;
} page_marks;

static page_marks marks_of(const pager_unit *u) {
  bool mapped = u->allocation && (u->state != PAGER_REMOTE || pager_may_come(u)),
       resident = mapped && u->state == PAGER_RESIDENT, flies = mapped && u->state == PAGER_IN_FLIGHT;
  return (page_marks){.mapped = mapped,
                      .valid = resident || flies,
                      .moving = flies || (resident && u->fresh),
                      .dirty = resident && !u->cpu_newest,
                      .cleaned = resident && u->cleaned};
}

static void put_bits(uint64_t *word, uint64_t mask, uint64_t bits) { *word = (*word & ~mask) | bits; }

/* The pages of one word of the sets: those in `mask` become what a unit is. */
static void mark_pages_of(pager_chunk *chunk, uint32_t word, uint64_t mask, page_marks on) {
  put_bits(&chunk->mapped.word[word], mask, on.mapped ? mask : 0);
  put_bits(&chunk->valid.word[word], mask, on.valid ? mask : 0);
  put_bits(&chunk->moving.word[word], mask, on.moving ? mask : 0);
  put_bits(&chunk->dirty.word[word], mask, on.dirty ? mask : 0);
  put_bits(&chunk->cleaned.word[word], mask, on.cleaned ? mask : 0);
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

/* Are all units of the window there? */
static bool is_at(const pager *p, const pager_chunk *chunk, uint32_t window, pager_state place) {
  const pager_unit *unit = &chunk->units[window];
  while (unit->shared && unit->state == place) unit = pager_unit_next(p, chunk, unit);
  return unit->state == place;
}

/* Does one page map the group: is all of it in GPU memory, or all of it where the GPU reaches it over the link? */
static bool group_is_whole(const pager *p, const pager_chunk *chunk, uint32_t group) {
  uint64_t mapped = chunk->mapped.word[group / 4] >> group % 4 * 16 & 0xffff,
           valid = chunk->valid.word[group / 4] >> group % 4 * 16 & 0xffff;
  if (mapped != 0xffff || (valid && valid != 0xffff)) return false;
  uint32_t first = (uint32_t)(group * FF_GROUP_BYTES >> p->unit_shift),
           end = (uint32_t)(((group + 1) * FF_GROUP_BYTES - 1) >> p->unit_shift) + 1;
  pager_state place = chunk->units[first].state; /* what is valid may be on its way still */
  bool whole = place == PAGER_RESIDENT || place == PAGER_REMOTE;
  /* from the end: what comes in order of address is not whole before its last unit has come */
  while (whole && end > first) whole = is_at(p, chunk, --end, place);
  return whole;
}

/* Does one page map the block, of which one maps each group? */
static bool block_is_whole(const pager *p, const pager_chunk *chunk) {
  bool whole = chunk->whole_groups == UINT32_MAX && p->config.largest_leaf >= FF_BLOCK_BYTES;
  for (uint64_t at = FF_GROUP_BYTES; whole && at < FF_BLOCK_BYTES; at += FF_GROUP_BYTES)
    whole = chunk->units[at >> p->unit_shift].state == chunk->units[0].state;
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
  if (p->config.unit_bytes >= FF_PAGE_BYTES && to - from <= 64 && !only->shared &&
      pager_bytes(p, only) == p->config.unit_bytes) {
    mark_pages_of(chunk, from / 64, UINT64_MAX >> (64 - (to - from)) << from % 64, marks_of(only));
    return;
  }
  set_pages(&chunk->mapped, from, to, false);
  set_pages(&chunk->valid, from, to, false);
  set_pages(&chunk->moving, from, to, false);
  set_pages(&chunk->dirty, from, to, false);
  set_pages(&chunk->cleaned, from, to, false);
  for (int absent = 0; absent < 2; absent++)
    for (uint64_t at = page; at < end; at += p->config.unit_bytes)
      for (const pager_unit *u = &chunk->units[(at - base) >> p->unit_shift]; u; u = pager_unit_next(p, chunk, u))
        mark_unit(p, chunk, at, u, absent);
}

/* The chunk has some windows more and others less in a set. *turned: as of mark_sets. */
static void put_windows(pager_chunk *chunk, pager_set set, uint32_t word, uint64_t mask, uint64_t bits, bool *turned) {
  uint64_t *windows = &chunk->windows[word].in[set], old = *windows & mask;
  uint32_t before = chunk->counts[set];
  if (old == bits) return;
  chunk->counts[set] += (uint32_t)__builtin_popcountll(bits) - (uint32_t)__builtin_popcountll(old);
  put_bits(windows, mask, bits);
  *turned |= !before != !chunk->counts[set];
}

/* Windows [first, end) of one word of the sets, each of which is a page and a unit that is alone in it. false: one is
 * not, and nothing was done. What is valid and does not move can be evicted: the sets of windows follow. */
static bool mark_word(const pager *p, pager_chunk *chunk, uint32_t first, uint32_t end, bool *turned) {
  uint64_t mapped = 0, valid = 0, moving = 0, dirty = 0, cleaned = 0, declared = 0;
  for (uint32_t u = first; u < end; u++) {
    const pager_unit *unit = &chunk->units[u];
    uint64_t bit = UINT64_C(1) << u % 64;
    if (unit->shared) return false;
    if (!unit->allocation) continue;
    if (unit->state == PAGER_RESIDENT) {
      valid |= bit;
      if (unit->fresh) moving |= bit;
      if (!unit->cpu_newest) dirty |= bit;
      if (unit->cleaned) cleaned |= bit;
      if (p->used_allocations && p->allocations.items[unit->allocation].users) declared |= bit;
    } else if (unit->state == PAGER_IN_FLIGHT) {
      valid |= bit;
      moving |= bit;
    } else if (pager_may_come(unit)) {
      mapped |= bit;
    }
  }
  uint32_t word = first / 64;
  uint64_t mask = UINT64_MAX >> (64 - (end - first)) << first % 64, loose = valid & ~moving;
  put_bits(&chunk->mapped.word[word], mask, mapped | valid);
  put_bits(&chunk->valid.word[word], mask, valid);
  put_bits(&chunk->moving.word[word], mask, moving);
  put_bits(&chunk->dirty.word[word], mask, dirty);
  put_bits(&chunk->cleaned.word[word], mask, cleaned);
  put_windows(chunk, PAGER_HELD, word, mask, valid, turned);
  put_windows(chunk, PAGER_LOOSE, word, mask, loose, turned);
  put_windows(chunk, PAGER_SPARE, word, mask, loose & ~declared, turned);
  return true;
}

/* All that is kept of the windows but the pages that map them. */
static bool mark_each(pager *p, pager_chunk *chunk, uint64_t first, uint64_t end) {
  bool turned = false;
  for (uint64_t window = first; window < end; window += p->config.unit_bytes) mark_use(p, chunk, window);
  for (uint64_t at = first, next; at < end; at = next) {
    uint32_t page = (uint32_t)(at % FF_BLOCK_BYTES / FF_PAGE_BYTES), last = page / 64 * 64 + 64;
    next = at + (last - page) * FF_PAGE_BYTES < end ? at + (last - page) * FF_PAGE_BYTES : end;
    if (p->config.unit_bytes == FF_PAGE_BYTES &&
        mark_word(p, chunk, page, page + (uint32_t)((next - at) / FF_PAGE_BYTES), &turned))
      continue;
    for (; at < next; at += p->config.unit_bytes) {
      turned |= mark_sets(p, chunk, at);
      mark_pages(p, chunk, at);
    }
    next = at; /* a unit may be larger than a word's pages */
  }
  return turned;
}

/* `leaves`: a place may have changed, and with it the pages that map the windows. */
static void mark_windows(pager *p, pager_chunk *chunk, uint64_t first, uint64_t end, bool leaves) {
  if (chunk == p->zero_chunk) return;
  uint32_t word = (uint32_t)(first % FF_BLOCK_BYTES / FF_PAGE_BYTES / 64);
  bool within = (end - 1) % FF_BLOCK_BYTES / FF_PAGE_BYTES / 64 == word;
  uint64_t moving = chunk->moving.word[word], owed = chunk->dirty.word[word] | chunk->cleaned.word[word];
  bool turned = mark_each(p, chunk, first, end);
  uint64_t base = chunk->number << PAGER_CHUNK_SHIFT;
  if (leaves && p->config.largest_leaf)
    mark_leaves(p, chunk, (uint32_t)((first - base) / FF_GROUP_BYTES), (uint32_t)((end - 1 - base) / FF_GROUP_BYTES));
  if (!within || moving != chunk->moving.word[word] || owed != (chunk->dirty.word[word] | chunk->cleaned.word[word])) {
    chunk->moves = any_page(&chunk->moving);
    list_owed(p, chunk);
    turned |= p->config.whole_blocks;
  }
  if (turned) list_chunk(p, chunk);
}

void pager_mark_windows(pager *p, pager_chunk *chunk, uint64_t first, uint64_t end) {
  mark_windows(p, chunk, first, end, true);
}

void pager_mark_window(pager *p, pager_chunk *chunk, uint64_t window) {
  pager_mark_windows(p, chunk, window, window + p->config.unit_bytes);
}

/* ---- what policies are told ---- */

void pager_view_update(pager *p) {
  p->view.now = p->now;
  p->view.running_first = p->position;
  p->view.running_last = p->position_last;
}

/* Where memory is handed out in whole blocks, a block leaves as one: when its last unit does. */
static void tell(pager *p, uint64_t address, uint64_t bytes, bool arrived) {
  const ff_policy *policies[] = {p->config.prefetch, p->config.evict};
  void *states[] = {p->config.prefetch_state, p->config.evict_state};
  if (!arrived && p->config.whole_blocks) {
    if (pager_chunk_at(p, address)->holding) return;
    address &= ~(FF_BLOCK_BYTES - 1);
    bytes = FF_BLOCK_BYTES;
  }
  pager_view_update(p);
  for (int i = 0; i < 2; i++) {
    if (!policies[i] || (i == 1 && p->config.evict_shares)) continue;
    if (arrived && policies[i]->arrived) policies[i]->arrived(states[i], &p->view, address, bytes);
    if (!arrived && policies[i]->left) policies[i]->left(states[i], &p->view, address, bytes);
  }
}

void pager_tell(pager *p, uint64_t address, bool arrived) {
  tell(p, address & ~(p->config.unit_bytes - 1), p->config.unit_bytes, arrived);
}

static void tell_settled(pager *p, uint64_t address, uint64_t bytes) {
  const ff_policy *policies[] = {p->config.prefetch, p->config.evict};
  void *states[] = {p->config.prefetch_state, p->config.evict_state};
  pager_view_update(p);
  for (int i = 0; i < 2; i++)
    if (policies[i] && policies[i]->settled && !(i == 1 && p->config.evict_shares))
      policies[i]->settled(states[i], &p->view, address, bytes);
}

void pager_tell_settled(pager *p, pager_chunk *chunk, const ff_pages *before) {
  bool listens = (p->config.prefetch && p->config.prefetch->settled) || (p->config.evict && p->config.evict->settled);
  if (!listens || !any_page(before)) return;
  uint64_t base = chunk->number << PAGER_CHUNK_SHIFT;
  if (p->config.whole_blocks) {
    if (!pager_block_stays(p, chunk) && chunk->holding) tell_settled(p, base, FF_BLOCK_BYTES);
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

static void remark(pager *p, uint64_t address, bool leaves) {
  pager_chunk *chunk = pager_chunk_at(p, address);
  uint64_t window = address & ~(p->config.unit_bytes - 1);
  ff_pages before = chunk->moving;
  mark_windows(p, chunk, window, window + p->config.unit_bytes, leaves);
  pager_tell_settled(p, chunk, &before);
}

void pager_remark(pager *p, uint64_t address) { remark(p, address, true); }

void pager_mark_used(pager *p, uint64_t address) { remark(p, address, false); }

void pager_mark_declared(pager *p, pager_chunk *chunk, uint64_t window) {
  if (mark_sets(p, chunk, window)) list_chunk(p, chunk);
}

/* What arrives is told as that; a block that is handed out whole may also have settled with it, or with what left. */
void pager_marks_end(pager *p, pager_marks *m) {
  pager_chunk *chunk = m->chunk;
  if (!chunk) return;
  bool stayed = pager_block_stays(p, chunk);
  pager_mark_windows(p, chunk, m->first, m->end);
  bool arrived = m->now == PAGER_RESIDENT, at_once = p->config.tells_runs || (p->config.whole_blocks && !arrived);
  uint64_t step = at_once ? m->end - m->first : p->config.unit_bytes;
  for (uint64_t at = m->first; m->now != PAGER_IN_FLIGHT && at < m->end; at += step) tell(p, at, step, arrived);
  if (stayed && !pager_block_stays(p, chunk) && chunk->holding)
    tell_settled(p, m->first & ~(FF_BLOCK_BYTES - 1), FF_BLOCK_BYTES);
  m->chunk = NULL;
}

/* What one page maps is split when its first unit goes elsewhere, though it may be one page again, there, with the
 * last. */
static bool splits(const pager_marks *m, uint64_t window) {
  return m->now == PAGER_REMOTE && m->chunk->whole_groups >> (window / FF_GROUP_BYTES % 32) & 1;
}

void pager_marks_add(pager *p, pager_marks *m, uint64_t address, const pager_unit *unit) {
  uint64_t window = address & ~(p->config.unit_bytes - 1), end = window + p->config.unit_bytes;
  pager_chunk *chunk = pager_chunk_at(p, address);
  bool joins = m->chunk == chunk && m->now == unit->state && (window == m->end || end == m->end);
  if (!joins) {
    pager_marks_end(p, m);
    *m = (pager_marks){.first = window, .chunk = chunk, .now = unit->state};
  }
  m->end = end;
  if (splits(m, window)) pager_marks_end(p, m);
}

void pager_mark(pager *p, uint64_t address, const pager_unit *unit) {
  pager_marks alone = {0};
  pager_marks_add(p, &alone, address, unit);
  pager_marks_end(p, &alone);
}
