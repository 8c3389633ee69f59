/* SPDX-License-Identifier: Apache-2.0 */
/* Device malloc: segregated free lists of powers of two over one bump-allocated range.
 *
 *   every block of class c is 16 << c bytes, starts at a multiple of 16, and is live or free
 *   live + free blocks + `left` == the bytes of the heap                       (heap_check, at the deep level)
 *
 * Where allocations have padding (exec/memory/address_space.h) blocks have it too, in front of and behind each; `left`
 * does not count it, so that the heap is full when it is full without. The range is as large as that may need, or,
 * where the arena has no room for it, the padding is left out.
 *
 * blocks[] is a hash of all blocks that were handed out, for free() to look up what it is given. */
#include "exec/memory/heap.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/memory.h"
#include "exec/memory/space.h"

enum { SMALLEST = 16, CLASSES = 40 };

typedef struct heap_block {
  uint64_t address; /* 0: empty slot */
  uint64_t bytes;   /* asked for; 0: free */
  uint32_t size_class;
} heap_block;

struct exec_heap {
  pthread_mutex_t mutex;
  exec_memory *memory;
  uint64_t base, next, bytes, left, used;
  uint64_t padding;               /* a multiple of 16 */
  FF_VEC(uint64_t) free[CLASSES]; /* addresses */
  heap_block *blocks;             /* open addressing */
  uint64_t count, capacity;
};

ff_status exec_heap_create(exec_memory *memory, uint64_t bytes, exec_heap **out, ff_error *error) {
  const exec_allocation *allocation;
  uint64_t padding = (exec_memory_padding(memory) + SMALLEST - 1) / SMALLEST * SMALLEST, padded;
  bool fits = !__builtin_mul_overflow(bytes / SMALLEST + 1, 2 * padding, &padded) &&
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
  heap->base = heap->next = allocation->address;
  heap->bytes = heap->left = bytes;
  heap->padding = padding;
  *out = heap;
  return FF_OK;
}

void exec_heap_free(exec_heap *heap) {
  if (!heap) return;
  exec_memory_release(heap->memory, heap->base, NULL);
  for (int c = 0; c < CLASSES; c++) free(heap->free[c].items);
  free(heap->blocks);
  pthread_mutex_destroy(&heap->mutex);
  free(heap);
}

static uint32_t class_of(uint64_t bytes) { return bytes <= SMALLEST ? 0 : (uint32_t)(60 - __builtin_clzll(bytes - 1)); }

static heap_block *slot_of(heap_block *blocks, uint64_t capacity, uint64_t address) {
  uint64_t at = (address / SMALLEST * UINT64_C(0x9e3779b97f4a7c15)) >> 20 & (capacity - 1);
  while (blocks[at].address && blocks[at].address != address) at = (at + 1) & (capacity - 1);
  return &blocks[at];
}

static void blocks_grow(exec_heap *heap) {
  uint64_t capacity = heap->capacity ? heap->capacity * 2 : 64;
  heap_block *blocks = ff_alloc(capacity * sizeof *blocks);
  for (uint64_t i = 0; i < heap->capacity; i++)
    if (heap->blocks[i].address) *slot_of(blocks, capacity, heap->blocks[i].address) = heap->blocks[i];
  free(heap->blocks);
  heap->blocks = blocks;
  heap->capacity = capacity;
}

/* A block of the class that was freed before, or a new one; 0: the heap is full. */
static uint64_t take_block(exec_heap *heap, uint32_t size_class) {
  if (heap->free[size_class].count) return heap->free[size_class].items[--heap->free[size_class].count];
  uint64_t bytes = (uint64_t)SMALLEST << size_class;
  if (bytes > heap->left) return 0;
  uint64_t address = heap->next + heap->padding;
  heap->next = address + bytes + heap->padding;
  heap->left -= bytes;
  return address;
}

enum { CHECK_EVERY = 64 };

/* At one change of many, with the lock. */
static void heap_check(const exec_heap *heap) {
  static _Atomic uint32_t changes;
  if (ff_check_level < 2 || ++changes % CHECK_EVERY) return;
  uint64_t blocks = 0, used = 0, free_blocks = 0, listed = 0, count = 0;
  for (uint64_t i = 0; i < heap->capacity; i++) {
    const heap_block *block = &heap->blocks[i];
    uint64_t room = (uint64_t)SMALLEST << block->size_class;
    if (!block->address) continue;
    FF_ASSERT(block->address % SMALLEST == 0 && block->bytes <= room);
    FF_ASSERT(block->address >= heap->base && block->address + room <= heap->next);
    count++;
    blocks += room;
    used += block->bytes;
    free_blocks += !block->bytes;
  }
  for (uint32_t c = 0; c < CLASSES; c++) listed += heap->free[c].count;
  FF_ASSERT(blocks + heap->left == heap->bytes && used == heap->used);
  FF_ASSERT(free_blocks == listed && count == heap->count);
}

uint64_t exec_heap_malloc(exec_heap *heap, uint64_t bytes) {
  if (!bytes || bytes > heap->bytes) return 0;
  uint32_t size_class = class_of(bytes);
  pthread_mutex_lock(&heap->mutex);
  if (heap->count * 2 >= heap->capacity) blocks_grow(heap);
  uint64_t address = take_block(heap, size_class);
  if (address) {
    heap_block *block = slot_of(heap->blocks, heap->capacity, address);
    if (!block->address) heap->count++;
    FF_ASSERT(!block->bytes);
    *block = (heap_block){address, bytes, size_class};
    heap->used += bytes;
  }
  heap_check(heap);
  pthread_mutex_unlock(&heap->mutex);
  return address;
}

uint64_t exec_heap_block_bytes(exec_heap *heap, uint64_t address) {
  pthread_mutex_lock(&heap->mutex);
  const heap_block *block = heap->capacity && address ? slot_of(heap->blocks, heap->capacity, address) : NULL;
  uint64_t bytes = block && block->address ? block->bytes : 0;
  pthread_mutex_unlock(&heap->mutex);
  return bytes;
}

static uint64_t distance(const heap_block *block, uint64_t address) {
  if (address < block->address) return block->address - address;
  uint64_t end = block->address + block->bytes;
  return address < end ? 0 : address - end + 1;
}

uint64_t exec_heap_nearest(exec_heap *heap, uint64_t address, uint64_t *bytes) {
  const heap_block *nearest = NULL;
  pthread_mutex_lock(&heap->mutex);
  for (uint64_t i = 0; i < heap->capacity; i++) {
    const heap_block *block = &heap->blocks[i];
    if (!block->bytes) continue;
    uint64_t near = nearest ? distance(nearest, address) : UINT64_MAX, its = distance(block, address);
    if (its < near || (its == near && block->address < nearest->address)) nearest = block;
  }
  uint64_t found = nearest ? nearest->address : 0;
  *bytes = nearest ? nearest->bytes : 0;
  pthread_mutex_unlock(&heap->mutex);
  return found;
}

bool exec_heap_release(exec_heap *heap, uint64_t address) {
  if (!address) return true;
  pthread_mutex_lock(&heap->mutex);
  heap_block *block = heap->capacity ? slot_of(heap->blocks, heap->capacity, address) : NULL;
  bool live = block && block->address && block->bytes;
  if (live) {
    heap->used -= block->bytes;
    block->bytes = 0;
    FF_PUSH(&heap->free[block->size_class], address);
  }
  heap_check(heap);
  pthread_mutex_unlock(&heap->mutex);
  return live;
}

uint64_t exec_heap_used(exec_heap *heap) {
  pthread_mutex_lock(&heap->mutex);
  uint64_t used = heap->used;
  pthread_mutex_unlock(&heap->mutex);
  return used;
}
