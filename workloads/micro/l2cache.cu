/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of 1024 threads, each of which reads 512 KiB; neighbours read other parts, and after `run` blocks it begins again. */
#include "device.h"

extern "C" __global__ void sum(double *out, const double *__restrict__ from, int run) {
  double sum = 0;
#pragma unroll
  for (int i = 0; i < 32; i++) {
    int at = ((int)blockDim.x * run * i + (int)(blockIdx.x % (unsigned)run) * 1024) * 2 + (int)threadIdx.x;
    sum += from[at] * from[at + 1024];
  }
  sum *= 1.3;
  if (threadIdx.x > 1233 || sum == 23.12) out[threadIdx.x] += sum;
}
