/* SPDX-License-Identifier: Apache-2.0 */
/* What host and kernel of lookup share: which energy and material a lookup has, and the interpolation between two points, in operations of one rounding
 * each. In a kernel file, include device.h first. */
#ifndef WORKLOADS_LOOKUP_GRID_H
#define WORKLOADS_LOOKUP_GRID_H

#ifdef __cplusplus
#define LOOKUP static __device__ __forceinline__
#else
#include <math.h>
#define LOOKUP static inline
#endif

enum { REACTIONS = 5, POINT_NUMBERS = REACTIONS + 1, MATERIALS = 12 }; /* a point: its energy, and what each reaction has there */

/* The 64-bit linear congruential generator of Knuth's MMIX; its upper half. */
LOOKUP unsigned lookup_random(unsigned long long *state) {
  *state = *state * 6364136223846793005ull + 1442695040888963407ull;
  return (unsigned)(*state >> 32);
}

typedef struct lookup_query {
  float energy; /* [0, 1) */
  unsigned material;
} lookup_query;

LOOKUP lookup_query lookup_query_of(unsigned index) {
  unsigned long long state = index * 2654435761ull + 17;
  lookup_random(&state);
  lookup_query query;
  query.energy = (float)(lookup_random(&state) >> 8) * 0x1p-24f;
  query.material = lookup_random(&state) % MATERIALS;
  return query;
}

/* How far an energy is from the higher of two points to the lower, as a share. */
LOOKUP float lookup_share(float energy, float low, float high) { return high > low ? (high - energy) / (high - low) : 0.0f; }

/* What that much of a nuclide adds. */
LOOKUP float lookup_add(float sum, float amount, float low, float high, float share) { return fmaf(amount, fmaf(-share, high - low, high), sum); }

#undef LOOKUP

#endif
