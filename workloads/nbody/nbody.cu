/* SPDX-License-Identifier: Apache-2.0 */
/* Gravity between all pairs of bodies: the accelerations of one moment. A block walks over all bodies in tiles that it
 * keeps in shared memory; every thread reads the same element at once. Much arithmetic (fma, rsqrt.approx) for few
 * bytes. */
#include "device.h"

#define THREADS 128

struct body {
  float x, y, z, mass;
};

extern "C" __global__ void nbody(const body *bodies, float *acceleration, unsigned count, float softening) {
  __shared__ body tile[THREADS];
  unsigned i = blockIdx.x * THREADS + threadIdx.x;
  body here = i < count ? bodies[i] : body{0, 0, 0, 0};
  float ax = 0, ay = 0, az = 0;
  for (unsigned start = 0; start < count; start += THREADS) {
    tile[threadIdx.x] = start + threadIdx.x < count ? bodies[start + threadIdx.x] : body{0, 0, 0, 0};
    __syncthreads();
    for (unsigned k = 0; k < THREADS; k++) {
      body there = tile[k];
      float dx = there.x - here.x, dy = there.y - here.y, dz = there.z - here.z;
      float inverse = rsqrtf(fmaf(dx, dx, fmaf(dy, dy, fmaf(dz, dz, softening))));
      float pull = there.mass * inverse * inverse * inverse;
      ax = fmaf(dx, pull, ax);
      ay = fmaf(dy, pull, ay);
      az = fmaf(dz, pull, az);
    }
    __syncthreads();
  }
  if (i >= count) return;
  acceleration[i] = ax;
  acceleration[count + i] = ay;
  acceleration[2 * count + i] = az;
}
