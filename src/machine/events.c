/* SPDX-License-Identifier: Apache-2.0 */
/* The event heap (four children per entry: fewer levels, one or two host cache lines each), and slots, which are a heap
 * of times. An entry is 16 bytes; there is one per sleeping or waiting warp, and a few for operations and far-faults. */
#include "machine/model.h"

static inline bool before(const event *a, const event *b) {
  return a->time != b->time ? a->time < b->time : (int32_t)(a->order - b->order) < 0;
}

void event_push(event_heap *heap, ps time, event_kind kind, uint32_t index) {
  if (heap->count == heap->capacity) {
    heap->capacity = heap->capacity ? heap->capacity * 2 : 1024;
    heap->items = ff_realloc(heap->items, heap->capacity * sizeof *heap->items);
  }
  event fresh = {time, heap->order++, (uint32_t)kind << 28 | index};
  uint32_t at = heap->count++;
  while (at) {
    uint32_t parent = (at - 1) / 4;
    if (!before(&fresh, &heap->items[parent])) break;
    heap->items[at] = heap->items[parent];
    at = parent;
  }
  heap->items[at] = fresh;
}

event event_pop(event_heap *heap) {
  event first = heap->items[0], last = heap->items[--heap->count];
  event *items = heap->items;
  uint32_t count = heap->count, at = 0;
  for (;;) {
    uint32_t child = at * 4 + 1, end = child + 4 < count ? child + 4 : count, best = child;
    if (child >= count) break;
    for (uint32_t c = child + 1; c < end; c++)
      if (before(&items[c], &items[best])) best = c;
    if (!before(&items[best], &last)) break;
    items[at] = items[best];
    at = best;
  }
  items[at] = last;
  return first;
}

void slots_init(slots *s, uint64_t capacity) {
  s->capacity = (uint32_t)capacity;
  s->until = ff_alloc(capacity * sizeof *s->until);
}

static void slots_replace_first(slots *s, ps until) {
  uint32_t at = 0;
  for (uint32_t child; (child = 2 * at + 1) < s->count; at = child) {
    if (child + 1 < s->count && s->until[child + 1] < s->until[child]) child++;
    if (s->until[child] >= until) break;
    s->until[at] = s->until[child];
  }
  s->until[at] = until;
}

void slots_hold(slots *s, ps until) {
  if (s->count == s->capacity) {
    slots_replace_first(s, until);
    return;
  }
  uint32_t at = s->count++;
  for (; at && s->until[(at - 1) / 2] > until; at = (at - 1) / 2) s->until[at] = s->until[(at - 1) / 2];
  s->until[at] = until;
}
