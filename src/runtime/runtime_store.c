/* SPDX-License-Identifier: Apache-2.0 */
/* Stores: where bytes can be, and which of these places have the newest.
 *
 *   blank --transfer_in (set to zero)--> valid on a GPU --transfer_out--> valid there and on the host
 *     any state --store_written--> valid on one GPU only;  --ff_segment_map for writing--> valid on the host only */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/gpu.h"

static ff_result reserve(ff_gpu *gpu, store *s) {
  for (uint32_t d = 0; d < gpu->device_count; d++) {
    TRY(gpu_on(gpu, d));
    DRIVER_TRY(gpu, MemAddressReserve, &s->sides[d].address, s->piece_count * gpu->piece, 0, 0, 0);
  }
  return FF_SUCCESS;
}

ff_result store_make(ff_gpu *gpu, ff_partition *partition, uint64_t bytes, store **out) {
  if (bytes > UINT64_C(1) << 46)
    return runtime_fail(FF_ERROR_NO_MEMORY, "%llu bytes are more than a segment can have", (unsigned long long)bytes);
  store *s = ff_alloc(sizeof *s);
  *s = (store){.gpu = gpu,
               .partition = partition && partition->own_memory ? partition : NULL,
               .bytes = bytes,
               .piece_count = (bytes + gpu->piece - 1) / gpu->piece,
               .file = -1};
  s->sides = ff_alloc(gpu->device_count * sizeof *s->sides);
  for (uint32_t d = 0; d < gpu->device_count; d++) s->sides[d].pieces = ff_alloc(s->piece_count * sizeof(piece));
  spans_add(&s->blank, 0, bytes);
  FF_PUSH(&gpu->stores, s);
  ff_result result = reserve(gpu, s);
  if (result) store_free(s);
  else *out = s;
  return result;
}

static void free_host(store *s) {
  ff_gpu *gpu = s->gpu;
  if (s->host_kind == HOST_PINNED) {
    INSIST(gpu->driver->MemFreeHost(s->host));
    gpu->statistics.pinned_host_bytes -= s->bytes;
  }
  if (s->host_kind == HOST_PAGEABLE) munmap(s->host, s->bytes);
  if (s->host_kind == HOST_PINNED || s->host_kind == HOST_PAGEABLE) gpu->statistics.host_bytes -= s->bytes;
  if (s->file >= 0) close(s->file);
}

void store_free(store *s) {
  ff_gpu *gpu = s->gpu;
  for (uint32_t d = 0; d < gpu->device_count; d++) {
    store_side *side = &s->sides[d];
    INSIST(gpu_on(gpu, d));
    if (side->address) INSIST(gpu->driver->MemAddressFree(side->address, s->piece_count * gpu->piece));
    free(side->pieces);
    spans_free(&side->valid);
    free(side->history.items);
  }
  INSIST(gpu_on(gpu, 0));
  free_host(s);
  spans_free(&s->blank);
  spans_free(&s->host_valid);
  spans_free(&s->offered);
  free(s->host_history.items);
  free(s->segments.items);
  free(s->sides);
  free(s->path);
  size_t at = 0;
  while (gpu->stores.items[at] != s) at++;
  memmove(&gpu->stores.items[at], &gpu->stores.items[at + 1], (--gpu->stores.count - at) * sizeof(store *));
  free(s);
}

/* Page-locked as far as that is allowed and given; what is not goes through slots. */
ff_result store_host(store *s) {
  ff_gpu *gpu = s->gpu;
  if (s->host_kind != HOST_NONE) return FF_SUCCESS;
  void *memory = NULL;
  TRY(gpu_on(gpu, 0));
  bool allowed = !gpu->pinned_limit || gpu->statistics.pinned_host_bytes + s->bytes <= gpu->pinned_limit;
  if (allowed && !gpu->driver->MemHostAlloc(&memory, s->bytes, 1)) { /* 1: page-locked for every context */
    s->host_kind = HOST_PINNED;
    gpu->statistics.pinned_host_bytes += s->bytes;
  } else {
    memory = mmap(NULL, s->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
      return runtime_fail(FF_ERROR_NO_MEMORY, "no host memory for %llu bytes: %s", (unsigned long long)s->bytes,
                          strerror(errno));
    s->host_kind = HOST_PAGEABLE;
  }
  s->host = memory;
  gpu->statistics.host_bytes += s->bytes;
  return FF_SUCCESS;
}

void store_written(store *s, uint32_t device, uint64_t begin, uint64_t end) {
  if (spans_bytes(&s->offered, begin, end)) { /* in vain */
    s->eager = false;
    spans_free(&s->offered);
  }
  spans_remove(&s->blank, begin, end);
  spans_remove(&s->host_valid, begin, end);
  for (uint32_t d = 0; d < s->gpu->device_count; d++)
    if (d != device) spans_remove(&s->sides[d].valid, begin, end);
  spans_add(&s->sides[device].valid, begin, end);
}

void store_check(const store *s) {
  spans all = {0};
  for (size_t i = 0; i < s->blank.count; i++) spans_add(&all, s->blank.items[i].begin, s->blank.items[i].end);
  for (size_t i = 0; i < s->host_valid.count; i++)
    spans_add(&all, s->host_valid.items[i].begin, s->host_valid.items[i].end);
  for (uint32_t d = 0; d < s->gpu->device_count; d++) {
    const store_side *side = &s->sides[d];
    size_t usable = 0;
    for (size_t i = 0; i < side->valid.count; i++)
      spans_add(&all, side->valid.items[i].begin, side->valid.items[i].end);
    for (size_t p = 0; p < s->piece_count; p++) {
      uint64_t begin = p * s->gpu->piece;
      usable += side->pieces[p].usable;
      FF_ASSERT(side->pieces[p].usable || !spans_bytes(&side->valid, begin, begin + s->gpu->piece));
    }
    FF_ASSERT(usable == side->usable);
  }
  FF_ASSERT(spans_cover(&all, 0, s->bytes));
  spans_free(&all);
}
