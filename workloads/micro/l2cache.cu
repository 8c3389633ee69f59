/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of 1024 threads, each of which reads 512 KiB; neighbours read other parts, and after `run` blocks it begins again. Of the
 * first `held` blocks each reads less than the one before, so that from then on blocks end one by one. */
#include "device.h"

extern "C" __global__ void sum(double *out, const double *__restrict__ from, int run, int held) {
  double sum = 0;
  int part = (int)(blockIdx.x % (unsigned)run) * 2048 + (int)threadIdx.x, stride = (int)blockDim.x * run * 2;
  if ((int)blockIdx.x < held) {
#pragma unroll 4
    for (int i = (int)blockIdx.x * 32 / held; i < 32; i++)
      sum += from[part + i * stride] * from[part + i * stride + 1024];
  } else {
#pragma unroll
    for (int i = 0; i < 32; i++) sum += from[part + i * stride] * from[part + i * stride + 1024];
  }
  sum *= 1.3;
  if (threadIdx.x > 1233 || sum == 23.12) out[threadIdx.x] += sum;
}
