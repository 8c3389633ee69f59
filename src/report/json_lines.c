/* SPDX-License-Identifier: Apache-2.0 */
/* What a simulation counted by line, as the key "by_line" of its run (docs/json.md). Input is never trusted: a line
 * belongs to a kernel that is there. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "report/json_parts.h"

enum { LINES_LIMIT = 100000, TEXT_LIMIT = 4096 };

/* ---- writing ---- */

static json_t *one_value(const sim_line_result *line) {
  json_t *object = json_object();
  json_put_count(object, "kernel", line->kernel);
  json_put_count(object, "pc", line->pc);
  if (line->place) json_put_count(object, "ptx", line->place);
  if (line->text) json_put(object, "instruction", json_text_value(line->text));
  if (line->file) json_put(object, "file", json_text_value(line->file));
  if (line->source) json_put_count(object, "line", line->source);
  json_put_counters(object, &line->counters, false);
  return object;
}

json_t *json_lines_value(const sim_result *result) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < result->line_count; i++) json_array_append_new(list, one_value(&result->lines[i]));
  return list;
}

/* ---- reading ---- */

static ff_status read_number(json_reader *r, const json_t *from, const char *key, uint32_t *to) {
  uint64_t number = 0;
  if (json_get_count(r, from, key, &number)) return FF_PARSE;
  if (number > UINT32_MAX) return json_fail(r, key, "a whole number of 32 bits");
  *to = (uint32_t)number;
  return FF_OK;
}

static ff_status read_text(json_reader *r, const json_t *from, const char *key, char **to) {
  char text[TEXT_LIMIT] = "";
  if (json_get_text(r, from, key, false, text, sizeof text)) return FF_PARSE;
  if (text[0]) *to = ff_strdup(text);
  return FF_OK;
}

static ff_status read_one(json_reader *r, const json_t *from, uint32_t kernels, sim_line_result *line) {
  if (!json_is_object(from)) return json_fail(r, "by_line", "a list of objects");
  if (read_number(r, from, "kernel", &line->kernel) || read_number(r, from, "pc", &line->pc) ||
      read_number(r, from, "ptx", &line->place) || read_number(r, from, "line", &line->source) ||
      read_text(r, from, "instruction", &line->text) || read_text(r, from, "file", &line->file) ||
      json_get_counters(r, from, &line->counters))
    return FF_PARSE;
  return line->kernel < kernels ? FF_OK : json_fail(r, "kernel", "the number of a kernel of the run");
}

ff_status json_lines_read(json_reader *r, const json_t *from, sim_result *result) {
  if (!json_is_array(from) || json_array_size(from) > LINES_LIMIT)
    return json_fail(r, "by_line", "a list of acceptable length");
  uint32_t count = (uint32_t)json_array_size(from);
  result->lines = ff_alloc((count + (size_t)1) * sizeof *result->lines);
  result->line_count = count;
  result->lines_kept = true;
  for (uint32_t i = 0; i < count; i++)
    if (read_one(r, json_array_get(from, i), result->kernel_count, &result->lines[i])) return FF_PARSE;
  return FF_OK;
}
