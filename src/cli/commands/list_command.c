/* SPDX-License-Identifier: Apache-2.0 */
/* `farfault list managers|policies|machines|workloads|counters`: what there is, from the tables that define it. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "cli/cli.h"
#include "machine/spec/spec.h"
#include "policy/manager.h"
#include "policy/policies.h"
#include "report/report_stacks.h"
#include "report/table.h"

enum { FIELDS = 7, FILE_LIMIT = 1 << 20 };

/* A list: rows of up to FIELDS texts, named for --json. */
typedef struct listing {
  const char *names[FIELDS]; /* NULL: fewer fields */
  FF_VEC(char *) cells;      /* owned, FIELDS per row, NULL beyond the named ones */
} listing;

static void add_cells(listing *list, const char *const *cells) {
  for (int i = 0; i < FIELDS; i++) FF_PUSH(&list->cells, cells[i] ? ff_strdup(cells[i]) : NULL);
}

static void add_row(listing *list, const char *a, const char *b, const char *c) {
  add_cells(list, (const char *[FIELDS]){a, b, c});
}

static ff_status list_managers(listing *list, ff_error *error) {
  *list = (listing){.names = {"name", "faults", "prefetch", "evict", "unit", "page", "summary"}};
  for (const manager *const *each = managers; *each; each++) {
    const manager *m = *each;
    char unit[32] = "machine's";
    bool paged = m->placement == MANAGER_PAGED;
    if (m->unit_bytes) ff_format_bytes(m->unit_bytes, unit, sizeof unit);
    add_cells(list, (const char *[FIELDS]){m->name, paged ? manager_faults_name(m) : "-",
                                           !paged        ? "-"
                                           : m->prefetch ? m->prefetch
                                                         : "none",
                                           !paged     ? "-"
                                           : m->evict ? m->evict
                                                      : "lru",
                                           paged ? unit : "-",
                                           m->ranges ? "2M"
                                           : paged   ? "auto"
                                                     : "machine's",
                                           m->summary});
  }
  return FF_OK;
}

static ff_status list_policies(listing *list, ff_error *error) {
  *list = (listing){.names = {"use", "policy", "summary"}};
  for (int use = POLICY_PREFETCH; use <= POLICY_EVICT; use++)
    for (const policy_entry *entry = policy_list((policy_use)use); entry->policy; entry++) {
      ff_text name = {0};
      ff_text_add(&name, "%s%s", entry->policy->name, entry->argument);
      add_row(list, use == POLICY_PREFETCH ? "--prefetch" : "--evict", name.chars, entry->policy->summary);
      free(name.chars);
    }
  return FF_OK;
}

/* A broken machine file is listed with what is wrong with it. */
static ff_status list_machines(listing *list, ff_error *error) {
  *list = (listing){.names = {"name", "title", "file"}};
  char **names = machine_spec_list();
  for (char **name = names; *name; name++) {
    machine_spec spec;
    ff_error broken;
    if (machine_spec_load(*name, &spec, &broken)) {
      broken.message[strcspn(broken.message, "\n")] = '\0';
      add_row(list, *name, broken.message, "");
    } else {
      char *file = realpath(spec.file, NULL); /* without "bin/../" */
      add_row(list, *name, spec.title, file ? file : spec.file);
      free(file);
    }
    free(*name);
  }
  free(names);
  return FF_OK;
}

static ff_status list_counters(listing *list, ff_error *error) {
  *list = (listing){.names = {"name", "unit", "meaning"}};
#define X(name, unit, help) add_row(list, #name, unit, help);
#include "machine/observe/counters.def"
#undef X
#define X(name, unit, help) add_row(list, "stacks." #name, unit, help);
#include "machine/stacks/stacks.def"
#undef X
#define X(name, unit, help) add_row(list, "tiers." #name, unit, help);
#include "machine/observe/tiers.def"
#undef X
#define X(name, unit, value, help) add_row(list, "stacks." #name, unit, help);
  REPORT_STACKS_SUMS(X)
  REPORT_STACKS_REALS(X)
#undef X
  return FF_OK;
}

/* One row of workloads.tsv (name, summary, default arguments, ...) as the command that runs it. */
static void add_workload(listing *list, const char *folder, char *line) {
  char *rest = NULL;
  const char *name = strtok_r(line, "\t", &rest), *summary = strtok_r(NULL, "\t", &rest),
             *values = strtok_r(NULL, "\t", &rest);
  if (!name || !summary || !values) return;
  ff_text path = {0}, command = {0};
  ff_text_add(&path, "%s/%s", folder, name);
  ff_text_add_quoted(&command, path.chars);
  ff_text_add(&command, " %s", values);
  free(path.chars);
  add_row(list, name, summary, command.chars);
  free(command.chars);
}

static ff_status list_workloads(listing *list, ff_error *error) {
  *list = (listing){.names = {"name", "summary", "command"}};
  char *table = cli_find_installed((const char *const[]){"../share/farfault/workloads.tsv", NULL});
  char *folder = cli_workload_folder();
  char *text = NULL, *rest = NULL;
  size_t size;
  ff_status status = FF_OK;
  if (!table || !folder)
    status = ff_fail(error, FF_NOT_FOUND, "the bundled workloads are not part of this build (they need clang)");
  else status = ff_file_read(table, FILE_LIMIT, &text, &size, error);
  if (!status && strtok_r(text, "\n", &rest)) /* the header row */
    for (char *line; (line = strtok_r(NULL, "\n", &rest));) add_workload(list, folder, line);
  free(text);
  free(table);
  free(folder);
  return status;
}

static const struct {
  const char *name;
  ff_status (*fill)(listing *, ff_error *);
} kinds[] = {{"managers", list_managers},
             {"policies", list_policies},
             {"machines", list_machines},
             {"workloads", list_workloads},
             {"counters", list_counters}};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

/* A column of sentences. */
static bool is_text(const char *name) {
  return !strcmp(name, "summary") || !strcmp(name, "title") || !strcmp(name, "meaning");
}

static void write_text(const listing *list, ff_text *out) {
  table t;
  char columns[FIELDS + 1] = "";
  for (int i = 0; i < FIELDS && list->names[i]; i++) columns[i] = is_text(list->names[i]) ? 'w' : 'l';
  table_start(&t, columns);
  t.names = list->names;
  t.spare = (const char *const[]){"page", "unit", NULL};
  /* many columns need their names */
  for (int i = 0; list->names[3] && i < FIELDS && list->names[i]; i++) table_cell(&t, "%s", list->names[i]);
  for (size_t i = 0; i < list->cells.count; i++)
    if (list->names[i % FIELDS]) table_cell(&t, "%s", list->cells.items[i]);
  table_write(&t, 0, out);
  table_free(&t);
}

static void write_json(const listing *list, ff_text *out) {
  json_t *array = json_array();
  for (size_t row = 0; row + FIELDS <= list->cells.count; row += FIELDS) {
    json_t *object = json_object();
    for (size_t i = 0; i < FIELDS; i++)
      if (list->names[i]) json_object_set_new(object, list->names[i], json_string(list->cells.items[row + i]));
    json_array_append_new(array, object);
  }
  char *text = json_dumps(array, JSON_INDENT(1));
  ff_text_add(out, "%s\n", text);
  free(text);
  json_decref(array);
}

typedef struct arguments {
  int kind;         /* index into kinds, -1: none yet */
  const char *json; /* "-": instead of the text */
} arguments;

enum { KEY_JSON = 256 };

static const struct argp_option options[] = {
    {"json", KEY_JSON, "FILE", 0,
     "write JSON, one object for each, with the columns' names as keys; -: to stdout instead of the text", 0},
    {NULL, 'j', NULL, OPTION_HIDDEN, "--json -", 0}, /* as it was once */
    {0}};

static void parse_kind(arguments *a, const char *value, struct argp_state *state) {
  const char *names[KINDS + 1] = {0};
  if (a->kind >= 0) cli_refuse(state, "one list at a time");
  for (int i = 0; i < KINDS; i++) {
    names[i] = kinds[i].name;
    if (!strcmp(value, kinds[i].name)) a->kind = i;
  }
  const char *near = cli_closest(value, names);
  if (a->kind < 0 && near) cli_refuse(state, "no list '%s': did you mean '%s'?", value, near);
  if (a->kind < 0)
    cli_refuse(state, "no list '%s': there are managers, policies, machines, workloads, counters", value);
}

static error_t parse(int key, char *value, struct argp_state *state) {
  arguments *a = state->input;
  switch (key) {
  case KEY_JSON: a->json = cli_output(value, "--json", true, state); return 0;
  case 'j':
    cli_say_old(state, "-j", "--json -");
    a->json = "-";
    return 0;
  case ARGP_KEY_ARG: parse_kind(a, value, state); return 0;
  case ARGP_KEY_END: {
    const char *old = a->kind < 0 ? cli_old_argument("--json", &a->json, state) : NULL;
    if (old) parse_kind(a, old, state);
    if (a->kind < 0) cli_refuse(state, "which list? managers, policies, machines, workloads or counters");
    return 0;
  }
  default: return ARGP_ERR_UNKNOWN;
  }
}

static int put(const listing *list, void (*write)(const listing *, ff_text *), const char *file) {
  ff_text out = {0};
  write(list, &out);
  int status = cli_write_or_print(file, &out);
  free(out.chars);
  return status;
}

static int list(int argc, char **argv) {
  static const struct argp argp = {
      options,
      parse,
      "managers|policies|machines|workloads|counters",
      "Lists the memory managers, the policies that they prefetch and evict by, the machines, the bundled workloads with the commands that run them, or what a "
      "simulation counts.\v"
      "Example:\n  farfault list machines\n  farfault list counters --json -",
      NULL,
      NULL,
      NULL};
  arguments a = {.kind = -1};
  cli_old_flag("--json", &argc, &argv);
  cli_parse_tabular(&argp, argc, argv, &a, STDOUT_FILENO);
  listing rows;
  ff_error error;
  int status = CLI_FAILED;
  if (kinds[a.kind].fill(&rows, &error)) cli_fail(CLI_FAILED, "%s", error.message);
  else {
    bool json_only = a.json && !strcmp(a.json, "-");
    status = json_only ? CLI_DONE : put(&rows, write_text, "-");
    if (a.json && !status) status = put(&rows, write_json, a.json);
  }
  for (size_t i = 0; i < rows.cells.count; i++) free(rows.cells.items[i]);
  free(rows.cells.items);
  return status;
}

const cli_command cli_list = {"list", "list memory managers, policies, machines, workloads, counters", list};
