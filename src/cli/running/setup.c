/* SPDX-License-Identifier: Apache-2.0 */
/* The choice of machine and memory managers, checked before anything runs, so that a mistyped name costs no time. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "cli/cli.h"
#include "machine/sim.h"
#include "machine/spec/spec.h"
#include "policy/policies.h"
#include "session/session.h"

char *cli_own_folder(void) {
  char path[PATH_MAX];
  ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  if (length < 0) return ff_strdup(".");
  path[length] = '\0';
  char *slash = strrchr(path, '/');
  if (slash) *slash = '\0';
  return ff_strdup(path);
}

/* A machine given as a file gets its absolute path: the program may change its folder before it uses the GPU. */
static ff_status make_absolute(cli_setup *setup, ff_error *error) {
  if (!machine_spec_is_file(setup->machine)) return FF_OK;
  char path[PATH_MAX];
  if (!realpath(setup->machine, path)) return FF_OK; /* the loader says why */
  if (kind_check(setup->machine, KIND_MACHINE, error)) return FF_PARSE;
  if (strlen(path) >= sizeof setup->machine) return ff_fail(error, FF_LIMIT, "%s: the path is too long", path);
  strcpy(setup->machine, path);
  return FF_OK;
}

/* Opens the policies once, so that a wrong name or a bad plug-in is refused before the program runs. A plug-in's path
 * becomes absolute: the program may change its folder. */
static ff_status check_policy(policy_use use, const char *option, char *text, size_t size, ff_error *error) {
  if (!*text) return FF_OK;
  char *colon = strrchr(text, ':'), path[PATH_MAX];
  bool plug_in = strchr(text, '/') || strstr(text, ".so");
  if (plug_in) {
    ff_text whole = {0};
    char *file = strndup(text, colon ? (size_t)(colon - text) : strlen(text));
    if (realpath(file, path)) ff_text_add(&whole, "%s%s", path, colon ? colon : "");
    bool fits = whole.length < size;
    if (whole.chars && fits) strcpy(text, whole.chars);
    free(file);
    free(whole.chars);
    if (!fits) return ff_fail(error, FF_LIMIT, "%s: the path is too long", option);
  }
  ff_policy_instance instance = {0};
  ff_status status = policy_open(use, text, &instance, error);
  policy_close(&instance);
  return status ? ff_fail_at(error, status, option) : FF_OK;
}

/* Plug-ins behind a manager get absolute paths, as those of options do. `text` is changed in place. */
static ff_status make_plugins_absolute(char *text, size_t size, ff_error *error) {
  char copy[sizeof((cli_setup *)0)->managers], value[SIM_CHOICE_LENGTH], *rest = copy;
  ff_text out = {0};
  ff_status status = FF_OK;
  strcpy(copy, text);
  for (char *part; (part = strsep(&rest, "+")) && !status;) {
    bool prefetch = !strncmp(part, "prefetch=", 9), evict = !strncmp(part, "evict=", 6);
    char *equals = strchr(part, '=');
    if ((prefetch || evict) && strlen(equals + 1) < sizeof value) {
      strcpy(value, equals + 1);
      status = check_policy(prefetch ? POLICY_PREFETCH : POLICY_EVICT, prefetch ? "prefetch" : "evict", value,
                            sizeof value, error);
      ff_text_add(&out, "%s%.*s=%s", out.length ? "+" : "", (int)(equals - part), part, value);
    } else ff_text_add(&out, "%s%s", out.length ? "+" : "", part);
  }
  if (!status && out.length >= size) status = ff_fail(error, FF_LIMIT, "'%.40s...' is too long", text);
  if (!status && out.length) strcpy(text, out.chars);
  free(out.chars);
  return status;
}

/* One of --memory: it exists, what is behind it fits; its label. */
static ff_status check_manager(cli_setup *setup, char *name, size_t size, const machine_spec *spec, char *label,
                               ff_error *error) {
  if (!strcmp(name, "none"))
    return ff_fail(error, FF_INVALID, "--memory none stands alone: it asks for no memory manager");
  sim_choice *choice = ff_alloc(sizeof *choice);
  ff_status status = sim_choice_read(name, &setup->choices, spec, choice, error);
  if (!status) status = make_plugins_absolute(name, size, error);
  if (!status) status = sim_choice_read(name, &setup->choices, spec, choice, error);
  if (!status && !setup->tried) status = sim_choice_try(choice, setup->recorded, error);
  if (status && strchr(name, '+')) ff_fail_at(error, status, name);
  strcpy(label, choice->label);
  free(choice);
  return status;
}

/* "copy, demand" -> each a known manager, none twice. "none" means no manager: the program is only executed. */
static ff_status check_managers(cli_setup *setup, const machine_spec *spec, ff_error *error) {
  if (!strcmp(setup->managers, "none")) {
    setup->managers[0] = '\0';
    return FF_OK;
  }
  char names[sizeof setup->managers], name[sizeof setup->managers], labels[SESSION_MANAGER_LIMIT][SIM_LABEL_LENGTH],
      *rest = NULL;
  uint32_t count = 0;
  ff_text whole = {0};
  ff_status status = FF_OK;
  strcpy(names, setup->managers);
  for (char *each = strtok_r(names, ", ", &rest); each && !status; each = strtok_r(NULL, ", ", &rest)) {
    if (count == SESSION_MANAGER_LIMIT)
      status = ff_fail(error, FF_LIMIT, "more than %d memory managers at once", SESSION_MANAGER_LIMIT);
    if (status) break;
    strcpy(name, each);
    status = check_manager(setup, name, sizeof name, spec, labels[count], error);
    for (uint32_t i = 0; i < count && !status; i++)
      if (!strcmp(labels[i], labels[count]))
        status = ff_fail(error, FF_INVALID, "memory manager '%s' is named twice", each);
    ff_text_add(&whole, "%s%s", count++ ? "," : "", name);
  }
  if (!status && !count) status = ff_fail(error, FF_INVALID, "--memory names no manager");
  if (!status && whole.length >= sizeof setup->managers)
    status = ff_fail(error, FF_LIMIT, "--memory is too long with the plug-ins' paths");
  if (!status) strcpy(setup->managers, whole.chars);
  free(whole.chars);
  return status;
}

/* --sample check: each manager as it is, and once more with sampling. */
static ff_status pair_managers(cli_setup *setup, ff_error *error) {
  char *sample = setup->choices.text[SIM_CHOICE_SAMPLE], names[sizeof setup->managers], *rest = NULL;
  if (strcmp(sample, "check") || !strcmp(setup->managers, "none")) return FF_OK;
  *sample = '\0';
  ff_text whole = {0};
  ff_status status = FF_OK;
  strcpy(names, setup->managers);
  for (char *each = strtok_r(names, ", ", &rest); each && !status; each = strtok_r(NULL, ", ", &rest)) {
    if (strstr(each, "+sample="))
      status = ff_fail(error, FF_INVALID, "--sample check: '%s' says itself how it samples", each);
    ff_text_add(&whole, "%s%s,%s+sample=on", whole.length ? "," : "", each, each);
  }
  if (!status && whole.length >= sizeof setup->managers)
    status = ff_fail(error, FF_LIMIT, "--sample check: --memory is too long a text twice");
  if (!status && whole.length) strcpy(setup->managers, whole.chars);
  free(whole.chars);
  return status;
}

static ff_status check_choices(cli_setup *setup, machine_spec *spec, ff_error *error) {
  ff_status status = machine_spec_set_all(spec, setup->choices.set, error);
  if (status) return ff_fail_at(error, status, "--set");
  for (int i = 0; i < SIM_CHOICE_COUNT; i++) {
    char option[32], *text = setup->choices.text[i];
    if (!*text) continue;
    snprintf(option, sizeof option, "--%s", sim_choice_infos[i].name);
    status = sim_choice_check((sim_choice_id)i, text, spec, error);
    if (status) return ff_fail_at(error, status, option);
    if (i != SIM_CHOICE_PREFETCH && i != SIM_CHOICE_EVICT) continue;
    status =
        check_policy(i == SIM_CHOICE_PREFETCH ? POLICY_PREFETCH : POLICY_EVICT, option, text, SIM_CHOICE_LENGTH, error);
    if (status) return status;
  }
  return FF_OK;
}

ff_status cli_setup_check(cli_setup *setup, ff_error *error) {
  if (!setup->managers[0]) strcpy(setup->managers, CLI_DEFAULT_MANAGERS);
  if (!setup->machine[0]) strcpy(setup->machine, MACHINE_DEFAULT);
  ff_status status = make_absolute(setup, error);
  if (status) return status;
  machine_spec spec;
  if ((status = machine_spec_load(setup->machine, &spec, error))) return status;
  if ((status = pair_managers(setup, error))) return status;
  if ((status = check_choices(setup, &spec, error))) return status;
  return check_managers(setup, &spec, error);
}
