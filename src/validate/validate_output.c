/* SPDX-License-Identifier: Apache-2.0 */
/* Rows and scores as tables for people, as JSON and as a document. See validate.h. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/table.h"
#include "validate/validate.h"

/* At most four digits that say something. */
static const char *number(double value, char *buffer, size_t size) {
  if (isnan(value)) snprintf(buffer, size, "-");
  else snprintf(buffer, size, fabs(value) >= 1000 ? "%.0f" : "%.4g", value);
  return buffer;
}

static const char *percent(double value, char *buffer, size_t size) {
  if (isnan(value)) snprintf(buffer, size, "-");
  else snprintf(buffer, size, "%.1f %%", 100 * value);
  return buffer;
}

static const char *two_places(double value, char *buffer, size_t size) {
  if (isnan(value)) snprintf(buffer, size, "-");
  else snprintf(buffer, size, "%.2f", value);
  return buffer;
}

/* Of an error in percent, of a correlation with a place more than what it is compared with. */
static const char *measured(const validate_goal *goal, double value, char *buffer, size_t size) {
  if (goal->of == VALIDATE_ERROR) return percent(value, buffer, size);
  if (isnan(value)) snprintf(buffer, size, "-");
  else snprintf(buffer, size, "%.3f", value);
  return buffer;
}

static const char *wanted(const validate_goal *goal, char *buffer, size_t size) {
  if (goal->of == VALIDATE_ERROR) snprintf(buffer, size, "<= %g %%", 100 * goal->wanted);
  else snprintf(buffer, size, ">= %g", goal->wanted);
  return buffer;
}

/* How many of its held rows have a value: "27", or "12 of 27". */
static const char *rows_of(const validate_goal *goal, const validate_attainment *a, char *buffer, size_t size) {
  if (a->scored == goal->held) snprintf(buffer, size, "%u", goal->held);
  else snprintf(buffer, size, "%u of %u", a->scored, goal->held);
  return buffer;
}

/* ---- tables ---- */

static void write_goals(const validate_table *table, ff_text *out) {
  static const char *const names[] = {"goal", "rows", "before", "now", "wanted", "met", NULL};
  char text[64];
  struct table t;
  if (!table->goals.count) return;
  table_start(&t, "lrrrrl");
  table_names(&t, names);
  for (size_t i = 0; i < table->goals.count; i++) {
    const validate_goal *goal = &table->goals.items[i];
    validate_attainment a = validate_attained(table, goal);
    table_cell(&t, "%s", goal->goal);
    table_cell(&t, "%s", rows_of(goal, &a, text, sizeof text));
    table_cell(&t, "%s", goal->before);
    table_cell(&t, "%s", measured(goal, a.now, text, sizeof text));
    table_cell(&t, "%s", wanted(goal, text, sizeof text));
    table_cell(&t, "%s", validate_verdict_names[a.verdict]);
    if (a.verdict <= VALIDATE_MISSED) table_tone(&t, a.verdict == VALIDATE_MET ? TABLE_GOOD : TABLE_BAD);
  }
  ff_text_add(out, "\n");
  table_write(&t, 0, out);
  table_free(&t);
}

static void write_scores(const validate_scores *scores, ff_text *out) {
  static const char *const names[] = {"group", "GPU", "machine", "rows", "ratio", "error", "corr.", NULL};
  char text[32];
  table t;
  table_start(&t, "lllrrrr");
  table_names(&t, names);
  for (size_t i = 0; i < scores->list.count; i++) {
    const validate_score *s = &scores->list.items[i];
    table_cell(&t, "%s", s->group);
    table_cell(&t, "%s", s->gpu);
    table_cell(&t, "%s", s->machine);
    if (s->scored == s->rows) table_cell(&t, "%u", s->rows);
    else table_cell(&t, "%u of %u", s->scored, s->rows);
    table_cell(&t, "%s", two_places(s->ratio, text, sizeof text));
    table_cell(&t, "%s", percent(s->error, text, sizeof text));
    table_cell(&t, "%s", two_places(s->correlation, text, sizeof text));
  }
  table_write(&t, 0, out);
  table_free(&t);
}

static void write_rows(const validate_table *table, const validate_score *score, ff_text *out) {
  static const char *const names[] = {"row", "unit", "silicon", "ours", "ratio", "role", NULL};
  char text[32];
  struct table t;
  table_start(&t, "llrrrl");
  table_names(&t, names);
  for (size_t i = 0; i < table->rows.count; i++) {
    const validate_row *row = &table->rows.items[i];
    if (!validate_scored_by(score, row)) continue;
    table_cell(&t, "%s", row->row);
    table_cell(&t, "%s", row->unit);
    table_cell(&t, "%s", number(row->measured, text, sizeof text));
    table_cell(&t, "%s", number(row->ours, text, sizeof text));
    table_cell(&t, "%s", two_places(row->ours / row->measured, text, sizeof text));
    table_cell(&t, "%s", row->role);
  }
  ff_text_add(out, "\n%s, %s on machine %s\n", score->group, score->gpu, score->machine);
  table_write(&t, 2, out);
  table_free(&t);
}

void validate_table_text(const validate_table *table, const validate_scores *scores, bool verbose, ff_text *out) {
  write_scores(scores, out);
  write_goals(table, out);
  for (size_t i = 0; verbose && i < scores->list.count; i++) write_rows(table, &scores->list.items[i], out);
}

/* What would be run, without running it: a line per group and GPU, or per row. */
void validate_list_text(const validate_table *table, bool verbose, ff_text *out) {
  static const char *const short_names[] = {"group", "GPU", "machine", "rows", "held", "quick", NULL};
  static const char *const long_names[] = {"group", "GPU", "row", "silicon", "unit", "role", "runs", NULL};
  char text[32];
  validate_scores scores = {0};
  struct table t;
  table_start(&t, verbose ? "lllrlll" : "lllrrr");
  table_names(&t, verbose ? long_names : short_names);
  validate_score_all(table, &scores);
  for (size_t i = 0; verbose && i < table->rows.count; i++) {
    const validate_row *row = &table->rows.items[i];
    table_cell(&t, "%s", row->group);
    table_cell(&t, "%s", row->gpu);
    table_cell(&t, "%s", row->row);
    table_cell(&t, "%s", number(row->measured, text, sizeof text));
    table_cell(&t, "%s", row->unit);
    table_cell(&t, "%s", row->role);
    table_cell(&t, "%s", row->runs);
  }
  for (size_t i = 0; !verbose && i < scores.list.count; i++) {
    const validate_score *s = &scores.list.items[i];
    uint32_t quick = 0;
    for (size_t j = 0; j < table->rows.count; j++)
      quick += validate_scored_by(s, &table->rows.items[j]) && table->rows.items[j].is_quick;
    table_cell(&t, "%s", s->group);
    table_cell(&t, "%s", s->gpu);
    table_cell(&t, "%s", s->machine);
    table_cell(&t, "%u", s->rows);
    table_cell(&t, "%u", s->held);
    table_cell(&t, "%u", quick);
  }
  table_write(&t, 0, out);
  table_free(&t);
  free(scores.list.items);
}

/* ---- JSON ---- */

static json_t *real_or_null(double value) { return isnan(value) ? json_null() : json_real(value); }

static json_t *row_value(const validate_row *row) {
  json_t *object = json_object();
#define X(name, help) json_object_set_new(object, #name, json_string(row->name));
#include "validate/columns.def"
#undef X
  json_object_set_new(object, "x", real_or_null(row->at));
  json_object_set_new(object, "silicon", json_real(row->measured));
  json_object_set_new(object, "ours", real_or_null(row->ours));
  json_object_set_new(object, "ratio", real_or_null(row->ours / row->measured));
  return object;
}

static json_t *score_value(const validate_score *score) {
  json_t *object = json_object();
  json_object_set_new(object, "group", json_string(score->group));
  json_object_set_new(object, "gpu", json_string(score->gpu));
  json_object_set_new(object, "machine", json_string(score->machine));
  json_object_set_new(object, "rows", json_integer(score->rows));
  json_object_set_new(object, "scored", json_integer(score->scored));
  json_object_set_new(object, "ratio", real_or_null(score->ratio));
  json_object_set_new(object, "error", real_or_null(score->error));
  json_object_set_new(object, "correlation", real_or_null(score->correlation));
  return object;
}

static json_t *goal_value(const validate_table *table, const validate_goal *goal) {
  validate_attainment a = validate_attained(table, goal);
  json_t *object = json_object();
#define X(name, help) json_object_set_new(object, #name, json_string(goal->name));
#include "validate/goals.def"
#undef X
  json_object_set_new(object, "least", real_or_null(goal->from));
  json_object_set_new(object, "most", real_or_null(goal->to));
  json_object_set_new(object, "target", json_real(goal->wanted));
  json_object_set_new(object, "held", json_integer(goal->held));
  json_object_set_new(object, "scored", json_integer(a.scored));
  json_object_set_new(object, "now", real_or_null(a.now));
  json_object_set_new(object, "met", json_string(validate_verdict_names[a.verdict]));
  return object;
}

static int add_chunk(const char *bytes, size_t size, void *out) {
  ff_text_add_bytes(out, bytes, size);
  return 0;
}

void validate_json(const validate_table *table, const validate_scores *scores, const validate_page *page,
                   ff_text *out) {
  json_t *root = json_object(), *groups = json_array(), *rows = json_array(), *goals = json_array();
  for (size_t i = 0; i < scores->list.count; i++) json_array_append_new(groups, score_value(&scores->list.items[i]));
  for (size_t i = 0; i < table->rows.count; i++) json_array_append_new(rows, row_value(&table->rows.items[i]));
  for (size_t i = 0; i < table->goals.count; i++)
    json_array_append_new(goals, goal_value(table, &table->goals.items[i]));
  json_object_set_new(root, "command", json_string(page->command));
  json_object_set_new(root, "set", json_string(page->set));
  json_object_set_new(root, "groups", groups);
  json_object_set_new(root, "goals", goals);
  json_object_set_new(root, "rows", rows);
  json_dump_callback(root, add_chunk, out, JSON_INDENT(1) | JSON_REAL_PRECISION(6));
  ff_text_add(out, "\n");
  json_decref(root);
}

/* ---- the document ---- */

static const char head[] =
    "# Validation\n\n"
    "Simulated numbers next to measurements on real GPUs. This file is made by the command below; the tables of measurements with "
    "their sources are in\n`validation/`; its README says how rows were chosen, and what the microbenchmarks do.\n\n";

static const char words[] =
    "`ratio` is the geometric mean of ours/silicon over the rows of a group on one GPU, `error` the mean of |ours/silicon - 1|, "
    "`correlation` that of the logarithms.\nOf bandwidths a ratio above 1 says that the simulation is too fast, of times and cycles that it "
    "is too slow. Only rows of the role `held` are counted:\nno value of a machine file was chosen with them in view.\n\n";

static void add_command(const validate_page *page, ff_text *out) {
  ff_text_add(out, "```\n%s\n```\n\n", page->command);
}

/* A bar in a cell would end it. */
static void add_cell(const char *text, ff_text *out) {
  for (; *text; text++) ff_text_add(out, "%s%c", *text == '|' ? "\\" : "", *text);
}

static void add_row_lines(const validate_table *table, const validate_score *score, ff_text *out) {
  char silicon[32], ours[32], ratio[32];
  ff_text_add(
      out, "\n### %s, %s on machine %s\n\n| row | unit | silicon | ours | ratio | role |\n|---|---|---|---|---|---|\n",
      score->group, score->gpu, score->machine);
  for (size_t i = 0; i < table->rows.count; i++) {
    const validate_row *row = &table->rows.items[i];
    if (!validate_scored_by(score, row)) continue;
    ff_text_add(out, "| ");
    add_cell(row->row, out);
    ff_text_add(out, " | %s | %s | %s | %s | %s |\n", row->unit, number(row->measured, silicon, sizeof silicon),
                number(row->ours, ours, sizeof ours), two_places(row->ours / row->measured, ratio, sizeof ratio),
                row->role);
  }
}

static const char goal_words[] =
    "\n## Goals\n\nWhat held rows are to reach together, of one group or several, on all GPUs that were measured if none is named "
    "([validation/goals.tsv](../validation/goals.tsv) has\nwhich rows). `before`: before the work on it began. A value that was chosen so "
    "that a goal is met would be a value that was fitted to its rows.\n\n"
    "| goal | rows | before | now | wanted | met |\n|---|---|---|---|---|---|\n";

static void add_goal_lines(const validate_table *table, ff_text *out) {
  char rows[32], now[32], target[32];
  if (table->goals.count) ff_text_add(out, "%s", goal_words);
  for (size_t i = 0; i < table->goals.count; i++) {
    const validate_goal *goal = &table->goals.items[i];
    validate_attainment a = validate_attained(table, goal);
    ff_text_add(out, "| ");
    add_cell(goal->goal, out);
    ff_text_add(out, " | %s | ", rows_of(goal, &a, rows, sizeof rows));
    add_cell(goal->before, out);
    ff_text_add(out, " | %s | %s | %s |\n", measured(goal, a.now, now, sizeof now), wanted(goal, target, sizeof target),
                validate_verdict_names[a.verdict]);
  }
}

void validate_markdown(const validate_table *table, const validate_scores *scores, const validate_page *page,
                       ff_text *out) {
  char ratio[32], error[32], correlation[32];
  ff_text_add(out, "%s", head);
  add_command(page, out);
  ff_text_add(out, "%s", words);
  ff_text_add(out, "| group | GPU | machine | rows | ratio | error | correlation |\n|---|---|---|---|---|---|---|\n");
  for (size_t i = 0; i < scores->list.count; i++) {
    const validate_score *s = &scores->list.items[i];
    ff_text_add(out, "| %s | %s | %s | %u | %s | %s | %s |\n", s->group, s->gpu, s->machine, s->scored,
                two_places(s->ratio, ratio, sizeof ratio), percent(s->error, error, sizeof error),
                two_places(s->correlation, correlation, sizeof correlation));
  }
  add_goal_lines(table, out);
  ff_text_add(out, "\n## Row by row\n");
  for (size_t i = 0; i < scores->list.count; i++) add_row_lines(table, &scores->list.items[i], out);
}
