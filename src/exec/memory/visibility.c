/* SPDX-License-Identifier: Apache-2.0 */
/* Taking allocations out of use and back (visibility.h), and what may not be stored to (space.h): by the bytes that a
 * span says may be read and written. */
#include "exec/memory/visibility.h"

#include <stddef.h>
#include <stdio.h>

#include "exec/memory/multicast.h"
#include "exec/memory/space.h"

static void open_to(const exec_allocation *allocation, uint64_t bytes) {
  exec_span *span = (exec_span *)(uintptr_t)allocation; /* info is its first member */
  __atomic_store_n(&span->readable, bytes, __ATOMIC_RELEASE);
  __atomic_store_n(&span->writable, allocation->read_only ? 0 : bytes, __ATOMIC_RELEASE);
}

void exec_memory_park(const exec_allocation *allocation, bool parked) {
  ((exec_span *)(uintptr_t)allocation)->info.freed = parked;
  open_to(allocation, parked ? 0 : allocation->bytes);
}

void exec_memory_name(const exec_allocation *allocation, const char *name) {
  exec_allocation *info = &((exec_span *)(uintptr_t)allocation)->info;
  snprintf(info->name, sizeof info->name, "%s", name);
}

static exec_why_closed *why;

void exec_memory_explain(exec_why_closed *explain) { why = explain; }
const char *exec_memory_why_closed(const exec_allocation *allocation) { return why ? why(allocation) : NULL; }

void exec_memory_open(const exec_allocation *allocation, bool read, bool write) {
  exec_span *span = (exec_span *)(uintptr_t)allocation;
  if (allocation->freed) return;
  /* multicast memory is closed to all but multimem instructions */
  if (allocation->range == EXEC_MAPPED && exec_multicast_open(allocation->address, read, write)) return;
  __atomic_store_n(&span->readable, read ? allocation->bytes : 0, __ATOMIC_RELEASE);
  __atomic_store_n(&span->writable, write && !allocation->read_only ? allocation->bytes : 0, __ATOMIC_RELEASE);
}

void exec_memory_protect(const exec_allocation *allocation) {
  exec_span *span = (exec_span *)(uintptr_t)allocation; /* info is its first member */
  span->info.read_only = true;
  __atomic_store_n(&span->writable, 0, __ATOMIC_RELEASE);
}

void exec_memory_protect_constant(const exec_allocation *allocation) {
  ((exec_span *)(uintptr_t)allocation)->info.constant = true;
  exec_memory_protect(allocation);
}

void exec_memory_unprotect(const exec_allocation *allocation) {
  exec_span *span = (exec_span *)(uintptr_t)allocation;
  span->info.read_only = false;
  __atomic_store_n(&span->writable, span->readable, __ATOMIC_RELEASE);
}

void exec_memory_exempt(const exec_allocation *allocation) { ((exec_span *)(uintptr_t)allocation)->info.exempt = true; }

const exec_allocation *exec_memory_holder(const exec_allocation *allocation) {
  const exec_span *span = (const exec_span *)allocation;
  return span->holder ? &span->holder->info : allocation;
}

bool exec_memory_may(const exec_allocation *allocation, bool write) {
  const exec_span *span = (const exec_span *)allocation;
  return write ? span->writable != 0 : span->readable != 0;
}
