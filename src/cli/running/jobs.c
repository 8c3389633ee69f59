/* SPDX-License-Identifier: Apache-2.0 */
/* A small pool of child processes.
 *
 * Signals are blocked while it works and taken one by one, as in child.c; the children start with
 * the mask that we had, no input, and a log for all output; we return only after every child did. A child
 * is told to end (SIGTERM, by PR_SET_PDEATHSIG) when this process is killed. */
#define _GNU_SOURCE /* sigtimedwait's siginfo */
#include "cli/running/jobs.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/tasks.h"
#include "cli/running/run.h"

extern char **environ;

typedef struct pool {
  jobs *jobs;
  sigset_t watched, old, mask; /* mask: the children's */
  size_t next;                 /* the first job that was not started */
  uint32_t running;
  int stopped;    /* the signal that did */
  double said;    /* when the last line went into a file */
  ff_tasks tasks; /* the jobs that were not started before */
  bool terminal, shown;
} pool;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static _Noreturn void become(const pool *p, const job *j, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(CLI_FAILED); /* it ended before the line above */
  int empty = open("/dev/null", O_RDONLY), log = open(j->log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (empty < 0 || log < 0) _exit(CLI_NOT_EXECUTABLE);
  dup2(empty, STDIN_FILENO);
  dup2(log, STDOUT_FILENO);
  dup2(log, STDERR_FILENO);
  if (empty > STDERR_FILENO) close(empty);
  if (log > STDERR_FILENO) close(log);
  sigprocmask(SIG_SETMASK, &p->mask, NULL);
  execve(j->argv[0], j->argv, environ);
  dprintf(STDERR_FILENO, "%s: cannot be executed: %s\n", j->argv[0], strerror(errno));
  _exit(CLI_NOT_EXECUTABLE);
}

static void start(pool *p, job *j) {
  pid_t parent = getpid();
  j->started = true;
  ff_tasks_begin(&p->tasks, j->task, now());
  j->process = fork();
  if (j->process == 0) become(p, j, parent);
  if (j->process > 0) {
    p->running++;
    return;
  }
  cli_fail(0, "cannot start a process: %s", strerror(errno));
  j->process = 0;
  j->ended = true;
  ff_tasks_end(&p->tasks, j->task, now());
  j->status = CLI_NOT_EXECUTABLE;
  if (p->jobs->ended) p->jobs->ended(p->jobs->context, j);
}

static void clear_line(pool *p) {
  if (p->shown) fprintf(stderr, "\r\033[K");
  p->shown = false;
}

/* Takes in the children that have ended. */
static void reap(pool *p) {
  for (size_t i = 0; i < p->next; i++) {
    job *j = &p->jobs->list.items[i];
    int status;
    if (!j->process || waitpid(j->process, &status, WNOHANG) != j->process) continue;
    j->process = 0;
    j->ended = true;
    ff_tasks_end(&p->tasks, j->task, now());
    j->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    p->running--;
    if (p->stopped && j->status) continue; /* ended with us, not by a fault of its own */
    clear_line(p);
    if (p->jobs->ended) p->jobs->ended(p->jobs->context, j);
  }
}

/* "farfault: zheng2016: 5 of 13 runs, at sgemm, about 2 min left"; of a single one "farfault: advise: hints": one line
 * of a terminal, else a line now and then. */
static void show(pool *p) {
  if (!p->terminal && now() - p->said < ff_progress_period()) return;
  size_t count = 0;
  const char *at = "";
  char text[32];
  for (size_t i = 0; i < p->jobs->list.count; i++) {
    const job *j = &p->jobs->list.items[i];
    count += j->ended;
    if (j->process && !*at) at = j->label;
  }
  double left = ff_tasks_show(&p->tasks, now());
  p->said = now();
  fprintf(stderr, "%sfarfault: %s: ", p->terminal ? "\r" : "", p->jobs->title);
  if (p->jobs->list.count == 1) fprintf(stderr, "%.40s", p->jobs->list.items[0].label);
  else fprintf(stderr, "%zu of %zu runs", count, p->jobs->list.count);
  if (p->stopped) fprintf(stderr, ", stopping");
  else if (*at && p->jobs->list.count > 1) fprintf(stderr, ", at %.20s", at);
  if (!p->stopped && left > 0) fprintf(stderr, ", %s left", ff_estimate_text(left, text));
  fprintf(stderr, p->terminal ? "\033[K" : "\n");
  fflush(stderr);
  p->shown = p->terminal;
}

/* The terminal's signals reach the children by themselves (SI_KERNEL). */
static void stop(pool *p, const siginfo_t *info) {
  p->stopped = info->si_signo;
  for (size_t i = 0; i < p->next; i++) {
    const job *j = &p->jobs->list.items[i];
    if (j->process && info->si_code != SI_KERNEL) kill(j->process, info->si_signo);
  }
}

/* Jobs with one label are much alike. */
static void add_tasks(pool *p) {
  const jobs *jobs = p->jobs;
  p->tasks.at_once = jobs->at_once;
  p->tasks.known = jobs->compared ? 0 : 1;
  for (size_t i = 0; i < jobs->list.count; i++) {
    job *j = &jobs->list.items[i];
    uint32_t group = 0;
    while (group < i && strcmp(jobs->list.items[group].label, j->label) != 0) group++;
    if (!j->started) j->task = ff_tasks_add(&p->tasks, j->seconds, group);
  }
}

int jobs_run(jobs *jobs) {
  pool p = {.jobs = jobs, .said = now(), .terminal = isatty(STDERR_FILENO)};
  const int ends[] = {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT};
  const struct timespec tick = {.tv_nsec = 250 * 1000 * 1000}, quiet = {.tv_sec = 1};
  sigemptyset(&p.watched);
  for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) sigaddset(&p.watched, ends[i]);
  add_tasks(&p);
  run_children_mask(&p.mask);
  sigprocmask(SIG_BLOCK, &p.watched, &p.old);
  setenv("FARFAULT_RANK", "none", 1); /* the jobs' files are ours, whichever of mpirun's ranks we are */
  while (p.running || (p.next < jobs->list.count && !p.stopped)) {
    for (; p.running < jobs->at_once && p.next < jobs->list.count && !p.stopped; p.next++)
      if (!jobs->list.items[p.next].started) start(&p, &jobs->list.items[p.next]);
    siginfo_t info;
    int signal = p.running ? sigtimedwait(&p.watched, &info, p.terminal ? &tick : &quiet) : 0;
    if (signal > 0 && signal != SIGCHLD) stop(&p, &info);
    reap(&p);
    if (p.running) show(&p);
  }
  clear_line(&p);
  ff_tasks_free(&p.tasks);
  sigprocmask(SIG_SETMASK, &p.old, NULL);
  return p.stopped;
}

void jobs_free(jobs *jobs) {
  for (size_t i = 0; i < jobs->list.count; i++) {
    job *j = &jobs->list.items[i];
    for (char **word = j->argv; *word; word++) free(*word);
    free(j->argv);
    free(j->log);
  }
  free(jobs->list.items);
}
