/* SPDX-License-Identifier: Apache-2.0 */
/* What `farfault bench managed` prints: the table, CSV, JSON, the picture; the paper's columns stand next to ours.
 *
 * Wilt's tables call microseconds ms, and GP100's row of 4 KB prints 7 MB/s where its time gives 87; a rate is bytes
 * over time here. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "bench/managed.h"
#include "report/bars.h"
#include "report/table.h"

static const double paper_gm200[MANAGED_SIZES] = {47,  105,  104,  115,  134,  213,   381,
                                                  649, 1247, 2221, 4712, 8458, 17041, 33992};
static const double paper_gp100[MANAGED_SIZES] = {39,    47.15,  49.86,  57.84,  59.04,  64.73,   79.08,
                                                  98.41, 137.15, 205.56, 391.91, 745.81, 1543.91, 3114.83};

static uint32_t kilobytes(uint32_t size) { return managed_pages(size) * (MANAGED_PAGE / 1024); }
/* MB/s */
static double rate(uint32_t size, double microseconds) {
  return managed_pages(size) * (double)MANAGED_PAGE / microseconds;
}

static void time_cell(table *t, uint32_t size, double microseconds) {
  if (!size) table_cell(t, "%.2f", microseconds);
  else table_cell(t, "%.2f (%.0f)", microseconds, rate(size, microseconds));
}

static void write_series(const managed_report *report, bool touched, ff_text *out) {
  table t;
  char align[MANAGED_WAYS + 4] = "r";
  uint32_t columns = 1;
  if (touched) {
    align[columns++] = 'r';
    align[columns++] = 'r';
  }
  for (uint32_t way = 0; way < MANAGED_WAYS; way++)
    if (report->times[way].known) align[columns++] = 'r';
  table_start(&t, align);
  table_cell(&t, "KiB");
  if (touched) {
    table_cell(&t, "paper, GM200");
    table_cell(&t, "paper, GP100");
  }
  for (uint32_t way = 0; way < MANAGED_WAYS; way++)
    if (report->times[way].known) table_cell(&t, "%s", managed_ways[way].name);
  for (uint32_t size = 0; size < MANAGED_SIZES; size++) {
    table_cell(&t, "%u", kilobytes(size));
    if (touched) {
      time_cell(&t, size, paper_gm200[size]);
      time_cell(&t, size, paper_gp100[size]);
    }
    for (uint32_t way = 0; way < MANAGED_WAYS; way++) {
      const managed_times *times = &report->times[way];
      if (!times->known) continue;
      if (touched) time_cell(&t, size, times->touched[size]);
      else table_cell(&t, "%.2f", times->untouched[size]);
    }
  }
  table_write(&t, 0, out);
  table_free(&t);
}

void managed_table(const managed_report *report, ff_text *out) {
  ff_text_add(out, "A null kernel, a synchronisation, and a byte written in each page, on %s: us per turn (MB/s)\n",
              report->machine);
  write_series(report, true, out);
  ff_text_add(out, "\nThe same without touching: us per turn\n");
  write_series(report, false, out);
  ff_text_add(out, "\nThe mean of %u turns after two. A turn, in addition to the launch, the wait and the touching:\n",
              report->turns);
  for (uint32_t way = 0; way < MANAGED_WAYS; way++)
    if (report->times[way].known) ff_text_add(out, "  %-12s %s\n", managed_ways[way].name, managed_ways[way].help);
}

void managed_csv(const managed_report *report, ff_text *out) {
  ff_text_add(out, "way,pages,bytes,touched_us,untouched_us\n");
  for (uint32_t way = 0; way < MANAGED_WAYS; way++)
    for (uint32_t size = 0; size < MANAGED_SIZES && report->times[way].known; size++)
      ff_text_add(out, "%s,%u,%u,%.6f,%.6f\n", managed_ways[way].key, managed_pages(size),
                  managed_pages(size) * MANAGED_PAGE, report->times[way].touched[size],
                  report->times[way].untouched[size]);
  for (uint32_t size = 0; size < MANAGED_SIZES; size++)
    ff_text_add(out, "paper_gm200,%u,%u,%.2f,\npaper_gp100,%u,%u,%.2f,\n", managed_pages(size),
                managed_pages(size) * MANAGED_PAGE, paper_gm200[size], managed_pages(size),
                managed_pages(size) * MANAGED_PAGE, paper_gp100[size]);
}

static json_t *numbers(const double *values) {
  json_t *array = json_array();
  for (uint32_t size = 0; size < MANAGED_SIZES; size++) json_array_append_new(array, json_real(values[size]));
  return array;
}

static int add_chunk(const char *bytes, size_t size, void *out) {
  ff_text_add_bytes(out, bytes, size);
  return 0;
}

void managed_json(const managed_report *report, ff_text *out) {
  json_t *root = json_object(), *ways = json_object(), *pages = json_array(), *paper = json_object();
  for (uint32_t size = 0; size < MANAGED_SIZES; size++) json_array_append_new(pages, json_integer(managed_pages(size)));
  json_object_set_new(root, "machine", json_string(report->machine));
  json_object_set_new(root, "turns", json_integer(report->turns));
  json_object_set_new(root, "pages", pages);
  json_object_set_new(paper, "gm200_us", numbers(paper_gm200));
  json_object_set_new(paper, "gp100_us", numbers(paper_gp100));
  json_object_set_new(root, "paper", paper);
  for (uint32_t way = 0; way < MANAGED_WAYS; way++) {
    if (!report->times[way].known) continue;
    json_t *one = json_object();
    json_object_set_new(one, "touched_us", numbers(report->times[way].touched));
    json_object_set_new(one, "untouched_us", numbers(report->times[way].untouched));
    json_object_set_new(ways, managed_ways[way].key, one);
  }
  json_object_set_new(root, "ways", ways);
  json_dump_callback(root, add_chunk, out, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
  ff_text_add(out, "\n");
  json_decref(root);
}

/* ---- the picture ---- */

static bars_panel new_panel(const managed_report *report, const char *title, const char *axis) {
  bars_panel panel = {.title = title, .axis = axis, .logarithmic = true, .line = NAN};
  panel.groups = ff_alloc(MANAGED_SIZES * sizeof *panel.groups);
  panel.series = ff_alloc(MANAGED_WAYS * sizeof *panel.series);
  panel.ours = ff_alloc(MANAGED_SIZES * MANAGED_WAYS * sizeof *panel.ours);
  panel.paper = ff_alloc(MANAGED_SIZES * MANAGED_WAYS * sizeof *panel.paper);
  for (uint32_t way = 0; way < MANAGED_WAYS; way++)
    if (report->times[way].known) panel.series[panel.series_count++] = managed_ways[way].name;
  return panel;
}

static void fill_panel(const managed_report *report, bars_panel *panel, char names[][16], bool rates, bool touched) {
  const double *paper = report->paper_gm200 ? paper_gm200 : paper_gp100;
  for (uint32_t size = rates ? 1 : 0; size < MANAGED_SIZES; size++) {
    uint32_t at = panel->group_count * panel->series_count;
    snprintf(names[size], sizeof names[size], "%u KiB", kilobytes(size));
    panel->groups[panel->group_count++] = names[size];
    for (uint32_t way = 0; way < MANAGED_WAYS; way++) {
      const managed_times *times = &report->times[way];
      if (!times->known) continue;
      double us = touched ? times->touched[size] : times->untouched[size];
      panel->ours[at] = rates ? rate(size, us) : us;
      panel->paper[at] = NAN;
      if (way == MANAGED_MANAGED && touched) panel->paper[at] = rates ? rate(size, paper[size]) : paper[size];
      at++;
    }
  }
}

void managed_svg(const managed_report *report, ff_text *out) {
  char names[3][MANAGED_SIZES][16];
  ff_text below = {0};
  bars_panel panels[3] = {
      new_panel(report, "A null kernel, a synchronisation, and a byte written in each page", "us per turn"),
      new_panel(report, "The same as bandwidth", "MB/s"), new_panel(report, "Without touching", "us per turn")};
  for (int i = 0; i < 3; i++) fill_panel(report, &panels[i], names[i], i == 1, i != 2);
  ff_text_add(&below, "bars: %s, on %s; black marks: Wilt 2017, managed memory on %s", report->command, report->machine,
              report->paper_gm200 ? "GM200" : "GP100");
  bars_write("Memory on both sides: managed, copied, segments", below.chars, panels, 3, out);
  for (int i = 0; i < 3; i++) {
    free(panels[i].groups);
    free(panels[i].series);
    free(panels[i].ours);
    free(panels[i].paper);
  }
  free(below.chars);
}
