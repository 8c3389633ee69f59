/* SPDX-License-Identifier: Apache-2.0 */
/* A box out of a volume that is many times larger: seven-point sums of its points, or the sum of each row, as a row of a
 * sparse matrix times a vector. Its rows are short and lie far apart, so of every page that holds a part of it little is
 * used. A point outside the box counts as the point itself. */
#include "device.h"

/* volume: rows `pitch` floats apart, planes `plane` floats; box: width x rows x planes, close together. */
extern "C" __global__ void tiles(const float *volume, unsigned long long pitch, unsigned long long plane, float *box,
                                 unsigned width, unsigned rows, unsigned planes) {
  unsigned x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y % rows, z = blockIdx.y / rows;
  if (x >= width || z >= planes) return;
  const float *at = volume + z * plane + y * pitch + x;
  float here = *at;
  float sum = here;
  sum += x > 0 ? at[-1] : here;
  sum += x + 1 < width ? at[1] : here;
  sum += y > 0 ? *(at - pitch) : here;
  sum += y + 1 < rows ? at[pitch] : here;
  sum += z > 0 ? *(at - plane) : here;
  sum += z + 1 < planes ? at[plane] : here;
  box[((unsigned long long)z * rows + y) * width + x] = sum;
}

/* A block per row of the box: sums[row]. */
extern "C" __global__ void row_sums(const float *volume, unsigned long long pitch, unsigned long long plane, float *sums,
                                    unsigned width, unsigned rows) {
  __shared__ float warps[32];
  unsigned lane = threadIdx.x % WARP_LANES, y = blockIdx.x % rows, z = blockIdx.x / rows;
  const float *row = volume + z * plane + y * pitch;
  float sum = 0;
  for (unsigned x = threadIdx.x; x < width; x += blockDim.x) sum += row[x];
  for (int delta = 16; delta > 0; delta /= 2) sum += __shfl_down_sync(ALL_LANES, sum, delta);
  if (lane == 0) warps[threadIdx.x / WARP_LANES] = sum;
  __syncthreads();
  if (threadIdx.x > 0) return;
  for (unsigned i = 1; i < blockDim.x / WARP_LANES; i++) sum += warps[i];
  sums[blockIdx.x] = sum;
}
