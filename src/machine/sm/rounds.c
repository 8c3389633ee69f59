/* SPDX-License-Identifier: Apache-2.0 */
/* The rounds of a simulation: which SM runs how far, and what is between.
 *
 *     clock of an SM == the earlier of its next event and of when what it asked first may be answered; while it is
 *                       stopped or paused, the later of its step's time and of what it asked last
 *     least = the least clock;  horizon = min(least + round_length, the device's next event, limit + 1)
 *
 *     1. what was asked before `least` is served; where SMs have paused, what was asked before `least` + `ahead`
 *     2. all SMs with a clock before the horizon run up to it, or until they stop or pause; of those that have paused,
 *        the ones whose requests are all answered                                              (on all threads)
 *     3. those that stopped no later than `ahead` after the first of them make their steps, in order of their clocks;
 *        what was asked before is served before. The horizon comes nearer if a step has put an event of the device
 *     4. again from 1, until all clocks are at the horizon
 *
 * So what is below the L1s is asked in order of time, but for what an SM asks after its step: at most `ahead` late, as
 * far as a warp's access may be ahead without rounds (warp_access.c). */
#include "machine/sm/rounds.h"

#include <stdlib.h>

#include "base/check.h"
#include "machine/simulation.h"

struct sm_rounds {
  sim *s;
  device *d;
  event_loop *loop;
  ps length, horizon;
  uint32_t count; /* of SMs */
  round_sm *sms;
  ps *clocks;
  uint32_t *list;   /* of SMs, in a round, */
  uint32_t *owners; /* and which thread rather runs each */
  uint32_t thread_count;
  round_threads *threads;
  round_server *server;
  round_parts *parts; /* NULL: nothing is measured */
};

/* ---- serving ---- */

static void serve(sm_rounds *r, ps end) {
  if (__builtin_expect(!r->parts, 1)) {
    round_server_serve(r->server, end);
    return;
  }
  uint64_t begun = round_clock();
  size_t waiting = round_server_waiting(r->server);
  round_server_serve(r->server, end);
  r->parts->serving += round_clock() - begun;
  r->parts->served += waiting - round_server_waiting(r->server);
}

/* ---- SMs ---- */

/* Nothing comes back before. */
static ps first_answer(const round_sm *q) { return q->open_ask == UINT64_MAX ? UINT64_MAX : q->open_ask + q->length; }

static void note_clock(round_sm *q) {
  ps next = event_first(&q->events), answer = first_answer(q);
  if (next > answer) next = answer; /* warps may go on then */
  if (q->paused && next <= q->last_ask) next = q->last_ask + 1;
  if (q->stopped) next = q->stopped_at > q->last_ask ? q->stopped_at : q->last_ask + 1;
  *q->clock = next;
}

/* Up to the horizon, or until it stops. */
static void sm_run(round_sm *q) {
  const sm_rounds *r = q->all;
  round_take(q);
  q->until = first_answer(q) < r->horizon ? first_answer(q) : r->horizon;
  q->events.horizon = q->until - 1;
  q->paused = false;
  while (!q->stopped && !q->paused && event_first(&q->events) < q->until) {
    event e = event_pop(&q->events);
    loop_prefetch(&q->events, &q->front);
    warp_wake(&q->front, q->front.warps->items[event_index(e)], event_time(e));
  }
  note_clock(q);
}

static void run_listed(void *context, uint32_t number) {
  sm_rounds *r = context;
  sm_run(&r->sms[r->list[number]]);
}

/* The step that stopped it. All that it asked before has been answered, so nothing of the SM is open. */
static void single_step(sm_rounds *r, round_sm *q) {
  warp *w = q->stopped;
  round_take(q);
  FF_CHECK(q->first == q->end);
  q->stopped = NULL;
  q->events.horizon = UINT64_MAX;
  q->events.next_time = event_next(&q->events);
  if (r->s->agenda.now < q->stopped_at) r->s->agenda.now = q->stopped_at;
  r->s->pager->now = r->s->agenda.now;
  *q->clock = UINT64_MAX;
  warp_wake(&q->single, w, q->stopped_at);
  note_clock(q);
}

static ps least_clock(const sm_rounds *r) {
  ps least = UINT64_MAX;
  for (uint32_t i = 0; i < r->count; i++)
    if (r->clocks[i] < least) least = r->clocks[i];
  return least;
}

/* All SMs that can go on before the horizon do. What was asked before `served` is answered. */
static void run_sms(sm_rounds *r, ps served) {
  uint32_t listed = 0;
  for (uint32_t i = 0; i < r->count; i++)
    if (r->clocks[i] < r->horizon && !r->sms[i].stopped && (!r->sms[i].paused || r->clocks[i] <= served)) {
      r->owners[listed] = (uint32_t)((uint64_t)i * r->thread_count / r->count);
      r->list[listed++] = i;
    }
  round_threads_run(r->threads, run_listed, r, ROUND_SMS, r->owners, listed);
  if (r->parts) r->parts->turns++, r->parts->listed += listed;
  for (uint32_t i = 0; i < listed; i++) {
    round_server_collect(r->server, &r->sms[r->list[i]]);
    round_census(&r->sms[r->list[i]]);
  }
}

/* Those that have stopped before `end` make their steps, the earliest first. */
static void make_steps(sm_rounds *r, ps end) {
  uint32_t listed = 0;
  for (uint32_t i = 0; i < r->count; i++) {
    if (r->clocks[i] >= end || !r->sms[i].stopped) continue;
    uint32_t at = listed++;
    for (; at && r->clocks[r->list[at - 1]] > r->clocks[i]; at--) r->list[at] = r->list[at - 1];
    r->list[at] = i;
  }
  for (uint32_t i = 0; i < listed && r->clocks[r->list[i]] < r->horizon; i++) {
    serve(r, r->clocks[r->list[i]]);
    single_step(r, &r->sms[r->list[i]]);
    if (r->parts) r->parts->stepped++;
    ps next = event_next(&r->d->heap); /* the step may have made it: other SMs' steps wait for it */
    if (next < r->horizon) r->horizon = next;
  }
}

/* What is served between them is no part of them. */
static void measured_steps(sm_rounds *r, ps end) {
  if (__builtin_expect(!r->parts, 1)) {
    make_steps(r, end);
    return;
  }
  uint64_t begun = round_clock(), serving = r->parts->serving;
  make_steps(r, end);
  r->parts->steps += round_clock() - begun - (r->parts->serving - serving);
}

static bool any_paused(const sm_rounds *r, ps end) {
  for (uint32_t i = 0; i < r->count; i++)
    if (r->clocks[i] <= end && r->sms[i].paused && !r->sms[i].stopped) return true;
  return false;
}

static void run_round(sm_rounds *r) {
  for (ps least; (least = least_clock(r)) < r->horizon;) {
    ps served = any_paused(r, least + r->s->t.ahead) ? least + r->s->t.ahead : least;
    if (served > r->horizon) served = r->horizon;
    serve(r, served);
    run_sms(r, served);
    measured_steps(r, least_clock(r) + r->s->t.ahead);
  }
  serve(r, r->horizon);
}

void rounds_settle(const sm *sms) {
  if (sms->round) serve(sms->round->all, UINT64_MAX);
}

void rounds_counts_add(sm_rounds *r) {
  for (uint32_t i = 0; r && i < r->count; i++) round_counts_add(&r->sms[i]);
}

static void yield(sm_rounds *r) {
  if (__builtin_expect(r->s->answers.askers != 0, 0)) answers_yield(&r->s->answers);
}

void rounds_run(sm_rounds *r, ps limit, const node *n) {
  event_heap *heap = &r->d->heap;
  while (!n || !n->done) {
    ps least = least_clock(r), next = event_next(heap);
    if ((least < next ? least : next) > limit || (least == UINT64_MAX && next == UINT64_MAX)) break;
    if (next <= least) {
      serve(r, next);
      loop_run_event(r->loop, event_pop(heap));
      yield(r);
      continue;
    }
    r->horizon = least + r->length < next ? least + r->length : next;
    if (limit != UINT64_MAX && r->horizon > limit + 1) r->horizon = limit + 1;
    if (least >= r->s->observer.next_sample) record_sample(&r->s->observer, least);
    run_round(r);
    if (r->parts) r->parts->rounds++;
    if (r->s->agenda.now < least) r->s->agenda.now = least;
    yield(r);
  }
  FF_ASSERT(!n || n->done); /* an operation that nothing will ever end */
  if (limit == UINT64_MAX && !n) {
    serve(r, UINT64_MAX);
    for (uint32_t i = 0; i < r->count; i++) round_take(&r->sms[i]);
  }
  rounds_counts_add(r);
}

/* ---- making ---- */

const char *rounds_refuse(const sim *s) {
  if (s->stacks) return "a machine with memory stacks";
  if (s->d->whole->shared || s->d->whole != s->d) return "a GPU that several programs share";
  if (s->sampler.needed) return "sampling";
  if (s->written || s->future) return "a policy that knows the program's future";
  return NULL;
}

static void sm_begin(sm_rounds *r, uint32_t i) {
  round_sm *q = &r->sms[i];
  sim *s = r->s;
  sm *m = &r->d->sms[i];
  q->all = r;
  q->m = m;
  q->clock = &r->clocks[i];
  *q->clock = UINT64_MAX;
  q->mask = 63;
  q->open_ask = UINT64_MAX;
  q->length = r->length;
  q->lines = s->observer.lines != NULL;
  q->requests = ff_alloc_aligned(64, (q->mask + 1) * sizeof *q->requests);
  q->takings = ff_alloc_aligned(64, (q->mask + 1) * sizeof *q->takings);
  q->events.first = q->events.next_time = q->events.horizon = q->events.own_horizon = UINT64_MAX;
  q->events.slice = true; /* a warp that stops at the horizon goes on as if it had not */
  q->front = q->single = s->front;
  q->accesses = q->single_accesses = s->accesses;
  q->front.heap = q->single.heap = q->accesses.heap = q->single_accesses.heap = &q->events;
  q->front.accesses = &q->accesses;
  q->single.accesses = &q->single_accesses;
  q->front.round = q->accesses.round = q;
  q->single.single = true;
  m->round = q;
  m->events = &q->events;
}

void rounds_begin(sim *s, uint32_t threads) {
  FF_ASSERT(!rounds_refuse(s));
  sm_rounds *r = ff_alloc(sizeof *r);
  r->s = s;
  r->d = s->d;
  r->loop = &s->loop;
  r->length = s->t.l2_there + s->t.l2_back;
  if (!r->length) r->length = 1;
  r->count = s->d->sm_total;
  r->sms = ff_alloc_aligned(64, r->count * sizeof *r->sms);
  r->clocks = ff_alloc(r->count * sizeof *r->clocks);
  r->list = ff_alloc(r->count * sizeof *r->list);
  r->owners = ff_alloc(r->count * sizeof *r->owners);
  for (uint32_t i = 0; i < r->count; i++) sm_begin(r, i);
  if (threads > r->count) threads = r->count;
  r->thread_count = s->observer.watched ? 1 : threads; /* what is watched is common */
  r->threads = round_threads_create(r->thread_count, s->measures);
  r->server = round_server_create(s, r->sms, r->count, r->length, r->threads, r->thread_count);
  r->parts = s->measures ? &s->parts : NULL;
  s->loop.rounds = r;
}

void rounds_end(sim *s) {
  sm_rounds *r = s->loop.rounds;
  if (!r) return;
  rounds_counts_add(r);
  s->parts.sms = round_threads_spent(r->threads, ROUND_SMS);
  s->parts.side_by_side = round_threads_spent(r->threads, ROUND_SERVING);
  round_threads_free(r->threads);
  for (uint32_t i = 0; i < r->count; i++) {
    round_sm *q = &r->sms[i];
    for (size_t k = 0; k < q->touched.count; k++) free(q->touched.items[k]);
    free(q->touched.items);
    free(q->census.items);
    free(q->asked.items);
    free(q->counts);
    free(q->requests);
    free(q->takings);
    free(q->events.items);
    q->m->round = NULL;
    q->m->events = &r->d->heap;
  }
  round_server_free(r->server);
  free(r->sms);
  free(r->clocks);
  free(r->list);
  free(r->owners);
  free(r);
  s->loop.rounds = NULL;
}
