/* SPDX-License-Identifier: Apache-2.0 */
/* Inclusive prefix sum in one launch ("decoupled look-back"). A block takes the next tile by an atomic counter,
 * publishes its tile's sum, then walks back over its predecessors until it meets one whose whole prefix is known.
 * Blocks so wait for each other's flags: it needs forward progress of every block that has started, and memory that
 * publishes in order. */
#include "device.h"

#define THREADS 256
#define PER_THREAD 8
#define TILE (THREADS * PER_THREAD)

/* A tile's state is one 64-bit word, so that flag and value change together: 0 nothing, 1 sum of the tile, 2 whole
 * prefix. */
#define SUM_KNOWN 1ull
#define PREFIX_KNOWN 2ull

static __device__ __forceinline__ void publish(volatile unsigned long long *state, unsigned long long flag,
                                               unsigned value) {
  *state = flag << 32 | value;
}

/* The inclusive prefix of `value` over the block's threads; *total is the block's sum. */
static __device__ __forceinline__ unsigned scan_block(unsigned value, unsigned *total) {
  __shared__ unsigned warps[THREADS / 32];
  unsigned lane = threadIdx.x % WARP_LANES, warp = threadIdx.x / WARP_LANES;
#pragma unroll
  for (unsigned delta = 1; delta < WARP_LANES; delta *= 2) {
    unsigned below = __shfl_up_sync(ALL_LANES, value, (int)delta);
    if (lane >= delta) value += below;
  }
  if (lane == WARP_LANES - 1) warps[warp] = value;
  __syncthreads();
  unsigned sum = 0, before = 0;
#pragma unroll
  for (unsigned i = 0; i < THREADS / 32; i++) {
    if (i == warp) before = sum;
    sum += warps[i];
  }
  *total = sum;
  return before + value;
}

/* The sum of all tiles before `tile`, by thread 0. */
static __device__ __forceinline__ unsigned look_back(volatile unsigned long long *states, unsigned tile) {
  unsigned prefix = 0;
  while (tile > 0) {
    unsigned long long state = states[tile - 1];
    if (state >> 32 == 0) continue; /* not there yet: look again */
    prefix += (unsigned)state;
    if (state >> 32 == PREFIX_KNOWN) break;
    tile--;
  }
  return prefix;
}

extern "C" __global__ void scan(const unsigned *from, unsigned *to, unsigned count, volatile unsigned long long *states,
                                unsigned *next_tile) {
  __shared__ unsigned tile_shared, prefix_shared;
  if (threadIdx.x == 0) tile_shared = atomicAdd(next_tile, 1u);
  __syncthreads();
  unsigned tile = tile_shared, start = tile * TILE + threadIdx.x * PER_THREAD;

  unsigned values[PER_THREAD], sum = 0, total;
#pragma unroll
  for (unsigned i = 0; i < PER_THREAD; i++) values[i] = sum += start + i < count ? from[start + i] : 0;
  unsigned before = scan_block(sum, &total) - sum;
  if (threadIdx.x == 0) {
    publish(&states[tile], tile ? SUM_KNOWN : PREFIX_KNOWN, total);
    prefix_shared = look_back(states, tile);
    if (tile) publish(&states[tile], PREFIX_KNOWN, prefix_shared + total);
  }
  __syncthreads();
  before += prefix_shared;
#pragma unroll
  for (unsigned i = 0; i < PER_THREAD; i++)
    if (start + i < count) to[start + i] = before + values[i];
}
