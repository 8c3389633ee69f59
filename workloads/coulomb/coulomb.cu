/* SPDX-License-Identifier: Apache-2.0 */
/* The electric potential of point charges on one plane of a grid. A thread has four cells, 16 apart, so that what it
 * works out of an atom (in constant memory, read by all lanes at once) serves four times and stores lie side by side.
 */
#include "device.h"

#define MOST_ATOMS 4000
#define CELLS 4
#define BLOCK_X 16

struct atom {                /* same as in coulomb.c */
  float x, y, above, charge; /* above: the square of the distance from the plane */
};

extern "C" {
__constant__ atom atoms[MOST_ATOMS];
}

/* Adds to what is there: the same plane may be given one portion of the atoms after another. */
extern "C" __global__ void coulomb(float *potential, unsigned width, unsigned height, float spacing, unsigned count) {
  unsigned left = blockIdx.x * BLOCK_X * CELLS + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
  float x = __fmul_rn(spacing, (float)left), y = __fmul_rn(spacing, (float)row), sum[CELLS] = {};
  for (unsigned i = 0; i < count; i++) {
    float dy = y - atoms[i].y, dx = x - atoms[i].x, across = fmaf(dy, dy, atoms[i].above);
#pragma unroll
    for (unsigned k = 0; k < CELLS; k++) {
      sum[k] += atoms[i].charge / sqrtf(fmaf(dx, dx, across));
      dx += __fmul_rn(spacing, BLOCK_X);
    }
  }
  if (row >= height) return;
#pragma unroll
  for (unsigned k = 0; k < CELLS; k++)
    if (left + k * BLOCK_X < width) potential[row * width + left + k * BLOCK_X] += sum[k];
}
