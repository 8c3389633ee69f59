/* SPDX-License-Identifier: Apache-2.0 */
/* Programs side by side as texts: the table for people, CSV, JSON (share_matrix.h).
 *
 * What is not known is "-" in the table, empty in CSV, null in JSON; every row of the CSV has as
 * many fields as its head. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/report.h"
#include "report/text_tiers.h"
#include "share/share_private.h"

/* ---- parts ---- */

const char *share_measured_label(const share_matrix *m, uint32_t a) { return m->programs.items[m->measured[a]].label; }

const char *share_column_label(const share_matrix *m, uint32_t column) {
  return column ? m->programs.items[m->interferers[column - 1]].label : "none";
}

void share_time_cell(table *t, double us) {
  char text[32];
  table_cell(t, "%s", isnan(us) ? "-" : report_format_time((uint64_t)(us * 1e6 + 0.5), text, sizeof text));
}

void share_number_cell(table *t, double value, const char *format) {
  char text[64] = "-";
  if (!isnan(value)) snprintf(text, sizeof text, format, value);
  table_cell(t, "%s", text);
}

void share_csv_text(const char *text, ff_text *out) {
  bool quoted = strpbrk(text, "\",\n\r") != NULL;
  if (quoted) ff_text_add(out, "\"");
  for (; *text; text++) ff_text_add(out, *text == '"' ? "\"\"" : "%c", *text);
  if (quoted) ff_text_add(out, "\"");
}

void share_csv_number(double value, ff_text *out) {
  if (isnan(value)) ff_text_add(out, ",");
  else ff_text_add(out, ",%.9g", value);
}

json_t *share_number_value(double value) { return isfinite(value) ? json_real(value) : json_null(); }

static int add_chunk(const char *bytes, size_t size, void *out) {
  ff_text_add_bytes(out, bytes, size);
  return 0;
}

void share_dump(json_t *root, ff_text *out) {
  json_dump_callback(root, add_chunk, out, JSON_INDENT(1) | JSON_REAL_PRECISION(12));
  ff_text_add(out, "\n");
  json_decref(root);
}

void share_heading(const share_matrix *m, ff_text *out) {
  ff_text_add(out, "%s, partitions %s, memory %s", m->machine, m->partitions, m->manager);
  if (m->host_memory) ff_text_add(out, ", host memory %s", m->host_memory);
  if (m->set) ff_text_add(out, ", %s", m->set);
  if (m->borrow) ff_text_add(out, ", what is idle is lent");
}

json_t *share_setup_value(const share_matrix *m) {
  json_t *root = json_object(), *parts = json_array();
  json_object_set_new(root, "machine", share_text_value(m->machine));
  json_object_set_new(root, "set", m->set ? share_text_value(m->set) : json_null());
  json_object_set_new(root, "memory", share_text_value(m->manager));
  if (m->host_memory) json_object_set_new(root, "host_memory", share_text_value(m->host_memory));
  json_object_set_new(root, "borrow", json_boolean(m->borrow));
  for (uint32_t i = 0; i < m->part_count; i++) {
    json_t *part = json_object();
    json_object_set_new(part, "sm_share", json_real(m->parts[i].sm));
    json_object_set_new(part, "memory_share", json_real(m->parts[i].memory));
    json_array_append_new(parts, part);
  }
  json_object_set_new(root, "partitions", parts);
  json_t *profiles = json_array();
  for (uint32_t i = 0; i < m->isolation_count; i++)
    for (uint32_t p = 0; p < m->part_count && m->isolations[i] == SHARE_MIG; p++)
      json_array_append_new(profiles, json_string(m->spec->mig_profiles.profiles[m->profiles[p]].name));
  json_object_set_new(root, "mig", profiles);
  return root;
}

void share_what(const machine_spec *spec, uint32_t sms, uint32_t colours, ff_text *out) {
  ff_text_add(out, "%u of %llu SMs", sms, (unsigned long long)spec->sm_count);
  if (colours) ff_text_add(out, ", %u of %u colours", colours, share_machine_colours(spec));
}

/* ---- the table ---- */

static void start(table *t, char *align, uint32_t left, uint32_t right) {
  memset(align, 'l', left);
  memset(align + left, 'r', right);
  align[left + right] = '\0';
  table_start(t, align);
}

static void name_cells(const share_matrix *m, uint32_t from, table *t) {
  for (uint32_t column = from; column <= m->interferer_count; column++)
    table_cell_cut(t, share_column_label(m, column), 24);
}

static void finish(table *t, ff_text *out) {
  table_write(t, 2, out);
  table_free(t);
}

static void write_times(const share_matrix *m, uint32_t isolation, ff_text *out) {
  char align[TABLE_COLUMNS + 1];
  table t;
  start(&t, align, 1, 3 + m->interferer_count + 2 * m->borrow);
  table_cell(&t, "kernel time");
  table_cell(&t, "alone");
  name_cells(m, 0, &t);
  table_cell(&t, "left idle");
  if (m->borrow) {
    table_cell(&t, "lent");
    table_cell(&t, "taken back");
  }
  for (uint32_t a = 0; a < m->measured_count; a++) {
    const share_outcome *idle = share_matrix_outcome(m, isolation, a, 0);
    double longest = NAN;
    table_cell_cut(&t, share_measured_label(m, a), 24);
    share_time_cell(&t, share_alone_us(m, a));
    for (uint32_t column = 0; column <= m->interferer_count; column++) {
      const share_outcome *o = share_matrix_outcome(m, isolation, a, column);
      share_time_cell(&t, share_time_us(m, isolation, a, column));
      for (uint32_t i = 0; o && i < m->part_count; i++) longest = fmax(longest, o[i].take_back_us);
    }
    share_number_cell(&t, idle ? idle->dram_unused_gbs : NAN, "%.1f GB/s");
    if (m->borrow) {
      share_number_cell(&t, idle && idle->total_us > 0 ? 100 * idle->borrowed_us / idle->total_us : NAN, "%.1f %%");
      share_time_cell(&t, longest);
    }
  }
  finish(&t, out);
}

static void write_over_none(const share_matrix *m, uint32_t isolation, ff_text *out) {
  char align[TABLE_COLUMNS + 1];
  table t;
  start(&t, align, 1, m->interferer_count + 1);
  table_cell(&t, "over none");
  name_cells(m, 1, &t);
  table_cell(&t, "variation");
  for (uint32_t a = 0; a < m->measured_count; a++) {
    table_cell_cut(&t, share_measured_label(m, a), 24);
    for (uint32_t column = 1; column <= m->interferer_count; column++)
      share_number_cell(&t, share_over_none(m, isolation, a, column), "%.3f");
    share_number_cell(&t, share_percent(share_variation(m, isolation, a, NULL)), "%.1f %%");
  }
  finish(&t, out);
}

static void write_normalised(const share_matrix *m, uint32_t isolation, ff_text *out) {
  char align[TABLE_COLUMNS + 1];
  table t;
  start(&t, align, 1, m->interferer_count + 1);
  table_cell(&t, "normalised");
  name_cells(m, 0, &t);
  for (uint32_t a = 0; a < m->measured_count; a++) {
    table_cell_cut(&t, share_measured_label(m, a), 24);
    for (uint32_t column = 0; column <= m->interferer_count; column++)
      share_number_cell(&t, share_normalised(m, isolation, a, column), "%.3f");
  }
  finish(&t, out);
}

/* What the measured program took of the tiers below GPU memory, beside each: nothing where there are none. */
static void write_tiers(const share_matrix *m, uint32_t isolation, ff_text *out) {
  static const char *const names[] = {"below GPU memory", "beside", TEXT_TIER_NAMES, NULL};
  bool any = false;
  table t;
  table_start(&t, "ll" TEXT_TIER_ALIGN);
  t.spare = (const char *const[]){TEXT_TIER_SPARE, NULL};
  table_names(&t, names);
  for (uint32_t a = 0; a < m->measured_count; a++)
    for (uint32_t column = 0, rows = 0; column <= m->interferer_count; column++) {
      const share_outcome *o = share_matrix_outcome(m, isolation, a, column);
      for (uint32_t n = 0; o && n < o->tiers.count; n++, rows++, any = true) {
        table_cell_cut(&t, rows ? "" : share_measured_label(m, a), 24);
        table_cell_cut(&t, n ? "" : share_column_label(m, column), 24);
        text_tier_cells(&o->tiers.of[n], &t);
      }
    }
  if (any) table_write(&t, 2, out);
  table_free(&t);
}

/* What partition 0 has, as the first simulation that is there says. */
static void write_title(const share_matrix *m, uint32_t isolation, ff_text *out) {
  const share_outcome *any = NULL;
  for (uint32_t i = 0; i < m->measured_count * (m->interferer_count + 1) && !any; i++)
    any = m->cells[share_matrix_cell(m, isolation, 0, i)].outcomes;
  ff_text_add(out, "\n%s", share_isolation_name(m->isolations[isolation]));
  for (uint32_t i = 0; i < m->part_count && m->isolations[isolation] == SHARE_MIG; i++)
    ff_text_add(out, "%s%s", i ? "," : " ", m->spec->mig_profiles.profiles[m->profiles[i]].name);
  if (any) {
    ff_text_add(out, ": ");
    share_what(m->spec, any->sms, any->colours, out);
  }
  if (any && any->memory_slices)
    ff_text_add(out, ", %u of %u memory slices", any->memory_slices, (uint32_t)m->spec->mig_memory_slices);
  ff_text_add(out, "\n");
}

static void write_isolation(const share_matrix *m, uint32_t isolation, ff_text *out) {
  share_summary s = share_summarise(m, isolation);
  write_title(m, isolation, out);
  write_times(m, isolation, out);
  if (m->interferer_count) write_over_none(m, isolation, out);
  write_normalised(m, isolation, out);
  write_tiers(m, isolation, out);
  if (isnan(s.variation_average)) return;
  ff_text_add(out, "  variation: %.1f %% on average, %.1f %% at most (%s beside %s)\n",
              share_percent(s.variation_average), share_percent(s.variation_most), share_measured_label(m, s.most_a),
              share_column_label(m, s.most_column));
}

static void write_summary(const share_matrix *m, ff_text *out) {
  table t;
  table_start(&t, m->borrow ? "lrrrrrrr" : "lrrrrr");
  const char *const head[] = {"isolation", "variation", "at most", "normalised, none",
                              "worst",     "left idle", "lent",    "taken back"};
  for (int i = 0; i < (m->borrow ? 8 : 6); i++) table_cell(&t, "%s", head[i]);
  for (uint32_t i = 0; i < m->isolation_count; i++) {
    share_summary s = share_summarise(m, i);
    table_cell(&t, "%s", share_isolation_name(m->isolations[i]));
    share_number_cell(&t, share_percent(s.variation_average), "%.1f %%");
    share_number_cell(&t, share_percent(s.variation_most), "%.1f %%");
    share_number_cell(&t, s.normalised_none, "%.3f");
    share_number_cell(&t, s.normalised_worst, "%.3f");
    share_number_cell(&t, s.unused_gbs, "%.1f GB/s");
    if (m->borrow) {
      share_number_cell(&t, 100 * s.borrowed, "%.1f %%");
      share_time_cell(&t, s.take_back_us);
    }
  }
  ff_text_add(out, "\n");
  table_write(&t, 0, out);
  table_free(&t);
}

void share_matrix_table(const share_matrix *m, ff_text *out) {
  share_heading(m, out);
  ff_text_add(out, "\n");
  for (uint32_t i = 0; i < m->isolation_count; i++) write_isolation(m, i, out);
  if (m->isolation_count > 1) write_summary(m, out);
}

/* ---- CSV ---- */

/* Of how many tiers there are columns. */
static uint32_t csv_tiers(const share_matrix *m) {
  uint32_t most = 0;
  for (uint32_t i = 0; i < m->cell_count; i++)
    if (m->cells[i].outcomes && m->cells[i].outcomes[0].tiers.count > most) most = m->cells[i].outcomes[0].tiers.count;
  return most;
}

static void csv_row(const share_matrix *m, const char *isolation, uint32_t a, const char *neighbour,
                    const share_outcome *o, double over, double normalised, ff_text *out) {
  ff_text_add(out, "%s,", isolation);
  share_csv_text(share_measured_label(m, a), out);
  ff_text_add(out, ",");
  share_csv_text(neighbour, out);
  share_csv_number(over, out);
  share_csv_number(normalised, out);
  share_outcome_csv(o, out);
  report_csv_tiers(&o->tiers, csv_tiers(m), out);
  ff_text_add(out, "\n");
}

void share_matrix_csv(const share_matrix *m, ff_text *out) {
  ff_text_add(out, "isolation,program,beside,over_none,normalised");
  share_outcomes_csv_head(out);
  report_csv_tiers_head(csv_tiers(m), out);
  ff_text_add(out, "\n");
  for (uint32_t a = 0; a < m->measured_count; a++) {
    const share_outcome *o = m->cells[share_matrix_alone(m, a)].outcomes;
    if (o) csv_row(m, "alone", a, "", o, NAN, NAN, out);
  }
  for (uint32_t i = 0; i < m->isolation_count; i++)
    for (uint32_t a = 0; a < m->measured_count; a++)
      for (uint32_t column = 0; column <= m->interferer_count; column++) {
        const share_outcome *o = share_matrix_outcome(m, i, a, column);
        if (o)
          csv_row(m, share_isolation_name(m->isolations[i]), a, share_column_label(m, column), o,
                  share_over_none(m, i, a, column), share_normalised(m, i, a, column), out);
      }
}

/* ---- JSON ---- */

/* What a simulation gave, of all its partitions. */
static json_t *cell_value(const share_matrix *m, uint32_t cell) {
  share_request request;
  const share_cell *c = &m->cells[cell];
  json_t *object = json_object(), *programs = json_array();
  share_matrix_request(m, cell, &request);
  for (uint32_t i = 0; c->outcomes && i < request.count; i++) {
    json_t *one = share_outcome_value(&c->outcomes[i]);
    json_object_set_new(one, "program",
                        request.programs[i] < 0 ? json_null()
                                                : share_text_value(m->programs.items[request.programs[i]].label));
    json_array_append_new(programs, one);
  }
  json_object_set_new(object, "partitions", programs);
  if (c->error) json_object_set_new(object, "error", share_text_value(c->error));
  return object;
}

static json_t *row_value(const share_matrix *m, uint32_t isolation, uint32_t a) {
  json_t *row = json_object(), *cells = json_array();
  json_object_set_new(row, "program", share_text_value(share_measured_label(m, a)));
  json_object_set_new(row, "variation", share_number_value(share_variation(m, isolation, a, NULL)));
  for (uint32_t column = 0; column <= m->interferer_count; column++) {
    json_t *cell = cell_value(m, share_matrix_cell(m, isolation, a, column));
    json_object_set_new(cell, "interferer", column ? share_text_value(share_column_label(m, column)) : json_null());
    json_object_set_new(cell, "over_none", share_number_value(share_over_none(m, isolation, a, column)));
    json_object_set_new(cell, "normalised", share_number_value(share_normalised(m, isolation, a, column)));
    json_array_append_new(cells, cell);
  }
  json_object_set_new(row, "beside", cells);
  return row;
}

static json_t *isolation_value(const share_matrix *m, uint32_t isolation) {
  share_summary s = share_summarise(m, isolation);
  json_t *object = json_object(), *rows = json_array();
  json_object_set_new(object, "isolation", json_string(share_isolation_name(m->isolations[isolation])));
  json_object_set_new(object, "variation_average", share_number_value(s.variation_average));
  json_object_set_new(object, "variation_most", share_number_value(s.variation_most));
  json_object_set_new(object, "normalised_none", share_number_value(s.normalised_none));
  json_object_set_new(object, "normalised_worst", share_number_value(s.normalised_worst));
  json_object_set_new(object, "unused_gbs", share_number_value(s.unused_gbs));
  json_object_set_new(object, "borrowed", share_number_value(s.borrowed));
  json_object_set_new(object, "take_back_us", share_number_value(s.take_back_us));
  for (uint32_t a = 0; a < m->measured_count; a++) json_array_append_new(rows, row_value(m, isolation, a));
  json_object_set_new(object, "rows", rows);
  return object;
}

void share_matrix_json(const share_matrix *m, ff_text *out) {
  json_t *root = share_setup_value(m), *alone = json_array(), *isolations = json_array();
  for (uint32_t a = 0; a < m->measured_count; a++) {
    json_t *cell = cell_value(m, share_matrix_alone(m, a));
    json_object_set_new(cell, "program", share_text_value(share_measured_label(m, a)));
    json_object_set_new(cell, "file", share_text_value(m->programs.items[m->measured[a]].path));
    json_array_append_new(alone, cell);
  }
  for (uint32_t i = 0; i < m->isolation_count; i++) json_array_append_new(isolations, isolation_value(m, i));
  json_object_set_new(root, "alone", alone);
  json_object_set_new(root, "isolations", isolations);
  share_dump(root, out);
}
