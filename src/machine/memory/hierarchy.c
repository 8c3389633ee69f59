/* SPDX-License-Identifier: Apache-2.0 */
/* The way of one line: L1, L2 slice, DRAM channel. docs/timing.md has every formula.
 *
 * Policies (our choices where a machine's documents say nothing): the L1 is write-through without allocation and empty
 * at a kernel's begin; the L2 is write-back and takes written sectors without reading them first; a miss fetches the
 * sectors asked for (with l1_line_fills, the whole line); a second miss on a pending sector waits for the first (that
 * is what an MSHR merges). */
#include "machine/memory/hierarchy.h"

#include "machine/host/link.h"
#include "machine/host/peer_link.h"
#include "machine/memory/address_map.h"
#include "machine/memory/network.h"
#include "machine/stacks/stacks.h"
#include "machine/stacks/versions.h"
#include "machine/tenants/idle_sharing.h"

/* ---- DRAM ---- */

typedef struct place { /* of a physical address */
  l2_slice *slice;
  dram_bank *bank;
  int64_t row;
  uint64_t tag; /* of the line */
  uint32_t set;
} place;

/* Rows go round the banks, in each round in another order: the bank's number XOR those pieces of the row's that are as
 * long (Zhang, Zhu and Zhang, MICRO 2000, take the lowest such piece of the cache's tag). Streams whose distance is any
 * power of two lie in different banks so. */
static inline uint64_t bank_number(const memory *y, uint64_t row_number, uint64_t row) {
  uint32_t bits = y->bank_bits;
  uint64_t mixed = row ^ row >> bits;
  mixed ^= mixed >> 2 * bits;
  return (row_number - row * y->by_banks.by) ^ (mixed & ((UINT64_C(1) << bits) - 1));
}

/* 256-byte pieces go round the slices; each slice sees its pieces as one dense range, and so does each channel, whose
 * rows go round its banks. Where the L2 has two sides, slices 2 i and 2 i + 1 are each other's: two neighbours go to
 * them in an order that no stride of addresses keeps to. */
static inline place place_interleaved(const memory *y, uint64_t address) {
  uint64_t piece = address >> 8, inside = divide(piece, &y->by_slices), number = piece - inside * y->by_slices.by;
  if (y->crossing) number = (number & ~UINT64_C(1)) | (uint64_t)__builtin_parityll(piece);
  l2_slice *slice = &y->slices[number];
  uint64_t line = inside << 1 | (address >> 7 & 1);
  uint64_t local = (inside * y->slices_per_channel + slice->part) << 8 | (address & 255);
  uint64_t row_number = divide(local, &y->by_row), row = divide(row_number, &y->by_banks);
  return (place){slice, &slice->channel->banks[bank_number(y, row_number, row)], (int64_t)row, (address >> 7) + 1,
                 (uint32_t)modulo(line, &slice->cache.sets)};
}

/* Where the machine file says which address is where (partition/hash.h). */
static inline place l2_place(const memory *y, uint64_t address) {
  if (__builtin_expect(!y->hash, 1)) return place_interleaved(y, address);
  hash_place h = hash_of(y->hash, address);
  l2_slice *slice = &y->slices[h.module];
  return (place){slice, &slice->channel->banks[h.bank], (int64_t)h.row, (address >> 7) + 1, h.set};
}

static ps dram_access(memory *y, const place *p, uint32_t sectors, bool write, ps ask, ps at, const tally *tally) {
  const timing *t = y->t;
  if (__builtin_expect(y->stacks != NULL, 0))
    return stacks_access(y->stacks, 0, (p->tag - 1) << 7, sectors, write, ask, at, tally);
  int64_t row = p->row;
  dram_bank *bank = p->bank;
  dram_channel *channel = p->slice->channel;
  if (__builtin_expect(y->lent != NULL, 0))
    idle_sharing_count(y->lent, (uint32_t)(p->slice - y->slices), (uint64_t)sectors * TRACE_SECTOR_BYTES);
  ask += t->dram_there;
  at += t->dram_there;
  if (write && channel->writes) {
    COUNT(tally, dram_write_bytes, sectors * TRACE_SECTOR_BYTES);
    return write_later(t, channel, (uint32_t)y->spec->dram_write_batch, (dram_write){bank, row, sectors}, ask, at,
                       tally);
  }
  ps burst = bus_time(t, channel, sectors, write), column = bank_column(t, channel, bank, row, ask, at, tally);
  bank_take(bank, column + burst);
  ps end = column + t->t_cl + burst;
  ps begin = server_take(&channel->bus, ask, ask, burst);
  if (end < begin + burst) end = begin + burst;
  if (write) {
    bank->written = end + t->t_wr;
    COUNT(tally, dram_write_bytes, sectors * TRACE_SECTOR_BYTES);
    return end;
  }
  COUNT(tally, dram_read_bytes, sectors * TRACE_SECTOR_BYTES);
  return end + t->dram_back;
}

/* ---- L2 ---- */

/* Dirty sectors of the line `tag` of the slice go to DRAM, and hold an MSHR until they are there. Returns when that was
 * to be had. */
static ps l2_write_back(memory *y, l2_slice *slice, uint64_t tag, uint32_t sectors, const request *r, ps ask, ps at) {
  place p = l2_place(y, (tag - 1) << 7);
  at = slots_wait(&slice->mshrs, at);
  slots_hold(&slice->mshrs, dram_access(y, &p, sector_count(sectors), true, ask, at, r->tally));
  return at;
}

/* The line for `tag`, emptied and written back. Returns when the MSHR for that was to be had. */
static ps l2_replace(memory *y, const place *p, const request *r, ps ask, ps at, cache_line **line) {
  l2_slice *slice = p->slice;
  uint64_t old_tag;
  cache_line *victim = cache_victim(&slice->cache, p->set, &old_tag);
  if (old_tag && victim->dirty) at = l2_write_back(y, slice, old_tag, victim->dirty, r, ask, at);
  cache_retag(&slice->cache, p->set, victim, p->tag);
  if (y->stacks) victim->filled = versions_now(y->stacks);
  *line = victim;
  return at;
}

/* From DRAM, with an MSHR that is held until the data is there; misses of one piece (l2_mshr_bytes) share it. */
static ps l2_fetch(memory *y, const place *p, uint32_t sectors, ps ask, ps begin, const tally *tally) {
  l2_slice *slice = p->slice;
  uint64_t piece = slice->held ? (p->tag - 1) / (y->spec->l2_mshr_bytes / TRACE_LINE_BYTES) : 0;
  held_piece *held = slice->held ? &slice->held[piece % HELD_PIECES] : NULL;
  bool shared = held && held->piece == piece && held->until > begin;
  ps start = shared ? begin : slots_wait(&slice->mshrs, begin);
  ps filled = dram_access(y, p, sectors, false, ask, start, tally);
  if (!shared) slots_hold(&slice->mshrs, filled);
  if (held && !shared) *held = (held_piece){piece, filled};
  return filled;
}

/* What the request writes is dirty; where a set has no more lines that may be, another one is written back for it. */
static ps l2_dirty(memory *y, const place *p, const request *r, cache_line *line, ps ask, ps at) {
  uint64_t tag;
  uint8_t back = cache_write(&p->slice->cache, p->set, line, (uint8_t)r->sectors, &tag);
  return back ? l2_write_back(y, p->slice, tag, back, r, ask, at) : at;
}

/* Write-through: to memory at once, with an MSHR until it is there. Returns when that MSHR was to be had. */
static ps l2_write(memory *y, const place *p, const request *r, ps ask, ps at) {
  l2_slice *slice = p->slice;
  ps begin = slots_wait(&slice->mshrs, at),
     over = dram_access(y, p, sector_count(r->sectors), true, ask, begin, r->tally);
  slots_hold(&slice->mshrs, over);
  if (r->block && r->block->written < over) r->block->written = over;
  if (y->stacks && r->block) versions_wrote(y->stacks, r->block, r->address, over);
  return begin;
}

/* Sides of the L2: SMs with even numbers are on side 0. */
static ps side_latency(const memory *y, const request *r) {
  uint64_t mask = y->spec->side_masks.masks[0];
  return !mask || (__builtin_popcountll(r->address & mask) & 1) == (int)(r->sm & 1) ? 0 : y->t->side;
}

/* At the slice that the address belongs to, which the request reaches at `at`. Returns when its data leaves. */
static ps l2_home(memory *y, const place *p, const request *r, ps ask, ps at) {
  l2_slice *slice = p->slice;
  ps service = y->t->l2_service[sector_count(r->sectors)];
  /* one lane per cycle */
  if (r->op == TRACE_ATOMIC && r->lanes * y->t->cycle > service) service = r->lanes * y->t->cycle;
  ps data = server_take(&slice->port, ask, at, service);
  cache_line *line = cache_find(&slice->cache, p->set, p->tag);
  if (!line) data = l2_replace(y, p, r, ask, data, &line);
  if (line->ready <= data) line->pending = 0;
  uint8_t wanted = (uint8_t)r->sectors, have = line->valid & wanted, missing = wanted & (uint8_t)~have;
  if (y->stacks && have && r->op == TRACE_LOAD) versions_l2_hit(y->stacks, r->address, line->filled);
  COUNT(r->tally, l2_hits, sector_count(have));
  COUNT(r->tally, l2_misses, sector_count(missing));
  if (r->op == TRACE_STORE) {
    line->valid |= missing;
    if (y->spec->l2_write_through) return l2_write(y, p, r, ask, data);
    return l2_dirty(y, p, r, line, ask, data);
  }
  ps begin = data;
  if (have & line->pending) data = line->ready;
  if (missing) {
    ps filled = l2_fetch(y, p, sector_count(missing), ask, begin, r->tally);
    if (!line->pending || line->ready < filled) line->ready = filled;
    line->valid |= missing;
    line->pending |= missing;
    if (data < filled) data = filled;
  }
  if (r->op == TRACE_ATOMIC && y->spec->l2_write_through) l2_write(y, p, r, ask, data);
  else if (r->op == TRACE_ATOMIC) l2_dirty(y, p, r, line, ask, begin);
  return data;
}

/* ---- an L2 of two sides ---- */

/* The slice of the other side that keeps copies of this one's lines, in the set with the same number. */
static l2_slice *twin(const memory *y, const l2_slice *slice) { return &y->slices[(uint64_t)(slice - y->slices) ^ 1]; }

/* Over to the other side, with so many sectors; `there`: to the side of the slices with odd numbers. */
static ps cross(memory *y, uint32_t there, uint32_t sectors, ps ask, ps at) {
  return server_take(&y->crossing[there & 1], ask, at, y->t->crossing[sectors]) + y->t->crossing[sectors];
}

/* A load of a line of the other side: its copy on this side, with an MSHR while that comes from over there. */
static ps l2_copy(memory *y, const place *home, const request *r, ps ask, ps at) {
  place p = *home;
  l2_slice *slice = p.slice = twin(y, home->slice);
  ps data = server_take(&slice->port, ask, at, y->t->l2_service[sector_count(r->sectors)]), half = y->t->side / 2;
  cache_line *line = cache_find(&slice->cache, p.set, p.tag);
  if (!line) data = l2_replace(y, &p, r, ask, data, &line);
  if (line->ready <= data) line->pending = 0;
  uint8_t wanted = (uint8_t)r->sectors, have = line->valid & wanted, missing = wanted & (uint8_t)~have;
  COUNT(r->tally, l2_hits, sector_count(have));
  ps begin = data;
  if (have & line->pending) data = line->ready;
  if (!missing) return data;
  begin = slots_wait(&slice->mshrs, begin);
  request rest = *r;
  rest.sectors = missing;
  ps over = l2_home(y, home, &rest, ask + half, begin + half);
  ps filled = cross(y, r->sm, sector_count(missing), ask + y->t->side, over + y->t->side - half);
  slots_hold(&slice->mshrs, filled);
  if (!line->pending || line->ready < filled) line->ready = filled;
  line->valid |= missing;
  line->pending |= missing;
  return data < filled ? filled : data;
}

/* What was written is no longer in the copy. */
static void l2_uncopy(memory *y, const place *home, uint32_t sectors) {
  cache_line *line = cache_find(&twin(y, home->slice)->cache, home->set, home->tag);
  if (line) line->valid &= (uint8_t)~sectors, line->pending &= (uint8_t)~sectors;
}

/* Loads are served by the SM's side, with copies of the other's lines; stores and atomics by the line's own. */
static ps l2_two_sides(memory *y, const place *p, const request *r, ps ask, ps at) {
  bool far = ((uint64_t)(p->slice - y->slices) & 1) != (r->sm & 1);
  if (r->op == TRACE_LOAD) return far ? l2_copy(y, p, r, ask, at) : l2_home(y, p, r, ask, at);
  l2_uncopy(y, p, r->sectors);
  if (!far) return l2_home(y, p, r, ask, at);
  ps half = y->t->side / 2, over = cross(y, r->sm ^ 1, sector_count(r->sectors), ask, at);
  return l2_home(y, p, r, ask + half, over + half) + y->t->side - half;
}

ps l2_access(memory *y, const request *r) {
  place p = l2_place(y, r->address);
  if (y->crossing) return l2_two_sides(y, &p, r, r->ask + y->t->l2_there, r->at + y->t->l2_there) + y->t->l2_back;
  ps side = side_latency(y, r);
  return l2_home(y, &p, r, r->ask + y->t->l2_there + side / 2, r->at + y->t->l2_there + side / 2) + y->t->l2_back +
         side - side / 2;
}

static bool drop_from(l2_slice *slice, const place *p) {
  cache_line *line = cache_find(&slice->cache, p->set, p->tag);
  if (line) cache_retag(&slice->cache, p->set, line, 0);
  return line != NULL;
}

bool l2_drop(memory *y, uint64_t physical) {
  place p = l2_place(y, physical);
  if (y->crossing) drop_from(twin(y, p.slice), &p);
  return drop_from(p.slice, &p);
}

void l2_discard(memory *y, uint64_t address, uint64_t bytes) {
  if (y->settle) y->settle(y->settle_context);
  for (uint64_t a = address; a < address + bytes; a += TRACE_LINE_BYTES) l2_drop(y, physical_address(y->map, a));
}

/* Where an address lies, if that is known: looking ahead places nothing. */
static bool peek(const memory *y, uint64_t *address) {
  if (__builtin_expect(y->hash != NULL, 0)) return address_map_peek(y->map, *address, address);
  *address |= y->map->space;
  return true;
}

bool l2_has_any(memory *y, uint64_t address, uint64_t bytes) {
  bool any = false;
  for (uint64_t a = address; a < address + bytes && !any; a += TRACE_LINE_BYTES) {
    uint64_t physical = a;
    if (!peek(y, &physical)) continue; /* not placed yet: no line of it can be there */
    place p = l2_place(y, physical);
    any = cache_find(&p.slice->cache, p.set, p.tag) ||
          (y->crossing && cache_find(&twin(y, p.slice)->cache, p.set, p.tag));
  }
  return any;
}

ps channel_take(memory *y, uint64_t physical, ps at) {
  place p = l2_place(y, physical);
  return server_take(&p.slice->channel->bus, at, at, y->t->dram_read[4]) + y->t->dram_read[4];
}

void l2_warm(memory *y, uint64_t physical, uint32_t sectors, trace_access_op op) {
  place p = l2_place(y, physical);
  uint64_t old_tag;
  cache_line *line = cache_find(&p.slice->cache, p.set, p.tag);
  if (!line) cache_retag(&p.slice->cache, p.set, line = cache_victim(&p.slice->cache, p.set, &old_tag), p.tag);
  line->valid |= (uint8_t)sectors;
  if ((op == TRACE_STORE || op == TRACE_ATOMIC) && !y->spec->l2_write_through)
    cache_write(&p.slice->cache, p.set, line, (uint8_t)sectors, &old_tag);
}

/* A range that is larger than the L2 is looked for by its lines. */
static void discard_large(memory *y, uint64_t physical, uint64_t bytes) {
  for (uint64_t i = 0; i < y->spec->l2_slices; i++)
    cache_drop(&y->slices[i].cache, physical / TRACE_LINE_BYTES + 1, bytes / TRACE_LINE_BYTES);
}

void l2_discard_frames(memory *y, uint64_t physical, uint64_t bytes) {
  if (y->settle) y->settle(y->settle_context);
  if (bytes > y->spec->l2_bytes) {
    discard_large(y, physical, bytes);
    return;
  }
  for (uint64_t a = physical; a < physical + bytes; a += TRACE_LINE_BYTES) l2_drop(y, a);
}

void l2_flush(memory *y) {
  for (uint64_t i = 0; i < y->spec->l2_slices; i++) cache_clear(&y->slices[i].cache);
}

/* ---- L1 ---- */

/* Hashed sets: as many lines in a row as there are sets have one each, but each such group begins a set further than
 * the one before: lines at a stride do not meet, and those in a row fill all sets alike wherever they begin. */
uint32_t l1_set(const sm *m, uint64_t address) {
  uint64_t line = address / TRACE_LINE_BYTES, group = divide(line, &m->l1.sets);
  return (uint32_t)modulo(m->l1_hashed ? line + group : line, &m->l1.sets);
}
uint64_t l1_tag(const sm *m, uint64_t address) { return ((address >> 7) + 1) | m->l1_epoch << 48; }

void memory_prefetch_far(const memory *y, const sm *m, uint64_t address) {
  if (!peek(y, &address)) return;
  place p = l2_place(y, address);
  cache_prefetch_far(&p.slice->cache, p.set, p.tag);
  cache_prefetch_far(&m->l1, l1_set(m, address), l1_tag(m, address));
}

void memory_prefetch_near(const memory *y, const sm *m, uint64_t address) {
  if (!peek(y, &address)) return;
  place p = l2_place(y, address);
  __builtin_prefetch(&p.slice->mshrs.until[p.slice->mshrs.first]);
  __builtin_prefetch(p.bank);
  cache_prefetch_near(&p.slice->cache, p.set, p.tag);
  cache_prefetch_near(&m->l1, l1_set(m, address), l1_tag(m, address));
}

void l2_prefetch_far(const memory *y, uint64_t physical) {
  place p = l2_place(y, physical);
  cache_prefetch_far(&p.slice->cache, p.set, p.tag);
}

void l2_prefetch_near(const memory *y, uint64_t physical) {
  place p = l2_place(y, physical);
  __builtin_prefetch(&p.slice->mshrs.until[p.slice->mshrs.first]);
  __builtin_prefetch(p.bank);
  cache_prefetch_near(&p.slice->cache, p.set, p.tag);
}

void l1_prefetch_far(const memory *y, const sm *m, uint64_t address) {
  if (peek(y, &address)) cache_prefetch_far(&m->l1, l1_set(m, address), l1_tag(m, address));
}

void l1_prefetch_near(const memory *y, const sm *m, uint64_t address) {
  if (peek(y, &address)) cache_prefetch_near(&m->l1, l1_set(m, address), l1_tag(m, address));
}

bool l1_drop(sm *m, uint64_t address) {
  uint32_t set = l1_set(m, address);
  cache_line *line = cache_find(&m->l1, set, l1_tag(m, address));
  if (line) cache_retag(&m->l1, set, line, 0);
  return line != NULL;
}

/* Data comes back through the ports of loads; that of stores and atomics goes out through the others. */
static ps through_network(memory *y, const request *r) {
  uint32_t sectors = sector_count(r->sectors);
  if (r->op == TRACE_LOAD) {
    ps ask = r->ask + y->t->l2_there + y->t->l2_back, data = l2_access(y, r);
    return network_pass(y->network, y->t, r->sm, NETWORK_TO_SM, sectors, ask, data);
  }
  request out = *r;
  out.at = network_pass(y->network, y->t, r->sm, NETWORK_FROM_SM, sectors, r->ask, r->at);
  return l2_access(y, &out);
}

ps memory_below_l1(memory *y, const sm *m, const request *r) {
  if (__builtin_expect(m->stack, 0)) return stacks_below(y->stacks, m, r);
  return y->network ? through_network(y, r) : l2_access(y, r);
}

static ps l1_load(memory *y, sm *m, const request *r, ps *accepted) {
  uint32_t set = l1_set(m, r->address);
  uint64_t tag = l1_tag(m, r->address);
  cache_line *line = cache_find(&m->l1, set, tag);
  if (!line) {
    uint64_t old_tag;
    line = cache_victim(&m->l1, set, &old_tag);
    cache_retag(&m->l1, set, line, tag);
    if (y->stacks) line->filled = versions_now(y->stacks);
  }
  if (line->ready <= r->at) line->pending = 0;
  uint8_t wanted = y->spec->l1_line_fills ? 15 : (uint8_t)r->sectors, have = line->valid & wanted,
          missing = wanted & (uint8_t)~have;
  ps data = r->at + y->t->l1;
  if ((have & line->pending) && data < line->ready) data = line->ready;
  if (y->stacks && have) versions_l1_hit(y->stacks, m, r->address, line->filled);
  COUNT(r->tally, l1_hits, sector_count(have));
  COUNT(r->tally, l1_misses, sector_count(missing));
  if (!missing) return data;
  request below = *r;
  below.sectors = missing;
  below.at = slots_wait(&m->l1_mshrs, r->at);
  *accepted += below.at - r->at;
  ps filled = memory_below_l1(y, m, &below);
  slots_hold(&m->l1_mshrs, filled);
  if (!line->pending || line->ready < filled) line->ready = filled;
  line->valid |= missing;
  line->pending |= missing;
  return data < filled ? filled : data;
}

/* Everything that does not look into the L1: a place among `held` until the L2 has answered. */
static ps l1_pass(memory *y, const sm *m, slots *held, const request *r, ps *accepted) {
  request below = *r;
  below.at = slots_wait(held, r->at);
  *accepted += below.at - r->at;
  ps done = memory_below_l1(y, m, &below);
  slots_hold(held, done);
  return done;
}

ps memory_access(memory *y, sm *m, const request *r, ps *accepted) {
  *accepted = r->ask;
  if (r->op == TRACE_STORE) return l1_pass(y, m, &m->stores, r, accepted);
  if (r->op == TRACE_ATOMIC || r->bypass_l1) return l1_pass(y, m, &m->l1_mshrs, r, accepted);
  return l1_load(y, m, r, accepted);
}

/* Pinned host memory: over the link, sector by sector, in no cache of the GPU. It holds an MSHR as any other miss. */
ps remote_access(memory *y, sm *m, pager_place place, const request *r, ps *accepted) {
  uint64_t bytes = (uint64_t)sector_count(r->sectors) * TRACE_SECTOR_BYTES;
  ps at = slots_wait(&m->l1_mshrs, r->at);
  *accepted = r->ask + (at - r->at);
  COUNT(r->tally, remote_bytes, bytes);
  ps done = place.team         ? peer_reach_team(y->peers, place.team, r->op != TRACE_LOAD, bytes, r->ask, at)
            : place.device < 0 ? link_remote(y->link, r->op == TRACE_STORE, bytes, r->ask, at)
                               : peer_reach(y->peers, (uint32_t)place.device, r->op == TRACE_STORE, bytes, r->ask, at);
  slots_hold(&m->l1_mshrs, done);
  return done;
}
