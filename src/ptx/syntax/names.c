/* SPDX-License-Identifier: Apache-2.0 */
/* Scoped names: see names.h. */
#include "ptx/syntax/names.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

#define NONE UINT32_MAX

static uint32_t hash_chars(const char *chars, uint32_t length) {
  uint64_t hash = 1469598103934665603u;
  for (uint32_t i = 0; i < length; i++) hash = (hash ^ (unsigned char)chars[i]) * 1099511628211u;
  return (uint32_t)(hash ^ hash >> 32);
}

/* The slot that holds the name, or the free one where it would go. The table has free slots. */
static uint32_t *find_slot(const ptx_names *names, const char *chars, uint32_t length, uint32_t hash) {
  for (uint32_t at = hash & (names->slot_count - 1);; at = (at + 1) & (names->slot_count - 1)) {
    uint32_t *slot = &names->slots[at];
    if (!*slot) return slot;
    const ptx_name *name = &names->names.items[*slot - 1];
    if (name->hash == hash && name->length == length && memcmp(name->chars, chars, length) == 0) return slot;
  }
}

static void grow(ptx_names *names) {
  uint32_t *old = names->slots;
  names->slot_count = names->slot_count ? names->slot_count * 2 : 256;
  names->slots = ff_alloc(names->slot_count * sizeof *names->slots);
  for (uint32_t i = 0; i < names->names.count; i++) {
    const ptx_name *name = &names->names.items[i];
    *find_slot(names, name->chars, name->length, name->hash) = i + 1;
  }
  free(old);
}

static uint32_t intern(ptx_names *names, const char *chars, uint32_t length) {
  if (names->names.count * 2 >= names->slot_count) grow(names);
  uint32_t hash = hash_chars(chars, length);
  uint32_t *slot = find_slot(names, chars, length, hash);
  if (!*slot) {
    FF_PUSH(&names->names, ((ptx_name){chars, length, hash, {NONE, NONE, NONE}}));
    *slot = (uint32_t)names->names.count;
  }
  return *slot - 1;
}

const ptx_binding *ptx_names_find(const ptx_names *names, ptx_name_space space, const char *chars, uint32_t length) {
  if (!names->slot_count) return NULL;
  uint32_t slot = *find_slot(names, chars, length, hash_chars(chars, length));
  if (!slot) return NULL;
  uint32_t head = names->names.items[slot - 1].head[space];
  return head == NONE ? NULL : &names->bindings.items[head];
}

bool ptx_names_bind(ptx_names *names, ptx_name_space space, const char *chars, uint32_t length, ptx_binding binding) {
  binding.name = intern(names, chars, length);
  uint32_t *head = &names->names.items[binding.name].head[space];
  if (*head != NONE && names->bindings.items[*head].depth == names->depth) return false;
  binding.hidden = *head;
  binding.space = space;
  binding.depth = names->depth;
  *head = (uint32_t)names->bindings.count;
  FF_PUSH(&names->bindings, binding);
  return true;
}

void ptx_names_enter(ptx_names *names) { names->depth++; }

/* Each binding is its name's head or hidden by a later one; heads and hidden ones are bindings of that name. */
static void names_check(const ptx_names *names) {
  uint32_t visible = 0, hiding = 0;
  for (uint32_t i = 0; i < names->bindings.count; i++) {
    const ptx_binding *b = &names->bindings.items[i];
    FF_ASSERT(b->depth <= names->depth && (!i || b[-1].depth <= b->depth));
    if (b->hidden == NONE) continue;
    const ptx_binding *hidden = &names->bindings.items[b->hidden];
    FF_ASSERT(b->hidden < i && hidden->name == b->name && hidden->space == b->space && hidden->depth < b->depth);
    hiding++;
  }
  for (uint32_t n = 0; n < names->names.count; n++)
    for (uint32_t space = 0; space < sizeof names->names.items[n].head / sizeof(uint32_t); space++) {
      uint32_t head = names->names.items[n].head[space];
      if (head == NONE) continue;
      FF_ASSERT(head < names->bindings.count && names->bindings.items[head].name == n);
      visible++;
    }
  FF_ASSERT(visible + hiding == names->bindings.count);
}

void ptx_names_leave(ptx_names *names) {
  FF_ASSERT(names->depth > 0);
  if (ff_check_level >= 2) names_check(names);
  while (names->bindings.count) {
    const ptx_binding *last = &names->bindings.items[names->bindings.count - 1];
    if (last->depth < names->depth) break;
    names->names.items[last->name].head[last->space] = last->hidden;
    names->bindings.count--;
  }
  names->depth--;
}

void ptx_names_truncate(ptx_names *names, size_t count) {
  while (names->names.count > count) { /* the last ones first: no other was put behind them where slots collide */
    const ptx_name *last = &names->names.items[names->names.count - 1];
    *find_slot(names, last->chars, last->length, last->hash) = 0;
    names->names.count--;
  }
}

void ptx_names_free(ptx_names *names) {
  free(names->names.items);
  free(names->bindings.items);
  free(names->slots);
  *names = (ptx_names){0};
}
