/* SPDX-License-Identifier: Apache-2.0 */
/* A program that ends by a signal or by quick_exit (base/ending.h): the writer gives the simulations a little time, and
 * writes. What nothing can look at (SIGKILL, _exit) leaves the last snapshot. */
#include <poll.h>

#include "session/session_private.h"

/* Less than the whole patience if no simulation gets further: the kernel that was running will not end, and they wait
 * for it. */
enum { QUIET_MS = 500, LOOK_MS = 10 };

/* Whether all simulations, and the recording, have got to the end; *at: a number that grows while one of them gets
 * further. Asks no simulation for its numbers: that would cost those that have many launches more than they get further
 * meanwhile. */
static bool simulations_are_over(session *session, uint64_t *at) {
  bool over = recording_is_over(session->recording);
  *at = 0;
  for (uint32_t i = 0; i < session->manager_count; i++) over = sim_is_over(session->managers[i].sim, at) && over;
  return over;
}

static int64_t milliseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* By the clock: on a busy machine each look may take long. */
static void wait_for_simulations(session *session, int patience) {
  int64_t now = milliseconds(), until = now + patience, moved = now;
  for (uint64_t at, last = 0; now < until && now - moved < QUIET_MS && !simulations_are_over(session, &at); last = at) {
    poll(NULL, 0, LOOK_MS);
    now = milliseconds();
    if (at != last) moved = now;
  }
}

void session_write_ending(session *session) {
  int ending = session->ending.number;
  session_end_stream(session);
  wait_for_simulations(session, ff_ending_patience(ending));
  recording_finish(session, ending == FF_ENDING_QUICK_EXIT);
  session_write_final_results(session, ending == FF_ENDING_QUICK_EXIT);
  session->ending.done = true;
}
