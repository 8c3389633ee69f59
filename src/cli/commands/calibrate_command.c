/* SPDX-License-Identifier: Apache-2.0 */
/* `farfault calibrate`: measures a GPU through the driver API and writes a machine file of it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "calibrate/calibrate.h"
#include "cli/cli.h"
#include "cli/running/run.h"
#include "session/session.h"

enum {
  KEY_DRIVER = 1000,
  KEY_BASE,
  KEY_DATE,
  KEY_QUICK,
  KEY_REPEAT,
  KEY_REPEATS,
  KEY_JSON,
  KEY_CSV,
  KEY_SVG,
  KEY_COMPARE,
  KEY_SET,
  KEY_INFO
};

typedef struct arguments {
  calibrate_options options;
  const char *output, *json, *csv, *svg, *base, *date, *compare;
  char set[SIM_SET_LENGTH]; /* all of --set */
  bool compares;
} arguments;

static const struct argp_option options[] = {
    {"output", 'o', "FILE", 0, "write the machine file there (default: to stdout)", 0},
    {"driver", KEY_DRIVER, "WHICH", 0,
     "virtual, cuda, or the path of a libcuda.so.1 (default: as FARFAULT_DRIVER says; else NVIDIA's if there is a GPU)",
     0},
    {"machine", 'M', "NAME|FILE", 0, "the virtual GPU (default: v100)", 0},
    {"set", KEY_SET, "NAME=VALUE", 0, "change a value of the virtual GPU's machine, as in its file; may be repeated",
     0},
    {"base", KEY_BASE, "NAME|FILE", 0,
     "machine that gives what cannot be measured (default: the bundled one of the nearest compute capability)", 0},
    {"quick", KEY_QUICK, NULL, 0, "small sweeps, fewer repetitions", 0},
    {"repeat", KEY_REPEAT, "N", 0,
     "measure everything N times, 1 to 64 (default: 11; 3 on the virtual GPU, which repeats exactly)", 0},
    {"repeats", KEY_REPEATS, "N", OPTION_HIDDEN, "--repeat", 0}, /* as it was once */
    {"date", KEY_DATE, "DATE", 0, "date in the file's title (default: today)", 0},
    {"compare", KEY_COMPARE, "MACHINE", OPTION_ARG_OPTIONAL,
     "print a table to stderr: what was measured next to what this machine's file says (default: that of --machine)",
     0},
    {"info", KEY_INFO, NULL, 0, "measure nothing: print what the driver and the system say of the GPU, as --csv does",
     0},
    {"json", KEY_JSON, "FILE", 0, "write all figures as JSON", 0},
    {"csv", KEY_CSV, "FILE", 0, "write them as rows name,value,unit,min,max,command", 0},
    {"svg", KEY_SVG, "FILE", 0, "draw latency against footprint (not with --quick)", 0},
    {0}};

static uint32_t read_repeats(const char *text, struct argp_state *state) {
  char *end;
  unsigned long number = strtoul(text, &end, 10);
  if (!*text || *end || *text == '-' || number < 1 || number > CALIBRATE_SAMPLES)
    cli_refuse(state, "--repeat: '%s' is not a number from 1 to %d", text, CALIBRATE_SAMPLES);
  return (uint32_t)number;
}

static const char *named(const char *value, const char *option, struct argp_state *state) {
  if (!*value) cli_refuse(state, "%s: the name is empty", option);
  return value;
}

/* Anything that fits on the title's line. */
static const char *read_date(const char *value, struct argp_state *state) {
  if (!*value || strlen(value) > 32 || strspn(value, "0123456789-:TZ. ") != strlen(value))
    cli_refuse(state, "--date: '%s' is not a date, as 2026-11-21", value);
  return value;
}

static error_t parse(int key, char *value, struct argp_state *state) {
  arguments *a = state->input;
  switch (key) {
  case 'o': a->output = cli_output(value, "--output", false, state); return 0;
  case 'M': a->options.machine = named(value, "--machine", state); return 0;
  case KEY_DRIVER: a->options.driver = named(value, "--driver", state); return 0;
  case KEY_SET:
    cli_add_option(a->set, sizeof a->set, value, "set", state);
    a->options.set = a->set;
    return 0;
  case KEY_BASE: a->base = named(value, "--base", state); return 0;
  case KEY_DATE: a->date = read_date(value, state); return 0;
  case KEY_QUICK: a->options.quick = true; return 0;
  case KEY_INFO: a->options.info = true; return 0;
  case KEY_REPEATS: cli_say_old(state, "--repeats", "--repeat"); /* fall through */
  case KEY_REPEAT: a->options.repeats = read_repeats(value, state); return 0;
  case KEY_JSON: a->json = cli_output(value, "--json", false, state); return 0;
  case KEY_CSV: a->csv = cli_output(value, "--csv", false, state); return 0;
  case KEY_SVG: a->svg = cli_output(value, "--svg", false, state); return 0;
  case KEY_COMPARE:
    a->compares = true;
    a->compare = value;
    return 0;
  case ARGP_KEY_ARG: cli_refuse(state, "'%s': no argument is expected", value); return 0;
  case ARGP_KEY_END:
    if (a->svg && a->options.quick) cli_refuse(state, "--svg needs the sweeps that --quick leaves out");
    return 0;
  default: return ARGP_ERR_UNKNOWN;
  }
}

/* The bundled machine of the nearest compute capability; of two, the newer one. */
static ff_status nearest(const calibrate_device *d, machine_spec *base, char *name, size_t size, ff_error *error) {
  char **names = machine_spec_list();
  int best = -1, wanted = d->major * 10 + d->minor;
  for (char **at = names; *at; at++) {
    machine_spec spec;
    if (machine_spec_load(*at, &spec, NULL)) continue;
    int distance = 2 * abs((int)(spec.compute_major * 10 + spec.compute_minor) - wanted) -
                   ((int)(spec.compute_major * 10 + spec.compute_minor) > wanted);
    if (best >= 0 && distance >= best) continue;
    best = distance;
    *base = spec;
    snprintf(name, size, "%s", *at);
  }
  for (char **at = names; *at; at++) free(*at);
  free(names);
  return best >= 0 ? FF_OK : ff_fail(error, FF_NOT_FOUND, "no bundled machine to take as a base: give one with --base");
}

static ff_status load_base(const arguments *a, const calibrate_device *d, machine_spec *base, char *name, size_t size,
                           ff_error *error) {
  if (!a->base) return nearest(d, base, name, size, error);
  const char *slash = strrchr(a->base, '/');
  snprintf(name, size, "%s", slash ? slash + 1 : a->base);
  return machine_spec_load(a->base, base, error);
}

static ff_status load_compared(const arguments *a, machine_spec *m, ff_error *error) {
  ff_status status = machine_spec_load(a->compare ? a->compare : a->options.machine, m, error);
  if (status || a->compare || !a->options.set) return status;
  return machine_spec_set_all(m, a->options.set, error);
}

static ff_status write_files(const arguments *a, const calibrate_result *result, ff_error *error) {
  ff_text text = {0};
  ff_status status = FF_OK;
  if (a->json) {
    calibrate_json(result, &text);
    status = ff_file_write(a->json, text.chars, text.length, error);
  }
  text.length = 0;
  if (a->csv && !status) {
    ff_text_add(&text, "name,value,unit,min,max,command\n");
    calibrate_csv(result, "farfault calibrate", &text);
    status = ff_file_write(a->csv, text.chars, text.length, error);
  }
  text.length = 0;
  if (a->svg && !status) {
    calibrate_picture(result, &text);
    status = ff_file_write(a->svg, text.chars, text.length, error);
  }
  free(text.chars);
  return status;
}

static const char *today(char *buffer, size_t size) {
  time_t now = time(NULL);
  struct tm parts;
  localtime_r(&now, &parts);
  strftime(buffer, size, "%Y-%m-%d", &parts);
  return buffer;
}

/* The measurement is done: everything that is written. */
static int report(const arguments *a, calibrate_result *result) {
  machine_spec base, compared;
  char base_name[128], date[32];
  ff_text text = {0};
  ff_error error;
  int status = CLI_DONE;
  if (load_base(a, &result->device, &base, base_name, sizeof base_name, &error))
    return cli_fail(CLI_BAD_FILE, "%s", error.message);
  calibrate_solve(result, &base);
  if (result->failures[0]) {
    fprintf(stderr, "farfault: not everything could be measured:\n%s", result->failures);
    status = CLI_FAILED;
  }
  if (a->compares) {
    if (load_compared(a, &compared, &error)) return cli_fail(CLI_BAD_FILE, "%s", error.message);
    calibrate_compare(result, &compared, 0.05, &text);
    fputs(text.chars, stderr);
    text.length = 0;
  }
  if (write_files(a, result, &error)) status = cli_fail(CLI_FAILED, "%s", error.message);
  else if (calibrate_write_machine(result, &base, base_name, a->date ? a->date : today(date, sizeof date), &text,
                                   &error))
    status = cli_fail(CLI_FAILED, "what was measured makes no machine: %s", error.message);
  else if (!a->output) status = cli_print(&text) ? CLI_FAILED : status;
  else if (ff_file_write(a->output, text.chars, text.length, &error))
    status = cli_fail(CLI_FAILED, "%s", error.message);
  free(text.chars);
  return status;
}

static int print_info(const calibrate_result *result) {
  ff_text text = {0};
  ff_text_add(&text, "name,value,unit,min,max,command\n");
  calibrate_info_csv(&result->device, "farfault calibrate --info", &text);
  int status = cli_print(&text);
  free(text.chars);
  return status;
}

/* What can be known before minutes of measuring. */
static ff_status check(const arguments *a, ff_error *error) {
  machine_spec spec;
  ff_status status = machine_spec_load(a->options.machine, &spec, error);
  if (!status && a->options.set) status = machine_spec_set_all(&spec, a->options.set, error);
  if (!status && a->base) status = machine_spec_load(a->base, &spec, error);
  if (!status && a->compare) status = machine_spec_load(a->compare, &spec, error);
  return status;
}

static int calibrate(int argc, char **argv) {
  static const struct argp argp = {
      options,
      parse,
      NULL,
      "Measures a GPU through the CUDA driver API (launches, copies, caches, TLBs, memory, far-faults) and writes a machine file "
      "of it, each value with its spread; what cannot be measured is a base machine's. On the virtual GPU it finds what its "
      "machine file says: --compare shows it.\v"
      "Example:\n  farfault calibrate -o mine.yaml --svg mine.svg\n  farfault run --machine ./mine.yaml ./app\n"
      "  farfault calibrate --driver virtual --machine h200 --quick --compare -o /dev/null\n\n"
      "Exit status: 0; 1 if something could not be measured (the file is written, with the base's values for it) or written, 2 a machine file is "
      "of no use, 64 wrong arguments.",
      NULL,
      NULL,
      NULL};
  arguments a = {.options = {.machine = "v100", .progress = isatty(STDERR_FILENO)}};
  cli_parse_tabular(&argp, argc, argv, &a, STDERR_FILENO);
  ff_error error;
  if (check(&a, &error)) return cli_fail(CLI_SETUP_STATUS(error), "%s", error.message);
  /* --info writes no file */
  int status = a.options.info ? CLI_DONE : cli_check_outputs((const char *const[]){a.output, a.json, a.csv, a.svg}, 4);
  if (status) return status;
  calibrate_result *result = ff_alloc(sizeof *result);
  if (calibrate_run(&a.options, result, &error)) status = cli_fail(CLI_FAILED, "%s", error.message);
  else status = a.options.info ? print_info(result) : report(&a, result);
  free(result);
  return status;
}

const cli_command cli_calibrate = {"calibrate", "measure a GPU and write its machine file", calibrate};
