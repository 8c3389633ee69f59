/* SPDX-License-Identifier: Apache-2.0 */
/* One page of one or several reproductions, without scripts: how many rows are met, then for each paper its picture,
 * with the paper's values as black marks, and all rows next to the paper's. Where no paper has such numbers, tables
 * come first: of what two ideas give apart and together, and of each picture's numbers. See reproduce.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "report/plain_page.h"
#include "report/svg.h"
#include "reproduce/repro_private.h"

static const char style[] =
    "tr.yes td.w,td.more{color:#006b4e}tr.no td.w,td.less{color:#a33b00}td.note{color:#555;font-size:13px}"
    "@media print{section{break-before:page}}"
    "@media screen and (prefers-color-scheme:dark){tr.yes td.w,td.more{color:#4cc9a0}tr.no td.w,td.less{color:#ff9d66}"
    "td.note{color:#aab}}"
    /* a narrow screen: letters of a picture keep their size */
    "@media screen and (max-width:700px){td:first-child{min-width:9em}td.note{min-width:14em}svg{min-width:1000px}}";

/* `classes`: of the cell, after that of numbers; "" or " NAME" */
static void add_cell(double value, const char *classes, ff_text *out) {
  ff_text_add(out, "<td class=\"n%s\">", classes);
  if (isnan(value)) ff_text_add(out, "-");
  else ff_text_add(out, fabs(value) >= 1000 ? "%.0f" : "%.3g", value);
  ff_text_add(out, "</td>");
}

static void add_number_cell(double value, ff_text *out) { add_cell(value, "", out); }

/* In colour what is at least 1 % above or below `line`; REPRO_NONE: nothing is. */
static void add_compared_cell(double value, double line, ff_text *out) {
  add_cell(value, value > 1.01 * line ? " more" : value < line / 1.01 ? " less" : "", out);
}

/* ---- where no paper has such numbers ---- */

static bool has_numbers(const repro_paper *paper) {
  for (uint32_t i = 0; i < paper->row_count; i++)
    if (!isnan(paper->rows[i].paper)) return true;
  return false;
}

static double mean_speed(const repro_data *data, repro_mean mean, const char *a, const char *b) {
  repro_row row = {.mean = mean, .quantity = repro_speedup, .a = a, .b = b};
  return repro_value(data, &row, NULL);
}

/* A row of two ideas' speed over the product, whose `a` is "both=one&other". */
static void add_pair(const repro_data *data, const repro_row *row, ff_text *out) {
  ff_text keys = {0}, pair = {0};
  ff_text_add(&keys, "%s", row->a);
  char *one = strchr(keys.chars, '='), *other = one ? strchr(one, '&') : NULL;
  FF_ASSERT(one && other);
  *one++ = *other++ = 0;
  ff_text_add(&pair, "%s", row->name);
  char *measure = strstr(pair.chars, ": speed");
  if (measure) *measure = 0;
  ff_text_add(out, "<tr><td>");
  svg_add_escaped(out, pair.chars);
  ff_text_add(out, "</td>");
  const char *alone[] = {one, other, keys.chars};
  for (int i = 0; i < 3; i++) add_compared_cell(mean_speed(data, REPRO_GEOMETRIC, alone[i], row->b), 1, out);
  static const repro_mean over_product[] = {REPRO_GEOMETRIC, REPRO_LOWEST, REPRO_HIGHEST};
  for (int i = 0; i < 3; i++) add_compared_cell(mean_speed(data, over_product[i], row->a, row->b), 1, out);
  ff_text_add(out, "</tr>\n");
  free(keys.chars);
  free(pair.chars);
}

static void add_pairs(const repro_data *data, ff_text *out) {
  const repro_paper *paper = data->paper;
  bool any = false;
  for (uint32_t i = 0; i < paper->row_count; i++) {
    const repro_row *row = &paper->rows[i];
    if (row->quantity != repro_speedup || row->mean != REPRO_GEOMETRIC || !strchr(row->a, '=')) continue;
    if (!any)
      ff_text_add(out,
                  "<h3>What ideas give apart and together</h3>\n<p>Speed over the base, geometric means; then that "
                  "of both over the product of both apart: 1 is that each gives what it gives alone.</p>\n"
                  "<table><tr><th>pair</th><th class=\"n\">first alone</th><th class=\"n\">second alone</th>"
                  "<th class=\"n\">both</th><th class=\"n\">over the product</th><th class=\"n\">lowest</th>"
                  "<th class=\"n\">highest</th></tr>\n");
    any = true;
    add_pair(data, row, out);
  }
  if (any) ff_text_add(out, "</table>\n");
}

/* A picture's numbers: a line per program, and the mean's. */
static void add_panel(const repro_data *data, const repro_panel *panel, ff_text *out) {
  ff_text_add(out, "<h3>");
  svg_add_escaped(out, panel->title);
  ff_text_add(out, "</h3>\n<p>%s</p>\n<table><tr><th>program</th>", panel->axis);
  for (uint32_t i = 0; i < panel->series_count; i++) {
    ff_text_add(out, "<th class=\"n\">");
    svg_add_escaped(out, panel->series[i].label);
    ff_text_add(out, "</th>");
  }
  ff_text_add(out, "</tr>\n");
  uint32_t programs = data->paper->program_count;
  for (uint32_t p = 0; p < programs + (panel->mean_label != NULL); p++) {
    ff_text_add(out, "<tr><td>%s</td>", p < programs ? data->paper->programs[p].label : panel->mean_label);
    for (uint32_t i = 0; i < panel->series_count; i++) {
      const repro_series *series = &panel->series[i];
      repro_row mean = {.mean = panel->mean, .quantity = panel->quantity, .a = series->a, .b = series->b};
      double value = p < programs ? repro_program_value(data, p, panel->quantity, series->a, series->b)
                                  : repro_value(data, &mean, NULL);
      add_compared_cell(value, panel->line, out);
    }
    ff_text_add(out, "</tr>\n");
  }
  ff_text_add(out, "</table>\n");
}

static void add_own_rows(const repro_data *data, ff_text *out) {
  ff_text_add(out, "<details><summary>all %u rows</summary>\n<table><tr><th>row</th><th class=\"n\">ours</th></tr>\n",
              data->paper->row_count);
  for (uint32_t i = 0; i < data->paper->row_count; i++) {
    ff_text_add(out, "<tr class=\"\"><td>");
    svg_add_escaped(out, data->paper->rows[i].name);
    ff_text_add(out, "</td>");
    add_number_cell(repro_value(data, &data->paper->rows[i], NULL), out);
    ff_text_add(out, "</tr>\n");
  }
  ff_text_add(out, "</table></details>\n");
}

/* ---- next to the paper's ---- */

static void add_row(const repro_data *data, const repro_row *row, ff_text *out) {
  const repro_note *note = repro_note_of(data->paper, row);
  double ours = repro_value(data, row, NULL), score = repro_score(data->paper, row, ours);
  const char *within = repro_within(data->paper, row, score);
  ff_text_add(out, "<tr class=\"%s\"><td>", within);
  svg_add_escaped(out, row->name);
  ff_text_add(out, "</td>");
  add_number_cell(row->paper, out);
  add_number_cell(ours, out);
  add_number_cell(score, out);
  ff_text_add(out, "<td class=\"w\">%s</td><td class=\"note\">", within);
  if (note) svg_add_escaped(out, note->text);
  ff_text_add(out, "</td></tr>\n");
}

static void add_rows(const repro_data *data, ff_text *out) {
  ff_text_add(out, "<table><tr><th>row</th><th class=\"n\">paper</th><th class=\"n\">ours</th><th "
                   "class=\"n\">score</th><th>within 25 %%</th><th>note</th></tr>\n");
  for (uint32_t i = 0; i < data->paper->row_count; i++) add_row(data, &data->paper->rows[i], out);
  ff_text_add(out, "</table>\n");
}

void repro_page_add(repro_page *page, const repro_data *data, repro_size size) {
  const repro_paper *paper = data->paper;
  repro_tally tally = repro_count(data);
  ff_text *summary = &page->summary, *out = &page->sections;
  ff_text_add(summary, "<tr><td><a href=\"#%s\">", paper->name);
  svg_add_escaped(summary, paper->title);
  ff_text_add(summary,
              "</a></td><td>%s</td><td class=\"n\">%u</td><td class=\"n\">%u</td><td class=\"n\">%u</td></tr>\n",
              paper->machine, tally.rows, tally.near, tally.fitted);
  ff_text_add(out, "<section id=\"%s\"><h2>", paper->name);
  svg_add_escaped(out, paper->title);
  ff_text_add(out, "</h2>\n<p><code>farfault reproduce %s%s%s</code></p>\n", paper->name,
              size == REPRO_NORMAL ? "" : " --size ", size == REPRO_NORMAL ? "" : repro_size_names[size]);
  bool compared = has_numbers(paper);
  if (size == REPRO_SMALL)
    ff_text_add(out,
                "<p>The programs are small ones, of seconds: their numbers show that all runs, not what larger ones "
                "have.</p>\n");
  if (!compared) add_pairs(data, out);
  ff_text_add(out, "<div class=\"picture\">");
  repro_svg(data, size, out);
  ff_text_add(out, "</div>\n");
  if (compared) {
    add_rows(data, out);
  } else {
    for (uint32_t i = 0; i < paper->panel_count; i++) add_panel(data, &paper->panels[i], out);
    add_own_rows(data, out);
  }
  ff_text_add(out, "</section>\n");
}

void repro_page_write(const repro_page *page, ff_text *out) {
  plain_page_begin("farfault reproduce", "Papers' numbers and ours", style, out);
  ff_text_add(out,
              "<p>The score is ours over the paper's in what the row claims: a value; the gain, what differs from "
              "1; or an order, which holds or does not. Rows with what was put in (fitted) do not count.</p>\n"
              "<table><tr><th>paper</th><th>machine</th><th class=\"n\">rows that count</th><th class=\"n\">within "
              "25 %%</th><th class=\"n\">fitted</th></tr>\n");
  ff_text_add_bytes(out, page->summary.chars, page->summary.length);
  ff_text_add(out, "</table>\n");
  ff_text_add_bytes(out, page->sections.chars, page->sections.length);
  plain_page_end(out);
}

void repro_page_free(repro_page *page) {
  free(page->summary.chars);
  free(page->sections.chars);
  *page = (repro_page){0};
}
