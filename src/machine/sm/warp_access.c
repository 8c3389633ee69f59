/* SPDX-License-Identifier: Apache-2.0 */
/* One warp's access: its lines go through the SM's load/store unit, one per cycle or as many as the L1 looks up and its
 * banks serve, in the order in which the accesses came; each page is translated once, and each translated line goes
 * down (hierarchy.c). Lines whose page is absent stay in `todo`; the warp sleeps and tries those again when it is woken
 * (hits under misses: the others have gone).
 *
 * A line that waits for an MSHR holds the unit up. What is below may be asked only nearly in order of time, so a line
 * goes no further than `ahead` beyond the next event: an access that is held up longer keeps the unit and comes back,
 * and the other warps of the SM wait in the unit's queue.
 *
 * All that an access is asked again and again is compiled three times: `kind` is a constant in each copy. A plain
 * simulation (access_path.plain) has no rounds, no memory stacks, no tiers, and writes no future; and spills go to
 * local memory, which is in no page. */
#include "machine/host/tier_store.h"
#include "machine/memory/address_map.h"
#include "machine/memory/far_fault.h"
#include "machine/memory/hierarchy.h"
#include "machine/memory/tlb.h"
#include "machine/observe/observer.h"
#include "machine/sm/load_store.h"
#include "machine/sm/rounds.h"
#include "machine/sm/sm.h"
#include "machine/stacks/controller.h"
#include "machine/stacks/learn.h"

typedef enum path_kind { ANY_PATH, PLAIN_PATH, LOCAL_PATH } path_kind;

typedef struct progress { /* of one call of access_continue */
  access_path *path;
  sm *m;
  load_store *by; /* that makes the access */
  warp *w;
  kernel *k;
  ps at;           /* when the unit takes the next line */
  ps step, hold;   /* from line to line; what the last one takes more */
  ps pair;         /* by how much the unit is free earlier, as two lines go together */
  uint64_t window; /* unit of memory that `unit` and `tally` belong to */
  pager_unit *unit;
  tally tally;
  bool blocked;
  bool refused; /* in a round: the next line goes later, */
  bool stops;   /* and that is between two */
  bool batches; /* far-faults are served in batches: the warp goes on with each page that has come */
} progress;

/* Bulk copies are made by an engine of their own. */
static inline load_store *maker(const warp *w) {
  return trace_access_flags(*w->record) & TRACE_BULK ? &w->sm->bulk : &w->sm->lsu;
}

/* What is not counted for kernel and allocation alone. */
static void watch(access_path *a, warp *w, const uint64_t *record, const pager_unit *unit, ps time) {
  kernel_lines *lines = w->block->kernel->lines;
  if (a->observer->history) record_access(a->observer, unit, trace_line_address(record[2]), time);
  if (lines) w->counted = lines_at(lines, trace_access_pc(*record));
}

static tally tally_in(const access_path *a, const warp *w, const pager_unit *unit) {
  tally t = tally_of(a->observer, w, unit);
  if (a->round) t.allocation = round_counters(a->round, t.allocation);
  return t;
}

/* Of what is in no allocation. */
static tally tally_elsewhere(const access_path *a, const warp *w) {
  tally t = {w->counted, &a->observer->allocations.items[0]->counters};
  if (a->round) t.allocation = round_counters(a->round, t.allocation);
  return t;
}

static void count_access(access_path *a, warp *w, const uint64_t *record, ps time) {
  trace_access_op op = trace_access_operation(*record);
  const pager_unit *unit = pager_find(a->pager, trace_line_address(record[2]));
  if (a->observer->watched) watch(a, w, record, unit, time);
  tally t = tally_in(a, w, unit);
  COUNT(&t, accesses, 1);
  if (op == TRACE_LOAD) COUNT(&t, load_accesses, 1);
  if (op == TRACE_STORE) COUNT(&t, store_accesses, 1);
  if (op == TRACE_ATOMIC) COUNT(&t, atomic_accesses, 1);
}

static uint64_t lines_from(const uint64_t *record, uint32_t first) {
  uint32_t left = trace_access_lines(*record) - first;
  return left >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << left) - 1;
}

/* In a round: may the access begin? Else it does later, and is read again then. */
static bool round_begins(access_path *a, warp *w, const uint64_t *record, ps *time) {
  w->cursor.at = record;
  if (trace_access_is_load(*record) && w->loads >= LOAD_RING && !round_wait(a->round, w, w->loads - LOAD_RING, time))
    return false;
  if (!pager_knows(a->pager, trace_line_address(record[2]))) {
    round_stop(a->round, w, *time);
    return false;
  }
  trace_cursor_next(NULL, &w->cursor); /* past it again: it is whole, and where it was */
  return true;
}

/* In the ring of the warp's loads: the load before the last LOAD_RING must have arrived. */
static inline void load_takes_place(warp *w, ps *time) {
  ps *arrival = &w->ring[w->loads % LOAD_RING];
  if (w->loads >= LOAD_RING && *arrival > *time) {
    w->counters->warp_stall_ps += *arrival - *time;
    *time = *arrival;
  }
  *arrival = 0;
}

bool access_begin(access_path *a, warp *w, const uint64_t *record, ps *time) {
  if (!trace_access_lines(*record)) return true; /* no lane was active */
  if (a->round && !round_begins(a, w, record, time)) return false;
  if (trace_access_is_load(*record)) load_takes_place(w, time);
  count_access(a, w, record, *time);
  w->record = record;
  w->first_line = 0;
  w->todo = lines_from(record, 0);
  w->arrival = *time;
  if (__builtin_expect(w->marked, 0)) controller_access(a->controller, w, record, *time);
  return true;
}

/* Where local memory lies, for the caches: below all addresses of the GPU's (docs/trace.md). Of each of a thread's
 * words the warps' lines lie side by side, by the warps' numbers; the next word's are a prime number of lines away, so
 * that those of a warp are spread over the sets of a cache. A warp that begins has the lines of one that has ended. */
#define LOCAL_MEMORY (UINT64_C(1) << 44)
#define WARPS_APART UINT64_C(65537)

/* Local memory is in no page that a manager sees: it is there, and no translation is asked for. On a machine with
 * memory stacks it stays on the chip, and takes no time. */
bool spill_begin(access_path *a, warp *w, const uint64_t *record, ps *time) {
  bool store = trace_spill_stores(*record);
  uint32_t words = trace_spill_words(*record), sectors = trace_spill_sectors(*record), mask = 0;
  FF_CHECK(words && words <= TRACE_SPILL_WORDS && sectors); /* readers of files see to it */
  if (!store) {
    if (a->round && w->loads >= LOAD_RING) {
      w->cursor.at = record;
      if (!round_wait(a->round, w, w->loads - LOAD_RING, time)) return false;
      trace_cursor_next(NULL, &w->cursor);
    }
    load_takes_place(w, time);
  }
  if (a->memory->stacks) {
    w->loads += !store; /* it has arrived */
    return true;
  }
  kernel_lines *lines = w->block->kernel->lines;
  if (lines) w->counted = lines_at(lines, trace_spill_pc(*record));
  tally t = tally_elsewhere(a, w);
  if (store) COUNT(&t, spill_stores, 1);
  else COUNT(&t, spill_loads, 1);
  for (uint32_t n = 0; n < 4; n++) mask |= sectors >> n & 1 ? 0xffu << 8 * n : 0;
  w->spill[0] = TRACE_ACCESS | (uint64_t)(store ? TRACE_STORE : TRACE_LOAD) << 4 | 2 << 6 | (uint64_t)words << 16 |
                (uint64_t)trace_spill_pc(*record) << 32;
  w->spill[1] = mask;
  for (uint32_t n = 0; n < words; n++)
    w->spill[2 + n] =
        trace_line(LOCAL_MEMORY + ((trace_spill_slot(*record) + n) * WARPS_APART + w->index) * TRACE_LINE_BYTES,
                   (uint32_t)__builtin_popcount(mask), sectors);
  w->local = true;
  w->issued = false;
  w->record = w->spill;
  w->first_line = 0;
  w->todo = lines_from(w->spill, 0);
  w->arrival = *time;
  return true;
}

static uint64_t seen_bit(uint64_t page) { return UINT64_C(1) << (page * UINT64_C(0x9e3779b97f4a7c15) >> 58); }

static void see(progress *p, uint64_t page, uint8_t alias_tag, ps ready, bool here) {
  load_store *lsu = p->by;
  load_store_refresh(lsu);
  if (lsu->seen_count == SEEN_PAGES) load_store_forget(lsu); /* the TLB is only asked again */
  lsu->seen[lsu->seen_count++] = (seen_page){page, ready, alias_tag, here};
  lsu->seen_filter |= seen_bit(page);
}

/* NULL: the access has not asked for it. */
static const seen_page *seen_find(progress *p, uint64_t page, uint8_t alias_tag) {
  load_store *lsu = p->by;
  load_store_refresh(lsu);
  if (!(lsu->seen_filter & seen_bit(page))) return NULL;
  for (uint32_t i = lsu->seen_count; i-- > 0;)
    if (lsu->seen[i].page == page && lsu->seen[i].alias_tag == alias_tag) return &lsu->seen[i];
  return NULL;
}

/* The line's page has not come, and the warp will be told. Units that share a window with others are asked after. */
static void wait_for(const progress *p, uint64_t bit) {
  p->w->waiting |= bit;
  if (!p->unit->alias_tag) p->w->unserved |= bit;
}

/* Pages that it waited for have come, the line's has not. The pager is asked only where the warp does not know. */
static inline bool waits_still(const progress *p, uint64_t bit) {
  warp *w = p->w;
  if (!w->waiting_units) w->waiting = 0;
  if (!p->batches || !w->waiting_units) return false;
  bool absent = p->unit->state == PAGER_ABSENT || p->unit->state == PAGER_IN_FLIGHT;
  if (w->waiting & bit && absent) return true;
  w->waiting &= ~bit;
  if (!pager_warp_waits(p->path->pager, p->m->index, w->index, p->unit)) return false;
  wait_for(p, bit);
  return true;
}

/* The line waits on: its far-fault is not over, as the warp knows without a look at the page. After a pause of the
 * access the page may be among the seen ones twice: nothing comes of that. */
static void wait_unserved(progress *p, uint64_t line, uint64_t bit) {
  p->w->waiting |= bit;
  see(p, trace_line_address(line) >> p->path->gmmu->seen_shift, 0, 0, false);
}

/* Translates the line's page, unless that was done for this access. false: the line must wait. *ready: when it may
 * go. */
__attribute__((always_inline)) static inline bool translate(progress *p, uint64_t address, uint64_t bit, ps *ready,
                                                            const bool plain) {
  sm *m = p->m;
  uint64_t page = address >> p->path->gmmu->seen_shift;
  const seen_page *seen = seen_find(p, page, p->unit->alias_tag);
  if (seen) {
    *ready = seen->ready;
    return seen->here;
  }
  if (!plain && p->path->round) {
    *ready = round_translate(p->path->round, p->path->gmmu, address, p->unit, p->at, &p->tally);
    see(p, page, p->unit->alias_tag, *ready, true);
    return true;
  }
  if (waits_still(p, bit)) {
    see(p, page, p->unit->alias_tag, 0, false);
    return false;
  }
  translation result = tlb_translate(p->path->gmmu, m, p->w, address, p->unit, p->at, p->at, ready, &p->tally);
  if (result == TRANSLATION_ABSENT) p->w->waiting_units++;
  if (result == TRANSLATION_ABSENT && p->batches) wait_for(p, bit);
  p->blocked = m->tlb_blocked;
  if (result == TRANSLATION_BLOCKED) return false;
  see(p, page, p->unit->alias_tag, *ready, result == TRANSLATION_DONE);
  return result == TRANSLATION_DONE;
}

/* An access without a priority of its own, in a kernel without a window, has none. */
__attribute__((always_inline)) static inline void rank(const progress *p, uint64_t word, uint64_t line, request *r) {
  const trace_l2_controls *l2 = &p->k->l2;
  if (__builtin_expect(l2->bytes || trace_access_flags(word) & TRACE_L2_PRIORITY, 0))
    r->priority = (uint8_t)l2_priority(p->path->memory, l2, word, trace_line_address(line));
}

/* In a round. false: later, or (`stops`) in none. */
static bool round_line(progress *p, uint64_t word, uint64_t line, ps ready) {
  access_path *a = p->path;
  uint64_t address = trace_line_address(line), physical = address | a->map->space;
  if (a->map->hash && !address_map_peek(a->map, address, &physical)) return !(p->stops = true);
  request r = {.address = physical,
               .sectors = trace_line_sectors(line),
               .lanes = trace_line_lanes(line),
               .sm = p->m->index,
               .op = trace_access_operation(word),
               .bypass_l1 = trace_access_flags(word) & TRACE_BYPASS_L1,
               .ask = p->at,
               .at = ready > p->at && ready < ROUND_OPEN ? ready : p->at,
               .tally = &p->tally};
  rank(p, word, line, &r);
  ps accepted, data, translated = ready < ROUND_OPEN ? 0 : ready;
  if (!round_access(a->round, a->memory, p->w, &r, p->hold, translated, &accepted, &data)) return false;
  round_note(a->pager, p->unit, address, p->at);
  p->at = accepted + p->step;
  if (data && data + p->hold > p->w->arrival) p->w->arrival = data + p->hold;
  return true;
}

/* One line whose page is translated: down to the caches, or over the link if it is pinned host memory. */
__attribute__((always_inline)) static inline void send_line(progress *p, uint64_t word, uint64_t line, ps ready,
                                                            const bool plain) {
  access_path *a = p->path;
  request r = {.address = trace_line_address(line),
               .sectors = trace_line_sectors(line),
               .lanes = trace_line_lanes(line),
               .op = trace_access_operation(word),
               .bypass_l1 = trace_access_flags(word) & TRACE_BYPASS_L1,
               .ask = p->at,
               .at = ready > p->at ? ready : p->at,
               .tally = &p->tally};
  rank(p, word, line, &r);
  if (r.op == TRACE_STORE || r.op == TRACE_ATOMIC) pager_gpu_write(a->pager, p->unit, r.address);
  else pager_gpu_read(a->pager, p->unit, r.address);
  r.address = physical_address(a->map, r.address);
  r.sm = p->m->index;
  bool remote = pager_over_link(p->unit);
  r.block = p->w->block;
  if (!plain && __builtin_expect(p->m->stack, 0)) r.instance = &a->controller->instances.items[p->w->index];
  if (!plain && __builtin_expect(learner_delays(a->learner), 0)) {
    remote = true;
    learner_look(a->learner, p->at);
    if (learner_delays(a->learner) && (r.op == TRACE_STORE || r.op == TRACE_ATOMIC))
      learner_wrote(a->learner, r.address);
  }
  if (!plain && __builtin_expect(a->tiers && remote, 0))
    r.at = tier_reach(a->tiers, a->pager, p->unit, r.op == TRACE_STORE || r.op == TRACE_ATOMIC,
                      trace_line_address(line), sector_count(r.sectors) * (uint64_t)TRACE_SECTOR_BYTES, r.ask, r.at);
  ps accepted,
      data = remote ? remote_access(a->memory, p->m, pager_remote_place(a->pager, p->unit, trace_line_address(line)),
                                    &r, &accepted)
                    : memory_access(a->memory, p->m, &r, &accepted);
  if (!plain && __builtin_expect(a->written != NULL, 0)) trace_future_touch(a->written, trace_line_address(line));
  if (p->unit->state == PAGER_REMOTE && pager_reached(a->pager, p->unit, trace_line_address(line),
                                                      sector_count(r.sectors) * (uint64_t)TRACE_SECTOR_BYTES))
    fault_reached(a->faults, p->w->counted, trace_line_address(line), accepted);
  p->at = accepted + p->step;
  if (data + p->hold > p->w->arrival) p->w->arrival = data + p->hold;
}

/* One line of local memory. false: in a round it cannot be done, or (`stops`) in no round. */
static bool local_line(progress *p, uint64_t word, uint64_t line, uint64_t bit) {
  access_path *a = p->path;
  uint64_t address = trace_line_address(line), physical = address | a->map->space;
  if (a->map->hash && !address_map_peek(a->map, address, &physical)) {
    if (a->round) return !(p->stops = true);
    physical = address_map_find(a->map, address);
  }
  request r = {.address = physical,
               .sectors = trace_line_sectors(line),
               .lanes = trace_line_lanes(line),
               .sm = p->m->index,
               .op = trace_access_operation(word),
               .ask = p->at,
               .at = p->at,
               .block = p->w->block,
               .tally = &p->tally};
  ps accepted, data;
  if (!a->round) data = memory_access(a->memory, p->m, &r, &accepted);
  else if (!round_access(a->round, a->memory, p->w, &r, p->hold, 0, &accepted, &data)) return false;
  if (r.op == TRACE_STORE) l1_put(p->m, physical, trace_line_sectors(line));
  p->at = accepted + p->step;
  if (data && data + p->hold > p->w->arrival) p->w->arrival = data + p->hold;
  p->w->todo &= ~bit;
  return true;
}

/* In a round: nothing but to be noted is needed of the page, and its translation can be asked for, or the access has
 * done that already. */
static bool round_finds(progress *p, uint64_t address, bool writes) {
  if (!round_may_use(p->path->pager, p->unit, writes)) return false;
  const seen_page *seen = seen_find(p, address >> p->path->gmmu->seen_shift, p->unit->alias_tag);
  return seen ? seen->here : tlb_reaches(p->path->gmmu, p->m, p->unit);
}

/* false: in a round it cannot be done, or (`stops`) in no round. */
__attribute__((always_inline)) static inline bool one_line(progress *p, uint64_t word, uint64_t line, uint64_t bit,
                                                           const bool plain) {
  uint64_t address = trace_line_address(line), window = address & ~(p->path->pager->config.unit_bytes - 1);
  const bool round = !plain && p->path->round;
  trace_access_op op = trace_access_operation(word);
  if (round && !pager_knows(p->path->pager, address)) return !(p->stops = true);
  if (window != p->window || p->unit->shared || p->unit->alias_tag) {
    p->window = window;
    p->unit = pager_find(p->path->pager, address);
    p->tally = tally_in(p->path, p->w, p->unit);
  }
  ps ready;
  if (round && !round_finds(p, address, op == TRACE_STORE || op == TRACE_ATOMIC)) return !(p->stops = true);
  if (!translate(p, address, bit, &ready, plain)) return true;
  if (round && !round_line(p, word, line, ready)) return false;
  COUNT(&p->tally, lines, 1);
  COUNT(&p->tally, sectors, sector_count(trace_line_sectors(line)));
  if (!round) send_line(p, word, line, ready, plain);
  p->w->todo &= ~bit;
  return true;
}

__attribute__((always_inline)) static inline void access_over(access_path *a, warp *w, const bool plain) {
  FF_ASSERT(!w->waiting_units && !w->waiting && !w->unserved);
  uint64_t word = *w->record;
  if (!plain && __builtin_expect(w->marked, 0)) controller_accessed(a->controller, w);
  w->record = NULL;
  if (trace_access_is_load(word)) {
    ps *arrival = &w->ring[w->loads++ % LOAD_RING];
    if (*arrival < w->arrival) *arrival = w->arrival;
  }
  if (trace_access_flags(word) & TRACE_ASYNC_COPY && w->copied < w->arrival) w->copied = w->arrival;
  if (w->block->drained < w->arrival) w->block->drained = w->arrival;
}

/* ---- the unit's queue, and the engine's ---- */

/* false: the unit works for another warp: this one waits for its turn. */
static inline bool unit_enter(access_path *a, load_store *u, warp *w) {
  if (!u->owner) {
    u->owner = w->index;
    load_store_forget(u);
  }
  if (u->owner == w->index) return true;
  w->next = 0;
  if (u->last) a->warps->items[u->last]->next = w->index;
  else u->first = w->index;
  u->last = w->index;
  return false;
}

static inline void unit_leave(access_path *a, load_store *u) {
  uint32_t next = u->first;
  u->owner = next;
  load_store_forget(u);
  if (!next) return;
  u->first = a->warps->items[next]->next;
  if (!u->first) u->last = 0;
  event_push(a->heap, u->port.free, EVENT_WARP, next);
}

/* Accesses read the caches' tables all over: the host is asked for them ahead, in two steps. An access of few lines has
 * the first of them before its turn (access_prefetch). */
enum { FAR = 8, NEAR = 4, MANY_LINES = 6 };

static void prefetch_far(const access_path *a, const sm *m, uint64_t line) {
  if (a->round) l1_prefetch_far(a->memory, m, trace_line_address(line));
  else memory_prefetch_far(a->memory, m, trace_line_address(line));
}

static void prefetch_near(const access_path *a, const sm *m, uint64_t line) {
  if (a->round) l1_prefetch_near(a->memory, m, trace_line_address(line));
  else memory_prefetch_near(a->memory, m, trace_line_address(line));
}

static void prefetch_first(const progress *p, const uint64_t *lines, uint32_t count) {
  if (count < MANY_LINES) {
    for (uint32_t i = p->w->near ? NEAR : 0; i < count; i++) prefetch_near(p->path, p->m, lines[i]);
    return;
  }
  for (uint32_t i = 1; i < FAR && i < count; i++) prefetch_far(p->path, p->m, lines[i]);
  for (uint32_t i = 1; i < NEAR && i < count; i++) prefetch_near(p->path, p->m, lines[i]);
}

static void prefetch_ahead(const progress *p, const uint64_t *lines, uint32_t count, uint32_t i) {
  if (count < MANY_LINES) return;
  if (i + NEAR < count) prefetch_near(p->path, p->m, lines[i + NEAR]);
  if (i + FAR < count) prefetch_far(p->path, p->m, lines[i + FAR]);
}

void access_prefetch(const access_path *a, const warp *w) {
  if (!w->record) return;
  const load_store *u = maker(w);
  __builtin_prefetch(u);
  __builtin_prefetch(&u->seen[0].here);
  slots_prefetch(trace_access_is_load(*w->record) ? &w->sm->l1_mshrs : &w->sm->stores);
  __builtin_prefetch(&w->ring[w->loads % LOAD_RING]);
  const uint64_t *lines = w->record + 2 + w->first_line;
  uint32_t count = trace_access_lines(*w->record) - w->first_line;
  for (uint32_t i = 0; i < count && i < NEAR; i++) prefetch_far(a, w->sm, lines[i]);
}

void access_prefetch_near(const access_path *a, warp *w) {
  if (!w->record) return;
  const uint64_t *lines = w->record + 2 + w->first_line;
  uint32_t count = trace_access_lines(*w->record) - w->first_line;
  if (count >= MANY_LINES) return; /* it looks ahead by itself */
  w->near = true;
  for (uint32_t i = 0; i < count && i < NEAR; i++) prefetch_near(a, w->sm, lines[i]);
}

/* Sends what can be sent of `todo`. false: held up too long, the warp comes back later. */
__attribute__((always_inline)) static inline bool send_lines(progress *p, uint64_t limit, const path_kind kind) {
  warp *w = p->w;
  if (p->blocked) return !w->todo || p->at <= limit;
  const uint64_t *lines = w->record + 2 + w->first_line;
  uint32_t count = trace_access_lines(*w->record) - w->first_line;
  prefetch_first(p, lines, count);
  w->near = false;
  for (uint64_t left = w->todo; left && !p->blocked; left &= left - 1) {
    if (p->at > limit) return false;
    uint32_t i = (uint32_t)__builtin_ctzll(left);
    if (w->unserved & left & -left) {
      wait_unserved(p, lines[i], left & -left);
      continue;
    }
    prefetch_ahead(p, lines, count, i);
    uint64_t bit = UINT64_C(1) << i;
    if (!(kind == LOCAL_PATH ? local_line(p, *w->record, lines[i], bit)
                             : one_line(p, *w->record, lines[i], bit, kind == PLAIN_PATH))) {
      p->refused = true;
      return false;
    }
  }
  return true;
}

/* An access of n lines, k passes and m lanes has the unit for a cycle, + (n - 2) / l1_lookups where it has more than
 * two lines, or for k or m / l1_lanes if that is longer; its lines go evenly. The last holds it for what is left of
 * that. */
static inline void set_pace(progress *p, const timing *t, const uint64_t *record) {
  uint32_t lines = trace_access_lines(*record), passes = trace_access_passes(*record);
  uint32_t turns = ((uint32_t)__builtin_popcount((uint32_t)record[1]) + t->l1_lanes - 1) / t->l1_lanes;
  if (passes < turns) passes = turns;
  ps banks = passes > 1 ? (passes - 1) * t->cycle : 0;
  p->step = t->lookup;
  if (lines == 1) p->hold = banks;
  else if (banks > (lines - 2) * t->lookup) p->step = banks / (lines - 1);
  else p->pair = t->lookup;
}

/* An access by an L1 that is one memory with shared memory has its banks for as long as it had the unit, waits for
 * MSHRs aside: shared accesses wait for them. */
static inline void take_banks(const progress *p, const timing *t, sm *m, ps begun) {
  ps time = (trace_access_lines(*p->w->record) - 1) * p->step + t->cycle + p->hold - p->pair;
  server_take(&m->shared, begun, begun, time);
}

/* Of the lines that wait, of which the warp knows that they do, each has a page of its own: a page's first line asked
 * for it. */
static void check_waiting(const access_path *a, const warp *w) {
  uint32_t shift = a->gmmu->seen_shift;
  const uint64_t *lines = w->record + 2 + w->first_line;
  for (uint64_t left = w->waiting & w->unserved; left; left &= left - 1)
    for (uint64_t others = left & (left - 1); others; others &= others - 1)
      FF_ASSERT(trace_line_address(lines[__builtin_ctzll(left)]) >> shift !=
                trace_line_address(lines[__builtin_ctzll(others)]) >> shift);
}

/* A spill is an instruction: its scheduler issues it. */
static void issue_spill(const timing *t, warp *w, ps *time) {
  if (w->issued) return;
  w->issued = true;
  server_take(&w->scheduler->issue, *time, *time, t->cycle);
  if (*time < w->scheduler->issue.free) *time = w->scheduler->issue.free;
}

__attribute__((always_inline)) static inline bool continue_as(access_path *a, warp *w, ps *time, const path_kind kind) {
  sm *m = w->sm;
  load_store *u = maker(w);
  const bool plain = kind == PLAIN_PATH;
  if (kind == LOCAL_PATH) issue_spill(a->t, w, time);
  if (!unit_enter(a, u, w)) return false;
  if (u->first) __builtin_prefetch(&a->warps->items[u->first]->next); /* for unit_leave */
  if (!plain && a->round && kind != LOCAL_PATH &&
      (m->tlb_blocked || w->waiting_units || w->waiting || w->unserved || w->woken || w->verify)) {
    round_stop(a->round, w, *time); /* it waits for far-faults */
    return false;
  }
  w->woken = false;
  progress p = {.path = a, .m = m, .by = u, .w = w, .k = w->block->kernel, .window = 1, .step = a->t->cycle};
  p.batches = a->pager->config.manager->batches;
  if (a->t->lookup && u == &m->lsu) set_pace(&p, a->t, w->record);
  p.at = server_take(&u->port, *time, *time, 0);
  ps begun = p.at, next = event_own_next(a->heap);
  if (!plain && m->round && next > m->round->until) next = m->round->until; /* a warp may go on then */
  ps limit = next < UINT64_MAX - a->t->ahead ? next + a->t->ahead : UINT64_MAX;
  load_store_refresh(u);
  p.blocked = kind != LOCAL_PATH && m->tlb_blocked && !u->seen_count; /* no line of it can be translated */
  if (kind == LOCAL_PATH) p.tally = tally_elsewhere(a, w);
  bool sent = send_lines(&p, limit, kind);
  while (sent && !w->todo && w->first_line + 64 < trace_access_lines(*w->record)) {
    w->first_line += 64;
    w->todo = lines_from(w->record, w->first_line);
    sent = send_lines(&p, limit, kind);
  }
  bool over = sent && p.at > begun;
  if (over) p.at += a->t->cycle + p.hold - p.step; /* its last line */
  u->port.free = over ? p.at - p.pair : p.at;
  if (p.refused) {
    if (p.stops) round_stop(a->round, w, p.at);
    else round_pause(a->round, w, p.at);
    return false;
  }
  if (!sent) {
    event_push(a->heap, p.at, EVENT_WARP, w->index);
    return false;
  }
  unit_leave(a, u);
  if (p.at > *time + a->t->cycle) *time = p.at - a->t->cycle; /* the warp is held until its last line was taken */
  /* All lines may be on their way and the warp not told yet: a page has come while the access was held up, and it asked
   * for it again because another one had left. */
  if (!w->todo && !w->waiting_units) {
    if (a->t->shares_banks && u == &m->lsu) take_banks(&p, a->t, m, begun);
    access_over(a, w, plain);
    return true;
  }
  bool verified = w->verify;
  if (verified && ff_check_level >= 2) check_waiting(a, w);
  w->verify = p.batches && !verified && (uint32_t)__builtin_popcountll(w->waiting) > w->waiting_units;
  if (w->verify) w->waiting = 0;
  if ((!w->waiting_units && !p.blocked) || w->woken || w->verify) { /* what it waited for came while it was held up */
    event_push(a->heap, *time, EVENT_WARP, w->index);
    return false;
  }
  warp_sleep(w, *time);
  if (!w->waiting_units) FF_PUSH(m->blocked_warps, w->index); /* not its own fault: the TLB is stopped */
  return false;
}

static bool local_continue(access_path *a, warp *w, ps *time) {
  if (!continue_as(a, w, time, LOCAL_PATH)) return false;
  w->local = false;
  return true;
}

bool access_continue(access_path *a, warp *w, ps *time) {
  if (__builtin_expect(w->local, 0)) return local_continue(a, w, time);
  if (!a->plain) return continue_as(a, w, time, ANY_PATH);
  FF_CHECK_DEEP(!a->round && !a->controller && !a->tiers && !a->written && !learner_delays(a->learner));
  return continue_as(a, w, time, PLAIN_PATH);
}
