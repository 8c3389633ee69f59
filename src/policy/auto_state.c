/* SPDX-License-Identifier: Apache-2.0 */
/* The state that the policies `auto` share: see auto_state.h. */
#include "policy/auto_state.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

typedef struct auto_block {
  uint64_t address;
  auto_group *groups;
} auto_block; /* groups: NULL: an empty slot */

enum { GROUPS_PER_BLOCK = FF_BLOCK_PAGES / FF_GROUP_PAGES, CHECK_EVERY = 64 };

void *auto_create(const char *argument, const char **problem) {
  if (!argument) {
    auto_state *s = ff_alloc(sizeof *s);
    s->victim = FF_NEVER;
    return s;
  }
  *problem = "auto takes no argument: it finds out by itself";
  return NULL;
}

void auto_destroy(void *state) {
  auto_state *s = state;
  for (size_t i = 0; i < s->block_capacity; i++) free(s->blocks[i].groups);
  free(s->blocks);
  free(s->resident.items);
  free(s->allocations.items);
  free(s->declared.items);
  free(s);
}

/* ---- groups ---- */

static auto_block *slot_of(auto_block *blocks, size_t capacity, uint64_t block) {
  size_t slot = (block / FF_BLOCK_BYTES * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (capacity - 1);
  while (blocks[slot].groups && blocks[slot].address != block) slot = (slot + 1) & (capacity - 1);
  return &blocks[slot];
}

static void grow(auto_state *s) {
  size_t capacity = s->block_capacity ? s->block_capacity * 2 : 64;
  auto_block *blocks = ff_alloc(capacity * sizeof *blocks);
  for (size_t i = 0; i < s->block_capacity; i++)
    if (s->blocks[i].groups) *slot_of(blocks, capacity, s->blocks[i].address) = s->blocks[i];
  free(s->blocks);
  s->blocks = blocks;
  s->block_capacity = capacity;
}

static uint32_t group_index(uint64_t address) { return (uint32_t)(address % FF_BLOCK_BYTES / FF_GROUP_BYTES); }

auto_group *auto_group_find(const auto_state *s, uint64_t address) {
  if (!s->block_capacity) return NULL;
  auto_block *block = slot_of(s->blocks, s->block_capacity, pages_block_of(address));
  return block->groups ? &block->groups[group_index(address)] : NULL;
}

auto_group *auto_group_make(auto_state *s, uint64_t address) {
  if (s->block_count * 4 >= s->block_capacity * 3) grow(s);
  auto_block *block = slot_of(s->blocks, s->block_capacity, pages_block_of(address));
  if (!block->groups) {
    *block = (auto_block){pages_block_of(address), ff_alloc(GROUPS_PER_BLOCK * sizeof *block->groups)};
    s->block_count++;
  }
  return &block->groups[group_index(address)];
}

uint64_t auto_block_in(const auto_state *s, size_t slot) {
  return s->blocks[slot].groups ? s->blocks[slot].address : FF_NEVER;
}

/* The pages of the group at `group` that the range touches, a bit each. */
static uint16_t pages_within(uint64_t group, uint64_t address, uint64_t last) {
  uint32_t first = address > group ? (uint32_t)((address - group) / FF_PAGE_BYTES) : 0;
  uint32_t end = last - group < FF_GROUP_BYTES ? (uint32_t)((last - group) / FF_PAGE_BYTES) + 1 : FF_GROUP_PAGES;
  return (uint16_t)(((UINT32_C(1) << end) - 1) & ~((UINT32_C(1) << first) - 1));
}

/* ---- what happens ---- */

static void check(const auto_state *s) {
  size_t resident = 0;
  for (size_t i = 0; i < s->block_capacity; i++)
    for (uint32_t g = 0; s->blocks[i].groups && g < GROUPS_PER_BLOCK; g++) {
      const auto_group *group = &s->blocks[i].groups[g];
      FF_ASSERT(!group->pages == !group->place);
      if (!group->place) continue;
      FF_ASSERT(group->place <= s->resident.count);
      FF_ASSERT(s->resident.items[group->place - 1] == s->blocks[i].address + g * FF_GROUP_BYTES);
      resident++;
    }
  FF_ASSERT(resident == s->resident.count);
}

static void check_sometimes(auto_state *s) {
  if (ff_check_level >= 2 && s->told++ % CHECK_EVERY == 0) check(s);
}

static void group_arrived(auto_state *s, ff_view *view, uint64_t address, uint16_t pages) {
  auto_group *g = auto_group_make(s, address);
  if (!g->pages) {
    FF_PUSH(&s->resident, address);
    g->place = (uint32_t)s->resident.count;
    g->came = view->now;
    g->since = 0;
    g->swapped = false;
  }
  g->taken = false;
  g->pages |= pages;
}

void auto_arrived(void *state, ff_view *view, uint64_t address, uint64_t bytes) {
  uint64_t last = address + (bytes - 1);
  for (uint64_t group = address & ~(FF_GROUP_BYTES - 1); bytes && group <= last; group += FF_GROUP_BYTES)
    group_arrived(state, view, group, pages_within(group, address, last));
  check_sometimes(state);
}

static void group_left(auto_state *s, const ff_view *view, uint64_t address, uint16_t pages) {
  auto_group *g = auto_group_find(s, address);
  if (!g || !g->pages) return;
  g->taken |= view->by_host;
  g->pages &= (uint16_t)~pages;
  if (g->pages) return;
  uint64_t moved = s->resident.items[--s->resident.count];
  s->resident.items[g->place - 1] = moved;
  auto_group_find(s, moved)->place = g->place;
  g->place = 0;
}

void auto_left(void *state, ff_view *view, uint64_t address, uint64_t bytes) {
  uint64_t last = address + (bytes - 1);
  ((auto_state *)state)->rests = false;
  auto_allocation *a = bytes && view->by_host ? auto_allocation_at(state, view, address) : NULL;
  if (a) a->taken = true;
  for (uint64_t group = address & ~(FF_GROUP_BYTES - 1); bytes && group <= last; group += FF_GROUP_BYTES)
    group_left(state, view, group, pages_within(group, address, last));
  check_sometimes(state);
}

/* ---- allocations ---- */

auto_allocation *auto_allocation_at(auto_state *s, const ff_view *view, uint64_t address) {
  ff_allocation found;
  if (!view->allocation(view, address, &found)) return NULL;
  while (s->allocations.count <= found.number) FF_PUSH(&s->allocations, ((auto_allocation){0}));
  auto_allocation *a = &s->allocations.items[found.number];
  if (a->address != found.address || a->bytes != found.bytes)
    *a = (auto_allocation){.address = found.address, .bytes = found.bytes};
  return a;
}
