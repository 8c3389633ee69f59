/* SPDX-License-Identifier: Apache-2.0 */
/* Which physical memory a virtual address has, on a machine whose file says which address is in which memory module.
 *
 * An allocation that comes to stay (under managers that move no pages) gets one piece of physical memory, as far as
 * there is one: neighbours stay neighbours, as with the large pages of a driver. Everything else gets frames of 4 KiB
 * when it is touched first: pages that come and go, the page tables, and all memory where it is divided
 * (SIM_ISOLATION_SM_MEMORY: frames of the tenant's colours).
 *
 * A virtual page has at most one frame, and a frame at most one virtual page of one tenant: address_map_check. Where no
 * frame is left (more is mapped than the machine has: the manager "ideal"), an address stands for itself. */
#include "machine/memory/address_map.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "machine/memory/hierarchy.h"
#include "machine/memory/tlb.h"
#include "machine/tenants/idle_sharing.h"

enum { BLOCK_FRAMES = FF_BLOCK_BYTES / FRAME_BYTES };
#define NO_FRAME UINT32_MAX        /* none yet */
#define NO_MEMORY (UINT32_MAX - 1) /* and none was to be had */

struct placed_block {            /* 2 MiB of virtual addresses */
  uint64_t number;               /* address / 2 MiB */
  uint32_t frames[BLOCK_FRAMES]; /* their numbers */
};

/* ---- virtual blocks, by hash ---- */

static uint32_t slot_of(const placing *p, uint64_t number) {
  uint32_t at = (uint32_t)((number * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (p->capacity - 1));
  while (p->blocks[at] && p->blocks[at]->number != number) at = (at + 1) & (p->capacity - 1);
  return at;
}

static void grow(placing *p) {
  uint32_t old = p->capacity;
  placed_block **blocks = p->blocks;
  p->capacity = old ? old * 2 : 64;
  p->blocks = ff_alloc(p->capacity * sizeof *p->blocks);
  for (uint32_t i = 0; i < old; i++)
    if (blocks[i]) p->blocks[slot_of(p, blocks[i]->number)] = blocks[i];
  free(blocks);
}

static const placed_run *run_of(const placing *p, uint64_t address) {
  for (size_t i = 0; i < p->runs.count; i++)
    if (address - p->runs.items[i].address < p->runs.items[i].bytes) return &p->runs.items[i];
  return NULL;
}

static placed_block *block_make(placing *p, uint64_t number) {
  if (p->count * 2 >= p->capacity) grow(p);
  placed_block *b = ff_alloc(sizeof *b);
  b->number = number;
  for (uint32_t i = 0; i < BLOCK_FRAMES; i++) {
    uint64_t address = number * FF_BLOCK_BYTES + (uint64_t)i * FRAME_BYTES;
    const placed_run *run = run_of(p, address);
    b->frames[i] = run ? (uint32_t)((run->physical + (address - run->address)) / FRAME_BYTES) : NO_FRAME;
  }
  p->blocks[slot_of(p, number)] = b;
  p->count++;
  return b;
}

/* NULL: nothing of it was ever touched. */
static placed_block *block_find(const placing *p, uint64_t number) {
  return p->capacity ? p->blocks[slot_of(p, number)] : NULL;
}

/* ---- frames ---- */

static void frame_take(placing *p, uint32_t *frame) {
  uint64_t physical;
  ff_error none;
  *frame = frames_take(p->frames, p->colours, &physical, &none) ? NO_MEMORY : (uint32_t)(physical / FRAME_BYTES);
}

/* Pages that get these frames next find nothing in the L2 of what was in them. */
static void frames_back(placing *p, uint64_t physical, uint64_t bytes) {
  l2_discard_frames(p->memory, physical, bytes);
  frames_give(p->frames, physical, bytes);
}

uint64_t address_map_find(placing *p, uint64_t address) {
  uint64_t number = address / FF_BLOCK_BYTES;
  placed_block *b = p->last;
  if (!b || b->number != number) {
    b = block_find(p, number);
    p->last = b = b ? b : block_make(p, number);
  }
  uint32_t *frame = &b->frames[address % FF_BLOCK_BYTES / FRAME_BYTES];
  if (*frame == NO_FRAME) frame_take(p, frame);
  return *frame == NO_MEMORY ? address | p->space : (uint64_t)*frame * FRAME_BYTES + address % FRAME_BYTES;
}

bool address_map_peek(const placing *p, uint64_t address, uint64_t *physical) {
  const placed_block *b = block_find(p, address / FF_BLOCK_BYTES);
  uint32_t frame = b ? b->frames[address % FF_BLOCK_BYTES / FRAME_BYTES] : NO_FRAME;
  *physical = frame == NO_MEMORY ? address | p->space : (uint64_t)frame * FRAME_BYTES + address % FRAME_BYTES;
  return frame != NO_FRAME;
}

void address_map_move(placing *p, uint64_t address, uint64_t physical) {
  placed_block *b = block_find(p, address / FF_BLOCK_BYTES);
  l2_discard(p->memory, address, FRAME_BYTES);
  tlb_forget_range(p->gmmu, address, FRAME_BYTES);
  b->frames[address % FF_BLOCK_BYTES / FRAME_BYTES] = (uint32_t)(physical / FRAME_BYTES);
}

void address_map_pages(placing *p, address_map_visit *visit, void *context) {
  for (uint32_t i = 0; i < p->capacity; i++) {
    const placed_block *b = p->blocks[i];
    if (!b || b->number * FF_BLOCK_BYTES >> SPACE_SHIFT) continue; /* page tables lie above all data */
    for (uint32_t f = 0; f < BLOCK_FRAMES; f++)
      if (b->frames[f] < NO_MEMORY) visit(context, b->number * FF_BLOCK_BYTES + (uint64_t)f * FRAME_BYTES);
  }
}

/* ---- allocations ---- */

static int by_number(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return (x > y) - (x < y);
}

void address_map_check(const placing *p) {
  FF_VEC(uint32_t) taken = {0};
  for (uint32_t i = 0; i < p->capacity; i++)
    for (uint32_t f = 0; p->blocks[i] && f < BLOCK_FRAMES; f++)
      if (p->blocks[i]->frames[f] < NO_MEMORY) FF_PUSH(&taken, p->blocks[i]->frames[f]);
  if (taken.count) qsort(taken.items, taken.count, sizeof *taken.items, by_number);
  for (size_t i = 0; i < taken.count; i++) {
    FF_ASSERT(!i || taken.items[i - 1] != taken.items[i]);
    FF_ASSERT(frames_is_taken(p->frames, (uint64_t)taken.items[i] * FRAME_BYTES));
  }
  free(taken.items);
}

void address_map_allocated(placing *p, uint64_t address, uint64_t bytes) {
  ff_error none;
  placed_run run = {.address = address / FRAME_BYTES * FRAME_BYTES};
  if (ff_check_level >= 2) address_map_check(p);
  if (!p->in_pieces || bytes < FF_BLOCK_BYTES) return;
  run.bytes = (address + bytes - run.address + FRAME_BYTES - 1) / FRAME_BYTES * FRAME_BYTES;
  if (run.address != address || frames_take_run(p->frames, run.bytes, FF_BLOCK_BYTES, &run.physical, &none)) return;
  /* what a neighbour on its first or last page has touched */
  for (uint64_t a = address; a < address + bytes; a += FRAME_BYTES) {
    const placed_block *b = block_find(p, a / FF_BLOCK_BYTES);
    if (b && b->frames[a % FF_BLOCK_BYTES / FRAME_BYTES] != NO_FRAME) {
      frames_give(p->frames, run.physical, run.bytes);
      return;
    }
    if (!b) a = (a / FF_BLOCK_BYTES + 1) * FF_BLOCK_BYTES - FRAME_BYTES;
  }
  FF_PUSH(&p->runs, run);
  for (uint64_t number = address / FF_BLOCK_BYTES; number <= (address + bytes - 1) / FF_BLOCK_BYTES; number++) {
    placed_block *b = block_find(p, number);
    for (uint32_t i = 0; b && i < BLOCK_FRAMES; i++) {
      uint64_t a = number * FF_BLOCK_BYTES + (uint64_t)i * FRAME_BYTES;
      if (a - run.address < run.bytes) b->frames[i] = (uint32_t)((run.physical + (a - run.address)) / FRAME_BYTES);
    }
  }
}

/* The frames of the whole pages in [begin, end); those of a run go back with it. */
static void give_pages(placing *p, uint64_t begin, uint64_t end, bool in_run) {
  for (uint64_t a = begin; a < end; a += FRAME_BYTES) {
    placed_block *b = block_find(p, a / FF_BLOCK_BYTES);
    if (!b) {
      a = (a / FF_BLOCK_BYTES + 1) * FF_BLOCK_BYTES - FRAME_BYTES;
      continue;
    }
    uint32_t *frame = &b->frames[a % FF_BLOCK_BYTES / FRAME_BYTES];
    if (!in_run && *frame < NO_MEMORY) frames_back(p, (uint64_t)*frame * FRAME_BYTES, FRAME_BYTES);
    *frame = NO_FRAME;
  }
}

void address_map_give(placing *p, uint64_t address, uint64_t bytes) {
  if (!p->hash) return;
  if (p->lent->moved.count) idle_sharing_forget(p->lent);
  for (size_t i = 0; i < p->runs.count; i++) {
    placed_run run = p->runs.items[i];
    if (run.address != address) continue;
    if (ff_check_level >= 2) address_map_check(p);
    frames_back(p, run.physical, run.bytes);
    p->runs.items[i] = p->runs.items[--p->runs.count];
    give_pages(p, run.address, run.address + run.bytes, true);
    return;
  }
  uint64_t begin = (address + FRAME_BYTES - 1) / FRAME_BYTES * FRAME_BYTES,
           end = (address + bytes) / FRAME_BYTES * FRAME_BYTES;
  give_pages(p, begin, end, false);
}

void address_map_free(placing *p) {
  if (p->lent->moved.count) idle_sharing_forget(p->lent);
  while (p->runs.count) address_map_give(p, p->runs.items[0].address, p->runs.items[0].bytes);
  for (uint32_t i = 0; i < p->capacity; i++) {
    if (!p->blocks[i]) continue;
    for (uint32_t f = 0; f < BLOCK_FRAMES; f++)
      if (p->blocks[i]->frames[f] < NO_MEMORY)
        frames_back(p, (uint64_t)p->blocks[i]->frames[f] * FRAME_BYTES, FRAME_BYTES);
    free(p->blocks[i]);
  }
  free(p->blocks);
  free(p->runs.items);
}
