/* SPDX-License-Identifier: Apache-2.0 */
/* A reproduction as text: CSV, JSON, the table for people, and the values that its pictures show.
 *
 * The same measurements give the same bytes; an absent number is empty in CSV, null in JSON and "-"
 * in the table; the paper's value next to a bar is that of the row with the same formula. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "report/bars.h"
#include "report/table.h"
#include "reproduce/repro_private.h"

static const char *number(double value, const char *absent, char *buffer, size_t size) {
  if (isnan(value)) snprintf(buffer, size, "%s", absent);
  else snprintf(buffer, size, "%.6g", value);
  return buffer;
}

const char *repro_within(const repro_paper *paper, const repro_row *row, double score) {
  const repro_note *note = repro_note_of(paper, row);
  if (isnan(score)) return "";
  if (note && note->fitted) return "fitted";
  return repro_near(paper, row, score) ? "yes" : "no";
}

static void csv_word(const char *word, ff_text *out) { /* words hold no quotes */
  bool quoted = strchr(word, ',') != NULL;
  ff_text_add(out, "%s%s%s", quoted ? "\"" : "", word, quoted ? "\"" : "");
}

void repro_csv(const repro_data *data, ff_text *out) {
  ff_text_add(out, "row,paper,ours,ratio,claim,score,within,note\n");
  for (uint32_t i = 0; i < data->paper->row_count; i++) {
    const repro_row *row = &data->paper->rows[i];
    const repro_note *note = repro_note_of(data->paper, row);
    char paper[32], ours[32], ratio[32], scored[32];
    double value = repro_value(data, row, NULL), score = repro_score(data->paper, row, value);
    csv_word(row->name, out);
    ff_text_add(out, ",%s,%s,%s,%s,%s,%s,", number(row->paper, "", paper, sizeof paper),
                number(value, "", ours, sizeof ours), number(repro_ratio(row->paper, value), "", ratio, sizeof ratio),
                isnan(row->paper) ? "" : repro_claim_names[repro_claim_of(data->paper, row)],
                number(score, "", scored, sizeof scored), repro_within(data->paper, row, score));
    if (note) csv_word(note->text, out);
    ff_text_add(out, "\n");
  }
}

static json_t *real_or_null(double value) { return isnan(value) ? json_null() : json_real(value); }

static json_t *rows_value(const repro_data *data) {
  json_t *rows = json_array();
  for (uint32_t i = 0; i < data->paper->row_count; i++) {
    const repro_row *from = &data->paper->rows[i];
    uint32_t programs;
    double value = repro_value(data, from, &programs);
    json_t *row = json_object();
    json_object_set_new(row, "row", json_string(from->name));
    json_object_set_new(row, "paper", real_or_null(from->paper));
    json_object_set_new(row, "ours", real_or_null(value));
    json_object_set_new(row, "ratio", real_or_null(repro_ratio(from->paper, value)));
    json_object_set_new(row, "claim", json_string(repro_claim_names[repro_claim_of(data->paper, from)]));
    double score = repro_score(data->paper, from, value);
    const repro_note *note = repro_note_of(data->paper, from);
    json_object_set_new(row, "score", real_or_null(score));
    json_object_set_new(row, "within", json_string(repro_within(data->paper, from, score)));
    json_object_set_new(row, "note", note ? json_string(note->text) : json_null());
    json_object_set_new(row, "programs", json_integer(programs));
    json_array_append_new(rows, row);
  }
  return rows;
}

/* What memory stacks add to the counters. */
static void add_stacks(json_t *object, const sim_stacks *s) {
  json_object_set_new(object, "offload", json_string(sim_offload_name(s->offload)));
  json_object_set_new(object, "map", json_string(s->map));
  json_object_set_new(object, "map_found", json_string(s->found));
#define X(name, unit, help) json_object_set_new(object, #name, json_integer((json_int_t)s->name));
#include "machine/stacks/stacks.def"
#undef X
  json_object_set_new(object, "traffic_bytes", json_integer((json_int_t)sim_stacks_traffic(s)));
  json_object_set_new(object, "joule", json_real(sim_stacks_joule(s)));
}

static void add_profile(json_t *object, const repro_measured *m) {
  json_object_set_new(object, "candidates", json_integer((json_int_t)m->offsets.candidates));
  json_object_set_new(object, "some_fixed", json_integer((json_int_t)m->offsets.some_fixed));
  json_object_set_new(object, "all_fixed", json_integer((json_int_t)m->offsets.all_fixed));
  json_object_set_new(object, "instances", json_integer((json_int_t)m->stacks.instances));
  json_object_set_new(object, "colocated", json_integer((json_int_t)m->stacks.colocated));
  json_object_set_new(object, "lowest_bit", json_integer(m->lowest_bit));
}

static json_t *cell_value(const repro_data *data, uint32_t program, uint32_t setting) {
  const repro_paper *paper = data->paper;
  const repro_cell *cell = &data->cells[program * paper->setting_count + setting];
  json_t *object = json_object();
  json_object_set_new(object, "setting", json_string(paper->settings[setting].key));
  if (!paper->settings[setting].memory) {
    add_profile(object, &cell->measured);
    return object;
  }
  json_object_set_new(object, "memory", json_string(paper->settings[setting].memory));
#define X(name, unit, help) json_object_set_new(object, #name, json_integer((json_int_t)cell->measured.counters.name));
#include "machine/observe/counters.def"
#undef X
  if (cell->measured.stacks.count) add_stacks(object, &cell->measured.stacks);
  return object;
}

static json_t *programs_value(const repro_data *data, repro_size size) {
  const repro_paper *paper = data->paper;
  json_t *programs = json_array();
  for (uint32_t i = 0; i < paper->program_count; i++) {
    json_t *program = json_object(), *runs = json_array();
    json_object_set_new(program, "program", json_string(paper->programs[i].label));
    json_object_set_new(program, "workload",
                        paper->programs[i].workload ? json_string(paper->programs[i].workload) : json_null());
    json_object_set_new(program, "arguments", json_string(paper->programs[i].arguments[size]));
    for (uint32_t j = 0; j < paper->setting_count; j++)
      if (data->cells[i * paper->setting_count + j].known) json_array_append_new(runs, cell_value(data, i, j));
    json_object_set_new(program, "runs", runs);
    json_array_append_new(programs, program);
  }
  return programs;
}

static int add_chunk(const char *bytes, size_t size, void *out) {
  ff_text_add_bytes(out, bytes, size);
  return 0;
}

void repro_json(const repro_data *data, repro_size size, ff_text *out) {
  const repro_paper *paper = data->paper;
  json_t *root = json_object();
  json_object_set_new(root, "paper", json_string(paper->name));
  json_object_set_new(root, "title", json_string(paper->title));
  json_object_set_new(root, "machine", json_string(paper->machine));
  json_object_set_new(root, "set", paper->set ? json_string(paper->set) : json_null());
  json_object_set_new(root, "size", json_string(repro_size_names[size]));
  json_object_set_new(root, "rows", rows_value(data));
  json_object_set_new(root, "programs", programs_value(data, size));
  json_dump_callback(root, add_chunk, out, JSON_INDENT(1) | JSON_REAL_PRECISION(6));
  ff_text_add(out, "\n");
  json_decref(root);
}

/* ---- the table ---- */

static const char *rounded(double value, char *buffer, size_t size) {
  if (isnan(value)) snprintf(buffer, size, "-");
  else snprintf(buffer, size, fabs(value) >= 1000 ? "%.0f" : "%.3g", value);
  return buffer;
}

static void write_panel(const repro_data *data, const repro_panel *panel, ff_text *out) {
  char text[32];
  char align[REPRO_PANEL_SERIES + 2] = "l";
  for (uint32_t i = 0; i < panel->series_count; i++) strcat(align, "r");
  table t;
  table_start(&t, align);
  table_cell(&t, "program");
  for (uint32_t i = 0; i < panel->series_count; i++) table_cell(&t, "%s", panel->series[i].label);
  for (uint32_t p = 0; p < data->paper->program_count; p++) {
    double values[REPRO_PANEL_SERIES];
    bool any = !data->paper->applies;
    for (uint32_t i = 0; i < panel->series_count; i++) {
      values[i] = repro_program_value(data, p, panel->quantity, panel->series[i].a, panel->series[i].b);
      any = any || !isnan(values[i]);
    }
    if (any) table_cell(&t, "%s", data->paper->programs[p].label);
    for (uint32_t i = 0; i < panel->series_count && any; i++)
      table_cell(&t, "%s", rounded(values[i], text, sizeof text));
  }
  ff_text_add(out, "\n%s (%s)\n", panel->title, panel->axis);
  table_write(&t, 2, out);
  table_free(&t);
}

void repro_table(const repro_data *data, bool verbose, ff_text *out) {
  const repro_paper *paper = data->paper;
  repro_tally tally = repro_count(data);
  char text[32];
  table t;
  table_start(&t, "wrrrl");
  table_cell(&t, "row");
  table_cell(&t, "paper");
  table_cell(&t, "ours");
  table_cell(&t, "score");
  table_cell(&t, "within");
  for (uint32_t i = 0; i < paper->row_count; i++) {
    double value = repro_value(data, &paper->rows[i], NULL), score = repro_score(paper, &paper->rows[i], value);
    table_cell(&t, "%s", paper->rows[i].name);
    table_cell(&t, "%s", rounded(paper->rows[i].paper, text, sizeof text));
    table_cell(&t, "%s", rounded(value, text, sizeof text));
    table_cell(&t, "%s", rounded(score, text, sizeof text));
    table_cell(&t, "%s", repro_within(paper, &paper->rows[i], score));
  }
  table_write(&t, 0, out);
  table_free(&t);
  if (!tally.rows && !tally.fitted) ff_text_add(out, "%s: no paper has such rows", paper->name);
  else
    ff_text_add(out, "%s: %u of %u rows with a number of the paper's are within 25 %% of what they claim", paper->name,
                tally.near, tally.rows);
  if (tally.fitted) ff_text_add(out, "; %u more have what was put in, and do not count", tally.fitted);
  ff_text_add(out, "\n");
  for (uint32_t i = 0; verbose && i < paper->panel_count; i++) write_panel(data, &paper->panels[i], out);
}

/* ---- the pictures ---- */

/* What the paper prints for a bar: that of the row with the same formula. `program` NULL: for the mean. */
static double paper_value(const repro_paper *paper, const repro_panel *panel, const repro_series *series,
                          const char *program) {
  for (uint32_t i = 0; i < paper->row_count; i++) {
    const repro_row *row = &paper->rows[i];
    bool same_b = row->b && series->b ? !strcmp(row->b, series->b) : row->b == series->b;
    bool same = row->quantity == panel->quantity && !strcmp(row->a, series->a) && same_b;
    bool here = program ? row->mean == REPRO_ONE && !strcmp(row->program, program) : row->mean == panel->mean;
    if (same && here) return row->paper;
  }
  return REPRO_NONE;
}

/* Ours and the paper's, for one series: a value per program, and the mean's. */
static void fill_series(const repro_data *data, const repro_panel *panel, uint32_t which, bars_panel *bars) {
  const repro_series *series = &panel->series[which];
  uint32_t programs = data->paper->program_count;
  for (uint32_t i = 0; i < bars->group_count; i++) {
    const char *program = i < programs ? data->paper->programs[i].label : NULL;
    repro_row mean = {.mean = panel->mean, .quantity = panel->quantity, .a = series->a, .b = series->b};
    double value =
        program ? repro_program_value(data, i, panel->quantity, series->a, series->b) : repro_value(data, &mean, NULL);
    bars->ours[i * bars->series_count + which] = value;
    bars->paper[i * bars->series_count + which] = paper_value(data->paper, panel, series, program);
  }
}

/* A group that has neither our value nor the paper's is left out. */
static void drop_empty_groups(bars_panel *bars) {
  uint32_t kept = 0, n = bars->series_count;
  for (uint32_t i = 0; i < bars->group_count; i++) {
    bool any = false;
    for (uint32_t j = 0; j < n; j++) any = any || !isnan(bars->ours[i * n + j]) || !isnan(bars->paper[i * n + j]);
    if (!any) continue;
    bars->groups[kept] = bars->groups[i];
    memmove(&bars->ours[kept * n], &bars->ours[i * n], n * sizeof(double));
    memmove(&bars->paper[kept * n], &bars->paper[i * n], n * sizeof(double));
    kept++;
  }
  bars->group_count = kept;
}

static void fill_panel(const repro_data *data, const repro_panel *panel, bars_panel *bars) {
  const repro_paper *paper = data->paper;
  *bars = (bars_panel){.title = panel->title,
                       .axis = panel->axis,
                       .logarithmic = panel->logarithmic,
                       .line = panel->line,
                       .line_label = panel->line_label,
                       .series_count = panel->series_count,
                       .group_count = paper->program_count + (panel->mean_label != NULL)};
  bars->groups = ff_alloc(bars->group_count * sizeof *bars->groups);
  bars->series = ff_alloc(bars->series_count * sizeof *bars->series);
  bars->ours = ff_alloc(bars->group_count * bars->series_count * sizeof *bars->ours);
  bars->paper = ff_alloc(bars->group_count * bars->series_count * sizeof *bars->paper);
  for (uint32_t i = 0; i < bars->group_count; i++)
    bars->groups[i] = i < paper->program_count ? paper->programs[i].label : panel->mean_label;
  for (uint32_t i = 0; i < panel->series_count; i++) {
    bars->series[i] = panel->series[i].label;
    fill_series(data, panel, i, bars);
  }
  drop_empty_groups(bars);
}

void repro_svg(const repro_data *data, repro_size size, ff_text *out) {
  const repro_paper *paper = data->paper;
  bars_panel *panels = ff_alloc(paper->panel_count * sizeof *panels);
  ff_text below = {0};
  bool printed = false;
  for (uint32_t i = 0; i < paper->row_count; i++) printed = printed || !isnan(paper->rows[i].paper);
  ff_text_add(&below, "bars: farfault reproduce %s%s%s, machine %s%s", paper->name,
              size == REPRO_NORMAL ? "" : " --size ", size == REPRO_NORMAL ? "" : repro_size_names[size],
              paper->machine, printed ? "; black marks: the paper's values" : "");
  for (uint32_t i = 0; i < paper->panel_count; i++) fill_panel(data, &paper->panels[i], &panels[i]);
  bars_write(paper->title, below.chars, panels, paper->panel_count, out);
  for (uint32_t i = 0; i < paper->panel_count; i++) {
    free(panels[i].groups);
    free(panels[i].series);
    free(panels[i].ours);
    free(panels[i].paper);
  }
  free(panels);
  free(below.chars);
}
