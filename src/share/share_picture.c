/* SPDX-License-Identifier: Apache-2.0 */
/* The pictures of programs side by side: bars with whiskers that compare the isolations, below them the matrix of each
 * as squares.
 *
 * A square's colour is its value over none on one scale for all isolations; the number stands in
 * it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "report/bars.h"
#include "report/svg.h"
#include "share/share_private.h"

enum { WIDTH = 1100, LEFT = 130, CELL_HEIGHT = 30, CELL_MAX = 70, GAP = 24, HEAD = 56, VALUE = 90 };

/* ---- the bars ---- */

/* One program under one isolation: with idle neighbours; the whisker over its times with interferers. */
static void fill_bar(const share_matrix *m, uint32_t isolation, uint32_t a, bars_panel *p) {
  uint32_t at = a * m->isolation_count + isolation;
  p->ours[at] = share_normalised(m, isolation, a, 0);
  p->paper[at] = p->low[at] = p->high[at] = NAN;
  for (uint32_t column = 1; column <= m->interferer_count; column++) {
    double value = share_normalised(m, isolation, a, column);
    if (isnan(value)) continue;
    p->low[at] = fmin(p->low[at], value);
    p->high[at] = fmax(p->high[at], value);
  }
}

static void add_bars(const share_matrix *m, bars_panel *p) {
  uint32_t cells = m->measured_count * m->isolation_count;
  *p = (bars_panel){
      .title =
          "kernel time over what the share promises: beside idle neighbours (bar), beside each interferer (whisker)",
      .axis = "normalised time",
      .group_count = m->measured_count,
      .series_count = m->isolation_count,
      .line = 1,
      .line_label = "time alone / share",
      .whisker_label = "from the least to the most beside an interferer"};
  p->groups = ff_alloc(m->measured_count * sizeof *p->groups);
  p->series = ff_alloc(m->isolation_count * sizeof *p->series);
  p->ours = ff_alloc(cells * sizeof *p->ours);
  p->paper = ff_alloc(cells * sizeof *p->paper);
  p->low = ff_alloc(cells * sizeof *p->low);
  p->high = ff_alloc(cells * sizeof *p->high);
  for (uint32_t i = 0; i < m->isolation_count; i++) p->series[i] = share_isolation_name(m->isolations[i]);
  for (uint32_t a = 0; a < m->measured_count; a++) {
    p->groups[a] = share_measured_label(m, a);
    for (uint32_t i = 0; i < m->isolation_count; i++) fill_bar(m, i, a, p);
  }
}

static void free_bars(bars_panel *p) {
  free(p->groups);
  free(p->series);
  free(p->ours);
  free(p->paper);
  free(p->low);
  free(p->high);
}

/* ---- the matrices ---- */

/* From white (as with idle neighbours) to red (three times as long and more); below none: a light blue. */
static void colour_of(double over, char colour[8]) {
  double share = fmax(0, fmin(1, log(over) / log(3)));
  if (over < 0.995) snprintf(colour, 8, "#d6e6f5");
  else
    snprintf(colour, 8, "#%02x%02x%02x", (unsigned)lround(255 - 42 * share), (unsigned)lround(255 - 161 * share),
             (unsigned)lround(255 - 255 * share));
}

static void add_square(double over, double x, double y, double width, ff_text *out) {
  char colour[8] = "#eee", style[64], text[32] = "-";
  if (!isnan(over)) {
    colour_of(over, colour);
    snprintf(text, sizeof text, "%.2f", over);
  }
  snprintf(style, sizeof style, "fill=\"%s\" stroke=\"#fff\"", colour);
  svg_rect(out, x, y, width, CELL_HEIGHT, style);
  svg_text(out, x + width / 2, y + CELL_HEIGHT / 2.0 + 4, "text-anchor=\"middle\" font-size=\"12\"", text);
}

static void cut(const char *text, size_t limit, char *out) {
  snprintf(out, limit + 1, "%s", text);
  for (size_t i = 0; out[i]; i++)
    if (i + 2 >= limit) out[i] = '.';
}

/* Several matrices fit next to each other. */
typedef struct grid {
  double square, block, height;
  uint32_t per_row;
} grid;

static grid make_grid(const share_matrix *m) {
  grid g = {.height = HEAD + CELL_HEIGHT * m->measured_count + GAP};
  g.square = fmin(CELL_MAX, (double)(WIDTH - LEFT - VALUE) / m->interferer_count);
  g.block = fmax(LEFT + g.square * m->interferer_count + VALUE, WIDTH / 3.0);
  g.per_row = (uint32_t)(WIDTH / g.block + 1e-9);
  return g;
}

static void add_matrix(const share_matrix *m, uint32_t isolation, const grid *g, double x, double y, ff_text *out) {
  double left = x + LEFT, right = left + g->square * m->interferer_count + 12;
  char name[32], value[32];
  svg_text(out, x + 20, y + 18, "font-size=\"15\" font-weight=\"bold\"",
           share_isolation_name(m->isolations[isolation]));
  for (uint32_t column = 1; column <= m->interferer_count; column++) {
    cut(share_column_label(m, column), (size_t)fmin(g->square / 7, 30), name);
    svg_text(out, left + g->square * (column - 0.5), y + 44, "text-anchor=\"middle\" font-size=\"12\"", name);
  }
  svg_text(out, right, y + 44, "font-size=\"12\"", "variation");
  for (uint32_t a = 0; a < m->measured_count; a++) {
    double top = y + HEAD + CELL_HEIGHT * a, variation = share_variation(m, isolation, a, NULL);
    cut(share_measured_label(m, a), 16, name);
    svg_text(out, left - 10, top + CELL_HEIGHT / 2.0 + 4, "text-anchor=\"end\" font-size=\"12\"", name);
    for (uint32_t column = 1; column <= m->interferer_count; column++)
      add_square(share_over_none(m, isolation, a, column), left + g->square * (column - 1), top, g->square, out);
    snprintf(value, sizeof value, isnan(variation) ? "-" : "%.1f %%", share_percent(variation));
    svg_text(out, right, top + CELL_HEIGHT / 2.0 + 4, "font-size=\"12\"", value);
  }
}

/* Returns where they end. */
static double add_matrices(const share_matrix *m, double y, ff_text *out) {
  if (!m->interferer_count) return y;
  grid g = make_grid(m);
  svg_text(out, 20, y + 18, "font-size=\"15\" font-weight=\"bold\"",
           "kernel time beside each interferer over that beside idle neighbours");
  y += 34;
  for (uint32_t i = 0; i < m->isolation_count; i++)
    add_matrix(m, i, &g, g.block * (i % g.per_row), y + g.height * (i / g.per_row), out);
  return y + g.height * ((m->isolation_count + g.per_row - 1) / g.per_row);
}

void share_matrix_svg(const share_matrix *m, const char *below, ff_text *out) {
  bars_panel panel;
  ff_text title = {0}, body = {0};
  share_heading(m, &title);
  add_bars(m, &panel);
  double y = bars_add(&panel, 1, 34, &body);
  y = add_matrices(m, y, &body);
  svg_begin(WIDTH, y + 26, title.chars, out);
  ff_text_add_bytes(out, body.chars, body.length);
  svg_text(out, 20, y + 10, "font-size=\"12\" fill=\"#444\"", below);
  svg_end(out);
  free_bars(&panel);
  free(title.chars);
  free(body.chars);
}
