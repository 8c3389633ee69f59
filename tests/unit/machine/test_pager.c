/* SPDX-License-Identifier: Apache-2.0 */
/* The pager alone: random operations against a model that keeps the same things in the most naive way, and the
 * promises it makes to waiting warps. */
#include "rig.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static uint64_t base = RIG_BASE; /* page 0 of the model */

enum { PAGES = 300, SMS = 3, WARPS = 40, ALLOCATIONS = 6 };

/* ---- the naive model ---- */

typedef struct naive_page {
  bool gpu, cpu, flying;
  bool data; /* not zeros that nobody wrote; they do not move */
  int allocation;
} naive_page; /* where the newest bytes are */
typedef struct testbed {
  pager *p;
  naive_page pages[PAGES];
  struct {
    int first, count;
    bool live;
  } allocations[ALLOCATIONS];
  struct {
    bool waits;
    uint32_t page;
  } warps[SMS][WARPS];
  uint32_t flights[PAGES]; /* landing order is random: flight index by page */
  uint64_t started, woken, moved_in, moved_out, left;
  uint64_t room; /* when the room of what comes next is free */
  int shift;     /* pages per unit, as a shift */
  uint64_t fetched, evicted, written_back, cleaned, zeroed;
  bool scarce;    /* not everything fits */
  uint64_t hand;  /* the pager's, before what it does now */
  uint64_t swept; /* victims that were checked */
} testbed;

/* the unit of a page: window cut to the allocation */
static uint32_t pages_of(const testbed *t, uint32_t page, uint32_t *first) {
  uint32_t window = page >> t->shift << t->shift, end = window + (1u << t->shift);
  int a = t->pages[page].allocation;
  uint32_t low = (uint32_t)t->allocations[a].first, high = low + (uint32_t)t->allocations[a].count;
  *first = window > low ? window : low;
  return (end < high ? end : high) - *first;
}

static uint64_t on_start(void *context, fault_request *request, uint64_t address, uint32_t flight,
                         const pager_unit *unit, uint64_t room) {
  testbed *t = context;
  assert_int_equal(room, unit->flight_kind < PAGER_FLIGHT_MAPPED ? t->room : 0);
  if (unit->flight_kind < PAGER_FLIGHT_MAPPED) t->room = 0;
  uint32_t page = (uint32_t)((address - base) / 4096), first;
  uint32_t n = pages_of(t, page, &first);
  assert_int_equal(pager_bytes(t->p, unit), n * 4096);
  assert_true(request->sm < SMS && request->warp < WARPS);
  for (uint32_t i = first; i < first + n; i++) {
    assert_false(t->pages[i].gpu || t->pages[i].flying);
    assert_true(t->pages[i].cpu);
    assert_int_equal(unit->flight_kind,
                     t->pages[i].data || !t->p->config.zeroes ? PAGER_FLIGHT_MOVED : PAGER_FLIGHT_ZEROED);
    t->pages[i].flying = true;
    t->flights[i] = flight;
  }
  t->started++;
  return 1;
}
static uint64_t on_fetch(void *context, const fault_request *request, uint64_t address, uint64_t bytes, uint32_t flight,
                         const pager_unit *first, uint64_t room) {
  testbed *t = context;
  assert_int_equal(room, t->room);
  t->room = 0;
  assert_true(bytes && bytes % 4096 == 0 && address % 4096 == 0);
  assert_int_equal(address >> 21, (address + bytes - 1) >> 21);
  for (uint64_t a = address; a < address + bytes; a += 4096) {
    naive_page *page = &t->pages[(a - base) / 4096];
    assert_true(page->allocation >= 0 && page->cpu && !page->gpu && !page->flying);
    assert_int_equal(first->flight_kind, page->data || !t->p->config.zeroes ? PAGER_FLIGHT_MOVED : PAGER_FLIGHT_ZEROED);
    page->flying = true;
    t->flights[(a - base) / 4096] = flight;
  }
  t->fetched += bytes;
  return 1;
}
/* How far behind the hand an address is, round all addresses: that of its window, then its own within the window. */
static uint64_t distance(const testbed *t, uint64_t address) {
  uint64_t window = address & ~(t->p->config.unit_bytes - 1);
  return (window - t->hand) % (UINT64_C(1) << 48) * 2 + (address != window);
}

/* Without an evictor the victim is the first one from the hand on that can go: found here by looking at every page. */
static void check_sweep(testbed *t, uint64_t address, const pager_unit *victim) {
  if (t->p->config.evict || t->p->config.whole_blocks) return;
  /* one more of the last victim's window */
  if (address / t->p->config.unit_bytes + 1 == t->hand / t->p->config.unit_bytes) return;
  for (uint32_t i = 0; i < PAGES; i++) {
    uint64_t at = base + i * 4096ull;
    const pager_unit *unit = pager_find(t->p, at);
    if (t->pages[i].allocation < 0 || unit == victim || unit->state != PAGER_RESIDENT ||
        (unit->fresh && !victim->fresh))
      continue;
    uint32_t first;
    pages_of(t, i, &first);
    at = base + first * 4096ull;
    assert_true(distance(t, at) > distance(t, address) || (distance(t, at) == distance(t, address) && at > address));
  }
  t->swept++;
  t->hand = (address & ~(t->p->config.unit_bytes - 1)) + t->p->config.unit_bytes;
}

static uint64_t on_evicted(void *context, const fault_request *request, uint64_t address, const pager_unit *unit,
                           bool write_back) {
  testbed *t = context;
  check_sweep(t, address, unit);
  uint32_t first, n = pages_of(t, (uint32_t)((address - base) / 4096), &first);
  for (uint32_t i = first; i < first + n; i++) {
    assert_true((t->pages[i].gpu || !t->pages[i].data) && !t->pages[i].flying); /* zeros come without a word */
    assert_true(t->pages[i].cpu == !write_back);
    t->pages[i].gpu = false;
    t->pages[i].cpu = true;
  }
  t->evicted += n;
  t->written_back += write_back ? n : 0;
  uint64_t free_at = write_back ? 1 + address % 97 : 0; /* any time: the next transfer gets the latest */
  if (t->room < free_at) t->room = free_at;
  return free_at;
}
static void on_cleaned(void *context, uint64_t address, const pager_unit *unit) {
  testbed *t = context;
  uint32_t first, n = pages_of(t, (uint32_t)((address - base) / 4096), &first);
  for (uint32_t i = first; i < first + n; i++) {
    assert_true(t->pages[i].gpu && !t->pages[i].cpu);
    t->pages[i].cpu = true; /* and stays in GPU memory */
  }
  t->cleaned += pager_bytes(t->p, unit);
}
static void on_wake(void *context, uint32_t sm, uint32_t warp, uint64_t address) {
  testbed *t = context;
  assert_true(t->warps[sm][warp].waits);
  assert_true(t->scarce || t->pages[t->warps[sm][warp].page].gpu); /* its page is there, or was and had to go again */
  assert_int_equal(address >> t->p->unit_shift, (base + t->warps[sm][warp].page * UINT64_C(4096)) >> t->p->unit_shift);
  t->warps[sm][warp].waits = false;
  t->woken++;
}
static void on_unblock(void *context, uint32_t sm) {}
static void on_left(void *context, uint64_t address, pager_unit *unit) {
  testbed *t = context;
  t->left += pager_bytes(t->p, unit);
}
static void on_moved(void *context, uint32_t owner, bool in, uint64_t bytes) {
  testbed *t = context;
  *(in ? &t->moved_in : &t->moved_out) += bytes;
}
static void on_zeroed(void *context, uint32_t owner, uint64_t bytes) { ((testbed *)context)->zeroed += bytes; }

#define HOOKS(testbed)                                                                                            \
  {                                                                                                               \
    testbed, .wake = on_wake, .start = on_start, .fetch = on_fetch, .evicted = on_evicted, .unblock = on_unblock, \
             .left = on_left, .moved = on_moved, .cleaned = on_cleaned, .zeroed = on_zeroed                       \
  }

static uint64_t random_state;
static uint32_t random_below(uint32_t n) {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return (uint32_t)((random_state >> 11) % n);
}

/* ---- operations on both ---- */

static void do_fault(testbed *t) {
  uint32_t page = random_below(PAGES), sm = random_below(SMS), warp = random_below(WARPS);
  if (t->pages[page].allocation < 0 || t->pages[page].gpu || t->warps[sm][warp].waits) return;
  bool blocks, flying = t->pages[page].flying;
  uint64_t address = base + page * 4096ull + 128;
  t->warps[sm][warp].waits = true;
  t->warps[sm][warp].page = page;
  pager_unit *unit = pager_find(t->p, address);
  bool waits = pager_waits(t->p, sm, unit);
  pager_outcome outcome = pager_fault(t->p, &(fault_request){.sm = sm, .warp = warp}, address, unit, &blocks);
  assert_false(blocks);
  if (outcome == PAGER_STARTED) assert_true(!flying && !waits);
  if (outcome == PAGER_MERGED) assert_true(flying || unit->starved);
  if (outcome == PAGER_STARVED) assert_true(t->scarce && t->p->in_flight > 0);
  if (outcome == PAGER_JOINED) assert_true(waits && !flying);
  if (outcome == PAGER_THROTTLED) assert_int_equal(t->p->sms[sm].pending, t->p->config.allotment);
}

static void land(testbed *t, uint32_t page) {
  uint32_t flight = t->flights[page];
  for (uint32_t i = 0; i < PAGES; i++)
    if (t->pages[i].flying && t->flights[i] == flight) {
      t->pages[i].flying = false;
      t->pages[i].gpu = true; /* the CPU's copy stays good until someone writes */
    }
  pager_complete(t->p, flight);
}

static void do_landing(testbed *t) {
  uint32_t at = random_below(PAGES);
  for (uint32_t i = 0; i < PAGES; i++)
    if (t->pages[(at + i) % PAGES].flying) {
      land(t, (at + i) % PAGES);
      return;
    }
}

static void land_all(testbed *t) {
  for (bool any = true; any;) {
    any = false;
    for (uint32_t i = 0; i < PAGES; i++)
      if (t->pages[i].flying) {
        land(t, i);
        any = true;
      }
  }
  for (int sm = 0; sm < SMS; sm++)
    for (int w = 0; w < WARPS; w++) assert_false(t->warps[sm][w].waits); /* all have been woken */
}

static void do_write_by_gpu(testbed *t) {
  uint32_t page = random_below(PAGES), first;
  if (t->pages[page].allocation < 0 || !t->pages[page].gpu) return;
  pager_gpu_write(t->p, pager_find(t->p, base + page * 4096ull), base + page * 4096ull);
  uint32_t n = pages_of(t, page, &first);
  for (uint32_t i = first; i < first + n; i++) {
    t->pages[i].cpu = false;
    t->pages[i].data = true;
  }
}

/* The link has nothing to do: what the prefetcher proposes that is zeros is there at once. */
static void do_idle(testbed *t) {
  pager_idle(t->p);
  for (uint32_t i = 0; i < PAGES; i++) {
    naive_page *page = &t->pages[i];
    if (page->allocation < 0 || page->data || page->flying) continue;
    bool here = pager_find(t->p, base + i * 4096ull)->state == PAGER_RESIDENT;
    assert_true(here || !page->gpu || t->p->low);
    page->gpu = here;
  }
}

/* A piece is carried, or what the evictor proposes becomes the next one. */
static void do_clean(testbed *t) {
  uint64_t address = 0, before = t->cleaned, resident = t->p->resident,
           most = t->p->config.unit_bytes > 65536 ? t->p->config.unit_bytes : 65536;
  if (t->p->cleaning.bytes) {
    assert_true(pager_cleaning(t->p, t->p->cleaning.address, 1) &&
                !pager_cleaning(t->p, t->p->cleaning.address + t->p->cleaning.bytes, 1));
    pager_clean_end(t->p);
    assert_int_equal(pager_cleaning(t->p, 0, UINT64_MAX), 0);
    return;
  }
  if (!pager_wants_clean(t->p)) return;
  uint64_t bytes = pager_clean(t->p, &address);
  assert_true(bytes <= most);
  assert_int_equal(bytes, t->cleaned - before);
  assert_int_equal(t->p->resident, resident);
  pager_clean_until(t->p, t->p->now + 1);
}

static pager_moves range_operation(pager *p, uint32_t kind, uint64_t address, uint64_t bytes) {
  if (kind == 0) return pager_host_read(p, address, bytes);
  if (kind == 1) return pager_host_write(p, address, bytes);
  return kind == 2 ? pager_gpu_fill(p, address, bytes) : pager_gpu_fetch(p, address, bytes);
}

/* Partial pages: what the next random_run uses, with units of a page. Host accesses take whole pages of 2 MiB back. */
static struct {
  uint32_t ranges, flight_limit;
  uint64_t gap_bytes;
} partial;

/* A range operation; the model goes unit by unit, and so does the pager if it may have to evict on the way. kind: 0
 * host read, 1 host write, 2 fill, 3 fetch. */
static void do_range(testbed *t) {
  uint32_t kind = partial.ranges ? 2 + random_below(2) : random_below(4), from = random_below(PAGES),
           to = from + 1 + random_below(PAGES - from);
  uint64_t cut = random_below(3) ? 0 : 100; /* sometimes the range begins and ends inside a page */
  if (t->p->in_flight && (t->scarce || pager_busy_until(t->p, base + from * 4096ull, (to - from) * 4096ull))) return;
  pager_moves expected = {0}, moves = {0};
  uint64_t begin = from * 4096ull + cut, end = to * 4096ull - cut;
  for (uint32_t page = 0; page < PAGES;) {
    uint32_t first, n;
    if (t->pages[page].allocation < 0) {
      page++;
      continue;
    }
    n = pages_of(t, page, &first);
    uint64_t low = first * 4096ull, high = (first + n) * 4096ull;
    naive_page *u = &t->pages[first];
    bool touched = low < end && high > begin, whole = low >= begin && high <= end, moved = false;
    naive_page now = *u;
    if (touched && kind == 0 && !u->cpu) {
      moved = true;
      now.cpu = true;
      now.gpu = false;
    }
    if (touched && kind == 1) {
      moved = !whole && !u->cpu;
      now.cpu = now.data = true;
      now.gpu = false;
    }
    if (touched && kind == 2) {
      moved = !whole && !u->gpu && u->data;
      now.gpu = now.data = true;
      now.cpu = false;
    }
    if (touched && kind == 3) {
      moved = !u->gpu && u->data;
      now.gpu = true;
    }
    if (touched && t->scarce) {
      pager_moves one = range_operation(t->p, kind, base + (low > begin ? low : begin),
                                        (high < end ? high : end) - (low > begin ? low : begin));
      moves.units += one.units;
      moves.bytes += one.bytes;
    }
    for (uint32_t i = first; i < first + n; i++) {
      t->pages[i].gpu = now.gpu;
      t->pages[i].cpu = now.cpu;
      t->pages[i].data = now.data;
    }
    expected.units += moved;
    expected.bytes += moved * n * 4096ull;
    page = first + n;
  }
  if (!t->scarce) moves = range_operation(t->p, kind, base + begin, end - begin);
  assert_int_equal(moves.units, expected.units);
  assert_int_equal(moves.bytes, expected.bytes);
}

static void do_allocation(testbed *t) {
  int a = (int)random_below(ALLOCATIONS);
  int slot = PAGES / ALLOCATIONS * a;
  if (t->allocations[a].live) {
    land_all(t);
    assert_true(pager_unmap(t->p, base + (uint64_t)t->allocations[a].first * 4096) != 0);
    for (int i = 0; i < t->allocations[a].count; i++)
      t->pages[t->allocations[a].first + i] = (naive_page){.allocation = -1};
    t->allocations[a].live = false;
    return;
  }
  t->allocations[a].first = slot + (int)random_below(10);
  t->allocations[a].count = 1 + (int)random_below(40);
  t->allocations[a].live = true;
  for (int i = 0; i < t->allocations[a].count; i++)
    t->pages[t->allocations[a].first + i] =
        (naive_page){.cpu = true, .data = !t->p->config.zeroes || a == 0, .allocation = a};
  uint32_t index =
      pager_map(t->p, base + (uint64_t)t->allocations[a].first * 4096, (uint64_t)t->allocations[a].count * 4096,
                a % 2 ? TRACE_MEMORY_DEVICE : TRACE_MEMORY_MANAGED, (uint32_t)a);
  if (a) pager_map_blank(t->p, index); /* the first one has data from the beginning */
}

static void compare(const testbed *t) {
  uint64_t resident = 0, in_flight = 0;
  for (uint32_t i = 0; i < PAGES; i++) {
    const pager_unit *unit = pager_find(t->p, base + i * 4096ull);
    if (t->pages[i].allocation < 0) {
      if (unit->allocation) { /* a window shared with another allocation */
        const pager_allocation *a = &t->p->allocations.items[unit->allocation];
        assert_true(base + i * 4096ull < a->address || base + i * 4096ull >= a->address + a->bytes);
      }
      continue;
    }
    resident += t->pages[i].gpu;
    in_flight += t->pages[i].flying;
    assert_int_equal(unit->state, t->pages[i].flying ? PAGER_IN_FLIGHT
                                  : t->pages[i].gpu  ? PAGER_RESIDENT
                                                     : PAGER_ABSENT);
    assert_int_equal(unit->cpu_newest, t->pages[i].cpu);
    if (t->pages[i].gpu) assert_true(unit->gpu_newest);
  }
  assert_int_equal(t->p->resident, resident * 4096);
  assert_int_equal(t->p->in_flight, in_flight * 4096);
  pager_check_all(t->p);
}

/* Policies that propose anything: good pieces, nothing, and what makes no sense at all. */
static uint64_t policy_calls;
static void propose_anything(ff_view *view) {
  ff_block block;
  ff_allocation allocation;
  policy_calls++;
  for (uint64_t n = view->random(view) % 4; n--;) {
    uint64_t page = view->random(view) % PAGES, r = view->random(view);
    view->propose(view, base + page * 4096, (r % 20 + 1) * 4096);
    if (r >> 32 & 1) view->propose(view, r, r << 7);
    if (r >> 33 & 1) view->propose(view, base - 5000, 0);
    if ((r >> 34 & 31) == 0) view->propose(view, 0, UINT64_MAX);
  }
  view->block(view, base, &block);
  for (int w = 0; w < 8; w++) assert_int_equal(block.valid.word[w] & ~block.mapped.word[w], 0);
  for (int w = 0; w < 8; w++) assert_int_equal((block.moving.word[w] | block.dirty.word[w]) & ~block.valid.word[w], 0);
  if (view->allocation(view, base + 8192, &allocation)) assert_true(allocation.address <= base + 8192);
  assert_true(view->last_use(view, base, 1 << 20) <= view->now);
}
static void anything_faulted(void *state, ff_view *view, const ff_fault *faults, size_t count) {
  assert_int_equal(count, 1);
  propose_anything(view);
}
static void anything_idle(void *state, ff_view *view) { propose_anything(view); }
static void anything_evict(void *state, ff_view *view, uint64_t bytes) {
  assert_true(view->free_bytes(view) < view->capacity && bytes);
  propose_anything(view);
}
static void anything_clean(void *state, ff_view *view) { propose_anything(view); }
static uint64_t told_arrived, told_left;
static void anything_arrived(void *state, ff_view *view, uint64_t address, uint64_t bytes) { told_arrived++; }
static void anything_left(void *state, ff_view *view, uint64_t address, uint64_t bytes) { told_left++; }
static uint64_t told_settled;
/* all that is there of it can go now */
static void anything_settled(void *state, ff_view *view, uint64_t address, uint64_t bytes) {
  ff_block block;
  told_settled++;
  view->block(view, address, &block);
  for (uint64_t at = address; at < address + bytes; at += FF_PAGE_BYTES) {
    uint32_t page = at % FF_BLOCK_BYTES / FF_PAGE_BYTES;
    assert_false(block.moving.word[page / 64] >> page % 64 & 1);
  }
}
static const ff_policy anything = {.version = FF_POLICY_VERSION,
                                   .name = "anything",
                                   .faulted = anything_faulted,
                                   .idle = anything_idle,
                                   .evict = anything_evict,
                                   .clean = anything_clean,
                                   .arrived = anything_arrived,
                                   .left = anything_left,
                                   .settled = anything_settled};

static watermarks marks; /* for the next random_run */
static bool zeroes;

static void random_run(int shift, uint32_t allotment, uint64_t seed, uint64_t memory, const ff_policy *policy,
                       bool whole) {
  testbed t = {.shift = shift, .scarce = memory < PAGES * 4096 * (whole ? 3 : 1)};
  pager_config config = {.manager = manager_find("replay"),
                         .unit_bytes = UINT64_C(4096) << shift,
                         .memory_bytes = memory,
                         .sms = SMS,
                         .allotment = allotment,
                         .merges_take_mshr = seed % 2,
                         .prefetch = policy,
                         .evict = policy,
                         .whole_blocks = whole,
                         .ranges = partial.ranges,
                         .gap_bytes = partial.gap_bytes,
                         .flight_limit = partial.flight_limit,
                         .watermarks = marks,
                         .zeroes = zeroes,
                         .tiers = tiers_create((const uint64_t[]){2 * 4096 << shift, 4096 << shift, 1 << 30}, 3, 0),
                         .hooks = HOOKS(&t)};
  base = RIG_BASE + (whole ? (2 << 20) - 160 * 4096 : 0); /* in two blocks */
  t.p = pager_create(&config);
  random_state = seed;
  policy_calls = told_arrived = told_left = told_settled = 0;
  for (int i = 0; i < PAGES; i++) t.pages[i].allocation = -1;
  for (int step = 0; step < 20000; step++) {
    uint32_t dice = random_below(100);
    t.p->now = (uint64_t)step;
    t.hand = t.p->hand_address;
    if (dice < 60) do_fault(&t);
    else if (dice < 82) do_landing(&t);
    else if (dice < 91) do_write_by_gpu(&t);
    else if (dice < 92) do_idle(&t);
    else if (dice < 94) do_clean(&t);
    else if (dice < 98) do_range(&t);
    else do_allocation(&t);
    if (step % 64 == 0) compare(&t);
  }
  land_all(&t);
  compare(&t);
  assert_true(t.started > 100 && t.woken > t.started);
  assert_int_equal(t.moved_in, t.p->moved_in);
  assert_int_equal(t.moved_out, t.p->moved_out + t.p->cleaned);
  assert_int_equal(t.cleaned, t.p->cleaned);
  assert_int_equal(t.cleaned > 0, policy != NULL && !partial.ranges);
  assert_int_equal(t.zeroed > 0, zeroes);
  assert_int_equal(t.left, t.p->moved_out + t.p->dropped);
  assert_int_equal(told_arrived > 0, policy != NULL);
  assert_int_equal(told_settled > 0, policy != NULL);
  assert_int_equal(t.fetched > 0, policy != NULL || partial.ranges);
  if (t.scarce) assert_true(t.evicted > 100 && t.written_back && t.written_back < t.evicted);
  else assert_int_equal(t.evicted, 0);
  assert_int_equal(t.swept > 100, t.scarce && !policy && !whole);
  assert_true(!t.scarce || (tiers_of(config.tiers, 2)->written && tiers_of(config.tiers, 2)->to_gpu));
  assert_true(tiers_of(config.tiers, 1)->down == tiers_of(config.tiers, 2)->written);
  pager_free(t.p);
  tiers_free(config.tiers);
  base = RIG_BASE;
}

/* Less than `low` is free: evicted until `high` is. Not before, and not while all that is allocated fits. */
static void test_watermarks(void **state) {
  testbed t = {.scarce = true};
  for (int i = 0; i < PAGES; i++) t.pages[i].allocation = -1;
  pager_config config = {.manager = manager_find("replay"),
                         .unit_bytes = 4096,
                         .memory_bytes = 16 * 4096,
                         .sms = SMS,
                         .allotment = 16,
                         .watermarks = {.low = 4 * 4096, .high = 8 * 4096},
                         .hooks = HOOKS(&t)};
  base = RIG_BASE;
  t.p = pager_create(&config);
  for (uint64_t pages = 16; pages <= 17; pages++) { /* fits; does not */
    for (uint64_t i = 0; i < pages; i++) t.pages[i] = (naive_page){.cpu = true, .allocation = 0};
    t.allocations[0].count = (int)pages;
    t.allocations[0].live = true;
    pager_map(t.p, base, pages * 4096, TRACE_MEMORY_DEVICE, 0);
    for (uint64_t n = 0; n < 13; n++) {
      bool blocks;
      pager_unit *unit = pager_find(t.p, base + n * 4096);
      t.warps[0][0].waits = true;
      t.warps[0][0].page = (uint32_t)n;
      assert_int_equal(t.evicted, 0);
      if (n == 12) assert_int_equal(t.p->free, 4 * 4096); /* as much as `low`: nothing has gone */
      assert_int_equal(pager_fault(t.p, &(fault_request){0}, base + n * 4096, unit, &blocks), PAGER_STARTED);
      if (n == 12 && pages == 17) { /* one below: five of those that were used go, while the page is on its way */
        assert_int_equal(t.evicted, 5);
        assert_int_equal(t.p->free, 8 * 4096);
        assert_int_equal(unit->state, PAGER_IN_FLIGHT);
      }
      t.pages[n].flying = false;
      t.pages[n].gpu = true;
      pager_complete(t.p, unit->flight);
      pager_gpu_read(t.p, unit, base + n * 4096);
    }
    assert_int_equal(t.evicted, pages == 17 ? 5 : 0);
    pager_check_all(t.p);
    assert_true(pager_unmap(t.p, base) != 0);
  }
  pager_free(t.p);
}

static void test_random_operations_with_watermarks(void **state) {
  marks = (watermarks){.low = 4 * 4096, .high = 12 * 4096};
  random_run(0, 4, 21, 40 * 4096, NULL, false);
  random_run(0, 16, 22, 40 * 4096, &anything, false);
  random_run(4, 4, 23, 60 * 4096, &anything, false);
  marks = (watermarks){.low_share = 0.5, .high_share = 0.9}; /* never more than half */
  random_run(0, 4, 24, 30 * 4096, &anything, false);
  random_run(0, 4, 25, 2 << 20, &anything, true);
  random_run(0, 16, 26, 4096, NULL, false);
  marks = (watermarks){0};
}

static void test_random_operations(void **state) {
  random_run(0, 4, 1, 4 << 20, NULL, false);
  random_run(0, 1, 2, 4 << 20, NULL, false);
  random_run(4, 2, 3, 4 << 20, NULL, false);  /* 64 KiB units: windows shared by allocations */
  random_run(9, 16, 4, 4 << 20, NULL, false); /* 2 MiB */
}

static void test_random_operations_with_policies(void **state) {
  random_run(0, 4, 5, 4 << 20, &anything, false);
  random_run(4, 4, 6, 4 << 20, &anything, false);
}

static void test_random_operations_in_little_memory(void **state) {
  random_run(0, 4, 7, 40 * 4096, NULL, false);
  random_run(0, 4, 8, 40 * 4096, &anything, false);
  random_run(0, 16, 9, 2 * 4096, &anything, false); /* everything on its way at once */
  random_run(0, 16, 10, 4096, NULL, false);
  random_run(4, 4, 11, 60 * 4096, &anything, false);
  random_run(4, 2, 12, 16 * 4096, NULL, false);
  random_run(0, 4, 13, 2 << 20, &anything, true); /* the allocations lie in two blocks: one has to go for the other */
  random_run(4, 4, 14, 3 << 20, NULL, true);
}

/* Gaps close over units that wait for room or for their SM's turn. */
static void test_random_operations_on_partial_pages(void **state) {
  partial.ranges = 3;
  partial.gap_bytes = 3 * 4096;
  random_run(0, 4, 15, 4 << 20, NULL, false);
  random_run(0, 4, 16, 40 * 4096, NULL, false);
  partial.flight_limit = 3;
  random_run(0, 4, 17, 40 * 4096, &anything, false);
  random_run(0, 16, 18, 100 * 4096, NULL, false);
  partial.ranges = 1;
  random_run(0, 4, 19, 60 * 4096, NULL, false);
  partial.ranges = partial.flight_limit = 0;
}

/* What was never written is zeros, and comes so. */
static void test_random_operations_on_blank_memory(void **state) {
  zeroes = true;
  random_run(0, 4, 30, 4 << 20, NULL, false);
  random_run(4, 2, 31, 4 << 20, NULL, false); /* windows shared by allocations */
  random_run(0, 4, 32, 4 << 20, &anything, false);
  random_run(0, 4, 33, 40 * 4096, &anything, false);
  random_run(4, 4, 34, 60 * 4096, &anything, false);
  random_run(0, 4, 35, 2 << 20, &anything, true);
  random_run(0, 16, 36, 2 * 4096, NULL, false);
  partial.ranges = 3;
  partial.gap_bytes = 3 * 4096;
  random_run(0, 4, 37, 40 * 4096, &anything, false);
  partial.ranges = 0;
  marks = (watermarks){.low = 4096, .high = 3 * 4096};
  random_run(0, 4, 38, 30 * 4096, &anything, false);
  marks = (watermarks){0};
  zeroes = false;
}

/* ---- the oracle and the equations notice what is wrong ---- */

static bool aborts(void (*function)(pager *p), pager *p) {
  fflush(NULL);
  pid_t child = fork();
  if (!child) {
    signal(SIGABRT, SIG_DFL);
    ff_check_level = 2;
    if (!freopen("/dev/null", "w", stderr)) _exit(1);
    function(p);
    _exit(0);
  }
  int status;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static void read_page(pager *p) { pager_gpu_read(p, pager_find(p, base), base); }
static void lose_a_frame(pager *p) {
  p->free--;
  pager_check(p);
}
static void miscount(pager *p) {
  pager_find(p, base)->state = PAGER_ABSENT;
  pager_check_all(p);
}
static void forget_newest(pager *p) {
  pager_written(pager_find(p, base), 0);
  pager_check_all(p);
}
static void nothing(pager *p) {
  read_page(p);
  pager_check_all(p);
}
static void read_after_host_write(pager *p) {
  pager_host_write(p, base, 4096);
  read_page(p);
}
static void break_and_read(pager *p) {
  pager_break_for_test(p, base);
  read_page(p);
}

static void test_broken_pages_are_noticed(void **state) {
  testbed t = {0};
  pager_config config = {.manager = manager_find("replay"),
                         .unit_bytes = 4096,
                         .memory_bytes = 4 << 20,
                         .sms = 1,
                         .allotment = 1,
                         .hooks = HOOKS(&t)};
  pager *p = t.p = pager_create(&config);
  pager_map(p, base, 8192, TRACE_MEMORY_DEVICE, 0);
  assert_true(aborts(read_page, p)); /* absent */
  pager_gpu_fill(p, base, 8192);
  assert_false(aborts(nothing, p));
  assert_true(aborts(break_and_read, p));
  assert_true(aborts(read_after_host_write, p));
  assert_true(aborts(lose_a_frame, p));
  assert_true(aborts(miscount, p));
  assert_true(aborts(forget_newest, p));
  pager_free(p);
}

/* ---- a bad policy costs speed, never progress ---- */

static manager_answer always_throttle(const manager_nack *nack) { return MANAGER_THROTTLE; }
static const manager unwilling = {
    .name = "unwilling", .summary = "", .placement = MANAGER_PAGED, .decide = always_throttle};

static void test_unwilling_manager(void **state) {
  testbed t = {0};
  for (int i = 0; i < PAGES; i++) t.pages[i] = (naive_page){.cpu = true, .allocation = 0};
  t.allocations[0].count = PAGES;
  pager_config config = {.manager = &unwilling,
                         .unit_bytes = 4096,
                         .memory_bytes = 4 << 20,
                         .sms = SMS,
                         .allotment = 1,
                         .hooks = HOOKS(&t)};
  t.p = pager_create(&config);
  pager_map(t.p, base, PAGES * 4096, TRACE_MEMORY_DEVICE, 0);
  for (uint32_t w = 0; w < WARPS; w++) {
    bool blocks;
    t.warps[0][w].waits = true;
    t.warps[0][w].page = w;
    pager_fault(t.p, &(fault_request){.warp = w}, base + w * 4096, pager_find(t.p, base + w * 4096), &blocks);
  }
  assert_int_equal(t.started, 1);
  land_all(&t);
  assert_int_equal(t.started, WARPS);
  pager_free(t.p);
}

/* ---- the page table ---- */

/* What a policy sees of a block is the same before and after its piece of the page table is made, and looking does not
 * make it where one allocation fills the block. */
static void look_at_untouched(const char *manager_name, trace_memory_kind kind, bool blank) {
  testbed t = {0};
  pager_config config = {.manager = manager_find(manager_name),
                         .zeroes = true,
                         .unit_bytes = 4096,
                         .memory_bytes = UINT64_C(1) << 30,
                         .sms = 1,
                         .hooks = HOOKS(&t)};
  pager *p = pager_create(&config);
  /* fills two blocks, and half of the ones before and behind, which it shares */
  const uint64_t begin = base + FF_BLOCK_BYTES / 2, bytes = 3 * FF_BLOCK_BYTES;
  uint32_t large = pager_map(p, begin, bytes, kind, 1);
  if (blank) pager_map_blank(p, large);
  assert_true(pager_map(p, begin + bytes, FF_BLOCK_BYTES / 4, TRACE_MEMORY_DEVICE, 2));
  for (uint64_t at = base; at < base + 5 * FF_BLOCK_BYTES; at += FF_BLOCK_BYTES) {
    bool filled = at == base + FF_BLOCK_BYTES || at == base + 2 * FF_BLOCK_BYTES;
    ff_block before, after;
    p->view.block(&p->view, at, &before);
    uint64_t blank_before = p->view.blank_bytes(&p->view, at, FF_BLOCK_BYTES);
    if (filled) assert_false(pager_chunk_made(p, at / FF_BLOCK_BYTES));
    pager_find(p, at);
    p->view.block(&p->view, at, &after);
    assert_memory_equal(&before, &after, sizeof before);
    assert_int_equal(blank_before, p->view.blank_bytes(&p->view, at, FF_BLOCK_BYTES));
    if (filled) assert_int_equal(blank_before, blank && kind == TRACE_MEMORY_DEVICE ? FF_BLOCK_BYTES : 0);
  }
  pager_free(p);
}

static void test_untouched_blocks(void **state) {
  static const char *const managers[] = {"demand", "auto", "segments", "uvm"};
  for (size_t i = 0; i < sizeof managers / sizeof *managers; i++)
    for (int blank = 0; blank < 2; blank++) {
      look_at_untouched(managers[i], TRACE_MEMORY_DEVICE, blank);
      look_at_untouched(managers[i], TRACE_MEMORY_PINNED, blank);
    }
}

static void test_lookups(void **state) {
  testbed t = {0};
  pager_config config = {.manager = manager_find("copy"),
                         .unit_bytes = 4096,
                         .memory_bytes = UINT64_C(1) << 40,
                         .sms = 1,
                         .hooks = HOOKS(&t)};
  pager *p = pager_create(&config);
  assert_int_equal(pager_find(p, base)->allocation, 0);
  uint32_t huge = pager_map(p, base, UINT64_C(1) << 39, TRACE_MEMORY_DEVICE, 1); /* costs nothing until touched */
  assert_true(huge);
  assert_int_equal(pager_map(p, base + 4096, 4096, TRACE_MEMORY_DEVICE, 2), 0); /* overlaps */
  assert_int_equal(pager_map(p, base - 4096, 8192, TRACE_MEMORY_DEVICE, 2), 0);
  assert_int_equal(pager_map(p, UINT64_MAX - 10, 100, TRACE_MEMORY_DEVICE, 2), 0);
  assert_int_equal(pager_find(p, base + (UINT64_C(1) << 38))->allocation, huge);
  assert_int_equal(p->chunk_count, 1);
  for (uint64_t i = 0; i < 1000; i++) assert_int_equal(pager_find(p, base + i * (2 << 20))->allocation, huge);
  assert_int_equal(p->chunk_count, 1001);
  assert_int_equal(pager_unmap(p, base + 4096), 0);
  assert_int_equal(pager_unmap(p, base), huge);
  assert_int_equal(p->chunk_count, 0);
  assert_int_equal(pager_find(p, base + (UINT64_C(1) << 38))->allocation, 0);
  assert_int_equal(p->chunk_count, 0); /* addresses that belong to nothing take no memory */
  for (int i = 0; i < 1000; i++) {     /* neither do allocations that come and go */
    uint32_t index = pager_map(p, base, 4096, TRACE_MEMORY_DEVICE, 1);
    assert_int_equal(index, huge);
    pager_unmap(p, base);
  }
  pager_free(p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_random_operations),
      cmocka_unit_test(test_random_operations_with_policies),
      cmocka_unit_test(test_watermarks),
      cmocka_unit_test(test_random_operations_with_watermarks),
      cmocka_unit_test(test_random_operations_in_little_memory),
      cmocka_unit_test(test_random_operations_on_partial_pages),
      cmocka_unit_test(test_random_operations_on_blank_memory),
      cmocka_unit_test(test_broken_pages_are_noticed),
      cmocka_unit_test(test_unwilling_manager),
      cmocka_unit_test(test_untouched_blocks),
      cmocka_unit_test(test_lookups),
  };
  return cmocka_run_group_tests_name("pager", tests, NULL, NULL);
}
