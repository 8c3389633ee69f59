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

/* ", 12 s left in this launch", from the share of its blocks that is done; "" while nothing can be said. */
static void estimate(run_progress *p, double time, uint64_t done, uint64_t total, char *text, size_t size) {
  text[0] = '\0';
  if (p->launch != p->area->launches) {
    p->launch = p->area->launches;
    p->launch_started = time;
  }
  double elapsed = time - p->launch_started;
  if (p->area->done) snprintf(text, size, ", finishing");
  else if (done && done < total && elapsed > 1)
    snprintf(text, size, ", %.0f s left in this launch", elapsed * (double)(total - done) / (double)done);
}

/* "16 % of 1936 blocks, 6 s left in this launch, 31.2 M warp instructions/s", or that only simulations still run. */
static void describe(run_progress *p, double time, char *text, size_t size) {
  char number[32], rate[64] = "", left[64];
  uint64_t done = p->area->blocks_done, total = p->area->blocks_total;
  estimate(p, time, done, total, left, sizeof left);
  if (done >= total) {
    snprintf(text, size, "executed%s", left);
    return;
  }
  report_format_count((uint64_t)p->rate, number, sizeof number);
  if (p->rate >= 1) snprintf(rate, sizeof rate, ", %s warp instructions/s", number); /* known when a launch has ended */
  snprintf(text, size, "%.0f %% of %llu blocks%s%s", 100 * (double)done / (double)total, (unsigned long long)total, left, rate);
}

static void show(run_progress *p, double time) {
  char name[41], simulated[32], what[160], line[256];
  copy_name(p->area, name, sizeof name);
  describe(p, time, what, sizeof what);
  report_format_time(p->area->simulated_ps, simulated, sizeof simulated);
  int length = snprintf(line, sizeof line, "farfault: launch %llu %s: %s, simulated %s", (unsigned long long)p->area->launches, name, what, simulated);
  size_t width = columns() - 1;
  if ((size_t)length > width && width < sizeof line) line[width] = '\0';
  fprintf(stderr, "\r%s\033[K", line);
  fflush(stderr);
  p->shown = true;
}

void run_progress_show(run_progress *p) {
  double time = now();
  if (!p->started) p->started = p->last = time;
  if (time - p->started < 1 || time - p->last < 0.2) return;
  update_rate(p, time);
  if (p->area->launches) show(p, time);
}

void run_progress_clear(run_progress *p) {
  if (p->shown) fprintf(stderr, "\r\033[K");
  fflush(stderr);
  p->shown = false;
}
