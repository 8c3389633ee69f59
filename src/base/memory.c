/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* MADV_HUGEPAGE */
#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { SMALL = 1024 };

static _Noreturn void out_of_memory(size_t bytes) {
  fprintf(stderr, "farfault: the host is out of memory (%zu bytes wanted)\n", bytes);
  exit(70);
}

/* What is small is cleared here: calloc asks an arena each time, malloc only the thread's own cache. */
void *ff_alloc(size_t bytes) {
  if (bytes && bytes <= SMALL) {
    void *small = malloc(bytes);
    if (!small) out_of_memory(bytes);
    __asm__("" : "+r"(small)); /* or the compiler makes the two a call of calloc */
    return memset(small, 0, bytes);
  }
  void *memory = calloc(1, bytes ? bytes : 1);
  if (!memory) out_of_memory(bytes);
  return memory;
}

void *ff_alloc_aligned(size_t alignment, size_t bytes) {
  size_t rounded = (bytes + alignment - 1) & ~(alignment - 1);
  void *memory = aligned_alloc(alignment, rounded ? rounded : alignment);
  if (!memory) out_of_memory(bytes);
  memset(memory, 0, rounded ? rounded : alignment);
  return memory;
}

void *ff_realloc(void *old, size_t bytes) {
  void *memory = realloc(old, bytes ? bytes : 1);
  if (!memory) out_of_memory(bytes);
  return memory;
}

char *ff_strdup(const char *text) {
  size_t length = strlen(text) + 1;
  return memcpy(ff_alloc(length), text, length);
}

#define HUGE_PAGE ((size_t)2 << 20)

void *ff_map_huge(size_t bytes) {
  size_t rounded = (bytes + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);
  char *whole = rounded < bytes
                    ? MAP_FAILED
                    : mmap(NULL, rounded + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (whole == MAP_FAILED) out_of_memory(bytes);
  char *memory = (char *)(((uintptr_t)whole + HUGE_PAGE - 1) & ~(uintptr_t)(HUGE_PAGE - 1));
  size_t before = (size_t)(memory - whole), behind = HUGE_PAGE - before;
  if (before) munmap(whole, before);
  if (behind) munmap(memory + rounded, behind);
  madvise(memory, rounded, MADV_HUGEPAGE); /* only a hint: without it the pages are small */
  return memory;
}

void ff_unmap_huge(void *memory, size_t bytes) {
  if (memory) munmap(memory, (bytes + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1));
}

struct ff_arena_block {
  struct ff_arena_block *next;
  size_t used, size;
  _Alignas(16) unsigned char data[];
};

enum { FIRST_BLOCK = 1024, LARGEST_BLOCK = 65536 }; /* each twice as large as the one before: many arenas stay small */

static size_t next_block(const struct ff_arena_block *last) {
  size_t size = last ? 2 * last->size : FIRST_BLOCK;
  return size < LARGEST_BLOCK ? size : LARGEST_BLOCK;
}

void *ff_arena_alloc(ff_arena *arena, size_t bytes) {
  bytes = (bytes + 15) & ~(size_t)15;
  struct ff_arena_block *block = arena->blocks;
  if (!block || block->size - block->used < bytes) {
    size_t size = next_block(block);
    if (size < bytes) size = bytes;
    block = ff_alloc(sizeof *block + size);
    block->size = size;
    block->next = arena->blocks;
    arena->blocks = block;
  }
  void *memory = block->data + block->used;
  block->used += bytes;
  return memory;
}

char *ff_arena_strndup(ff_arena *arena, const char *text, size_t length) {
  char *copy = ff_arena_alloc(arena, length + 1);
  memcpy(copy, text, length);
  return copy;
}

void ff_arena_free(ff_arena *arena) {
  while (arena->blocks) {
    struct ff_arena_block *next = arena->blocks->next;
    free(arena->blocks);
    arena->blocks = next;
  }
}

void ff_vec_reserve(void **items, size_t *capacity, size_t wanted, size_t item_size) {
  if (wanted <= *capacity) return;
  size_t grown = *capacity ? *capacity * 2 : 8;
  if (grown < wanted) grown = wanted;
  *items = ff_realloc(*items, grown * item_size);
  *capacity = grown;
}
