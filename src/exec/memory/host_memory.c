/* SPDX-License-Identifier: Apache-2.0 */
/* The host's own memory in the address space: registered, or shown because a kernel touches it; and the addresses that
 * the access stream has for it, and for all other memory. */
#include <inttypes.h>
#include <string.h>

#include "base/check.h"
#include "exec/memory/space_private.h"

static bool overlap(uint64_t a, uint64_t a_bytes, uint64_t b, uint64_t b_bytes) {
  return a < b + b_bytes && b < a + a_bytes;
}

/* The live registered memory that has some byte of the range; NULL: there is none. */
static const exec_span *registered_in(const exec_memory *memory, uint64_t address, uint64_t bytes) {
  uint32_t count = __atomic_load_n(&memory->registered_count, __ATOMIC_ACQUIRE);
  for (uint32_t i = 0; i < count; i++) {
    const exec_span *span = __atomic_load_n(&memory->registered[i], __ATOMIC_ACQUIRE);
    if (span && span->readable && overlap(address, bytes, span->info.address, span->info.bytes)) return span;
  }
  return NULL;
}

/* The first canonical addresses that are free. Each turn of the outer loop but the last gets past a range. */
static uint64_t canonical_place(const exec_memory *memory, uint64_t address, uint64_t bytes) {
  uint64_t at = EXEC_REGISTERED_CANONICAL, in_page = address % EXEC_PAGE_BYTES,
           units = round_up(in_page + bytes, LARGE_BYTES);
  for (bool moved = true; moved;) {
    moved = false;
    for (uint32_t i = 0; i < memory->registered_count; i++) {
      const exec_span *span = memory->registered[i];
      if (!span || !span->readable ||
          !overlap(at, units, span->canonical / LARGE_BYTES * LARGE_BYTES,
                   span->canonical % LARGE_BYTES + span->info.bytes))
        continue;
      at = round_up(span->canonical + span->info.bytes, LARGE_BYTES);
      moved = true;
    }
  }
  return at + in_page;
}

static bool is_ours(const exec_memory *memory, uint64_t address, uint64_t bytes) {
  return overlap(address, bytes, memory->arena.base, EXEC_ARENA_BYTES) ||
         overlap(address, bytes, EXEC_SHARED_WINDOW, EXEC_LOCAL_WINDOW + EXEC_WINDOW_BYTES - EXEC_SHARED_WINDOW);
}

/* Enters host memory that is not visible yet. With the lock. */
static ff_status add_host(exec_memory *memory, uint64_t address, uint64_t bytes, exec_memory_kind kind,
                          const char *name, const exec_allocation **allocation, ff_error *error) {
  uint32_t slot = 0;
  while (slot < memory->registered_count && memory->registered[slot] && !memory->registered[slot]->info.freed) slot++;
  if (slot == REGISTERED_LIMIT)
    return ff_fail(error, FF_LIMIT, "more than %u registered host ranges", REGISTERED_LIMIT);
  exec_span *span = space_new_span(memory);
  space_open_span(memory, span, address, bytes, bytes, kind, name);
  span->canonical = canonical_place(memory, address, bytes);
  __atomic_store_n(&memory->arena.plain, false, __ATOMIC_RELEASE);
  if (slot < memory->registered_count) FF_PUSH(&memory->spare, memory->registered[slot]);
  __atomic_store_n(&memory->registered[slot], span, __ATOMIC_RELEASE);
  if (slot == memory->registered_count) __atomic_store_n(&memory->registered_count, slot + 1, __ATOMIC_RELEASE);
  *allocation = &span->info;
  return FF_OK;
}

ff_status exec_memory_register(exec_memory *memory, void *host, uint64_t bytes, const exec_allocation **allocation,
                               ff_error *error) {
  uint64_t address = (uint64_t)(uintptr_t)host;
  if (!host || !bytes || address + bytes < address) return ff_fail(error, FF_INVALID, "no host memory to register");
  if (is_ours(memory, address, bytes))
    return ff_fail(error, FF_INVALID, "host memory at %p belongs to the virtual GPU already", host);
  pthread_mutex_lock(&memory->lock);
  ff_status status =
      registered_in(memory, address, bytes)
          ? ff_fail(error, FF_INVALID, "host memory at %p is registered already", host)
          : add_host(memory, address, bytes, EXEC_MEMORY_REGISTERED, "registered host memory", allocation, error);
  pthread_mutex_unlock(&memory->lock);
  return status;
}

ff_status exec_memory_show(exec_memory *memory, uint64_t address, uint64_t begin, uint64_t end, bool writable,
                           const char *name, const exec_allocation **allocation, ff_error *error) {
  FF_ASSERT(begin <= address && address < end);
  pthread_mutex_lock(&memory->lock);
  for (uint32_t i = 0; i < memory->registered_count; i++) {
    const exec_span *span = memory->registered[i];
    if (!span || !span->readable || !overlap(begin, end - begin, span->info.address, span->info.bytes)) continue;
    if (span->info.address > address) end = span->info.address;
    else begin = span->info.address + span->info.bytes;
  }
  ff_status status = begin > address || is_ours(memory, begin, end - begin)
                         ? ff_fail(error, FF_INVALID, "host memory at 0x%" PRIx64 " is visible already", address)
                         : add_host(memory, begin, end - begin, EXEC_MEMORY_SYSTEM, name, allocation, error);
  if (!status && !writable) exec_memory_protect(*allocation);
  pthread_mutex_unlock(&memory->lock);
  return status;
}

ff_status exec_memory_unregister(exec_memory *memory, void *host, ff_error *error) {
  ff_status status = ff_fail(NULL, FF_NOT_FOUND, "-");
  pthread_mutex_lock(&memory->lock);
  for (uint32_t i = 0; i < memory->registered_count; i++) {
    exec_span *span = memory->registered[i];
    if (!span || span->info.freed || span->info.address != (uint64_t)(uintptr_t)host) continue;
    space_close_span(memory, span);
    status = FF_OK;
  }
  pthread_mutex_unlock(&memory->lock);
  return status == FF_OK ? FF_OK : ff_fail(error, FF_NOT_FOUND, "no registered host memory starts at %p", host);
}

/* ---- canonical addresses ---- */

uint64_t exec_memory_canonical(const exec_memory *memory, uint64_t address) {
  if (exec_memory_in_arena(memory, address)) return address - memory->arena.base + EXEC_ARENA_CANONICAL;
  const exec_span *span = registered_in(memory, address, 1);
  return span ? address - span->info.address + span->canonical : 0;
}

uint64_t exec_memory_canonical_line(const exec_memory *memory, uint64_t line, uint32_t bytes) {
  if (exec_memory_in_arena(memory, line)) return line - memory->arena.base + EXEC_ARENA_CANONICAL;
  const exec_span *span = registered_in(memory, line, bytes);
  return span ? line - span->info.address + span->canonical : line;
}
