/* SPDX-License-Identifier: Apache-2.0 */
/* Forward pass of a convolutional network for one image: convolutions as matrix products by tiles (the image's patches are gathered
 * while a tile is loaded, no matrix of them is ever in memory), rectification, normalisation between maps, pooling, dense layers and
 * a softmax. Convolutions are arithmetic, dense layers read each weight once: the memory's speed.
 *
 * Maps lie one after the other: [map][row][column]. Weights of a map made: [map read][row][column]. */
#include "device.h"

#include "exact.h"

#define TILE 32  /* maps made and pixels of a block */
#define SIDE 16  /* of a block's threads: each makes four of them */
#define DEPTH 16 /* terms of the sums that are in shared memory at a time */

/* Sizes of one layer; maps_read and maps_made are those of one group. The same struct is in alexnet.c. */
struct convolution {
  unsigned maps_read, maps_made, side_read, side_made, kernel, stride, padding;
};

/* What the kernel's cell `term` (of maps_read x kernel x kernel) covers for this pixel; 0 beyond the edge. */
static __device__ __forceinline__ float read_cell(const float *from, const convolution &c, unsigned pixel, unsigned term) {
  unsigned cells = c.kernel * c.kernel, map = term / cells, cell = term % cells;
  if (map >= c.maps_read || pixel >= c.side_made * c.side_made) return 0;
  unsigned row = pixel / c.side_made * c.stride + cell / c.kernel - c.padding,
           column = pixel % c.side_made * c.stride + cell % c.kernel - c.padding; /* before the edge: huge */
  return row < c.side_read && column < c.side_read ? from[(map * c.side_read + row) * c.side_read + column] : 0;
}

static __device__ __forceinline__ float rectified(float x) { return x > 0 ? x : 0; }

static __device__ __forceinline__ void store(float *to, const convolution &c, unsigned map, unsigned pixel, float sum) {
  unsigned pixels = c.side_made * c.side_made;
  if (map < c.maps_made && pixel < pixels) to[map * pixels + pixel] = rectified(sum);
}

/* blockIdx.x: TILE pixels; blockIdx.y: TILE maps made, group after group. */
extern "C" __global__ void alexnet_convolution(const float *from, float *to, const float *weights, const float *bias, convolution c) {
  __shared__ float tile_weights[DEPTH][TILE + 1], tile_cells[DEPTH][TILE];
  unsigned x = threadIdx.x, y = threadIdx.y, thread = y * SIDE + x;
  unsigned tiles = (c.maps_made + TILE - 1) / TILE, group = blockIdx.y / tiles;
  unsigned map = blockIdx.y % tiles * TILE, pixel = blockIdx.x * TILE, terms = c.maps_read * c.kernel * c.kernel;
  from += group * c.maps_read * c.side_read * c.side_read;
  to += group * c.maps_made * c.side_made * c.side_made;
  weights += group * c.maps_made * terms;
  bias += group * c.maps_made;
  float sum[2][2];
  for (unsigned i = 0; i < 2; i++) sum[i][0] = sum[i][1] = map + y + i * SIDE < c.maps_made ? bias[map + y + i * SIDE] : 0;
  for (unsigned start = 0; start < terms; start += DEPTH) {
    for (unsigned i = y; i < TILE; i += SIDE)
      tile_weights[x][i] = map + i < c.maps_made && start + x < terms ? weights[(map + i) * terms + start + x] : 0;
    for (unsigned i = thread / TILE; i < DEPTH; i += SIDE * SIDE / TILE)
      tile_cells[i][thread % TILE] = read_cell(from, c, pixel + thread % TILE, start + i);
    __syncthreads();
#pragma unroll
    for (unsigned k = 0; k < DEPTH; k++) {
      float upper = tile_weights[k][y], lower = tile_weights[k][y + SIDE], left = tile_cells[k][x], right = tile_cells[k][x + SIDE];
      sum[0][0] = fmaf(upper, left, sum[0][0]);
      sum[0][1] = fmaf(upper, right, sum[0][1]);
      sum[1][0] = fmaf(lower, left, sum[1][0]);
      sum[1][1] = fmaf(lower, right, sum[1][1]);
    }
    __syncthreads();
  }
  for (unsigned i = 0; i < 2; i++)
    for (unsigned j = 0; j < 2; j++) store(to, c, map + y + i * SIDE, pixel + x + j * SIDE, sum[i][j]);
}

/* Each cell over (2 + 1e-4 x the squares of five neighbouring maps' cells) to the power 3/4. A thread per cell. */
extern "C" __global__ void alexnet_normalise(const float *from, float *to, unsigned maps, unsigned cells) {
  unsigned cell = blockIdx.x * blockDim.x + threadIdx.x, map = blockIdx.y;
  if (cell >= cells) return;
  float sum = 0;
  for (unsigned other = map < 2 ? 0 : map - 2; other < maps && other <= map + 2; other++) {
    float value = from[other * cells + cell];
    sum = fmaf(value, value, sum);
  }
  float root = sqrtf(fmaf(1e-4f, sum, 2.0f));
  to[map * cells + cell] = from[map * cells + cell] / __fmul_rn(root, sqrtf(root));
}

/* The highest of 3 x 3 cells, two cells apart. A thread per cell made; blockIdx.y: the map. */
extern "C" __global__ void alexnet_pool(const float *from, float *to, unsigned side_read, unsigned side_made) {
  unsigned cell = blockIdx.x * blockDim.x + threadIdx.x;
  if (cell >= side_made * side_made) return;
  const float *corner = from + (blockIdx.y * side_read + cell / side_made * 2) * side_read + cell % side_made * 2;
  float highest = *corner;
  for (unsigned row = 0; row < 3; row++)
    for (unsigned column = 0; column < 3; column++) {
      float value = corner[row * side_read + column];
      highest = value > highest ? value : highest;
    }
  to[blockIdx.y * side_made * side_made + cell] = highest;
}

/* A warp per unit made: its lanes take every 32nd input. rectify: 0 or 1. */
extern "C" __global__ void alexnet_dense(const float *from, float *to, const float *weights, const float *bias, unsigned inputs,
                                         unsigned units, unsigned rectify) {
  unsigned thread = blockIdx.x * blockDim.x + threadIdx.x, unit = thread / WARP_LANES, lane = thread % WARP_LANES;
  if (unit >= units) return;
  const float *weight = weights + (unsigned long long)unit * inputs;
  float sum = 0;
  for (unsigned i = lane; i < inputs; i += WARP_LANES) sum = fmaf(weight[i], from[i], sum);
  for (unsigned distance = WARP_LANES / 2; distance > 0; distance /= 2) sum += __shfl_xor_sync(ALL_LANES, sum, (int)distance);
  sum += bias[unit];
  if (lane == 0) to[unit] = rectify ? rectified(sum) : sum;
}

/* One block of CLASS_THREADS threads: the classes' probabilities. */
#define CLASS_THREADS 256
extern "C" __global__ void alexnet_softmax(const float *from, float *to, unsigned classes) {
  __shared__ float shared[CLASS_THREADS];
  unsigned x = threadIdx.x;
  float highest = from[0], sum = 0;
  for (unsigned i = 0; i < classes; i++) highest = from[i] > highest ? from[i] : highest;
  for (unsigned i = x; i < classes; i += CLASS_THREADS) sum += exact_exp(from[i] - highest);
  shared[x] = sum;
  for (unsigned half = CLASS_THREADS / 2; half > 0; half /= 2) {
    __syncthreads();
    if (x < half) shared[x] += shared[half + x];
  }
  __syncthreads();
  for (unsigned i = x; i < classes; i += CLASS_THREADS) to[i] = exact_exp(from[i] - highest) / shared[0];
}
