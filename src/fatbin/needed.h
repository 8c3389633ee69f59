/* SPDX-License-Identifier: Apache-2.0 */
/* What a file is linked with, and the files that it needs in turn, as the dynamic loader would find them (ld.so(8)):
 * in RPATH, LD_LIBRARY_PATH and RUNPATH. Files in the system's own folders are not followed, nor is the RPATH of the
 * file that needs the one with the RPATH. */
#ifndef FF_FATBIN_NEEDED_H
#define FF_FATBIN_NEEDED_H

#include "base/memory.h"
#include "fatbin/elf.h"

typedef FF_VEC(char *) needed_files;

/* Of the library `name` that `file` is linked with: whether its file is to be looked at too. */
typedef bool needed_each(void *context, const fatbin_report *file, const char *name);

/* Calls `each` for the file's libraries, then for those of the files that it needs. `seen`: files that were looked at
 * before, which are left out; the new ones are added. The caller frees it with needed_files_free. */
void needed_walk(const char *path, needed_files *seen, needed_each *each, void *context);

/* Adds a copy of the text, unless the list has it. */
void needed_files_add(needed_files *files, const char *text);
void needed_files_free(needed_files *files);

#endif
