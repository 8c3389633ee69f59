/* SPDX-License-Identifier: Apache-2.0 */
/* The progress line: which kernel, how far, how fast, how long still. On a terminal only, after the first second only,
 * and gone before anything else is printed.
 *
 * A program that runs meanwhile writes to the same terminal whenever it likes. So the line gets the terminal's last
 * row, and all above it is made the region that scrolls (DECSTBM), as apt does: what the program writes never comes
 * to that row. Everything that moves the cursor is one write, and puts it back. A terminal that cannot do that (no
 * size, TERM=dumb) has the line where the cursor is.
 *
 * The numbers come from memory that the program's process writes while we read: each is only a display, none is trusted
 * (the kernel's name is cleaned and bounded). */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "cli/running/run.h"
#include "session/session.h"

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Of the terminal: columns, to keep the line on one row, and rows (0: none of them can be taken). */
static size_t terminal_size(uint32_t *rows) {
  const char *kind = getenv("TERM");
  struct winsize size;
  bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0;
  *rows = known && size.ws_row > 3 && kind && strcmp(kind, "dumb") ? size.ws_row : 0;
  return known && size.ws_col > 10 ? size.ws_col : 80;
}

static void copy_text(const char *from, size_t length, char *name, size_t size) {
  size_t i = 0;
  for (; i + 1 < size && i < length && from[i]; i++) name[i] = from[i] >= 32 && from[i] < 127 ? from[i] : '?';
  name[i] = '\0';
}
static void copy_name(const session_progress *area, char *name, size_t size) {
  copy_text(area->kernel, sizeof area->kernel, name, size);
}

/* Adds ", piece" if the line is then still shorter than the terminal is wide. */
static void add_piece(char *line, size_t width, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void add_piece(char *line, size_t width, const char *format, ...) {
  char piece[128];
  va_list args;
  va_start(args, format);
  vsnprintf(piece, sizeof piece, format, args);
  va_end(args);
  size_t length = strlen(line);
  if (length + 2 + strlen(piece) < width) sprintf(line + length, "%s%s", length ? ", " : "", piece);
}

/* "tbn is thrashing: each page came 14 times" */
static void add_thrashing(const run_progress *p, char *line, size_t width) {
  char name[33], text[32];
  uint64_t times = p->area->thrashing_times;
  copy_text(p->area->thrashing, sizeof p->area->thrashing, name, sizeof name);
  if (p->simulates && times)
    add_piece(line, width, "%s is thrashing: each page came %s times", name,
              report_format_count(times, text, sizeof text));
}

/* The count is written now and then, so the pace is that between two moments at which it changed. */
static void update_pace(run_pace *pace, uint64_t count, double time) {
  if (count < pace->count || pace->since == 0) *pace = (run_pace){time, count, 0};
  if (count == pace->count) return;
  double now = (double)(count - pace->count) / (time > pace->since ? time - pace->since : 1e-3);
  pace->per_second = pace->per_second > 0 ? 0.7 * pace->per_second + 0.3 * now : now;
  pace->since = time;
  pace->count = count;
}

/* Whether the simulations are far behind what launches that have ended executed: then they are what is waited for. */
static bool simulations_lag(const run_progress *p) {
  return p->simulates && (double)p->area->simulated_instructions < 0.9 * (double)p->area->warp_instructions;
}

/* Seconds until the launch, or the slowest simulation, is done; 0: nothing can be said. */
static double seconds_left(run_progress *p, double time, bool executed) {
  if (p->launch != p->area->launches) {
    p->launch = p->area->launches;
    p->launch_started = time;
  }
  uint64_t done = p->area->blocks_done, total = p->area->blocks_total;
  double elapsed = time - p->launch_started,
         left = (double)p->area->warp_instructions - (double)p->area->simulated_instructions;
  if (executed) return p->simulates && p->simulated.per_second >= 1 && left > 0 ? left / p->simulated.per_second : 0;
  if (simulations_lag(p) || !done || done >= total || elapsed <= 1) return 0;
  return elapsed * (double)(total - done) / (double)done;
}

/* The same as people can look at it: it does not jump from line to line. 0: nothing can be said. */
static double shown_left(run_progress *p, double time, bool executed) {
  uint64_t launch = p->launch;
  double left = seconds_left(p, time, executed);
  if (executed != p->left_of_simulations || (!executed && launch != p->launch)) ff_estimate_restart(&p->left);
  p->left_of_simulations = executed;
  return left > 0 ? ff_estimate_show(&p->left, time, left) : 0;
}

/* "farfault: first pass, launch 3 saxpy: 16 % of 1936 blocks, 31.2 M instr./s": the trace is looked at before it is
 * simulated. */
static void describe_first_pass(run_progress *p, char *line, size_t width) {
  char name[33], text[32];
  uint64_t done = p->area->blocks_done, total = p->area->blocks_total;
  copy_name(p->area, name, sizeof name);
  add_piece(line, width, "farfault: first pass, launch %llu %s: %.0f %% of %llu block%s",
            (unsigned long long)p->area->launches, name, total ? 100 * (double)done / (double)total : 0,
            (unsigned long long)total, cli_s(total));
  if (p->executed.per_second >= 1)
    add_piece(line, width, "%s instr./s", report_format_count((uint64_t)p->executed.per_second, text, sizeof text));
}

/* "farfault: launch 3 saxpy: 16 % of 1936 blocks, 6 s left, 31.2 M instr./s, at 1.20 ms": what matters most first. */
static void describe(run_progress *p, double time, char *line, size_t width) {
  char name[33], text[32];
  uint64_t done = p->area->blocks_done, total = p->area->blocks_total;
  bool executed = done >= total, lag = simulations_lag(p);
  const run_pace *pace = lag ? &p->simulated : &p->executed;
  double left = shown_left(p, time, executed);
  copy_name(p->area, name, sizeof name);
  if (executed)
    add_piece(line, width, "farfault: launch %llu %s: executed", (unsigned long long)p->area->launches, name);
  else
    add_piece(line, width, "farfault: launch %llu %s: %.0f %% of %llu block%s", (unsigned long long)p->area->launches,
              name, 100 * (double)done / (double)total, (unsigned long long)total, cli_s(total));
  if (p->area->done) add_piece(line, width, "finishing");
  else if (lag)
    add_piece(line, width, "%.0f %% simulated",
              100 * (double)p->area->simulated_instructions / (double)p->area->warp_instructions);
  if (left > 0) add_piece(line, width, "%.0f s left", left);
  add_thrashing(p, line, width);
  if (pace->per_second >= 1)
    add_piece(line, width, "%s instr./s", report_format_count((uint64_t)pace->per_second, text, sizeof text));
  if (p->simulates) add_piece(line, width, "at %s", report_format_time(p->area->simulated_ps, text, sizeof text));
}

#define SAVE_CURSOR "\0337"
#define RESTORE_CURSOR "\0338"

/* The last row is for the line from now on. IND (ESC D) first: where the cursor is in that row, what the program wrote
 * there goes up with all the rest. */
static void take_row(run_progress *p, uint32_t rows) {
  fprintf(stderr, "\033D" SAVE_CURSOR "\033[1;%ur" RESTORE_CURSOR "\033[A", (unsigned)rows - 1);
  p->rows = rows;
}

static void give_row(run_progress *p) {
  fprintf(stderr, SAVE_CURSOR "\033[%u;1H\033[2K\033[r" RESTORE_CURSOR, (unsigned)p->rows);
  p->rows = 0;
}

static void show(run_progress *p, double time) {
  char line[256];
  uint32_t rows;
  size_t width = terminal_size(&rows);
  line[0] = '\0';
  width = width < sizeof line ? width : sizeof line;
  if (p->area->first_pass) describe_first_pass(p, line, width);
  else describe(p, time, line, width);
  if (p->rows && p->rows != rows) give_row(p); /* the window has another size */
  if (p->shared && rows && !p->rows) take_row(p, rows);
  if (p->rows) fprintf(stderr, SAVE_CURSOR "\033[%u;1H%s\033[K" RESTORE_CURSOR, (unsigned)p->rows, line);
  else fprintf(stderr, "\r%s\033[K", line);
  fflush(stderr);
  p->shown = true;
}

void run_progress_show(run_progress *p) {
  double time = now();
  if (p->started == 0) p->started = p->last = time;
  if (time - p->started < 1 || time - p->last < 0.2) return;
  p->last = time;
  update_pace(&p->executed, p->area->warp_instructions, time);
  update_pace(&p->simulated, p->area->simulated_instructions, time);
  if (p->area->launches) show(p, time);
}

void run_progress_clear(run_progress *p) {
  if (p->rows) give_row(p);
  else if (p->shown) fprintf(stderr, "\r\033[K");
  fflush(stderr);
  p->shown = false;
}
