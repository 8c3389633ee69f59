/* SPDX-License-Identifier: Apache-2.0 */
/* What address_space.c and the functions that read and write memory share: an allocation as a running warp sees it.
 *
 * An access to [a, a + n) is inside a span when a - address <= readable - n (and n <= readable), unsigned. Records
 * are freed with the exec_memory, not before, so an instruction may remember the last one that it used. */
#ifndef FF_EXEC_SPACE_H
#define FF_EXEC_SPACE_H

#include "exec/memory/address_space.h"

typedef struct exec_span {
  exec_allocation info;        /* first: &span->info is the public handle */
  uint64_t readable, writable; /* bytes that may be read, written: 0 when freed; writable is 0 for constants */
  /* bytes of its range in the arena, whole pages; those of them in front of the allocation */
  uint64_t reserved, front;
  struct exec_span *holder; /* a mapping's reservation */
  uint64_t canonical;       /* registered memory: its canonical address */
  bool shared;              /* its pages are a file's: exec_memory_share */
} exec_span;

/* The beginning of each exec_memory, for what is too hot for a call. */
typedef struct exec_arena {
  uint64_t base;
  /* the addresses that kernels use are canonical as they are: nothing was ever registered, and the arena is where it
   * should be */
  bool plain;
} exec_arena;
static inline const exec_arena *exec_memory_arena(const exec_memory *memory) {
  return (const exec_arena *)(const void *)memory;
}

/* The canonical address of a line (trace/stream.h), some byte of which is in an allocation; the line itself if none
 * is. */
uint64_t exec_memory_canonical_line(const exec_memory *memory, uint64_t line, uint32_t bytes);

/* The span (live or freed) that holds `address`, else NULL. No lock. */
exec_span *exec_memory_span(const exec_memory *memory, uint64_t address);
/* Kernels may not store to this allocation from now on. */
void exec_memory_protect(const exec_allocation *allocation);
/* The same of memory that PTX calls .const or .param: isspacep.const is true of it. */
void exec_memory_protect_constant(const exec_allocation *allocation);

/* Kernels may store to this .const variable: the host has its address, by which it is memory like any other. */
void exec_memory_unprotect(const exec_allocation *allocation);

/* Launches need not declare that they use this allocation. */
void exec_memory_exempt(const exec_allocation *allocation);

/* The heap of device malloc and free (heap.c): made when first needed, lives as long as the memory. */
typedef struct exec_heap exec_heap;
exec_heap **exec_memory_heap(exec_memory *memory);
void exec_heap_free(exec_heap *heap);

#endif
