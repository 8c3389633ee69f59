/* SPDX-License-Identifier: Apache-2.0 */
/* See validate_fields.h. */
#include "validate/validate_fields.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static ff_status fail_at(const fields *f, const char *place, ff_error *error, const char *message) {
  return ff_fail_in_text(error, FF_PARSE, f->file, f->text, f->size, f->line, (uint32_t)(place - f->start) + 1, "%s",
                         message);
}

ff_status fields_fail(const fields *f, int field, ff_error *error, const char *format, ...) {
  char message[512];
  va_list args;
  va_start(args, format);
  vsnprintf(message, sizeof message, format, args);
  va_end(args);
  return fail_at(f, f->at[field], error, message);
}

/* Where the line ends that begins there, without a carriage return. */
static size_t line_end(const fields *f, size_t from) {
  const char *end = memchr(f->text + from, '\n', f->size - from);
  return end ? (size_t)(end - f->text) : f->size;
}

bool fields_more(fields *f) {
  while (f->next < f->size && f->text[f->next] == '\n') {
    f->next++;
    f->line++;
  }
  return f->next < f->size;
}

static ff_status check_field(const fields *f, int field, ff_error *error) {
  if (!f->length[field])
    return fields_fail(f, field, error, "%s is empty; - is a field that says nothing", f->names[field]);
  for (size_t i = 0; i < f->length[field]; i++)
    if ((unsigned char)f->at[field][i] < ' ' || (unsigned char)f->at[field][i] > '~')
      return fail_at(f, f->at[field] + i, error, "a character that is not printable ASCII");
  return FF_OK;
}

ff_status fields_next(fields *f, ff_error *error) {
  size_t end = line_end(f, f->next), from = f->next;
  int count = 0;
  f->start = f->text + from;
  f->line++;
  f->next = end < f->size ? end + 1 : end;
  for (bool more = true; more; count++) {
    const char *tab = memchr(f->text + from, '\t', end - from);
    size_t stop = tab ? (size_t)(tab - f->text) : end;
    if (count < FIELDS_MOST) f->at[count] = f->text + from, f->length[count] = stop - from;
    from = stop + 1;
    more = tab != NULL;
  }
  if (count != f->count) {
    char message[96];
    snprintf(message, sizeof message, "%d fields, where the header has %d", count, f->count);
    return fail_at(f, f->start, error, message);
  }
  for (int i = 0; i < count; i++) {
    ff_status status = check_field(f, i, error);
    if (status) return status;
  }
  return FF_OK;
}

ff_status fields_header(fields *f, ff_error *error) {
  if (!f->size) return ff_fail(error, FF_PARSE, "%s: is empty", f->file);
  ff_status status = fields_next(f, error);
  for (int i = 0; i < f->count && !status; i++)
    if (strlen(f->names[i]) != f->length[i] || memcmp(f->names[i], f->at[i], f->length[i]))
      status = fields_fail(f, i, error, "column %d must be called %s", i + 1, f->names[i]);
  return status;
}

bool fields_number(const char *text, double *number) {
  char *end;
  if (!strchr("0123456789.-", *text) || strlen(text) > 40) return false;
  *number = strtod(text, &end);
  return end != text && !*end && isfinite(*number);
}
