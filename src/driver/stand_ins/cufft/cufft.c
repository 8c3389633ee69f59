/* SPDX-License-Identifier: Apache-2.0 */
/* libcufft.so: a stand-in for cuFFT (cuFFT API reference), whose kernels are machine code that the virtual GPU cannot
 * run. Here is the interface of cufft.h; cufft_xt.c has that of cufftXt.h. */
#include <string.h>

#include "driver/stand_ins/cufft/cufft_handle.h"

/* cuFFT's own version in the last CUDA of that time: 11.8, 12.9, 13.0. */
#ifndef CUFFT_MAJOR
#define CUFFT_MAJOR 12
#endif
enum { VERSION_MINOR = CUFFT_MAJOR == 12 ? 0 : CUFFT_MAJOR == 11 ? 4 : 9, VERSION_PATCH = CUFFT_MAJOR == 11 ? 1 : 0 };


static bool find_types(cufftType type, cufft_request *request) {
  cudaDataType real = type & 0x40 ? CUDA_R_64F : CUDA_R_32F, complex = type & 0x40 ? CUDA_C_64F : CUDA_C_32F;
  if ((type & ~0x47u) != 0x28 || ((type & 7) != 1 && (type & 7) != 2 && (type & 7) != 4)) return false;
  request->in = (type & 7) == 2 ? real : complex;
  request->out = (type & 7) == 4 ? real : complex;
  request->execution = complex;
  return true;
}

/* ---- making ---- */

typedef struct wide {
  long long lengths[CUFFT_RANKS], in_embed[CUFFT_RANKS], out_embed[CUFFT_RANKS];
} wide;

static const long long *widen(const int *from, int rank, long long *to) {
  for (int i = 0; from && i < rank && i < CUFFT_RANKS; i++) to[i] = from[i];
  return from ? to : NULL;
}

static cufftResult make(cufftHandle plan, cufftType type, cufft_request request, size_t *bytes) {
  if (!cufft_handle_find(plan)) return CUFFT_INVALID_PLAN;
  if (!find_types(type, &request)) return CUFFT_INVALID_TYPE;
  return cufft_handle_make(plan, &request, bytes);
}

static cufftResult make_plain(cufftHandle plan, int rank, const long long *lengths, cufftType type, int batch,
                              size_t *bytes) {
  return make(plan, type, (cufft_request){.rank = rank, .lengths = lengths, .batch = batch}, bytes);
}

#define MANY_REQUEST                                                                                        \
  {                                                                                                         \
    .rank = rank, .lengths = lengths, .in_embed = in_embed, .out_embed = out_embed, .in_stride = in_stride, \
    .in_distance = in_distance, .out_stride = out_stride, .out_distance = out_distance, .batch = batch      \
  }

CUFFT_CALL(cufftMakePlanMany64, (cufftHandle plan, int rank, long long *lengths, long long *in_embed,
                                 long long in_stride, long long in_distance, long long *out_embed, long long out_stride,
                                 long long out_distance, cufftType type, long long batch, size_t *bytes)) {
  return make(plan, type, (cufft_request)MANY_REQUEST, bytes);
}

CUFFT_CALL(cufftMakePlanMany, (cufftHandle plan, int rank, int *n, int *in, int in_stride, int in_distance, int *out,
                               int out_stride, int out_distance, cufftType type, int batch, size_t *bytes)) {
  wide w;
  const long long *lengths = widen(n, rank, w.lengths), *in_embed = widen(in, rank, w.in_embed);
  const long long *out_embed = widen(out, rank, w.out_embed);
  return make(plan, type, (cufft_request)MANY_REQUEST, bytes);
}

CUFFT_CALL(cufftMakePlan1d, (cufftHandle plan, int nx, cufftType type, int batch, size_t *bytes)) {
  return make_plain(plan, 1, (long long[]){nx}, type, batch, bytes);
}
CUFFT_CALL(cufftMakePlan2d, (cufftHandle plan, int nx, int ny, cufftType type, size_t *bytes)) {
  return make_plain(plan, 2, (long long[]){nx, ny}, type, 1, bytes);
}
CUFFT_CALL(cufftMakePlan3d, (cufftHandle plan, int nx, int ny, int nz, cufftType type, size_t *bytes)) {
  return make_plain(plan, 3, (long long[]){nx, ny, nz}, type, 1, bytes);
}

CUFFT_CALL(cufftCreate, (cufftHandle * plan)) {
  if (!plan) return CUFFT_INVALID_VALUE;
  cufft_handle_create(plan);
  return CUFFT_SUCCESS;
}
CUFFT_CALL(cufftDestroy, (cufftHandle plan)) { return cufft_handle_destroy(plan); }

/* A new plan in *plan, which is not touched where it cannot be made. */
#define CREATE_AND(plan, make_it)              \
  do {                                         \
    cufftHandle made;                          \
    cufftResult result = cufftCreate(&made);   \
    if (!(plan)) result = CUFFT_INVALID_VALUE; \
    if (!result) result = make_it;             \
    if (result) cufft_handle_destroy(made);    \
    else *(plan) = made;                       \
    return result;                             \
  } while (0)

CUFFT_CALL(cufftPlan1d, (cufftHandle * plan, int nx, cufftType type, int batch)) {
  CREATE_AND(plan, cufftMakePlan1d(made, nx, type, batch, NULL));
}
CUFFT_CALL(cufftPlan2d, (cufftHandle * plan, int nx, int ny, cufftType type)) {
  CREATE_AND(plan, cufftMakePlan2d(made, nx, ny, type, NULL));
}
CUFFT_CALL(cufftPlan3d, (cufftHandle * plan, int nx, int ny, int nz, cufftType type)) {
  CREATE_AND(plan, cufftMakePlan3d(made, nx, ny, nz, type, NULL));
}
CUFFT_CALL(cufftPlanMany, (cufftHandle * plan, int rank, int *n, int *in, int in_stride, int in_distance, int *out,
                           int out_stride, int out_distance, cufftType type, int batch)) {
  CREATE_AND(plan, cufftMakePlanMany(made, rank, n, in, in_stride, in_distance, out, out_stride, out_distance, type,
                                     batch, NULL));
}

/* ---- the size of the work area ---- */

static cufftResult measure(cufftType type, cufft_request request, size_t *bytes) {
  cufft_plan plan = {0};
  if (!bytes) return CUFFT_INVALID_VALUE;
  if (!find_types(type, &request)) return CUFFT_INVALID_TYPE;
  cufftResult result = cufft_handle_describe(&plan, &request);
  if (!result) *bytes = plan.work_bytes;
  cufft_plan_free(&plan);
  return result;
}

static cufftResult measure_plain(int rank, const long long *lengths, cufftType type, int batch, size_t *bytes) {
  return measure(type, (cufft_request){.rank = rank, .lengths = lengths, .batch = batch}, bytes);
}

CUFFT_CALL(cufftEstimate1d, (int nx, cufftType type, int batch, size_t *bytes)) {
  return measure_plain(1, (long long[]){nx}, type, batch, bytes);
}
CUFFT_CALL(cufftEstimate2d, (int nx, int ny, cufftType type, size_t *bytes)) {
  return measure_plain(2, (long long[]){nx, ny}, type, 1, bytes);
}
CUFFT_CALL(cufftEstimate3d, (int nx, int ny, int nz, cufftType type, size_t *bytes)) {
  return measure_plain(3, (long long[]){nx, ny, nz}, type, 1, bytes);
}
CUFFT_CALL(cufftEstimateMany, (int rank, int *n, int *in, int in_stride, int in_distance, int *out, int out_stride,
                               int out_distance, cufftType type, int batch, size_t *bytes)) {
  wide w;
  const long long *lengths = widen(n, rank, w.lengths), *in_embed = widen(in, rank, w.in_embed);
  const long long *out_embed = widen(out, rank, w.out_embed);
  return measure(type, (cufft_request)MANY_REQUEST, bytes);
}

CUFFT_CALL(cufftGetSize1d, (cufftHandle plan, int nx, cufftType type, int batch, size_t *bytes)) {
  return cufft_handle_find(plan) ? cufftEstimate1d(nx, type, batch, bytes) : CUFFT_INVALID_PLAN;
}
CUFFT_CALL(cufftGetSize2d, (cufftHandle plan, int nx, int ny, cufftType type, size_t *bytes)) {
  return cufft_handle_find(plan) ? cufftEstimate2d(nx, ny, type, bytes) : CUFFT_INVALID_PLAN;
}
CUFFT_CALL(cufftGetSize3d, (cufftHandle plan, int nx, int ny, int nz, cufftType type, size_t *bytes)) {
  return cufft_handle_find(plan) ? cufftEstimate3d(nx, ny, nz, type, bytes) : CUFFT_INVALID_PLAN;
}
CUFFT_CALL(cufftGetSizeMany, (cufftHandle plan, int rank, int *n, int *in, int in_stride, int in_distance, int *out,
                              int out_stride, int out_distance, cufftType type, int batch, size_t *bytes)) {
  if (!cufft_handle_find(plan)) return CUFFT_INVALID_PLAN;
  return cufftEstimateMany(rank, n, in, in_stride, in_distance, out, out_stride, out_distance, type, batch, bytes);
}
CUFFT_CALL(cufftGetSizeMany64, (cufftHandle plan, int rank, long long *lengths, long long *in_embed,
                                long long in_stride, long long in_distance, long long *out_embed, long long out_stride,
                                long long out_distance, cufftType type, long long batch, size_t *bytes)) {
  return cufft_handle_find(plan) ? measure(type, (cufft_request)MANY_REQUEST, bytes) : CUFFT_INVALID_PLAN;
}
CUFFT_CALL(cufftGetSize, (cufftHandle handle, size_t *bytes)) {
  cufft_plan *plan = cufft_handle_find(handle);
  if (!plan) return CUFFT_INVALID_PLAN;
  if (!bytes) return CUFFT_INVALID_VALUE;
  *bytes = plan->work_bytes;
  return CUFFT_SUCCESS;
}

/* ---- properties of a plan ---- */

CUFFT_CALL(cufftSetStream, (cufftHandle handle, cudaStream_t stream)) {
  cufft_plan *plan = cufft_handle_find(handle);
  if (!plan) return CUFFT_INVALID_PLAN;
  plan->stream = stream;
  return CUFFT_SUCCESS;
}

/* What cuFFT allocated by itself goes. */
CUFFT_CALL(cufftSetWorkArea, (cufftHandle handle, void *area)) {
  cufft_plan *plan = cufft_handle_find(handle);
  bool pushed;
  if (!plan) return CUFFT_INVALID_PLAN;
  if (plan->own_work && cufft_gpu_enter(plan->context, &pushed) != CUFFT_CONTEXT_GONE) {
    cufft_gpu_free(plan->own_work);
    cufft_gpu_leave(pushed);
  }
  plan->own_work = 0;
  plan->work = (cufft_address)(uintptr_t)area;
  return CUFFT_SUCCESS;
}

CUFFT_CALL(cufftSetAutoAllocation, (cufftHandle handle, int on)) {
  cufft_plan *plan = cufft_handle_find(handle);
  if (!plan) return CUFFT_INVALID_PLAN;
  if (on != 0 && on != 1) return CUFFT_INVALID_VALUE;
  plan->no_auto_allocation = !on;
  return CUFFT_SUCCESS;
}

/* How patiently kernels are compiled, and by how many threads, changes nothing here; that products are not fused with
 * sums cannot be had. */
CUFFT_CALL(cufftSetPlanPropertyInt64, (cufftHandle handle, cufftProperty property, long long value)) {
  cufft_plan *plan = cufft_handle_find(handle);
  if (!plan || plan->made) return CUFFT_INVALID_PLAN;
  if ((int)property < CUFFT_PATIENT_JIT || property >= CUFFT_PROPERTIES) return CUFFT_INVALID_VALUE;
  if (property == CUFFT_DISABLE_FMA && value) return CUFFT_NOT_SUPPORTED;
  if (value < 0 || (property != CUFFT_MAX_HOST_THREADS && value > 1)) return CUFFT_INVALID_VALUE;
  plan->properties[property] = value;
  return CUFFT_SUCCESS;
}
CUFFT_CALL(cufftGetPlanPropertyInt64, (cufftHandle handle, cufftProperty property, long long *value)) {
  cufft_plan *plan = cufft_handle_find(handle);
  if (!plan) return CUFFT_INVALID_PLAN;
  if (!value || (int)property < CUFFT_PATIENT_JIT || property >= CUFFT_PROPERTIES) return CUFFT_INVALID_VALUE;
  *value = plan->properties[property];
  return CUFFT_SUCCESS;
}
CUFFT_CALL(cufftResetPlanProperty, (cufftHandle handle, cufftProperty property)) {
  return cufftSetPlanPropertyInt64(handle, property, 0);
}

/* ---- execution ---- */

static cufftResult execute(cufftHandle handle, cudaDataType in_type, cudaDataType out_type, void *in, void *out,
                           int direction) {
  cufft_plan *plan = cufft_handle_find(handle);
  if (!plan || !plan->made) return CUFFT_INVALID_PLAN;
  if (plan->in != in_type || plan->out != out_type) return CUFFT_INVALID_VALUE;
  return cufft_handle_execute(plan, in, out, direction);
}

CUFFT_CALL(cufftExecC2C, (cufftHandle plan, void *in, void *out, int direction)) {
  return execute(plan, CUDA_C_32F, CUDA_C_32F, in, out, direction);
}
CUFFT_CALL(cufftExecR2C, (cufftHandle plan, void *in, void *out)) {
  return execute(plan, CUDA_R_32F, CUDA_C_32F, in, out, CUFFT_FORWARD);
}
CUFFT_CALL(cufftExecC2R, (cufftHandle plan, void *in, void *out)) {
  return execute(plan, CUDA_C_32F, CUDA_R_32F, in, out, CUFFT_INVERSE);
}
CUFFT_CALL(cufftExecZ2Z, (cufftHandle plan, void *in, void *out, int direction)) {
  return execute(plan, CUDA_C_64F, CUDA_C_64F, in, out, direction);
}
CUFFT_CALL(cufftExecD2Z, (cufftHandle plan, void *in, void *out)) {
  return execute(plan, CUDA_R_64F, CUDA_C_64F, in, out, CUFFT_FORWARD);
}
CUFFT_CALL(cufftExecZ2D, (cufftHandle plan, void *in, void *out)) {
  return execute(plan, CUDA_C_64F, CUDA_R_64F, in, out, CUFFT_INVERSE);
}

/* ---- the library ---- */

CUFFT_CALL(cufftGetVersion, (int *version)) {
  if (!version) return CUFFT_INVALID_VALUE;
  *version = CUFFT_MAJOR * 1000 + VERSION_MINOR * 100 + VERSION_PATCH;
  return CUFFT_SUCCESS;
}
CUFFT_CALL(cufftGetProperty, (int type, int *value)) {
  static const int parts[] = {CUFFT_MAJOR, VERSION_MINOR, VERSION_PATCH};
  if (!value || type < 0 || type > 2) return CUFFT_INVALID_VALUE;
  *value = parts[type];
  return CUFFT_SUCCESS;
}
