/* SPDX-License-Identifier: Apache-2.0 */
/* What an SM does in a round: lines that go to its L1 and wait for what is below, loads that are waited for, pages that
 * are only used, counters of its own.
 *
 * A request's answer is taken over before the SM's next round or step, in the order of the requests (round_take): the
 * L1's line says when its sectors arrive, a place of the MSHRs is held until then, the warp's load has arrived. A line
 * whose sectors are on their way for an open request has that one's number in `ready`; the next request of the line
 * keeps it as `before`.
 *
 * A translation that the SM's TLB does not have is a request, too, that is served before the lines that wait for it
 * (round_request.turn). The TLB has its entry at once, with that request's number in `ready`; a look that finds it so
 * follows it. Where the walk cache has all of it, its answer can be told at once, from tables that nothing changes in a
 * round (tlb_foresee), and is taken as told: what other SMs ask in the same round does not delay it. Else nothing in
 * the SM depends on it before the lines are answered, but for lines that the L1 has, or for which it may have no place:
 * there the SM pauses, unless it is late enough in any case, as it is where it needs a walker and all are busy.
 *
 *     sm.l1_mshrs and sm.stores together have as many open places as there are open requests that ask
 *     warp.open[i] == its requests that are not over with slot i */
#include "machine/sm/rounds.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/memory.h"

enum { COUNTS_KEPT = 64, TAKEN_AHEAD = 6 };

static round_request *request_at(const round_sm *q, uint64_t number) { return &q->requests[number & q->mask]; }
static round_taking *taking_at(const round_sm *q, uint64_t number) { return &q->takings[number & q->mask]; }

/* ---- stops and waits ---- */

void round_stop(round_sm *q, warp *w, ps time) {
  FF_CHECK(!q->stopped);
  q->stopped = w;
  q->stopped_at = time;
}

void round_pause(round_sm *q, const warp *w, ps time) {
  FF_ASSERT(q->first != q->end);              /* else nothing would ever be known that is not */
  q->paused = event_next(&q->events) >= time; /* else the other warps go on until then */
  event_push_first(&q->events, time, EVENT_WARP, w->index);
}

bool round_wait(round_sm *q, warp *w, uint32_t load, ps *time) {
  uint32_t slot = load % LOAD_RING;
  if (!w->open[slot] && w->ring[slot] <= *time) return true;
  uint32_t order = event_reserve(&q->events);
  if (w->open[slot]) {
    w->parked = 1 + slot;
    w->parked_at = *time;
    w->parked_order = order;
    return false;
  }
  w->counters->warp_stall_ps += w->ring[slot] - *time;
  event_push_reserved(&q->events, w->ring[slot], order, EVENT_WARP, w->index);
  return false;
}

/* ---- lines ---- */

/* Where counters of the SM's own belong. What is below the L1s counts there at once: it is on one thread. */
static sim_counters *whole_of(sim_counters *own) {
  return ((round_counts *)(void *)((char *)own - offsetof(round_counts, own)))->whole;
}

static void grow(round_sm *q) {
  uint64_t mask = q->mask * 2 + 1;
  round_request *requests = ff_alloc_aligned(64, (mask + 1) * sizeof *requests);
  round_taking *takings = ff_alloc_aligned(64, (mask + 1) * sizeof *takings);
  for (uint64_t n = q->first; n != q->end; n++) {
    requests[n & mask] = *request_at(q, n);
    takings[n & mask] = *taking_at(q, n);
  }
  free(q->requests);
  free(q->takings);
  q->requests = requests;
  q->takings = takings;
  q->mask = mask;
}

/* Returns the number of a new request, whose two parts hold what another one left there. */
static uint64_t make_room(round_sm *q) {
  if (__builtin_expect(q->end - q->first > q->mask, 0)) grow(q);
  return q->end++;
}

static tally tally_below(const round_sm *q, const tally *t) {
  return (tally){q->lines ? t->kernel : whole_of(t->kernel), whole_of(t->allocation)};
}

/* That of an open translation. 0, which it is not: none is waited for. */
static ps turn_of(const round_sm *q, ps translated) {
  return translated ? taking_at(q, translated & ~ROUND_OPEN)->turn : 0;
}
/* It is there no earlier. */
static ps least_of(const round_sm *q, ps translated) {
  return translated ? request_at(q, translated & ~ROUND_OPEN)->answer : 0;
}

/* Returns its number. */
static uint64_t add(round_sm *q, warp *w, const request *r, ps hold, ps translated) {
  uint64_t word = *w->record;
  ps turn = turn_of(q, translated);
  uint64_t number = make_room(q);
  *request_at(q, number) = (round_request){.ask = r->ask,
                                           .at = r->at,
                                           .address = r->address,
                                           .translated = translated,
                                           .tally = tally_below(q, r->tally),
                                           .lanes = (uint16_t)r->lanes,
                                           .priority = r->priority,
                                           .sectors = (uint8_t)r->sectors,
                                           .op = (uint8_t)r->op,
                                           .kind = ROUND_LINE};
  round_taking *k = taking_at(q, number);
  *k = (round_taking){.turn = turn > r->ask ? turn : r->ask,
                      .hold = hold,
                      .w = w,
                      .slot = ROUND_NO_SLOT,
                      .copies = trace_access_flags(word) & TRACE_ASYNC_COPY,
                      .store = r->op == TRACE_STORE};
  if (trace_access_is_load(word)) {
    k->slot = (uint8_t)(w->loads % LOAD_RING);
    w->open[k->slot]++;
  }
  w->open_copies += k->copies;
  return number;
}

/* It is served between two rounds. */
static void goes_out(round_sm *q, uint64_t number, uint8_t group) {
  const round_request *e = request_at(q, number);
  round_taking *k = taking_at(q, number);
  bool line = e->kind == ROUND_LINE;
  k->asks = true;
  FF_PUSH(&q->asked, ((round_asked){.turn = k->turn,
                                    .number = (uint32_t)number,
                                    .sm = (uint16_t)q->m->index,
                                    .group = group,
                                    .line = line,
                                    .load = line && e->op == TRACE_LOAD}));
  if (q->last_ask < k->turn) q->last_ask = k->turn;
  if (q->open_ask > k->turn) q->open_ask = k->turn;
  ps answer = k->turn + q->length;
  if (__builtin_expect(answer >= q->until, 1)) return;
  q->until = answer; /* a block that came late: the SM is behind the others */
  q->events.horizon = answer - 1;
  if (q->events.next_time >= answer) q->events.next_time = answer - 1;
}

/* It goes below the L1, and holds a place of these from `at` on. */
static void ask(round_sm *q, const memory *y, uint64_t number, slots *held, ps *accepted) {
  round_request *e = request_at(q, number);
  ps at = e->translated ? e->at : slots_wait(held, e->at);
  *accepted += at - e->at;
  e->at = at;
  slots_hold(held, SLOTS_OPEN);
  goes_out(q, number, q->groups ? q->groups[l2_slice_of(y, e->address)] : 0);
}

/* Which place is free first is known: no open one is before `until`, and one that is would be taken in place of a later
 * one even by who comes after both. For a line that comes later than is known, a place is free by then, too. */
static bool has_place(const round_sm *q, const slots *held, ps at, ps translated) {
  ps first = held->until[held->first];
  return (first <= q->until || !slots_open(held)) && (!translated || first <= at);
}

static bool load_access(round_sm *q, const memory *y, warp *w, const request *r, ps hold, ps translated, ps *accepted,
                        ps *data) {
  sm *m = q->m;
  ps at = r->at, least = least_of(q, translated);
  if (at < least) at = least;
  uint32_t set = l1_set(m, r->address);
  uint64_t tag = l1_tag(m, r->address), old_tag;
  cache_line *line = cache_find(&m->l1, set, tag);
  ps ready = line ? line->ready : 0;
  uint8_t pending = line && ready > at ? line->pending : 0;
  if (pending && ready >= ROUND_OPEN && r->at >= q->until) return false; /* they may have arrived by then */
  uint8_t wanted = y->spec->l1_line_fills ? 15 : (uint8_t)r->sectors, have = line ? line->valid & wanted : 0,
          missing = wanted & (uint8_t)~have;
  bool early = translated && at + y->t->l1 < turn_of(q, translated) + q->length;
  if (translated && (pending || (!missing && early))) return false; /* what it finds, or when, depends on that */
  if (missing && !has_place(q, &m->l1_mshrs, at, translated)) return false;
  if (!line) cache_retag(&m->l1, set, line = cache_victim(&m->l1, set, &old_tag), tag);
  line->pending = pending;
  COUNT(r->tally, l1_hits, sector_count(have));
  COUNT(r->tally, l1_misses, sector_count(missing));
  bool waits = have & pending;
  *data = r->at + y->t->l1;
  if (!missing && !translated && (!waits || ready < ROUND_OPEN)) {
    if (waits && *data < ready) *data = ready;
    return true;
  }
  uint64_t number = add(q, w, r, hold, translated);
  round_taking *k = taking_at(q, number);
  k->floor = *data;
  k->before = pending ? ready : 0;
  k->waits_for_before = waits;
  *data = 0;
  if (!missing) return true;
  round_request *e = request_at(q, number);
  e->sectors = missing;
  k->line = line;
  k->tag = tag;
  ask(q, y, number, &m->l1_mshrs, accepted);
  k->floor -= e->at;
  line->ready = ROUND_OPEN | number;
  line->valid |= missing;
  line->pending |= missing;
  return true;
}

bool round_access(round_sm *q, memory *y, warp *w, const request *r, ps hold, ps translated, ps *accepted, ps *data) {
  *accepted = r->ask;
  if (r->op != TRACE_STORE && r->op != TRACE_ATOMIC && !r->bypass_l1)
    return load_access(q, y, w, r, hold, translated, accepted, data);
  slots *held = r->op == TRACE_STORE ? &q->m->stores : &q->m->l1_mshrs;
  ps least = least_of(q, translated);
  if (!has_place(q, held, r->at > least ? r->at : least, translated)) return false;
  ask(q, y, add(q, w, r, hold, translated), held, accepted);
  *data = 0;
  return true;
}

/* ---- translations ---- */

static void tlb_insert(round_sm *q, uint64_t key, ps ready, const tally *tally) {
  lru *tlb = &q->m->tlb;
  uint64_t gone;
  if (!tlb->capacity) return;
  if (lru_insert_uncounted(tlb, key, ready, &gone)) {
    COUNT(tally, tlb_evictions, 1);
    if (tlb->census) FF_PUSH(&q->census, ((round_entry){gone, false}));
  }
  if (tlb->census) FF_PUSH(&q->census, ((round_entry){key, true}));
}

void round_census(round_sm *q) {
  for (size_t i = 0; i < q->census.count; i++) lru_count(&q->m->tlb, q->census.items[i].key, q->census.items[i].in);
  q->census.count = 0;
}

ps round_translate(round_sm *q, gmmu *g, uint64_t address, const pager_unit *unit, ps ask, const tally *tally) {
  tlb_look look = tlb_look_up(g, q->m, address, unit, ask, tally);
  ps ready = look.entry ? look.entry->ready : ROUND_OPEN;
  if (ready <= look.at) return look.at;
  if (ready < ROUND_OPEN) {
    COUNT(tally, tlb_merged, 1);
    return ready;
  }
  bool foreseen = false;
  ps translated = look.entry ? ready : 0, turn = turn_of(q, translated),
     least = look.entry ? least_of(q, ready) : tlb_foresee(g, &look, address, &foreseen);
  uint64_t number = make_room(q);
  ready = foreseen ? least : ROUND_OPEN | number;
  *request_at(q, number) = (round_request){.kind = look.entry ? ROUND_FOLLOW : ROUND_WALK,
                                           .ask = ask,
                                           .at = look.at,
                                           .address = address,
                                           .answer = least > look.at ? least : look.at,
                                           .translated = look.entry ? translated : look.key,
                                           .tally = tally_below(q, tally),
                                           .lanes = (uint16_t)look.leaf};
  *taking_at(q, number) = (round_taking){.turn = turn > ask ? turn : ask, .slot = ROUND_NO_SLOT, .foreseen = foreseen};
  goes_out(q, number, 0);
  if (look.entry) return ready;
  tlb_insert(q, look.key, ready, tally);
  return ready;
}

ps round_translated(const round_sm *q, const round_request *e) {
  if (e->translated < ROUND_OPEN) return e->translated;
  const round_request *asked = request_at(q, e->translated & ~ROUND_OPEN);
  FF_CHECK(asked->answered);
  return asked->answer;
}

static void seen_known(load_store *u, ps open, ps ready) {
  for (uint32_t i = 0; i < u->seen_count; i++)
    if (u->seen[i].ready == open) u->seen[i].ready = ready;
}

/* What has its number in place of a time. */
static void translation_known(round_sm *q, const round_request *e, uint64_t number) {
  ps open = ROUND_OPEN | number;
  lru_entry *entry = e->kind == ROUND_WALK ? lru_peek(&q->m->tlb, e->translated) : NULL;
  if (entry && entry->ready == open) entry->ready = e->answer;
  seen_known(&q->m->lsu, open, e->answer);
  seen_known(&q->m->bulk, open, e->answer);
}

/* ---- answers ---- */

/* The warp's line has arrived. */
static void arrive(round_sm *q, const round_taking *k, ps arrival) {
  warp *w = k->w;
  if (w->block->drained < arrival) w->block->drained = arrival;
  if (k->copies) {
    w->open_copies--;
    if (w->copied < arrival) w->copied = arrival;
  }
  if (k->slot == ROUND_NO_SLOT) return;
  ps *load = &w->ring[k->slot];
  if (*load < arrival) *load = arrival;
  if (--w->open[k->slot] || w->parked != 1 + (uint32_t)k->slot) return;
  ps time = *load > w->parked_at ? *load : w->parked_at;
  FF_CHECK(time >= q->until); /* the SM has run up to then */
  w->counters->warp_stall_ps += time - w->parked_at;
  w->parked = 0;
  event_push_reserved(&q->events, time, w->parked_order, EVENT_WARP, w->index);
}

/* false: what it waits for is not known yet. */
static bool take(round_sm *q, round_request *e, round_taking *k, uint64_t number) {
  bool translates = e->kind != ROUND_LINE;
  if (e->kind != ROUND_WALK && e->translated >= ROUND_OPEN) { /* that one may be gone when this one is served */
    const round_request *asked = request_at(q, e->translated & ~ROUND_OPEN);
    if (asked->answered) e->translated = asked->answer;
  }
  if (k->before >= ROUND_OPEN) {
    uint64_t earlier = k->before & ~ROUND_OPEN;
    if (!taking_at(q, earlier)->over) return false;
    k->before = request_at(q, earlier)->answer;
  }
  if (k->asks ? !e->answered : e->translated >= ROUND_OPEN) return false;
  k->over = true;
  if (translates) {
    if (!k->foreseen) translation_known(q, e, number);
    return true;
  }
  ps data = k->line ? e->at + k->floor : k->floor;
  if (!k->asks && e->translated > e->at) data += e->translated - e->at;
  if (k->asks) {
    if (data < e->answer) data = e->answer;
    slots_answer(k->store ? &q->m->stores : &q->m->l1_mshrs, e->answer);
  }
  if (k->waits_for_before && data < k->before) data = k->before;
  if (k->line) { /* sectors that were on their way may come later than these */
    if (e->answer < k->before) e->answer = k->before;
    if (k->line->tag == k->tag && k->line->ready == (ROUND_OPEN | number)) k->line->ready = e->answer;
  }
  arrive(q, k, data + k->hold);
  return true;
}

void round_take(round_sm *q) {
  if (!q->answers) return;
  q->answers = 0;
  q->open_ask = UINT64_MAX;
  for (uint64_t n = q->first; n != q->end; n++) {
    round_taking *k = taking_at(q, n);
    const round_taking *soon = taking_at(q, n + TAKEN_AHEAD); /* what stands there after the last does no harm */
    if (soon->line) __builtin_prefetch(soon->line);
    if (soon->w && soon->slot != ROUND_NO_SLOT) __builtin_prefetch(&soon->w->ring[soon->slot]);
    if (!k->over && !take(q, request_at(q, n), k, n) && q->open_ask > k->turn) q->open_ask = k->turn;
  }
  while (q->first != q->end && taking_at(q, q->first)->over) q->first++;
}

/* ---- pages ---- */

bool round_may_use(const pager *p, const pager_unit *unit, bool writes) {
  if (pager_over_link(unit)) return false;
  if (unit->allocation == 0 || p->config.manager->placement == MANAGER_EVERYWHERE) return true;
  if (unit->state != PAGER_RESIDENT || unit->fresh || !unit->gpu_newest) return false;
  return !writes ||
         (unit->written && !unit->cpu_newest && !unit->duplicate && !p->allocations.items[unit->allocation].on_cpu);
}

/* *at becomes `time` if that is later, whatever other threads do. */
static void later(uint64_t *at, uint64_t time) {
  uint64_t old = __atomic_load_n(at, __ATOMIC_RELAXED);
  while (old < time && !__atomic_compare_exchange_n(at, &old, time, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
}

void round_note(pager *p, pager_unit *unit, uint64_t address, ps now) {
  if (unit->allocation == 0 || p->config.manager->placement == MANAGER_EVERYWHERE) return;
  if (p->config.evict)
    later(&pager_chunk_at(p, address)->group_use[address / FF_GROUP_BYTES % (FF_BLOCK_BYTES / FF_GROUP_BYTES)], now);
  later(&unit->last_use, now);
  uint32_t bit = pager_used_bit(p, address);
  if (!(__atomic_load_n(&unit->used, __ATOMIC_RELAXED) & bit)) __atomic_fetch_or(&unit->used, bit, __ATOMIC_RELAXED);
}

/* ---- counters ---- */

static round_counts **place_of(const round_sm *q, const sim_counters *whole) {
  uint32_t at = (uint32_t)((uintptr_t)whole * UINT64_C(0x9e3779b97f4a7c15) >> 32) & q->count_mask;
  while (q->counts[at] && q->counts[at]->whole != whole) at = (at + 1) & q->count_mask;
  return &q->counts[at];
}

static void counts_grow(round_sm *q) {
  round_counts **old = q->counts;
  uint32_t size = old ? q->count_mask + 1 : 0;
  q->count_mask = old ? q->count_mask * 2 + 1 : 15;
  q->counts = ff_alloc((q->count_mask + 1) * sizeof *q->counts);
  for (uint32_t i = 0; i < size; i++)
    if (old[i]) *place_of(q, old[i]->whole) = old[i];
  free(old);
}

sim_counters *round_counters(round_sm *q, sim_counters *whole) {
  if (!q->counts || 2 * q->count_number > q->count_mask) counts_grow(q);
  round_counts **place = place_of(q, whole);
  if (!*place) {
    *place = ff_alloc(sizeof **place);
    (*place)->whole = whole;
    q->count_number++;
    FF_PUSH(&q->touched, *place);
  }
  return &(*place)->own;
}

void round_counts_add(round_sm *q) {
  for (size_t i = 0; i < q->touched.count; i++) {
    round_counts *c = q->touched.items[i];
#define X(name, unit, help) c->whole->name += c->own.name;
#include "machine/observe/counters.def"
#undef X
    c->own = (sim_counters){0};
  }
  if (q->m->blocks || q->first != q->end || q->touched.count < COUNTS_KEPT) return; /* who runs counts there on */
  for (size_t i = 0; i < q->touched.count; i++) free(q->touched.items[i]);
  memset(q->counts, 0, (q->count_mask + 1) * sizeof *q->counts);
  q->touched.count = q->count_number = 0;
}
