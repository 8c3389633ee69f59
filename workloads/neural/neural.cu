/* SPDX-License-Identifier: Apache-2.0 */
/* Forward pass of a small network that reads digits: two layers of 5 x 5 convolutions that go two cells at a step, two
 * dense layers. Blocks are small: one map of one image (13 x 13 or 5 x 5 threads), or one image (100 or 10). Every
 * layer's weights are read again for every image, and images follow one another in memory. */
#include "device.h"

#define KERNEL 5

static __device__ __forceinline__ float squash(float x) { return x / (1.0f + fabsf(x)); }

/* blockIdx.x: the map made; blockIdx.y: the image. from and to: [image][map][row][column]; weights: [map made][1 + map
 * read x 25], the first is the bias. The maps made have blockDim's size, those read are `side` wide and high. */
extern "C" __global__ void neural_convolution(const float *from, float *to, const float *weights, unsigned maps,
                                              unsigned side) {
  unsigned x = threadIdx.x, y = threadIdx.y, size = blockDim.x;
  const float *weight = weights + blockIdx.x * (1 + maps * KERNEL * KERNEL);
  float sum = *weight++;
  for (unsigned map = 0; map < maps; map++) {
    const float *corner = from + ((blockIdx.y * maps + map) * side + 2 * y) * side + 2 * x;
    for (unsigned row = 0; row < KERNEL; row++)
#pragma unroll
      for (unsigned column = 0; column < KERNEL; column++) sum = fmaf(*weight++, corner[row * side + column], sum);
  }
  to[((blockIdx.y * gridDim.x + blockIdx.x) * size + y) * size + x] = squash(sum);
}

/* blockIdx.x: the image; a thread per unit. weights: [1 + input][unit], the first row has the biases. */
extern "C" __global__ void neural_dense(const float *from, float *to, const float *weights, unsigned inputs) {
  unsigned unit = threadIdx.x, units = blockDim.x;
  float sum = weights[unit];
  for (unsigned i = 0; i < inputs; i++) sum = fmaf(weights[(1 + i) * units + unit], from[blockIdx.x * inputs + i], sum);
  to[blockIdx.x * units + unit] = squash(sum);
}
