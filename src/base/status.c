/* SPDX-License-Identifier: Apache-2.0 */
/* Status codes and error messages. Every message is cut to the size of ff_error, never overrun. */
#include "base/status.h"

#include <stdio.h>
#include <string.h>

static const char *const status_texts[] = {
#define X(name, text) text,
#include "base/status.def"
#undef X
};

const char *ff_status_text(ff_status status) {
  if ((size_t)status >= sizeof status_texts / sizeof status_texts[0]) return "unknown status";
  return status_texts[status];
}

ff_status ff_vfail(ff_error *error, ff_status status, const char *format, va_list args) {
  if (error) {
    error->status = status;
    vsnprintf(error->message, sizeof error->message, format, args);
  }
  return status;
}

ff_status ff_fail(ff_error *error, ff_status status, const char *format, ...) {
  va_list args;
  va_start(args, format);
  ff_vfail(error, status, format, args);
  va_end(args);
  return status;
}

ff_status ff_fail_at(ff_error *error, ff_status status, const char *prefix) {
  if (error) {
    char old[sizeof error->message];
    memcpy(old, error->message, sizeof old);
    int room = snprintf(error->message, sizeof error->message, "%s: ", prefix);
    if (room > 0 && (size_t)room < sizeof error->message) {
      size_t left = sizeof error->message - (size_t)room;
      size_t length = strnlen(old, left - 1);
      memcpy(error->message + room, old, length);
      error->message[room + length] = '\0';
    }
  }
  return status;
}
