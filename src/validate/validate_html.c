/* SPDX-License-Identifier: Apache-2.0 */
/* Scores and rows as one page without scripts: a table, per group a picture of all rows (silicon across, ours up, both
 * logarithmic), and per group and GPU the curves over x. Every dot says which row it is. See validate.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/plain_page.h"
#include "report/svg.h"
#include "validate/validate.h"

static const double LEAST = 1e-300, MOST = 1e300; /* of an axis: twice as much, or half, is a number, too */

enum { TICKS = 12, SIDE = 420, WIDE = 640, LEFT = 76, TOP = 36, RIGHT = 16, BOTTOM = 56, SERIES = 16 };

static void begin_picture(double width, double height, const char *title, ff_text *out) {
  ff_text_add(out, "<div class=\"picture\">");
  svg_begin(width, height, title, out);
}

static void end_picture(ff_text *out) {
  svg_end(out);
  ff_text_add(out, "</div>\n");
}

/* ---- axes ---- */

typedef struct range { /* of a logarithmic axis, or of a linear one */
  double low, high;
  bool linear;
  double from, to; /* pixels of low and high */
} range;

static double place(const range *r, double value) {
  double low = r->low, high = r->high;
  if (!r->linear) value = log10(value), low = log10(low), high = log10(high);
  double share = (value - low) / (high - low);
  return r->from + (r->to - r->from) * share;
}

static void widen(range *r, double value) {
  if (isnan(value) || (!r->linear && value <= 0)) return;
  r->low = fmin(r->low, value);
  r->high = fmax(r->high, value);
}

/* A little room at both ends. */
static void settle(range *r) {
  if (!(r->high >= r->low)) r->low = r->high = 1;
  r->low = fmin(fmax(r->low, r->linear ? -MOST : LEAST), MOST);
  r->high = fmin(fmax(r->high, r->low), MOST);
  if (r->linear) {
    r->low = fmin(r->low, 0);
    r->high = r->high - r->low > LEAST ? r->high + 0.05 * (r->high - r->low) : r->low + 1;
  } else {
    r->low /= 1.2;
    r->high *= 1.2;
  }
}

static void add_tick(const range *r, double value, bool across, double end, ff_text *out) {
  char label[32];
  double at = place(r, value);
  snprintf(label, sizeof label, "%.8g", value);
  if (across) {
    svg_line(out, at, TOP, at, end, "stroke=\"#ddd\"");
    svg_text(out, at, end + 16, "text-anchor=\"middle\" font-size=\"11\"", label);
  } else {
    svg_line(out, LEFT, at, end, at, "stroke=\"#ddd\"");
    svg_text(out, LEFT - 6, at + 4, "text-anchor=\"end\" font-size=\"11\"", label);
  }
}

/* Ticks at 1, 2 and 5 times powers of ten, at powers of ten alone or at some of them where there are many. */
static void add_axis(const range *r, bool across, double end, ff_text *out) {
  static const double parts[] = {1, 2, 5};
  if (r->linear) {
    double step = svg_step(r->high);
    for (int i = 0; i * step <= r->high; i++) add_tick(r, i * step, across, end, out);
    return;
  }
  double decades = log10(r->high) - log10(r->low);
  int step = 1 + (int)decades / TICKS, most = (int)floor(log10(r->high));
  for (int power = (int)floor(log10(r->low)); power <= most; power += step)
    for (int i = 0; i < (decades > 3 ? 1 : 3); i++) {
      double value = pow(10, power) * parts[i];
      if (value >= r->low && value <= r->high) add_tick(r, value, across, end, out);
    }
}

static void add_dot(double x, double y, bool filled, const char *colour, const validate_row *row, ff_text *out) {
  ff_text_add(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" stroke=\"%s\" fill=\"%s\"><title>", x, y, colour,
              filled ? colour : "none");
  svg_add_escaped(out, row->row);
  ff_text_add(out, ", %s: silicon %.4g, ours %.4g %s%s%s</title></circle>\n", row->gpu, row->measured, row->ours,
              row->unit, row->is == VALIDATE_HELD ? "" : ", ", row->is == VALIDATE_HELD ? "" : row->role);
}

/* ---- all rows of a group ---- */

static bool drawn(const validate_row *row, const char *group) { return !strcmp(row->group, group) && row->ours > 0; }

/* The number of the row's GPU among those of its group. */
static uint32_t gpu_number(const validate_scores *scores, const validate_row *row) {
  uint32_t number = 0;
  for (size_t i = 0; i < scores->list.count; i++) {
    if (validate_scored_by(&scores->list.items[i], row)) return number;
    number += !strcmp(scores->list.items[i].group, row->group);
  }
  return number;
}

static void add_scatter(const validate_table *table, const validate_scores *scores, const char *group, ff_text *out) {
  range x = {.low = INFINITY, .high = -INFINITY, .from = LEFT, .to = SIDE - RIGHT}, y;
  for (size_t i = 0; i < table->rows.count; i++) {
    const validate_row *row = &table->rows.items[i];
    if (!drawn(row, group)) continue;
    widen(&x, row->measured);
    widen(&x, row->ours);
  }
  settle(&x);
  y = x;
  y.from = SIDE - BOTTOM, y.to = TOP;
  begin_picture(SIDE, SIDE + 30, group, out);
  add_axis(&x, true, SIDE - BOTTOM, out);
  add_axis(&y, false, SIDE - RIGHT, out);
  svg_line(out, x.from, y.from, x.to, y.to, "stroke=\"#888\" stroke-dasharray=\"4 3\"");
  svg_text(out, SIDE / 2.0, SIDE - BOTTOM + 34, "text-anchor=\"middle\" font-size=\"12\"", "silicon");
  svg_text_turned(out, 16, SIDE / 2.0, -90, "text-anchor=\"middle\" font-size=\"12\"", "ours");
  for (size_t i = 0; i < table->rows.count; i++) {
    const validate_row *row = &table->rows.items[i];
    if (drawn(row, group))
      add_dot(place(&x, row->measured), place(&y, row->ours), row->is == VALIDATE_HELD,
              svg_colours[gpu_number(scores, row) % SVG_COLOURS], row, out);
  }
  svg_legend legend = {.x = LEFT, .y = SIDE - 4, .left = LEFT, .right = SIDE};
  for (size_t i = 0, number = 0; i < scores->list.count; i++)
    if (!strcmp(scores->list.items[i].group, group))
      svg_legend_box(&legend, svg_colours[number++ % SVG_COLOURS], scores->list.items[i].gpu, out);
  end_picture(out);
}

/* ---- curves ---- */

/* The name of the row's curve: what stands in front of a colon. */
static size_t curve_length(const validate_row *row) {
  const char *colon = strchr(row->row, ':');
  return colon ? (size_t)(colon - row->row) : 0;
}

static bool same_curve(const validate_row *a, const validate_row *b) {
  return curve_length(a) == curve_length(b) && !memcmp(a->row, b->row, curve_length(a));
}

typedef struct curves { /* of a group on one GPU */
  const validate_table *table;
  const validate_score *score;
  const validate_row *first[SERIES]; /* of each curve */
  uint32_t count;
  range x, y;
} curves;

static bool on_curve(const curves *c, const validate_row *row) {
  return validate_scored_by(c->score, row) && !isnan(row->at);
}

static bool find_curves(curves *c) {
  uint32_t points = 0;
  for (size_t i = 0; i < c->table->rows.count; i++) {
    const validate_row *row = &c->table->rows.items[i];
    bool known = c->count == SERIES;
    if (!on_curve(c, row)) continue;
    for (uint32_t k = 0; k < c->count; k++) known = known || same_curve(c->first[k], row);
    if (!known) c->first[c->count++] = row;
    if (row->at <= 0) c->x.linear = true;
    points++;
  }
  for (size_t i = 0; i < c->table->rows.count; i++) {
    const validate_row *row = &c->table->rows.items[i];
    if (!on_curve(c, row)) continue;
    widen(&c->x, row->at);
    widen(&c->y, row->measured);
    widen(&c->y, row->ours);
  }
  settle(&c->x);
  settle(&c->y);
  return points > 2;
}

static void add_line(const curves *c, uint32_t series, bool ours, ff_text *out) {
  bool open = false;
  for (size_t i = 0; i < c->table->rows.count; i++) {
    const validate_row *row = &c->table->rows.items[i];
    double value = ours ? row->ours : row->measured;
    if (!on_curve(c, row) || !same_curve(c->first[series], row) || !(value > 0)) continue;
    ff_text_add(out, "%s%.1f,%.1f", open ? " " : "<polyline points=\"", place(&c->x, row->at), place(&c->y, value));
    open = true;
  }
  if (open)
    ff_text_add(out, "\" fill=\"none\" stroke=\"%s\" stroke-width=\"1.5\"%s/>\n", svg_colours[series % SVG_COLOURS],
                ours ? "" : " stroke-dasharray=\"5 3\"");
}

static void add_dots(const curves *c, uint32_t series, ff_text *out) {
  for (size_t i = 0; i < c->table->rows.count; i++) {
    const validate_row *row = &c->table->rows.items[i];
    if (on_curve(c, row) && same_curve(c->first[series], row) && row->ours > 0)
      add_dot(place(&c->x, row->at), place(&c->y, row->ours), row->is == VALIDATE_HELD,
              svg_colours[series % SVG_COLOURS], row, out);
  }
}

static void add_names(const curves *c, ff_text *out) {
  svg_legend legend = {.x = LEFT, .y = SIDE - 6, .left = LEFT, .right = WIDE};
  svg_legend_line(&legend, "stroke=\"#444\"", "ours", out);
  svg_legend_line(&legend, "stroke=\"#444\" stroke-dasharray=\"5 3\"", "silicon", out);
  for (uint32_t i = 0; i < c->count && curve_length(c->first[i]); i++) {
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)curve_length(c->first[i]), c->first[i]->row);
    svg_legend_box(&legend, svg_colours[i % SVG_COLOURS], name, out);
  }
}

static void add_curves(const validate_table *table, const validate_score *score, ff_text *out) {
  curves c = {.table = table,
              .score = score,
              .x = {.low = INFINITY, .high = -INFINITY, .from = LEFT, .to = WIDE - RIGHT},
              .y = {.low = INFINITY, .high = -INFINITY, .from = SIDE - BOTTOM, .to = TOP}};
  char title[128];
  if (!find_curves(&c)) return;
  snprintf(title, sizeof title, "%s, %s, %s", score->group, score->gpu, c.first[0]->unit);
  begin_picture(WIDE, SIDE + 40, title, out);
  add_axis(&c.x, true, SIDE - BOTTOM, out);
  add_axis(&c.y, false, WIDE - RIGHT, out);
  for (uint32_t i = 0; i < c.count; i++) {
    add_line(&c, i, false, out);
    add_line(&c, i, true, out);
    add_dots(&c, i, out);
  }
  add_names(&c, out);
  end_picture(out);
}

/* ---- the page ---- */

static void add_number_cell(const char *format, double value, ff_text *out) {
  ff_text_add(out, "<td class=\"n\">");
  if (isnan(value)) ff_text_add(out, "-");
  else {
    char text[48];
    snprintf(text, sizeof text, format, value);
    ff_text_add(out, "%s", text);
  }
  ff_text_add(out, "</td>");
}

static void add_text_cell(const char *text, ff_text *out) {
  ff_text_add(out, "<td>");
  svg_add_escaped(out, text);
  ff_text_add(out, "</td>");
}

static void add_score(const validate_score *score, ff_text *out) {
  ff_text_add(out, "<tr>");
  add_text_cell(score->group, out);
  add_text_cell(score->gpu, out);
  add_text_cell(score->machine, out);
  add_number_cell("%.0f", score->scored, out);
  add_number_cell("%.2f", score->ratio, out);
  add_number_cell("%.1f %%", 100 * score->error, out);
  add_number_cell("%.2f", score->correlation, out);
  ff_text_add(out, "</tr>\n");
}

static void add_goal(const validate_table *table, const validate_goal *goal, ff_text *out) {
  validate_attainment a = validate_attained(table, goal);
  bool error = goal->of == VALIDATE_ERROR;
  ff_text_add(out, "<tr>");
  add_text_cell(goal->goal, out);
  ff_text_add(out, "<td class=\"n\">%u of %u</td>", a.scored, goal->held);
  add_text_cell(goal->before, out);
  add_number_cell(error ? "%.1f %%" : "%.3f", error ? 100 * a.now : a.now, out);
  add_number_cell(error ? "&le; %g %%" : "&ge; %g", error ? 100 * goal->wanted : goal->wanted, out);
  add_text_cell(validate_verdict_names[a.verdict], out);
  ff_text_add(out, "</tr>\n");
}

static void add_goals(const validate_table *table, ff_text *out) {
  if (!table->goals.count) return;
  ff_text_add(out,
              "<h2>Goals</h2>\n<table><tr><th>goal</th><th class=\"n\">held rows with a value</th><th>before</th><th "
              "class=\"n\">now</th><th class=\"n\">wanted</th><th>met</th></tr>\n");
  for (size_t i = 0; i < table->goals.count; i++) add_goal(table, &table->goals.items[i], out);
  ff_text_add(out, "</table>\n");
}

/* Whether the score is the first one of its group. */
static bool opens_group(const validate_scores *scores, size_t at) {
  for (size_t i = 0; i < at; i++)
    if (!strcmp(scores->list.items[i].group, scores->list.items[at].group)) return false;
  return true;
}

void validate_html(const validate_table *table, const validate_scores *scores, const validate_page *page,
                   ff_text *out) {
  plain_page_begin("farfault validate", "Simulated numbers and measured ones", "", out);
  ff_text_add(out, "<p><code>");
  svg_add_escaped(out, page->command);
  ff_text_add(out, "</code></p>\n<table><tr><th>group</th><th>GPU</th><th>machine</th><th class=\"n\">rows</th><th "
                   "class=\"n\">ratio</th><th class=\"n\">error</th><th class=\"n\">correlation</th></tr>\n");
  for (size_t i = 0; i < scores->list.count; i++) add_score(&scores->list.items[i], out);
  ff_text_add(
      out,
      "</table>\n<p>ratio: the geometric mean of ours/silicon; error: the mean of |ours/silicon - 1|; correlation: of the logarithms. A "
      "dot is a row, and names it. Rows that are not scored have empty dots. On the dashed diagonal ours is "
      "silicon's.</p>\n");
  add_goals(table, out);
  for (size_t i = 0; i < scores->list.count; i++) {
    const validate_score *score = &scores->list.items[i];
    if (!opens_group(scores, i)) continue;
    ff_text_add(out, "<h2>");
    svg_add_escaped(out, score->group);
    ff_text_add(out, "</h2>\n");
    add_scatter(table, scores, score->group, out);
    for (size_t k = i; k < scores->list.count; k++)
      if (!strcmp(scores->list.items[k].group, score->group)) add_curves(table, &scores->list.items[k], out);
  }
  plain_page_end(out);
}
