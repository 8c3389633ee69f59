/* SPDX-License-Identifier: Apache-2.0 */
/* The folder of pictures (figures.h), the bars of all managers, and the use of the link over time.
 *
 * A picture with the same numbers is the same bytes; each file is written whole or not at all. */
#include "report/figures.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "report/bars.h"
#include "report/svg.h"

enum { WIDTH = 1000, LEFT = 80, RIGHT = 20, TITLE_LENGTH = 110 };

char *figure_title(const report_run *run, const sim_result *result) {
  ff_text title = {0};
  const char *command = run->command ? run->command : "a run";
  bool cut = strlen(command) > TITLE_LENGTH;
  ff_text_add(&title, "%s%.*s on %s", cut ? "..." : "", TITLE_LENGTH,
              command + (cut ? strlen(command) - TITLE_LENGTH : 0), result->machine);
  if (result->history) ff_text_add(&title, ", memory %s", result->memory);
  return title.chars;
}

uint64_t figure_end(const sim_result *result) {
  const sim_history *h = result->history;
  return result->counters.time_ps ? result->counters.time_ps : (uint64_t)h->bins << h->shift;
}

/* ---- times ---- */

typedef struct unit {
  double ps;
  const char *axis;
} unit;

static unit time_unit(double high) {
  static const unit units[] = {
      {1, "picoseconds"}, {1e3, "nanoseconds"}, {1e6, "microseconds"}, {1e9, "milliseconds"}, {1e12, "seconds"}};
  size_t at = 0;
  while (at + 1 < sizeof units / sizeof *units && high >= 2 * units[at + 1].ps) at++;
  return units[at];
}

void figure_times(const report_run *run, ff_text *out) {
  static const char *series[] = {"time from the first operation to the end", "in which kernels ran",
                                 "in which the link carried data"};
  uint32_t count = 0;
  const char **groups = ff_alloc((run->result_count + 1) * sizeof *groups);
  double *ours = ff_alloc((3 * run->result_count + 1) * sizeof *ours),
         *none = ff_alloc((3 * run->result_count + 1) * sizeof *none), high = 0;
  for (uint32_t i = 0; i < run->result_count; i++) {
    const sim_result *r = &run->results[i];
    const uint64_t times[3] = {r->counters.time_ps, r->counters.kernel_ps, r->counters.transfer_ps};
    if (r->error[0]) continue;
    for (int s = 0; s < 3; s++) high = fmax(high, ours[3 * count + (uint32_t)s] = (double)times[s]);
    groups[count++] = r->memory;
  }
  unit u = time_unit(high);
  for (uint32_t i = 0; i < 3 * count; i++) {
    ours[i] /= u.ps;
    none[i] = NAN;
  }
  bars_panel panel = {.title = "Simulated time by memory manager",
                      .axis = u.axis,
                      .groups = groups,
                      .series = series,
                      .group_count = count,
                      .series_count = 3,
                      .ours = ours,
                      .paper = none,
                      .line = NAN};
  char *title = figure_title(run, &(sim_result){0});
  if (run->result_count) {
    sim_result bare = run->results[0];
    bare.history = NULL;
    free(title);
    title = figure_title(run, &bare);
  }
  bars_write(title, "", &panel, 1, out);
  free(title);
  free(groups);
  free(ours);
  free(none);
}

/* ---- the link ---- */

enum { LINK_HEIGHT = 150, LINK_GAP = 44, LINK_TOP = 62 };

/* The share of each bin in which the direction was busy, as steps. */
static void add_use(const svg_plot *p, const sim_history *h, const uint64_t *busy, const char *colour, ff_text *out) {
  double width = (double)(UINT64_C(1) << h->shift), last = -1;
  ff_text_add(out, "<path fill=\"%s\" d=\"M%.1f %.1f", colour, p->left, p->top + p->height);
  for (uint32_t bin = 0; bin < h->bins; bin++) {
    double y = svg_value_y(p, 1, (double)busy[bin] / width), x = svg_time_x(p, (uint64_t)bin << h->shift);
    if (y != last) ff_text_add(out, "H%.1fV%.1f", x, y);
    last = y;
  }
  ff_text_add(out, "H%.1fV%.1fZ\"/>\n", svg_time_x(p, (uint64_t)h->bins << h->shift), p->top + p->height);
}

/* In tenths; a file may claim more than the whole bin. */
static int shade_of(uint64_t busy, double width) { return (int)round(fmin(10 * (double)busy / width, 10)); }

/* Where kernels run, behind the curves: lighter the less of the bin they fill. */
static void add_kernels(const svg_plot *p, const sim_history *h, ff_text *out) {
  const uint64_t *kernels = h->series[HISTORY_kernel_ps];
  double width = (double)(UINT64_C(1) << h->shift);
  for (uint32_t bin = 0, end; bin < h->bins; bin = end) {
    end = bin + 1;
    int shade = shade_of(kernels[bin], width);
    while (end < h->bins && shade_of(kernels[end], width) == shade) end++;
    double x = svg_time_x(p, (uint64_t)bin << h->shift), style_end = svg_time_x(p, (uint64_t)end << h->shift);
    char style[64];
    snprintf(style, sizeof style, "fill=\"#e4e4e4\" fill-opacity=\"%.1f\"", shade / 10.0);
    if (shade) svg_rect(out, x, p->top, style_end - x, p->height, style);
  }
}

static void add_direction(const svg_plot *p, const sim_result *result, bool in, ff_text *out) {
  const sim_history *h = result->history;
  const sim_counters *c = &result->counters;
  char title[160], bytes[32];
  double busy = (double)(in ? c->h2d_busy_ps : c->d2h_busy_ps) / (double)(c->time_ps ? c->time_ps : 1);
  snprintf(title, sizeof title, "%s: %s, %.1f %% of the time", in ? "host to GPU" : "GPU to host",
           ff_format_bytes(in ? c->h2d_bytes : c->d2h_bytes, bytes, sizeof bytes), 100 * busy);
  svg_text(out, p->left, p->top - 8, "font-size=\"13\" font-weight=\"bold\"", title);
  add_kernels(p, h, out);
  svg_value_axis(&(svg_plot){p->left, p->top, p->width, p->height, p->end_ps}, 100, 25, "busy, %", out);
  add_use(p, h, h->series[in ? HISTORY_h2d_busy_ps : HISTORY_d2h_busy_ps], svg_colours[in ? 0 : 1], out);
}

void figure_link(const report_run *run, const sim_result *result, ff_text *out) {
  svg_plot in = {LEFT, LINK_TOP, WIDTH - LEFT - RIGHT, LINK_HEIGHT, figure_end(result)}, back = in;
  back.top = in.top + LINK_HEIGHT + LINK_GAP;
  svg_plot both = {in.left, in.top, in.width, back.top + LINK_HEIGHT - in.top, in.end_ps};
  char *title = figure_title(run, result);
  svg_begin(WIDTH, both.top + both.height + 72, title, out);
  svg_time_axis(&both, out);
  add_direction(&in, result, true, out);
  add_direction(&back, result, false, out);
  svg_legend legend = {LEFT, both.top + both.height + 58, LEFT, WIDTH - RIGHT};
  svg_legend_box(&legend, svg_colours[0], "host to GPU", out);
  svg_legend_box(&legend, svg_colours[1], "GPU to host", out);
  svg_legend_box(&legend, "#e4e4e4", "kernels run", out);
  svg_end(out);
  free(title);
}

/* ---- the folder ---- */

static ff_status make_folder(const char *folder, ff_error *error) {
  struct stat info;
  if (mkdir(folder, 0777) == 0) return FF_OK;
  if (errno == EEXIST && stat(folder, &info) == 0 && S_ISDIR(info.st_mode)) return FF_OK;
  if (errno == EEXIST) return ff_fail(error, FF_IO, "%s: is there, and is no folder", folder);
  return ff_fail(error, FF_IO, "%s: cannot make the folder: %s", folder, strerror(errno));
}

/* A manager's name as part of a file's. */
static void plain_name(const sim_result *result, char *out, size_t size) {
  snprintf(out, size, "%.200s", result->memory);
  for (char *c = out; *c; c++) {
    bool plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') || strchr(".+=-", *c);
    if (!plain) *c = '_';
  }
}

/* A number follows if earlier ones have the same. */
static void file_part(const report_run *run, uint32_t index, char *out, size_t size) {
  uint32_t same = 1;
  plain_name(&run->results[index], out, size);
  for (uint32_t i = 0; i < index; i++) {
    char other[256];
    plain_name(&run->results[i], other, sizeof other);
    same += !strcmp(other, out);
  }
  size_t length = strlen(out);
  if (same > 1) snprintf(out + length, size - length, "-%u", same);
}

static ff_status write_one(const char *folder, const char *kind, const char *part, ff_text *picture, uint32_t *count,
                           ff_error *error) {
  ff_text path = {0};
  ff_text_add(&path, "%s/%s%s%s.svg", folder, kind, *part ? "-" : "", part);
  ff_status status = ff_file_write(path.chars, picture->chars, picture->length, error);
  if (!status) ++*count;
  free(path.chars);
  free(picture->chars);
  *picture = (ff_text){0};
  return status;
}

static ff_status write_manager(const report_run *run, uint32_t index, const char *folder, uint32_t *count,
                               ff_error *error) {
  char part[256];
  ff_text picture = {0};
  const sim_result *result = &run->results[index];
  file_part(run, index, part, sizeof part);
  figure_timeline(run, result, &picture);
  ff_status status = write_one(folder, "timeline", part, &picture, count, error);
  if (status) return status;
  figure_link(run, result, &picture);
  if ((status = write_one(folder, "link", part, &picture, count, error))) return status;
  return figure_heat(run, result, &picture) ? write_one(folder, "heat", part, &picture, count, error) : FF_OK;
}

ff_status report_figures_write(const report_run *run, const char *folder, uint32_t *count, ff_error *error) {
  ff_text picture = {0};
  *count = 0;
  ff_status status = make_folder(folder, error);
  if (status) return status;
  figure_times(run, &picture);
  status = write_one(folder, "times", "", &picture, count, error);
  if (!status && report_has_stacks(run)) {
    figure_stacks(run, &picture);
    status = write_one(folder, "stacks", "", &picture, count, error);
  }
  for (uint32_t i = 0; !status && i < run->result_count; i++) {
    char part[256];
    file_part(run, i, part, sizeof part);
    if (figure_stack_links(run, &run->results[i], &picture))
      status = write_one(folder, "links", part, &picture, count, error);
  }
  for (uint32_t i = 0; !status && i < run->result_count; i++)
    if (run->results[i].history) status = write_manager(run, i, folder, count, error);
  return status;
}
