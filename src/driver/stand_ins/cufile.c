/* SPDX-License-Identifier: Apache-2.0 */
/* libcufile.so.0: files read into and written from the GPU's memory, through the driver API of whichever libcuda.so.1
 * the process has. The file's bytes pass a pinned buffer, a piece at a time; the virtual driver is told that these
 * copies are of a file's bytes (farfaultFiles), so that each takes the time of the machine's drive, too. Memory of the
 * host is read and written where it is, which costs the GPU nothing.
 *
 * Calls on a stream wait for what is in it and then move the data; so does each request of a batch when it is
 * submitted. One lock holds for all of it. */
#define _GNU_SOURCE /* O_DIRECT */
#include "base/forks.h"
#include "driver/stand_ins/cufile.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"

enum {
  PIECE_KIB = 16384, /* NVIDIA's default for a direct transfer */
  BATCH_MAX = 128,   /* and for a batch */
  VERSION = 1130,    /* 1.13, that of CUDA 12.8 */
  MEMORY_TYPE = 2,   /* CU_POINTER_ATTRIBUTE_MEMORY_TYPE */
  IS_MANAGED = 8,    /* CU_POINTER_ATTRIBUTE_IS_MANAGED */
  MEMORY_DEVICE = 2
};
static const size_t piece_bytes = (size_t)PIECE_KIB << 10;

/* What is used of the driver: name, variable, parameters. Every call returns 0 for success. */
#define DRIVER_CALLS(X)                                                     \
  X(cuInit, init, (unsigned))                                               \
  X(cuDeviceGet, device_get, (int *, int))                                  \
  X(cuDevicePrimaryCtxRetain, primary_retain, (void **, int))               \
  X(cuCtxGetCurrent, get_current, (void **))                                \
  X(cuCtxSetCurrent, set_current, (void *))                                 \
  X(cuMemHostAlloc, host_alloc, (void **, size_t, unsigned))                \
  X(cuPointerGetAttribute, attribute, (void *, int, uint64_t))              \
  X(cuMemGetAddressRange_v2, range, (uint64_t *, size_t *, uint64_t))       \
  X(cuMemcpyHtoDAsync_v2, upload, (uint64_t, const void *, size_t, void *)) \
  X(cuMemcpyDtoHAsync_v2, download, (void *, uint64_t, size_t, void *))     \
  X(cuStreamSynchronize, wait, (void *))

static struct {
#define X(name, variable, parameters) int(*variable) parameters;
  DRIVER_CALLS(X)
#undef X
  int (*files)(int); /* NULL: this driver does not ask */
} driver;

typedef struct open_file {
  int fd, io; /* the program's; what is read and written, without O_DIRECT */
  dev_t device;
  ino_t inode;
} open_file;

typedef struct registered {
  const void *base;
  size_t bytes;
} registered;

typedef struct batch {
  unsigned capacity, count; /* of events that wait to be asked for */
  cufile_event events[BATCH_MAX];
} batch;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
FF_FREE_IN_CHILD(lock)
static FF_VEC(open_file *) files;
static FF_VEC(registered) buffers;
static FF_VEC(batch *) batches;
static FF_VEC(cufile_stream) streams;
static void *piece; /* pinned */
static long uses;

static cufile_error result_of(int error) { return (cufile_error){.error = error}; }

static cufile_error cuda_result(int result) {
  return (cufile_error){.error = result ? CUFILE_CUDA_DRIVER_ERROR : CUFILE_SUCCESS, .cuda = result};
}

static cufile_error unlocked(cufile_error result) {
  pthread_mutex_unlock(&lock);
  return result;
}

/* ---- the driver ---- */

static int find_driver(void) {
  enum { NOT_FOUND = 500, NOT_INITIALIZED = 3 };
  void *library = dlopen("libcuda.so.1", RTLD_NOW);
  if (!library) fprintf(stderr, "farfault: cuFile: %s\n", dlerror());
  if (!library) return NOT_INITIALIZED;
#define X(name, variable, parameters)                                     \
  *(void **)&driver.variable = dlsym(library, #name);                     \
  if (!driver.variable) {                                                 \
    fprintf(stderr, "farfault: cuFile: libcuda.so.1 has no %s\n", #name); \
    return NOT_FOUND;                                                     \
  }
  DRIVER_CALLS(X)
#undef X
  *(void **)&driver.files = dlsym(library, "farfaultFiles");
  return driver.init(0);
}

/* The calling thread's context, device 0's primary one if it has none; the first time also the pinned buffer. */
static int start(void) {
  void *context = NULL;
  int device, result = piece ? 0 : find_driver();
  if (!result) result = driver.get_current(&context);
  if (!result && !context) {
    result = driver.device_get(&device, 0);
    if (!result) result = driver.primary_retain(&context, device);
    if (!result) result = driver.set_current(context);
  }
  if (result || piece) return result;
  result = driver.host_alloc(&piece, piece_bytes, 1 /* portable: for every context */);
  if (!result)
    fputs(
        "farfault: cuFile is farfault's stand-in: a transfer takes the time of a copy between pinned memory and the GPU, and "
        "of the drive if the machine has one (below_host)\n",
        stderr);
  return result;
}

CUFILE_API cufile_error cuFileDriverOpen(void) {
  pthread_mutex_lock(&lock);
  int result = start();
  if (!result) uses++;
  return unlocked(cuda_result(result));
}

static void forget(open_file *file) {
  if (file->io != file->fd) close(file->io);
  free(file);
}

CUFILE_API cufile_error cuFileDriverClose(void) {
  pthread_mutex_lock(&lock);
  if (!uses) return unlocked(result_of(CUFILE_DRIVER_NOT_INITIALIZED));
  if (--uses) return unlocked(result_of(CUFILE_SUCCESS));
  for (size_t i = 0; i < files.count; i++) forget(files.items[i]);
  files.count = buffers.count = streams.count = 0;
  return unlocked(result_of(CUFILE_SUCCESS));
}

CUFILE_API cufile_error cuFileDriverClose_v2(void) { return cuFileDriverClose(); }

CUFILE_API long cuFileUseCount(void) {
  pthread_mutex_lock(&lock);
  long count = uses;
  pthread_mutex_unlock(&lock);
  return count;
}

CUFILE_API cufile_error cuFileGetVersion(int *version) {
  if (!version) return result_of(CUFILE_INVALID_VALUE);
  *version = VERSION;
  return result_of(CUFILE_SUCCESS);
}

/* What programs are told, and may set; nothing here goes by it. */
enum { NVME = 1 << 4, POLLS = 1 << 0, COMPATIBLE = 1 << 1, BATCHES = 1 << 1, STREAMS = 1 << 2 };
static cufile_properties told = {
    .nvfs = {.poll_threshold = 4, .max_direct_io = PIECE_KIB, .status_flags = NVME, .control_flags = COMPATIBLE},
    .features = BATCHES | STREAMS,
    .max_device_cache = 131072,
    .per_buffer_cache = 1024,
    .max_pinned = 33554432,
    .max_batch = BATCH_MAX};

CUFILE_API cufile_error cuFileDriverGetProperties(cufile_properties *properties) {
  if (!properties) return result_of(CUFILE_INVALID_VALUE);
  pthread_mutex_lock(&lock);
  *properties = told;
  return unlocked(result_of(CUFILE_SUCCESS));
}

CUFILE_API cufile_error cuFileDriverSetPollMode(bool poll, size_t threshold_kib) {
  pthread_mutex_lock(&lock);
  if (!uses) {
    told.nvfs.control_flags = COMPATIBLE | (poll ? POLLS : 0);
    told.nvfs.poll_threshold = threshold_kib;
  }
  return unlocked(result_of(CUFILE_SUCCESS));
}

CUFILE_API cufile_error cuFileDriverSetMaxDirectIOSize(size_t kib) {
  if (!kib) return result_of(CUFILE_INVALID_VALUE);
  pthread_mutex_lock(&lock);
  if (!uses) told.nvfs.max_direct_io = kib;
  return unlocked(result_of(CUFILE_SUCCESS));
}

static cufile_error set_limit(unsigned *limit, size_t kib) {
  if (!kib) return result_of(CUFILE_INVALID_VALUE);
  if (kib > UINT_MAX) return result_of(CUFILE_UNSUPPORTED_LIMIT);
  pthread_mutex_lock(&lock);
  if (!uses) *limit = (unsigned)kib;
  return unlocked(result_of(CUFILE_SUCCESS));
}

CUFILE_API cufile_error cuFileDriverSetMaxCacheSize(size_t kib) { return set_limit(&told.max_device_cache, kib); }
CUFILE_API cufile_error cuFileDriverSetMaxPinnedMemSize(size_t kib) { return set_limit(&told.max_pinned, kib); }

/* ---- files ---- */

static size_t find_file(const void *file) {
  size_t i = 0;
  while (i < files.count && files.items[i] != file) i++;
  return i;
}

static int register_file(void **file, const cufile_description *description) {
  struct stat is;
  int fd = description->handle.fd, flags = fcntl(fd, F_GETFL), io = fd;
  if (flags < 0 || fstat(fd, &is)) return CUFILE_INVALID_VALUE;
  if (!S_ISREG(is.st_mode) && !S_ISBLK(is.st_mode)) return CUFILE_INVALID_FILE_TYPE;
  for (size_t i = 0; i < files.count; i++)
    if (files.items[i]->fd == fd && files.items[i]->device == is.st_dev && files.items[i]->inode == is.st_ino)
      return CUFILE_HANDLE_ALREADY_REGISTERED;
  if (flags & O_DIRECT) { /* any offset and size will do for cuFile, and not for such a descriptor */
    char path[40];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    io = open(path, (flags & O_ACCMODE) | O_CLOEXEC);
    if (io < 0) return CUFILE_GETNEWFD_FAILED;
  }
  open_file *made = ff_alloc(sizeof *made);
  *made = (open_file){.fd = fd, .io = io, .device = is.st_dev, .inode = is.st_ino};
  FF_PUSH(&files, made);
  *file = made;
  return CUFILE_SUCCESS;
}

CUFILE_API cufile_error cuFileHandleRegister(void **file, cufile_description *description) {
  if (!file || !description) return result_of(CUFILE_INVALID_VALUE);
  if (description->type != CUFILE_OPAQUE_FD) return result_of(CUFILE_IO_NOT_SUPPORTED);
  pthread_mutex_lock(&lock);
  int result = start();
  if (result) return unlocked(cuda_result(result));
  if (!uses) uses = 1; /* opened by its first use */
  return unlocked(result_of(register_file(file, description)));
}

CUFILE_API void cuFileHandleDeregister(void *file) {
  pthread_mutex_lock(&lock);
  size_t i = find_file(file);
  if (i < files.count) {
    forget(files.items[i]);
    files.items[i] = files.items[--files.count];
  }
  pthread_mutex_unlock(&lock);
}

/* ---- memory ---- */

static size_t find_buffer(const void *base) {
  size_t i = 0;
  while (i < buffers.count && buffers.items[i].base != base) i++;
  return i;
}

CUFILE_API cufile_error cuFileBufRegister(const void *base, size_t bytes, int flags) {
  (void)flags;
  if (!base || !bytes) return result_of(CUFILE_INVALID_VALUE);
  pthread_mutex_lock(&lock);
  bool known = find_buffer(base) < buffers.count;
  if (!known) FF_PUSH(&buffers, ((registered){.base = base, .bytes = bytes}));
  return unlocked(result_of(known ? CUFILE_MEMORY_ALREADY_REGISTERED : CUFILE_SUCCESS));
}

CUFILE_API cufile_error cuFileBufDeregister(const void *base) {
  pthread_mutex_lock(&lock);
  size_t i = find_buffer(base);
  bool known = i < buffers.count;
  if (known) buffers.items[i] = buffers.items[--buffers.count];
  return unlocked(result_of(known ? CUFILE_SUCCESS : CUFILE_MEMORY_NOT_REGISTERED));
}

/* 0, or the error of a transfer of so many bytes at base + offset; whether that is memory that the GPU copies. */
static int look_at_memory(const void *base, off_t offset, size_t size, bool *by_gpu) {
  unsigned type = 0, managed = 0;
  uint64_t begin, address = (uint64_t)(uintptr_t)base + (uint64_t)offset;
  size_t bytes, at = find_buffer(base);
  if (at < buffers.count &&
      ((uint64_t)offset > buffers.items[at].bytes || size > buffers.items[at].bytes - (uint64_t)offset))
    return CUFILE_INVALID_MAPPING_RANGE;
  *by_gpu = !driver.attribute(&type, MEMORY_TYPE, address) &&
            (type == MEMORY_DEVICE || (!driver.attribute(&managed, IS_MANAGED, address) && (managed & 1)));
  if (!*by_gpu) return 0;
  if (driver.range(&begin, &bytes, address) || address < begin || size > bytes - (address - begin))
    return CUFILE_POINTER_RANGE_ERROR;
  return 0;
}

/* ---- transfers ---- */

/* As pread and pwrite, but until it is done or the file ends; an error after the first bytes ends it too. */
static ssize_t move_file(const open_file *file, bool write, char *memory, size_t size, off_t offset) {
  size_t done = 0;
  while (done < size) {
    ssize_t n = write ? pwrite(file->io, memory + done, size - done, offset + (off_t)done)
                      : pread(file->io, memory + done, size - done, offset + (off_t)done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && !done) return -1;
    if (n <= 0) break;
    done += (size_t)n;
  }
  return (ssize_t)done;
}

static ssize_t move_piece(const open_file *file, bool write, uint64_t memory, size_t size, off_t offset,
                          cufile_stream stream) {
  int result = 0;
  if (write) {
    result = driver.download(piece, memory, size, stream);
    if (!result) result = driver.wait(stream);
    return result ? -CUFILE_CUDA_DRIVER_ERROR : move_file(file, true, piece, size, offset);
  }
  ssize_t read = move_file(file, false, piece, size, offset);
  if (read <= 0) return read;
  result = driver.upload(memory, piece, (size_t)read, stream);
  if (!result) result = driver.wait(stream);
  return result ? -CUFILE_CUDA_DRIVER_ERROR : read;
}

/* Bytes moved; -1 with errno, or an error of cuFile's below that. */
static ssize_t transfer(const void *file, bool write, void *base, size_t size, off_t file_offset, off_t base_offset,
                        cufile_stream stream) {
  size_t at = find_file(file), done = 0;
  bool by_gpu;
  if (at == files.count) return -CUFILE_HANDLE_NOT_REGISTERED;
  if (!base || file_offset < 0 || base_offset < 0 || size > SSIZE_MAX) return -CUFILE_INVALID_VALUE;
  if (start()) return -CUFILE_CUDA_DRIVER_ERROR;
  if (fcntl(files.items[at]->fd, F_GETFD) < 0) return -1;
  int error = look_at_memory(base, base_offset, size, &by_gpu);
  if (error) return -error;
  if (!by_gpu) return move_file(files.items[at], write, (char *)base + base_offset, size, file_offset);
  while (done < size) {
    size_t part = size - done < piece_bytes ? size - done : piece_bytes;
    if (driver.files) driver.files(1);
    ssize_t moved = move_piece(files.items[at], write, (uint64_t)(uintptr_t)base + (uint64_t)base_offset + done, part,
                               file_offset + (off_t)done, stream);
    if (driver.files) driver.files(0);
    if (moved < 0 && !done) return moved;
    if (moved > 0) done += (size_t)moved;
    if (moved < (ssize_t)part) break;
  }
  return (ssize_t)done;
}

static ssize_t transfer_now(const void *file, bool write, void *base, size_t size, off_t file_offset,
                            off_t base_offset) {
  pthread_mutex_lock(&lock);
  ssize_t done = transfer(file, write, base, size, file_offset, base_offset, NULL);
  pthread_mutex_unlock(&lock);
  return done;
}

CUFILE_API ssize_t cuFileRead(void *file, void *base, size_t size, off_t file_offset, off_t base_offset) {
  return transfer_now(file, false, base, size, file_offset, base_offset);
}

CUFILE_API ssize_t cuFileWrite(void *file, const void *base, size_t size, off_t file_offset, off_t base_offset) {
  return transfer_now(file, true, (void *)(uintptr_t)base, size, file_offset, base_offset);
}

/* ---- on a stream ---- */

static size_t find_stream(cufile_stream stream) {
  size_t i = 0;
  while (i < streams.count && streams.items[i] != stream) i++;
  return i;
}

CUFILE_API cufile_error cuFileStreamRegister(cufile_stream stream, unsigned flags) {
  if (flags > 15) return result_of(CUFILE_INVALID_VALUE);
  pthread_mutex_lock(&lock);
  if (find_stream(stream) == streams.count) FF_PUSH(&streams, stream);
  return unlocked(result_of(CUFILE_SUCCESS));
}

CUFILE_API cufile_error cuFileStreamDeregister(cufile_stream stream) {
  pthread_mutex_lock(&lock);
  size_t i = find_stream(stream);
  bool known = i < streams.count;
  if (known) streams.items[i] = streams.items[--streams.count];
  return unlocked(result_of(known ? CUFILE_SUCCESS : CUFILE_INVALID_VALUE));
}

/* What the pointers point to is read when all before it in the stream has been done. */
static cufile_error transfer_in_stream(void *file, bool write, void *base, const size_t *size, const off_t *file_offset,
                                       const off_t *base_offset, ssize_t *done, cufile_stream stream) {
  if (!size || !file_offset || !base_offset || !done) return result_of(CUFILE_INVALID_VALUE);
  pthread_mutex_lock(&lock);
  if (find_file(file) == files.count) return unlocked(result_of(CUFILE_HANDLE_NOT_REGISTERED));
  pthread_mutex_unlock(&lock); /* a function of the program's in the stream may call cuFile */
  int result = driver.wait(stream);
  if (result) return cuda_result(result);
  pthread_mutex_lock(&lock);
  *done = transfer(file, write, base, *size, *file_offset, *base_offset, stream);
  if (*done == -1) *done = -errno;
  return unlocked(result_of(CUFILE_SUCCESS));
}

CUFILE_API cufile_error cuFileReadAsync(void *file, void *base, size_t *size, off_t *file_offset, off_t *base_offset,
                                        ssize_t *done, cufile_stream stream) {
  return transfer_in_stream(file, false, base, size, file_offset, base_offset, done, stream);
}

CUFILE_API cufile_error cuFileWriteAsync(void *file, void *base, size_t *size, off_t *file_offset, off_t *base_offset,
                                         ssize_t *done, cufile_stream stream) {
  return transfer_in_stream(file, true, base, size, file_offset, base_offset, done, stream);
}

/* ---- batches ---- */

static batch *find_batch(const void *handle) {
  for (size_t i = 0; i < batches.count; i++)
    if (batches.items[i] == handle) return batches.items[i];
  return NULL;
}

CUFILE_API cufile_error cuFileBatchIOSetUp(void **handle, unsigned capacity) {
  if (!handle || !capacity) return result_of(CUFILE_INVALID_VALUE);
  if (capacity > BATCH_MAX) return result_of(CUFILE_UNSUPPORTED_LIMIT);
  batch *made = ff_alloc(sizeof *made);
  made->capacity = capacity;
  pthread_mutex_lock(&lock);
  FF_PUSH(&batches, made);
  *handle = made;
  return unlocked(result_of(CUFILE_SUCCESS));
}

CUFILE_API cufile_error cuFileBatchIOSubmit(void *handle, unsigned count, cufile_request *requests, unsigned flags) {
  if (!requests || !count || flags) return result_of(CUFILE_INVALID_VALUE);
  pthread_mutex_lock(&lock);
  batch *to = find_batch(handle);
  if (!to) return unlocked(result_of(CUFILE_INVALID_VALUE));
  if (count > to->capacity - to->count) return unlocked(result_of(CUFILE_BATCH_FULL));
  for (unsigned i = 0; i < count; i++)
    if (requests[i].mode != CUFILE_BATCH || (unsigned)requests[i].operation > CUFILE_WRITE)
      return unlocked(result_of(CUFILE_INVALID_VALUE));
  for (unsigned i = 0; i < count; i++) {
    const cufile_request *r = &requests[i];
    ssize_t done = transfer(r->file, r->operation == CUFILE_WRITE, r->batch.base, r->batch.size, r->batch.file_offset,
                            r->batch.base_offset, NULL);
    if (done == -1) done = -errno;
    to->events[to->count++] = (cufile_event){
        .cookie = r->cookie, .status = done < 0 ? CUFILE_FAILED : CUFILE_COMPLETE, .result = (size_t)done};
  }
  return unlocked(result_of(CUFILE_SUCCESS));
}

/* All that was submitted is done, so there is nothing to wait for. */
CUFILE_API cufile_error cuFileBatchIOGetStatus(void *handle, unsigned min, unsigned *count, cufile_event *events,
                                               struct timespec *timeout) {
  (void)timeout;
  if (!count || !events || min > *count) return result_of(CUFILE_INVALID_VALUE);
  pthread_mutex_lock(&lock);
  batch *of = find_batch(handle);
  if (!of) return unlocked(result_of(CUFILE_INVALID_VALUE));
  unsigned taken = *count < of->count ? *count : of->count;
  for (unsigned i = 0; i < taken; i++) events[i] = of->events[i];
  for (unsigned i = taken; i < of->count; i++) of->events[i - taken] = of->events[i];
  of->count -= taken;
  *count = taken;
  return unlocked(result_of(CUFILE_SUCCESS));
}

/* Nothing is left to cancel; its events can still be asked for. */
CUFILE_API cufile_error cuFileBatchIOCancel(void *handle) {
  pthread_mutex_lock(&lock);
  bool known = find_batch(handle);
  return unlocked(result_of(known ? CUFILE_SUCCESS : CUFILE_INVALID_VALUE));
}

CUFILE_API void cuFileBatchIODestroy(void *handle) {
  pthread_mutex_lock(&lock);
  for (size_t i = 0; i < batches.count; i++) {
    if (batches.items[i] != handle) continue;
    free(batches.items[i]);
    batches.items[i] = batches.items[--batches.count];
    break;
  }
  pthread_mutex_unlock(&lock);
}
