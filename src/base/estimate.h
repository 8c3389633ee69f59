/* SPDX-License-Identifier: Apache-2.0 */
/* How long something will still take, as a number that people can look at: new estimates draw it to themselves slowly,
 * and between them it runs down like a clock. */
#ifndef FF_BASE_ESTIMATE_H
#define FF_BASE_ESTIMATE_H

#include <stdbool.h>

typedef struct ff_estimate {
  double left, at; /* seconds, and the moment (of any clock) that they are from */
  bool known;
  double shown; /* the last number that was shown, 0: none */
} ff_estimate;  /* all zero: nothing is known yet */

/* Takes a new estimate of `left` seconds (above 0) at `now`; returns what to show. */
double ff_estimate_take(ff_estimate *e, double now, double left);
/* Something else is estimated from now on. */
void ff_estimate_restart(ff_estimate *e);
/* The same, rounded: what stands on a progress line. It rises only where it was wrong by a quarter and by three
 * seconds. At least 1. */
double ff_estimate_show(ff_estimate *e, double now, double left);
/* "about 3 min": seconds as they are said in `text`, which it returns. */
const char *ff_estimate_text(double seconds, char text[32]);
/* As people say it: whole seconds below 10, then steps of 5, 10, 30 seconds, minutes. */
double ff_estimate_round(double left);

/* Seconds between two lines that say how far something is, where they go into a file: FARFAULT_PROGRESS_SECONDS, 30 if
 * that is not a number above 0. "0": INFINITY, none at all. */
double ff_progress_period(void);

#endif
