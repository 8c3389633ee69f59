/* SPDX-License-Identifier: Apache-2.0 */
/* `--live`: while the program runs, its saved run is written again and again from the snapshots of its processes, for
 * `farfault view --live`. Snapshots have totals and no history; the file at the end has both.
 *
 * At least PERIOD_S lie between two times, and QUIET times what the last one took: large results cost little, too. */
#include <time.h>

#include "cli/running/run.h"

enum { PERIOD_S = 1, QUIET = 10 };

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

void run_live_write(run_live *live) {
  double begun = now();
  if (!live->outputs || begun < live->next) return;
  run_results results;
  ff_error error;
  run_results_peek(live->folder, &results);
  if (results.count && run_outputs_write_live(live->outputs, &results, &error)) {
    cli_fail(0, "--live: %s; it is written again at the end only", error.message);
    live->outputs = NULL;
  }
  run_results_free(&results);
  double ended = now(), pause = QUIET * (ended - begun);
  live->next = ended + (pause > PERIOD_S ? pause : PERIOD_S);
}
