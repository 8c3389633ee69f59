/* SPDX-License-Identifier: Apache-2.0 */
/* A comparison as a table for people and as JSON. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compare/compare.h"
#include "report/table.h"

static const char *const level_titles[COMPARE_LEVELS] = {"", "tier", "kernel", "allocation"};
static const char *const presence_words[] = {"", "only before", "only after", "could not run it after",
                                             "could not run it before"};
static const char *const presence_keys[] = {"both", "gone", "new", "fails", "works"};

/* "+12.3 %", "x 14", "from 0". Returns buffer. */
static const char *change_text(const compare_change *change, char *buffer, size_t size) {
  double relative = (change->after - change->before) / change->before;
  if (change->presence) snprintf(buffer, size, "%s", presence_words[change->presence]);
  else if (isnan(relative) || isinf(relative)) snprintf(buffer, size, change->before == 0 ? "from 0" : "-");
  else if (relative >= 9) snprintf(buffer, size, "x %.3g", relative + 1);
  else if (fabs(relative) < 0.0005) snprintf(buffer, size, "%+.1g %%", 100 * relative);
  else snprintf(buffer, size, "%+.1f %%", 100 * relative);
  return buffer;
}

static void name_write(const compare_change *change, table *t) {
  ff_text name = {0};
  ff_text_add(&name, "%s", change->name);
  if (change->range[0]) ff_text_add(&name, " in %s", change->range);
  table_cell_cut(t, name.chars, 50);
  free(name.chars);
}

static void row_write(const compare_change *change, table *t) {
  char text[64];
  metric_kind kind = change->presence ? METRIC_PLAIN : metric_kind_of(change->metric);
  table_cell_cut(t, change->memory, 60);
  if (change->level != COMPARE_RUN) name_write(change, t);
  table_cell(t, "%s", change->presence ? "-" : metric_names[change->metric]);
  table_cell(t, "%s", metric_format(kind, change->before, text, sizeof text));
  table_cell(t, "%s", metric_format(kind, change->after, text, sizeof text));
  table_tones tone = change->worse > 0 ? TABLE_BAD : change->worse < 0 ? TABLE_GOOD : TABLE_PLAIN;
  table_cell(t, "%s", change_text(change, text, sizeof text));
  table_tone(t, tone);
  table_cell(t, "%s", change->worse > 0 ? "worse" : change->worse < 0 ? "better" : "");
  table_tone(t, tone);
}

static void level_write(const comparison *c, compare_level level, bool all, ff_text *out) {
  size_t first = 0, count = 0, rows;
  while (first < c->changes.count && c->changes.items[first].level < level) first++;
  while (first + count < c->changes.count && c->changes.items[first + count].level == level) count++;
  if (!count) return;
  rows = all || count <= COMPARE_ROWS ? count : COMPARE_ROWS;
  table t;
  table_start(&t, level == COMPARE_RUN ? "llrrrl" : "lllrrrl");
  table_cell(&t, "memory");
  if (level != COMPARE_RUN) table_cell(&t, "%s", level_titles[level]);
  table_names(&t, (const char *const[]){"metric", "before", "after", "change", "", NULL});
  for (size_t i = 0; i < rows; i++) row_write(&c->changes.items[first + i], &t);
  ff_text_add(out, "\n");
  table_write(&t, 0, out);
  table_free(&t);
  if (rows < count) ff_text_add(out, "(%zu more with less effect: -v)\n", count - rows);
}

/* On one line, and without what a terminal would obey. */
static void clean_write(const char *text, ff_text *out) {
  for (; *text; text++) ff_text_add(out, "%c", (unsigned char)*text < 32 || *text == 127 ? '?' : *text);
}

static void note_write(const char *what, const char *before, const char *after, ff_text *out) {
  if (!strcmp(before, after)) return;
  ff_text_add(out, "note: %s: ", what);
  clean_write(before, out);
  ff_text_add(out, " before, ");
  clean_write(after, out);
  ff_text_add(out, " after\n");
}

static const char *machine_of(const report_run *run) { return run->result_count ? run->results[0].machine : "none"; }

static void notes_write(const compare_names *names, ff_text *out) {
  const report_run *const *runs = names->runs;
  note_write("the programs differ", runs[0]->command ? runs[0]->command : "unknown",
             runs[1]->command ? runs[1]->command : "unknown", out);
  note_write("the machines differ", machine_of(runs[0]), machine_of(runs[1]), out);
  note_write("the versions of farfault differ", runs[0]->version, runs[1]->version, out);
  for (int i = 0; i < 2; i++)
    if (!runs[i]->complete)
      ff_text_add(out, "note: the run %s is incomplete: the program did not end by itself\n", i ? "after" : "before");
}

void compare_table_write(const comparison *c, const compare_names *names, const compare_options *options, bool all,
                         ff_text *out) {
  size_t alone = 0;
  for (size_t i = 0; i < c->changes.count; i++) alone += c->changes.items[i].presence != COMPARE_BOTH;
  size_t changes = c->changes.count - alone;
  ff_text_add(out, "farfault: ");
  clean_write(names->before, out);
  ff_text_add(out, " (before), ");
  clean_write(names->after, out);
  ff_text_add(out, " (after): ");
  if (!changes) ff_text_add(out, "no change");
  else ff_text_add(out, "%zu change%s", changes, changes == 1 ? "" : "s");
  if (options->threshold > 0) ff_text_add(out, " of more than %.4g %%", 100 * options->threshold);
  ff_text_add(out, " in %zu number%s", c->compared, c->compared == 1 ? "" : "s");
  if (c->changes.count) ff_text_add(out, ": %zu worse, %zu better", c->worse, c->better);
  if (alone) ff_text_add(out, "; %zu row%s with no number of both", alone, alone == 1 ? "" : "s");
  ff_text_add(out, "\n");
  notes_write(names, out);
  for (int level = 0; level < COMPARE_LEVELS; level++) level_write(c, (compare_level)level, all, out);
}

/* ---- JSON ---- */

static json_t *text_json(const char *text) { return json_string(text) ?: json_string("?"); }
static json_t *number_json(double value) { return isfinite(value) ? json_real(value) : json_null(); }

static json_t *change_json(const compare_change *change) {
  static const char *const levels[COMPARE_LEVELS] = {"run", "tier", "kernel", "allocation"};
  json_t *o = json_object();
  json_object_set_new(o, "level", json_string(levels[change->level]));
  json_object_set_new(o, "memory", text_json(change->memory));
  if (change->name) json_object_set_new(o, "name", text_json(change->name));
  if (change->range && change->range[0]) json_object_set_new(o, "range", text_json(change->range));
  json_object_set_new(o, "presence", json_string(presence_keys[change->presence]));
  if (!change->presence) {
    json_object_set_new(o, "metric", json_string(metric_names[change->metric]));
    json_object_set_new(o, "unit", json_string(metric_unit(change->metric)));
    json_object_set_new(o, "before", number_json(change->before));
    json_object_set_new(o, "after", number_json(change->after));
    json_object_set_new(o, "change", number_json((change->after - change->before) / change->before));
  }
  json_object_set_new(o, "effect", number_json(change->effect));
  json_object_set_new(o, "verdict",
                      json_string(change->worse > 0   ? "worse"
                                  : change->worse < 0 ? "better"
                                                      : "neither"));
  return o;
}

static int add_chunk(const char *bytes, size_t size, void *out) {
  ff_text_add_bytes(out, bytes, size);
  return 0;
}

void compare_json_write(const comparison *c, const compare_names *names, const compare_options *options, ff_text *out) {
  json_t *o = json_object(), *changes = json_array();
  json_object_set_new(o, "before", text_json(names->before));
  json_object_set_new(o, "after", text_json(names->after));
  json_object_set_new(o, "threshold", json_real(options->threshold));
  json_object_set_new(o, "compared", json_integer((json_int_t)c->compared));
  json_object_set_new(o, "worse", json_integer((json_int_t)c->worse));
  json_object_set_new(o, "better", json_integer((json_int_t)c->better));
  json_object_set_new(o, "neither", json_integer((json_int_t)c->other));
  for (size_t i = 0; i < c->changes.count; i++) json_array_append_new(changes, change_json(&c->changes.items[i]));
  json_object_set_new(o, "changes", changes);
  json_dump_callback(o, add_chunk, out, JSON_INDENT(1) | JSON_REAL_PRECISION(12));
  json_decref(o);
}
