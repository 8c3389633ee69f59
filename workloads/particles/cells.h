/* SPDX-License-Identifier: Apache-2.0 */
/* What host and kernels of particles share: the sizes, and one pair of atoms, in operations of one rounding each. In a kernel file, include device.h
 * first. */
#ifndef WORKLOADS_PARTICLES_CELLS_H
#define WORKLOADS_PARTICLES_CELLS_H

#ifdef __cplusplus
#define PARTICLES static __device__ __forceinline__
#else
#include <math.h>
#define PARTICLES static inline
#endif

/* A box holds up to SLOTS atoms; its sides are as long as atoms reach. Numbers of atoms lie in arrays of boxes x SLOTS: place and speed in x, y, z, force
 * in x, y, z, energy. */
enum { SLOTS = 64, PLACE = 0, SPEED = 3, FORCE = 6, ENERGY = 9, ATOM_NUMBERS = 10 };

#define REACH 2.5f /* in units of the potential: where it is taken for zero */
#define STEP 0.002f

typedef struct particles_sum {
  float x, y, z, energy;
} particles_sum;

/* Adds what an atom so far away does (Lennard-Jones: 4 (r^-12 - r^-6)), half of the pair's energy; nothing past REACH, nor of itself. */
PARTICLES particles_sum particles_add(particles_sum sum, float x, float y, float z) {
  float square = fmaf(x, x, fmaf(y, y, z * z));
  if (square > REACH * REACH || square == 0) return sum;
  float inverse = 1.0f / square, cube = (inverse * inverse) * inverse;
  float pull = (24.0f * (cube * inverse)) * fmaf(-2.0f, cube, 1.0f);
  sum.x = fmaf(-pull, x, sum.x), sum.y = fmaf(-pull, y, sum.y), sum.z = fmaf(-pull, z, sum.z);
  sum.energy = fmaf(2.0f * cube, cube, fmaf(-2.0f, cube, sum.energy));
  return sum;
}

/* From one place on a ring of that length to another, the shorter way round. */
PARTICLES float particles_way(float from, float to, float length) {
  float way = from - to;
  if (way > 0.5f * length) way = way - length;
  if (way < -0.5f * length) way = way + length;
  return way;
}

#undef PARTICLES

#endif
