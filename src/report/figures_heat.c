/* SPDX-License-Identifier: Apache-2.0 */
/* The picture of memory: allocations by address from top to bottom, time from left to right. A cell is a row of a map
 * in one of its bins: grey where it is resident, blue by how often it was accessed, with a mark for far-faults and one
 * for evictions.
 *
 * At most SHOWN allocations, those with the most accesses, in order of their ids; the darkest blue
 * is the most accesses that any cell drawn has, steps are equal in the logarithm. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "report/figures.h"
#include "report/svg.h"

enum { WIDTH = 1000, LEFT = 210, RIGHT = 20, TOP = 40, SHOWN = 16, LEAST = 20, PLOT = 560, GAP = 8, BLUES = 6 };

/* From few to many: one hue, its lightness falls evenly. */
static const char *const blues[BLUES] = {"#cfe1f2", "#a3cbe6", "#6aaed6", "#3989c1", "#1561a9", "#08306b"};
static const char *const resident_colour = "#e6e6e6", *const fault_colour = "#d55e00",
                         *const evicted_colour = "#7b3294";

typedef struct shown {
  const history_map *map[SHOWN];
  double height[SHOWN];
  uint32_t count, left_out;
  uint64_t most; /* accesses of a cell */
} shown;

static uint32_t bins_of(const sim_history *h) { return (h->bins + (1u << HISTORY_MAP_SHIFT) - 1) >> HISTORY_MAP_SHIFT; }

static uint64_t accesses_of(const history_map *m) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < HISTORY_MAP_BINS * m->rows; i++) sum += m->cells[i].accesses;
  return sum;
}

static int by_accesses(const void *a, const void *b) {
  uint64_t x = accesses_of(*(const history_map *const *)a), y = accesses_of(*(const history_map *const *)b);
  return x > y ? -1 : x < y;
}

static int by_id(const void *a, const void *b) {
  uint32_t x = (*(const history_map *const *)a)->allocation, y = (*(const history_map *const *)b)->allocation;
  return x < y ? -1 : x > y;
}

static shown choose(const sim_history *h) {
  shown s = {.count = h->maps.count < SHOWN ? (uint32_t)h->maps.count : SHOWN};
  const history_map **all = ff_alloc((h->maps.count + 1) * sizeof *all);
  for (size_t i = 0; i < h->maps.count; i++) all[i] = h->maps.items[i];
  qsort(all, h->maps.count, sizeof *all, by_accesses);
  qsort(all, s.count, sizeof *all, by_id);
  s.left_out = (uint32_t)h->maps.count - s.count + (uint32_t)h->maps_left_out;
  double rows = 0;
  for (uint32_t i = 0; i < s.count; i++) {
    s.map[i] = all[i];
    rows += all[i]->rows;
    for (uint32_t c = 0; c < HISTORY_MAP_BINS * all[i]->rows; c++)
      s.most = all[i]->cells[c].accesses > s.most ? all[i]->cells[c].accesses : s.most;
  }
  double room = PLOT - (double)s.count * LEAST;
  for (uint32_t i = 0; i < s.count; i++)
    s.height[i] = LEAST + fmin(room * s.map[i]->rows / (rows > 0 ? rows : 1), 8.0 * s.map[i]->rows);
  free(all);
  return s;
}

/* 0 to BLUES - 1; equal steps of the logarithm up to the most. */
static int blue_of(uint64_t accesses, uint64_t most) {
  if (most <= 1) return BLUES - 1;
  int step = (int)floor(BLUES * log((double)accesses) / log((double)most) + 1e-9);
  return step < BLUES ? step : BLUES - 1;
}

/* The fill of a cell; NULL: nothing was there. */
static const char *fill_of(const history_map *m, uint32_t bin, uint32_t row, uint64_t most) {
  const history_cell *c = &m->cells[bin * m->rows + row];
  if (c->accesses) return blues[blue_of(c->accesses, most)];
  /* what left in the bin was there before */
  bool there = c->evicted_bytes || (m->resident && m->resident[bin * m->rows + row]);
  return there ? resident_colour : NULL;
}

typedef struct place {
  const svg_plot *plot;
  const sim_history *h;
  double top, row_height;
} place;

static double bin_x(const place *p, uint32_t bin) {
  return svg_time_x(p->plot, (uint64_t)bin << (p->h->shift + HISTORY_MAP_SHIFT));
}

/* Neighbours in time with one fill are one rectangle. */
static void add_row(const place *p, const history_map *m, uint32_t row, uint64_t most, ff_text *out) {
  double y = p->top + row * p->row_height;
  for (uint32_t bin = 0, end, bins = bins_of(p->h); bin < bins; bin = end) {
    const char *fill = fill_of(m, bin, row, most);
    for (end = bin + 1; end < bins && fill_of(m, end, row, most) == fill;) end++;
    if (!fill) continue;
    double x = bin_x(p, bin);
    ff_text_add(out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\"/>\n", x, y,
                bin_x(p, end) - x + 0.1, p->row_height + 0.1, fill);
  }
}

/* Marks within the cells: far-faults on the left, evictions on the right. One path for all of a colour. */
static void add_marks(const place *p, const history_map *m, bool faults, ff_text *out) {
  bool open = false;
  double cell = bin_x(p, 1) - bin_x(p, 0), width = fmax(1, fmin(3, 0.4 * cell)),
         within = faults ? width / 2 : fmax(cell - width / 2, width);
  for (uint32_t bin = 0; bin < bins_of(p->h); bin++)
    for (uint32_t row = 0; row < m->rows; row++) {
      const history_cell *c = &m->cells[bin * m->rows + row];
      if (!(faults ? c->faults : c->evicted_bytes)) continue;
      if (!open)
        ff_text_add(out, "<path fill=\"none\" stroke=\"%s\" stroke-width=\"%.1f\" d=\"",
                    faults ? fault_colour : evicted_colour, width);
      ff_text_add(out, "M%.1f %.1fv%.1f", bin_x(p, bin) + within, p->top + row * p->row_height, p->row_height);
      open = true;
    }
  if (open) ff_text_add(out, "\"/>\n");
}

static const sim_allocation_result *allocation_of(const sim_result *r, uint32_t id) {
  for (uint32_t i = 0; i < r->allocation_count; i++)
    if (r->allocations[i].id == id && (r->allocations[i].id || i)) return &r->allocations[i];
  return NULL;
}

static void add_name(const place *p, const sim_result *r, const history_map *m, double height, ff_text *out) {
  const sim_allocation_result *a = allocation_of(r, m->allocation);
  char bytes[32], name[64], size[64], row[32];
  if (a && strlen(a->name) > 26) snprintf(name, sizeof name, "%.23s...", a->name);
  else snprintf(name, sizeof name, "%s", a ? a->name : "an allocation");
  snprintf(size, sizeof size, "%s, rows of %s", ff_format_bytes(a ? a->bytes : m->bytes, bytes, sizeof bytes),
           ff_format_bytes(UINT64_C(1) << m->row_shift, row, sizeof row));
  double y = p->top + height / 2;
  bool two = height >= 30;
  svg_text(out, p->plot->left - 8, y + (two ? -2 : 4), "text-anchor=\"end\" font-size=\"12\"", name);
  if (two) svg_text(out, p->plot->left - 8, y + 13, "text-anchor=\"end\" font-size=\"11\" fill=\"#555\"", size);
  svg_rect(out, p->plot->left, p->top, p->plot->width, height, "fill=\"none\" stroke=\"#888\" stroke-width=\"0.8\"");
}

static bool any_mark(const shown *s, bool faults) {
  for (uint32_t i = 0; i < s->count; i++)
    for (uint32_t c = 0; c < HISTORY_MAP_BINS * s->map[i]->rows; c++)
      if (faults ? s->map[i]->cells[c].faults : s->map[i]->cells[c].evicted_bytes) return true;
  return false;
}

/* The blues with the counts at which they begin. */
static double add_legend(double y, const shown *s, ff_text *out) {
  svg_legend l = {LEFT, y, LEFT, WIDTH - RIGHT};
  svg_text(out, l.x, l.y, "font-size=\"12\"", "warp accesses per cell:");
  l.x += 150;
  uint64_t before = 0;
  for (int i = 0; i < BLUES; i++) {
    uint64_t from = (uint64_t)ceil(pow((double)s->most, (double)i / BLUES) - 1e-9);
    char name[32];
    if (from == before) continue;
    snprintf(name, sizeof name, "%llu", (unsigned long long)from);
    if (i == BLUES - 1 || s->most > from) svg_legend_box(&l, blues[blue_of(from, s->most)], name, out);
    before = from;
  }
  if (s->most) {
    char most[48];
    snprintf(most, sizeof most, "to %llu", (unsigned long long)s->most);
    svg_text(out, l.x - 8, l.y, "font-size=\"12\"", most);
  }
  l.x = l.left;
  l.y += SVG_LEGEND_LINE;
  for (uint32_t i = 0; i < s->count; i++)
    if (s->map[i]->resident) {
      svg_legend_box(&l, resident_colour, "resident, not accessed", out);
      break;
    }
  if (any_mark(s, true)) svg_legend_box(&l, fault_colour, "far-faults", out);
  if (any_mark(s, false)) svg_legend_box(&l, evicted_colour, "evictions", out);
  if (s->left_out) {
    char more[80];
    snprintf(more, sizeof more, "%u further allocations are not drawn", s->left_out);
    svg_text(out, l.x, l.y, "font-size=\"12\" fill=\"#444\"", more);
  }
  return l.y;
}

bool figure_heat(const report_run *run, const sim_result *result, ff_text *out) {
  const sim_history *h = result->history;
  shown s = choose(h);
  if (!s.count) return false;
  double height = -GAP;
  for (uint32_t i = 0; i < s.count; i++) height += s.height[i] + GAP;
  svg_plot plot = {LEFT, TOP, WIDTH - LEFT - RIGHT, height, figure_end(result)};
  ff_text body = {0};
  place p = {.plot = &plot, .h = h, .top = TOP};
  for (uint32_t i = 0; i < s.count; i++) {
    p.row_height = s.height[i] / s.map[i]->rows;
    ff_text_add(&body, "<g shape-rendering=\"crispEdges\">\n");
    for (uint32_t row = 0; row < s.map[i]->rows; row++) add_row(&p, s.map[i], row, s.most, &body);
    ff_text_add(&body, "</g>\n");
    add_marks(&p, s.map[i], true, &body);
    add_marks(&p, s.map[i], false, &body);
    add_name(&p, result, s.map[i], s.height[i], &body);
    p.top += s.height[i] + GAP;
  }
  svg_text_turned(&body, 18, TOP + height / 2, -90, "text-anchor=\"middle\" font-size=\"13\"",
                  "allocations, addresses growing downwards");
  double bottom = add_legend(TOP + height + 60, &s, &body);
  char *title = figure_title(run, result);
  svg_begin(WIDTH, bottom + 16, title, out);
  svg_time_axis(&plot, out);
  ff_text_add_bytes(out, body.chars, body.length);
  svg_end(out);
  free(title);
  free(body.chars);
  return true;
}
