/* SPDX-License-Identifier: Apache-2.0 */
/* The binary interface of libcufile.so.0 (GPUDirect Storage), as NVIDIA's API reference guide and cufile.h have it:
 * layouts, numbers and names are theirs. */
#ifndef FF_CUFILE_H
#define FF_CUFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <time.h>

enum {
  CUFILE_SUCCESS = 0,
  CUFILE_DRIVER_NOT_INITIALIZED = 5001,
  CUFILE_UNSUPPORTED_LIMIT = 5003,
  CUFILE_IO_NOT_SUPPORTED = 5008,
  CUFILE_CUDA_DRIVER_ERROR = 5011,
  CUFILE_POINTER_RANGE_ERROR = 5014,
  CUFILE_INVALID_MAPPING_RANGE = 5017,
  CUFILE_INVALID_FILE_TYPE = 5018,
  CUFILE_INVALID_VALUE = 5022,
  CUFILE_MEMORY_ALREADY_REGISTERED = 5023,
  CUFILE_MEMORY_NOT_REGISTERED = 5024,
  CUFILE_HANDLE_NOT_REGISTERED = 5027,
  CUFILE_HANDLE_ALREADY_REGISTERED = 5028,
  CUFILE_GETNEWFD_FAILED = 5031,
  CUFILE_BATCH_FULL = 5037
};

/* `cuda` is a result of the driver API where `error` is CUFILE_CUDA_DRIVER_ERROR. */
typedef struct cufile_error {
  int error, cuda;
} cufile_error;

enum { CUFILE_OPAQUE_FD = 1 };
typedef struct cufile_description {
  int type;
  union {
    int fd;
    void *handle;
  } handle;
  const void *file_system;
} cufile_description;

/* Sizes in KiB. */
typedef struct cufile_properties {
  struct {
    unsigned major, minor;
    size_t poll_threshold, max_direct_io;
    unsigned status_flags, control_flags;
  } nvfs;
  unsigned features, max_device_cache, per_buffer_cache, max_pinned, max_batch, max_batch_timeout_ms;
} cufile_properties;

enum { CUFILE_READ = 0, CUFILE_WRITE = 1, CUFILE_BATCH = 1 };
enum { CUFILE_COMPLETE = 0x10, CUFILE_FAILED = 0x40 };

typedef struct cufile_request {
  int mode;
  struct {
    void *base;
    off_t file_offset, base_offset;
    size_t size;
  } batch;
  void *file;
  int operation;
  void *cookie;
} cufile_request;

typedef struct cufile_event {
  void *cookie;
  int status;
  size_t result; /* bytes, or what the call would have returned */
} cufile_event;

typedef struct CUstream_st *cufile_stream;

#define CUFILE_API __attribute__((visibility("default")))

CUFILE_API cufile_error cuFileDriverOpen(void);
CUFILE_API cufile_error cuFileDriverClose(void);
CUFILE_API cufile_error cuFileDriverClose_v2(void);
CUFILE_API long cuFileUseCount(void);
CUFILE_API cufile_error cuFileGetVersion(int *version);
CUFILE_API cufile_error cuFileDriverGetProperties(cufile_properties *properties);
/* Sizes in KiB. Without effect while the driver is open. */
CUFILE_API cufile_error cuFileDriverSetPollMode(bool poll, size_t threshold_kib);
CUFILE_API cufile_error cuFileDriverSetMaxDirectIOSize(size_t kib);
CUFILE_API cufile_error cuFileDriverSetMaxCacheSize(size_t kib);
CUFILE_API cufile_error cuFileDriverSetMaxPinnedMemSize(size_t kib);
CUFILE_API cufile_error cuFileHandleRegister(void **file, cufile_description *description);
CUFILE_API void cuFileHandleDeregister(void *file);
CUFILE_API cufile_error cuFileBufRegister(const void *base, size_t bytes, int flags);
CUFILE_API cufile_error cuFileBufDeregister(const void *base);
CUFILE_API ssize_t cuFileRead(void *file, void *base, size_t size, off_t file_offset, off_t base_offset);
CUFILE_API ssize_t cuFileWrite(void *file, const void *base, size_t size, off_t file_offset, off_t base_offset);
CUFILE_API cufile_error cuFileReadAsync(void *file, void *base, size_t *size, off_t *file_offset, off_t *base_offset,
                                        ssize_t *done, cufile_stream stream);
CUFILE_API cufile_error cuFileWriteAsync(void *file, void *base, size_t *size, off_t *file_offset, off_t *base_offset,
                                         ssize_t *done, cufile_stream stream);
CUFILE_API cufile_error cuFileStreamRegister(cufile_stream stream, unsigned flags);
CUFILE_API cufile_error cuFileStreamDeregister(cufile_stream stream);
CUFILE_API cufile_error cuFileBatchIOSetUp(void **batch, unsigned capacity);
CUFILE_API cufile_error cuFileBatchIOSubmit(void *batch, unsigned count, cufile_request *requests, unsigned flags);
CUFILE_API cufile_error cuFileBatchIOGetStatus(void *batch, unsigned min, unsigned *count, cufile_event *events,
                                               struct timespec *timeout);
CUFILE_API cufile_error cuFileBatchIOCancel(void *batch);
CUFILE_API void cuFileBatchIODestroy(void *batch);

#endif
