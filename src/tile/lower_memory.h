/* SPDX-License-Identifier: Apache-2.0 */
/* What lower_memory.c gives to lower_views.c: orders, single loads and stores, who makes them. */
#ifndef FF_TILE_LOWER_MEMORY_H
#define FF_TILE_LOWER_MEMORY_H

#include "tile/lower.h"

/* The largest power of two that divides it; of 0, which all do, a large one. */
uint64_t memory_power_of(int64_t value);

/* Before an operation: what its token may order was done by other threads, and what it releases. After it: what it
 * acquires, and that memory was read or written. */
void memory_before(lower *l, const tile_op *op, bool writes);
void memory_after(lower *l, const tile_op *op, bool writes);
void memory_note_copies(lower *l, const tile_layout *layout); /* of a load: threads may have read for themselves */
const char *memory_scope_text(uint32_t scope);                /* "gpu" */
/* ".relaxed.gpu" and the like, "" if weak, in `text`. */
const char *memory_order_text(char *text, size_t size, uint32_t ordering, uint32_t scope);
/* "add.f32" and the like, in `text`; NULL: there is no such atomic operation. */
const char *memory_rmw_text(lower *l, const tile_op *op, tile_scalar scalar, char *text, size_t size);

/* One load or store of n registers, if the predicate (NO_REGISTER: always) holds; i1 is a byte in memory, and
 * two elements of 4 bits are one (n is 2). */
void memory_load(lower *l, const char *order, tile_scalar scalar, const uint32_t *to, uint32_t n, const char *address,
                 uint32_t predicate);
void memory_store(lower *l, const char *order, tile_scalar scalar, const uint32_t *from, uint32_t n,
                  const char *address, uint32_t predicate);

uint32_t memory_owner(lower *l, const tile_layout *layout);      /* a predicate, or NO_REGISTER: all are owners */
void memory_share(lower *l, lowered *value, tile_scalar scalar); /* what owners have, to all */
/* Whether a load's copies have to be one thread's, as the memory may change meanwhile. */
bool memory_must_share(const lower *l, const tile_op *op, const tile_layout *layout);

#endif
