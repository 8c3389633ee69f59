/* SPDX-License-Identifier: Apache-2.0 */
/* What libfarfault-clock.so (virtual_clock.c, preloaded for --virtual-time) gives to our other libraries, which find it
 * by name. */
#ifndef FF_DRIVER_VIRTUAL_CLOCK_H
#define FF_DRIVER_VIRTUAL_CLOCK_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

typedef struct virtual_clock {
  /* From now on `simulated` says the host's simulated time in picoseconds, from 0; false: it cannot say now. Any thread
   * calls it. */
  void (*attach)(bool (*simulated)(uint64_t *picoseconds));
  /* The calling thread works for us until it has left as often as it has entered: that is no processor time of the
   * program's. */
  void (*enter)(void);
  void (*leave)(void);
  /* The host's own clocks and waits. */
  int (*real_time)(clockid_t clock, struct timespec *time);
  int (*real_sleep)(const struct timespec *wanted, struct timespec *left);
  int (*real_poll)(struct pollfd *descriptors, nfds_t count, int milliseconds);
} virtual_clock;

#define VIRTUAL_CLOCK_SYMBOL "farfault_clock" /* an object of that type */

#endif
