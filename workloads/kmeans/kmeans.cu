/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of k-means clustering. kmeans_assign gives every point the cluster of the nearest centre and adds the
 * point to that cluster's sums by atomics; kmeans_centres divides. kmeans_label only finds the clusters: the host adds up.
 * Coordinates are whole numbers and sums are integers, so the result does not depend on the order of the atomics. Points
 * are stored by feature: a warp's loads are side by side. */
#include "device.h"

static __device__ __forceinline__ unsigned nearest(const float *points, unsigned count, unsigned features, const float *centres, unsigned clusters, unsigned i) {
  unsigned best = 0;
  float best_distance = 3.4e38f;
  for (unsigned cluster = 0; cluster < clusters; cluster++) {
    float distance = 0;
    for (unsigned f = 0; f < features; f++) {
      float difference = points[f * count + i] - centres[cluster * features + f];
      distance = fmaf(difference, difference, distance);
    }
    if (distance < best_distance) {
      best_distance = distance;
      best = cluster;
    }
  }
  return best;
}

extern "C" __global__ void kmeans_assign(const float *points, unsigned count, unsigned features, const float *centres,
                                         unsigned clusters, int *label, unsigned long long *sums, unsigned *sizes) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  unsigned best = nearest(points, count, features, centres, clusters, i);
  label[i] = (int)best;
  for (unsigned f = 0; f < features; f++)
    atomicAdd(&sums[best * features + f], (unsigned long long)points[f * count + i]);
  atomicAdd(&sizes[best], 1u);
}

extern "C" __global__ void kmeans_label(const float *points, unsigned count, unsigned features, const float *centres, unsigned clusters, int *label) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) label[i] = (int)nearest(points, count, features, centres, clusters, i);
}

/* One thread per centre coordinate. A cluster without points keeps its centre. Clears the sums for the next round. */
extern "C" __global__ void kmeans_centres(float *centres, unsigned features, unsigned clusters,
                                          unsigned long long *sums, const unsigned *sizes) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= clusters * features) return;
  unsigned size = sizes[i / features];
  if (size) centres[i] = (float)sums[i] / (float)size;
  sums[i] = 0;
}
