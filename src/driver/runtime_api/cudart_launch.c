/* SPDX-License-Identifier: Apache-2.0 */
/* Launches, function attributes and occupancy (CUDA Runtime API, "Execution Control" and "Occupancy").
 *
 * A function is named by its host stub's address or by a kernel handle (__cudaGetKernel); cudart_function_find has the
 * errors of anything else. The checks of a launch's shape are the engine's. */
#include <stdlib.h>
#include <string.h>

#include "driver/runtime_api/cudart.h"

static cudaError_t launch_request(const void *named, engine_launch *request) {
  cudaError_t error = engine_start();
  if (!error) error = cudart_function_find(named, &request->function);
  return error ? error : engine_launch_run(request);
}

static cudaError_t launch(const void *named, dim3 grid, dim3 block, void **arguments, size_t shared,
                          cudaStream_t stream, bool cooperative) {
  return launch_request(named, &(engine_launch){.grid = {grid.x, grid.y, grid.z},
                                                .block = {block.x, block.y, block.z},
                                                .dynamic_shared = shared,
                                                .stream = stream,
                                                .arguments = arguments,
                                                .cooperative = cooperative});
}

CUDART_PAIR(cudaLaunchKernel, _ptsz,
            (const void *function, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t stream),
            launch(function, grid, block, arguments, shared, engine_stream_handle(stream, own), false))

CUDART_PAIR(__cudaLaunchKernel, _ptsz,
            (cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t stream),
            launch(kernel, grid, block, arguments, shared, engine_stream_handle(stream, own), false))

CUDART_PAIR(cudaLaunchCooperativeKernel, _ptsz,
            (const void *function, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t stream),
            launch(function, grid, block, arguments, shared, engine_stream_handle(stream, own), true))

#if CUDART_MAJOR < 13
typedef struct cudaLaunchParams {
  const void *function;
  dim3 grid, block;
  void **arguments;
  size_t shared;
  cudaStream_t stream;
} cudaLaunchParams;

static cudaError_t launch_on_devices(const cudaLaunchParams *list, unsigned count, unsigned flags) {
  engine_launch launches[ENGINE_DEVICES_MAX] = {0};
  cudaError_t error = engine_start();
  if (!error && (!list || !count || count > ENGINE_DEVICES_MAX)) error = cudaErrorInvalidValue;
  for (unsigned i = 0; !error && i < count; i++) {
    const cudaLaunchParams *from = &list[i];
    launches[i] = (engine_launch){.grid = {from->grid.x, from->grid.y, from->grid.z},
                                  .block = {from->block.x, from->block.y, from->block.z},
                                  .dynamic_shared = from->shared,
                                  .stream = from->stream,
                                  .arguments = from->arguments};
    error = cudart_function_find(from->function, &launches[i].function);
  }
  return error ? error : engine_grids_run(launches, count, flags);
}

CUDART_API cudaError_t cudaLaunchCooperativeKernelMultiDevice(const cudaLaunchParams *list, unsigned count,
                                                              unsigned flags);
CUDART_API cudaError_t cudaLaunchCooperativeKernelMultiDevice(const cudaLaunchParams *list, unsigned count,
                                                              unsigned flags) {
  return engine_return(launch_on_devices(list, count, flags));
}
#endif

static cudaError_t read_config(const cudaLaunchConfig_t *config, engine_launch *request) {
  if (config->numAttrs && !config->attrs) return cudaErrorInvalidValue;
  *request = (engine_launch){.grid = {config->gridDim.x, config->gridDim.y, config->gridDim.z},
                             .block = {config->blockDim.x, config->blockDim.y, config->blockDim.z},
                             .dynamic_shared = config->dynamicSmemBytes};
  for (unsigned i = 0; i < config->numAttrs; i++) {
    const cudaLaunchAttribute *attribute = &config->attrs[i];
    cudaError_t error = engine_launch_attribute(request, (int)attribute->id, &attribute->val);
    if (error) return error;
  }
  return cudaSuccess;
}

static cudaError_t launch_config(const cudaLaunchConfig_t *config, const void *function, void **arguments, bool own) {
  engine_launch request;
  if (!config) return cudaErrorInvalidConfiguration;
  cudaError_t error = read_config(config, &request);
  if (error) return error;
  request.arguments = arguments;
  request.stream = engine_stream_handle(config->stream, own);
  return launch_request(function, &request);
}
CUDART_PAIR(cudaLaunchKernelExC, _ptsz, (const cudaLaunchConfig_t *config, const void *function, void **arguments),
            launch_config(config, function, arguments, own))

CUDART_PAIR(cudaLaunchHostFunc, _ptsz, (cudaStream_t stream, cudaHostFn_t function, void *data),
            engine_stream_host(engine_stream_handle(stream, own), function, data))
#if CUDART_MAJOR >= 13
/* sync_mode: how the driver's thread waits for its turn, blocked (0) or spinning (1); it has none here. */
CUDART_DECLARE(cudaLaunchHostFunc_v2, _ptsz,
               (cudaStream_t stream, cudaHostFn_t function, void *data, unsigned sync_mode))
CUDART_PAIR(cudaLaunchHostFunc_v2, _ptsz, (cudaStream_t stream, cudaHostFn_t function, void *data, unsigned sync_mode),
            sync_mode > 1 ? cudaErrorInvalidValue
                          : engine_stream_host(engine_stream_handle(stream, own), function, data))
#endif

/* ---- attributes ---- */

static cudaError_t describe(const void *named, engine_function_info *info) {
  engine_function *function;
  cudaError_t error = engine_start();
  if (!error) error = cudart_function_find(named, &function);
  return error ? error : engine_function_describe(function, info);
}

static cudaError_t get_attributes(cudaFuncAttributes *out, const void *function) {
  engine_function_info info;
  if (!out) return cudaErrorInvalidValue;
  cudaError_t error = describe(function, &info);
  if (error) return error;
  const machine_spec *machine = engine_machine();
  memset(out, 0, sizeof *out);
  out->sharedSizeBytes = info.kernel.static_shared;
  out->constSizeBytes = info.kernel.const_bytes;
  out->localSizeBytes = info.kernel.local_bytes;
  out->maxThreadsPerBlock = (int)info.max_threads;
  out->numRegs = (int)info.kernel.registers;
  out->ptxVersion = (int)info.kernel.target;
  out->binaryVersion = (int)(machine->compute_major * 10 + machine->compute_minor);
  out->maxDynamicSharedSizeBytes = (int)info.max_dynamic_shared;
  out->preferredShmemCarveout = info.carveout;
#if CUDART_MAJOR >= 12
  out->requiredClusterWidth = (int)info.cluster[0];
  out->requiredClusterHeight = (int)info.cluster[1];
  out->requiredClusterDepth = (int)info.cluster[2];
  out->nonPortableClusterSizeAllowed = info.non_portable;
#endif
  return cudaSuccess;
}

CUDART_API cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, const void *function) {
  return engine_return(get_attributes(attributes, function));
}

static cudaError_t set_attribute(const void *named, cudaFuncAttribute attribute, int value) {
  engine_function *function;
  cudaError_t error = engine_start();
  if (!error) error = cudart_function_find(named, &function);
  if (error) return error;
  switch (attribute) {
  case cudaFuncAttributeMaxDynamicSharedMemorySize: return engine_function_set_dynamic_shared(function, value);
  case cudaFuncAttributePreferredSharedMemoryCarveout: return engine_function_set_carveout(function, value);
  case cudaFuncAttributeClusterDimMustBeSet: return cudaErrorInvalidValue; /* it is the code's */
  case cudaFuncAttributeClusterSchedulingPolicyPreference: return cudaSuccess;
  case cudaFuncAttributeNonPortableClusterSizeAllowed: return engine_function_set_non_portable(function, value);
  case cudaFuncAttributeRequiredClusterWidth:
  case cudaFuncAttributeRequiredClusterHeight:
  case cudaFuncAttributeRequiredClusterDepth:
    return engine_function_set_cluster(function, attribute - cudaFuncAttributeRequiredClusterWidth, value);
  }
  return cudaErrorInvalidValue;
}

CUDART_API cudaError_t cudaFuncSetAttribute(const void *function, cudaFuncAttribute attribute, int value) {
  return engine_return(set_attribute(function, attribute, value));
}

#if CUDART_MAJOR >= 12
/* A kernel's attributes are the same on every device here. */
cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t kernel, cudaFuncAttribute attribute, int value, int device);
CUDART_API cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t kernel, cudaFuncAttribute attribute, int value,
                                                       int device) {
  cudaError_t error = engine_start();
  if (!error && !cudart_is_device(device)) error = cudaErrorInvalidDevice;
  return engine_return(error ? error : set_attribute((const void *)kernel, attribute, value));
}
#endif

static cudaError_t set_cache(const void *named, cudaFuncCache config) {
  engine_function *function;
  cudaError_t error = engine_start();
  if (!error) error = cudart_function_find(named, &function);
  if (CUDART_MAJOR == 12 && error == cudaErrorInvalidResourceHandle) error = cudaErrorInvalidDeviceFunction;
  return error ? error : engine_function_set_cache(function, config);
}

CUDART_API cudaError_t cudaFuncSetCacheConfig(const void *function, cudaFuncCache config) {
  return engine_return(set_cache(function, config));
}

CUDART_API cudaError_t cudaFuncSetSharedMemConfig(const void *function, cudaSharedMemConfig config) {
  engine_function_info info;
  if ((unsigned)config > cudaSharedMemBankSizeEightByte) return engine_return(cudaErrorInvalidValue);
  return engine_return(describe(function, &info));
}

CUDART_API cudaError_t cudaFuncGetName(const char **name, const void *function) {
  engine_function *found;
  cudaError_t error = name ? cudart_function_find(function, &found) : cudaErrorInvalidValue;
  if (error) return engine_return(error);
  *name = engine_function_name(found);
  return cudaSuccess;
}

static cudaError_t param_info(const void *function, size_t index, size_t *offset, size_t *size) {
  engine_function_info info;
  if (!offset) return cudaErrorInvalidValue;
  cudaError_t error = describe(function, &info);
  if (error) return error;
  if (index >= info.kernel.param_count) return cudaErrorInvalidValue;
  *offset = info.kernel.params[index].offset;
  if (size) *size = info.kernel.params[index].size;
  return cudaSuccess;
}

CUDART_API cudaError_t cudaFuncGetParamInfo(const void *function, size_t index, size_t *offset, size_t *size) {
  return engine_return(param_info(function, index, offset, size));
}

#if CUDART_MAJOR >= 13
static cudaError_t param_count(const void *function, size_t *count) {
  engine_function_info info;
  if (!count) return cudaErrorInvalidValue;
  cudaError_t error = describe(function, &info);
  if (!error) *count = info.kernel.param_count;
  return error;
}

cudaError_t cudaFuncGetParamCount(const void *function, size_t *count);
CUDART_API cudaError_t cudaFuncGetParamCount(const void *function, size_t *count) {
  return engine_return(param_count(function, count));
}
#endif

/* ---- occupancy ---- */

static cudaError_t active_blocks(int *blocks, const void *named, int threads, size_t shared, unsigned flags) {
  if (!blocks || threads <= 0 || flags > cudaOccupancyDisableCachingOverride) return cudaErrorInvalidValue;
  engine_function *function;
  engine_occupancy occupancy;
  cudaError_t error = engine_start();
  if (!error) error = cudart_function_find(named, &function);
  if (!error) error = engine_occupancy_find(function, (uint32_t)threads, shared, &occupancy);
  if (!error) *blocks = (int)occupancy.blocks;
  return error;
}

CUDART_API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *function,
                                                                              int threads, size_t shared,
                                                                              unsigned flags) {
  return engine_return(active_blocks(blocks, function, threads, shared, flags));
}

CUDART_API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *function, int threads,
                                                                     size_t shared) {
  return engine_return(active_blocks(blocks, function, threads, shared, cudaOccupancyDefault));
}

static cudaError_t clusters_of(int *out, const void *named, const cudaLaunchConfig_t *config,
                               cudaError_t (*find)(const engine_launch *launch, int *out)) {
  engine_launch request;
  if (!out || !config) return cudaErrorInvalidValue;
  cudaError_t error = engine_start();
  if (!error) error = read_config(config, &request);
  if (!error) error = cudart_function_find(named, &request.function);
  return error ? error : find(&request, out);
}

CUDART_API cudaError_t cudaOccupancyMaxActiveClusters(int *clusters, const void *function,
                                                      const cudaLaunchConfig_t *config) {
  return engine_return(clusters_of(clusters, function, config, engine_occupancy_clusters));
}

CUDART_API cudaError_t cudaOccupancyMaxPotentialClusterSize(int *blocks, const void *function,
                                                            const cudaLaunchConfig_t *config) {
  return engine_return(clusters_of(blocks, function, config, engine_occupancy_cluster_size));
}

static cudaError_t available_shared(size_t *bytes, const void *named, int blocks, int threads) {
  if (!bytes || blocks <= 0 || threads <= 0) return cudaErrorInvalidValue;
  engine_function *function;
  uint64_t most = 0;
  cudaError_t error = engine_start();
  if (!error) error = cudart_function_find(named, &function);
  if (!error) error = engine_occupancy_shared(function, (uint32_t)blocks, (uint32_t)threads, &most);
  if (!error) *bytes = most;
  return error;
}

CUDART_API cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, const void *function, int blocks,
                                                                 int threads) {
  return engine_return(available_shared(bytes, function, blocks, threads));
}
