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
 * far as a warp's access may be ahead without rounds (warp_access.c).
 *
 * What waits to be served is in a calendar: buckets by time, each sorted when its turn comes. */
#include "machine/sm/rounds.h"

#include <stdlib.h>

#include "base/check.h"
#include "machine/simulation.h"

enum { BUCKETS = 1024, BUCKETS_PER_ROUND = 128, AHEAD_NEAR = 4, AHEAD_FAR = 8 };

typedef struct calendar_entry {
  ps turn;
  uint64_t number; /* the SM's request */
  uint32_t sm;
} calendar_entry;
typedef struct bucket {
  FF_VEC(calendar_entry) entries;
  size_t sorted; /* of these */
} bucket;

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
  round_parts *parts; /* NULL: nothing is measured */
  /* the calendar */
  ps width, at; /* of a bucket; where the first one that may have entries begins */
  size_t waiting;
  bucket buckets[BUCKETS];
};

/* ---- the calendar ---- */

static bucket *bucket_at(sm_rounds *r, ps time) { return &r->buckets[time / r->width % BUCKETS]; }

static void collect(sm_rounds *r, round_sm *q) {
  for (; q->collected != q->end; q->collected++) {
    const round_request *e = &q->requests[q->collected & q->mask];
    if (!e->asks) continue;
    bucket *b = bucket_at(r, e->turn > r->at ? e->turn : r->at);
    FF_PUSH(&b->entries, ((calendar_entry){e->turn, q->collected, q->m->index}));
    r->waiting++;
  }
}

static bool before(const calendar_entry *a, const calendar_entry *b) {
  if (a->turn != b->turn) return a->turn < b->turn;
  return a->sm != b->sm ? a->sm < b->sm : a->number < b->number;
}

static void bucket_sort(bucket *b) {
  for (; b->sorted < b->entries.count; b->sorted++) {
    calendar_entry e = b->entries.items[b->sorted];
    size_t at = b->sorted;
    for (; at && before(&e, &b->entries.items[at - 1]); at--) b->entries.items[at] = b->entries.items[at - 1];
    b->entries.items[at] = e;
  }
}

static round_request *request_of(sm_rounds *r, const calendar_entry *e) {
  const round_sm *q = &r->sms[e->sm];
  return &q->requests[e->number & q->mask];
}

static void serve_line(sm_rounds *r, const round_sm *q, round_request *e) {
  if (e->translated) {
    ps at = round_translated(q, e), late = at > e->at ? at - e->at : 0;
    e->at += late;
    if (e->line) e->floor += late;
  }
  request below = {.address = e->address,
                   .sectors = e->sectors,
                   .lanes = e->lanes,
                   .sm = q->m->index,
                   .op = (trace_access_op)e->op,
                   .ask = e->ask,
                   .at = e->at,
                   .tally = &e->tally};
  e->answer = memory_below_l1(&r->s->memory, q->m, &below);
  FF_CHECK(e->answer >= e->turn + r->length);
}

static void serve_one(sm_rounds *r, const calendar_entry *c) {
  round_sm *q = &r->sms[c->sm];
  round_request *e = request_of(r, c);
  if (e->kind == ROUND_LINE) {
    serve_line(r, q, e);
  } else if (e->kind == ROUND_WALK) {
    e->answer = tlb_walk(&r->s->gmmu, q->m, e->address, (pager_leaf)e->lanes, e->tag, e->ask, e->at, &e->tally);
  } else {
    ps at = round_translated(q, e);
    if (at > e->at) COUNT(&e->tally, tlb_merged, 1);
    e->answer = at > e->at ? at : e->at;
  }
  e->answered = true;
  q->answers++;
}

/* It lies in two lines of the host's cache. */
static void prefetch_request(const round_request *e) {
  __builtin_prefetch(e);
  __builtin_prefetch((const char *)e + 64);
}

static void serve_bucket(sm_rounds *r, bucket *b, ps end) {
  bucket_sort(b);
  size_t count = b->entries.count, served = 0;
  const calendar_entry *items = b->entries.items;
  const memory *y = &r->s->memory;
  for (size_t i = 0; i < count && i < AHEAD_FAR; i++) prefetch_request(request_of(r, &items[i]));
  for (; served < count && items[served].turn < end; served++) {
    size_t far = served + AHEAD_FAR, near = served + AHEAD_NEAR;
    if (far + AHEAD_FAR < count) prefetch_request(request_of(r, &items[far + AHEAD_FAR]));
    if (far < count) l2_prefetch_far(y, request_of(r, &items[far])->address);
    if (near < count) l2_prefetch_near(y, request_of(r, &items[near])->address);
    serve_one(r, &items[served]);
  }
  for (size_t i = served; i < count; i++) b->entries.items[i - served] = b->entries.items[i];
  b->entries.count = b->sorted = count - served;
  r->waiting -= served;
}

static ps first_ask(const sm_rounds *r) {
  ps first = UINT64_MAX;
  for (uint32_t i = 0; i < BUCKETS; i++)
    for (size_t k = 0; k < r->buckets[i].entries.count; k++)
      if (r->buckets[i].entries.items[k].turn < first) first = r->buckets[i].entries.items[k].turn;
  return first;
}

/* All that was asked before `end`, and has been collected. */
static void serve_before(sm_rounds *r, ps end) {
  for (uint32_t empty = 0; r->waiting;) {
    bucket *b = bucket_at(r, r->at);
    size_t waiting = r->waiting;
    if (b->entries.count) serve_bucket(r, b, end < r->at + r->width ? end : r->at + r->width);
    if (end <= r->at + r->width) break; /* there may be more for this one */
    r->at += r->width;
    empty = r->waiting == waiting ? empty + 1 : 0;
    if (empty < BUCKETS || !r->waiting) continue;
    ps first = first_ask(r);
    if (first / r->width * r->width > r->at) r->at = first / r->width * r->width;
    empty = 0;
  }
  if (!r->waiting && end != UINT64_MAX && r->at < end / r->width * r->width) r->at = end / r->width * r->width;
}

static void serve(sm_rounds *r, ps end) {
  if (__builtin_expect(!r->parts, 1)) {
    serve_before(r, end);
    return;
  }
  uint64_t begun = round_clock();
  size_t waiting = r->waiting;
  serve_before(r, end);
  r->parts->serving += round_clock() - begun;
  r->parts->served += waiting - r->waiting;
}

/* ---- SMs ---- */

/* Nothing comes back before. */
static ps first_answer(const round_sm *q) { return q->open_ask == UINT64_MAX ? UINT64_MAX : q->open_ask + q->length; }

static void note_clock(round_sm *q) {
  ps next = event_next(&q->events), answer = first_answer(q);
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
  while (!q->stopped && !q->paused && event_next(&q->events) < q->until) {
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
  round_threads_run(r->threads, r->owners, listed);
  if (r->parts) r->parts->turns++, r->parts->listed += listed;
  for (uint32_t i = 0; i < listed; i++) {
    collect(r, &r->sms[r->list[i]]);
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
  q->events.next_time = q->events.horizon = q->events.own_horizon = UINT64_MAX;
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
  r->width = r->length / BUCKETS_PER_ROUND ? r->length / BUCKETS_PER_ROUND : 1;
  r->count = s->d->sm_total;
  r->sms = ff_alloc_aligned(64, r->count * sizeof *r->sms);
  r->clocks = ff_alloc(r->count * sizeof *r->clocks);
  r->list = ff_alloc(r->count * sizeof *r->list);
  r->owners = ff_alloc(r->count * sizeof *r->owners);
  for (uint32_t i = 0; i < r->count; i++) sm_begin(r, i);
  if (threads > r->count) threads = r->count;
  r->thread_count = s->observer.watched ? 1 : threads; /* what is watched is common */
  r->threads = round_threads_create(r->thread_count, run_listed, r, s->measures);
  r->parts = s->measures ? &s->parts : NULL;
  s->loop.rounds = r;
}

void rounds_end(sim *s) {
  sm_rounds *r = s->loop.rounds;
  if (!r) return;
  rounds_counts_add(r);
  s->parts.sms = round_threads_spent(r->threads);
  round_threads_free(r->threads);
  for (uint32_t i = 0; i < r->count; i++) {
    round_sm *q = &r->sms[i];
    for (size_t k = 0; k < q->touched.count; k++) free(q->touched.items[k]);
    free(q->touched.items);
    free(q->census.items);
    free(q->counts);
    free(q->requests);
    free(q->events.items);
    q->m->round = NULL;
    q->m->events = &r->d->heap;
  }
  for (uint32_t i = 0; i < BUCKETS; i++) free(r->buckets[i].entries.items);
  free(r->sms);
  free(r->clocks);
  free(r->list);
  free(r->owners);
  free(r);
  s->loop.rounds = NULL;
}
