/* SPDX-License-Identifier: Apache-2.0 */
/* A program that is linked with libcufile: it moves files to and from memory of the device, managed memory and the
 * host's, and asks for what has to fail. Arguments: a folder for its files, and what to do: "all"; "read" or "copy":
 * 40 MiB get to the device by cuFileRead, or from pinned memory by copies of as many pieces. It says what was wrong,
 * and nothing if all was right. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "driver/stand_ins/cufile.h"
#include "driver_call.h"

enum { BYTES = 40 << 20, PIECE = 16 << 20, SMALL = 100000 };

static int wrong;
#define EXPECT(what, wanted)                                                        \
  do {                                                                              \
    long long got_ = (long long)(what), wanted_ = (long long)(wanted);              \
    if (got_ != wanted_) {                                                          \
      printf("line %d: %s is %lld and not %lld\n", __LINE__, #what, got_, wanted_); \
      wrong = 1;                                                                    \
    }                                                                               \
  } while (0)

static unsigned char data[BYTES], back[BYTES];

static void *device_memory(size_t bytes) {
  uint64_t address;
  CALL(cuMemAlloc_v2, (uint64_t *, size_t), &address, bytes);
  return (void *)(uintptr_t)address;
}

static void get(const void *from, size_t bytes) {
  CALL(cuMemcpyDtoH_v2, (void *, uint64_t, size_t), back, (uint64_t)(uintptr_t)from, bytes);
}

static void clear(void *memory, size_t bytes) {
  CALL(cuMemsetD8_v2, (uint64_t, unsigned char, size_t), (uint64_t)(uintptr_t)memory, 0xee, bytes);
}

static int make_file(const char *folder, const char *name, size_t bytes, int flags) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
  if (fd < 0 || write(fd, data, bytes) != (ssize_t)bytes || fsync(fd)) exit(4);
  if (!flags) return fd;
  close(fd);
  return open(path, O_RDWR | flags);
}

static void *registered(int fd) {
  void *file = NULL;
  cufile_description of = {.type = CUFILE_OPAQUE_FD, .handle.fd = fd};
  EXPECT(cuFileHandleRegister(&file, &of).error, 0);
  return file;
}

static void synchronous(void *file, int fd, void *memory) {
  clear(memory, SMALL);
  EXPECT(cuFileRead(file, memory, 5000, 123, 77), 5000);
  get(memory, SMALL);
  EXPECT(memcmp(back + 77, data + 123, 5000), 0);
  EXPECT(back[76], 0xee);
  EXPECT(back[5077], 0xee);
  clear(memory, SMALL);
  EXPECT(cuFileRead(file, memory, SMALL, SMALL - 10, 0), 10); /* the file ends */
  get(memory, SMALL);
  EXPECT(memcmp(back, data + SMALL - 10, 10), 0);
  EXPECT(back[10], 0xee);
  EXPECT(cuFileRead(file, memory, 10, SMALL, 0), 0);
  EXPECT(cuFileRead(file, memory, 0, 0, 0), 0);
  EXPECT(cuFileWrite(file, memory, 10, SMALL + 5, 0), 10); /* grows the file */
  EXPECT(pread(fd, back, 100, SMALL), 15);
  EXPECT(memcmp(back + 5, data + SMALL - 10, 10), 0);
  EXPECT(back[0], 0);
  EXPECT(ftruncate(fd, SMALL), 0);
}

static void bad(void *file, int fd, void *memory) {
  void *other;
  int pipes[2];
  cufile_description of = {.type = CUFILE_OPAQUE_FD, .handle.fd = fd};
  EXPECT(cuFileHandleRegister(&other, &of).error, CUFILE_HANDLE_ALREADY_REGISTERED);
  EXPECT(cuFileHandleRegister(NULL, &of).error, CUFILE_INVALID_VALUE);
  of.handle.fd = -1;
  EXPECT(cuFileHandleRegister(&other, &of).error, CUFILE_INVALID_VALUE);
  of.type = 3;
  EXPECT(cuFileHandleRegister(&other, &of).error, CUFILE_IO_NOT_SUPPORTED);
  EXPECT(pipe(pipes), 0);
  of = (cufile_description){.type = CUFILE_OPAQUE_FD, .handle.fd = pipes[0]};
  EXPECT(cuFileHandleRegister(&other, &of).error, CUFILE_INVALID_FILE_TYPE);
  EXPECT(cuFileRead(memory, memory, 1, 0, 0), -CUFILE_HANDLE_NOT_REGISTERED);
  EXPECT(cuFileRead(file, NULL, 1, 0, 0), -CUFILE_INVALID_VALUE);
  EXPECT(cuFileRead(file, memory, 1, -1, 0), -CUFILE_INVALID_VALUE);
  EXPECT(cuFileRead(file, memory, 1, 0, -1), -CUFILE_INVALID_VALUE);
  EXPECT(cuFileRead(file, memory, SMALL, 0, BYTES - 10), -CUFILE_POINTER_RANGE_ERROR);
  EXPECT(cuFileBufRegister(memory, 1000, 0).error, 0);
  EXPECT(cuFileBufRegister(memory, 1000, 0).error, CUFILE_MEMORY_ALREADY_REGISTERED);
  EXPECT(cuFileRead(file, memory, 1000, 0, 0), 1000);
  EXPECT(cuFileRead(file, memory, 1000, 0, 1), -CUFILE_INVALID_MAPPING_RANGE);
  EXPECT(cuFileBufDeregister(memory).error, 0);
  EXPECT(cuFileBufDeregister(memory).error, CUFILE_MEMORY_NOT_REGISTERED);
  EXPECT(cuFileBufRegister(memory, 0, 0).error, CUFILE_INVALID_VALUE);
  errno = 0;
  EXPECT(cuFileRead(file, (void *)8, 1, 0, 0), -1); /* no memory */
  EXPECT(errno, EFAULT);
}

static void other_memory(void *file) {
  uint64_t managed;
  static unsigned char host[SMALL];
  CALL(cuMemAllocManaged, (uint64_t *, size_t, unsigned), &managed, SMALL, 1);
  EXPECT(cuFileRead(file, (void *)(uintptr_t)managed, SMALL, 0, 0), SMALL);
  EXPECT(memcmp((void *)(uintptr_t)managed, data, SMALL), 0);
  EXPECT(cuFileRead(file, host, SMALL, 0, 0), SMALL);
  EXPECT(memcmp(host, data, SMALL), 0);
}

/* The size is what a function in the stream makes it. */
static void make_size(void *size) { *(size_t *)size = 3000; }

static void in_stream(void *file, int fd, void *memory) {
  cufile_stream stream;
  size_t size = 1;
  off_t at = 500, offset = 9;
  ssize_t done = -7;
  CALL(cuStreamCreate, (cufile_stream *, unsigned), &stream, 1);
  EXPECT(cuFileStreamRegister(stream, 0).error, 0);
  EXPECT(cuFileStreamRegister(stream, 16).error, CUFILE_INVALID_VALUE);
  CALL(cuMemsetD8Async, (uint64_t, unsigned char, size_t, cufile_stream), (uint64_t)(uintptr_t)memory, 0xdd, SMALL,
       stream);
  CALL(cuLaunchHostFunc, (cufile_stream, void (*)(void *), void *), stream, make_size, &size);
  EXPECT(cuFileReadAsync(file, memory, &size, &at, &offset, &done, stream).error, 0);
  CALL(cuStreamSynchronize, (cufile_stream), stream);
  EXPECT(done, 3000);
  get(memory, SMALL);
  EXPECT(memcmp(back + 9, data + 500, 3000), 0);
  EXPECT(back[8], 0xdd);
  EXPECT(back[3009], 0xdd);
  at = SMALL;
  EXPECT(cuFileWriteAsync(file, memory, &size, &at, &offset, &done, stream).error, 0);
  CALL(cuStreamSynchronize, (cufile_stream), stream);
  EXPECT(done, 3000);
  EXPECT(pread(fd, back, SMALL, SMALL), 3000);
  EXPECT(memcmp(back, data + 500, 3000), 0);
  EXPECT(ftruncate(fd, SMALL), 0);
  EXPECT(cuFileReadAsync(file, memory, NULL, &at, &offset, &done, stream).error, CUFILE_INVALID_VALUE);
  EXPECT(cuFileReadAsync(memory, memory, &size, &at, &offset, &done, stream).error, CUFILE_HANDLE_NOT_REGISTERED);
  EXPECT(cuFileStreamDeregister(stream).error, 0);
  EXPECT(cuFileStreamDeregister(stream).error, CUFILE_INVALID_VALUE);
}

static void in_batch(void *file, void *memory) {
  void *batch = NULL;
  cufile_event events[4];
  unsigned count = 2;
  cufile_request ask[3] = {
      {.mode = CUFILE_BATCH, .batch = {memory, 10, 0, 1000}, .file = file, .cookie = &ask[0]},
      {.mode = CUFILE_BATCH, .batch = {memory, SMALL - 4, 2000, 1000}, .file = file, .cookie = &ask[1]},
      {.mode = CUFILE_BATCH, .batch = {memory, 0, 0, 10}, .file = memory, .cookie = &ask[2]}};
  EXPECT(cuFileBatchIOSetUp(&batch, 129).error, CUFILE_UNSUPPORTED_LIMIT);
  EXPECT(cuFileBatchIOSetUp(&batch, 0).error, CUFILE_INVALID_VALUE);
  EXPECT(cuFileBatchIOSetUp(&batch, 3).error, 0);
  clear(memory, SMALL);
  EXPECT(cuFileBatchIOSubmit(batch, 3, ask, 0).error, 0);
  EXPECT(cuFileBatchIOSubmit(batch, 1, ask, 0).error, CUFILE_BATCH_FULL);
  EXPECT(cuFileBatchIOGetStatus(batch, 2, &count, events, NULL).error, 0);
  EXPECT(count, 2);
  EXPECT(events[0].cookie == &ask[0] && events[1].cookie == &ask[1], 1);
  EXPECT(events[0].status, CUFILE_COMPLETE);
  EXPECT(events[0].result, 1000);
  EXPECT(events[1].result, 4);
  count = 4;
  EXPECT(cuFileBatchIOGetStatus(batch, 0, &count, events, NULL).error, 0);
  EXPECT(count, 1);
  EXPECT(events[0].status, CUFILE_FAILED);
  EXPECT(events[0].result, -CUFILE_HANDLE_NOT_REGISTERED);
  get(memory, SMALL);
  EXPECT(memcmp(back, data + 10, 1000), 0);
  EXPECT(memcmp(back + 2000, data + SMALL - 4, 4), 0);
  EXPECT(back[2004], 0xee);
  EXPECT(cuFileBatchIOCancel(batch).error, 0);
  cuFileBatchIODestroy(batch);
  EXPECT(cuFileBatchIOCancel(batch).error, CUFILE_INVALID_VALUE);
}

static void all(const char *folder, void *memory) {
  int version = 0, fd = make_file(folder, "small", SMALL, 0);
  cufile_properties properties;
  EXPECT(cuFileDriverClose().error, CUFILE_DRIVER_NOT_INITIALIZED);
  EXPECT(cuFileDriverSetPollMode(true, 8).error, 0);
  EXPECT(cuFileDriverSetMaxDirectIOSize(1024).error, 0);
  EXPECT(cuFileDriverSetMaxCacheSize(0).error, CUFILE_INVALID_VALUE);
  EXPECT(cuFileDriverSetMaxCacheSize((size_t)1 << 32).error, CUFILE_UNSUPPORTED_LIMIT);
  EXPECT(cuFileDriverSetMaxCacheSize(2048).error, 0);
  EXPECT(cuFileDriverSetMaxPinnedMemSize(4096).error, 0);
  EXPECT(cuFileDriverOpen().error, 0);
  EXPECT(cuFileDriverSetMaxPinnedMemSize(9).error, 0); /* too late */
  EXPECT(cuFileUseCount(), 1);
  EXPECT(cuFileGetVersion(&version).error, 0);
  EXPECT(version >= 1000, 1);
  EXPECT(cuFileDriverGetProperties(&properties).error, 0);
  EXPECT(properties.max_batch, 128);
  EXPECT(properties.nvfs.control_flags & 1, 1);
  EXPECT(properties.nvfs.poll_threshold, 8);
  EXPECT(properties.nvfs.max_direct_io, 1024);
  EXPECT(properties.max_device_cache, 2048);
  EXPECT(properties.max_pinned, 4096);
  void *file = registered(fd);
  synchronous(file, fd, memory);
  bad(file, fd, memory);
  other_memory(file);
  in_stream(file, fd, memory);
  in_batch(file, memory);
  close(fd);
  errno = 0;
  EXPECT(cuFileRead(file, memory, 10, 0, 0), -1);
  EXPECT(errno, EBADF);
  cuFileHandleDeregister(file);
  EXPECT(cuFileRead(file, memory, 10, 0, 0), -CUFILE_HANDLE_NOT_REGISTERED);
  fd = make_file(folder, "direct", SMALL, O_DIRECT);
  if (fd < 0) puts("no O_DIRECT in this folder");
  if (fd >= 0) {
    file = registered(fd);
    clear(memory, SMALL);
    EXPECT(cuFileRead(file, memory, 777, 13, 1), 777);
    EXPECT(cuFileWrite(file, memory, 777, SMALL - 7, 1), 777);
    EXPECT(cuFileRead(file, memory, SMALL, SMALL - 7, 3), 777);
    get(memory, SMALL);
    EXPECT(memcmp(back + 3, data + 13, 777), 0);
  }
  EXPECT(cuFileDriverClose().error, 0);
  EXPECT(cuFileUseCount(), 0);
}

static void timed(const char *folder, const char *how, void *memory) {
  int fd = make_file(folder, "large", BYTES, 0);
  void *file = registered(fd), *pinned;
  if (!strcmp(how, "read")) EXPECT(cuFileRead(file, memory, BYTES, 0, 0), BYTES);
  if (!strcmp(how, "copy")) {
    CALL(cuMemHostAlloc, (void **, size_t, unsigned), &pinned, PIECE, 1);
    for (size_t done = 0; done < BYTES; done += PIECE) {
      size_t part = BYTES - done < PIECE ? BYTES - done : PIECE;
      memcpy(pinned, data + done, part);
      CALL(cuMemcpyHtoDAsync_v2, (uint64_t, const void *, size_t, void *), (uint64_t)(uintptr_t)memory + done, pinned,
           part, NULL);
      CALL(cuStreamSynchronize, (void *), NULL);
    }
  }
  get(memory, BYTES);
  EXPECT(memcmp(back, data, BYTES), 0);
}

int main(int count, char **arguments) {
  if (count != 3) return 2;
  for (size_t i = 0; i < BYTES; i++) data[i] = (unsigned char)(i * 2654435761u >> 13);
  driver_open(".version 7.0\n.target sm_50\n.address_size 64\n.visible .entry none()\n{\nret;\n}\n");
  void *memory = device_memory(BYTES);
  if (!strcmp(arguments[2], "all")) all(arguments[1], memory);
  else timed(arguments[1], arguments[2], memory);
  return wrong;
}
