/* SPDX-License-Identifier: Apache-2.0 */
/* What must hold when a simulation has come to its program's end, at the deepest check level:
 *
 *     every resource that was held is released: warps, blocks, what they take of SMs, load/store units, MSHRs,
 *         operations, events, flights, far-faults, places in memory stacks
 *     every frame of physical memory belongs to one page; every TLB entry to a page that is there
 *     what the history has over time and by address adds up to the counters
 *     of accesses that are counted by instruction, all are: none is left with its kernel
 *     the bytes that the link carried are the bytes that were counted as moved, each way, and those of copies between
 *         other devices (no more than these, where allocations share pages) */
#include "machine/simulation.h"

/* Places that are held until a known time: until the last operation's end, at most. */
static void check_slots(const slots *s, ps end) {
  for (uint32_t i = 0; i < s->capacity; i++) FF_ASSERT(s->until[s->first + i] <= end);
}

static void check_sm(const sm *m, ps end) {
  FF_ASSERT(!m->blocks && !m->threads && !m->registers && !m->shared_bytes);
  FF_ASSERT(!m->lsu.owner && !m->lsu.first && !m->lsu.last);
  FF_ASSERT(!m->bulk.owner && !m->bulk.first && !m->bulk.last);
  FF_ASSERT(!m->tlb_blocked && !m->blocked_warps->count);
  check_slots(&m->l1_mshrs, end);
  check_slots(&m->stores, end);
}

/* Of a device that others share, their warps may still run. */
static void check_device(const sim *s) {
  const device *d = s->d;
  if (d->shared) return;
  FF_ASSERT(d->warps.free.count + 1 == d->warps.count); /* [0] is none */
  FF_ASSERT(!event_any(&d->heap));
  for (uint32_t i = 0; i < d->sm_total; i++) check_sm(&d->sms[i], s->streams.end);
}

static void check_dispatcher(const dispatcher *d) {
  size_t idle = 0;
  FF_ASSERT(!d->queue_first && !d->running && !d->kernels.running && !d->running_blocks && !d->held && !d->threads &&
            !d->positions.count);
  for (const block *b = d->free_blocks; b; b = b->next_free) idle++;
  FF_ASSERT(idle == d->blocks.count);
}

static void check_streams(const streams *s) {
  FF_ASSERT(!s->unfinished);
  for (size_t i = 1; i < s->nodes.count; i++)
    FF_ASSERT(!s->nodes.items[i] || (s->nodes.items[i]->done && !s->nodes.items[i]->kernel));
  for (size_t i = 0; i < s->records.count; i++) FF_ASSERT(s->records.items[i].known);
}

static void check_faults(const sim *s) {
  const far_faults *f = &s->faults;
  const pager *p = s->pager;
  FF_ASSERT(f->batch == BATCH_NONE && !f->batch_faults.count && !f->idle_pending && !f->clean_pending);
  FF_ASSERT(!s->tiers.places || !tiers_waiting(s->tiers.places));
  FF_ASSERT(!p->flight_count && !p->in_flight && !p->starved_first && !p->buffer_live && !p->used_allocations);
  for (uint32_t i = 0; i < s->d->sm_total; i++) FF_ASSERT(!p->sms[i].pending && !p->sms[i].queue_first);
}

static void check_stacks(const stacks *k, const controller *c) {
  for (uint32_t i = 0; k && i < k->count; i++)
    FF_ASSERT(!k->items[i].pending && !k->items[i].running && !k->items[i].registers && !k->items[i].first_waiting);
  for (size_t i = 0; i < c->instances.count; i++) FF_ASSERT(!c->instances.items[i].away);
}

/* Where small allocations share a page, what comes in one piece carries it once, and each of them counts it. */
static void check_link(const sim *s) {
  const sim_counters *c = &s->observer.counters;
  uint64_t out = c->d2h_bytes + s->transfers.foreign[0], in = c->h2d_bytes + s->transfers.foreign[1];
  if (s->host.instant) return; /* copies are counted, and take no time */
  bool share = s->pager->sibling_count > 1;
  FF_ASSERT(share ? s->link.moved[0] <= out : s->link.moved[0] == out);
  FF_ASSERT(share ? s->link.moved[1] <= in : s->link.moved[1] == in);
}

static uint64_t sum_of(const sim_history *h, history_series series) {
  uint64_t sum = 0;
  for (uint32_t bin = 0; bin < h->bins; bin++) sum += h->series[series][bin];
  return sum;
}

static void check_map(const history_map *m, const sim_counters *allocation) {
  history_cell sum = {0};
  for (uint32_t i = 0; i < HISTORY_MAP_BINS * m->rows; i++) {
    sum.accesses += m->cells[i].accesses;
    sum.faults += m->cells[i].faults;
    sum.evicted_bytes += m->cells[i].evicted_bytes;
  }
  FF_ASSERT(sum.accesses == allocation->accesses && sum.faults == allocation->faults &&
            sum.evicted_bytes == allocation->evicted_bytes);
}

/* Bytes over the link are those that it carried: where the device's counters have others' copies, too, or none. */
static void check_history(const sim *s) {
  const sim_history *h = s->observer.history;
  sim_counters total;
  counters_of_run(&s->observer, &total);
  profile_run(&s->profile, &total);
#define SAME(name) FF_ASSERT(sum_of(h, HISTORY_##name) == total.name);
  /* clang-format off */
  SAME(remote_bytes) SAME(accesses) SAME(faults) SAME(faults_merged) SAME(faults_throttled) SAME(refaults) SAME(host_faults)
  SAME(prefetched_bytes) SAME(prefetched_unused_bytes) SAME(evicted_bytes) SAME(written_back_bytes)
      /* clang-format on */
      if (!s->profile.asked) { /* what is under way when a range begins or ends is in one bin, or in none */
    SAME(kernel_ps)
    FF_ASSERT(sum_of(h, HISTORY_d2h_bytes) == s->link.moved[0] && sum_of(h, HISTORY_h2d_bytes) == s->link.moved[1]);
  }
#undef SAME
  for (size_t i = 0; i < h->maps.count; i++) {
    sim_counters allocation = s->observer.allocations.items[i]->counters;
    profile_allocation(&s->profile, i, &allocation);
    if (h->maps.items[i]) check_map(h->maps.items[i], &allocation);
  }
}

static void check_lines(const sim *s) {
  if (s->observer.lines->item_count == LINES_SHOWN) return;
  for (size_t i = 0; i < s->observer.kernels.count; i++) {
    const sim_counters *own = &s->observer.kernels.items[i]->counters;
    FF_ASSERT(!own->accesses && !own->sectors && !own->faults && !own->refaults && !own->fault_wait_ps &&
              !own->dram_read_bytes);
  }
}

void sim_check(const sim *s) {
  pager_check_all(s->pager);
  check_dispatcher(&s->dispatch);
  check_streams(&s->streams);
  check_faults(s);
  check_stacks(s->stacks, &s->controller);
  check_device(s);
  check_link(s);
  address_map_check(&s->placing);
  idle_sharing_check(&s->lent);
  tlb_check(&s->gmmu);
  if (s->observer.history) check_history(s);
  if (s->observer.lines) check_lines(s);
  FF_ASSERT(!s->agenda.pending && !s->segments.ahead.count);
}
