/* SPDX-License-Identifier: Apache-2.0 */
/* What SMs have asked in rounds is served: in order of (turn, SM, order of asking), to the byte, on any number of
 * threads.
 *
 * What waits is in a calendar: buckets by time; what is served of one is sorted then. On several threads a batch is
 * taken out, and each step of it is made for all of the batch before the next one:
 *
 *     1. in order: translations, and stores and atomics, which go out through the network. A walk that reads the L2
 *        ends the batch: it is made when all before it is done
 *     2. by part of the L2 (l2_parts), each part's lines in order: what they find; in order: which of them cross to the
 *        L2's other side, when; by part: when their data is there. Of an L2 of one side this is one step
 *     3. by SM, or cluster of SMs, in order: the way back through the network
 *
 * No step reads what a later step of an earlier request writes: of the L2, tags and times are apart (l2_find), and a
 * server's turn depends on when it is asked, not on when what is served arrives (server_turn). What is counted is added
 * up by group of parts first. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "machine/simulation.h"
#include "machine/sm/rounds.h"

enum { BUCKETS = 1024, BUCKETS_PER_ROUND = 128, AHEAD_NEAR = 4, AHEAD_FAR = 8, FEW = 32, PLACES = 256 };
/* Requests that are served side by side: of fewer, threads would be told more than they do; more would not stay in the
 * host's caches from step to step. */
enum { GROUPS_PER_THREAD = 4, BATCH_LEAST = 96, BATCH_MOST = 2048 };

typedef FF_VEC(round_asked) asked_list;

/* What a group has counted: of one kernel or allocation. */
typedef struct group_counts {
  sim_counters *whole; /* where it belongs */
  sim_counters own;
} group_counts;

/* Parts of the L2, on one thread at a time. */
typedef struct group {
  _Alignas(64) FF_VEC(uint32_t) lines; /* of the batch, by their number in it */
  FF_VEC(group_counts *) counts;
  size_t used; /* of these */
  tally whole, own;
} group;

struct round_server {
  memory *memory;
  gmmu *gmmu;
  round_sm *sms;
  ps length;
  round_threads *threads;
  /* the calendar */
  uint32_t width_shift; /* the logarithm of a bucket's length */
  ps at;                /* where the first one that may have entries begins */
  size_t waiting;
  asked_list buckets[BUCKETS];
  asked_list picked, spare; /* of a bucket: those that are served now; to sort in, */
  size_t *places;           /* with these: of each key, from the second on */
  size_t place_count;
  ps first;            /* of the list that is sorted: its first time, */
  uint32_t mark_shift; /* and the logarithm of how much of it one place is for */
  /* side by side */
  group *groups; /* NULL: nothing is */
  uint32_t group_count, thread_count;
  uint8_t *of_slice;                  /* groups */
  uint32_t *group_owners, *sm_owners; /* which thread has which; of SMs: whose way back it makes */
  uint32_t *thread_owners;            /* 0, 1, 2 ... */
  asked_list batch;
  size_t least;      /* requests that are served side by side */
  size_t begin, end; /* of the batch: that is in the groups */
  char *ways;        /* of the batch's lines in an L2 of two sides */
  l2_turn *turns;
  size_t ways_room;
};

/* ---- the calendar ---- */

static asked_list *bucket_at(round_server *v, ps time) { return &v->buckets[(time >> v->width_shift) % BUCKETS]; }

static ps bucket_begin(const round_server *v, ps time) { return time >> v->width_shift << v->width_shift; }

void round_server_collect(round_server *v, round_sm *q) {
  for (size_t i = 0; i < q->asked.count; i++) {
    const round_asked *c = &q->asked.items[i];
    FF_PUSH(bucket_at(v, c->turn > v->at ? c->turn : v->at), *c);
  }
  v->waiting += q->asked.count;
  q->asked.count = 0;
}

static inline size_t time_of(const round_server *v, const round_asked *c) {
  return (size_t)((c->turn - v->first) >> v->mark_shift);
}

static inline size_t sm_of(const round_server *v, const round_asked *c) { return c->sm; }

static bool before(const round_asked *a, const round_asked *b) {
  if (a->turn != b->turn) return a->turn < b->turn;
  return a->sm != b->sm ? a->sm < b->sm : (int32_t)(a->number - b->number) < 0;
}

/* `to` is `from` in the order of the keys, and where they are the same as it was. */
static inline void put_by_key(round_server *v, const asked_list *from, asked_list *to,
                              size_t key(const round_server *, const round_asked *)) {
  memset(v->places, 0, v->place_count * sizeof *v->places);
  while (to->count < from->count) FF_PUSH(to, from->items[0]);
  to->count = from->count;
  for (size_t i = 0; i < from->count; i++) v->places[key(v, &from->items[i]) + 1]++;
  for (size_t k = 1; k < v->place_count; k++) v->places[k] += v->places[k - 1];
  for (size_t i = 0; i < from->count; i++) to->items[v->places[key(v, &from->items[i])]++] = from->items[i];
}

static inline void exchange(asked_list *a, asked_list *b) {
  asked_list c = *a;
  *a = *b;
  *b = c;
}

/* The times of the list, some of which may be long before the bucket's, in no more pieces than there are places. False:
 * the list is not in order of the SMs. What one SM has asked comes in order in any case. */
static bool set_marks(round_server *v, const asked_list *list) {
  ps last = v->first = list->items[0].turn;
  bool by_sm = true;
  for (size_t i = 1; i < list->count; i++) {
    ps turn = list->items[i].turn;
    if (v->first > turn) v->first = turn;
    if (last < turn) last = turn;
    by_sm &= list->items[i - 1].sm <= list->items[i].sm;
  }
  v->mark_shift = 0;
  while ((last - v->first) >> v->mark_shift >= v->place_count - 1) v->mark_shift++;
  return by_sm;
}

static void sort(round_server *v, asked_list *list) {
  if (list->count > FEW) { /* almost: what is left are steps of one or two */
    if (!set_marks(v, list)) {
      put_by_key(v, list, &v->spare, sm_of);
      exchange(list, &v->spare);
    }
    put_by_key(v, list, &v->spare, time_of);
    exchange(list, &v->spare);
  }
  for (size_t i = 1; i < list->count; i++) {
    round_asked e = list->items[i];
    size_t at = i;
    for (; at && before(&e, &list->items[at - 1]); at--) list->items[at] = list->items[at - 1];
    list->items[at] = e;
  }
}

static round_request *request_of(const round_server *v, const round_asked *c) {
  const round_sm *q = &v->sms[c->sm];
  return &q->requests[c->number & q->mask];
}

static round_taking *taking_of(const round_server *v, const round_asked *c) {
  const round_sm *q = &v->sms[c->sm];
  return &q->takings[c->number & q->mask];
}

/* ---- one request ---- */

static request request_below(const round_asked *c, const round_request *e, const tally *tally) {
  return (request){.address = e->address,
                   .sectors = e->sectors,
                   .lanes = e->lanes,
                   .sm = c->sm,
                   .op = (trace_access_op)e->op,
                   .priority = e->priority,
                   .ask = e->ask,
                   .at = e->at,
                   .tally = tally};
}

/* A line whose translation comes later is as much later. */
static inline void translated_late(const round_sm *q, round_request *e) {
  if (!e->translated) return;
  ps at = round_translated(q, e);
  if (at > e->at) e->at = at;
}

static void line_out(const round_server *v, const round_asked *c, round_request *e) {
  translated_late(&v->sms[c->sm], e);
  request r = request_below(c, e, &e->tally);
  network_out(v->memory, &r);
  if (r.op == TRACE_PREFETCH && taking_of(v, c)->line) /* its floor is counted from `at` without the network's wait */
    taking_of(v, c)->floor -= r.at - e->at;
  e->at = r.at;
}

static void line_back(const round_server *v, const round_asked *c, round_request *e) {
  request r = request_below(c, e, &e->tally);
  e->answer = network_back(v->memory, &r, e->answer);
  FF_CHECK(e->answer >= c->turn + v->length);
}

static void serve_translation(const round_server *v, const round_asked *c, round_request *e) {
  round_sm *q = &v->sms[c->sm];
  if (e->kind == ROUND_WALK) {
    e->answer = tlb_walk(v->gmmu, q->m, e->address, (pager_leaf)e->lanes, e->translated, e->ask, e->at, &e->tally);
  } else {
    ps at = round_translated(q, e);
    if (at > e->at) COUNT(&e->tally, tlb_merged, 1);
    e->answer = at > e->at ? at : e->at;
  }
  e->answered = true;
  q->answers++;
}

/* place: of a line */
static void serve_one(round_server *v, const round_asked *c, const line_place *place) {
  round_sm *q = &v->sms[c->sm];
  round_request *e = request_of(v, c);
  if (!c->line) {
    serve_translation(v, c, e);
    return;
  }
  translated_late(q, e);
  request r = request_below(c, e, &e->tally);
  e->answer = memory_below_l1(v->memory, q->m, &r, place);
  FF_CHECK(e->answer >= c->turn + v->length);
  e->answered = true;
  q->answers++;
}

static void prefetch_request(const round_request *e) { __builtin_prefetch(e); }

/* The places of the lines that come next, each found once, when the host is asked for what lies there. */
enum { PLACED = 2 * AHEAD_FAR };
typedef struct placed {
  line_place items[PLACED]; /* line number i at i % PLACED */
} placed;

static void place(const round_server *v, placed *p, size_t i, const round_asked *c) {
  if (!c->line) return;
  line_place *at = &p->items[i % PLACED];
  l2_find_place(v->memory, request_of(v, c)->address, at);
  l2_prefetch_far(v->memory, at, c->sm);
}

/* All of them, one by one. */
static void serve_in_order(round_server *v, const round_asked *items, size_t count) {
  placed p;
  for (size_t i = 0; i < count && i < 2 * AHEAD_FAR; i++) prefetch_request(request_of(v, &items[i]));
  for (size_t i = 0; i < count && i < AHEAD_FAR; i++) place(v, &p, i, &items[i]);
  for (size_t i = 0; i < count; i++) {
    size_t far = i + AHEAD_FAR, near = i + AHEAD_NEAR;
    if (far + AHEAD_FAR < count) prefetch_request(request_of(v, &items[far + AHEAD_FAR]));
    if (far < count) place(v, &p, far, &items[far]);
    if (near < count && items[near].line) l2_prefetch_near(v->memory, &p.items[near % PLACED], items[near].sm);
    serve_one(v, &items[i], &p.items[i % PLACED]);
  }
}

/* ---- side by side ---- */

static sim_counters *counters_of(group *g, sim_counters *whole) {
  for (size_t i = 0; i < g->used; i++)
    if (g->counts.items[i]->whole == whole) return &g->counts.items[i]->own;
  if (g->used == g->counts.count) FF_PUSH(&g->counts, ff_alloc(sizeof **g->counts.items));
  group_counts *c = g->counts.items[g->used++];
  c->whole = whole;
  return &c->own;
}

static const tally *group_tally(group *g, const tally *whole) {
  if (g->whole.kernel != whole->kernel || g->whole.allocation != whole->allocation) {
    g->whole = *whole;
    g->own = (tally){counters_of(g, whole->kernel), counters_of(g, whole->allocation)};
  }
  return &g->own;
}

static void add_counts(group *g) {
  for (size_t i = 0; i < g->used; i++) {
    group_counts *c = g->counts.items[i];
#define X(name, unit, help) c->whole->name += c->own.name;
#include "machine/observe/counters.def"
#undef X
    c->own = (sim_counters){0};
  }
  g->used = 0;
  g->whole = (tally){NULL, NULL};
}

static l2_way *way_at(const round_server *v, size_t i) {
  return (l2_way *)(void *)(v->ways + (i - v->begin) * l2_way_bytes());
}

/* Line number i of the group, and what of those behind it lies far away from the host. p: their places, and this one's;
 * NULL: they are not wanted any more. */
static round_request *next_line(const round_server *v, const group *g, size_t i, placed *p) {
  const round_asked *items = v->batch.items;
  size_t count = g->lines.count, far = i + AHEAD_FAR, near = i + AHEAD_NEAR;
  if (far + AHEAD_FAR < count) prefetch_request(request_of(v, &items[g->lines.items[far + AHEAD_FAR]]));
  for (size_t k = i ? far : 0; p && k <= far && k < count; k++) place(v, p, k, &items[g->lines.items[k]]);
  if (p && near < count) l2_prefetch_near(v->memory, &p->items[near % PLACED], items[g->lines.items[near]].sm);
  return request_of(v, &items[g->lines.items[i]]);
}

/* Of an L2 of one side: all. */
static void serve_group(void *context, uint32_t number) {
  round_server *v = context;
  group *g = &v->groups[number];
  placed p;
  for (size_t i = 0; i < g->lines.count; i++) {
    round_request *e = next_line(v, g, i, &p);
    const round_asked *c = &v->batch.items[g->lines.items[i]];
    if (c->load) translated_late(&v->sms[c->sm], e);
    request r = request_below(c, e, group_tally(g, &e->tally));
    e->answer = l2_access_at(v->memory, &r, &p.items[i % PLACED]);
    e->answered = true;
  }
}

static void find_group(void *context, uint32_t number) {
  round_server *v = context;
  const group *g = &v->groups[number];
  placed p;
  for (size_t i = 0; i < g->lines.count; i++) {
    round_request *e = next_line(v, g, i, &p);
    uint32_t at = g->lines.items[i];
    const round_asked *c = &v->batch.items[at];
    if (c->load) translated_late(&v->sms[c->sm], e);
    request r = request_below(c, e, &e->tally);
    l2_find(v->memory, &r, &p.items[i % PLACED], way_at(v, at), &v->turns[at - v->begin]);
  }
}

static void take_group(void *context, uint32_t number) {
  round_server *v = context;
  group *g = &v->groups[number];
  for (size_t i = 0; i < g->lines.count; i++) {
    round_request *e = next_line(v, g, i, NULL);
    uint32_t at = g->lines.items[i];
    request r = request_below(&v->batch.items[at], e, group_tally(g, &e->tally));
    e->answer = l2_take(v->memory, &r, way_at(v, at), &v->turns[at - v->begin]);
    e->answered = true;
  }
}

static void back_to_sms(void *context, uint32_t number) {
  const round_server *v = context;
  for (size_t i = v->begin; i < v->end; i++) {
    const round_asked *c = &v->batch.items[i];
    if (i + AHEAD_FAR < v->end && v->sm_owners[c[AHEAD_FAR].sm] == number)
      prefetch_request(request_of(v, &c[AHEAD_FAR]));
    if (c->line && v->sm_owners[c->sm] == number) line_back(v, c, request_of(v, c));
  }
}

/* Few lines are served by this thread alone. */
static void run_tasks(round_server *v, round_task *task, const uint32_t *owners, uint32_t count) {
  if (v->end - v->begin >= v->least) round_threads_run(v->threads, task, v, ROUND_SERVING, owners, count);
  else
    for (uint32_t i = 0; i < count; i++) task(v, i);
}

static void run_groups(round_server *v, round_task *task) { run_tasks(v, task, v->group_owners, v->group_count); }

static void serve_two_sides(round_server *v) {
  size_t count = v->end - v->begin;
  if (v->ways_room < count) {
    v->ways_room = count * 2;
    free(v->ways);
    free(v->turns);
    v->ways = ff_alloc_aligned(64, v->ways_room * l2_way_bytes());
    v->turns = ff_alloc(v->ways_room * sizeof *v->turns);
  }
  run_groups(v, find_group);
  for (size_t i = 0; i < count; i++)
    if (v->batch.items[v->begin + i].line) l2_cross(v->memory, &v->turns[i]);
  run_groups(v, take_group);
}

/* The lines that are in the groups. */
static void serve_lines(round_server *v) {
  if (v->memory->crossing) serve_two_sides(v);
  else run_groups(v, serve_group);
  run_tasks(v, back_to_sms, v->thread_owners, v->thread_count);
  for (uint32_t i = 0; i < v->group_count; i++) {
    add_counts(&v->groups[i]);
    v->groups[i].lines.count = 0;
  }
}

/* From `begin` on, up to a walk that reads the L2 (true): into the groups what are lines, and the rest is served. */
static bool gather(round_server *v) {
  const round_asked *items = v->batch.items;
  size_t limit = v->batch.count - v->begin < BATCH_MOST ? v->batch.count : v->begin + BATCH_MOST;
  for (v->end = v->begin; v->end < limit; v->end++) {
    const round_asked *c = &items[v->end];
    round_sm *q = &v->sms[c->sm];
    if (v->end + AHEAD_FAR < v->batch.count && !c[AHEAD_FAR].load) prefetch_request(request_of(v, &c[AHEAD_FAR]));
    if (!c->load) {
      round_request *e = request_of(v, c);
      if (e->kind == ROUND_WALK && tlb_walk_reads(v->gmmu, e->address, (pager_leaf)e->lanes, e->translated))
        return true;
      if (!c->line) {
        serve_translation(v, c, e);
        continue;
      }
      line_out(v, c, e);
    }
    FF_PUSH(&v->groups[c->group].lines, (uint32_t)v->end);
    q->answers++;
  }
  return false;
}

static void serve_batch(round_server *v) {
  const round_asked *items = v->batch.items;
  v->begin = 0;
  for (bool walk; v->begin < v->batch.count;) {
    if (v->batch.count - v->begin < v->least) {
      serve_in_order(v, &items[v->begin], v->batch.count - v->begin);
      break;
    }
    walk = gather(v);
    if (v->end > v->begin) serve_lines(v);
    if (walk) serve_one(v, &items[v->end++], NULL);
    v->begin = v->end;
  }
  v->batch.count = 0;
}

/* ---- all ---- */

static void serve_bucket(round_server *v, asked_list *b, ps end) {
  size_t kept = 0;
  v->picked.count = 0;
  for (size_t i = 0; i < b->count; i++)
    if (b->items[i].turn < end) FF_PUSH(&v->picked, b->items[i]);
    else b->items[kept++] = b->items[i];
  b->count = kept;
  v->waiting -= v->picked.count;
  sort(v, &v->picked);
  if (v->groups)
    for (size_t i = 0; i < v->picked.count; i++) FF_PUSH(&v->batch, v->picked.items[i]);
  else serve_in_order(v, v->picked.items, v->picked.count);
}

static ps first_ask(const round_server *v) {
  ps first = UINT64_MAX;
  for (uint32_t i = 0; i < BUCKETS; i++)
    for (size_t k = 0; k < v->buckets[i].count; k++)
      if (v->buckets[i].items[k].turn < first) first = v->buckets[i].items[k].turn;
  return first;
}

void round_server_serve(round_server *v, ps end) {
  for (uint32_t empty = 0; v->waiting;) {
    asked_list *b = bucket_at(v, v->at);
    size_t waiting = v->waiting;
    ps over = v->at + ((ps)1 << v->width_shift);
    if (b->count) serve_bucket(v, b, end < over ? end : over);
    if (end <= over) break; /* there may be more for this one */
    v->at = over;
    empty = v->waiting == waiting ? empty + 1 : 0;
    if (empty < BUCKETS || !v->waiting) continue;
    ps first = first_ask(v);
    if (bucket_begin(v, first) > v->at) v->at = bucket_begin(v, first);
    empty = 0;
  }
  if (!v->waiting && end != UINT64_MAX && v->at < bucket_begin(v, end)) v->at = bucket_begin(v, end);
  if (v->batch.count) serve_batch(v);
}

size_t round_server_waiting(const round_server *v) { return v->waiting; }

/* ---- making ---- */

/* Each part in a group, each group and each cluster of SMs at a thread. */
static void divide_up(round_server *v, const sim *s, uint32_t threads, uint32_t sm_count) {
  const memory *y = v->memory;
  FF_CHECK(!y->stacks && !y->lent);
  uint32_t slices = (uint32_t)y->spec->l2_slices, *parts = ff_alloc(slices * sizeof *parts);
  uint32_t count = l2_parts(y, parts), groups = threads * GROUPS_PER_THREAD < 255 ? threads * GROUPS_PER_THREAD : 255;
  v->group_count = count < groups ? count : groups;
  v->thread_count = threads;
  v->least = ff_check_level >= 2 ? 1 : BATCH_LEAST;
  v->groups = ff_alloc_aligned(64, v->group_count * sizeof *v->groups);
  v->of_slice = ff_alloc(slices);
  for (uint32_t i = 0; i < slices; i++) v->of_slice[i] = (uint8_t)((uint64_t)parts[i] * v->group_count / count);
  free(parts);
  v->group_owners = ff_alloc(v->group_count * sizeof *v->group_owners);
  for (uint32_t i = 0; i < v->group_count; i++) v->group_owners[i] = (uint32_t)((uint64_t)i * threads / v->group_count);
  v->thread_owners = ff_alloc(threads * sizeof *v->thread_owners);
  for (uint32_t i = 0; i < threads; i++) v->thread_owners[i] = i;
  uint32_t cluster = y->network && y->network->clusters ? y->network->cluster_sms : 1,
           clusters = (sm_count + cluster - 1) / cluster;
  v->sm_owners = ff_alloc(sm_count * sizeof *v->sm_owners);
  for (uint32_t i = 0; i < sm_count; i++) {
    v->sm_owners[i] = (uint32_t)((uint64_t)(i / cluster) * threads / clusters);
    v->sms[i].groups = v->of_slice;
  }
}

round_server *round_server_create(sim *s, round_sm *sms, uint32_t sm_count, ps length, round_threads *threads,
                                  uint32_t thread_count) {
  round_server *v = ff_alloc(sizeof *v);
  v->memory = &s->memory;
  v->gmmu = &s->gmmu;
  v->sms = sms;
  v->length = length;
  v->threads = threads;
  while (length / BUCKETS_PER_ROUND >> v->width_shift > 1) v->width_shift++;
  v->place_count = (sm_count > PLACES ? sm_count : PLACES) + 1;
  v->places = ff_alloc(v->place_count * sizeof *v->places);
  if (thread_count > 1 || s->measures) divide_up(v, s, thread_count, sm_count);
  return v;
}

void round_server_free(round_server *v) {
  for (uint32_t i = 0; i < BUCKETS; i++) free(v->buckets[i].items);
  for (uint32_t i = 0; i < v->group_count; i++) {
    group *g = &v->groups[i];
    for (size_t k = 0; k < g->counts.count; k++) free(g->counts.items[k]);
    free(g->counts.items);
    free(g->lines.items);
  }
  free(v->groups);
  free(v->of_slice);
  free(v->group_owners);
  free(v->thread_owners);
  free(v->sm_owners);
  free(v->batch.items);
  free(v->picked.items);
  free(v->spare.items);
  free(v->places);
  free(v->ways);
  free(v->turns);
  free(v);
}
