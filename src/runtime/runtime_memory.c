/* SPDX-License-Identifier: Apache-2.0 */
/* GPU memory in pieces: which are mapped, and which go when others come (Wilt 2017, R9).
 *
 *              take_memory, map_piece, allow            detach: what is newer there is copied out
 *   not mapped ----------------------------------> mapped -----------------------------------------> stale, its memory free
 *        ^                                                                                              |
 *        +----------------------------------------------------------------------------------------------+
 *                                  settle: all that uses it in this place is over, unmapped
 *
 * Memory is mapped in its new place while kernels and copies still use it in the old one: what comes to it comes after
 * them, by events (spare.after), and the host waits only when too many old places are left, or one is wanted again.
 *
 * What goes: what is needed last by all that is queued (Belady 1966); of what no queued launch needs, lower priority
 * first, then what was used longest ago. Pinned pieces and those of the launch at hand stay. */
#include <stdlib.h>
#include <string.h>

#include "runtime/gpu.h"

enum {
  SPARE_SHARE = 4,
  MAPPED_AHEAD = 8,
  SOON = 4
}; /* of the budget: what one eviction may free; pieces that are mapped before their launch's
                                                        * turn, if that comes within so many launches a piece */

typedef struct victim {
  store *store;
  size_t index;
  int priority;
} victim;
typedef FF_VEC(victim) victims;

static span piece_range(const ff_gpu *gpu, span bytes) {
  if (bytes.begin >= bytes.end) return (span){0, 0}; /* no bytes are in no piece, wherever they are */
  return (span){bytes.begin / gpu->piece, (bytes.end + gpu->piece - 1) / gpu->piece};
}

static bool is_whole(const store *s, span pieces) { return pieces.begin == 0 && pieces.end == s->piece_count; }

/* ---- counting ---- */

pool *store_pool(const store *s, uint32_t d) { return s->partition ? &s->partition->pool : &s->gpu->devices[d].pool; }

/* All needs of a launch are of one pool. */
static pool *needs_pool(ff_gpu *gpu, uint32_t d, const need *needs, uint32_t count) {
  return count ? store_pool(needs[0].store, d) : &gpu->devices[d].pool;
}

uint64_t memory_missing(ff_gpu *gpu, uint32_t d, const need *needs, uint32_t count) {
  uint64_t missing = 0, tick = ++gpu->tick;
  for (uint32_t n = 0; n < count; n++) {
    store_side *side = &needs[n].store->sides[d];
    span pieces = piece_range(gpu, needs[n].bytes);
    if (needs[n].bytes.begin >= needs[n].bytes.end) continue;
    if (is_whole(needs[n].store, pieces) && side->usable == needs[n].store->piece_count) {
      side->used = side->mark = tick;
      continue;
    }
    for (uint64_t i = pieces.begin; i < pieces.end; i++) {
      piece *p = &side->pieces[i];
      missing += !p->mapped && p->mark != tick;
      p->used = p->mark = tick;
    }
  }
  return missing;
}

uint64_t memory_pieces(ff_gpu *gpu, uint32_t d, const need *needs, uint32_t count) {
  uint64_t pieces = needs_pool(gpu, d, needs, count)->pinned_pieces, tick = ++gpu->tick;
  for (uint32_t n = 0; n < count; n++) {
    span range = piece_range(gpu, needs[n].bytes);
    for (uint64_t i = range.begin; i < range.end; i++) {
      piece *p = &needs[n].store->sides[d].pieces[i];
      pieces += p->mark != tick && !p->pins;
      p->mark = tick;
    }
  }
  return pieces;
}

bool memory_has_room(const pool *from, uint64_t missing) {
  return missing <= from->free.count + from->budget_pieces - from->created;
}

/* ---- mapping ---- */

static cuda_memory_properties properties_of(const device *d) {
  return (cuda_memory_properties){.type = 1, .location = {1, d->number}};
}

/* Access is given apart, to pieces next to each other in one call (it is the dearest of them): when that fails, the
 * memory stays where it is, and the next launch that needs the pieces asks again. */
static ff_result allow(store *s, uint32_t d, size_t from, size_t to) {
  ff_gpu *gpu = s->gpu;
  cuda_memory_access access = {{1, gpu->devices[d].number}, 3};
  TRY(gpu_on(gpu, d));
  DRIVER_TRY(gpu, MemSetAccess, s->sides[d].address + from * gpu->piece, (to - from) * gpu->piece, &access, 1);
  for (size_t i = from; i < to; i++) {
    s->sides[d].usable += !s->sides[d].pieces[i].usable;
    s->sides[d].pieces[i].usable = true;
  }
  return FF_SUCCESS;
}

/* All of [from, to) that is mapped and not usable. */
static ff_result allow_all(store *s, uint32_t d, size_t from, size_t to) {
  const piece *pieces = s->sides[d].pieces;
  for (size_t i = from, end; i < to; i = end) {
    for (end = i + 1; !pieces[i].usable && end < to && pieces[end].mapped && !pieces[end].usable;) end++;
    if (pieces[i].mapped && !pieces[i].usable) TRY(allow(s, d, i, end));
  }
  return FF_SUCCESS;
}

static ff_result map_piece(store *s, uint32_t d, size_t index, cuda_memory memory) {
  ff_gpu *gpu = s->gpu;
  piece *p = &s->sides[d].pieces[index];
  DRIVER_TRY(gpu, MemMap, s->sides[d].address + index * gpu->piece, gpu->piece, 0, memory, 0);
  p->memory = memory;
  p->mapped = true;
  ff_statistics *st = &gpu->statistics;
  st->mapped_pieces++;
  st->resident_bytes += gpu->piece;
  if (st->peak_resident_bytes < st->resident_bytes) st->peak_resident_bytes = st->resident_bytes;
  return FF_SUCCESS;
}

static void forget_piece(store *s, uint32_t d, size_t index) {
  ff_gpu *gpu = s->gpu;
  store_side *side = &s->sides[d];
  side->usable -= side->pieces[index].usable;
  side->pieces[index].mapped = side->pieces[index].usable = false;
  gpu->statistics.unmapped_pieces++;
  gpu->statistics.resident_bytes -= gpu->piece;
  FF_PUSH(&store_pool(s, d)->free, ((spare){.memory = side->pieces[index].memory}));
}

/* Pieces [from, to), all mapped, in one call. */
static ff_result unmap(store *s, uint32_t d, size_t from, size_t to) {
  ff_gpu *gpu = s->gpu;
  store_side *side = &s->sides[d];
  uint64_t begin = from * gpu->piece, end = to * gpu->piece;
  TRY(gpu_on(gpu, d));
  DRIVER_TRY(gpu, MemUnmap, side->address + begin, end - begin);
  spans_remove(&side->valid, begin, end);
  history_forget(&side->history, begin, end);
  for (size_t i = from; i < to; i++) forget_piece(s, d, i);
  return FF_SUCCESS;
}

static void no_longer_stale(ff_gpu *gpu, uint32_t d, store *s, size_t from, size_t to) {
  pool *own = store_pool(s, d);
  size_t kept = 0;
  for (size_t i = 0; i < own->stale.count; i++) {
    place p = own->stale.items[i];
    if (p.store == s && p.index >= from && p.index < to) s->sides[d].pieces[p.index].stale = false;
    else own->stale.items[kept++] = p;
  }
  gpu->statistics.unmapped_pieces += own->stale.count - kept;
  own->stale.count = kept;
}

/* Pieces [from, to), all stale: nothing of them is left. */
static ff_result settle(store *s, uint32_t d, size_t from, size_t to) {
  ff_gpu *gpu = s->gpu;
  store_side *side = &s->sides[d];
  uint64_t begin = from * gpu->piece, end = to * gpu->piece;
  if (!gpu->lost) TRY(history_wait(gpu, &side->history, begin, end, true)); /* else nothing runs any more */
  TRY(gpu_on(gpu, d));
  DRIVER_TRY(gpu, MemUnmap, side->address + begin, end - begin);
  history_forget(&side->history, begin, end);
  no_longer_stale(gpu, d, s, from, to);
  return FF_SUCCESS;
}

static void note_user(ff_gpu *gpu, spare *left, operation op) { /* the newest of each stream */
  if (work_is_over(gpu, op)) return;
  for (uint32_t i = 0; i < left->count; i++)
    if (left->after[i].stream == op.stream) {
      if (left->after[i].number < op.number) left->after[i] = op;
      return;
    }
  FF_ASSERT(left->count < STREAMS); /* only its own GPU's streams use a piece */
  left->after[left->count++] = op;
}

/* Takes a piece's memory; what it held is saved or not needed. */
static void detach(store *s, uint32_t d, size_t index) {
  ff_gpu *gpu = s->gpu;
  store_side *side = &s->sides[d];
  piece *p = &side->pieces[index];
  uint64_t begin = index * gpu->piece, end = begin + gpu->piece;
  spare left = {.memory = p->memory};
  for (size_t i = 0; i < side->history.count; i++)
    if (side->history.items[i].bytes.begin < end && begin < side->history.items[i].bytes.end)
      note_user(gpu, &left, side->history.items[i].by);
  spans_remove(&side->valid, begin, end);
  side->usable -= p->usable;
  p->mapped = p->usable = false;
  p->stale = true;
  gpu->statistics.resident_bytes -= gpu->piece;
  FF_PUSH(&store_pool(s, d)->free, left);
  FF_PUSH(&store_pool(s, d)->stale, ((place){s, index}));
}

/* ---- choosing victims ---- */

static void note_part(ff_gpu *gpu, uint32_t d, const launch *l, const box *part, uint64_t position) {
  for (uint32_t u = 0; u < l->use_count; u++) {
    span pieces = piece_range(gpu, use_bytes(&l->uses[u], part));
    store_side *side = &l->uses[u].segment->store->sides[d];
    for (uint64_t i = pieces.begin; i < pieces.end; i++)
      if (side->pieces[i].next > position) side->pieces[i].next = position;
  }
}

/* When what is queued needs each piece next: its position, window by window; UINT64_MAX: nothing needs it. */
static void note_future(ff_gpu *gpu, uint32_t d) {
  enum { WINDOWS = 64 }; /* of one launch, that are told apart */
  for (size_t s = 0; s < gpu->stores.count; s++)
    for (size_t i = 0; i < gpu->stores.items[s]->piece_count; i++)
      gpu->stores.items[s]->sides[d].pieces[i].next = UINT64_MAX;
  uint64_t position = 0;
  for (const launch *l = gpu->issuing ? gpu->issuing : gpu->first; l; l = l == gpu->issuing ? gpu->first : l->next) {
    box rest = l == gpu->issuing ? gpu->rest : whole_grid(l), part;
    for (int w = 0; w < WINDOWS && next_part(l, &rest, &part); w++) note_part(gpu, d, l, &part, ++position);
    if (rest.from[l->axis] < rest.to[l->axis]) note_part(gpu, d, l, &rest, ++position);
  }
}

static int priority_of(const store *s, span bytes) {
  int priority = INT32_MIN;
  for (size_t i = 0; i < s->segments.count; i++) {
    const ff_segment *g = s->segments.items[i];
    if (g->base < bytes.end && bytes.begin < g->base + g->bytes && g->priority > priority) priority = g->priority;
  }
  return priority;
}

static _Thread_local uint32_t compared_device;
static int compare(const void *a, const void *b) { /* which piece goes first */
  const victim *x = a, *y = b;
  const store_side *sx = &x->store->sides[compared_device], *sy = &y->store->sides[compared_device];
  const piece *px = &sx->pieces[x->index], *py = &sy->pieces[y->index];
  if (px->next != py->next) return px->next > py->next ? -1 : 1;
  if (px->next == UINT64_MAX && x->priority != y->priority) return x->priority < y->priority ? -1 : 1;
  uint64_t ux = px->used > sx->used ? px->used : sx->used, uy = py->used > sy->used ? py->used : sy->used;
  if (ux != uy) return ux < uy ? -1 : 1;
  if (x->store != y->store) return sx->address < sy->address ? -1 : 1;
  return x->index < y->index ? -1 : 1;
}

static int by_place(const void *a, const void *b) {
  const victim *x = a, *y = b;
  if (x->store != y->store)
    return x->store->sides[compared_device].address < y->store->sides[compared_device].address ? -1 : 1;
  return x->index < y->index ? -1 : x->index > y->index;
}

static size_t unneeded(const victims *v, uint32_t d, size_t from, size_t to) { /* from there on, up to `to` */
  while (from < to && from < v->count && v->items[from].store->sides[d].pieces[v->items[from].index].next == UINT64_MAX)
    from++;
  return from;
}

/* The `wanted` pieces that go first, fewer if there are no more, up to `most` if nothing queued needs them, by place;
 * in `next` as many as `spare` that would go then, in that order. */
static void choose(ff_gpu *gpu, uint32_t d, const pool *from, uint64_t wanted, uint64_t most, uint64_t spare,
                   victims *out, victims *next) {
  for (size_t i = 0; i < gpu->stores.count; i++) {
    store *s = gpu->stores.items[i];
    store_side *side = &s->sides[d];
    if (side->mark == gpu->tick || store_pool(s, d) != from) continue;
    for (size_t p = 0; p < s->piece_count; p++)
      if (side->pieces[p].mapped && !side->pieces[p].pins && side->pieces[p].mark != gpu->tick)
        FF_PUSH(out, ((victim){s, p, priority_of(s, (span){p * gpu->piece, (p + 1) * gpu->piece})}));
  }
  compared_device = d;
  if (out->count) qsort(out->items, out->count, sizeof *out->items, compare);
  if (wanted > out->count) wanted = out->count;
  size_t taken = unneeded(out, d, wanted, most > wanted ? most : wanted), end = unneeded(out, d, taken, taken + spare);
  for (size_t i = taken; i < end; i++) FF_PUSH(next, out->items[i]);
  out->count = taken;
  if (out->count) qsort(out->items, out->count, sizeof *out->items, by_place);
}

/* ---- evicting ---- */

static bool all_over(ff_gpu *gpu, const history *h, span bytes) {
  for (size_t i = 0; i < h->count; i++)
    if (h->items[i].bytes.begin < bytes.end && bytes.begin < h->items[i].bytes.end &&
        !work_is_over(gpu, h->items[i].by))
      return false;
  return true;
}

/* The victims from `i` on that lie next to each other in one store; moves i behind them. */
static victim take_run(const victims *chosen, size_t *i, size_t *end) {
  victim first = chosen->items[*i];
  for (*end = first.index;
       *i < chosen->count && chosen->items[*i].store == first.store && chosen->items[*i].index == *end; (*i)++)
    (*end)++;
  return first;
}

/* What no other place has of them is on its way, pieces next to each other in one copy. */
static ff_result save(ff_gpu *gpu, uint32_t d, const victims *chosen) {
  uint64_t copied = gpu->statistics.from_gpu_bytes, valid = 0;
  size_t end;
  for (size_t i = 0; i < chosen->count;) {
    victim v = take_run(chosen, &i, &end);
    valid += spans_bytes(&v.store->sides[d].valid, v.index * gpu->piece, end * gpu->piece);
    TRY(transfer_save(v.store, d, v.index * gpu->piece, end * gpu->piece));
  }
  copied = gpu->statistics.from_gpu_bytes - copied;
  gpu->statistics.evicted_bytes += chosen->count * gpu->piece;
  gpu->statistics.dropped_bytes += valid > copied ? valid - copied : 0;
  return FF_SUCCESS;
}

/* Old places are given up before there are too many, the oldest half at once: their users are over by then, or
 * nearly. */
static ff_result settle_old(ff_gpu *gpu, uint32_t d, const pool *of) {
  victims old = {0};
  size_t end;
  ff_result result = FF_SUCCESS;
  if (of->stale.count <= of->budget_pieces / 2 + 1) return FF_SUCCESS;
  for (size_t i = 0; i < (of->stale.count + 1) / 2; i++)
    FF_PUSH(&old, ((victim){of->stale.items[i].store, of->stale.items[i].index, 0}));
  compared_device = d;
  qsort(old.items, old.count, sizeof *old.items, by_place);
  for (size_t i = 0; i < old.count && !result;) {
    victim v = take_run(&old, &i, &end);
    if (!all_over(gpu, &v.store->sides[d].history, (span){v.index * gpu->piece, end * gpu->piece}))
      gpu->statistics.stalls++;
    result = settle(v.store, d, v.index, end);
  }
  free(old.items);
  return result;
}

/* Pieces that will go next are copied out meanwhile, so that no launch has to wait for that then. Only what nothing
 * queued needs, and only where the host need not wait for the kernels. What fails is copied when it must be. */
static void clean(uint32_t d, const victims *chosen) {
  for (size_t i = 0; i < chosen->count; i++) { /* piece by piece: they are ready at different times */
    store *s = chosen->items[i].store;
    uint64_t begin = chosen->items[i].index * s->gpu->piece;
    if (s->host_kind != HOST_PAGEABLE && s->host_kind != HOST_FILE) transfer_save(s, d, begin, begin + s->gpu->piece);
  }
}

/* Frees `wanted` pieces, or as many as there are, and up to `most` that nothing needs as far as is known. */
static ff_result make_room(ff_gpu *gpu, uint32_t d, const pool *in, uint64_t wanted, uint64_t most, uint64_t *freed) {
  victims chosen = {0}, next = {0};
  uint64_t spare = in->budget_pieces / SPARE_SHARE;
  choose(gpu, d, in, wanted, most, spare, &chosen, &next);
  ff_result result = save(gpu, d, &chosen);
  for (size_t i = 0; !result && i < chosen.count; i++) detach(chosen.items[i].store, d, chosen.items[i].index);
  if (!result) clean(d, &next);
  *freed = chosen.count;
  free(chosen.items);
  free(next.items);
  return result;
}

static bool is_idle(ff_gpu *gpu, const spare *s) {
  for (uint32_t i = 0; i < s->count; i++)
    if (!work_is_over(gpu, s->after[i])) return false;
  return true;
}

/* Memory that the pool has already, without a place: there is some, or something is evicted. */
static ff_result take_existing(ff_gpu *gpu, uint32_t d, pool *from, spare *taken) {
  uint64_t freed = 0;
  if (!from->free.count) {
    TRY(make_room(gpu, d, from, 1, 1, &freed));
    if (!freed)
      return runtime_fail(FF_ERROR_TOO_LARGE,
                          "the budget of %llu pieces of %llu bytes is used up by what is pinned or in use",
                          (unsigned long long)from->budget_pieces, (unsigned long long)gpu->piece);
  }
  size_t first = 0; /* that is in use no more; else the one that has been free for longest */
  while (first < from->free.count && !is_idle(gpu, &from->free.items[first])) first++;
  if (first == from->free.count) first = 0;
  *taken = from->free.items[first];
  memmove(&from->free.items[first], &from->free.items[first + 1], (--from->free.count - first) * sizeof *taken);
  return FF_SUCCESS;
}

/* Memory for one piece. When the driver has less than the budget says, what is there must do. */
static ff_result take_memory(ff_gpu *gpu, uint32_t d, pool *from, spare *taken) {
  uint64_t freed = 0;
  if (!from->free.count && from->created < from->budget_pieces) {
    cuda_memory_properties properties = properties_of(&gpu->devices[d]);
    *taken = (spare){0};
    int result = gpu->driver->MemCreate(&taken->memory, gpu->piece, &properties, 0);
    if (!result) {
      from->created++;
      return FF_SUCCESS;
    }
    if (result != CUDA_OUT_OF_MEMORY) return driver_failed(gpu, result, "cuMemCreate");
    TRY(make_room(gpu, d, from, 1, 1, &freed));
    if (!freed) return driver_failed(gpu, result, "cuMemCreate");
    gpu->statistics.recoveries++;
  }
  return take_existing(gpu, d, from, taken);
}

/* Nothing uses the memory in an old place any more. */
static ff_result wait_for_users(ff_gpu *gpu, uint32_t d, const spare *s) {
  for (uint32_t i = 0; i < s->count; i++) TRY(work_wait(gpu, s->after[i]));
  return gpu_on(gpu, d);
}

static ff_result bring_piece(store *s, uint32_t d, size_t index) {
  store_side *side = &s->sides[d];
  span bytes = {index * s->gpu->piece, (index + 1) * s->gpu->piece};
  spare taken;
  if (side->pieces[index].mapped) return FF_SUCCESS;
  if (side->pieces[index].stale) TRY(settle(s, d, index, index + 1));
  TRY(take_memory(s->gpu, d, store_pool(s, d), &taken));
  ff_result result = gpu_on(s->gpu, d);
  if (!result) result = map_piece(s, d, index, taken.memory);
  if (result) FF_PUSH(&store_pool(s, d)->free, taken);
  for (uint32_t i = 0; !result && i < taken.count; i++)
    FF_PUSH(&side->history, ((history_record){bytes, taken.after[i], true}));
  return result;
}

/* How many pieces behind the need are worth mapping with it, so that one call gives access to all: those that the next
 * launches need, or, where the store has been gone through from front to back so far, as many as the last time came
 * (`streak`). */
static uint64_t worth_ahead(const need *n, uint32_t d) {
  const store *s = n->store;
  const store_side *side = &s->sides[d];
  span pieces = piece_range(s->gpu, n->bytes);
  uint64_t ahead = 0, most = store_pool(s, d)->budget_pieces / SPARE_SHARE / 2;
  if (n->bytes.begin >= n->bytes.end || side->usable == s->piece_count || side->pieces[pieces.end - 1].mapped) return 0;
  if (most > MAPPED_AHEAD) most = MAPPED_AHEAD;
  bool forward = side->streak && pieces.begin == side->expected;
  for (uint64_t i = pieces.end; i < s->piece_count && ahead < most && !side->pieces[i].mapped; i++, ahead++)
    if (side->pieces[i].next != UINT64_MAX ? side->pieces[i].next > SOON * (ahead + 1) : !forward) break;
  return ahead;
}

static ff_result bring(const need *n, uint32_t d) {
  store *s = n->store;
  store_side *side = &s->sides[d];
  const pool *own = store_pool(s, d);
  span pieces = piece_range(s->gpu, n->bytes);
  if (n->bytes.begin >= n->bytes.end || side->usable == s->piece_count) return FF_SUCCESS;
  uint64_t ahead = worth_ahead(n, d), end = pieces.end;
  bool mapped = false;
  for (uint64_t i = pieces.begin; i < pieces.end; i++) {
    mapped = mapped || !side->pieces[i].mapped;
    TRY(bring_piece(s, d, i));
  }
  for (; end < pieces.end + ahead && own->free.count; end++) {
    if (bring_piece(s, d, end)) break;
    side->pieces[end].used = s->gpu->tick;
  }
  if (mapped) {
    side->streak = pieces.begin == side->expected ? side->streak + 1 : 0;
    side->expected = end;
  }
  return allow_all(s, d, pieces.begin, end);
}

ff_result memory_bring(ff_gpu *gpu, uint32_t d, const need *needs, uint32_t count) {
  const pool *from = needs_pool(gpu, d, needs, count);
  uint64_t missing = memory_missing(gpu, d, needs, count), freed,
           there = from->free.count + from->budget_pieces - from->created;
  if (missing) TRY(settle_old(gpu, d, from));
  TRY(gpu_on(gpu, d));
  if (missing) note_future(gpu, d); /* for make_room and worth_ahead */
  uint64_t ahead = 0;
  for (uint32_t n = 0; missing > there && n < count; n++) ahead += worth_ahead(&needs[n], d);
  if (missing > there) TRY(make_room(gpu, d, from, missing - there, missing - there + ahead, &freed));
  for (uint32_t n = 0; n < count; n++) TRY(bring(&needs[n], d));
  return FF_SUCCESS;
}

ff_result memory_commit(ff_gpu *gpu, uint32_t d) {
  pool *own = &gpu->devices[d].pool;
  cuda_memory_properties properties = properties_of(&gpu->devices[d]);
  for (cuda_memory memory; own->created < own->budget_pieces; own->created++) {
    TRY(gpu_on(gpu, d));
    DRIVER_TRY(gpu, MemCreate, &memory, gpu->piece, &properties, 0);
    FF_PUSH(&own->free, ((spare){.memory = memory}));
  }
  return FF_SUCCESS;
}

ff_result memory_lend(ff_gpu *gpu, uint32_t d, pool *to, uint64_t pieces) {
  pool *own = &gpu->devices[d].pool;
  if (pieces > own->budget_pieces || own->budget_pieces - pieces < own->pinned_pieces)
    return runtime_fail(
        FF_ERROR_NO_MEMORY,
        "a share of %llu bytes of GPU memory: %llu of the budget are neither pinned nor another partition's",
        (unsigned long long)(pieces * gpu->piece),
        (unsigned long long)((own->budget_pieces - own->pinned_pieces) * gpu->piece));
  bool shrinks = own->created > own->budget_pieces - pieces;
  gpu->tick++; /* nothing is needed by the launch at hand: there is none */
  if (shrinks) note_future(gpu, d);
  while (own->created > own->budget_pieces - pieces) { /* what was given already comes back to the driver, */
    spare taken;
    TRY(take_existing(gpu, d, own, &taken));
    TRY(wait_for_users(gpu, d, &taken));
    TRY(gpu_on(gpu, d));
    INSIST(gpu->driver->MemRelease(taken.memory));
    own->created--;
  }
  while (shrinks && own->stale.count) { /* and is seen in no old place */
    place old = own->stale.items[own->stale.count - 1];
    TRY(settle(old.store, d, old.index, old.index + 1));
  }
  own->budget_pieces -= pieces;
  *to = (pool){.budget_pieces = pieces};
  return FF_SUCCESS;
}

void memory_take_back(ff_gpu *gpu, uint32_t d, pool *from) {
  INSIST(gpu_on(gpu, d));
  for (size_t i = 0; i < from->free.count; i++) INSIST(gpu->driver->MemRelease(from->free.items[i].memory));
  free(from->free.items);
  free(from->stale.items);
  gpu->devices[d].pool.budget_pieces += from->budget_pieces;
  *from = (pool){0};
}

static bool used_by(const launch *l, const box *blocks, const need *n) {
  for (uint32_t u = 0; u < l->use_count; u++) {
    span used = use_bytes(&l->uses[u], blocks);
    if (l->uses[u].segment->store == n->store && used.begin < n->bytes.end && n->bytes.begin < used.end) return true;
  }
  return false;
}

static bool needed_by_queue(const ff_gpu *gpu, const need *n) {
  const launch *l = gpu->issuing;
  if (gpu->rest.from[l->axis] < gpu->rest.to[l->axis] && used_by(l, &gpu->rest, n)) return true;
  for (l = gpu->first; l; l = l->next) {
    box all = whole_grid(l);
    if (used_by(l, &all, n)) return true;
  }
  return false;
}

/* Will these bytes have to go before a launch needs them? They are of a store that cannot stay in memory; or memory is
 * short, and windows that are still to come, or enough launches, use other memory. */
static bool must_go(const ff_gpu *gpu, uint32_t d, const need *n) {
  const pool *own = store_pool(n->store, d);
  bool large = n->store->piece_count > own->budget_pieces / 2;
  bool known =
      gpu->rest.from[gpu->issuing->axis] < gpu->rest.to[gpu->issuing->axis] || 2 * gpu->queued >= gpu->lookahead;
  bool is_short = own->free.count + own->budget_pieces - own->created <= own->budget_pieces / 2;
  return (large || (known && is_short)) && !needed_by_queue(gpu, n);
}

/* What a launch has written goes back at once where it will have to anyway, or where the host has waited for such bytes
 * before. If the copy fails it is made when it must be. */
void memory_clean_ahead(ff_gpu *gpu, uint32_t d, const need *written) {
  store *s = written->store;
  if (s->host_kind == HOST_PAGEABLE || s->host_kind == HOST_FILE) return; /* the host would wait for the kernel */
  if (!s->eager && !must_go(gpu, d, written)) return;
  if (transfer_save(s, d, written->bytes.begin, written->bytes.end) || !s->eager) return;
  spans_add(&s->offered, written->bytes.begin, written->bytes.end);
}

/* The host waits: afterwards nothing of it is left on the GPU. */
ff_result memory_evict(store *s, uint32_t d) {
  victims chosen = {0};
  size_t end;
  compared_device = d;
  for (size_t p = 0; p < s->piece_count; p++)
    if (s->sides[d].pieces[p].mapped && !s->sides[d].pieces[p].pins) FF_PUSH(&chosen, ((victim){s, p, 0}));
  ff_result result = save(s->gpu, d, &chosen);
  for (size_t i = 0; i < chosen.count && !result;) {
    victim v = take_run(&chosen, &i, &end);
    result = history_wait(s->gpu, &s->sides[d].history, v.index * s->gpu->piece, end * s->gpu->piece, true);
    if (!result) result = unmap(s, d, v.index, end);
  }
  free(chosen.items);
  return result;
}

ff_result memory_drop(store *s, uint32_t d) {
  const piece *pieces = s->sides[d].pieces;
  for (size_t i = 0, end; i < s->piece_count; i = end) {
    for (end = i + 1; pieces[i].mapped && end < s->piece_count && pieces[end].mapped;) end++;
    if (pieces[i].mapped) TRY(unmap(s, d, i, end));
    if (pieces[i].stale) TRY(settle(s, d, i, end));
  }
  return FF_SUCCESS;
}
