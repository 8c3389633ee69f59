/* SPDX-License-Identifier: Apache-2.0 */
/* The interface of cufftXt.h: transforms by data types. What is not here is refused by its name (cufft_refused.def):
 * several GPUs with their descriptors, callbacks, and what NVIDIA's library exports without a manual. */
#include <stdatomic.h>
#include <stdio.h>

#include "driver/stand_ins/cufft/cufft_handle.h"

#define XT_REQUEST \
  { rank, lengths, in_embed, out_embed, in_stride, in_distance, out_stride, out_distance, batch, in, out, execution }

CUFFT_CALL(cufftXtMakePlanMany,
           (cufftHandle plan, int rank, long long *lengths, long long *in_embed, long long in_stride,
            long long in_distance, cudaDataType in, long long *out_embed, long long out_stride, long long out_distance,
            cudaDataType out, long long batch, size_t *bytes, cudaDataType execution)) {
  return cufft_handle_make(plan, &(cufft_request)XT_REQUEST, bytes);
}

CUFFT_CALL(cufftXtGetSizeMany,
           (cufftHandle handle, int rank, long long *lengths, long long *in_embed, long long in_stride,
            long long in_distance, cudaDataType in, long long *out_embed, long long out_stride, long long out_distance,
            cudaDataType out, long long batch, size_t *bytes, cudaDataType execution)) {
  cufft_plan plan = {0};
  if (!cufft_handle_find(handle)) return CUFFT_INVALID_PLAN;
  if (!bytes) return CUFFT_INVALID_VALUE;
  cufftResult result = cufft_handle_describe(&plan, &(cufft_request)XT_REQUEST);
  if (!result) *bytes = plan.work_bytes;
  cufft_plan_free(&plan);
  return result;
}

CUFFT_CALL(cufftXtExec, (cufftHandle handle, void *in, void *out, int direction)) {
  cufft_plan *plan = cufft_handle_find(handle);
  return plan ? cufft_handle_execute(plan, in, out, direction) : CUFFT_INVALID_PLAN;
}

extern cufftResult cufftSetWorkArea(cufftHandle handle, void *area);
CUFFT_CALL(cufftXtSetWorkArea, (cufftHandle handle, void **areas)) {
  return areas ? cufftSetWorkArea(handle, areas[0]) : CUFFT_INVALID_VALUE;
}

/* A plan needs the work area that it has said, or none. */
CUFFT_CALL(cufftXtSetWorkAreaPolicy, (cufftHandle handle, int policy, size_t *bytes)) {
  enum { MINIMAL, USER, PERFORMANCE };
  cufft_plan *plan = cufft_handle_find(handle);
  if (!plan) return CUFFT_INVALID_PLAN;
  if (policy < MINIMAL || policy > PERFORMANCE || (policy == USER && !bytes)) return CUFFT_INVALID_VALUE;
  bool fits = policy == PERFORMANCE || !plan->work_bytes || (policy == USER && *bytes >= plan->work_bytes);
  if (fits && bytes) *bytes = plan->work_bytes;
  return fits ? CUFFT_SUCCESS : CUFFT_INVALID_SIZE;
}

/* ---- refused ---- */

static cufftResult refuse(const char *name, const char *why, atomic_flag *said) {
  if (!atomic_flag_test_and_set(said))
    fprintf(stderr, "farfault: cuFFT: %s is not supported by farfault's stand-in: %s\n", name, why);
  return CUFFT_NOT_IMPLEMENTED;
}

#define X(name, why)                            \
  CUFFT_CALL(name, (void)) {                    \
    static atomic_flag said = ATOMIC_FLAG_INIT; \
    return refuse(#name, why, &said);           \
  }
#include "driver/stand_ins/cufft/cufft_refused.def"
