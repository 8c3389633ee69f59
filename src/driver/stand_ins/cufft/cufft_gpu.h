/* SPDX-License-Identifier: Apache-2.0 */
/* The GPU as the stand-in for cuFFT uses it: the driver API of whichever libcuda.so.1 the process has, opened when the
 * first plan is made. Kernels are a library of the driver's (cuLibraryLoadData), which belongs to no context: the
 * driver puts it into each one that launches from it.
 *
 * What belongs to a plan belongs to the context that was current when it was made, or to the primary one of device 0 if
 * none was, which becomes current as with the CUDA runtime. */
#ifndef FF_CUFFT_GPU_H
#define FF_CUFFT_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct CUctx_st *cufft_context;
typedef unsigned long long cufft_address; /* of the device's memory */
typedef struct CUstream_st *cufft_stream;

/* Opens libcuda and gives the context that a new plan belongs to. False: there is none, and why was said on stderr. */
bool cufft_gpu_start(cufft_context *context);

/* Makes a plan's context current for one call; the caller's is so again after cufft_gpu_leave. Refused: another
 * device's is current, or the context is gone. */
typedef enum cufft_entry { CUFFT_ENTERED, CUFFT_OTHER_DEVICE, CUFFT_CONTEXT_GONE } cufft_entry;
cufft_entry cufft_gpu_enter(cufft_context context, bool *pushed);
void cufft_gpu_leave(bool pushed);

bool cufft_gpu_allocate(size_t bytes, cufft_address *memory);
void cufft_gpu_free(cufft_address memory);
bool cufft_gpu_upload(cufft_address to, const void *from, size_t bytes); /* done when it returns */

/* The kernel of a pass, by its properties. */
typedef struct cufft_launch {
  bool is_double, mixed, special, inverse;
  uint64_t blocks;
  unsigned threads, shared_bytes;
  cufft_address pass, in, out;
} cufft_launch;
bool cufft_gpu_launch(const cufft_launch *launch, cufft_stream stream);

#endif
