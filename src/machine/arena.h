/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of the machine's tables. Everything that is read all over while a simulation runs lies together, in huge
 * pages where the host has them. */
#ifndef FF_MACHINE_ARENA_H
#define FF_MACHINE_ARENA_H

#include <stddef.h>

typedef struct arena {
  struct arena_slab {
    void *memory;
    size_t bytes;
  } * slabs;
  size_t slab_count, used; /* used: bytes of the last slab */
} arena;
void *arena_alloc(arena *a, size_t bytes); /* zeroed, on a cache line of the host; lives until arena_free */
void arena_free(arena *a);

#endif
