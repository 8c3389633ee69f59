/* SPDX-License-Identifier: Apache-2.0 */
/* `farfault probe`: which address bits choose memory module, bank and cache set, from timing alone. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/running/run.h"
#include "probe/probe.h"

enum {
  KEY_TARGET = 1000,
  KEY_WHAT,
  KEY_JSON,
  KEY_SVG,
  KEY_NOISE,
  KEY_JITTER,
  KEY_SEED,
  KEY_PAIRS,
  KEY_SPAN,
  KEY_SET,
  KEY_BASE,
  KEY_SECONDS,
  KEY_RAW,
  KEY_LINES
};

typedef struct arguments {
  probe_options options;
  const char *target, *output, *json, *svg, *base;
  char set[SIM_SET_LENGTH]; /* all of --set */
  bool nothing;             /* neither banks nor sets */
  const char *pairs_file;   /* the target is one: its path */
} arguments;

static const struct argp_option options[] = {
    {"target", KEY_TARGET, "TARGET", 0,
     "sim:MACHINE (a virtual GPU), cuda:N (a real one), a machine file (its virtual GPU), or a .csv of pairs measured elsewhere: primary,secondary,cycles",
     0},
    {"what", KEY_WHAT, "WHAT", 0, "banks, sets, both or none (default: both; of a .csv: banks)", 0},
    {"output", 'o', "FILE", 0, "write the machine file with the masks as found there", 0},
    {"base", KEY_BASE, "NAME|FILE", 0, "machine that --output takes all else from (default: the target's)", 0},
    {"json", KEY_JSON, "FILE", 0, "write what was found as JSON; -: to stdout instead of the text", 0},
    {"svg", KEY_SVG, "FILE", 0, "draw how many pairs took how long", 0},
    {"set", KEY_SET, "NAME=VALUE", 0, "change a value of the virtual GPU's machine, as in its file; may be repeated",
     0},
    {"pairs", KEY_PAIRS, "N", 0, "look for so many conflicts of each kind, 32 to 100000 (default: 256)", 0},
    {"span", KEY_SPAN, "BYTES", 0,
     "cuda:N: take memory to be physically contiguous within so much, a power of two from 4K to 1G (default: 2M, which a mapping of that size is). If that is wrong, the confidence falls",
     0},
    {"seconds", KEY_SECONDS, "N", 0,
     "search for so long at most for banks, and for sets: then what was found so far counts (default: as long as it takes)",
     0},
    {"raw", KEY_RAW, "FILE", 0,
     "write the pairs of addresses that were timed for banks, as --target FILE.csv takes them: primary,secondary,cycles",
     0},
    {"line-times", KEY_LINES, "FILE", 0,
     "write how many cycles a load of each of 4096 consecutive lines (of a virtual GPU 128) takes from each of 16 SMs, past their L1s: sm,line,first,again",
     0},
    {"noise", KEY_NOISE, "PERCENT", 0,
     "for tests: so many of the conflicts become any pair, and as many are missed, 0 to 50", 0},
    {"jitter", KEY_JITTER, "CYCLES", 0, "for tests: standard deviation of what is added to each measured time", 0},
    {"seed", KEY_SEED, "N", 0, "seed of all random choices (default: 1)", 0},
    {0}};

static uint64_t read_number(const char *text, const char *option, uint64_t low, uint64_t high,
                            struct argp_state *state) {
  char *end;
  unsigned long long number = strtoull(text, &end, 10);
  if (!*text || *end || text[strspn(text, "0123456789")] || strlen(text) > 19 || number < low || number > high)
    cli_refuse(state, "%s: '%s' is not a number from %llu to %llu", option, text, (unsigned long long)low,
               (unsigned long long)high);
  return number;
}

static double read_real(const char *text, const char *option, double high, struct argp_state *state) {
  char *end;
  double number = strtod(text, &end);
  if (!*text || *end || text[strspn(text, "0123456789.")] || !(number >= 0 && number <= high))
    cli_refuse(state, "%s: '%s' is not a number from 0 to %g", option, text, high);
  return number;
}

static void read_what(arguments *a, const char *value, struct argp_state *state) {
  bool both = !strcmp(value, "both");
  a->nothing = !strcmp(value, "none");
  a->options.wanted[PROBE_BANKS] = both || !strcmp(value, "banks");
  a->options.wanted[PROBE_SETS] = both || !strcmp(value, "sets");
  if (!a->options.wanted[PROBE_BANKS] && !a->options.wanted[PROBE_SETS] && !a->nothing)
    cli_refuse(state, "--what: '%s' is neither banks nor sets nor both nor none", value);
}

static uint64_t read_span(const char *text, struct argp_state *state) {
  uint64_t bytes = 0;
  ff_error error;
  if (ff_parse_bytes(text, 0, &bytes, &error)) cli_refuse(state, "--span: %s", error.message);
  if (bytes < 4096 || bytes > UINT64_C(1) << 30 || (bytes & (bytes - 1)))
    cli_refuse(state, "--span: '%s' is no power of two from 4K to 1G", text);
  return bytes;
}

static const char *named(const char *value, const char *option, struct argp_state *state) {
  if (!*value) cli_refuse(state, "%s: the name is empty", option);
  return value;
}

static bool ends_in(const char *text, const char *ending) {
  size_t length = strlen(text), end = strlen(ending);
  return length > end && !strcmp(text + length - end, ending);
}

static void take_target(arguments *a, struct argp_state *state) {
  if (!a->target) cli_refuse(state, "--target is missing: sim:gtx1080, cuda:0, a machine file, or a .csv of pairs");
  if (!strncmp(a->target, "cuda:", 5)) {
    const char *driver = getenv("FARFAULT_DRIVER");
    a->options.driver = driver && *driver ? driver : "cuda";
    a->options.mapped = true;
    a->options.device = (int)read_number(a->target + 5, "--target cuda:N", 0, 1023, state);
    if (a->options.set) cli_refuse(state, "--set is for virtual GPUs");
  } else if (!strncmp(a->target, "sim:", 4)) {
    a->options.driver = "virtual";
    a->options.machine = named(a->target + 4, "--target sim:", state);
  } else if (ends_in(a->target, ".csv")) {
    a->pairs_file = a->target;
  } else {
    a->options.driver = "virtual";
    a->options.machine = a->target;
  }
  if (a->nothing && !a->options.lines)
    cli_refuse(state, "--what none: there is nothing else to do without --line-times");
  if (!a->options.wanted[PROBE_BANKS] && !a->options.wanted[PROBE_SETS] && !a->nothing) {
    a->options.wanted[PROBE_BANKS] = true;
    a->options.wanted[PROBE_SETS] = !a->pairs_file;
  }
  if (a->pairs_file && a->options.wanted[PROBE_BANKS] && a->options.wanted[PROBE_SETS])
    cli_refuse(state, "--what: pairs of a file are of banks or of sets");
  if (a->options.lines && a->pairs_file) cli_refuse(state, "--line-times needs a GPU");
  if (a->options.raw && (a->pairs_file || !a->options.wanted[PROBE_BANKS]))
    cli_refuse(state, "--raw: no pairs are timed for banks");
  if (a->output && !(a->options.wanted[PROBE_BANKS] && a->options.wanted[PROBE_SETS]))
    cli_refuse(state, "--output needs the masks of both banks and sets");
  if (a->output && !a->base && !a->options.machine)
    cli_refuse(state, "--output: --base must say which machine all else is taken from");
}

static error_t parse(int key, char *value, struct argp_state *state) {
  arguments *a = state->input;
  switch (key) {
  case 'o': a->output = cli_output(value, "--output", false, state); return 0;
  case KEY_TARGET: a->target = named(value, "--target", state); return 0;
  case KEY_WHAT: read_what(a, value, state); return 0;
  case KEY_BASE: a->base = named(value, "--base", state); return 0;
  case KEY_JSON: a->json = cli_output(value, "--json", true, state); return 0;
  case KEY_SVG: a->svg = cli_output(value, "--svg", false, state); return 0;
  case KEY_SET:
    cli_add_option(a->set, sizeof a->set, value, "set", state);
    a->options.set = a->set;
    return 0;
  case KEY_PAIRS: a->options.pairs = (uint32_t)read_number(value, "--pairs", 32, 100000, state); return 0;
  case KEY_SECONDS: a->options.seconds = (double)read_number(value, "--seconds", 1, 1000000, state); return 0;
  case KEY_RAW: a->options.raw = cli_output(value, "--raw", false, state); return 0;
  case KEY_LINES: a->options.lines = cli_output(value, "--line-times", false, state); return 0;
  case KEY_SPAN: a->options.span = read_span(value, state); return 0;
  case KEY_NOISE: a->options.noise = read_real(value, "--noise", 50, state) / 100; return 0;
  case KEY_JITTER: a->options.jitter = read_real(value, "--jitter", 1e6, state); return 0;
  case KEY_SEED: a->options.seed = read_number(value, "--seed", 0, UINT64_MAX / 4, state); return 0;
  case ARGP_KEY_ARG: cli_refuse(state, "'%s': no argument is expected", value); return 0;
  case ARGP_KEY_END: take_target(a, state); return 0;
  default: return ARGP_ERR_UNKNOWN;
  }
}

static ff_status measure(const arguments *a, probe_result *result, ff_error *error) {
  char *text;
  size_t size;
  if (!a->pairs_file) return probe_run(&a->options, result, error);
  ff_status status = ff_file_read(a->pairs_file, 0, &text, &size, error);
  if (status) return status;
  status = probe_pairs_text(a->pairs_file, text, size, a->options.wanted[PROBE_BANKS] ? PROBE_BANKS : PROBE_SETS,
                            &a->options, result, error);
  free(text);
  return status;
}

static ff_status write_machine(const arguments *a, const probe_result *result, ff_error *error) {
  const char *name = a->base ? a->base : a->options.machine;
  machine_spec spec;
  char *base;
  size_t size;
  ff_text text = {0};
  ff_status status = machine_spec_load(name, &spec, error);
  if (!status) status = ff_file_read(spec.file, 0, &base, &size, error);
  if (status) return status;
  status = probe_write_machine(result, name, base, size, a->target, &text, error);
  if (!status) status = ff_file_write(a->output, text.chars, text.length, error);
  free(base);
  free(text.chars);
  return status;
}

static ff_status write_files(const arguments *a, const probe_result *result, ff_error *error) {
  ff_text text = {0};
  ff_status status = FF_OK;
  if (a->json && strcmp(a->json, "-")) {
    probe_json(result, a->target, &text);
    status = ff_file_write(a->json, text.chars, text.length, error);
  }
  text.length = 0;
  if (a->svg && !status) {
    probe_picture(result, a->target, &text);
    status = ff_file_write(a->svg, text.chars, text.length, error);
  }
  free(text.chars);
  if (a->output && !status) status = write_machine(a, result, error);
  return status;
}

static int report(const arguments *a, const probe_result *result) {
  ff_text text = {0};
  ff_error error;
  if (a->json && !strcmp(a->json, "-")) probe_json(result, a->target, &text);
  else probe_text(result, &text);
  int status = cli_print(&text);
  free(text.chars);
  if (write_files(a, result, &error)) status = cli_fail(CLI_FAILED, "%s", error.message);
  if (result->problem[0]) status = cli_fail(CLI_FAILED, "%s", result->problem);
  for (int kind = 0; kind < PROBE_KINDS; kind++)
    if (a->options.wanted[kind] && (!result->kinds[kind].done || result->kinds[kind].map.verdict != RECOVER_LINEAR))
      status = CLI_FAILED;
  return status;
}

/* What can be known before anything is measured. */
static ff_status check(const arguments *a, ff_error *error) {
  machine_spec spec;
  ff_status status = a->options.machine ? machine_spec_load(a->options.machine, &spec, error) : FF_OK;
  if (!status && a->options.machine && a->options.set) status = machine_spec_set_all(&spec, a->options.set, error);
  if (!status && a->base) status = machine_spec_load(a->base, &spec, error);
  return status;
}

static int probe(int argc, char **argv) {
  static const struct argp argp = {
      options,
      parse,
      NULL,
      "Recovers from timing alone how a GPU spreads physical addresses: the XOR masks of memory module, DRAM bank and L2 set, how sure they "
      "are, and how many colours pages of each size have. A map that is no XOR is recognised.\v"
      "Example:\n  farfault probe --target sim:gtx1080 -o found.yaml --svg times.svg\n"
      "  farfault probe --target cuda:0 --what banks\n\n"
      "Exit status: 0; 1 if a map was not found, is not linear, or a file could not be written, 2 an input file is of no use, 64 wrong arguments.",
      NULL,
      NULL,
      NULL};
  arguments a = {.options = {.seed = 1, .progress = isatty(STDERR_FILENO)}};
  cli_parse(&argp, argc, argv, &a);
  ff_error error;
  if (check(&a, &error)) return cli_fail(CLI_SETUP_STATUS(error), "%s", error.message);
  if (cli_check_outputs((const char *const[]){a.output, a.json, a.svg}, 3)) return CLI_FAILED;
  probe_result *result = ff_alloc(sizeof *result);
  int status = measure(&a, result, &error) ? cli_fail(a.pairs_file ? CLI_BAD_FILE : CLI_FAILED, "%s", error.message)
                                           : report(&a, result);
  free(result);
  return status;
}

const cli_command cli_probe = {"probe", "find which address bits choose module, bank and cache set", probe};
