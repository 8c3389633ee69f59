/* SPDX-License-Identifier: Apache-2.0 */
/* Scalar products of many pairs of vectors. A block takes one pair after the other: its threads go along the vectors and keep more
 * partial sums in shared memory than the block has threads, so that few steps of the tree that adds them up leave threads idle.
 * Two loads per multiplication: the memory's speed, until the tree's barriers show with short vectors. */
#include "device.h"

#define SUMS 1024

/* a, b: [pair][element]; products: [pair]. */
extern "C" __global__ void scalarproduct(const float *a, const float *b, float *products, unsigned pairs, unsigned elements) {
  __shared__ float sums[SUMS];
  unsigned x = threadIdx.x;
  for (unsigned pair = blockIdx.x; pair < pairs; pair += gridDim.x) {
    const float *left = a + (unsigned long long)pair * elements, *right = b + (unsigned long long)pair * elements;
    for (unsigned at = x; at < SUMS; at += blockDim.x) {
      float sum = 0;
      for (unsigned i = at; i < elements; i += SUMS) sum = fmaf(left[i], right[i], sum);
      sums[at] = sum;
    }
    for (unsigned half = SUMS / 2; half > 0; half /= 2) {
      __syncthreads();
      for (unsigned at = x; at < half; at += blockDim.x) sums[at] += sums[half + at];
    }
    if (x == 0) products[pair] = sums[0];
    __syncthreads(); /* the next pair's sums are not written before these are read */
  }
}
