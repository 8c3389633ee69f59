/* SPDX-License-Identifier: Apache-2.0 */
/* Cooperative kernels on several devices that can synchronise with each other (Driver API,
 * cuLaunchCooperativeKernelMultiDevice). They are launched one after the other; one that waits for the others at a
 * barrier of all grids only polls then, and gives way (engine_deferred.c). Where they meet is a word of memory that
 * all devices reach. A word is used again MEETINGS launches later: more kernels than EXEC_GIVEN_MAX cannot wait. */
#include <string.h>

#include "driver/engine/engine_graph.h"
#include "driver/engine/engine_internal.h"
#include "driver/engine/engine_peer.h"
#include "exec/memory/space.h"

enum { NO_SYNC_BEFORE = 1, NO_SYNC_AFTER = 2 }; /* CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_NO_* */
#define MEETING_BYTES 64u
#define MEETINGS (2 * EXEC_GIVEN_MAX)

static const exec_allocation *words;
static unsigned meetings; /* so far */

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

static cudaError_t new_meeting(uint64_t *meeting) {
  cudaError_t error = engine_enter_during_kernel();
  if (error) return error;
  if (!words && exec_memory_allocate(ff_engine.memory, MEETINGS * MEETING_BYTES, 0, EXEC_MEMORY_DEVICE,
                                     "where cooperative grids meet", &words, NULL))
    error = cudaErrorMemoryAllocation;
  else {
    exec_memory_exempt(words);
    *meeting = words->address + meetings++ % MEETINGS * MEETING_BYTES;
    memset((void *)(uintptr_t)*meeting, 0, MEETING_BYTES);
  }
  engine_leave();
  return error;
}

cudaError_t engine_grids_run(const engine_launch *list, unsigned count, unsigned flags) {
  uint64_t meeting = 0;
  int device[ENGINE_DEVICES_MAX];
  cudaError_t error = check_list(list, count, flags, device);
  if (!error) error = new_meeting(&meeting);
  if (!error && !(flags & NO_SYNC_BEFORE)) error = join(list, count, device);
  for (unsigned i = 0; i < count && !error; i++) {
    engine_launch launch = list[i];
    launch.cooperative = true;
    launch.grids = (exec_grids){.meeting = meeting, .rank = i, .count = count};
    engine_device_mean(device[i]);
    error = engine_launch_run(&launch);
  }
  engine_device_mean(-1);
  if (!error && !(flags & NO_SYNC_AFTER)) error = join(list, count, device);
  return error;
}
