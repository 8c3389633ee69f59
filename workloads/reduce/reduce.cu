/* SPDX-License-Identifier: Apache-2.0 */
/* Sums and maximum of two arrays. Threads stride over their share, a warp adds up by shuffles (shfl.down), the warps of
 * a block meet in shared memory, and a second launch with one block does the same to the blocks' results. */
#include "device.h"

struct partial { /* same as in reduce.c */
  float sum;
  unsigned total; /* of the integers, modulo 2^32 */
  int most;
};

#define STRETCH_THREADS 256u /* of a block; as in reduce.c */
#define NOTHING (partial{0, 0, -2147483647 - 1})

static __device__ __forceinline__ partial combine(partial a, partial b) {
  return partial{a.sum + b.sum, a.total + b.total, a.most > b.most ? a.most : b.most};
}

static __device__ __forceinline__ partial reduce_warp(partial value) {
#pragma unroll
  for (int delta = 16; delta > 0; delta /= 2)
    value = combine(value, partial{__shfl_down_sync(ALL_LANES, value.sum, delta),
                                   __shfl_down_sync(ALL_LANES, value.total, delta),
                                   __shfl_down_sync(ALL_LANES, value.most, delta)});
  return value;
}

/* For blocks of whole warps. The result is right in thread 0. */
static __device__ __forceinline__ partial reduce_block(partial value) {
  __shared__ partial warps[32];
  unsigned lane = threadIdx.x % WARP_LANES, warp = threadIdx.x / WARP_LANES;
  value = reduce_warp(value);
  if (lane == 0) warps[warp] = value;
  __syncthreads();
  value = lane < blockDim.x / WARP_LANES ? warps[lane] : NOTHING;
  return warp == 0 ? reduce_warp(value) : value;
}

extern "C" __global__ void reduce_array(const float *floats, const int *integers, unsigned count, partial *result) {
  partial value = NOTHING;
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
    value = combine(value, partial{floats[i], (unsigned)integers[i], integers[i]});
  value = reduce_block(value);
  if (threadIdx.x == 0) result[blockIdx.x] = value;
}

/* The same by stretches: a block goes through `stretch` elements that lie together, a multiple of the block's threads. */
extern "C" __global__ void reduce_stretches(const float *floats, const int *integers, unsigned count, unsigned stretch, partial *result) {
  partial value = NOTHING;
  unsigned end = blockIdx.x * stretch + stretch < count ? blockIdx.x * stretch + stretch : count;
#pragma unroll 1
  for (unsigned i = blockIdx.x * stretch + threadIdx.x; i < end; i += STRETCH_THREADS)
    value = combine(value, partial{floats[i], (unsigned)integers[i], integers[i]});
  value = reduce_block(value);
  if (threadIdx.x == 0) result[blockIdx.x] = value;
}

extern "C" __global__ void reduce_partials(const partial *partials, unsigned count, partial *result) {
  partial value = NOTHING;
  for (unsigned i = threadIdx.x; i < count; i += blockDim.x) value = combine(value, partials[i]);
  value = reduce_block(value);
  if (threadIdx.x == 0) *result = value;
}
