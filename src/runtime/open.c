/* SPDX-License-Identifier: Apache-2.0 */
/* Opening and closing; the lock and the thread's CUDA context around every call.
 *
 *   gpu_enter: lock, remember the caller's context -> gpu_on: one of ours -> gpu_leave: the caller's again, unlock */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ptx/ir.h"
#include "runtime/runtime_check.h"

void gpu_enter(ff_gpu *gpu) {
  pthread_mutex_lock(&gpu->lock);
  if (gpu->driver->CtxGetCurrent(&gpu->caller)) gpu->caller = NULL;
  gpu->current = gpu->caller;
}

void gpu_leave(ff_gpu *gpu) {
  if (gpu->current != gpu->caller) gpu->driver->CtxSetCurrent(gpu->caller);
  pthread_mutex_unlock(&gpu->lock);
}

ff_result gpu_on(ff_gpu *gpu, uint32_t index) {
  cuda_context context = gpu->devices[index].context;
  if (gpu->current == context) return FF_SUCCESS;
  DRIVER_TRY(gpu, CtxSetCurrent, context);
  gpu->current = context;
  return FF_SUCCESS;
}

/* ---- opening ---- */

static uint64_t power_at_least(uint64_t bytes, uint64_t granularity) {
  uint64_t piece = granularity;
  while (piece < bytes) piece *= 2;
  return piece;
}

/* The piece: the same for all GPUs. */
static ff_result choose_piece(ff_gpu *gpu, const ff_options *o, uint64_t budget) {
  for (uint32_t d = 0; d < gpu->device_count; d++) {
    cuda_memory_properties properties = {.type = 1, .location = {1, gpu->devices[d].number}};
    size_t granularity;
    TRY(gpu_on(gpu, d));
    DRIVER_TRY(gpu, MemGetAllocationGranularity, &granularity, &properties, 0);
    if (!granularity) return runtime_fail(FF_ERROR_DRIVER, "cuMemGetAllocationGranularity: 0 bytes");
    uint64_t wanted = budget / PIECES_WANTED < LARGEST_PIECE ? budget / PIECES_WANTED : LARGEST_PIECE;
    uint64_t piece = power_at_least(o->piece ? o->piece : wanted, granularity);
    if (gpu->piece < piece) gpu->piece = piece;
  }
  return FF_SUCCESS;
}

ff_result stream_make(ff_gpu *gpu, uint32_t index, uint32_t which, cuda_green green) {
  stream *made = &gpu->streams[stream_of(index, which)];
  TRY(gpu_on(gpu, index));
  if (green) DRIVER_TRY(gpu, GreenCtxStreamCreate, &made->handle, green, CUDA_STREAM_NON_BLOCKING, 0);
  else DRIVER_TRY(gpu, StreamCreate, &made->handle, CUDA_STREAM_NON_BLOCKING);
  return FF_SUCCESS;
}

static ff_result open_device(ff_gpu *gpu, uint32_t index, int number) {
  device *d = &gpu->devices[index];
  size_t total;
  int virtual_memory = 0;
  DRIVER_TRY(gpu, DeviceGet, &d->number, number);
  DRIVER_TRY(gpu, DeviceGetAttribute, &virtual_memory, CUDA_ATTRIBUTE_VIRTUAL_MEMORY, d->number);
  if (!virtual_memory)
    return runtime_fail(FF_ERROR_NO_DRIVER, "GPU %d has no virtual memory management (cuMemMap)", number);
  DRIVER_TRY(gpu, DeviceTotalMem, &total, d->number);
  d->memory = total;
  DRIVER_TRY(gpu, DevicePrimaryCtxRetain, &d->context, d->number);
  TRY(gpu_on(gpu, index));
  int sms = 0;
  DRIVER_TRY(gpu, DeviceGetAttribute, &sms, CUDA_ATTRIBUTE_SM_COUNT, d->number);
  d->sm_count = sms > 0 ? (uint32_t)sms : 0;
  for (uint32_t s = 0; s < STREAM_PARTITIONS; s++) TRY(stream_make(gpu, index, s, NULL));
  return FF_SUCCESS;
}

static ff_result open_devices(ff_gpu *gpu, const ff_options *o) {
  uint64_t smallest = UINT64_MAX;
  for (uint32_t i = 0; i < gpu->device_count; i++) TRY(open_device(gpu, i, o->devices ? o->devices[i] : 0));
  for (uint32_t i = 0; i < gpu->device_count; i++) {
    size_t available, total;
    TRY(gpu_on(gpu, i));
    DRIVER_TRY(gpu, MemGetInfo, &available, &total);
    uint64_t budget = o->budget ? o->budget : available / 10 * 9;
    if (budget > total)
      return runtime_fail(FF_ERROR_NO_MEMORY, "the budget of %llu bytes is more than the GPU's %llu",
                          (unsigned long long)budget, (unsigned long long)total);
    if (budget < smallest) smallest = budget;
  }
  TRY(choose_piece(gpu, o, smallest));
  for (uint32_t i = 0; i < gpu->device_count; i++) gpu->devices[i].pool.budget_pieces = smallest / gpu->piece;
  if (smallest < gpu->piece)
    return runtime_fail(FF_ERROR_INVALID, "the budget of %llu bytes is less than one piece of %llu",
                        (unsigned long long)smallest, (unsigned long long)gpu->piece);
  for (uint32_t i = 0; o->commit && i < gpu->device_count; i++) TRY(memory_commit(gpu, i));
  return FF_SUCCESS;
}

static void close_device(ff_gpu *gpu, uint32_t index) {
  device *d = &gpu->devices[index];
  const cuda_driver *driver = gpu->driver;
  if (!d->context) return;
  INSIST(gpu_on(gpu, index));
  for (uint32_t i = 0; i < PARTITIONS; i++)
    if (d->partitions[i]) partition_free(d->partitions[i]);
  free(d->groups);
  for (size_t i = 0; i < d->pool.free.count; i++) INSIST(driver->MemRelease(d->pool.free.items[i].memory));
  check_close(gpu, index);
  for (uint32_t i = 0; i < SLOTS; i++)
    if (d->slots[i].memory) INSIST(driver->MemFreeHost(d->slots[i].memory));
  for (uint32_t i = 0; i < STREAMS; i++) {
    stream *s = &gpu->streams[stream_of(index, i)];
    for (uint32_t e = 0; e < STREAM_EVENTS; e++)
      if (s->events[e]) INSIST(driver->EventDestroy(s->events[e]));
    if (s->handle) INSIST(driver->StreamDestroy(s->handle));
  }
  free(d->pool.free.items);
  free(d->pool.stale.items);
  /* it was the caller's: the primary one, and goes with our hold on it */
  if (gpu->caller == d->context) gpu->caller = NULL;
  INSIST(driver->CtxSetCurrent(gpu->caller));
  gpu->current = gpu->caller;
  INSIST(driver->DevicePrimaryCtxRelease(d->number));
}

static void free_gpu(ff_gpu *gpu) {
  for (uint32_t i = 0; i < gpu->device_count; i++) close_device(gpu, i);
  gpu_leave(gpu);
  for (size_t i = 0; i < gpu->failed.count; i++) free(gpu->failed.items[i].message);
  free(gpu->failed.items);
  free(gpu->running.items);
  free(gpu->segments.items);
  free(gpu->stores.items);
  free(gpu->modules.items);
  free(gpu->streams);
  pthread_mutex_destroy(&gpu->lock);
  free(gpu);
}

static ff_result check_options(const ff_options *given, ff_options *o) {
  *o = (ff_options){0};
  if (!given) return FF_SUCCESS;
  if (given->size < offsetof(ff_options, check) || given->size > 4096)
    return runtime_fail(FF_ERROR_INVALID, "ff_open: ff_options.size is not set");
  memcpy(o, given, given->size < sizeof *o ? given->size : sizeof *o);
  if (o->devices && (!o->device_count || o->device_count > MAX_DEVICES))
    return runtime_fail(FF_ERROR_INVALID, "ff_open: 1 to %d GPUs", MAX_DEVICES);
  for (uint32_t i = 0; o->devices && i < o->device_count; i++)
    for (uint32_t j = 0; j < i; j++)
      if (o->devices[i] == o->devices[j])
        return runtime_fail(FF_ERROR_INVALID, "ff_open: GPU %d is named twice", o->devices[i]);
  return FF_SUCCESS;
}

ff_result ff_open(const ff_options *options, ff_gpu **out) {
  ff_options o;
  const cuda_driver *driver;
  ff_error error;
  if (!out) return runtime_fail(FF_ERROR_INVALID, "ff_open: NULL");
  TRY(check_options(options, &o));
  if (cuda_open(o.driver, &driver, &error)) return runtime_fail(FF_ERROR_NO_DRIVER, "%s", error.message);
  const char *check = getenv("FF_CHECK");
  ff_gpu *gpu = ff_alloc(sizeof *gpu);
  *gpu = (ff_gpu){.lock = PTHREAD_MUTEX_INITIALIZER,
                  .driver = driver,
                  .device_count = o.devices ? o.device_count : 1,
                  .lookahead = o.lookahead ? o.lookahead : LOOKAHEAD,
                  .check = o.check || (check && *check && strcmp(check, "0")),
                  .pinned_limit = o.pinned};
  gpu->streams = ff_alloc(gpu->device_count * STREAMS * sizeof *gpu->streams);
  for (uint32_t i = 0; i < gpu->device_count * STREAMS; i++) gpu->streams[i].device = i / STREAMS;
  gpu->last = &gpu->first;
  gpu_enter(gpu);
  ff_result result = open_devices(gpu, &o);
  if (result) {
    char reason[2048];
    snprintf(reason, sizeof reason, "%s", ff_message());
    free_gpu(gpu);
    runtime_restore_message(reason);
    return result;
  }
  gpu_leave(gpu);
  *out = gpu;
  return FF_SUCCESS;
}

/* ---- closing ---- */

static ff_result save_files(ff_gpu *gpu) {
  ff_result first = FF_SUCCESS;
  char reason[2048];
  for (size_t i = 0; i < gpu->stores.count; i++) {
    store *s = gpu->stores.items[i];
    if (s->host_kind != HOST_FILE || !s->writable) continue;
    ff_result result = transfer_out(s, 0, s->bytes);
    if (!result || first) continue;
    first = result;
    snprintf(reason, sizeof reason, "%s", ff_message());
  }
  if (first) runtime_restore_message(reason);
  return first;
}

/* What the driver does not give back (its context is lost) goes with the context. */
static void drop_stores(ff_gpu *gpu) {
  while (gpu->segments.count) segment_free(gpu->segments.items[gpu->segments.count - 1]);
  while (gpu->stores.count) {
    store *s = gpu->stores.items[gpu->stores.count - 1];
    for (uint32_t d = 0; d < gpu->device_count; d++) INSIST(memory_drop(s, d));
    store_free(s);
  }
}

ff_result ff_close(ff_gpu *gpu) {
  if (!gpu) return FF_SUCCESS;
  char reason[2048];
  gpu_enter(gpu);
  ff_result result = launch_settle(gpu), files;
  snprintf(reason, sizeof reason, "%s", ff_message());
  for (uint32_t i = 0; i < gpu->device_count * STREAMS; i++) { /* nothing may run when memory goes */
    if (!gpu->streams[i].handle) continue;
    INSIST(gpu_on(gpu, gpu->streams[i].device));
    INSIST(gpu->driver->StreamSynchronize(gpu->streams[i].handle));
  }
  files = save_files(gpu);
  if (!result && files) snprintf(reason, sizeof reason, "%s", ff_message());
  drop_stores(gpu);
  while (gpu->modules.count) module_free(gpu->modules.items[gpu->modules.count - 1]);
  free_gpu(gpu);
  if (!result) result = files;
  if (result) runtime_restore_message(reason);
  return result;
}

/* ---- questions ---- */

ff_result ff_gpu_describe(ff_gpu *gpu, ff_gpu_info *info) {
  if (!gpu || !info) return runtime_fail(FF_ERROR_INVALID, "ff_gpu_describe: NULL");
  gpu_enter(gpu);
  *info = (ff_gpu_info){.device_count = gpu->device_count,
                        .is_virtual = gpu->driver->is_virtual,
                        .memory = gpu->devices[0].memory,
                        .budget = gpu->devices[0].pool.budget_pieces * gpu->piece,
                        .piece = gpu->piece};
  int failed = gpu->driver->DeviceGetName(info->name, sizeof info->name, gpu->devices[0].number);
  snprintf(info->driver, sizeof info->driver, "%s%.240s", gpu->driver->is_virtual ? "virtual: " : "",
           gpu->driver->path);
  ff_result result = failed ? driver_failed(gpu, failed, "cuDeviceGetName") : FF_SUCCESS;
  gpu_leave(gpu);
  return result;
}

ff_result ff_statistics_get(ff_gpu *gpu, ff_statistics *statistics) {
  if (!gpu || !statistics) return runtime_fail(FF_ERROR_INVALID, "ff_statistics_get: NULL");
  pthread_mutex_lock(&gpu->lock);
  *statistics = gpu->statistics;
  pthread_mutex_unlock(&gpu->lock);
  return FF_SUCCESS;
}
