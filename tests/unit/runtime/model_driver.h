/* SPDX-License-Identifier: Apache-2.0 */
/* The model driver: a stand-in for libcuda that runs what was asked of it as late, and in as strange an order, as CUDA
 * allows, so that what a program forgot to wait for shows as a wrong result. tests/model_driver.so; this is the side of
 * the tests.
 *
 *   model_load -> kernel (each) -> reset(options) -> the program -> violations, leaks
 *
 * operation   what a stream holds: a copy, a set, a kernel, an event's record or wait, a host function. None runs at its call;
 *             which one runs, and when, a seed decides among those that streams and events leave free. A
 *             synchronisation runs what it needs and nothing else. A copy may run in two parts with others between
 *             them.
 * violation   what a correct program never does, though a driver need not tell: memory unmapped under a pending operation,
 *             page-locked memory freed under one, an access to what is not mapped or not accessible, an argument that
 *             cannot be
 * module      a text "model\n", then a line "NAME SIZE SIZE ..." for each kernel with its parameters' bytes (an ELF magic may precede);
 *             or PTX, of which only the entries' names and parameters are read. NAME__window has six u32 more than
 *             NAME: the first block and the whole grid (ptx/rewrite/window.h)
 * failure     a call that fails because the test said so: the n-th, or by chance; or the context is lost from there on
 *
 * What always holds: the same options and the same calls of one thread give the same order and the same results; new
 * memory holds garbage; calls that release something do so even when they return an error, as CUDA's do with the errors
 * of earlier work. */
#ifndef MODEL_DRIVER_H
#define MODEL_DRIVER_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef enum model_call {
#define X(name, symbol, parameters) MODEL_##name,
#include "runtime/cuda.def"
#undef X
  MODEL_RUN_KERNEL, /* not calls: a kernel when it runs, */
  MODEL_RUN_COPY,   /* a copy when it runs: always lose the context */
  MODEL_ANY         /* any call that allocates, makes or queues something; never one that waits or releases */
} model_call;

enum { MODEL_DEVICES = 4, MODEL_PARAMETERS = 64 };

typedef enum model_pageable {                 /* an asynchronous copy of pageable memory: CUDA promises none of these */
                              MODEL_STAGED,   /* to the GPU: read at the call; from the GPU: done at the call */
                              MODEL_DEFERRED, /* as if it were page-locked */
                              MODEL_EITHER    /* now one, now the other */
} model_pageable;

typedef struct model_options {
  uint64_t seed;
  uint32_t devices;     /* 0: 1 */
  uint64_t memory;      /* bytes of each; 0: 1 GiB */
  uint64_t granularity; /* of mappings, a power of two; 0: 4 KiB */
  uint64_t host_memory; /* page-locked bytes that there are; 0: no limit */
  /* percent: the chance that a pending operation runs after a call, and then another; 0: only when needed */
  uint32_t eagerness;
  /* one runs after so long without a call; 0: 200. For programs that wait without the driver */
  uint32_t idle_ms;
  model_pageable pageable;
  bool verbose; /* each call on stderr */
} model_options;

typedef struct model_failure {
  model_call call;
  uint64_t at;          /* the at-th such call from now, from 1; 0: by chance */
  uint32_t per_million; /* the chance */
  int error;            /* 0: one that the call may return */
  /* the calling thread's context is lost with it: all pending work is dropped, every later call fails alike */
  bool lost;
} model_failure;

typedef struct model_counts {
  uint64_t streams, events, modules, reservations, mappings, handles, host_allocations, allocations, pending, contexts;
} model_counts;

/* What a kernel sees. On the GPU read and write check every byte and return false (zeros) where there is no memory; the
 * same kernel runs on anything else that has a read and a write. */
typedef struct model_launch {
  uint32_t grid[3], block[3], shared;
  uint32_t from[3], to[3]; /* the blocks to run: [from, to) of the grid; all of it but for windows */
  const void *const *arguments;
  uint32_t argument_count;
  uint32_t device;
  bool (*read)(struct model_launch *launch, uint64_t address, void *to, uint64_t bytes);
  bool (*write)(struct model_launch *launch, uint64_t address, const void *from, uint64_t bytes);
  int error;  /* set by the kernel: it failed with this CUresult */
  void *more; /* of read's and write's own */
} model_launch;
/* Does what the blocks do. Called without warning a second time with a read that gives zeros and a write that drops, to
 * learn what it touches, unless it was registered as one that follows pointers. */
typedef void model_kernel_function(model_launch *launch);

/* X(name, result, parameters) */
#define MODEL_CONTROLS(X)                                                                                 \
  X(kernel, void, (const char *name, model_kernel_function *function, bool follows))                      \
  X(reset, void, (const model_options *options))     /* forgets everything; kernels stay */               \
  X(inject, void, (const model_failure *failure))    /* one more; NULL: none from now on */               \
  X(failures, uint64_t, (void))                      /* how many calls failed because the test said so */ \
  X(lose, void, (uint32_t device, int error))        /* the context is lost now */                        \
  X(violations, uint32_t, (char *text, size_t room)) /* how many; the first ones as text */               \
  X(leaks, uint64_t, (char *text, size_t room))      /* how many things are left; as text */              \
  X(count, void, (model_counts * counts))                                                                 \
  X(calls, uint64_t, (model_call call)) /* since reset */                                                 \
  X(note, void, (const char *text))     /* into the trace, when it is verbose */

typedef struct model_driver {
#define X(name, result, parameters) result(*name) parameters;
  MODEL_CONTROLS(X)
#undef X
} model_driver;

/* The model at `path`; false and a line on stderr if it cannot be loaded. It stays loaded. */
static inline bool model_load(const char *path, model_driver *model) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
#define X(name, result, parameters)                                                      \
  if (!library || !(model->name = (result(*) parameters)dlsym(library, "model_" #name))) \
    return fprintf(stderr, "%s\n", dlerror()), false;
  MODEL_CONTROLS(X)
#undef X
  return true;
}
#endif
