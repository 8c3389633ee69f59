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

/* The count is written now and then, so the pace is that between two moments at which it changed. */
static void update_pace(run_pace *pace, uint64_t count, double time) {
  if (count < pace->count || !pace->since) *pace = (run_pace){time, count, 0};
  if (count == pace->count) return;
  double now = (double)(count - pace->count) / (time > pace->since ? time - pace->since : 1e-3);
  pace->per_second = pace->per_second ? 0.7 * pace->per_second + 0.3 * now : now;
  pace->since = time;
  pace->count = count;
}

/* ", 12 s left", from the share of the launch's blocks that is done; "" while nothing can be said. */
static void estimate(run_progress *p, double time, uint64_t done, uint64_t total, char *text, size_t size) {
  text[0] = '\0';
  if (p->launch != p->area->launches) {
    p->launch = p->area->launches;
    p->launch_started = time;
  }
  double elapsed = time - p->launch_started;
  if (done && done < total && elapsed > 1) snprintf(text, size, ", %.0f s left", elapsed * (double)(total - done) / (double)done);
}

/* ", 31.2 M instructions/s"; "" while it is not known. */
static void describe_pace(const run_pace *pace, char *text, size_t size) {
  char number[32];
  text[0] = '\0';
  if (pace->per_second >= 1)
    snprintf(text, size, ", %s instructions/s", report_format_count((uint64_t)pace->per_second, number, sizeof number));
}

/* "42 % simulated, 5.20 M instructions/s, 12 s left": what is executed, the slowest simulation still has to take. */
static void describe_simulation(run_progress *p, char *text, size_t size) {
  uint64_t done = p->area->simulated_instructions, total = p->area->warp_instructions;
  char pace[64], left[32] = "";
  if (!total || done >= total) {
    snprintf(text, size, p->area->done ? "finishing" : "executed");
    return;
  }
  describe_pace(&p->simulated, pace, sizeof pace);
  if (p->simulated.per_second >= 1) snprintf(left, sizeof left, ", %.0f s left", (double)(total - done) / p->simulated.per_second);
  snprintf(text, size, "executed, %.0f %% simulated%s%s", 100 * (double)done / (double)total, pace, left);
}

/* "16 % of 1936 blocks, 6 s left, 31.2 M instructions/s", or how far the simulations are where only they still run. */
static void describe(run_progress *p, double time, char *text, size_t size) {
  char pace[64], left[64];
  uint64_t done = p->area->blocks_done, total = p->area->blocks_total;
  estimate(p, time, done, total, left, sizeof left);
  if (done >= total) {
    describe_simulation(p, text, size);
    return;
  }
  describe_pace(&p->executed, pace, sizeof pace);
  snprintf(text, size, "%.0f %% of %llu blocks%s%s", 100 * (double)done / (double)total, (unsigned long long)total, left, pace);
}

static void show(run_progress *p, double time) {
  char name[25], simulated[32], what[160], line[256];
  copy_name(p->area, name, sizeof name);
  describe(p, time, what, sizeof what);
  report_format_time(p->area->simulated_ps, simulated, sizeof simulated);
  int length = snprintf(line, sizeof line, "farfault: launch %llu %s: %s, at %s", (unsigned long long)p->area->launches, name, what, simulated);
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
  p->last = time;
  update_pace(&p->executed, p->area->warp_instructions, time);
  update_pace(&p->simulated, p->area->simulated_instructions, time);
  if (p->area->launches) show(p, time);
}

void run_progress_clear(run_progress *p) {
  if (p->shown) fprintf(stderr, "\r\033[K");
  fflush(stderr);
  p->shown = false;
}
