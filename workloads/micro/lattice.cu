/* SPDX-License-Identifier: Apache-2.0 */
/* A step of a lattice-Boltzmann method (D3Q19, relaxation to equilibrium, single precision) that streams in place, as M. Lehmann's
 * "Esoteric Pull" (Computation 10(6), 2022) does: a cell reads half of its 19 populations where it is and half at its neighbours, and
 * writes each to where it read the opposite one, so that one copy is enough and no cell touches another's words. Populations are
 * kept as differences from those at rest, each direction's of all cells together, `pitch` elements apart. */
#include "device.h"

enum { SIDE = 256, PAIRS = 9 };

struct direction {
  int x, y, z;
};
/* One direction of each pair; the other is its opposite. */
__device__ constexpr direction directions[PAIRS] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1},  {1, 1, 0}, {1, 0, 1},
                                                    {0, 1, 1}, {1, -1, 0}, {1, 0, -1}, {0, 1, -1}};

#define INLINE static __device__ __forceinline__
/* Coordinates wrap round, of the box's `planes` planes of SIDE x SIDE cells, too. */
INLINE unsigned wrap(unsigned at, int step, unsigned count) {
  return step > 0 ? (at + 1 == count ? 0 : at + 1) : step < 0 ? (at ? at - 1 : count - 1) : at;
}
/* The population of a cell that moves at (ux, uy, uz) with `density` more than at rest, along a direction of weight `weight`, less that at rest. */
INLINE float equilibrium(float weight, float density, float along, float square) {
  return weight * (density + (1 + density) * (3 * along + 4.5f * along * along - 1.5f * square));
}

extern "C" __global__ void step(float *populations, const unsigned char *solid, unsigned long long pitch, unsigned planes,
                                unsigned cells, unsigned odd, float rate) {
  unsigned n = threadIdx.x + blockIdx.x * blockDim.x;
  if (n >= cells || solid[n]) return;
  unsigned x = n % SIDE, y = n / SIDE % SIDE, z = n / SIDE / SIDE;
  float f[2 * PAIRS + 1];
  float *here[PAIRS], *there[PAIRS]; /* where a pair's populations are read; what goes out along the one is written to the other */
  f[0] = populations[n];
#pragma unroll
  for (int k = 0; k < PAIRS; k++) {
    direction c = directions[k];
    unsigned next = wrap(x, c.x, SIDE) + (wrap(y, c.y, SIDE) + wrap(z, c.z, planes) * SIDE) * SIDE;
    here[k] = populations + (2 * k + 1 + !odd) * pitch + n;
    there[k] = populations + (2 * k + 1 + odd) * pitch + next;
    f[2 * k + 1] = *here[k];
    f[2 * k + 2] = *there[k];
  }
  float density = f[0], ux = 0, uy = 0, uz = 0;
#pragma unroll
  for (int k = 0; k < PAIRS; k++) {
    direction c = directions[k];
    float flow = f[2 * k + 1] - f[2 * k + 2];
    density += f[2 * k + 1] + f[2 * k + 2];
    ux += (float)c.x * flow, uy += (float)c.y * flow, uz += (float)c.z * flow;
  }
  float inverse = 1 / (1 + density);
  ux *= inverse, uy *= inverse, uz *= inverse;
  float square = ux * ux + uy * uy + uz * uz;
  populations[n] = f[0] + rate * (equilibrium(1.0f / 3, density, 0, square) - f[0]);
#pragma unroll
  for (int k = 0; k < PAIRS; k++) {
    direction c = directions[k];
    float weight = k < 3 ? 1.0f / 18 : 1.0f / 36, along = (float)c.x * ux + (float)c.y * uy + (float)c.z * uz;
    *there[k] = f[2 * k + 1] + rate * (equilibrium(weight, density, along, square) - f[2 * k + 1]);
    *here[k] = f[2 * k + 2] + rate * (equilibrium(weight, density, -along, square) - f[2 * k + 2]);
  }
}

/* A box at rest but for one direction's population, which differs from cell to cell. */
extern "C" __global__ void fill(float *populations, unsigned char *solid, unsigned long long pitch, unsigned cells) {
  unsigned n = threadIdx.x + blockIdx.x * blockDim.x;
  if (n >= cells) return;
  solid[n] = 0;
  for (int k = 0; k < 2 * PAIRS + 1; k++) populations[k * pitch + n] = k == 1 ? (float)(n % 1024) / 1048576 : 0;
}

/* The mass of all cells beyond that at rest, which steps leave as it is but for rounding. One block. */
extern "C" __global__ void weigh(const float *populations, unsigned long long pitch, unsigned cells, double *mass) {
  __shared__ double parts[256];
  double sum = 0;
  for (int k = 0; k < 2 * PAIRS + 1; k++)
    for (unsigned n = threadIdx.x; n < cells; n += 256) sum += populations[k * pitch + n];
  parts[threadIdx.x] = sum;
  __syncthreads();
  for (int half = 128; half; half /= 2) {
    if ((int)threadIdx.x < half) parts[threadIdx.x] += parts[threadIdx.x + half];
    __syncthreads();
  }
  if (!threadIdx.x) *mass = parts[0];
}
