/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of rows of a table that is many times larger than what is read of it, as an embedding layer sums up the rows of
 * a bag of words. The rows of a bag lie next to each other, the bags anywhere. */
#include "device.h"

/* A block per bag: sums[bag][x] = the sum of table[row][x] over its `count` rows. */
extern "C" __global__ void gather(const float *table, const unsigned *rows, float *sums, unsigned width,
                                  unsigned count) {
  const unsigned *own = rows + (unsigned long long)blockIdx.x * count;
  for (unsigned x = threadIdx.x; x < width; x += blockDim.x) {
    float sum = 0;
    for (unsigned i = 0; i < count; i++) sum += table[(unsigned long long)own[i] * width + x];
    sums[(unsigned long long)blockIdx.x * width + x] = sum;
  }
}
