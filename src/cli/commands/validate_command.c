/* SPDX-License-Identifier: Apache-2.0 */
/* `farfault validate`: the microbenchmarks of workloads/micro on the virtual GPU, next to measurements on real GPUs.
 *
 *   tables of validation/ -> rows -> a `farfault run --json` per machine, setting and program (jobs.c) -> what the
 *   program printed and the counters -> values -> scores
 *
 * Programs are executed by one thread and runs are taken in the tables' order, so that the same command gives the same
 * bytes; files are written only when all runs were made; a run that failed is named, with what it said. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/running/jobs.h"
#include "cli/running/run.h"
#include "validate/validate.h"

enum {
  KEY_GROUP = 256,
  KEY_QUICK,
  KEY_LIST,
  KEY_JSON,
  KEY_HTML,
  KEY_LIMITS,
  KEY_TABLE,
  KEY_SET,
  KEY_PROGRAMS,
  FILE_LIMIT = 16 << 20,
  MOST_JOBS = 999
};

#define LIMITS_FILE "limits.tsv"
#define GOALS_FILE "goals.tsv"

typedef struct arguments {
  validate_choice choice;
  const char *json, *html, *document, *limits;
  const char *programs;     /* the folder of those that are not bundled; NULL: none */
  const char *machine_file; /* NULL: the bundled ones */
  char *machine_name;       /* of that file, owned */
  FF_VEC(const char *) tables;
  ff_text set; /* the user's settings, separated by commas */
  uint32_t jobs;
  bool list, verbose, limited;
} arguments;

typedef struct part { /* of a run */
  char *json, *log;
} part;

typedef struct work {
  const arguments *arguments;
  validate_table table;
  jobs jobs;
  FF_VEC(part) parts; /* as jobs.list and table.runs */
  char *folder, *self, *workloads;
  uint32_t failed;
} work;

static const struct argp_option options[] = {
    {"group", KEY_GROUP, "GROUP", 0, "only the rows of that group", 0},
    {"machine", 'M', "NAME|FILE", 0,
     "only the rows of GPUs that this machine stands for; a file: run on it instead of the bundled one of its name", 0},
    {"quick", KEY_QUICK, NULL, 0, "only the rows that are marked so: some of each group, in seconds", 0},
    {"list", KEY_LIST, NULL, 0, "list the groups and run nothing; with -v the rows", 0},
    {"set", KEY_SET, "NAME=VALUE", 0, "run with this value instead of the machine files' (may be repeated)", 0},
    {"table", KEY_TABLE, "FILE", 0, "the rows of this table instead of the bundled ones (may be repeated)", 0},
    {"programs", KEY_PROGRAMS, "FOLDER", 0,
     "the programs that are not bundled, which rows of the group kernels need (validation/README.md has which); without it these rows are left out",
     0},
    {"json", KEY_JSON, "FILE", 0, "write rows and scores as JSON; -: to stdout instead of the table", 0},
    {"html", KEY_HTML, "FILE", 0, "write a page with scatter plots and curves", 0},
    {"output", 'o', "FILE", 0, "write the tables as a document (Markdown)", 0},
    {"limits", KEY_LIMITS, "FILE", OPTION_ARG_OPTIONAL,
     "fail if a group's error is above its limit in FILE (default: the bundled limits)", 0},
    {"jobs", 'j', "N", 0, "programs that run at once (default: as many as there are processors)", 0},
    {"verbose", 'v', NULL, 0, "add the rows", 0},
    {0}};

static void add_setting(arguments *a, const char *value, struct argp_state *state) {
  const char *equals = strchr(value, '=');
  if (!equals || equals == value || !equals[1]) cli_refuse(state, "--set: '%s' is not NAME=VALUE", value);
  ff_text_add(&a->set, "%s%s", a->set.length ? "," : "", value);
}

/* A file stands for the bundled machine of its name. */
static void choose_machine(arguments *a, const char *value) {
  const char *slash = strrchr(value, '/'), *name = slash ? slash + 1 : value, *dot = strstr(name, ".yaml");
  bool file = slash || (dot && !dot[5]);
  free(a->machine_name);
  a->machine_name = ff_strdup(name);
  if (dot && !dot[5]) a->machine_name[dot - name] = '\0';
  a->choice.machine = a->machine_name;
  a->machine_file = file ? value : NULL;
}

static error_t parse(int key, char *value, struct argp_state *state) {
  arguments *a = state->input;
  char *end;
  switch (key) {
  case KEY_GROUP: a->choice.group = value; return 0;
  case 'M': choose_machine(a, value); return 0;
  case KEY_QUICK: a->choice.quick = true; return 0;
  case KEY_LIST: a->list = true; return 0;
  case KEY_SET: add_setting(a, value, state); return 0;
  case KEY_TABLE: FF_PUSH(&a->tables, value); return 0;
  case KEY_PROGRAMS: a->programs = value; return 0;
  case KEY_JSON: a->json = cli_output(value, "--json", true, state); return 0;
  case KEY_HTML: a->html = cli_output(value, "--html", false, state); return 0;
  case 'o': a->document = cli_output(value, "--output", false, state); return 0;
  case KEY_LIMITS:
    a->limited = true;
    a->limits = value;
    return 0;
  case 'j':
    a->jobs = (uint32_t)strtoul(value, &end, 10);
    if (*value < '1' || *value > '9' || *end || strlen(value) > 3)
      cli_refuse(state, "--jobs: '%s' is not a number from 1 to %d", value, MOST_JOBS);
    return 0;
  case 'v': a->verbose = true; return 0;
  case ARGP_KEY_ARG: cli_refuse(state, "'%s' is no option; groups are chosen by --group", value); return 0;
  default: return ARGP_ERR_UNKNOWN;
  }
}

/* ---- the tables ---- */

/* The folder of the bundled tables; the caller frees it. NULL: it is not there. */
static char *tables_folder(void) {
  return cli_find_installed((const char *const[]){"../share/farfault/validation", NULL});
}

static ff_status read_table(validate_table *table, const char *path, ff_error *error) {
  char *text;
  size_t size;
  ff_status status = ff_file_read(path, FILE_LIMIT, &text, &size, error);
  if (status) return status;
  status = validate_table_read(path, text, size, table, error);
  free(text);
  return status;
}

static int is_table(const struct dirent *entry) {
  const char *dot = strrchr(entry->d_name, '.');
  return dot && !strcmp(dot, ".tsv") && strcmp(entry->d_name, LIMITS_FILE) != 0 &&
         strcmp(entry->d_name, GOALS_FILE) != 0;
}

static ff_status read_folder(validate_table *table, const char *folder, ff_error *error) {
  struct dirent **entries;
  ff_status status = FF_OK;
  int count = scandir(folder, &entries, is_table, alphasort);
  if (count < 0) return ff_fail(error, FF_IO, "%s: cannot read the folder", folder);
  for (int i = 0; i < count; i++) {
    ff_text path = {0};
    ff_text_add(&path, "%s/%s", folder, entries[i]->d_name);
    if (!status) status = read_table(table, path.chars, error);
    free(path.chars);
    free(entries[i]);
  }
  free(entries);
  return status;
}

static ff_status read_goals(validate_table *table, const char *folder, ff_error *error) {
  char *text = NULL;
  size_t size;
  ff_text path = {0};
  ff_text_add(&path, "%s/" GOALS_FILE, folder);
  ff_status status = ff_file_read(path.chars, FILE_LIMIT, &text, &size, error);
  if (!status) status = validate_goals_read(path.chars, text, size, table, error);
  free(text);
  free(path.chars);
  return status;
}

/* The bundled tables and goals, or the user's tables, which have none. */
static ff_status read_tables(const arguments *a, validate_table *table, ff_error *error) {
  ff_status status = FF_OK;
  for (size_t i = 0; i < a->tables.count && !status; i++) status = read_table(table, a->tables.items[i], error);
  if (a->tables.count) return status;
  char *folder = tables_folder();
  status = folder ? read_folder(table, folder, error)
                  : ff_fail(error, FF_IO, "the tables of measurements are not installed next to this program");
  if (!status) status = read_goals(table, folder, error);
  free(folder);
  return status;
}

/* Of all rows, each name once: for what a user may have meant. */
static void say_unknown(const validate_table *table, bool group, const char *wanted) {
  const char *names[256] = {0};
  size_t count = 0;
  ff_text known = {0};
  for (size_t i = 0; i < table->rows.count && count < 255; i++) {
    const char *name = group ? table->rows.items[i].group : table->rows.items[i].machine;
    bool new = true;
    for (size_t k = 0; k < count; k++) new = new &&strcmp(names[k], name) != 0;
    if (!new) continue;
    names[count++] = name;
    ff_text_add(&known, "%s%s", count > 1 ? ", " : "", name);
  }
  const char *near = cli_closest(wanted, names), *what = group ? "group" : "machine with rows";
  if (near) cli_fail(0, "no %s '%s': did you mean '%s'?", what, wanted, near);
  else cli_fail(0, "no %s '%s': there are %s", what, wanted, known.chars ? known.chars : "none");
  free(known.chars);
}

static bool has(const validate_table *table, bool group, const char *wanted) {
  for (size_t i = 0; i < table->rows.count; i++)
    if (!strcmp(group ? table->rows.items[i].group : table->rows.items[i].machine, wanted)) return true;
  return false;
}

/* Says how many rows are left out as their programs are not here. */
static uint32_t say_left_out(const validate_table *table, const validate_choice *choice) {
  validate_choice with = *choice;
  uint32_t count = 0;
  with.without_folder = false;
  for (size_t i = 0; i < table->rows.count; i++)
    count += validate_is_wanted(&table->rows.items[i], &with) && validate_needs_folder(&table->rows.items[i]);
  if (count == 1) cli_fail(0, "1 row is left out: its program is not bundled (--programs FOLDER)");
  else if (count) cli_fail(0, "%u rows are left out: their programs are not bundled (--programs FOLDER)", count);
  return count;
}

/* Drops what is not wanted; an exit status. */
static int choose(const arguments *a, validate_table *table) {
  const validate_choice *c = &a->choice;
  uint32_t left_out = 0;
  if (c->group && !has(table, true, c->group)) return say_unknown(table, true, c->group), CLI_USAGE;
  if (c->machine && !has(table, false, c->machine)) return say_unknown(table, false, c->machine), CLI_USAGE;
  if (c->without_folder) left_out = say_left_out(table, c);
  validate_choose(table, c);
  if (table->rows.count) return CLI_DONE;
  return left_out ? CLI_USAGE : cli_fail(CLI_USAGE, "no row is of all that was asked for");
}

/* ---- the runs ---- */

static void add_word(char ***argv, size_t *count, const char *word) {
  *argv = ff_realloc(*argv, (*count + 2) * sizeof **argv);
  (*argv)[(*count)++] = ff_strdup(word);
  (*argv)[*count] = NULL;
}

static void add_settings(char ***argv, size_t *count, const char *list) {
  add_word(argv, count, "--set");
  add_word(argv, count, list);
}

/* The word with the folder of programs in its place. */
static void add_expanded(const work *w, const char *word, char ***argv, size_t *count) {
  ff_text text = {0};
  for (const char *at; (at = strstr(word, VALIDATE_FOLDER)); word = at + strlen(VALIDATE_FOLDER))
    ff_text_add(&text, "%.*s%s", (int)(at - word), word, w->arguments->programs);
  ff_text_add(&text, "%s", word);
  add_word(argv, count, text.chars);
  free(text.chars);
}

/* The first word is a microbenchmark of ours, or a path. */
static void add_program(const work *w, const char *program, char ***argv, size_t *count) {
  char *words = ff_strdup(program), *rest = NULL, *word = strtok_r(words, " ", &rest);
  ff_text path = {0};
  ff_text_add(&path, "%s%s%s", strchr(program, '/') ? "" : w->workloads, strchr(program, '/') ? "" : "/micro/",
              word ? word : "");
  add_expanded(w, path.chars, argv, count);
  while ((word = strtok_r(NULL, " ", &rest))) add_expanded(w, word, argv, count);
  free(path.chars);
  free(words);
}

static char **run_command(const work *w, const validate_run *run, const part *part) {
  const char *machine = w->arguments->machine_file ? w->arguments->machine_file : run->machine;
  const char *head[] = {w->self, "run",      "--threads", "1",      "--machine",
                        machine, "--memory", run->memory, "--json", part->json};
  char **argv = NULL;
  size_t count = 0;
  for (size_t i = 0; i < sizeof head / sizeof head[0]; i++) add_word(&argv, &count, head[i]);
  if (strcmp(run->set, "-")) add_settings(&argv, &count, run->set);
  if (w->arguments->set.length) add_settings(&argv, &count, w->arguments->set.chars);
  add_program(w, run->program, &argv, &count);
  return argv;
}

static char *file_in(const work *w, uint32_t number, const char *ending) {
  ff_text path = {0};
  ff_text_add(&path, "%s/%u.%s", w->folder, number, ending);
  return path.chars;
}

static void plan(work *w) {
  for (uint32_t i = 0; i < w->table.runs.count; i++) {
    const validate_run *run = &w->table.runs.items[i];
    part part = {file_in(w, i, "json"), file_in(w, i, "log")};
    const char *label = run->program;
    if (!strncmp(label, VALIDATE_FOLDER "/", strlen(VALIDATE_FOLDER "/"))) label += strlen(VALIDATE_FOLDER "/");
    job job = {.argv = run_command(w, run, &part), .log = ff_strdup(part.log), .label = label, .seconds = 1};
    FF_PUSH(&w->parts, part);
    FF_PUSH(&w->jobs.list, job);
  }
}

/* The last lines of what a run that failed has said. */
static void show_end(const char *text) {
  const char *from = text + strlen(text);
  for (int lines = 0; from > text && lines < 12; from--) lines += from[-1] == '\n' && from[0];
  fprintf(stderr, "%s%s", from, *from ? "\n" : "");
}

/* The values of all rows of the run; what it printed is in `text`. */
static uint32_t take(work *w, uint32_t number, const char *text, const sim_result *result) {
  uint32_t missing = 0;
  for (size_t i = 0; i < w->table.rows.count; i++) {
    validate_row *row = &w->table.rows.items[i];
    if (row->run != number) continue;
    row->ours = validate_value(row, text, result);
    if (!isnan(row->ours)) continue;
    cli_fail(0, "%s, %s, %s: '%s' gave no value of %s in %s", row->group, row->gpu, row->row, row->program,
             row->quantity, row->unit);
    missing++;
  }
  return missing;
}

static void job_ended(void *context, job *job) {
  work *w = context;
  uint32_t number = (uint32_t)(job - w->jobs.list.items);
  const validate_run *run = &w->table.runs.items[number];
  report_run report = {0};
  ff_error error = {0};
  char *text = NULL;
  size_t size;
  if (ff_file_read(job->log, FILE_LIMIT, &text, &size, NULL)) text = ff_strdup("");
  bool read = !job->status && !report_file_read(w->parts.items[number].json, &report, &error);
  const sim_result *result = read && report.result_count ? &report.results[0] : NULL;
  const char *wrong = job->status                ? "failed"
                      : !read                    ? error.message
                      : result && *result->error ? result->error
                      : !report.complete         ? "is not complete"
                                                 : NULL;
  if (wrong) {
    w->failed++;
    cli_fail(0, "%s on %s: %s", run->program, run->machine, wrong);
    show_end(text);
  } else if (take(w, number, text, result)) w->failed++;
  if (read) report_free(&report);
  unlink(w->parts.items[number].json);
  free(text);
}

/* ---- the command ---- */

static ff_status write_text(const char *path, const ff_text *text, ff_error *error) {
  return ff_file_write(path, text->chars ? text->chars : "", text->length, error);
}

static ff_status write_files(const work *w, const validate_scores *scores, const validate_page *page, ff_error *error) {
  const arguments *a = w->arguments;
  const struct {
    const char *path;
    void (*make)(const validate_table *, const validate_scores *, const validate_page *, ff_text *);
  } files[] = {{a->json && strcmp(a->json, "-") ? a->json : NULL, validate_json},
               {a->html, validate_html},
               {a->document, validate_markdown}};
  ff_status status = FF_OK;
  for (size_t i = 0; i < sizeof files / sizeof *files && !status; i++) {
    ff_text out = {0};
    if (!files[i].path) continue;
    files[i].make(&w->table, scores, page, &out);
    status = write_text(files[i].path, &out, error);
    free(out.chars);
  }
  return status;
}

/* What the user chose, as it would be typed again: files that are written are not part of it. */
static char *command_line(const arguments *a) {
  ff_text out = {0};
  ff_text_add(&out, "farfault validate");
  if (a->choice.group) ff_text_add(&out, " --group "), ff_text_add_quoted(&out, a->choice.group);
  if (a->choice.machine)
    ff_text_add(&out, " --machine "), ff_text_add_quoted(&out, a->machine_file ? a->machine_file : a->choice.machine);
  if (a->choice.quick) ff_text_add(&out, " --quick");
  for (size_t i = 0; i < a->tables.count; i++)
    ff_text_add(&out, " --table "), ff_text_add_quoted(&out, a->tables.items[i]);
  if (a->programs) ff_text_add(&out, " --programs "), ff_text_add_quoted(&out, a->programs);
  if (a->set.length) ff_text_add(&out, " --set "), ff_text_add_quoted(&out, a->set.chars);
  if (a->document) ff_text_add(&out, " -o "), ff_text_add_quoted(&out, a->document);
  return out.chars;
}

/* The limits that --limits goes by: its file's, or those next to the bundled tables. */
static ff_status read_limits(const arguments *a, validate_limits *limits, ff_error *error) {
  ff_text path = {0};
  char *folder = a->limits ? NULL : tables_folder(), *text = NULL;
  size_t size;
  if (a->limits) ff_text_add(&path, "%s", a->limits);
  else ff_text_add(&path, "%s/%s", folder ? folder : ".", LIMITS_FILE);
  ff_status status = ff_file_read(path.chars, FILE_LIMIT, &text, &size, error);
  if (!status) status = validate_limits_read(path.chars, text, size, limits, error);
  free(text);
  free(folder);
  free(path.chars);
  return status;
}

/* The exit status of --limits. */
static int check_limits(const arguments *a, const validate_scores *scores, const validate_limits *limits) {
  ff_text said = {0};
  char *rest = NULL;
  uint32_t count = validate_exceeded(scores, limits, a->choice.quick, &said);
  for (char *line = said.chars ? strtok_r(said.chars, "\n", &rest) : NULL; line; line = strtok_r(NULL, "\n", &rest))
    cli_fail(0, "%s", line);
  free(said.chars);
  return count ? CLI_FAILED : CLI_DONE;
}

static void show(const work *w, const validate_scores *scores, const validate_page *page, ff_text *out) {
  const arguments *a = w->arguments;
  if (a->json && !strcmp(a->json, "-")) {
    validate_json(&w->table, scores, page, out);
    return;
  }
  validate_table_text(&w->table, scores, a->verbose, out);
  if (*page->set) ff_text_add(out, "with %s\n", page->set);
}

static int conclude(const work *w, const validate_limits *limits, int signal) {
  const arguments *a = w->arguments;
  validate_scores scores = {0};
  char *command = command_line(a);
  validate_page page = {.command = command, .set = a->set.length ? a->set.chars : ""};
  ff_text out = {0};
  ff_error error;
  validate_score_all(&w->table, &scores);
  show(w, &scores, &page, &out);
  int status = cli_print(&out);
  free(out.chars);
  if (w->failed || signal)
    cli_fail(0, "incomplete: the numbers are over what there is%s",
             a->json || a->html || a->document ? ", and no file was written" : "");
  else if (write_files(w, &scores, &page, &error)) status = cli_fail(CLI_FAILED, "%s", error.message);
  if (!status && !w->failed && !signal && a->limited) status = check_limits(a, &scores, limits);
  free(scores.list.items);
  free(command);
  return signal ? 128 + signal : w->failed ? CLI_FAILED : status;
}

static int run_all(work *w, const validate_limits *limits) {
  plan(w);
  w->jobs.title = "validate";
  w->jobs.at_once = w->arguments->jobs;
  w->jobs.compared = true;
  w->jobs.ended = job_ended;
  w->jobs.context = w;
  int signal = jobs_run(&w->jobs);
  run_clear_folder(w->folder);
  int status = conclude(w, limits, signal);
  for (size_t i = 0; i < w->parts.count; i++) {
    free(w->parts.items[i].json);
    free(w->parts.items[i].log);
  }
  free(w->parts.items);
  jobs_free(&w->jobs);
  return status;
}

static char *own_path(void) {
  char path[4096];
  ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  path[length > 0 ? length : 0] = '\0';
  return ff_strdup(path);
}

/* Refuses what cannot be written before anything runs. */
static int check_outputs(const arguments *a) {
  ff_error error;
  run_outputs outputs = {
      .csv = a->document, .json = a->html, .output = a->json && strcmp(a->json, "-") ? a->json : NULL};
  if (run_outputs_check(&outputs, "", "", "", &error))
    return cli_fail(error.status == FF_INVALID ? CLI_USAGE : CLI_FAILED, "%s", error.message);
  return CLI_DONE;
}

static int validate_rows(work *w, const validate_limits *limits) {
  const arguments *a = w->arguments;
  if (a->list) {
    ff_text out = {0};
    validate_list_text(&w->table, a->verbose, &out);
    int status = cli_print(&out);
    free(out.chars);
    return status;
  }
  int status = check_outputs(a);
  if (status) return status;
  w->workloads = cli_workload_folder();
  if (!w->workloads) return cli_fail(CLI_FAILED, "the microbenchmarks are not part of this build (they need clang)");
  w->folder = run_make_folder();
  w->self = own_path();
  status = w->folder ? run_all(w, limits) : CLI_FAILED;
  if (w->folder) run_remove_folder(w->folder);
  free(w->self);
  free(w->workloads);
  return status;
}

static int validate_with(arguments *a) {
  work w = {.arguments = a};
  validate_limits limits = {0};
  ff_error error;
  ff_status bad = read_tables(a, &w.table, &error);
  if (!bad && a->limited) bad = read_limits(a, &limits, &error);
  a->choice.without_folder = !a->programs && !a->list;
  int status = bad ? cli_fail(CLI_BAD_FILE, "%s", error.message) : choose(a, &w.table);
  if (!status) status = validate_rows(&w, &limits);
  validate_table_free(&w.table);
  free(limits.list.items);
  return status;
}

static const char help[] =
    "Runs microbenchmarks on the virtual GPU and compares with measurements on real GPUs. All rows take five to seven minutes on two cores that do "
    "nothing else, and 20 to 40 where other work has them too; --quick takes some seconds.\v"
    "Example:\n  farfault validate --machine v100 --html v100.html\n"
    "  farfault validate --group latency --set l2_latency=210 -v\n\n"
    "ratio is the geometric mean of ours/silicon over a group's rows, error the mean of |ours/silicon - 1|, corr. the correlation of the "
    "logarithms. Rows whose value was in view when a value of a machine file was chosen (fitted, input) are not counted. Below it stands how far goals "
    "are reached, each over all of its rows that are counted: met is 'in part' where some were not run.\n\n"
    "Exit status: 0 if every run was made, and with --limits no error is above its limit; 128 + N if signal N stopped it.";

static uint32_t processors(void) {
  long count = sysconf(_SC_NPROCESSORS_ONLN);
  return count < 1 ? 1 : count > MOST_JOBS ? MOST_JOBS : (uint32_t)count;
}

static int validate(int argc, char **argv) {
  arguments a = {.jobs = processors()};
  const struct argp argp = {options, parse, "", help, NULL, NULL, NULL};
  cli_parse_tabular(&argp, argc, argv, &a, STDOUT_FILENO);
  int status = validate_with(&a);
  free(a.tables.items);
  free(a.set.chars);
  free(a.machine_name);
  return status;
}

const cli_command cli_validate = {"validate", "compare simulated numbers with measurements on real GPUs", validate};
