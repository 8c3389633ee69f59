/* SPDX-License-Identifier: Apache-2.0 */
/* `farfault machine show|diff|new|schema`: machine files to be read, compared, made from others, and checked by
 * editors. */
#include "cli/commands/machine_command.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/output.h"
#include "cli/cli.h"
#include "machine/spec/spec_text.h"
#include "report/table.h"

enum { KEY_LIKE = 256, KEY_SET, KEY_SOURCE, KEY_TITLE, KEY_JSON, MACHINES_MAX = 2 };
typedef enum action { SHOW, DIFF, NEW, SCHEMA, ACTIONS } action;
static const char *const actions[] = {"show", "diff", "new", "schema", NULL};

typedef struct arguments {
  action action;
  const char *machines[MACHINES_MAX], *like, *source, *title, *output, *json;
  int count;
  FF_VEC(const char *) set;
  char *words; /* of --set, cut at the commas */
  bool chosen, verbose;
} arguments;

static const struct argp_option options[] = {
    {"verbose", 'v', NULL, 0, "of show: also values that the file does not give; of diff: also the sources", 0},
    {"json", KEY_JSON, "FILE", 0, "of show and diff: write it as JSON; -: to stdout instead of the table", 0},
    {NULL, 0, NULL, 0, "Of new:", 1},
    {"like", KEY_LIKE, "NAME|FILE", 0, "the machine that everything else is taken from", 1},
    {"set", KEY_SET, "NAME=VALUE", 0, "a value that is another, as in the file (l2_bytes=60M); may be repeated", 1},
    {"source", KEY_SOURCE, "TEXT", 0,
     "where the new values are from (default: that they were set by hand, and what was there)", 1},
    {"title", KEY_TITLE, "TEXT", 0, "the line for `farfault list machines` (default: the old one, and what is set)", 1},
    {"output", 'o', "FILE", 0, "the file to write, of new and schema (default: to stdout)", 1},
    {0}};

static void choose(arguments *a, const char *word, struct argp_state *state) {
  for (int i = 0; i < ACTIONS; i++)
    if (!strcmp(actions[i], word)) {
      a->action = (action)i;
      a->chosen = true;
      return;
    }
  const char *near = cli_closest(word, actions);
  if (near) cli_refuse(state, "no '%s': did you mean '%s'?", word, near);
  cli_refuse(state, "what with '%s'? show, diff, new or schema", word);
}

static void check_count(const arguments *a, struct argp_state *state) {
  static const int wanted[ACTIONS] = {1, 2, 0, 0};
  if (!a->chosen) cli_refuse(state, "what? show, diff, new or schema");
  if (a->action == SHOW && !a->count) cli_refuse(state, "which machine? (`farfault list machines` lists them)");
  if (a->action == DIFF && a->count < 2) cli_refuse(state, "which two machines?");
  if (a->count > wanted[a->action])
    cli_refuse(state, "%s takes %s", actions[a->action],
               a->action == SHOW  ? "one machine"
               : a->action == NEW ? "options only: --like NAME"
                                  : "no machine");
  if (a->action == NEW && !a->like) cli_refuse(state, "like which machine? (--like h100)");
  if (a->action != NEW && (a->like || a->set.count || a->source || a->title))
    cli_refuse(state, "--like, --set, --source and --title are of `farfault machine new`");
  if (a->output && a->action != NEW && a->action != SCHEMA)
    cli_refuse(state, "-o is of new and schema; --json of %s", actions[a->action]);
  if (a->json && a->action != SHOW && a->action != DIFF) cli_refuse(state, "--json is of show and diff");
}

/* "l2_bytes=60M,sm_count=100" are two. */
static void add_set(arguments *a, const char *value, struct argp_state *state) {
  if (!*value) cli_refuse(state, "--set is empty");
  char *rest = NULL;
  a->words = ff_strdup(value); /* as long as the program */
  for (char *word = strtok_r(a->words, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) FF_PUSH(&a->set, word);
}

static error_t parse(int key, char *value, struct argp_state *state) {
  arguments *a = state->input;
  switch (key) {
  case 'v': a->verbose = true; return 0;
  case KEY_JSON: a->json = cli_output(value, "--json", true, state); return 0;
  case KEY_LIKE: a->like = value; return 0;
  case KEY_SET: add_set(a, value, state); return 0;
  case KEY_SOURCE:
    if (!*value || strlen(value) > 500) cli_refuse(state, "--source is a text of 1 to 500 characters");
    a->source = value;
    return 0;
  case KEY_TITLE:
    if (!*value || strlen(value) >= sizeof((machine_spec *)0)->title)
      cli_refuse(state, "--title is a text of 1 to %zu characters", sizeof((machine_spec *)0)->title - 1);
    a->title = value;
    return 0;
  case 'o': a->output = cli_output(value, "-o", false, state); return 0;
  case ARGP_KEY_ARG:
    if (!a->chosen) choose(a, value, state);
    else if (a->count == MACHINES_MAX) cli_refuse(state, "more than two machines");
    else a->machines[a->count++] = value;
    return 0;
  case ARGP_KEY_END: check_count(a, state); return 0;
  default: return ARGP_ERR_UNKNOWN;
  }
}

static bool read_machine(const char *name, spec_text *text, int *status) {
  ff_error error;
  if (!spec_text_read(name, text, &error)) return true;
  *status = cli_fail(error.status == FF_NOT_FOUND ? CLI_USAGE : CLI_BAD_FILE, "%s", error.message);
  return false;
}

/* The text instead of the table, or beside it. */
static int put(const arguments *a, const ff_text *table, json_t *json) {
  int status = a->json && !strcmp(a->json, "-") ? CLI_DONE : cli_print(table);
  char *text = a->json ? json_dumps(json, JSON_INDENT(1)) : NULL;
  ff_text out = {0};
  if (text) {
    ff_text_add(&out, "%s\n", text);
    int failed = cli_write_or_print(a->json, &out);
    if (failed) status = failed;
  }
  free(text);
  free(out.chars);
  json_decref(json);
  return status;
}

static json_t *text_json(const char *text) { return text ? json_string(text) ?: json_string("?") : json_null(); }

/* ---- show ---- */

static json_t *entry_json(const spec_param *param, const spec_entry *entry) {
  return json_pack("{s:s, s:s, s:o, s:s, s:o}", "group", param->group, "name", param->name, "value",
                   text_json(entry->value), "unit", param->unit, "source", text_json(entry->source));
}

static int show(const arguments *a) {
  spec_text *text = ff_alloc(sizeof *text);
  int status;
  if (!read_machine(a->machines[0], text, &status)) {
    free(text);
    return status;
  }
  ff_text out = {0};
  json_t *values = json_array();
  table t;
  table_start(&t, "llrlw");
  table_names(&t, (const char *const[]){"group", "name", "value", "unit", "source", NULL});
  t.spare = (const char *const[]){"group", "source", NULL}; /* never the values */
  for (int i = 0; i < SPEC_PARAM_COUNT; i++) {
    const spec_entry *entry = &text->entries[i];
    if (!entry->value && !a->verbose) continue;
    table_cell(&t, "%s", spec_params[i].group);
    table_cell(&t, "%s", spec_params[i].name);
    table_cell_cut(&t, entry->value ? entry->value : "-", 40);
    table_cell(&t, "%s", spec_params[i].unit);
    table_cell(&t, "%s", entry->source ? entry->source : "not in the file");
    json_array_append_new(values, entry_json(&spec_params[i], entry));
  }
  ff_text_add(&out, "%s\n%s%s%s\n\n", text->spec.title, text->path, text->like ? ", like " : "",
              text->like ? text->like : "");
  table_write(&t, 0, &out);
  status = put(a, &out,
               json_pack("{s:o, s:o, s:o, s:o}", "title", text_json(text->spec.title), "file", text_json(text->path),
                         "like", text_json(text->like), "values", values));
  table_free(&t);
  free(out.chars);
  spec_text_free(text);
  free(text);
  return status;
}

/* ---- diff ---- */

/* The values, not how they are written: 1M and 1024K are the same. */
static bool same_value(const spec_text texts[2], int i) {
  const spec_param *param = &spec_params[i];
  size_t next = i + 1 < SPEC_PARAM_COUNT ? spec_params[i + 1].offset : offsetof(machine_spec, file);
  const char *a = (const char *)&texts[0].spec + param->offset, *b = (const char *)&texts[1].spec + param->offset;
  if (!texts[0].entries[i].value != !texts[1].entries[i].value) return false;
  return param->type == 's' ? !strcmp(a, b) : !memcmp(a, b, next - param->offset);
}

/* "1.25x" of a number, "" where there is none. */
static void ratio_cell(table *t, const spec_text texts[2], int i) {
  double values[2];
  for (int n = 0; n < 2; n++) {
    const char *at = (const char *)&texts[n].spec + spec_params[i].offset;
    values[n] = spec_params[i].type == 'u'   ? (double)*(const uint64_t *)at
                : spec_params[i].type == 'f' ? *(const double *)at
                                             : 0;
  }
  if (texts[0].entries[i].value && texts[1].entries[i].value && values[0] > 0 && values[1] > 0)
    table_cell(t, "%.3gx", values[1] / values[0]);
  else table_cell(t, "%s", "");
}

static int print_difference(const arguments *a, const spec_text texts[2]) {
  ff_text out = {0};
  json_t *list = json_array();
  table t;
  size_t width = a->verbose ? 40 : 21; /* two values and their ratio fit 80 columns */
  table_start(&t, a->verbose ? "lrrrlww" : "lrrrl");
  table_names(&t, (const char *const[]){"name", a->machines[0], a->machines[1], "ratio", "unit", NULL});
  if (a->verbose) table_names(&t, (const char *const[]){"source", "source", NULL});
  t.spare = (const char *const[]){"source", "source", "unit", "ratio", NULL}; /* never the values */
  for (int i = 0; i < SPEC_PARAM_COUNT; i++) {
    const spec_entry *first = &texts[0].entries[i], *second = &texts[1].entries[i];
    if (same_value(texts, i)) continue;
    table_cell(&t, "%s", spec_params[i].name);
    table_cell_cut(&t, first->value ? first->value : "-", width);
    table_cell_cut(&t, second->value ? second->value : "-", width);
    ratio_cell(&t, texts, i);
    table_cell(&t, "%s", spec_params[i].unit);
    for (int n = 0; a->verbose && n < 2; n++) {
      const char *source = texts[n].entries[i].source;
      table_cell(&t, "%s", source ? source : "-");
    }
    json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:[o, o], s:[o, o]}", "group", spec_params[i].group, "name",
                                          spec_params[i].name, "unit", spec_params[i].unit, "values",
                                          text_json(first->value), text_json(second->value), "sources",
                                          text_json(first->source), text_json(second->source)));
  }
  bool differ = json_array_size(list) != 0;
  if (differ) table_write(&t, 0, &out);
  else ff_text_add(&out, "the machines have the same values\n");
  int status = put(a, &out, list);
  table_free(&t);
  free(out.chars);
  return status ? CLI_BAD_FILE : differ;
}

static int diff(const arguments *a) {
  spec_text *texts = ff_alloc(2 * sizeof *texts);
  int status, count = 0;
  while (count < 2 && read_machine(a->machines[count], &texts[count], &status)) count++;
  if (count == 2) status = print_difference(a, texts);
  for (int i = 0; i < count; i++) spec_text_free(&texts[i]);
  free(texts);
  return status;
}

/* ---- new, schema ---- */

static int write_output(const arguments *a, const ff_text *text) {
  return cli_write_or_print(a->output ? a->output : "-", text);
}

static int make(const arguments *a) {
  spec_text *text = ff_alloc(sizeof *text);
  ff_text out = {0};
  ff_error error;
  int status;
  if (!read_machine(a->like, text, &status)) {
    free(text);
    return status;
  }
  if (spec_text_change(text, a->set.items, a->set.count, a->source, a->title, &out, &error))
    status = cli_fail(error.status == FF_UNSUPPORTED ? CLI_BAD_FILE : CLI_USAGE, "%s", error.message);
  else if (ff_output_same(a->output, text->path))
    status = cli_fail(CLI_USAGE, "%s: is the machine that it would be like", a->output);
  else status = write_output(a, &out);
  free(out.chars);
  spec_text_free(text);
  free(text);
  return status;
}

static int schema(const arguments *a) {
  ff_text out = {0};
  machine_schema_write(&out);
  int status = write_output(a, &out);
  free(out.chars);
  return status;
}

static int machine(int argc, char **argv) {
  static const struct argp argp = {
      options,
      parse,
      "show|diff|new|schema [MACHINE] [MACHINE]",
      "Reads machine files: `show` prints a machine's values with units and where each is from, `diff` what is different in two, `new` writes a "
      "machine like another but for some values, with all its comments and sources, `schema` the JSON Schema for editors.\v"
      "Example:\n  farfault machine show h100\n  farfault machine diff a100 h100\n"
      "  farfault machine new --like h100 --set l2_bytes=60M,sm_count=120 --source \"a guess\" -o mine.yaml\n"
      "  farfault run --machine mine.yaml ./saxpy 1000000\n\n"
      "Exit status of diff, as of diff: 0 the same values, 1 others, 2 a file is of no use. Of all: 64 wrong arguments.",
      NULL,
      NULL,
      NULL};
  arguments a = {0};
  cli_parse_tabular(&argp, argc, argv, &a, STDOUT_FILENO);
  int (*const does[ACTIONS])(const arguments *) = {show, diff, make, schema};
  int status = does[a.action](&a);
  free(a.set.items);
  return status;
}

const cli_command cli_machine = {"machine", "show and compare machines, and make new ones from others", machine};
