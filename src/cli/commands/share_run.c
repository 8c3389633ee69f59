/* SPDX-License-Identifier: Apache-2.0 */
/* Simulations of `farfault share`, each as `farfault share --one` in a child process, as many at a time as there are
 * cores.
 *
 * Signals are blocked and taken one by one; children do not outlive us; the outcomes do not depend
 * on the order in which they end. */
#define _GNU_SOURCE /* sigtimedwait's siginfo, sched_getaffinity */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands/share_command.h"
#include "cli/running/slots.h"

typedef struct running {
  share_pool *pool;
  slots slots;
  char *program;
  uint32_t count, next, ended;
  uint32_t first; /* of our tasks in pool->tasks */
  sigset_t watched, old;
  int stopped; /* the signal that did */
  bool terminal, shown;
} running;

/* ---- a child's command ---- */

static double percent(double share) { return floor(share * 1e8 * (1 + 1e-12)) / 1e6; }

void share_request_text(const share_request *request, ff_text *out) {
  for (uint32_t i = 0; i < request->count; i++)
    ff_text_add(out, "%ssm=%.6f%%,memory=%.6f%%", i ? ":" : "", percent(request->parts[i].sm),
                percent(request->parts[i].memory));
}

typedef FF_VEC(char *) words;

static void add(words *w, const char *word) { FF_PUSH(w, word ? ff_strdup(word) : NULL); }

static char **child_command(const running *r, uint32_t task) {
  const share_arguments *a = r->pool->arguments;
  share_request request;
  ff_text parts = {0}, profiles = {0};
  words w = {0};
  r->pool->request(r->pool->context, task, &request);
  share_request_text(&request, &parts);
  for (uint32_t i = 0; i < request.count; i++)
    ff_text_add(&profiles, "%s%s", i ? "," : "", a->spec.mig_profiles.profiles[request.profiles[i]].name);
  const char *const head[] = {r->program,        "share",          "--one",
                              "--machine",       a->setup.machine, "--memory",
                              a->setup.managers, "--isolate",      share_isolation_name(request.isolation),
                              "--partitions",    parts.chars,      "--json",
                              SLOT_OUTPUT};
  for (size_t i = 0; i < sizeof head / sizeof head[0]; i++) add(&w, head[i]);
  if (a->setup.choices.text[SIM_CHOICE_HOST_MEMORY][0]) {
    add(&w, "--host-memory");
    add(&w, a->setup.choices.text[SIM_CHOICE_HOST_MEMORY]);
  }
  if (a->setup.choices.set[0]) {
    add(&w, "--set");
    add(&w, a->setup.choices.set);
  }
  if (request.borrow) add(&w, "--borrow");
  if (request.isolation == SHARE_MIG) {
    add(&w, "--mig");
    add(&w, profiles.chars);
  }
  add(&w, "--");
  for (uint32_t i = 0; i < request.count; i++)
    add(&w, request.programs[i] < 0 ? "-" : r->pool->m->programs.items[request.programs[i]].path);
  add(&w, NULL);
  free(parts.chars);
  free(profiles.chars);
  return w.items;
}

static void start(running *r) {
  while (r->slots.running < r->slots.count && r->next < r->count) {
    char **argv = child_command(r, r->next);
    ff_tasks_begin(&r->pool->tasks, r->first + r->next, slots_now());
    slots_run(&r->slots, r->next++, argv);
    for (char **word = argv; *word; word++) free(*word);
    free(argv);
  }
}

/* ---- what a child left ---- */

/* Why there is no outcome, in one line: what it said, or how it ended. */
static void explain(const slot_end *end, ff_text *why) {
  static const char prefix[] = "farfault: ";
  for (const char *line = end->log, *next; line && *line; line = next) {
    size_t length = strcspn(line, "\n");
    next = line + length + (line[length] == '\n');
    if (!strncmp(line, prefix, sizeof prefix - 1)) {
      line += sizeof prefix - 1;
      length -= sizeof prefix - 1;
    }
    if (length) ff_text_add(why, "%s%.*s", why->length ? " / " : "", (int)length, line);
  }
  if (end->status > 128) ff_text_add(why, "%sended by signal %d", why->length ? " / " : "", end->status - 128);
  else if (!why->length) ff_text_add(why, "the simulation ended with status %d and said nothing", end->status);
  for (char *c = why->chars; *c; c++)
    if ((unsigned char)*c < 32 || *c == 127) *c = '?';
}

static void take(running *r, const slot_end *end) {
  share_request request;
  ff_error error;
  ff_text why = {0};
  r->pool->request(r->pool->context, end->task, &request);
  share_outcome *outcomes = ff_alloc(request.count * sizeof *outcomes);
  if (!end->output) explain(end, &why);
  else if (share_outcomes_read("a simulation's outcome", end->output, end->output_size, outcomes, request.count,
                               &error))
    ff_text_add(&why, "%s", error.message);
  if (why.chars) {
    free(outcomes);
    outcomes = NULL;
  }
  r->pool->take(r->pool->context, end->task, outcomes, why.chars);
  ff_tasks_end(&r->pool->tasks, r->first + end->task, slots_now());
  r->ended++;
  r->pool->done++;
  free(why.chars);
}

static void reap(running *r) {
  slot_end end;
  while (slots_reap(&r->slots, &end)) {
    take(r, &end);
    slot_end_free(&end);
  }
}

/* ---- the progress line ---- */

static void clear_line(running *r) {
  if (r->shown) fprintf(stderr, "\r\033[K");
  r->shown = false;
}

/* "farfault: share: 13 of 51 simulations, about 20 s left" */
static void show(running *r) {
  uint32_t left = r->count - r->ended + r->pool->later, all = r->pool->done + left;
  fprintf(stderr, "\rfarfault: share: %u of %s%u simulations", r->pool->done, r->pool->later ? "about " : "", all);
  slots_show_left(ff_tasks_show(&r->pool->tasks, slots_now()));
  fprintf(stderr, "\033[K");
  fflush(stderr);
  r->shown = true;
}

/* ---- the loop ---- */

static void wait_for_news(running *r) {
  const struct timespec tick = {.tv_nsec = 250 * 1000 * 1000}, quiet = {.tv_sec = 10};
  siginfo_t info;
  int signal = sigtimedwait(&r->watched, &info, r->terminal ? &tick : &quiet);
  if (signal > 0 && signal != SIGCHLD) r->stopped = signal;
}

static uint32_t cores(void) {
  cpu_set_t set;
  int count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  return count < 1 ? 1 : count > 999 ? 999 : (uint32_t)count;
}

/* This executable; another one where a test says so. */
static char *own_program(void) {
  const char *other = getenv("FARFAULT_SHARE_PROGRAM");
  char path[PATH_MAX];
  ssize_t length = other ? 0 : readlink("/proc/self/exe", path, sizeof path - 1);
  path[length > 0 ? length : 0] = '\0';
  return ff_strdup(other ? other : path);
}

static void watch_signals(running *r) {
  const int ends[] = {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT};
  sigemptyset(&r->watched);
  for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) sigaddset(&r->watched, ends[i]);
  sigprocmask(SIG_BLOCK, &r->watched, &r->old);
}

static void add_tasks(running *r) {
  ff_tasks *tasks = &r->pool->tasks;
  double weight = 0;
  r->first = (uint32_t)tasks->list.count;
  tasks->at_once = r->slots.count;
  for (uint32_t i = 0; i < r->count; i++) {
    share_request request;
    uint32_t group;
    r->pool->request(r->pool->context, i, &request);
    double own = share_request_weight(r->pool->m, &request, &group);
    ff_tasks_add(tasks, own, group);
    weight += own;
  }
  tasks->later = r->count ? weight / r->count * r->pool->later : 0;
}

int share_pool_run(share_pool *pool, uint32_t count) {
  running r = {.pool = pool, .count = count, .program = own_program(), .terminal = isatty(STDERR_FILENO)};
  char name[48];
  snprintf(name, sizeof name, "share-%ld", (long)getpid());
  watch_signals(&r);
  slots_start(&r.slots, pool->arguments->jobs ? pool->arguments->jobs : cores(), &r.old, name);
  add_tasks(&r);
  while (r.ended < count && !r.stopped) {
    start(&r);
    wait_for_news(&r);
    clear_line(&r);
    reap(&r);
    if (r.terminal) show(&r);
  }
  clear_line(&r);
  slots_stop(&r.slots);
  free(r.program);
  sigprocmask(SIG_SETMASK, &r.old, NULL);
  return r.stopped;
}
