/* SPDX-License-Identifier: Apache-2.0 */
/* Handles, and what is on the GPU of a plan: one piece of memory with its tables and passes, and the work area. An
 * execution launches the passes and does nothing else, so that it can be captured. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "driver/stand_ins/cufft/cufft_handle.h"

#include "base/forks.h"

#define ALIGNMENT 256u

/* ---- handles ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
FF_FREE_IN_CHILD(lock)
static FF_VEC(cufft_plan *) plans; /* under the lock; handle h is plans.items[h - 1] */

void cufft_handle_create(cufftHandle *handle) {
  size_t at = 0;
  cufft_plan *plan = ff_alloc(sizeof *plan);
  pthread_mutex_lock(&lock);
  while (at < plans.count && plans.items[at]) at++;
  if (at == plans.count) FF_PUSH(&plans, NULL);
  plans.items[at] = plan;
  pthread_mutex_unlock(&lock);
  *handle = (cufftHandle)at + 1;
}

static cufft_plan *take(cufftHandle handle, bool away) {
  cufft_plan *plan = NULL;
  pthread_mutex_lock(&lock);
  if (handle > 0 && (size_t)handle <= plans.count) {
    plan = plans.items[handle - 1];
    if (away) plans.items[handle - 1] = NULL;
  }
  pthread_mutex_unlock(&lock);
  return plan;
}

cufft_plan *cufft_handle_find(cufftHandle handle) { return take(handle, false); }

void cufft_plan_free(cufft_plan *plan) {
  for (int place = 0; place < CUFFT_PLACES; place++) cufft_program_free(&plan->programs[place]);
  free(plan->tables.items);
  plan->tables = (cufft_tables){0};
}

static void free_memory(cufft_plan *plan) {
  bool pushed;
  if (!plan->memory || cufft_gpu_enter(plan->context, &pushed) == CUFFT_CONTEXT_GONE) return;
  cufft_gpu_free(plan->memory);
  if (plan->own_work) cufft_gpu_free(plan->own_work);
  cufft_gpu_leave(pushed);
  plan->memory = plan->own_work = plan->work = 0;
}

cufftResult cufft_handle_destroy(cufftHandle handle) {
  if (handle == CUFFT_PLAN_NULL) return CUFFT_SUCCESS;
  cufft_plan *plan = take(handle, true);
  if (!plan) return CUFFT_INVALID_PLAN;
  free_memory(plan);
  cufft_plan_free(plan);
  free(plan);
  return CUFFT_SUCCESS;
}

/* ---- what is asked for ---- */

static const struct transform_types {
  cudaDataType real, complex;
  enum cufft_format real_format, complex_format;
  bool is_double;
} transform_types[] = {{CUDA_R_32F, CUDA_C_32F, CUFFT_REAL, CUFFT_COMPLEX, false},
                       {CUDA_R_64F, CUDA_C_64F, CUFFT_REAL, CUFFT_COMPLEX, true},
                       {CUDA_R_16F, CUDA_C_16F, CUFFT_HALF_REAL, CUFFT_HALF_COMPLEX, false},
                       {CUDA_R_16BF, CUDA_C_16BF, CUFFT_BFLOAT_REAL, CUFFT_BFLOAT_COMPLEX, false}};

static cufftResult take_types(cufft_shape *shape, const cufft_request *request) {
  for (size_t i = 0; i < sizeof transform_types / sizeof *transform_types; i++) {
    const struct transform_types *of = &transform_types[i];
    bool from_real = request->in == of->real, to_real = request->out == of->real;
    /* nvmath-python names a real side's type for the computation */
    bool computed = request->execution == of->complex || ((from_real || to_real) && request->execution == of->real);
    if (!computed || (!from_real && request->in != of->complex) || (!to_real && request->out != of->complex) ||
        (from_real && to_real))
      continue;
    shape->kind = from_real ? CUFFT_KIND_R2C : to_real ? CUFFT_KIND_C2R : CUFFT_KIND_C2C;
    shape->in.format = from_real ? of->real_format : of->complex_format;
    shape->out.format = to_real ? of->real_format : of->complex_format;
    shape->is_double = of->is_double;
    return CUFFT_SUCCESS;
  }
  return CUFFT_INVALID_TYPE;
}

static cufftResult take_lengths(cufft_shape *shape, const cufft_request *request) {
  bool small = shape->in.format >= CUFFT_HALF_COMPLEX;
  if (request->rank < 1 || request->rank > CUFFT_RANKS || !request->lengths) return CUFFT_INVALID_VALUE;
  if (request->batch < 1) return CUFFT_INVALID_SIZE;
  shape->rank = request->rank;
  shape->batch = request->batch;
  int64_t all = request->batch;
  for (int i = 0; i < request->rank; i++) {
    int64_t n = shape->lengths[i] = request->lengths[i];
    if (n < 1 || __builtin_mul_overflow(all, n, &all)) return CUFFT_INVALID_SIZE;
    if (small && (n & (n - 1))) return CUFFT_NOT_SUPPORTED; /* as cuFFT: powers of two only */
  }
  return CUFFT_SUCCESS;
}

static bool is_real(enum cufft_format format) {
  return format == CUFFT_REAL || format == CUFFT_HALF_REAL || format == CUFFT_BFLOAT_REAL;
}

/* No gaps; but a row of reals that is to hold its half spectrum is as long as that. */
static void pack(cufft_layout *layout, const cufft_shape *shape, bool in_place) {
  int64_t size = 1;
  for (int i = shape->rank - 1; i >= 0; i--) {
    int64_t length = shape->lengths[i];
    if (i == shape->rank - 1 && shape->kind != CUFFT_KIND_C2C) {
      if (!is_real(layout->format)) length = length / 2 + 1;
      else if (in_place) length = 2 * (length / 2 + 1);
    }
    layout->strides[i] = size;
    size *= length;
  }
  layout->distance = size;
}

static void spread(cufft_layout *layout, int rank, const long long *embed, long long stride, long long distance) {
  int64_t size = stride;
  for (int i = rank - 1; i >= 0; i--) {
    layout->strides[i] = size;
    size *= embed[i];
  }
  layout->distance = distance;
}

static bool embeds_are_right(const cufft_request *request) {
  if (request->in_stride < 1 || request->out_stride < 1 || request->in_distance < 0 || request->out_distance < 0)
    return false;
  for (int i = 1; i < request->rank; i++)
    if (request->in_embed[i] < 1 || request->out_embed[i] < 1) return false;
  return true;
}

static void take_layouts(cufft_shape *shape, const cufft_request *request, bool in_place) {
  if (!request->in_embed || !request->out_embed) {
    pack(&shape->in, shape, in_place);
    pack(&shape->out, shape, in_place);
    return;
  }
  spread(&shape->in, shape->rank, request->in_embed, request->in_stride, request->in_distance);
  spread(&shape->out, shape->rank, request->out_embed, request->out_stride, request->out_distance);
}

static size_t work_of(const cufft_program *program) {
  size_t bytes = 0;
  for (int i = 0; i < CUFFT_BUFFERS; i++) bytes += (program->work_bytes[i] + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  return bytes;
}

cufftResult cufft_handle_describe(cufft_plan *plan, const cufft_request *request) {
  cufft_shape *shape = &plan->shape;
  *shape = (cufft_shape){.bluestein_only = plan->properties[CUFFT_BLUESTEIN_ONLY] != 0};
  cufftResult result = take_types(shape, request);
  if (!result) result = take_lengths(shape, request);
  if (!result && request->in_embed && request->out_embed && !embeds_are_right(request)) result = CUFFT_INVALID_VALUE;
  for (int place = CUFFT_PLACES - 1; !result && place >= 0; place--) { /* CUFFT_APART's layouts stay in the shape */
    take_layouts(shape, request, place == CUFFT_IN_PLACE);
    if (!cufft_program_make(shape, place == CUFFT_IN_PLACE, &plan->programs[place], &plan->tables))
      result = CUFFT_INVALID_SIZE;
  }
  if (result) {
    cufft_plan_free(plan);
    return result;
  }
  size_t apart = work_of(&plan->programs[CUFFT_APART]), in_place = work_of(&plan->programs[CUFFT_IN_PLACE]);
  plan->work_bytes = apart > in_place ? apart : in_place;
  plan->in = request->in, plan->out = request->out;
  return CUFFT_SUCCESS;
}

/* ---- making ---- */

static uint64_t address_of(const cufft_plan *plan, int table) {
  return table == CUFFT_NO_TABLE ? 0 : plan->memory + plan->tables.items[table].offset;
}

/* The passes of a program, with the addresses of their tables. */
static void fill_passes(const cufft_plan *plan, cufft_program *program, cufft_pass *passes) {
  for (size_t i = 0; i < program->steps.count; i++) {
    const cufft_step *step = &program->steps.items[i];
    passes[i] = step->pass;
    passes[i].turns = address_of(plan, step->turns);
    passes[i].fine = address_of(plan, step->fine);
    passes[i].coarse = address_of(plan, step->coarse);
    passes[i].before = address_of(plan, step->before);
    passes[i].after = address_of(plan, step->after);
  }
}

static cufftResult upload(cufft_plan *plan) {
  uint64_t tables = cufft_tables_place(&plan->tables, plan->shape.is_double);
  size_t counts[CUFFT_PLACES] = {plan->programs[0].steps.count, plan->programs[1].steps.count};
  size_t bytes = tables + (counts[0] + counts[1]) * sizeof(cufft_pass);
  if (!cufft_gpu_allocate(bytes, &plan->memory)) return CUFFT_ALLOC_FAILED;
  char *image = ff_alloc(bytes);
  cufft_tables_fill(&plan->tables, plan->shape.is_double, image);
  cufft_pass *passes = (cufft_pass *)(void *)(image + tables);
  for (int place = 0; place < CUFFT_PLACES; place++) {
    plan->passes[place] = plan->memory + tables + (place ? counts[0] : 0) * sizeof(cufft_pass);
    fill_passes(plan, &plan->programs[place], passes + (place ? counts[0] : 0));
  }
  bool done = cufft_gpu_upload(plan->memory, image, bytes);
  free(image);
  return done ? CUFFT_SUCCESS : CUFFT_SETUP_FAILED;
}

cufftResult cufft_handle_make(cufftHandle handle, const cufft_request *request, size_t *work_bytes) {
  cufft_plan *plan = cufft_handle_find(handle);
  if (!plan || plan->made) return CUFFT_INVALID_PLAN;
  cufftResult result = cufft_handle_describe(plan, request);
  if (result) return result;
  if (!cufft_gpu_start(&plan->context)) result = CUFFT_SETUP_FAILED;
  if (!result) result = upload(plan);
  if (!result && plan->work_bytes && !plan->no_auto_allocation) {
    if (!cufft_gpu_allocate(plan->work_bytes, &plan->own_work)) result = CUFFT_ALLOC_FAILED;
    plan->work = plan->own_work;
  }
  if (result) {
    free_memory(plan);
    cufft_plan_free(plan);
    return result;
  }
  plan->made = true;
  if (work_bytes) *work_bytes = plan->work_bytes;
  return CUFFT_SUCCESS;
}

/* ---- execution ---- */

static void find_buffers(const cufft_plan *plan, const cufft_program *program, void *in, void *out,
                         cufft_address *buffers) {
  cufft_address work = plan->work;
  buffers[CUFFT_IN] = (cufft_address)(uintptr_t)in;
  buffers[CUFFT_OUT] = (cufft_address)(uintptr_t)out;
  for (int i = CUFFT_WORK_A; i < CUFFT_BUFFERS; i++) {
    buffers[i] = work;
    work += (program->work_bytes[i] + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  }
}

static cufftResult launch_all(const cufft_plan *plan, int place, void *in, void *out, bool inverse) {
  const cufft_program *program = &plan->programs[place];
  cufft_address buffers[CUFFT_BUFFERS];
  find_buffers(plan, program, in, out, buffers);
  for (size_t i = 0; i < program->steps.count; i++) {
    const cufft_step *step = &program->steps.items[i];
    cufft_launch launch = {
        plan->shape.is_double, step->mixed,      step->special,      inverse,
        step->blocks,          step->threads,    step->shared_bytes, plan->passes[place] + i * sizeof(cufft_pass),
        buffers[step->from],   buffers[step->to]};
    if (!cufft_gpu_launch(&launch, plan->stream)) return CUFFT_EXEC_FAILED;
  }
  return CUFFT_SUCCESS;
}

cufftResult cufft_handle_execute(cufft_plan *plan, void *in, void *out, int direction) {
  bool pushed, complex = plan->shape.kind == CUFFT_KIND_C2C;
  int place = in == out ? CUFFT_IN_PLACE : CUFFT_APART;
  if (!plan->made) return CUFFT_INVALID_PLAN;
  if (!in || !out || (complex && direction != CUFFT_FORWARD && direction != CUFFT_INVERSE)) return CUFFT_INVALID_VALUE;
  if (plan->work_bytes && !plan->work) return CUFFT_NO_WORKSPACE;
  cufft_entry entry = cufft_gpu_enter(plan->context, &pushed);
  if (entry) return entry == CUFFT_OTHER_DEVICE ? CUFFT_INVALID_DEVICE : CUFFT_EXEC_FAILED;
  bool inverse = complex ? direction == CUFFT_INVERSE : plan->shape.kind == CUFFT_KIND_C2R;
  cufftResult result = launch_all(plan, place, in, out, inverse);
  cufft_gpu_leave(pushed);
  return result;
}
