/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* at_quick_exit */
#include "base/ending.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum {
  CRASH_PATIENCE_MS = 10000,
  STOP_PATIENCE_MS = 700,
  WRITE_PATIENCE_MS = 1000,
  LOOK_MS = 10,
  SAME_MS = 400,
  WATCHED = 4
};

static const struct {
  int signal, patience;
} ending_signals[] = {{SIGABRT, CRASH_PATIENCE_MS}, {SIGSEGV, CRASH_PATIENCE_MS}, {SIGBUS, CRASH_PATIENCE_MS},
                      {SIGFPE, CRASH_PATIENCE_MS},  {SIGILL, CRASH_PATIENCE_MS},  {SIGINT, STOP_PATIENCE_MS},
                      {SIGTERM, STOP_PATIENCE_MS},  {SIGHUP, STOP_PATIENCE_MS},   {SIGQUIT, STOP_PATIENCE_MS},
                      {SIGPIPE, STOP_PATIENCE_MS},  {SIGALRM, STOP_PATIENCE_MS},  {SIGXCPU, STOP_PATIENCE_MS}};
enum { ENDING_SIGNALS = sizeof ending_signals / sizeof ending_signals[0] };

static _Atomic(ff_ending *) watched[WATCHED];
static _Atomic int64_t stopped_at; /* when what stops the process from outside first came; 0: it did not */

int ff_ending_patience(int number) {
  for (int i = 0; i < ENDING_SIGNALS; i++)
    if (ending_signals[i].signal == number) return ending_signals[i].patience;
  return CRASH_PATIENCE_MS;
}

static bool is_stop(int number) { return ff_ending_patience(number) == STOP_PATIENCE_MS; }

static int64_t milliseconds(void) { /* signal-safe */
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static bool is_done(int slot) {
  ff_ending *ending = atomic_load(&watched[slot]);
  return !ending || ending->process != getpid() || ending->done;
}

/* Wakes all threads and waits for them. Signal-safe. */
static void let_write(int number) {
  int64_t until = milliseconds() + ff_ending_patience(number) + WRITE_PATIENCE_MS;
  for (int n = 0; n < WATCHED; n++) {
    ff_ending *ending = atomic_load(&watched[n]);
    int before = 0;
    if (!ending || ending->process != getpid()) continue;
    if (atomic_compare_exchange_strong(&ending->number, &before, number)) sem_post(&ending->wake);
    else if (is_stop(number)) return; /* asked for a second time: at once */
  }
  for (int n = 0; n < WATCHED; n++)
    while (!is_done(n) && milliseconds() < until) poll(NULL, 0, LOOK_MS);
}

/* One request may come as several signals: to the group, and sent on by a parent, which cannot know that. */
static bool is_repetition(int number) {
  int64_t now = milliseconds(), first = 0;
  return is_stop(number) && !atomic_compare_exchange_strong(&stopped_at, &first, now) && now - first < SAME_MS;
}

static void handle_signal(int number) {
  int saved = errno;
  if (is_repetition(number)) return;
  let_write(number);
  signal(number, SIG_DFL);
  raise(number); /* of a crash, blocked until we return */
  errno = saved;
}

static void handle_quick_exit(void) { let_write(FF_ENDING_QUICK_EXIT); }

/* A second Ctrl-C must get through while the first one's handler waits, which may be in the only thread that takes
 * signals. */
static void take_signal(int number) {
  struct sigaction now,
      ours = {.sa_handler = handle_signal, .sa_flags = SA_ONSTACK | (is_stop(number) ? SA_NODEFER : 0)};
  sigemptyset(&ours.sa_mask);
  if (sigaction(number, NULL, &now) == 0 && !(now.sa_flags & SA_SIGINFO) && now.sa_handler == SIG_DFL)
    sigaction(number, &ours, NULL);
}

void ff_ending_create(ff_ending *ending) {
  sem_init(&ending->wake, 0, 0);
  ending->number = 0;
  ending->done = false;
  ending->process = getpid();
}

void ff_ending_free(ff_ending *ending) { sem_destroy(&ending->wake); }

void ff_ending_watch(ff_ending *ending) {
  static atomic_bool registered;
  for (int n = 0; n < WATCHED; n++) {
    ff_ending *free_slot = NULL;
    if (atomic_compare_exchange_strong(&watched[n], &free_slot, ending)) break;
  }
  if (atomic_exchange(&registered, true)) return;
  for (int i = 0; i < ENDING_SIGNALS; i++) take_signal(ending_signals[i].signal);
  at_quick_exit(handle_quick_exit);
}

void ff_ending_forget(ff_ending *ending) {
  for (int n = 0; n < WATCHED; n++) {
    ff_ending *expected = ending;
    atomic_compare_exchange_strong(&watched[n], &expected, NULL);
  }
}
