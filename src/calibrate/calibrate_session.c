/* SPDX-License-Identifier: Apache-2.0 */
/* Child processes that measure. What they find lies in memory that parent and children share.
 *
 * The virtual GPU needs a process for each way of handling memory, as its simulation is made with its first call: the
 * program's own copies, far-faults one by one (`demand`), batches of far-faults (`uvm`). A real GPU has one way, and
 * these are just processes. Of the FARFAULT_ variables the children have only those below and
 * FARFAULT_MACHINES, _DRIVER, _CHECK, _ISA and _THREADS of the caller. */
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/estimate.h"
#include "calibrate/lab.h"

extern char **environ;

typedef struct shared {
  calibrate_result result;
  ff_error error;
  bool opened;      /* by the child that is running */
  char current[64]; /* what it measures */
} shared;

typedef struct group {
  int session;
  const char *name, *help;
  ff_status (*measure)(lab *l);
} group;

static const group groups[] = {
#define G(session, name, help) {session, #name, help, measure_##name},
#include "calibrate/groups.def"
#undef G
};
enum { GROUPS = sizeof groups / sizeof *groups };

static const char *const managers[] = {"copy", "demand", "uvm"};
enum { SESSIONS = sizeof managers / sizeof *managers };

/* ---- in the child ---- */

static bool is_kept(const char *variable) {
  static const char *const kept[] = {
      "FARFAULT_MACHINES=", "FARFAULT_DRIVER=", "FARFAULT_CHECK=", "FARFAULT_ISA=", "FARFAULT_THREADS="};
  if (strncmp(variable, "FARFAULT_", 9)) return true;
  for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
    if (!strncmp(variable, kept[i], strlen(kept[i]))) return true;
  return false;
}

static void prepare_environment(const calibrate_options *options, int session) {
  char **to = environ;
  for (char **from = environ; *from; from++)
    if (is_kept(*from)) *to++ = *from;
  *to = NULL;
  setenv("FARFAULT_MEMORY", managers[session], 1);
  if (options->machine) setenv("FARFAULT_MACHINE", options->machine, 1);
  if (options->set) setenv("FARFAULT_SET", options->set, 1);
  if (options->driver) setenv("FARFAULT_DRIVER", options->driver, 1);
}

static void note_failure(calibrate_result *result, const char *what, const char *message) {
  size_t used = strlen(result->failures);
  snprintf(result->failures + used, sizeof result->failures - used, "%s: %.300s\n", what, message);
}

static void measure(lab *l, shared *s, int session) {
  for (int i = 0; i < GROUPS; i++) {
    const group *g = &groups[i];
    if (g->session != session) continue;
    snprintf(s->current, sizeof s->current, "%s", g->help);
    if (l->options.progress) fprintf(stderr, "\r\033[K[%d/%d] %s ", i + 1, GROUPS, g->help);
    ff_error error;
    l->error = &error;
    if (g->measure(l)) note_failure(&s->result, g->help, error.message);
  }
}

static void child(const calibrate_options *options, shared *s, int session) {
  lab l;
  prepare_environment(options, session);
  if (lab_open(&l, options, &s->result, &s->error)) _exit(1);
  s->opened = true;
  if (!options->info) measure(&l, s, session);
  _exit(0); /* the driver's own clean-up measures nothing */
}

/* ---- in the parent ---- */

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* As waitpid. Says meanwhile what is being measured, where stderr is no terminal. */
static pid_t wait_for(pid_t process, const calibrate_options *options, const shared *s, int *status) {
  const double begun = now(), period = ff_progress_period();
  double said = begun;
  if (options->progress || options->info || isinf(period)) return waitpid(process, status, 0);
  for (;;) {
    pid_t ended = waitpid(process, status, WNOHANG);
    if (ended) return ended;
    poll(NULL, 0, period < 0.25 ? 1 + (int)(period * 1000) : 250);
    if (now() - said < period) continue;
    said = now();
    char current[sizeof s->current]; /* the child writes it meanwhile */
    memcpy(current, s->current, sizeof current);
    fprintf(stderr, "farfault: calibrate: measuring %.*s, %.0f s\n", (int)sizeof current - 1, current, said - begun);
  }
}

static ff_status run_session(const calibrate_options *options, shared *s, int session, ff_error *error) {
  s->opened = false;
  s->error = (ff_error){0};
  strcpy(s->current, "opening the driver");
  fflush(NULL);
  pid_t process = fork();
  if (process < 0) return ff_fail(error, FF_INTERNAL, "no process to measure in: %s", strerror(errno));
  if (process == 0) child(options, s, session);
  int status;
  while (wait_for(process, options, s, &status) < 0)
    if (errno != EINTR) return ff_fail(error, FF_INTERNAL, "the process that measures is lost: %s", strerror(errno));
  if (WIFSIGNALED(status))
    return ff_fail(error, FF_INTERNAL, "the process that measures was ended by signal %d (%s) while it measured: %s",
                   WTERMSIG(status), strsignal(WTERMSIG(status)), s->current);
  if (s->opened && WEXITSTATUS(status) == 0) return FF_OK;
  if (!s->error.message[0])
    return ff_fail(error, FF_INTERNAL, "the process that measures ended with status %d: %s", WEXITSTATUS(status),
                   s->current);
  s->error.message[sizeof s->error.message - 1] = '\0';
  return ff_fail(error, s->error.status ? s->error.status : FF_INTERNAL, "%s", s->error.message);
}

ff_status calibrate_run(const calibrate_options *options, calibrate_result *result, ff_error *error) {
  shared *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (s == MAP_FAILED) return ff_fail(error, FF_NO_MEMORY, "no shared memory: %s", strerror(errno));
  ff_status status = FF_OK;
  for (int i = 0; i < (options->info ? 1 : SESSIONS) && !status; i++) {
    status = run_session(options, s, i, error);
    if (!status || i == 0 || !error) continue;
    note_failure(&s->result, s->current, error->message); /* what was found before stays */
    status = FF_OK;
  }
  if (options->progress) fprintf(stderr, "\r\033[K");
  *result = s->result;
  munmap(s, sizeof *s);
  return status;
}
