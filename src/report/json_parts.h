/* SPDX-License-Identifier: Apache-2.0 */
/* What json.c and json_history.c share: writing and reading parts of a run's JSON. Private to report/.
 *
 * The readers leave *to as it is where the key is absent, and fail with the file's and the key's name where the type is wrong. */
#ifndef FF_REPORT_JSON_PARTS_H
#define FF_REPORT_JSON_PARTS_H

#include <jansson.h>

#include "report/report.h"

typedef struct json_reader {
  const char *file;
  ff_error *error;
} json_reader;

void json_put(json_t *object, const char *key, json_t *value);          /* owns the value from now on */
void json_put_count(json_t *object, const char *key, uint64_t value);

/* FILE: "KEY" is not EXPECTED; FF_PARSE. */
ff_status json_fail(json_reader *r, const char *key, const char *expected);
ff_status json_get_count(json_reader *r, const json_t *object, const char *key, uint64_t *to);

/* The value of the key "history", without a line end. */
void json_history_write(const sim_history *history, ff_text *out);
/* Reads it into result->history, which the caller frees whatever is returned; kernels and allocations have been read before. */
ff_status json_history_read(json_reader *r, const json_t *from, sim_result *result);

#endif
