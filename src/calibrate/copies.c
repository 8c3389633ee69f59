/* SPDX-License-Identifier: Apache-2.0 */
/* The link: copies by size and direction, both at once, of pageable memory; loads from pinned memory; copies within the
 * host.
 *
 * Copies are queued behind a kernel that is long enough, so that they follow each other on the device whatever their
 * calls cost. */
#define _GNU_SOURCE /* RTLD_NOLOAD */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "calibrate/lab.h"

enum { COPY_SIZES = (FIGURE_d2h_64M - FIGURE_h2d_4K + 1) / 2, LEAST = 4096 };

typedef struct buffers {
  cuda_address device, other;
  unsigned char *pinned, *pageable;
  size_t bytes;
  cuda_stream second;
} buffers;

static size_t copies_of(size_t bytes) { return bytes >= 1 << 20 ? 1 : 4; }

static ff_status copy(lab *l, bool in, cuda_address device, void *host, size_t bytes, cuda_stream stream) {
  if (in) LAB_CALL(l, MemcpyHtoDAsync, device, host, bytes, stream);
  else LAB_CALL(l, MemcpyDtoHAsync, host, device, bytes, stream);
  return FF_OK;
}

static double call_us(const lab *l) {
  double us = lab_figure(l, FIGURE_link_copy_us);
  return us > 0 ? us : 20; /* NAN: not known yet */
}

/* Microseconds of one copy on the device. */
static ff_status copy_time(lab *l, const buffers *b, bool in, size_t bytes, double *us) {
  size_t count = copies_of(bytes);
  LAB_TRY(lab_burn(l, 4 * call_us(l) * (double)count));
  LAB_CALL(l, EventRecord, l->begin, l->stream);
  for (size_t i = 0; i < count; i++) LAB_TRY(copy(l, in, b->device, b->pinned, bytes, l->stream));
  LAB_CALL(l, EventRecord, l->end, l->stream);
  LAB_TRY(lab_elapsed(l, l->begin, l->end, us));
  *us /= (double)count;
  return FF_OK;
}

static ff_status by_size(lab *l, const buffers *b, bool in) {
  double last = 0, before = 0;
  for (int i = 0; i < COPY_SIZES && (size_t)LEAST << i <= b->bytes; i++) {
    size_t bytes = (size_t)LEAST << i;
    before = last;
    LAB_TRY(copy_time(l, b, in, bytes, &last));
    lab_record(l, (figure_id)(FIGURE_h2d_4K + 2 * i + !in), (double)bytes / 1e3 / last);
  }
  lab_record(l, in ? FIGURE_link_h2d_gbs : FIGURE_link_d2h_gbs, (double)(b->bytes / 2) / 1e3 / (last - before));
  return FF_OK;
}

/* One copy each way, in two streams, both behind the same kernel. */
static ff_status both_ways(lab *l, const buffers *b) {
  size_t bytes = b->bytes / 2;
  double in, out, both;
  LAB_TRY(copy_time(l, b, true, bytes, &in));
  LAB_TRY(copy_time(l, b, false, bytes, &out));
  LAB_TRY(lab_burn(l, 12 * call_us(l)));
  LAB_CALL(l, EventRecord, l->begin, l->stream);
  LAB_CALL(l, StreamWaitEvent, b->second, l->begin, 0);
  LAB_TRY(copy(l, true, b->device, b->pinned, bytes, l->stream));
  LAB_TRY(copy(l, false, b->other, b->pinned + bytes, bytes, b->second));
  LAB_CALL(l, EventRecord, l->end, b->second);
  LAB_CALL(l, StreamWaitEvent, l->stream, l->end, 0);
  LAB_CALL(l, EventRecord, l->end, l->stream);
  LAB_TRY(lab_elapsed(l, l->begin, l->end, &both));
  lab_record(l, FIGURE_copy_engines, both < 0.75 * (in + out) ? 2 : 1);
  return FF_OK;
}

static ff_status host_cost(lab *l, const buffers *b) {
  enum { CALLS = 16 };
  LAB_CALL(l, StreamSynchronize, l->stream);
  double start = lab_host_now(l);
  for (int i = 0; i < CALLS; i++) LAB_TRY(copy(l, true, b->device, b->pinned, LEAST, l->stream));
  lab_record(l, FIGURE_link_copy_us, (lab_host_now(l) - start) / CALLS);
  LAB_CALL(l, StreamSynchronize, l->stream);
  return FF_OK;
}

/* By the difference of two sizes: what a call costs is in both. */
static ff_status pageable(lab *l, const buffers *b) {
  double half, whole, start = lab_host_now(l);
  LAB_CALL(l, MemcpyHtoD, b->device, b->pageable, b->bytes / 2);
  half = lab_host_now(l) - start;
  start = lab_host_now(l);
  LAB_CALL(l, MemcpyHtoD, b->device, b->pageable, b->bytes);
  whole = lab_host_now(l) - start;
  lab_record(l, FIGURE_pageable_gbs, (double)(b->bytes / 2) / 1e3 / (whole - half));
  return FF_OK;
}

/* cuMemcpy between two places of host memory: a call that the library has no other use for. */
static ff_status within_host(lab *l, const buffers *b) {
  void *library = dlopen(l->cuda->path, RTLD_NOW | RTLD_NOLOAD);
  int (*memory_copy)(cuda_address, cuda_address, size_t) =
      library ? (int (*)(cuda_address, cuda_address, size_t))dlsym(library, "cuMemcpy") : NULL;
  cuda_address to = (cuda_address)(uintptr_t)b->pageable, from = to + b->bytes / 2;
  if (!memory_copy || memory_copy(to, from, b->bytes / 2)) return FF_OK;
  double start = lab_host_now(l), whole, half;
  memory_copy(to, from, b->bytes / 4);
  half = lab_host_now(l) - start;
  start = lab_host_now(l);
  memory_copy(to, from, b->bytes / 2);
  whole = lab_host_now(l) - start;
  lab_record(l, FIGURE_host_gbs, (double)(b->bytes / 4) / 1e3 / (whole - half));
  return FF_OK;
}

/* A chase over pinned memory: each step is a trip over the link; 32 bytes of it are the transfer itself. */
static ff_status pinned_chase(lab *l, const buffers *b) {
  enum { MOST = 1024, STRIDE = 256 }; /* few pages: no TLB misses */
  double few, many;
  /* a power of two, which 389 has no factor of: all are visited */
  uint64_t count = b->bytes / STRIDE < MOST ? b->bytes / STRIDE : MOST;
  cuda_address base = (cuda_address)(uintptr_t)b->pinned;
  for (uint64_t i = 0; i < count; i++) {
    cuda_address next = base + (i + 389) % count * STRIDE;
    memcpy(b->pinned + i * STRIDE, &next, sizeof next);
  }
  LAB_TRY(lab_chase(l, KERNEL_chase_l2, base, 2, &few));
  LAB_TRY(lab_chase(l, KERNEL_chase_l2, base, 10, &many));
  double step = (many - few) / (8 * CHASE_STEPS),
         issue = (lab_cycles(l, step) - lab_latency(l, lab_cycles(l, step))) / lab_figure(l, FIGURE_clock_mhz);
  lab_record(l, FIGURE_link_latency_us, step - issue - 32e-3 / lab_figure(l, FIGURE_link_h2d_gbs));
  return FF_OK;
}

static ff_status all(lab *l, buffers *b) {
  void *pinned;
  LAB_TRY(lab_allocate(l, b->bytes, &b->device));
  LAB_TRY(lab_allocate(l, b->bytes, &b->other));
  LAB_CALL(l, MemHostAlloc, &pinned, b->bytes, 0);
  b->pinned = pinned;
  memset(b->pinned, 1, b->bytes);
  memset(b->pageable, 1, b->bytes);
  LAB_CALL(l, StreamCreate, &b->second, CUDA_STREAM_NON_BLOCKING);
  for (uint32_t i = 0; i < l->repeats; i++) {
    LAB_TRY(host_cost(l, b));
    LAB_TRY(by_size(l, b, true));
    LAB_TRY(by_size(l, b, false));
    LAB_TRY(both_ways(l, b));
    LAB_TRY(pageable(l, b));
    LAB_TRY(within_host(l, b));
    LAB_TRY(pinned_chase(l, b));
  }
  return FF_OK;
}

ff_status measure_copies(lab *l) {
  size_t available, total;
  LAB_CALL(l, MemGetInfo, &available, &total);
  buffers b = {.bytes = (size_t)64 << 20};
  while (b.bytes > (size_t)LEAST << 4 && b.bytes > available / 4) b.bytes /= 2;
  b.pageable = ff_alloc(b.bytes);
  ff_status status = all(l, &b);
  if (b.second) l->cuda->StreamDestroy(b.second);
  if (b.pinned) l->cuda->MemFreeHost(b.pinned);
  lab_free(l, b.device);
  lab_free(l, b.other);
  free(b.pageable);
  return status;
}
