/* SPDX-License-Identifier: Apache-2.0 */
/* The schema of machine files, of params.def and spec_limits.def: names, groups, kinds, limits, what must be there.
 * What must hold between values is not in it: only reading the file says that. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands/machine_command.h"
#include "machine/spec/spec_table.h"

static const char *const helps[SPEC_PARAM_COUNT] = {
#define X(group, name, type, unit, required, help) [SPEC_##name] = help,
#include "machine/spec/params.def"
#undef X
};

#define BYTES_PATTERN "^[0-9]+(\\.[0-9]+)?([KMGT](i?B)?|B)?$"

static json_t *string_schema(size_t most) {
  return json_pack("{s:s, s:i, s:I}", "type", "string", "minLength", 1, "maxLength", (json_int_t)most);
}

/* A limit as a whole number where it is one. */
static json_t *limit(double value) {
  bool whole = value > -1e15 && value < 1e15 && value == (double)(json_int_t)value;
  return whole ? json_integer((json_int_t)value) : json_real(value);
}

static json_t *number_schema(const char *type, double low, double high) {
  return json_pack("{s:s, s:o, s:o}", "type", type, "minimum", limit(low), "maximum", limit(high));
}

static json_t *bytes_schema(double low, double high) {
  return json_pack("{s:[o, {s:s, s:s}]}", "anyOf", number_schema("integer", low, high), "type", "string", "pattern",
                   BYTES_PATTERN);
}

static json_t *table_schema(void) {
  return json_pack("{s:s, s:i, s:i, s:{s:s, s:i, s:i, s:[o, o]}}", "type", "array", "minItems", 1, "maxItems",
                   (int)(sizeof((machine_size_table *)0)->points / sizeof(machine_size_point)), "items", "type",
                   "array", "minItems", 2, "maxItems", 2, "items", bytes_schema(1, 1e15),
                   number_schema("number", 0.001, 1e6));
}

static json_t *joins_schema(double most) {
  return json_pack("{s:s, s:i, s:o, s:{s:s, s:i, s:i, s:[o, o, o, o]}}", "type", "array", "minItems", 1, "maxItems",
                   limit(most), "items", "type", "array", "minItems", 4, "maxItems", 4, "items",
                   number_schema("integer", 0, MACHINE_GPUS - 1), number_schema("integer", 0, MACHINE_GPUS - 1),
                   number_schema("number", 0.001, 1e6), number_schema("number", 0, 1e6));
}

static json_t *profiles_schema(double most) {
  return json_pack("{s:s, s:i, s:o, s:{s:s, s:i, s:i, s:[o, o, o, o]}}", "type", "array", "minItems", 1, "maxItems",
                   limit(most), "items", "type", "array", "minItems", 4, "maxItems", 4, "items",
                   string_schema(sizeof((machine_profile *)0)->name - 1), number_schema("integer", 1, 4096),
                   number_schema("integer", 1, 64), number_schema("integer", 1, 64));
}

static json_t *tiers_schema(double most) {
  return json_pack("{s:s, s:i, s:o, s:{s:s, s:i, s:i, s:[o, o, o, o, o, o, {s:s, s:s}]}}", "type", "array", "minItems",
                   1, "maxItems", limit(most), "items", "type", "array", "minItems", MACHINE_TIER_FIELDS, "maxItems",
                   MACHINE_TIER_FIELDS, "items", string_schema(sizeof((machine_tier *)0)->name - 1),
                   bytes_schema(2 << 20, 9e18), number_schema("number", 0.001, 1e6),
                   number_schema("number", 0.001, 1e6), number_schema("number", 0, 1e6), bytes_schema(64, 1 << 30),
                   "type", "string", "pattern", "^(paged|mapped)$");
}

static json_t *masks_schema(const spec_param *param, double most) {
  uint32_t low, high;
  spec_mask_bits(param, &low, &high);
  return json_pack("{s:s, s:i, s:o, s:{s:s, s:i, s:b, s:o}}", "type", "array", "minItems", 1, "maxItems", limit(most),
                   "items", "type", "array", "minItems", 1, "uniqueItems", 1, "items",
                   number_schema("integer", low, high));
}

static json_t *value_schema(const spec_param *param) {
  double low, high;
  spec_param_limits(param, &low, &high);
  switch (param->type) {
  case 'u': return strcmp(param->unit, "bytes") ? number_schema("integer", low, high) : bytes_schema(low, high);
  case 'f': return number_schema("number", low, high);
  case 's': return string_schema((size_t)high);
  case 't': return table_schema();
  case 'j': return joins_schema(high);
  case 'p': return profiles_schema(high);
  case 'l': return tiers_schema(high);
  default: return masks_schema(param, high);
  }
}

static json_t *param_schema(const spec_param *param) {
  ff_text text = {0};
  ff_text_add(&text, "%s%s%s", helps[param - spec_params], param->unit[0] ? "; in " : "", param->unit);
  json_t *schema =
      json_pack("{s:s, s:s, s:{s:o, s:{s:s, s:i, s:s}}, s:[s, s], s:b}", "description", text.chars, "type", "object",
                "properties", "value", value_schema(param), "source", "type", "string", "minLength", 1, "description",
                "where the value is from", "required", "value", "source", "additionalProperties", 0);
  free(text.chars);
  return schema;
}

/* Of the group that begins with the parameter `first`; in *required what it needs in a machine that is like no
 * other. */
static json_t *group_schema(int first, json_t *required) {
  json_t *properties = json_object();
  for (int i = 0; i < SPEC_PARAM_COUNT; i++) {
    const spec_param *param = &spec_params[i];
    if (strcmp(param->group, spec_params[first].group)) continue;
    json_object_set_new(properties, param->name, param_schema(param));
    if (param->required) json_array_append_new(required, json_string(param->name));
  }
  return json_pack("{s:s, s:o, s:b}", "type", "object", "properties", properties, "additionalProperties", 0);
}

static int add_chunk(const char *bytes, size_t size, void *out) {
  ff_text_add_bytes(out, bytes, size);
  return 0;
}

void machine_schema_write(ff_text *out) {
  json_t *properties = json_object(), *required = json_array(), *whole = json_object();
  json_object_set_new(properties, "title", string_schema(sizeof((machine_spec *)0)->title - 1));
  json_object_set_new(properties, "like",
                      json_pack("{s:s, s:s, s:i}", "description",
                                "the machine whose values are those that are not given here: a name of `farfault list "
                                "machines`, or a file, relative to this one",
                                "type", "string", "minLength", 1));
  for (int i = 0; i < SPEC_PARAM_COUNT; i++) {
    const char *group = spec_params[i].group;
    if (json_object_get(properties, group)) continue;
    json_t *needed = json_array();
    json_object_set_new(properties, group, group_schema(i, needed));
    if (!json_array_size(needed)) {
      json_decref(needed);
      continue;
    }
    json_array_append_new(required, json_string(group));
    json_object_set_new(whole, group, json_pack("{s:o}", "required", needed));
  }
  json_t *schema = json_pack("{s:s, s:s, s:s, s:s, s:o, s:[s], s:{s:[s]}, s:{s:o, s:o}, s:b}", "$schema",
                             "http://json-schema.org/draft-07/schema#", "title", "A machine file of farfault",
                             "description", "made by `farfault machine schema`; each value says where it is from",
                             "type", "object", "properties", properties, "required", "title", "if", "required", "like",
                             "else", "required", required, "properties", whole, "additionalProperties", 0);
  json_dump_callback(schema, add_chunk, out, JSON_INDENT(1) | JSON_REAL_PRECISION(12));
  ff_text_add(out, "\n");
  json_decref(schema);
}
