/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a program that leaves by _exit, as processes do that Python's multiprocessing has forked: no exit handlers
 * run, and no destructors, so the engine would not write the program's results.
 *
 * _exit may be called where little is allowed, as in a signal's handler that has interrupted an allocation. What the
 * engine has to do there may never end: after PATIENCE_SECONDS the process leaves all the same, with its status. A
 * child of vfork has its parent's memory and another process number: nothing is done for it. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define PATIENCE_SECONDS 20

static _Atomic(void (*)(void)) finish; /* NULL: there is nothing to do, or it is being done */
static pid_t owner;
static volatile int status_wanted;

/* Called by the engine, once it has something to finish: `function`, at most once, before this process ends by
 * _exit. */
EXPORT void farfault_preload_before_exit(void (*function)(void));
void farfault_preload_before_exit(void (*function)(void)) {
  owner = getpid();
  finish = function;
}

static _Noreturn void leave(int status) {
  for (;;) syscall(SYS_exit_group, status);
}

static void give_up(int number) {
  (void)number;
  leave(status_wanted);
}

static _Noreturn void end(int status) {
  void (*function)(void) = NULL;
  if (finish && getpid() == owner) function = atomic_exchange(&finish, NULL);
  if (function) {
    struct sigaction action = {.sa_handler = give_up};
    sigset_t alarms;
    status_wanted = status;
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    sigaction(SIGALRM, &action, NULL);
    pthread_sigmask(SIG_UNBLOCK, &alarms, NULL);
    alarm(PATIENCE_SECONDS);
    function();
  }
  leave(status);
}

EXPORT void _exit(int status);
void _exit(int status) { end(status); }
EXPORT void _Exit(int status);
void _Exit(int status) { end(status); }
