/* SPDX-License-Identifier: Apache-2.0 */
/* Files in memory that processes share (engine_shared.h). Every process that maps one sees the same bytes at once. */
#define _GNU_SOURCE
#include "driver/engine/engine_shared.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/descriptor.h"

#define HEAD_BYTES 4096
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) /* a file that shrinks would end those that have mapped it */
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
  shared->file = ff_descriptor_apart(memfd_create("shared virtual GPU memory", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (shared->file < 0) return false;
  if (!ftruncate(shared->file, (off_t)(head->bytes + HEAD_BYTES)) &&
      pwrite(shared->file, head, sizeof *head, (off_t)head->bytes) == (ssize_t)sizeof *head &&
      !fcntl(shared->file, F_ADD_SEALS, SEALS) && note_identity(shared))
    return true;
  close(shared->file);
  return false;
}

static bool read_head(int file, engine_shared_head *head) {
  struct stat now;
  if (fstat(file, &now) || now.st_size <= HEAD_BYTES) return false;
  int seals = fcntl(file, F_GET_SEALS); /* -1: it is no file in memory */
  if (seals < 0 || (seals & SEALS) != SEALS) return false;
  off_t bytes = now.st_size - HEAD_BYTES;
  return pread(file, head, sizeof *head, bytes) == (ssize_t)sizeof *head && !memcmp(head->magic, magic, sizeof magic) &&
         head->bytes == (uint64_t)bytes;
}

bool engine_shared_take(engine_shared *shared, int descriptor, engine_shared_kind kind, engine_shared_head *head) {
  *shared = (engine_shared){0};
  if (!read_head(descriptor, head) || head->kind != (uint32_t)kind) return false;
  shared->file = fcntl(descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (shared->file < 0) return false;
  if (note_identity(shared)) return true;
  close(shared->file);
  return false;
}

bool engine_shared_reach(engine_shared *shared, int process, int descriptor, engine_shared_kind kind,
                         engine_shared_head *head) {
  char path[64];
  struct stat there;
  *shared = (engine_shared){0};
  snprintf(path, sizeof path, "/proc/%d/fd/%d", process, descriptor);
  if (stat(path, &there) || !S_ISREG(there.st_mode)) return false;
  int file = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (file < 0) return false;
  bool taken = engine_shared_take(shared, file, kind, head);
  close(file);
  return taken;
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
