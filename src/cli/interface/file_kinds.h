/* SPDX-License-Identifier: Apache-2.0 */
/* The kinds of files that commands read and write, known by their content: a file that is of another kind than a
 * command takes is refused with the command that takes it.
 *
 * Only regular files are looked at (a pipe loses nothing), and only their first bytes; a file of no
 * known kind is left to the command, whose reader says what is wrong with it. */
#ifndef FF_CLI_KINDS_H
#define FF_CLI_KINDS_H

#include <stdbool.h>

#include "base/status.h"

typedef enum file_kind { /* bits: a command may take several */
                         KIND_UNKNOWN = 0,
#define X(id, bit, name, what, by, use) KIND_##id = 1 << bit,
#include "cli/interface/file_kinds.def"
#undef X
} file_kind;

/* KIND_UNKNOWN also for a file that cannot be read. */
file_kind kind_of_file(const char *path);

/* "trace", "file" for several kinds; and what makes one: "`farfault record -o FILE`". `by` has room for 160
 * characters. */
const char *kind_name(unsigned wanted, char by[160]);

/* FF_PARSE where the file is of a known kind, and of none of `wanted`: the message names it and the command that takes
 * it. */
ff_status kind_check(const char *path, unsigned wanted, ff_error *error);
/* The same, said to the user: true if it is refused. */
bool kind_refused(const char *path, unsigned wanted);

#endif
