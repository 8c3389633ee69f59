/* SPDX-License-Identifier: Apache-2.0 */
/* Taking allocations out of use and back (visibility.h): by the bytes that a span says may be read and written. */
#include "exec/memory/visibility.h"

#include <stddef.h>

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
