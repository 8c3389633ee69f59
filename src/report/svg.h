/* SPDX-License-Identifier: Apache-2.0 */
/* The parts that all our pictures have: SVG 1.1 by hand, escaped texts, colours, steps of an axis, legends, time axes.
 *
 * No scripts, no styles or fonts from outside, a light background of its own; coordinates have one
 * decimal, so that the same numbers give the same bytes. */
#ifndef FF_REPORT_SVG_H
#define FF_REPORT_SVG_H

#include <stdint.h>

#include "base/text.h"

/* Okabe and Ito's colours without the black one: to be told apart by everybody. */
enum { SVG_COLOURS = 8 };
extern const char *const svg_colours[SVG_COLOURS];

/* the title is centred on the first line */
void svg_begin(double width, double height, const char *title, ff_text *out);
void svg_end(ff_text *out);

/* A text as it stands in SVG and HTML; control characters are left out. */
void svg_add_escaped(ff_text *out, const char *text);

/* `style`: further attributes, as text-anchor="end". Control characters are left out. */
void svg_text(ff_text *out, double x, double y, const char *style, const char *text);
void svg_text_turned(ff_text *out, double x, double y, double degrees, const char *style, const char *text);
void svg_rect(ff_text *out, double x, double y, double width, double height, const char *style);
void svg_line(ff_text *out, double x1, double y1, double x2, double y2, const char *style);

/* 1, 2 or 5 times a power of ten: about five steps up to `high` (> 0). */
double svg_step(double high);

/* Entries behind each other, in as many lines as it takes. */
typedef struct svg_legend {
  double x, y, left, right;
} svg_legend; /* where the next entry begins; the bounds */
enum { SVG_LEGEND_LINE = 20 };
/* Takes room for a mark so wide with the name behind it, writes the name, and returns where the mark begins. */
double svg_legend_entry(svg_legend *legend, double mark, const char *name, ff_text *out);
void svg_legend_box(svg_legend *legend, const char *colour, const char *name, ff_text *out);
void svg_legend_line(svg_legend *legend, const char *style, const char *name, ff_text *out);

/* The plot of something over time: its place in pixels, and the time at its right edge. */
typedef struct svg_plot {
  double left, top, width, height;
  uint64_t end_ps;
} svg_plot;
double svg_time_x(const svg_plot *plot, uint64_t ps);
/* Ticks with vertical lines over the plot, numbers and "time, ms" below it. */
void svg_time_axis(const svg_plot *plot, ff_text *out);
/* Horizontal lines and numbers from 0 to `high`; position of a value. */
void svg_value_axis(const svg_plot *plot, double high, double step, const char *name, ff_text *out);
double svg_value_y(const svg_plot *plot, double high, double value);

#endif
