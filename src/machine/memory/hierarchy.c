/* SPDX-License-Identifier: Apache-2.0 */
/* The way of one line: L1, L2 slice, DRAM channel. docs/timing.md has every formula.
 *
 * Policies (our choices where a machine's documents say nothing): the L1 is write-through without allocation, but for
 * local memory, and empty at a kernel's begin; the L2 is write-back and takes written sectors without reading them
 * first; a miss fetches the sectors asked for (with l1_line_fills, the whole line); a second miss on a pending sector
 * waits for the first (that is what an MSHR merges). */
#include "machine/memory/hierarchy.h"

#include "machine/host/link.h"
#include "machine/host/peer_link.h"
#include "machine/memory/address_map.h"
#include "machine/memory/network.h"
#include "machine/stacks/stacks.h"
#include "machine/stacks/versions.h"
#include "machine/tenants/idle_sharing.h"

/* ---- DRAM ---- */

/* Rows go round the banks, in each round in another order: the bank's number XOR those pieces of the row's that are as
 * long (Zhang, Zhu and Zhang, MICRO 2000, take the lowest such piece of the cache's tag). Streams whose distance is any
 * power of two lie in different banks so. */
static inline uint64_t bank_number(const memory *y, uint64_t row_number, uint64_t *row) {
  uint32_t bits = y->bank_bits;
  if (!bits) {
    *row = divide(row_number, &y->by_banks);
    return row_number - *row * y->by_banks.by;
  }
  *row = row_number >> bits;
  uint64_t mixed = *row ^ *row >> bits;
  return (row_number ^ mixed ^ mixed >> 2 * bits) & ((UINT64_C(1) << bits) - 1);
}

/* The slice of the piece `number` of a round of them, which has one piece for each slice: rounds begin at slices that
 * no stride of addresses keeps to, as the folded number of the round times 2^32 over the golden ratio (Knuth, volume 3,
 * section 6.4) says, read as a fraction of the slices. */
static inline uint64_t slice_in_round(const memory *y, uint64_t number, uint64_t round) {
  uint32_t mixed = (uint32_t)(round ^ round >> 5) * UINT32_C(0x9e3779b1);
  number += mixed * y->first_slices >> 32;
  return number < y->by_slices.by ? number : number - y->by_slices.by;
}

/* As many lines in a row as a slice has sets have one each; where rounds are permuted, each such group begins at a set
 * of its own, which two rounds of multiplying and folding its number give (the constants are those that end
 * MurmurHash3). At a fixed distance from each other the lines of a set would all come up at one time in many a program,
 * and those that come up first would still be there the next time. */
static inline uint32_t set_in_slice(const memory *y, const divider *sets, uint64_t line) {
  if (!y->first_slices) return (uint32_t)modulo(line, sets);
  uint64_t group = divide(line, sets);
  uint32_t mixed = (uint32_t)group * UINT32_C(0x85ebca6b);
  mixed = (mixed ^ mixed >> 13) * UINT32_C(0xc2b2ae35);
  uint64_t set = line - group * sets->by + (((mixed ^ mixed >> 16) * sets->by) >> 32);
  return (uint32_t)(set < sets->by ? set : set - sets->by);
}

/* 256-byte pieces go round the slices; each slice sees its pieces as one dense range, and so does each channel, whose
 * rows go round its banks. Where the L2 has two sides, slices 2 i and 2 i + 1 are each other's: of two neighbouring
 * granules of memory each side has one, and the pieces of its granules go round its slices. */
static inline uint64_t slice_interleaved(const memory *y, uint64_t address, uint64_t *round) {
  uint64_t piece = address >> 8, side = 0;
  if (y->crossing) {
    side = (uint64_t)__builtin_parityll(address & y->side_mask);
    piece = (piece & (y->granule - 1)) | (piece >> 1 & ~(y->granule - 1));
  }
  uint64_t inside = *round = divide(piece, &y->by_slices),
           number = slice_in_round(y, piece - inside * y->by_slices.by, inside);
  return y->crossing ? number << 1 | side : number;
}

static inline void place_interleaved(const memory *y, uint64_t address, line_place *p) {
  uint64_t inside, number = slice_interleaved(y, address, &inside);
  l2_slice *slice = &y->slices[number];
  uint64_t line = inside << 1 | (address >> 7 & 1);
  uint64_t local = (inside * y->slices_per_channel + slice->part) << 8 | (address & 255);
  uint64_t row, bank = bank_number(y, local >> y->row_shift, &row);
  p->slice = slice;
  p->bank = &slice->channel->banks[bank];
  p->row = (int64_t)row;
  p->tag = (address >> 7) + 1;
  p->set = set_in_slice(y, &slice->cache.sets, line);
  p->number = (uint32_t)number;
}

/* Where the machine file says which address is where (partition/hash.h). */
static void place_hashed(const memory *y, uint64_t address, line_place *p) {
  hash_place h = hash_of(y->hash, address);
  l2_slice *slice = &y->slices[h.module];
  *p = (line_place){slice, &slice->channel->banks[h.bank], (int64_t)h.row, (address >> 7) + 1, h.set, h.module};
}

static inline void find_place(const memory *y, uint64_t address, line_place *p) {
  if (__builtin_expect(!y->hash, 1)) place_interleaved(y, address, p);
  else place_hashed(y, address, p);
}

static line_place l2_place(const memory *y, uint64_t address) {
  line_place p;
  find_place(y, address, &p);
  return p;
}

void l2_find_place(const memory *y, uint64_t physical, line_place *p) { find_place(y, physical, p); }

static ps dram_access(memory *y, const line_place *p, uint32_t sectors, bool write, ps ask, ps at, const tally *tally) {
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
static ps l2_write_back(memory *y, l2_slice *slice, uint64_t tag, uint32_t sectors, ps ask, ps at, const tally *tally) {
  line_place p = l2_place(y, (tag - 1) << 7);
  at = slots_wait(&slice->mshrs, at);
  slots_hold(&slice->mshrs, dram_access(y, &p, sector_count(sectors), true, ask, at, tally));
  return at;
}

/* What an access finds at a slice, and what follows from that alone: tags, and which sectors are valid and dirty. When
 * they come is another matter: `ready` and `pending` of a line. So all that several accesses find can be known before
 * any of it has a time (l2_find), and what comes of it is the same as one by one. */
typedef struct found {
  cache_line *line;
  bool fresh;            /* it was another line before, */
  uint8_t old_dirty;     /* of which these sectors are written back, */
  uint64_t old_tag;      /* to there */
  uint8_t have, missing; /* of the sectors wanted */
  uint8_t back;          /* sectors of another line that may not stay dirty, */
  uint64_t back_tag;     /* this one */
} found;

/* Of the lines that a slice may have LAST, what is for this set: they are dealt out evenly. */
static uint32_t lasts_of_set(const memory *y, const cache *c, uint32_t set) {
  return (uint32_t)((set + 1) * y->lasts / c->sets.by - set * y->lasts / c->sets.by);
}

__attribute__((noinline)) static void take_ranked(const memory *y, cache *c, const line_place *p,
                                                  trace_l2_priority priority, cache_taken *taken) {
  cache_take_ranked(c, p->set, p->tag, priority, lasts_of_set(y, c, p->set), taken);
}

/* The line of p->tag in the slice, or one that becomes it: then its `ready` and `pending` are still of what was asked
 * before this, and may have no time yet. */
static inline void find_line(const memory *y, l2_slice *slice, const line_place *p, uint32_t sectors,
                             trace_l2_priority priority, found *f) {
  cache_taken taken;
  if (__builtin_expect(priority || slice->cache.ranks, 0)) take_ranked(y, &slice->cache, p, priority, &taken);
  else cache_take(&slice->cache, p->set, p->tag, &taken);
  cache_line *line = f->line = taken.line;
  f->fresh = taken.fresh;
  if (taken.fresh) {
    f->old_tag = taken.old_tag;
    f->old_dirty = taken.old_tag ? taken.old_dirty : 0;
    if (__builtin_expect(y->stacks != NULL, 0)) line->filled = versions_now(y->stacks);
  }
  f->have = line->valid & (uint8_t)sectors;
  f->missing = (uint8_t)sectors & (uint8_t)~f->have;
  line->valid |= f->missing;
}

/* At the line's own slice: what is written there is dirty; where a set has no more lines that may be, another one is
 * written back for it. */
static inline void find_home(const memory *y, const line_place *p, uint32_t sectors, trace_access_op op,
                             trace_l2_priority priority, found *f) {
  find_line(y, p->slice, p, sectors, priority, f);
  f->back = 0;
  if ((op == TRACE_STORE || op == TRACE_ATOMIC) && !y->spec->l2_write_through)
    f->back = cache_write(&p->slice->cache, p->set, f->line, (uint8_t)sectors, &f->back_tag);
}

/* From now on the line is the one that was found. Returns when its MSHR for what was there before was to be had. */
static inline ps l2_replace(memory *y, l2_slice *slice, const found *f, ps ask, ps at, const tally *tally) {
  if (f->fresh) {
    if (f->old_dirty) at = l2_write_back(y, slice, f->old_tag, f->old_dirty, ask, at, tally);
    f->line->ready = 0;
  }
  if (f->line->ready <= at) f->line->pending = 0;
  return at;
}

/* From DRAM, with an MSHR that is held until the data is there; misses of one piece (l2_mshr_bytes) share it. */
static ps l2_fetch(memory *y, const line_place *p, uint32_t sectors, ps ask, ps begin, const tally *tally) {
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

/* Write-through: to memory at once, with an MSHR until it is there. Returns when that MSHR was to be had. */
static ps l2_write(memory *y, const line_place *p, const request *r, ps ask, ps at) {
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

/* At the slice that the address belongs to, which the request reaches at `at`, for these sectors. Returns when its data
 * leaves. */
static inline ps l2_home(memory *y, const line_place *p, const request *r, const found *f, ps ask, ps at) {
  l2_slice *slice = p->slice;
  cache_line *line = f->line;
  ps service = y->t->l2_service[sector_count(f->have | f->missing)], others = 0;
  if (r->op == TRACE_ATOMIC) { /* one lane per cycle; the papers' machines answer with the first */
    if (y->spec->alu_latency > 0 && r->lanes) others = (r->lanes - 1) * y->t->cycle;
    if (r->lanes * y->t->cycle > service) service = r->lanes * y->t->cycle;
  }
  ps data = l2_replace(y, slice, f, ask, server_take(&slice->port, ask, at, service), r->tally);
  if (y->stacks && f->have && r->op == TRACE_LOAD) versions_l2_hit(y->stacks, r->address, line->filled);
  COUNT(r->tally, l2_hits, sector_count(f->have));
  COUNT(r->tally, l2_misses, sector_count(f->missing));
  if (r->op == TRACE_STORE) {
    if (y->spec->l2_write_through) return l2_write(y, p, r, ask, data);
    return f->back ? l2_write_back(y, slice, f->back_tag, f->back, ask, data, r->tally) : data;
  }
  ps begin = data;
  if (f->have & line->pending) data = line->ready;
  if (f->missing) {
    ps filled = l2_fetch(y, p, sector_count(f->missing), ask, begin, r->tally);
    if (!line->pending || line->ready < filled) line->ready = filled;
    line->pending |= f->missing;
    if (data < filled) data = filled;
  }
  if (r->op == TRACE_ATOMIC && y->spec->l2_write_through) l2_write(y, p, r, ask, data);
  else if (f->back) l2_write_back(y, slice, f->back_tag, f->back, ask, begin, r->tally);
  return data + others;
}

/* ---- an L2 of two sides ---- */

/* The slice of the other side that keeps copies of this one's lines, in the set with the same number. */
static inline l2_slice *twin(const memory *y, const line_place *p) { return &y->slices[p->number ^ 1]; }

/* Is the line the other side's for this SM, so that its loads look for a copy at the twin first? */
static inline bool copied(const memory *y, const line_place *p, uint32_t sm) {
  return y->crossing && (p->number & 1) != (sm & 1);
}

/* All of an access to an L2 of two sides. */
struct l2_way {
  line_place home;    /* where it is, for l2_take */
  found own, copy;    /* at the home slice; at its twin, for a load of a line of the other side */
  cache_line *uncopy; /* the twin's line, where what is written is no longer in it; NULL: there is none */
  bool far;           /* the line is the other side's */
};

size_t l2_way_bytes(void) { return sizeof(l2_way); }

/* Loads are served by the SM's side, with copies of the other's lines; stores and atomics by the line's own. */
__attribute__((always_inline)) static inline void find_way(const memory *y, const request *r, const line_place *p,
                                                           l2_way *way, l2_turn *turn) {
  way->far = (p->number & 1) != (r->sm & 1);
  way->uncopy = NULL;
  uint32_t sectors = r->sectors;
  bool load = r->op == TRACE_LOAD;
  if (load && way->far) {
    /* what persists is the line, not its copy */
    trace_l2_priority priority = r->priority == TRACE_L2_LAST ? TRACE_L2_PLAIN : (trace_l2_priority)r->priority;
    find_line(y, twin(y, p), p, sectors, priority, &way->copy);
    sectors = way->copy.missing;
  } else if (!load) {
    way->uncopy = cache_find(&twin(y, p)->cache, p->set, p->tag);
    if (way->uncopy) way->uncopy->valid &= (uint8_t)~sectors;
  }
  if (sectors) find_home(y, p, sectors, r->op, (trace_l2_priority)r->priority, &way->own);
  *turn = (l2_turn){.sectors = way->far ? (uint8_t)sector_count(sectors) : 0,
                    .there = (r->sm & 1) ^ !load,
                    .at = r->ask + y->t->l2_there + (load ? y->t->side : 0)};
}

void l2_find(const memory *y, const request *r, const line_place *p, l2_way *way, l2_turn *turn) {
  way->home = *p;
  find_way(y, r, &way->home, way, turn);
}

void l2_cross(memory *y, l2_turn *turn) {
  if (turn->sectors) turn->at = server_turn(&y->crossing[turn->there], turn->at, y->t->crossing[turn->sectors]);
}

/* Over to the other side: when all is there that comes to the way at `at`. */
static ps over_there(const memory *y, const l2_turn *turn, ps at) {
  return (turn->at > at ? turn->at : at) + y->t->crossing[turn->sectors];
}

/* A load of a line of the other side, at its copy on this side: what comes at that slice before it asks over there. */
typedef struct copy_asks {
  ps data, begin; /* when what it has is there; when it asks for the rest, of which an MSHR waits */
} copy_asks;

static inline copy_asks copy_begin(memory *y, const request *r, const found *f, l2_slice *slice, ps ask, ps at) {
  cache_line *line = f->line;
  ps begin = server_take(&slice->port, ask, at, y->t->l2_service[sector_count(r->sectors)]);
  begin = l2_replace(y, slice, f, ask, begin, r->tally);
  COUNT(r->tally, l2_hits, sector_count(f->have));
  ps data = f->have & line->pending ? line->ready : begin;
  return (copy_asks){data, f->missing ? slots_wait(&slice->mshrs, begin) : begin};
}

/* `filled`: when the rest is there. */
static inline ps copy_end(const found *f, l2_slice *slice, const copy_asks *asks, ps filled) {
  cache_line *line = f->line;
  slots_hold(&slice->mshrs, filled);
  if (!line->pending || line->ready < filled) line->ready = filled;
  line->pending |= f->missing;
  return asks->data < filled ? filled : asks->data;
}

/* The way to the other side and back takes `side`: what is asked there comes after half of it. */
__attribute__((always_inline)) static inline ps take_way(memory *y, const request *r, const line_place *home,
                                                         const l2_way *way, const l2_turn *turn) {
  ps half = y->t->side / 2, ask = r->ask + y->t->l2_there, at = r->at + y->t->l2_there, back = y->t->l2_back;
  bool copied = way->far && r->op == TRACE_LOAD;
  copy_asks asks = {0};
  if (way->uncopy) way->uncopy->pending &= (uint8_t)~r->sectors;
  if (copied) {
    asks = copy_begin(y, r, &way->copy, twin(y, home), ask, at);
    if (!way->copy.missing) return asks.data + back;
    at = asks.begin + half;
  } else if (way->far) {
    at = over_there(y, turn, at) + half;
  }
  if (way->far) ask += half;
  ps over = l2_home(y, home, r, &way->own, ask, at);
  if (way->far) over += y->t->side - half;
  if (copied) over = copy_end(&way->copy, twin(y, home), &asks, over_there(y, turn, over));
  return over + back;
}

ps l2_take(memory *y, const request *r, const l2_way *way, const l2_turn *turn) {
  return take_way(y, r, &way->home, way, turn);
}

static inline ps l2_two_sides(memory *y, const request *r, const line_place *p) {
  l2_way way;
  l2_turn turn;
  find_way(y, r, p, &way, &turn);
  l2_cross(y, &turn);
  return take_way(y, r, p, &way, &turn);
}

/* Of a line that is there. */
static inline ps l2_at(memory *y, const request *r, const line_place *p) {
  if (y->crossing) return l2_two_sides(y, r, p);
  found f;
  find_home(y, p, r->sectors, r->op, (trace_l2_priority)r->priority, &f);
  ps side = side_latency(y, r);
  return l2_home(y, p, r, &f, r->ask + y->t->l2_there + side / 2, r->at + y->t->l2_there + side / 2) + y->t->l2_back +
         side - side / 2;
}

ps l2_access_at(memory *y, const request *r, const line_place *p) { return l2_at(y, r, p); }

ps l2_access(memory *y, const request *r) {
  line_place p = l2_place(y, r->address);
  return l2_at(y, r, &p);
}

static bool drop_from(l2_slice *slice, const line_place *p) {
  cache_line *line = cache_find(&slice->cache, p->set, p->tag);
  if (line) cache_retag(&slice->cache, p->set, line, 0);
  return line != NULL;
}

bool l2_drop(memory *y, uint64_t physical) {
  line_place p = l2_place(y, physical);
  if (y->crossing) drop_from(twin(y, &p), &p);
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
    line_place p = l2_place(y, physical);
    any = cache_find(&p.slice->cache, p.set, p.tag) || (y->crossing && cache_find(&twin(y, &p)->cache, p.set, p.tag));
  }
  return any;
}

ps channel_take(memory *y, uint64_t physical, ps at) {
  line_place p = l2_place(y, physical);
  return server_take(&p.slice->channel->bus, at, at, y->t->dram_read[4]) + y->t->dram_read[4];
}

void l2_warm(memory *y, uint64_t physical, uint32_t sectors, trace_access_op op) {
  line_place p = l2_place(y, physical);
  uint64_t old_tag;
  cache_taken taken;
  cache *c = &p.slice->cache;
  if (c->ranks) {
    take_ranked(y, c, &p, TRACE_L2_PLAIN, &taken);
    if (taken.fresh) taken.line->pending = 0, taken.line->ready = 0;
  }
  cache_line *line = cache_find(c, p.set, p.tag);
  if (!line) cache_retag(c, p.set, line = cache_victim(c, p.set, &old_tag), p.tag);
  line->valid |= (uint8_t)sectors;
  if ((op == TRACE_STORE || op == TRACE_ATOMIC) && !y->spec->l2_write_through)
    cache_write(c, p.set, line, (uint8_t)sectors, &old_tag);
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

void l2_control(memory *y, const trace_l2_controls *controls, uint32_t *resets) {
  if (!y->ranks) return;
  const machine_spec *spec = y->spec;
  uint64_t slice = spec->l2_bytes / spec->l2_slices / TRACE_LINE_BYTES, most = slice * 3 / 4;
  uint64_t lines = controls->set_aside / spec->l2_slices / TRACE_LINE_BYTES;
  y->lasts = !controls->set_aside || lines > most ? most : lines;
  /* a launch of before it, on another stream, may begin later */
  if ((int32_t)(controls->resets - *resets) <= 0) return;
  *resets = controls->resets;
  for (uint64_t i = 0; i < spec->l2_slices; i++) cache_forget_last(&y->slices[i].cache);
}

trace_l2_priority l2_priority(const memory *y, const trace_l2_controls *controls, uint64_t access, uint64_t address) {
  if (!y->ranks) return TRACE_L2_PLAIN;
  uint32_t flags = trace_access_flags(access);
  if (flags & TRACE_L2_PRIORITY) return flags & TRACE_STREAMING ? TRACE_L2_FIRST : TRACE_L2_LAST;
  uint64_t before = controls->address & (TRACE_LINE_BYTES - 1); /* of its first line: whole lines have a priority */
  if (address - (controls->address - before) >= controls->bytes + before) return TRACE_L2_PLAIN;
  uint8_t priority = trace_l2_share(address) < controls->share ? controls->hit : controls->miss;
  if (priority == TRACE_L2_LAST && !controls->set_aside) return TRACE_L2_PLAIN;
  return (trace_l2_priority)priority;
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

/* The line's place, and its set in an L1 as large as this SM's. */
static inline const known_line *known_line_at(memory *y, const sm *m, uint64_t physical) {
  uint64_t tag = (physical >> 7) + 1;
  known_line *known = &y->known[tag * UINT64_C(0x9e3779b97f4a7c15) >> (64 - KNOWN_LINES_BITS)];
  if (known->place.tag != tag) {
    find_place(y, physical & ~UINT64_C(127), &known->place);
    known->l1_sets = 0;
  }
  if (known->l1_sets != m->l1.sets.by) {
    known->l1_set = l1_set(m, physical);
    known->l1_sets = (uint32_t)m->l1.sets.by;
  }
  return known;
}

__attribute__((always_inline)) static inline void prefetch_slice_far(const memory *y, const line_place *p,
                                                                     uint32_t sm) {
  cache_prefetch_far(&p->slice->cache, p->set, p->tag);
  if (copied(y, p, sm)) cache_prefetch_far(&twin(y, p)->cache, p->set, p->tag);
}

__attribute__((always_inline)) static inline void prefetch_slice_near(const memory *y, const line_place *p,
                                                                      uint32_t sm) {
  slots_prefetch(&p->slice->mshrs);
  __builtin_prefetch(p->bank);
  cache_prefetch_near(&p->slice->cache, p->set, p->tag);
  if (!copied(y, p, sm)) return;
  slots_prefetch(&twin(y, p)->mshrs);
  cache_prefetch_near(&twin(y, p)->cache, p->set, p->tag);
}

void memory_prefetch_far(memory *y, const sm *m, uint64_t address) {
  if (!peek(y, &address)) return;
  const known_line *known = known_line_at(y, m, address);
  prefetch_slice_far(y, &known->place, m->index);
  cache_prefetch_far(&m->l1, known->l1_set, l1_tag(m, address));
}

void memory_prefetch_near(memory *y, const sm *m, uint64_t address) {
  if (!peek(y, &address)) return;
  const known_line *known = known_line_at(y, m, address);
  prefetch_slice_near(y, &known->place, m->index);
  cache_prefetch_near(&m->l1, known->l1_set, l1_tag(m, address));
}

void l2_prefetch_far(const memory *y, const line_place *p, uint32_t sm) { prefetch_slice_far(y, p, sm); }
void l2_prefetch_near(const memory *y, const line_place *p, uint32_t sm) { prefetch_slice_near(y, p, sm); }

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
void network_out(const memory *y, request *r) {
  if (y->network && r->op != TRACE_LOAD)
    r->at = network_pass(y->network, y->t, r->sm, NETWORK_FROM_SM, sector_count(r->sectors), r->ask, r->at);
}

ps network_back(const memory *y, const request *r, ps data) {
  if (!y->network || r->op != TRACE_LOAD) return data;
  ps ask = r->ask + y->t->l2_there + y->t->l2_back;
  return network_pass(y->network, y->t, r->sm, NETWORK_TO_SM, sector_count(r->sectors), ask, data);
}

/* What memory_below_l1 is, of a line that is there. Changes r->at. */
static inline ps below_l1(memory *y, const sm *m, request *r, const line_place *p) {
  if (__builtin_expect(m->stack, 0)) return stacks_below(y->stacks, m, r);
  if (!y->network) return l2_at(y, r, p);
  network_out(y, r);
  return network_back(y, r, l2_at(y, r, p));
}

ps memory_below_l1(memory *y, const sm *m, const request *r, const line_place *p) {
  request below = *r;
  return below_l1(y, m, &below, p);
}

/* ---- parts of the L2 ---- */

uint32_t l2_slice_of(const memory *y, uint64_t physical) {
  uint64_t round;
  return y->hash ? l2_place(y, physical).number : (uint32_t)slice_interleaved(y, physical, &round);
}

static void join(uint32_t *of_slice, uint64_t count, uint32_t a, uint32_t b) {
  uint32_t from = of_slice[a], to = of_slice[b];
  for (uint64_t i = 0; i < count; i++)
    if (of_slice[i] == from) of_slice[i] = to;
}

uint32_t l2_parts(const memory *y, uint32_t *of_slice) {
  uint32_t count = (uint32_t)y->spec->l2_slices, parts = 0;
  for (uint32_t i = 0; i < count; i++) of_slice[i] = i;
  for (uint32_t i = 0; i < count; i++) {
    if (y->crossing) join(of_slice, count, i, i ^ 1);
    for (uint32_t k = 0; k < i; k++)
      if (y->slices[k].channel == y->slices[i].channel) join(of_slice, count, i, k);
  }
  for (uint32_t i = 0; i < count; i++) { /* numbered as they come: from `count` on, so far */
    if (of_slice[i] >= count) continue;
    uint32_t old = of_slice[i];
    for (uint32_t k = i; k < count; k++)
      if (of_slice[k] == old) of_slice[k] = count + parts;
    parts++;
  }
  for (uint32_t i = 0; i < count; i++) of_slice[i] -= count;
  return parts;
}

static inline ps l1_load(memory *y, sm *m, request *r, const known_line *known, ps *accepted) {
  cache_taken taken;
  cache_take(&m->l1, known->l1_set, l1_tag(m, r->address), &taken);
  cache_line *line = taken.line;
  if (taken.fresh) {
    line->ready = 0;
    line->pending = 0;
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
  ps at = slots_wait(&m->l1_mshrs, r->at);
  *accepted += at - r->at;
  r->sectors = missing;
  r->at = at;
  ps filled = below_l1(y, m, r, &known->place);
  slots_hold(&m->l1_mshrs, filled);
  if (!line->pending || line->ready < filled) line->ready = filled;
  line->valid |= missing;
  line->pending |= missing;
  return data < filled ? filled : data;
}

/* Everything that does not look into the L1: a place among `held` until the L2 has answered. */
static inline ps l1_pass(memory *y, const sm *m, slots *held, request *r, const known_line *known, ps *accepted) {
  ps at = slots_wait(held, r->at);
  *accepted += at - r->at;
  r->at = at;
  ps done = below_l1(y, m, r, &known->place);
  slots_hold(held, done);
  return done;
}

static bool places_agree(const memory *y, const sm *m, uint64_t physical, const known_line *known) {
  line_place p = l2_place(y, physical), k = known->place;
  return k.slice == p.slice && k.bank == p.bank && k.row == p.row && k.tag == p.tag && k.set == p.set &&
         k.number == p.number && known->l1_set == l1_set(m, physical);
}

ps memory_access(memory *y, sm *m, request *r, ps *accepted) {
  const known_line *known = known_line_at(y, m, r->address);
  FF_CHECK_DEEP(places_agree(y, m, r->address, known));
  *accepted = r->ask;
  if (r->op == TRACE_STORE) return l1_pass(y, m, &m->stores, r, known, accepted);
  if (r->op == TRACE_ATOMIC || r->bypass_l1) return l1_pass(y, m, &m->l1_mshrs, r, known, accepted);
  return l1_load(y, m, r, known, accepted);
}

void l1_put(sm *m, uint64_t physical, uint32_t sectors) {
  cache_taken taken;
  cache_take(&m->l1, l1_set(m, physical), l1_tag(m, physical), &taken);
  if (taken.fresh) taken.line->ready = 0, taken.line->pending = 0;
  taken.line->valid |= (uint8_t)sectors;
  taken.line->pending &= (uint8_t)~sectors;
}

/* Pinned host memory: over the link, sector by sector, in no cache of the GPU. A load holds an MSHR as any other miss,
 * a store a buffer as any other store. */
ps remote_access(memory *y, sm *m, pager_place place, const request *r, ps *accepted) {
  uint64_t bytes = (uint64_t)sector_count(r->sectors) * TRACE_SECTOR_BYTES;
  slots *held = r->op == TRACE_STORE ? &m->stores : &m->l1_mshrs;
  ps at = slots_wait(held, r->at);
  *accepted = r->ask + (at - r->at);
  COUNT(r->tally, remote_bytes, bytes);
  ps done = place.team         ? peer_reach_team(y->peers, place.team, r->op != TRACE_LOAD, bytes, r->ask, at)
            : place.device < 0 ? link_remote(y->link, r->op == TRACE_STORE, bytes, r->ask, at)
                               : peer_reach(y->peers, (uint32_t)place.device, r->op == TRACE_STORE, bytes, r->ask, at);
  slots_hold(held, done);
  return done;
}
