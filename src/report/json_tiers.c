/* SPDX-License-Identifier: Apache-2.0 */
/* What a simulation counted of the tiers below GPU memory, as the key "tiers" of its run (docs/json.md): a list, the
 * host's memory first. A run in which the host's memory held everything has no such key. Input is never trusted. */
#include "report/json_parts.h"

json_t *json_tiers_value(const sim_tiers *tiers) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < tiers->count; i++) {
    const sim_tier *t = &tiers->of[i];
    json_t *object = json_object();
    json_put(object, "name", json_text_value(t->name));
    json_put_count(object, "capacity_bytes", t->capacity);
#define X(name, unit, help) json_put_count(object, #name, t->name);
#include "machine/observe/tiers.def"
#undef X
    json_array_append_new(list, object);
  }
  return list;
}

static ff_status read_tier(json_reader *r, const json_t *from, sim_tier *t) {
  if (!json_is_object(from)) return json_fail(r, "tiers", "a list of objects");
  if (json_get_text(r, from, "name", true, t->name, sizeof t->name) ||
      json_get_count(r, from, "capacity_bytes", &t->capacity))
    return FF_PARSE;
#define X(name, unit, help) \
  if (json_get_count(r, from, #name, &t->name)) return FF_PARSE;
#include "machine/observe/tiers.def"
#undef X
  return FF_OK;
}

ff_status json_tiers_read(json_reader *r, const json_t *from, sim_tiers *tiers) {
  size_t count = json_array_size(from);
  if (!json_is_array(from) || !count || count > SIM_TIERS) return json_fail(r, "tiers", "a list of tiers");
  for (size_t i = 0; i < count; i++)
    if (read_tier(r, json_array_get(from, i), &tiers->of[i])) return FF_PARSE;
  tiers->count = (uint32_t)count;
  return FF_OK;
}
