/* SPDX-License-Identifier: Apache-2.0 */
/* Cross sections of neutrons in a reactor: a thread looks up one energy in one material. It finds the energy by halves in the grid of all nuclides'
 * energies together, reads there which point each nuclide has below it, and adds what lies between that point and the next for the nuclides of the
 * material. Nothing foresees where: the rows of `below`, one per energy, are as wide as there are nuclides and most of all the data. */
#include "device.h"

#include "grid.h"

/* energies: points, rising; below: points x nuclides; grid: nuclides x per_nuclide x POINT_NUMBERS; members: MATERIALS rows of how many nuclides a
 * material has, and which; amounts: MATERIALS x nuclides, in the order of members; sums: REACTIONS arrays of `lookups`. */
extern "C" __global__ void lookup_all(const float *energies, unsigned points, const unsigned *below, const float *grid, unsigned nuclides,
                                      unsigned per_nuclide, const unsigned *members, const float *amounts, float *sums, unsigned lookups) {
  unsigned index = blockIdx.x * blockDim.x + threadIdx.x;
  if (index >= lookups) return;
  lookup_query query = lookup_query_of(index);
  unsigned low = 0, high = points; /* the last energy that is not above: in [low, high) */
  while (high - low > 1) {
    unsigned middle = (low + high) / 2;
    if (energies[middle] <= query.energy)
      low = middle;
    else
      high = middle;
  }
  float sum[REACTIONS] = {};
  const unsigned *member = members + query.material * (nuclides + 1); /* how many, and which */
  const float *amount = amounts + query.material * nuclides;
  for (unsigned i = 0; i < member[0]; i++) {
    unsigned nuclide = member[1 + i], first = below[low * nuclides + nuclide];
    const float *point = grid + (nuclide * per_nuclide + first) * POINT_NUMBERS, *next = point + POINT_NUMBERS;
    float share = lookup_share(query.energy, point[0], next[0]);
#pragma unroll
    for (unsigned r = 0; r < REACTIONS; r++) sum[r] = lookup_add(sum[r], amount[i], point[1 + r], next[1 + r], share);
  }
#pragma unroll
  for (unsigned r = 0; r < REACTIONS; r++) sums[r * lookups + index] = sum[r];
}
