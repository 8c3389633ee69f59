/* SPDX-License-Identifier: Apache-2.0 */
/* Every file that farfault writes for its user is opened here.
 *
 *   ff_output_open -> ff_output_write ... -> ff_output_finish, or ff_output_discard
 *
 * A regular file, or one that is not there yet, is written aside and takes its name when it is whole: a reader, and
 * whatever is left after a kill, has the old file or the new one. Symbolic links are followed, dangling ones too; the
 * file keeps its mode bits, and its owner if we may give it. Other hard links to the old file keep the old contents.
 * Anything else - a device, a pipe, a terminal, /dev/stdout, /dev/fd/N - is written in place, and stays what it is.
 *
 * Aside is a file without a name where the file system has such, else FILE.tmp-PROCESS-RANDOM in the
 * same folder, made with O_EXCL; no write raises SIGPIPE; after a failure nothing half-written is left in a regular
 * file's place; an error of any write, of the flush to the disk and of close comes out of ff_output_finish, with the
 * path. */
#ifndef FF_BASE_OUTPUT_H
#define FF_BASE_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct ff_output ff_output;

typedef enum ff_output_kind {
  FF_OUTPUT_KEPT,    /* flushed to the disk before it takes its name */
  FF_OUTPUT_SCRATCH, /* not flushed: a file that only lives as long as its reader */
  /* a new file under its own name from the beginning, that stays however far it came; there must be none of the name */
  FF_OUTPUT_PART,
} ff_output_kind;

/* FF_IO: cannot be written there (the message has the path). A pipe that no process reads is waited for, until one does
 * or a signal is there that ends a process. */
ff_status ff_output_open(const char *path, ff_output_kind kind, ff_output **out, ff_error *error);

/* What comes next. The first error is remembered; nothing more is written then. */
void ff_output_write(ff_output *output, const void *bytes, size_t count);

/* Whether what was written can be changed (ff_output_change): not in a pipe or a device. */
bool ff_output_is_file(const ff_output *output);
void ff_output_change(ff_output *output, uint64_t at, const void *bytes, size_t count); /* asserts ff_output_is_file */

/* Flushes, closes, gives the file its name; frees. FF_IO: it could not all be written; a regular file is then what it
 * was, but for a PART. */
ff_status ff_output_finish(ff_output *output, ff_error *error);
/* Closes and frees; a regular file stays what it was, a PART stays. NULL: nothing. */
void ff_output_discard(ff_output *output);

/* The regular file that an output to `path` would make or replace, links followed; the caller frees. NULL: what is
 * there is written in place (or is a folder). */
char *ff_output_target(const char *path);

/* Whether ff_output_open would find a place to write, as far as can be known without writing: FF_IO and why not. */
ff_status ff_output_check(const char *path, ff_error *error);

/* Makes the regular file `from` the output `path`: by its name if it is on the same file system, else by its contents.
 * On success `from` is gone; on FF_IO it is there. */
ff_status ff_output_move(const char *from, const char *path, ff_error *error);

/* Whether both would be the same regular file. NULL, and what is written in place, is never the same as anything. */
bool ff_output_same(const char *path, const char *other);

/* ff_file_write (text.h) without waiting for the disk: a file that one of our processes leaves for another. */
ff_status ff_file_write_scratch(const char *path, const void *data, size_t size, ff_error *error);

/* For tests: false: as on a file system that has no files without names. */
extern bool ff_output_unnamed;

#endif
