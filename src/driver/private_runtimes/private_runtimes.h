/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA runtimes that are not ours on top of libcuda: those that nvcc links into a program, and those inside NVIDIA's
 * libraries (cuBLAS, cuDNN ...), stripped or not.
 *
 *   runtime --dlopen--> libcuda.so.1 --cuGetExportTable--> private tables (private_tables.c)
 *                                    --the driver API----> libcuda_*.c
 *
 * Besides the driver API such a runtime needs some private tables of functions. Sources: ZLUDA
 * (github.com/vosen/ZLUDA), and what was observed at this interface with programs of one's own. No code of NVIDIA's is
 * in here, and none is changed. FARFAULT_PRIVATE_RUNTIMES (`farfault run --private-runtimes`): "off" serves no table,
 * "trace" says which tables are asked for. The build option of that name leaves the folder out. */
#ifndef FF_DRIVER_PRIVATE_RUNTIMES_H
#define FF_DRIVER_PRIVATE_RUNTIMES_H

#include "driver/driver_api/libcuda.h"

/* ---- for libcuda_*.c ---- */

#ifdef FARFAULT_NO_PRIVATE_RUNTIMES
static inline const void *private_table_find(const CUuuid *id, const void *caller) { return NULL; }
static inline void private_storage_drop(CUcontext context) {}
static inline void private_module_gone(CUmodule module) {}
static inline bool private_is_runtime(const void *address) { return false; }
#else
/* The table with this identifier, for as long as the process lives; NULL: none, or they are off. The object that
 * `caller` lies in has a CUDA runtime inside, from then on. */
const void *private_table_find(const CUuuid *id, const void *caller);

/* The context was destroyed or reset: what runtimes keep with it is removed, each value handed to its `gone`. */
void private_storage_drop(CUcontext context);

/* The module, if there is such a one, is about to be unloaded: the tables do not hand it out any more. */
void private_module_gone(CUmodule module);

/* The object that `address` lies in has asked for a table. */
bool private_is_runtime(const void *address);
#endif

/* Under which name a call is told of in the calling function: the runtime's, if a runtime calls. */
#define private_call_name(driver, runtime) (private_is_runtime(__builtin_return_address(0)) ? (runtime) : (driver))

/* ---- within this folder, and for tests ---- */

bool private_runtimes_off(void);
void private_runtime_note(const void *address); /* private_is_runtime */

typedef void private_storage_gone(CUcontext context, void *key, void *value);

/* Context-local storage: what a runtime keeps with a context. `context` NULL: the current one. The key is an address in
 * the calling runtime. CUDA_ERROR_INVALID_CONTEXT: no such context; CUDA_ERROR_INVALID_HANDLE: nothing is stored under
 * that key. */
CUresult private_storage_put(CUcontext context, void *key, void *value, private_storage_gone *gone);
CUresult private_storage_remove(CUcontext context, void *key);
CUresult private_storage_get(void **value, CUcontext context, void *key);

typedef struct private_device {
  char uuid[16];
  int pci_domain, pci_bus, pci_device;
} private_device;

typedef struct private_question { /* what the answer to a runtime's check depends on, with its devices */
  uint32_t driver_version, version, process, thread; /* thread: the lower half of pthread_self() */
  const void *runtime_table, *integrity_table, *integrity_function;
  uint64_t unix_seconds;
} private_question;

/* Two little-endian numbers. */
void private_integrity_compute(const private_question *question, const private_device *devices, uint32_t count,
                               uint64_t result[2]);

#endif
