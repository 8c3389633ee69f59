/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses and memory apart: reservations, and mappings of files in memory or of teams of devices into them; and
 * allocations that become a file's, so that other processes have them, too. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/check.h"
#include "base/text.h"
#include "exec/memory/multicast.h"
#include "exec/memory/space_private.h"

/* A tombstone is forgotten where the program asks for its place. */
static void forget_tombstones_in(exec_memory *memory, uint64_t start, uint64_t bytes) {
  for (uint32_t i = memory->tombstone_count; i-- > 0;) {
    const exec_span *span = memory->tombstone[(memory->tombstone_first + i) % TOMBSTONES];
    uint64_t at = space_range_start(memory, span);
    if (at < start + bytes && start < at + span->reserved) space_forget_tombstone(memory, i);
  }
}

static bool take_wanted(exec_memory *memory, uint64_t bytes, uint64_t alignment, uint64_t wanted, uint64_t *start) {
  *start = wanted - memory->arena.base;
  if (!wanted || wanted < memory->arena.base || *start >= EXEC_ARENA_BYTES || wanted % alignment) return false;
  forget_tombstones_in(memory, *start, bytes);
  return space_take_at(memory, *start, bytes);
}

ff_status exec_memory_reserve(exec_memory *memory, uint64_t bytes, uint64_t alignment, uint64_t wanted,
                              const char *name, const exec_allocation **reservation, ff_error *error) {
  if (alignment < LARGE_BYTES) alignment = LARGE_BYTES;
  if (!bytes || (alignment & (alignment - 1)))
    return ff_fail(error, FF_INVALID, "no reservation of %" PRIu64 " bytes, aligned to %" PRIu64, bytes, alignment);
  if (bytes > EXEC_ARENA_BYTES || alignment > EXEC_ARENA_BYTES)
    return ff_fail(error, FF_NO_MEMORY, "%" PRIu64 " bytes are more than the virtual GPU's address range", bytes);
  uint64_t reserved = round_up(bytes, LARGE_BYTES), start = 0;
  pthread_mutex_lock(&memory->lock);
  bool found = take_wanted(memory, reserved, alignment, wanted, &start) ||
               space_take_free(memory, reserved, alignment, &start) ||
               space_take_fresh(memory, reserved, alignment, &start);
  while (!found && memory->tombstone_count) {
    space_forget_tombstone(memory, 0);
    found = space_take_free(memory, reserved, alignment, &start);
  }
  if (found && !space_host_map(memory->arena.base + start, reserved, PROT_NONE)) {
    space_free_insert(memory, start, reserved);
    found = false;
  }
  if (found) {
    exec_span *span = space_new_span(memory);
    space_open_span(memory, span, memory->arena.base + start, bytes, reserved, EXEC_MEMORY_DEVICE, name);
    memory->live[EXEC_MEMORY_DEVICE] -= bytes; /* addresses are no memory */
    span->info.range = EXEC_RESERVED;
    span->readable = span->writable = 0;
    space_table_set(memory, start, reserved, span);
    *reservation = &span->info;
  }
  space_check_tiling(memory);
  pthread_mutex_unlock(&memory->lock);
  char text[32];
  return found ? FF_OK
               : ff_fail(error, FF_NO_MEMORY, "no room for %s in the virtual GPU's address range",
                         ff_format_bytes(bytes, text, sizeof text));
}

/* The reservation that has all of the range, with no mapping in it; NULL: there is none. */
static exec_span *unmapped(const exec_memory *memory, uint64_t address, uint64_t bytes) {
  exec_span *holder = exec_memory_span(memory, address);
  if (!holder || holder->info.freed || holder->info.range != EXEC_RESERVED) return NULL;
  if (bytes > holder->info.bytes - (address - holder->info.address)) return NULL;
  for (uint64_t at = address; at - address < bytes; at = (at / LARGE_BYTES + 1) * LARGE_BYTES)
    if (exec_memory_span(memory, at) != holder) return NULL;
  return exec_memory_span(memory, address + bytes - 1) == holder ? holder : NULL;
}

static exec_span *open_mapping(exec_memory *memory, exec_span *holder, uint64_t address, uint64_t bytes,
                               uint64_t handle, const char *name) {
  exec_span *span = space_new_span(memory);
  space_open_span(memory, span, address, bytes, bytes, EXEC_MEMORY_DEVICE, name);
  memory->live[EXEC_MEMORY_DEVICE] -= bytes;
  memory->next_id--; /* it has the reservation's number */
  span->info.id = holder->info.id;
  span->info.range = EXEC_MAPPED;
  span->info.memory = handle;
  span->holder = holder;
  span->readable = span->writable = 0;
  return span;
}

/* file -1: no memory of the host's lies there. */
static ff_status map_range(exec_memory *memory, uint64_t address, uint64_t bytes, int file, uint64_t offset,
                           uint64_t handle, const char *name, const exec_multicast *team,
                           const exec_allocation **mapping, ff_error *error) {
  if (!bytes || (address | bytes) % LARGE_BYTES)
    return ff_fail(error, FF_INVALID, "a mapping that is not of whole pages of 2 MiB");
  ff_status status = FF_OK;
  pthread_mutex_lock(&memory->lock);
  exec_span *holder = unmapped(memory, address, bytes);
  if (!holder) {
    status = ff_fail(error, FF_INVALID, "0x%" PRIx64 ": not reserved, or mapped already", address);
  } else if (file >= 0 && mmap((void *)address, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE,
                               file, (off_t)offset) == MAP_FAILED) {
    status = ff_fail(error, FF_NO_MEMORY, "cannot map %" PRIu64 " bytes: %s", bytes, strerror(errno));
  } else {
    /* a child would share it; on a GPU it could not touch it at all */
    if (file >= 0) madvise((void *)address, bytes, MADV_DONTFORK);
    exec_span *span = open_mapping(memory, holder, address, bytes, handle, name);
    if (team) exec_multicast_add(address, bytes, team);
    space_table_set(memory, address - memory->arena.base, bytes, span);
    *mapping = &span->info;
  }
  pthread_mutex_unlock(&memory->lock);
  return status;
}

ff_status exec_memory_map(exec_memory *memory, uint64_t address, uint64_t bytes, int file, uint64_t offset,
                          uint64_t handle, const char *name, const exec_allocation **mapping, ff_error *error) {
  return map_range(memory, address, bytes, file, offset, handle, name, NULL, mapping, error);
}

ff_status exec_memory_map_multicast(exec_memory *memory, uint64_t address, uint64_t bytes, const exec_multicast *team,
                                    uint64_t handle, const char *name, const exec_allocation **mapping,
                                    ff_error *error) {
  return map_range(memory, address, bytes, -1, 0, handle, name, team, mapping, error);
}

ff_status exec_memory_unmap(exec_memory *memory, uint64_t address, ff_error *error) {
  ff_status status = FF_OK;
  pthread_mutex_lock(&memory->lock);
  exec_span *span = exec_memory_span(memory, address);
  if (!span || span->info.range != EXEC_MAPPED || span->info.address != address) {
    status = ff_fail(error, FF_NOT_FOUND, "no mapping starts at 0x%" PRIx64, address);
  } else if (!space_host_map(address, span->reserved, PROT_NONE)) {
    status = ff_fail(error, FF_NO_MEMORY, "cannot unmap 0x%" PRIx64 ": %s", address, strerror(errno));
  } else {
    space_table_set(memory, address - memory->arena.base, span->reserved, span->holder);
    exec_multicast_remove(address);
    space_close_span(memory, span);
    span->info.bytes = 0;
    FF_PUSH(&memory->spare, span);
  }
  pthread_mutex_unlock(&memory->lock);
  return status;
}

/* ---- memory that other processes have, too ---- */

/* Pages that hold nothing stay holes in the file. */
static ff_status write_pages(uint64_t address, uint64_t bytes, int file, ff_error *error) {
  static const unsigned char zero[EXEC_PAGE_BYTES];
  for (uint64_t at = 0; at < bytes; at += EXEC_PAGE_BYTES) {
    const void *page = (const void *)(address + at);
    if (memcmp(page, zero, sizeof zero) == 0) continue;
    if (pwrite(file, page, sizeof zero, (off_t)at) != (ssize_t)sizeof zero)
      return ff_fail(error, FF_NO_MEMORY, "cannot share %" PRIu64 " bytes: %s", bytes, strerror(errno));
  }
  return FF_OK;
}

ff_status exec_memory_share(exec_memory *memory, const exec_allocation *allocation, int file, bool keep,
                            ff_error *error) {
  exec_span *span = (exec_span *)(uintptr_t)allocation; /* info is its first member */
  uint64_t address = allocation->address, bytes = round_up(allocation->bytes, EXEC_PAGE_BYTES);
  FF_ASSERT(allocation->range == EXEC_ALLOCATED && allocation->kind == EXEC_MEMORY_DEVICE && !allocation->freed);
  pthread_mutex_lock(&memory->lock);
  ff_status status = keep ? write_pages(address, bytes, file, error) : FF_OK;
  if (!status && mmap((void *)address, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, file,
                      0) == MAP_FAILED)
    status = ff_fail(error, FF_NO_MEMORY, "cannot share %" PRIu64 " bytes: %s", bytes, strerror(errno));
  if (!status) {
    madvise((void *)address, bytes, MADV_DONTFORK); /* as what exec_memory_map maps */
    span->shared = true;
  }
  pthread_mutex_unlock(&memory->lock);
  return status;
}
