/* SPDX-License-Identifier: Apache-2.0 */
/* A program that ends by a signal or by quick_exit (base/ending.h): the writer gives the simulations a little time, and writes. What
 * nothing can look at (SIGKILL, _exit) leaves the last snapshot. */
#include <poll.h>

#include "study/private.h"

/* Less than the whole patience if no simulation gets further: the kernel that was running will not end, and they wait for it. */
enum { QUIET_MS = 500, LOOK_MS = 10 };

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
  int ending = session->ending.number, patience = ff_ending_patience(ending);
  uint64_t at, last = 0;
  session_end_stream(session);
  for (int waited = 0, quiet = 0; waited < patience && quiet < QUIET_MS && !simulations_are_over(session, &at); waited += LOOK_MS) {
    quiet = at == last ? quiet + LOOK_MS : 0;
    last = at;
    poll(NULL, 0, LOOK_MS);
  }
  recording_finish(session, ending == FF_ENDING_QUICK_EXIT);
  session_write_final_results(session, ending == FF_ENDING_QUICK_EXIT);
  session->ending.done = true;
}
