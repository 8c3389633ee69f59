/* SPDX-License-Identifier: Apache-2.0 */
/* Taking allocations out of use and back (visibility.h): by the bytes that a record says may be read and written. */
#include "exec/memory/visibility.h"

#include <stddef.h>

#include "exec/memory/space.h"

static void open_to(const exec_allocation *allocation, uint64_t bytes) {
  exec_record *record = (exec_record *)(uintptr_t)allocation; /* info is its first member */
  __atomic_store_n(&record->readable, bytes, __ATOMIC_RELEASE);
  __atomic_store_n(&record->writable, allocation->read_only ? 0 : bytes, __ATOMIC_RELEASE);
}

void exec_memory_park(const exec_allocation *allocation, bool parked) {
  ((exec_record *)(uintptr_t)allocation)->info.freed = parked;
  open_to(allocation, parked ? 0 : allocation->bytes);
}

static exec_why_closed *why;

void exec_memory_explain(exec_why_closed *explain) { why = explain; }
const char *exec_memory_why_closed(const exec_allocation *allocation) { return why ? why(allocation) : NULL; }

void exec_memory_open(const exec_allocation *allocation, bool read, bool write) {
  exec_record *record = (exec_record *)(uintptr_t)allocation;
  if (allocation->freed) return;
  __atomic_store_n(&record->readable, read ? allocation->bytes : 0, __ATOMIC_RELEASE);
  __atomic_store_n(&record->writable, write && !allocation->read_only ? allocation->bytes : 0, __ATOMIC_RELEASE);
}
