/* SPDX-License-Identifier: Apache-2.0 */
/* The event heap. The heap has four children per entry: few levels, and four entries fill one host cache line.
 * There is one entry per sleeping or waiting warp, and a few for operations and far-faults.
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

static void fill_hole(event_heap *heap) {
  heap->hole = false;
  event last = heap->items[--heap->count];
  if (heap->count) sink(heap, last);
}

static int by_key(const void *a, const void *b) {
  event x = *(const event *)a, y = *(const event *)b;
  return earlier(y, x) - earlier(x, y);
}

/* Orders of insertion from 1 on, in the order that the events have. A sorted array is a heap. */
static void renumber(event_heap *heap) {
  const unsigned __int128 order = (unsigned __int128)UINT32_MAX << 32;
  if (heap->hole) fill_hole(heap);
  if (heap->count) qsort(heap->items, heap->count, sizeof *heap->items, by_key);
  for (uint32_t i = 0; i < heap->count; i++)
    heap->items[i].key = (heap->items[i].key & ~order) | (uint64_t)(i + 1) << 32;
  heap->order = heap->count;
}

static inline void push(event_heap *heap, ps time, uint32_t order, event_kind kind, uint32_t index) {
  FF_ASSERT(time >= heap->now);
  event fresh = {.key = (unsigned __int128)time << 64 | (uint64_t)order << 32 | (uint32_t)kind << 28 | index};
  if (heap->hole) {
    heap->hole = false;
    sink(heap, fresh);
  } else {
    if (heap->count == heap->capacity) {
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
  ps next = event_time(heap->items[0]);
  heap->next_time = next < heap->horizon ? next : heap->horizon;
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

ps event_next(const event_heap *heap) {
  ps next = UINT64_MAX;
  if (!heap->hole) return heap->count ? event_time(heap->items[0]) : next;
  for (uint32_t c = 1; c < 5 && c < heap->count; c++)
    if (event_time(heap->items[c]) < next) next = event_time(heap->items[c]);
  return next;
}

event event_pop(event_heap *heap) {
  if (heap->hole) fill_hole(heap);
  event first = heap->items[0];
  FF_ASSERT(event_time(first) >= heap->now);
  heap->now = event_time(first);
  heap->hole = true;
  heap->next_time = heap->horizon;
  for (uint32_t c = 1; c < 5 && c < heap->count; c++)
    if (event_time(heap->items[c]) < heap->next_time) heap->next_time = event_time(heap->items[c]);
  return first;
}

void agenda_add(agenda *a, ps time, event_kind kind, uint32_t index) {
  FF_ASSERT(index < 1u << EVENT_TENANT_SHIFT);
  a->pending++;
  event_push(a->heap, time, kind, index | a->tenant << EVENT_TENANT_SHIFT);
}
