/* SPDX-License-Identifier: Apache-2.0 */
/* The progress line: which kernel, how far, how fast, how long still. On a terminal only, after the first second only,
 * and gone before anything else is printed.
 *
 * The numbers come from memory that the program's process writes while we read: each is only a display, none is trusted
 * (the kernel's name is cleaned and bounded). */
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "cli/run.h"
#include "study/session.h"

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Columns of the terminal, to keep the line on one row. */
static size_t columns(void) {
  struct winsize size;
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 10) return size.ws_col;
  return 80;
}

static void copy_name(const session_progress *area, char *name, size_t size) {
  size_t i = 0;
  for (; i + 1 < size && i < sizeof area->kernel && area->kernel[i]; i++)
    name[i] = area->kernel[i] >= 32 && area->kernel[i] < 127 ? area->kernel[i] : '?';
  name[i] = '\0';
}

static void update_rate(run_progress *p, double time) {
  uint64_t instructions = p->area->warp_instructions;
  double rate = time > p->last && instructions >= p->last_instructions ? (double)(instructions - p->last_instructions) / (time - p->last) : 0;
  p->rate = p->rate ? 0.7 * p->rate + 0.3 * rate : rate;
  p->last = time;
  p->last_instructions = instructions;
}

void run_progress_show(run_progress *p) {
  double time = now();
  if (!p->started) p->started = p->last = time;
  if (time - p->started < 1 || time - p->last < 0.2) return;
  update_rate(p, time);
  if (!p->area->launches) return;
  char name[41], rate[32], simulated[32], line[256], estimate[48] = "";
  copy_name(p->area, name, sizeof name);
  uint64_t done = p->area->blocks_done, total = p->area->blocks_total;
  double share = total ? 100 * (double)done / (double)total : 0;
  report_format_count((uint64_t)p->rate, rate, sizeof rate);
  report_format_time(p->area->simulated_ps, simulated, sizeof simulated);
  if (p->area->done) snprintf(estimate, sizeof estimate, ", finishing");
  int length = snprintf(line, sizeof line, "farfault: launch %llu %s: %.0f %% of %llu blocks, %s warp instructions/s, simulated %s%s",
                        (unsigned long long)p->area->launches, name, share > 100 ? 100 : share, (unsigned long long)total, rate, simulated, estimate);
  size_t width = columns() - 1;
  if ((size_t)length > width) line[width] = '\0';
  fprintf(stderr, "\r%s\033[K", line);
  fflush(stderr);
  p->shown = true;
}

void run_progress_clear(run_progress *p) {
  if (p->shown) fprintf(stderr, "\r\033[K");
  fflush(stderr);
  p->shown = false;
}
