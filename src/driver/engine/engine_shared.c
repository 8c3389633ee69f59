/* SPDX-License-Identifier: Apache-2.0 */
/* Files in memory that processes share (engine_shared.h). Every process that maps one sees the same bytes at once. */
#define _GNU_SOURCE
#include "driver/engine/engine_shared.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEAD_BYTES 4096
static const char magic[16] = "farfault memory";

static bool note_identity(engine_shared *shared) {
  struct stat now;
  if (fstat(shared->file, &now)) return false;
  shared->device = now.st_dev;
  shared->inode = now.st_ino;
  return shared->open = true;
}

/* A limit of the files' size would raise SIGXFSZ. */
static bool may_grow(uint64_t bytes) {
  struct rlimit limit;
  return !getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur >= bytes;
}

bool engine_shared_make(engine_shared *shared, engine_shared_head *head) {
  *shared = (engine_shared){0};
  memcpy(head->magic, magic, sizeof magic);
  if (!may_grow(head->bytes + HEAD_BYTES)) return false;
  shared->file = memfd_create("shared virtual GPU memory", MFD_CLOEXEC);
  if (shared->file < 0) return false;
  if (!ftruncate(shared->file, (off_t)(head->bytes + HEAD_BYTES)) &&
      pwrite(shared->file, head, sizeof *head, (off_t)head->bytes) == (ssize_t)sizeof *head && note_identity(shared))
    return true;
  close(shared->file);
  return false;
}

static bool read_head(int file, engine_shared_head *head) {
  struct stat now;
  if (fstat(file, &now) || now.st_size <= HEAD_BYTES) return false;
  off_t bytes = now.st_size - HEAD_BYTES;
  return pread(file, head, sizeof *head, bytes) == (ssize_t)sizeof *head && !memcmp(head->magic, magic, sizeof magic) &&
         head->bytes == (uint64_t)bytes;
}

bool engine_shared_take(engine_shared *shared, int descriptor, engine_shared_head *head) {
  *shared = (engine_shared){0};
  if (!read_head(descriptor, head)) return false;
  shared->file = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  if (shared->file < 0) return false;
  if (note_identity(shared)) return true;
  close(shared->file);
  return false;
}

bool engine_shared_lives(const engine_shared *shared) {
  struct stat now;
  return shared->open && !fstat(shared->file, &now) && now.st_dev == shared->device && now.st_ino == shared->inode;
}

int engine_shared_give(const engine_shared *shared) {
  return engine_shared_lives(shared) ? fcntl(shared->file, F_DUPFD_CLOEXEC, 0) : -1;
}

void engine_shared_close(engine_shared *shared) {
  if (engine_shared_lives(shared)) close(shared->file);
  *shared = (engine_shared){0};
}
