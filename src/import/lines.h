/* SPDX-License-Identifier: Apache-2.0 */
/* A text file line by line, plain or compressed (gzip, xz: told by its first bytes), with the place for messages.
 *
 * A line is ended by NUL and has no line end; one of more than LINES_LIMIT bytes is refused, so
 * memory is bounded whatever the file expands to. */
#ifndef FF_IMPORT_LINES_H
#define FF_IMPORT_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum { LINES_LIMIT = 1 << 16 };

typedef struct lines lines;

/* FF_NOT_FOUND: it cannot be read; from lines_next, too */
ff_status lines_open(const char *path, lines **out, ff_error *error);
lines *lines_of_text(const char *name, const char *text, size_t size); /* which must outlive it */
void lines_close(lines *l);                                            /* NULL: nothing */

/* The next line, which the caller may change, valid until the next call; NULL: there is none. FF_PARSE: too long, or
 * broken compression. */
ff_status lines_next(lines *l, char **line, ff_error *error);
/* FF_PARSE with "path:line: message", of the line that came last. */
ff_status lines_fail(const lines *l, ff_error *error, const char *format, ...) __attribute__((format(printf, 3, 4)));
uint64_t lines_number(const lines *l); /* of the line that came last, from 1 */

#endif
