/* SPDX-License-Identifier: Apache-2.0 */
/* Resources of green contexts (engine_resource.h). Any SMs can be scheduled together here: which of them a real GPU has
 * in one processing cluster is not in the machine file. */
#include "base/forks.h"
#include "driver/engine/engine_resource.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "driver/engine/engine_internal.h"

/* CONNECTIONS: CUDA_DEVICE_MAX_CONNECTIONS where it is not set */
enum { SM_PAIR = 2, TOGETHER_MAX = 32, CONNECTIONS = 8 };
#define OURS 0x46464752u

typedef struct origin {
  uint32_t mark, split; /* split: its number; 0: not of a split */
  uint32_t device;
  bool is_rest; /* what a split into groups of any sizes has left */
  trace_sms sms;
} origin;
_Static_assert(sizeof(origin) <= sizeof((engine_resource *)0)->origin, "it fits");

struct engine_descriptor {
  int device;
  trace_sms sms;
  engine_green_queues queues;
  struct engine_descriptor *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
FF_FREE_IN_CHILD(lock)
static engine_descriptor *descriptors;
static uint32_t splits;

/* ---- SMs as resources ---- */

/* The least group of an architecture, and what its size is a multiple of (the API's guideline). */
static void granularity(unsigned flags, unsigned *least, unsigned *alignment) {
  uint64_t major = engine_machine()->compute_major;
  *least = major >= 9 ? 8 : major == 8 ? 4 : 2;
  *alignment = major >= 9 ? 8 : 2;
  if (flags & ENGINE_SPLIT_IGNORE_COSCHEDULING) *least = *alignment = SM_PAIR;
}

static unsigned count_sms(const trace_sms *sms) {
  unsigned count = 0;
  for (unsigned i = 0; i < TRACE_SMS_MAX / 64; i++) count += (unsigned)__builtin_popcountll(sms->mask[i]);
  return count;
}

static engine_resource make_resource(const origin *from, unsigned flags) {
  engine_resource made = {.type = ENGINE_RESOURCE_SM, .sm.count = count_sms(&from->sms)};
  granularity(flags, &made.sm.least, &made.sm.alignment);
  memcpy(made.origin, from, sizeof *from);
  return made;
}

static cudaError_t read_resource(const engine_resource *resource, origin *from) {
  if (resource->type != ENGINE_RESOURCE_SM) return cudaErrorInvalidResourceType;
  memcpy(from, resource->origin, sizeof *from);
  return from->mark == OURS && count_sms(&from->sms) == resource->sm.count ? cudaSuccess : cudaErrorInvalidValue;
}

static trace_sms all_sms(void) {
  trace_sms sms = {0};
  for (uint32_t i = 0; i < engine_machine()->sm_count && i < TRACE_SMS_MAX; i++)
    sms.mask[i / 64] |= UINT64_C(1) << i % 64;
  return sms;
}

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

/* ---- asking ---- */

static unsigned connections(void) {
  const char *set = getenv("CUDA_DEVICE_MAX_CONNECTIONS");
  long count = set ? strtol(set, NULL, 10) : 0;
  return count >= 1 && count <= 32 ? (unsigned)count : CONNECTIONS;
}

static cudaError_t give(engine_resource *resource, int type, int device, const trace_sms *sms,
                        const engine_green_queues *queues) {
  if (type != ENGINE_RESOURCE_SM && type != ENGINE_RESOURCE_QUEUES && type != ENGINE_RESOURCE_QUEUE)
    return cudaErrorInvalidResourceType;
  if (!resource) return cudaErrorInvalidValue;
  if (type == ENGINE_RESOURCE_SM) {
    *resource = make_resource(&(origin){.mark = OURS, .device = (uint32_t)device, .sms = *sms}, 0);
    return cudaSuccess;
  }
  *resource = (engine_resource){.type = type};
  resource->queues.device = device;
  resource->queues.limit = queues->limit ? queues->limit : connections();
  resource->queues.scope = queues->scope;
  return cudaSuccess;
}

cudaError_t engine_resource_of_device(int device, engine_resource *resource, int type) {
  cudaError_t error = engine_start();
  if (error) return error;
  if (!engine_device_exists(device)) return cudaErrorInvalidDevice;
  trace_sms sms = all_sms();
  return give(resource, type, device, &sms, &(engine_green_queues){0});
}

cudaError_t engine_resource_of_green(engine_green *green, engine_resource *resource, int type) {
  trace_sms sms;
  uint64_t id;
  engine_green_queues queues;
  cudaError_t error = engine_green_describe(green, &sms, &id);
  if (!error) error = engine_green_get_queues(green, &queues);
  return error ? error : give(resource, type, engine_green_device(green), &sms, &queues);
}

cudaError_t engine_resource_of_stream(cudaStream_t stream, engine_resource *resource, int type) {
  engine_stream_info info;
  cudaError_t error = engine_stream_describe(stream, &info);
  if (error) return error;
  if (type != ENGINE_RESOURCE_SM) return cudaErrorInvalidResourceType;
  return info.green ? engine_resource_of_green(info.green, resource, type)
                    : engine_resource_of_device(info.device, resource, type);
}

/* ---- splitting ---- */

static uint32_t next_split(void) {
  pthread_mutex_lock(&lock);
  uint32_t number = ++splits ? splits : ++splits; /* never 0 */
  pthread_mutex_unlock(&lock);
  return number;
}

static engine_resource rest_of(const origin *from, unsigned flags) {
  return count_sms(&from->sms) ? make_resource(from, flags) : (engine_resource){.type = ENGINE_RESOURCE_INVALID};
}

cudaError_t engine_resource_split_by_count(engine_resource *result, unsigned *groups, const engine_resource *input,
                                           engine_resource *remaining, unsigned flags, unsigned wanted) {
  origin from;
  unsigned least, alignment;
  if (!groups || !input || flags & ~(unsigned)(ENGINE_SPLIT_IGNORE_COSCHEDULING | ENGINE_SPLIT_MAX_CLUSTER))
    return cudaErrorInvalidValue;
  cudaError_t error = read_resource(input, &from);
  if (error) return error;
  if (wanted > input->sm.count || (result && !*groups)) return cudaErrorInvalidValue;
  if (flags & ENGINE_SPLIT_MAX_CLUSTER && engine_machine()->compute_major < 9) return cudaErrorInvalidValue;
  if (from.split) return cudaErrorInvalidResourceConfiguration; /* must be a green context's first */
  granularity(flags, &least, &alignment);
  unsigned size = wanted < least ? least : (wanted + alignment - 1) / alignment * alignment,
           possible = input->sm.count / size;
  if (!possible) return cudaErrorInvalidResourceConfiguration;
  if (result && *groups < possible) possible = *groups;
  *groups = possible;
  if (!result) return cudaSuccess;
  from.split = next_split();
  for (unsigned i = 0; i < possible; i++) {
    origin group = from;
    group.sms = take_sms(&from.sms, size);
    result[i] = make_resource(&group, flags);
  }
  if (remaining) *remaining = rest_of(&from, flags);
  return cudaSuccess;
}

/* All SMs are in domain 0. */
static bool domain_valid(const engine_resource_group *group) {
  if (!(group->flags & ENGINE_GROUP_DOMAIN)) return !(group->flags & ENGINE_GROUP_DOMAIN_MORE);
  return !group->domain || group->domain == ENGINE_ANY_DOMAIN;
}

static cudaError_t check_group(const engine_resource_group *group, unsigned together, unsigned input) {
  unsigned most = engine_machine()->compute_major >= 9 ? TOGETHER_MAX : SM_PAIR;
  bool backfill = group->flags & ENGINE_GROUP_BACKFILL;
  if (group->flags > (ENGINE_GROUP_BACKFILL | ENGINE_GROUP_DOMAIN | ENGINE_GROUP_DOMAIN_MORE) || !domain_valid(group))
    return cudaErrorInvalidValue;
  if (together % SM_PAIR || together > most) return cudaErrorInvalidValue;
  if (group->preferred && (group->preferred % together || group->preferred > most)) return cudaErrorInvalidValue;
  if (!group->count) return cudaSuccess;
  bool fits = group->count >= SM_PAIR && group->count <= input && group->count % SM_PAIR == 0;
  return fits && (backfill || group->count % together == 0) ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t engine_resource_split(engine_resource *result, unsigned count, const engine_resource *input,
                                  engine_resource *remaining, unsigned flags, engine_resource_group *groups) {
  origin from;
  unsigned least, usual, all;
  if (!input || !groups || !count || flags) return cudaErrorInvalidValue;
  cudaError_t error = read_resource(input, &from);
  if (error) return error;
  if (from.split && !from.is_rest) return cudaErrorInvalidResourceConfiguration;
  granularity(0, &least, &usual);
  all = input->sm.count; /* a result may be in its place */
  from.split = next_split();
  from.is_rest = false;
  for (unsigned i = 0; i < count; i++) {
    engine_resource_group *group = &groups[i];
    unsigned together = group->together ? group->together : usual, left = count_sms(&from.sms);
    error = check_group(group, together, all);
    if (error) return error;
    unsigned unit = group->flags & ENGINE_GROUP_BACKFILL ? SM_PAIR : together;
    unsigned size = group->count ? group->count : left / unit * unit;
    if (size > left || (result && size < together)) return cudaErrorInvalidResourceConfiguration;
    group->count = size;
    origin part = from;
    part.sms = take_sms(&from.sms, size);
    if (!result) continue;
    result[i] = make_resource(&part, 0);
    result[i].sm.alignment = together;
    result[i].sm.flags = group->flags;
    result[i].sm.domain = group->flags & ENGINE_GROUP_DOMAIN ? group->domain : 0;
  }
  from.is_rest = true;
  if (remaining) *remaining = rest_of(&from, ENGINE_SPLIT_IGNORE_COSCHEDULING);
  return cudaSuccess;
}

/* ---- descriptors ---- */

static bool same(const engine_descriptor *a, const engine_descriptor *b) {
  return a->device == b->device && !memcmp(&a->sms, &b->sms, sizeof a->sms) && a->queues.limit == b->queues.limit &&
         a->queues.scope == b->queues.scope;
}

static engine_descriptor *keep(const engine_descriptor *wanted) {
  pthread_mutex_lock(&lock);
  engine_descriptor *found = descriptors;
  while (found && !same(found, wanted)) found = found->next;
  if (!found) {
    found = ff_alloc(sizeof *found);
    *found = *wanted;
    found->next = descriptors;
    descriptors = found;
  }
  pthread_mutex_unlock(&lock);
  return found;
}

static bool is_descriptor(const engine_descriptor *descriptor) {
  pthread_mutex_lock(&lock);
  const engine_descriptor *at = descriptors;
  while (at && at != descriptor) at = at->next;
  pthread_mutex_unlock(&lock);
  return at != NULL;
}

/* SMs that are given more than once are of one split, of one alignment, and none twice. */
static cudaError_t add_sms(engine_descriptor *made, const engine_resource *resource, const engine_resource **first) {
  origin from, earlier;
  cudaError_t error = read_resource(resource, &from);
  if (error) return error;
  if (made->device >= 0 && made->device != (int)from.device) return cudaErrorInvalidResourceConfiguration;
  if (*first) {
    memcpy(&earlier, (*first)->origin, sizeof earlier);
    if (!from.split || from.split != earlier.split || resource->sm.alignment != (*first)->sm.alignment ||
        resource->sm.domain != (*first)->sm.domain)
      return cudaErrorInvalidResourceConfiguration;
  }
  for (unsigned w = 0; w < TRACE_SMS_MAX / 64; w++) {
    if (made->sms.mask[w] & from.sms.mask[w]) return cudaErrorInvalidResourceConfiguration;
    made->sms.mask[w] |= from.sms.mask[w];
  }
  made->device = (int)from.device;
  if (!*first) *first = resource;
  return cudaSuccess;
}

static cudaError_t add_queues(engine_descriptor *made, const engine_resource *resource) {
  int device = resource->queues.device, scope = resource->queues.scope;
  if (!engine_device_exists(device) || !resource->queues.limit || scope < 0 || scope > 1) return cudaErrorInvalidValue;
  if (made->queues.limit || (made->device >= 0 && made->device != device)) return cudaErrorInvalidResourceConfiguration;
  made->queues = (engine_green_queues){resource->queues.limit, scope};
  made->device = device;
  return cudaSuccess;
}

cudaError_t engine_resource_describe(engine_descriptor **descriptor, const engine_resource *resources, unsigned count) {
  engine_descriptor made = {.device = -1};
  const engine_resource *first = NULL;
  cudaError_t error = !descriptor || !resources || !count ? cudaErrorInvalidValue : cudaSuccess;
  for (unsigned i = 0; !error && i < count; i++) {
    bool queues = resources[i].type == ENGINE_RESOURCE_QUEUES || resources[i].type == ENGINE_RESOURCE_QUEUE;
    error = queues ? add_queues(&made, &resources[i]) : add_sms(&made, &resources[i], &first);
  }
  if (error) return error;
  if (!first) made.sms = all_sms();
  *descriptor = keep(&made);
  return cudaSuccess;
}

cudaError_t engine_resource_green(engine_descriptor *descriptor, int device, engine_green **green) {
  if (!green || !is_descriptor(descriptor) || descriptor->device != device) return cudaErrorInvalidValue;
  engine_green *made;
  cudaError_t error = engine_green_create(device, &descriptor->sms, &made);
  if (error) return error;
  error = engine_green_set_queues(made, descriptor->queues);
  if (error) engine_green_destroy(made);
  else *green = made;
  return error;
}
