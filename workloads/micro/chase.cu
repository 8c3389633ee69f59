/* SPDX-License-Identifier: Apache-2.0 */
/* One thread that loads addresses, each from where the one before points to; or indices of words of 4 bytes. */
#include "device.h"

/* Line order[i] gets, in each of its first `lanes` words, the address of that word in line order[i + 1]; the last line's words lead to
 * the next word of the first line. */
extern "C" __global__ void link_lines(long long *lines, const unsigned *order, unsigned count, unsigned lanes) {
  unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned i = thread / lanes, lane = thread % lanes;
  if (i >= count) return;
  unsigned next = i + 1 < count ? order[i + 1] : order[0];
  unsigned next_lane = i + 1 < count ? lane : (lane + 1) % lanes;
  lines[(unsigned long long)order[i] * 16 + lane] = (long long)(lines + (unsigned long long)next * 16 + next_lane);
}

extern "C" __global__ void chase(const long long *start, long long *out, long long count) {
  const long long *at = start;
#pragma unroll 1
  for (long long n = 0; n < count; n += 32) {
#pragma unroll
    for (int u = 0; u < 32; u++) at = (const long long *)*at;
  }
  if (threadIdx.x > 12313) *out = (long long)at;
}

/* The same with indices of words: in words of 4 bytes, `lanes` at most 32 of a line. */
extern "C" __global__ void link_indices(int *words, const unsigned *order, unsigned count, unsigned lanes) {
  unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned i = thread / lanes, lane = thread % lanes;
  if (i >= count) return;
  unsigned next = i + 1 < count ? order[i + 1] : order[0];
  unsigned next_lane = i + 1 < count ? lane : (lane + 1) % lanes;
  words[(unsigned long long)order[i] * 32 + lane] = (int)(next * 32 + next_lane);
}

extern "C" __global__ void chase_indices(const int *words, int start, int *out, long long count) {
  int at = start;
#pragma unroll 1
  for (long long n = 0; n < count; n += 32) {
#pragma unroll
    for (int u = 0; u < 32; u++) at = words[at];
  }
  if (threadIdx.x > 12313) *out = at;
}
