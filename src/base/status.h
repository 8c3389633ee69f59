/* SPDX-License-Identifier: Apache-2.0 */
/* One status type for the whole project, and the message that goes with it.
 *
 * Every function that can fail returns ff_status and takes an `ff_error *` as its last parameter (NULL: the caller
 * does not want the text). A function that returns FF_OK left the error untouched; one that
 * returned anything else wrote a message that names the thing, the place and, where there is one, what to do. */
#ifndef FF_BASE_STATUS_H
#define FF_BASE_STATUS_H

#include <stdarg.h>

typedef enum ff_status {
#define X(name, text) FF_##name,
#include "base/status.def"
#undef X
} ff_status;

typedef struct ff_error {
  ff_status status;
  char message[2048]; /* NUL-terminated; cut, never overrun */
} ff_error;

/* The text of a status code ("out of memory"); never NULL. */
const char *ff_status_text(ff_status status);

/* Writes the formatted message into *error (if not NULL) and returns `status`, so that `return ff_fail(...)` works. */
ff_status ff_fail(ff_error *error, ff_status status, const char *format, ...) __attribute__((format(printf, 3, 4)));
ff_status ff_vfail(ff_error *error, ff_status status, const char *format, va_list args);

/* Puts "prefix: " before the message already in *error; returns its status. For adding the place while unwinding. */
ff_status ff_fail_at(ff_error *error, ff_status status, const char *prefix);

#endif
