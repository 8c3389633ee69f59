/* SPDX-License-Identifier: Apache-2.0 */
/* `farfault import accelsim FOLDER -o FILE`: a trace of another simulator as one that `farfault sim` reads. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "import/import.h"

typedef struct arguments {
  const char *format, *from, *output;
} arguments;

static const struct argp_option options[] = {{"output", 'o', "FILE", 0, "the trace file to write (app.fft)", 0}, {0}};

static error_t parse(int key, char *value, struct argp_state *state) {
  static const char *const formats[] = {"accelsim", NULL};
  arguments *a = state->input;
  switch (key) {
  case 'o': a->output = cli_output(value, "--output", false, state); return 0;
  case ARGP_KEY_ARG:
    if (!a->format) {
      const char *near = cli_closest(value, formats);
      if (strcmp(value, formats[0]) && near) cli_refuse(state, "no format '%s': did you mean '%s'?", value, near);
      if (strcmp(value, formats[0])) cli_refuse(state, "no format '%s': there is accelsim", value);
      a->format = value;
    } else if (a->from) {
      cli_refuse(state, "one trace at a time");
    } else {
      a->from = value;
    }
    return 0;
  case ARGP_KEY_END:
    if (!a->format) cli_refuse(state, "of which format is the trace? There is accelsim");
    if (!a->from || !*a->from) cli_refuse(state, "which trace? (the folder that has its kernelslist.g)");
    if (!a->output || !*a->output) cli_refuse(state, "-o FILE says where the trace is to go");
    return 0;
  default: return ARGP_ERR_UNKNOWN;
  }
}

/* ---- progress: a line on a terminal, after the first second ---- */

typedef struct shown {
  double since, last;
} shown;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void show(void *context, const import_progress *p) {
  shown *s = context;
  double time = now();
  if (!isatty(STDERR_FILENO) || time - s->since < 1 || time - s->last < 0.2) return;
  s->last = time;
  const char *slash = strrchr(p->file, '/');
  fprintf(stderr, "\rfarfault: %.40s (%" PRIu64 " of %" PRIu64 "): %" PRIu64 " of %" PRIu64 " blocks\033[K",
          slash ? slash + 1 : p->file, p->launch, p->launches, p->block, p->blocks);
}

/* ---- the command ---- */

static int import(int argc, char **argv) {
  static const struct argp argp = {
      options,
      parse,
      "accelsim FOLDER|kernelslist.g",
      "Turns a trace of another simulator into one that `farfault sim` simulates. accelsim: SASS traces of Accel-Sim, as its tracer and "
      "post-traces-processing leave them (kernelslist.g and kernel-N.traceg, also .xz or .gz).\v"
      "Example:\n  farfault import accelsim traces/vectoradd -o vectoradd.fft\n"
      "  farfault sim vectoradd.fft --memory copy,uvm --gpu-memory 50%\n\n"
      "Such a trace does not say what was allocated, nor what the host reads and writes: allocations are inferred from copies and accesses. "
      "Exit status: 2 if the trace is broken (the message says where), 1 if the file cannot be written.",
      NULL,
      NULL,
      NULL};
  arguments a = {0};
  cli_parse(&argp, argc, argv, &a);
  if (kind_refused(a.from, KIND_ACCELSIM)) return CLI_BAD_FILE;
  shown s = {.since = now()};
  import_result result;
  ff_error error;
  ff_text command = {0};
  ff_text_add_quoted(&command, a.from);
  ff_status status = import_accelsim(a.from, a.output, command.chars, show, &s, &result, &error);
  free(command.chars);
  if (s.last > 0) fputs("\r\033[K", stderr);
  if (status)
    return cli_fail(status == FF_INVALID                           ? CLI_USAGE
                    : status == FF_PARSE || status == FF_NOT_FOUND ? CLI_BAD_FILE
                                                                   : CLI_FAILED,
                    "%s", error.message);
  char size[32], allocated[32];
  fprintf(stderr,
          "farfault: %s: %" PRIu64 " operation%s, %" PRIu64 " launch%s, %" PRIu64
          " warp access%s in %s (%.2f bytes each); %" PRIu64 " allocation%s inferred, %s\n",
          a.output, result.operations, cli_s(result.operations), result.launches, cli_es(result.launches),
          result.accesses, cli_es(result.accesses), ff_format_bytes(result.bytes, size, sizeof size),
          result.accesses ? (double)result.bytes / (double)result.accesses : 0, result.allocations,
          cli_s(result.allocations), ff_format_bytes(result.allocated, allocated, sizeof allocated));
  return CLI_DONE;
}

const cli_command cli_import = {"import", "turn an Accel-Sim trace into one of farfault's", import};
