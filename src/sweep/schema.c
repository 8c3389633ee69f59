/* SPDX-License-Identifier: Apache-2.0 */
/* The tables and views of the database, from the tables of counters and columns. What is there already is kept: a
 * database that an earlier farfault or another study made gets the columns that it lacks. */
#include "sweep/schema.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report/report_stacks.h"
#include "sweep/sweep_columns.h"

static const char *const counters[] = {
#define X(name, unit, help) #name,
#include "machine/observe/counters.def"
#undef X
    NULL};

/* Only of points: kernels and allocations have none. */
static const struct {
  const char *name, *type;
} stack_columns[] = {
#define X(name, unit, value, help) {"stacks_" #name, "REAL"},
    REPORT_STACKS_REALS(X)
#undef X
#define X(name, unit, value, help) {"stacks_" #name, "INTEGER"},
        REPORT_STACKS_SUMS(X)
#undef X
#define X(name, unit, help) {"stacks_" #name, "INTEGER"},
#include "machine/stacks/stacks.def"
#undef X
            {"stacks_found", "TEXT"}};
enum { STACK_COLUMNS = sizeof stack_columns / sizeof *stack_columns };

ff_status schema_fail(sqlite3 *db, const char *path, ff_error *error) {
  return ff_fail(error, FF_IO, "%s: %s", path, sqlite3_errmsg(db));
}

ff_status schema_run(sqlite3 *db, const char *path, const char *sql, ff_error *error) {
  return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK ? FF_OK : schema_fail(db, path, error);
}

int64_t schema_number(sqlite3 *db, const char *sql) {
  sqlite3_stmt *statement = NULL;
  int64_t number = -1;
  if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK && sqlite3_step(statement) == SQLITE_ROW)
    number = sqlite3_column_int64(statement, 0);
  sqlite3_finalize(statement);
  return number;
}

static void add_counters(ff_text *sql) {
  for (const char *const *each = counters; *each; each++) ff_text_add(sql, ", \"%s\" INTEGER", *each);
}

static ff_status make_tables(sqlite3 *db, const char *path, ff_error *error) {
  ff_text sql = {0};
  ff_text_add(&sql, "PRAGMA application_id=%d; PRAGMA user_version=%d;", SWEEP_APPLICATION, SWEEP_SCHEMA);
  ff_text_add(
      &sql,
      "CREATE TABLE study(id INTEGER PRIMARY KEY CHECK(id = 1), title TEXT, text TEXT NOT NULL);"
      "CREATE TABLE parameters(position INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, \"column\" TEXT NOT NULL UNIQUE, kind TEXT NOT NULL);"
      "CREATE TABLE machines(hash TEXT NOT NULL, name TEXT NOT NULL, text TEXT NOT NULL, PRIMARY KEY(hash, name)) WITHOUT ROWID;");
  ff_text_add(&sql, "CREATE TABLE points(");
#define X(name, type) ff_text_add(&sql, "%s\"%s\" %s", !strcmp(#name, "point") ? "" : ", ", #name, type);
  SWEEP_FIXED(X)
#undef X
  add_counters(&sql);
  for (int i = 0; i < STACK_COLUMNS; i++)
    ff_text_add(&sql, ", \"%s\" %s", stack_columns[i].name, stack_columns[i].type);
  ff_text_add(&sql, "); CREATE INDEX points_comparable ON points(comparable, memory);");
  const char *owner = "point INTEGER NOT NULL REFERENCES points(point) ON UPDATE CASCADE ON DELETE CASCADE";
  ff_text_add(&sql, "CREATE TABLE kernels(%s, kernel INTEGER NOT NULL, name TEXT NOT NULL", owner);
  add_counters(&sql);
  ff_text_add(
      &sql,
      ", PRIMARY KEY(point, kernel)) WITHOUT ROWID; CREATE TABLE allocations(%s, allocation INTEGER NOT NULL, name TEXT NOT NULL, id INTEGER, "
      "address INTEGER, bytes INTEGER, managed INTEGER, pinned INTEGER",
      owner);
  add_counters(&sql);
  ff_text_add(&sql, ", PRIMARY KEY(point, allocation)) WITHOUT ROWID;");
  ff_text_add(
      &sql,
      "CREATE TABLE timing(point INTEGER PRIMARY KEY REFERENCES points(point) ON UPDATE CASCADE ON DELETE CASCADE, seconds REAL, rank INTEGER, host TEXT, ended TEXT);");
  ff_text_add(
      &sql,
      "CREATE VIEW machines_of_points AS SELECT p.point, m.name AS machine, m.hash AS machine_hash, m.text FROM points p "
      "JOIN machines m ON m.hash = p.machine_hash AND m.name = p.machine;");
  ff_status status = schema_run(db, path, sql.chars, error);
  free(sql.chars);
  return status;
}

static bool has_column(sqlite3 *db, const char *table, const char *column) {
  return sqlite3_table_column_metadata(db, NULL, table, column, NULL, NULL, NULL, NULL, NULL) == SQLITE_OK;
}

static ff_status add_column(sqlite3 *db, const char *path, const char *table, const char *column, const char *type,
                            ff_error *error) {
  if (has_column(db, table, column)) return FF_OK;
  ff_text sql = {0};
  ff_text_add(&sql, "ALTER TABLE %s ADD COLUMN \"%s\" %s", table, column, type);
  ff_status status = schema_run(db, path, sql.chars, error);
  free(sql.chars);
  return status;
}

static ff_status add_parameters(sqlite3 *db, const char *path, const sweep_plan *plan, ff_error *error) {
  for (size_t i = 0; i < plan->parameters.count; i++) {
    const sweep_parameter *parameter = &plan->parameters.items[i];
    bool set = parameter->axis < AXIS_CHOICE;
    bool number = set && (spec_params[parameter->axis - AXIS_SET].type == 'u' ||
                          spec_params[parameter->axis - AXIS_SET].type == 'f');
    ff_status status = add_column(db, path, "points", parameter->column, number ? "NUMERIC" : "TEXT", error);
    if (status) return status;
    char *sql = sqlite3_mprintf("INSERT OR IGNORE INTO parameters(name, \"column\", kind) VALUES(%Q, %Q, %Q)",
                                study_axis_name(parameter->axis), parameter->column, set ? "machine" : "choice");
    status = schema_run(db, path, sql, error);
    sqlite3_free(sql);
    if (status) return status;
  }
  return FF_OK;
}

/* What an earlier farfault did not count. */
static ff_status add_new_counters(sqlite3 *db, const char *path, ff_error *error) {
  static const char *const tables[] = {"points", "kernels", "allocations"};
  for (int i = 0; i < 3; i++)
    for (const char *const *each = counters; *each; each++) {
      ff_status status = add_column(db, path, tables[i], *each, "INTEGER", error);
      if (status) return status;
    }
  for (int i = 0; i < STACK_COLUMNS; i++) {
    ff_status status = add_column(db, path, "points", stack_columns[i].name, stack_columns[i].type, error);
    if (status) return status;
  }
  return FF_OK;
}

/* The view `results`: what people ask for, in the order in which they read. */
static char *view_text(sqlite3 *db) {
  ff_text sql = {0};
  ff_text_add(
      &sql,
      "CREATE VIEW results AS SELECT p.point, p.state, p.error, p.version, p.trace, p.trace_checksum, p.machine, p.machine_hash, p.memory");
  sqlite3_stmt *statement = NULL;
  sqlite3_prepare_v2(db, "SELECT \"column\" FROM parameters ORDER BY position", -1, &statement, NULL);
  while (statement && sqlite3_step(statement) == SQLITE_ROW)
    ff_text_add(&sql, ", p.\"%s\"", (const char *)sqlite3_column_text(statement, 0));
  sqlite3_finalize(statement);
#define X(name, expression) ff_text_add(&sql, ", " expression " AS " #name);
  SWEEP_DERIVED(X)
#undef X
  for (const char *const *each = counters; *each; each++) ff_text_add(&sql, ", p.\"%s\"", *each);
  for (int i = 0; i < STACK_COLUMNS; i++) ff_text_add(&sql, ", p.\"%s\"", stack_columns[i].name);
  ff_text_add(&sql, " FROM points p ORDER BY p.point");
  return sql.chars;
}

static ff_status make_view(sqlite3 *db, const char *path, ff_error *error) {
  char *text = view_text(db);
  sqlite3_stmt *statement = NULL;
  bool same = sqlite3_prepare_v2(db, "SELECT sql FROM sqlite_master WHERE type = 'view' AND name = 'results'", -1,
                                 &statement, NULL) == SQLITE_OK &&
              sqlite3_step(statement) == SQLITE_ROW && !strcmp((const char *)sqlite3_column_text(statement, 0), text);
  sqlite3_finalize(statement);
  ff_status status = same ? FF_OK : schema_run(db, path, "DROP VIEW IF EXISTS results", error);
  if (!same && !status) status = schema_run(db, path, text, error);
  free(text);
  return status;
}

/* SQLite reads a damaged file as far as a question needs it, and may leave rows out without a word. */
static ff_status whole(sqlite3 *db, const char *path, ff_error *error) {
  sqlite3_stmt *statement = NULL;
  const char *found = NULL;
  if (sqlite3_prepare_v2(db, "PRAGMA quick_check(1)", -1, &statement, NULL) == SQLITE_OK &&
      sqlite3_step(statement) == SQLITE_ROW)
    found = (const char *)sqlite3_column_text(statement, 0);
  ff_status status = FF_OK;
  if (!found && (sqlite3_errcode(db) & 0xff) == SQLITE_BUSY)
    status = ff_fail(error, FF_IO, "%s: cannot be read now: another process is writing it", path);
  else if (!found || strcmp(found, "ok")) {
    const char *line = found ? strrchr(found, '\n') : NULL; /* the first says which database */
    status = ff_fail(error, FF_INVALID, "%s: is damaged: %s", path,
                     line    ? line + 1
                     : found ? found
                             : sqlite3_errmsg(db));
  }
  sqlite3_finalize(statement);
  return status;
}

ff_status schema_check(sqlite3 *db, const char *path, bool writing, ff_error *error) {
  int64_t application = schema_number(db, "PRAGMA application_id"), version = schema_number(db, "PRAGMA user_version");
  int64_t things = schema_number(db, "SELECT count(*) FROM sqlite_master");
  if (things < 0 && (sqlite3_errcode(db) & 0xff) == SQLITE_BUSY)
    return ff_fail(error, FF_IO, "%s: cannot be read now: another process is writing it", path);
  if (things < 0)
    return ff_fail(error, FF_INVALID, "%s: is not a database of farfault sweep: %s", path, sqlite3_errmsg(db));
  if (writing && !application && !things) return FF_OK; /* empty: a new one, or one that was being made */
  if (application != SWEEP_APPLICATION)
    return ff_fail(error, FF_INVALID, "%s: is not a database of farfault sweep", path);
  if (version > SWEEP_SCHEMA)
    return ff_fail(error, FF_INVALID, "%s: was written by a later farfault (schema %lld; this one knows %d)", path,
                   (long long)version, SWEEP_SCHEMA);
  return whole(db, path, error);
}

ff_status schema_make(sqlite3 *db, const char *path, const sweep_plan *plan, ff_error *error) {
  ff_status status = FF_OK;
  if (!schema_number(db, "SELECT count(*) FROM sqlite_master")) status = make_tables(db, path, error);
  else status = add_new_counters(db, path, error);
  if (!status) status = add_parameters(db, path, plan, error);
  return status ? status : make_view(db, path, error);
}

ff_status schema_open(const char *path, sqlite3 **db, ff_error *error) {
  *db = NULL;
  if (access(path, R_OK)) return ff_fail(error, FF_IO, "%s: cannot open: %s", path, strerror(errno));
  if (sqlite3_open_v2(path, db, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK)
    return ff_fail(error, FF_IO, "%s: cannot open: %s", path, *db ? sqlite3_errmsg(*db) : "no memory");
  sqlite3_busy_timeout(*db, 10000);
  sqlite3_db_config(*db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
  sqlite3_db_config(*db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
  sqlite3_limit(*db, SQLITE_LIMIT_ATTACHED, 0);
  return schema_check(*db, path, false, error);
}
