/* SPDX-License-Identifier: Apache-2.0 */
/* Functions, launches and occupancy (Driver API: "Execution Control", "Occupancy"). */
#include "driver/driver_api/libcuda.h"
#include "driver/private_runtimes/private_runtimes.h"

#include <string.h>

/* ---- functions ---- */

enum { /* CUfunction_attribute */
       FUNCTION_MAX_THREADS,
       FUNCTION_SHARED,
       FUNCTION_CONST,
       FUNCTION_LOCAL,
       FUNCTION_REGISTERS,
       FUNCTION_PTX_VERSION,
       FUNCTION_BINARY_VERSION,
       FUNCTION_CACHE_CA,
       FUNCTION_MAX_DYNAMIC_SHARED,
       FUNCTION_CARVEOUT,
       FUNCTION_CLUSTER_MUST_BE_SET,
       FUNCTION_CLUSTER_WIDTH,
       FUNCTION_CLUSTER_HEIGHT,
       FUNCTION_CLUSTER_DEPTH,
       FUNCTION_NON_PORTABLE_CLUSTER,
       FUNCTION_CLUSTER_POLICY,
};

static CUresult function_attribute(int *value, int attribute, CUfunction function) {
  engine_function_info info;
  if (!value) return CUDA_ERROR_INVALID_VALUE;
  if (!engine_function_valid(function)) return CUDA_ERROR_INVALID_HANDLE;
  LIBCUDA_TRY(libcuda_result(engine_function_describe(function, &info)));
  switch (attribute) {
  case FUNCTION_MAX_THREADS: *value = (int)info.max_threads; return CUDA_SUCCESS;
  case FUNCTION_SHARED: *value = (int)info.kernel.static_shared; return CUDA_SUCCESS;
  case FUNCTION_CONST: *value = (int)info.kernel.const_bytes; return CUDA_SUCCESS;
  case FUNCTION_LOCAL: *value = (int)info.kernel.local_bytes; return CUDA_SUCCESS;
  case FUNCTION_REGISTERS: *value = (int)info.kernel.registers; return CUDA_SUCCESS;
  case FUNCTION_PTX_VERSION: *value = (int)info.kernel.target; return CUDA_SUCCESS;
  case FUNCTION_BINARY_VERSION: /* PTX is compiled for the device */
    *value = (int)(engine_machine()->compute_major * 10 + engine_machine()->compute_minor);
    return CUDA_SUCCESS;
  case FUNCTION_MAX_DYNAMIC_SHARED: *value = (int)info.max_dynamic_shared; return CUDA_SUCCESS;
  case FUNCTION_CARVEOUT: *value = info.carveout; return CUDA_SUCCESS;
  case FUNCTION_CACHE_CA:
  case FUNCTION_CLUSTER_MUST_BE_SET:
  case FUNCTION_CLUSTER_POLICY: *value = 0; return CUDA_SUCCESS;
  case FUNCTION_CLUSTER_WIDTH:
  case FUNCTION_CLUSTER_HEIGHT:
  case FUNCTION_CLUSTER_DEPTH: *value = (int)info.cluster[attribute - FUNCTION_CLUSTER_WIDTH]; return CUDA_SUCCESS;
  case FUNCTION_NON_PORTABLE_CLUSTER: *value = info.non_portable; return CUDA_SUCCESS;
  default: return CUDA_ERROR_INVALID_VALUE;
  }
}

static CUresult function_set(CUfunction function, int attribute, int value) {
  if (!engine_function_valid(function)) return CUDA_ERROR_INVALID_HANDLE;
  if (attribute == FUNCTION_MAX_DYNAMIC_SHARED)
    return libcuda_result(engine_function_set_dynamic_shared(function, value));
  if (attribute == FUNCTION_CARVEOUT) return libcuda_result(engine_function_set_carveout(function, value));
  if (attribute >= FUNCTION_CLUSTER_WIDTH && attribute <= FUNCTION_CLUSTER_DEPTH)
    return libcuda_result(engine_function_set_cluster(function, (unsigned)(attribute - FUNCTION_CLUSTER_WIDTH), value));
  if (attribute == FUNCTION_NON_PORTABLE_CLUSTER)
    return libcuda_result(engine_function_set_non_portable(function, value));
  if (attribute == FUNCTION_CLUSTER_POLICY) return CUDA_SUCCESS; /* it changes nothing here */
  return CUDA_ERROR_INVALID_VALUE;
}

static CUresult function_name(const char **name, CUfunction function) {
  if (!name || !function) return CUDA_ERROR_INVALID_VALUE;
  if (!engine_function_valid(function)) return CUDA_ERROR_INVALID_HANDLE;
  *name = engine_function_name(function);
  return CUDA_SUCCESS;
}

static CUresult function_param(CUfunction function, size_t index, size_t *offset, size_t *size) {
  engine_function_info info;
  if (!offset) return CUDA_ERROR_INVALID_VALUE;
  if (!engine_function_valid(function)) return CUDA_ERROR_INVALID_HANDLE;
  LIBCUDA_TRY(libcuda_result(engine_function_describe(function, &info)));
  if (index >= info.kernel.param_count) return CUDA_ERROR_INVALID_VALUE;
  *offset = info.kernel.params[index].offset;
  if (size) *size = info.kernel.params[index].size;
  return CUDA_SUCCESS;
}

static CUresult function_param_count(CUfunction function, size_t *count) {
  engine_function_info info;
  if (!count) return CUDA_ERROR_INVALID_VALUE;
  if (!engine_function_valid(function)) return CUDA_ERROR_INVALID_HANDLE;
  LIBCUDA_TRY(libcuda_result(engine_function_describe(function, &info)));
  *count = info.kernel.param_count;
  return CUDA_SUCCESS;
}

static CUresult function_cache(CUfunction function, unsigned preference) {
  if (!engine_function_valid(function)) return CUDA_ERROR_INVALID_HANDLE;
  if (preference > cudaFuncCachePreferEqual) return CUDA_ERROR_INVALID_VALUE;
  return libcuda_result(engine_function_set_cache(function, preference));
}

LIBCUDA_CALL(cuFuncGetAttribute, (int *value, int attribute, CUfunction function)) {
  LIBCUDA_TRY(libcuda_enter());
  return function_attribute(value, attribute, function);
}
LIBCUDA_CALL(cuKernelGetAttribute, (int *value, int attribute, CUkernel kernel, CUdevice device)) {
  LIBCUDA_TRY(libcuda_device(device));
  return function_attribute(value, attribute, kernel);
}
LIBCUDA_CALL(cuFuncSetAttribute, (CUfunction function, int attribute, int value)) {
  LIBCUDA_TRY(libcuda_enter());
  return function_set(function, attribute, value);
}
LIBCUDA_CALL(cuKernelSetAttribute, (int attribute, int value, CUkernel kernel, CUdevice device)) {
  LIBCUDA_TRY(libcuda_device(device));
  return function_set(kernel, attribute, value);
}
LIBCUDA_CALL(cuFuncSetCacheConfig, (CUfunction function, unsigned preference)) {
  LIBCUDA_TRY(libcuda_enter());
  return function_cache(function, preference);
}
LIBCUDA_CALL(cuKernelSetCacheConfig, (CUkernel kernel, unsigned preference, CUdevice device)) {
  LIBCUDA_TRY(libcuda_device(device));
  return function_cache(kernel, preference);
}
LIBCUDA_CALL(cuFuncSetSharedMemConfig, (CUfunction function, unsigned config)) {
  LIBCUDA_TRY(libcuda_enter());
  if (!engine_function_valid(function)) return CUDA_ERROR_INVALID_HANDLE;
  return config <= cudaSharedMemBankSizeEightByte ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
LIBCUDA_CALL(cuFuncGetName, (const char **name, CUfunction function)) {
  LIBCUDA_TRY(libcuda_enter());
  return function_name(name, function);
}
LIBCUDA_CALL(cuKernelGetName, (const char **name, CUkernel kernel)) {
  LIBCUDA_TRY(libcuda_ready());
  return function_name(name, kernel);
}
LIBCUDA_CALL(cuFuncGetParamInfo, (CUfunction function, size_t index, size_t *offset, size_t *size)) {
  LIBCUDA_TRY(libcuda_enter());
  return function_param(function, index, offset, size);
}
/* Unlike a kernel's name they are asked for in a context. */
LIBCUDA_CALL(cuKernelGetParamInfo, (CUkernel kernel, size_t index, size_t *offset, size_t *size)) {
  LIBCUDA_TRY(libcuda_enter());
  return function_param(kernel, index, offset, size);
}

LIBCUDA_CALL(cuFuncGetParamCount, (CUfunction function, size_t *count)) {
  LIBCUDA_TRY(libcuda_enter());
  return function_param_count(function, count);
}
LIBCUDA_CALL(cuKernelGetParamCount, (CUkernel kernel, size_t *count)) {
  LIBCUDA_TRY(libcuda_ready());
  return function_param_count(kernel, count);
}

LIBCUDA_CALL(cuFuncLoad, (CUfunction function)) {
  engine_function_info info;
  LIBCUDA_TRY(libcuda_enter());
  if (!engine_function_valid(function)) return CUDA_ERROR_INVALID_HANDLE;
  return libcuda_result(engine_function_describe(function, &info));
}

LIBCUDA_CALL(cuFuncIsLoaded, (int *state, CUfunction function)) {
  LIBCUDA_TRY(libcuda_enter());
  if (!state) return CUDA_ERROR_INVALID_VALUE;
  if (!engine_function_valid(function)) return CUDA_ERROR_INVALID_HANDLE;
  *state = 1;
  return CUDA_SUCCESS;
}

/* ---- launches ---- */

CUresult libcuda_read_extra(void **extra, engine_launch *launch) {
  size_t *bytes = NULL;
  for (; *extra; extra += 2) {
    if (extra[0] == (void *)1) launch->packed = extra[1];
    else if (extra[0] == (void *)2) bytes = extra[1];
    else return CUDA_ERROR_INVALID_VALUE;
  }
  if (!launch->packed || !bytes) return CUDA_ERROR_INVALID_VALUE;
  launch->packed_bytes = *bytes;
  return CUDA_SUCCESS;
}

/* A grid or block that is impossible is an invalid value to a program, and number 9 to a CUDA runtime, which makes
 * "invalid configuration" of it. */
static CUresult run(engine_launch *launch, void **extra, const void *caller) {
  if (!engine_function_valid(launch->function)) return CUDA_ERROR_INVALID_HANDLE;
  if (launch->arguments && extra) return CUDA_ERROR_INVALID_VALUE;
  if (extra) LIBCUDA_TRY(libcuda_read_extra(extra, launch));
  cudaError_t error = engine_launch_run(launch);
  CUresult result = libcuda_result(error);
  return error == cudaErrorInvalidConfiguration && private_is_runtime(caller) ? (CUresult)error : result;
}

static CUresult launch(CUfunction function, const unsigned *grid, const unsigned *block, unsigned shared,
                       CUstream stream, bool own, void **arguments, void **extra, bool cooperative,
                       const void *caller) {
  engine_launch request = {.function = function,
                           .grid = {grid[0], grid[1], grid[2]},
                           .block = {block[0], block[1], block[2]},
                           .dynamic_shared = shared,
                           .stream = engine_stream_handle(stream, own),
                           .arguments = arguments,
                           .cooperative = cooperative};
  return run(&request, extra, caller);
}

static CUresult read_config(const CUlaunchConfig *config, CUfunction function, engine_launch *request) {
  if (!config || (config->numAttrs && !config->attrs)) return CUDA_ERROR_INVALID_VALUE;
  *request = (engine_launch){.function = function,
                             .grid = {config->gridDimX, config->gridDimY, config->gridDimZ},
                             .block = {config->blockDimX, config->blockDimY, config->blockDimZ},
                             .dynamic_shared = config->sharedMemBytes};
  for (unsigned i = 0; i < config->numAttrs; i++) {
    const cudaLaunchAttribute *attribute = &config->attrs[i];
    LIBCUDA_TRY(libcuda_result(engine_launch_attribute(request, (int)attribute->id, &attribute->val)));
  }
  return CUDA_SUCCESS;
}

static CUresult launch_config(const CUlaunchConfig *config, CUfunction function, void **arguments, void **extra,
                              bool own, const void *caller) {
  engine_launch request;
  LIBCUDA_TRY(read_config(config, function, &request));
  request.arguments = arguments;
  request.stream = engine_stream_handle(config->hStream, own);
  return run(&request, extra, caller);
}

#define GRID_PARAMETERS                                                                                       \
  CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, \
      unsigned block_z, unsigned shared, CUstream stream
#define CALLER __builtin_return_address(0)
#define GRID function, (unsigned[3]){grid_x, grid_y, grid_z}, (unsigned[3]){block_x, block_y, block_z}, shared, stream

LIBCUDA_PAIR(cuLaunchKernel, _ptsz, (GRID_PARAMETERS, void **arguments, void **extra),
             launch(GRID, own, arguments, extra, false, CALLER))
LIBCUDA_PAIR(cuLaunchCooperativeKernel, _ptsz, (GRID_PARAMETERS, void **arguments),
             launch(GRID, own, arguments, NULL, true, CALLER))
LIBCUDA_PAIR(cuLaunchKernelEx, _ptsz,
             (const CUlaunchConfig *config, CUfunction function, void **arguments, void **extra),
             launch_config(config, function, arguments, extra, own, CALLER))

typedef struct CUDA_LAUNCH_PARAMS {
  CUfunction function;
  unsigned grid[3], block[3], shared;
  CUstream stream;
  void **arguments;
} CUDA_LAUNCH_PARAMS;

LIBCUDA_CALL(cuLaunchCooperativeKernelMultiDevice, (CUDA_LAUNCH_PARAMS * list, unsigned count, unsigned flags)) {
  LIBCUDA_TRY(libcuda_ready());
  if (!list || !count || count > ENGINE_DEVICES_MAX) return CUDA_ERROR_INVALID_VALUE;
  engine_launch launches[ENGINE_DEVICES_MAX] = {0};
  for (unsigned i = 0; i < count; i++) {
    CUDA_LAUNCH_PARAMS *from = &list[i];
    engine_launch *to = &launches[i];
    if (!engine_function_valid(from->function)) return CUDA_ERROR_INVALID_HANDLE;
    to->function = from->function;
    memcpy(to->grid, from->grid, sizeof to->grid);
    memcpy(to->block, from->block, sizeof to->block);
    to->dynamic_shared = from->shared;
    to->stream = from->stream;
    to->arguments = from->arguments;
  }
  return libcuda_result(engine_grids_run(launches, count, flags));
}

/* ---- occupancy ---- */

static CUresult active_blocks(int *blocks, CUfunction function, int threads, size_t shared, unsigned flags) {
  engine_occupancy found;
  LIBCUDA_TRY(libcuda_enter());
  if (!blocks || threads <= 0 || flags & ~1u) return CUDA_ERROR_INVALID_VALUE;
  if (!engine_function_valid(function)) return CUDA_ERROR_INVALID_HANDLE;
  LIBCUDA_TRY(libcuda_result(engine_occupancy_find(function, (uint32_t)threads, shared, &found)));
  *blocks = (int)found.blocks;
  return CUDA_SUCCESS;
}

LIBCUDA_CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor,
             (int *blocks, CUfunction function, int threads, size_t shared)) {
  return active_blocks(blocks, function, threads, shared, 0);
}
LIBCUDA_CALL(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
             (int *blocks, CUfunction function, int threads, size_t shared, unsigned flags)) {
  return active_blocks(blocks, function, threads, shared, flags);
}

typedef size_t (*shared_of_block)(int threads);

static CUresult potential_block(int *grid, int *block, CUfunction function, shared_of_block shared_of, size_t shared,
                                int limit, unsigned flags) {
  uint32_t best_grid, best_block;
  LIBCUDA_TRY(libcuda_enter());
  if (!grid || !block || limit < 0 || flags & ~1u) return CUDA_ERROR_INVALID_VALUE;
  if (!engine_function_valid(function)) return CUDA_ERROR_INVALID_HANDLE;
  LIBCUDA_TRY(
      libcuda_result(engine_occupancy_best(function, shared_of, shared, (uint32_t)limit, &best_grid, &best_block)));
  *grid = (int)best_grid;
  *block = (int)best_block;
  return CUDA_SUCCESS;
}

LIBCUDA_CALL(cuOccupancyMaxPotentialBlockSize,
             (int *grid, int *block, CUfunction function, shared_of_block shared_of, size_t shared, int limit)) {
  return potential_block(grid, block, function, shared_of, shared, limit, 0);
}
LIBCUDA_CALL(cuOccupancyMaxPotentialBlockSizeWithFlags,
             (int *grid, int *block, CUfunction function, shared_of_block shared_of, size_t shared, int limit,
              unsigned flags)) {
  return potential_block(grid, block, function, shared_of, shared, limit, flags);
}

LIBCUDA_CALL(cuOccupancyAvailableDynamicSMemPerBlock, (size_t * bytes, CUfunction function, int blocks, int threads)) {
  uint64_t found;
  LIBCUDA_TRY(libcuda_enter());
  if (!bytes || blocks <= 0 || threads <= 0) return CUDA_ERROR_INVALID_VALUE;
  if (!engine_function_valid(function)) return CUDA_ERROR_INVALID_HANDLE;
  LIBCUDA_TRY(libcuda_result(engine_occupancy_shared(function, (uint32_t)blocks, (uint32_t)threads, &found)));
  *bytes = found;
  return CUDA_SUCCESS;
}

static CUresult clusters_of(int *out, CUfunction function, const CUlaunchConfig *config,
                            cudaError_t (*find)(const engine_launch *launch, int *out)) {
  engine_launch request;
  LIBCUDA_TRY(libcuda_enter());
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  if (!engine_function_valid(function)) return CUDA_ERROR_INVALID_HANDLE;
  LIBCUDA_TRY(read_config(config, function, &request));
  return libcuda_result(find(&request, out));
}

LIBCUDA_CALL(cuOccupancyMaxActiveClusters, (int *clusters, CUfunction function, const CUlaunchConfig *config)) {
  return clusters_of(clusters, function, config, engine_occupancy_clusters);
}
LIBCUDA_CALL(cuOccupancyMaxPotentialClusterSize, (int *blocks, CUfunction function, const CUlaunchConfig *config)) {
  return clusters_of(blocks, function, config, engine_occupancy_cluster_size);
}
