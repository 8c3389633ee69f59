/* SPDX-License-Identifier: Apache-2.0 */
/* The heap of device-side malloc and free (CUDA C++ Programming Guide, "Dynamic Global Memory Allocation").
 *
 * One allocation of the address space, handed out in blocks of whole multiples of 16 bytes, 16-byte aligned. Freed
 * blocks that lie side by side become one again.
 * Bookkeeping lives on the host side: a kernel that writes past its block cannot damage it. */
#ifndef FF_EXEC_HEAP_H
#define FF_EXEC_HEAP_H

#include "exec/memory/address_space.h"

typedef struct exec_heap exec_heap;

/* Takes `bytes` of device memory for the heap. The memory must outlive it. */
ff_status exec_heap_create(exec_memory *memory, uint64_t bytes, exec_heap **heap, ff_error *error);
void exec_heap_free(exec_heap *heap); /* gives the memory back */

/* The address of a block of at least `bytes`, or 0 when nowhere so much is free (or bytes is 0). Thread-safe. */
uint64_t exec_heap_malloc(exec_heap *heap, uint64_t bytes);
/* The live block that holds the address, or ends nearest below or starts nearest above it, and what was asked for of
 * it; 0: there is none. Thread-safe. */
uint64_t exec_heap_nearest(exec_heap *heap, uint64_t address, uint64_t *bytes);
/* What was asked for of the live block that starts at the address; 0: there is none. Thread-safe. */
uint64_t exec_heap_block_bytes(exec_heap *heap, uint64_t address);
/* false: `address` is not a live block (a double free, or no heap pointer). Address 0 is fine. Thread-safe. */
bool exec_heap_release(exec_heap *heap, uint64_t address);
/* Bytes in live blocks, as asked for (not rounded). */
uint64_t exec_heap_used(exec_heap *heap);

#endif
