/* SPDX-License-Identifier: Apache-2.0 */
/* The child process that measures. What it finds lies in memory that parent and child share.
 *
 * Of the FARFAULT_ variables the child has only those below and FARFAULT_MACHINES, _MACHINE,
 * _DRIVER, _CHECK, _ISA and _THREADS of the caller; the caller never loads a driver. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "probe/meter.h"

extern char **environ;

typedef struct shared {
  probe_result result;
  ff_error error;
  bool opened;
} shared;

static bool is_kept(const char *variable) {
  static const char *const kept[] = {"FARFAULT_MACHINES=", "FARFAULT_MACHINE=", "FARFAULT_DRIVER=",
                                     "FARFAULT_CHECK=",    "FARFAULT_ISA=",     "FARFAULT_THREADS="};
  if (strncmp(variable, "FARFAULT_", 9)) return true;
  for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
    if (!strncmp(variable, kept[i], strlen(kept[i]))) return true;
  return false;
}

static void prepare_environment(const probe_options *options) {
  char **to = environ;
  for (char **from = environ; *from; from++)
    if (is_kept(*from)) *to++ = *from;
  *to = NULL;
  setenv("FARFAULT_MEMORY", "copy", 1);
  setenv("FARFAULT_THREADS", "1", 0); /* one warp at a time has no use for more */
  if (options->machine) setenv("FARFAULT_MACHINE", options->machine, 1);
  if (options->set) setenv("FARFAULT_SET", options->set, 1);
  if (options->driver) setenv("FARFAULT_DRIVER", options->driver, 1);
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void child(const probe_options *options, shared *s) {
  static ff_status (*const measure[])(const meter *, const probe_options *, probe_finding *, ff_error *) = {probe_banks,
                                                                                                            probe_sets};
  gpu *g;
  ff_text raw = {0}, lines = {0};
  ff_text_add(&raw, "primary,secondary,cycles\n");
  prepare_environment(options);
  if (gpu_open(options, &g, &s->result, &s->error)) _exit(1);
  s->opened = true;
  for (int kind = 0; kind < PROBE_KINDS; kind++) {
    probe_finding *found = &s->result.kinds[kind];
    ff_error error;
    double begin = now();
    gpu_begin(g, options->raw && kind == PROBE_BANKS ? &raw : NULL);
    if (options->wanted[kind] && measure[kind](gpu_meter(g), options, found, &error))
      snprintf(found->problem, sizeof found->problem, "%.250s", error.message);
    found->seconds = now() - begin;
  }
  ff_error error;
  ff_status status = options->raw ? ff_file_write(options->raw, raw.chars, raw.length, &error) : FF_OK;
  if (!status && options->lines) status = probe_lines(gpu_meter(g), &lines, &error);
  if (!status && options->lines) status = ff_file_write(options->lines, lines.chars, lines.length, &error);
  if (status) snprintf(s->result.problem, sizeof s->result.problem, "%.250s", error.message);
  _exit(0);
}

static ff_status run_child(const probe_options *options, shared *s, ff_error *error) {
  fflush(NULL);
  pid_t process = fork();
  int status;
  if (process < 0) return ff_fail(error, FF_INTERNAL, "no process to measure in: %s", strerror(errno));
  if (process == 0) child(options, s);
  while (waitpid(process, &status, 0) < 0)
    if (errno != EINTR) return ff_fail(error, FF_INTERNAL, "the process that measures is lost: %s", strerror(errno));
  if (options->progress) fprintf(stderr, "\r\033[K");
  if (WIFSIGNALED(status))
    return ff_fail(error, FF_INTERNAL, "the process that measures was ended by signal %d (%s)", WTERMSIG(status),
                   strsignal(WTERMSIG(status)));
  if (s->opened && WEXITSTATUS(status) == 0) return FF_OK;
  if (!s->error.message[0])
    return ff_fail(error, FF_INTERNAL, "the process that measures ended with status %d", WEXITSTATUS(status));
  s->error.message[sizeof s->error.message - 1] = '\0';
  return ff_fail(error, s->error.status ? s->error.status : FF_INTERNAL, "%s", s->error.message);
}

ff_status probe_run(const probe_options *options, probe_result *result, ff_error *error) {
  shared *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (s == MAP_FAILED) return ff_fail(error, FF_NO_MEMORY, "no shared memory: %s", strerror(errno));
  ff_status status = run_child(options, s, error);
  *result = s->result;
  munmap(s, sizeof *s);
  if (!status) probe_modules(result);
  return status;
}
