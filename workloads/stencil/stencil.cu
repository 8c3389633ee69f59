/* SPDX-License-Identifier: Apache-2.0 */
/* One Jacobi step of a seven-point stencil in three dimensions. A block has a column of 32 x 4 cells and walks up it;
 * the cells below and above stay in registers, the four next to it are loaded again from memory. The outermost cells keep
 * their values. */
#include "device.h"

extern "C" __global__ void stencil_step(const float *from, float *to, unsigned width, unsigned height, unsigned depth,
                                        float centre, float side) {
  unsigned x = blockIdx.x * blockDim.x + threadIdx.x + 1, y = blockIdx.y * blockDim.y + threadIdx.y + 1;
  if (x + 1 >= width || y + 1 >= height) return;
  unsigned plane = width * height, i = y * width + x;
  float below = from[i], here = from[i + plane];
  for (unsigned z = 1; z + 1 < depth; z++) {
    i += plane;
    float above = from[i + plane];
    float sum = below + above + from[i - width] + from[i + width] + from[i - 1] + from[i + 1];
    to[i] = fmaf(side, sum, __fmul_rn(centre, here));
    below = here;
    here = above;
  }
}
