/* SPDX-License-Identifier: Apache-2.0 */
/* Files that one process keeps for later ones, and that may go at any time: $XDG_CACHE_HOME/farfault/KIND, or
 * ~/.cache/farfault/KIND.
 *
 * A file is used only if it and its folder belong to this user and no other user may write them (a process that can
 * write there could run anything as this user anyway), and if it is whole. Files appear whole (written aside, renamed),
 * whoever writes at the same time. */
#ifndef FF_BASE_KEPT_H
#define FF_BASE_KEPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct stat;

/* The folder of a kind, made if it is missing, into `path`; false: there is none that can be trusted. */
bool ff_kept_folder(const char *kind, char *path, size_t room);
/* Is what stat says this user's alone to write? */
bool ff_kept_is_ours(const struct stat *s);
/* The bytes of a file, which the caller frees. NULL: it is not there, not ours, empty, has more than `most` bytes, or
 * `is_whole` says no. */
unsigned char *ff_kept_read(const char *path, uint32_t most,
                            bool (*is_whole)(const void *context, const unsigned char *data, uint32_t bytes),
                            const void *context, uint32_t *bytes);
/* Under a name that no other process has until it is whole. False: it could not be written, and nothing is left. */
bool ff_kept_write(const char *path, const void *data, uint32_t bytes);
/* Where a folder has more files or bytes than these, those that were used longest ago go, until half is left. */
void ff_kept_trim(const char *folder, uint32_t most_files, uint64_t most_bytes);

#endif
