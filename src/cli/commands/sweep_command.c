/* SPDX-License-Identifier: Apache-2.0 */
/* `farfault sweep STUDY.yaml`: every point of a study, each a `farfault sim`, into one database; started by mpirun,
 * with the help of all its ranks.
 *
 * Everything that can be refused is refused before the first point runs; a point that is finished is
 * never run again; whatever ends the sweep, the same command goes on. */
#define _GNU_SOURCE /* sched_getaffinity */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands/sweep_command.h"
#include "report/table.h"

enum { KEY_DRY_RUN = 256, KEY_LIMIT, STUDY_LIMIT = 1 << 20, FAILURES_SHOWN = 10 };

typedef struct arguments {
  const char *study;
  char *output;  /* owned */
  uint32_t jobs; /* 0: not said */
  uint64_t limit;
  bool dry_run, verbose;
} arguments;

static const struct argp_option options[] = {
    {"output", 'o', "DATABASE", 0, "the database (default: the study's name with .db); one that is there goes on", 0},
    {"jobs", 'j', "N", 0, "points at once in this process (default: one per core; under mpirun 1 per rank)", 0},
    {"dry-run", KEY_DRY_RUN, NULL, 0,
     "check everything and print the points, without running them; with -v their commands", 0},
    {"limit", KEY_LIMIT, "N", 0, "refuse a study of more than N points (default: 10000)", 0},
    {"verbose", 'v', NULL, 0, "with --dry-run: the commands instead of a table", 0},
    {0}};

static uint64_t parse_number(const char *option, const char *value, uint64_t most, struct argp_state *state) {
  char *end;
  errno = 0;
  unsigned long long number = strtoull(value, &end, 10);
  if (*value < '0' || *value > '9' || *end || errno || !number || number > most)
    cli_refuse(state, "%s: '%s' is not a number from 1 to %llu", option, value, (unsigned long long)most);
  return number;
}

static error_t parse(int key, char *value, struct argp_state *state) {
  arguments *a = state->input;
  switch (key) {
  case 'o':
    cli_output(value, "--output", false, state);
    free(a->output);
    a->output = ff_strdup(value);
    return 0;
  case 'j': a->jobs = (uint32_t)parse_number("--jobs", value, 999, state); return 0;
  case KEY_LIMIT: a->limit = parse_number("--limit", value, 10000000, state); return 0;
  case KEY_DRY_RUN: a->dry_run = true; return 0;
  case 'v': a->verbose = true; return 0;
  case ARGP_KEY_ARG:
    if (!*value) cli_refuse(state, "the study's name is empty");
    if (a->study) cli_refuse(state, "one study at a time");
    a->study = value;
    return 0;
  case ARGP_KEY_END:
    if (!a->study) cli_refuse(state, "which study? (docs/sweeps.md says what stands in one)");
    return 0;
  default: return ARGP_ERR_UNKNOWN;
  }
}

/* ---- --dry-run ---- */

static void add_commands(const sweep_plan *plan, ff_text *out) {
  for (size_t i = 0; i < plan->points.count; i++) {
    char **argv = sweep_point_command(plan, plan->points.items[i], "farfault", NULL);
    for (char **word = argv; *word; word++) {
      if (word != argv) ff_text_add(out, " ");
      ff_text_add_quoted(out, *word);
      free(*word);
    }
    ff_text_add(out, "\n");
    free(argv);
  }
}

static void add_table(const sweep_plan *plan, ff_text *out) {
  table t;
  char columns[TABLE_COLUMNS + 1] = "rlll";
  size_t shown = plan->parameters.count < TABLE_COLUMNS - 4 ? plan->parameters.count : TABLE_COLUMNS - 4;
  memset(columns + 4, 'l', shown);
  table_start(&t, columns);
  table_cell(&t, "point");
  table_cell(&t, "trace");
  table_cell(&t, "machine");
  for (size_t i = 0; i < shown; i++) table_cell(&t, "%s", study_axis_name(plan->parameters.items[i].axis));
  table_cell(&t, "memory");
  for (size_t i = 0; i < plan->points.count; i++) {
    const sweep_point *point = plan->points.items[i];
    table_cell(&t, "%u", point->number);
    table_cell_cut(&t, point->trace->name, 40);
    table_cell_cut(&t, point->machine->name, 40);
    for (size_t j = 0; j < shown; j++) table_cell_cut(&t, point->values[j] ? point->values[j] : "-", 40);
    table_cell_cut(&t, point->memory, 60);
  }
  table_write(&t, 0, out);
  table_free(&t);
}

static int dry_run(const arguments *a, const sweep_plan *plan) {
  ff_text out = {0};
  (a->verbose ? add_commands : add_table)(plan, &out);
  int status = cli_print(&out);
  free(out.chars);
  if (plan->repeated) cli_fail(0, "%u further combinations are the same as one of these", plan->repeated);
  return status;
}

/* ---- the sweep ---- */

static uint32_t cores(void) {
  cpu_set_t set;
  int count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  return count < 1 ? 1 : count > 999 ? 999 : (uint32_t)count;
}

static uint32_t at_once(const arguments *a, const sweep_cluster *cluster) {
  return a->jobs ? a->jobs : cluster->ranks && cluster->count > 1 ? 1 : cores();
}

/* "saxpy.yaml" -> "saxpy.db" */
static char *default_output(const char *study) {
  ff_text name = {0};
  const char *dot = strrchr(study, '.');
  size_t length = dot && !strchr(dot, '/') && dot != study ? (size_t)(dot - study) : strlen(study);
  ff_text_add(&name, "%.*s.db", (int)length, study);
  return name.chars;
}

/* What simulates a point in place of a copy of this process, where a test says so; NULL: none. */
static const char *other_program(void) { return getenv("FARFAULT_SWEEP_PROGRAM"); }

static int conclude(const arguments *a, const sweep_work *work, int signal) {
  uint32_t all = (uint32_t)work->plan->points.count, in = work->there + work->run;
  ff_text list = {0};
  uint32_t failures = sweep_database_failures(work->database, FAILURES_SHOWN, &list);
  int status = signal ? 128 + signal : work->error.message[0] || failures ? CLI_FAILED : CLI_DONE;
  if (work->error.message[0]) cli_fail(0, "%s", work->error.message);
  if (failures)
    fprintf(stderr, "farfault: %u of %u points %s an error (the others are kept):\n%s", failures, all,
            failures == 1 ? "has" : "have", list.chars);
  if (failures > FAILURES_SHOWN)
    fprintf(stderr, "  ... farfault results %s --where \"error is not null\" shows all\n", a->output);
  if (signal || work->error.message[0])
    cli_fail(0, "stopped: %u of %u points %s in %s; the same command goes on from there", in, all,
             in == 1 ? "is" : "are", a->output);
  else if (work->there)
    cli_fail(0, "%u point%s run, %u %s in %s already", work->run, cli_s(work->run), work->there,
             work->there == 1 ? "was" : "were", a->output);
  else cli_fail(0, "%u point%s in %s", all, cli_s(all), a->output);
  free(list.chars);
  return status;
}

static int run_points(const arguments *a, const sweep_plan *plan, const sweep_cluster *cluster, bool *lost) {
  sweep_work work = {.plan = plan,
                     .cluster = cluster,
                     .program = other_program(),
                     .at_once = at_once(a, cluster),
                     .lost = lost,
                     .output = a->output};
  ff_error error;
  int status;
  if (sweep_database_open(a->output, plan, &work.database, &error))
    status = cli_fail(error.status == FF_IO ? CLI_FAILED : CLI_BAD_FILE, "%s", error.message);
  else {
    int signal = sweep_run(&work);
    status = conclude(a, &work, signal);
    sweep_database_close(work.database);
  }
  return status;
}

/* Where `farfault sim` says it too. */
static void say_lost_machines(const sweep_plan *plan) {
  for (size_t i = 0; i < plan->traces.count; i++)
    if (plan->traces.items[i]->lost && plan->traces.items[i]->alone)
      cli_fail(
          0,
          "%s: the machine of the recording, %s, is not there: %s is simulated ('machine' in the study chooses another)",
          plan->traces.items[i]->name, plan->traces.items[i]->lost, plan->traces.items[i]->machine);
}

static int sweep_study(const arguments *a, const sweep_cluster *cluster, bool *lost) {
  char *text;
  size_t size;
  ff_error error;
  study study;
  sweep_plan plan;
  if (kind_refused(a->study, KIND_STUDY)) return CLI_BAD_FILE;
  if (ff_file_read(a->study, STUDY_LIMIT, &text, &size, &error)) return cli_fail(CLI_BAD_FILE, "%s", error.message);
  ff_status status = study_read(a->study, text, size, &study, &error);
  free(text);
  if (status) return cli_fail(CLI_BAD_FILE, "%s", error.message);
  status = sweep_plan_make(&study, a->limit, &plan, &error);
  int result = CLI_BAD_FILE;
  if (status) cli_fail(0, "%s", error.message);
  else {
    say_lost_machines(&plan);
    result = a->dry_run ? dry_run(a, &plan) : run_points(a, &plan, cluster, lost);
    sweep_plan_free(&plan);
  }
  study_free(&study);
  return result;
}

static int sweep_in(const arguments *a, const sweep_cluster *cluster) {
  bool *lost = ff_alloc((size_t)cluster->count * sizeof *lost);
  int status = sweep_study(a, cluster, lost);
  if (cluster->ranks) sweep_cluster_dismiss(cluster, lost);
  free(lost);
  return status;
}

/* All ranks read the same arguments: one of them says what is wrong with them. */
static void parse_arguments(const struct argp *argp, int argc, char **argv, arguments *a) {
  const char *rank = getenv("OMPI_COMM_WORLD_RANK");
  int silent = rank && strcmp(rank, "0") != 0 ? dup(STDERR_FILENO) : -1,
      null = silent >= 0 ? open("/dev/null", O_WRONLY | O_CLOEXEC) : -1;
  if (null >= 0) dup2(null, STDERR_FILENO);
  cli_parse_tabular(argp, argc, argv, a, STDOUT_FILENO);
  if (silent < 0) return;
  dup2(silent, STDERR_FILENO);
  close(silent);
  close(null);
}

static int sweep(int argc, char **argv) {
  static const struct argp argp = {
      options,
      parse,
      "STUDY",
      "Simulates every point of a study - traces x machines x memory managers x parameters - and puts the results into a database "
      "(SQLite). A sweep that was interrupted goes on where it was. A study without machines takes those that its programs were "
      "recorded on.\v"
      "Example:\n  farfault record -o saxpy.fft ./saxpy 1000000\n"
      "  printf 'trace: saxpy.fft\\nmachine: [gtx480, h200]\\n' >saxpy.yaml\n"
      "  printf 'memory: [copy, demand, uvm]\\n' >>saxpy.yaml\n"
      "  printf 'gpu-memory: [50%%, 100%%]\\n' >>saxpy.yaml\n"
      "  farfault sweep saxpy.yaml -o saxpy.db\n  farfault results saxpy.db\n\n"
      "On a cluster: mpirun --enable-recovery -n 64 farfault sweep saxpy.yaml\n\n"
      "Exit status: 0 if every point has a result; 1 if some have an error (the others are kept); 2 if a file is of no use; 128 + N if "
      "signal N stopped it.",
      NULL,
      NULL,
      NULL};
  arguments a = {.limit = SWEEP_POINTS};
  sweep_cluster cluster;
  parse_arguments(&argp, argc, argv, &a);
  if (!a.output) a.output = default_output(a.study);
  int status = CLI_FAILED;
  if (sweep_cluster_join(&cluster))
    status = cluster.rank ? sweep_rank_work(&cluster, at_once(&a, &cluster), other_program(), a.output)
                          : sweep_in(&a, &cluster);
  free(a.output);
  return status;
}

const cli_command cli_sweep = {"sweep", "simulate every point of a study into a database", sweep};
