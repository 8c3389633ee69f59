/* SPDX-License-Identifier: Apache-2.0 */
/* Deadlines and shares as texts: table, CSV, JSON, picture (share_slo.h).
 *
 * A share that was concluded, not simulated, is told apart from one that was. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "report/report.h"
#include "report/svg.h"
#include "share/share_private.h"
#include "share/share_slo.h"

static const share_deadline *deadline_of(const share_slo *slo, const share_row *row) {
  return &slo->deadlines.items[row->deadline];
}
static const char *program_of(const share_slo *slo, const share_deadline *d) {
  return slo->m->programs.items[d->program].label;
}
static const char *worst_of(const share_slo *slo, const share_looked *l) {
  return slo->m->programs.items[slo->m->interferers[l->worst]].label;
}

static void deadline_text(const share_deadline *d, ff_text *out) {
  char text[32];
  report_format_time((uint64_t)(d->us * 1e6 + 0.5), text, sizeof text);
  ff_text_add(out, d->per_launch ? "%s of each launch on average" : "%s of kernel time", text);
}

/* ---- the table ---- */

static void looked_cells(const share_slo *slo, const share_looked *l, table *t) {
  share_time_cell(t, l ? l->us : NAN);
  if (l) table_cell_cut(t, worst_of(slo, l), 24);
  else table_cell(t, "-");
}

static void row_cells(const share_slo *slo, const share_row *row, table *t) {
  uint32_t answer = share_row_answer(row);
  table_cell(t, "%s", share_isolation_name(row->isolation));
  if (row->colours) table_cell(t, "%u of %u", row->colours, share_machine_colours(slo->m->spec));
  else table_cell(t, "-");
  if (row->error) table_cell(t, "failed");
  else if (!share_row_ended(row)) table_cell(t, "not known");
  else if (answer)
    table_cell(t, "%u of %llu%s", answer, (unsigned long long)slo->m->spec->sm_count, row->irregular ? " (!)" : "");
  else table_cell(t, "none");
  looked_cells(slo, share_row_looked(row, answer ? answer : row->most), t);
  looked_cells(slo, answer > 1 ? share_row_looked(row, answer - 1) : NULL, t);
}

static void write_smallest(const share_slo *slo, uint32_t d, share_isolation isolation, ff_text *out) {
  uint32_t colours = share_machine_colours(slo->m->spec);
  const share_row *row = share_slo_smallest(slo, d, isolation, colours);
  ff_text_add(out, "  smallest share under %s: ", share_isolation_name(isolation));
  if (!row) {
    ff_text_add(out, "none\n");
    return;
  }
  uint32_t sms = share_row_answer(row);
  char time[32];
  share_what(slo->m->spec, sms, row->colours, out);
  ff_text_add(out, " (sm=%.4g%%", 100.0 * sms / (double)slo->m->spec->sm_count);
  if (row->colours) ff_text_add(out, ",memory=%.4g%%", 100.0 * row->colours / colours);
  const share_looked *l = share_row_looked(row, sms);
  ff_text_add(out, "): %s beside %s\n", report_format_time((uint64_t)(l->us * 1e6 + 0.5), time, sizeof time),
              worst_of(slo, l));
}

static void write_notes(const share_slo *slo, const share_row *row, ff_text *out) {
  if (row->error)
    ff_text_add(out, "  %s, %u colour%s: %s\n", share_isolation_name(row->isolation), row->colours,
                row->colours == 1 ? "" : "s", row->error);
  if (!row->irregular) return;
  ff_text_add(out, "  (!) %s", share_isolation_name(row->isolation));
  if (row->colours) ff_text_add(out, ", %u colour%s", row->colours, row->colours == 1 ? "" : "s");
  ff_text_add(out, ": more SMs miss what fewer meet, so all were simulated; these meet it, too:");
  uint32_t answer = share_row_answer(row);
  for (size_t i = 0; i < row->looked.count; i++)
    if (row->looked.items[i].meets && (!answer || row->looked.items[i].sms < answer))
      ff_text_add(out, " %u", row->looked.items[i].sms);
  ff_text_add(out, "\n");
}

static void write_deadline(const share_slo *slo, uint32_t which, ff_text *out) {
  const share_deadline *d = &slo->deadlines.items[which];
  table t;
  ff_text_add(out, "\n%s: at most ", program_of(slo, d));
  deadline_text(d, out);
  ff_text_add(out, "\n");
  table_start(&t, "lrrrlrl");
  const char *const head[] = {"isolation",    "colours",     "SMs needed",  "time",
                              "worst beside", "one SM less", "worst beside"};
  for (int i = 0; i < 7; i++) table_cell(&t, "%s", head[i]);
  for (size_t i = 0; i < slo->rows.count; i++)
    if (slo->rows.items[i].deadline == which) row_cells(slo, &slo->rows.items[i], &t);
  table_write(&t, 2, out);
  table_free(&t);
  for (uint32_t i = 0; i < slo->m->isolation_count; i++) write_smallest(slo, which, slo->m->isolations[i], out);
  for (size_t i = 0; i < slo->rows.count; i++)
    if (slo->rows.items[i].deadline == which) write_notes(slo, &slo->rows.items[i], out);
}

/* Whether the smallest shares of all deadlines are to be had at the same time. */
static void write_together(const share_slo *slo, share_isolation isolation, ff_text *out) {
  uint32_t colours = share_machine_colours(slo->m->spec);
  uint64_t sms = 0, of_memory = 0;
  for (uint32_t d = 0; d < slo->deadlines.count; d++) {
    const share_row *row = share_slo_smallest(slo, d, isolation, colours);
    if (!row) return;
    sms += share_row_answer(row);
    of_memory += row->colours;
  }
  bool fits = sms <= slo->m->spec->sm_count && of_memory <= colours;
  ff_text_add(out, "%s, all of these together: %llu of %llu SMs", share_isolation_name(isolation),
              (unsigned long long)sms, (unsigned long long)slo->m->spec->sm_count);
  if (of_memory) ff_text_add(out, ", %llu of %u colours", (unsigned long long)of_memory, colours);
  ff_text_add(out, fits ? ": one GPU has room for them\n" : ": more than one GPU has\n");
}

static void heading(const share_slo *slo, ff_text *out) {
  const share_matrix *m = slo->m;
  ff_text_add(out, "%s, %u partitions, memory %s", m->machine, m->part_count, m->manager);
  if (m->set) ff_text_add(out, ", %s", m->set);
  if (m->borrow) ff_text_add(out, ", what is idle is lent");
}

void share_slo_table(const share_slo *slo, ff_text *out) {
  heading(slo, out);
  ff_text_add(out, "; beside any of ");
  for (uint32_t i = 0; i < slo->m->interferer_count; i++)
    ff_text_add(out, "%s%s", i ? ", " : "", share_column_label(slo->m, i + 1));
  ff_text_add(out, "; %llu simulation%s\n", (unsigned long long)slo->simulations, slo->simulations == 1 ? "" : "s");
  for (uint32_t d = 0; d < slo->deadlines.count; d++) write_deadline(slo, d, out);
  if (slo->deadlines.count < 2) return;
  ff_text_add(out, "\n");
  for (uint32_t i = 0; i < slo->m->isolation_count; i++) write_together(slo, slo->m->isolations[i], out);
}

/* ---- CSV and JSON ---- */

static void csv_row(const share_slo *slo, const share_row *row, const share_looked *l, ff_text *out) {
  const share_deadline *d = deadline_of(slo, row);
  share_csv_text(program_of(slo, d), out);
  ff_text_add(out, ",%s,%.9g,%d,%u,%u,%.9g,", share_isolation_name(row->isolation), d->us, d->per_launch, row->colours,
              l->sms, l->us);
  share_csv_text(worst_of(slo, l), out);
  ff_text_add(out, ",%d,%d\n", l->meets, share_row_answer(row) == l->sms);
}

void share_slo_csv(const share_slo *slo, ff_text *out) {
  ff_text_add(out, "program,isolation,deadline_us,per_launch,colours,sms,worst_us,beside,meets,answer\n");
  for (size_t i = 0; i < slo->rows.count; i++)
    for (size_t j = 0; j < slo->rows.items[i].looked.count; j++)
      csv_row(slo, &slo->rows.items[i], &slo->rows.items[i].looked.items[j], out);
}

static json_t *row_value(const share_slo *slo, const share_row *row) {
  json_t *object = json_object(), *list = json_array();
  uint32_t answer = share_row_answer(row);
  json_object_set_new(object, "isolation", json_string(share_isolation_name(row->isolation)));
  json_object_set_new(object, "colours", row->colours ? json_integer(row->colours) : json_null());
  json_object_set_new(object, "sms_needed", answer ? json_integer(answer) : json_null());
  json_object_set_new(object, "monotone", json_boolean(!row->irregular));
  if (row->error) json_object_set_new(object, "error", share_text_value(row->error));
  for (size_t i = 0; i < row->looked.count; i++) {
    const share_looked *l = &row->looked.items[i];
    json_t *one = json_object();
    json_object_set_new(one, "sms", json_integer(l->sms));
    json_object_set_new(one, "worst_us", json_real(l->us));
    json_object_set_new(one, "beside", share_text_value(worst_of(slo, l)));
    json_object_set_new(one, "meets", json_boolean(l->meets));
    json_array_append_new(list, one);
  }
  json_object_set_new(object, "simulated", list);
  return object;
}

static json_t *deadline_value(const share_slo *slo, uint32_t which) {
  const share_deadline *d = &slo->deadlines.items[which];
  json_t *object = json_object(), *rows = json_array(), *smallest = json_object();
  json_object_set_new(object, "program", share_text_value(program_of(slo, d)));
  json_object_set_new(object, "deadline_us", json_real(d->us));
  json_object_set_new(object, "per_launch", json_boolean(d->per_launch));
  for (size_t i = 0; i < slo->rows.count; i++)
    if (slo->rows.items[i].deadline == which) json_array_append_new(rows, row_value(slo, &slo->rows.items[i]));
  json_object_set_new(object, "rows", rows);
  for (uint32_t i = 0; i < slo->m->isolation_count; i++) {
    const share_row *row = share_slo_smallest(slo, which, slo->m->isolations[i], share_machine_colours(slo->m->spec));
    json_t *one = row ? json_object() : json_null();
    if (row) json_object_set_new(one, "sms", json_integer(share_row_answer(row)));
    if (row) json_object_set_new(one, "colours", row->colours ? json_integer(row->colours) : json_null());
    json_object_set_new(smallest, share_isolation_name(slo->m->isolations[i]), one);
  }
  json_object_set_new(object, "smallest", smallest);
  return object;
}

void share_slo_json(const share_slo *slo, ff_text *out) {
  json_t *root = json_object(), *deadlines = json_array();
  json_object_set_new(root, "machine", share_text_value(slo->m->machine));
  json_object_set_new(root, "set", slo->m->set ? share_text_value(slo->m->set) : json_null());
  json_object_set_new(root, "memory", share_text_value(slo->m->manager));
  json_object_set_new(root, "borrow", json_boolean(slo->m->borrow));
  json_object_set_new(root, "partitions", json_integer(slo->m->part_count));
  json_object_set_new(root, "sms", json_integer((json_int_t)slo->m->spec->sm_count));
  json_object_set_new(root, "colours", json_integer(share_machine_colours(slo->m->spec)));
  json_object_set_new(root, "simulations", json_integer((json_int_t)slo->simulations));
  for (uint32_t d = 0; d < slo->deadlines.count; d++) json_array_append_new(deadlines, deadline_value(slo, d));
  json_object_set_new(root, "deadlines", deadlines);
  share_dump(root, out);
}

/* ---- the picture: a field per deadline and isolation ---- */

enum { WIDTH = 1100, LEFT = 130, RIGHT = 30, HEIGHT = 24, HEAD = 34, FOOT = 50 };
static const char MET[] = "#009e73", MET_CONCLUDED[] = "#a6dccb", MISSED[] = "#d55e00", MISSED_CONCLUDED[] = "#f2c6a3",
                  UNKNOWN[] = "#eeeeee";

static const char *colour_of(const share_row *row, uint32_t sms) {
  const share_looked *l = share_row_looked(row, sms);
  uint32_t answer = share_row_answer(row);
  if (l) return l->meets ? MET : MISSED;
  if (row->error || !share_row_ended(row) || sms > row->most) return UNKNOWN;
  return answer && sms >= answer ? MET_CONCLUDED : MISSED_CONCLUDED;
}

static void add_row(const share_slo *slo, const share_row *row, bool smallest, double y, ff_text *out) {
  uint32_t sms = (uint32_t)slo->m->spec->sm_count;
  double width = (double)(WIDTH - LEFT - RIGHT) / sms;
  char text[48] = "all memory";
  if (row->colours) snprintf(text, sizeof text, "%u colour%s", row->colours, row->colours == 1 ? "" : "s");
  svg_text(out, LEFT - 8, y + HEIGHT / 2.0 + 4, "text-anchor=\"end\" font-size=\"12\"", text);
  for (uint32_t i = 1; i <= sms; i++) {
    char style[96];
    snprintf(style, sizeof style, "fill=\"%s\" stroke=\"#fff\" stroke-width=\"0.8\"", colour_of(row, i));
    svg_rect(out, LEFT + width * (i - 1), y, width, HEIGHT, style);
  }
  uint32_t answer = share_row_answer(row);
  if (smallest)
    svg_rect(out, LEFT + width * (answer - 1) + 1, y + 1, width - 2, HEIGHT - 2,
             "fill=\"none\" stroke=\"#000\" stroke-width=\"2\"");
}

static double add_field(const share_slo *slo, uint32_t which, share_isolation isolation, double y, ff_text *out) {
  const share_row *smallest = share_slo_smallest(slo, which, isolation, share_machine_colours(slo->m->spec));
  uint32_t sms = (uint32_t)slo->m->spec->sm_count, step = sms > 40 ? 10 : sms > 12 ? 5 : 1;
  ff_text title = {0};
  ff_text_add(&title, "%s within ", program_of(slo, &slo->deadlines.items[which]));
  deadline_text(&slo->deadlines.items[which], &title);
  ff_text_add(&title, ", %s", share_isolation_name(isolation));
  svg_text(out, 20, y + 18, "font-size=\"15\" font-weight=\"bold\"", title.chars);
  free(title.chars);
  y += HEAD;
  for (size_t i = slo->rows.count; i-- > 0;) {
    const share_row *row = &slo->rows.items[i];
    if (row->deadline != which || row->isolation != isolation) continue;
    add_row(slo, row, row == smallest, y, out);
    y += HEIGHT;
  }
  for (uint32_t i = 1; i <= sms; i++) {
    char label[16];
    if (i != 1 && i % step) continue;
    snprintf(label, sizeof label, "%u", i);
    svg_text(out, LEFT + (double)(WIDTH - LEFT - RIGHT) / sms * (i - 0.5), y + 16,
             "text-anchor=\"middle\" font-size=\"12\"", label);
  }
  svg_text(out, LEFT + (WIDTH - LEFT - RIGHT) / 2.0, y + 34, "text-anchor=\"middle\" font-size=\"13\"", "SMs");
  return y + FOOT;
}

void share_slo_svg(const share_slo *slo, const char *below, ff_text *out) {
  static const struct {
    const char *colour, *name;
  } legend[] = {{MET, "meets the deadline beside every interferer"},
                {MET_CONCLUDED, "meets it, concluded"},
                {MISSED, "misses it beside one"},
                {MISSED_CONCLUDED, "misses it, concluded"},
                {UNKNOWN, "the others need it, or not known"}};
  ff_text title = {0}, body = {0};
  svg_legend l = {20, 52, 20, WIDTH - RIGHT};
  heading(slo, &title);
  for (size_t i = 0; i < sizeof legend / sizeof legend[0]; i++)
    svg_legend_box(&l, legend[i].colour, legend[i].name, &body);
  svg_legend_line(&l, "stroke=\"#000\" stroke-width=\"3\"", "framed: the smallest share", &body);
  double y = l.y + 12;
  for (uint32_t d = 0; d < slo->deadlines.count; d++)
    for (uint32_t i = 0; i < slo->m->isolation_count; i++) y = add_field(slo, d, slo->m->isolations[i], y, &body);
  svg_begin(WIDTH, y + 26, title.chars, out);
  ff_text_add_bytes(out, body.chars, body.length);
  svg_text(out, 20, y + 10, "font-size=\"12\" fill=\"#444\"", below);
  svg_end(out);
  free(title.chars);
  free(body.chars);
}
