/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of a simulation's tables: slabs of huge pages, handed out from front to back, given back all at once. */
#include "machine/arena.h"

#include <stdlib.h>

#include "base/memory.h"

enum { ALIGNMENT = 64 };
#define SLAB_BYTES ((size_t)2 << 20)

void *arena_alloc(arena *a, size_t bytes) {
  bytes = (bytes + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
  struct arena_slab *last = a->slab_count ? &a->slabs[a->slab_count - 1] : NULL;
  if (!last || last->bytes - a->used < bytes) {
    size_t size = (bytes + SLAB_BYTES - 1) / SLAB_BYTES * SLAB_BYTES;
    a->slabs = ff_realloc(a->slabs, (a->slab_count + 1) * sizeof *a->slabs);
    last = &a->slabs[a->slab_count++];
    *last = (struct arena_slab){ff_map_huge(size), size};
    a->used = 0;
  }
  void *memory = (char *)last->memory + a->used;
  a->used += bytes;
  return memory;
}

void arena_free(arena *a) {
  for (size_t i = 0; i < a->slab_count; i++) ff_unmap_huge(a->slabs[i].memory, a->slabs[i].bytes);
  free(a->slabs);
  *a = (arena){0};
}
