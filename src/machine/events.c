/* SPDX-License-Identifier: Apache-2.0 */
/* The event queue: a heap, and for long queues a wheel in front of it (events.h). The heap has four children per entry:
 * few levels, and four entries fill one host cache line. There is one entry per sleeping or waiting warp, and a few for
 * operations and far-faults.
 *
 * A wake mostly ends with the same warp going back: so a pop leaves a hole at the root, which the next push fills and
 * sinks from there; only a pop that finds the hole still there moves the last entry up. */
#include "machine/events.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/memory.h"

static inline bool earlier(event a, event b) { return a.key < b.key; }

/* The entry sinks from the root to its place, and `risen` says what came up instead; `next_time` is left to the
 * caller. */
static void sink(event_heap *heap, event entry) {
  event *items = heap->items;
  uint32_t at = 0, count = heap->count, level = 0;
  heap->risen[0] = heap->risen[1] = 0;
  for (uint32_t child; (child = 4 * at + 1) < count; at = child) {
    uint32_t left = child, right = child + 2;
    if (__builtin_expect(child + 3 < count, 1)) {
      left += earlier(items[child + 1], items[child]);
      right += earlier(items[child + 3], items[child + 2]);
      child = earlier(items[right], items[left]) ? right : left;
    } else {
      for (uint32_t c = child + 1; c < count; c++)
        if (earlier(items[c], items[child])) child = c;
    }
    if (!earlier(items[child], entry)) break;
    items[at] = items[child];
    if (level < 2) heap->risen[level++] = child;
  }
  items[at] = entry;
}

static inline void rise(event_heap *heap, event fresh) {
  if (__builtin_expect(heap->count == heap->capacity, 0)) {
    heap->capacity = heap->capacity ? heap->capacity * 2 : 1024;
    event *items = ff_alloc_aligned(64, heap->capacity * sizeof *items);
    if (heap->count) memcpy(items, heap->items, heap->count * sizeof *items);
    free(heap->items);
    heap->items = items;
  }
  uint32_t at = heap->count++;
  for (uint32_t parent; at && earlier(fresh, heap->items[parent = (at - 1) / 4]); at = parent)
    heap->items[at] = heap->items[parent];
  heap->items[at] = fresh;
}

__attribute__((noinline)) static void fill_hole(event_heap *heap) {
  heap->hole = false;
  event last = heap->items[--heap->count];
  if (heap->count) sink(heap, last);
}

static int by_key(const void *a, const void *b) {
  event x = *(const event *)a, y = *(const event *)b;
  return earlier(y, x) - earlier(x, y);
}

static inline ps first_time(const event_heap *heap) {
  const event_wheel *w = heap->wheel;
  ps next = w && w->at < w->run.count ? event_time(w->run.items[w->at]) : UINT64_MAX;
  if (!heap->hole) return heap->count && event_time(heap->items[0]) < next ? event_time(heap->items[0]) : next;
  for (uint32_t c = 1; c < 5 && c < heap->count; c++)
    if (event_time(heap->items[c]) < next) next = event_time(heap->items[c]);
  return next;
}

/* ---- the wheel ---- */

/* The run is filled when it is SHORT, until it is LONG or what comes then is not NEAR. A slot of MANY events is sorted
 * in n log n. */
enum { RUN_SHORT = 16, RUN_LONG = 24, RUN_NEAR = 8, MANY = 64 };

static inline uint64_t unit_of(const event_wheel *w, event e) { return event_time(e) >> w->shift; }

__attribute__((noinline)) static void list_grow(event_list *l) {
  l->capacity = l->capacity ? l->capacity * 2 : 16;
  l->items = ff_realloc(l->items, l->capacity * sizeof *l->items);
}

static inline uint32_t list_add(event_list *l) {
  if (__builtin_expect(l->count == l->capacity, 0)) list_grow(l);
  return l->count++;
}

/* The event comes later than w->unit. */
static inline void hang(event_wheel *w, event e) {
  uint64_t unit = unit_of(w, e);
  uint32_t digit = (uint32_t)(63 - __builtin_clzll(unit ^ w->unit)) / EVENT_DIGIT,
           slot = (uint32_t)(unit >> digit * EVENT_DIGIT) % EVENT_SLOTS;
  event_list *l = &w->slots[digit][slot];
  w->any[digit][slot / 64] |= UINT64_C(1) << slot % 64;
  uint32_t at = list_add(l); /* which may move the items */
  l->items[at] = e;
}

/* The first slot past `slot` that has any; EVENT_SLOTS: there is none. */
static inline uint32_t slot_after(const uint64_t *any, uint32_t slot) {
  uint32_t word = slot / 64;
  uint64_t bits = any[word] & ~UINT64_C(1) << slot % 64;
  while (!bits) {
    if (++word == EVENT_SLOTS / 64) return EVENT_SLOTS;
    bits = any[word];
  }
  return word * 64 + (uint32_t)__builtin_ctzll(bits);
}

static inline void run_add(event_wheel *w, event e, uint32_t from) {
  uint32_t at = list_add(&w->run);
  event *run = w->run.items;
  for (; at > from && earlier(e, run[at - 1]); at--) run[at] = run[at - 1];
  run[at] = e;
}

/* w->unit becomes the slot's first piece of time. The slot's events of that come into the run, the others come
 * nearer. */
static void empty_slot(event_wheel *w, uint32_t digit, uint32_t slot) {
  uint32_t shift = digit * EVENT_DIGIT, from = w->run.count;
  w->any[digit][slot / 64] &= ~(UINT64_C(1) << slot % 64);
  w->unit = ((w->unit >> shift & ~(uint64_t)(EVENT_SLOTS - 1)) | slot) << shift;
  event_list *l = &w->slots[digit][slot];
  bool many = l->count > MANY;
  for (uint32_t i = 0; i < l->count; i++)
    if (unit_of(w, l->items[i]) != w->unit) {
      hang(w, l->items[i]);
    } else {
      run_add(w, l->items[i], many ? w->run.count : from);
      w->inside--;
    }
  l->count = 0;
  if (many && w->run.count > from) qsort(w->run.items + from, w->run.count - from, sizeof *w->run.items, by_key);
}

/* The run is made longer where that is near, or where what comes next may be in the wheel. */
static void fill_run(event_heap *heap) {
  event_wheel *w = heap->wheel;
  if (w->at) {
    w->run.count -= w->at;
    memmove(w->run.items, w->run.items + w->at, w->run.count * sizeof *w->run.items);
    w->at = 0;
  }
  uint32_t now, slot;
  while (w->inside && w->run.count < RUN_LONG) {
    now = (uint32_t)w->unit % EVENT_SLOTS;
    slot = slot_after(w->any[0], now);
    if (slot > now + RUN_NEAR && first_time(heap) >> w->shift <= w->unit) break;
    uint32_t digit = 0;
    while (slot == EVENT_SLOTS) {
      digit++;
      slot = slot_after(w->any[digit], (uint32_t)(w->unit >> digit * EVENT_DIGIT) % EVENT_SLOTS);
    }
    empty_slot(w, digit, slot);
  }
  slot = slot_after(w->any[0], (uint32_t)w->unit % EVENT_SLOTS);
  if (slot == EVENT_SLOTS) return;
  const event_list *l = &w->slots[0][slot];
  for (uint32_t i = 0; i < l->count; i += 4) __builtin_prefetch(&l->items[i]);
}

/* Everything comes into the heap. */
static void gather(event_heap *heap) {
  event_wheel *w = heap->wheel;
  for (uint32_t digit = 0; digit < EVENT_DIGITS; digit++)
    for (uint32_t slot = 0; slot < EVENT_SLOTS; slot++) {
      event_list *l = &w->slots[digit][slot];
      for (uint32_t i = 0; i < l->count; i++) rise(heap, l->items[i]);
      l->count = 0;
    }
  for (; w->at < w->run.count; w->at++) rise(heap, w->run.items[w->at]);
  memset(w->any, 0, sizeof w->any);
  w->inside = 0;
}

/* ---- both ---- */

/* An SM has an event in some 5 ns while it is busy: a piece of time has about four. A heap of FEW events is as fast as
 * the wheel, and faster where many of them wait long for far-faults. */
enum { FEW = 1024 };
void event_heap_widen(event_heap *heap, uint64_t sms) {
  FF_ASSERT(!event_any(heap) && !heap->wheel);
  heap->wheel = ff_alloc(sizeof *heap->wheel);
  heap->wheel->few = FEW;
  while (UINT64_C(1) << heap->wheel->shift < 10000 / sms) heap->wheel->shift++;
}

void event_heap_free(event_heap *heap) {
  free(heap->items);
  if (!heap->wheel) return;
  for (uint32_t digit = 0; digit < EVENT_DIGITS; digit++)
    for (uint32_t slot = 0; slot < EVENT_SLOTS; slot++) free(heap->wheel->slots[digit][slot].items);
  free(heap->wheel->run.items);
  free(heap->wheel);
}

static inline void note_next(event_heap *heap) {
  heap->first = first_time(heap);
  heap->next_time = heap->first < heap->horizon ? heap->first : heap->horizon;
}

/* Else the next event is in the run, or comes before it. */
static inline bool run_is_short(const event_wheel *w) { return w->inside && w->run.count - w->at < RUN_SHORT; }

__attribute__((noinline)) static void refill(event_heap *heap) {
  fill_run(heap);
  note_next(heap);
}

/* Orders of insertion from 1 on, in the order that the events have. A sorted array is a heap. */
static void renumber(event_heap *heap) {
  const unsigned __int128 order = (unsigned __int128)UINT32_MAX << 32;
  if (heap->hole) fill_hole(heap);
  if (heap->wheel) gather(heap);
  if (heap->count) qsort(heap->items, heap->count, sizeof *heap->items, by_key);
  for (uint32_t i = 0; i < heap->count; i++)
    heap->items[i].key = (heap->items[i].key & ~order) | (uint64_t)(i + 1) << 32;
  heap->order = heap->count;
}

__attribute__((noinline)) static void push_heap(event_heap *heap, event fresh) {
  if (heap->hole) {
    heap->hole = false;
    sink(heap, fresh);
  } else {
    rise(heap, fresh);
  }
  note_next(heap);
}

static inline void push(event_heap *heap, ps time, uint32_t order, event_kind kind, uint32_t index) {
  FF_ASSERT(time >= heap->now);
  event fresh = {.key = (unsigned __int128)time << 64 | (uint64_t)order << 32 | (uint32_t)kind << 28 | index};
  event_wheel *w = heap->wheel;
  if (w && time >> w->shift > w->unit && time > heap->first && (w->inside || heap->count >= w->few)) {
    w->inside++;
    hang(w, fresh); /* the next one stays the next */
    return;
  }
  push_heap(heap, fresh);
}

void event_push(event_heap *heap, ps time, event_kind kind, uint32_t index) {
  if (__builtin_expect(heap->order == UINT32_MAX, 0)) renumber(heap);
  push(heap, time, ++heap->order, kind, index);
}

void event_push_first(event_heap *heap, ps time, event_kind kind, uint32_t index) { push(heap, time, 0, kind, index); }

uint32_t event_reserve(event_heap *heap) {
  if (__builtin_expect(heap->order == UINT32_MAX, 0)) renumber(heap);
  return ++heap->order;
}

void event_push_reserved(event_heap *heap, ps time, uint32_t order, event_kind kind, uint32_t index) {
  push(heap, time, order, kind, index);
}

void event_back(event_heap *heap, ps time) {
  if (heap->now > time) heap->now = time;
}

ps event_next(const event_heap *heap) { return first_time(heap); }

/* The first of the heap; w->moved says so. */
__attribute__((noinline)) static event pop_heap(event_heap *heap) {
  event first = heap->items[0];
  heap->hole = true;
  FF_ASSERT(event_time(first) >= heap->now);
  heap->now = event_time(first);
  if (heap->wheel) heap->wheel->moved = false;
  note_next(heap);
  if (heap->wheel && run_is_short(heap->wheel)) refill(heap);
  return first;
}

/* What is next is in the run or in the heap. Of the run it is quick to tell, and no register has to be kept for
 * that. */
event event_pop(event_heap *heap) {
  if (heap->hole) fill_hole(heap);
  event_wheel *w = heap->wheel;
  if (!w || w->at >= w->run.count) return pop_heap(heap);
  event first = w->run.items[w->at];
  if (heap->count && earlier(heap->items[0], first)) return pop_heap(heap);
  FF_ASSERT(event_time(first) >= heap->now);
  heap->now = event_time(first);
  w->moved = true;
  ps next = ++w->at < w->run.count ? event_time(w->run.items[w->at]) : UINT64_MAX;
  if (heap->count && event_time(heap->items[0]) < next) next = event_time(heap->items[0]);
  heap->first = next;
  heap->next_time = next < heap->horizon ? next : heap->horizon;
  if (run_is_short(w)) refill(heap);
  return first;
}

void agenda_add(agenda *a, ps time, event_kind kind, uint32_t index) {
  FF_ASSERT(index < 1u << EVENT_TENANT_SHIFT);
  a->pending++;
  event_push(a->heap, time, kind, index | a->tenant << EVENT_TENANT_SHIFT);
}
