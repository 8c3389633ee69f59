/* SPDX-License-Identifier: Apache-2.0 */
/* Handing out parts of a file in memory (backing.h): first fit, neighbours join when they are given back. */
#define _GNU_SOURCE
#include "exec/memory/backing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/descriptor.h"
#include "exec/memory/address_space.h"

static ff_status open_file(exec_backing *b, ff_error *error) {
  struct rlimit limit;
  struct stat identity;
  if (getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur < EXEC_ARENA_BYTES) /* ftruncate would raise SIGXFSZ */
    return ff_fail(error, FF_NO_MEMORY, "memory to map needs a file of any size: `ulimit -f` is too low");
  b->file = ff_descriptor_apart(memfd_create("virtual GPU memory", MFD_CLOEXEC));
  if (b->file < 0) return ff_fail(error, FF_NO_MEMORY, "no file in memory: %s", strerror(errno));
  if (ftruncate(b->file, (off_t)EXEC_ARENA_BYTES) || fstat(b->file, &identity)) {
    close(b->file);
    return ff_fail(error, FF_NO_MEMORY, "no file in memory: %s", strerror(errno));
  }
  b->device = identity.st_dev;
  b->inode = identity.st_ino;
  b->open = true;
  return FF_OK;
}

ff_status exec_backing_check(const exec_backing *b, ff_error *error) {
  struct stat now;
  if (!b->open || fstat(b->file, &now) || now.st_dev != b->device || now.st_ino != b->inode)
    return ff_fail(error, FF_NO_MEMORY, "the program has closed a file that the virtual GPU's memory lies in");
  return FF_OK;
}

static void check_holes(const exec_backing *b) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < b->holes.count; i++) {
    const exec_backing_hole *hole = &b->holes.items[i];
    FF_ASSERT(hole->bytes && !(hole->start % EXEC_BACKING_PIECE) && !(hole->bytes % EXEC_BACKING_PIECE));
    FF_ASSERT(hole->start + hole->bytes <= b->end && (!i || hole[-1].start + hole[-1].bytes < hole->start));
    bytes += hole->bytes;
  }
  FF_ASSERT(b->taken + bytes == b->end);
}

ff_status exec_backing_take(exec_backing *b, uint64_t bytes, uint64_t *offset, ff_error *error) {
  FF_ASSERT(bytes && bytes % EXEC_BACKING_PIECE == 0);
  ff_status status = b->open ? exec_backing_check(b, error) : open_file(b, error);
  if (status) return status;
  for (size_t i = 0; i < b->holes.count; i++) {
    exec_backing_hole *hole = &b->holes.items[i];
    if (hole->bytes < bytes) continue;
    *offset = hole->start;
    hole->start += bytes;
    hole->bytes -= bytes;
    if (!hole->bytes) {
      memmove(hole, hole + 1, (b->holes.count - i - 1) * sizeof *hole);
      b->holes.count--;
    }
    b->taken += bytes;
    if (ff_check_level >= 2) check_holes(b);
    return FF_OK;
  }
  if (bytes > EXEC_ARENA_BYTES - b->end) return ff_fail(error, FF_NO_MEMORY, "no room for so much memory");
  *offset = b->end;
  b->end += bytes;
  b->taken += bytes;
  return FF_OK;
}

void exec_backing_give(exec_backing *b, uint64_t offset, uint64_t bytes) {
  struct stat now;
  bool ours = !fstat(b->file, &now) && now.st_dev == b->device && now.st_ino == b->inode;
  /* not used again: it is not empty */
  if (!ours || fallocate(b->file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)bytes)) return;
  b->taken -= bytes;
  size_t at = 0;
  for (size_t end = b->holes.count; at < end;) {
    size_t middle = (at + end) / 2;
    if (b->holes.items[middle].start < offset) at = middle + 1;
    else end = middle;
  }
  FF_PUSH(&b->holes, ((exec_backing_hole){0}));
  exec_backing_hole *holes = b->holes.items;
  memmove(&holes[at + 1], &holes[at], (b->holes.count - 1 - at) * sizeof *holes);
  holes[at] = (exec_backing_hole){offset, bytes};
  if (at + 1 < b->holes.count && offset + bytes == holes[at + 1].start) {
    holes[at].bytes += holes[at + 1].bytes;
    memmove(&holes[at + 1], &holes[at + 2], (b->holes.count - at - 2) * sizeof *holes);
    b->holes.count--;
  }
  if (at && holes[at - 1].start + holes[at - 1].bytes == offset) {
    holes[at - 1].bytes += holes[at].bytes;
    memmove(&holes[at], &holes[at + 1], (b->holes.count - at - 1) * sizeof *holes);
    b->holes.count--;
  }
  if (ff_check_level >= 2) check_holes(b);
}

void exec_backing_free(exec_backing *b) {
  if (b->open) close(b->file);
  free(b->holes.items);
  *b = (exec_backing){0};
}
