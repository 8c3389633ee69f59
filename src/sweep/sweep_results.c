/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the database: the view `results` as a table for people, CSV or JSON. The file is opened for reading only, and
 * nothing that stands in it is trusted: a condition may be any SQL expression, but one statement, and it changes
 * nothing. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/table.h"
#include "sweep/sweep_columns.h"
#include "sweep/schema.h"

enum { TEXT_WIDTH = 40, VARYING_SHOWN = 8, COLUMN_LIMIT = TABLE_COLUMNS };

typedef struct reading {
  const char *path;
  sqlite3 *db;
  const sweep_query *query;
  ff_error *error;
  ff_text out;
} reading;

/* How a column looks in the table for people; others are shown as they are. */
typedef enum shown { SHOWN_PLAIN, SHOWN_TIME, SHOWN_RATIO, SHOWN_COUNT, SHOWN_BYTES, SHOWN_SHARE } shown;

static const struct {
  const char *name, *title;
  shown how;
} people[] = {
    {"time_ps", "time", SHOWN_TIME},       {"ratio", "ratio", SHOWN_RATIO},
    {"faults", "far-faults", SHOWN_COUNT}, {"h2d_bytes", "to GPU", SHOWN_BYTES},
    {"d2h_bytes", "to CPU", SHOWN_BYTES},  {"link_utilisation", "link used", SHOWN_SHARE},
};
enum { PEOPLE = sizeof people / sizeof *people };

/* ---- which columns ---- */

typedef FF_VEC(char *) name_list;

static void free_names(name_list *names) {
  for (size_t i = 0; i < names->count; i++) free(names->items[i]);
  free(names->items);
}

/* All columns of the view. */
static ff_status view_columns(reading *r, name_list *names) {
  sqlite3_stmt *statement = NULL;
  if (sqlite3_prepare_v2(r->db, "SELECT * FROM results LIMIT 0", -1, &statement, NULL) != SQLITE_OK)
    return ff_fail(r->error, FF_INVALID, "%s: is not a database of farfault sweep: %s", r->path, sqlite3_errmsg(r->db));
  for (int i = 0; i < sqlite3_column_count(statement); i++)
    FF_PUSH(names, ff_strdup(sqlite3_column_name(statement, i)));
  sqlite3_finalize(statement);
  return FF_OK;
}

static ff_status chosen_columns(reading *r, const name_list *all, name_list *names) {
  const char **known = ff_alloc((all->count + 1) * sizeof *known);
  char *copy = ff_strdup(r->query->columns), *rest = NULL;
  ff_status status = FF_OK;
  memcpy(known, all->items, all->count * sizeof *known);
  for (char *name = strtok_r(copy, ", ", &rest); name && !status; name = strtok_r(NULL, ", ", &rest)) {
    bool found = false;
    for (size_t i = 0; i < all->count; i++) found = found || !strcmp(all->items[i], name);
    const char *near = found ? NULL : ff_closest(name, known);
    if (found && names->count < COLUMN_LIMIT) FF_PUSH(names, ff_strdup(name));
    else if (found) status = ff_fail(r->error, FF_LIMIT, "more than %d columns", COLUMN_LIMIT);
    else
      status = near ? ff_fail(r->error, FF_NOT_FOUND, "%s: has no column '%s': did you mean '%s'?", r->path, name, near)
                    : ff_fail(r->error, FF_NOT_FOUND, "%s: has no column '%s' (--csv shows all)", r->path, name);
  }
  if (!status && !names->count) status = ff_fail(r->error, FF_INVALID, "--columns names none");
  free(copy);
  free(known);
  return status;
}

static bool varies(reading *r, const char *column) {
  ff_text sql = {0};
  ff_text_add(&sql, "SELECT count(*) FROM (SELECT DISTINCT \"%s\" FROM results LIMIT 2)", column);
  bool two = schema_number(r->db, sql.chars) > 1;
  free(sql.chars);
  return two;
}

/* For people: what varies, and what it led to. */
static void people_columns(reading *r, name_list *names) {
  sqlite3_stmt *rows = NULL;
  static const char *const always[] = {"trace", "machine"};
  FF_PUSH(names, ff_strdup("point"));
  for (int i = 0; i < 2; i++)
    if (varies(r, always[i])) FF_PUSH(names, ff_strdup(always[i]));
  if (sqlite3_prepare_v2(r->db, "SELECT \"column\" FROM parameters ORDER BY position", -1, &rows, NULL) == SQLITE_OK)
    while (sqlite3_step(rows) == SQLITE_ROW && names->count < VARYING_SHOWN) {
      const char *column = (const char *)sqlite3_column_text(rows, 0);
      if (column && !strchr(column, '"') && varies(r, column)) FF_PUSH(names, ff_strdup(column));
    }
  sqlite3_finalize(rows);
  FF_PUSH(names, ff_strdup("memory"));
  for (int i = 0; i < PEOPLE; i++) FF_PUSH(names, ff_strdup(people[i].name));
}

/* ---- rows ---- */

static ff_status fail_query(reading *r) {
  if (r->query->where) return ff_fail(r->error, FF_PARSE, "--where %s: %s", r->query->where, sqlite3_errmsg(r->db));
  return ff_fail(r->error, FF_INVALID, "%s: %s", r->path, sqlite3_errmsg(r->db));
}

/* The rows of these columns; with `with_error` the point's error is one more. */
static ff_status prepare(reading *r, const name_list *names, bool with_error, sqlite3_stmt **rows) {
  ff_text sql = {0};
  ff_text_add(&sql, "SELECT ");
  for (size_t i = 0; i < names->count; i++) ff_text_add(&sql, "%s\"%s\"", i ? ", " : "", names->items[i]);
  ff_text_add(&sql, "%s FROM results%s%s%s ORDER BY point", with_error ? ", error" : "",
              r->query->where ? " WHERE (" : "", r->query->where ? r->query->where : "", r->query->where ? "\n)" : "");
  const char *rest = NULL;
  ff_status status = sqlite3_prepare_v2(r->db, sql.chars, -1, rows, &rest) == SQLITE_OK ? FF_OK : fail_query(r);
  if (!status && rest && rest[strspn(rest, " \t\n;")])
    status = ff_fail(r->error, FF_PARSE, "--where %s: is more than a condition", r->query->where);
  if (!status && !sqlite3_stmt_readonly(*rows))
    status = ff_fail(r->error, FF_PARSE, "--where %s: would change the database", r->query->where);
  free(sql.chars);
  return status;
}

static void number_text(sqlite3_stmt *rows, int column, char *buffer, size_t size) {
  if (sqlite3_column_type(rows, column) == SQLITE_INTEGER)
    snprintf(buffer, size, "%lld", (long long)sqlite3_column_int64(rows, column));
  else snprintf(buffer, size, "%.12g", sqlite3_column_double(rows, column));
}

static bool is_number(sqlite3_stmt *rows, int column) {
  return sqlite3_column_type(rows, column) == SQLITE_INTEGER || sqlite3_column_type(rows, column) == SQLITE_FLOAT;
}

/* A text without NULs, "" where there is none. */
static const char *text_of(sqlite3_stmt *rows, int column) {
  const char *text = (const char *)sqlite3_column_text(rows, column);
  return text ? text : "";
}

static void people_cell(table *t, sqlite3_stmt *rows, int column, shown how) {
  char text[64];
  uint64_t count = (uint64_t)sqlite3_column_int64(rows, column);
  if (sqlite3_column_type(rows, column) == SQLITE_NULL) table_cell(t, "-");
  else if (how == SHOWN_TIME) table_cell(t, "%s", report_format_time(count, text, sizeof text));
  else if (how == SHOWN_RATIO) table_cell(t, "%.2fx", sqlite3_column_double(rows, column));
  else if (how == SHOWN_COUNT) table_cell(t, "%s", report_format_count(count, text, sizeof text));
  else if (how == SHOWN_BYTES) table_cell(t, "%s", ff_format_bytes(count, text, sizeof text));
  else if (how == SHOWN_SHARE) table_cell(t, "%.1f %%", 100 * sqlite3_column_double(rows, column));
  else if (is_number(rows, column)) {
    number_text(rows, column, text, sizeof text);
    table_cell(t, "%s", text);
  } else table_cell_cut(t, text_of(rows, column), TEXT_WIDTH);
}

static int find_people(const char *name) {
  for (int i = 0; i < PEOPLE; i++)
    if (!strcmp(people[i].name, name)) return i;
  return -1;
}

/* Errors stand below the table: they are sentences. */
static int write_table(reading *r, const name_list *names, bool pretty, sqlite3_stmt *rows) {
  table t;
  char columns[COLUMN_LIMIT + 1] = "";
  ff_text errors = {0};
  int result;
  bool any = false;
  for (size_t i = 0; i < names->count; i++)
    columns[i] = pretty && find_people(names->items[i]) < 0 && strcmp(names->items[i], "point") != 0 ? 'l' : 'r';
  table_start(&t, columns);
  for (size_t i = 0; i < names->count; i++) {
    int known = pretty ? find_people(names->items[i]) : -1;
    table_cell(&t, "%s", known < 0 ? names->items[i] : people[known].title);
  }
  while ((result = sqlite3_step(rows)) == SQLITE_ROW) {
    any = true;
    for (size_t i = 0; i < names->count; i++) {
      int known = pretty ? find_people(names->items[i]) : -1;
      people_cell(&t, rows, (int)i, known < 0 ? SHOWN_PLAIN : people[known].how);
    }
    const char *why = pretty ? text_of(rows, (int)names->count) : "";
    if (*why) ff_text_add(&errors, "point %lld: %s\n", (long long)sqlite3_column_int64(rows, 0), why);
  }
  table_write(&t, 0, &r->out);
  if (!any) ff_text_add(&r->out, r->query->where ? "(--where holds for no point)\n" : "(no point has run yet)\n");
  for (char *c = errors.chars; c && *c; c++)
    if ((unsigned char)*c < 32 && *c != '\n') *c = '?';
  if (errors.chars) ff_text_add(&r->out, "%s", errors.chars);
  free(errors.chars);
  table_free(&t);
  return result;
}

static void csv_text(ff_text *out, const char *text) {
  bool quote = strpbrk(text, "\",\n\r");
  if (quote) ff_text_add(out, "\"");
  for (; *text; text++) ff_text_add(out, *text == '"' ? "\"\"" : "%c", *text);
  if (quote) ff_text_add(out, "\"");
}

static int write_csv(reading *r, const name_list *names, bool pretty, sqlite3_stmt *rows) {
  int result;
  for (size_t i = 0; i < names->count; i++) {
    if (i) ff_text_add(&r->out, ",");
    csv_text(&r->out, names->items[i]);
  }
  ff_text_add(&r->out, "\n");
  while ((result = sqlite3_step(rows)) == SQLITE_ROW) {
    for (int i = 0; i < (int)names->count; i++) {
      char number[64];
      if (i) ff_text_add(&r->out, ",");
      if (is_number(rows, i)) {
        number_text(rows, i, number, sizeof number);
        ff_text_add(&r->out, "%s", number);
      } else csv_text(&r->out, text_of(rows, i));
    }
    ff_text_add(&r->out, "\n");
  }
  return result;
}

static json_t *json_value(sqlite3_stmt *rows, int column) {
  if (sqlite3_column_type(rows, column) == SQLITE_INTEGER) return json_integer(sqlite3_column_int64(rows, column));
  json_t *value = NULL;
  if (sqlite3_column_type(rows, column) == SQLITE_FLOAT) value = json_real(sqlite3_column_double(rows, column));
  else if (sqlite3_column_type(rows, column) != SQLITE_NULL) value = json_string(text_of(rows, column));
  return value ? value : json_null();
}

static int add_chunk(const char *bytes, size_t size, void *out) {
  ff_text_add_bytes(out, bytes, size);
  return 0;
}

static int write_json(reading *r, const name_list *names, bool pretty, sqlite3_stmt *rows) {
  json_t *list = json_array();
  int result;
  while ((result = sqlite3_step(rows)) == SQLITE_ROW) {
    json_t *object = json_object();
    for (int i = 0; i < (int)names->count; i++) json_object_set_new(object, names->items[i], json_value(rows, i));
    json_array_append_new(list, object);
  }
  json_dump_callback(list, add_chunk, &r->out, JSON_INDENT(1) | JSON_REAL_PRECISION(12));
  ff_text_add(&r->out, "\n");
  json_decref(list);
  return result;
}

/* ---- all of it ---- */

static ff_status read_rows(reading *r, sweep_format format) {
  static int (*const writers[])(reading *, const name_list *, bool, sqlite3_stmt *) = {write_table, write_csv,
                                                                                       write_json};
  name_list all = {0}, names = {0};
  sqlite3_stmt *rows = NULL;
  bool pretty = format == SWEEP_TABLE && !r->query->columns;
  ff_status status = view_columns(r, &all);
  if (!status && r->query->columns) status = chosen_columns(r, &all, &names);
  else if (!status && pretty) people_columns(r, &names);
  if (!status) status = prepare(r, names.count ? &names : &all, pretty, &rows);
  if (!status && writers[format](r, names.count ? &names : &all, pretty, rows) != SQLITE_DONE) status = fail_query(r);
  sqlite3_finalize(rows);
  free_names(&all);
  free_names(&names);
  return status;
}

ff_status sweep_results_read(const char *path, const sweep_query *query, sweep_format format, ff_text *out,
                             ff_error *error) {
  reading r = {.path = path, .query = query, .error = error};
  ff_status status = schema_open(path, &r.db, error);
  if (!status) status = read_rows(&r, format);
  sqlite3_close(r.db);
  if (!status) ff_text_add_bytes(out, r.out.chars ? r.out.chars : "", r.out.length);
  free(r.out.chars);
  return status;
}
