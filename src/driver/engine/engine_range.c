/* SPDX-License-Identifier: Apache-2.0 */
/* Hints on managed memory that can be asked for (engine_range.h).
 *
 * A list of spans, sorted, that do not overlap; each is the state of its pages, all of one allocation. A hint cuts
 * spans at its ends and changes what lies between. What no span covers has no hints. */
#include "driver/engine/engine_range.h"

#include <string.h>

#include "base/check.h"
#include "driver/engine/engine_internal.h"

#define PAGE UINT64_C(4096) /* hints hold for whole pages */
#define NOWHERE cudaInvalidDeviceId

typedef struct hints {
  bool read_mostly;
  int preferred, prefetched; /* device, cudaCpuDeviceId, or NOWHERE */
  uint32_t accessed;         /* bit n + 1: device n; bit 0: the CPU */
} hints;

typedef struct span {
  uint64_t start, end;
  uint32_t allocation;
  hints hints;
} span;

static FF_VEC(span) spans; /* guarded by the engine's lock */
static const hints none = {.preferred = NOWHERE, .prefetched = NOWHERE};

static void insert(size_t at, span made) {
  FF_PUSH(&spans, made);
  memmove(&spans.items[at + 1], &spans.items[at], (spans.count - 1 - at) * sizeof *spans.items);
  spans.items[at] = made;
}

static void erase(size_t at) {
  memmove(&spans.items[at], &spans.items[at + 1], (spans.count - 1 - at) * sizeof *spans.items);
  spans.count--;
}

static size_t first_ending_after(uint64_t address) {
  size_t low = 0, high = spans.count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (spans.items[middle].end <= address) low = middle + 1;
    else high = middle;
  }
  return low;
}

void engine_ranges_check(void) {
  for (size_t i = 0; i < spans.count; i++) {
    const span *s = &spans.items[i];
    FF_ASSERT(s->start < s->end && !(s->start % PAGE) && (!i || s[-1].end <= s->start));
  }
}

/* Afterwards a span starts at `address` or none has it inside. */
static void cut(uint64_t address) {
  size_t at = first_ending_after(address);
  if (at == spans.count || spans.items[at].start >= address) return;
  span tail = spans.items[at];
  tail.start = spans.items[at].end = address;
  insert(at + 1, tail);
}

/* Drops what is of freed allocations, then makes spans cover [start, end) without gaps. The first of them. */
static size_t cover(uint64_t start, uint64_t end, uint32_t allocation) {
  for (size_t at = first_ending_after(start); at < spans.count && spans.items[at].start < end;) {
    if (spans.items[at].allocation != allocation) erase(at);
    else at++;
  }
  cut(start);
  cut(end);
  size_t first = first_ending_after(start), at = first;
  for (uint64_t done = start; done < end; at++) {
    bool gap = at == spans.count || spans.items[at].start > done;
    uint64_t until = at == spans.count || spans.items[at].start > end ? end : spans.items[at].start;
    if (gap) insert(at, (span){done, until, allocation, none});
    done = spans.items[at].end;
  }
  return first;
}

static void merge(void) {
  size_t kept = 0;
  for (size_t at = 1; at < spans.count; at++) {
    span *last = &spans.items[kept], *next = &spans.items[at];
    bool same = last->end == next->start && last->allocation == next->allocation &&
                last->hints.read_mostly == next->hints.read_mostly && last->hints.preferred == next->hints.preferred &&
                last->hints.prefetched == next->hints.prefetched && last->hints.accessed == next->hints.accessed;
    if (same) last->end = next->end;
    else spans.items[++kept] = *next;
  }
  if (spans.count) spans.count = kept + 1;
}

static void change(hints *of, int advice, int device) {
  uint32_t bit = device >= cudaCpuDeviceId && device < 31 ? UINT32_C(1) << (device + 1) : 0;
  switch (advice) {
  case cudaMemAdviseSetReadMostly: of->read_mostly = true; break;
  case cudaMemAdviseUnsetReadMostly: of->read_mostly = false; break;
  case cudaMemAdviseSetPreferredLocation: of->preferred = device; break;
  case cudaMemAdviseUnsetPreferredLocation: of->preferred = NOWHERE; break;
  case cudaMemAdviseSetAccessedBy: of->accessed |= bit; break;
  case cudaMemAdviseUnsetAccessedBy: of->accessed &= ~bit; break;
  default: of->prefetched = device; break; /* 0: of engine_range_prefetch */
  }
}

void engine_range_advise(uint64_t address, uint64_t bytes, int advice, int device) {
  uint64_t start = address / PAGE * PAGE, end = (address + bytes + PAGE - 1) / PAGE * PAGE;
  uint32_t allocation = engine_pointer_find_locked(address).id;
  for (size_t at = cover(start, end, allocation); at < spans.count && spans.items[at].start < end; at++)
    change(&spans.items[at].hints, advice, device);
  merge();
}

void engine_range_prefetch(uint64_t address, uint64_t bytes, int device) {
  engine_range_advise(address, bytes, 0, device);
}

bool engine_range_hinted(uint64_t address, uint64_t bytes, int preferred) {
  uint32_t allocation = engine_pointer_find_locked(address).id;
  for (size_t at = first_ending_after(address); at < spans.count && spans.items[at].start < address + bytes; at++) {
    const hints *of = &spans.items[at].hints;
    if (spans.items[at].allocation == allocation && (of->read_mostly || of->accessed || of->preferred != preferred))
      return true;
  }
  return false;
}

/* What the whole range has: a hint that only a part has is none. */
static hints common(uint64_t start, uint64_t end, uint32_t allocation) {
  hints all = none;
  bool first = true;
  for (uint64_t done = start; done < end; first = false) {
    size_t at = first_ending_after(done);
    bool there = at < spans.count && spans.items[at].start <= done && spans.items[at].allocation == allocation;
    hints here = there ? spans.items[at].hints : none;
    done = there || (at < spans.count && spans.items[at].start <= done) ? spans.items[at].end
           : at < spans.count                                           ? spans.items[at].start
                                                                        : end;
    if (first) all = here;
    all.read_mostly &= here.read_mostly;
    all.accessed &= here.accessed;
    if (all.preferred != here.preferred) all.preferred = NOWHERE;
    if (all.prefetched != here.prefetched) all.prefetched = NOWHERE;
  }
  return all;
}

/* cudaMemLocationType */
static int type_of(int device) {
  return device == NOWHERE           ? cudaMemLocationTypeInvalid
         : device == cudaCpuDeviceId ? cudaMemLocationTypeHost
                                     : cudaMemLocationTypeDevice;
}

static cudaError_t answer(const hints *of, int attribute, int *data, size_t bytes) {
  size_t count = bytes / sizeof *data;
  if (attribute == cudaMemRangeAttributeAccessedBy) {
    size_t used = 0; /* GPUs first */
    for (int device = 0; device < 31; device++)
      if (of->accessed >> (device + 1) & 1 && used < count) data[used++] = device;
    if (of->accessed & 1 && used < count) data[used++] = cudaCpuDeviceId;
    while (used < count) data[used++] = NOWHERE;
    return count && bytes % sizeof *data == 0 ? cudaSuccess : cudaErrorInvalidValue;
  }
  if (bytes != sizeof *data) return cudaErrorInvalidValue;
  switch (attribute) {
  case cudaMemRangeAttributeReadMostly: *data = of->read_mostly; return cudaSuccess;
  case cudaMemRangeAttributePreferredLocation:
  case 6: *data = of->preferred; return cudaSuccess;
  case cudaMemRangeAttributeLastPrefetchLocation:
  case 8: *data = of->prefetched; return cudaSuccess;
  case 5: *data = type_of(of->preferred); return cudaSuccess;
  case 7: *data = type_of(of->prefetched); return cudaSuccess;
  default: return cudaErrorInvalidValue;
  }
}

cudaError_t engine_range_attribute(void *data, size_t bytes, int attribute, uint64_t address, uint64_t range) {
  if (!data || !range) return cudaErrorInvalidValue;
  cudaError_t error = engine_enter();
  if (error) return error;
  engine_pointer found = engine_pointer_find_locked(address);
  if (found.memory != ENGINE_MANAGED || range > found.bytes - (address - found.address)) error = cudaErrorInvalidValue;
  else {
    hints all = common(address / PAGE * PAGE, (address + range + PAGE - 1) / PAGE * PAGE, found.id);
    error = answer(&all, attribute, data, bytes);
  }
  engine_leave();
  return error;
}

cudaError_t engine_range_attributes(void **data, const size_t *bytes, const int *attributes, size_t count,
                                    uint64_t address, uint64_t range) {
  if (!data || !bytes || !attributes || !count) return cudaErrorInvalidValue;
  cudaError_t error = cudaSuccess;
  for (size_t i = 0; i < count && !error; i++)
    error = engine_range_attribute(data[i], bytes[i], attributes[i], address, range);
  return error;
}
