/* SPDX-License-Identifier: Apache-2.0 */
/* Thread block clusters: how large those of a launch are, and how many fit (CUDA Runtime API, "Execution Control",
 * cudaLaunchAttributeClusterDimension; CUDA Programming Guide, "Thread Block Clusters").
 *
 * The kernel says it (__cluster_dims__), or an attribute of the function, or the launch. */
#include <string.h>

#include "driver/engine/engine_internal.h"

#define PORTABLE_BLOCKS 8u /* a cluster of more needs cudaFuncAttributeNonPortableClusterSizeAllowed */
#define MOST_BLOCKS 16u

static bool has_clusters(void) { return ff_engine.machine->compute_major >= 9; }

cudaError_t engine_function_set_cluster(engine_function *function, unsigned axis, int blocks) {
  engine_function_info info;
  cudaError_t error = engine_function_change(function, &info);
  if (error) return error;
  if (axis > 2 || blocks < 0 || info.kernel.cluster[0]) error = cudaErrorInvalidValue;
  else if (blocks > 1 && !has_clusters()) error = cudaErrorNotSupported;
  else function->cluster[axis] = (uint32_t)blocks;
  engine_leave();
  return error;
}

cudaError_t engine_function_set_non_portable(engine_function *function, int allowed) {
  engine_function_info info;
  if (allowed < 0 || allowed > 1) return cudaErrorInvalidValue;
  cudaError_t error = engine_function_change(function, &info);
  if (error) return error;
  function->non_portable = allowed != 0;
  engine_leave();
  return cudaSuccess;
}

cudaError_t engine_cluster_find(const engine_launch *launch, const engine_function_info *info, uint32_t shape[3]) {
  uint64_t blocks = 1;
  for (int axis = 0; axis < 3; axis++) {
    uint32_t compiled = info->kernel.cluster[axis];
    shape[axis] = launch->cluster[axis] ? launch->cluster[axis] : info->cluster[axis];
    if (compiled && shape[axis] != compiled) return cudaErrorInvalidClusterSize;
    if (shape[axis] > MOST_BLOCKS) return cudaErrorInvalidClusterSize;
    if (!shape[axis]) continue;
    blocks *= shape[axis];
    if (launch->grid[axis] % shape[axis]) return cudaErrorInvalidClusterSize;
  }
  if (blocks > MOST_BLOCKS || (blocks > PORTABLE_BLOCKS && !info->non_portable)) return cudaErrorInvalidClusterSize;
  return blocks > 1 && !has_clusters() ? cudaErrorNotSupported : cudaSuccess;
}

/* The kernel's own limit of threads is not looked at: CUTLASS's CuTe DSL asks for clusters of blocks of 128 by a kernel
 * that is compiled for blocks of one, and launches as many as it is told. */
static cudaError_t blocks_of(const engine_launch *launch, engine_function_info *info, uint32_t *fitting) {
  engine_occupancy occupancy;
  cudaError_t error = engine_function_describe(launch->function, info);
  if (error) return error;
  uint64_t threads = 1; /* up to above DEVICE_THREADS */
  for (int axis = 0; axis < 3; axis++) {
    if (!launch->block[axis]) return cudaErrorInvalidConfiguration;
    if (threads <= DEVICE_THREADS) threads *= launch->block[axis];
  }
  if (!has_clusters()) return cudaErrorNotSupported;
  *fitting = 0;
  if (threads > DEVICE_THREADS) return cudaSuccess;
  engine_function_info any = *info;
  any.max_threads = DEVICE_THREADS;
  engine_occupancy_of(&any, (uint32_t)threads, launch->dynamic_shared, &occupancy);
  *fitting = occupancy.blocks * (uint32_t)ff_engine.machine->sm_count;
  return cudaSuccess;
}

/* More blocks than a cluster can have on any device. Asking whether such a cluster fits is no error, as launching it
 * is: none does. cuTENSOR asks for 32 blocks first, and gives up where it gets an error. */
static bool is_beyond_all(const engine_launch *launch) {
  uint64_t blocks = 1;
  for (int axis = 0; axis < 3 && blocks <= MOST_BLOCKS; axis++)
    blocks *= launch->cluster[axis] ? launch->cluster[axis] : 1;
  return blocks > MOST_BLOCKS;
}

cudaError_t engine_occupancy_clusters(const engine_launch *launch, int *clusters) {
  engine_function_info info;
  uint32_t fitting = 0, shape[3], blocks = 1;
  cudaError_t error = blocks_of(launch, &info, &fitting);
  if (!error && !info.kernel.cluster[0] && is_beyond_all(launch)) {
    *clusters = 0;
    return cudaSuccess;
  }
  if (!error) error = engine_cluster_find(launch, &info, shape);
  if (error) return error;
  for (int axis = 0; axis < 3; axis++) blocks *= shape[axis] ? shape[axis] : 1;
  *clusters = (int)(fitting / blocks);
  return cudaSuccess;
}

cudaError_t engine_occupancy_cluster_size(const engine_launch *launch, int *blocks) {
  engine_function_info info;
  uint32_t fitting = 0;
  cudaError_t error = blocks_of(launch, &info, &fitting);
  if (error) return error;
  uint32_t most = info.non_portable ? MOST_BLOCKS : PORTABLE_BLOCKS;
  while (most > 1 && most > fitting) most /= 2;
  *blocks = fitting ? (int)most : 0;
  return cudaSuccess;
}
