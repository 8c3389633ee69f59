/* SPDX-License-Identifier: Apache-2.0 */
/* See svg.h. */
#include "report/svg.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char *const svg_colours[SVG_COLOURS] = {"#0072b2", "#e69f00", "#009e73", "#cc79a7",
                                              "#56b4e9", "#d55e00", "#999999", "#f0e442"};

static const double LETTER = 6.4; /* about as wide as a letter of the legend is */

void svg_add_escaped(ff_text *out, const char *text) {
  for (; *text; text++) {
    if (*text == '<') ff_text_add(out, "&lt;");
    else if (*text == '>') ff_text_add(out, "&gt;");
    else if (*text == '&') ff_text_add(out, "&amp;");
    else if (*text == '"') ff_text_add(out, "&quot;");
    else if ((unsigned char)*text >= 32) ff_text_add_bytes(out, text, 1);
  }
}

void svg_begin(double width, double height, const char *title, ff_text *out) {
  ff_text_add(
      out,
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\" font-family=\"sans-serif\" fill=\"#222\" role=\"img\" aria-label=\"",
      width, height, width, height);
  svg_add_escaped(out, title);
  ff_text_add(out, "\">\n");
  ff_text_add(out, "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n");
  svg_text(out, width / 2, 22, "text-anchor=\"middle\" font-size=\"14\"", title);
}

void svg_end(ff_text *out) { ff_text_add(out, "</svg>\n"); }

void svg_text(ff_text *out, double x, double y, const char *style, const char *text) {
  if (!*text) return;
  ff_text_add(out, "<text x=\"%.1f\" y=\"%.1f\" %s>", x, y, style);
  svg_add_escaped(out, text);
  ff_text_add(out, "</text>\n");
}

void svg_text_turned(ff_text *out, double x, double y, double degrees, const char *style, const char *text) {
  ff_text_add(out, "<g transform=\"translate(%.1f %.1f) rotate(%.0f)\">", x, y, degrees);
  svg_text(out, 0, 0, style, text);
  ff_text_add(out, "</g>\n");
}

void svg_rect(ff_text *out, double x, double y, double width, double height, const char *style) {
  ff_text_add(out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" %s/>\n", x, y, width, height, style);
}

void svg_line(ff_text *out, double x1, double y1, double x2, double y2, const char *style) {
  ff_text_add(out, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" %s/>\n", x1, y1, x2, y2, style);
}

double svg_step(double high) {
  double step = pow(10, floor(log10(high / 5)));
  return high / step > 20 ? 5 * step : high / step > 8 ? 2 * step : step;
}

/* ---- legends ---- */

double svg_legend_entry(svg_legend *l, double mark, const char *name, ff_text *out) {
  double width = mark + 5 + LETTER * (double)strlen(name), x = l->x;
  if (x > l->left && x + width > l->right) {
    x = l->left;
    l->y += SVG_LEGEND_LINE;
  }
  l->x = x + width + 18;
  svg_text(out, x + mark + 5, l->y, "font-size=\"12\"", name);
  return x;
}

void svg_legend_box(svg_legend *l, const char *colour, const char *name, ff_text *out) {
  double x = svg_legend_entry(l, 12, name, out);
  ff_text_add(out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"12\" height=\"12\" fill=\"%s\"/>\n", x, l->y - 10, colour);
}

void svg_legend_line(svg_legend *l, const char *style, const char *name, ff_text *out) {
  double x = svg_legend_entry(l, 20, name, out);
  svg_line(out, x, l->y - 4, x + 20, l->y - 4, style);
}

/* ---- axes ---- */

double svg_time_x(const svg_plot *p, uint64_t ps) {
  return p->left + (p->end_ps ? p->width * fmin(1, (double)ps / (double)p->end_ps) : 0);
}

void svg_time_axis(const svg_plot *p, ff_text *out) {
  static const struct {
    double ps;
    const char *name;
  } units[] = {{1, "ps"}, {1e3, "ns"}, {1e6, "us"}, {1e9, "ms"}, {1e12, "s"}};
  size_t unit = 0;
  while (unit + 1 < sizeof units / sizeof *units && (double)p->end_ps >= 2 * units[unit + 1].ps) unit++;
  double end = p->end_ps ? (double)p->end_ps / units[unit].ps : 1, step = svg_step(end);
  double bottom = p->top + p->height;
  for (int i = 0; i * step <= end * (1 + 1e-9); i++) {
    char label[32];
    double x = p->left + p->width * (i * step / end);
    snprintf(label, sizeof label, "%.6g", i * step);
    svg_line(out, x, p->top, x, bottom + 4, "stroke=\"#ddd\"");
    svg_text(out, x, bottom + 18, "text-anchor=\"middle\" font-size=\"12\"", label);
  }
  char name[32];
  snprintf(name, sizeof name, "time, %s", units[unit].name);
  svg_text(out, p->left + p->width / 2, bottom + 36, "text-anchor=\"middle\" font-size=\"13\"", name);
}

double svg_value_y(const svg_plot *p, double high, double value) {
  return p->top + p->height * (1 - fmax(0, fmin(1, value / high)));
}

void svg_value_axis(const svg_plot *p, double high, double step, const char *name, ff_text *out) {
  for (int i = 0; i * step <= high * (1 + 1e-9); i++) {
    char label[32];
    double y = svg_value_y(p, high, i * step);
    snprintf(label, sizeof label, "%.6g", i * step);
    svg_line(out, p->left, y, p->left + p->width, y, "stroke=\"#ddd\"");
    svg_text(out, p->left - 8, y + 4, "text-anchor=\"end\" font-size=\"12\"", label);
  }
  svg_text_turned(out, p->left - 48, p->top + p->height / 2, -90, "text-anchor=\"middle\" font-size=\"13\"", name);
}
