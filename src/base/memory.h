/* SPDX-License-Identifier: Apache-2.0 */
/* Allocation that cannot fail quietly, an arena, and growable arrays.
 *
 * ff_alloc and friends print a message and exit(70) when the host is out of memory: no caller could go on, and a
 * simulator that ran out of memory has nothing half-written (results are written aside and renamed). Sizes that come
 * from input are checked against a limit *before* they get here. */
#ifndef FF_BASE_MEMORY_H
#define FF_BASE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

void *ff_alloc(size_t bytes);                           /* zeroed; owner frees with free() */
void *ff_alloc_aligned(size_t alignment, size_t bytes); /* zeroed; power-of-two alignment; free() */
void *ff_realloc(void *old, size_t bytes);              /* new tail is not zeroed */
char *ff_strdup(const char *text);
/* Whole pages straight from the system, zeroed, 2 MiB aligned, in huge pages where the host has them: for tables that
 * are read all over (a miss in the host's TLB costs more than one in its caches). Takes memory only where touched. */
void *ff_map_huge(size_t bytes);
void ff_unmap_huge(void *memory, size_t bytes); /* the same bytes */

/* An arena: everything allocated from it lives until ff_arena_free. Zeroed, 16-byte aligned. */
typedef struct ff_arena {
  struct ff_arena_block *blocks;
} ff_arena;
void *ff_arena_alloc(ff_arena *arena, size_t bytes);
char *ff_arena_strndup(ff_arena *arena, const char *text, size_t length);
void ff_arena_free(ff_arena *arena);

/* A growable array of T: `FF_VEC(int) numbers = {0}; FF_PUSH(&numbers, 3); numbers.items[0]; free(numbers.items);` */
#define FF_VEC(T)           \
  struct {                  \
    T *items;               \
    size_t count, capacity; \
  }
#define FF_PUSH(vec, value)                                                                             \
  do {                                                                                                  \
    if (__builtin_expect((vec)->count >= (vec)->capacity, 0))                                           \
      ff_vec_reserve((void **)&(vec)->items, &(vec)->capacity, (vec)->count + 1, sizeof *(vec)->items); \
    (vec)->items[(vec)->count++] = (value);                                                             \
  } while (0)
/* Makes room for `wanted` items; the storage moves. */
void ff_vec_reserve(void **items, size_t *capacity, size_t wanted, size_t item_size);

#endif
