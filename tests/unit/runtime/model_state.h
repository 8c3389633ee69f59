/* SPDX-License-Identifier: Apache-2.0 */
/* What the model driver's files share. One lock guards all of it; every function here is called with it held.
 *
 *   model_driver.c  the calls           model_memory.c  addresses, mappings, pieces of memory
 *   model_queue.c   streams, operations, their order, waiting    model_module.c  images
 *
 * completion  whether an operation has run; events, waiting calls and its operation hold references
 * piece       physical memory (a CUmemGenericAllocationHandle); lives while it has a handle or a mapping */
#ifndef MODEL_STATE_H
#define MODEL_STATE_H

#include <pthread.h>
#include <string.h>

#include "base/memory.h"
#include "model_driver.h"
#include "runtime/cuda.h"

enum { /* CUresult, in addition to those of cuda.h */
       MODEL_OK = 0,
       MODEL_INVALID_VALUE = 1,
       MODEL_OUT_OF_MEMORY = 2,
       MODEL_INVALID_DEVICE = 101,
       MODEL_INVALID_IMAGE = 200,
       MODEL_INVALID_CONTEXT = 201,
       MODEL_INVALID_HANDLE = 400,
       MODEL_NOT_FOUND = 500,
       MODEL_NOT_READY = 600,
       MODEL_ILLEGAL_ADDRESS = 700,
       MODEL_LAUNCH_RESOURCES = 701,
       MODEL_LAUNCH_FAILED = 719,
       MODEL_NOT_SUPPORTED = 801,
       MODEL_UNKNOWN = 999,
};

typedef struct known_kernel {
  char name[64];
  model_kernel_function *function;
  bool follows;
} known_kernel;

struct operation;
typedef struct completion {
  uint32_t references;
  bool done;
  int lost;                    /* it was dropped, with this error */
  uint64_t time;               /* operations that had run before it */
  struct operation *operation; /* NULL: done */
} completion;

typedef struct range {
  uint64_t begin, end;
} range;
typedef enum operation_kind {
  OPERATION_COPY,
  OPERATION_SET,
  OPERATION_KERNEL,
  OPERATION_RECORD,
  OPERATION_WAIT,
  OPERATION_HOST
} operation_kind;
typedef struct operation {
  operation_kind kind;
  struct operation *next; /* of its stream */
  struct cuda_stream_ *stream;
  uint64_t sequence, mark;
  completion *own, *awaited; /* awaited: of a wait */
  uint64_t to, from;         /* device addresses; 0: the host's */
  char *host_to;
  const char *host_from;
  char *staging; /* what was read at the call */
  uint64_t bytes, moved;
  unsigned char value;
  const known_kernel *kernel;
  model_launch launch;
  void *argument[MODEL_PARAMETERS], *argument_bytes;
  FF_VEC(range) touched;
  bool touched_known, running; /* running: handed to the thread of host functions */
  void (*function)(void *);
  void *data;
} operation;

struct cuda_stream_ {
  uint32_t device;
  bool blocking, null, destroyed;
  operation *first, *last;
  struct cuda_stream_ *next;
};
struct cuda_event_ {
  uint32_t device;
  bool timing;
  completion *recorded; /* NULL: never */
  struct cuda_event_ *next;
};
struct cuda_function_ {
  const known_kernel *kernel;
  char name[64];
  uint32_t size[MODEL_PARAMETERS], count, device;
  bool window;
};
struct cuda_module_ {
  uint32_t device;
  struct cuda_function_ functions[40];
  uint32_t count;
  struct cuda_module_ *next;
};
struct cuda_context_ {
  uint32_t device;
};

typedef struct piece {
  cuda_memory handle;
  uint32_t device, mappings;
  bool released;
  uint64_t bytes;
  char *data;
} piece;
typedef struct mapping {
  uint64_t address, bytes;
  piece *piece;
  unsigned char access[MODEL_DEVICES]; /* 1: read, 3: read and write */
  bool plain;                          /* of cuMemAlloc */
} mapping;
typedef struct reservation {
  uint64_t address, bytes;
  bool plain;
} reservation;
typedef struct host_allocation {
  char *address;
  uint64_t bytes;
} host_allocation;

typedef struct device_state {
  struct cuda_context_ context;
  struct cuda_stream_ null;
  uint32_t retained;
  int lost; /* the error of every call from now on */
  uint64_t used;
} device_state;

typedef struct model_state {
  pthread_mutex_t lock;
  pthread_cond_t changed, host_work; /* an operation ended; a host function is to be run */
  model_options options;
  uint64_t random, sequence, time, mark;
  device_state devices[MODEL_DEVICES];
  struct cuda_stream_ *streams; /* all but the null streams */
  struct cuda_event_ *events;
  struct cuda_module_ *modules;
  FF_VEC(reservation) reservations; /* by address */
  FF_VEC(mapping) mappings;         /* by address */
  FF_VEC(piece *) pieces;
  FF_VEC(host_allocation) hosts;
  uint64_t host_used, last_handle;
  FF_VEC(operation *) host_queue;
  uint64_t pending, calls[MODEL_ANY], activity;
  known_kernel kernels[64];
  uint32_t kernel_count;
  model_failure failures[16];
  uint32_t failure_count, violation_count;
  uint64_t failed;
  char violations[2048];
  bool thread_started, quiet; /* quiet: nothing is a violation just now */
} model_state;
extern model_state model;

uint64_t model_random(uint64_t below);
void model_violation(const char *format, ...) __attribute__((format(printf, 1, 2)));
bool model_fails(model_call call, int *error, bool *lost);

/* memory: CUresult numbers */
int memory_reserve(cuda_address *address, uint64_t bytes, uint64_t alignment, bool plain);
int memory_unreserve(uint64_t address, uint64_t bytes);
int memory_create(cuda_memory *memory, uint64_t bytes, uint32_t device);
int memory_release(cuda_memory memory);
int memory_map(uint64_t address, uint64_t bytes, cuda_memory memory, bool plain);
int memory_unmap(uint64_t address, uint64_t bytes);
int memory_access(uint64_t address, uint64_t bytes, const cuda_memory_access *access, size_t count);
int memory_allocate(cuda_address *address, uint64_t bytes, uint32_t device);
int memory_free(uint64_t address);
/* Between device memory and `host`; false, and a violation, at the first byte that device may not touch so. */
bool memory_read(uint32_t device, uint64_t address, void *to, uint64_t bytes, const char *who);
bool memory_write(uint32_t device, uint64_t address, const void *from, uint64_t bytes, const char *who);
/* Is all of it mapped and accessible? For the check at a call. */
bool memory_is_mapped(uint64_t address, uint64_t bytes);
host_allocation *memory_host_find(const void *address, uint64_t bytes);
void memory_reset(void);

/* queues */
operation *queue_make(operation_kind kind);
void queue_add(struct cuda_stream_ *stream, operation *op); /* takes it; its completion is op->own */
void queue_progress(void);                                  /* as eagerness says */
/* runs one operation on the way; false: there was nothing to run */
bool queue_step_towards(completion *wanted);
void queue_wait(completion *wanted);
void queue_wait_stream(struct cuda_stream_ *stream);
void queue_wait_device(uint32_t device);
void queue_lose(uint32_t device, int error); /* drops its pending operations */
void queue_reset(void);
completion *completion_hold(completion *one);
void completion_drop(completion *one);
/* The pending operation that touches [begin, end) of device memory, or of host memory; NULL: none. */
operation *queue_user(uint64_t begin, uint64_t end);
operation *queue_host_user(const char *begin, const char *end);
/* modules: the kernels of an image; false: it is none, or names one that was not registered */
bool module_read(struct cuda_module_ *module, const char *image);
const char *operation_name(const operation *op);
void queue_start_thread(void);
#endif
