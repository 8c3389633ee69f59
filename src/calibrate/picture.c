/* SPDX-License-Identifier: Apache-2.0 */
/* The picture of a calibration: cycles of a load against the bytes that a random chase goes over, with the levels that
 * were found. */
#include <math.h>
#include <stdio.h>

#include "calibrate/calibrate.h"
#include "report/svg.h"

enum { WIDTH = 820, HEIGHT = 440, LEFT = 70, RIGHT = 30, TOP = 50, BOTTOM = 60 };

typedef struct scale {
  double low, high, most;
} scale; /* log2 of bytes; cycles */

static double x_of(const scale *s, double bytes) {
  return LEFT + (log2(bytes) - s->low) / (s->high - s->low) * (WIDTH - LEFT - RIGHT);
}
static double y_of(const scale *s, double cycles) {
  return HEIGHT - BOTTOM - cycles / s->most * (HEIGHT - TOP - BOTTOM);
}

static void axes(const scale *s, ff_text *out) {
  double step = svg_step(s->most);
  char text[32];
  for (double v = 0; v <= s->most; v += step) {
    svg_line(out, LEFT, y_of(s, v), WIDTH - RIGHT, y_of(s, v), "stroke=\"#ddd\"");
    snprintf(text, sizeof text, "%.0f", v);
    svg_text(out, LEFT - 6, y_of(s, v) + 4, "text-anchor=\"end\"", text);
  }
  for (double p = ceil(s->low); p <= s->high; p += 2) {
    svg_line(out, x_of(s, exp2(p)), HEIGHT - BOTTOM, x_of(s, exp2(p)), HEIGHT - BOTTOM + 5, "stroke=\"#444\"");
    ff_format_bytes((uint64_t)exp2(p), text, sizeof text);
    svg_text(out, x_of(s, exp2(p)), HEIGHT - BOTTOM + 20, "text-anchor=\"middle\"", text);
  }
  svg_text(out, (WIDTH + LEFT - RIGHT) / 2., HEIGHT - 14, "text-anchor=\"middle\"",
           "footprint of a random pointer chase");
  svg_text_turned(out, 18, HEIGHT / 2., -90, "text-anchor=\"middle\"", "cycles per load");
}

static double found(const calibrate_result *r, figure_id id) {
  return r->figures[id].count ? figure_summarise(&r->figures[id]).median : NAN;
}

static void level(const scale *s, double bytes, const char *name, const char *colour, ff_text *out) {
  if (!(bytes > 0) || log2(bytes) < s->low || log2(bytes) > s->high) return;
  char style[80], text[80], size[32];
  snprintf(style, sizeof style, "stroke=\"%s\" stroke-dasharray=\"4 3\"", colour);
  svg_line(out, x_of(s, bytes), TOP, x_of(s, bytes), HEIGHT - BOTTOM, style);
  snprintf(text, sizeof text, "%s %s", name, ff_format_bytes((uint64_t)bytes, size, sizeof size));
  svg_text(out, x_of(s, bytes) - 5, TOP + 12, "text-anchor=\"end\"", text);
}

void calibrate_picture(const calibrate_result *r, ff_text *out) {
  char title[160];
  scale s = {.low = 11, .high = 12, .most = 1};
  for (uint32_t i = 0; i < r->curve_count; i++) {
    double bytes = log2((double)r->curve[i].bytes);
    if (bytes > s.high) s.high = bytes;
    if (r->curve[i].cycles * 1.1 > s.most) s.most = r->curve[i].cycles * 1.1;
  }
  snprintf(title, sizeof title, "%s: latency of a load", r->device.name);
  svg_begin(WIDTH, HEIGHT, title, out);
  axes(&s, out);
  level(&s, found(r, FIGURE_l1_bytes), "L1", svg_colours[1], out);
  level(&s, found(r, FIGURE_l2_bytes), "L2", svg_colours[2], out);
  level(&s, found(r, FIGURE_tlb_entries) * found(r, FIGURE_page_bytes), "TLB", svg_colours[3], out);
  for (uint32_t i = 0; i < r->curve_count; i++) {
    const curve_point *p = &r->curve[i];
    double x = x_of(&s, (double)p->bytes), y = y_of(&s, p->cycles);
    if (i)
      svg_line(out, x_of(&s, (double)p[-1].bytes), y_of(&s, p[-1].cycles), x, y,
               "stroke=\"#0072b2\" stroke-width=\"2\"");
    svg_rect(out, x - 2, y - 2, 4, 4, "fill=\"#0072b2\"");
  }
  svg_end(out);
}
