/* SPDX-License-Identifier: Apache-2.0 */
/* A plan behind its handle.
 *
 *   cufftCreate --> created --cufft_handle_make--> made --cufft_handle_execute--> made      cufftDestroy: gone, from either
 *
 * A plan that was made stays as it is; its stream and its work area may change. */
#ifndef FF_CUFFT_HANDLE_H
#define FF_CUFFT_HANDLE_H

#include <stdbool.h>

#include "driver/stand_ins/cufft/cufft_abi.h"
#include "driver/stand_ins/cufft/cufft_gpu.h"
#include "driver/stand_ins/cufft/cufft_plan.h"

/* A transform as a caller describes it (cufftXtMakePlanMany). */
typedef struct cufft_request {
  int rank;
  const long long *lengths, *in_embed, *out_embed; /* an embed that is NULL: no gaps, and the strides do not count */
  long long in_stride, in_distance, out_stride, out_distance, batch;
  cudaDataType in, out, execution;
} cufft_request;

enum { CUFFT_APART, CUFFT_IN_PLACE, CUFFT_PLACES }; /* the caller's two buffers */

typedef struct cufft_plan {
  bool made, no_auto_allocation;
  cufft_stream stream;
  long long properties[CUFFT_PROPERTIES];
  cufft_shape shape; /* from here on once it is made; its layouts are those of two buffers */
  cudaDataType in, out;
  cufft_program programs[CUFFT_PLACES];
  cufft_tables tables;
  cufft_context context;
  cufft_address memory; /* tables, then the passes of both programs; 0: none */
  cufft_address passes[CUFFT_PLACES];
  cufft_address work, own_work; /* own_work is freed with the plan */
  size_t work_bytes;
} cufft_plan;

/* A new handle in *handle; never fails. */
void cufft_handle_create(cufftHandle *handle);
cufft_plan *cufft_handle_find(cufftHandle handle); /* NULL: there is no such plan */
cufftResult cufft_handle_destroy(cufftHandle handle);

/* The passes of a request in plan, without a GPU: work_bytes, too. */
cufftResult cufft_handle_describe(cufft_plan *plan, const cufft_request *request);
/* The same, with its memory on the GPU. *work_bytes may be NULL. */
cufftResult cufft_handle_make(cufftHandle handle, const cufft_request *request, size_t *work_bytes);
/* Frees what a description has. */
void cufft_plan_free(cufft_plan *plan);

/* Enqueues the transform. direction counts for complex ones only. */
cufftResult cufft_handle_execute(cufft_plan *plan, void *in, void *out, int direction);

#endif
