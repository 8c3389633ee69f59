/* SPDX-License-Identifier: Apache-2.0 */
/* The temporary file for record pages beyond the memory budget. It has no name (O_TMPFILE, or unlinked at once), so it
 * vanishes with the process. Extents are powers of two and are reused, so the file grows with the most bytes spilled at
 * one time, not with the length of the run. A disk that is full only means that the pages stay in memory: the file
 * leaves SPILL_SPARE_BYTES of it to others, the results of the run among them, and is not written to any more from the
 * first failure on. */
#define _GNU_SOURCE /* O_TMPFILE */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/descriptor.h"
#include "trace/trace_private.h"

#define SPILL_SPARE_BYTES (UINT64_C(16) << 20)

void spill_init(spill_file *file) {
  memset(file, 0, sizeof *file);
  pthread_mutex_init(&file->mutex, NULL);
  file->descriptor = -1;
}

void spill_close(spill_file *file) {
  if (file->descriptor >= 0) close(file->descriptor);
  for (int c = 0; c < SPILL_CLASSES; c++) free(file->free[c].items);
  pthread_mutex_destroy(&file->mutex);
}

/* An unlinked file in `folder`, or -1. */
static int open_unlinked(const char *folder) {
  int descriptor = ff_descriptor_apart(open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC | O_EXCL, 0600));
  if (descriptor >= 0) return descriptor;
  char path[4096];
  if (snprintf(path, sizeof path, "%s/farfault-XXXXXX", folder) >= (int)sizeof path) return -1;
  descriptor = mkostemp(path, O_CLOEXEC);
  if (descriptor >= 0) unlink(path);
  return ff_descriptor_apart(descriptor);
}

static bool spill_open(spill_file *file) { /* under its mutex */
  if (file->failed) return false;
  if (file->descriptor >= 0) return true;
  const char *folders[] = {getenv("TMPDIR"), "/var/tmp", "/tmp"};
  for (size_t i = 0; i < sizeof folders / sizeof *folders && file->descriptor < 0; i++)
    if (folders[i] && *folders[i]) file->descriptor = open_unlinked(folders[i]);
  if (file->descriptor < 0) file->failed = errno ? errno : EIO;
  return !file->failed;
}

static uint32_t extent_class(uint64_t bytes) {
  uint32_t c = 0;
  while (UINT64_C(512) << c < bytes) c++;
  FF_ASSERT(c < SPILL_CLASSES);
  return c;
}

uint64_t spill_extent_bytes(uint64_t bytes) { return UINT64_C(512) << extent_class(bytes); }

static bool extent_take(spill_file *file, uint64_t bytes, spill_extent *extent) {
  uint32_t c = extent_class(bytes);
  pthread_mutex_lock(&file->mutex);
  bool ok = spill_open(file);
  if (ok) {
    extent->bytes = bytes;
    extent->offset = file->free[c].count ? file->free[c].items[--file->free[c].count] : file->end;
    if (extent->offset == file->end) file->end += UINT64_C(512) << c;
    file->written += bytes;
  }
  pthread_mutex_unlock(&file->mutex);
  return ok;
}

void spill_release(spill_file *file, const spill_extent *extent) {
  uint32_t c = extent_class(extent->bytes);
  pthread_mutex_lock(&file->mutex);
  FF_PUSH(&file->free[c], extent->offset);
  pthread_mutex_unlock(&file->mutex);
}

void spill_check(spill_file *file, uint64_t live, bool exact) {
  pthread_mutex_lock(&file->mutex);
  uint64_t known = live;
  for (int c = 0; c < SPILL_CLASSES; c++) known += file->free[c].count * (UINT64_C(512) << c);
  FF_ASSERT(exact ? known == file->end : known <= file->end);
  pthread_mutex_unlock(&file->mutex);
}

/* Writes all runs at `offset`, as often as the system call stops early. */
static bool write_runs(int descriptor, const spill_run *runs, uint32_t count, uint64_t offset) {
  uint64_t done = 0; /* bytes of runs[0] that are written */
  while (count) {
    struct iovec vectors[64];
    uint32_t n = count < 64 ? count : 64;
    for (uint32_t i = 0; i < n; i++)
      vectors[i] = (struct iovec){(char *)(uintptr_t)runs[i].words + (i ? 0 : done),
                                  runs[i].count * UINT64_C(8) - (i ? 0 : done)};
    ssize_t written = pwritev(descriptor, vectors, (int)n, (off_t)offset);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    offset += (uint64_t)written;
    done += (uint64_t)written;
    while (count && done >= runs[0].count * UINT64_C(8)) {
      done -= runs[0].count * UINT64_C(8);
      runs++;
      count--;
    }
  }
  return true;
}

/* A write beyond the process's limit of file sizes (RLIMIT_FSIZE) is an error like any other, and no signal to a
 * program that did not write there itself: SIGXFSZ goes to the thread that writes. */
static int write_runs_quietly(int descriptor, const spill_run *runs, uint32_t count, uint64_t offset) {
  sigset_t limit, old;
  sigemptyset(&limit);
  sigaddset(&limit, SIGXFSZ);
  pthread_sigmask(SIG_BLOCK, &limit, &old);
  int failed = write_runs(descriptor, runs, count, offset) ? 0 : errno ? errno : ENOSPC;
  const struct timespec now = {0};
  while (failed == EFBIG && !sigismember(&old, SIGXFSZ) && sigtimedwait(&limit, NULL, &now) > 0) {}
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  return failed;
}

/* Whether the file system has room to spare for others (the results of this very run). */
static bool leaves_room(const spill_file *file) {
  struct statvfs system;
  return fstatvfs(file->descriptor, &system) || (uint64_t)system.f_bavail * system.f_frsize >= SPILL_SPARE_BYTES;
}

bool spill_write(spill_file *file, const spill_run *runs, uint32_t count, spill_extent *extent) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < count; i++) bytes += runs[i].count * UINT64_C(8);
  if (!bytes || !extent_take(file, bytes, extent)) return false;
  int failed = leaves_room(file) ? write_runs_quietly(file->descriptor, runs, count, extent->offset) : ENOSPC;
  if (!failed) return true;
  spill_release(file, extent);
  pthread_mutex_lock(&file->mutex);
  file->written -= bytes;
  file->failed = failed;
  pthread_mutex_unlock(&file->mutex);
  return false;
}

void spill_read(spill_file *file, uint64_t offset, uint64_t *words, uint32_t count) {
  char *to = (char *)words;
  size_t left = count * sizeof *words;
  while (left) {
    ssize_t got = pread(file->descriptor, to, left, (off_t)offset);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      fprintf(stderr, "farfault: the temporary file of the access stream cannot be read: %s\n",
              got ? strerror(errno) : "it ends too early");
      exit(74);
    }
    to += got;
    offset += (uint64_t)got;
    left -= (size_t)got;
  }
}
