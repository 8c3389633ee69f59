/* SPDX-License-Identifier: Apache-2.0 */
/* The program's own memory - malloc's, stacks, variables - where the machine lets kernels touch it (CUDA C++
 * Programming Guide, "Unified Memory on devices with full CUDA Unified Memory support").
 *
 * It is shown to kernels piece by piece (exec_memory_show), and counts as managed memory in the access stream. A piece
 * is what malloc has mapped on its own, whole, or else what lies around the address in its 64 KiB (2 MiB, when there
 * are many pieces), cut to the host's mapping. Pieces come to be in two ways:
 *
 *   - before a launch, where a word of its parameters points into writable memory of the host: the operation that makes
 *     the piece known comes before the launch's;
 *   - while a kernel runs, at an access that finds nothing. The operation then comes behind the launch, so simulations
 *     take this launch's accesses for those of memory that is always there, and page it from the next launch on.
 *
 * Before each launch the pieces are compared with the host's mappings; what was unmapped meanwhile is forgotten. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mappings.h"
#include "driver/engine/engine_internal.h"
#include "exec/memory/system_memory.h"

/* Small at first, as where malloc's heap ends depends on what else is allocated there; large when there are many. */
#define SMALL_WINDOW_BYTES (UINT64_C(64) << 10)
#define LARGE_WINDOW_BYTES (UINT64_C(2) << 20)
#define SMALL_WINDOWS 1024u
#define LOWEST_ADDRESS (UINT64_C(1) << 16) /* below it the host maps nothing */
#define HIGHEST_ADDRESS (UINT64_C(1) << 47)
#define MAPPED_ALONE_BYTES (128 << 10)  /* as glibc begins */
#define CHUNK_PAGES (UINT64_C(1) << 14) /* below an address in which the begin of its allocation is looked for */
#define CHUNK_MAPPED 2u /* of the lowest three bits of an allocation's size, as glibc keeps it: it was mapped alone */

typedef struct system_piece {
  const exec_allocation *allocation;
  bool writable;
  bool told; /* the access stream has it */
} system_piece;

static struct {
  pthread_mutex_t lock; /* workers show pieces while the launching thread has the engine's lock */
  FF_VEC(system_piece) pieces;
  uint64_t number; /* of the last piece that was made */
  bool noted;
} shown = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- pieces ---- */

/* The allocation that malloc has mapped on its own and that has the address: glibc begins it with two words, 0 and its
 * size, at a page's begin. The page nearest below that looks like that and holds the address is taken. The words are
 * read as a file: a page may be one that the host guards. */
static bool find_mapped_chunk(const ff_mapping *mapping, uint64_t address, uint64_t *begin, uint64_t *end) {
  int file = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
  uint64_t words[2], page = address / EXEC_PAGE_BYTES * EXEC_PAGE_BYTES, steps = 0;
  bool found = false;
  for (; file >= 0 && !found && page >= mapping->begin && steps < CHUNK_PAGES; page -= EXEC_PAGE_BYTES, steps++) {
    if (pread(file, words, sizeof words, (off_t)page) != sizeof words) break;
    uint64_t bytes = words[1] & ~UINT64_C(7);
    found = !words[0] && (words[1] & 7) == CHUNK_MAPPED && bytes && bytes % EXEC_PAGE_BYTES == 0 &&
            bytes <= mapping->end - page && address - page < bytes;
    if (found) *begin = page, *end = page + bytes;
  }
  if (file >= 0) close(file);
  return found;
}

static void piece_of(const ff_mapping *mapping, uint64_t address, uint64_t *begin, uint64_t *end) {
  if (!mapping->name[0] && find_mapped_chunk(mapping, address, begin, end)) return;
  uint64_t window = shown.pieces.count < SMALL_WINDOWS ? SMALL_WINDOW_BYTES : LARGE_WINDOW_BYTES;
  *begin = address / window * window;
  *end = *begin + window;
  if (*begin < mapping->begin) *begin = mapping->begin;
  if (*end > mapping->end) *end = mapping->end;
}

/* With the lock. */
static bool show_piece(const ff_mapping *mapping, uint64_t address) {
  uint64_t begin, end;
  char name[64];
  const exec_allocation *allocation;
  piece_of(mapping, address, &begin, &end);
  snprintf(name, sizeof name, "system memory #%" PRIu64, shown.number + 1);
  if (exec_memory_show(ff_engine.memory, address, begin, end, mapping->writable, name, &allocation, NULL)) return false;
  shown.number++;
  FF_PUSH(&shown.pieces, ((system_piece){.allocation = allocation, .writable = mapping->writable}));
  return true;
}

static bool is_visible(uint64_t address) {
  const exec_allocation *there = exec_memory_find(ff_engine.memory, address);
  return there && !there->freed;
}

/* A kernel has come upon the address; called by workers. */
static bool show_accessed(uint64_t address) {
  pthread_mutex_lock(&shown.lock);
  bool visible = is_visible(address); /* another worker may have been faster */
  if (!visible) {
    ff_mappings mappings = ff_mappings_read();
    const ff_mapping *mapping = ff_mapping_at(&mappings, address);
    visible = mapping && show_piece(mapping, address);
    free(mappings.items);
  }
  pthread_mutex_unlock(&shown.lock);
  return visible;
}

/* glibc maps larger blocks on their own, but no longer up to a size of which one has been freed: simulations' threads
 * would decide that. */
void engine_system_begin(void) {
  bool has = ff_engine.machine->system_memory != 0;
  if (has) mallopt(M_MMAP_THRESHOLD, MAPPED_ALONE_BYTES);
  exec_system_memory_use(has ? show_accessed : NULL);
}

/* ---- the access stream ---- */

static void append_piece(system_piece *piece, int device) {
  trace_op op = {.kind = TRACE_OP_ALLOC, .stream = engine_origin(device)};
  op.alloc.address = piece->allocation->address;
  op.alloc.bytes = piece->allocation->bytes;
  op.alloc.memory = TRACE_MEMORY_MANAGED;
  op.alloc.id = piece->allocation->id;
  op.alloc.initialised = op.alloc.system = true;
  snprintf(op.alloc.name, sizeof op.alloc.name, "%s", piece->allocation->name);
  engine_append(&op);
  piece->told = true;
}

static void append_pieces(int device) {
  for (size_t i = 0; i < shown.pieces.count; i++)
    if (!shown.pieces.items[i].told) append_piece(&shown.pieces.items[i], device);
}

/* With the lock, between launches. */
static void hide_piece(size_t index, int device) {
  system_piece piece = shown.pieces.items[index];
  if (piece.told) {
    trace_op op = {.kind = TRACE_OP_FREE, .stream = engine_origin(device)};
    op.free.address = piece.allocation->address;
    op.free.id = piece.allocation->id;
    engine_append(&op);
  }
  exec_memory_unregister(ff_engine.memory, (void *)(uintptr_t)piece.allocation->address, NULL);
  shown.pieces.count--;
  memmove(&shown.pieces.items[index], &shown.pieces.items[index + 1],
          (shown.pieces.count - index) * sizeof *shown.pieces.items);
}

/* Is all of the piece mapped as it was? */
static bool is_there(const ff_mappings *mappings, const system_piece *piece) {
  uint64_t at = piece->allocation->address, end = at + piece->allocation->bytes;
  while (at < end) {
    const ff_mapping *mapping = ff_mapping_at(mappings, at);
    if (!mapping || mapping->writable != piece->writable) return false;
    at = mapping->end;
  }
  return true;
}

static bool may_point(uint64_t word) {
  return word >= LOWEST_ADDRESS && word < HIGHEST_ADDRESS && !exec_memory_in_arena(ff_engine.memory, word);
}

static bool any_points(const unsigned char *params, uint32_t bytes) {
  uint64_t word;
  for (uint32_t at = 0; at + sizeof word <= bytes; at += sizeof word) {
    memcpy(&word, params + at, sizeof word);
    if (may_point(word)) return true;
  }
  return false;
}

/* Read-only memory is shown when a kernel reads it: a parameter that points there is more often a function's
 * address. */
static void show_pointed(const ff_mappings *mappings, const unsigned char *params, uint32_t bytes) {
  uint64_t word;
  for (uint32_t at = 0; at + sizeof word <= bytes; at += sizeof word) {
    memcpy(&word, params + at, sizeof word);
    if (!may_point(word) || is_visible(word)) continue;
    const ff_mapping *mapping = ff_mapping_at(mappings, word);
    if (mapping && mapping->writable) show_piece(mapping, word);
  }
}

void engine_system_show(const void *params, uint32_t bytes, int device) {
  if (!ff_engine.machine->system_memory) return;
  pthread_mutex_lock(&shown.lock);
  if (shown.pieces.count || any_points(params, bytes)) {
    ff_mappings mappings = ff_mappings_read();
    for (size_t i = shown.pieces.count; i-- > 0;)
      if (!is_there(&mappings, &shown.pieces.items[i])) hide_piece(i, device);
    show_pointed(&mappings, params, bytes);
    append_pieces(device);
    free(mappings.items);
  }
  pthread_mutex_unlock(&shown.lock);
}

void engine_system_settle(int device) {
  if (!ff_engine.machine->system_memory) return;
  pthread_mutex_lock(&shown.lock);
  bool found = shown.pieces.count && !shown.pieces.items[shown.pieces.count - 1].told;
  if (found && !shown.noted) {
    session_note(ff_engine.session, "kernels came upon memory of the program's own to which no parameter points: it is "
                                    "paged from the next launch on");
    shown.noted = true;
  }
  append_pieces(device);
  pthread_mutex_unlock(&shown.lock);
}

uint64_t engine_system_part(uint64_t address, uint64_t bytes, int device) {
  if (!ff_engine.machine->system_memory || !(is_visible(address) || show_accessed(address))) return 0;
  const exec_allocation *a = exec_memory_find(ff_engine.memory, address);
  if (a->kind != EXEC_MEMORY_SYSTEM) return 0;
  pthread_mutex_lock(&shown.lock);
  append_pieces(device);
  pthread_mutex_unlock(&shown.lock);
  uint64_t left = a->address + a->bytes - address;
  return bytes < left ? bytes : left;
}

void engine_system_hide(uint64_t address, uint64_t bytes) {
  pthread_mutex_lock(&shown.lock);
  for (size_t i = shown.pieces.count; i-- > 0;) {
    const exec_allocation *a = shown.pieces.items[i].allocation;
    if (a->address < address + bytes && address < a->address + a->bytes) hide_piece(i, engine_device_of(NULL));
  }
  pthread_mutex_unlock(&shown.lock);
}
