/* SPDX-License-Identifier: Apache-2.0 */
/* One pass over a trace: see advise_facts.h.
 *
 * What always holds: `live` is sorted by address and its ranges do not overlap; memory is bounded by the limits,
 * whatever the trace says. */
#include "advise/advise_facts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"

#define PAGE UINT64_C(4096)
#define BLOCK (UINT64_C(2) << 20)
#define BITMAP_BYTES_MAX (UINT64_C(256) << 20) /* of all together: 8 TiB of allocations */

typedef struct live {
  uint64_t address, bytes;
  uint32_t index; /* of the allocation */
  bool addresses; /* a reservation: takes no memory itself */
} live;

typedef struct reading {
  advise_facts *facts;
  FF_VEC(live) live;
  FF_VEC(uint64_t *) bitmaps;                      /* by allocation; NULL: none */
  FF_VEC(uint64_t) last_launch;                    /* by allocation: number + 1 of the last launch that touched it */
  uint64_t bitmap_bytes, bytes_live, bytes_mapped; /* mapped: in reservations, in blocks of 2 MiB */
  bool only_addresses;                             /* what is being entered is a reservation */
  const trace_launch *launch;                      /* open */
  size_t kernel;                                   /* of it; SIZE_MAX: not in the list */
  size_t recent;                                   /* in `live`: where the last access was */
} reading;

const advise_allocation *advise_facts_find(const advise_facts *facts, uint32_t id) {
  for (size_t i = 0; i < facts->allocations.count; i++)
    if (facts->allocations.items[i].id == id) return &facts->allocations.items[i];
  return NULL;
}

void advise_facts_free(advise_facts *facts) {
  for (size_t i = 0; i < facts->kernels.count; i++) free(facts->kernels.items[i].uses.items);
  free(facts->kernels.items);
  free(facts->allocations.items);
  *facts = (advise_facts){0};
}

/* Names come from the file and go to terminals. */
static void take_name(char *to, size_t size, const char *name) {
  snprintf(to, size, "%s", name);
  for (char *c = to; *c; c++)
    if ((unsigned char)*c < 32 || *c == 127 || *c == '`') *c = '?';
}

/* ---- which allocation is where ---- */

/* The position of the first live range that ends behind the address. */
static size_t behind(const reading *r, uint64_t address) {
  size_t low = 0, high = r->live.count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    const live *l = &r->live.items[middle];
    if (l->address + l->bytes <= address) low = middle + 1;
    else high = middle;
  }
  return low;
}

/* The live range that holds the address; NULL: none. */
static const live *find(reading *r, uint64_t address) {
  if (r->recent < r->live.count && address - r->live.items[r->recent].address < r->live.items[r->recent].bytes)
    return &r->live.items[r->recent];
  size_t at = behind(r, address);
  if (at == r->live.count || address < r->live.items[at].address) return NULL;
  r->recent = at;
  return &r->live.items[at];
}

static bool on_gpu(trace_memory_kind memory) { return memory == TRACE_MEMORY_DEVICE || memory == TRACE_MEMORY_MANAGED; }

static uint64_t blocks_live(const reading *r) {
  uint64_t count = 0, next = 0;
  for (size_t i = 0; i < r->live.count; i++) {
    const live *l = &r->live.items[i];
    if (l->addresses || !on_gpu(r->facts->allocations.items[l->index].memory)) continue;
    uint64_t first = l->address / BLOCK, end = (l->address + l->bytes - 1) / BLOCK + 1;
    if (first < next) first = next;
    if (first < end) count += end - first;
    if (next < end) next = end;
  }
  return count;
}

static void measure_footprint(reading *r) {
  uint64_t blocks = blocks_live(r) * BLOCK + r->bytes_mapped, bytes = r->bytes_live + r->bytes_mapped;
  if (bytes > r->facts->footprint) r->facts->footprint = bytes;
  if (blocks > r->facts->footprint_blocks) r->facts->footprint_blocks = blocks;
}

static uint64_t *make_bitmap(reading *r, uint64_t pages) {
  uint64_t bytes = pages / 8 + 8;
  if (bytes > BITMAP_BYTES_MAX - r->bitmap_bytes) return NULL;
  r->bitmap_bytes += bytes;
  return ff_alloc(bytes);
}

static bool live_in_order(const reading *r) {
  for (size_t i = 1; i < r->live.count; i++)
    if (r->live.items[i - 1].address + r->live.items[i - 1].bytes > r->live.items[i].address) return false;
  return true;
}

static void allocated(reading *r, const trace_op *op) {
  uint64_t address = op->alloc.address, bytes = op->alloc.bytes;
  size_t at = behind(r, address);
  bool fits =
      bytes && address + bytes > address && (at == r->live.count || r->live.items[at].address >= address + bytes);
  if (!fits) return;
  if (r->facts->allocations.count == ADVISE_ALLOCATIONS_MAX) {
    r->facts->left_out++;
    return;
  }
  advise_allocation a = {.id = op->alloc.id,
                         .bytes = bytes,
                         .memory = op->alloc.memory,
                         .pages = (address + bytes - 1) / PAGE - address / PAGE + 1};
  take_name(a.name, sizeof a.name, op->alloc.name);
  uint64_t *bitmap = make_bitmap(r, a.pages);
  if (!bitmap) a.pages = 0;
  live l = {address, bytes, (uint32_t)r->facts->allocations.count, r->only_addresses};
  FF_PUSH(&r->facts->allocations, a);
  FF_PUSH(&r->bitmaps, bitmap);
  FF_PUSH(&r->last_launch, 0);
  FF_PUSH(&r->live, l);
  memmove(&r->live.items[at + 1], &r->live.items[at], (r->live.count - 1 - at) * sizeof l);
  r->live.items[at] = l;
  FF_CHECK_DEEP(live_in_order(r));
  if (!on_gpu(a.memory) || r->only_addresses) return;
  r->facts->managed = r->facts->managed || a.memory == TRACE_MEMORY_MANAGED;
  r->bytes_live += bytes;
  measure_footprint(r);
}

static void freed(reading *r, uint64_t address) {
  size_t at = behind(r, address);
  if (at == r->live.count || r->live.items[at].address != address) return;
  if (!r->live.items[at].addresses && on_gpu(r->facts->allocations.items[r->live.items[at].index].memory))
    r->bytes_live -= r->live.items[at].bytes;
  r->live.count--;
  memmove(&r->live.items[at], &r->live.items[at + 1], (r->live.count - at) * sizeof *r->live.items);
}

/* A reservation counts as an allocation, but only what is mapped in it takes memory. */
static void reserved(reading *r, const trace_op *op) {
  r->only_addresses = true;
  allocated(r, op);
  r->only_addresses = false;
}

static void mapped(reading *r, uint64_t bytes) {
  r->bytes_mapped = bytes > UINT64_MAX - r->bytes_mapped ? UINT64_MAX : r->bytes_mapped + bytes;
  measure_footprint(r);
}

static void host_uses(reading *r, uint64_t address) {
  const live *l = find(r, address);
  if (!l) return;
  r->facts->allocations.items[l->index].host_uses++;
  r->facts->allocations.items[l->index].host_uses_later += r->last_launch.items[l->index] != 0;
}

/* ---- launches ---- */

static size_t kernel_of(reading *r, const trace_launch *launch) {
  advise_facts *f = r->facts;
  char name[sizeof launch->kernel];
  take_name(name, sizeof name, launch->kernel);
  for (size_t i = f->kernels.count; i-- > 0;)
    if (f->kernels.items[i].number == launch->kernel_index && !strcmp(f->kernels.items[i].name, name)) return i;
  if (f->kernels.count == ADVISE_KERNELS_MAX) {
    f->left_out++;
    return SIZE_MAX;
  }
  advise_kernel k = {.number = launch->kernel_index};
  strcpy(k.name, name);
  FF_PUSH(&f->kernels, k);
  return f->kernels.count - 1;
}

static advise_use *use_of(reading *r, uint32_t allocation) {
  if (r->kernel == SIZE_MAX) return NULL;
  advise_kernel *k = &r->facts->kernels.items[r->kernel];
  for (size_t i = 0; i < k->uses.count; i++)
    if (k->uses.items[i].allocation == allocation) return &k->uses.items[i];
  FF_PUSH(&k->uses, ((advise_use){.allocation = allocation}));
  return &k->uses.items[k->uses.count - 1];
}

static void launched(reading *r, const trace_launch *launch) {
  r->launch = launch;
  r->facts->launches++;
  r->kernel = kernel_of(r, launch);
  if (r->kernel != SIZE_MAX) r->facts->kernels.items[r->kernel].launches++;
  for (uint32_t i = 0; i < launch->use_count; i++) {
    const live *l = find(r, launch->uses[i].address);
    if (!l) continue;
    r->facts->allocations.items[l->index].declared++;
    advise_use *use = use_of(r, l->index);
    if (use) use->declared++;
  }
}

static void touched(reading *r, uint32_t index) {
  if (r->last_launch.items[index] == r->facts->launches) return;
  r->last_launch.items[index] = r->facts->launches;
  r->facts->allocations.items[index].touched++;
  advise_use *use = use_of(r, index);
  if (use) use->touched++;
}

static void line_accessed(reading *r, uint64_t line, bool writes, bool first) {
  uint64_t address = trace_line_address(line);
  const live *l = find(r, address);
  /* a line may begin before the allocation that its sectors are in */
  for (uint32_t s = 1; !l && s < 4; s++) l = find(r, address + s * TRACE_SECTOR_BYTES);
  if (!l) return;
  advise_allocation *a = &r->facts->allocations.items[l->index];
  a->sector_bytes += (uint64_t)__builtin_popcount(trace_line_sectors(line)) * TRACE_SECTOR_BYTES;
  if (first) *(writes ? &a->writes : &a->loads) += 1;
  touched(r, l->index);
  uint64_t page = address / PAGE < l->address / PAGE ? 0 : address / PAGE - l->address / PAGE, bit = UINT64_C(1)
                                                                                                     << page % 64;
  uint64_t *word = a->pages ? &r->bitmaps.items[l->index][page / 64] : NULL;
  if (!word || *word & bit) return;
  *word |= bit;
  a->touched_pages++;
}

static void record(reading *r, const trace_item *item) {
  const uint64_t *words = item->record;
  if (trace_word_kind(words[0]) != TRACE_ACCESS || !r->launch) return;
  trace_access_op op = trace_access_operation(words[0]);
  r->facts->accesses++;
  for (uint32_t i = 2; i < item->words; i++)
    line_accessed(r, words[i], op == TRACE_STORE || op == TRACE_ATOMIC, i == 2);
}

static void operation(reading *r, const trace_op *op) {
  r->launch = NULL;
  switch (op->kind) {
  case TRACE_OP_ALLOC: allocated(r, op); break;
  case TRACE_OP_FREE: freed(r, op->free.address); break;
  case TRACE_OP_RESERVE: reserved(r, op); break;
  case TRACE_OP_UNRESERVE: freed(r, op->map.address); break;
  case TRACE_OP_MAP: mapped(r, op->map.bytes); break;
  case TRACE_OP_UNMAP: r->bytes_mapped -= op->map.bytes < r->bytes_mapped ? op->map.bytes : r->bytes_mapped; break;
  case TRACE_OP_LAUNCH: launched(r, op->launch); break;
  case TRACE_OP_HOST_TOUCH:
    if (op->touch.bytes) host_uses(r, op->touch.address);
    break;
  case TRACE_OP_COPY:
    if (op->copy.direction == TRACE_H2D) host_uses(r, op->copy.to);
    if (op->copy.direction == TRACE_D2H) host_uses(r, op->copy.from);
    break;
  default: break;
  }
}

ff_status advise_facts_read(trace_file *file, void (*step)(void *context, uint64_t launch), void *context,
                            advise_facts *facts, ff_error *error) {
  *facts = (advise_facts){0};
  reading r = {.facts = facts, .kernel = SIZE_MAX};
  trace_item item;
  ff_status status;
  trace_file_rewind(file);
  while (!(status = trace_file_next(file, &item, error)) && item.kind != TRACE_ITEM_END) {
    if (item.kind == TRACE_ITEM_RECORD) record(&r, &item);
    else operation(&r, item.op);
    if (step && item.kind == TRACE_ITEM_OPERATION && item.op->kind == TRACE_OP_LAUNCH) step(context, facts->launches);
  }
  for (size_t i = 0; i < r.bitmaps.count; i++) free(r.bitmaps.items[i]);
  free(r.bitmaps.items);
  free(r.last_launch.items);
  free(r.live.items);
  if (status) advise_facts_free(facts);
  return status;
}
