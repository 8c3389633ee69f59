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
#include "machine/spec.h"
#include "policy/policies.h"
#include "study/session.h"

char *cli_own_folder(void) {
  char path[PATH_MAX];
  ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  if (length < 0) return ff_strdup(".");
  path[length] = '\0';
  char *slash = strrchr(path, '/');
  if (slash) *slash = '\0';
  return ff_strdup(path);
}

static ff_status fail_no_manager(const char *name, ff_error *error) {
  uint32_t count;
  const sim_manager *managers = sim_managers(&count);
  ff_text known = {0};
  FF_VEC(const char *) names = {0};
  for (uint32_t i = 0; i < count; i++) {
    ff_text_add(&known, "%s%s", i ? ", " : "", managers[i].name);
    FF_PUSH(&names, managers[i].name);
  }
  FF_PUSH(&names, NULL);
  const char *near = cli_closest(name, names.items);
  if (near) ff_fail(error, FF_NOT_FOUND, "no memory manager '%s': did you mean '%s'? There are %s", name, near, known.chars);
  else ff_fail(error, FF_NOT_FOUND, "no memory manager '%s': there are %s", name, known.length ? known.chars : "none");
  free(names.items);
  free(known.chars);
  return FF_NOT_FOUND;
}

static bool manager_exists(const char *name) {
  uint32_t count;
  const sim_manager *managers = sim_managers(&count);
  for (uint32_t i = 0; i < count; i++)
    if (!strcmp(managers[i].name, name)) return true;
  return false;
}

/* "copy, demand" -> each a known manager, none twice. "none" means no manager: the program is only executed. */
static ff_status check_managers(cli_setup *setup, ff_error *error) {
  if (!strcmp(setup->managers, "none")) {
    setup->managers[0] = '\0';
    return FF_OK;
  }
  char names[sizeof setup->managers], *rest = NULL, *seen[64];
  uint32_t count = 0;
  strcpy(names, setup->managers);
  for (char *name = strtok_r(names, ", ", &rest); name; name = strtok_r(NULL, ", ", &rest)) {
    if (!strcmp(name, "none")) return ff_fail(error, FF_INVALID, "--memory none stands alone: it asks for no memory manager");
    if (!manager_exists(name)) return fail_no_manager(name, error);
    for (uint32_t i = 0; i < count; i++)
      if (!strcmp(seen[i], name)) return ff_fail(error, FF_INVALID, "memory manager '%s' is named twice", name);
    if (count == 16) return ff_fail(error, FF_LIMIT, "more than 16 memory managers at once");
    seen[count++] = name;
  }
  return count ? FF_OK : ff_fail(error, FF_INVALID, "--memory names no manager");
}

static ff_status check_settings(const char *set, machine_spec *spec, ff_error *error) {
  char settings[sizeof((cli_setup *)0)->set], *rest = NULL;
  strcpy(settings, set);
  for (char *one = strtok_r(settings, ",", &rest); one; one = strtok_r(NULL, ",", &rest)) {
    ff_status status = machine_spec_set(spec, one, error);
    if (status) return ff_fail_at(error, status, "--set");
  }
  return FF_OK;
}

/* A machine given as a file gets its absolute path: the program may change its folder before it uses the GPU. */
static ff_status make_absolute(cli_setup *setup, ff_error *error) {
  if (!strchr(setup->machine, '/') && !strstr(setup->machine, ".yaml")) return FF_OK;
  char path[PATH_MAX];
  if (!realpath(setup->machine, path)) return FF_OK; /* the loader says why */
  if (strlen(path) >= sizeof setup->machine) return ff_fail(error, FF_LIMIT, "%s: the path is too long", path);
  strcpy(setup->machine, path);
  return FF_OK;
}

static ff_status check_memory(const cli_setup *setup, const machine_spec *spec, ff_error *error) {
  uint64_t bytes;
  char page[32];
  if (!setup->gpu_memory[0]) return FF_OK;
  bool share = strchr(setup->gpu_memory, '%') != NULL; /* of what the program will allocate */
  ff_status status = ff_parse_bytes(setup->gpu_memory, share ? UINT64_C(1000000000) : 0, &bytes, error);
  if (status) return ff_fail_at(error, status, "--gpu-memory");
  if (share && !bytes) return ff_fail(error, FF_INVALID, "--gpu-memory: '%s' is nothing", setup->gpu_memory);
  if (!share && bytes < spec->fault_page_bytes)
    return ff_fail(error, FF_INVALID, "--gpu-memory: '%s' is less than one page of %s", setup->gpu_memory,
                   ff_format_bytes(spec->fault_page_bytes, page, sizeof page));
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
    if (!fits) return ff_fail(error, FF_LIMIT, "--%s: the path is too long", option);
  }
  ff_policy_instance instance = {0};
  ff_status status = policy_open(use, text, &instance, error);
  policy_close(&instance);
  return status ? ff_fail_at(error, status, option) : FF_OK;
}

static ff_status check_paging(cli_setup *setup, ff_error *error) {
  uint64_t unit;
  ff_status status = check_policy(POLICY_PREFETCH, "--prefetch", setup->prefetch, sizeof setup->prefetch, error);
  if (!status) status = check_policy(POLICY_EVICT, "--evict", setup->evict, sizeof setup->evict, error);
  if (status) return status;
  if (setup->unit[0] && (status = ff_parse_bytes(setup->unit, 0, &unit, error))) return ff_fail_at(error, status, "--unit");
  if (setup->unit[0] && (unit < 128 || unit > FF_BLOCK_BYTES || (unit & (unit - 1))))
    return ff_fail(error, FF_INVALID, "--unit: '%s' is not a power of two from 128 to 2M", setup->unit);
  if (setup->write_back[0] && strcmp(setup->write_back, "serial") && strcmp(setup->write_back, "overlapped"))
    return ff_fail(error, FF_INVALID, "--write-back: '%s' is neither 'serial' nor 'overlapped'", setup->write_back);
  return FF_OK;
}

ff_status cli_setup_check(cli_setup *setup, ff_error *error) {
  if (!setup->managers[0]) strcpy(setup->managers, CLI_DEFAULT_MANAGERS);
  if (!setup->machine[0]) strcpy(setup->machine, SESSION_DEFAULT_MACHINE);
  ff_status status = check_managers(setup, error);
  if (status) return status;
  if ((status = make_absolute(setup, error))) return status;
  machine_spec spec;
  if ((status = machine_spec_load(setup->machine, &spec, error))) return status;
  if ((status = check_settings(setup->set, &spec, error))) return status;
  if ((status = check_memory(setup, &spec, error))) return status;
  return check_paging(setup, error);
}
