/* SPDX-License-Identifier: Apache-2.0 */
/* Where the files of this installation lie: libraries and programs in the folder lib/farfault. */
#ifndef FF_BASE_INSTALLED_H
#define FF_BASE_INSTALLED_H

#include <stdbool.h>
#include <stddef.h>

/* The file `name` of lib/farfault, into `path` of `room` bytes: next to the library or program that `inside` (any
 * function of it) is in, next to the program that runs, of the farfault that the shell would start, or of the folder
 * where the installation was to go (`folder`; NULL: not known). mode: as access(2) has it. secure: PATH counts only
 * where the program has no more rights than the user that started it (secure_getenv). false: it is nowhere. */
bool ff_find_installed(const char *name, int mode, void *inside, const char *folder, bool secure, char *path,
                       size_t room);

#endif
