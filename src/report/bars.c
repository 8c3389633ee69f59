/* SPDX-License-Identifier: Apache-2.0 */
/* Grouped bars as SVG, by hand: a fixed width, a panel's height fixed, everything else from the numbers.
 *
 * What always holds: the axis covers every finite number of the panel; a logarithmic axis has whole decades for its ends
 * and shows nothing that is not positive; coordinates have one decimal, so that the same numbers give the same bytes. */
#include "report/bars.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 1100, LEFT = 70, RIGHT = 20, TOP = 46, PLOT = 300, NAMES = 64, LEGEND = 20 };

static const double LETTER = 6.4; /* about as wide as a letter of the legend is */

/* Okabe and Ito's colours without the black one: to be told apart by everybody. */
static const char *const colours[BARS_SERIES] = {"#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#999999", "#f0e442"};

typedef struct axis {
  double low, high, step;   /* of the values; step only where linear */
  bool logarithmic;
  double top;               /* where `high` is, in pixels */
} axis;

static void add_text(ff_text *out, double x, double y, const char *style, const char *text) {
  ff_text_add(out, "<text x=\"%.1f\" y=\"%.1f\" %s>", x, y, style);
  for (; *text; text++) {
    if (*text == '<') ff_text_add(out, "&lt;");
    else if (*text == '>') ff_text_add(out, "&gt;");
    else if (*text == '&') ff_text_add(out, "&amp;");
    else if (*text == '"') ff_text_add(out, "&quot;");
    else if ((unsigned char)*text >= 32) ff_text_add_bytes(out, text, 1);
  }
  ff_text_add(out, "</text>\n");
}

static double position(const axis *a, double value) {
  double share = a->logarithmic ? log10(value / a->low) / log10(a->high / a->low) : (value - a->low) / (a->high - a->low);
  return a->top + PLOT * (1 - fmax(0, fmin(1, share)));
}

static bool drawable(const axis *a, double value) { return isfinite(value) && (!a->logarithmic || value > 0); }

/* 1, 2 or 5 times a power of ten: about five steps up to `high`. */
static double round_step(double high) {
  double step = pow(10, floor(log10(high / 5)));
  return high / step > 20 ? 5 * step : high / step > 8 ? 2 * step : step;
}

static axis choose_axis(const bars_panel *p, double top) {
  axis a = {.logarithmic = p->logarithmic, .top = top};
  double low = isnan(p->line) ? INFINITY : p->line, high = isnan(p->line) ? -INFINITY : p->line;
  for (uint32_t i = 0; i < 2 * p->group_count * p->series_count; i++) {
    uint32_t at = i / 2;
    double value = i % 2 ? p->paper[at] : p->ours[at];
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
    a.step = round_step(high);
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
  add_text(out, LEFT - 8, y + 4, "text-anchor=\"end\" font-size=\"12\"", label);
}

static void add_axis(const axis *a, const char *name, ff_text *out) {
  static const double parts[] = {1, 2, 5};
  for (double decade = pow(10, floor(log10(a->low))); a->logarithmic && decade <= a->high; decade *= 10)
    for (int i = 0; i < 3; i++)
      if (decade * parts[i] >= a->low * 0.999 && decade * parts[i] <= a->high * 1.001) add_tick(a, decade * parts[i], out);
  for (int i = 0; !a->logarithmic && a->low + i * a->step <= a->high + a->step / 2; i++) add_tick(a, a->low + i * a->step, out);
  ff_text_add(out, "<g transform=\"translate(18 %.1f) rotate(-90)\">", a->top + PLOT / 2.0);
  add_text(out, 0, 0, "text-anchor=\"middle\" font-size=\"13\"", name);
  ff_text_add(out, "</g>\n");
}

/* One series of one group, `x` and `width` its place. */
static void add_bar(const axis *a, double ours, double paper, const char *colour, double x, double width, ff_text *out) {
  double zero = position(a, a->logarithmic ? a->low : 0);
  if (drawable(a, ours)) {
    double y = position(a, ours);
    char label[32];
    snprintf(label, sizeof label, "%.3g", ours);
    ff_text_add(out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\"><title>%s</title></rect>\n", x, fmin(y, zero), width,
                fmax(fabs(zero - y), 0.5), colour, label);
  }
  if (!drawable(a, paper)) return;
  double y = position(a, paper);
  ff_text_add(out, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#000\" stroke-width=\"3\"><title>paper: %.4g</title></line>\n", x - 2, y,
              x + width + 2, y, paper);
}

static void add_group(const bars_panel *p, const axis *a, uint32_t group, double x, double width, ff_text *out) {
  double bar = width * 0.8 / p->series_count;
  for (uint32_t i = 0; i < p->series_count; i++) {
    uint32_t at = group * p->series_count + i;
    add_bar(a, p->ours[at], p->paper[at], colours[i % BARS_SERIES], x + width * 0.1 + bar * i, bar * 0.92, out);
  }
  ff_text_add(out, "<g transform=\"translate(%.1f %.1f) rotate(-30)\">", x + width / 2 + 4, a->top + PLOT + 16);
  add_text(out, 0, 0, "text-anchor=\"end\" font-size=\"12\"", p->groups[group]);
  ff_text_add(out, "</g>\n");
}

/* The line on which everything that is equal lies. */
static void add_line(const bars_panel *p, const axis *a, ff_text *out) {
  double y = position(a, p->line);
  ff_text_add(out, "<line x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\" stroke=\"#444\" stroke-dasharray=\"6 4\"/>\n", LEFT, y, WIDTH - RIGHT, y);
}

/* ---- the legend: entries behind each other, in as many lines as it takes ---- */

typedef struct legend { double x, y; } legend; /* where the next entry begins */

/* Takes room for a mark so wide with the name behind it, writes the name, and returns where the mark begins. */
static double legend_entry(legend *l, double mark, const char *name, ff_text *out) {
  double width = mark + 5 + LETTER * (double)strlen(name), x = l->x;
  if (x > LEFT && x + width > WIDTH - RIGHT) {
    x = LEFT;
    l->y += LEGEND;
  }
  l->x = x + width + 18;
  add_text(out, x + mark + 5, l->y, "font-size=\"12\"", name);
  return x;
}

static void legend_line(legend *l, const char *style, const char *name, ff_text *out) {
  double x = legend_entry(l, 20, name, out);
  ff_text_add(out, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" %s/>\n", x, l->y - 4, x + 20, l->y - 4, style);
}

static bool has_paper(const bars_panel *p) {
  for (uint32_t i = 0; i < p->group_count * p->series_count; i++)
    if (drawable(&(axis){.logarithmic = p->logarithmic}, p->paper[i])) return true;
  return false;
}

/* Returns the last line's y. */
static double add_legend(const bars_panel *p, double y, ff_text *out) {
  legend l = {LEFT, y};
  for (uint32_t i = 0; i < p->series_count; i++) {
    double x = legend_entry(&l, 12, p->series[i], out);
    ff_text_add(out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"12\" height=\"12\" fill=\"%s\"/>\n", x, l.y - 10, colours[i % BARS_SERIES]);
  }
  if (has_paper(p)) legend_line(&l, "stroke=\"#000\" stroke-width=\"3\"", "the paper's value", out);
  if (!isnan(p->line) && p->line_label) legend_line(&l, "stroke=\"#444\" stroke-dasharray=\"6 4\"", p->line_label, out);
  return l.y;
}

/* Returns where the next panel begins. */
static double add_panel(const bars_panel *p, double y, ff_text *out) {
  add_text(out, LEFT, y + 18, "font-size=\"15\" font-weight=\"bold\"", p->title);
  axis a = choose_axis(p, add_legend(p, y + TOP - 8, out) + LEGEND);
  add_axis(&a, p->axis, out);
  double width = (double)(WIDTH - LEFT - RIGHT) / (p->group_count ? p->group_count : 1);
  for (uint32_t i = 0; i < p->group_count; i++) add_group(p, &a, i, LEFT + width * i, width, out);
  if (!isnan(p->line)) add_line(p, &a, out);
  return a.top + PLOT + NAMES + 12;
}

void bars_write(const char *title, const char *below, const bars_panel *panels, uint32_t count, ff_text *out) {
  ff_text body = {0};
  double y = 34;
  for (uint32_t i = 0; i < count; i++) y = add_panel(&panels[i], y, &body);
  ff_text_add(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%.0f\" viewBox=\"0 0 %d %.0f\" font-family=\"sans-serif\" fill=\"#222\">\n", WIDTH,
              y + 26, WIDTH, y + 26);
  ff_text_add(out, "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n");
  add_text(out, WIDTH / 2.0, 22, "text-anchor=\"middle\" font-size=\"14\"", title);
  if (body.length) ff_text_add_bytes(out, body.chars, body.length);
  add_text(out, LEFT, y + 10, "font-size=\"12\" fill=\"#444\"", below);
  ff_text_add(out, "</svg>\n");
  free(body.chars);
}
