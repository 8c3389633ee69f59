/* SPDX-License-Identifier: Apache-2.0 */
/* A program that does not end by exit: a signal that it does not handle (a crash, Ctrl-C, a time limit), or quick_exit.
 *
 *   signal -> handle_signal: sets session.ending, wakes the writer, waits for session.ended -> the signal again, by default
 *   writer -> session_write_ending: ends the stream, waits a little for the simulations, writes, sets session.ended
 *
 * What always holds: the process ends as it would without us, by the same signal, a little later; only signals that had
 * their default action when the session began are looked at; the handler itself does what a handler may (it takes no lock
 * and allocates nothing), and gives up waiting after a while, as the program may have died holding a lock that the writer
 * needs; a second Ctrl-C ends the process at once. What nothing can look at (SIGKILL, _exit) leaves the last snapshot. */
#define _GNU_SOURCE /* at_quick_exit */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "study/private.h"

/* How long the simulations get for what was executed: after a crash, and where someone waits for the end; less if none of
 * them gets further (the kernel that was running will not end, and they wait for it). */
enum { CRASH_PATIENCE_MS = 10000, STOP_PATIENCE_MS = 2000, QUIET_MS = 500, WRITE_PATIENCE_MS = 1000, LOOK_MS = 10 };

static const struct { int signal, patience; } ending_signals[] = {
    {SIGABRT, CRASH_PATIENCE_MS}, {SIGSEGV, CRASH_PATIENCE_MS}, {SIGBUS, CRASH_PATIENCE_MS}, {SIGFPE, CRASH_PATIENCE_MS},
    {SIGILL, CRASH_PATIENCE_MS},  {SIGINT, STOP_PATIENCE_MS},   {SIGTERM, STOP_PATIENCE_MS}, {SIGHUP, STOP_PATIENCE_MS},
    {SIGQUIT, STOP_PATIENCE_MS},  {SIGPIPE, STOP_PATIENCE_MS},  {SIGALRM, STOP_PATIENCE_MS}, {SIGXCPU, STOP_PATIENCE_MS}};
enum { ENDING_SIGNALS = sizeof ending_signals / sizeof ending_signals[0] };

static _Atomic(session *) watched; /* the session of this process, NULL: none that still writes */

static int patience_for(int ending) {
  for (int i = 0; i < ENDING_SIGNALS; i++)
    if (ending_signals[i].signal == ending) return ending_signals[i].patience;
  return CRASH_PATIENCE_MS;
}

/* Asks the writer for the last results and waits for them. Signal-safe. */
static void let_write(int ending) {
  session *session = atomic_load(&watched);
  if (!session || session->process != getpid()) return;
  int before = 0, patience = patience_for(ending);
  if (atomic_compare_exchange_strong(&session->ending, &before, ending)) sem_post(&session->wake);
  else if (patience == STOP_PATIENCE_MS) return; /* asked for a second time: at once */
  for (int waited = 0; !session->ended && waited < patience + WRITE_PATIENCE_MS; waited += LOOK_MS) poll(NULL, 0, LOOK_MS);
}

static void handle_signal(int number) {
  int saved = errno;
  let_write(number);
  signal(number, SIG_DFL);
  raise(number); /* blocked until we return */
  errno = saved;
}

static void handle_quick_exit(void) { let_write(ENDING_QUICK_EXIT); }

static void take_signal(int number) {
  struct sigaction now, ours = {.sa_handler = handle_signal, .sa_flags = SA_ONSTACK};
  sigemptyset(&ours.sa_mask);
  if (sigaction(number, NULL, &now) == 0 && !(now.sa_flags & SA_SIGINFO) && now.sa_handler == SIG_DFL) sigaction(number, &ours, NULL);
}

void session_watch_ending(session *session) {
  static atomic_bool registered;
  if (!session->results) return;
  atomic_store(&watched, session);
  if (atomic_exchange(&registered, true)) return;
  for (int i = 0; i < ENDING_SIGNALS; i++) take_signal(ending_signals[i].signal);
  at_quick_exit(handle_quick_exit);
}

void session_unwatch_ending(session *session) {
  struct session *expected = session;
  atomic_compare_exchange_strong(&watched, &expected, NULL);
}

/* Whether all simulations, and the recording, have got to the end; *at: a number that grows while one of them gets further. */
static bool simulations_are_over(session *session, uint64_t *at) {
  bool over = recording_is_over(session->recording);
  *at = 0;
  for (uint32_t i = 0; i < session->manager_count; i++) {
    sim_result result;
    sim_snapshot(session->managers[i].sim, &result);
    over = over && result.complete;
    *at += result.counters.time_ps + result.counters.warp_instructions;
    sim_result_free(&result);
  }
  return over;
}

void session_write_ending(session *session) {
  int ending = session->ending, patience = patience_for(ending);
  uint64_t at, last = 0;
  session_end_stream(session);
  for (int waited = 0, quiet = 0; waited < patience && quiet < QUIET_MS && !simulations_are_over(session, &at); waited += LOOK_MS) {
    quiet = at == last ? quiet + LOOK_MS : 0;
    last = at;
    poll(NULL, 0, LOOK_MS);
  }
  recording_finish(session, ending == ENDING_QUICK_EXIT);
  session_write_final_results(session, ending == ENDING_QUICK_EXIT);
  session->ended = true;
}
