/* SPDX-License-Identifier: Apache-2.0 */
/* What a simulation with memory stacks found, as the key "stacks" of its run (docs/json.md).
 *
 * A machine without stacks has no such key; sums and ratios are written for readers and not read; a
 * list has as many numbers as there are stacks. Input is never trusted. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "report/json_parts.h"
#include "report/report_stacks.h"

/* ---- writing ---- */

static json_t *list_value(const uint64_t *numbers, uint32_t count) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < count; i++) json_array_append_new(list, json_integer((json_int_t)numbers[i]));
  return list;
}

/* As it will be read: so that sums of what was read are the sums that were written. */
static double as_written(double joule) {
  char text[64];
  snprintf(text, sizeof text, "%.12g", joule);
  return strtod(text, NULL);
}

json_t *json_stacks_value(const sim_stacks *stacks, const sim_counters *c) {
  sim_stacks written = *stacks, *s = &written;
  s->link_joule = as_written(s->link_joule);
  s->idle_joule = as_written(s->idle_joule);
  s->activation_joule = as_written(s->activation_joule);
  s->read_joule = as_written(s->read_joule);
  s->sm_joule = as_written(s->sm_joule);
  json_t *object = json_object(), *cross = json_array();
  json_put_count(object, "count", s->count);
  json_put(object, "offload", json_string(sim_offload_name(s->offload)));
  json_put(object, "map", json_string(s->map));
  if (s->found[0]) json_put(object, "found", json_string(s->found));
#define X(name, unit, value, help) json_put_real(object, #name, value);
  REPORT_STACKS_REALS(X)
#undef X
#define X(name, unit, value, help) json_put_count(object, #name, value);
  REPORT_STACKS_SUMS(X)
#undef X
#define X(name, unit, help) json_put_count(object, #name, s->name);
#include "machine/stacks/stacks.def"
#undef X
  json_put(object, "tx_bytes", list_value(s->tx, s->count));
  json_put(object, "rx_bytes", list_value(s->rx, s->count));
  json_put(object, "internal_bytes", list_value(s->internal, s->count));
  for (uint32_t i = 0; i < s->count; i++) json_array_append_new(cross, list_value(s->cross[i], s->count));
  json_put(object, "cross_bytes", cross);
  return object;
}

/* ---- reading ---- */

static ff_status read_numbers(json_reader *r, const json_t *list, const char *key, uint64_t *to, uint32_t count) {
  if (!json_is_array(list) || json_array_size(list) != count)
    return json_fail(r, key, "a list with a number for each stack");
  for (uint32_t i = 0; i < count; i++) {
    const json_t *value = json_array_get(list, i);
    if (!json_is_integer(value) || json_integer_value(value) < 0)
      return json_fail(r, key, "a list of whole numbers from 0");
    to[i] = (uint64_t)json_integer_value(value);
  }
  return FF_OK;
}

static ff_status read_cross(json_reader *r, const json_t *list, sim_stacks *s) {
  if (!json_is_array(list) || json_array_size(list) != s->count)
    return json_fail(r, "cross_bytes", "a list with a list for each stack");
  for (uint32_t i = 0; i < s->count; i++)
    if (read_numbers(r, json_array_get(list, i), "cross_bytes", s->cross[i], s->count)) return FF_PARSE;
  return FF_OK;
}

static ff_status read_joule(json_reader *r, const json_t *from, const char *key, double *to) {
  if (json_get_real(r, from, key, to)) return FF_PARSE;
  return isfinite(*to) && *to >= 0 ? FF_OK : json_fail(r, key, "a number from 0");
}

/* What was chosen, and how many there are. */
static ff_status read_choice(json_reader *r, const json_t *from, sim_stacks *s) {
  char offload[16] = "";
  uint64_t count = 0;
  if (!json_is_object(from)) return json_fail(r, "stacks", "an object");
  if (json_get_count(r, from, "count", &count) || json_get_text(r, from, "offload", true, offload, sizeof offload) ||
      json_get_text(r, from, "map", true, s->map, sizeof s->map) ||
      json_get_text(r, from, "found", false, s->found, sizeof s->found))
    return FF_PARSE;
  if (!count || count > SIM_STACKS) return json_fail(r, "count", "a number of memory stacks");
  s->count = (uint32_t)count;
  return sim_offload_read(offload, &s->offload, NULL) ? json_fail(r, "offload", "a way of offloading") : FF_OK;
}

ff_status json_stacks_read(json_reader *r, const json_t *from, sim_stacks *s) {
  if (read_choice(r, from, s)) return FF_PARSE;
#define X(name, unit, help) \
  if (json_get_count(r, from, #name, &s->name)) return FF_PARSE;
#include "machine/stacks/stacks.def"
#undef X
  if (read_joule(r, from, "link_joule", &s->link_joule) || read_joule(r, from, "idle_joule", &s->idle_joule) ||
      read_joule(r, from, "activation_joule", &s->activation_joule) ||
      read_joule(r, from, "read_joule", &s->read_joule) ||
      (json_object_get(from, "sm_joule") && read_joule(r, from, "sm_joule", &s->sm_joule))) /* not in older files */
    return FF_PARSE;
  if (read_numbers(r, json_object_get(from, "tx_bytes"), "tx_bytes", s->tx, s->count) ||
      read_numbers(r, json_object_get(from, "rx_bytes"), "rx_bytes", s->rx, s->count) ||
      read_numbers(r, json_object_get(from, "internal_bytes"), "internal_bytes", s->internal, s->count))
    return FF_PARSE;
  return read_cross(r, json_object_get(from, "cross_bytes"), s);
}
