/* SPDX-License-Identifier: Apache-2.0 */
/* Which pointers are live handles, or were. A program may hand in anything; a handle is looked up here before it is
 * followed.
 *
 * Open addressing with linear probing. A removed slot keeps its pointer's place as a tombstone (pointer == REMOVED)
 * until the table grows; `used` counts live ones and tombstones, so every probe ends at an empty slot. */
#include <stdlib.h>

#include "driver/engine/engine_internal.h"

static const char removed_mark;
#define REMOVED ((const void *)&removed_mark)

static size_t slot_of(const engine_handles *handles, const void *pointer) {
  uint64_t hash = (uint64_t)(uintptr_t)pointer * UINT64_C(0x9e3779b97f4a7c15);
  return (size_t)(hash >> 20) & (handles->capacity - 1);
}

static void place(engine_handles *handles, const void *pointer, engine_handle_kind kind) {
  size_t at = slot_of(handles, pointer);
  while (handles->slots[at].pointer) at = (at + 1) & (handles->capacity - 1);
  handles->slots[at].pointer = pointer;
  handles->slots[at].kind = kind;
  handles->used++;
  handles->count++;
}

static void grow(engine_handles *handles) {
  engine_handles old = *handles;
  handles->capacity = old.count * 4 < 64 ? 64 : 1;
  while (handles->capacity < old.count * 4) handles->capacity *= 2;
  handles->slots = ff_alloc(handles->capacity * sizeof *handles->slots);
  handles->count = handles->used = 0;
  for (size_t i = 0; i < old.capacity; i++)
    if (old.slots[i].pointer && old.slots[i].pointer != REMOVED)
      place(handles, old.slots[i].pointer, old.slots[i].kind);
  free(old.slots);
}

void engine_handles_add(engine_handles *handles, const void *pointer, engine_handle_kind kind) {
  if (2 * (handles->used + 1) > handles->capacity) grow(handles);
  place(handles, pointer, kind);
}

static size_t find(const engine_handles *handles, const void *pointer) { /* capacity: absent */
  if (!pointer || !handles->capacity) return handles->capacity;
  for (size_t at = slot_of(handles, pointer); handles->slots[at].pointer; at = (at + 1) & (handles->capacity - 1))
    if (handles->slots[at].pointer == pointer) return at;
  return handles->capacity;
}

void engine_handles_remove(engine_handles *handles, const void *pointer) {
  size_t at = find(handles, pointer);
  FF_ASSERT(at < handles->capacity);
  handles->slots[at].pointer = REMOVED;
  handles->count--;
}

bool engine_handles_have(const engine_handles *handles, const void *pointer, engine_handle_kind kind) {
  size_t at = find(handles, pointer);
  return at < handles->capacity && handles->slots[at].kind == kind;
}
