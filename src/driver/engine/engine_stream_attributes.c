/* SPDX-License-Identifier: Apache-2.0 */
/* A stream's attributes (CUDA Runtime API, cudaLaunchAttributeValue): they start with what the manual gives, and are
 * told as they were set. Simulations see the access policy window. */
#include <string.h>

#include "driver/engine/engine_internal.h"
#include "driver/properties.h"

enum { POLICY_AUTOMATIC = 1, POLICY_BLOCKING_SYNC = 4 };     /* cudaSynchronizationPolicy */
enum { ACCESS_NORMAL, ACCESS_STREAMING, ACCESS_PERSISTING }; /* cudaAccessProperty */
enum { DOMAIN_DEFAULT, DOMAIN_REMOTE };                      /* cudaLaunchMemSyncDomain */
enum { LAST_ATTRIBUTE = 18 };                                /* of cudaLaunchAttributeID, in CUDA 13 */

static int domain_count(const engine_stream *stream) {
  int count = 1;
  properties_attribute(ff_engine.machine, stream->device, cudaDevAttrMemSyncDomainCount, &count);
  return count;
}

static bool window_valid(const cudaAccessPolicyWindow *window) {
  return window->hitRatio >= 0 && window->hitRatio <= 1 && window->hitProp >= ACCESS_NORMAL &&
         window->hitProp <= ACCESS_PERSISTING && window->missProp >= ACCESS_NORMAL &&
         window->missProp <= ACCESS_STREAMING;
}

static cudaError_t take_event(cudaEvent_t *taken, const cudaLaunchAttributeValue *value) {
  *taken = value->launchEvent.event;
  return *taken ? cudaSuccess : cudaErrorInvalidResourceHandle;
}

/* Where events stand (CUDA Runtime API, cudaLaunchAttributeID): LaunchCompletionEvent comes nominally when all blocks
 * have begun, and what waits for it may begin earlier; ProgrammaticEvent no earlier than each block's trigger, which
 * the kernel's end always is. */
cudaError_t engine_launch_attribute(engine_launch *launch, int attribute, const cudaLaunchAttributeValue *value) {
  switch (attribute) {
  case cudaLaunchAttributeCooperative: launch->cooperative = value->cooperative != 0; return cudaSuccess;
  case cudaLaunchAttributeClusterDimension:
    memcpy(launch->cluster, &value->clusterDim, sizeof launch->cluster);
    return cudaSuccess;
  case cudaLaunchAttributeAccessPolicyWindow:
    if (!window_valid(&value->accessPolicyWindow)) return cudaErrorInvalidValue;
    launch->window = value->accessPolicyWindow;
    launch->has_window = true;
    return cudaSuccess;
  case cudaLaunchAttributePreferredSharedMemoryCarveout:
    if (value->sharedMemCarveout > 100 && (int)value->sharedMemCarveout != -1) return cudaErrorInvalidValue;
    launch->carve_out = (int)value->sharedMemCarveout + 1;
    return cudaSuccess;
  case cudaLaunchAttributeProgrammaticEvent: return take_event(&launch->behind, value);
  case cudaLaunchAttributeLaunchCompletionEvent: return take_event(&launch->before, value);
  case cudaLaunchAttributeDeviceUpdatableKernelNode:
    return value->deviceUpdatableKernelNode.deviceUpdatable ? cudaErrorNotSupported : cudaSuccess;
  case cudaLaunchAttributeSynchronizationPolicy: return cudaErrorInvalidValue; /* of streams only */
  default: return attribute >= 0 && attribute <= LAST_ATTRIBUTE ? cudaSuccess : cudaErrorInvalidValue;
  }
}

static int clamp_priority(int priority) {
  if (priority > ENGINE_PRIORITY_LEAST) return ENGINE_PRIORITY_LEAST;
  return priority < ENGINE_PRIORITY_GREATEST ? ENGINE_PRIORITY_GREATEST : priority;
}

static bool policy_valid(int policy) { return policy >= POLICY_AUTOMATIC && policy <= POLICY_BLOCKING_SYNC; }

static bool domains_valid(const engine_stream *stream, const cudaLaunchAttributeValue *value) {
  return value->memSyncDomainMap.default_ < domain_count(stream) &&
         value->memSyncDomainMap.remote < domain_count(stream);
}

/* false: there is no such attribute or value. */
static bool set_locked(engine_stream *stream, int attribute, const cudaLaunchAttributeValue *value) {
  engine_stream_attributes *its = &stream->attributes;
  switch (attribute) {
  case cudaLaunchAttributeAccessPolicyWindow:
    if (!window_valid(&value->accessPolicyWindow)) return false;
    its->window.accessPolicyWindow = value->accessPolicyWindow;
    return true;
  case cudaLaunchAttributeSynchronizationPolicy:
    if (!policy_valid(value->syncPolicy)) return false;
    its->policy.syncPolicy = value->syncPolicy;
    return its->policy_set = true;
  case cudaLaunchAttributePriority: stream->priority = clamp_priority(value->priority); return true;
  case cudaLaunchAttributeMemSyncDomainMap:
    if (!domains_valid(stream, value)) return false;
    its->domains.memSyncDomainMap = value->memSyncDomainMap;
    return its->domains_set = true;
  case cudaLaunchAttributeMemSyncDomain:
    if (value->memSyncDomain != DOMAIN_DEFAULT && value->memSyncDomain != DOMAIN_REMOTE) return false;
    its->domain.memSyncDomain = value->memSyncDomain;
    return true;
  default: return false;
  }
}

static bool get_locked(const engine_stream *stream, int attribute, cudaLaunchAttributeValue *value) {
  const engine_stream_attributes *its = &stream->attributes;
  switch (attribute) {
  case cudaLaunchAttributeAccessPolicyWindow: *value = its->window; return true;
  case cudaLaunchAttributeSynchronizationPolicy:
    *value = its->policy;
    if (!its->policy_set) value->syncPolicy = POLICY_AUTOMATIC;
    return true;
  case cudaLaunchAttributePriority: *value = (cudaLaunchAttributeValue){.priority = stream->priority}; return true;
  case cudaLaunchAttributeMemSyncDomainMap: /* at first the remote domain is another one, if there is one */
    *value = its->domains;
    if (!its->domains_set) value->memSyncDomainMap.remote = domain_count(stream) > 1;
    return true;
  case cudaLaunchAttributeMemSyncDomain: *value = its->domain; return true;
  default: return false;
  }
}

cudaError_t engine_stream_set(cudaStream_t handle, int attribute, const cudaLaunchAttributeValue *value) {
  if (!value) return cudaErrorInvalidValue;
  cudaError_t error = engine_enter();
  if (error) return error;
  engine_stream *stream = engine_stream_find(handle);
  if (!stream) error = engine_stream_error(handle);
  else if (!set_locked(stream, attribute, value)) error = cudaErrorInvalidValue;
  engine_leave();
  return error;
}

cudaError_t engine_stream_get(cudaStream_t handle, int attribute, cudaLaunchAttributeValue *value) {
  if (!value) return cudaErrorInvalidValue;
  cudaError_t error = engine_enter();
  if (error) return error;
  const engine_stream *stream = engine_stream_find(handle);
  if (!stream) error = engine_stream_error(handle);
  else if (!get_locked(stream, attribute, value)) error = cudaErrorInvalidValue;
  engine_leave();
  return error;
}

cudaError_t engine_stream_copy_attributes(cudaStream_t to, cudaStream_t from) {
  cudaError_t error = engine_enter();
  if (error) return error;
  engine_stream *target = engine_stream_find(to);
  const engine_stream *source = engine_stream_find(from);
  if (!target || !source) {
    error = engine_stream_error(target ? from : to);
  } else {
    target->attributes = source->attributes;
    target->priority = source->priority;
  }
  engine_leave();
  return error;
}
