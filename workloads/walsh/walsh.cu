/* SPDX-License-Identifier: Apache-2.0 */
/* Fast Walsh-Hadamard transform of a power of two of numbers, natural order: log2(count) rounds of sums and differences, with
 * distances from count / 2 down to 1. Two rounds at once in registers (radix 4): over global memory as long as the distances are
 * longer than a tile, then all others in one launch on tiles in shared memory. Every long round reads and writes all the data. */
#include "device.h"

#define TILE 2048
#define THREADS (TILE / 4)

static __device__ __forceinline__ void butterfly(float *low, float *high) {
  float a = *low, b = *high;
  *low = a + b;
  *high = a - b;
}

/* The rounds with distances 2 x stride and stride, of the four numbers from `at` on. */
static __device__ __forceinline__ void two_rounds(float *at, unsigned stride) {
  float a = at[0], b = at[stride], c = at[2 * stride], d = at[3 * stride];
  butterfly(&a, &c), butterfly(&b, &d);
  butterfly(&a, &b), butterfly(&c, &d);
  at[0] = a, at[stride] = b, at[2 * stride] = c, at[3 * stride] = d;
}

/* The lowest of the i-th four numbers that are `stride` (a power of two) apart. */
static __device__ __forceinline__ unsigned lowest_of_four(unsigned i, unsigned stride) {
  return (i & ~(stride - 1)) * 4 + (i & (stride - 1));
}

/* A thread per four numbers. */
extern "C" __global__ void walsh_step(float *data, unsigned stride, unsigned count) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count / 4) two_rounds(data + lowest_of_four(i, stride), stride);
}

/* All rounds within 2^log2_tile numbers, at most TILE; a block per tile, of THREADS threads. */
extern "C" __global__ void walsh_tile(float *data, unsigned log2_tile) {
  __shared__ float tile[TILE];
  unsigned size = 1u << log2_tile, x = threadIdx.x;
  float *from = data + (unsigned long long)blockIdx.x * size;
  for (unsigned i = x; i < size; i += THREADS) tile[i] = from[i];
  unsigned left = log2_tile;
  for (; left > 1; left -= 2) {
    __syncthreads();
    if (x < size / 4) two_rounds(tile + lowest_of_four(x, 1u << (left - 2)), 1u << (left - 2));
  }
  __syncthreads();
  if (left)
    for (unsigned i = x; i < size / 2; i += THREADS) butterfly(&tile[2 * i], &tile[2 * i + 1]);
  __syncthreads();
  for (unsigned i = x; i < size; i += THREADS) from[i] = tile[i];
}

/* What makes a convolution of two transforms: data times the other's spectrum, over the count. */
extern "C" __global__ void walsh_multiply(float *data, const float *spectrum, float scale, unsigned count) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) data[i] = __fmul_rn(__fmul_rn(data[i], spectrum[i]), scale);
}
