/* SPDX-License-Identifier: Apache-2.0 */
/* A gas on an unstructured mesh (Euler's equations, finite volumes): every cell has four faces, and at each the flux
 * between it and whichever cell is beyond, found by index. Five quantities per cell (density, momentum in three
 * directions, energy), an array each, one after the other; so a face gathers from five places far apart. A step is one
 * cfd_start and three times cfd_fluxes and cfd_update. */
#include "device.h"

#define QUANTITIES 5
#define FACES 4

struct cell_state {
  float density, momentum[3], energy;
};

struct face_flux { /* and the speed of the fastest wave */
  float through[QUANTITIES], wave;
};

static __device__ __forceinline__ float dot(const float *a, const float *b) {
  return fmaf(a[0], b[0], fmaf(a[1], b[1], __fmul_rn(a[2], b[2])));
}

static __device__ __forceinline__ cell_state load_state(const float *states, unsigned i, unsigned cells) {
  return {states[i], {states[cells + i], states[2 * cells + i], states[3 * cells + i]}, states[4 * cells + i]};
}

static __device__ __forceinline__ float pressure_of(cell_state s) {
  return __fmul_rn(0.4f, fmaf(-0.5f / s.density, dot(s.momentum, s.momentum), s.energy));
}

static __device__ __forceinline__ face_flux flux_of(cell_state s, const float *normal, float length) {
  float pressure = pressure_of(s), speed = dot(s.momentum, normal) / s.density;
  face_flux flux;
  flux.through[0] = __fmul_rn(s.density, speed);
  for (int axis = 0; axis < 3; axis++) flux.through[1 + axis] = fmaf(s.momentum[axis], speed, pressure * normal[axis]);
  flux.through[4] = __fmul_rn(s.energy + pressure, speed);
  flux.wave = fmaf(sqrtf(1.4f * pressure / s.density), length, fabsf(speed));
  return flux;
}

/* Keeps the states, and finds how far each cell may go in a step. */
extern "C" __global__ void cfd_start(const float *states, float *old, float *factor, const float *volume,
                                     unsigned cells) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= cells) return;
  for (unsigned k = 0; k < QUANTITIES; k++) old[k * cells + i] = states[k * cells + i];
  cell_state s = load_state(states, i, cells);
  float sound = sqrtf(1.4f * pressure_of(s) / s.density), speed = sqrtf(dot(s.momentum, s.momentum)) / s.density;
  factor[i] = 0.2f / (sqrtf(volume[i]) * (sound + speed));
}

/* neighbour[face * cells + i]: the cell beyond, or -1 for a wall; normal[(3 * face + axis) * cells + i]. */
extern "C" __global__ void cfd_fluxes(const float *states, const int *neighbour, const float *normal, float *fluxes,
                                      unsigned cells) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= cells) return;
  cell_state here = load_state(states, i, cells);
  float sum[QUANTITIES] = {};
  for (unsigned face = 0; face < FACES; face++) {
    const float *at = normal + 3 * face * cells + i;
    float n[3] = {at[0], at[cells], at[2 * cells]}, length = sqrtf(dot(n, n));
    int other = neighbour[face * cells + i];
    if (other < 0) {
      for (int axis = 0; axis < 3; axis++) sum[1 + axis] = fmaf(-pressure_of(here), n[axis], sum[1 + axis]);
      continue;
    }
    cell_state there = load_state(states, (unsigned)other, cells);
    face_flux a = flux_of(here, n, length), b = flux_of(there, n, length);
    float half_wave = 0.5f * (a.wave > b.wave ? a.wave : b.wave);
    float jump[QUANTITIES] = {there.density - here.density, there.momentum[0] - here.momentum[0],
                              there.momentum[1] - here.momentum[1], there.momentum[2] - here.momentum[2],
                              there.energy - here.energy};
    for (int k = 0; k < QUANTITIES; k++)
      sum[k] = fmaf(half_wave, jump[k], fmaf(-0.5f, a.through[k] + b.through[k], sum[k]));
  }
  for (unsigned k = 0; k < QUANTITIES; k++) fluxes[k * cells + i] = sum[k];
}

extern "C" __global__ void cfd_update(float *states, const float *old, const float *factor, const float *fluxes,
                                      unsigned cells, float part) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= cells) return;
  float step = factor[i] * part;
  for (unsigned k = 0; k < QUANTITIES; k++)
    states[k * cells + i] = fmaf(step, fluxes[k * cells + i], old[k * cells + i]);
}
