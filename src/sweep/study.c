/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a study file:
 *
 *   title: one line                      # optional
 *   NAME: value | [value, ...]           # for all grids and points that do not say it themselves
 *   set: {VALUE OF THE MACHINE: value | [value, ...]}
 *   grids:  [{NAME: ..., set: {...}}, ...]
 *   points: [{NAME: value, set: {...}}, ...]
 *
 * Without `grids` and `points` the study is the one grid of what stands at the top. */
#include "sweep/study.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/yaml.h"

enum { GRID_LIMIT = 10000, VALUE_LIMIT = 100000 };

typedef struct reader {
  ff_yaml yaml;
  study *study;
  study_grid common;        /* what stands at the top */
  struct fy_node *lists[2]; /* of grids, of points */
} reader;

const char *study_axis_name(int axis) {
  if (axis == AXIS_TRACE) return "trace";
  if (axis == AXIS_MACHINE) return "machine";
  if (axis == AXIS_MEMORY) return "memory";
  return axis < AXIS_CHOICE ? spec_params[axis - AXIS_SET].name : sim_choice_infos[axis - AXIS_CHOICE].name;
}

ff_status study_fail(const study *study, uint32_t line, uint32_t column, ff_error *error, const char *format, ...) {
  ff_error about;
  va_list args;
  va_start(args, format);
  ff_vfail(&about, FF_PARSE, format, args);
  va_end(args);
  column = ff_column_in_bytes(study->text, study->size, line, column);
  return ff_fail_in_text(error, FF_PARSE, study->file, study->text, study->size, line, column, "%s", about.message);
}

uint64_t study_grid_size(const study_grid *grid) {
  uint64_t size = 1;
  for (int i = 0; i < AXIS_COUNT; i++)
    if (grid->axes[i] && __builtin_mul_overflow(size, (uint64_t)grid->axes[i]->values.count, &size)) return UINT64_MAX;
  return size;
}

/* ---- values ---- */

static ff_status add_value(reader *r, struct fy_node *key, struct fy_node *node, const char *name, study_axis *axis) {
  char text[FF_YAML_SCALAR + 1];
  if (!ff_yaml_scalar(node, text))
    return ff_yaml_fail(&r->yaml, node && fy_node_is_scalar(node) ? node : key,
                        "'%s' is one value, or a list of them: [a, b]", name);
  study_value value = {0};
  ff_yaml_place(node, &value.line, &value.column);
  if (!text[0] || strpbrk(text, "\n\r"))
    return ff_yaml_fail(&r->yaml, value.column ? node : key, "this value of '%s' is empty, or more than a line", name);
  if (axis->values.count == VALUE_LIMIT)
    return ff_yaml_fail(&r->yaml, node, "'%s' has more than %d values", name, VALUE_LIMIT);
  value.text = ff_strdup(text);
  FF_PUSH(&axis->values, value);
  return FF_OK;
}

static ff_status add_values(reader *r, struct fy_node *key, struct fy_node *body, const char *name, study_axis *axis) {
  if (!body || !fy_node_is_sequence(body)) return add_value(r, key, body, name, axis);
  void *at = NULL;
  struct fy_node *node;
  while ((node = fy_node_sequence_iterate(body, &at))) {
    ff_status status = add_value(r, key, node, name, axis);
    if (status) return status;
  }
  return axis->values.count ? FF_OK : ff_yaml_fail(&r->yaml, key, "the list of '%s' is empty", name);
}

static ff_status read_axis(reader *r, struct fy_node *key, struct fy_node *body, int id, study_grid *grid) {
  const char *name = study_axis_name(id);
  if (grid->own[id]) return ff_yaml_fail(&r->yaml, key, "'%s' is given twice", name);
  if (grid->point && body && fy_node_is_sequence(body))
    return ff_yaml_fail(&r->yaml, key, "a point has one '%s': lists make a grid", name);
  study_axis *axis = ff_alloc(sizeof *axis);
  FF_PUSH(&r->study->axes, axis);
  grid->axes[id] = axis;
  grid->own[id] = true;
  return add_values(r, key, body, name, axis);
}

/* ---- names ---- */

static int find_axis(const char *name, int from, int to) {
  for (int i = from; i < to; i++)
    if (!strcmp(study_axis_name(i), name)) return i;
  return -1;
}

/* A key that is none here: perhaps it is one elsewhere, or nearly one. */
static ff_status fail_unknown(reader *r, struct fy_node *key, const char *name, bool top) {
  const char *names[AXIS_COUNT + 5] = {"set"};
  int count = 1;
  if (find_axis(name, AXIS_SET, AXIS_CHOICE) >= 0)
    return ff_yaml_fail(&r->yaml, key, "'%s' is a value of the machine: write 'set: {%s: ...}'", name, name);
  for (int i = 0; i < AXIS_COUNT; i++)
    if (i < AXIS_SET || i >= AXIS_CHOICE) names[count++] = study_axis_name(i);
  if (top) {
    names[count++] = "title";
    names[count++] = "grids";
    names[count++] = "points";
  }
  const char *near = ff_closest(name, names);
  return near
             ? ff_yaml_fail(&r->yaml, key, "unknown key '%s': did you mean '%s'?", name, near)
             : ff_yaml_fail(
                   &r->yaml, key,
                   "unknown key '%s': there are trace, machine, memory, set, and the options of farfault run (gpu-memory, prefetch, ...)",
                   name);
}

static ff_status fail_unknown_value(reader *r, struct fy_node *key, const char *name) {
  const char *names[SPEC_PARAM_COUNT + 1] = {0};
  for (int i = 0; i < SPEC_PARAM_COUNT; i++) names[i] = spec_params[i].name;
  if (find_axis(name, AXIS_CHOICE, AXIS_MEMORY) >= 0)
    return ff_yaml_fail(&r->yaml, key, "'%s' is no value of a machine: write it next to 'set'", name);
  const char *near = ff_closest(name, names);
  return near ? ff_yaml_fail(&r->yaml, key, "a machine has no value '%s': did you mean '%s'?", name, near)
              : ff_yaml_fail(&r->yaml, key, "a machine has no value '%s'", name);
}

/* set: {NAME: value | [value, ...]} */
static ff_status read_set(reader *r, struct fy_node *set_key, struct fy_node *body, study_grid *grid) {
  if (!body || !fy_node_is_mapping(body))
    return ff_yaml_fail(&r->yaml, set_key, "'set' holds values of the machine: {NAME: value, ...}");
  void *at = NULL;
  struct fy_node_pair *pair;
  while ((pair = fy_node_mapping_iterate(body, &at))) {
    char name[FF_YAML_SCALAR + 1];
    struct fy_node *key = fy_node_pair_key(pair);
    if (!ff_yaml_scalar(key, name)) return ff_yaml_fail(&r->yaml, set_key, "a value's name must be a plain word");
    int id = find_axis(name, AXIS_SET, AXIS_CHOICE);
    ff_status status =
        id < 0 ? fail_unknown_value(r, key, name) : read_axis(r, key, fy_node_pair_value(pair), id, grid);
    if (status) return status;
  }
  return FF_OK;
}

static ff_status read_key(reader *r, struct fy_node *key, struct fy_node *body, const char *name, study_grid *grid,
                          bool top) {
  if (!strcmp(name, "set")) return read_set(r, key, body, grid);
  int id = find_axis(name, AXIS_TRACE, AXIS_SET);
  if (id < 0) id = find_axis(name, AXIS_CHOICE, AXIS_COUNT);
  return id < 0 ? fail_unknown(r, key, name, top) : read_axis(r, key, body, id, grid);
}

/* ---- grids and points ---- */

static void inherit(const reader *r, study_grid *grid) {
  for (int i = 0; i < AXIS_COUNT; i++)
    if (!grid->own[i]) grid->axes[i] = r->common.axes[i];
}

static ff_status finish_grid(reader *r, study_grid *grid) {
  static const int needed[] = {AXIS_TRACE, AXIS_MEMORY};
  inherit(r, grid);
  for (int i = 0; i < 2; i++)
    if (!grid->axes[needed[i]])
      return study_fail(r->study, grid->line, grid->column, r->yaml.error, "%s has no '%s'",
                        grid->point ? "this point" : "this grid", study_axis_name(needed[i]));
  return FF_OK;
}

static ff_status read_grid(reader *r, struct fy_node *list_key, struct fy_node *body, bool point) {
  if (!fy_node_is_mapping(body) || fy_node_mapping_is_empty(body))
    return ff_yaml_fail(&r->yaml, fy_node_is_scalar(body) ? body : list_key,
                        "each of the %s is a set of keys: {NAME: value, ...}", point ? "points" : "grids");
  if (r->study->grids.count == GRID_LIMIT)
    return ff_yaml_fail(&r->yaml, list_key, "more than %d grids and points", GRID_LIMIT);
  study_grid *grid = ff_alloc(sizeof *grid);
  FF_PUSH(&r->study->grids, grid);
  grid->point = point;
  grid->line = 1;
  void *at = NULL;
  struct fy_node_pair *pair;
  while ((pair = fy_node_mapping_iterate(body, &at))) {
    char name[FF_YAML_SCALAR + 1];
    struct fy_node *key = fy_node_pair_key(pair);
    if (!ff_yaml_scalar(key, name)) return ff_yaml_fail(&r->yaml, list_key, "a key must be a plain word");
    if (!grid->column) ff_yaml_place(key, &grid->line, &grid->column);
    ff_status status = read_key(r, key, fy_node_pair_value(pair), name, grid, false);
    if (status) return status;
  }
  return finish_grid(r, grid);
}

static ff_status read_list(reader *r, struct fy_node *key, struct fy_node *list, bool points) {
  const char *name = points ? "points" : "grids";
  if (!fy_node_is_sequence(list) || fy_node_sequence_is_empty(list))
    return ff_yaml_fail(&r->yaml, key, "'%s' is a list: [{NAME: ...}, ...]", name);
  void *at = NULL;
  struct fy_node *body;
  while ((body = fy_node_sequence_iterate(list, &at))) {
    ff_status status = read_grid(r, key, body, points);
    if (status) return status;
  }
  return FF_OK;
}

static ff_status read_title(reader *r, struct fy_node *key, struct fy_node *body) {
  char text[FF_YAML_SCALAR + 1];
  if (r->study->title[0]) return ff_yaml_fail(&r->yaml, key, "'title' is given twice");
  if (!ff_yaml_scalar(body, text) || !text[0] || strlen(text) >= sizeof r->study->title || strpbrk(text, "\n\t\r\033"))
    return ff_yaml_fail(&r->yaml, key, "the title must be one line of 1 to %zu characters", sizeof r->study->title - 1);
  strcpy(r->study->title, text);
  return FF_OK;
}

/* The keys of the two lists are remembered: what stands at the top counts for them wherever it stands. */
static ff_status read_top(reader *r, struct fy_node *root) {
  void *at = NULL;
  struct fy_node_pair *pair;
  while ((pair = fy_node_mapping_iterate(root, &at))) {
    char name[FF_YAML_SCALAR + 1];
    struct fy_node *key = fy_node_pair_key(pair), *body = fy_node_pair_value(pair);
    if (!ff_yaml_scalar(key, name)) return ff_yaml_fail(&r->yaml, key, "a key must be a plain word");
    bool points = !strcmp(name, "points");
    if (!r->common.column) ff_yaml_place(key, &r->common.line, &r->common.column);
    ff_status status = FF_OK;
    if (!strcmp(name, "title")) status = read_title(r, key, body);
    else if (!points && strcmp(name, "grids") != 0) status = read_key(r, key, body, name, &r->common, true);
    else if (r->lists[points]) status = ff_yaml_fail(&r->yaml, key, "'%s' is given twice", name);
    else if (!body) status = ff_yaml_fail(&r->yaml, key, "'%s' has nothing after it", name);
    else r->lists[points] = key;
    if (status) return status;
  }
  return FF_OK;
}

static ff_status read_lists(reader *r, struct fy_node *root) {
  void *at = NULL;
  struct fy_node_pair *pair;
  while ((pair = fy_node_mapping_iterate(root, &at)))
    for (int points = 0; points < 2; points++)
      if (r->lists[points] && fy_node_pair_key(pair) == r->lists[points]) {
        ff_status status = read_list(r, r->lists[points], fy_node_pair_value(pair), points);
        if (status) return status;
      }
  return FF_OK;
}

static ff_status read_root(reader *r, struct fy_node *root) {
  if (!root || !fy_node_is_mapping(root))
    return ff_fail(r->yaml.error, FF_PARSE, "%s: is not a study: keys like trace, machine, memory are expected",
                   r->study->file);
  ff_status status = read_top(r, root);
  if (status) return status;
  if (r->lists[0] || r->lists[1]) return read_lists(r, root);
  study_grid *grid = ff_alloc(sizeof *grid);
  FF_PUSH(&r->study->grids, grid);
  *grid = r->common;
  return finish_grid(r, grid);
}

ff_status study_read(const char *file, const char *text, size_t size, study *study, ff_error *error) {
  *study = (struct study){.file = ff_strdup(file), .size = size};
  study->text = ff_alloc(size + 1);
  memcpy(study->text, text, size);
  reader r = {.study = study, .common = {.line = 1}};
  ff_status status = ff_yaml_open(study->file, study->text, size, "study", &r.yaml, error);
  if (!status) {
    status = read_root(&r, ff_yaml_root(&r.yaml));
    ff_yaml_close(&r.yaml);
  }
  if (status) study_free(study);
  return status;
}

void study_free(study *study) {
  for (size_t i = 0; i < study->grids.count; i++) free(study->grids.items[i]);
  for (size_t i = 0; i < study->axes.count; i++) {
    study_axis *axis = study->axes.items[i];
    for (size_t j = 0; j < axis->values.count; j++) free(axis->values.items[j].text);
    free(axis->values.items);
    free(axis);
  }
  free(study->grids.items);
  free(study->axes.items);
  free(study->file);
  free(study->text);
  *study = (struct study){0};
}
