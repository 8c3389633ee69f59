/* SPDX-License-Identifier: Apache-2.0 */
/* `farfault record`: runs a program as `farfault run` does and keeps its access stream as a trace file; and what
 * becomes of the files that the program's processes leave.
 *
 * Each process writes FILE.part-OURS-ITS (process numbers; with ITS rank, if mpirun gave it one). When the program has
 * ended they get their names; one that was cut off (SIGKILL, a full disk) is first copied as far as it is whole.
 * FILE is a whole trace or what it was. */
#define _GNU_SOURCE
#include <dirent.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/output.h"
#include "cli/running/run.h"
#include "trace/file.h"

/* ---- the processes' files ---- */

enum { NAME_KEPT = 180 };

char *run_record_pattern(const char *file, const char *folder) {
  ff_text path = {0};
  char here[PATH_MAX], *target = ff_output_target(file);
  const char *slash = target ? strrchr(target, '/') : NULL, *name = slash ? slash + 1 : target;
  if (!target) ff_text_add(&path, "%s/trace", folder);
  else if (target[0] != '/' && getcwd(here, sizeof here))
    ff_text_add(&path, "%s/", here); /* the program may change its folder */
  if (target) ff_text_add(&path, "%.*s%.*s", (int)(name - target), target, NAME_KEPT, name);
  ff_text_add(&path, ".part-%ld-%%p", (long)getpid());
  free(target);
  return path.chars;
}

typedef struct parts {
  char *folder;
  char *prefix;
  struct dirent **entries;
  int count;
} parts;

static const char *looked_for; /* by is_part: scandir has no context */
static int is_part(const struct dirent *entry) { return !strncmp(entry->d_name, looked_for, strlen(looked_for)); }

static void parts_find(const char *pattern, parts *p) {
  const char *slash = strrchr(pattern, '/');
  *p = (parts){.folder = ff_strdup(pattern), .prefix = ff_strdup(slash + 1)};
  p->folder[slash == pattern ? 1 : slash - pattern] = '\0';
  p->prefix[strlen(p->prefix) - 2] = '\0'; /* "%p" */
  looked_for = p->prefix;
  p->count = scandir(p->folder, &p->entries, is_part, versionsort);
}

static char *part_path(const parts *p, int i) {
  ff_text path = {0};
  ff_text_add(&path, "%s/%s", p->folder, p->entries[i]->d_name);
  return path.chars;
}

static void parts_free(parts *p) {
  for (int i = 0; i < p->count; i++) free(p->entries[i]);
  if (p->count >= 0) free(p->entries);
  free(p->folder);
  free(p->prefix);
}

/* ---- what becomes of them ---- */

static void say_lost(const char *message) { cli_fail(0, "%s", message); }

static void add_recorded(const char *name, const trace_file_info *info, ff_text *said) {
  char size[32];
  double each = info->accesses ? (double)info->bytes / (double)info->accesses : 0;
  ff_text_add(said,
              "farfault: %s: %" PRIu64 " operation%s, %" PRIu64 " launch%s, %" PRIu64
              " warp access%s in %s (%.2f bytes each)%s\n",
              name, info->operations, cli_s(info->operations), info->launches, cli_es(info->launches), info->accesses,
              cli_es(info->accesses), ff_format_bytes(info->bytes, size, sizeof size), each,
              info->about.complete ? "" : "; the program did not end by itself: this is what it had done");
}

/* A recording that was cut off: what is whole of it, in its place. */
static bool mend(const char *part, trace_file *file, ff_error *error) {
  trace_copied copied;
  const trace_selection all = {.last_launch = UINT64_MAX, .last_block = UINT64_MAX, .repair = true};
  return !trace_file_copy(file, part, &all, say_lost, &copied, error);
}

typedef enum settling { WHOLE_ONLY, ALL } settling; /* WHOLE_ONLY: what was cut off stays for later */

/* Removes a part of which no byte has come to the disk: there is nothing in it to keep. */
static bool remove_empty(const char *part) {
  struct stat about;
  return !stat(part, &about) && about.st_size == 0 && !unlink(part);
}

/* Gives the part its name. `stays`: if it cannot have it; else it goes with the temporary folder. */
static bool settle(const char *part, const char *name, bool stays, settling which, ff_text *said) {
  ff_error error;
  trace_file *file;
  ff_status status = trace_file_open(part, &file, &error);
  if (!status && !trace_file_information(file)->whole) {
    bool good = which == ALL && mend(part, file, &error);
    trace_file_close(file);
    if (which == WHOLE_ONLY) return true;
    status = good ? trace_file_open(part, &file, &error) : FF_IO;
  }
  bool open = !status;
  if (open) status = ff_output_move(part, name, &error);
  if (!status) add_recorded(name, trace_file_information(file), said);
  else if (!open && stays && remove_empty(part)) ff_text_add(said, "farfault: %s: nothing was recorded\n", name);
  else ff_text_add(said, stays ? "farfault: %s (what was recorded is in %s)\n" : "farfault: %s\n", error.message, part);
  if (open) trace_file_close(file);
  return !status;
}

static bool settle_all(const run_outputs *outputs, const parts *p, settling which, ff_text *said) {
  bool good = true;
  for (int i = 0; i < p->count; i++) {
    char *part = part_path(p, i), *name = run_output_name(outputs, outputs->record, (uint32_t)i);
    if (!access(part, F_OK)) good = settle(part, name, true, which, said) && good;
    free(name);
    free(part);
  }
  return good;
}

/* The recording of a program that ended well was cut off. Of several it may be one that the program itself ended, or
 * replaced by another program. */
static bool lost_its_end(const parts *p, const run_end *end) {
  trace_file *file;
  if (end->status || end->signal || p->count != 1) return false;
  char *part = part_path(p, 0);
  bool lost = false;
  if (!trace_file_open(part, &file, NULL)) {
    lost = !trace_file_information(file)->whole;
    trace_file_close(file);
  }
  free(part);
  return lost;
}

/* A trace each, behind one another, is no trace. */
static bool pass_first(const char *file, const parts *p, ff_text *said) {
  char *part = part_path(p, 0);
  bool good = settle(part, file, false, ALL, said);
  free(part);
  if (p->count == 1) return good;
  ff_text_add(said, "farfault: %s: has the trace of the first of %d processes: those of all need a regular file\n",
              file, p->count);
  return false;
}

/* Each line as a message: as long as the terminal's. */
static void say(ff_text *said) {
  static const char name[] = "farfault: ";
  char *rest = NULL;
  for (char *line = said->chars ? strtok_r(said->chars, "\n", &rest) : NULL; line; line = strtok_r(NULL, "\n", &rest))
    cli_fail(0, "%s", strncmp(line, name, sizeof name - 1) ? line : line + sizeof name - 1);
  free(said->chars);
  *said = (ff_text){0};
}

bool run_record_settle(const run_outputs *outputs, const char *pattern, const char *folder, const run_end *end) {
  parts p;
  parts_find(pattern, &p);
  char *target = ff_output_target(outputs->record);
  ff_text said = {0};
  bool good = true;
  const bool lost = lost_its_end(&p, end);
  if (p.count > 0) good = target ? settle_all(outputs, &p, WHOLE_ONLY, &said) : pass_first(outputs->record, &p, &said);
  run_clear_folder(folder);
  say(&said);
  if (p.count < 1 && !end->status) {
    good = cli_fail(false, "%s: nothing was recorded: the program did not use the virtual GPU", outputs->record);
    run_say_missing(end);
  } else if (target && good) good = settle_all(outputs, &p, ALL, &said);
  say(&said);
  if (lost) good = cli_fail(false, "%s: its end is missing, though the program ended well", outputs->record);
  free(target);
  parts_free(&p);
  return good;
}

/* ---- the command ---- */

typedef struct arguments {
  cli_setup setup;
  run_executed executed;
  run_outputs outputs;
  char **program;
} arguments;

enum { KEY_PROFILE_RANGE = 512 };

static const struct argp_option options[] = {
    {"output", 'o', "FILE", 0, "the trace file to write (app.fft)", 0},
    {"machine", 'M', "NAME|FILE", 0,
     "the GPU that the program finds (it may ask for its size), and that `farfault sim` takes if none is chosen (default: " MACHINE_DEFAULT
     ")",
     0},
    {"profile-range", KEY_PROFILE_RANGE, "NAME", OPTION_ARG_OPTIONAL,
     "NVTX ranges of this name are what `farfault sim --profile-range` counts (default: from cudaProfilerStart to cudaProfilerStop)",
     0},
    {0}};

static error_t parse(int key, char *value, struct argp_state *state) {
  arguments *a = state->input;
  switch (key) {
  case ARGP_KEY_INIT: state->child_inputs[0] = &a->executed; return 0;
  case 'o': a->outputs.record = cli_output(value, "-o", false, state); return 0;
  case 'M':
    cli_copy_option(a->setup.machine, sizeof a->setup.machine, value, "machine", state);
    a->setup.machine_chosen = true;
    return 0;
  case KEY_PROFILE_RANGE:
    if (!value)
      cli_refuse(
          state,
          "--profile-range: a recording has the program's calls of cudaProfilerStart and cudaProfilerStop in any "
          "case; `farfault sim --profile-range` counts between them (--profile-range=NAME: in NVTX ranges)");
    a->outputs.profile_nvtx = cli_nvtx_range(value, state);
    return 0;
  case ARGP_KEY_ARG:
    if (!*value) cli_refuse(state, "the program's name is empty");
    a->program = state->argv + state->next - 1;
    state->next = state->argc; /* the rest is the program's */
    return 0;
  case ARGP_KEY_END:
    if (!a->outputs.record) cli_refuse(state, "-o FILE says where the trace is to go");
    if (!a->program) cli_refuse(state, "which program?");
    return 0;
  default: return ARGP_ERR_UNKNOWN;
  }
}

static int record(int argc, char **argv) {
  static const struct argp_child children[] = {{&run_executed_argp, 0, NULL, 0}, {0}};
  static const struct argp argp = {
      options,
      parse,
      "-o FILE [--] PROGRAM [ARGUMENTS]",
      "Runs a CUDA program on a virtual GPU and records everything that a simulation needs: what it allocates, copies and launches, and "
      "every access of every warp. The program's output and exit status are its own.\v"
      "Example:\n  farfault record -o saxpy.fft ./saxpy 1000000\n"
      "  farfault sim saxpy.fft --memory copy,uvm,auto --gpu-memory 50%\n"
      "  farfault trace info saxpy.fft\n\n"
      "A program that is ended by a signal leaves what it did until then. Further processes of the program that use the GPU are recorded "
      "in FILE.2, FILE.3. Exit status: as of `farfault run`.",
      children,
      NULL,
      NULL};
  arguments a = {0};
  cli_parse(&argp, argc, argv, &a);
  ff_error error;
  strcpy(a.setup.managers, "none");
  if (cli_setup_check(&a.setup, &error)) return cli_fail(CLI_SETUP_STATUS(error), "%s", error.message);
  return run_job_do(&(run_job){.argv = a.program, .setup = &a.setup, .executed = &a.executed, .outputs = &a.outputs});
}

const cli_command cli_record = {"record", "run a CUDA program and record its memory accesses as a trace", record};
