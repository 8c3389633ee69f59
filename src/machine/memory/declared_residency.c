/* SPDX-License-Identifier: Apache-2.0 */
/* Segments: what a launch declares (trace_launch.uses: allocations) is resident before its first block starts.
 *
 *     queue_add ----> waits, `ahead`: while kernels run and the link to the GPU is idle, pieces of what it declares come
 *         its turn -> the rest comes, allocation by allocation; EVENT_NODE_READY again when all that moves has landed
 *                  -> begins;  over: what it declared is free to go, unless another launch declares it
 *
 * Room is made only from what no launch declares, running or queued. What finds none stays out and is paged on demand:
 * that is known before the launch begins. Launches are looked at in the order in which the host made them, and only if
 * nothing but launches lies before them: a copy or a set may change what is to come.
 *
 * Where the GPU reaches over the link what is absent (manager.h: reaches), a launch begins without it, and only what is
 * small is fetched ahead (comes_ahead); the prefetcher brings the rest.
 *
 * One transfer is at most 2 MiB, by a copy engine (link_copy). The rule of host.c lets a program of one stream know a
 * launch only when the one before it is over; under segments the last SEGMENTS_AHEAD launches are kept back instead. */
#include "machine/memory/declared_residency.h"

#include <stdlib.h>

#include "machine/host/hints.h"
#include "machine/host/host.h"
#include "machine/host/link.h"
#include "machine/host/peer_link.h"
#include "machine/host/tier_store.h"
#include "machine/memory/far_fault.h"
#include "machine/observe/observer.h"
#include "policy/pages.h"

#define SMALL_BYTES (4 * FF_GROUP_BYTES)

/* ---- what is declared ---- */

static bool is_launch(const node *n) { return n->op.kind == TRACE_OP_LAUNCH; }

/* Pinned memory is declared too, but never moves. */
static bool can_move(const pager_allocation *a) {
  return a->live && (a->kind == TRACE_MEMORY_DEVICE || a->kind == TRACE_MEMORY_MANAGED);
}

/* An allocation, or what is mapped in a reservation. */
static void declare_use(segments *g, node *n, trace_use use) {
  const pager *p = g->pager;
  for (size_t at = pager_first_behind(p, use.address); at < p->by_address.count; at++) {
    uint32_t index = p->by_address.items[at];
    const pager_allocation *a = &p->allocations.items[index];
    if (a->address < use.address) continue;
    if (a->address >= use.address + use.bytes) break;
    if (a->address != use.address && !a->mapping) continue;
    if (!can_move(a) ||
        sim_hints_undeclare(&g->hints->given, g->observer->allocations.items[a->owner]->id, n->op.launch->kernel_index))
      continue;
    FF_PUSH(&n->uses, index);
    pager_declare(g->pager, index, true);
  }
}

/* What is absent of all that the launch declares, counted up to more than `most` bytes. */
static uint64_t absent_bytes(const segments *g, const node *n, uint64_t most) {
  const ff_view *view = &g->pager->view;
  uint64_t bytes = 0;
  for (size_t i = 0; i < n->uses.count; i++) {
    const pager_allocation *a = &g->pager->allocations.items[n->uses.items[i]];
    for (uint64_t at = a->address; bytes <= most && (at = pages_next_absent(view, at)) < a->address + a->bytes;
         at = (at & ~(FF_PAGE_BYTES - 1)) + FF_PAGE_BYTES)
      bytes += FF_PAGE_BYTES;
  }
  return bytes;
}

/* Does what the launch declares come while others run? Where it can be reached over the link (reaches), only if all of
 * it fits, there is no room for what is absent - else the prefetcher brings that - and that is small: the launch would
 * wait for the link's latency rather than for bytes. */
static bool comes_ahead(const segments *g, const node *n) {
  if (!g->manager->reaches) return true;
  if (g->pager->free >= SMALL_BYTES) return false;
  uint64_t declared = 0;
  for (size_t i = 0; i < n->uses.count; i++) declared += g->pager->allocations.items[n->uses.items[i]].bytes;
  if (declared > g->pager->view.capacity) return false;
  uint64_t absent = absent_bytes(g, n, SMALL_BYTES);
  return absent > g->pager->free && absent <= SMALL_BYTES;
}

void segments_declare(segments *g, node *n) {
  if (!g->manager->segments || !is_launch(n)) return;
  for (uint32_t i = 0; i < n->op.launch->use_count; i++) declare_use(g, n, n->op.launch->uses[i]);
  if (comes_ahead(g, n)) FF_PUSH(&g->ahead, n->index);
  if (g->agenda->now < g->host->clock) g->agenda->now = g->host->clock; /* all events up to then are over */
  segments_idle(g);
}

node *segments_keep_back(segments *g, node *n) {
  node **place = &g->kept_back[g->next_kept_back++ % SEGMENTS_AHEAD], *oldest = *place;
  *place = n;
  n->references++;
  return oldest;
}

void segments_over(segments *g, node *n) {
  for (size_t i = 0; i < n->uses.count; i++) pager_declare(g->pager, n->uses.items[i], false);
  n->uses.count = 0;
}

bool segments_declared(const segments *g, const kernel *k, uint32_t allocation) {
  const node *n = g->streams->nodes.items[k->node];
  for (size_t i = 0; i < n->uses.count; i++)
    if (n->uses.items[i] == allocation) return true;
  return false;
}

/* ---- fetching ---- */

static uint64_t fetch_range(segments *g, const node *n, uint64_t address, uint64_t bytes) {
  return pager_request(g->pager,
                       &(fault_request){.counters = counters_of_kernel(g->observer, n->op.launch), .declared = true},
                       address, bytes);
}

ps segments_fetch(segments *g, sim_counters *kernel, uint64_t bytes, uint32_t flight, const pager_unit *first,
                  ps room) {
  ps from = tier_to_gpu(g->faults->tiers, bytes, g->agenda->now, room > g->agenda->now ? room : g->agenda->now);
  ps lands = first->source ? peer_bring(g->faults->peers, HISTORY_CAUSE_DECLARED, first->source - 1u, bytes, from)
                           : link_copy(g->link, HISTORY_CAUSE_DECLARED, true, bytes, false, from);
  tally t = {kernel, &g->observer->allocations.items[g->pager->allocations.items[first->allocation].owner]->counters};
  COUNT(&t, prefetched_bytes, bytes);
  history_add(g->observer->history, HISTORY_prefetched_bytes, from, bytes);
  t.kernel->h2d_bytes += bytes;
  t.kernel->pages_moved_in += (bytes + FF_PAGE_BYTES - 1) / FF_PAGE_BYTES;
  agenda_add(g->agenda, lands, EVENT_FLIGHT, flight);
  return lands;
}

/* Starts the next absent piece of what the launch declares; false: it has looked at everything. */
static bool next_piece(segments *g, node *n) {
  for (; n->use < n->uses.count; n->use++) {
    pager_allocation a = g->pager->allocations.items[n->uses.items[n->use]];
    uint64_t at = n->use_at > a.address ? n->use_at : a.address, end = a.address + a.bytes;
    pager_walk w = pager_walk_begin(g->pager, at, end - at);
    for (const pager_unit *unit; (unit = pager_walk_next(&w));) {
      if (!pager_may_come(unit)) continue;
      uint64_t block_end = (w.first & ~(FF_BLOCK_BYTES - 1)) + FF_BLOCK_BYTES,
               piece_end = block_end < end ? block_end : end;
      n->use_at = piece_end;
      if (fetch_range(g, n, w.first, piece_end - w.first)) return true;
      break; /* no room for it; the next piece may be smaller */
    }
    if (n->use_at > at && n->use_at < end) return true;
    n->use_at = 0;
  }
  return false;
}

static bool link_idle(const segments *g) {
  return link_free(&g->link->wire->h2d) <= g->agenda->now && g->link->engines->link[0].free <= g->agenda->now;
}

void segments_idle(segments *g) {
  if (!g->manager->segments || !g->kernels->running || g->faults->idle_pending) return;
  for (size_t i = 0; i < g->ahead.count && link_idle(g); i++) {
    node *n = g->streams->nodes.items[g->ahead.items[i]];
    while (n->only_kernels && link_idle(g) && next_piece(g, n)) continue;
  }
  if (link_idle(g)) return;
  ps free = link_free(&g->link->wire->h2d) > g->link->engines->link[0].free ? link_free(&g->link->wire->h2d)
                                                                            : g->link->engines->link[0].free;
  fault_idle_at(g->faults, free);
}

/* ---- the launch's turn ---- */

static void no_longer_ahead(segments *g, const node *n) {
  size_t kept = 0;
  for (size_t i = 0; i < g->ahead.count; i++)
    if (g->ahead.items[i] != n->index) g->ahead.items[kept++] = g->ahead.items[i];
  g->ahead.count = kept;
}

ps segments_resident(segments *g, node *n, ps time) {
  if (!g->manager->segments) return time;
  no_longer_ahead(g, n);
  if (g->manager->reaches) { /* it begins, and reaches over the link what is not there yet */
    if (!n->waited) pager_launching(g->pager, n->uses.items, n->uses.count);
    n->waited = true;
    return time;
  }
  ps lands = time;
  uint64_t moves = 0;
  for (size_t i = 0; i < n->uses.count; i++) {
    pager_allocation a = g->pager->allocations.items[n->uses.items[i]];
    moves += fetch_range(g, n, a.address, a.bytes);
    ps busy = pager_busy_until(g->pager, a.address, a.bytes);
    if (busy > lands) lands = busy;
  }
  bool waited = n->waited;
  n->waited = true;
  return moves || !waited ? lands : time; /* what others fetch of it meanwhile does not hold it up for ever */
}

void segments_free(segments *g) { free(g->ahead.items); }
