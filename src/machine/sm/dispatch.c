/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks onto SMs. Kernels queue in the order in which their streams let them begin; the first one's blocks start in
 * order, round robin over the SMs with room, and only when all of them have started do the next kernel's (that is how
 * kernels of different streams overlap: in what the first leaves free). A kernel that is bound to some SMs (a green
 * context's) leaves the others to those behind it: of each SM the first kernel in the queue that may run there has it.
 *
 * A block whose code read %smid starts only on the SM that it was told: those behind it wait for it.
 *
 *     a block fits if   threads + its <= max_threads,  blocks + 1 <= max_blocks,
 *                       registers + its <= registers,  shared + its <= shared_bytes   - or the SM is empty
 *
 * A block that has exited gives its place back at once; the kernel is over when its last access is.
 *
 * Several tenants (device.c) each have such a queue; which of them may start a block on an SM is what their isolation
 * says:
 *
 *     none       the owner of the time slice, on any SM: after 2 ms (SLICE) the next one that has kernels, when the blocks that run are over
 *     mps        all, on any SM, each within its share of the GPU's threads
 *     sm         each on its own SMs; with `borrow` also on those of a tenant that has nothing to run, until it has */
#include <stdlib.h>

#include "machine/simulation.h"
#include "machine/stacks/learn.h"

/* May a block of the tenant start there now, as far as the others are concerned? */
static bool tenant_may(const sim *s, const sm *m, const kernel *k) {
  device *d = s->d;
  switch (d->isolation) {
  case SIM_ISOLATION_NONE: return d->slice_owner == s->tenant && !d->slice_over;
  case SIM_ISOLATION_MPS:
    return !s->dispatch.thread_limit || !s->dispatch.threads ||
           s->dispatch.threads + k->block_threads <= s->dispatch.thread_limit;
  default: break;
  }
  if (sm_set_has(&d->tenants[s->tenant].sms, m->index)) return true;
  return d->borrow && idle_sharing_may(&s->lent, m, k);
}

/* Does the block only end? Then it does not matter where. */
static bool is_idle(sim *s, const kernel *k, trace_chunk *chunk) {
  bool idle = true;
  for (uint32_t w = 0; w < k->warps_per_block && idle; w++) {
    trace_cursor cursor;
    trace_cursor_open(s->reader, chunk, w, &cursor);
    trace_kind kind;
    do kind = trace_word_kind(*trace_cursor_next(s->reader, &cursor));
    while (kind == TRACE_ISSUE);
    idle = kind == TRACE_EXIT;
    trace_cursor_close(s->reader, &cursor);
  }
  return idle;
}

static bool is_own(const sim *s, const kernel *k, uint32_t sm) {
  const device *d = s->d;
  if (k->sms && !sm_set_has(k->sms, sm)) return false;
  return !d->shared || d->isolation < SIM_ISOLATION_SM || sm_set_has(&d->tenants[s->tenant].sms, sm);
}

/* Block b was told that it is on the (b % smids)-th SM: of those that are the kernel's here. */
static uint32_t told_sm(const sim *s, const kernel *k, uint64_t number) {
  uint32_t own = 0;
  for (uint32_t i = 0; i < s->spec->sm_count; i++) own += is_own(s, k, i);
  if (!own) return UINT32_MAX;
  uint32_t nth = (uint32_t)(number % k->launch->smids % own), sm = 0;
  while (!is_own(s, k, sm) || nth--) sm++;
  return sm;
}

/* A block that has read %smid runs where it was told that it does. */
static bool smid_allows(sim *s, const sm *m, kernel *k) {
  if (!k->launch->smids || k->next_block == k->blocks) return true;
  if (!k->ahead) {
    sim_unlock(s); /* waits until the block has been executed */
    k->ahead = trace_reader_chunk(s->reader, k->launch, k->next_block);
    sim_lock(s);
    k->bound_to = is_idle(s, k, k->ahead) ? UINT32_MAX : told_sm(s, k, k->next_block);
  }
  return k->bound_to == UINT32_MAX || k->bound_to == m->index;
}

/* May a block of the kernel start on the SM? */
static bool block_fits(sim *s, const sm *m, kernel *k) {
  const machine_spec *spec = s->spec;
  if (k->sms && !sm_set_has(k->sms, m->index)) return false;
  if (s->d->shared && !tenant_may(s, m, k)) return false;
  if (__builtin_expect(s->stacks != NULL, 0) && learner_holds(s, k)) return false;
  if (!smid_allows(s, m, k)) return false;
  if (!m->blocks) return true; /* the functional half has accepted it: an estimate of registers must not refuse it */
  return m->blocks < spec->max_blocks && m->threads + k->block_threads <= spec->max_threads &&
         m->registers + k->block_registers <= spec->registers &&
         m->shared_bytes + k->block_shared <= spec->shared_bytes;
}

static void sm_occupy(sm *m, const kernel *k, int sign) {
  m->blocks += (uint32_t)sign;
  m->threads += (uint32_t)sign * k->block_threads;
  m->registers += (uint64_t)(int64_t)sign * k->block_registers;
  m->shared_bytes += (uint64_t)(int64_t)sign * k->block_shared;
  k->sim->dispatch.running_blocks += (uint32_t)sign;
  k->sim->dispatch.threads += (uint64_t)(int64_t)sign * k->block_threads;
}

/* ---- where the program has come to, for policies that know its future: the first block that is not over ---- */

static void position_begin(sim *s, block *b, uint64_t number) {
  if (s->record) trace_future_block(s->record, s->reader, b->chunk, b->kernel->launch, number);
  if (!s->future) return;
  b->position = trace_future_position(s->future, b->kernel->launch, number);
  FF_PUSH(&s->dispatch.positions, b->position);
  if (s->dispatch.positions.count == 1) s->pager->position = b->position;
  if (s->pager->position_last < b->position) s->pager->position_last = b->position;
}

static void position_end(sim *s, const block *b) {
  if (!s->future) return;
  size_t at = 0;
  while (s->dispatch.positions.items[at] != b->position) at++;
  s->dispatch.positions.items[at] = s->dispatch.positions.items[--s->dispatch.positions.count];
  if (b->position != s->pager->position) return;
  uint64_t first = s->dispatch.positions.count ? UINT64_MAX : b->position + 1;
  for (size_t i = 0; i < s->dispatch.positions.count; i++)
    if (s->dispatch.positions.items[i] < first) first = s->dispatch.positions.items[i];
  s->pager->position = first;
}

/* ---- blocks ---- */

static void block_start(sim *s, sm *m, kernel *k, ps time) {
  block *b = s->dispatch.free_blocks;
  if (b) s->dispatch.free_blocks = b->next_free;
  else FF_PUSH(&s->dispatch.blocks, b = ff_alloc(sizeof *b));
  uint64_t number = k->next_block++;
  trace_chunk *chunk = k->ahead;
  k->ahead = NULL;
  if (!chunk) {
    sim_unlock(s); /* waits until the block has been executed */
    chunk = trace_reader_chunk(s->reader, k->launch, number);
    sim_lock(s);
  }
  *b = (block){.kernel = k, .chunk = chunk, .sm = m, .live = k->warps_per_block, .serial = ++s->dispatch.blocks_begun};
  position_begin(s, b, number);
  sm_occupy(m, k, 1);
  if (s->d->borrow) idle_sharing_block_start(&s->lent, m, time);
  ps start = m->next_block > time ? m->next_block : time;
  b->began = start;
  m->next_block = start + s->t.block_launch;
  k->counters->blocks++;
  for (uint32_t i = 0; i < k->warps_per_block; i++) {
    warp *w = warp_take(&s->d->warps, &s->d->arena);
    uint32_t index = w->index;
    *w = (warp){.block = b,
                .index = index,
                .sm = m,
                .counters = k->counters,
                .scheduler = &m->schedulers[m->next_scheduler++ % s->spec->schedulers]};
    trace_cursor_open(s->reader, chunk, i, &w->cursor);
    event_push(s->agenda.heap, start, EVENT_WARP, index);
  }
}

/* Whose turn the SM is; NULL: no kernel that waits may run there. */
static kernel *first_for(const sim *s, const sm *m) {
  kernel *k = s->dispatch.queue_first;
  while (k && k->sms && !sm_set_has(k->sms, m->index)) k = k->next;
  return k;
}

/* Starts blocks of one kernel until nothing fits. */
static void start_blocks(sim *s, kernel *k, ps time) {
  uint32_t full = 0;
  bool first = k == s->dispatch.queue_first;
  while (k->next_block < k->blocks && full < s->spec->sm_count) {
    sm *m = &s->sms[s->dispatch.next_sm];
    s->dispatch.next_sm = s->dispatch.next_sm + 1 < s->spec->sm_count ? s->dispatch.next_sm + 1 : 0;
    full++;
    if (!block_fits(s, m, k) || (!first && first_for(s, m) != k)) continue;
    block_start(s, m, k, time);
    full = 0;
  }
}

/* Starts blocks of the first kernels until nothing fits; of later ones on SMs that those in front may not have. */
static void dispatch(sim *s, ps time) {
  kernel *before = NULL;
  for (kernel *k = s->dispatch.queue_first, *next; k; k = next) {
    next = k->next;
    start_blocks(s, k, time);
    if (k->next_block == k->blocks) {
      if (before) before->next = next;
      else s->dispatch.queue_first = next;
      if (!next) s->dispatch.queue_last = before;
      k->next = s->dispatch.running;
      s->dispatch.running = k;
    } else {
      if (!k->sms) return;
      before = k;
    }
  }
}

void dispatch_again(sim *s, ps time) { dispatch(s, time); }

/* One SM has room again. All others are full for the kernels whose turn they are. */
static void dispatch_to(sim *s, sm *m, ps time) {
  kernel *k = first_for(s, m);
  if (!k) return;
  while (k->next_block < k->blocks && block_fits(s, m, k)) block_start(s, m, k, time);
  /* the next block may be bound to an SM that has room */
  if (k->next_block == k->blocks || k->launch->smids) dispatch(s, time);
}

/* The same for all tenants, block by block in turn. */
static void dispatch_all_to(device *d, sm *m, ps time) {
  for (uint32_t refused = 0; refused < d->tenant_count;) {
    sim *s = d->tenants[d->turn].sim;
    d->turn = d->turn + 1 < d->tenant_count ? d->turn + 1 : 0;
    kernel *k = s ? first_for(s, m) : NULL;
    if (!k || k->next_block == k->blocks || !block_fits(s, m, k)) {
      refused++;
      continue;
    }
    refused = 0;
    block_start(s, m, k, time);
    /* its next kernel, or its next block elsewhere */
    if (k->next_block == k->blocks || k->launch->smids) dispatch(s, time);
  }
}

/* The tenant may have nothing to run any more: all of its SMs, the last block's was one of them only, are there for
 * others. */
static void lend_all(sim *s, ps time) {
  const tenant *own = &s->d->tenants[s->tenant];
  for (uint32_t i = 0; i < s->spec->sm_count && !s->dispatch.kernels.running; i++)
    if (sm_set_has(&own->sms, i)) dispatch_all_to(s->d, &s->sms[i], time);
}

/* ---- time slices ---- */

/* Its end is no tenant's event: nobody waits for it. */
static void slice_renew(device *d, ps time) {
  d->slice_until = time + SLICE;
  event_push(&d->heap, d->slice_until, EVENT_SLICE, 0);
}

static void slice_begin(device *d, uint32_t owner, ps time) {
  d->slice_owner = owner;
  d->slice_over = false;
  slice_renew(d, time);
  dispatch(d->tenants[owner].sim, time);
}

/* The slice is over and no block runs: the next tenant with kernels has its turn, or nobody. */
static void slice_end(device *d, ps time) {
  uint32_t from = d->slice_owner;
  for (uint32_t i = 1; i <= d->tenant_count; i++) {
    uint32_t next = (from + i) % d->tenant_count;
    if (!d->tenants[next].sim || !d->tenants[next].sim->dispatch.queue_first) continue;
    slice_begin(d, next, time);
    return;
  }
  d->slice_owner = TENANTS;
  d->slice_over = false;
}

static bool others_wait(const device *d) {
  for (uint32_t i = 0; i < d->tenant_count; i++)
    if (i != d->slice_owner && d->tenants[i].sim && d->tenants[i].sim->dispatch.queue_first) return true;
  return false;
}

/* The time of a slice is up: of this one, or of one before that ended early. */
void dispatch_slice(device *d, ps time) {
  if (d->slice_owner == TENANTS || time < d->slice_until) return;
  const sim *s = d->tenants[d->slice_owner].sim; /* NULL: between two rounds */
  if (s && s->dispatch.kernels.running && !others_wait(d)) {
    slice_renew(d, time);
    return;
  }
  d->slice_over = true;
  if (!s || !s->dispatch.running_blocks) slice_end(d, time);
}

/* A kernel need not wait for the end of a slice whose owner has nothing to run. */
static void slice_kernel(sim *s, ps time) {
  device *d = s->d;
  const sim *owner = d->slice_owner < TENANTS ? d->tenants[d->slice_owner].sim : NULL;
  if (owner != s && (!owner || (!owner->dispatch.queue_first && !owner->dispatch.running_blocks)))
    slice_begin(d, s->tenant, time);
}

/* The owner's last block is over, for now: who waits need not wait for the end of the slice. */
static void slice_block_over(sim *s, ps time) {
  device *d = s->d;
  if (d->slice_owner != s->tenant || s->dispatch.running_blocks) return;
  if (d->slice_over || (!s->dispatch.queue_first && others_wait(d))) slice_end(d, time);
}

/* ---- kernels ---- */

/* The L1s of the SMs on which it may run are empty when a kernel begins. */
static void clear_caches(sim *s, const kernel *k) {
  for (uint32_t i = 0; i < s->d->sm_total; i++) {
    sm *m = &s->sms[i];
    if (k->sms && !m->stack && !sm_set_has(k->sms, i)) continue;
    if (s->d->isolation >= SIM_ISOLATION_SM && !s->d->borrow && !sm_set_has(&s->d->tenants[s->tenant].sms, i)) continue;
    if (++m->l1_epoch < 1 << 16) continue;
    m->l1_epoch = 1;
    cache_clear(&m->l1);
  }
}

void kernel_begin(sim *s, kernel *k, ps time) {
  k->began = k->ended = time;
  if (!s->dispatch.kernels.running) {
    link_account(&s->link, time);
    s->dispatch.kernels.since = time;
  }
  s->dispatch.kernels.running++;
  if (s->d->borrow) idle_sharing_kernel_begin(&s->lent, time);
  clear_caches(s, k);
  if (s->stacks && s->stacks->learner) learner_kernel(s, k->launch, time);
  k->next = NULL;
  if (s->dispatch.queue_last) s->dispatch.queue_last->next = k;
  else s->dispatch.queue_first = k;
  s->dispatch.queue_last = k;
  if (s->d->shared && s->d->isolation == SIM_ISOLATION_NONE) slice_kernel(s, time);
  /* a slice may have begun, and all of its blocks */
  if (s->dispatch.queue_first && (s->dispatch.queue_first == k || s->dispatch.queue_first->sms)) dispatch(s, time);
  fault_idle(&s->faults);
}

static void kernel_end(sim *s, kernel *k) {
  kernel **link = &s->dispatch.running;
  while (*link != k) link = &(*link)->next;
  *link = k->next;
  if (!--s->dispatch.kernels.running && k->ended > s->dispatch.kernels.since) {
    s->observer.counters.kernel_ps += k->ended - s->dispatch.kernels.since;
    history_spread(s->observer.history, HISTORY_kernel_ps, s->dispatch.kernels.since, k->ended,
                   k->ended - s->dispatch.kernels.since);
  }
  if (s->d->borrow) idle_sharing_kernel_end(&s->lent, k->ended);
  if (s->observer.history) record_kernel(&s->observer, k, s->streams.nodes.items[k->node]->op.stream);
  if (k->ended > s->dispatch.kernels.until) s->dispatch.kernels.until = k->ended; /* may be later than now */
  k->counters->time_ps += k->ended - k->began;
  k->counters->kernel_ps += k->ended - k->began;
  k->counters->launches++;
  agenda_add(&s->agenda, k->ended, EVENT_NODE_DONE, k->node);
}

void block_end(sim *s, block *b) {
  kernel *k = b->kernel;
  sm *m = b->sm;
  ps time = b->ended, over = b->drained > time ? b->drained : time;
  sm_occupy(m, k, -1);
  if (s->d->borrow) idle_sharing_block_end(&s->lent, m, time);
  if (over > b->began) history_spread(s->observer.history, HISTORY_block_ps, b->began, over, over - b->began);
  bool last = ++k->done_blocks == k->blocks;
  if (k->longest_block < over - b->began) k->longest_block = over - b->began;
  if (s->d->borrow) idle_sharing_look(&s->lent, time);
  if (k->ended < over) k->ended = over;
  trace_reader_release(s->reader, b->chunk);
  position_end(s, b);
  b->next_free = s->dispatch.free_blocks;
  s->dispatch.free_blocks = b;
  if (last) kernel_end(s, k);
  if (!s->d->shared) {
    dispatch_to(s, m, time);
    return;
  }
  if (s->d->isolation == SIM_ISOLATION_NONE) slice_block_over(s, time);
  dispatch_all_to(s->d, m, time);
  if (last && s->d->borrow) lend_all(s, time);
  else if (s->d->borrow && k->done_blocks == 1)
    dispatch(s, time);                             /* that its blocks are short is known now: on what is lent, too */
  if (s->dispatch.thread_limit) dispatch(s, time); /* elsewhere, too: its threads have become fewer */
}
