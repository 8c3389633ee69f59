/* SPDX-License-Identifier: Apache-2.0 */
/* A point in words: the command that simulates it, and what messages call it. */
#include <stdlib.h>
#include <string.h>

#include "sweep/sweep_private.h"

bool sweep_is_policy(int axis) {
  return axis == AXIS_CHOICE + SIM_CHOICE_PREFETCH || axis == AXIS_CHOICE + SIM_CHOICE_EVICT;
}

char *sweep_whole_policy(const sweep_plan *plan, const char *text) {
  if (!strchr(text, '/') && !strstr(text, ".so")) return NULL;
  const char *colon = strrchr(text, ':');
  char *name = strndup(text, colon ? (size_t)(colon - text) : strlen(text));
  char *path = sweep_path_in(plan->folder, name), *real = realpath(path, NULL);
  ff_text whole = {0};
  ff_text_add(&whole, "%s%s", real ? real : path, colon ? colon : "");
  free(name);
  free(path);
  free(real);
  return whole.chars;
}

char *sweep_whole_memory(const sweep_plan *plan, const char *memory) {
  char *copy = ff_strdup(memory), *rest = copy;
  ff_text out = {0};
  for (char *part; (part = strsep(&rest, "+"));) {
    char *equals = strchr(part, '=');
    bool policy = equals && (!strncmp(part, "prefetch=", 9) || !strncmp(part, "evict=", 6));
    char *whole = policy ? sweep_whole_policy(plan, equals + 1) : NULL;
    if (out.chars) ff_text_add(&out, "+");
    if (whole) ff_text_add(&out, "%.*s=%s", (int)(equals - part), part, whole);
    else ff_text_add(&out, "%s", part);
    free(whole);
  }
  free(copy);
  return out.chars;
}

/* ---- the command ---- */

typedef struct words {
  FF_VEC(char *) list;
} words;

static void add_word(words *w, const char *word) { FF_PUSH(&w->list, ff_strdup(word)); }

static void add_option(words *w, const char *name, const char *value) {
  ff_text option = {0};
  ff_text_add(&option, "--%s", name);
  add_word(w, option.chars);
  add_word(w, value);
  free(option.chars);
}

static void add_parameter(const sweep_plan *plan, int axis, const char *value, words *w) {
  if (axis >= AXIS_CHOICE) {
    char *policy = sweep_is_policy(axis) ? sweep_whole_policy(plan, value) : NULL;
    add_option(w, study_axis_name(axis), policy ? policy : value);
    free(policy);
    return;
  }
  ff_text setting = {0};
  ff_text_add(&setting, "%s=%s", study_axis_name(axis), value);
  add_option(w, "set", setting.chars);
  free(setting.chars);
}

char **sweep_point_command(const sweep_plan *plan, const sweep_point *point, const char *program, const char *json) {
  words w = {0};
  const sweep_machine *machine = point->machine;
  bool is_file = strchr(machine->name, '/') || strstr(machine->name, ".yaml");
  char *memory = sweep_whole_memory(plan, point->memory);
  add_word(&w, program);
  add_word(&w, "sim");
  add_word(&w, point->trace->path);
  add_option(&w, "machine", is_file ? machine->path : machine->name);
  add_option(&w, "memory", memory);
  for (size_t i = 0; i < plan->parameters.count; i++)
    if (point->values[i]) add_parameter(plan, plan->parameters.items[i].axis, point->values[i], &w);
  if (json) add_option(&w, "device", "0"); /* one simulation a point */
  if (json) add_option(&w, "json", json);
  FF_PUSH(&w.list, NULL);
  free(memory);
  return w.list.items;
}

void sweep_point_describe(const sweep_plan *plan, const sweep_point *point, ff_text *out) {
  ff_text_add(out, "trace %s, machine %s, memory %s", point->trace->name, point->machine->name, point->memory);
  for (size_t i = 0; i < plan->parameters.count; i++)
    if (point->values[i])
      ff_text_add(out, ", %s %s", study_axis_name(plan->parameters.items[i].axis), point->values[i]);
}
