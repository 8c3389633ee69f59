/* SPDX-License-Identifier: Apache-2.0 */
/* Initialisation, the device, contexts (Driver API: "Initialization", "Device Management", "Primary Context
 * Management", "Context Management", "Peer Context Memory Access").
 *
 * What always holds: a thread's stack holds live contexts or ones that were destroyed while current elsewhere; every
 * use looks the handle up in the list of live ones first. Another thread may destroy the context right after that, so
 * its memory stays (`gone`): what is read of it is what it was, and no other context gets its address. The runtime
 * works in the primary context, which it makes current by itself: a program that uses both APIs therefore has a current
 * context without asking for one. */
#define _GNU_SOURCE
#include "base/forks.h"
#include "driver/driver_api/libcuda.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "driver/engine/engine_peer.h"
#include "driver/errors.h"
#include "driver/private_runtimes/private_runtimes.h"
#include "driver/properties.h"

#define STACK_DEPTH 64
#define CONTEXT_FLAGS 0xffu

struct CUctx_st {
  _Atomic unsigned flags; /* of a primary one the engine's */
  unsigned long long id;
  CUdevice device;
  _Atomic unsigned uses; /* cuCtxAttach, cuDevicePrimaryCtxRetain */
  bool primary;
  CUgreenCtx green;  /* the one that it stands for; NULL: none */
  uint64_t green_id; /* which of those that have had that address; 0: it was gone already */
  _Atomic unsigned cache, shared_banks;
  struct CUctx_st *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
FF_FREE_IN_CHILD(lock)
/* the live ones that cuCtxCreate made, and those of green contexts */
static struct CUctx_st *contexts, *gone;                                             /* `gone`: those that were */
static struct CUctx_st primaries[ENGINE_DEVICES_MAX] = {{.id = 1, .primary = true}}; /* id 0: not asked for yet */
static unsigned long long next_id = 2;
static atomic_bool initialised;
static __thread CUcontext stack[STACK_DEPTH];
static __thread unsigned depth;

/* ---- state ---- */

/* Is the CUDA runtime in this process too? */
static bool runtime_is_loaded(void) {
  static atomic_int known; /* 0: not asked yet, 1: no, 2: yes */
  int state = atomic_load(&known);
  if (!state) {
    state = dlsym(RTLD_DEFAULT, "__cudaRegisterFatBinary") ? 2 : 1;
    atomic_store(&known, state);
  }
  return state == 2;
}

static void drop_storage(CUdevice device);
static void green_gone(uint64_t id);
static bool own_flags(unsigned *flags);

/* Once, before the first call that can make a context. */
static void tell_engine(void) {
  engine_reset_tell(drop_storage);
  engine_green_tell(green_gone);
  engine_context_flags_tell(own_flags);
}

/* The runtime's first call initialises the driver. */
CUresult libcuda_ready(void) {
  static pthread_once_t told = PTHREAD_ONCE_INIT;
  if (!atomic_load(&initialised) && !(runtime_is_loaded() && engine_started())) return CUDA_ERROR_NOT_INITIALIZED;
  pthread_once(&told, tell_engine);
  return CUDA_SUCCESS;
}

CUresult libcuda_device(CUdevice device) {
  LIBCUDA_TRY(libcuda_ready());
  if (!engine_machine()) return CUDA_ERROR_NOT_INITIALIZED; /* a fork of a process that had it */
  return device >= 0 && (uint32_t)device < engine_devices() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

static CUcontext primary_of(CUdevice device) {
  CUcontext context = &primaries[device];
  pthread_mutex_lock(&lock);
  if (!context->id) *context = (struct CUctx_st){.id = next_id++, .device = device, .primary = true};
  pthread_mutex_unlock(&lock);
  return context;
}

bool libcuda_is_live(CUcontext context) {
  for (uint32_t d = 0; d < ENGINE_DEVICES_MAX; d++)
    if (context == &primaries[d]) return true;
  pthread_mutex_lock(&lock);
  struct CUctx_st *at = contexts;
  while (at && at != context) at = at->next;
  CUgreenCtx green = at ? at->green : NULL;
  const uint64_t id = at ? at->green_id : 0;
  pthread_mutex_unlock(&lock);
  return at && (!green || (id && engine_green_id(green) == id)); /* a reset of the device destroys green contexts */
}

/* The thread's stack has changed: the engine is told whose device it is on, and whose SMs its NULL stream has. */
static void use_current(void) {
  CUcontext top = depth && libcuda_is_live(stack[depth - 1]) ? stack[depth - 1] : NULL;
  engine_device_give(top ? top->device : -1);
  engine_green_use(top ? top->green : NULL);
}

/* cudaSetDevice makes a primary context current, and so does any call of the runtime by a thread that has none. */
static void hear_runtime(void) {
  int device;
  bool chosen = engine_device_chosen(&device), called = engine_runtime_called();
  if (depth && chosen) stack[depth - 1] = primary_of(device);
  if (depth || !called || !engine_started()) return;
  stack[depth++] = primary_of(engine_device_current());
  use_current();
}

CUcontext libcuda_current(void) {
  hear_runtime();
  return depth ? stack[depth - 1] : NULL;
}

CUcontext libcuda_context_on(int device) {
  CUcontext current = libcuda_current();
  return current && libcuda_is_live(current) && current->device == device ? current : primary_of(device);
}

CUdevice libcuda_device_of(CUcontext context) { return context->device; }

static unsigned flags_of(CUcontext context) {
  return context->primary ? engine_device_flags(context->device) : context->flags;
}

static void set_flags(CUcontext context, unsigned flags) {
  if (context->primary) engine_device_flags_set(context->device, flags);
  else context->flags = flags;
}

static bool own_flags(unsigned *flags) {
  CUcontext current = libcuda_current();
  if (!current || !libcuda_is_live(current) || current->primary) return false;
  *flags = current->flags;
  return true;
}

CUresult libcuda_enter(void) {
  LIBCUDA_TRY(libcuda_ready());
  CUcontext context = libcuda_current();
  if (!context) return CUDA_ERROR_INVALID_CONTEXT;
  if (!libcuda_is_live(context)) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  return libcuda_result(engine_start());
}

CUresult libcuda_enter_by(const void *handle) {
  bool special = !handle || handle == (const void *)cudaStreamLegacy || handle == (const void *)cudaStreamPerThread;
  if (special || libcuda_current()) return libcuda_enter();
  return libcuda_ready();
}

static CUresult start(void) {
  LIBCUDA_TRY(libcuda_ready());
  return libcuda_result(engine_start());
}

/* ---- initialisation, errors, version ---- */

/* With the lock: from the live ones to those that were. */
static struct CUctx_st *retire(struct CUctx_st **at) {
  struct CUctx_st *context = *at;
  *at = context->next;
  context->next = gone;
  return gone = context;
}

/* What runtimes keep with the contexts that a reset ends, the primary one and green contexts, which are gone with what
 * they stand for; and the primary one's flags and configuration. A reset may come from our runtime, while a library has
 * a runtime of its own as well. */
static void drop_storage(CUdevice device) {
  FF_VEC(CUcontext) ending = {0};
  CUcontext primary = primary_of(device);
  FF_PUSH(&ending, primary);
  pthread_mutex_lock(&lock);
  set_flags(primary, 0);
  primary->cache = primary->shared_banks = 0;
  for (struct CUctx_st **at = &contexts; *at;)
    if ((*at)->green && (*at)->device == device) FF_PUSH(&ending, retire(at));
    else at = &(*at)->next;
  pthread_mutex_unlock(&lock);
  for (size_t i = 0; i < ending.count; i++) private_storage_drop(ending.items[i]);
  free(ending.items);
}

LIBCUDA_CALL(cuInit, (unsigned flags)) {
  if (flags) return CUDA_ERROR_INVALID_VALUE;
  cudaError_t error = engine_start();
  if (error && error != engine_sticky()) return libcuda_result(error);
  atomic_store(&initialised, true);
  return CUDA_SUCCESS;
}

LIBCUDA_CALL(cuDriverGetVersion, (int *version)) {
  if (!version) return CUDA_ERROR_INVALID_VALUE;
  *version = (int)engine_driver_version();
  return CUDA_SUCCESS;
}

LIBCUDA_CALL(cuGetErrorName, (CUresult error, const char **name)) {
  if (!name) return CUDA_ERROR_INVALID_VALUE;
  *name = cuda_result_name((int)error);
  return *name ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

LIBCUDA_CALL(cuGetErrorString, (CUresult error, const char **text)) {
  if (!text) return CUDA_ERROR_INVALID_VALUE;
  *text = cuda_result_string((int)error);
  return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- the device ---- */

LIBCUDA_CALL(cuDeviceGetCount, (int *count)) {
  LIBCUDA_TRY(libcuda_ready());
  if (!count) return CUDA_ERROR_INVALID_VALUE;
  *count = (int)engine_devices();
  return CUDA_SUCCESS;
}

LIBCUDA_CALL(cuDeviceGet, (CUdevice * device, int ordinal)) {
  LIBCUDA_TRY(libcuda_ready());
  if (!device) return CUDA_ERROR_INVALID_VALUE;
  LIBCUDA_TRY(libcuda_device(ordinal));
  *device = ordinal;
  return CUDA_SUCCESS;
}

LIBCUDA_CALL(cuDeviceGetName, (char *name, int length, CUdevice device)) {
  LIBCUDA_TRY(libcuda_device(device));
  if (!name || length <= 0) return CUDA_ERROR_INVALID_VALUE;
  snprintf(name, (size_t)length, "%s", engine_machine()->name);
  return CUDA_SUCCESS;
}

static CUresult device_uuid(CUuuid *uuid, CUdevice device) {
  LIBCUDA_TRY(libcuda_device(device));
  if (!uuid) return CUDA_ERROR_INVALID_VALUE;
  properties_uuid(engine_machine(), device, uuid->bytes);
  return CUDA_SUCCESS;
}
LIBCUDA_CALL(cuDeviceGetUuid, (CUuuid * uuid, CUdevice device)) { return device_uuid(uuid, device); }
LIBCUDA_CALL(cuDeviceGetUuid_v2, (CUuuid * uuid, CUdevice device)) { return device_uuid(uuid, device); }

LIBCUDA_CALL(cuDeviceTotalMem_v2, (size_t * bytes, CUdevice device)) {
  LIBCUDA_TRY(libcuda_device(device));
  if (!bytes) return CUDA_ERROR_INVALID_VALUE;
  *bytes = engine_gpu_memory();
  return CUDA_SUCCESS;
}

LIBCUDA_CALL(cuDeviceGetAttribute, (int *value, int attribute, CUdevice device)) {
  LIBCUDA_TRY(libcuda_device(device));
  if (!value || !properties_attribute(engine_machine(), device, attribute, value)) return CUDA_ERROR_INVALID_VALUE;
  int other = 0;
  if (attribute == ATTRIBUTE_COMPUTE_MAJOR) engine_capability_tell(__builtin_return_address(0), value, &other);
  if (attribute == ATTRIBUTE_COMPUTE_MINOR) engine_capability_tell(__builtin_return_address(0), &other, value);
  return CUDA_SUCCESS;
}

LIBCUDA_CALL(cuDeviceComputeCapability, (int *major, int *minor, CUdevice device)) {
  LIBCUDA_TRY(libcuda_device(device));
  if (!major || !minor) return CUDA_ERROR_INVALID_VALUE;
  *major = (int)engine_machine()->compute_major;
  *minor = (int)engine_machine()->compute_minor;
  engine_capability_tell(__builtin_return_address(0), major, minor);
  return CUDA_SUCCESS;
}

LIBCUDA_CALL(cuDeviceGetProperties, (CUdevprop * out, CUdevice device)) {
  LIBCUDA_TRY(libcuda_device(device));
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  cudaDeviceProp_12 p;
  properties_fill_12(engine_machine(), device, engine_gpu_memory(), &p);
  *out = (CUdevprop){.maxThreadsPerBlock = p.maxThreadsPerBlock,
                     .sharedMemPerBlock = (int)p.sharedMemPerBlock,
                     .totalConstantMemory = (int)p.totalConstMem,
                     .SIMDWidth = p.warpSize,
                     .memPitch = (int)p.memPitch,
                     .regsPerBlock = p.regsPerBlock,
                     .clockRate = p.clockRate,
                     .textureAlign = (int)p.textureAlignment};
  memcpy(out->maxThreadsDim, p.maxThreadsDim, sizeof out->maxThreadsDim);
  memcpy(out->maxGridSize, p.maxGridSize, sizeof out->maxGridSize);
  return CUDA_SUCCESS;
}

LIBCUDA_CALL(cuDeviceGetPCIBusId, (char *text, int length, CUdevice device)) {
  LIBCUDA_TRY(libcuda_device(device));
  if (!text || length <= 0) return CUDA_ERROR_INVALID_VALUE;
  char address[16];
  properties_bus_write(device, address);
  snprintf(text, (size_t)length, "%s", address);
  return CUDA_SUCCESS;
}

LIBCUDA_CALL(cuDeviceGetByPCIBusId, (CUdevice * device, const char *text)) {
  LIBCUDA_TRY(libcuda_ready());
  int found = device && text ? properties_bus_read(text) : -1;
  if (found < 0) return CUDA_ERROR_INVALID_VALUE;
  LIBCUDA_TRY(libcuda_device(found));
  *device = found;
  return CUDA_SUCCESS;
}

LIBCUDA_CALL(cuDeviceCanAccessPeer, (int *can, CUdevice device, CUdevice peer)) {
  LIBCUDA_TRY(libcuda_device(device));
  LIBCUDA_TRY(libcuda_device(peer));
  if (!can) return CUDA_ERROR_INVALID_VALUE;
  *can = engine_peer_possible(device, peer);
  return CUDA_SUCCESS;
}

LIBCUDA_CALL(cuCtxEnablePeerAccess, (CUcontext peer, unsigned flags)) {
  LIBCUDA_TRY(libcuda_enter());
  if (flags) return CUDA_ERROR_INVALID_VALUE;
  if (!libcuda_is_live(peer)) return CUDA_ERROR_INVALID_CONTEXT;
  return libcuda_result(engine_peer_enable(libcuda_current()->device, peer->device));
}

LIBCUDA_CALL(cuCtxDisablePeerAccess, (CUcontext peer)) {
  LIBCUDA_TRY(libcuda_enter());
  if (!libcuda_is_live(peer)) return CUDA_ERROR_INVALID_CONTEXT;
  return libcuda_result(engine_peer_disable(libcuda_current()->device, peer->device));
}

/* ---- contexts ---- */

static CUresult push(CUcontext context) {
  hear_runtime();
  if (depth == STACK_DEPTH) return CUDA_ERROR_INVALID_VALUE;
  stack[depth++] = context;
  use_current();
  return CUDA_SUCCESS;
}

static CUresult context_create(CUcontext *out, unsigned flags, CUdevice device) {
  LIBCUDA_TRY(libcuda_device(device));
  if (!out || flags & ~CONTEXT_FLAGS) return CUDA_ERROR_INVALID_VALUE;
  LIBCUDA_TRY(start());
  struct CUctx_st *context = ff_alloc(sizeof *context);
  context->flags = flags;
  context->device = device;
  context->uses = 1;
  pthread_mutex_lock(&lock);
  context->id = next_id++;
  context->next = contexts;
  contexts = context;
  pthread_mutex_unlock(&lock);
  *out = context;
  return push(context);
}

LIBCUDA_CALL(cuCtxCreate_v2, (CUcontext * context, unsigned flags, CUdevice device)) {
  return context_create(context, flags, device);
}
LIBCUDA_CALL(cuCtxCreate_v3, (CUcontext * context, const void *affinity, int count, unsigned flags, CUdevice device)) {
  if (count || affinity) return CUDA_ERROR_NOT_SUPPORTED; /* execution affinity */
  return context_create(context, flags, device);
}
LIBCUDA_CALL(cuCtxCreate_v4, (CUcontext * context, const void *const *parameters, unsigned flags, CUdevice device)) {
  /* CUctxCreateParams: {affinity, count, cig}; the two pointers must be NULL here */
  if (parameters && (parameters[0] || parameters[2])) return CUDA_ERROR_NOT_SUPPORTED;
  return context_create(context, flags, device);
}

/* Unlinks it if it is one that cuCtxCreate made. */
static bool unlink_context(CUcontext context) {
  pthread_mutex_lock(&lock);
  struct CUctx_st **at = &contexts;
  while (*at && *at != context) at = &(*at)->next;
  bool found = *at && !(*at)->green;
  if (found) retire(at);
  pthread_mutex_unlock(&lock);
  return found;
}

LIBCUDA_CALL(cuCtxDestroy_v2, (CUcontext context)) {
  LIBCUDA_TRY(libcuda_ready());
  if (!context || !unlink_context(context)) return CUDA_ERROR_INVALID_CONTEXT;
  CUdevice device = context->device;
  hear_runtime();
  if (depth && stack[depth - 1] == context) depth--;
  use_current();
  private_storage_drop(context);
  cudaError_t error = engine_sticky() ? engine_reset(device) : engine_device_synchronize(device);
  return libcuda_result(error);
}

LIBCUDA_CALL(cuCtxAttach, (CUcontext * context, unsigned flags)) {
  LIBCUDA_TRY(libcuda_enter());
  if (!context || flags) return CUDA_ERROR_INVALID_VALUE;
  *context = libcuda_current();
  (*context)->uses++;
  return CUDA_SUCCESS;
}

LIBCUDA_CALL(cuCtxDetach, (CUcontext context)) {
  LIBCUDA_TRY(libcuda_ready());
  if (!context || !libcuda_is_live(context)) return CUDA_ERROR_INVALID_CONTEXT;
  if (context->primary || context->green || --context->uses) return CUDA_SUCCESS;
  return cuCtxDestroy_v2(context);
}

/* ---- green contexts' ---- */

CUgreenCtx libcuda_green_of(CUcontext context) { return context->green; }

CUcontext libcuda_green_context(CUgreenCtx green) {
  const uint64_t id = engine_green_id(green);
  if (!id) return NULL; /* another thread has destroyed it since */
  CUdevice device = engine_green_device(green);
  unsigned flags = engine_device_flags(device);
  pthread_mutex_lock(&lock);
  struct CUctx_st *context = contexts;
  while (context && (!context->green || context->green_id != id)) context = context->next;
  if (!context) {
    context = ff_alloc(sizeof *context);
    *context = (struct CUctx_st){
        .id = next_id++, .uses = 1, .device = device, .green = green, .green_id = id, .flags = flags, .next = contexts};
    contexts = context;
  }
  pthread_mutex_unlock(&lock);
  return context;
}

/* It was destroyed, through either interface: so is its context. */
static void green_gone(uint64_t id) {
  pthread_mutex_lock(&lock);
  struct CUctx_st **at = &contexts;
  while (*at && (*at)->green_id != id) at = &(*at)->next;
  CUcontext retired = *at ? retire(at) : NULL;
  pthread_mutex_unlock(&lock);
  if (retired) private_storage_drop(retired);
}

/* ---- the current one ---- */

LIBCUDA_CALL(cuCtxPushCurrent_v2, (CUcontext context)) {
  LIBCUDA_TRY(libcuda_ready());
  if (!context || !libcuda_is_live(context)) return CUDA_ERROR_INVALID_CONTEXT;
  return push(context);
}

LIBCUDA_CALL(cuCtxPopCurrent_v2, (CUcontext * context)) {
  LIBCUDA_TRY(libcuda_ready());
  hear_runtime();
  if (!depth) return CUDA_ERROR_INVALID_CONTEXT;
  depth--;
  use_current();
  if (context) *context = stack[depth];
  return CUDA_SUCCESS;
}

LIBCUDA_CALL(cuCtxSetCurrent, (CUcontext context)) {
  LIBCUDA_TRY(libcuda_ready());
  if (context && !libcuda_is_live(context)) return CUDA_ERROR_INVALID_CONTEXT;
  hear_runtime();
  if (depth) depth--;
  use_current();
  return context ? push(context) : CUDA_SUCCESS;
}

LIBCUDA_CALL(cuCtxGetCurrent, (CUcontext * context)) {
  LIBCUDA_TRY(libcuda_ready());
  if (!context) return CUDA_ERROR_INVALID_VALUE;
  *context = libcuda_current();
  return CUDA_SUCCESS;
}

LIBCUDA_CALL(cuCtxGetDevice, (CUdevice * device)) {
  LIBCUDA_TRY(libcuda_ready());
  if (!device) return CUDA_ERROR_INVALID_VALUE;
  CUcontext current = libcuda_current();
  if (!current || !libcuda_is_live(current)) return CUDA_ERROR_INVALID_CONTEXT;
  *device = current->device;
  return CUDA_SUCCESS;
}

LIBCUDA_CALL(cuCtxGetFlags, (unsigned *flags)) {
  LIBCUDA_TRY(libcuda_enter());
  if (!flags) return CUDA_ERROR_INVALID_VALUE;
  *flags = flags_of(libcuda_current());
  return CUDA_SUCCESS;
}

LIBCUDA_CALL(cuCtxSetFlags, (unsigned flags)) {
  LIBCUDA_TRY(libcuda_enter());
  if (flags & ~CONTEXT_FLAGS) return CUDA_ERROR_INVALID_VALUE;
  set_flags(libcuda_current(), flags);
  return CUDA_SUCCESS;
}

LIBCUDA_CALL(cuCtxGetId, (CUcontext context, unsigned long long *id)) {
  LIBCUDA_TRY(libcuda_ready());
  if (!context) context = libcuda_current();
  if (!context || !libcuda_is_live(context)) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  if (!id) return CUDA_ERROR_INVALID_VALUE;
  *id = context->id;
  return CUDA_SUCCESS;
}

LIBCUDA_CALL(cuCtxGetApiVersion, (CUcontext context, unsigned *version)) {
  LIBCUDA_TRY(libcuda_ready());
  if (context && !libcuda_is_live(context)) return CUDA_ERROR_INVALID_CONTEXT;
  if (!version) return CUDA_ERROR_INVALID_VALUE;
  *version = 3020;
  return CUDA_SUCCESS;
}

LIBCUDA_CALL(cuCtxSynchronize, (void)) {
  LIBCUDA_TRY(libcuda_enter());
  return libcuda_result(engine_device_synchronize(libcuda_current()->device));
}

LIBCUDA_CALL(cuCtxSynchronize_v2, (CUcontext context)) {
  LIBCUDA_TRY(libcuda_ready());
  if (context && !libcuda_is_live(context)) return CUDA_ERROR_INVALID_CONTEXT;
  return libcuda_result(engine_device_synchronize(context ? context->device : engine_device_current()));
}

LIBCUDA_CALL(cuCtxSetLimit, (int limit, size_t value)) {
  LIBCUDA_TRY(libcuda_enter());
  return libcuda_result(engine_limit_set((cudaLimit)limit, value));
}

LIBCUDA_CALL(cuCtxGetLimit, (size_t * value, int limit)) {
  LIBCUDA_TRY(libcuda_enter());
  return libcuda_result(engine_limit_get((cudaLimit)limit, value));
}

LIBCUDA_CALL(cuCtxGetCacheConfig, (unsigned *config)) {
  LIBCUDA_TRY(libcuda_enter());
  if (!config) return CUDA_ERROR_INVALID_VALUE;
  *config = libcuda_current()->cache;
  return CUDA_SUCCESS;
}

LIBCUDA_CALL(cuCtxSetCacheConfig, (unsigned config)) {
  LIBCUDA_TRY(libcuda_enter());
  if (config > cudaFuncCachePreferEqual) return CUDA_ERROR_INVALID_VALUE;
  libcuda_current()->cache = config;
  return CUDA_SUCCESS;
}

LIBCUDA_CALL(cuCtxGetSharedMemConfig, (unsigned *config)) {
  LIBCUDA_TRY(libcuda_enter());
  if (!config) return CUDA_ERROR_INVALID_VALUE;
  *config = libcuda_current()->shared_banks ? libcuda_current()->shared_banks : cudaSharedMemBankSizeFourByte;
  return CUDA_SUCCESS;
}

LIBCUDA_CALL(cuCtxSetSharedMemConfig, (unsigned config)) {
  LIBCUDA_TRY(libcuda_enter());
  if (config > cudaSharedMemBankSizeEightByte) return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS; /* banks have been four bytes wide since Maxwell, whatever is asked for */
}

LIBCUDA_CALL(cuCtxGetStreamPriorityRange, (int *least, int *greatest)) {
  LIBCUDA_TRY(libcuda_enter());
  if (least) *least = ENGINE_PRIORITY_LEAST;
  if (greatest) *greatest = ENGINE_PRIORITY_GREATEST;
  return CUDA_SUCCESS;
}

LIBCUDA_CALL(cuCtxResetPersistingL2Cache, (void)) {
  LIBCUDA_TRY(libcuda_enter());
  return libcuda_result(engine_l2_reset());
}

/* ---- the primary context ---- */

CUresult libcuda_primary(CUdevice device, CUcontext *context) {
  *context = primary_of(device);
  return CUDA_SUCCESS;
}

LIBCUDA_CALL(cuDevicePrimaryCtxRetain, (CUcontext * context, CUdevice device)) {
  LIBCUDA_TRY(libcuda_device(device));
  if (!context) return CUDA_ERROR_INVALID_VALUE;
  LIBCUDA_TRY(start());
  *context = primary_of(device);
  pthread_mutex_lock(&lock);
  (*context)->uses++;
  pthread_mutex_unlock(&lock);
  return CUDA_SUCCESS;
}

LIBCUDA_CALL(cuDevicePrimaryCtxRelease_v2, (CUdevice device)) {
  LIBCUDA_TRY(libcuda_device(device));
  pthread_mutex_lock(&lock);
  bool held = primaries[device].uses > 0;
  if (held) primaries[device].uses--;
  pthread_mutex_unlock(&lock);
  return held ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}
LIBCUDA_CALL(cuDevicePrimaryCtxRelease, (CUdevice device)) { return cuDevicePrimaryCtxRelease_v2(device); }

LIBCUDA_CALL(cuDevicePrimaryCtxSetFlags_v2, (CUdevice device, unsigned flags)) {
  LIBCUDA_TRY(libcuda_device(device));
  if (flags & ~CONTEXT_FLAGS) return CUDA_ERROR_INVALID_VALUE;
  engine_device_flags_set(device, flags);
  return CUDA_SUCCESS;
}
LIBCUDA_CALL(cuDevicePrimaryCtxSetFlags, (CUdevice device, unsigned flags)) {
  return cuDevicePrimaryCtxSetFlags_v2(device, flags);
}

LIBCUDA_CALL(cuDevicePrimaryCtxGetState, (CUdevice device, unsigned *flags, int *active)) {
  LIBCUDA_TRY(libcuda_device(device));
  if (!flags || !active) return CUDA_ERROR_INVALID_VALUE;
  *flags = engine_device_flags(device);
  *active =
      primaries[device].uses > 0 || (runtime_is_loaded() && engine_started() && engine_device_current() == device);
  return CUDA_SUCCESS;
}

LIBCUDA_CALL(cuDevicePrimaryCtxReset_v2, (CUdevice device)) {
  LIBCUDA_TRY(libcuda_device(device));
  return libcuda_result(engine_reset(device));
}
LIBCUDA_CALL(cuDevicePrimaryCtxReset, (CUdevice device)) { return cuDevicePrimaryCtxReset_v2(device); }
