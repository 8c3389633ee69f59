/* SPDX-License-Identifier: Apache-2.0 */
/* `farfault bench managed|pipeline`: what managed memory, copies by hand and segments cost, on any driver
 * (FARFAULT_DRIVER).
 *
 * Arguments are refused before anything is measured; files are written only when all was; on the
 * virtual GPU the same command gives the same bytes. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "cli/commands/bench_command.h"

enum {
  KEY_REPEAT = 256,
  KEY_SHAPE,
  KEY_DATA,
  KEY_BUDGET,
  KEY_TILE,
  KEY_ROUNDS,
  KEY_ONLY,
  KEY_CSV,
  KEY_SVG,
  KEY_JSON,
  KEY_KEEP,
  KEY_SET
};

static const struct argp_option options[] = {
    {"machine", 'M', "NAME|FILE", 0,
     "the virtual GPU, may be repeated for pipeline (default: gp100 for managed, v100 and h200 for pipeline)", 1},
    {"memory", 'm', "MANAGER", 0,
     "what stands for the GPU's managed memory (default: uvm; managed on gm200 and gp100: what was measured there)", 1},
    {"set", KEY_SET, "NAME=VALUE", 0, "change a value of the machines, as in their files; may be repeated", 1},
    {"only", KEY_ONLY, "PROGRAM,...", 0,
     "measure only these: managed, copies_in, copies, segments_in, segments; pipeline: kernels, transfers, streams, managed, segments",
     2},
    {"repeat", KEY_REPEAT, "N", 0,
     "managed: turns of each size (default: 10 on the virtual GPU, whose turns are all alike, else 1000)", 2},
    {"shape", KEY_SHAPE, "stream|chain|diamond|matmul", 0,
     "pipeline: only this one; may be repeated (default: all but matmul, which takes a minute)", 3},
    {"data", KEY_DATA, "SIZE", 0, "pipeline: bytes of input and output together (default: 128M; matmul: 48M)", 3},
    {"budget", KEY_BUDGET, "SIZE", 0, "pipeline: GPU memory, bytes or a share of the data (default: 25%)", 3},
    {"tile", KEY_TILE, "SIZE", 0, "pipeline: bytes of a tile (default: 2M)", 3},
    {"rounds", KEY_ROUNDS, "N", 0, "pipeline: how often a kernel goes over each value (default: 4)", 3},
    {"json", KEY_JSON, "FILE", 0, "write the numbers as JSON; -: to stdout instead of the table", 4},
    {"csv", KEY_CSV, "FILE", 0, "write the numbers as CSV; -: to stdout instead of the table", 4},
    {"svg", KEY_SVG, "FILE", 0, "write the picture", 4},
    {"keep", KEY_KEEP, "FOLDER", 0,
     "keep each program's run with its history there, for `farfault timeline` and `farfault report`", 4},
    {0}};

static uint32_t parse_number(const char *value, const char *name, uint32_t limit, struct argp_state *state) {
  char *end;
  errno = 0;
  unsigned long number = strtoul(value, &end, 10);
  if (*value < '0' || *value > '9' || *end || errno || !number || number > limit)
    cli_refuse(state, "--%s: '%s' is not a number from 1 to %u", name, value, limit);
  return (uint32_t)number;
}

static uint64_t parse_size(const char *value, const char *name, uint64_t whole, struct argp_state *state) {
  ff_error error;
  uint64_t bytes = 0;
  if (ff_parse_bytes(value, whole, &bytes, &error)) cli_refuse(state, "--%s: %s", name, error.message);
  if (!bytes) cli_refuse(state, "--%s: there must be some", name);
  return bytes;
}

/* The number of `value` among the names (NULL-ended), or a message. */
static uint32_t parse_name(const char *value, const char *what, const char *const *names, struct argp_state *state) {
  for (uint32_t i = 0; names[i]; i++)
    if (!strcmp(value, names[i])) return i;
  ff_text known = {0};
  for (uint32_t i = 0; names[i]; i++) ff_text_add(&known, "%s%s", i ? ", " : "", names[i]);
  const char *near = cli_closest(value, names);
  if (near) cli_refuse(state, "no %s '%s': did you mean '%s'?", what, value, near);
  cli_refuse(state, "no %s '%s': there are %s", what, value, known.chars);
  return 0;
}

static void parse_only(bench_arguments *a, struct argp_state *state) {
  const char *names[MANAGED_WAYS + PIPELINE_WAYS + 1] = {0};
  bool pipeline = !strcmp(a->what, "pipeline");
  char *list = ff_strdup(a->only), *rest = NULL;
  for (uint32_t i = 0; i < (pipeline ? (uint32_t)PIPELINE_WAYS : (uint32_t)MANAGED_WAYS); i++)
    names[i] = pipeline ? pipeline_ways[i].key : managed_ways[i].key;
  for (char *each = strtok_r(list, ", ", &rest); each; each = strtok_r(NULL, ", ", &rest))
    a->ways |= 1u << parse_name(each, "program", names, state);
  if (!a->ways) cli_refuse(state, "--only names no program");
  free(list);
}

/* What can only be said when all options are known. */
static void parse_end(bench_arguments *a, const char *budget, struct argp_state *state) {
  if (!a->what) cli_refuse(state, "what is to be measured? managed or pipeline");
  bool pipeline = !strcmp(a->what, "pipeline");
  if (a->only) parse_only(a, state);
  if (!pipeline && a->machine_count > 1) cli_refuse(state, "managed is measured on one machine at a time");
  if (!pipeline && (a->shapes || a->data || budget || a->tile || a->rounds))
    cli_refuse(state, "--shape, --data, --budget, --tile and --rounds are for pipeline");
  if (pipeline && a->repeat) cli_refuse(state, "--repeat is for managed");
  if (budget && strchr(budget, '%') && !a->data) cli_refuse(state, "--budget: a share needs --data");
  if (a->json && a->csv && !strcmp(a->json, "-") && !strcmp(a->csv, "-"))
    cli_refuse(state, "--csv - and --json - both write to stdout");
  if (budget) a->budget = parse_size(budget, "budget", a->data, state);
  if (!a->rounds) a->rounds = 4;
}

typedef struct input {
  bench_arguments *a;
  const char *budget;
} input;

static error_t parse(int key, char *value, struct argp_state *state) {
  static const char *const actions[] = {"managed", "pipeline", NULL};
  input *in = state->input;
  bench_arguments *a = in->a;
  if (value && !*value && key != ARGP_KEY_ARG) cli_refuse(state, "an option's value is empty");
  switch (key) {
  case 'M':
    if (a->machine_count == BENCH_MACHINES) cli_refuse(state, "more than %d machines", BENCH_MACHINES);
    a->machines[a->machine_count++] = value;
    return 0;
  case 'm': a->memory = value; return 0;
  case KEY_SET: {
    size_t used = strlen(a->setup.choices.set);
    if (used + strlen(value) + 2 > SIM_SET_LENGTH)
      cli_refuse(state, "--set is longer than %d characters", SIM_SET_LENGTH - 1);
    snprintf(a->setup.choices.set + used, SIM_SET_LENGTH - used, "%s%s", used ? "," : "", value);
    return 0;
  }
  case KEY_ONLY: a->only = value; return 0;
  case KEY_REPEAT: a->repeat = parse_number(value, "repeat", 1000000, state); return 0;
  case KEY_SHAPE: a->shapes |= 1u << parse_name(value, "shape", pipeline_shape_names, state); return 0;
  case KEY_DATA: a->data = parse_size(value, "data", 0, state); return 0;
  case KEY_BUDGET: in->budget = value; return 0;
  case KEY_TILE: a->tile = parse_size(value, "tile", 0, state); return 0;
  case KEY_ROUNDS: a->rounds = parse_number(value, "rounds", 1000000, state); return 0;
  case KEY_CSV: a->csv = cli_output(value, "--csv", true, state); return 0;
  case KEY_SVG: a->svg = cli_output(value, "--svg", false, state); return 0;
  case KEY_KEEP: a->keep = value; return 0;
  case KEY_JSON: a->json = cli_output(value, "--json", true, state); return 0;
  case ARGP_KEY_ARG:
    if (a->what) cli_refuse(state, "one measurement at a time");
    a->what = actions[parse_name(value, "measurement", actions, state)];
    return 0;
  case ARGP_KEY_END: {
    const char *old = a->what ? NULL : cli_old_argument("--json", &a->json, state);
    if (old) a->what = actions[parse_name(old, "measurement", actions, state)];
    parse_end(a, in->budget, state);
    return 0;
  }
  default: return ARGP_ERR_UNKNOWN;
  }
}

static bool is_stdout(const char *path) { return path && !strcmp(path, "-"); }

static bool write_file(const char *path, const ff_text *text) {
  ff_error error;
  if (!path || !ff_file_write(path, text->chars, text->length, &error)) return true;
  cli_fail(0, "%s", error.message);
  return false;
}

int bench_write(const bench_arguments *a, const ff_text *table, const ff_text *json, const ff_text *csv,
                const ff_text *svg) {
  bool json_only = is_stdout(a->json), csv_only = is_stdout(a->csv);
  int status = cli_print(json_only ? json : csv_only ? csv : table);
  bool good = write_file(json_only ? NULL : a->json, json);
  good = write_file(csv_only ? NULL : a->csv, csv) && good;
  good = write_file(a->svg, svg) && good;
  return status ? status : good ? CLI_DONE : CLI_FAILED;
}

/* The command without what says only where the output goes. */
static char *command_text(int argc, char **argv) {
  static const char *const outputs[] = {"--csv", "--svg", "--keep", "--json"};
  ff_text text = {0};
  ff_text_add(&text, "farfault bench");
  for (int i = 1; i < argc; i++) {
    size_t which = 0;
    while (which < 4 && strncmp(argv[i], outputs[which], strlen(outputs[which]))) which++;
    if (which < 4 && !strchr(argv[i], '=')) i++;
    if (which < 4 || !strcmp(argv[i], "--wide")) continue;
    ff_text_add(&text, " ");
    ff_text_add_quoted(&text, argv[i]);
  }
  return text.chars;
}

static int bench(int argc, char **argv) {
  static const struct argp argp = {
      options,
      parse,
      "managed|pipeline",
      "Measures memory on both sides of the link, on the GPU that there is, else on the virtual one (FARFAULT_DRIVER=virtual chooses it). "
      "`managed` is the microbenchmark of Wilt 2017: launch an empty kernel, synchronise, write a byte in each page; with managed memory, copies, and "
      "libfarfault's segments. `pipeline` runs programs over more data than the GPU may hold: written by hand with streams, with managed "
      "memory, with segments; results are checked against the host.\v"
      "Example:\n  farfault bench managed --machine gp100 --svg managed.svg\n"
      "  farfault bench pipeline --shape chain --data 256M --budget 25% --machine v100\n"
      "  farfault bench pipeline --shape matmul --keep runs && farfault timeline runs/matmul-v100-segments.ffr -o t.json\n\n"
      "Exit status: 0; 1 if a result was wrong or something failed, 2 a machine file is of no use, 64 wrong arguments, 128 + N stopped by signal N.",
      NULL,
      NULL,
      NULL};
  bench_arguments a = {0};
  input in = {&a, NULL};
  cli_old_flag("--json", &argc, &argv);
  char *words[argc + 1]; /* argp moves argv's words about; on the stack, as parsing does not always return */
  memcpy(words, argv, (size_t)argc * sizeof *words);
  cli_parse_tabular(&argp, argc, argv, &in, STDOUT_FILENO);
  a.command = command_text(argc, words);
  if (a.keep && mkdir(a.keep, 0777) && errno != EEXIST)
    return cli_fail(CLI_FAILED, "%s: cannot be made: %s", a.keep, strerror(errno));
  /* now, as outputs may be in that folder */
  if (cli_check_outputs((const char *const[]){a.json, a.csv, a.svg}, 3)) return CLI_FAILED;
  int status = !strcmp(a.what, "managed") ? bench_managed(&a) : bench_pipeline(&a);
  free(a.command);
  return status;
}

const cli_command cli_bench = {"bench", "measure managed memory, copies and segments", bench};
