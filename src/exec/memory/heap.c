/* SPDX-License-Identifier: Apache-2.0 */
/* Device malloc: one range that is cut into pieces, blocks and holes.
 *
 *   a piece is a whole number of units of 16 bytes; pieces lie side by side, the first one at unit 0
 *   the units of blocks + those of holes == the units of the heap; no two holes lie side by side     (heap_check, at the
 *   every hole is in the list of its size, every block in the table of addresses                      deep level)
 *
 * A block takes the units that it needs and no more, and a hole has all that lies free between two blocks: malloc gives
 * 0 only if no hole is large enough. Lists of holes by size are those of Masmano et al., "TLSF: a new dynamic memory
 * allocator for real-time systems" (ECRTS 2004): up to 15 units one for each size, then 16 for each power of two.
 *
 * Where allocations have padding (exec/memory/address_space.h) blocks have it too, in front of and behind each: each
 * unit then has its own, so that the heap is full when it is full without. The range is as large as that needs, or,
 * where the arena has no room for it, the padding is left out. */
#include "exec/memory/heap.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/memory.h"
#include "exec/memory/space.h"

enum { UNIT = 16, STEPS = 16, LOG_STEPS = 4, LISTS = STEPS * 61, NONE = -1 };

typedef struct heap_piece {
  uint64_t first, units;
  uint64_t bytes;         /* asked for; 0: a hole, or not in use */
  int32_t below, above;   /* its neighbours */
  int32_t previous, next; /* a hole's, in its list; `next` of pieces that are not in use, too */
} heap_piece;

struct exec_heap {
  pthread_mutex_t mutex;
  exec_memory *memory;
  uint64_t base, bytes, units, used;
  uint64_t padding;             /* a multiple of 16 */
  FF_VEC(heap_piece) pieces;    /* number 0 is the first of the range */
  int32_t unused;               /* of pieces */
  int32_t holes[LISTS];         /* the one that was made last */
  uint64_t any[LISTS / 64 + 1]; /* a bit for each list that is not empty */
  int32_t *table;               /* open addressing: blocks by their first unit; number + 1 */
  uint64_t count, capacity;     /* of the table: blocks */
};

/* ---- holes ---- */

static uint32_t list_of(uint64_t units) {
  if (units < STEPS) return (uint32_t)units;
  uint32_t log = 63 - (uint32_t)__builtin_clzll(units);
  return (log - LOG_STEPS + 1) * STEPS + (units >> (log - LOG_STEPS) & (STEPS - 1));
}

static void hole_add(exec_heap *heap, int32_t n) {
  heap_piece *hole = &heap->pieces.items[n];
  uint32_t list = list_of(hole->units);
  hole->previous = NONE;
  hole->next = heap->holes[list];
  if (hole->next != NONE) heap->pieces.items[hole->next].previous = n;
  heap->holes[list] = n;
  heap->any[list / 64] |= UINT64_C(1) << list % 64;
}

static void hole_remove(exec_heap *heap, int32_t n) {
  const heap_piece *hole = &heap->pieces.items[n];
  uint32_t list = list_of(hole->units);
  if (hole->next != NONE) heap->pieces.items[hole->next].previous = hole->previous;
  if (hole->previous != NONE) heap->pieces.items[hole->previous].next = hole->next;
  else heap->holes[list] = hole->next;
  if (heap->holes[list] == NONE) heap->any[list / 64] &= ~(UINT64_C(1) << list % 64);
}

/* The first list from `list` on that is not empty; LISTS: none. */
static uint32_t list_from(const exec_heap *heap, uint32_t list) {
  for (uint64_t word = list / 64, mask = ~UINT64_C(0) << list % 64; word <= LISTS / 64; word++, mask = ~UINT64_C(0))
    if (heap->any[word] & mask) return (uint32_t)(word * 64) + (uint32_t)__builtin_ctzll(heap->any[word] & mask);
  return LISTS;
}

/* A hole of at least so many units; NONE: there is none. */
static int32_t hole_find(const exec_heap *heap, uint64_t units) {
  const heap_piece *pieces = heap->pieces.items;
  uint32_t list = list_of(units);
  int32_t n = heap->holes[list];
  if (n != NONE && pieces[n].units >= units) return n;
  uint32_t larger = list_from(heap, list + 1);
  if (larger < LISTS) return heap->holes[larger];
  while (n != NONE && pieces[n].units < units) n = pieces[n].next;
  return n;
}

/* ---- pieces ---- */

static int32_t piece_new(exec_heap *heap) {
  int32_t n = heap->unused;
  if (n == NONE) {
    FF_PUSH(&heap->pieces, (heap_piece){0});
    return (int32_t)heap->pieces.count - 1;
  }
  heap->unused = heap->pieces.items[n].next;
  return n;
}

/* What is behind the first `units` of piece n becomes a hole. */
static void piece_cut(exec_heap *heap, int32_t n, uint64_t units) {
  if (heap->pieces.items[n].units == units) return;
  int32_t rest = piece_new(heap);
  heap_piece *piece = &heap->pieces.items[n], *hole = &heap->pieces.items[rest];
  *hole = (heap_piece){.first = piece->first + units, .units = piece->units - units, .below = n, .above = piece->above};
  if (piece->above != NONE) heap->pieces.items[piece->above].below = rest;
  piece->above = rest;
  piece->units = units;
  hole_add(heap, rest);
}

/* Piece n, and what lies above it, become one. */
static void piece_join(exec_heap *heap, int32_t n) {
  heap_piece *piece = &heap->pieces.items[n];
  int32_t gone = piece->above;
  heap_piece *upper = &heap->pieces.items[gone];
  piece->units += upper->units;
  piece->above = upper->above;
  if (piece->above != NONE) heap->pieces.items[piece->above].below = n;
  *upper = (heap_piece){.next = heap->unused};
  heap->unused = gone;
}

static bool is_hole(const exec_heap *heap, int32_t n) { return n != NONE && !heap->pieces.items[n].bytes; }

/* ---- the table of addresses ---- */

static uint64_t stride(const exec_heap *heap) { return UNIT + 2 * heap->padding; }

static uint64_t address_of(const exec_heap *heap, const heap_piece *piece) {
  return heap->base + piece->first * stride(heap) + heap->padding;
}

static uint64_t slot_home(const exec_heap *heap, uint64_t first) {
  return (first * UINT64_C(0x9e3779b97f4a7c15)) >> 20 & (heap->capacity - 1);
}

/* Where the block that starts at this unit stands, or would. */
static uint64_t slot_of(const exec_heap *heap, uint64_t first) {
  uint64_t at = slot_home(heap, first);
  while (heap->table[at] && heap->pieces.items[heap->table[at] - 1].first != first)
    at = (at + 1) & (heap->capacity - 1);
  return at;
}

static void table_grow(exec_heap *heap) {
  int32_t *old = heap->table;
  uint64_t slots = heap->capacity;
  heap->capacity = slots ? slots * 2 : 64;
  heap->table = ff_alloc(heap->capacity * sizeof *heap->table);
  for (uint64_t n = 0; n < slots; n++)
    if (old[n]) heap->table[slot_of(heap, heap->pieces.items[old[n] - 1].first)] = old[n];
  free(old);
}

/* What stands behind an emptied slot moves up, so that each is found from its home on. */
static void slot_empty(exec_heap *heap, uint64_t hole) {
  uint64_t mask = heap->capacity - 1;
  for (uint64_t at = (hole + 1) & mask; heap->table[at]; at = (at + 1) & mask) {
    uint64_t home = slot_home(heap, heap->pieces.items[heap->table[at] - 1].first);
    if (((at - home) & mask) < ((at - hole) & mask)) continue; /* its home is behind the hole */
    heap->table[hole] = heap->table[at];
    hole = at;
  }
  heap->table[hole] = 0;
  heap->count--;
}

/* The block that starts at the address; NONE: there is none. */
static int32_t block_at(const exec_heap *heap, uint64_t address) {
  uint64_t offset = address - heap->base - heap->padding;
  if (!heap->capacity || offset % stride(heap)) return NONE;
  return heap->table[slot_of(heap, offset / stride(heap))] - 1;
}

/* ---- the heap ---- */

ff_status exec_heap_create(exec_memory *memory, uint64_t bytes, exec_heap **out, ff_error *error) {
  const exec_allocation *allocation;
  uint64_t padding = (exec_memory_padding(memory) + UNIT - 1) / UNIT * UNIT, padded;
  bool fits = !__builtin_mul_overflow(bytes / UNIT + 1, 2 * padding, &padded) &&
              !__builtin_add_overflow(padded, bytes, &padded) &&
              exec_memory_allocate(memory, padded, 256, EXEC_MEMORY_DEVICE, "device heap", &allocation, NULL) == FF_OK;
  if (!fits) padding = 0;
  ff_status status =
      fits ? FF_OK : exec_memory_allocate(memory, bytes, 256, EXEC_MEMORY_DEVICE, "device heap", &allocation, error);
  if (status != FF_OK) return status;
  exec_memory_exempt(allocation);
  exec_heap *heap = ff_alloc(sizeof *heap);
  pthread_mutex_init(&heap->mutex, NULL);
  heap->memory = memory;
  heap->base = allocation->address;
  heap->bytes = bytes;
  heap->units = bytes / UNIT;
  heap->padding = padding;
  heap->unused = NONE;
  for (uint32_t n = 0; n < LISTS; n++) heap->holes[n] = NONE;
  if (heap->units) {
    FF_PUSH(&heap->pieces, ((heap_piece){.units = heap->units, .below = NONE, .above = NONE}));
    hole_add(heap, 0);
  }
  *out = heap;
  return FF_OK;
}

void exec_heap_free(exec_heap *heap) {
  if (!heap) return;
  exec_memory_release(heap->memory, heap->base, NULL);
  free(heap->pieces.items);
  free(heap->table);
  pthread_mutex_destroy(&heap->mutex);
  free(heap);
}

enum { CHECK_EVERY = 64 };

/* At one change of many, with the lock. */
static void heap_check(const exec_heap *heap) {
  static _Atomic uint32_t changes;
  if (ff_check_level < 2 || ++changes % CHECK_EVERY) return;
  uint64_t units = 0, used = 0, holes = 0, listed = 0, blocks = 0;
  for (int32_t n = heap->units ? 0 : NONE, below = NONE; n != NONE; below = n, n = heap->pieces.items[n].above) {
    const heap_piece *piece = &heap->pieces.items[n];
    FF_ASSERT(piece->first == units && piece->units && piece->below == below && piece->bytes <= piece->units * UNIT);
    if (!piece->bytes) {
      FF_ASSERT(!is_hole(heap, below));
      holes++;
    } else {
      FF_ASSERT(block_at(heap, address_of(heap, piece)) == n);
      blocks++;
    }
    units += piece->units;
    used += piece->bytes;
  }
  for (uint32_t list = 0; list < LISTS; list++) {
    FF_ASSERT((heap->any[list / 64] >> list % 64 & 1) == (heap->holes[list] != NONE));
    for (int32_t n = heap->holes[list]; n != NONE; n = heap->pieces.items[n].next, listed++)
      FF_ASSERT(is_hole(heap, n) && list_of(heap->pieces.items[n].units) == list);
  }
  FF_ASSERT(units == heap->units && used == heap->used && holes == listed && blocks == heap->count);
}

uint64_t exec_heap_malloc(exec_heap *heap, uint64_t bytes) {
  if (!bytes || bytes > heap->bytes) return 0;
  uint64_t units = (bytes - 1) / UNIT + 1, address = 0;
  pthread_mutex_lock(&heap->mutex);
  int32_t n = hole_find(heap, units);
  if (n != NONE) {
    hole_remove(heap, n);
    piece_cut(heap, n, units);
    if (heap->count * 2 >= heap->capacity) table_grow(heap);
    heap_piece *block = &heap->pieces.items[n];
    block->bytes = bytes;
    heap->table[slot_of(heap, block->first)] = n + 1;
    heap->count++;
    heap->used += bytes;
    address = address_of(heap, block);
  }
  heap_check(heap);
  pthread_mutex_unlock(&heap->mutex);
  return address;
}

uint64_t exec_heap_block_bytes(exec_heap *heap, uint64_t address) {
  pthread_mutex_lock(&heap->mutex);
  int32_t n = block_at(heap, address);
  uint64_t bytes = n == NONE ? 0 : heap->pieces.items[n].bytes;
  pthread_mutex_unlock(&heap->mutex);
  return bytes;
}

static uint64_t distance(uint64_t start, uint64_t bytes, uint64_t address) {
  if (address < start) return start - address;
  return address < start + bytes ? 0 : address - start - bytes + 1;
}

uint64_t exec_heap_nearest(exec_heap *heap, uint64_t address, uint64_t *bytes) {
  uint64_t found = 0, least = UINT64_MAX;
  *bytes = 0;
  pthread_mutex_lock(&heap->mutex);
  for (size_t n = 0; n < heap->pieces.count; n++) {
    const heap_piece *block = &heap->pieces.items[n];
    if (!block->bytes) continue;
    uint64_t start = address_of(heap, block), its = distance(start, block->bytes, address);
    if (its > least || (its == least && start > found)) continue;
    found = start;
    least = its;
    *bytes = block->bytes;
  }
  pthread_mutex_unlock(&heap->mutex);
  return found;
}

bool exec_heap_release(exec_heap *heap, uint64_t address) {
  if (!address) return true;
  pthread_mutex_lock(&heap->mutex);
  int32_t n = block_at(heap, address);
  if (n != NONE) {
    heap_piece *block = &heap->pieces.items[n];
    slot_empty(heap, slot_of(heap, block->first));
    heap->used -= block->bytes;
    block->bytes = 0;
    if (is_hole(heap, block->above)) {
      hole_remove(heap, block->above);
      piece_join(heap, n);
    }
    if (is_hole(heap, block->below)) {
      n = block->below;
      hole_remove(heap, n);
      piece_join(heap, n);
    }
    hole_add(heap, n);
  }
  heap_check(heap);
  pthread_mutex_unlock(&heap->mutex);
  return n != NONE;
}

uint64_t exec_heap_used(exec_heap *heap) {
  pthread_mutex_lock(&heap->mutex);
  uint64_t used = heap->used;
  pthread_mutex_unlock(&heap->mutex);
  return used;
}
