/* SPDX-License-Identifier: Apache-2.0 */
/* What a kernel needs of an SM, and how many of its blocks fit: function attributes and occupancy.
 *
 * blocks = min over threads, blocks, registers and shared memory, each as the timing model counts it
 * (machine/spec/allocation.h).
 *
 * Registers are an estimate (ptx_register_estimate): a compiler spills where it exceeds what a thread of the device can
 * have (63 before compute capability 3.2), or the threads of .maxntid and .minnctapersm, so it is cut there; without
 * those it would for 1024 threads unless the estimate exceeds that by half, where no compiler would. */
#include "driver/engine/engine_internal.h"
#include "machine/spec/allocation.h"

#define WARP 32u

static uint64_t round_up(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }
static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }
/* Warps of `registers` registers per thread that one SM holds. */
static uint64_t warps_by_registers(uint32_t registers) { return allocation_warps(ff_engine.machine, registers); }

static uint32_t settle_registers(uint32_t estimate, uint32_t threads, bool promised) {
  uint32_t registers = (uint32_t)allocation_of_thread(ff_engine.machine, estimate);
  uint32_t warps = (threads + WARP - 1) / WARP, fitting = registers;
  while (fitting > 16 && warps_by_registers(fitting) < warps) fitting--;
  return !promised && registers > fitting + fitting / 2 ? registers : fitting;
}

void engine_function_info_locked(engine_function *function, int device, engine_function_info *info) {
  const machine_spec *m = ff_engine.machine;
  const engine_kernel *own = &function->on[device];
  *info = (engine_function_info){
      .kernel = *exec_kernel_describe(own->code), .carveout = own->carveout, .cache_preference = own->cache};
  info->non_portable = function->non_portable;
  for (int axis = 0; axis < 3; axis++)
    info->cluster[axis] = info->kernel.cluster[axis] ? info->kernel.cluster[axis] : function->cluster[axis];
  uint32_t threads =
      (uint32_t)least(info->kernel.max_threads ? info->kernel.max_threads : DEVICE_THREADS, DEVICE_THREADS);
  info->kernel.max_threads = threads;
  info->tile_threads = function->tile ? threads : 0;
  uint32_t together = own->promised ? (uint32_t)least(own->promised, m->max_threads) : threads;
  info->kernel.registers = settle_registers(info->kernel.registers, together, own->promised != 0);
  info->max_threads = (uint32_t)least(threads, warps_by_registers(info->kernel.registers) * WARP);
  uint64_t left =
      m->shared_per_block > info->kernel.static_shared ? m->shared_per_block - info->kernel.static_shared : 0;
  info->max_dynamic_shared = own->dynamic_shared >= 0 ? (uint32_t)own->dynamic_shared : (uint32_t)left;
}

static uint32_t quotient(uint64_t whole, uint64_t part) {
  return part ? (uint32_t)least(whole / part, UINT32_MAX) : UINT32_MAX;
}

void engine_occupancy_of(const engine_function_info *info, uint32_t threads, uint64_t dynamic_shared,
                         engine_occupancy *out) {
  const machine_spec *m = ff_engine.machine;
  if (info->tile_threads) threads = info->tile_threads;
  uint32_t warps = (threads + WARP - 1) / WARP;
  uint64_t used = info->kernel.static_shared + dynamic_shared;
  uint64_t shared = allocation_shared(m, used);
  out->limit_threads = quotient(m->max_threads / WARP, warps);
  out->limit_blocks = (uint32_t)m->max_blocks;
  out->limit_registers = quotient(warps_by_registers(info->kernel.registers), warps);
  out->limit_shared = quotient(m->shared_bytes, shared);
  uint64_t most = m->shared_per_block_optin > m->shared_per_block ? m->shared_per_block_optin : m->shared_per_block;
  if (used > most) out->limit_shared = 0;
  if (threads > info->max_threads) out->limit_registers = 0;
  out->blocks =
      (uint32_t)least(least(out->limit_threads, out->limit_blocks), least(out->limit_registers, out->limit_shared));
  out->warps = out->blocks * warps;
}

/* ---- the calls ---- */

/* What the calling thread means: a function on its device, or on that of its module. */
static int device_for(const engine_function *function) {
  return engine_module_device(function->module, engine_device_of(NULL));
}

static cudaError_t load(engine_function *function) {
  bool valid = engine_handles_have(&ff_engine.handles, function, ENGINE_HANDLE_FUNCTION);
  return valid ? engine_function_load_locked(function, device_for(function)) : cudaErrorInvalidDeviceFunction;
}

cudaError_t engine_function_describe(engine_function *function, engine_function_info *info) {
  cudaError_t error = engine_enter_apart();
  if (error) return error;
  error = load(function);
  if (!error) engine_function_info_locked(function, device_for(function), info);
  engine_leave();
  return error;
}

cudaError_t engine_function_change(engine_function *function, engine_function_info *info) {
  cudaError_t error = engine_enter_apart();
  if (error) return error;
  error = load(function);
  if (error) {
    engine_leave();
    return error;
  }
  engine_function_info_locked(function, device_for(function), info);
  return cudaSuccess;
}

/* With the lock. */
static engine_kernel *kernel_here(engine_function *function) { return &function->on[device_for(function)]; }

cudaError_t engine_function_set_dynamic_shared(engine_function *function, int bytes) {
  engine_function_info info;
  cudaError_t error = engine_function_change(function, &info);
  if (error) return error;
  const machine_spec *m = ff_engine.machine;
  uint64_t most = m->shared_per_block_optin > m->shared_per_block ? m->shared_per_block_optin : m->shared_per_block;
  if (bytes < 0 || (uint64_t)bytes + info.kernel.static_shared > most) error = cudaErrorInvalidValue;
  else kernel_here(function)->dynamic_shared = bytes;
  engine_leave();
  return error;
}

cudaError_t engine_function_set_carveout(engine_function *function, int percent) {
  if (percent < -1 || percent > 100) return cudaErrorInvalidValue;
  engine_function_info info;
  cudaError_t error = engine_function_change(function, &info);
  if (error) return error;
  kernel_here(function)->carveout = percent;
  engine_leave();
  return cudaSuccess;
}

cudaError_t engine_function_set_cache(engine_function *function, unsigned preference) {
  if (preference > cudaFuncCachePreferEqual) return cudaErrorInvalidValue;
  engine_function_info info;
  cudaError_t error = engine_function_change(function, &info);
  if (error) return error;
  kernel_here(function)->cache = preference;
  engine_leave();
  return cudaSuccess;
}

cudaError_t engine_occupancy_find(engine_function *function, uint32_t threads, uint64_t dynamic_shared,
                                  engine_occupancy *out) {
  engine_function_info info;
  if (!threads) return cudaErrorInvalidValue;
  cudaError_t error = engine_function_describe(function, &info);
  if (!error) engine_occupancy_of(&info, threads, dynamic_shared, out);
  return error;
}

cudaError_t engine_occupancy_shared(engine_function *function, uint32_t blocks, uint32_t threads, uint64_t *bytes) {
  engine_function_info info;
  if (!threads || !blocks || !bytes) return cudaErrorInvalidValue;
  cudaError_t error = engine_function_describe(function, &info);
  if (error) return error;
  engine_occupancy without;
  engine_occupancy_of(&info, threads, 0, &without);
  if (without.blocks < blocks) return cudaErrorInvalidValue;
  const machine_spec *m = ff_engine.machine;
  uint64_t each = allocation_shared_each(m, blocks), taken = info.kernel.static_shared;
  *bytes = least(each > taken ? each - taken : 0, info.max_dynamic_shared); /* no more can be launched */
  return cudaSuccess;
}

/* Tries the block sizes from the largest down by warps, as the manual's function does; ties go to the larger block. */
cudaError_t engine_occupancy_best(engine_function *function, size_t (*shared_of)(int threads), uint64_t dynamic_shared,
                                  uint32_t limit, uint32_t *grid, uint32_t *block) {
  engine_function_info info;
  cudaError_t error = engine_function_describe(function, &info);
  if (error) return error;
  uint32_t most = limit && limit < info.max_threads ? limit : info.max_threads, best = 0;
  if (info.tile_threads) most = 1; /* it is launched with no more */
  *grid = *block = 0;
  for (uint32_t threads = (uint32_t)round_up(most, WARP); threads; threads -= WARP) {
    uint32_t size = threads < most ? threads : most;
    engine_occupancy occupancy;
    engine_occupancy_of(&info, size, shared_of ? shared_of((int)size) : dynamic_shared, &occupancy);
    if (occupancy.blocks * size <= best) continue;
    best = occupancy.blocks * size;
    *block = size;
    *grid = occupancy.blocks * (uint32_t)ff_engine.machine->sm_count;
  }
  return cudaSuccess;
}
