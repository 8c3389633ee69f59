/* SPDX-License-Identifier: Apache-2.0 */
/* May the points of a study run? Values alone, each with a message at its place; then every point as a whole: a
 * simulation is made of it, as `farfault sim` will make one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/policies.h"
#include "sweep/sweep_private.h"

enum { PLUGIN_LIMIT = 64 << 20 };

ff_status sweep_fail_value(const planning *p, const study_value *value, const char *what) {
  return study_fail(p->study, value->line, value->column, p->error, "%s", what);
}

/* ---- values alone ---- */

static ff_status check_set(const spec_param *param, const char *text, const machine_spec *machine, ff_error *why) {
  if (strchr(text, ','))
    return ff_fail(why, FF_INVALID, "'%s': a value has no comma (points of a table stand between spaces: 4K:3.2 1M:11)",
                   text);
  if (strchr("tmjpl", param->type)) return FF_OK; /* the point's check reads it */
  machine_spec changed = *machine;
  return spec_value_parse(param, text, &changed, why);
}

static ff_status check_policy(const planning *p, int axis, const char *text, ff_error *why) {
  char *whole = sweep_whole_policy(p->plan, text);
  ff_policy_instance instance = {0};
  ff_status status = policy_open(axis == AXIS_CHOICE + SIM_CHOICE_PREFETCH ? POLICY_PREFETCH : POLICY_EVICT,
                                 whole ? whole : text, &instance, why);
  policy_close(&instance);
  free(whole);
  return status;
}

static ff_status check_memory(planning *p, const char *text, const machine_spec *machine, ff_error *why) {
  static const sim_choices none;
  if (strpbrk(text, ", \t")) return ff_fail(why, FF_INVALID, "'%s' is not one manager: write a list [a, b]", text);
  if (!strcmp(text, "none")) return ff_fail(why, FF_INVALID, "'none' simulates nothing");
  char *whole = sweep_whole_memory(p->plan, text);
  ff_status status = sim_choice_read(whole, &none, machine, p->choice, why);
  free(whole);
  return status ? status : sim_choice_try(p->choice, true, why);
}

static ff_status check_value(planning *p, int axis, const study_value *value, const machine_spec *machine) {
  ff_error why;
  ff_status status = FF_OK;
  if (axis == AXIS_MEMORY) status = check_memory(p, value->text, machine, &why);
  else if (sweep_is_policy(axis)) status = check_policy(p, axis, value->text, &why);
  else if (axis >= AXIS_CHOICE)
    status = sim_choice_check((sim_choice_id)(axis - AXIS_CHOICE), value->text, machine, &why);
  else if (axis >= AXIS_SET) status = check_set(&spec_params[axis - AXIS_SET], value->text, machine, &why);
  if (!status) return FF_OK;
  if (axis != AXIS_MEMORY) ff_fail_at(&why, status, study_axis_name(axis));
  return sweep_fail_value(p, value, why.message);
}

ff_status sweep_check_values(planning *p) {
  ff_map seen = {0};
  ff_status status = FF_OK;
  char names[32];
  for (size_t i = 0; i < p->study->grids.count && !status; i++) {
    const study_grid *grid = p->study->grids.items[i];
    const study_axis *machines = grid->axes[AXIS_MACHINE];
    const study_value *first = machines ? &machines->values.items[0] : NULL;
    const machine_spec *machine = &sweep_find_machine(p->plan, first, &grid->axes[AXIS_TRACE]->values.items[0])->spec;
    for (int axis = AXIS_SET; axis < AXIS_COUNT && !status; axis++) {
      if (!grid->axes[axis]) continue;
      snprintf(names, sizeof names, "%p", (void *)grid->axes[axis]);
      if (ff_map_get(&seen, names)) continue;
      ff_map_set(&seen, ff_arena_strndup(&p->plan->arena, names, strlen(names)), grid->axes[axis]);
      for (size_t j = 0; j < grid->axes[axis]->values.count && !status; j++)
        status = check_value(p, axis, &grid->axes[axis]->values.items[j], machine);
    }
  }
  ff_map_free(&seen);
  return status;
}

/* ---- points ---- */

/* The bytes of the plug-ins that a simulation uses belong to what it is. */
static void hash_plugins(const sim_choice *choice, sweep_hash *hash) {
  static const sim_choice_id ids[] = {SIM_CHOICE_PREFETCH, SIM_CHOICE_EVICT};
  for (int i = 0; i < 2; i++) {
    const char *text = choice->choices.text[ids[i]], *colon = strrchr(text, ':');
    if (text[0] != '/') continue;
    char *file = strndup(text, colon ? (size_t)(colon - text) : strlen(text)), *data;
    size_t size;
    if (!ff_file_read(file, PLUGIN_LIMIT, &data, &size, NULL)) {
      sweep_hash_bytes(hash, data, size);
      free(data);
    }
    free(file);
  }
}

static void hash_settings(const sweep_plan *plan, const sweep_point *point, sweep_hash *hash) {
  sweep_hash_text(hash, point->machine->hash);
  sweep_hash_text(hash, point->memory);
  for (size_t i = 0; i < plan->parameters.count; i++)
    if (point->values[i]) {
      sweep_hash_text(hash, study_axis_name(plan->parameters.items[i].axis));
      sweep_hash_text(hash, point->values[i]);
    }
}

/* A value of a parameter, as part of the choices for all managers. */
static ff_status add_choice(const sweep_plan *plan, int axis, const char *value, const machine_spec *machine,
                            sim_choices *choices, ff_error *why) {
  char *policy = sweep_is_policy(axis) ? sweep_whole_policy(plan, value) : NULL;
  if (policy) value = policy;
  ff_status status = FF_OK;
  int needed;
  size_t used = strlen(choices->set), room = axis < AXIS_CHOICE ? SIM_SET_LENGTH - used : SIM_CHOICE_LENGTH;
  if (axis < AXIS_CHOICE)
    needed = snprintf(choices->set + used, room, "%s%s=%s", used ? "," : "", study_axis_name(axis), value);
  else {
    needed = snprintf(choices->text[axis - AXIS_CHOICE], room, "%s", value);
    status = sim_choice_check((sim_choice_id)(axis - AXIS_CHOICE), value, machine, why);
    if (status) ff_fail_at(why, status, study_axis_name(axis));
  }
  if (!status && (needed < 0 || (size_t)needed >= room))
    status = ff_fail(why, FF_LIMIT, "%s: '%.40s...' is too long", study_axis_name(axis), value);
  free(policy);
  return status;
}

static ff_status read_choices(planning *p, const sweep_point *point, sim_choices *choices, ff_error *why) {
  for (size_t i = 0; i < p->plan->parameters.count; i++) {
    if (!point->values[i]) continue;
    ff_status status =
        add_choice(p->plan, p->plan->parameters.items[i].axis, point->values[i], &point->machine->spec, choices, why);
    if (status) return status;
  }
  char *memory = sweep_whole_memory(p->plan, point->memory);
  ff_status status = sim_choice_read(memory, choices, &point->machine->spec, p->choice, why);
  free(memory);
  return status;
}

/* Making a simulation costs some milliseconds: once for all traces. */
static ff_status try_once(planning *p, const sweep_hash *settings, ff_error *why) {
  char digits[SWEEP_KEY];
  sweep_hash_end(settings, digits);
  if (ff_map_get(&p->checked, digits)) return FF_OK;
  ff_map_set(&p->checked, ff_arena_strndup(&p->plan->arena, digits, strlen(digits)), p);
  return sim_choice_try(p->choice, true, why);
}

ff_status sweep_check_point(planning *p, const sweep_point *point, sweep_hash *hash) {
  ff_error why;
  sim_choices *choices = ff_alloc(sizeof *choices);
  ff_status status = read_choices(p, point, choices, &why);
  free(choices);
  hash_settings(p->plan, point, hash);
  if (!status) {
    hash_plugins(p->choice, hash);
    status = try_once(p, hash, &why);
  }
  if (!status) return FF_OK;
  ff_text what = {0};
  sweep_point_describe(p->plan, point, &what);
  study_fail(p->study, point->grid->line, point->grid->column, p->error, "%s: %s", what.chars, why.message);
  free(what.chars);
  return FF_PARSE;
}
