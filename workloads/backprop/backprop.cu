/* SPDX-License-Identifier: Apache-2.0 */
/* Training step of a network with many inputs and 16 hidden units. weights[input + 1][unit + 1] has the biases in row 0
 * and nothing in column 0, so a block's rows are 17 words apart and lie across the cache lines. */
#include "device.h"

#define UNITS 16
#define PITCH (UNITS + 1)
#define RATE 0.3f /* as in backprop.c */
#define MOMENTUM 0.3f

/* A block multiplies 16 inputs by their 16 x 16 weights and adds them up in shared memory: one partial sum per unit. */
extern "C" __global__ void backprop_forward(const float *input, const float *weights, float *partial) {
  __shared__ float value[UNITS], product[UNITS][UNITS];
  unsigned unit = threadIdx.x, y = threadIdx.y, i = blockIdx.x * UNITS + y;
  if (unit == 0) value[y] = input[i];
  __syncthreads();
  product[y][unit] = __fmul_rn(value[y], weights[(i + 1) * PITCH + unit + 1]);
  __syncthreads();
  for (unsigned half = UNITS / 2; half > 0; half /= 2) {
    if (y < half) product[y][unit] += product[y + half][unit];
    __syncthreads();
  }
  if (y == 0) partial[blockIdx.x * UNITS + unit] = product[0][unit];
}

static __device__ __forceinline__ void adjust(float *weight, float *change, float slope) {
  float now = fmaf(RATE, slope, __fmul_rn(MOMENTUM, *change));
  *weight += now;
  *change = now;
}

/* Every weight moves by its unit's delta and a part of its last change; block 0 does the biases too. */
extern "C" __global__ void backprop_adjust(const float *input, const float *delta, float *weights, float *changes) {
  unsigned unit = threadIdx.x, y = threadIdx.y, i = blockIdx.x * UNITS + y, at = (i + 1) * PITCH + unit + 1;
  adjust(&weights[at], &changes[at], __fmul_rn(delta[unit], input[i]));
  if (i == 0) adjust(&weights[unit + 1], &changes[unit + 1], delta[unit]);
}
