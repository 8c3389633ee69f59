/* SPDX-License-Identifier: Apache-2.0 */
/* Machines by name: where machine files lie, how one is found, read and overridden.
 *
 * The folders, in order: those of $FARFAULT_MACHINES (separated by ':'), then share/farfault/machines one or two
 * folders above this code (the program or the shared library it is part of; build/ and an installation look alike). A
 * name with a '/' or ending in .yaml is a file instead. Loading and changing a spec run all checks of
 * spec_table.c; machine_spec_set changes a copy first, so that the spec stays as it was if they fail. */
#define _GNU_SOURCE /* dladdr */
#include "machine/spec/spec.h"

#include <dirent.h>
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "machine/spec/spec_table.h"

enum { FILE_LIMIT = 1 << 20, FOLDER_LIMIT = 16, LIKE_LIMIT = 8 };

typedef struct folders {
  char *paths[FOLDER_LIMIT];
  uint32_t count;
} folders;

static void add_folder(folders *list, const char *start, size_t length, const char *below) {
  if (list->count == FOLDER_LIMIT || !length) return;
  ff_text path = {0};
  ff_text_add(&path, "%.*s%s", (int)length, start, below);
  list->paths[list->count++] = path.chars;
}

/* Adds the data folders of the program or library that lies at `module`. */
static void add_folders_near(folders *list, const char *module) {
  char real[PATH_MAX];
  if (!realpath(module, real)) return;
  char *slash = strrchr(real, '/');
  if (!slash) return;
  add_folder(list, real, (size_t)(slash - real), "/../share/farfault/machines");
  add_folder(list, real, (size_t)(slash - real), "/../../share/farfault/machines");
}

/* Where this code and the program lie does not change while it runs, and a sweep's points are copies of a process that
 * has looked already. */
static folders installed;
static pthread_once_t looked = PTHREAD_ONCE_INIT;

static void find_installed(void) {
  Dl_info info;
  if (dladdr((void *)find_installed, &info) && info.dli_fname) add_folders_near(&installed, info.dli_fname);
  add_folders_near(&installed, "/proc/self/exe");
}

static void find_folders(folders *list) {
  *list = (folders){0};
  const char *variable = getenv("FARFAULT_MACHINES");
  while (variable && *variable) {
    size_t length = strcspn(variable, ":");
    add_folder(list, variable, length, "");
    variable += length + (variable[length] == ':');
  }
  pthread_once(&looked, find_installed);
  for (uint32_t i = 0; i < installed.count; i++) add_folder(list, installed.paths[i], strlen(installed.paths[i]), "");
}

static void free_folders(folders *list) {
  for (uint32_t i = 0; i < list->count; i++) free(list->paths[i]);
}

static bool ends_with(const char *text, const char *end) {
  size_t length = strlen(text), end_length = strlen(end);
  return length > end_length && !strcmp(text + length - end_length, end);
}

static int compare_names(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

char **machine_spec_list(void) {
  FF_VEC(char *) names = {0};
  folders list;
  find_folders(&list);
  for (uint32_t i = 0; i < list.count; i++) {
    DIR *folder = opendir(list.paths[i]);
    struct dirent *entry;
    while (folder && (entry = readdir(folder)))
      if (ends_with(entry->d_name, ".yaml") && entry->d_name[0] != '.') {
        char *name = ff_strdup(entry->d_name);
        name[strlen(name) - 5] = '\0';
        FF_PUSH(&names, name);
      }
    if (folder) closedir(folder);
  }
  free_folders(&list);
  qsort(names.items, names.count, sizeof *names.items, compare_names);
  size_t kept = 0;
  for (size_t i = 0; i < names.count; i++) {
    if (kept && !strcmp(names.items[kept - 1], names.items[i])) free(names.items[i]);
    else names.items[kept++] = names.items[i];
  }
  names.count = kept;
  FF_PUSH(&names, NULL);
  return names.items;
}

/* The file of a bundled machine, or NULL; the caller frees it. */
static char *find_bundled(const char *name) {
  char *found = NULL;
  folders list;
  find_folders(&list);
  for (uint32_t i = 0; i < list.count && !found; i++) {
    ff_text path = {0};
    ff_text_add(&path, "%s/%s.yaml", list.paths[i], name);
    if (access(path.chars, R_OK) == 0) found = path.chars;
    else free(path.chars);
  }
  free_folders(&list);
  return found;
}

static ff_status fail_no_machine(const char *name, ff_error *error) {
  char **names = machine_spec_list();
  const char *near = ff_closest(name, (const char *const *)names);
  ff_text known = {0};
  for (char **at = names; *at; at++) {
    ff_text_add(&known, "%s%s", known.length ? ", " : "", *at);
  }
  ff_status status;
  if (near)
    status =
        ff_fail(error, FF_NOT_FOUND, "no machine '%s': did you mean '%s'? There are %s; a file is given by its path",
                name, near, known.chars);
  else
    status = ff_fail(error, FF_NOT_FOUND, "no machine '%s': there are %s; a file is given by its path", name,
                     known.length ? known.chars : "none");
  for (char **at = names; *at; at++) free(*at);
  free(names);
  free(known.chars);
  return status;
}

bool machine_spec_is_file(const char *name) { return strchr(name, '/') || ends_with(name, ".yaml"); }

/* ---- the machine that was read last ---- */

/* A command reads its machine several times - to check its options, to prepare, to simulate - and a sweep once for each
 * point; parsing takes longer than a small program. The text is read each time: a file that changed is another one. A
 * machine that is like another has values that stand elsewhere, and is not kept. */
static struct {
  pthread_mutex_t lock;
  char *path, *text; /* owned; NULL: none was read yet */
  size_t size;
  machine_spec spec;
} last = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool recall(const char *path, const char *text, size_t size, machine_spec *spec) {
  pthread_mutex_lock(&last.lock);
  bool same = last.path && last.size == size && !strcmp(last.path, path) && !memcmp(last.text, text, size);
  if (same) *spec = last.spec;
  pthread_mutex_unlock(&last.lock);
  return same;
}

static void keep(const char *path, const char *text, size_t size, const machine_spec *spec) {
  if (spec->like) return;
  char *kept = ff_alloc(size + 1);
  memcpy(kept, text, size);
  pthread_mutex_lock(&last.lock);
  free(last.path);
  free(last.text);
  last.path = ff_strdup(path);
  last.text = kept;
  last.size = size;
  last.spec = *spec;
  pthread_mutex_unlock(&last.lock);
}

ff_status machine_spec_load(const char *name, machine_spec *spec, ff_error *error) {
  char *path = machine_spec_is_file(name) ? ff_strdup(name) : find_bundled(name);
  if (!path) return fail_no_machine(name, error);
  char *text = NULL;
  size_t size = 0;
  ff_status status = ff_file_read(path, FILE_LIMIT, &text, &size, error);
  if (!status && !recall(path, text, size, spec)) {
    status = spec_text_load(path, text, size, spec, error);
    if (!status) snprintf(spec->file, sizeof spec->file, "%s", path);
    if (!status) keep(path, text, size, spec);
  }
  free(text);
  free(path);
  return status;
}

const char *machine_of_recording(const char *recorded, size_t longest) {
  machine_spec spec;
  ff_error why;
  bool there = recorded && *recorded && strlen(recorded) <= longest && !machine_spec_load(recorded, &spec, &why);
  return there ? recorded : MACHINE_DEFAULT;
}

/* ---- machines that are like others ---- */

char *spec_like_path(const char *name, const char *file) {
  const char *slash = strrchr(file, '/');
  ff_text path = {0};
  if (!machine_spec_is_file(name)) return find_bundled(name);
  if (name[0] != '/' && slash) ff_text_add_bytes(&path, file, (size_t)(slash + 1 - file));
  ff_text_add(&path, "%s", name);
  if (access(path.chars, R_OK) == 0) return path.chars;
  free(path.chars);
  return NULL;
}

static bool same_file(const char *a, const char *b) {
  char real_a[PATH_MAX], real_b[PATH_MAX];
  return realpath(a, real_a) && realpath(b, real_b) && !strcmp(real_a, real_b);
}

/* "a.yaml, which is like b.yaml, which is like a.yaml" */
static void add_chain(const spec_chain *chain, const char *first, const char *path, ff_text *out) {
  if (chain->from && !same_file(chain->file, first)) {
    add_chain(chain->from, first, chain->file, out);
    ff_text_add(out, ", which is like %s", path);
  } else {
    ff_text_add(out, "%s is like %s", chain->file, path);
  }
}

static ff_status check_chain(const spec_chain *chain, const char *path, ff_error *error) {
  int length = 0;
  for (const spec_chain *at = chain; at; at = at->from) {
    length++;
    if (!same_file(at->file, path)) continue;
    ff_text text = {0};
    add_chain(chain, path, path, &text);
    ff_status status = ff_fail(error, FF_INVALID, "a machine would be like itself: %s", text.chars);
    free(text.chars);
    return status;
  }
  return length <= LIKE_LIMIT ? FF_OK
                              : ff_fail(error, FF_INVALID, "more than %d machines are like one another", LIKE_LIMIT);
}

ff_status spec_load_like(const char *name, const spec_chain *chain, machine_spec *spec, ff_error *error) {
  char *path = spec_like_path(name, chain->file), *text = NULL;
  size_t size = 0;
  if (!path && machine_spec_is_file(name)) return ff_fail(error, FF_NOT_FOUND, "no file '%s' beside this one", name);
  if (!path) return fail_no_machine(name, error);
  ff_status status = check_chain(chain, path, error);
  if (!status && ff_file_read(path, FILE_LIMIT, &text, &size, error)) status = FF_NOT_FOUND;
  if (!status) status = spec_text_load_like(&(spec_chain){path, chain}, text, size, spec, error);
  free(text);
  free(path);
  return status;
}

/* "4K:3.22 64K:8.48": the points of a size table; "none": no table. */
static ff_status set_table(machine_size_table *table, char *text, ff_error *error) {
  *table = (machine_size_table){0};
  if (!strcmp(text, "none")) return FF_OK;
  char *rest = NULL;
  for (char *point = strtok_r(text, " ", &rest); point; point = strtok_r(NULL, " ", &rest)) {
    char *colon = strchr(point, ':');
    if (!colon)
      return ff_fail(error, FF_INVALID, "'%s' is not a point: write SIZE:GB/s, with spaces between, or none", point);
    *colon = '\0';
    ff_status status = spec_point_add(table, point, colon + 1, error);
    if (status) return status;
  }
  return table->count ? FF_OK : ff_fail(error, FF_INVALID, "no points: write SIZE:GB/s, with spaces between, or none");
}

/* "10.12.16 11.12": masks by spaces, their bits by dots; "none": no masks. */
static ff_status set_masks(const spec_param *param, machine_mask_table *table, char *text, ff_error *error) {
  *table = (machine_mask_table){0};
  if (!strcmp(text, "none")) return FF_OK;
  char *rest = NULL, *inner = NULL;
  for (char *mask = strtok_r(text, " ", &rest); mask; mask = strtok_r(NULL, " ", &rest)) {
    bool first = true;
    for (char *bit = strtok_r(mask, ".", &inner); bit; bit = strtok_r(NULL, ".", &inner)) {
      ff_status status = spec_mask_bit_add(param, table, bit, first, error);
      if (status) return status;
      first = false;
    }
  }
  return table->count ? FF_OK
                      : ff_fail(error, FF_INVALID,
                                "no masks: write 10.12.16 11.12 (bits with dots, masks with spaces between), or none");
}

/* "0-1:25:0.7 0-2:50:0.7": GPUs, GB/s and us of each join; "none": no joins. */
static ff_status set_joins(machine_join_table *table, char *text, ff_error *error) {
  *table = (machine_join_table){0};
  if (!strcmp(text, "none")) return FF_OK;
  char *rest = NULL;
  for (char *join = strtok_r(text, " ", &rest); join; join = strtok_r(NULL, " ", &rest)) {
    char *dash = strchr(join, '-'), *colon = strchr(join, ':'), *second = colon ? strchr(colon + 1, ':') : NULL;
    if (!dash || !second || dash > colon)
      return ff_fail(error, FF_INVALID, "'%s' is not a join: write GPU-GPU:GB/s:us, with spaces between, or none",
                     join);
    *dash = *colon = *second = '\0';
    ff_status status = spec_join_add(table, (const char *const[]){join, dash + 1, colon + 1, second + 1}, error);
    if (status) return status;
  }
  return table->count ? FF_OK
                      : ff_fail(error, FF_INVALID, "no joins: write GPU-GPU:GB/s:us, with spaces between, or none");
}

/* "1g.10gb:16:1:1 2g.20gb:32:2:2": name, SMs, memory slices and L2 slices of each profile; "none": no profiles. */
static ff_status set_profiles(machine_profile_table *table, char *text, ff_error *error) {
  *table = (machine_profile_table){0};
  if (!strcmp(text, "none")) return FF_OK;
  char *rest = NULL;
  for (char *profile = strtok_r(text, " ", &rest); profile; profile = strtok_r(NULL, " ", &rest)) {
    char *texts[4] = {profile};
    size_t count = 1;
    for (const char *c = profile; *c; c++) count += *c == ':';
    if (count != 4)
      return ff_fail(error, FF_INVALID, "'%s' is not a profile: write NAME:SMS:MEMORY:L2, with spaces between, or none",
                     profile);
    for (int i = 1; i < 4; i++) {
      texts[i] = strchr(texts[i - 1], ':');
      *texts[i]++ = '\0';
    }
    ff_status status = spec_profile_add(table, (const char *const[]){texts[0], texts[1], texts[2], texts[3]}, error);
    if (status) return status;
  }
  return table->count
             ? FF_OK
             : ff_fail(error, FF_INVALID, "no profiles: write NAME:SMS:MEMORY:L2, with spaces between, or none");
}

#define TIER_TEXT "NAME:BYTES:READ:WRITTEN:us:UNIT:paged (or mapped), with spaces between"

/* "nvme:1T:6.8:4:80:128K:paged": the fields of each tier; "none": no tiers. */
static ff_status set_tiers(machine_tier_table *table, char *text, ff_error *error) {
  *table = (machine_tier_table){0};
  if (!strcmp(text, "none")) return FF_OK;
  char *rest = NULL, *inner = NULL;
  for (char *tier = strtok_r(text, " ", &rest); tier; tier = strtok_r(NULL, " ", &rest)) {
    const char *texts[MACHINE_TIER_FIELDS] = {0};
    int count = 0, wrong;
    for (char *part = strtok_r(tier, ":", &inner); part && count <= MACHINE_TIER_FIELDS;
         part = strtok_r(NULL, ":", &inner), count++)
      if (count < MACHINE_TIER_FIELDS) texts[count] = part;
    if (count != MACHINE_TIER_FIELDS)
      return ff_fail(error, FF_INVALID, "'%s' is not a tier: write " TIER_TEXT ", or none", tier);
    ff_status status = spec_tier_add(table, texts, &wrong, error);
    if (status) return status;
  }
  return table->count ? FF_OK : ff_fail(error, FF_INVALID, "no tiers: write " TIER_TEXT ", or none");
}

static ff_status fail_no_param(const char *name, ff_error *error) {
  const char *names[SPEC_PARAM_COUNT + 1] = {0};
  for (int i = 0; i < SPEC_PARAM_COUNT; i++) names[i] = spec_params[i].name;
  const char *near = ff_closest(name, names);
  return near ? ff_fail(error, FF_NOT_FOUND, "a machine has no value '%s': did you mean '%s'?", name, near)
              : ff_fail(error, FF_NOT_FOUND,
                        "a machine has no value '%s' (farfault machine show -v MACHINE lists them)", name);
}

/* Stores one value, without looking at the others. */
static ff_status set_value(machine_spec *spec, const char *assignment, ff_error *error) {
  const char *equals = strchr(assignment, '=');
  if (!equals || equals == assignment) return ff_fail(error, FF_INVALID, "'%s' is not NAME=VALUE", assignment);
  char *name = ff_strdup(assignment);
  char *value = name + (equals - assignment);
  *value++ = '\0';
  ff_status status;
  const spec_param *param = spec_param_find(name);
  if (!param) {
    status = fail_no_param(name, error);
    goto out;
  }
  if (param->type == 't') status = set_table((machine_size_table *)((char *)spec + param->offset), value, error);
  else if (param->type == 'j') status = set_joins((machine_join_table *)((char *)spec + param->offset), value, error);
  else if (param->type == 'p')
    status = set_profiles((machine_profile_table *)((char *)spec + param->offset), value, error);
  else if (param->type == 'l') status = set_tiers((machine_tier_table *)((char *)spec + param->offset), value, error);
  else if (param->type == 'm')
    status = set_masks(param, (machine_mask_table *)((char *)spec + param->offset), value, error);
  else status = spec_value_parse(param, value, spec, error);
  if (status) status = ff_fail_at(error, status, name);
out:
  free(name);
  return status;
}

ff_status machine_spec_set_all(machine_spec *spec, const char *assignments, ff_error *error) {
  machine_spec changed = *spec;
  char *copy = ff_strdup(assignments), *rest = NULL;
  ff_status status = FF_OK;
  for (char *one = strtok_r(copy, ",", &rest); one && !status; one = strtok_r(NULL, ",", &rest))
    status = set_value(&changed, one, error);
  free(copy);
  if (!status) status = spec_check(&changed, error);
  if (!status) *spec = changed;
  return status;
}

ff_status machine_spec_set(machine_spec *spec, const char *assignment, ff_error *error) {
  machine_spec changed = *spec;
  ff_status status = set_value(&changed, assignment, error);
  if (status) return status;
  if ((status = spec_check(&changed, error))) {
    char *name = strndup(assignment, strcspn(assignment, "="));
    status = ff_fail_at(error, status, name);
    free(name);
    return status;
  }
  *spec = changed;
  return FF_OK;
}
