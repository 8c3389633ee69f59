/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that can be mapped at several addresses at once: parts of one file in memory.
 *
 * Memory is handed out in whole pieces of 2 MiB that read as zero; what is given back takes no memory of the host. The
 * file is as long as the arena and almost all hole.
 *
 *     taken + sum of the holes == end; holes are sorted and apart from each other     (checked at the deep level) */
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
  uint64_t end;                    /* nothing behind it was handed out yet */
  uint64_t taken;                  /* bytes handed out, and those given back that could not be emptied */
  FF_VEC(exec_backing_hole) holes; /* given back */
} exec_backing;

/* FF_NO_MEMORY: the host has no such file, or no room in it. Not thread-safe, as the others. */
ff_status exec_backing_take(exec_backing *backing, uint64_t bytes, uint64_t *offset, ff_error *error);
void exec_backing_give(exec_backing *backing, uint64_t offset, uint64_t bytes);
/* The file is still the one it was; after a program has closed it, nothing new can be mapped. */
ff_status exec_backing_check(const exec_backing *backing, ff_error *error);
void exec_backing_free(exec_backing *backing);

#endif
