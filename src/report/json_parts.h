/* SPDX-License-Identifier: Apache-2.0 */
/* What json.c, json_lines.c, json_stacks.c and json_history.c share: writing and reading parts of a run's JSON. Private
 * to report/.
 *
 * The readers leave *to as it is where the key is absent, and fail with the file's and the key's name where the type is
 * wrong. */
#ifndef FF_REPORT_JSON_PARTS_H
#define FF_REPORT_JSON_PARTS_H

#include <jansson.h>

#include "report/report.h"

typedef struct json_reader {
  const char *file;
  ff_error *error;
} json_reader;

void json_put(json_t *object, const char *key, json_t *value); /* owns the value from now on */
void json_put_count(json_t *object, const char *key, uint64_t value);
void json_put_real(json_t *object, const char *key, double value); /* finite */

/* Text that may not be UTF-8: bytes that are not become '?'. */
json_t *json_text_value(const char *text);
void json_put_counters(json_t *object, const sim_counters *counters, bool zeros); /* zeros: those, too */

/* FILE: "KEY" is not EXPECTED; FF_PARSE. */
ff_status json_fail(json_reader *r, const char *key, const char *expected);
ff_status json_get_count(json_reader *r, const json_t *object, const char *key, uint64_t *to);
/* Less than `size` bytes; absent: left as it is, unless required. */
ff_status json_get_text(json_reader *r, const json_t *object, const char *key, bool required, char *to, size_t size);
ff_status json_get_real(json_reader *r, const json_t *object, const char *key, double *to);

ff_status json_get_counters(json_reader *r, const json_t *object, sim_counters *counters);

/* json_lines.c: the value of the key "by_line", and back; the kernels have been read before. */
json_t *json_lines_value(const sim_result *result);
ff_status json_lines_read(json_reader *r, const json_t *from, sim_result *result);

/* json_stacks.c: the value of the key "stacks" of a simulation with these counters, and back. */
json_t *json_stacks_value(const sim_stacks *stacks, const sim_counters *counters);
ff_status json_stacks_read(json_reader *r, const json_t *from, sim_stacks *stacks);

/* json_tiers.c: the value of the key "tiers", and back; also of share/, whose outcomes have them. */
json_t *json_tiers_value(const sim_tiers *tiers);
ff_status json_tiers_read(json_reader *r, const json_t *from, sim_tiers *tiers);

/* The value of the key "history", without a line end. */
void json_history_write(const sim_history *history, ff_text *out);
/* Reads it into result->history, which the caller frees whatever is returned; kernels and allocations have been read
 * before. */
ff_status json_history_read(json_reader *r, const json_t *from, sim_result *result);

#endif
