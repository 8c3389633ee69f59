/* SPDX-License-Identifier: Apache-2.0 */
/* One simulation's outcomes as JSON, written by the process that ran it and read by the one that asked for it
 * (share_matrix.h).
 *
 *   {"programs": [{"kernel_us": 12.5, ..., "tiers": [...], "error": ""}, ...]}
 *
 * `tiers` is there where the machine has some, as in a run's JSON (report/json_tiers.c). Reals are written with 17
 * digits, so that what is read is what was written; what is read is finite and not negative. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/json_parts.h"
#include "share/share_private.h"

typedef struct field {
  const char *name;
  size_t offset;
  enum { REAL, WIDE, NARROW } kind;
} field;

static const field fields[] = {
#define X(name, kind) {#name, offsetof(share_outcome, name), kind},
#include "share/share_outcome.def"
#undef X
};
enum { FIELDS = sizeof fields / sizeof fields[0] };

static json_t *field_value(const share_outcome *o, const field *f) {
  const char *at = (const char *)o + f->offset;
  uint64_t wide;
  uint32_t narrow;
  double real;
  switch (f->kind) {
  case REAL: memcpy(&real, at, sizeof real); return isfinite(real) ? json_real(real) : json_null();
  case WIDE: memcpy(&wide, at, sizeof wide); return json_integer((json_int_t)wide);
  default: memcpy(&narrow, at, sizeof narrow); return json_integer(narrow);
  }
}

json_t *share_outcome_value(const share_outcome *o) {
  json_t *object = json_object();
  for (int i = 0; i < FIELDS; i++) json_object_set_new(object, fields[i].name, field_value(o, &fields[i]));
  if (o->tiers.count) json_object_set_new(object, "tiers", json_tiers_value(&o->tiers));
  return object;
}

static int add_chunk(const char *bytes, size_t size, void *out) {
  ff_text_add_bytes(out, bytes, size);
  return 0;
}

/* A message may have what is no UTF-8: it becomes '?'. */
json_t *share_text_value(const char *text) {
  json_t *value = json_string(text);
  if (value) return value;
  char *copy = ff_strdup(text);
  for (char *c = copy; *c; c++)
    if ((unsigned char)*c > 126) *c = '?';
  value = json_string(copy);
  free(copy);
  return value;
}

void share_outcomes_write(const share_outcome *outcomes, uint32_t count, ff_text *out) {
  json_t *root = json_object(), *list = json_array();
  for (uint32_t i = 0; i < count; i++) {
    json_t *object = share_outcome_value(&outcomes[i]);
    json_object_set_new(object, "error", share_text_value(outcomes[i].error));
    json_array_append_new(list, object);
  }
  json_object_set_new(root, "programs", list);
  json_dump_callback(root, add_chunk, out, JSON_INDENT(1) | JSON_REAL_PRECISION(17));
  ff_text_add(out, "\n");
  json_decref(root);
}

void share_outcomes_csv_head(ff_text *out) {
  for (int i = 0; i < FIELDS; i++) ff_text_add(out, ",%s", fields[i].name);
}

void share_outcome_csv(const share_outcome *o, ff_text *out) {
  for (int i = 0; i < FIELDS; i++) {
    json_t *value = field_value(o, &fields[i]);
    if (json_is_integer(value)) ff_text_add(out, ",%lld", (long long)json_integer_value(value));
    else share_csv_number(json_is_real(value) ? json_real_value(value) : NAN, out);
    json_decref(value);
  }
}

/* ---- reading ---- */

static bool read_field(const json_t *value, const field *f, share_outcome *o) {
  char *at = (char *)o + f->offset;
  if (f->kind == REAL) {
    double real = json_number_value(value);
    if (!json_is_number(value) || !isfinite(real) || real < 0) return false;
    memcpy(at, &real, sizeof real);
    return true;
  }
  json_int_t number = json_integer_value(value);
  if (!json_is_integer(value) || number < 0 || (f->kind == NARROW && number > UINT32_MAX)) return false;
  uint64_t wide = (uint64_t)number;
  uint32_t narrow = (uint32_t)number;
  if (f->kind == WIDE) memcpy(at, &wide, sizeof wide);
  else memcpy(at, &narrow, sizeof narrow);
  return true;
}

static ff_status read_one(const char *name, const json_t *from, uint32_t which, share_outcome *o, ff_error *error) {
  const char *text = json_string_value(json_object_get(from, "error"));
  if (!text) return ff_fail(error, FF_PARSE, "%s: program %u has no \"error\"", name, which);
  *o = (share_outcome){0};
  snprintf(o->error, sizeof o->error, "%s", text);
  for (int i = 0; i < FIELDS; i++)
    if (!read_field(json_object_get(from, fields[i].name), &fields[i], o))
      return ff_fail(error, FF_PARSE, "%s: \"%s\" of program %u is not a number from 0 on", name, fields[i].name,
                     which);
  const json_t *tiers = json_object_get(from, "tiers");
  json_reader r = {.file = name, .error = error};
  return tiers ? json_tiers_read(&r, tiers, &o->tiers) : FF_OK;
}

ff_status share_outcomes_read(const char *name, const char *text, size_t size, share_outcome *outcomes, uint32_t count,
                              ff_error *error) {
  json_error_t why;
  json_t *root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &why);
  if (!root) return ff_fail(error, FF_PARSE, "%s:%d:%d: %.200s", name, why.line, why.column, why.text);
  json_t *list = json_object_get(root, "programs");
  ff_status status = FF_OK;
  if (json_array_size(list) != count)
    status = ff_fail(error, FF_PARSE, "%s: not the outcomes of %u programs", name, count);
  for (uint32_t i = 0; i < count && !status; i++)
    status = read_one(name, json_array_get(list, i), i, &outcomes[i], error);
  json_decref(root);
  return status;
}
