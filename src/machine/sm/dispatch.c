/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks onto SMs. Kernels queue in the order in which their streams let them begin; the first one's blocks start in
 * order, round robin over the SMs with room, and only when all of them have started do the next kernel's (that is how
 * kernels of different streams overlap: in what the first leaves free). A kernel that is bound to some SMs (a green
 * context's) leaves the others to those behind it: of each SM the first kernel in the queue that may run there has it.
 *
 * A block whose code read %smid starts only on the SM that it was told: those behind it wait for it.
 *
 *     a block fits if   threads + its <= max_threads,  blocks + 1 <= max_blocks,
 *                       registers + its <= registers,  shared + its <= its carve-out   - or the SM is empty
 *
 * Where the L1 and shared memory are one, an empty SM divides it as its next block's kernel wants; that empties the L1.
 *
 * A block that has exited gives its place back at once; the kernel is over when its last access is.
 *
 * Several tenants (device.c) each have such a queue; which of them may start a block on an SM is what their isolation
 * says:
 *
 *     none       the owner of the time slice, on any SM: after 2 ms (SLICE) the next one that has kernels, when the blocks that run are over
 *     mps        all, on any SM, each within its share of the GPU's threads. An SM that has divided its memory for kernels of others in
 *                a way that leaves no room for a block of a kernel is kept free of kernels that began after that one,
 *                until it is empty: it would not be while others' blocks come and go, and a kernel would wait for as
 *                long as they do
 *     sm         each on its own SMs; with `borrow` also on those of a tenant that has nothing to run, until it has */
#include "machine/sm/dispatch.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "machine/answers.h"
#include "machine/host/link.h"
#include "machine/memory/far_fault.h"
#include "machine/memory/hierarchy.h"
#include "machine/observe/observer.h"
#include "machine/sm/async.h"
#include "machine/sm/rounds.h"
#include "machine/sm/sample.h"
#include "machine/spec/allocation.h"
#include "machine/stacks/learn.h"
#include "machine/tenants/device.h"
#include "machine/tenants/idle_sharing.h"

/* May a block of the tenant start there now, as far as the others are concerned? */
static bool tenant_may(const dispatcher *q, const sm *m, const kernel *k) {
  device *d = q->d;
  switch (d->isolation) {
  case SIM_ISOLATION_NONE: return d->slice_owner == q->tenant && !d->slice_over;
  case SIM_ISOLATION_MPS: return !q->thread_limit || !q->threads || q->threads + k->block_threads <= q->thread_limit;
  default: break;
  }
  if (sm_set_has(&d->tenants[q->tenant].sms, m->index)) return true;
  return d->borrow && idle_sharing_may(q->lent, m, k);
}

/* Does the block only end? Then it does not matter where. */
static bool is_idle(dispatcher *q, const kernel *k, trace_chunk *chunk) {
  bool idle = true;
  for (uint32_t w = 0; w < k->warps_per_block && idle; w++) {
    trace_cursor cursor;
    trace_cursor_open(q->reader, chunk, w, &cursor);
    trace_kind kind;
    do kind = trace_word_kind(*trace_cursor_next(q->reader, &cursor));
    while (kind == TRACE_ISSUE || kind == TRACE_UNITS);
    idle = kind == TRACE_EXIT;
    trace_cursor_close(q->reader, &cursor);
  }
  return idle;
}

static bool is_own(const dispatcher *q, const kernel *k, uint32_t sm) {
  const device *d = q->d;
  if (k->sms && !sm_set_has(k->sms, sm)) return false;
  return !d->shared || d->isolation < SIM_ISOLATION_SM || sm_set_has(&d->tenants[q->tenant].sms, sm);
}

/* Block b was told that it is on the (b % smids)-th SM: of those that are the kernel's here. */
static uint32_t told_sm(const dispatcher *q, const kernel *k, uint64_t number) {
  uint32_t own = 0;
  for (uint32_t i = 0; i < q->spec->sm_count; i++) own += is_own(q, k, i);
  if (!own) return UINT32_MAX;
  uint32_t nth = (uint32_t)(number % k->launch->smids % own), sm = 0;
  while (!is_own(q, k, sm) || nth--) sm++;
  return sm;
}

/* A block that has read %smid runs where it was told that it does. */
static bool smid_allows(dispatcher *q, const sm *m, kernel *k) {
  if (!k->launch->smids || k->next_block == k->blocks) return true;
  if (!k->ahead) {
    answers_unlock(q->answers); /* waits until the block has been executed */
    k->ahead = trace_reader_chunk(q->reader, k->launch, k->next_block);
    answers_lock(q->answers);
    k->bound_to = is_idle(q, k, k->ahead) ? UINT32_MAX : told_sm(q, k, k->next_block);
  }
  return k->bound_to == UINT32_MAX || k->bound_to == m->index;
}

/* The kernel that may have the SM; NULL: none of those that wait may run there. */
static kernel *first_for(const dispatcher *q, const sm *m) {
  kernel *k = q->queue_first;
  while (k && k->sms && !sm_set_has(k->sms, m->index)) k = k->next;
  return k;
}

/* Does the tenant's next block wait for nothing but that the SM divides its memory another way? */
static bool waits_to_divide(const dispatcher *q, const sm *m, const kernel *k) {
  if (k->next_block == k->blocks || k->carve_out <= m->carve_out || m->shared_bytes + k->block_shared <= m->carve_out)
    return false;
  if (k->launch->smids && (!k->ahead || (k->bound_to != UINT32_MAX && k->bound_to != m->index))) return false;
  return tenant_may(q, m, k);
}

/* Is the SM kept for another tenant's kernel that began before this one? */
static bool is_kept(const dispatcher *q, const sm *m, const kernel *k) {
  device *d = q->d;
  for (uint32_t i = 0; i < d->tenant_count; i++) {
    const dispatcher *other = d->tenants[i].dispatch;
    const kernel *first = i != q->tenant && other ? first_for(other, m) : NULL;
    if (!first || first->began > k->began || (first->began == k->began && i > q->tenant)) continue;
    if (!waits_to_divide(other, m, first)) continue;
    d->kept = true;
    return true;
  }
  return false;
}

/* May a block of the kernel start on the SM? */
static bool block_fits(dispatcher *q, const sm *m, kernel *k) {
  const machine_spec *spec = q->spec;
  if (k->sms && !sm_set_has(k->sms, m->index)) return false;
  if (q->d->shared && !tenant_may(q, m, k)) return false;
  if (__builtin_expect(learner_delays(q->learner), 0) && learner_holds(q->learner, k)) return false;
  if (!smid_allows(q, m, k)) return false;
  if (q->d->shared && q->d->isolation == SIM_ISOLATION_MPS && is_kept(q, m, k)) return false;
  if (!m->blocks) return true; /* the functional half has accepted it: an estimate of registers must not refuse it */
  return m->blocks < spec->max_blocks && m->threads + k->block_threads <= spec->max_threads &&
         m->registers + k->block_registers <= spec->registers && m->shared_bytes + k->block_shared <= m->carve_out;
}

static void sm_divide(sm *m, const machine_spec *spec, const kernel *k) {
  if (m->blocks || m->carve_out == k->carve_out) return;
  m->carve_out = k->carve_out;
  cache_resize(&m->l1, allocation_l1(spec, k->carve_out));
}

static void sm_occupy(sm *m, const kernel *k, int sign) {
  m->blocks += (uint32_t)sign;
  m->threads += (uint32_t)sign * k->block_threads;
  m->registers += (uint64_t)(int64_t)sign * k->block_registers;
  m->shared_bytes += (uint64_t)(int64_t)sign * k->block_shared;
  k->dispatch->d->blocks += (uint32_t)sign;
  k->dispatch->running_blocks += (uint32_t)sign;
  k->dispatch->threads += (uint64_t)(int64_t)sign * k->block_threads;
}

/* ---- L1s, which are empty when a kernel begins ---- */

static void clear_l1(sm *m) {
  if (++m->l1_epoch < 1 << 16) return;
  m->l1_epoch = 1;
  cache_clear(&m->l1);
}

/* What nothing uses need not be cleared more than once. */
static void follow_clears(const device *d, sm *m) {
  if (m->l1_clears == d->l1_clears) return;
  m->l1_clears = d->l1_clears;
  clear_l1(m);
}

/* Of the SMs on which the kernel may run. */
static void clear_caches(dispatcher *q, const kernel *k) {
  device *d = q->d;
  bool own_sms = d->isolation >= SIM_ISOLATION_SM && !d->borrow;
  if (!k->sms && !own_sms) {
    uint32_t first = d->blocks ? 0 : (uint32_t)d->spec.sm_count; /* those in stacks, behind, have no blocks */
    d->l1_clears++;
    for (uint32_t i = first; i < d->sm_total; i++)
      if (d->sms[i].blocks || d->sms[i].stack) follow_clears(d, &d->sms[i]);
    return;
  }
  for (uint32_t i = 0; i < d->sm_total; i++) {
    if (k->sms && !d->sms[i].stack && !sm_set_has(k->sms, i)) continue;
    if (own_sms && !sm_set_has(&d->tenants[q->tenant].sms, i)) continue;
    clear_l1(&d->sms[i]);
  }
}

/* ---- where the program has come to, for policies that use its future: the first block that is not over ---- */

static void position_begin(dispatcher *q, block *b, uint64_t number) {
  if (q->written) trace_future_block(q->written, q->reader, b->chunk, b->kernel->launch, number);
  if (!q->future) return;
  b->position = trace_future_position(q->future, b->kernel->launch, number);
  FF_PUSH(&q->positions, b->position);
  if (q->positions.count == 1) q->pager->position = b->position;
  if (q->pager->position_last < b->position) q->pager->position_last = b->position;
}

static void position_end(dispatcher *q, const block *b) {
  if (!q->future) return;
  size_t at = 0;
  while (q->positions.items[at] != b->position) at++;
  q->positions.items[at] = q->positions.items[--q->positions.count];
  if (b->position != q->pager->position) return;
  uint64_t first = q->positions.count ? UINT64_MAX : b->position + 1;
  for (size_t i = 0; i < q->positions.count; i++)
    if (q->positions.items[i] < first) first = q->positions.items[i];
  q->pager->position = first;
}

/* ---- blocks ---- */

/* When a block that may start at `time` does: the GPU starts one after the other, and so does each SM. What an SM makes
 * wait does not hold up the others. */
static ps place_taken(device *d, sm *m, ps time, const timing *t) {
  ps turn = d->next_block > time ? d->next_block : time;
  d->next_block = turn + t->gpu_block_launch;
  ps start = m->next_block > turn ? m->next_block : turn;
  m->next_block = start + t->block_launch;
  return start;
}

/* Nothing is known of the warp; what it sets before it looks at it stays as it is: of a GPU's warps that is more than
 * the host's caches have. */
static void warp_clear(warp *w, bool rounds) {
  memset(w, 0, offsetof(warp, group_arrival));
  if (ff_check_level >= 2) memset(w->group_arrival, 0xff, offsetof(warp, open) - offsetof(warp, group_arrival));
  if (rounds) memset(w->open, 0, sizeof w->open);
}

static void block_start(dispatcher *q, sm *m, kernel *k, ps time) {
  block *b = q->free_blocks;
  if (b) {
    q->free_blocks = b->next_free;
  } else {
    b = ff_alloc(sizeof *b);
    FF_PUSH(&q->blocks, b);
  }
  uint64_t number = k->next_block++;
  trace_chunk *chunk = k->ahead;
  k->ahead = NULL;
  if (k->sampled && !chunk) chunk = sample_taken(k->sampled, number);
  if (!chunk) {
    answers_unlock(q->answers); /* waits until the block has been executed */
    chunk = trace_reader_chunk(q->reader, k->launch, number);
    answers_lock(q->answers);
  }
  trace_chunk_prefetch(chunk);
  *b = (block){
      .kernel = k, .chunk = chunk, .sm = m, .number = number, .live = k->warps_per_block, .serial = ++q->blocks_begun};
  position_begin(q, b, number);
  follow_clears(q->d, m);
  sm_divide(m, q->spec, k);
  sm_occupy(m, k, 1);
  if (q->d->borrow) idle_sharing_block_start(q->lent, m, time);
  ps start = place_taken(q->d, m, time, q->t);
  b->began = start;
  k->counters->blocks++;
  sim_counters *counters = m->round ? round_counters(m->round, k->counters) : k->counters;
  for (uint32_t i = 0; i < k->warps_per_block; i++) {
    warp *w = warp_take(&q->d->warps, &q->d->arena);
    uint32_t index = w->index;
    warp_clear(w, m->round != NULL);
    w->block = b;
    w->index = index;
    w->number = i;
    w->sm = m;
    w->counters = w->counted = counters;
    w->scheduler = &m->schedulers[m->next_scheduler++ % q->spec->schedulers];
    trace_cursor_open(q->reader, chunk, i, &w->cursor);
    warp_wake_at(m, start + q->t->block_start, index);
  }
  /* one further, so that the first warps of blocks that fill all schedulers take turns */
  if (q->spec->alu_latency > 0 && k->warps_per_block % q->spec->schedulers == 0) m->next_scheduler++;
}

/* Starts blocks of one kernel until nothing fits. */
static void start_blocks(dispatcher *q, kernel *k, ps time) {
  uint32_t full = 0;
  bool first = k == q->queue_first;
  while (k->next_block < k->blocks && full < q->spec->sm_count) {
    sm *m = &q->d->sms[q->next_sm];
    q->next_sm = q->next_sm + 1 < q->spec->sm_count ? q->next_sm + 1 : 0;
    full++;
    if (!block_fits(q, m, k) || (!first && first_for(q, m) != k)) continue;
    block_start(q, m, k, time);
    full = 0;
  }
}

/* Starts blocks of the first kernels until nothing fits; of later ones on SMs that those in front may not have. */
static void dispatch(dispatcher *q, ps time) {
  kernel *before = NULL;
  for (kernel *k = q->queue_first, *next; k; k = next) {
    next = k->next;
    start_blocks(q, k, time);
    if (k->next_block == k->blocks) {
      if (before) before->next = next;
      else q->queue_first = next;
      if (!next) q->queue_last = before;
      k->next = q->running;
      q->running = k;
    } else {
      if (!k->sms) return;
      before = k;
    }
  }
}

void dispatch_again(dispatcher *q, ps time) { dispatch(q, time); }

/* SMs were kept for kernels that may have got all they want by now: those that were refused ask again. */
static void ask_again(device *d, ps time) {
  if (!d->kept) return;
  d->kept = false;
  for (uint32_t i = 0; i < d->tenant_count; i++)
    if (d->tenants[i].dispatch) dispatch(d->tenants[i].dispatch, time);
}

/* One SM has room again. All others are full for the kernels that may have them. */
static void dispatch_to(dispatcher *q, sm *m, ps time) {
  kernel *k = first_for(q, m);
  if (!k) return;
  while (k->next_block < k->blocks && block_fits(q, m, k)) block_start(q, m, k, time);
  /* the next block may be bound to an SM that has room */
  if (k->next_block == k->blocks || k->launch->smids) dispatch(q, time);
}

/* The same for all tenants, block by block in turn. */
static void dispatch_all_to(device *d, sm *m, ps time) {
  for (uint32_t refused = 0; refused < d->tenant_count;) {
    dispatcher *q = d->tenants[d->turn].dispatch;
    d->turn = d->turn + 1 < d->tenant_count ? d->turn + 1 : 0;
    kernel *k = q ? first_for(q, m) : NULL;
    if (!k || k->next_block == k->blocks || !block_fits(q, m, k)) {
      refused++;
      continue;
    }
    refused = 0;
    block_start(q, m, k, time);
    /* its next kernel, or its next block elsewhere */
    if (k->next_block == k->blocks || k->launch->smids) dispatch(q, time);
  }
}

/* The tenant may have nothing to run any more: all of its SMs, the last block's was one of them only, are there for
 * others. */
static void lend_all(dispatcher *q, ps time) {
  const tenant *own = &q->d->tenants[q->tenant];
  for (uint32_t i = 0; i < q->spec->sm_count && !q->kernels.running; i++)
    if (sm_set_has(&own->sms, i)) dispatch_all_to(q->d, &q->d->sms[i], time);
}

/* ---- time slices ---- */

/* Its end is no tenant's event: no simulation waits for it. */
static void slice_renew(device *d, ps time) {
  d->slice_until = time + SLICE;
  event_push(&d->heap, d->slice_until, EVENT_SLICE, 0);
}

static void slice_begin(device *d, uint32_t owner, ps time) {
  d->slice_owner = owner;
  d->slice_over = false;
  slice_renew(d, time);
  dispatch(d->tenants[owner].dispatch, time);
}

/* The slice is over and no block runs: the next tenant with kernels has its turn, or none. */
static void slice_end(device *d, ps time) {
  uint32_t from = d->slice_owner;
  for (uint32_t i = 1; i <= d->tenant_count; i++) {
    uint32_t next = (from + i) % d->tenant_count;
    if (!d->tenants[next].dispatch || !d->tenants[next].dispatch->queue_first) continue;
    slice_begin(d, next, time);
    return;
  }
  d->slice_owner = TENANTS;
  d->slice_over = false;
}

static bool others_wait(const device *d) {
  for (uint32_t i = 0; i < d->tenant_count; i++)
    if (i != d->slice_owner && d->tenants[i].dispatch && d->tenants[i].dispatch->queue_first) return true;
  return false;
}

/* The time of a slice is up: of this one, or of one before that ended early. */
void dispatch_slice(device *d, ps time) {
  if (d->slice_owner == TENANTS || time < d->slice_until) return;
  const dispatcher *q = d->tenants[d->slice_owner].dispatch; /* NULL: between two rounds */
  if (q && q->kernels.running && !others_wait(d)) {
    slice_renew(d, time);
    return;
  }
  d->slice_over = true;
  if (!q || !q->running_blocks) slice_end(d, time);
}

/* A kernel need not wait for the end of a slice whose owner has nothing to run. */
static void slice_kernel(dispatcher *q, ps time) {
  device *d = q->d;
  const dispatcher *owner = d->slice_owner < TENANTS ? d->tenants[d->slice_owner].dispatch : NULL;
  if (owner != q && (!owner || (!owner->queue_first && !owner->running_blocks))) slice_begin(d, q->tenant, time);
}

/* The owner's last block is over, for now: tenants that wait need not wait for the end of the slice. */
static void slice_block_over(dispatcher *q, ps time) {
  device *d = q->d;
  if (d->slice_owner != q->tenant || q->running_blocks) return;
  if (d->slice_over || (!q->queue_first && others_wait(d))) slice_end(d, time);
}

/* ---- kernels ---- */

static void kernel_runs(dispatcher *q, kernel *k, ps time) {
  if (!q->kernels.running) {
    link_account(q->link, time);
    q->kernels.since = time;
  }
  q->kernels.running++;
}

void kernel_begin(dispatcher *q, kernel *k, ps time) {
  k->began = k->ended = time;
  bool skipped = q->sampler && sampler_begin(q->sampler, k, time);
  kernel_runs(q, k, time);
  if (skipped) {
    k->next = q->running;
    q->running = k;
    agenda_add(q->agenda, k->ended, EVENT_NODE_DONE, k->node);
    return;
  }
  if (q->d->borrow) idle_sharing_kernel_begin(q->lent, time);
  clear_caches(q, k);
  if (q->flushed) l2_flush(q->flushed);
  l2_control(q->memory, &k->l2, &q->l2_resets);
  if (q->learner->learns) learner_kernel(q->learner, k->launch, time);
  k->next = NULL;
  if (q->queue_last) q->queue_last->next = k;
  else q->queue_first = k;
  q->queue_last = k;
  if (q->d->shared && q->d->isolation == SIM_ISOLATION_NONE) slice_kernel(q, time);
  /* a slice may have begun, and all of its blocks */
  if (q->queue_first && (q->queue_first == k || q->queue_first->sms)) dispatch(q, time);
  ask_again(q->d, time);
  fault_idle(q->faults);
}

void kernel_over(dispatcher *q, kernel *k) {
  kernel **link = &q->running;
  while (*link != k) link = &(*link)->next;
  *link = k->next;
  if (!--q->kernels.running && k->ended > q->kernels.since) {
    q->observer->counters.kernel_ps += k->ended - q->kernels.since;
    history_spread(q->observer->history, HISTORY_kernel_ps, q->kernels.since, k->ended, k->ended - q->kernels.since);
  }
  if (q->d->borrow) idle_sharing_kernel_end(q->lent, k->ended);
  if (q->observer->history) record_kernel(q->observer, k, k->stream);
  if (k->ended > q->kernels.until) q->kernels.until = k->ended; /* may be later than now */
  k->counters->time_ps += k->ended - k->began;
  k->counters->kernel_ps += k->ended - k->began;
  k->counters->launches++;
}

static void kernel_end(dispatcher *q, kernel *k) {
  if (q->sampler) sampler_end(q->sampler, k);
  if (!k->sampled || !k->sampled->later) kernel_over(q, k);
  agenda_add(q->agenda, k->ended, EVENT_NODE_DONE, k->node);
}

static void place_free(dispatcher *q, sm *m, const kernel *k, bool last, ps time) {
  if (!q->d->shared) {
    dispatch_to(q, m, time);
    return;
  }
  if (q->d->isolation == SIM_ISOLATION_NONE) slice_block_over(q, time);
  dispatch_all_to(q->d, m, time);
  if (last && q->d->borrow) lend_all(q, time);
  else if (q->d->borrow && k->done_blocks == 1)
    dispatch(q, time);                    /* that its blocks are short is known now: on what is lent, too */
  if (q->thread_limit) dispatch(q, time); /* elsewhere, too: its threads have become fewer */
  ask_again(q->d, time);
}

void block_end(dispatcher *q, block *b) {
  kernel *k = b->kernel;
  sm *m = b->sm;
  ps time = b->ended, over = b->drained > time ? b->drained : time;
  sm_occupy(m, k, -1);
  if (q->d->borrow) idle_sharing_block_end(q->lent, m, time);
  if (over > b->began) history_spread(q->observer->history, HISTORY_block_ps, b->began, over, over - b->began);
  bool last = ++k->done_blocks == k->blocks;
  if (k->longest_block < over - b->began) k->longest_block = over - b->began;
  if (q->d->borrow) idle_sharing_look(q->lent, time);
  if (k->ended < over) k->ended = over;
  trace_reader_release(q->reader, b->chunk);
  async_over(b);
  position_end(q, b);
  b->next_free = q->free_blocks;
  q->free_blocks = b;
  if (k->sampled && k->next_block < k->blocks) sampler_block(q->sampler, k, time);
  if (last) kernel_end(q, k);
  place_free(q, m, k, last, time);
  async_held_unmet(q, time);
}

void dispatcher_free(dispatcher *q) {
  for (size_t i = 0; i < q->blocks.count; i++) {
    async_free(q->blocks.items[i]);
    free(q->blocks.items[i]);
  }
  free(q->blocks.items);
  free(q->positions.items);
}
