/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of fields with tabs between them, below a header line. Private to validate/. */
#ifndef FF_VALIDATE_FIELDS_H
#define FF_VALIDATE_FIELDS_H

#include "validate/validate.h"

enum { FIELDS_MOST = 16 };

typedef struct fields {
  const char *file, *text;
  size_t size;
  const char *const *names; /* of the columns */
  int count;
  size_t next; /* where the next line begins */
  uint32_t line;
  const char *at[FIELDS_MOST]; /* the line's fields, not ended */
  size_t length[FIELDS_MOST];
  const char *start; /* of the line */
} fields;

/* The first line must have the columns' names. */
ff_status fields_header(fields *f, ff_error *error);
/* Whether there is a further line; empty ones are passed over. */
bool fields_more(fields *f);
/* Splits it: as many fields as columns, none empty, only printable characters. */
ff_status fields_next(fields *f, ff_error *error);
/* FF_PARSE with the place of that field of the line. */
ff_status fields_fail(const fields *f, int field, ff_error *error, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Whether the whole text is a finite number. */
bool fields_number(const char *text, double *number);

#endif
