/* SPDX-License-Identifier: Apache-2.0 */
/* libcupti.so.12 and .13: a stand-in for NVIDIA's profiling library (CUPTI's reference), for programs that are linked
 * with it or ask for its version when they start. Profilers watch a GPU's counters and records by it; the virtual GPU
 * has neither, and `farfault report` shows what ran instead. It says so in the way that profilers take: cuptiSubscribe
 * and whatever else would start one is CUPTI_ERROR_NOT_SUPPORTED, and they go on without the GPU (XLA, PyTorch's
 * Kineto).
 *
 * NVIDIA's own library asks the driver for private tables that are not documented, and fails where they are missing. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stddef.h>
#include <time.h>

#include "driver/engine/engine.h"

#ifndef CUPTI_MAJOR
#define CUPTI_MAJOR 13
#endif
#define API_VERSION \
  (CUPTI_MAJOR == 12 ? 28 : 130500) /* of CUDA 12.9 and 13.5: its names are those of cupti_names.def */

typedef enum CUptiResult {
#define X(name, number) name = number,
#include "driver/stand_ins/cupti_results.def"
#undef X
} CUptiResult;

#define EXPORT(name, parameters)                                      \
  __attribute__((visibility("default"))) CUptiResult name parameters; \
  CUptiResult name parameters

static _Thread_local CUptiResult last;

static CUptiResult finish(CUptiResult result) {
  if (result) last = result;
  return result;
}

int cupti_refuse(const char *call); /* for cupti_stubs.c */
int cupti_refuse(const char *call) {
  engine_say_once(call, "%s: the virtual GPU has no counters and no records for profilers; it returned 'not supported'",
                  call);
  return (int)finish(CUPTI_ERROR_NOT_SUPPORTED);
}

EXPORT(cuptiGetVersion, (uint32_t * version)) {
  if (!version) return finish(CUPTI_ERROR_INVALID_PARAMETER);
  *version = API_VERSION;
  return CUPTI_SUCCESS;
}

static const char *name_of(CUptiResult result) {
  switch (result) {
#define X(name, number) \
  case name:            \
    return #name;
#include "driver/stand_ins/cupti_results.def"
#undef X
  default: return NULL;
  }
}

static CUptiResult give_name(CUptiResult result, const char **text) {
  const char *name = name_of(result);
  if (!text || !name) return finish(CUPTI_ERROR_INVALID_PARAMETER);
  *text = name;
  return CUPTI_SUCCESS;
}
EXPORT(cuptiGetResultString, (CUptiResult result, const char **text)) { return give_name(result, text); }
/* The descriptions of NVIDIA's library are its own words: here it is the name. */
EXPORT(cuptiGetErrorMessage, (CUptiResult result, const char **text)) { return give_name(result, text); }

EXPORT(cuptiGetLastError, (void)) {
  CUptiResult result = last;
  last = CUPTI_SUCCESS;
  return result;
}

/* In nanoseconds. There are no records that it would have to agree with. */
EXPORT(cuptiGetTimestamp, (uint64_t * timestamp)) {
  struct timespec now;
  if (!timestamp) return finish(CUPTI_ERROR_INVALID_PARAMETER);
  clock_gettime(CLOCK_REALTIME, &now);
  *timestamp = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
  return CUPTI_SUCCESS;
}

/* Nothing was begun. */
EXPORT(cuptiFinalize, (void)) { return CUPTI_SUCCESS; }
