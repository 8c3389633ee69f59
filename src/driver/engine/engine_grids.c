/* SPDX-License-Identifier: Apache-2.0 */
/* Cooperative kernels on several devices that can synchronise with each other (Driver API,
 * cuLaunchCooperativeKernelMultiDevice). They are launched one after the other; one that waits for the others at a
 * barrier of all grids only polls then, and gives way (engine_deferred.c). Where they meet is a word of memory that
 * all devices reach, and that no other launch has until the last of them is over.
 *
 * All of them are launched, or none: kernels before one that was refused would wait for it for ever. So the lock is
 * held from the check of the first until the last is launched, whose streams, lanes and captures are then as they were
 * checked (but where a stream's queue waits for a lane and the kernel needs none: its turn there gives the lock back).
 * Between two of them there is no other launch either: each of two such calls could have one device, and wait for the
 * other. */
#include <pthread.h>
#include <string.h>

#include "base/forks.h"
#include "driver/engine/engine_graph.h"
#include "driver/engine/engine_internal.h"
#include "driver/engine/engine_peer.h"
#include "exec/memory/space.h"

enum { NO_SYNC_BEFORE = 1, NO_SYNC_AFTER = 2 }; /* CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_NO_* */
#define MEETING_BYTES 64u
#define ROOM_MEETINGS 128u

/* held for a whole call, so that no other's kernels come between what its streams wait for and its own; the engine's
 * lock comes after it */
static pthread_mutex_t launching = PTHREAD_MUTEX_INITIALIZER;
FF_FREE_IN_CHILD(launching)
static FF_VEC(uint64_t) rooms; /* each has ROOM_MEETINGS words */
static size_t latest;          /* of all words, the one that was used last */

static bool same_shape(const engine_launch *a, const engine_launch *b) {
  return !memcmp(a->grid, b->grid, sizeof a->grid) && !memcmp(a->block, b->block, sizeof a->block) &&
         a->dynamic_shared == b->dynamic_shared;
}

static bool is_default(cudaStream_t stream) {
  return !stream || stream == cudaStreamLegacy || stream == cudaStreamPerThread;
}

static cudaError_t check_one(const engine_launch *launch, int *device, unsigned *devices) {
  engine_stream_info info;
  engine_capture_info capture;
  if (is_default(launch->stream)) return cudaErrorInvalidResourceHandle;
  cudaError_t error = engine_stream_describe(launch->stream, &info);
  if (!error) error = engine_capture_query(launch->stream, &capture);
  if (error) return error;
  if (capture.status) return cudaErrorStreamCaptureUnsupported;
  if (*devices >> info.device & 1) return cudaErrorInvalidDevice;
  *devices |= 1u << info.device;
  *device = info.device;
  return cudaSuccess;
}

/* Which device each is for. */
static cudaError_t check_list(const engine_launch *list, unsigned count, unsigned flags, int *device) {
  if (!list || !count || count > engine_devices() || flags & ~(unsigned)(NO_SYNC_BEFORE | NO_SYNC_AFTER))
    return cudaErrorInvalidValue;
  cudaError_t error = cudaSuccess;
  unsigned devices = 0;
  for (unsigned i = 0; i < count && !error; i++) {
    if (!engine_function_valid(list[i].function)) return cudaErrorInvalidDeviceFunction;
    bool same = !strcmp(list[i].function->name, list[0].function->name) && same_shape(&list[i], &list[0]);
    error = same ? check_one(&list[i], &device[i], &devices) : cudaErrorInvalidValue;
  }
  return error;
}

/* Each of the streams waits for all that is in the others. */
static cudaError_t join(const engine_launch *list, unsigned count, const int *device) {
  cudaError_t error = cudaSuccess;
  for (unsigned i = 0; i < count && !error; i++) {
    cudaEvent_t event;
    engine_device_mean(device[i]);
    error = engine_event_create(cudaEventDisableTiming, &event);
    if (error) break;
    error = engine_event_record(event, list[i].stream);
    for (unsigned j = 0; j < count && !error; j++)
      if (j != i) error = engine_stream_wait(list[j].stream, event);
    engine_event_destroy(event);
  }
  engine_device_mean(-1);
  return error;
}

static bool add_room(void) {
  const exec_allocation *room;
  if (exec_memory_allocate(ff_engine.memory, ROOM_MEETINGS * MEETING_BYTES, 0, EXEC_MEMORY_DEVICE,
                           "where cooperative grids meet", &room, NULL))
    return false;
  exec_memory_exempt(room);
  FF_PUSH(&rooms, room->address);
  return true;
}

/* One that no launch has; 0: all are in use. */
static uint64_t free_meeting(void) {
  size_t all = rooms.count * ROOM_MEETINGS;
  for (size_t n = 1; n <= all; n++) {
    size_t at = (latest + n) % all;
    uint64_t address = rooms.items[at / ROOM_MEETINGS] + at % ROOM_MEETINGS * MEETING_BYTES;
    if (engine_deferred_meet(address)) continue;
    latest = at;
    return address;
  }
  return 0;
}

static cudaError_t new_meeting(uint64_t *meeting) {
  *meeting = free_meeting();
  if (!*meeting && add_room()) *meeting = free_meeting();
  if (!*meeting) return cudaErrorMemoryAllocation;
  memset((void *)(uintptr_t)*meeting, 0, MEETING_BYTES);
  return cudaSuccess;
}

static bool is_captured(const engine_launch *launch) {
  const engine_stream *stream = engine_stream_find(launch->stream);
  return stream && stream->capture;
}

/* Can all of them be launched, and wait for each other? */
static cudaError_t check_launches(const engine_launch *launches, unsigned count) {
  uint32_t lanes = 0;
  for (unsigned i = 0; i < count; i++) {
    cudaError_t error = engine_launch_check_locked(&launches[i], &lanes);
    if (!error && is_captured(&launches[i])) error = cudaErrorStreamCaptureUnsupported;
    if (error) return error;
  }
  if (count == 1 || !lanes || engine_deferred_have_room(&launches[0], lanes)) return cudaSuccess;
  return ff_engine.check ? cudaErrorNotSupported : cudaErrorLaunchOutOfResources;
}

/* Before their streams wait for anything. */
static cudaError_t check_early(const engine_launch *launches, unsigned count) {
  cudaError_t error = engine_enter_during_kernel();
  if (error) return error;
  error = check_launches(launches, count);
  engine_leave();
  return error;
}

/* One that fails as soon as it runs is an error of the device: those after it are refused, and wait for nothing. */
static cudaError_t launch_together(engine_launch *launches, unsigned count, const int *device,
                                   engine_declared **declared) {
  uint64_t meeting;
  cudaError_t error = engine_enter_during_kernel();
  if (error) return error;
  error = check_launches(launches, count);
  if (!error) error = new_meeting(&meeting);
  for (unsigned i = 0; i < count && !error; i++) {
    launches[i].grids = (exec_grids){.meeting = meeting, .rank = i, .count = count};
    engine_device_mean(device[i]);
    engine_declared *none = NULL; /* what was declared is for the first */
    error = engine_launch_locked(&launches[i], i ? &none : declared);
    if (!error && i + 1 < count) error = ff_engine.sticky;
  }
  engine_device_mean(-1);
  engine_leave();
  return error;
}

static cudaError_t launch_all(engine_launch *launches, unsigned count, unsigned flags, const int *device,
                              engine_declared **declared) {
  cudaError_t error = check_early(launches, count);
  if (!error && !(flags & NO_SYNC_BEFORE)) error = join(launches, count, device);
  if (!error) error = launch_together(launches, count, device, declared);
  if (!error && !(flags & NO_SYNC_AFTER)) error = join(launches, count, device);
  return error;
}

cudaError_t engine_grids_run(const engine_launch *list, unsigned count, unsigned flags) {
  int device[ENGINE_DEVICES_MAX];
  engine_launch launches[ENGINE_DEVICES_MAX];
  cudaError_t error = check_list(list, count, flags, device);
  if (error) return error;
  for (unsigned i = 0; i < count; i++) {
    launches[i] = engine_launch_noted(&list[i]);
    launches[i].cooperative = true;
  }
  engine_declared *declared = engine_declared_take();
  pthread_mutex_lock(&launching);
  error = launch_all(launches, count, flags, device, &declared);
  pthread_mutex_unlock(&launching);
  engine_declared_free(declared);
  return error;
}
