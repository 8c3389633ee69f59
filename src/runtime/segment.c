/* SPDX-License-Identifier: Apache-2.0 */
/* Segments: made, asked about, mapped for the host, freed (Wilt 2017, R1, R3, R4, R8).
 *
 * Small segments share a store (a *slab*) of one piece: the driver maps GPU memory in pieces of 2 MiB, and a thousand
 * segments of a kilobyte should not take two gigabytes. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/gpu.h"

enum { SLAB_SHARE = 4, SLAB_ALIGN = 512 }; /* of a piece: the largest segment in a slab; where they begin */

/* ---- making ---- */

static ff_segment *add_segment(ff_gpu *gpu, const char *name, store *s, uint64_t base, uint64_t bytes) {
  ff_segment *g = ff_alloc(sizeof *g);
  char own[32];
  snprintf(own, sizeof own, "segment %llu", (unsigned long long)++gpu->segment_names);
  *g = (ff_segment){.gpu = gpu, .store = s, .base = base, .bytes = bytes, .name = ff_strdup(name ? name : own)};
  FF_PUSH(&gpu->segments, g);
  size_t at = s->segments.count;
  FF_PUSH(&s->segments, g);
  for (; at && s->segments.items[at - 1]->base > base; at--) s->segments.items[at] = s->segments.items[at - 1];
  s->segments.items[at] = g;
  return g;
}

/* The first place for so many bytes between a slab's segments; UINT64_MAX: there is none. */
static uint64_t place_in(const store *s, uint64_t bytes) {
  uint64_t at = 0;
  for (size_t i = 0; i < s->segments.count; i++) {
    const ff_segment *g = s->segments.items[i];
    if (at + bytes <= g->base) return at;
    at = (g->base + g->bytes + SLAB_ALIGN - 1) / SLAB_ALIGN * SLAB_ALIGN;
  }
  return at + bytes <= s->bytes ? at : UINT64_MAX;
}

static ff_result find_slab(ff_gpu *gpu, ff_partition *partition, uint64_t bytes, store **out, uint64_t *base) {
  for (size_t i = gpu->stores.count; i-- > 0;) {
    if (!gpu->stores.items[i]->slab ||
        gpu->stores.items[i]->partition != (partition && partition->own_memory ? partition : NULL))
      continue;
    *base = place_in(gpu->stores.items[i], bytes);
    *out = gpu->stores.items[i];
    if (*base != UINT64_MAX) return FF_SUCCESS;
  }
  *base = 0;
  TRY(store_make(gpu, partition, gpu->piece, out));
  (*out)->slab = true;
  return FF_SUCCESS;
}

static ff_result create(ff_gpu *gpu, ff_partition *partition, const char *name, uint64_t bytes, ff_segment **segment) {
  store *s;
  uint64_t base = 0;
  if (gpu->lost) return runtime_fail(FF_ERROR_LOST, "%s", gpu->lost_message);
  if (bytes <= gpu->piece / SLAB_SHARE) TRY(find_slab(gpu, partition, bytes, &s, &base));
  else TRY(store_make(gpu, partition, bytes, &s));
  *segment = add_segment(gpu, name, s, base, bytes);
  return FF_SUCCESS;
}

ff_result ff_segment_create(ff_gpu *gpu, const char *name, uint64_t bytes, ff_segment **segment) {
  if (!gpu || !segment || !bytes)
    return runtime_fail(FF_ERROR_INVALID, "ff_segment_create: %s", bytes ? "NULL" : "a segment of no bytes");
  gpu_enter(gpu);
  ff_result result = create(gpu, NULL, name, bytes, segment);
  gpu_leave(gpu);
  return result;
}

/* ---- files ---- */

static ff_result open_file(const char *path, unsigned flags, uint64_t offset, uint64_t *bytes, int *file) {
  int mode = flags & FF_FILE_WRITE ? O_RDWR | (flags & FF_FILE_CREATE ? O_CREAT : 0) : O_RDONLY;
  struct stat about;
  *file = open(path, mode | O_CLOEXEC, 0666);
  if (*file < 0) return runtime_fail(FF_ERROR_IO, "%s: %s", path, strerror(errno));
  if (fstat(*file, &about)) return runtime_fail(FF_ERROR_IO, "%s: %s", path, strerror(errno));
  if (!S_ISREG(about.st_mode) && !S_ISBLK(about.st_mode))
    return runtime_fail(FF_ERROR_IO, "%s: is no regular file", path);
  off_t end = lseek(*file, 0, SEEK_END); /* of a block device too */
  uint64_t size = end > 0 ? (uint64_t)end : 0;
  if (!*bytes && offset < size) *bytes = size - offset;
  if (!*bytes) return runtime_fail(FF_ERROR_IO, "%s: has no bytes from %llu on", path, (unsigned long long)offset);
  if (offset > INT64_MAX || *bytes > INT64_MAX - offset)
    return runtime_fail(FF_ERROR_INVALID, "%s: no file has %llu bytes", path, (unsigned long long)*bytes);
  if (offset + *bytes <= size) return FF_SUCCESS;
  if (!(flags & FF_FILE_CREATE))
    return runtime_fail(FF_ERROR_IO, "%s: has %llu bytes, the segment ends at %llu", path, (unsigned long long)size,
                        (unsigned long long)(offset + *bytes));
  if (ftruncate(*file, (off_t)(offset + *bytes)))
    return runtime_fail(FF_ERROR_IO, "%s: cannot be extended: %s", path, strerror(errno));
  return FF_SUCCESS;
}

static ff_result open_segment(ff_gpu *gpu, ff_partition *partition, const char *name, const char *path, unsigned flags,
                              uint64_t offset, uint64_t bytes, ff_segment **segment) {
  int file = -1;
  store *s;
  if (gpu->lost) return runtime_fail(FF_ERROR_LOST, "%s", gpu->lost_message);
  ff_result result = open_file(path, flags, offset, &bytes, &file);
  if (!result) result = store_make(gpu, partition, bytes, &s);
  if (result) {
    if (file >= 0) close(file);
    return result;
  }
  s->host_kind = HOST_FILE;
  s->file = file;
  s->path = ff_strdup(path);
  s->file_offset = offset;
  s->writable = flags & FF_FILE_WRITE;
  spans_remove(&s->blank, 0, bytes);
  spans_add(&s->host_valid, 0, bytes);
  *segment = add_segment(gpu, name ? name : path, s, 0, bytes);
  return FF_SUCCESS;
}

static ff_result check_open(const char *call, const void *of, const char *path, unsigned flags, ff_segment **segment) {
  if (!of || !path || !segment) return runtime_fail(FF_ERROR_INVALID, "%s: NULL", call);
  return flags & ~3u || flags == FF_FILE_CREATE ? runtime_fail(FF_ERROR_INVALID, "%s: no such flags: %u", call, flags)
                                                : FF_SUCCESS;
}

ff_result ff_segment_open(ff_gpu *gpu, const char *name, const char *path, unsigned flags, uint64_t offset,
                          uint64_t bytes, ff_segment **segment) {
  TRY(check_open("ff_segment_open", gpu, path, flags, segment));
  gpu_enter(gpu);
  ff_result result = open_segment(gpu, NULL, name, path, flags, offset, bytes, segment);
  gpu_leave(gpu);
  return result;
}

/* ---- in a partition's memory ---- */

ff_result ff_partition_segment_create(ff_partition *partition, const char *name, uint64_t bytes, ff_segment **segment) {
  if (!partition || !segment || !bytes)
    return runtime_fail(FF_ERROR_INVALID, "ff_partition_segment_create: %s", bytes ? "NULL" : "a segment of no bytes");
  ff_gpu *gpu = partition->gpu;
  gpu_enter(gpu);
  ff_result result = create(gpu, partition, name, bytes, segment);
  gpu_leave(gpu);
  return result;
}

ff_result ff_partition_segment_open(ff_partition *partition, const char *name, const char *path, unsigned flags,
                                    uint64_t offset, uint64_t bytes, ff_segment **segment) {
  TRY(check_open("ff_partition_segment_open", partition, path, flags, segment));
  ff_gpu *gpu = partition->gpu;
  gpu_enter(gpu);
  ff_result result = open_segment(gpu, partition, name, path, flags, offset, bytes, segment);
  gpu_leave(gpu);
  return result;
}

/* ---- freeing ---- */

void segment_free(ff_segment *g) {
  ff_gpu *gpu = g->gpu;
  store *s = g->store;
  for (size_t i = 0; i < g->mappings.count; i++)
    if (g->mappings.items[i].copy)
      munmap(g->mappings.items[i].host, g->mappings.items[i].bytes.end - g->mappings.items[i].bytes.begin);
  size_t at = 0;
  while (gpu->segments.items[at] != g) at++;
  memmove(&gpu->segments.items[at], &gpu->segments.items[at + 1], (--gpu->segments.count - at) * sizeof g);
  for (at = 0; s->segments.items[at] != g;) at++;
  memmove(&s->segments.items[at], &s->segments.items[at + 1], (--s->segments.count - at) * sizeof g);
  free(g->mappings.items);
  free(g->name);
  free(g);
}

static ff_result wait_for_bytes(store *s, uint64_t begin, uint64_t end) {
  for (uint32_t d = 0; d < s->gpu->device_count; d++) TRY(history_wait(s->gpu, &s->sides[d].history, begin, end, true));
  return history_wait(s->gpu, &s->host_history, begin, end, true);
}

static void unpin(ff_segment *g, uint32_t d) {
  const ff_gpu *gpu = g->gpu;
  if (!(g->pins >> d & 1)) return;
  for (uint64_t i = g->base / gpu->piece; i * gpu->piece < g->base + g->bytes; i++)
    if (!--g->store->sides[d].pieces[i].pins) store_pool(g->store, d)->pinned_pieces--;
  g->pins &= ~(1u << d);
}

/* Its place is blank again. A store without segments goes; if the driver does not give its pieces back it stays, and
 * its pieces are evicted like others. */
static void give_up(ff_segment *g) {
  ff_gpu *gpu = g->gpu;
  store *s = g->store;
  uint64_t begin = g->base, end = g->base + g->bytes;
  bool dropped = s->segments.count == 1;
  for (uint32_t d = 0; d < gpu->device_count; d++) {
    unpin(g, d);
    spans_remove(&s->sides[d].valid, begin, end);
    history_forget(&s->sides[d].history, begin, end);
  }
  spans_remove(&s->host_valid, begin, end);
  history_forget(&s->host_history, begin, end);
  spans_add(&s->blank, begin, end);
  segment_free(g);
  for (uint32_t d = 0; dropped && d < gpu->device_count; d++) dropped = !memory_drop(s, d);
  if (dropped) store_free(s);
}

static ff_result free_segment(ff_segment *g) {
  store *s = g->store;
  if (g->mappings.count) return runtime_fail(FF_ERROR_BUSY, "segment '%s' is mapped", g->name);
  TRY(launch_flush(g->gpu));
  if (s->host_kind == HOST_FILE && s->writable) TRY(transfer_out(s, g->base, g->base + g->bytes));
  TRY(wait_for_bytes(s, g->base, g->base + g->bytes));
  give_up(g);
  return FF_SUCCESS;
}

ff_result ff_segment_free(ff_segment *segment) {
  if (!segment) return FF_SUCCESS;
  ff_gpu *gpu = segment->gpu;
  gpu_enter(gpu);
  ff_result result = free_segment(segment);
  gpu_leave(gpu);
  return result;
}

/* ---- the host window ---- */

static ff_result check_range(const ff_segment *g, uint64_t offset, uint64_t *bytes) {
  if (!*bytes && offset < g->bytes) *bytes = g->bytes - offset;
  if (*bytes && offset <= g->bytes && *bytes <= g->bytes - offset) return FF_SUCCESS;
  return runtime_fail(FF_ERROR_INVALID, "bytes %llu to %llu are not in segment '%s' of %llu bytes",
                      (unsigned long long)offset, (unsigned long long)(offset + *bytes), g->name,
                      (unsigned long long)g->bytes);
}

static ff_result check_mappings(const ff_segment *g, ff_access access, span bytes) {
  for (size_t i = 0; i < g->mappings.count; i++) {
    const mapping *m = &g->mappings.items[i];
    if ((m->write || access & FF_WRITE) && m->bytes.begin < bytes.end && bytes.begin < m->bytes.end)
      return runtime_fail(FF_ERROR_BUSY, "bytes %llu to %llu of segment '%s' are mapped%s already",
                          (unsigned long long)(m->bytes.begin - g->base), (unsigned long long)(m->bytes.end - g->base),
                          g->name, m->write ? " for writing" : "");
  }
  return FF_SUCCESS;
}

/* A file's bytes in memory of their own. */
static ff_result map_file(ff_segment *g, ff_access access, span bytes, mapping *made) {
  store *s = g->store;
  uint64_t size = bytes.end - bytes.begin;
  if (access & FF_WRITE && !s->writable)
    return runtime_fail(FF_ERROR_INVALID, "segment '%s': its file is not written", g->name);
  TRY(transfer_out(s, bytes.begin, bytes.end));
  void *host = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (host == MAP_FAILED)
    return runtime_fail(FF_ERROR_NO_MEMORY, "no host memory for %llu bytes: %s", (unsigned long long)size,
                        strerror(errno));
  ff_result result = access & FF_READ ? file_read(s, bytes.begin, host, size) : FF_SUCCESS;
  if (result) munmap(host, size);
  *made = (mapping){host, bytes, access & FF_WRITE, true};
  return result;
}

/* From now on the host may write there at any time: no other place is valid. */
static void host_writes(store *s, span bytes) {
  spans_remove(&s->blank, bytes.begin, bytes.end);
  for (uint32_t d = 0; d < s->gpu->device_count; d++) spans_remove(&s->sides[d].valid, bytes.begin, bytes.end);
  spans_add(&s->host_valid, bytes.begin, bytes.end);
}

static ff_result map_memory(ff_segment *g, ff_access access, span bytes, mapping *made) {
  store *s = g->store;
  span run;
  uint64_t copied = s->gpu->statistics.from_gpu_bytes;
  TRY(store_host(s));
  if (access & FF_READ) TRY(transfer_out(s, bytes.begin, bytes.end));
  if (s->gpu->statistics.from_gpu_bytes > copied) s->eager = true;
  spans_remove(&s->offered, bytes.begin, bytes.end);
  TRY(history_wait(s->gpu, &s->host_history, bytes.begin, bytes.end, access & FF_WRITE));
  for (uint64_t at = bytes.begin; access & FF_READ && spans_next(&s->host_valid, false, &at, bytes.end, &run);) {
    memset(s->host + run.begin, 0, run.end - run.begin); /* blank */
    spans_add(&s->host_valid, run.begin, run.end);
  }
  if (access & FF_WRITE) host_writes(s, bytes);
  *made = (mapping){s->host + bytes.begin, bytes, access & FF_WRITE, false};
  return FF_SUCCESS;
}

static ff_result map_locked(ff_segment *g, ff_access access, uint64_t offset, uint64_t bytes, void **host) {
  mapping made;
  TRY(check_range(g, offset, &bytes));
  span range = {g->base + offset, g->base + offset + bytes};
  TRY(check_mappings(g, access, range));
  TRY(launch_flush(g->gpu));
  if (g->store->host_kind == HOST_FILE) TRY(map_file(g, access, range, &made));
  else TRY(map_memory(g, access, range, &made));
  FF_PUSH(&g->mappings, made);
  *host = made.host;
  return FF_SUCCESS;
}

ff_result ff_segment_map(ff_segment *segment, ff_access access, uint64_t offset, uint64_t bytes, void **host) {
  if (!segment || !host || !access || access & ~3u)
    return runtime_fail(FF_ERROR_INVALID, "ff_segment_map: %s", !segment || !host ? "NULL" : "no such access");
  ff_gpu *gpu = segment->gpu;
  gpu_enter(gpu);
  ff_result result = map_locked(segment, access, offset, bytes, host);
  gpu_leave(gpu);
  return result;
}

static ff_result unmap_locked(ff_segment *g, void *host) {
  size_t i = g->mappings.count; /* the youngest of equal ones */
  while (i && g->mappings.items[i - 1].host != host) i--;
  if (!i) return runtime_fail(FF_ERROR_INVALID, "segment '%s' is not mapped at %p", g->name, host);
  mapping m = g->mappings.items[--i];
  if (m.copy && m.write) {
    TRY(file_write(g->store, m.bytes.begin, m.host, m.bytes.end - m.bytes.begin));
    host_writes(g->store, m.bytes);
  }
  if (m.copy) munmap(m.host, m.bytes.end - m.bytes.begin);
  memmove(&g->mappings.items[i], &g->mappings.items[i + 1], (--g->mappings.count - i) * sizeof m);
  return FF_SUCCESS;
}

ff_result ff_segment_unmap(ff_segment *segment, void *host) {
  if (!segment) return runtime_fail(FF_ERROR_INVALID, "ff_segment_unmap: NULL");
  ff_gpu *gpu = segment->gpu;
  gpu_enter(gpu);
  ff_result result = unmap_locked(segment, host);
  gpu_leave(gpu);
  return result;
}

/* ---- wishes ---- */

static ff_result flush(ff_segment *g) {
  TRY(launch_flush(g->gpu));
  TRY(transfer_out(g->store, g->base, g->base + g->bytes));
  return history_wait(g->gpu, &g->store->host_history, g->base, g->base + g->bytes, false);
}

ff_result ff_segment_flush(ff_segment *segment) {
  if (!segment) return runtime_fail(FF_ERROR_INVALID, "ff_segment_flush: NULL");
  ff_gpu *gpu = segment->gpu;
  gpu_enter(gpu);
  ff_result result = flush(segment);
  gpu_leave(gpu);
  return result;
}

static ff_result evict_segment(ff_segment *g) {
  TRY(launch_flush(g->gpu));
  for (uint32_t d = 0; d < g->gpu->device_count; d++) TRY(memory_evict(g->store, d));
  return FF_SUCCESS;
}

ff_result ff_segment_evict(ff_segment *segment) {
  if (!segment) return runtime_fail(FF_ERROR_INVALID, "ff_segment_evict: NULL");
  ff_gpu *gpu = segment->gpu;
  gpu_enter(gpu);
  ff_result result = evict_segment(segment);
  gpu_leave(gpu);
  return result;
}

static ff_result pin(ff_segment *g, uint32_t d) {
  ff_gpu *gpu = g->gpu;
  const ff_partition *in = g->store->partition;
  if (in && in->device != d)
    return runtime_fail(FF_ERROR_INVALID, "segment '%s' is of partition '%s', on GPU %u", g->name, in->name,
                        in->device);
  need all = {g->store, {g->base, g->base + g->bytes}};
  TRY(check_mappings(g, FF_READ, all.bytes)); /* what the host is writing cannot be brought */
  TRY(launch_flush(gpu));
  uint64_t pieces = memory_pieces(gpu, d, &all, 1);
  if (pieces > store_pool(g->store, d)->budget_pieces)
    return runtime_fail(
        FF_ERROR_TOO_LARGE,
        "segment '%s' cannot be pinned: with all that is pinned it needs %llu bytes, the budget is %llu", g->name,
        (unsigned long long)(pieces * gpu->piece),
        (unsigned long long)(store_pool(g->store, d)->budget_pieces * gpu->piece));
  TRY(memory_bring(gpu, d, &all, 1));
  TRY(transfer_in(g->store, d, all.bytes.begin, all.bytes.end));
  for (uint64_t i = g->base / gpu->piece; i * gpu->piece < g->base + g->bytes; i++)
    if (!g->store->sides[d].pieces[i].pins++) store_pool(g->store, d)->pinned_pieces++;
  g->pins |= 1u << d;
  return FF_SUCCESS;
}

ff_result ff_segment_pin(ff_segment *segment, uint32_t device, bool pinned) {
  if (!segment || device >= segment->gpu->device_count)
    return runtime_fail(FF_ERROR_INVALID, "ff_segment_pin: %s", segment ? "no such GPU" : "NULL");
  ff_gpu *gpu = segment->gpu;
  ff_result result = FF_SUCCESS;
  gpu_enter(gpu);
  if (!pinned) unpin(segment, device);
  else if (!(segment->pins >> device & 1)) result = pin(segment, device);
  gpu_leave(gpu);
  return result;
}

ff_result ff_segment_prioritise(ff_segment *segment, int priority) {
  if (!segment) return runtime_fail(FF_ERROR_INVALID, "ff_segment_prioritise: NULL");
  pthread_mutex_lock(&segment->gpu->lock);
  segment->priority = priority;
  pthread_mutex_unlock(&segment->gpu->lock);
  return FF_SUCCESS;
}

/* ---- questions ---- */

static bool is_used(const ff_segment *g) {
  ff_gpu *gpu = g->gpu;
  for (const launch *l = gpu->first; l; l = l->next)
    for (uint32_t u = 0; u < l->use_count; u++)
      if (l->uses[u].segment == g) return true;
  for (uint32_t d = 0; d < gpu->device_count; d++) {
    const history *h = &g->store->sides[d].history;
    for (size_t i = 0; i < h->count; i++)
      if (h->items[i].bytes.begin < g->base + g->bytes && g->base < h->items[i].bytes.end &&
          !work_is_over(gpu, h->items[i].by))
        return true;
  }
  return false;
}

static uint64_t resident_bytes(const ff_segment *g) {
  uint64_t bytes = 0, end = g->base + g->bytes, piece = g->gpu->piece;
  for (uint64_t i = g->base / piece; i * piece < end; i++) {
    bool there = false;
    for (uint32_t d = 0; d < g->gpu->device_count; d++) there = there || g->store->sides[d].pieces[i].usable;
    uint64_t from = i * piece > g->base ? i * piece : g->base, to = (i + 1) * piece < end ? (i + 1) * piece : end;
    if (there) bytes += to - from;
  }
  return bytes;
}

static void describe(const ff_segment *g, ff_segment_info *info) {
  const store *s = g->store;
  uint64_t end = g->base + g->bytes;
  spans valid = {0};
  span run;
  for (uint32_t d = 0; d < g->gpu->device_count; d++)
    for (uint64_t at = g->base; spans_next(&s->sides[d].valid, true, &at, end, &run);)
      spans_add(&valid, run.begin, run.end);
  *info = (ff_segment_info){.name = g->name,
                            .bytes = g->bytes,
                            .address = s->sides[0].address + g->base,
                            .resident_bytes = resident_bytes(g),
                            .valid_bytes = spans_bytes(&valid, g->base, end),
                            .used = is_used(g),
                            .pinned = g->pins,
                            .file = s->host_kind == HOST_FILE};
  for (uint64_t at = g->base; spans_next(&s->host_valid, true, &at, end, &run);)
    spans_remove(&valid, run.begin, run.end);
  for (uint64_t at = g->base; spans_next(&s->blank, true, &at, end, &run);) spans_remove(&valid, run.begin, run.end);
  info->newer_bytes = spans_bytes(&valid, g->base, end);
  spans_free(&valid);
}

ff_result ff_segment_describe(ff_segment *segment, ff_segment_info *info) {
  if (!segment || !info) return runtime_fail(FF_ERROR_INVALID, "ff_segment_describe: NULL");
  pthread_mutex_lock(&segment->gpu->lock);
  describe(segment, info);
  pthread_mutex_unlock(&segment->gpu->lock);
  return FF_SUCCESS;
}

ff_result ff_segment_address(ff_segment *segment, uint32_t device, uint64_t *address) {
  if (!segment || !address || device >= segment->gpu->device_count)
    return runtime_fail(FF_ERROR_INVALID, "ff_segment_address: %s", segment && address ? "no such GPU" : "NULL");
  *address = segment->store->sides[device].address + segment->base;
  return FF_SUCCESS;
}

ff_result ff_owner(ff_gpu *gpu, uint64_t address, ff_segment **segment, uint64_t *offset) {
  if (!gpu || !segment) return runtime_fail(FF_ERROR_INVALID, "ff_owner: NULL");
  ff_result result = FF_ERROR_NOT_FOUND;
  pthread_mutex_lock(&gpu->lock);
  for (size_t i = 0; i < gpu->segments.count && result; i++)
    for (uint32_t d = 0; d < gpu->device_count && result; d++) {
      ff_segment *g = gpu->segments.items[i];
      uint64_t at = address - (g->store->sides[d].address + g->base);
      if (at >= g->bytes) continue;
      *segment = g;
      if (offset) *offset = at;
      result = FF_SUCCESS;
    }
  pthread_mutex_unlock(&gpu->lock);
  return result ? runtime_fail(result, "0x%llx is in no segment", (unsigned long long)address) : result;
}
