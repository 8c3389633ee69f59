/* SPDX-License-Identifier: Apache-2.0 */
/* A step of finite differences in time for an electromagnetic field in two dimensions (transverse electric): three
 * kernels over three arrays, the electric field across and down, then the magnetic one. Row 0 of the field across is
 * driven. */
#include "device.h"

#define HERE                                                                                                           \
  unsigned x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, i = y * width + x;    \
  if (x >= width || y >= height) return

extern "C" __global__ void fdtd_across(float *across, const float *magnetic, unsigned width, unsigned height,
                                       float source) {
  HERE;
  across[i] = y == 0 ? source : fmaf(-0.5f, magnetic[i] - magnetic[i - width], across[i]);
}

extern "C" __global__ void fdtd_down(float *down, const float *magnetic, unsigned width, unsigned height) {
  HERE;
  if (x > 0) down[i] = fmaf(-0.5f, magnetic[i] - magnetic[i - 1], down[i]);
}

extern "C" __global__ void fdtd_magnetic(const float *across, const float *down, float *magnetic, unsigned width,
                                         unsigned height) {
  HERE;
  if (x + 1 == width || y + 1 == height) return;
  float curl = down[i + 1] - down[i] + across[i + width] - across[i];
  magnetic[i] = fmaf(-0.7f, curl, magnetic[i]);
}
