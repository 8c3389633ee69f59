/* SPDX-License-Identifier: Apache-2.0 */
/* From a study to its points: see study_plan.h. Traces and machines are read once each; every value is checked alone
 * first, so that a message shows its place, and then every point as a whole. */
#include "sweep/study_plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/manager.h"
#include "sweep/sweep_columns.h"
#include "sweep/sweep_private.h"
#include "trace/file.h"

enum { MACHINE_LIMIT = 1 << 20, LONGEST_MACHINE = sizeof((machine_spec *)0)->file - 1 };

/* ---- files ---- */

char *sweep_path_in(const char *folder, const char *path) {
  ff_text whole = {0};
  if (path[0] == '/') ff_text_add(&whole, "%s", path);
  else ff_text_add(&whole, "%s/%s", folder, path);
  return whole.chars;
}

static void choose_machine(sweep_trace *trace, const char *recorded) {
  const char *chosen = machine_of_recording(recorded, LONGEST_MACHINE);
  trace->machine = ff_strdup(chosen);
  if (recorded && *recorded && chosen != recorded) trace->lost = ff_strdup(recorded);
}

static ff_status read_trace(sweep_trace *trace, ff_error *why) {
  trace_file *file;
  ff_status status = trace_file_open(trace->path, &file, why);
  if (status) return status;
  const trace_file_info *info = trace_file_information(file);
  if (!info->whole || info->nameless)
    status = ff_fail(why, FF_PARSE, "%s: is incomplete or damaged (farfault trace check says how)", trace->path);
  snprintf(trace->checksum, sizeof trace->checksum, "%016" PRIx64, info->checksum);
  choose_machine(trace, info->about.machine);
  trace_file_close(file);
  return status;
}

static ff_status add_trace(planning *p, const study_value *value) {
  for (size_t i = 0; i < p->plan->traces.count; i++)
    if (!strcmp(p->plan->traces.items[i]->name, value->text)) return FF_OK;
  sweep_trace *trace = ff_alloc(sizeof *trace);
  FF_PUSH(&p->plan->traces, trace);
  *trace = (sweep_trace){.name = value->text, .path = sweep_path_in(p->plan->folder, value->text)};
  ff_error why;
  return read_trace(trace, &why) ? sweep_fail_value(p, value, why.message) : FF_OK;
}

/* A machine by its name, or the path of its file. */
static ff_status add_machine(planning *p, const study_value *value) {
  for (size_t i = 0; i < p->plan->machines.count; i++)
    if (!strcmp(p->plan->machines.items[i]->name, value->text)) return FF_OK;
  sweep_machine *machine = ff_alloc(sizeof *machine);
  FF_PUSH(&p->plan->machines, machine);
  machine->name = value->text;
  const char *end = strrchr(value->text, '.');
  bool is_file = strchr(value->text, '/') || (end && !strcmp(end, ".yaml"));
  char *path = is_file ? sweep_path_in(p->plan->folder, value->text) : ff_strdup(value->text);
  ff_error why;
  ff_status status = strlen(path) >= sizeof machine->spec.file
                         ? ff_fail(&why, FF_LIMIT, "%s: the path is too long", path)
                         : machine_spec_load(path, &machine->spec, &why);
  free(path);
  size_t size = 0;
  if (!status) status = ff_file_read(machine->spec.file, MACHINE_LIMIT, &machine->text, &size, &why);
  if (status) return sweep_fail_value(p, value, why.message);
  machine->path = realpath(machine->spec.file, NULL);
  if (!machine->path) machine->path = ff_strdup(machine->spec.file);
  sweep_hash hash;
  sweep_hash_start(&hash);
  sweep_hash_bytes(&hash, machine->text, size);
  sweep_hash_end(&hash, machine->hash);
  return FF_OK;
}

static sweep_trace *find_trace(const sweep_plan *plan, const char *name) {
  for (size_t i = 0; i < plan->traces.count; i++)
    if (!strcmp(plan->traces.items[i]->name, name)) return plan->traces.items[i];
  return NULL;
}

/* The machine of a trace whose grid names none; what is wrong with it is said at the trace's place. */
static ff_status add_machine_of(planning *p, const study_value *trace) {
  study_value value = *trace;
  sweep_trace *found = find_trace(p->plan, trace->text);
  found->alone = true;
  value.text = found->machine;
  return add_machine(p, &value);
}

static ff_status add_files(planning *p) {
  for (size_t i = 0; i < p->study->grids.count; i++) {
    const study_grid *grid = p->study->grids.items[i];
    const study_axis *traces = grid->axes[AXIS_TRACE], *machines = grid->axes[AXIS_MACHINE];
    for (size_t j = 0; j < traces->values.count; j++)
      if (add_trace(p, &traces->values.items[j])) return FF_PARSE;
    for (size_t j = 0; machines && j < machines->values.count; j++)
      if (add_machine(p, &machines->values.items[j])) return FF_PARSE;
    for (size_t j = 0; !machines && j < traces->values.count; j++)
      if (add_machine_of(p, &traces->values.items[j])) return FF_PARSE;
  }
  return FF_OK;
}

const sweep_machine *sweep_find_machine(const sweep_plan *plan, const study_value *machine, const study_value *trace) {
  const char *name = machine ? machine->text : find_trace(plan, trace->text)->machine;
  for (size_t i = 0; i < plan->machines.count; i++)
    if (!strcmp(plan->machines.items[i]->name, name)) return plan->machines.items[i];
  return NULL;
}

/* ---- points ---- */

static void name_column(int axis, sweep_parameter *parameter) {
  *parameter = (sweep_parameter){.axis = axis};
  snprintf(parameter->column, sizeof parameter->column - 8, "%s", study_axis_name(axis));
  for (char *c = parameter->column; *c; c++)
    if (*c == '-') *c = '_';
  if (sweep_column_taken(parameter->column)) strcat(parameter->column, "_chosen");
}

static void find_parameters(planning *p) {
  for (int axis = AXIS_SET; axis < AXIS_MEMORY; axis++)
    for (size_t i = 0; i < p->study->grids.count; i++)
      if (p->study->grids.items[i]->axes[axis]) {
        sweep_parameter parameter;
        name_column(axis, &parameter);
        FF_PUSH(&p->plan->parameters, parameter);
        break;
      }
}

static ff_status check_size(planning *p, uint64_t limit) {
  uint64_t all = 0;
  for (size_t i = 0; i < p->study->grids.count; i++)
    if (__builtin_add_overflow(all, study_grid_size(p->study->grids.items[i]), &all)) all = UINT64_MAX;
  if (all <= limit) return FF_OK;
  return ff_fail(p->error, FF_LIMIT, "%s: is a study of %s%llu points, and at most %llu are run: --limit N allows more",
                 p->study->file, all == UINT64_MAX ? "at least " : "", (unsigned long long)all,
                 (unsigned long long)limit);
}

/* Whether a choice says something to the manager of this text. */
static bool has_meaning(int axis, const char *memory) {
  char *name = strndup(memory, strcspn(memory, "+"));
  const manager *manager = manager_find(name);
  free(name);
  return axis < AXIS_CHOICE || !manager || manager->placement == MANAGER_PAGED ||
         !sim_choice_infos[axis - AXIS_CHOICE].pages;
}

/* Points whose times can be compared: of one trace on one machine, whatever its manager and the size of its memory. */
static void hash_comparable(const sweep_plan *plan, sweep_point *point) {
  sweep_hash hash;
  sweep_hash_start(&hash);
  sweep_hash_text(&hash, FARFAULT_VERSION);
  sweep_hash_text(&hash, point->trace->checksum);
  sweep_hash_text(&hash, point->machine->hash);
  for (size_t i = 0; i < plan->parameters.count; i++) {
    int axis = plan->parameters.items[i].axis;
    bool manager = axis >= AXIS_CHOICE &&
                   (sim_choice_infos[axis - AXIS_CHOICE].pages || axis == AXIS_CHOICE + SIM_CHOICE_GPU_MEMORY);
    if (manager || !point->values[i]) continue;
    sweep_hash_text(&hash, study_axis_name(axis));
    sweep_hash_text(&hash, point->values[i]);
  }
  sweep_hash_end(&hash, point->comparable);
}

/* Adds the point of these values (one per axis), unless it is one of those that are there. */
static ff_status add_point(planning *p, const study_grid *grid, const study_value *const *chosen) {
  sweep_plan *plan = p->plan;
  sweep_point *point = ff_arena_alloc(&plan->arena, sizeof *point);
  *point = (sweep_point){.number = (uint32_t)plan->points.count + 1,
                         .grid = grid,
                         .trace = find_trace(plan, chosen[AXIS_TRACE]->text),
                         .machine = sweep_find_machine(plan, chosen[AXIS_MACHINE], chosen[AXIS_TRACE]),
                         .memory = chosen[AXIS_MEMORY]->text};
  point->values = ff_arena_alloc(&plan->arena, (plan->parameters.count + 1) * sizeof *point->values);
  for (size_t i = 0; i < plan->parameters.count; i++) {
    int axis = plan->parameters.items[i].axis;
    if (!chosen[axis]) continue;
    if (has_meaning(axis, point->memory)) point->values[i] = chosen[axis]->text;
    else if (grid->point && grid->own[axis]) {
      char what[256];
      snprintf(what, sizeof what, "'%s' says nothing to %.100s, which does not page", study_axis_name(axis),
               point->memory);
      return sweep_fail_value(p, chosen[axis], what);
    }
  }
  sweep_hash hash;
  sweep_hash_start(&hash);
  ff_status status = sweep_check_point(p, point, &hash);
  if (status) return status;
  sweep_hash_text(&hash, point->trace->checksum);
  sweep_hash_text(&hash, FARFAULT_VERSION);
  sweep_hash_end(&hash, point->key);
  hash_comparable(plan, point);
  if (ff_map_get(&p->known, point->key)) plan->repeated++;
  else {
    ff_map_set(&p->known, point->key, point);
    FF_PUSH(&plan->points, point);
  }
  return FF_OK;
}

/* All combinations, as an odometer counts: the last axis first. */
static ff_status add_grid(planning *p, const study_grid *grid) {
  const study_value *chosen[AXIS_COUNT] = {0};
  size_t at[AXIS_COUNT] = {0};
  int axis;
  do {
    for (int i = 0; i < AXIS_COUNT; i++) chosen[i] = grid->axes[i] ? &grid->axes[i]->values.items[at[i]] : NULL;
    ff_status status = add_point(p, grid, chosen);
    if (status) return status;
    for (axis = AXIS_COUNT - 1; axis >= 0; axis--) {
      if (grid->axes[axis] && ++at[axis] < grid->axes[axis]->values.count) break;
      at[axis] = 0;
    }
  } while (axis >= 0);
  return FF_OK;
}

static ff_status make(planning *p, uint64_t limit) {
  ff_status status = check_size(p, limit);
  if (!status) status = add_files(p);
  if (!status) status = sweep_check_values(p);
  if (!status) find_parameters(p);
  for (size_t i = 0; i < p->study->grids.count && !status; i++) status = add_grid(p, p->study->grids.items[i]);
  return status;
}

/* The folder of the study's file, absolute. */
static char *folder_of(const char *file) {
  char *real = realpath(file, NULL), *slash = real ? strrchr(real, '/') : NULL;
  if (slash) slash[slash == real] = '\0';
  return real ? real : ff_strdup(".");
}

ff_status sweep_plan_make(const study *study, uint64_t limit, sweep_plan *plan, ff_error *error) {
  *plan = (sweep_plan){.study = study, .folder = folder_of(study->file)};
  planning p = {.study = study, .plan = plan, .error = error, .choice = ff_alloc(sizeof *p.choice)};
  ff_status status = make(&p, limit);
  ff_map_free(&p.known);
  ff_map_free(&p.checked);
  free(p.choice);
  if (status) sweep_plan_free(plan);
  return status;
}

void sweep_plan_free(sweep_plan *plan) {
  for (size_t i = 0; i < plan->traces.count; i++) {
    free(plan->traces.items[i]->path);
    free(plan->traces.items[i]->machine);
    free(plan->traces.items[i]->lost);
    free(plan->traces.items[i]);
  }
  for (size_t i = 0; i < plan->machines.count; i++) {
    free(plan->machines.items[i]->path);
    free(plan->machines.items[i]->text);
    free(plan->machines.items[i]);
  }
  free(plan->traces.items);
  free(plan->machines.items);
  free(plan->parameters.items);
  free(plan->points.items);
  free(plan->folder);
  ff_arena_free(&plan->arena);
  *plan = (sweep_plan){0};
}
