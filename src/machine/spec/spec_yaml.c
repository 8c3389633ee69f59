/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the text of a machine file (YAML, by libfyaml) into a machine_spec:
 *
 *   title: one line for `farfault list machines`
 *   like: MACHINE                             optional: a bundled machine or a file, whose values are those that are not
 *                                             given here
 *   GROUP:                                    as in params.def
 *     NAME: {value: V, source: "where V is from"}
 *
 * Reading refuses a file in which a required value of params.def is missing, stands twice or under another group, is
 * not of its type and range, or has no source, and one with anything else in it; the error shows the line with a caret.
 * Anchors and aliases are refused, so that a file cannot be larger than it looks. */
#include <stdlib.h>
#include <string.h>

#include "base/yaml.h"
#include "machine/spec/spec_table.h"

enum { SCALAR_LIMIT = FF_YAML_SCALAR };

typedef struct reader {
  ff_yaml yaml;
  machine_spec *spec;
  const spec_chain *chain;
  bool liked;                      /* *spec has the values of another machine */
  uint32_t seen[SPEC_PARAM_COUNT]; /* the line of each value, 0: not given yet */
  const char *groups[SPEC_PARAM_COUNT];
  uint32_t group_count;
} reader;

static ff_status read_point(reader *r, struct fy_node *key, struct fy_node *point, machine_size_table *table) {
  char bytes[SCALAR_LIMIT + 1], gbs[SCALAR_LIMIT + 1];
  if (!fy_node_is_sequence(point) || fy_node_sequence_item_count(point) != 2)
    return ff_yaml_fail(&r->yaml, fy_node_is_scalar(point) ? point : key,
                        "each point of the table is a pair: [bytes, GB/s]");
  struct fy_node *first = fy_node_sequence_get_by_index(point, 0), *second = fy_node_sequence_get_by_index(point, 1);
  if (!ff_yaml_scalar(first, bytes) || !ff_yaml_scalar(second, gbs))
    return ff_yaml_fail(&r->yaml, key, "each point of the table is a pair: [bytes, GB/s]");
  ff_error why;
  if (spec_point_add(table, bytes, gbs, &why)) return ff_yaml_fail(&r->yaml, first, "%s", why.message);
  return FF_OK;
}

static ff_status read_table(reader *r, const spec_param *param, struct fy_node *key, struct fy_node *value) {
  if (!fy_node_is_sequence(value) || fy_node_sequence_is_empty(value))
    return ff_yaml_fail(&r->yaml, fy_node_is_scalar(value) ? value : key, "'%s' is a table: [[bytes, GB/s], ...]",
                        param->name);
  machine_size_table *table = (machine_size_table *)((char *)r->spec + param->offset);
  void *at = NULL;
  struct fy_node *point;
  while ((point = fy_node_sequence_iterate(value, &at))) {
    ff_status status = read_point(r, key, point, table);
    if (status) return status;
  }
  return FF_OK;
}

static ff_status read_mask(reader *r, const spec_param *param, struct fy_node *key, struct fy_node *mask,
                           machine_mask_table *table) {
  if (!fy_node_is_sequence(mask) || fy_node_sequence_is_empty(mask))
    return ff_yaml_fail(&r->yaml, fy_node_is_scalar(mask) ? mask : key,
                        "each mask of '%s' is a list of bits: [10, 12, ...]", param->name);
  void *at = NULL;
  struct fy_node *bit;
  for (bool first = true; (bit = fy_node_sequence_iterate(mask, &at)); first = false) {
    char text[SCALAR_LIMIT + 1];
    ff_error why;
    if (!ff_yaml_scalar(bit, text))
      return ff_yaml_fail(&r->yaml, key, "each mask of '%s' is a list of bits: [10, 12, ...]", param->name);
    if (spec_mask_bit_add(param, table, text, first, &why)) return ff_yaml_fail(&r->yaml, bit, "%s", why.message);
  }
  return FF_OK;
}

static ff_status read_masks(reader *r, const spec_param *param, struct fy_node *key, struct fy_node *value) {
  if (!fy_node_is_sequence(value) || fy_node_sequence_is_empty(value))
    return ff_yaml_fail(&r->yaml, fy_node_is_scalar(value) ? value : key,
                        "'%s' is a list of masks: [[10, 12, ...], ...]", param->name);
  void *at = NULL;
  struct fy_node *mask;
  while ((mask = fy_node_sequence_iterate(value, &at))) {
    ff_status status = read_mask(r, param, key, mask, (machine_mask_table *)((char *)r->spec + param->offset));
    if (status) return status;
  }
  return FF_OK;
}

/* ---- lists of rows ---- */

typedef struct row_form {
  char type;                 /* of spec_param */
  const char *name, *fields; /* what a row is, and what is in it */
  int count;                 /* of the fields */
  /* *wrong: which field was refused */
  ff_status (*add)(void *table, const char *const *texts, int *wrong, ff_error *error);
} row_form;

enum { ROW_FIELDS = MACHINE_TIER_FIELDS }; /* the most that a row has */

static ff_status add_join(void *table, const char *const *texts, int *wrong, ff_error *error) {
  *wrong = 0;
  return spec_join_add(table, texts, error);
}

static ff_status add_profile(void *table, const char *const *texts, int *wrong, ff_error *error) {
  *wrong = 0;
  return spec_profile_add(table, texts, error);
}

static ff_status add_tier(void *table, const char *const *texts, int *wrong, ff_error *error) {
  return spec_tier_add(table, texts, wrong, error);
}

static const row_form row_forms[] = {
    {'j', "join", "GPU, GPU, GB/s, us", 4, add_join},
    {'p', "profile", "name, SMs, memory slices, L2 slices", 4, add_profile},
    {'l', "tier", "name, bytes, GB/s read, GB/s written, us, bytes of a unit, paged or mapped", MACHINE_TIER_FIELDS,
     add_tier},
};

static const row_form *row_form_of(char type) {
  for (size_t i = 0; i < sizeof row_forms / sizeof row_forms[0]; i++)
    if (row_forms[i].type == type) return &row_forms[i];
  return NULL;
}

static ff_status fail_row(reader *r, const row_form *form, struct fy_node *at) {
  return ff_yaml_fail(&r->yaml, at, "each %s is [%s]", form->name, form->fields);
}

static ff_status read_row(reader *r, const row_form *form, struct fy_node *key, struct fy_node *row, void *table) {
  char scalars[ROW_FIELDS][SCALAR_LIMIT + 1];
  const char *texts[ROW_FIELDS];
  if (!fy_node_is_sequence(row) || fy_node_sequence_item_count(row) != form->count)
    return fail_row(r, form, fy_node_is_scalar(row) ? row : key);
  for (int i = 0; i < form->count; i++) {
    if (!ff_yaml_scalar(fy_node_sequence_get_by_index(row, i), scalars[i])) return fail_row(r, form, key);
    texts[i] = scalars[i];
  }
  ff_error why;
  int wrong;
  if (form->add(table, texts, &wrong, &why))
    return ff_yaml_fail(&r->yaml, fy_node_sequence_get_by_index(row, wrong), "%s", why.message);
  return FF_OK;
}

static ff_status read_rows(reader *r, const spec_param *param, const row_form *form, struct fy_node *key,
                           struct fy_node *value) {
  if (!fy_node_is_sequence(value) || fy_node_sequence_is_empty(value))
    return ff_yaml_fail(&r->yaml, fy_node_is_scalar(value) ? value : key, "'%s' is a list: [[%s], ...]", param->name,
                        form->fields);
  void *at = NULL;
  struct fy_node *row;
  while ((row = fy_node_sequence_iterate(value, &at))) {
    ff_status status = read_row(r, form, key, row, (char *)r->spec + param->offset);
    if (status) return status;
  }
  return FF_OK;
}

/* Of the machine that it is like. */
static void forget_value(reader *r, const spec_param *param) {
  const spec_param *next = param + 1;
  size_t end = next < spec_params + SPEC_PARAM_COUNT ? next->offset : offsetof(machine_spec, file);
  memset((char *)r->spec + param->offset, 0, end - param->offset);
}

static ff_status read_value(reader *r, const spec_param *param, struct fy_node *key, struct fy_node *value) {
  forget_value(r, param);
  const row_form *form = row_form_of(param->type);
  if (form) return read_rows(r, param, form, key, value);
  if (param->type == 't') return read_table(r, param, key, value);
  if (param->type == 'm') return read_masks(r, param, key, value);
  char text[SCALAR_LIMIT + 1];
  if (!ff_yaml_scalar(value, text))
    return ff_yaml_fail(&r->yaml, key, "the value of '%s' must be a single one", param->name);
  ff_error why;
  if (spec_value_parse(param, text, r->spec, &why))
    return ff_yaml_fail(&r->yaml, value, "%s: %s", param->name, why.message);
  return FF_OK;
}

static ff_status check_source(reader *r, const spec_param *param, struct fy_node *key, struct fy_node *source) {
  char text[SCALAR_LIMIT + 1];
  if (!source)
    return ff_yaml_fail(&r->yaml, key, "'%s' has no source: {value: ..., source: \"where it is from\"}", param->name);
  if (!ff_yaml_scalar(source, text))
    return ff_yaml_fail(&r->yaml, key, "the source of '%s' must be a text", param->name);
  if (!text[strspn(text, " \t\n")]) return ff_yaml_fail(&r->yaml, source, "the source of '%s' is empty", param->name);
  return FF_OK;
}

/* NAME: {value: V, source: S} */
static ff_status read_param(reader *r, const spec_param *param, struct fy_node *key, struct fy_node *body) {
  if (!fy_node_is_mapping(body))
    return ff_yaml_fail(&r->yaml, fy_node_is_scalar(body) ? body : key,
                        "write '%s: {value: ..., source: \"where it is from\"}'", param->name);
  struct fy_node *value = NULL, *source = NULL;
  void *at = NULL;
  struct fy_node_pair *pair;
  while ((pair = fy_node_mapping_iterate(body, &at))) {
    char name[SCALAR_LIMIT + 1];
    struct fy_node *inner = fy_node_pair_key(pair);
    struct fy_node **slot = !ff_yaml_scalar(inner, name) ? NULL
                            : !strcmp(name, "value")     ? &value
                            : !strcmp(name, "source")    ? &source
                                                         : NULL;
    if (!slot) return ff_yaml_fail(&r->yaml, inner, "'%s' has only 'value' and 'source'", param->name);
    if (*slot) return ff_yaml_fail(&r->yaml, inner, "'%s' is given twice", name);
    *slot = fy_node_pair_value(pair);
    if (!*slot) return ff_yaml_fail(&r->yaml, inner, "'%s' has nothing after it", name);
  }
  if (!value)
    return ff_yaml_fail(&r->yaml, key, "'%s' has no value: {value: ..., source: \"where it is from\"}", param->name);
  ff_status status = read_value(r, param, key, value);
  return status ? status : check_source(r, param, key, source);
}

static ff_status unknown_param(reader *r, const char *group, struct fy_node *key, const char *name) {
  const char *names[SPEC_PARAM_COUNT + 1] = {0};
  for (int i = 0, n = 0; i < SPEC_PARAM_COUNT; i++)
    if (!strcmp(spec_params[i].group, group)) names[n++] = spec_params[i].name;
  const char *near = ff_closest(name, names);
  return near ? ff_yaml_fail(&r->yaml, key, "unknown value '%s' in group '%s': did you mean '%s'?", name, group, near)
              : ff_yaml_fail(&r->yaml, key, "unknown value '%s' in group '%s'", name, group);
}

static ff_status read_group(reader *r, const char *group, struct fy_node *group_key, struct fy_node *body) {
  if (!fy_node_is_mapping(body))
    return ff_yaml_fail(&r->yaml, group_key, "group '%s' must hold values: NAME: {value: ..., source: ...}", group);
  void *at = NULL;
  struct fy_node_pair *pair;
  while ((pair = fy_node_mapping_iterate(body, &at))) {
    char name[SCALAR_LIMIT + 1];
    struct fy_node *key = fy_node_pair_key(pair);
    if (!ff_yaml_scalar(key, name))
      return ff_yaml_fail(&r->yaml, key ? key : group_key, "a value's name must be a plain word");
    const spec_param *param = spec_param_find(name);
    if (!param) return unknown_param(r, group, key, name);
    if (strcmp(param->group, group))
      return ff_yaml_fail(&r->yaml, key, "'%s' belongs to group '%s', not '%s'", name, param->group, group);
    uint32_t *seen = &r->seen[param - spec_params];
    if (*seen) return ff_yaml_fail(&r->yaml, key, "'%s' is given twice, first on line %u", name, *seen);
    uint32_t column;
    ff_yaml_place(key, seen, &column);
    ff_status status = read_param(r, param, key, fy_node_pair_value(pair));
    if (status) return status;
  }
  return FF_OK;
}

static ff_status read_title(reader *r, struct fy_node *key, struct fy_node *value) {
  char text[SCALAR_LIMIT + 1];
  if (r->spec->title[0]) return ff_yaml_fail(&r->yaml, key, "'title' is given twice");
  if (!ff_yaml_scalar(value, text) || !text[0] || strlen(text) >= sizeof r->spec->title || strpbrk(text, "\n\t\r\033"))
    return ff_yaml_fail(&r->yaml, key, "the title must be one line of 1 to %zu characters", sizeof r->spec->title - 1);
  strcpy(r->spec->title, text);
  return FF_OK;
}

/* Before everything else, wherever it stands. */
static ff_status read_like(reader *r, struct fy_node *root) {
  char name[SCALAR_LIMIT + 1];
  void *at = NULL;
  struct fy_node_pair *pair;
  while ((pair = fy_node_mapping_iterate(root, &at))) {
    struct fy_node *key = fy_node_pair_key(pair), *value = fy_node_pair_value(pair);
    if (!ff_yaml_scalar(key, name) || strcmp(name, "like")) continue;
    if (r->liked) return ff_yaml_fail(&r->yaml, key, "'like' is given twice");
    if (!ff_yaml_scalar(value, name) || !name[0] || strpbrk(name, "\n\t\r\033"))
      return ff_yaml_fail(&r->yaml, key, "'like' is the name of a machine, or the path of its file");
    ff_error why;
    ff_status status = spec_load_like(name, r->chain, r->spec, &why);
    if (status == FF_NOT_FOUND || (status == FF_INVALID && !strchr(why.message, '\n')))
      return ff_yaml_fail(&r->yaml, value, "%s", why.message);
    if (status) return ff_fail(r->yaml.error, status, "%s\n  %s is like it", why.message, r->yaml.file);
    r->liked = true;
    r->spec->title[0] = r->spec->file[0] = '\0';
  }
  return FF_OK;
}

static ff_status unknown_group(reader *r, struct fy_node *key, const char *name) {
  const char *names[SPEC_PARAM_COUNT + 3] = {"title", "like"};
  for (int i = 0; i < SPEC_PARAM_COUNT; i++) names[i + 2] = spec_params[i].group;
  const char *near = ff_closest(name, names);
  if (near) return ff_yaml_fail(&r->yaml, key, "unknown group '%s': did you mean '%s'?", name, near);
  ff_text known = {0};
  for (int i = 0; i < SPEC_PARAM_COUNT; i++) /* a group's parameters stand together */
    if (!i || strcmp(spec_params[i].group, spec_params[i - 1].group))
      ff_text_add(&known, "%s%s", i ? ", " : "", spec_params[i].group);
  ff_status status = ff_yaml_fail(&r->yaml, key, "unknown group '%s': there are %s", name, known.chars);
  free(known.chars);
  return status;
}

static ff_status read_top(reader *r, struct fy_node *key, struct fy_node *body) {
  char name[SCALAR_LIMIT + 1];
  if (!ff_yaml_scalar(key, name)) return ff_yaml_fail(&r->yaml, key, "a group's name must be a plain word");
  if (!strcmp(name, "title")) return read_title(r, key, body);
  if (!strcmp(name, "like")) return FF_OK;
  if (!spec_group_exists(name)) return unknown_group(r, key, name);
  for (uint32_t i = 0; i < r->group_count; i++)
    if (!strcmp(r->groups[i], name)) return ff_yaml_fail(&r->yaml, key, "group '%s' is given twice", name);
  for (int i = 0; i < SPEC_PARAM_COUNT; i++)
    if (!strcmp(spec_params[i].group, name)) {
      r->groups[r->group_count++] = spec_params[i].group;
      break;
    }
  return read_group(r, name, key, body);
}

static ff_status check_whole(reader *r) {
  if (!r->spec->title[0])
    return ff_fail(r->yaml.error, FF_PARSE, "%s: has no title: add a line 'title: ...'", r->yaml.file);
  for (int i = 0; i < SPEC_PARAM_COUNT; i++)
    if (spec_params[i].required && !r->seen[i] && !r->liked)
      return ff_fail(r->yaml.error, FF_PARSE, "%s: the value '%s' is missing from group '%s'", r->yaml.file,
                     spec_params[i].name, spec_params[i].group);
  ff_error why;
  if (spec_check(r->spec, &why)) return ff_fail(r->yaml.error, FF_INVALID, "%s: %s", r->yaml.file, why.message);
  return FF_OK;
}

static ff_status read_root(reader *r, struct fy_node *root) {
  if (!root || !fy_node_is_mapping(root))
    return ff_fail(r->yaml.error, FF_PARSE, "%s: is not a machine file: groups of values are expected", r->yaml.file);
  void *at = NULL;
  struct fy_node_pair *pair;
  ff_status like = read_like(r, root);
  if (like) return like;
  while ((pair = fy_node_mapping_iterate(root, &at))) {
    ff_status status = read_top(r, fy_node_pair_key(pair), fy_node_pair_value(pair));
    if (status) return status;
  }
  return check_whole(r);
}

ff_status spec_text_load_like(const spec_chain *chain, const char *text, size_t size, machine_spec *spec,
                              ff_error *error) {
  reader r = {.spec = spec, .chain = chain};
  *spec = (machine_spec){0};
  ff_status status = ff_yaml_open(chain->file, text, size, "machine", &r.yaml, error);
  if (status) return status;
  status = read_root(&r, ff_yaml_root(&r.yaml));
  ff_yaml_close(&r.yaml);
  spec->like = r.liked;
  return status;
}

ff_status spec_text_load(const char *file, const char *text, size_t size, machine_spec *spec, ff_error *error) {
  return spec_text_load_like(&(spec_chain){.file = file}, text, size, spec, error);
}
