/* SPDX-License-Identifier: Apache-2.0 */
/* What of a device a green context may have, for libcudart and libcuda (Driver API, "Green Contexts"; Runtime API,
 * "Execution Context Management"): SMs, which are split, and work queues, of which only what was asked for is kept.
 *
 *   engine_resource_of_device -> engine_resource_split -> engine_resource_describe -> engine_resource_green
 *
 * What always holds: SMs that came from here carry in their padding which they are, of which device, and which split
 * they came from; a resource without that, or changed by the caller, is cudaErrorInvalidValue. Groups are SMs side by
 * side, from the lowest free one on. A type that a call does not take is cudaErrorInvalidResourceType. */
#ifndef FF_DRIVER_ENGINE_RESOURCE_H
#define FF_DRIVER_ENGINE_RESOURCE_H

#include "driver/engine/engine.h"

enum { ENGINE_RESOURCE_INVALID, ENGINE_RESOURCE_SM = 1, ENGINE_RESOURCE_QUEUES = 1000, ENGINE_RESOURCE_QUEUE = 10000 };
enum { ENGINE_SPLIT_IGNORE_COSCHEDULING = 1, ENGINE_SPLIT_MAX_CLUSTER = 2 }; /* engine_resource_split_by_count */
/* engine_resource_group.flags */
enum { ENGINE_GROUP_BACKFILL = 1, ENGINE_GROUP_DOMAIN = 2, ENGINE_GROUP_DOMAIN_MORE = 4 };
#define ENGINE_ANY_DOMAIN UINT32_MAX

typedef struct engine_resource { /* CUdevResource, cudaDevResource */
  int type;
  unsigned char origin[92];
  union {
    struct {
      unsigned count, least, alignment, flags, domain;
    } sm;
    struct { /* ENGINE_RESOURCE_QUEUES: the program may fill it in by itself */
      int device;
      unsigned limit;
      int scope; /* 0: shared by all contexts, 1: of its own where possible */
    } queues;
    unsigned char room[40];
  };
  struct engine_resource *next;
} engine_resource;
_Static_assert(sizeof(engine_resource) == 144, "as in the driver's binary interface");

typedef struct engine_resource_group { /* CU_DEV_SM_RESOURCE_GROUP_PARAMS, cudaDevSmResourceGroupParams */
  unsigned count, together, preferred, flags, domain, reserved[11];
} engine_resource_group;
_Static_assert(sizeof(engine_resource_group) == 64, "likewise");

typedef struct engine_descriptor engine_descriptor; /* lives as long as the process: no call destroys one */

ENGINE_API cudaError_t engine_resource_of_device(int device, engine_resource *resource, int type);
ENGINE_API cudaError_t engine_resource_of_green(engine_green *green, engine_resource *resource, int type);
/* SMs only */
ENGINE_API cudaError_t engine_resource_of_stream(cudaStream_t stream, engine_resource *resource, int type);
/* Groups of the same size: `wanted`, rounded up. `result` NULL asks how many there would be. What is left, if anything
 * is, goes to `remaining`, which may be NULL. */
ENGINE_API cudaError_t engine_resource_split_by_count(engine_resource *result, unsigned *groups,
                                                      const engine_resource *input, engine_resource *remaining,
                                                      unsigned flags, unsigned wanted);
/* Groups of any sizes, as `groups` says; a count of 0 there becomes what is left. `result` NULL only does that. What an
 * earlier call has left may be split further. */
ENGINE_API cudaError_t engine_resource_split(engine_resource *result, unsigned count, const engine_resource *input,
                                             engine_resource *remaining, unsigned flags, engine_resource_group *groups);
ENGINE_API cudaError_t engine_resource_describe(engine_descriptor **descriptor, const engine_resource *resources,
                                                unsigned count);
ENGINE_API cudaError_t engine_resource_green(engine_descriptor *descriptor, int device, engine_green **green);

#endif
