/* SPDX-License-Identifier: Apache-2.0 */
/* The callback that shows memory of the program's own to kernels: see system_memory.h. It is asked for addresses
 * outside of the arena only, at which nothing is visible, so it costs an access nothing that finds its memory. */
#include "exec/memory/system_memory.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/mappings.h"

static bool (*shown)(uint64_t address);

void exec_system_memory_use(bool (*show)(uint64_t address)) { __atomic_store_n(&shown, show, __ATOMIC_RELEASE); }

exec_span *exec_system_memory_span(const exec_memory *memory, uint64_t address) {
  exec_span *span = exec_memory_span(memory, address);
  if ((span && !span->info.freed) || exec_memory_in_arena(memory, address)) return span;
  bool (*show)(uint64_t) = __atomic_load_n(&shown, __ATOMIC_ACQUIRE);
  return show && show(address) ? exec_memory_span(memory, address) : span;
}

bool exec_system_memory_describe(const exec_memory *memory, uint64_t address, ff_text *out) {
  if (exec_memory_in_arena(memory, address)) return false;
  ff_mappings mappings = ff_mappings_read();
  const ff_mapping *mapping = ff_mapping_at(&mappings, address);
  if (mapping) {
    const char *name = mapping->name, *slash = strrchr(name, '/');
    ff_text_add(out, "the host's own memory (");
    if (!name[0]) ff_text_add(out, "mapped, as by malloc");
    else if (!strcmp(name, "[heap]")) ff_text_add(out, "the heap of malloc");
    else if (!strcmp(name, "[stack]")) ff_text_add(out, "the stack");
    else ff_text_add(out, "of %s", slash ? slash + 1 : name);
    ff_text_add(out, ")");
  }
  free(mappings.items);
  return mapping != NULL;
}
