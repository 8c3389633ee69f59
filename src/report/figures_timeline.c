/* SPDX-License-Identifier: Apache-2.0 */
/* The picture of what happened when: a lane per stream, per direction of the link, and for batches of far-faults; below
 * them what is resident and how many far-faults there are, over the same time.
 *
 * Marks of one colour closer than a third of a pixel are one, so a picture stays small however many
 * events there are; what was left out of the history's lists, or is of streams beyond the lanes, is said below. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "report/figures.h"
#include "report/svg.h"

enum {
  WIDTH = 1000,
  LEFT = 110,
  RIGHT = 20,
  TOP = 40,
  LANE = 24,
  GAP = 6,
  STRIP = 80,
  STRIP_GAP = 30,
  STREAMS = 8,
  SHADES = 5
};

/* Kernels in shades of one hue, what the link carries in colours that can be told apart. */
static const char *const kernel_shades[SHADES] = {"#1f2d50", "#4a6491", "#8da2c8", "#c3cfe4", "#666666"};
static const char *const cause_colours[] = {
    [HISTORY_CAUSE_COPY] = "#56b4e9",     [HISTORY_CAUSE_HINT] = "#117733",       [HISTORY_CAUSE_MANAGED] = "#cc79a7",
    [HISTORY_CAUSE_TOUCH] = "#f0e442",    [HISTORY_CAUSE_FAULT] = "#d55e00",      [HISTORY_CAUSE_PREFETCH] = "#e69f00",
    [HISTORY_CAUSE_DECLARED] = "#009e73", [HISTORY_CAUSE_WRITE_BACK] = "#0072b2", [HISTORY_CAUSE_CLEAN] = "#882255",
    [HISTORY_CAUSE_REMOTE] = "#999999"};
_Static_assert(sizeof cause_colours / sizeof *cause_colours == HISTORY_CAUSE_COUNT, "a colour for each cause");
static const char *const copy_colour = "#a9d8f5", *const batch_colour = "#8a5a83", *const resident_colour = "#9fc5a8",
                         *const fault_colour = "#d55e00";

typedef struct lane { /* being drawn */
  const svg_plot *plot;
  double y, begin, end;
  const char *colour; /* of the mark that is open; NULL: none is */
  ff_text *out;
} lane;

static void lane_close(lane *l) {
  char style[32];
  if (!l->colour) return;
  snprintf(style, sizeof style, "fill=\"%s\"", l->colour);
  svg_rect(l->out, l->begin, l->y, fmax(l->end - l->begin, 0.6), LANE, style);
  l->colour = NULL;
}

static void lane_add(lane *l, uint64_t begin_ps, uint64_t end_ps, const char *colour) {
  double begin = svg_time_x(l->plot, begin_ps), end = svg_time_x(l->plot, end_ps);
  if (l->colour == colour && begin - l->end < 0.34) {
    l->end = fmax(l->end, end);
    return;
  }
  lane_close(l);
  *l = (lane){l->plot, l->y, begin, end, colour, l->out};
}

/* ---- which kernels get a shade of their own: those with the most time ---- */

typedef struct shades {
  uint32_t kernel[SHADES - 1];
  uint32_t count;
} shades;

static uint64_t kernel_time(const sim_result *r, uint32_t kernel) { return r->kernels[kernel].counters.time_ps; }

static shades choose_shades(const sim_result *r) {
  shades s = {0};
  for (uint32_t k = 0; k < r->kernel_count; k++) {
    uint32_t at = s.count;
    while (at && kernel_time(r, s.kernel[at - 1]) < kernel_time(r, k)) at--;
    if (at == SHADES - 1) continue;
    if (s.count < SHADES - 1) s.count++;
    for (uint32_t i = s.count - 1; i > at; i--) s.kernel[i] = s.kernel[i - 1];
    s.kernel[at] = k;
  }
  return s;
}

static const char *shade_of(const shades *s, uint32_t kernel) {
  for (uint32_t i = 0; i < s->count; i++)
    if (s->kernel[i] == kernel) return kernel_shades[i];
  return kernel_shades[SHADES - 1];
}

/* ---- lanes ---- */

typedef struct streams {
  uint32_t number[STREAMS];
  uint32_t count;
  bool more;
} streams;

static void streams_add(streams *s, uint32_t number) {
  uint32_t at = 0;
  while (at < s->count && s->number[at] < number) at++;
  if (at < s->count && s->number[at] == number) return;
  if (s->count == STREAMS) s->more = true;
  if (at == STREAMS) return;
  if (s->count < STREAMS) s->count++;
  for (uint32_t i = s->count - 1; i > at; i--) s->number[i] = s->number[i - 1];
  s->number[at] = number;
}

static streams choose_streams(const sim_history *h) {
  streams s = {0};
  for (size_t i = 0; i < h->kernels.count; i++) streams_add(&s, h->kernels.items[i].stream);
  for (size_t i = 0; i < h->copies.count; i++) streams_add(&s, h->copies.items[i].stream);
  return s;
}

static void name_lane(const svg_plot *p, double y, const char *name, ff_text *out) {
  svg_rect(out, p->left, y, p->width, LANE, "fill=\"#f6f6f6\"");
  svg_text(out, p->left - 8, y + LANE / 2.0 + 4, "text-anchor=\"end\" font-size=\"12\"", name);
}

/* What the program calls it, as far as there is room. */
static void name_stream(const report_run *run, const svg_plot *p, double y, uint32_t stream, ff_text *out) {
  char name[REPORT_STREAM_BYTES];
  report_stream_name(run, stream, name);
  for (uint32_t i = 0; i < run->stream_count; i++)
    if (run->streams[i].stream == stream) report_cut_name(name, 20, run->streams[i].name);
  name_lane(p, y, name, out);
}

static void add_stream(const report_run *run, const svg_plot *p, double y, const sim_result *r, uint32_t stream,
                       const shades *s, ff_text *out) {
  name_stream(run, p, y, stream, out);
  lane copies = {.plot = p, .y = y, .out = out}, kernels = copies;
  const sim_history *h = r->history;
  for (size_t i = 0; i < h->copies.count; i++)
    if (h->copies.items[i].stream == stream && h->copies.items[i].end > h->copies.items[i].begin)
      lane_add(&copies, h->copies.items[i].begin, h->copies.items[i].end, copy_colour);
  lane_close(&copies);
  for (size_t i = 0; i < h->kernels.count; i++)
    if (h->kernels.items[i].stream == stream)
      lane_add(&kernels, h->kernels.items[i].begin, h->kernels.items[i].end, shade_of(s, h->kernels.items[i].kernel));
  lane_close(&kernels);
}

static void add_link(const svg_plot *p, double y, const sim_history *h, bool in, ff_text *out) {
  name_lane(p, y, in ? "host to GPU" : "GPU to host", out);
  lane l = {.plot = p, .y = y, .out = out};
  for (size_t i = 0; i < h->transfers.count; i++)
    if (h->transfers.items[i].in == in)
      lane_add(&l, h->transfers.items[i].begin, h->transfers.items[i].end, cause_colours[h->transfers.items[i].cause]);
  lane_close(&l);
}

static void add_batches(const svg_plot *p, double y, const sim_history *h, ff_text *out) {
  name_lane(p, y, "fault batches", out);
  lane l = {.plot = p, .y = y, .out = out};
  for (size_t i = 0; i < h->batches.count; i++)
    lane_add(&l, h->batches.items[i].begin, h->batches.items[i].end, batch_colour);
  lane_close(&l);
}

/* ---- strips ---- */

static void add_strip(const svg_plot *p, const sim_history *h, history_series series, double scale, const char *name,
                      const char *colour, ff_text *out) {
  double high = 0, last = -1;
  for (uint32_t bin = 0; bin < h->bins; bin++) high = fmax(high, (double)h->series[series][bin] * scale);
  if (!(high > 0)) high = 1;
  double step = svg_step(high) * 2;
  high = step * ceil(high / step - 1e-9);
  svg_value_axis(p, high, step, "", out);
  svg_text(out, p->left, p->top - 7, "font-size=\"12\"", name);
  ff_text_add(out, "<path fill=\"%s\" d=\"M%.1f %.1f", colour, p->left, p->top + p->height);
  for (uint32_t bin = 0; bin < h->bins; bin++) {
    double y = svg_value_y(p, high, (double)h->series[series][bin] * scale);
    if (y != last) ff_text_add(out, "H%.1fV%.1f", svg_time_x(p, (uint64_t)bin << h->shift), y);
    last = y;
  }
  ff_text_add(out, "H%.1fV%.1fZ\"/>\n", svg_time_x(p, (uint64_t)h->bins << h->shift), p->top + p->height);
}

static bool any(const sim_history *h, history_series series) {
  for (uint32_t bin = 0; bin < h->bins; bin++)
    if (h->series[series][bin]) return true;
  return false;
}

/* ---- the legend and what is not drawn ---- */

/* "void saxpy<float>(int, float*)": without arguments, cut. */
static void short_name(const char *name, char *out, size_t size) {
  size_t length = strcspn(name, "(");
  if (!length) length = strlen(name);
  if (length > 40) snprintf(out, size, "%.37s...", name);
  else snprintf(out, size, "%.*s", (int)length, name);
}

static double add_legend(double y, const sim_result *r, const shades *s, ff_text *out) {
  svg_legend l = {LEFT, y, LEFT, WIDTH - RIGHT};
  const sim_history *h = r->history;
  svg_text(out, LEFT - 8, l.y, "text-anchor=\"end\" font-size=\"12\" fill=\"#555\"", "in streams:");
  for (uint32_t i = 0; i < s->count; i++) {
    char name[64];
    short_name(r->kernels[s->kernel[i]].name, name, sizeof name);
    svg_legend_box(&l, kernel_shades[i], name, out);
  }
  if (r->kernel_count > s->count) svg_legend_box(&l, kernel_shades[SHADES - 1], "other kernels", out);
  bool copies = false;
  for (size_t i = 0; i < h->copies.count; i++) copies |= h->copies.items[i].end > h->copies.items[i].begin;
  if (copies) svg_legend_box(&l, copy_colour, "copies and sets", out);
  l.x = l.left;
  l.y += SVG_LEGEND_LINE;
  svg_text(out, LEFT - 8, l.y, "text-anchor=\"end\" font-size=\"12\" fill=\"#555\"", "on the link:");
  for (uint32_t cause = 0; cause < HISTORY_CAUSE_COUNT; cause++) {
    bool there = false;
    for (size_t i = 0; i < h->transfers.count && !there; i++) there = h->transfers.items[i].cause == cause;
    if (there) svg_legend_box(&l, cause_colours[cause], history_cause_names[cause], out);
  }
  return l.y;
}

static double add_left_out(double y, const sim_history *h, const streams *s, ff_text *out) {
  ff_text note = {0};
  if (h->kernels_left_out) ff_text_add(&note, "%llu later kernels", (unsigned long long)h->kernels_left_out);
  if (h->transfers_left_out)
    ff_text_add(&note, "%s%llu later transfers", note.length ? ", " : "", (unsigned long long)h->transfers_left_out);
  if (h->batches_left_out)
    ff_text_add(&note, "%s%llu later batches", note.length ? ", " : "", (unsigned long long)h->batches_left_out);
  if (s->more) ff_text_add(&note, "%sfurther streams", note.length ? ", " : "");
  if (note.length) {
    ff_text_add(&note, " are not drawn");
    svg_text(out, LEFT, y += SVG_LEGEND_LINE, "font-size=\"12\" fill=\"#444\"", note.chars);
  }
  free(note.chars);
  return y;
}

void figure_timeline(const report_run *run, const sim_result *result, ff_text *out) {
  const sim_history *h = result->history;
  ff_text body = {0};
  shades s = choose_shades(result);
  streams lanes = choose_streams(h);
  bool faults = any(h, HISTORY_faults);
  uint32_t rows = lanes.count + 2 + (h->batches.count != 0);
  double lane_height = rows * (LANE + GAP) - GAP, strips = 1 + faults;
  svg_plot all = {LEFT, TOP, WIDTH - LEFT - RIGHT, lane_height + strips * (STRIP + STRIP_GAP), figure_end(result)};
  double y = TOP;
  for (uint32_t i = 0; i < lanes.count; i++, y += LANE + GAP)
    add_stream(run, &all, y, result, lanes.number[i], &s, &body);
  add_link(&all, y, h, true, &body);
  add_link(&all, y += LANE + GAP, h, false, &body);
  if (h->batches.count) add_batches(&all, y += LANE + GAP, h, &body);
  svg_plot strip = {LEFT, TOP + lane_height + STRIP_GAP, all.width, STRIP, all.end_ps};
  add_strip(&strip, h, HISTORY_resident_bytes, 1.0 / (1 << 20), "resident in GPU memory, MiB", resident_colour, &body);
  strip.top += STRIP + STRIP_GAP;
  if (faults)
    add_strip(&strip, h, HISTORY_faults, 1e6 / (double)(UINT64_C(1) << h->shift), "far-faults per microsecond",
              fault_colour, &body);
  double bottom = add_left_out(add_legend(all.top + all.height + 60, result, &s, &body), h, &lanes, &body);
  char *title = figure_title(run, result);
  svg_begin(WIDTH, bottom + 16, title, out);
  svg_time_axis(&all, out);
  if (body.length) ff_text_add_bytes(out, body.chars, body.length);
  svg_end(out);
  free(title);
  free(body.chars);
}
