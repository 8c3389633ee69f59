/* SPDX-License-Identifier: Apache-2.0 */
/* The offload controller (Hsieh et al., ISCA 2016, sections 3.3 and 4.2): which instances of candidate blocks go to a stack, how they get there and back,
 * and what keeps caches right meanwhile.
 *
 * At its first access an instance is decided, in this order:
 *   1. condition   its loop's trips, known at ENTER, are fewer than the threshold: it stays
 *   2. channels    the one to (from) the destination is busy, and the block does not save there: it stays   } controlled
 *   3. room        as many instances are pending at the destination as its SMs hold warps: it stays         } and ideal only
 * The destination is the stack of that first access. What an SM there holds is bounded by its registers, too; and it is no use to crowd it: an instance stays
 * if more are pending, for each of the stack's SMs, than warps reside on its own SM (past the paper, whose kernels fill the GPU).
 *
 * Sending it (section 4.4.2): its block's writes are in memory first; then packet_head_bytes and the live-in registers go over the link, stack_pack_cycles after
 * that began. The stack's SM empties its L1. The warp goes on there; under `always` it may have to wait for room. At LEAVE, when all its accesses are over,
 * the answer brings the live-out registers and the addresses of the lines it wrote; the GPU's L2 and its SM's L1 drop these.
 *
 * What always holds: pending = running + waiting + those on the way; the warp's own SM keeps its place for it. */
#include <stdlib.h>

#include "machine/model.h"

enum { LEARN_ACCESSES = 16 }; /* of an instance that a map is learned from */

static stack_instance *instance_of(sim *s, const warp *w) {
  stacks *k = s->stacks;
  while (k->instances.count <= w->index) FF_PUSH(&k->instances, (stack_instance){0});
  return &k->instances.items[w->index];
}

/* ---- in ---- */

void controller_enter(sim *s, warp *w, uint64_t word) {
  stacks *k = s->stacks;
  stack_instance *i = instance_of(s, w);
  if (w->marked || !k->offloading) return; /* pairs do not nest */
  i->candidate = k->offloading->find(k->offloading->context, w->block->kernel->launch, trace_mark_pc(word));
  if (!i->candidate) return;
  w->marked = true;
  uint32_t trips = trace_enter_trips(word);
  i->trips = i->candidate->conditional && trips ? trips : i->candidate->trips ? i->candidate->trips : 1;
  i->decided = i->first_seen = i->apart = i->away = i->learned = false;
  i->accesses = 0;
  i->drained = 0;
  i->lines.count = 0;
}

void controller_access(sim *s, warp *w, const uint64_t *record, ps time) {
  stacks *k = s->stacks;
  stack_instance *i = instance_of(s, w);
  bool writes = trace_access_operation(*record) == TRACE_STORE || trace_access_operation(*record) == TRACE_ATOMIC;
  for (uint32_t n = 0; n < trace_access_lines(*record); n++) {
    uint64_t line = trace_line_address(record[2 + n]);
    uint32_t stack = stacks_find(s, line);
    if (!i->first_seen) {
      i->first_seen = true;
      i->home = stack;
      k->result.instances++;
    }
    i->apart |= stack != i->home;
    if (i->away ? writes && (!i->lines.count || i->lines.items[i->lines.count - 1] != line) : k->learner && !i->learned) FF_PUSH(&i->lines, line);
  }
  if (k->learner && !i->learned && ++i->accesses == LEARN_ACCESSES) {
    i->learned = true;
    learner_instance(s, i, time);
  }
}

/* ---- which ---- */

static bool saves(double fixed, double trip, uint32_t trips) { return fixed + trip * trips < 0; }

static uint64_t registers_of(const warp *w) { return w->block->kernel->block_registers / w->block->kernel->warps_per_block; }

/* Would the stack's SMs hold one more such warp, and would it not be one of too many? */
static bool has_room(const sim *s, const memory_stack *to, const warp *w) {
  const stacks *k = s->stacks;
  uint32_t resident = w->sm->threads / 32;
  if (to->pending >= k->warps || to->pending >= resident * k->near_each) return false;
  return !to->pending || to->registers + registers_of(w) <= s->spec->registers * k->near_each;
}

static bool may_go(const sim *s, const warp *w, const stack_instance *i, ps time) {
  stacks *k = s->stacks;
  double busy = s->spec->stack_busy;
  const sim_candidate *c = i->candidate;
  const memory_stack *to = &k->items[i->home];
  sim_stacks *r = &k->result;
  if (i->trips < c->threshold) {
    r->refused_condition++;
    return false;
  }
  if (k->offload == SIM_OFFLOAD_ALWAYS) return true;
  if (stacks_busy(k, &to->tx, busy, time) && !saves(c->tx_fixed, c->tx_trip, i->trips)) {
    r->refused_tx++;
    return false;
  }
  if (stacks_busy(k, &to->rx, busy, time) && !saves(c->rx_fixed, c->rx_trip, i->trips)) {
    r->refused_rx++;
    return false;
  }
  if (!has_room(s, to, w)) {
    r->refused_full++;
    return false;
  }
  return true;
}

/* ---- there ---- */

/* The SM of the stack with the fewest warps, by turns. */
static sm *near_sm(sim *s, uint32_t stack) {
  stacks *k = s->stacks;
  sm *best = &s->sms[k->near_first + stack * k->near_each];
  for (uint32_t i = 1; i < k->near_each; i++) {
    sm *m = &s->sms[k->near_first + stack * k->near_each + i];
    if (m->threads < best->threads) best = m;
  }
  return best;
}

static void start_there(sim *s, warp *w, uint32_t stack, ps time) {
  sm *m = near_sm(s, stack);
  s->stacks->items[stack].running++;
  m->began_version = instance_of(s, w)->began_version = versions_now(s->stacks);
  m->threads++; /* of an SM in a stack: its warps */
  bool empties = s->stacks->offload != SIM_OFFLOAD_IDEAL && !(s->stacks->left_out & COHERENCE_EMPTY);
  if (empties && ++m->l1_epoch >= 1 << 16) {
    m->l1_epoch = 1;
    cache_clear(&m->l1);
  }
  w->sm = m;
  w->scheduler = &m->schedulers[m->next_scheduler++ % s->spec->schedulers];
  event_push(&s->d->heap, time, EVENT_WARP, w->index);
}

bool controller_decide(sim *s, warp *w, ps time) {
  stacks *k = s->stacks;
  stack_instance *i = instance_of(s, w);
  if (i->decided) return false;
  i->decided = true;
  if (k->offload == SIM_OFFLOAD_NONE || !k->near_each) return false;
  k->result.refused_learning += k->learner != NULL;
  if (k->learner || !may_go(s, w, i, time)) return false;
  memory_stack *to = &k->items[i->home];
  const sim_candidate *c = i->candidate;
  to->pending++;
  to->registers += registers_of(w);
  k->result.offloaded++;
  i->away = true;
  i->own = w->sm;
  i->own_scheduler = w->scheduler;
  i->drained = time;
  i->lines.count = 0;
  controller_access(s, w, w->record, time); /* what the access at hand writes, it writes there */
  ps there = time;
  if (k->offload != SIM_OFFLOAD_IDEAL) {
    uint64_t bytes = s->spec->packet_head_bytes + c->in_bytes;
    bool pushes = !(k->left_out & COHERENCE_PUSH);
    ps packed = (pushes && w->block->written > time ? w->block->written : time) + k->pack;
    k->result.request_bytes += bytes;
    there = stacks_send_first(&to->tx, k->tx_byte_fixed, bytes, k->window, packed) + k->link_latency;
  }
  w->asleep = true;
  w->slept = time;
  if (to->running < k->warps && !to->first_waiting) {
    start_there(s, w, i->home, there);
    return true;
  }
  i->drained = there; /* no earlier, whenever there is room */
  w->next = 0;
  if (to->last_waiting) s->d->warps.items[to->last_waiting]->next = w->index;
  else to->first_waiting = w->index;
  to->last_waiting = w->index;
  return true;
}

/* ---- and back ---- */

static int by_number(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

static void drop_written(sim *s, stack_instance *i) {
  stacks *k = s->stacks;
  size_t count = 0;
  qsort(i->lines.items, i->lines.count, sizeof *i->lines.items, by_number);
  for (size_t n = 0; n < i->lines.count; n++)
    if (!n || i->lines.items[n] != i->lines.items[n - 1]) i->lines.items[count++] = i->lines.items[n];
  i->lines.count = count;
  k->result.dirty_lines += count;
  for (size_t n = 0; n < count; n++) {
    versions_answered(k, i->own->index, i->lines.items[n]);
    if (!(k->left_out & COHERENCE_DROP_L2)) k->result.invalidated_lines += l2_drop(s, i->lines.items[n]);
    if (!(k->left_out & COHERENCE_DROP_L1)) k->result.invalidated_lines += l1_drop(i->own, i->lines.items[n]);
  }
}

/* There is room in the stack: who waits longest goes on there. */
static void let_next(sim *s, uint32_t stack, ps time) {
  memory_stack *from = &s->stacks->items[stack];
  if (!from->first_waiting) return;
  warp *next = s->d->warps.items[from->first_waiting];
  from->first_waiting = next->next;
  if (!from->first_waiting) from->last_waiting = 0;
  next->next = 0;
  ps came = instance_of(s, next)->drained;
  start_there(s, next, stack, came > time ? came : time);
}

void controller_accessed(sim *s, const warp *w) {
  stack_instance *i = instance_of(s, w);
  if (i->away && i->drained < w->arrival) i->drained = w->arrival;
}

bool controller_leave(sim *s, warp *w, ps time, ps *back_at) {
  stacks *k = s->stacks;
  if (!w->marked) return false;
  stack_instance *i = instance_of(s, w);
  w->marked = false;
  if (i->first_seen && !i->apart) k->result.colocated++;
  if (k->learner && i->first_seen && !i->learned) learner_instance(s, i, time);
  if (!i->away) return false;
  memory_stack *from = &k->items[i->home];
  ps over = i->drained > time ? i->drained : time, back = over;
  if (k->offload != SIM_OFFLOAD_IDEAL) {
    drop_written(s, i);
    uint64_t bytes = i->candidate->out_bytes + i->lines.count * s->spec->packet_address_bytes + s->spec->packet_ack_bytes;
    k->result.answer_bytes += bytes;
    back = stacks_send_first(&from->rx, k->rx_byte_fixed, bytes, k->window, over) + k->link_latency;
  }
  w->sm->threads--;
  from->running--;
  from->pending--;
  from->registers -= registers_of(w);
  i->away = false;
  w->sm = i->own;
  w->scheduler = i->own_scheduler;
  let_next(s, i->home, over);
  *back_at = back;
  return true;
}
