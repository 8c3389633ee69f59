/* SPDX-License-Identifier: Apache-2.0 */
/* Green contexts (Driver API: "Green Contexts", CUDA 12.4 and later) on engine_green.c: a device's SMs are a resource,
 * which is split, described, and given to a context.
 *
 *   cuDeviceGetDevResource -> cuDevSmResourceSplitByCount -> cuDevResourceGenerateDesc -> cuGreenCtxCreate ->
 *   cuGreenCtxStreamCreate
 *
 * What always holds: a resource that came from here carries in its padding which SMs it is and which split it came
 * from; one without that, or changed by the caller, is refused. A descriptor is one object per set of SMs and lives as
 * long as the process: the API has no call that destroys one. Groups are SMs side by side, from the lowest free one
 * on. */
#include "driver/driver_api/libcuda.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

typedef struct CUdevSmResource {
  unsigned smCount, minSmPartitionSize, smCoscheduledAlignment;
} CUdevSmResource;
typedef struct CUdevResource {
  int type;
  unsigned char padding[92];
  union {
    CUdevSmResource sm;
    unsigned char oversize[48];
  };
} CUdevResource;
_Static_assert(sizeof(CUdevResource) == 144, "as in the driver's binary interface");

typedef struct CUdevResourceDesc_st *CUdevResourceDesc;
struct CUdevResourceDesc_st {
  trace_sms sms;
  struct CUdevResourceDesc_st *next;
};

enum { RESOURCE_INVALID, RESOURCE_SM };
enum { SPLIT_IGNORE_COSCHEDULING = 1, SPLIT_MAX_CLUSTER = 2, GREEN_DEFAULT_STREAM = 1, SM_PAIR = 2 };
#define OURS 0x46464752u

typedef struct origin {
  uint32_t mark, split;
  trace_sms sms;
} origin; /* split: its number; 0: not of a split */
_Static_assert(sizeof(origin) <= sizeof((CUdevResource *)0)->padding, "it fits");

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct CUdevResourceDesc_st *descriptors;
static uint32_t splits;

/* ---- resources ---- */

/* The least group of an architecture, and what its size is a multiple of (the API's guideline). */
static void granularity(unsigned flags, unsigned *least, unsigned *alignment) {
  uint64_t major = engine_machine()->compute_major;
  *least = major >= 9 ? 8 : major == 8 ? 4 : 2;
  *alignment = major >= 9 ? 8 : 2;
  if (flags & SPLIT_IGNORE_COSCHEDULING) *least = *alignment = SM_PAIR;
}

static unsigned count_sms(const trace_sms *sms) {
  unsigned count = 0;
  for (unsigned i = 0; i < TRACE_SMS_MAX / 64; i++) count += (unsigned)__builtin_popcountll(sms->mask[i]);
  return count;
}

static CUdevResource make_resource(const trace_sms *sms, uint32_t split, unsigned flags) {
  CUdevResource made = {.type = RESOURCE_SM, .sm.smCount = count_sms(sms)};
  origin from = {.mark = OURS, .split = split, .sms = *sms};
  granularity(flags, &made.sm.minSmPartitionSize, &made.sm.smCoscheduledAlignment);
  memcpy(made.padding, &from, sizeof from);
  return made;
}

static CUresult read_resource(const CUdevResource *resource, origin *from) {
  if (resource->type != RESOURCE_SM) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
  memcpy(from, resource->padding, sizeof *from);
  return from->mark == OURS && count_sms(&from->sms) == resource->sm.smCount ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static trace_sms all_sms(void) {
  trace_sms sms = {0};
  for (uint32_t i = 0; i < engine_machine()->sm_count && i < TRACE_SMS_MAX; i++)
    sms.mask[i / 64] |= UINT64_C(1) << i % 64;
  return sms;
}

static CUresult give(CUdevResource *resource, const trace_sms *sms, int type) {
  if (type != RESOURCE_SM) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
  if (!resource) return CUDA_ERROR_INVALID_VALUE;
  *resource = make_resource(sms, 0, 0);
  return CUDA_SUCCESS;
}

LIBCUDA_CALL(cuDeviceGetDevResource, (CUdevice device, CUdevResource *resource, int type)) {
  LIBCUDA_TRY(libcuda_device(device));
  trace_sms sms = all_sms();
  return give(resource, &sms, type);
}

static CUresult green_resource(CUgreenCtx green, CUdevResource *resource, int type) {
  trace_sms sms;
  uint64_t id;
  if (!green || engine_green_describe(green, &sms, &id)) return CUDA_ERROR_INVALID_CONTEXT;
  return give(resource, &sms, type);
}

LIBCUDA_CALL(cuGreenCtxGetDevResource, (CUgreenCtx green, CUdevResource *resource, int type)) {
  LIBCUDA_TRY(libcuda_ready());
  return green_resource(green, resource, type);
}

LIBCUDA_CALL(cuCtxGetDevResource, (CUcontext context, CUdevResource *resource, int type)) {
  LIBCUDA_TRY(libcuda_ready());
  if (!context || !libcuda_is_live(context)) return CUDA_ERROR_INVALID_CONTEXT;
  CUgreenCtx green = libcuda_green_of(context);
  return green ? green_resource(green, resource, type)
               : cuDeviceGetDevResource(libcuda_device_of(context), resource, type);
}

static CUresult stream_resource(CUstream stream, bool own, CUdevResource *resource, int type) {
  engine_stream_info info;
  LIBCUDA_TRY(libcuda_result(engine_stream_describe(engine_stream_handle(stream, own), &info)));
  return info.green ? green_resource(info.green, resource, type) : cuDeviceGetDevResource(info.device, resource, type);
}
LIBCUDA_PAIR(cuStreamGetDevResource, _ptsz, (CUstream stream, CUdevResource *resource, int type),
             stream_resource(stream, own, resource, type))

/* ---- splitting ---- */

/* The lowest `count` SMs of *from, taken out of it. */
static trace_sms take_sms(trace_sms *from, unsigned count) {
  trace_sms taken = {0};
  for (uint32_t i = 0; i < TRACE_SMS_MAX && count; i++) {
    uint64_t bit = UINT64_C(1) << i % 64;
    if (!(from->mask[i / 64] & bit)) continue;
    from->mask[i / 64] &= ~bit;
    taken.mask[i / 64] |= bit;
    count--;
  }
  return taken;
}

static uint32_t next_split(void) {
  pthread_mutex_lock(&lock);
  uint32_t number = ++splits ? splits : ++splits; /* never 0 */
  pthread_mutex_unlock(&lock);
  return number;
}

LIBCUDA_CALL(cuDevSmResourceSplitByCount, (CUdevResource * result, unsigned *groups, const CUdevResource *input,
                                           CUdevResource *remaining, unsigned flags, unsigned wanted)) {
  LIBCUDA_TRY(libcuda_device(0));
  origin from;
  unsigned least, alignment;
  if (!groups || !input || flags & ~(unsigned)(SPLIT_IGNORE_COSCHEDULING | SPLIT_MAX_CLUSTER))
    return CUDA_ERROR_INVALID_VALUE;
  LIBCUDA_TRY(read_resource(input, &from));
  if (wanted > input->sm.smCount || (result && !*groups)) return CUDA_ERROR_INVALID_VALUE;
  if (flags & SPLIT_MAX_CLUSTER && engine_machine()->compute_major < 9) return CUDA_ERROR_INVALID_VALUE;
  if (from.split) return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION; /* must be a green context's first */
  granularity(flags, &least, &alignment);
  unsigned size = wanted < least ? least : (wanted + alignment - 1) / alignment * alignment,
           possible = input->sm.smCount / size;
  if (!possible) return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
  if (result && *groups < possible) possible = *groups;
  *groups = possible;
  if (!result) return CUDA_SUCCESS;
  uint32_t number = next_split();
  for (unsigned i = 0; i < possible; i++) {
    trace_sms group = take_sms(&from.sms, size);
    result[i] = make_resource(&group, number, flags);
  }
  if (remaining)
    *remaining =
        count_sms(&from.sms) ? make_resource(&from.sms, number, flags) : (CUdevResource){.type = RESOURCE_INVALID};
  return CUDA_SUCCESS;
}

/* ---- descriptors ---- */

static CUdevResourceDesc describe(const trace_sms *sms) {
  pthread_mutex_lock(&lock);
  CUdevResourceDesc found = descriptors;
  while (found && memcmp(&found->sms, sms, sizeof *sms)) found = found->next;
  if (!found) {
    found = ff_alloc(sizeof *found);
    *found = (struct CUdevResourceDesc_st){.sms = *sms, .next = descriptors};
    descriptors = found;
  }
  pthread_mutex_unlock(&lock);
  return found;
}

static bool is_descriptor(CUdevResourceDesc descriptor) {
  pthread_mutex_lock(&lock);
  CUdevResourceDesc at = descriptors;
  while (at && at != descriptor) at = at->next;
  pthread_mutex_unlock(&lock);
  return at != NULL;
}

LIBCUDA_CALL(cuDevResourceGenerateDesc, (CUdevResourceDesc * descriptor, CUdevResource *resources, unsigned count)) {
  LIBCUDA_TRY(libcuda_device(0));
  origin first, from;
  trace_sms sms = {0};
  if (!descriptor || !resources || !count) return CUDA_ERROR_INVALID_VALUE;
  LIBCUDA_TRY(read_resource(&resources[0], &first));
  for (unsigned i = 0; i < count; i++) { /* of one split, and none twice */
    LIBCUDA_TRY(read_resource(&resources[i], &from));
    if (count > 1 && (!from.split || from.split != first.split)) return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
    for (unsigned w = 0; w < TRACE_SMS_MAX / 64; w++) {
      if (sms.mask[w] & from.sms.mask[w]) return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
      sms.mask[w] |= from.sms.mask[w];
    }
  }
  *descriptor = describe(&sms);
  return CUDA_SUCCESS;
}

/* ---- contexts ---- */

/* libcuda_context.c */
CUresult cuDevicePrimaryCtxRetain(CUcontext *, CUdevice), cuDevicePrimaryCtxRelease_v2(CUdevice);

LIBCUDA_CALL(cuGreenCtxCreate, (CUgreenCtx * green, CUdevResourceDesc descriptor, CUdevice device, unsigned flags)) {
  LIBCUDA_TRY(libcuda_device(device));
  CUcontext held;
  if (!green || flags != GREEN_DEFAULT_STREAM || !is_descriptor(descriptor)) return CUDA_ERROR_INVALID_VALUE;
  LIBCUDA_TRY(cuDevicePrimaryCtxRetain(&held, device));
  CUresult result = libcuda_result(engine_green_create(device, &descriptor->sms, green));
  if (result) cuDevicePrimaryCtxRelease_v2(device);
  return result;
}

LIBCUDA_CALL(cuGreenCtxDestroy, (CUgreenCtx green)) {
  LIBCUDA_TRY(libcuda_ready());
  if (!green) return CUDA_ERROR_INVALID_CONTEXT;
  int device = engine_green_device(green);
  LIBCUDA_TRY(libcuda_result(engine_green_destroy(green)));
  libcuda_green_gone(green);
  return cuDevicePrimaryCtxRelease_v2(device);
}

LIBCUDA_CALL(cuCtxFromGreenCtx, (CUcontext * context, CUgreenCtx green)) {
  LIBCUDA_TRY(libcuda_ready());
  if (!context) return CUDA_ERROR_INVALID_VALUE;
  if (!green || !engine_green_valid(green)) return CUDA_ERROR_INVALID_CONTEXT;
  *context = libcuda_green_context(green);
  return CUDA_SUCCESS;
}

LIBCUDA_CALL(cuGreenCtxGetId, (CUgreenCtx green, unsigned long long *id)) {
  LIBCUDA_TRY(libcuda_ready());
  trace_sms sms;
  uint64_t number;
  if (!id) return CUDA_ERROR_INVALID_VALUE;
  CUcontext current = libcuda_current();
  if (!green && current && libcuda_is_live(current)) green = libcuda_green_of(current);
  if (!green) return CUDA_ERROR_INVALID_CONTEXT;
  LIBCUDA_TRY(libcuda_result(engine_green_describe(green, &sms, &number)));
  *id = number;
  return CUDA_SUCCESS;
}

/* ---- streams and events ---- */

LIBCUDA_CALL(cuGreenCtxStreamCreate, (CUstream * stream, CUgreenCtx green, unsigned flags, int priority)) {
  LIBCUDA_TRY(libcuda_ready());
  if (!stream || flags != cudaStreamNonBlocking) return CUDA_ERROR_INVALID_VALUE;
  if (!green || !engine_green_valid(green)) return CUDA_ERROR_INVALID_CONTEXT;
  return libcuda_result(engine_green_stream(green, flags, priority, stream));
}

LIBCUDA_CALL(cuGreenCtxRecordEvent, (CUgreenCtx green, CUevent event)) {
  LIBCUDA_TRY(libcuda_ready());
  if (!green || !engine_green_valid(green)) return CUDA_ERROR_INVALID_CONTEXT;
  return libcuda_result(engine_green_record(green, event));
}

LIBCUDA_CALL(cuGreenCtxWaitEvent, (CUgreenCtx green, CUevent event)) {
  LIBCUDA_TRY(libcuda_ready());
  if (!green || !engine_green_valid(green)) return CUDA_ERROR_INVALID_CONTEXT;
  return libcuda_result(engine_green_wait(green, event));
}
