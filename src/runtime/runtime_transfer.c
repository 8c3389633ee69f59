/* SPDX-License-Identifier: Apache-2.0 */
/* Copies: only of what is not valid where it is needed, in the longest runs (Wilt 2017, R4).
 *
 *   host side      to the GPU                                     from the GPU
 *   page-locked    one asynchronous copy per run                  the same
 *   pageable, file through slots of page-locked memory:           through slots; the host waits for each slot, so that the
 *                  filled by the host, copied asynchronously      bytes are safe on the host side when it returns
 *
 * Validity changes only for bytes whose copy is in a stream (or done); a copy that failed changes
 * nothing. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "runtime/gpu.h"

/* ---- files ---- */

ff_result file_read(store *s, uint64_t at, void *to, uint64_t bytes) {
  for (uint64_t done = 0; done < bytes;) {
    ssize_t got = pread(s->file, (char *)to + done, bytes - done, (off_t)(s->file_offset + at + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0)
      return runtime_fail(FF_ERROR_IO, "%s: cannot be read at byte %llu: %s", s->path,
                          (unsigned long long)(s->file_offset + at + done), strerror(errno));
    if (got == 0)
      return runtime_fail(FF_ERROR_IO, "%s: ends at byte %llu, before the segment does", s->path,
                          (unsigned long long)(s->file_offset + at + done));
    done += (uint64_t)got;
  }
  s->gpu->statistics.file_read_bytes += bytes;
  return FF_SUCCESS;
}

ff_result file_write(store *s, uint64_t at, const void *from, uint64_t bytes) {
  for (uint64_t done = 0; done < bytes;) {
    ssize_t put = pwrite(s->file, (const char *)from + done, bytes - done, (off_t)(s->file_offset + at + done));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0)
      return runtime_fail(FF_ERROR_IO, "%s: cannot be written at byte %llu: %s", s->path,
                          (unsigned long long)(s->file_offset + at + done),
                          put ? strerror(errno) : "nothing was taken");
    done += (uint64_t)put;
  }
  s->gpu->statistics.file_written_bytes += bytes;
  return FF_SUCCESS;
}

/* ---- slots ---- */

static ff_result take_slot(ff_gpu *gpu, uint32_t d, slot **out) {
  device *dev = &gpu->devices[d];
  slot *taken = &dev->slots[dev->next_slot];
  if (!taken->memory) {
    TRY(gpu_on(gpu, d));
    DRIVER_TRY(gpu, MemHostAlloc, (void **)&taken->memory, SLOT_BYTES, 1);
  }
  TRY(work_wait(gpu, taken->by));
  dev->next_slot = (dev->next_slot + 1) % SLOTS;
  *out = taken;
  return FF_SUCCESS;
}

static uint64_t slot_end(uint64_t at, uint64_t end) { return end - at < SLOT_BYTES ? end : at + SLOT_BYTES; }

/* ---- to the GPU ---- */

static ff_result begin_in(store *s, uint32_t d, span run, operation *op) {
  TRY(work_open(s->gpu, stream_of(d, STREAM_IN), op));
  return history_after(s->gpu, &s->sides[d].history, run.begin, run.end, true, op->stream);
}

static void arrived(store *s, uint32_t d, span run, operation op) {
  history_add(s->gpu, &s->sides[d].history, run.begin, run.end, true, op);
  spans_add(&s->sides[d].valid, run.begin, run.end);
}

static ff_result copy_in(store *s, uint32_t d, span run, const unsigned char *from, operation *op) {
  ff_gpu *gpu = s->gpu;
  TRY(begin_in(s, d, run, op));
  if (s->host_kind == HOST_PINNED) TRY(history_after(gpu, &s->host_history, run.begin, run.end, false, op->stream));
  DRIVER_TRY(gpu, MemcpyHtoDAsync, s->sides[d].address + run.begin, from, run.end - run.begin,
             gpu->streams[op->stream].handle);
  gpu->statistics.to_gpu_copies++;
  gpu->statistics.to_gpu_bytes += run.end - run.begin;
  arrived(s, d, run, *op);
  return FF_SUCCESS;
}

static ff_result copy_in_slots(store *s, uint32_t d, span run) {
  for (uint64_t at = run.begin, end; at < run.end; at = end) {
    slot *used;
    end = slot_end(at, run.end);
    TRY(take_slot(s->gpu, d, &used));
    if (s->host_kind == HOST_FILE) TRY(file_read(s, at, used->memory, end - at));
    else memcpy(used->memory, s->host + at, end - at);
    TRY(copy_in(s, d, (span){at, end}, used->memory, &used->by));
    TRY(work_close(s->gpu, used->by.stream));
  }
  return FF_SUCCESS;
}

static ff_result from_host(store *s, uint32_t d, span run) {
  operation op;
  if (s->host_kind != HOST_PINNED) return copy_in_slots(s, d, run);
  TRY(copy_in(s, d, run, s->host + run.begin, &op));
  history_add(s->gpu, &s->host_history, run.begin, run.end, false, op);
  return FF_SUCCESS;
}

static ff_result zero(store *s, uint32_t d, span run) {
  operation op;
  TRY(begin_in(s, d, run, &op));
  DRIVER_TRY(s->gpu, MemsetD8Async, s->sides[d].address + run.begin, 0, run.end - run.begin,
             s->gpu->streams[op.stream].handle);
  s->gpu->statistics.zeroed_bytes += run.end - run.begin;
  arrived(s, d, run, op);
  return FF_SUCCESS;
}

/* What is on some other GPU alone comes by the host. */
static ff_result bring_run(store *s, uint32_t d, span run) {
  span part;
  for (uint64_t at = run.begin; spans_next(&s->blank, true, &at, run.end, &part);) TRY(zero(s, d, part));
  for (uint64_t at = run.begin; spans_next(&s->sides[d].valid, false, &at, run.end, &part);) {
    TRY(transfer_out(s, part.begin, part.end));
    TRY(from_host(s, d, part));
  }
  return FF_SUCCESS;
}

ff_result transfer_in(store *s, uint32_t d, uint64_t begin, uint64_t end) {
  span run;
  for (uint64_t at = begin; spans_next(&s->sides[d].valid, false, &at, end, &run);) TRY(bring_run(s, d, run));
  return work_close(s->gpu, stream_of(d, STREAM_IN));
}

/* ---- from the GPU ---- */

static ff_result copy_out(store *s, uint32_t d, span run, unsigned char *to, operation *op) {
  ff_gpu *gpu = s->gpu;
  TRY(work_open(gpu, stream_of(d, STREAM_OUT), op));
  TRY(history_after(gpu, &s->sides[d].history, run.begin, run.end, false, op->stream));
  if (s->host_kind == HOST_PINNED) TRY(history_after(gpu, &s->host_history, run.begin, run.end, true, op->stream));
  DRIVER_TRY(gpu, MemcpyDtoHAsync, to, s->sides[d].address + run.begin, run.end - run.begin,
             gpu->streams[op->stream].handle);
  gpu->statistics.from_gpu_copies++;
  gpu->statistics.from_gpu_bytes += run.end - run.begin;
  history_add(gpu, &s->sides[d].history, run.begin, run.end, false, *op);
  return FF_SUCCESS;
}

static ff_result put_slot(store *s, const slot *used, uint64_t at, uint64_t end) {
  TRY(work_wait(s->gpu, used->by));
  if (s->host_kind == HOST_FILE) TRY(file_write(s, at, used->memory, end - at));
  else memcpy(s->host + at, used->memory, end - at);
  spans_add(&s->host_valid, at, end);
  return FF_SUCCESS;
}

/* One slot is filled by the GPU while the one before goes to the host side. */
static ff_result copy_out_slots(store *s, uint32_t d, span run) {
  slot *filled = NULL;
  uint64_t from = run.begin;
  for (uint64_t at = run.begin, end; at < run.end; at = end) {
    slot *used;
    end = slot_end(at, run.end);
    TRY(take_slot(s->gpu, d, &used));
    TRY(copy_out(s, d, (span){at, end}, used->memory, &used->by));
    TRY(work_close(s->gpu, used->by.stream));
    if (filled) TRY(put_slot(s, filled, from, at));
    filled = used;
    from = at;
  }
  return filled ? put_slot(s, filled, from, run.end) : FF_SUCCESS;
}

static ff_result to_host(store *s, uint32_t d, span run) {
  operation op;
  TRY(store_host(s));
  if (s->host_kind != HOST_PINNED) return copy_out_slots(s, d, run);
  TRY(copy_out(s, d, run, s->host + run.begin, &op));
  history_add(s->gpu, &s->host_history, run.begin, run.end, true, op);
  spans_add(&s->host_valid, run.begin, run.end);
  return FF_SUCCESS;
}

/* The runs of [begin, end) that are valid on the GPU, neither blank nor on the host, nor (`elsewhere`) on another
 * GPU. */
static ff_result save(store *s, uint32_t d, uint64_t begin, uint64_t end, bool elsewhere) {
  spans newer = {0};
  span run;
  for (uint64_t at = begin; spans_next(&s->sides[d].valid, true, &at, end, &run);)
    spans_add(&newer, run.begin, run.end);
  for (uint64_t at = begin; spans_next(&s->host_valid, true, &at, end, &run);) spans_remove(&newer, run.begin, run.end);
  for (uint64_t at = begin; spans_next(&s->blank, true, &at, end, &run);) spans_remove(&newer, run.begin, run.end);
  for (uint32_t e = 0; elsewhere && e < s->gpu->device_count; e++)
    for (uint64_t at = begin; e != d && spans_next(&s->sides[e].valid, true, &at, end, &run);)
      spans_remove(&newer, run.begin, run.end);
  ff_result result = FF_SUCCESS;
  for (size_t i = 0; i < newer.count && !result; i++) result = to_host(s, d, newer.items[i]);
  spans_free(&newer);
  if (!result) result = work_close(s->gpu, stream_of(d, STREAM_OUT));
  return result;
}

ff_result transfer_save(store *s, uint32_t d, uint64_t begin, uint64_t end) { return save(s, d, begin, end, true); }

ff_result transfer_out(store *s, uint64_t begin, uint64_t end) {
  for (uint32_t d = 0; d < s->gpu->device_count; d++) TRY(save(s, d, begin, end, false));
  return FF_SUCCESS;
}
