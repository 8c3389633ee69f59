/* SPDX-License-Identifier: Apache-2.0 */
/* One page of one or several reproductions, without scripts: how many rows are met, then for each paper its picture,
 * with the paper's values as black marks, and all rows next to the paper's. See reproduce.h. */
#include <stdio.h>
#include <stdlib.h>

#include "report/svg.h"
#include "reproduce/repro_private.h"

static const char style[] =
    "<style>body{font:15px/1.45 system-ui,sans-serif;max-width:1120px;margin:2em auto;padding:0 1em;color:#222}"
    "table{border-collapse:collapse;margin:1em 0}td,th{padding:.15em .8em;border-bottom:1px solid #ddd;text-align:left;"
    "vertical-align:top}td.n,th.n{text-align:right;white-space:nowrap}tr.yes td.w{color:#006b4e}tr.no "
    "td.w{color:#a33b00}td.note{color:#555;font-size:13px}code{background:#f3f3f3;padding:.1em .3em}"
    "svg{max-width:100%;height:auto;margin:.5em 0}@media print{section{break-before:page}}</style>\n";

static void add_number_cell(double value, ff_text *out) {
  ff_text_add(out, "<td class=\"n\">");
  if (isnan(value)) ff_text_add(out, "-");
  else ff_text_add(out, fabs(value) >= 1000 ? "%.0f" : "%.3g", value);
  ff_text_add(out, "</td>");
}

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
  repro_svg(data, size, out);
  ff_text_add(out, "<table><tr><th>row</th><th class=\"n\">paper</th><th class=\"n\">ours</th><th "
                   "class=\"n\">score</th><th>within 25 %%</th><th>note</th></tr>\n");
  for (uint32_t i = 0; i < paper->row_count; i++) add_row(data, &paper->rows[i], out);
  ff_text_add(out, "</table></section>\n");
}

void repro_page_write(const repro_page *page, ff_text *out) {
  ff_text_add(out,
              "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>farfault reproduce</title>\n");
  ff_text_add(out, "%s", style);
  ff_text_add(out,
              "</head><body>\n<h1>Papers' numbers and ours</h1>\n"
              "<p>The score is ours over the paper's in what the row claims: a value; the gain, what differs from "
              "1; or an order, which holds or does not. Rows with what was put in (fitted) do not count.</p>\n"
              "<table><tr><th>paper</th><th>machine</th><th class=\"n\">rows that count</th><th class=\"n\">within "
              "25 %%</th><th class=\"n\">fitted</th></tr>\n");
  ff_text_add_bytes(out, page->summary.chars, page->summary.length);
  ff_text_add(out, "</table>\n");
  ff_text_add_bytes(out, page->sections.chars, page->sections.length);
  ff_text_add(out, "</body></html>\n");
}

void repro_page_free(repro_page *page) {
  free(page->summary.chars);
  free(page->sections.chars);
  *page = (repro_page){0};
}
