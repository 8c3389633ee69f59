/* SPDX-License-Identifier: Apache-2.0 */
/* Streams: an element per thread, doubles. The dynamic shared memory only limits how many blocks an SM takes; `never` is 0, and keeps
 * the compiler from knowing that it is not used. */
#include "device.h"

extern __shared__ double spoiler[];

/* Of so many elements each array of the kernels ..._again, which all threads go through again and again: what the L2 has. */
enum { LENGTH = 155617 };

#define STREAM(name, first, last, body)                                                                                \
  extern "C" __global__ void name(double *a, const double *__restrict__ b, const double *__restrict__ c,               \
                                  const double *__restrict__ d, unsigned long long count, int never) {                 \
    (void)c, (void)d;                                                                                                  \
    int i = (int)(threadIdx.x + blockIdx.x * blockDim.x);                                                              \
    if (i < (first) || (unsigned long long)i >= count - (last)) return;                                                \
    if (never) spoiler[threadIdx.x] = b[threadIdx.x];                                                                  \
    body;                                                                                                              \
    if (never) a[i] = spoiler[i];                                                                                      \
  }

STREAM(init, 0, 0, a[i] = 0.23)
STREAM(scale, 0, 0, a[i] = b[i] * 1.2)
STREAM(triad, 0, 0, a[i] = b[i] * d[i] + c[i])
STREAM(sum, 0, 0, a[i] = b[i] * 1.2 + c[i]) /* what gpu-stream had for triad until December 2024 */
STREAM(points3, 1, 1, a[i] = 0.5 * b[i - 1] - 1.0 * b[i] + 0.5 * b[i + 1])
STREAM(points5, 2, 2, a[i] = 0.25 * b[i - 2] + 0.25 * b[i - 1] - 1.0 * b[i] + 0.5 * b[i + 1] + 0.5 * b[i + 2])

extern "C" __global__ void read(double *a, const double *__restrict__ b, const double *__restrict__ c,
                                const double *__restrict__ d, unsigned long long count, int never) {
  (void)c, (void)d;
  int i = (int)(threadIdx.x + blockIdx.x * blockDim.x);
  if ((unsigned long long)i >= count) return;
  if (never) spoiler[threadIdx.x] = b[threadIdx.x];
  double value = b[i];
  if (never || value == 123.0) a[i] = value + spoiler[i];
}

#define AGAIN(name, body)                                                                                              \
  extern "C" __global__ void name(double *a, const double *__restrict__ b, const double *__restrict__ c,               \
                                  const double *__restrict__ d, unsigned long long count, int never) {                 \
    (void)c, (void)d;                                                                                                  \
    int i = (int)((threadIdx.x + blockIdx.x * blockDim.x) % LENGTH);                                                   \
    if ((unsigned long long)i >= count) return;                                                                        \
    if (never) spoiler[threadIdx.x] = b[threadIdx.x];                                                                  \
    body;                                                                                                              \
    if (never) a[i] = spoiler[i];                                                                                      \
  }

AGAIN(init_again, a[i] = 0.23)
AGAIN(read_again, double value = b[i]; if (value == 123.0) a[i] = value)
AGAIN(scale_again, a[i] = b[i] * 1.2)
AGAIN(triad_again, a[i] = b[i] * d[i] + c[i])
