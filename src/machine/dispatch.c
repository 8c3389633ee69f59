/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks onto SMs. Kernels queue in the order in which their streams let them begin; the first one's blocks start in
 * order, round robin over the SMs with room, and only when all of them have started do the next kernel's (that is how
 * kernels of different streams overlap: in what the first leaves free).
 *
 *     a block fits if   threads + its <= max_threads,  blocks + 1 <= max_blocks,
 *                       registers + its <= registers,  shared + its <= shared_bytes   - or the SM is empty
 *
 * A block that has exited gives its place back at once; the kernel is over when its last access is. */
#include <stdlib.h>

#include "machine/model.h"

static bool block_fits(const sim *s, const sm *m, const kernel *k) {
  const machine_spec *spec = s->spec;
  if (!m->blocks) return true; /* the functional half has accepted it: an estimate of registers must not refuse it */
  return m->blocks < spec->max_blocks && m->threads + k->block_threads <= spec->max_threads &&
         m->registers + k->block_registers <= spec->registers && m->shared_bytes + k->block_shared <= spec->shared_bytes;
}

static void sm_occupy(sm *m, const kernel *k, int sign) {
  m->blocks += (uint32_t)sign;
  m->threads += (uint32_t)sign * k->block_threads;
  m->registers += (uint64_t)(int64_t)sign * k->block_registers;
  m->shared_bytes += (uint64_t)(int64_t)sign * k->block_shared;
}

static warp *warp_take(sim *s) {
  if (s->free_warps.count) return s->warps.items[s->free_warps.items[--s->free_warps.count]];
  warp *w = arena_alloc(&s->arena, sizeof *w);
  w->index = (uint32_t)s->warps.count;
  FF_PUSH(&s->warps, w);
  return w;
}

/* ---- where the program has come to, for policies that know its future: the first block that is not over ---- */

static void position_begin(sim *s, block *b, uint64_t number) {
  if (s->record) trace_future_block(s->record, s->reader, b->chunk, b->kernel->launch, number);
  if (!s->future) return;
  b->position = trace_future_position(s->future, b->kernel->launch, number);
  FF_PUSH(&s->positions, b->position);
  if (s->positions.count == 1) s->pager->position = b->position;
  if (s->pager->position_last < b->position) s->pager->position_last = b->position;
}

static void position_end(sim *s, const block *b) {
  if (!s->future) return;
  size_t at = 0;
  while (s->positions.items[at] != b->position) at++;
  s->positions.items[at] = s->positions.items[--s->positions.count];
  if (b->position != s->pager->position) return;
  uint64_t first = s->positions.count ? UINT64_MAX : b->position + 1;
  for (size_t i = 0; i < s->positions.count; i++)
    if (s->positions.items[i] < first) first = s->positions.items[i];
  s->pager->position = first;
}

/* ---- blocks ---- */

static void block_start(sim *s, sm *m, kernel *k, ps time) {
  block *b = s->free_blocks;
  if (b) s->free_blocks = b->next_free;
  else FF_PUSH(&s->blocks, b = ff_alloc(sizeof *b));
  sim_unlock(s); /* waits until the block has been executed */
  uint64_t number = k->next_block++;
  trace_chunk *chunk = trace_reader_chunk(s->reader, k->launch, number);
  sim_lock(s);
  *b = (block){.kernel = k, .chunk = chunk, .sm = m, .live = k->warps_per_block};
  position_begin(s, b, number);
  sm_occupy(m, k, 1);
  ps start = m->next_block > time ? m->next_block : time;
  b->began = start;
  m->next_block = start + s->t.block_launch;
  k->counters->blocks++;
  for (uint32_t i = 0; i < k->warps_per_block; i++) {
    warp *w = warp_take(s);
    uint32_t index = w->index;
    *w = (warp){.block = b, .index = index, .sm = m, .counters = k->counters,
                .scheduler = &m->schedulers[m->next_scheduler++ % s->spec->schedulers]};
    trace_cursor_open(s->reader, chunk, i, &w->cursor);
    event_push(&s->heap, start, EVENT_WARP, index);
  }
}

/* Starts blocks of the first kernels until nothing fits. */
static void dispatch(sim *s, ps time) {
  while (s->queue_first) {
    kernel *k = s->queue_first;
    uint32_t full = 0;
    while (k->next_block < k->blocks && full < s->spec->sm_count) {
      sm *m = &s->sms[s->next_sm];
      s->next_sm = s->next_sm + 1 < s->spec->sm_count ? s->next_sm + 1 : 0;
      full++;
      if (!block_fits(s, m, k)) continue;
      block_start(s, m, k, time);
      full = 0;
    }
    if (k->next_block < k->blocks) return;
    s->queue_first = k->next;
    if (!s->queue_first) s->queue_last = NULL;
    k->next = s->running;
    s->running = k;
  }
}

/* One SM has room again. All others are full for the first kernel. */
static void dispatch_to(sim *s, sm *m, ps time) {
  kernel *k = s->queue_first;
  if (!k) return;
  while (k->next_block < k->blocks && block_fits(s, m, k)) block_start(s, m, k, time);
  if (k->next_block == k->blocks) dispatch(s, time);
}

void kernel_begin(sim *s, kernel *k, ps time) {
  k->began = k->ended = time;
  if (!s->running_count) {
    link_account(s, time);
    s->running_since = time;
  }
  s->running_count++;
  for (uint32_t i = 0; i < s->spec->sm_count; i++) { /* the L1s are empty when a kernel begins */
    sm *m = &s->sms[i];
    if (++m->l1_epoch < 1 << 16) continue;
    m->l1_epoch = 1;
    cache_clear(&m->l1);
  }
  k->next = NULL;
  if (s->queue_last) s->queue_last->next = k;
  else s->queue_first = k;
  s->queue_last = k;
  if (s->queue_first == k) dispatch(s, time);
  fault_idle(s);
}

static void kernel_end(sim *s, kernel *k) {
  kernel **link = &s->running;
  while (*link != k) link = &(*link)->next;
  *link = k->next;
  if (!--s->running_count && k->ended > s->running_since) {
    s->counters.kernel_ps += k->ended - s->running_since;
    history_spread(s->history, HISTORY_kernel_ps, s->running_since, k->ended, k->ended - s->running_since);
  }
  if (s->history) record_kernel(s, k);
  if (k->ended > s->running_until) s->running_until = k->ended; /* may be later than now */
  k->counters->time_ps += k->ended - k->began;
  k->counters->kernel_ps += k->ended - k->began;
  k->counters->launches++;
  event_push(&s->heap, k->ended, EVENT_NODE_DONE, k->node);
}

void block_end(sim *s, block *b) {
  kernel *k = b->kernel;
  sm *m = b->sm;
  ps time = b->ended, over = b->drained > time ? b->drained : time;
  sm_occupy(m, k, -1);
  if (over > b->began) history_spread(s->history, HISTORY_block_ps, b->began, over, over - b->began);
  bool last = ++k->done_blocks == k->blocks;
  if (k->ended < over) k->ended = over;
  trace_reader_release(s->reader, b->chunk);
  position_end(s, b);
  b->next_free = s->free_blocks;
  s->free_blocks = b;
  if (last) kernel_end(s, k);
  dispatch_to(s, m, time);
}
