/* SPDX-License-Identifier: Apache-2.0 */
/* What the engine has to do with the program's virtual clocks (engine_clock.h). */
#define _GNU_SOURCE /* RTLD_DEFAULT */
#include "driver/engine/engine_clock.h"

#include <dlfcn.h>

#include "driver/engine/engine_internal.h"
#include "driver/injection/virtual_clock.h"

static const virtual_clock *preloaded; /* NULL: the clocks are the host's */

/* The host's time after its last operation. While a kernel waits for what the program does, no simulation can say
 * more. */
static bool simulated_time(uint64_t *picoseconds) {
  if (engine_enter_now()) return false;
  sim *primary = ff_engine.primaries[0];
  bool known = !primary || !ff_engine.given;
  if (known)
    *picoseconds =
        primary && ff_engine.last_sequence ? sim_host_time(primary, ff_engine.last_sequence) : ff_engine.host_ps;
  engine_leave();
  return known;
}

void engine_clock_find(void) { preloaded = dlsym(RTLD_DEFAULT, VIRTUAL_CLOCK_SYMBOL); }

void engine_clock_attach(void) {
  if (!preloaded) return;
  session_note_clocks(ff_engine.session);
  preloaded->attach(simulated_time);
}

void engine_clock_enter(void) {
  if (preloaded) preloaded->enter();
}

void engine_clock_leave(void) {
  if (preloaded) preloaded->leave();
}
