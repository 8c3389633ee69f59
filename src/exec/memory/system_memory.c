/* SPDX-License-Identifier: Apache-2.0 */
/* The callback that shows memory of the program's own to kernels: see system_memory.h. It is asked for addresses
 * outside of the arena only, at which nothing is visible, so it costs an access nothing that finds its memory. */
#include "exec/memory/system_memory.h"

#include <stddef.h>

static bool (*shown)(uint64_t address);

void exec_system_memory_use(bool (*show)(uint64_t address)) { __atomic_store_n(&shown, show, __ATOMIC_RELEASE); }

exec_span *exec_system_memory_span(const exec_memory *memory, uint64_t address) {
  exec_span *span = exec_memory_span(memory, address);
  if ((span && !span->info.freed) || exec_memory_in_arena(memory, address)) return span;
  bool (*show)(uint64_t) = __atomic_load_n(&shown, __ATOMIC_ACQUIRE);
  return show && show(address) ? exec_memory_span(memory, address) : span;
}
