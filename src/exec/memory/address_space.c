/* SPDX-License-Identifier: Apache-2.0 */
/* The virtual GPU's address space: what each byte of the arena belongs to. mapping.c has reservations and mappings,
 * host_memory.c what lies outside of the arena.
 *
 * The arena is one reserved range. Below `high` it is readable and writable and the host gives it pages when they are
 * touched; above it nothing is mapped. Ranges come from the free list (lowest address first) or from `high` upwards.
 *
 * Lookup. top[address / 2 MiB] is NULL, an exec_span (of an allocation that owns the whole 2 MiB, or of the only one
 * that reaches into it), or, with bit 0 set, a leaf: one exec_span per 4 KiB page.
 *
 * Canonical addresses: of the arena, offset by offset, those from EXEC_ARENA_CANONICAL on; registered ranges have the
 * first addresses from EXEC_REGISTERED_CANONICAL on that no live one has, in units of 2 MiB, so they follow from the
 * order of registering.
 *
 * A released range is a tombstone: its pages are given back, its exec_span is marked as freed, lookups still find it.
 * The oldest tombstone is forgotten when there are TOMBSTONES of them; only then are its range and its exec_span used
 * again.
 *
 * A reservation has an exec_span like an allocation, whose pages the host may not touch; a mapping takes its place in
 * the table page by page and gives it back. A mapping leaves no tombstone: its exec_span is used again at once, so
 * that mapping and unmapping may go on for ever.
 *
 * A parked allocation (visibility.h) may be cut in parts, at pages: each has an exec_span of its own, and the number of
 * the first one. Joined again, they are one exec_span.
 *
 * Padding, if a check asks for it: a range has addresses in front of its allocation and behind it that belong to
 * nothing else and at which nothing is found, so that no access a little over either end lands in a neighbour.
 *
 * Invariants (space_check_tiling, at the deep level)
 *   - every page of the arena below `high` belongs to exactly one of: a live allocation, a reservation, a tombstone, a
 *     free range; neighbouring free ranges are one;
 *   - a lookup of a live allocation's first and last byte finds it; what was released is not readable. */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/check.h"
#include "base/memory.h"
#include "base/text.h"
#include "exec/memory/space_private.h"

#define LEAF_PAGES (LARGE_BYTES / EXEC_PAGE_BYTES)
#define GROW_BYTES (UINT64_C(1) << 30) /* how much more of the arena becomes writable at a time */
#define ANY_ALIGNMENT (UINT64_C(1) << 30)
#define TOP_ENTRIES (EXEC_ARENA_BYTES / LARGE_BYTES)
#define LARGE_ALLOCATIONS \
  4096u /* that the host is asked to give in pages of 2 MiB; the usual limit of mappings is 65,530 */

/* ---- lookup ---- */

static exec_span *lookup_registered(const exec_memory *memory, uint64_t address) {
  uint32_t count = __atomic_load_n(&memory->registered_count, __ATOMIC_ACQUIRE);
  for (uint32_t i = 0; i < count; i++) {
    exec_span *span = __atomic_load_n(&memory->registered[i], __ATOMIC_ACQUIRE);
    if (span && address - span->info.address < span->info.bytes) return span;
  }
  return NULL;
}

/* Whose range has that offset into the arena. */
static inline exec_span *range_owner(const exec_memory *memory, uint64_t offset) {
  uintptr_t entry = __atomic_load_n(&memory->top[offset / LARGE_BYTES], __ATOMIC_ACQUIRE);
  if (entry & 1) {
    exec_span **leaf = (exec_span **)(entry - 1);
    entry = (uintptr_t)__atomic_load_n(&leaf[offset / EXEC_PAGE_BYTES % LEAF_PAGES], __ATOMIC_ACQUIRE);
  }
  return (exec_span *)entry;
}

exec_span *exec_memory_span(const exec_memory *memory, uint64_t address) {
  uint64_t offset = address - memory->arena.base;
  if (offset >= EXEC_ARENA_BYTES) return lookup_registered(memory, address);
  exec_span *span = range_owner(memory, offset);
  return span && address - span->info.address < span->info.bytes ? span : NULL;
}

const exec_allocation *exec_memory_find(const exec_memory *memory, uint64_t address) {
  exec_span *span = exec_memory_span(memory, address);
  return span ? &span->info : NULL;
}

const exec_allocation *exec_memory_owner(const exec_memory *memory, uint64_t address) {
  uint64_t offset = address - memory->arena.base;
  const exec_span *span = offset < EXEC_ARENA_BYTES ? range_owner(memory, offset) : lookup_registered(memory, address);
  return span ? &span->info : NULL;
}

/* Enters `span` (or NULL) for all pages of [start, start + bytes), both multiples of a page, offsets into the
 * arena. */
void space_table_set(exec_memory *memory, uint64_t start, uint64_t bytes, exec_span *span) {
  for (uint64_t at = start, end = start + bytes; at < end;) {
    uintptr_t *top = &memory->top[at / LARGE_BYTES];
    uint64_t next = (at / LARGE_BYTES + 1) * LARGE_BYTES;
    if (at % LARGE_BYTES == 0 && next <= end && !(*top & 1)) {
      __atomic_store_n(top, (uintptr_t)span, __ATOMIC_RELEASE);
      at = next;
      continue;
    }
    if (!(*top & 1)) {
      exec_span **leaf = ff_alloc(LEAF_PAGES * sizeof *leaf);
      for (uint64_t i = 0; i < LEAF_PAGES; i++) leaf[i] = (exec_span *)*top;
      __atomic_store_n(top, (uintptr_t)leaf | 1, __ATOMIC_RELEASE);
    }
    exec_span **leaf = (exec_span **)(*top - 1);
    for (; at < end && at < next; at += EXEC_PAGE_BYTES)
      __atomic_store_n(&leaf[at / EXEC_PAGE_BYTES % LEAF_PAGES], span, __ATOMIC_RELEASE);
  }
}

/* ---- ranges ---- */

/* The first offset from there on whose address is aligned. */
static uint64_t aligned(const exec_memory *memory, uint64_t offset, uint64_t alignment) {
  return round_up(memory->arena.base + offset, alignment) - memory->arena.base;
}

void space_free_insert(exec_memory *memory, uint64_t start, uint64_t bytes) {
  if (!bytes) return;
  size_t low = 0, end = memory->free.count;
  while (low < end) {
    size_t middle = (low + end) / 2;
    if (memory->free.items[middle].start < start) low = middle + 1;
    else end = middle;
  }
  free_range *items = memory->free.items;
  bool joins_previous = low > 0 && items[low - 1].start + items[low - 1].bytes == start;
  bool joins_next = low < memory->free.count && start + bytes == items[low].start;
  if (joins_previous && joins_next) {
    items[low - 1].bytes += bytes + items[low].bytes;
    memmove(items + low, items + low + 1, (memory->free.count - low - 1) * sizeof *items);
    memory->free.count--;
  } else if (joins_previous) {
    items[low - 1].bytes += bytes;
  } else if (joins_next) {
    items[low].start = start;
    items[low].bytes += bytes;
  } else {
    FF_PUSH(&memory->free, ((free_range){0}));
    items = memory->free.items;
    memmove(items + low + 1, items + low, (memory->free.count - low - 1) * sizeof *items);
    items[low] = (free_range){start, bytes};
  }
}

bool space_take_free(exec_memory *memory, uint64_t bytes, uint64_t alignment, uint64_t *start) {
  for (size_t i = 0; i < memory->free.count; i++) {
    free_range range = memory->free.items[i];
    uint64_t at = aligned(memory, range.start, alignment);
    if (at - range.start > range.bytes || range.bytes - (at - range.start) < bytes) continue;
    memmove(memory->free.items + i, memory->free.items + i + 1, (memory->free.count - i - 1) * sizeof range);
    memory->free.count--;
    space_free_insert(memory, range.start, at - range.start);
    space_free_insert(memory, at + bytes, range.start + range.bytes - (at + bytes));
    *start = at;
    return true;
  }
  return false;
}

bool space_take_fresh(exec_memory *memory, uint64_t bytes, uint64_t alignment, uint64_t *start) {
  uint64_t at = aligned(memory, memory->high, alignment);
  if (at > EXEC_ARENA_BYTES || bytes > EXEC_ARENA_BYTES - at) return false;
  if (at + bytes > memory->writable) {
    uint64_t wanted = round_up(at + bytes, GROW_BYTES);
    if (mprotect((void *)(memory->arena.base + memory->writable), wanted - memory->writable, PROT_READ | PROT_WRITE))
      return false;
    memory->writable = wanted;
  }
  uint64_t gap = memory->high;
  memory->high = at + bytes;
  space_free_insert(memory, gap, at - gap);
  *start = at;
  return true;
}

/* Takes [start, start + bytes) if all of it is free, or was not used yet. */
bool space_take_at(exec_memory *memory, uint64_t start, uint64_t bytes) {
  uint64_t fresh;
  if (start >= memory->high) { /* what lies between becomes free */
    if (start > EXEC_ARENA_BYTES || bytes > EXEC_ARENA_BYTES - start) return false;
    uint64_t before = memory->high;
    if (!space_take_fresh(memory, start - before + bytes, EXEC_PAGE_BYTES, &fresh)) return false;
    space_free_insert(memory, before, start - before);
    return true;
  }
  for (size_t i = 0; i < memory->free.count; i++) {
    free_range range = memory->free.items[i];
    if (start < range.start || start - range.start > range.bytes || range.bytes - (start - range.start) < bytes)
      continue;
    memmove(memory->free.items + i, memory->free.items + i + 1, (memory->free.count - i - 1) * sizeof range);
    memory->free.count--;
    space_free_insert(memory, range.start, start - range.start);
    space_free_insert(memory, start + bytes, range.start + range.bytes - (start + bytes));
    return true;
  }
  return false;
}

/* Of its range, as an offset into the arena. */
uint64_t space_range_start(const exec_memory *memory, const exec_span *span) {
  return span->info.address - span->front - memory->arena.base;
}

/* The range and the span of the tombstone `number`, counted from the oldest, may be used again. */
void space_forget_tombstone(exec_memory *memory, uint32_t number) {
  exec_span **ring = memory->tombstone, *span = ring[(memory->tombstone_first + number) % TOMBSTONES];
  for (uint32_t i = number; i > 0; i--) /* the older ones move up */
    ring[(memory->tombstone_first + i) % TOMBSTONES] = ring[(memory->tombstone_first + i - 1) % TOMBSTONES];
  memory->tombstone_first = (memory->tombstone_first + 1) % TOMBSTONES;
  memory->tombstone_count--;
  uint64_t start = space_range_start(memory, span), bytes = span->reserved;
  space_table_set(memory, start, bytes, NULL);
  space_free_insert(memory, start, bytes);
  span->info.bytes = 0;
  FF_PUSH(&memory->spare, span);
}

exec_span *space_new_span(exec_memory *memory) {
  if (memory->spare.count) return memory->spare.items[--memory->spare.count];
  exec_span *span = ff_alloc(sizeof *span);
  FF_PUSH(&memory->spans, span);
  return span;
}

/* Memory of the host's own, outside of the arena. */
static bool is_host(exec_memory_kind kind) { return kind == EXEC_MEMORY_REGISTERED || kind == EXEC_MEMORY_SYSTEM; }

/* ---- checks ---- */

enum { CHECK_EVERY = 64 };

static int by_start(const void *a, const void *b) {
  const free_range *one = a, *other = b;
  return one->start < other->start ? -1 : one->start > other->start;
}

/* With the lock, at one change of many. */
void space_check_tiling(const exec_memory *memory) {
  static _Atomic uint32_t changes;
  if (ff_check_level < 2 || ++changes % CHECK_EVERY) return;
  FF_VEC(free_range) parts = {0};
  uint64_t at = 0;
  bool was_free = false;
  for (size_t i = 0; i < memory->free.count; i++) FF_PUSH(&parts, memory->free.items[i]);
  for (size_t i = 0; i < memory->spans.count; i++) {
    const exec_span *r = memory->spans.items[i];
    FF_ASSERT(!r->info.freed || (!r->readable && !r->writable));
    FF_ASSERT(r->readable <= r->info.bytes && r->writable <= r->info.bytes);
    if (r->info.bytes && !r->info.freed && r->info.range == EXEC_ALLOCATED && !is_host(r->info.kind))
      FF_ASSERT(exec_memory_span(memory, r->info.address) == r &&
                exec_memory_span(memory, r->info.address + r->info.bytes - 1) == r);
    if (r->info.bytes && !is_host(r->info.kind) && r->info.range != EXEC_MAPPED)
      FF_PUSH(&parts, ((free_range){space_range_start(memory, r), r->reserved}));
  }
  qsort(parts.items, parts.count, sizeof *parts.items, by_start);
  for (size_t i = 0, f = 0; i < parts.count; i++) {
    bool is_free = f < memory->free.count && memory->free.items[f].start == parts.items[i].start;
    f += is_free;
    FF_ASSERT(parts.items[i].start == at && !(is_free && was_free));
    at += parts.items[i].bytes;
    was_free = is_free;
  }
  FF_ASSERT(at == memory->high);
  free(parts.items);
}

/* ---- life ---- */

/* Addresses without memory, at `wanted`, where nothing may lie yet, or, if that is 0, anywhere. 0: the host has no
 * room; errno says why. */
static uint64_t reserve(uint64_t wanted, uint64_t bytes) {
  void *got = mmap((void *)wanted, bytes, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (wanted ? MAP_FIXED_NOREPLACE : 0), -1, 0);
  if (got == MAP_FAILED) return 0;
  if (!wanted || got == (void *)wanted) return (uint64_t)(uintptr_t)got;
  munmap(got, bytes); /* Linux before 4.17 takes it for a hint */
  errno = EEXIST;
  return 0;
}

/* Anywhere, at a multiple of 1 GiB. */
static uint64_t reserve_anywhere(void) {
  uint64_t got = reserve(0, EXEC_ARENA_BYTES + ANY_ALIGNMENT), base = round_up(got, ANY_ALIGNMENT),
           end = base + EXEC_ARENA_BYTES;
  if (!got) return 0;
  if (base > got) munmap((void *)got, base - got);
  if (got + ANY_ALIGNMENT > base) munmap((void *)end, got + ANY_ALIGNMENT - base);
  return base;
}

/* Where the arena may be, the best first, in TiB: away from where Linux puts executables (85 and 86), and libraries and
 * stacks (127), and from the windows below 32. Programs that reserve much for themselves (the cages of JavaScript
 * engines, shadows of sanitizers) leave one of them, or else the host finds a place. */
static uint64_t reserve_arena(void) {
  static const unsigned char places[] = {EXEC_ARENA_CANONICAL >> 40, 40, 48, 56, 64, 72, 96, 24, 104};
  uint64_t base = 0;
  for (size_t i = 0; i < sizeof places && !base; i++) base = reserve((uint64_t)places[i] << 40, EXEC_ARENA_BYTES);
  return base ? base : reserve_anywhere();
}

ff_status exec_memory_create(exec_memory **memory, ff_error *error) {
  uint64_t base = reserve_arena();
  if (!base)
    return ff_fail(
        error, FF_NO_MEMORY,
        "cannot reserve 1 TiB of addresses for the virtual GPU's memory (%s): `ulimit -v` is too low, or the process has no such room left",
        strerror(errno));
  exec_memory *made = ff_alloc(sizeof *made);
  made->arena = (exec_arena){.base = base, .plain = base == EXEC_ARENA_CANONICAL};
  pthread_mutex_init(&made->lock, NULL);
  made->top = ff_alloc(TOP_ENTRIES * sizeof *made->top);
  made->next_id = 1;
  *memory = made;
  return FF_OK;
}

void exec_memory_free(exec_memory *memory) {
  if (!memory) return;
  exec_heap_free(memory->heap);
  exec_textures_free(memory->textures);
  munmap((void *)memory->arena.base, EXEC_ARENA_BYTES);
  for (uint64_t i = 0; i < TOP_ENTRIES; i++)
    if (memory->top[i] & 1) free((void *)(memory->top[i] - 1));
  for (size_t i = 0; i < memory->spans.count; i++) free(memory->spans.items[i]);
  free(memory->spans.items);
  free(memory->spare.items);
  free(memory->free.items);
  free(memory->top);
  pthread_mutex_destroy(&memory->lock);
  free(memory);
}

void exec_memory_pad(exec_memory *memory, uint64_t bytes) {
  FF_ASSERT(!memory->spans.count && bytes <= EXEC_PADDING_MAX);
  memory->padding = bytes;
}

uint64_t exec_memory_padding(const exec_memory *memory) { return memory->padding; }

exec_heap **exec_memory_heap(exec_memory *memory) { return &memory->heap; }
exec_textures **exec_memory_textures(exec_memory *memory) { return &memory->textures; }

void space_open_span(exec_memory *memory, exec_span *span, uint64_t address, uint64_t bytes, uint64_t reserved,
                     exec_memory_kind kind, const char *name) {
  memset(&span->info, 0, sizeof span->info);
  span->holder = NULL;
  span->front = 0;
  span->shared = false;
  span->info.kind = kind;
  span->info.id = memory->next_id++;
  snprintf(span->info.name, sizeof span->info.name, "%s", name ? name : "");
  span->reserved = reserved;
  span->info.address = address;
  span->info.bytes = bytes;
  __atomic_store_n(&span->writable, bytes, __ATOMIC_RELEASE);
  __atomic_store_n(&span->readable, bytes, __ATOMIC_RELEASE);
  memory->live[kind] += bytes;
}

/* The host is to give the whole pages of 2 MiB of an allocation at once, as a GPU has them: a kernel that writes an
 * array for the first time would else spend more time in page faults than in computing. Not beyond an eighth of the
 * host's memory: of an allocation that is hardly touched, pages of 2 MiB may take far more than its touched pages. Nor
 * for ever: each may split a mapping of the kernel's in two. */
static void want_large_pages(exec_memory *memory, uint64_t start, uint64_t bytes) {
  uint64_t live = 0, room = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) / 8;
  for (size_t kind = 0; kind < sizeof memory->live / sizeof *memory->live; kind++) live += memory->live[kind];
  if (live <= room && memory->large_pages++ < LARGE_ALLOCATIONS)
    madvise((void *)(memory->arena.base + start), bytes / LARGE_BYTES * LARGE_BYTES, MADV_HUGEPAGE);
}

typedef struct part { /* of a range that is taken at once */
  uint64_t at, front, alignment, reserved;
} part;

/* Where its parts lie in the range, one behind the other; each has what is left up to the next. *alignment: the
 * range's. 0: more than there are addresses. */
static uint64_t lay_out(const exec_memory *memory, const exec_wanted *wanted, uint32_t count, part *parts,
                        uint64_t *alignment) {
  uint64_t end = 0;
  *alignment = EXEC_PAGE_BYTES;
  for (uint32_t n = 0; n < count; n++) {
    uint64_t smallest = wanted[n].bytes >= LARGE_BYTES ? LARGE_BYTES : EXEC_PAGE_BYTES;
    parts[n].alignment = wanted[n].alignment < smallest ? smallest : wanted[n].alignment;
    if (*alignment < parts[n].alignment) *alignment = parts[n].alignment;
    parts[n].at = round_up(end, parts[n].alignment);
    parts[n].front = round_up(memory->padding, parts[n].alignment);
    end = parts[n].at + parts[n].front + round_up(wanted[n].bytes + memory->padding, smallest);
    if (end > 4 * EXEC_ARENA_BYTES) return 0;
  }
  for (uint32_t n = 0; n < count; n++) parts[n].reserved = (n + 1 < count ? parts[n + 1].at : end) - parts[n].at;
  return end;
}

static ff_status check_wanted(const exec_wanted *wanted, ff_error *error) {
  uint64_t bytes = wanted->bytes, alignment = wanted->alignment;
  if (!bytes) return ff_fail(error, FF_INVALID, "an allocation of 0 bytes");
  if (alignment & (alignment - 1))
    return ff_fail(error, FF_INVALID, "alignment %" PRIu64 " is not a power of two", alignment);
  if (bytes > EXEC_ARENA_BYTES || alignment > EXEC_ARENA_BYTES)
    return ff_fail(error, FF_NO_MEMORY, "%" PRIu64 " bytes are more than the virtual GPU's address range", bytes);
  return FF_OK;
}

ff_status exec_memory_allocate_row(exec_memory *memory, const exec_wanted *wanted, uint32_t count,
                                   exec_memory_kind kind, const exec_allocation **allocations, ff_error *error) {
  ff_status status = FF_OK;
  for (uint32_t n = 0; n < count && status == FF_OK; n++) status = check_wanted(&wanted[n], error);
  if (status != FF_OK || !count) return status;
  part one, *parts = count == 1 ? &one : ff_alloc(count * sizeof *parts);
  uint64_t alignment, start = 0, reserved = lay_out(memory, wanted, count, parts, &alignment);
  pthread_mutex_lock(&memory->lock);
  bool found = reserved && (space_take_free(memory, reserved, alignment, &start) ||
                            space_take_fresh(memory, reserved, alignment, &start));
  while (!found && reserved && memory->tombstone_count) {
    space_forget_tombstone(memory, 0);
    found = space_take_free(memory, reserved, alignment, &start);
  }
  for (uint32_t n = 0; n < count && found; n++) {
    exec_span *span = space_new_span(memory);
    uint64_t at = start + parts[n].at, bytes = wanted[n].bytes;
    space_open_span(memory, span, memory->arena.base + at + parts[n].front, bytes, parts[n].reserved, kind,
                    wanted[n].name);
    span->front = parts[n].front;
    space_table_set(memory, at, parts[n].reserved, span);
    if (bytes >= LARGE_BYTES && kind != EXEC_MEMORY_MANAGED) want_large_pages(memory, at + parts[n].front, bytes);
    allocations[n] = &span->info;
  }
  space_check_tiling(memory);
  pthread_mutex_unlock(&memory->lock);
  if (!found) {
    char text[32];
    status = ff_fail(error, FF_NO_MEMORY, "no room for %s in the virtual GPU's address range",
                     ff_format_bytes(count == 1 ? wanted->bytes : reserved, text, sizeof text));
  }
  if (parts != &one) free(parts);
  return status;
}

ff_status exec_memory_allocate(exec_memory *memory, uint64_t bytes, uint64_t alignment, exec_memory_kind kind,
                               const char *name, const exec_allocation **allocation, ff_error *error) {
  exec_wanted wanted = {bytes, alignment, name};
  return exec_memory_allocate_row(memory, &wanted, 1, kind, allocation, error);
}

void space_close_span(exec_memory *memory, exec_span *span) {
  __atomic_store_n(&span->readable, 0, __ATOMIC_RELEASE);
  __atomic_store_n(&span->writable, 0, __ATOMIC_RELEASE);
  span->info.freed = true;
  if (span->info.range == EXEC_ALLOCATED) memory->live[span->info.kind] -= span->info.bytes;
}

/* Empty memory of the host's in a part of the arena; with PROT_NONE only its addresses. */
bool space_host_map(uint64_t address, uint64_t bytes, int protection) {
  return mmap((void *)address, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) !=
         MAP_FAILED;
}

/* What was released holds nothing any more. False: other processes have its pages, and the host cannot give others. */
static bool empty_pages(const exec_span *span) {
  uint64_t address = span->info.address, bytes = span->reserved - span->front;
  if (span->shared || span->info.range == EXEC_RESERVED) return space_host_map(address, bytes, PROT_READ | PROT_WRITE);
  if (madvise((void *)address, bytes, MADV_DONTNEED)) memset((void *)address, 0, bytes);
  return true;
}

ff_status exec_memory_release(exec_memory *memory, uint64_t address, ff_error *error) {
  ff_status status = FF_OK;
  pthread_mutex_lock(&memory->lock);
  exec_span *span = exec_memory_span(memory, address);
  if (!span || span->info.freed || span->info.address != address || is_host(span->info.kind) ||
      span->info.range == EXEC_MAPPED) {
    status = ff_fail(error, FF_NOT_FOUND, "no allocation starts at 0x%" PRIx64 "%s", address,
                     span && span->info.freed && span->info.address == address ? " (it was freed before)" : "");
  } else {
    space_close_span(memory, span);
    bool again = empty_pages(span); /* else its range is never used again */
    if (again && memory->tombstone_count == TOMBSTONES) space_forget_tombstone(memory, 0);
    if (again) memory->tombstone[(memory->tombstone_first + memory->tombstone_count++) % TOMBSTONES] = span;
  }
  space_check_tiling(memory);
  pthread_mutex_unlock(&memory->lock);
  return status;
}

/* ---- parts of an allocation ---- */

static void set_bytes(exec_memory *memory, exec_span *span, uint64_t bytes) {
  FF_ASSERT(span->info.freed && span->info.range == EXEC_ALLOCATED && bytes && bytes <= span->reserved);
  memory->live[span->info.kind] += bytes - span->info.bytes;
  span->info.bytes = bytes;
}

const exec_allocation *exec_memory_cut(exec_memory *memory, const exec_allocation *allocation, uint64_t bytes,
                                       uint64_t rest) {
  exec_span *span = (exec_span *)(uintptr_t)allocation; /* info is its first member */
  uint64_t kept = round_up(bytes, EXEC_PAGE_BYTES);
  pthread_mutex_lock(&memory->lock);
  FF_ASSERT(!memory->padding && kept + rest <= span->reserved);
  exec_span *behind = space_new_span(memory);
  space_open_span(memory, behind, span->info.address + kept, rest, span->reserved - kept, span->info.kind,
                  span->info.name);
  memory->next_id--; /* it has the first part's number */
  behind->info.id = span->info.id;
  behind->info.freed = true;
  behind->readable = behind->writable = 0;
  set_bytes(memory, span, bytes);
  span->reserved = kept;
  space_table_set(memory, space_range_start(memory, behind), behind->reserved, behind);
  space_check_tiling(memory);
  pthread_mutex_unlock(&memory->lock);
  return &behind->info;
}

void exec_memory_join(exec_memory *memory, const exec_allocation *allocation, const exec_allocation *behind,
                      uint64_t bytes) {
  exec_span *span = (exec_span *)(uintptr_t)allocation, *other = (exec_span *)(uintptr_t)behind;
  pthread_mutex_lock(&memory->lock);
  if (other) {
    FF_ASSERT(other->info.freed && other->info.id == span->info.id &&
              span->info.address + span->reserved == other->info.address);
    space_table_set(memory, space_range_start(memory, other), other->reserved, span);
    span->reserved += other->reserved;
    memory->live[other->info.kind] -= other->info.bytes;
    other->info.bytes = 0;
    FF_PUSH(&memory->spare, other);
  }
  set_bytes(memory, span, bytes);
  space_check_tiling(memory);
  pthread_mutex_unlock(&memory->lock);
}

/* ---- questions ---- */

uint64_t exec_memory_base(const exec_memory *memory) { return memory->arena.base; }
bool exec_memory_in_arena(const exec_memory *memory, uint64_t address) {
  return address - memory->arena.base < EXEC_ARENA_BYTES;
}

static uint64_t distance(const exec_allocation *allocation, uint64_t address) {
  if (address < allocation->address) return allocation->address - address;
  uint64_t end = allocation->address + allocation->bytes;
  return address < end ? 0 : address - end + 1;
}

const exec_allocation *exec_memory_nearest(const exec_memory *memory, uint64_t address) {
  exec_memory *unlocked = (exec_memory *)(uintptr_t)memory;
  const exec_allocation *nearest = NULL;
  pthread_mutex_lock(&unlocked->lock);
  for (size_t i = 0; i < memory->spans.count; i++) {
    const exec_span *span = memory->spans.items[i];
    if (span->info.freed || !span->info.bytes) continue;
    if (!nearest || distance(&span->info, address) < distance(nearest, address)) nearest = &span->info;
  }
  pthread_mutex_unlock(&unlocked->lock);
  return nearest;
}

uint64_t exec_memory_bytes(const exec_memory *memory, exec_memory_kind kind) {
  exec_memory *unlocked = (exec_memory *)(uintptr_t)memory;
  pthread_mutex_lock(&unlocked->lock);
  uint64_t bytes = memory->live[kind];
  pthread_mutex_unlock(&unlocked->lock);
  return bytes;
}
