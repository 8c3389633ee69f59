/* SPDX-License-Identifier: Apache-2.0 */
/* See estimate.h. The weight of a new estimate grows with the time since the last one, so that it hardly matters how
 * often there is one: after TIME_CONSTANT seconds, or a third of what is left if that is less, some 60 % of a jump are
 * seen. */
#include "base/estimate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const double TIME_CONSTANT = 5, SHORTEST = 0.1, RISES_FROM = 1.25, RISES_BY = 3;

double ff_estimate_take(ff_estimate *e, double now, double left) {
  double passed = e->known && now > e->at ? now - e->at : 0;
  double constant = left / 3 < TIME_CONSTANT ? left / 3 : TIME_CONSTANT;
  if (constant < SHORTEST) constant = SHORTEST;
  double shown = e->known && e->left > passed ? e->left - passed : e->known ? 0 : left;
  e->left = shown + passed / (passed + constant) * (left - shown);
  e->at = now;
  e->known = true;
  return e->left;
}

void ff_estimate_restart(ff_estimate *e) { *e = (ff_estimate){0}; }

double ff_estimate_round(double left) {
  double step = left < 10 ? 1 : left < 60 ? 5 : left < 120 ? 10 : left < 600 ? 30 : 60;
  return left < 1e15 ? step * (double)(long)(left / step + 0.5) : left;
}

double ff_estimate_show(ff_estimate *e, double now, double left) {
  double taken = ff_estimate_take(e, now, left), shown = ff_estimate_round(taken);
  if (shown < 1) shown = 1;
  if (e->shown > 0 && shown > e->shown && (taken < RISES_FROM * e->shown || taken < RISES_BY + e->shown))
    shown = e->shown;
  return e->shown = shown;
}

const char *ff_estimate_text(double seconds, char text[32]) {
  if (seconds < 90) snprintf(text, 32, "about %.0f s", seconds);
  else if (seconds < 5400) snprintf(text, 32, "about %.0f min", seconds / 60);
  else snprintf(text, 32, "about %.0f h", seconds / 3600);
  return text;
}

double ff_progress_period(void) {
  const char *said = getenv("FARFAULT_PROGRESS_SECONDS");
  char *end;
  double seconds = said ? strtod(said, &end) : -1;
  if (!said || end == said || *end || !(seconds >= 0)) return 30;
  return seconds > 0 ? seconds : INFINITY;
}
