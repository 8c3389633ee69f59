/* SPDX-License-Identifier: Apache-2.0 */
/* The state of an address space (address_space.h), for the files that keep it: address_space.c, which has its ranges,
 * its table and what always holds, mapping.c and host_memory.c. All space_* functions expect the lock. */
#ifndef FF_EXEC_SPACE_PRIVATE_H
#define FF_EXEC_SPACE_PRIVATE_H

#include <pthread.h>

#include "base/memory.h"
#include "exec/memory/space.h"
#include "exec/texture/texture_table.h"

#define LARGE_BYTES (UINT64_C(2) << 20)
#define TOMBSTONES 4096u
#define REGISTERED_LIMIT 4096u

typedef struct free_range {
  uint64_t start, bytes;
} free_range;

struct exec_memory {
  exec_arena arena; /* first: exec_memory_arena */
  pthread_mutex_t lock;
  uintptr_t *top; /* an entry for each LARGE_BYTES of the arena */
  /* offsets into the arena: first byte that was not used yet, first byte that is not writable */
  uint64_t high, writable;
  FF_VEC(free_range) free; /* sorted; neighbours are one */
  FF_VEC(exec_span *) spans;
  FF_VEC(exec_span *) spare;
  exec_span *tombstone[TOMBSTONES];
  uint32_t tombstone_first, tombstone_count;
  exec_span *registered[REGISTERED_LIMIT];
  uint32_t registered_count; /* slots in use or once in use; read without the lock */
  uint64_t live[EXEC_MEMORY_SYSTEM + 1];
  uint32_t next_id;
  uint64_t padding;     /* bytes on both sides of each allocation, at least */
  uint32_t large_pages; /* allocations that were asked for in large pages */
  exec_heap *heap;
  exec_textures *textures;
};

static inline uint64_t round_up(uint64_t value, uint64_t alignment) {
  return (value + alignment - 1) & ~(alignment - 1);
}

/* Enters `span` (or NULL) for all pages of [start, start + bytes), both multiples of a page, offsets into the arena. */
void space_table_set(exec_memory *memory, uint64_t start, uint64_t bytes, exec_span *span);
/* Free ranges, as offsets into the arena: one is given back; one is taken, the lowest that there is, behind all that
 * were used so far, or there (false: there is no such room). */
void space_free_insert(exec_memory *memory, uint64_t start, uint64_t bytes);
bool space_take_free(exec_memory *memory, uint64_t bytes, uint64_t alignment, uint64_t *start);
bool space_take_fresh(exec_memory *memory, uint64_t bytes, uint64_t alignment, uint64_t *start);
bool space_take_at(exec_memory *memory, uint64_t start, uint64_t bytes);
/* Of its range, as an offset into the arena. */
uint64_t space_range_start(const exec_memory *memory, const exec_span *span);
/* The range and the span of the tombstone `number`, counted from the oldest, may be used again. */
void space_forget_tombstone(exec_memory *memory, uint32_t number);
exec_span *space_new_span(exec_memory *memory); /* with old contents: space_open_span fills it */
void space_open_span(exec_memory *memory, exec_span *span, uint64_t address, uint64_t bytes, uint64_t reserved,
                     exec_memory_kind kind, const char *name);
void space_close_span(exec_memory *memory, exec_span *span); /* it is freed; lookups still find it */
/* Pages of the arena that are empty from now on, with that protection. false: errno says why. */
bool space_host_map(uint64_t address, uint64_t bytes, int protection);
void space_check_tiling(const exec_memory *memory); /* asserts the invariants, at the deep level */

#endif
