/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that can be mapped at several addresses at once: parts of one file in memory.
 *
 * What always holds: what is handed out reads as zero, is whole pieces of 2 MiB, and belongs to nobody else; what is
 * given back takes no memory of the host. The file is as long as the arena and almost all hole. */
#ifndef FF_EXEC_BACKING_H
#define FF_EXEC_BACKING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/status.h"

#define EXEC_BACKING_PIECE (UINT64_C(2) << 20)

typedef struct exec_backing_hole {
  uint64_t start, bytes;
} exec_backing_hole;

typedef struct exec_backing { /* all zero: empty */
  int file;                   /* once `open` */
  uint64_t device, inode;     /* of the file: a program may close what it did not open */
  bool open;
  uint64_t end;                    /* nothing was ever handed out behind it */
  FF_VEC(exec_backing_hole) holes; /* given back below `end`: sorted, never adjacent */
} exec_backing;

/* FF_NO_MEMORY: the host has no such file, or no room in it. Not thread-safe, as the others. */
ff_status exec_backing_take(exec_backing *backing, uint64_t bytes, uint64_t *offset, ff_error *error);
void exec_backing_give(exec_backing *backing, uint64_t offset, uint64_t bytes);
/* The file is still the one it was; after a program has closed it, nothing new can be mapped. */
ff_status exec_backing_check(const exec_backing *backing, ff_error *error);
void exec_backing_free(exec_backing *backing);

#endif
