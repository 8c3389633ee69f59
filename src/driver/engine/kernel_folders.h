/* SPDX-License-Identifier: Apache-2.0 */
/* Folders of PTX that the user has made for programs whose images hold machine code only (`--kernels`).
 *
 * Each .ptx file of a folder is one translation unit. What it defines is kept in an index, by the names' common form
 * (kernel_name.h): in the folder's file .farfault-kernels where the folder may be written, so that files are read once.
 * A file whose size or time is another than in the index is read again. Files are not trusted: what is no PTX is said
 * once and left out. */
#ifndef FF_DRIVER_KERNEL_FOLDERS_H
#define FF_DRIVER_KERNEL_FOLDERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "base/text.h"

typedef struct kernel_folders kernel_folders;

/* `list`: folders separated by colons. A folder that cannot be read is said through `say` and left out, as are files.
 * The caller frees the result with kernel_folders_close. */
kernel_folders *kernel_folders_open(const char *list, void (*say)(const char *message));
void kernel_folders_close(kernel_folders *folders);

/* The file that defines most of the names (hashes of kernel_name.h), at least one of them; of several, one of the first
 * folder, there the one written last (by name where that is the same). NULL: none of those that are known defines any.
 * The file found is looked at again: one that has changed or gone since is judged by what it holds now. The path lives
 * as long as `folders`; a file that changes has another pointer from then on. */
const char *kernel_folders_best(kernel_folders *folders, const uint64_t *names, size_t count);

/* Looks for .ptx files that have come into the folders since, have changed or are gone: a program may write the PTX of
 * what it compiles there, and several of its kernels into one file, one after the other. Folders in the folders, of
 * which compilers make some for a while, are looked into, too; their files stand behind. True: there are such. */
bool kernel_folders_renew(kernel_folders *folders);

/* Appends the hash of each kernel and each variable that the PTX text defines. False: it is no PTX. */
typedef struct kernel_hashes {
  uint64_t *items;
  size_t count, capacity;
} kernel_hashes;
bool kernel_hashes_of(const char *text, size_t length, kernel_hashes *hashes);

#endif
