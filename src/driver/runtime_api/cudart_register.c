/* SPDX-License-Identifier: Apache-2.0 */
/* Registration: what nvcc's host code does before main, and how a host address leads to a kernel or a variable.
 *
 * A program registers each fat binary, then the kernels and variables in it, in constructors; nothing of it is looked
 * at until it is used. A kernel is known to the program by the address of its host stub, a variable by the address of
 * its host shadow; one table maps both kinds. The engine refuses an entry's target that is no live handle
 * any more (a module that was unregistered takes its handles with it).
 *
 * `<<<...>>>` compiles to: push the configuration, call the stub; the stub pops it and calls __cudaLaunchKernel.
 * Between the two the arguments are evaluated, and they may launch kernels themselves: hence a stack per thread. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/forks.h"
#include "base/memory.h"
#include "driver/runtime_api/cudart.h"

/* ---- host address -> kernel or variable ---- */

typedef struct registered {
  const void *host;
  engine_module *module;
  engine_function *function;
  engine_variable *variable;
} registered;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
FF_FREE_IN_CHILD(lock)
static registered *table; /* open addressing; host == NULL: empty */
static size_t table_count, table_capacity;

static size_t slot_in(const registered *entries, size_t capacity, const void *host) {
  size_t at = (size_t)((uint64_t)(uintptr_t)host * UINT64_C(0x9e3779b97f4a7c15) >> 24) & (capacity - 1);
  while (entries[at].host && entries[at].host != host) at = (at + 1) & (capacity - 1);
  return at;
}

static size_t slot_for(const void *host) { return slot_in(table, table_capacity, host); }

/* A child that is forked meanwhile reads the table as it is: the larger one first, then how large it is. */
static void grow(void) {
  registered *old = table;
  const size_t old_capacity = table_capacity, capacity = old_capacity ? 2 * old_capacity : 64;
  registered *larger = ff_alloc(capacity * sizeof *larger);
  for (size_t i = 0; i < old_capacity; i++)
    if (old[i].host) larger[slot_in(larger, capacity, old[i].host)] = old[i];
  __atomic_store_n(&table, larger, __ATOMIC_RELEASE);
  __atomic_store_n(&table_capacity, capacity, __ATOMIC_RELEASE);
  free(old);
}

static void remember(registered entry) {
  pthread_mutex_lock(&lock);
  if (2 * (table_count + 1) > table_capacity) grow();
  size_t at = slot_for(entry.host);
  if (!table[at].host) table_count++;
  table[at] = entry; /* a later registration of the same address (a library loaded again) wins */
  pthread_mutex_unlock(&lock);
}

static registered lookup(const void *host) {
  registered entry = {0};
  pthread_mutex_lock(&lock);
  if (host && table_capacity) entry = table[slot_for(host)];
  pthread_mutex_unlock(&lock);
  return entry;
}

engine_function *cudart_function(const void *function) {
  registered entry = lookup(function);
  if (entry.function) return entry.function;
  engine_function *handle = (engine_function *)(uintptr_t)function;
  return engine_function_valid(handle) ? handle : NULL;
}

/* From CUDA 12 on, what is no function's address is taken for a handle, and is none. */
cudaError_t cudart_function_find(const void *named, engine_function **function) {
  *function = cudart_function(named);
  if (*function) return cudaSuccess;
  return named && CUDART_MAJOR >= 12 ? cudaErrorInvalidResourceHandle : cudaErrorInvalidDeviceFunction;
}

const void *cudart_function_host(const engine_function *function) {
  const void *host = NULL;
  pthread_mutex_lock(&lock);
  for (size_t i = 0; i < table_capacity && !host; i++)
    if (table[i].host && table[i].function == function) host = table[i].host;
  pthread_mutex_unlock(&lock);
  return host;
}

engine_variable *cudart_variable(const void *symbol) {
  registered entry = lookup(symbol);
  return entry.variable ? entry.variable : engine_variable_managed(symbol);
}

/* ---- what the program calls ---- */

CUDART_API void **__cudaRegisterFatBinary(void *wrapper) { return (void **)engine_module_register(wrapper); }

CUDART_API void __cudaRegisterFatBinaryEnd(void **handle) { (void)handle; }

/* The entries stay (their addresses may be asked for by a destructor that runs later); the handles in them die. */
CUDART_API void __cudaUnregisterFatBinary(void **handle) { engine_module_unload((engine_module *)handle); }

CUDART_API void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
                                       int thread_limit, void *tid, void *bid, void *block, void *grid,
                                       int *warp_size) {
  engine_module *module = (engine_module *)handle;
  engine_function *function = engine_function_declare(module, name);
  if (function && host) remember((registered){.host = host, .module = module, .function = function});
}

CUDART_API void __cudaRegisterVar(void **handle, char *host, char *device, const char *name, int external, size_t size,
                                  int constant, int global) {
  engine_module *module = (engine_module *)handle;
  engine_variable *variable = engine_variable_declare(module, name, size);
  if (variable && host) remember((registered){.host = host, .module = module, .variable = variable});
}

/* Host code reaches a managed variable through *host_pointer; symbol calls name it by that pointer's address. */
CUDART_API void __cudaRegisterManagedVar(void **handle, void **host_pointer, char *device, const char *name,
                                         int external, size_t size, int constant, int global) {
  engine_module *module = (engine_module *)handle;
  engine_variable *variable = engine_variable_declare(module, name, size);
  if (!variable || !host_pointer) return;
  engine_variable_manage(variable, host_pointer);
  remember((registered){.host = host_pointer, .module = module, .variable = variable});
}

/* A host variable that device code may name (heterogeneous memory): there is no such device here. */
CUDART_API void __cudaRegisterHostVar(void **handle, const char *name, char *host, size_t size) {
  (void)handle, (void)name, (void)host, (void)size;
}

CUDART_API void __cudaRegisterUnifiedTable(void **handle, void *table_address) { (void)handle, (void)table_address; }

/* Called before the first host access to a managed variable: from then on its pointer is valid. */
CUDART_API char __cudaInitModule(void **handle) {
  return engine_return(engine_module_ready((engine_module *)handle)) == cudaSuccess;
}

/* ---- the launch configuration ---- */

typedef struct configuration {
  dim3 grid, block;
  size_t shared;
  void *stream;
} configuration;
static _Thread_local FF_VEC(configuration) configurations;

CUDART_API unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, void *stream) {
  configuration pushed = {.grid = grid, .block = block, .shared = shared, .stream = stream};
  FF_PUSH(&configurations, pushed);
  return 0;
}

CUDART_API cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream) {
  if (!configurations.count) return engine_return(cudaErrorMissingConfiguration);
  configuration popped = configurations.items[--configurations.count];
  *grid = popped.grid;
  *block = popped.block;
  *shared = popped.shared;
  memcpy(stream, &popped.stream, sizeof popped.stream);
  if (!configurations.count) { /* nothing is kept by threads that end */
    free(configurations.items);
    memset(&configurations, 0, sizeof configurations);
  }
  return cudaSuccess;
}

CUDART_API cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host) {
  engine_function *function = cudart_function(host);
  if (!kernel) return engine_return(cudaErrorInvalidValue);
  *kernel = (cudaKernel_t)function;
  return function ? cudaSuccess : engine_return(cudaErrorInvalidDeviceFunction);
}

CUDART_API cudaError_t cudaGetKernel(cudaKernel_t *kernel, const void *host) { return __cudaGetKernel(kernel, host); }

CUDART_API cudaError_t cudaGetFuncBySymbol(cudaFunction_t *out, const void *symbol) {
  cudaKernel_t kernel;
  cudaError_t error = __cudaGetKernel(&kernel, symbol);
  if (!error && out) *out = (cudaFunction_t)(void *)kernel;
  return error || out ? error : engine_return(cudaErrorInvalidValue);
}
