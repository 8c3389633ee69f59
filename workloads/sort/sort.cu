/* SPDX-License-Identifier: Apache-2.0 */
/* Bitonic sort of a power of two of unsigned words. Compare-and-swap distances inside a tile are done in shared memory,
 * all of them in one launch; longer ones by a launch each over global memory. */
#include "device.h"

#define THREADS 512
#define TILE (2 * THREADS)

static __device__ __forceinline__ void order(unsigned *low, unsigned *high, bool ascending) {
  unsigned a = *low, b = *high;
  if ((a > b) == ascending) {
    *low = b;
    *high = a;
  }
}

/* The lower index of pair number `i` at this distance (a power of two). */
static __device__ __forceinline__ unsigned lower_of_pair(unsigned i, unsigned distance) {
  return (i & ~(distance - 1)) * 2 + (i & (distance - 1));
}

/* All steps with distances from `distance` down to 1, for sequences from `from_length` up to `to_length`. */
extern "C" __global__ void sort_tile(unsigned *data, unsigned count, unsigned from_length, unsigned to_length) {
  __shared__ unsigned tile[TILE];
  unsigned start = blockIdx.x * TILE, x = threadIdx.x;
  for (unsigned i = x; i < TILE && start + i < count; i += THREADS) tile[i] = data[start + i];
  __syncthreads();
  for (unsigned length = from_length; length <= to_length; length *= 2)
    for (unsigned distance = (length < TILE ? length : TILE) / 2; distance > 0; distance /= 2) {
      unsigned low = lower_of_pair(x, distance);
      if (start + low + distance < count) order(&tile[low], &tile[low + distance], ((start + low) & length) == 0);
      __syncthreads();
    }
  for (unsigned i = x; i < TILE && start + i < count; i += THREADS) data[start + i] = tile[i];
}

/* One step at a distance of at least a tile. */
extern "C" __global__ void sort_step(unsigned *data, unsigned length, unsigned distance) {
  unsigned low = lower_of_pair(blockIdx.x * blockDim.x + threadIdx.x, distance);
  order(&data[low], &data[low + distance], (low & length) == 0);
}
