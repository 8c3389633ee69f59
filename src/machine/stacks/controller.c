/* SPDX-License-Identifier: Apache-2.0 */
/* The offload controller (Hsieh et al., ISCA 2016, sections 3.3 and 4.2): which instances of candidate blocks go to a
 * stack, how they get there and back, and what keeps caches right meanwhile.
 *
 * At its first access an instance is decided, in this order:
 *   1. condition   its loop's trips, known at ENTER, are fewer than the threshold: it stays
 *   2. channels    the one to (from) the destination is busy, and the block does not save there: it stays
 *   3. pace        no channel is above the threshold, instances of the block that went lately took longer, access by access, than those that stayed, and one is pending there: it stays
 *   4. room        as many instances are pending at the destination as its SMs hold warps: it stays
 * The destination is the stack of that access. `always` looks at the condition only. `paper` is what the paper has: the
 * condition, channels above the threshold, and as many pending as the stack's SMs have warps; it asks once. An instance
 * that stays is decided again at each further trip of its loop, where all trips begin with the same access
 * (sim_candidate): its trips are those that are left then, the registers those that are live there, and it does not go
 * while its thread block's writes are on the way. With fewer trips left than its threshold it goes if that relieves the
 * one channel that is busy and the stack has places free.
 *
 * Past the paper, whose kernels fill the GPU: asking again; a channel is also busy if it carries for more than half of
 * the time and more than the other one; a warp that waits for one that is away keeps its block's place on the GPU, so
 * that pace matters where no link holds up all (one at a time shows when it pays again); what an SM in a stack holds is
 * bounded by its registers, too (of each warp those that its block of code takes), and while no channel is busy it is
 * not crowded: as many are pending for each as warps reside on the instance's own SM.
 *
 * Sending it (section 4.4.2): its block's writes are in memory first; then packet_head_bytes and the live-in registers
 * go over the link, stack_pack_cycles after that began. The stack's SM empties its L1. The warp goes on there; under
 * `always` it may have to wait for room. At LEAVE, when all its accesses are over, the answer brings the live-out
 * registers and the addresses of the lines it wrote; the GPU's L2 and its SM's L1 drop these.
 *
 * The warp's own SM keeps its place for it. Of each stack, pending == running (on their way there, too) + waiting ==
 * instances that are away in it, and its registers are theirs: asserted at the deep check level. */
#include "machine/stacks/controller.h"

#include <stdlib.h>

#include "base/check.h"
#include "machine/stacks/versions.h"

enum {
  LEARN_ACCESSES = 16, /* of an instance that a map is learned from */
  PACE = 16,           /* instances that a running mean of their pace is of, about */
};

void controller_free(controller *c) {
  for (size_t i = 0; i < c->instances.count; i++) free(c->instances.items[i].lines.items);
  free(c->instances.items);
  free(c->paces.items);
}

static stack_instance *instance_of(controller *c, const warp *w) {
  while (c->instances.count <= w->index) FF_PUSH(&c->instances, (stack_instance){0});
  return &c->instances.items[w->index];
}

/* ---- in ---- */

static uint32_t pace_of(controller *c, const sim_candidate *candidate) {
  for (size_t i = c->paces.count; i-- > 0;)
    if (c->paces.items[i].candidate == candidate) return (uint32_t)i;
  FF_PUSH(&c->paces, ((stack_pace){.candidate = candidate}));
  return (uint32_t)c->paces.count - 1;
}

void controller_enter(controller *c, warp *w, uint64_t word) {
  stacks *k = c->stacks;
  stack_instance *i = instance_of(c, w);
  if (w->marked || !k->offloading) return; /* pairs do not nest */
  const sim_candidate *candidate =
      k->offloading->find(k->offloading->context, w->block->kernel->launch, trace_mark_pc(word));
  if (!candidate) return;
  w->marked = true;
  if (candidate != i->candidate) i->pace = pace_of(c, candidate);
  i->candidate = candidate;
  uint32_t trips = trace_enter_trips(word);
  i->trips = sim_trips_of(candidate, trips);
  i->learns = c->learner->learns && sim_condition(candidate, i->trips);
  i->first_seen = i->apart = i->away = false;
  i->accesses = i->accesses_before = i->rounds = 0;
  i->asks = true;
  i->ask = 1;
  i->stayed = NULL;
  i->drained = 0;
  i->lines.count = 0;
}

static void note_written(stack_instance *i, const uint64_t *record) {
  trace_access_op op = trace_access_operation(*record);
  for (uint32_t n = 0; n < trace_access_lines(*record) && (op == TRACE_STORE || op == TRACE_ATOMIC); n++) {
    uint64_t line = trace_line_address(record[2 + n]);
    if (!i->lines.count || i->lines.items[i->lines.count - 1] != line) FF_PUSH(&i->lines, line);
  }
}

void controller_access(controller *c, warp *w, const uint64_t *record, ps time) {
  stacks *k = c->stacks;
  stack_instance *i = instance_of(c, w);
  bool learns = c->learner->learns && i->learns;
  if (!i->first_seen) {
    i->first_seen = true;
    i->home = stacks_find(c->stacks, trace_line_address(record[2]));
    k->result.instances++;
  }
  for (uint32_t n = 0; n < trace_access_lines(*record) && (learns || !i->apart); n++) {
    uint64_t line = trace_line_address(record[2 + n]);
    i->apart = i->apart || stacks_find(c->stacks, line) != i->home;
    if (learns) FF_PUSH(&i->lines, line);
  }
  if (i->away) note_written(i, record);
  i->accesses++;
  if (i->candidate->again && trace_access_pc(*record) == i->candidate->again_pc) {
    i->rounds++;
    if (i->asks) i->ask = i->accesses;
  }
  if (learns && i->accesses == LEARN_ACCESSES) {
    i->learns = false;
    learner_instance(c->learner, i, time);
  }
}

/* ---- which ---- */

static bool saves(double fixed, double trip, uint32_t trips) { return fixed + trip * trips < 0; }

/* Above the threshold; or the busier one of the two, and more than half of the time: what saves on one channel at the
 * cost of the other is no use then. */
static bool is_busy(const controller *c, double load, double other) {
  bool ours = c->stacks->offload != SIM_OFFLOAD_PAPER;
  return load >= c->spec->stack_busy || (ours && load > other && load > 0.5);
}

/* Of a warp in a stack: what its block of code takes, no more than its kernel does. */
static uint64_t registers_of(const warp *w, const sim_candidate *candidate) {
  uint64_t kernel = w->block->kernel->block_registers / w->block->kernel->warps_per_block,
           own = UINT64_C(32) * candidate->registers;
  return own && own < kernel ? own : kernel;
}

/* Would the stack's SMs hold one more such warp, and would it not be one of too many? relieves: a channel that it saves
 * on is busy. */
static bool has_room(const controller *c, const memory_stack *to, const warp *w, const sim_candidate *candidate,
                     bool relieves) {
  const stacks *k = c->stacks;
  uint32_t resident = w->sm->threads / 32;
  if (to->pending >= k->warps || (!relieves && to->pending >= resident * k->near_each)) return false;
  return !to->pending || to->registers + registers_of(w, candidate) <= c->spec->registers * k->near_each;
}

/* Trips that are left, as far as they are known. */
static uint32_t trips_left(const stack_instance *i) {
  uint32_t done = i->rounds ? i->rounds - 1 : 0;
  if (!done) return i->trips;
  return i->trips > done ? i->trips - done : 1;
}

/* What sending it takes now: all of the block at its first access, later what is left of it. */
static sim_sending sending_of(const stack_instance *i) {
  const sim_candidate *candidate = i->candidate;
  return i->accesses > 1 ? candidate->left
                         : (sim_sending){candidate->in_bytes, candidate->out_bytes, candidate->tx_fixed,
                                         candidate->rx_fixed, candidate->threshold};
}

/* With fewer trips left than its threshold: one channel alone is busy, it saves on that one, and a tenth of the stack's
 * places are free. */
static bool relieves_one(const controller *c, const stack_instance *i, const sim_sending *sent, uint32_t trips, bool tx,
                         bool rx) {
  const stacks *k = c->stacks;
  const sim_candidate *candidate = i->candidate;
  if (!i->stayed || k->offload == SIM_OFFLOAD_ALWAYS || tx == rx || k->items[i->to].pending * 10 >= k->warps * 9)
    return false;
  return tx ? saves(sent->tx_fixed, candidate->tx_trip, trips) : saves(sent->rx_fixed, candidate->rx_trip, trips);
}

/* NULL: it goes; else the counter of why it stays. */
static uint64_t *reason_to_stay(controller *c, const warp *w, const stack_instance *i, ps time) {
  stacks *k = c->stacks;
  const sim_candidate *candidate = i->candidate;
  const memory_stack *to = &k->items[i->to];
  sim_stacks *r = &k->result;
  sim_sending sent = sending_of(i);
  uint32_t trips = trips_left(i);
  double tx_load = stacks_load(&to->tx, time), rx_load = stacks_load(&to->rx, time);
  bool tx = is_busy(c, tx_load, rx_load), rx = is_busy(c, rx_load, tx_load);
  if (trips < sent.threshold && !relieves_one(c, i, &sent, trips, tx, rx)) return &r->refused_condition;
  if (c->learner->learns) return &r->refused_learning;
  if (i->stayed && w->block->written > time) return i->stayed;
  if (k->offload == SIM_OFFLOAD_ALWAYS) return NULL;
  if (tx && !saves(sent.tx_fixed, candidate->tx_trip, trips)) return &r->refused_tx;
  if (rx && !saves(sent.rx_fixed, candidate->rx_trip, trips)) return &r->refused_rx;
  if (k->offload == SIM_OFFLOAD_PAPER) return to->pending < k->warps ? NULL : &r->refused_full;
  const stack_pace *pace = &c->paces.items[i->pace];
  if (pace->home && pace->away > pace->home && to->pending && tx_load < c->spec->stack_busy &&
      rx_load < c->spec->stack_busy)
    return &r->refused_slow;
  return has_room(c, to, w, candidate, tx || rx) ? NULL : &r->refused_full;
}

/* ---- there ---- */

/* The SM of the stack with the fewest warps, by turns. */
static sm *near_sm(controller *c, uint32_t stack) {
  stacks *k = c->stacks;
  sm *best = &c->sms[k->near_first + stack * k->near_each];
  for (uint32_t i = 1; i < k->near_each; i++) {
    sm *m = &c->sms[k->near_first + stack * k->near_each + i];
    if (m->threads < best->threads) best = m;
  }
  return best;
}

static void start_there(controller *c, warp *w, uint32_t stack, ps time) {
  sm *m = near_sm(c, stack);
  c->stacks->items[stack].running++;
  m->began_version = versions_now(c->stacks);
  m->threads++; /* of an SM in a stack: its warps */
  bool empties = c->stacks->offload != SIM_OFFLOAD_IDEAL && !(c->stacks->left_out & COHERENCE_EMPTY);
  if (empties && ++m->l1_epoch >= 1 << 16) {
    m->l1_epoch = 1;
    cache_clear(&m->l1);
  }
  w->sm = m;
  w->scheduler = &m->schedulers[m->next_scheduler++ % c->spec->schedulers];
  event_push(c->heap, time, EVENT_WARP, w->index);
}

/* Counts an instance that stays once, for its first reason; one that goes later is not one that stayed. */
static bool goes(controller *c, warp *w, stack_instance *i, ps time) {
  uint64_t *reason = reason_to_stay(c, w, i, time);
  i->ask = 0;
  /* too few trips from the start: it stays for good */
  i->asks = reason && c->stacks->offload != SIM_OFFLOAD_PAPER &&
            (i->stayed || reason != &c->stacks->result.refused_condition);
  if (!i->stayed) i->left = time;
  if (reason) {
    if (!i->stayed) ++*(i->stayed = reason);
    return false;
  }
  if (i->stayed) --*i->stayed;
  i->left = time;
  i->accesses_before = i->accesses - 1;
  return true;
}

static uint32_t waiting_at(const controller *c, const memory_stack *stack) {
  uint32_t count = 0;
  for (uint32_t i = stack->first_waiting; i; i = c->warps->items[i]->next) count++;
  return count;
}

static void check_stacks(const controller *c) {
  for (uint32_t s = 0; s < c->stacks->count; s++) {
    const memory_stack *stack = &c->stacks->items[s];
    uint32_t away = 0;
    uint64_t registers = 0;
    for (uint32_t n = 0; n < c->instances.count; n++) {
      const stack_instance *i = &c->instances.items[n];
      if (!i->away || i->to != s) continue;
      away++;
      registers += registers_of(c->warps->items[n], i->candidate);
    }
    FF_ASSERT(stack->pending == away && stack->registers == registers);
    FF_ASSERT(stack->pending == stack->running + waiting_at(c, stack));
  }
}

static void wait_there(controller *c, warp *w, memory_stack *stack) {
  w->next = 0;
  if (stack->last_waiting) c->warps->items[stack->last_waiting]->next = w->index;
  else stack->first_waiting = w->index;
  stack->last_waiting = w->index;
}

bool controller_decide(controller *c, warp *w, ps time) {
  stacks *k = c->stacks;
  stack_instance *i = instance_of(c, w);
  if (i->accesses != i->ask) return false;
  if (k->offload == SIM_OFFLOAD_NONE || !k->near_each) return false;
  i->to = stacks_find(c->stacks, trace_line_address(w->record[2]));
  if (!goes(c, w, i, time)) return false;
  memory_stack *to = &k->items[i->to];
  sim_sending sent = sending_of(i);
  to->pending++;
  to->registers += registers_of(w, i->candidate);
  k->result.offloaded++;
  i->away = true;
  i->out_bytes = sent.out_bytes;
  i->began_version = versions_now(k);
  i->own = w->sm;
  i->own_scheduler = w->scheduler;
  i->drained = time;
  i->lines.count = 0;
  note_written(i, w->record); /* the access at hand is made there */
  ps there = time;
  if (k->offload != SIM_OFFLOAD_IDEAL) {
    uint64_t bytes = c->spec->packet_head_bytes + sent.in_bytes;
    bool pushes = !(k->left_out & COHERENCE_PUSH);
    ps packed = (pushes && w->block->written > time ? w->block->written : time) + k->pack;
    k->result.request_bytes += bytes;
    there = stacks_send_first(&to->tx, bytes, packed) + k->link_latency;
  }
  w->asleep = true;
  w->slept = time;
  if (to->running < k->warps && !to->first_waiting) {
    start_there(c, w, i->to, there);
  } else {
    i->drained = there; /* no earlier, whenever there is room */
    wait_there(c, w, to);
  }
  if (ff_check_level >= 2) check_stacks(c);
  return true;
}

/* ---- and back ---- */

static int by_number(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

static void drop_written(controller *c, stack_instance *i) {
  stacks *k = c->stacks;
  size_t count = 0;
  if (!i->lines.count) return;
  qsort(i->lines.items, i->lines.count, sizeof *i->lines.items, by_number);
  for (size_t n = 0; n < i->lines.count; n++)
    if (!n || i->lines.items[n] != i->lines.items[n - 1]) i->lines.items[count++] = i->lines.items[n];
  i->lines.count = count;
  k->result.dirty_lines += count;
  for (size_t n = 0; n < count; n++) {
    versions_answered(k, i->own->index, i->lines.items[n]);
    if (!(k->left_out & COHERENCE_DROP_L2)) k->result.invalidated_lines += l2_drop(c->memory, i->lines.items[n]);
    if (!(k->left_out & COHERENCE_DROP_L1)) k->result.invalidated_lines += l1_drop(i->own, i->lines.items[n]);
  }
}

/* There is room in the stack: the warp that has waited longest goes on there. */
static void let_next(controller *c, uint32_t stack, ps time) {
  memory_stack *from = &c->stacks->items[stack];
  if (!from->first_waiting) return;
  warp *next = c->warps->items[from->first_waiting];
  from->first_waiting = next->next;
  if (!from->first_waiting) from->last_waiting = 0;
  next->next = 0;
  ps came = instance_of(c, next)->drained;
  start_there(c, next, stack, came > time ? came : time);
}

void controller_accessed(controller *c, const warp *w) {
  stack_instance *i = instance_of(c, w);
  if (i->away && i->drained < w->arrival) i->drained = w->arrival;
}

/* Its accesses may still be under way when an instance at home ends: the GPU waits for them later. */
static void note_pace(ps *mean, const stack_instance *i, ps end) {
  ps each = (end - i->left) / (i->accesses > i->accesses_before ? i->accesses - i->accesses_before : 1);
  *mean = *mean ? *mean - *mean / PACE + each / PACE : each;
}

bool controller_leave(controller *c, warp *w, ps time, ps *back_at) {
  stacks *k = c->stacks;
  if (!w->marked) return false;
  stack_instance *i = instance_of(c, w);
  w->marked = false;
  if (i->first_seen && !i->apart) k->result.colocated++;
  if (c->learner->learns && i->first_seen && i->learns) learner_instance(c->learner, i, time);
  if (!i->away) {
    if (i->stayed && !c->learner->learns) note_pace(&c->paces.items[i->pace].home, i, time);
    return false;
  }
  memory_stack *from = &k->items[i->to];
  ps over = i->drained > time ? i->drained : time, back = over;
  if (k->offload != SIM_OFFLOAD_IDEAL) {
    drop_written(c, i);
    uint64_t bytes = i->out_bytes + i->lines.count * c->spec->packet_address_bytes + c->spec->packet_ack_bytes;
    k->result.answer_bytes += bytes;
    back = stacks_send_first(&from->rx, bytes, over) + k->link_latency;
  }
  w->sm->threads--;
  from->running--;
  from->pending--;
  from->registers -= registers_of(w, i->candidate);
  i->away = false;
  w->sm = i->own;
  w->scheduler = i->own_scheduler;
  let_next(c, i->to, over);
  if (ff_check_level >= 2) check_stacks(c);
  k->result.away_ps += back - i->left;
  note_pace(&c->paces.items[i->pace].away, i, back);
  *back_at = back;
  return true;
}
