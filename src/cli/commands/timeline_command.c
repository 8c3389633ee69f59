/* SPDX-License-Identifier: Apache-2.0 */
/* `farfault timeline RUN`: a saved run's history for chrome://tracing and ui.perfetto.dev. */
#include <stdlib.h>

#include "cli/cli.h"
#include "report/timeline.h"

typedef struct arguments {
  const char *file, *output;
} arguments;

static const struct argp_option options[] = {{"output", 'o', "FILE", 0, "write it there (default: to stdout)", 0}, {0}};

static error_t parse(int key, char *value, struct argp_state *state) {
  arguments *a = state->input;
  switch (key) {
  case 'o': a->output = cli_output(value, "--output", false, state); return 0;
  default: return cli_take_file(key, value, &a->file, KIND_RUN, state);
  }
}

static int timeline(int argc, char **argv) {
  static const struct argp argp = {
      options,
      parse,
      "RUN",
      "Writes what happened when in a run that `farfault run -o FILE` saved, in the trace event format: open it in "
      "ui.perfetto.dev or chrome://tracing. A process per memory manager, with a track per stream (kernels, copies), per "
      "direction of the link (each transfer named by its cause) and for batches of far-faults, and counters.\v"
      "Example:\n  farfault run -o run.ffr ./saxpy 1000000\n  farfault timeline run.ffr -o saxpy-timeline.json",
      NULL,
      NULL,
      NULL};
  arguments a = {0};
  cli_parse(&argp, argc, argv, &a);
  report_run run;
  ff_error error;
  if (cli_keep_input(a.file, (const char *const[]){a.output}, 1)) return CLI_USAGE;
  if (report_file_read(a.file, &run, &error)) return cli_fail(CLI_BAD_FILE, "%s", error.message);
  ff_text text = {0};
  int status = CLI_DONE;
  if (!report_timeline_write(&run, &text))
    status = cli_fail(CLI_BAD_FILE, "%s: holds no history: one is saved by `farfault run -o FILE`", a.file);
  else if (!a.output) status = cli_print(&text);
  else if (ff_file_write(a.output, text.chars, text.length, &error)) status = cli_fail(CLI_FAILED, "%s", error.message);
  free(text.chars);
  report_free(&run);
  return status;
}

const cli_command cli_timeline = {"timeline", "write what happened when, for Perfetto and Chrome's tracing", timeline};
