/* SPDX-License-Identifier: Apache-2.0 */
/* Giving pages back instead of writing zeros (zero.h): only of private memory that nothing but kernels and copies
 * reads, not of what the host or other processes have mapped, or watch. */
#include "exec/memory/zero.h"

#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

#include "exec/memory/space.h"

#define DROP_BYTES (UINT64_C(64) << 20) /* less is written as fast as new pages come from the host */

static bool may_drop(const exec_memory *memory, uint64_t address) {
  const exec_span *span = exec_memory_span(memory, address);
  return span && span->info.kind == EXEC_MEMORY_DEVICE && span->info.range == EXEC_ALLOCATED && !span->shared;
}

void exec_memory_zero(const exec_memory *memory, uint64_t address, uint64_t bytes) {
  uint64_t first = (address + EXEC_PAGE_BYTES - 1) & -(uint64_t)EXEC_PAGE_BYTES;
  uint64_t end = (address + bytes) & -(uint64_t)EXEC_PAGE_BYTES;
  if (bytes < DROP_BYTES || !may_drop(memory, address) || madvise((void *)first, end - first, MADV_DONTNEED)) {
    memset((void *)address, 0, bytes);
    return;
  }
  memset((void *)address, 0, first - address);
  memset((void *)end, 0, address + bytes - end);
}
