/* SPDX-License-Identifier: Apache-2.0 */
/* Host side of lookup: grids of random energies, materials of some nuclides each. The CPU looks up with the same operations (grid.h); the sums are
 * compared bit for bit. */
#include "gpu.h"
#include "grid.h"
#include "workload.h"

#include <stdio.h>
#include <stdlib.h>

#define THREADS 256

extern const char workload_ptx[];

typedef struct tables {
  unsigned nuclides, per_nuclide, points; /* points: of all nuclides together */
  float *grid, *energies, *amounts;
  unsigned *below, *members;
} tables;

static int by_size(const void *a, const void *b) {
  float x = *(const float *)a, y = *(const float *)b;
  return (x > y) - (x < y);
}

/* Each nuclide's points, rising; the first has energy 0, so that every energy has one that is not above it. */
static void make_grid(tables *t, workload_random *random) {
  float *energy = workload_memory(t->per_nuclide, sizeof *energy);
  for (unsigned n = 0; n < t->nuclides; n++) {
    for (unsigned i = 0; i < t->per_nuclide; i++) energy[i] = i ? workload_random_float(random) : 0;
    qsort(energy, t->per_nuclide, sizeof *energy, by_size);
    for (unsigned i = 0; i < t->per_nuclide; i++) {
      float *point = t->grid + ((size_t)n * t->per_nuclide + i) * POINT_NUMBERS;
      point[0] = t->energies[(size_t)n * t->per_nuclide + i] = energy[i];
      for (unsigned r = 0; r < REACTIONS; r++) point[1 + r] = workload_random_float(random);
    }
  }
  free(energy);
  qsort(t->energies, t->points, sizeof *t->energies, by_size);
}

/* Of each energy of all: the last point of each nuclide that is not above it, but never its very last. */
static void make_below(tables *t) {
  unsigned *at = workload_memory(t->nuclides, sizeof *at);
  for (unsigned i = 0; i < t->points; i++)
    for (unsigned n = 0; n < t->nuclides; n++) {
      const float *points = t->grid + (size_t)n * t->per_nuclide * POINT_NUMBERS;
      while (at[n] + 2 < t->per_nuclide && points[(at[n] + 1) * POINT_NUMBERS] <= t->energies[i]) at[n]++;
      t->below[(size_t)i * t->nuclides + n] = at[n];
    }
  free(at);
}

/* One material, the fuel, has all nuclides; each of the others a random third of them. */
static void make_materials(tables *t, workload_random *random) {
  for (unsigned m = 0; m < MATERIALS; m++) {
    unsigned *member = t->members + (size_t)m * (t->nuclides + 1);
    for (unsigned n = 0; n < t->nuclides; n++)
      if (!m || !workload_random_below(random, 3)) member[1 + member[0]++] = n;
    for (unsigned n = 0; n < t->nuclides; n++) t->amounts[(size_t)m * t->nuclides + n] = workload_random_float(random);
  }
}

static tables make_tables(unsigned nuclides, unsigned per_nuclide) {
  tables t = {.nuclides = nuclides, .per_nuclide = per_nuclide, .points = nuclides * per_nuclide};
  t.grid = workload_memory((size_t)t.points * POINT_NUMBERS, sizeof *t.grid);
  t.energies = workload_memory(t.points, sizeof *t.energies);
  t.below = workload_memory((size_t)t.points * nuclides, sizeof *t.below);
  t.members = workload_memory((size_t)MATERIALS * (nuclides + 1), sizeof *t.members);
  t.amounts = workload_memory((size_t)MATERIALS * nuclides, sizeof *t.amounts);
  workload_random random = {41};
  make_grid(&t, &random);
  make_below(&t);
  make_materials(&t, &random);
  return t;
}

static void look_up_on_cpu(const tables *t, float *sums, unsigned lookups) {
  for (unsigned index = 0; index < lookups; index++) {
    lookup_query query = lookup_query_of(index);
    unsigned low = 0, high = t->points;
    while (high - low > 1) {
      unsigned middle = (low + high) / 2;
      if (t->energies[middle] <= query.energy)
        low = middle;
      else
        high = middle;
    }
    float sum[REACTIONS] = {0};
    const unsigned *member = t->members + (size_t)query.material * (t->nuclides + 1);
    for (unsigned i = 0; i < member[0]; i++) {
      unsigned nuclide = member[1 + i], first = t->below[(size_t)low * t->nuclides + nuclide];
      const float *point = t->grid + ((size_t)nuclide * t->per_nuclide + first) * POINT_NUMBERS, *next = point + POINT_NUMBERS;
      float share = lookup_share(query.energy, point[0], next[0]), amount = t->amounts[(size_t)query.material * t->nuclides + i];
      for (unsigned r = 0; r < REACTIONS; r++) sum[r] = lookup_add(sum[r], amount, point[1 + r], next[1 + r], share);
    }
    for (unsigned r = 0; r < REACTIONS; r++) sums[(size_t)r * lookups + index] = sum[r];
  }
}

static void look_up_on_gpu(const tables *t, float *sums, unsigned lookups) {
  unsigned points = t->points, nuclides = t->nuclides, per_nuclide = t->per_nuclide;
  size_t bytes = (size_t)REACTIONS * lookups * sizeof *sums;
  gpu_open(workload_ptx);
  gpu_kernel kernel = gpu_find_kernel("lookup_all");
  gpu_pointer energies = gpu_upload(t->energies, points * sizeof *t->energies),
              below = gpu_upload(t->below, (size_t)points * nuclides * sizeof *t->below),
              grid = gpu_upload(t->grid, (size_t)points * POINT_NUMBERS * sizeof *t->grid),
              members = gpu_upload(t->members, (size_t)MATERIALS * (nuclides + 1) * sizeof *t->members),
              amounts = gpu_upload(t->amounts, (size_t)MATERIALS * nuclides * sizeof *t->amounts), device_sums = gpu_allocate(bytes);
  gpu_shape shape = {gpu_divide_up(lookups, THREADS), 1, THREADS, 1};
  GPU_LAUNCH(kernel, shape, energies, points, below, grid, nuclides, per_nuclide, members, amounts, device_sums, lookups);
  gpu_copy_to_host(sums, device_sums, bytes);
  gpu_free(energies), gpu_free(below), gpu_free(grid), gpu_free(members), gpu_free(amounts), gpu_free(device_sums);
  gpu_close();
}

int main(int argc, char **argv) {
  workload_argument arguments[] = {{"nuclides", 16, 1, 512}, {"points", 2048, 2, 16384}, {"lookups", 65536, 1, 1 << 24}};
  workload_arguments(argc, argv, "lookup", "looks up cross sections of neutrons: so many points of each nuclide", arguments, 3);
  unsigned lookups = (unsigned)arguments[2].value;
  size_t results = (size_t)REACTIONS * lookups;
  tables t = make_tables((unsigned)arguments[0].value, (unsigned)arguments[1].value);
  float *expected = workload_memory(results, sizeof *expected), *got = workload_memory(results, sizeof *got);
  workload_cpu_begins();
  look_up_on_cpu(&t, expected, lookups);
  workload_cpu_ends();
  look_up_on_gpu(&t, got, lookups);
  double sum = 0;
  for (size_t i = 0; i < results; i++) sum += got[i];
  printf("lookup: %u lookups in %u energies, mean cross section %.6f\n", lookups, t.points, sum / (double)results);
  size_t wrong = workload_floats_differ(got, expected, results);
  free(t.grid), free(t.energies), free(t.below), free(t.members), free(t.amounts), free(expected), free(got);
  return workload_verdict_exact("lookup", results, wrong);
}
