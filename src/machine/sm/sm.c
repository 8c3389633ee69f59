/* SPDX-License-Identifier: Apache-2.0 */
/* A warp from one wake to the next: it reads its records, issues bursts, makes accesses, and gives way to the heap
 * whenever another event comes before what it would do next, so that servers are asked in order of time.
 *
 *     burst of n, of which x special-function and y double-precision, with m passes of shared memory:
 *       scheduler: begin = max(free, t); free = begin + (n - x - y) + x * sfu_cycles + y * fp64_cycles
 *       warp:      t' = max(t + n * issue_interval + m * shared_latency, free, the SM's shared memory's free)
 *
 * With execution pipes (alu_latency), of s machine instructions, a chain of c cycles and l loads from shared memory:
 *
 *       scheduler: free = max(free, t) + s;  each pipe, and the SM's shared memory: the same with what it gets
 *       warp:      t' = max(t + c * alu_latency / 4 + l * shared_load_latency + m * shared_latency, all of these)
 *
 * where chains with instructions in half or double precision may take longer (chain_time).
 *
 * Long bursts are issued in pieces of BURST instructions, so that warps share a scheduler. */
#include "machine/sm/sm.h"

#include "machine/sm/async.h"
#include "machine/sm/dispatch.h"
#include "machine/sm/rounds.h"
#include "machine/stacks/controller.h"

void warp_sleep(warp *w, ps time) {
  w->asleep = true;
  w->slept = time;
}

void warp_wake_at(sm *m, ps time, uint32_t warp_index) {
  if (m->round) event_back(m->events, time);
  event_push(m->events, time, EVENT_WARP, warp_index);
  if (m->round && !m->round->stopped && *m->round->clock > time) *m->round->clock = time;
}

void warps_stop(front_end *f, ps until) { f->stopped = until; }

warp *warp_take(warp_table *table, arena *memory) {
  if (table->free.count) return table->items[table->free.items[--table->free.count]];
  warp *w = arena_alloc(memory, sizeof *w);
  w->index = (uint32_t)table->count;
  FF_PUSH(table, w);
  return w;
}

/* What is next in the heap comes before `time`: the warp comes back then. (Where only another slice of the GPU is next,
 * event_own_next is not before `time`, and nothing of this slice comes between.) */
static inline bool gives_way(front_end *f, warp *w, ps time) {
  if (f->heap->next_time >= time) return false;
  if (event_own_next(f->heap) >= time) event_push_first(f->heap, time, EVENT_WARP, w->index);
  else event_push(f->heap, time, EVENT_WARP, w->index);
  return true;
}

static ps burst_over(front_end *f, warp *w, uint32_t n, ps end) {
  w->counters->warp_instructions += n;
  if (__builtin_expect(w->sm->stack, 0)) f->controller->stacks->result.offloaded_instructions += n;
  return end;
}

static ps burst_issue(front_end *f, warp *w, ps time) {
  const timing *t = f->t;
  sm *m = w->sm;
  uint32_t n = w->burst, passes = w->passes, sfu = w->sfu, fp64 = w->fp64;
  if (n > BURST) { /* its share of everything */
    passes = (uint32_t)((uint64_t)passes * BURST / n);
    sfu = (uint32_t)((uint64_t)sfu * BURST / n);
    fp64 = (uint32_t)((uint64_t)fp64 * BURST / n);
    n = BURST;
  }
  w->burst -= n;
  w->passes -= passes;
  w->sfu -= sfu;
  w->fp64 -= fp64;
  ps work = fixed_ps(n - (sfu + fp64 < n ? sfu + fp64 : n), t->cycle_fixed) + fixed_ps(sfu, t->sfu_fixed) +
            fixed_ps(fp64, t->fp64_fixed);
  ps end = time + fixed_ps(n, t->interval_fixed) + fixed_ps(passes, t->shared_fixed);
  server_take(&w->scheduler->issue, time, time, work);
  if (end < w->scheduler->issue.free) end = w->scheduler->issue.free;
  if (passes) {
    server_take(&m->shared, time, time, fixed_ps(passes, t->cycle_fixed));
    if (end < m->shared.free) end = m->shared.free;
  }
  return burst_over(f, w, n, end);
}

/* How long the chain of dependences is. Of its instructions, as many are taken to be in half precision as there are,
 * and in double precision, too, and as many multiply-adds of products of matrices as its cycles are enough for. */
static inline ps chain_time(const timing *t, const uint32_t units[TRACE_UNIT_COUNT]) {
  uint32_t cycles = units[TRACE_CHAIN], half = units[TRACE_HALF], doubles = units[TRACE_FP64];
  ps time = fixed_ps(cycles, t->chain_fixed) + fixed_ps(units[TRACE_LOADS], t->shared_load_fixed);
  if (half) time += fixed_ps(half < cycles / 4 ? half : cycles / 4, t->half_chain_fixed);
  if (doubles) time += fixed_ps(doubles < cycles / 8 ? doubles : cycles / 8, t->double_chain_fixed);
  uint64_t tensor = units[TRACE_TENSOR], most = (uint64_t)cycles * PRODUCT_UNITS / PRODUCT_CHAIN;
  if (tensor) {
    if (tensor > most) tensor = most;
    ps less = fixed_ps(tensor, t->tensor_chain_fixed[1]);
    time += fixed_ps(tensor, t->tensor_chain_fixed[0]);
    time -= less < time ? less : time;
  }
  return time;
}

/* Products of integers and half precision: returns when their pipes have taken them. */
static ps other_issue(const timing *t, scheduler *s, const uint32_t units[TRACE_UNIT_COUNT], ps time) {
  ps halves = fixed_ps(units[TRACE_HALF], t->half_fixed), products = fixed_ps(units[TRACE_PRODUCTS], t->product_fixed);
  server *fma = &s->pipes[PIPE_FMA], *other = &s->pipes[PIPE_OTHER];
  if (t->half_apart) products += halves;
  else if (halves) server_take(fma, time, time, halves);
  if (products) server_take(other, time, time, products);
  ps through = halves && !t->half_apart ? fma->free : 0;
  return products && through < other->free ? other->free : through;
}

/* The same with execution pipes: the piece goes to each of them at once, and the warp goes on when the last has taken
 * its part and the chain of dependences is over. */
static ps pipes_issue(front_end *f, warp *w, ps time) {
  static const uint8_t unit_of[PIPE_OTHER] = {TRACE_FMA, TRACE_ALU, TRACE_XU, TRACE_FP64, TRACE_TENSOR};
  const timing *t = f->t;
  sm *m = w->sm;
  uint32_t n = w->burst, passes = w->passes, units[TRACE_UNIT_COUNT];
  for (int u = 0; u < TRACE_UNIT_COUNT; u++) units[u] = w->units[u];
  if (n > BURST) { /* its share of everything */
    passes = (uint32_t)((uint64_t)passes * BURST / n);
    for (int u = 0; u < TRACE_UNIT_COUNT; u++) units[u] = (uint32_t)((uint64_t)units[u] * BURST / n);
    n = BURST;
  }
  w->burst -= n;
  w->passes -= passes;
  for (int u = 0; u < TRACE_UNIT_COUNT; u++) w->units[u] -= units[u];
  ps end = time + chain_time(t, units) + fixed_ps(passes, t->shared_fixed);
  server_take(&w->scheduler->issue, time, time, fixed_ps(units[TRACE_SLOTS], t->cycle_fixed));
  if (end < w->scheduler->issue.free) end = w->scheduler->issue.free;
  if (units[TRACE_HALF] || (units[TRACE_PRODUCTS] && t->product_fixed)) {
    ps other = other_issue(t, w->scheduler, units, time);
    if (end < other) end = other;
  }
  for (int p = 0; p < PIPE_OTHER; p++) {
    if (!units[unit_of[p]]) continue;
    server *pipe = p == PIPE_FP64 && t->one_fp64 ? &m->fp64 : &w->scheduler->pipes[p];
    server_take(pipe, time, time, fixed_ps(units[unit_of[p]], t->pipe_fixed[p]));
    if (end < pipe->free) end = pipe->free;
  }
  if (passes + units[TRACE_LSU]) {
    server_take(&m->shared, time, time, fixed_ps(passes + units[TRACE_LSU] * (32 / t->l1_lanes), t->cycle_fixed));
    if (end < m->shared.free) end = m->shared.free;
  }
  return burst_over(f, w, n, end);
}

/* false: the warp goes on later. */
static bool wait_for_load(front_end *f, warp *w, uint32_t k, ps *time) {
  if (k >= w->loads || k >= LOAD_RING) return true; /* older ones have arrived (access_begin) */
  if (f->round) return round_wait(f->round, w, w->loads - 1 - k, time);
  ps arrival = w->ring[(w->loads - 1 - k) % LOAD_RING];
  if (arrival <= *time) return true;
  w->counters->warp_stall_ps += arrival - *time;
  *time = arrival;
  return true;
}

/* ---- barriers ---- */

/* When those who wait at the barrier go on, if it has taken the last arrival. */
static ps barrier_opens(const front_end *f, const block *b, uint32_t id) { return b->barrier_time[id] + f->t->barrier; }

static void barrier_release(front_end *f, block *b, uint32_t id) {
  ps time = barrier_opens(f, b, id);
  for (uint32_t i = b->first_waiting[id]; i;) {
    warp *w = f->warps->items[i];
    i = w->next;
    w->next = 0;
    b->waiting--;
    async_goes_on(b);
    event_push(f->heap, time, EVENT_WARP, w->index);
  }
  b->first_waiting[id] = b->last_waiting[id] = b->arrived[id] = 0;
  b->barrier_time[id] = 0;
}

/* A stream that lacks arrivals must not stop the simulation. */
static void barriers_unmet(front_end *f, block *b, ps time) {
  if (b->live != b->waiting) return;
  if (b->waiting_far) {
    async_held(b, time);
    return;
  }
  if (time < b->ended) time = b->ended;
  for (uint32_t id = 0; id < BARRIERS; id++) {
    if (b->barrier_time[id] < time) b->barrier_time[id] = time;
    barrier_release(f, b, id);
  }
  async_unmet(b, time);
}

/* true: the warp waits. The barrier takes one arrival after the other, each in barrier_warp_cycles, and opens
 * barrier_latency after the last. A warp may run ahead of the heap until its next burst or access, so the last to come
 * here need not be the latest. */
static bool barrier_arrive(front_end *f, warp *w, uint64_t word, ps *time) {
  block *b = w->block;
  uint32_t id = trace_barrier_id(word) % BARRIERS;
  if (b->barrier_time[id] < *time) b->barrier_time[id] = *time;
  b->barrier_time[id] += f->t->barrier_warp;
  if (++b->arrived[id] >= trace_barrier_expected(word)) {
    if (!trace_barrier_arrive_only(word)) *time = barrier_opens(f, b, id);
    barrier_release(f, b, id);
    return false;
  }
  if (trace_barrier_arrive_only(word)) return false;
  if (b->last_waiting[id]) f->warps->items[b->last_waiting[id]]->next = w->index;
  else b->first_waiting[id] = w->index;
  b->last_waiting[id] = w->index;
  w->next = 0;
  b->waiting++;
  barriers_unmet(f, b, *time);
  return true;
}

static bool async_waits(front_end *f, warp *w, uint64_t word, ps *time) {
  if (!async_record(f, w, word, time)) return false;
  barriers_unmet(f, w->block, *time);
  return true;
}

/* LEAVE: true: the warp was away, and goes on at its own SM when the answer is there. */
static bool leaves(front_end *f, warp *w, ps time) {
  ps back;
  if (!f->controller || !controller_leave(f->controller, w, time, &back)) return false;
  warp_sleep(w, time);
  event_push(f->heap, back, EVENT_WARP, w->index);
  return true;
}

static void warps_give_back(front_end *f, block *b) {
  for (uint32_t i = b->exited, next; i; i = next) {
    next = f->warps->items[i]->next;
    FF_PUSH(&f->warps->free, i);
  }
  b->exited = 0;
}

static void warp_exit(front_end *f, warp *w, ps time) {
  block *b = w->block;
  if (w->marked) controller_leave(f->controller, w, time, &time); /* a stream without its LEAVE */
  trace_cursor_close(f->reader, &w->cursor);
  if (w->sm->round) { /* an answer may still come for it: given back with its block */
    w->next = b->exited;
    b->exited = w->index;
  } else {
    FF_PUSH(&f->warps->free, w->index);
  }
  if (b->ended < time) b->ended = time;
  if (--b->live) {
    barriers_unmet(f, b, time);
    return;
  }
  warps_give_back(f, b);
  block_end(f->dispatch, b);
}

/* In a round: is that a step for between two? */
static bool stops_round(const warp *w, uint64_t word) {
  const block *b = w->block;
  switch (trace_word_kind(word)) {
  case TRACE_EXIT: return b->live == 1 || b->waiting_far;
  case TRACE_BARRIER: return b->waiting_far;
  case TRACE_ASYNC: return b->waiting_far || w->open_copies || trace_async_far(word);
  default: return false;
  }
}

/* ---- one wake ---- */

/* A comparison and a selection for each, where that is how the GPU makes them; in a chain both, one after the other. As
 * many are taken to be in it as its cycles are enough for. */
static void count_minmax(warp *w) {
  uint32_t count = w->units[TRACE_MINMAX], most = w->units[TRACE_CHAIN] / 4;
  w->units[TRACE_SLOTS] += count;
  w->units[TRACE_ALU] += count;
  w->units[TRACE_CHAIN] += 4 * (count < most ? count : most);
}

static void issue_begin(front_end *f, warp *w, uint64_t word) {
  trace_counts units = {{0}};
  if (f->joins_issues) word = trace_cursor_issue(f->reader, &w->cursor, word, f->left_out, &units);
  w->burst = trace_issue_count(word);
  w->passes = trace_issue_memory(word);
  w->sfu = trace_issue_sfu(word);
  w->fp64 = trace_issue_fp64(word);
  if (!w->burst && w->passes) w->burst = 1;
  if (!f->pipes) return;
  for (uint32_t u = 0; u < TRACE_UNIT_COUNT; u++) w->units[u] = trace_count(&units, (trace_unit)u);
  if (__builtin_expect(f->t->two_for_minmax && w->units[TRACE_MINMAX], 0)) count_minmax(w);
}

void warp_wake(front_end *f, warp *w, ps time) {
  if (__builtin_expect(time < f->stopped, 0)) {
    event_push(f->heap, f->stopped, EVENT_WARP, w->index);
    return;
  }
  if (w->asleep) {
    w->asleep = false;
    w->counters->warp_stall_ps += time - w->slept;
  }
  for (bool stepped = false;; stepped = true) {
    if (__builtin_expect(f->single && stepped, 0)) {
      event_push_first(f->heap, time, EVENT_WARP, w->index);
      return;
    }
    if (w->burst) {
      if (gives_way(f, w, time)) return;
      time = f->pipes ? pipes_issue(f, w, time) : burst_issue(f, w, time);
      continue;
    }
    if (w->record) {
      if (gives_way(f, w, time)) return;
      if (__builtin_expect(w->marked, 0) && controller_decide(f->controller, w, time)) return;
      if (!access_continue(f->accesses, w, &time)) return;
      continue;
    }
    const uint64_t *record = trace_cursor_next(f->reader, &w->cursor);
    if (__builtin_expect(f->round != NULL, 0) && stops_round(w, *record)) {
      w->cursor.at = record;
      round_stop(f->round, w, time);
      return;
    }
    switch (trace_word_kind(*record)) {
    case TRACE_ISSUE: issue_begin(f, w, *record); break;
    case TRACE_ACCESS:
      if (!access_begin(f->accesses, w, record, &time)) return;
      break;
    case TRACE_SPILL:
      if (!spill_begin(f->accesses, w, record, &time)) return;
      break;
    case TRACE_WAIT:
      if (f->hoists_loads ? trace_wait_early(*record) : trace_wait_late(*record)) break;
      if (!wait_for_load(f, w, trace_wait_k(*record), &time)) return;
      break;
    case TRACE_BARRIER:
      if (barrier_arrive(f, w, *record, &time)) return;
      break;
    case TRACE_ASYNC:
      if (async_waits(f, w, *record, &time)) return;
      break;
    case TRACE_EXIT: warp_exit(f, w, time); return;
    case TRACE_ENTER:
      if (f->controller) controller_enter(f->controller, w, *record);
      break;
    case TRACE_LEAVE:
      if (leaves(f, w, time)) return;
      break;
    default: break;
    }
  }
}
