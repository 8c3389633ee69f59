/* SPDX-License-Identifier: Apache-2.0 */
/* Grouped bars as SVG, by hand: a fixed width, a panel's height fixed, everything else from the numbers.
 *
 * The axis covers every finite number of the panel; a logarithmic axis has whole decades for its
 * ends and shows nothing that is not positive; coordinates have one decimal, so that the same numbers give the same
 * bytes. */
#include "report/bars.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/svg.h"

enum { WIDTH = 1100, LEFT = 70, RIGHT = 20, TOP = 46, PLOT = 300, NAMES = 64 };

typedef struct axis {
  double low, high, step; /* of the values; step only where linear */
  bool logarithmic;
  double top; /* where `high` is, in pixels */
} axis;

static double position(const axis *a, double value) {
  double share =
      a->logarithmic ? log10(value / a->low) / log10(a->high / a->low) : (value - a->low) / (a->high - a->low);
  return a->top + PLOT * (1 - fmax(0, fmin(1, share)));
}

static bool drawable(const axis *a, double value) { return isfinite(value) && (!a->logarithmic || value > 0); }

/* What is drawn of a bar: its value, a published one, its whisker. */
static double value_of(const bars_panel *p, uint32_t at, int which) {
  switch (which) {
  case 0: return p->ours[at];
  case 1: return p->paper[at];
  case 2: return p->low ? p->low[at] : NAN;
  case 3: return p->high ? p->high[at] : NAN;
  default: return NAN;
  }
}

static axis choose_axis(const bars_panel *p, double top) {
  axis a = {.logarithmic = p->logarithmic, .top = top};
  double low = isnan(p->line) ? INFINITY : p->line, high = isnan(p->line) ? -INFINITY : p->line;
  for (uint32_t i = 0; i < 4 * p->group_count * p->series_count; i++) {
    double value = value_of(p, i / 4, (int)(i % 4));
    if (!drawable(&a, value)) continue;
    low = fmin(low, value);
    high = fmax(high, value);
  }
  if (!(high > 0)) low = high = 1;
  if (a.logarithmic) {
    a.low = pow(10, floor(log10(low) - 1e-9));
    a.high = pow(10, ceil(log10(high) + 1e-9));
    if (low / a.low > 5) a.low *= 5; /* half a decade is enough */
    else if (low / a.low > 2) a.low *= 2;
    if (a.high / high > 5) a.high /= 5;
    else if (a.high / high > 2) a.high /= 2;
  } else {
    a.step = svg_step(high);
    a.low = low < 0 ? a.step * floor(low / a.step) : 0;
    a.high = a.step * ceil(high / a.step - 1e-9);
  }
  return a;
}

static void add_tick(const axis *a, double value, ff_text *out) {
  char label[32];
  double y = position(a, value);
  snprintf(label, sizeof label, "%.6g", value);
  ff_text_add(out, "<line x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\" stroke=\"#ddd\"/>\n", LEFT, y, WIDTH - RIGHT, y);
  svg_text(out, LEFT - 8, y + 4, "text-anchor=\"end\" font-size=\"12\"", label);
}

static void add_axis(const axis *a, const char *name, ff_text *out) {
  static const double parts[] = {1, 2, 5};
  for (double decade = pow(10, floor(log10(a->low))); a->logarithmic && decade <= a->high; decade *= 10)
    for (int i = 0; i < 3; i++)
      if (decade * parts[i] >= a->low * 0.999 && decade * parts[i] <= a->high * 1.001)
        add_tick(a, decade * parts[i], out);
  for (int i = 0; !a->logarithmic && a->low + i * a->step <= a->high + a->step / 2; i++)
    add_tick(a, a->low + i * a->step, out);
  svg_text_turned(out, 18, a->top + PLOT / 2.0, -90, "text-anchor=\"middle\" font-size=\"13\"", name);
}

/* One series of one group, `x` and `width` its place. */
static void add_bar(const axis *a, double ours, double paper, const char *colour, double x, double width,
                    ff_text *out) {
  double zero = position(a, a->logarithmic ? a->low : 0);
  if (drawable(a, ours)) {
    double y = position(a, ours);
    char label[32];
    snprintf(label, sizeof label, "%.3g", ours);
    ff_text_add(out,
                "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\"><title>%s</title></rect>\n", x,
                fmin(y, zero), width, fmax(fabs(zero - y), 0.5), colour, label);
  }
  if (!drawable(a, paper)) return;
  double y = position(a, paper);
  ff_text_add(
      out,
      "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#000\" stroke-width=\"3\"><title>paper: %.4g</title></line>\n",
      x - 2, y, x + width + 2, y, paper);
}

static void add_whisker(const axis *a, double low, double high, double x, double width, ff_text *out) {
  if (!drawable(a, low) || !drawable(a, high)) return;
  double top = position(a, high), bottom = position(a, low), middle = x + width / 2, half = fmin(width / 4, 8);
  ff_text_add(
      out,
      "<path fill=\"none\" stroke=\"#222\" stroke-width=\"1.5\" d=\"M%.1f %.1fH%.1fM%.1f %.1fV%.1fM%.1f %.1fH%.1f\"><title>%.3g to %.3g</title></path>\n",
      middle - half, top, middle + half, middle, top, bottom, middle - half, bottom, middle + half, low, high);
}

static void add_group(const bars_panel *p, const axis *a, uint32_t group, double x, double width, ff_text *out) {
  double bar = width * 0.8 / p->series_count;
  for (uint32_t i = 0; i < p->series_count; i++) {
    uint32_t at = group * p->series_count + i;
    add_bar(a, p->ours[at], p->paper[at], svg_colours[i % BARS_SERIES], x + width * 0.1 + bar * i, bar * 0.92, out);
    if (p->low && p->high) add_whisker(a, p->low[at], p->high[at], x + width * 0.1 + bar * i, bar * 0.92, out);
  }
  svg_text_turned(out, x + width / 2 + 4, a->top + PLOT + 16, -30, "text-anchor=\"end\" font-size=\"12\"",
                  p->groups[group]);
}

/* ---- too many groups for bars: a curve per series ---- */

static double middle_of(uint32_t group, double width) { return LEFT + width * (group + 0.5); }

static void add_curve(const bars_panel *p, const axis *a, uint32_t series, double width, ff_text *out) {
  bool open = false;
  for (uint32_t group = 0; group < p->group_count; group++) {
    double value = p->ours[group * p->series_count + series];
    if (drawable(a, value))
      ff_text_add(out, "%s%.1f,%.1f", open ? " " : "<polyline points=\"", middle_of(group, width), position(a, value));
    open = open || drawable(a, value);
  }
  if (open)
    ff_text_add(out, "\" fill=\"none\" stroke=\"%s\" stroke-width=\"2\"/>\n", svg_colours[series % BARS_SERIES]);
  for (uint32_t group = 0; group < p->group_count; group++)
    add_bar(a, NAN, p->paper[group * p->series_count + series], "", middle_of(group, width) - 5, 10, out);
}

static void add_curves(const bars_panel *p, const axis *a, double width, ff_text *out) {
  uint32_t step = (p->group_count + 9) / 10;
  for (uint32_t i = 0; i < p->series_count; i++) add_curve(p, a, i, width, out);
  for (uint32_t group = step - 1; group < p->group_count; group += step)
    svg_text(out, middle_of(group, width), a->top + PLOT + 16, "text-anchor=\"middle\" font-size=\"12\"",
             p->groups[group]);
}

/* The line on which everything that is equal lies. */
static void add_line(const bars_panel *p, const axis *a, ff_text *out) {
  double y = position(a, p->line);
  ff_text_add(out, "<line x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\" stroke=\"#444\" stroke-dasharray=\"6 4\"/>\n",
              LEFT, y, WIDTH - RIGHT, y);
}

static bool has_paper(const bars_panel *p) {
  for (uint32_t i = 0; i < p->group_count * p->series_count; i++)
    if (drawable(&(axis){.logarithmic = p->logarithmic}, p->paper[i])) return true;
  return false;
}

/* Returns the last line's y. */
static double add_legend(const bars_panel *p, double y, ff_text *out) {
  svg_legend l = {LEFT, y, LEFT, WIDTH - RIGHT};
  for (uint32_t i = 0; i < p->series_count; i++) svg_legend_box(&l, svg_colours[i % BARS_SERIES], p->series[i], out);
  if (has_paper(p)) svg_legend_line(&l, "stroke=\"#000\" stroke-width=\"3\"", "the paper's value", out);
  if (p->low && p->whisker_label) svg_legend_line(&l, "stroke=\"#222\" stroke-width=\"1.5\"", p->whisker_label, out);
  if (!isnan(p->line) && p->line_label)
    svg_legend_line(&l, "stroke=\"#444\" stroke-dasharray=\"6 4\"", p->line_label, out);
  return l.y;
}

/* Returns where the next panel begins. */
static double add_panel(const bars_panel *p, double y, ff_text *out) {
  svg_text(out, LEFT, y + 18, "font-size=\"15\" font-weight=\"bold\"", p->title);
  axis a = choose_axis(p, add_legend(p, y + TOP - 8, out) + SVG_LEGEND_LINE);
  add_axis(&a, p->axis, out);
  double width = (double)(WIDTH - LEFT - RIGHT) / (p->group_count ? p->group_count : 1);
  for (uint32_t i = 0; i < p->group_count && p->group_count <= BARS_GROUPS; i++)
    add_group(p, &a, i, LEFT + width * i, width, out);
  if (p->group_count > BARS_GROUPS) add_curves(p, &a, width, out);
  if (!isnan(p->line)) add_line(p, &a, out);
  return a.top + PLOT + NAMES + 12;
}

double bars_add(const bars_panel *panels, uint32_t count, double y, ff_text *out) {
  for (uint32_t i = 0; i < count; i++) y = add_panel(&panels[i], y, out);
  return y;
}

void bars_write(const char *title, const char *below, const bars_panel *panels, uint32_t count, ff_text *out) {
  ff_text body = {0};
  double y = bars_add(panels, count, 34, &body);
  svg_begin(WIDTH, y + 26, title, out);
  if (body.length) ff_text_add_bytes(out, body.chars, body.length);
  svg_text(out, LEFT, y + 10, "font-size=\"12\" fill=\"#444\"", below);
  svg_end(out);
  free(body.chars);
}
