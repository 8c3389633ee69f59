/* SPDX-License-Identifier: Apache-2.0 */
/* Host side of kmeans: points around random middles, a fixed number of rounds. The CPU does the same arithmetic in the
 * same order (fused multiply-adds, one rounding per division), so labels and centres are compared bit for bit. */
#include "gpu.h"
#include "workload.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const char workload_ptx[];

typedef struct problem {
  unsigned count, features, clusters, rounds;
  float *points;  /* points[feature * count + point]: whole numbers, 0 to 4095 */
  float *centres; /* centres[cluster * features + feature] */
  int *labels;
} problem;

static problem random_problem(const workload_argument *arguments) {
  problem p = {(unsigned)arguments[0].value,
               (unsigned)arguments[1].value,
               (unsigned)arguments[2].value,
               (unsigned)arguments[3].value,
               0,
               0,
               0};
  workload_random random = {8};
  p.points = workload_memory((size_t)p.count * p.features, sizeof *p.points);
  p.centres = workload_memory((size_t)p.clusters * p.features, sizeof *p.centres);
  p.labels = workload_memory(p.count, sizeof *p.labels);
  unsigned *middles = workload_memory((size_t)p.clusters * p.features, sizeof *middles);
  for (unsigned i = 0; i < p.clusters * p.features; i++) middles[i] = workload_random_below(&random, 3072);
  for (unsigned i = 0; i < p.count; i++) {
    unsigned cluster = workload_random_below(&random, p.clusters);
    for (unsigned f = 0; f < p.features; f++)
      p.points[(size_t)f * p.count + i] =
          (float)(middles[cluster * p.features + f] + workload_random_below(&random, 1024));
  }
  for (unsigned c = 0; c < p.clusters; c++) /* the first points are the first centres */
    for (unsigned f = 0; f < p.features; f++)
      p.centres[c * p.features + f] = p.points[(size_t)f * p.count + c % p.count];
  free(middles);
  return p;
}

static unsigned nearest_centre(const problem *p, const float *centres, unsigned point) {
  unsigned best = 0;
  float best_distance = 3.4e38f;
  for (unsigned c = 0; c < p->clusters; c++) {
    float distance = 0;
    for (unsigned f = 0; f < p->features; f++) {
      float difference = p->points[(size_t)f * p->count + point] - centres[c * p->features + f];
      distance = fmaf(difference, difference, distance);
    }
    if (distance < best_distance) best_distance = distance, best = c;
  }
  return best;
}

/* The middles of labelled points. */
static void find_centres(const problem *p, float *centres, const int *labels, uint64_t *sums, unsigned *sizes) {
  memset(sums, 0, (size_t)p->clusters * p->features * sizeof *sums);
  memset(sizes, 0, p->clusters * sizeof *sizes);
  for (unsigned i = 0; i < p->count; i++) {
    unsigned best = (unsigned)labels[i];
    sizes[best]++;
    for (unsigned f = 0; f < p->features; f++)
      sums[best * p->features + f] += (uint64_t)p->points[(size_t)f * p->count + i];
  }
  for (unsigned i = 0; i < p->clusters * p->features; i++)
    if (sizes[i / p->features]) centres[i] = (float)sums[i] / (float)sizes[i / p->features];
}

static void cluster_on_cpu(const problem *p, float *centres, int *labels) {
  uint64_t *sums = workload_memory((size_t)p->clusters * p->features, sizeof *sums);
  unsigned *sizes = workload_memory(p->clusters, sizeof *sizes);
  for (unsigned round = 0; round < p->rounds; round++) {
    for (unsigned i = 0; i < p->count; i++) labels[i] = (int)nearest_centre(p, centres, i);
    find_centres(p, centres, labels, sums, sizes);
  }
  free(sums), free(sizes);
}

/* The GPU labels, the host adds up. */
static void cluster_by_both(problem *p) {
  size_t coordinates = (size_t)p->clusters * p->features;
  uint64_t *sums = workload_memory(coordinates, sizeof *sums);
  unsigned *sizes = workload_memory(p->clusters, sizeof *sizes);
  gpu_open(workload_ptx);
  gpu_pointer points = gpu_upload(p->points, (size_t)p->count * p->features * sizeof *p->points), labels = gpu_allocate(p->count * sizeof *p->labels);
  gpu_pointer centres = gpu_allocate(coordinates * sizeof *p->centres);
  gpu_shape by_point = {gpu_divide_up(p->count, 256), 1, 256, 1};
  for (unsigned round = 0; round < p->rounds; round++) {
    gpu_copy_to_device(centres, p->centres, coordinates * sizeof *p->centres);
    GPU_LAUNCH(gpu_find_kernel("kmeans_label"), by_point, points, p->count, p->features, centres, p->clusters, labels);
    gpu_copy_to_host(p->labels, labels, p->count * sizeof *p->labels);
    find_centres(p, p->centres, p->labels, sums, sizes);
  }
  gpu_free(points), gpu_free(labels), gpu_free(centres);
  gpu_close();
  free(sums), free(sizes);
}

static void cluster_on_gpu(problem *p) {
  size_t coordinates = (size_t)p->clusters * p->features;
  gpu_open(workload_ptx);
  gpu_kernel assign = gpu_find_kernel("kmeans_assign"), update = gpu_find_kernel("kmeans_centres");
  gpu_pointer points = gpu_upload(p->points, (size_t)p->count * p->features * sizeof *p->points);
  gpu_pointer centres = gpu_upload(p->centres, coordinates * sizeof *p->centres);
  gpu_pointer labels = gpu_allocate(p->count * sizeof *p->labels);
  gpu_pointer sums = gpu_allocate(coordinates * sizeof(uint64_t)), sizes = gpu_allocate(p->clusters * sizeof(unsigned));
  gpu_shape by_point = {gpu_divide_up(p->count, 256), 1, 256, 1},
            by_coordinate = {gpu_divide_up(coordinates, 64), 1, 64, 1};
  gpu_set_words(sums, 0, 2 * coordinates);
  for (unsigned round = 0; round < p->rounds; round++) {
    gpu_set_words(sizes, 0, p->clusters);
    GPU_LAUNCH(assign, by_point, points, p->count, p->features, centres, p->clusters, labels, sums, sizes);
    GPU_LAUNCH(update, by_coordinate, centres, p->features, p->clusters, sums, sizes);
  }
  gpu_copy_to_host(p->labels, labels, p->count * sizeof *p->labels);
  gpu_copy_to_host(p->centres, centres, coordinates * sizeof *p->centres);
  gpu_free(points), gpu_free(centres), gpu_free(labels), gpu_free(sums), gpu_free(sizes);
  gpu_close();
}

int main(int argc, char **argv) {
  workload_argument arguments[] = {
      {"points", 16384, 1, 1 << 24}, {"features", 8, 1, 64}, {"clusters", 8, 1, 256}, {"rounds", 4, 1, 1000}, {"host-sums", 0, 0, 1}};
  workload_arguments(argc, argv, "kmeans", "k-means clustering", arguments, 5);
  problem p = random_problem(arguments);
  size_t coordinates = (size_t)p.clusters * p.features;
  float *expected_centres = workload_memory(coordinates, sizeof *expected_centres);
  int *expected_labels = workload_memory(p.count, sizeof *expected_labels);
  memcpy(expected_centres, p.centres, coordinates * sizeof *expected_centres);
  workload_cpu_begins();
  cluster_on_cpu(&p, expected_centres, expected_labels);
  workload_cpu_ends();
  if (arguments[4].value) cluster_by_both(&p);
  else cluster_on_gpu(&p);

  size_t wrong = 0;
  for (unsigned i = 0; i < p.count; i++) wrong += p.labels[i] != expected_labels[i];
  for (size_t i = 0; i < coordinates; i++) wrong += p.centres[i] != expected_centres[i];
  free(p.points), free(p.centres), free(p.labels), free(expected_centres), free(expected_labels);
  return workload_verdict_exact("kmeans", p.count + coordinates, wrong);
}
