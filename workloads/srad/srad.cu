/* SPDX-License-Identifier: Apache-2.0 */
/* Speckle-reducing anisotropic diffusion: an iteration is three kernels over six arrays of the image's size. srad_sums
 * adds up the image and its squares, srad_coefficients finds every cell's four differences and how much it may diffuse,
 * srad_update moves the cells. Cells outside the image repeat its edge. */
#include "device.h"

#define THREADS 256

extern "C" __global__ void srad_sums(const float *image, unsigned cells, float *sums) {
  __shared__ float sum[THREADS], squares[THREADS];
  unsigned x = threadIdx.x, i = blockIdx.x * THREADS + x;
  float here = i < cells ? image[i] : 0;
  sum[x] = here;
  squares[x] = __fmul_rn(here, here);
  __syncthreads();
  for (unsigned half = THREADS / 2; half > 0; half /= 2) {
    if (x < half) {
      sum[x] += sum[x + half];
      squares[x] += squares[x + half];
    }
    __syncthreads();
  }
  if (x > 0) return;
  sums[2 * blockIdx.x] = sum[0];
  sums[2 * blockIdx.x + 1] = squares[0];
}

/* differences: north, south, west and east, an array each, one after the other. */
extern "C" __global__ void srad_coefficients(const float *image, float *differences, float *coefficient, int width,
                                             int height, float speckle) {
  int x = (int)(blockIdx.x * blockDim.x + threadIdx.x), y = (int)(blockIdx.y * blockDim.y + threadIdx.y);
  if (x >= width || y >= height) return;
  int i = y * width + x, cells = width * height;
  float here = image[i];
  float north = image[y > 0 ? i - width : i] - here, south = image[y < height - 1 ? i + width : i] - here;
  float west = image[x > 0 ? i - 1 : i] - here, east = image[x < width - 1 ? i + 1 : i] - here;
  differences[i] = north;
  differences[cells + i] = south;
  differences[2 * cells + i] = west;
  differences[3 * cells + i] = east;

  float slope = fmaf(north, north, fmaf(south, south, fmaf(west, west, __fmul_rn(east, east)))) / (here * here);
  float bend = (north + south + west + east) / here;
  float spread = fmaf(bend, 0.25f, 1.0f);
  float variation = fmaf(bend * bend, -0.0625f, 0.5f * slope) / (spread * spread);
  float value = 1.0f / (1.0f + (variation - speckle) / __fmul_rn(speckle, 1.0f + speckle));
  coefficient[i] = value < 0 ? 0 : value > 1 ? 1 : value;
}

extern "C" __global__ void srad_update(float *image, const float *differences, const float *coefficient, int width,
                                       int height, float step) {
  int x = (int)(blockIdx.x * blockDim.x + threadIdx.x), y = (int)(blockIdx.y * blockDim.y + threadIdx.y);
  if (x >= width || y >= height) return;
  int i = y * width + x, cells = width * height;
  float here = coefficient[i], below = coefficient[y < height - 1 ? i + width : i],
        right = coefficient[x < width - 1 ? i + 1 : i];
  float flow = __fmul_rn(here, differences[i]);
  flow = fmaf(below, differences[cells + i], flow);
  flow = fmaf(here, differences[2 * cells + i], flow);
  flow = fmaf(right, differences[3 * cells + i], flow);
  image[i] = fmaf(step, flow, image[i]);
}
