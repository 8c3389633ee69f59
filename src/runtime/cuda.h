/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA driver API as farfault uses it: a table of functions from a library that is found when it is wanted. No
 * header of NVIDIA's is needed; numbers and layouts are those of the CUDA Driver API reference.
 *
 *   cuda_open("virtual" | "cuda" | PATH | NULL) -> driver->MemAlloc(...) -> cuda_close
 *
 * In a cuda_driver that cuda_open gave every function of cuda.def is there, those of cuda_newer.def
 * may be NULL; it is shared by all that opened the same library, and the library stays loaded as long as the process
 * (NVIDIA's does not like to be unloaded). */
#ifndef FF_RUNTIME_CUDA_H
#define FF_RUNTIME_CUDA_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"
#include "farfault/virtual.h"

typedef unsigned long long cuda_address, cuda_memory; /* CUdeviceptr, CUmemGenericAllocationHandle */
typedef struct cuda_context_ *cuda_context;
typedef struct cuda_stream_ *cuda_stream;
typedef struct cuda_event_ *cuda_event;
typedef struct cuda_module_ *cuda_module;
typedef struct cuda_function_ *cuda_function;

typedef struct cuda_green_ *cuda_green;             /* CUgreenCtx */
typedef struct cuda_description_ *cuda_description; /* CUdevResourceDesc */
typedef struct cuda_resource {                      /* CUdevResource */
  int type;                                         /* 1: SMs */
  unsigned char padding[92];
  union {
    struct {
      unsigned count, least, alignment;
    } sm;
    unsigned char room[48];
  };
} cuda_resource;
typedef struct cuda_uuid {
  unsigned char bytes[16];
} cuda_uuid;

typedef struct cuda_location {
  int type, id;
} cuda_location;                        /* CUmemLocation; type 1: a device */
typedef struct cuda_memory_properties { /* CUmemAllocationProp */
  int type;                             /* 1: pinned, the only one */
  int handle_types;
  cuda_location location;
  void *security;
  struct {
    unsigned char compression, rdma;
    unsigned short usage;
    unsigned char reserved[4];
  } flags;
} cuda_memory_properties;
/* CUmemAccessDesc; 3: read and write */
typedef struct cuda_memory_access {
  cuda_location location;
  int flags;
} cuda_memory_access;

enum { /* CUresult */
       CUDA_OK = 0,
       CUDA_INVALID_VALUE = 1,
       CUDA_OUT_OF_MEMORY = 2,
       CUDA_INVALID_IMAGE = 200,
       CUDA_NO_BINARY = 209,
       CUDA_INVALID_PTX = 218,
       CUDA_NOT_FOUND = 500,
       CUDA_NOT_READY = 600,
       CUDA_NOT_SUPPORTED = 801,
};
enum { CUDA_RESOURCE_SM = 1, CUDA_GREEN_DEFAULT_STREAM = 1 };
enum { CUDA_FUNCTION_DYNAMIC_SHARED = 8 }; /* bytes */
enum { CUDA_STREAM_NON_BLOCKING = 1, CUDA_EVENT_DISABLE_TIMING = 2 };
enum {
  CUDA_ATTRIBUTE_SM_COUNT = 16,
  CUDA_ATTRIBUTE_MAJOR = 75,
  CUDA_ATTRIBUTE_MINOR = 76,
  CUDA_ATTRIBUTE_VIRTUAL_MEMORY = 102
};

typedef struct cuda_driver {
#define X(name, symbol, parameters) int(*name) parameters;
#include "runtime/cuda.def"
#undef X
#define X(name, symbol, parameters) int(*name) parameters; /* NULL: an older driver */
#include "runtime/cuda_newer.def"
#undef X
  ff_virtual_declare_function *declare; /* NULL: not the virtual GPU */
  ff_virtual_time_function *host_time;
  ff_virtual_fault_function *fault;
  ff_virtual_physical_function *physical; /* NULL: the driver has no such function */
  bool is_virtual;
  char path[512]; /* of the library */
} cuda_driver;

/* `which` as FARFAULT_DRIVER says (that goes before it; NULL: NVIDIA's if it has a GPU, else the virtual one). cuInit
 * was called. The virtual GPU's settings are FARFAULT_MACHINE and the like (session/session.h), read by its first use.
 * FF_NOT_FOUND: there is no such library, or it has no GPU; FF_UNSUPPORTED: it lacks a function. */
ff_status cuda_open(const char *which, const cuda_driver **driver, ff_error *error);
/* "cuMemCreate: out of memory (CUDA_ERROR_OUT_OF_MEMORY)"; returns FF_NO_MEMORY for that one, else FF_INTERNAL. */
ff_status cuda_fail(const cuda_driver *driver, int result, const char *call, ff_error *error);

#endif
