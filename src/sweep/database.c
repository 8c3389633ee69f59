/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the database: see database.h. While a sweep runs the file is in SQLite's WAL mode, so that others can read it;
 * a sweep that ends well leaves one file. */
#include "sweep/database.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/output.h"
#include "report/report_stacks.h"
#include "sweep/sweep_columns.h"
#include "sweep/lock.h"
#include "sweep/schema.h"

struct sweep_database {
  char *path;
  const sweep_plan *plan;
  sqlite3 *db;
  sweep_lock lock;
  sqlite3_stmt *finished, *remove, *point, *kernel, *allocation, *timing;
};

static ff_status fail(sweep_database *d, ff_error *error) { return schema_fail(d->db, d->path, error); }
static ff_status run(sweep_database *d, const char *sql, ff_error *error) {
  return schema_run(d->db, d->path, sql, error);
}

/* ---- opening ---- */

static ff_status prepare(sweep_database *d, const char *sql, sqlite3_stmt **statement, ff_error *error) {
  return sqlite3_prepare_v3(d->db, sql, -1, SQLITE_PREPARE_PERSISTENT, statement, NULL) == SQLITE_OK ? FF_OK
                                                                                                     : fail(d, error);
}

/* "INSERT INTO table(first, second..., counters...) VALUES(?, ?, ...)": the columns before the counters come from
 * `columns`. */
static ff_status prepare_insert(sweep_database *d, const char *table, const char *columns, sqlite3_stmt **statement,
                                ff_error *error) {
  ff_text names = {0}, marks = {0};
  ff_text_add(&names, "%s", columns);
  ff_text_add(&marks, "?");
  for (const char *c = columns; *c; c++)
    if (*c == ',') ff_text_add(&marks, ",?");
#define X(name, unit, help) ff_text_add(&names, ",\"" #name "\""), ff_text_add(&marks, ",?");
#include "machine/observe/counters.def"
#undef X
  ff_text sql = {0};
  ff_text_add(&sql, "INSERT INTO %s(%s) VALUES(%s)", table, names.chars, marks.chars);
  ff_status status = prepare(d, sql.chars, statement, error);
  free(sql.chars);
  free(names.chars);
  free(marks.chars);
  return status;
}

static ff_status prepare_all(sweep_database *d, ff_error *error) {
  ff_text columns = {0};
#define X(name, type) ff_text_add(&columns, "%s\"%s\"", columns.length ? "," : "", #name);
  SWEEP_FIXED(X)
#undef X
  for (size_t i = 0; i < d->plan->parameters.count; i++)
    ff_text_add(&columns, ",\"%s\"", d->plan->parameters.items[i].column);
#define X(name, unit, value, help) ff_text_add(&columns, ",\"stacks_" #name "\"");
  REPORT_STACKS_REALS(X)
  REPORT_STACKS_SUMS(X)
#undef X
#define X(name, unit, help) ff_text_add(&columns, ",\"stacks_" #name "\"");
#include "machine/stacks/stacks.def"
#undef X
  ff_text_add(&columns, ",\"stacks_found\"");
  ff_status status = prepare_insert(d, "points", columns.chars, &d->point, error);
  free(columns.chars);
  if (!status) status = prepare_insert(d, "kernels", "point,kernel,name", &d->kernel, error);
  if (!status)
    status = prepare_insert(d, "allocations", "point,allocation,name,id,address,bytes,managed,pinned", &d->allocation,
                            error);
  if (!status) status = prepare(d, "SELECT 1 FROM points WHERE key = ? AND state <> 'failed'", &d->finished, error);
  if (!status) status = prepare(d, "DELETE FROM points WHERE key = ? OR point = ?", &d->remove, error);
  if (!status)
    status =
        prepare(d, "INSERT INTO timing(point, seconds, rank, host, ended) VALUES(?, ?, ?, ?, ?)", &d->timing, error);
  return status;
}

static ff_status put_study(sweep_database *d, ff_error *error) {
  const study *study = d->plan->study;
  char *sql = sqlite3_mprintf("INSERT OR REPLACE INTO study VALUES(1, nullif(%Q, ''), %Q)", study->title, study->text);
  ff_status status = run(d, sql, error);
  sqlite3_free(sql);
  for (size_t i = 0; i < d->plan->machines.count && !status; i++) {
    const sweep_machine *machine = d->plan->machines.items[i];
    sql = sqlite3_mprintf("INSERT OR IGNORE INTO machines VALUES(%Q, %Q, %Q)", machine->hash, machine->name,
                          machine->text);
    status = run(d, sql, error);
    sqlite3_free(sql);
  }
  return status;
}

static ff_status renumber(sweep_database *d, const char *key, int64_t number, ff_error *error) {
  char *sql = sqlite3_mprintf("UPDATE points SET point = %lld WHERE key = %Q", (long long)number, key);
  ff_status status = run(d, sql, error);
  sqlite3_free(sql);
  return status;
}

/* Whether every point that is there has its number: the plan's, or one behind all of them. */
static bool numbers_fit(sweep_database *d, const ff_map *plan_points) {
  sqlite3_stmt *rows = NULL;
  bool fit = sqlite3_prepare_v2(d->db, "SELECT key, point FROM points", -1, &rows, NULL) == SQLITE_OK;
  while (fit && sqlite3_step(rows) == SQLITE_ROW) {
    const char *key = (const char *)sqlite3_column_text(rows, 0);
    const sweep_point *point = key ? ff_map_get(plan_points, key) : NULL;
    int64_t number = sqlite3_column_int64(rows, 1);
    fit = point ? number == point->number : number > (int64_t)d->plan->points.count;
  }
  sqlite3_finalize(rows);
  return fit;
}

/* The study changed since: its points get their new numbers, the others follow in their old order. All go below zero
 * first, as no two may have one number. */
static ff_status give_numbers(sweep_database *d, ff_error *error) {
  ff_map known = {0};
  for (size_t i = 0; i < d->plan->points.count; i++)
    ff_map_set(&known, d->plan->points.items[i]->key, d->plan->points.items[i]);
  bool fit = numbers_fit(d, &known);
  ff_map_free(&known);
  if (fit) return FF_OK;
  ff_status status = run(d, "UPDATE points SET point = -point - 1", error);
  for (size_t i = 0; i < d->plan->points.count && !status; i++)
    status = renumber(d, d->plan->points.items[i]->key, d->plan->points.items[i]->number, error);
  if (status) return status;
  sqlite3_stmt *rows = NULL;
  FF_VEC(char *) keys = {0};
  if (sqlite3_prepare_v2(d->db, "SELECT key FROM points WHERE point < 0 ORDER BY point DESC", -1, &rows, NULL) !=
      SQLITE_OK)
    return fail(d, error);
  while (sqlite3_step(rows) == SQLITE_ROW) FF_PUSH(&keys, ff_strdup((const char *)sqlite3_column_text(rows, 0)));
  sqlite3_finalize(rows);
  for (size_t i = 0; i < keys.count; i++) {
    if (!status) status = renumber(d, keys.items[i], (int64_t)(d->plan->points.count + 1 + i), error);
    free(keys.items[i]);
  }
  free(keys.items);
  return status;
}

static ff_status set_up(sweep_database *d, ff_error *error) {
  ff_status status =
      run(d, "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA foreign_keys=ON; BEGIN IMMEDIATE", error);
  if (status) return status;
  status = schema_make(d->db, d->path, d->plan, error);
  if (!status) status = put_study(d, error);
  if (!status) status = give_numbers(d, error);
  if (!status) status = run(d, "COMMIT", error);
  return status ? status : prepare_all(d, error);
}

ff_status sweep_database_open(const char *path, const sweep_plan *plan, sweep_database **out, ff_error *error) {
  char *target = ff_output_target(path), *real = target ? realpath(target, NULL) : NULL;
  if (!target) return ff_fail(error, FF_IO, "%s: a database needs a regular file", path);
  if (real) free(target);
  sweep_database *d = ff_alloc(sizeof *d);
  *d = (sweep_database){.path = real ? real : target, .plan = plan, .lock = {.fd = -1}};
  ff_status status = sweep_lock_take(d->path, &d->lock, error);
  if (status) goto out;
  if (sqlite3_open_v2(d->path, &d->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL) != SQLITE_OK) {
    status = d->db ? fail(d, error) : ff_fail(error, FF_NO_MEMORY, "%s: cannot open", path);
    goto out;
  }
  sqlite3_busy_timeout(d->db, 10000);
  sqlite3_db_config(d->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
  status = schema_check(d->db, path, true, error);
  if (!status) status = set_up(d, error);
out:
  if (status) sweep_database_close(d);
  else *out = d;
  return status;
}

/* ---- points ---- */

bool sweep_database_has(sweep_database *d, const sweep_point *point) {
  sqlite3_bind_text(d->finished, 1, point->key, -1, SQLITE_STATIC);
  bool has = sqlite3_step(d->finished) == SQLITE_ROW;
  sqlite3_reset(d->finished);
  return has;
}

static void bind_text(sqlite3_stmt *s, int *at, const char *text) {
  if (text) sqlite3_bind_text(s, ++*at, text, -1, SQLITE_STATIC);
  else sqlite3_bind_null(s, ++*at);
}

static void bind_number(sqlite3_stmt *s, int *at, uint64_t number) {
  sqlite3_bind_int64(s, ++*at, (sqlite3_int64)number);
}

/* NULL: none were counted. */
static void bind_counters(sqlite3_stmt *s, int *at, const sim_counters *c) {
#define X(name, unit, help)           \
  if (c) bind_number(s, at, c->name); \
  else sqlite3_bind_null(s, ++*at);
#include "machine/observe/counters.def"
#undef X
}

/* NULL: there are none. In the order of prepare_all. */
static void bind_stacks(sqlite3_stmt *statement, int *at, const sim_stacks *s, const sim_counters *c) {
#define X(name, unit, value, help)                     \
  if (s) sqlite3_bind_double(statement, ++*at, value); \
  else sqlite3_bind_null(statement, ++*at);
  REPORT_STACKS_REALS(X)
#undef X
#define X(name, unit, value, help)          \
  if (s) bind_number(statement, at, value); \
  else sqlite3_bind_null(statement, ++*at);
  REPORT_STACKS_SUMS(X)
#undef X
#define X(name, unit, help)                   \
  if (s) bind_number(statement, at, s->name); \
  else sqlite3_bind_null(statement, ++*at);
#include "machine/stacks/stacks.def"
#undef X
  bind_text(statement, at, s && s->found[0] ? s->found : NULL);
}

/* A value of the machine as the number that it means ("16K": 16384), anything else as it was written. */
static void bind_parameter(sqlite3_stmt *s, int *at, const sweep_parameter *parameter, const char *value) {
  const spec_param *param = parameter->axis < AXIS_CHOICE ? &spec_params[parameter->axis - AXIS_SET] : NULL;
  machine_spec spec = {0};
  const char *place = param ? (const char *)&spec + param->offset : NULL;
  bool number = value && param && (param->type == 'u' || param->type == 'f') &&
                spec_value_parse(param, value, &spec, NULL) == FF_OK;
  if (!number) bind_text(s, at, value);
  else if (param->type == 'u') bind_number(s, at, *(const uint64_t *)place);
  else sqlite3_bind_double(s, ++*at, *(const double *)place);
}

static ff_status step(sweep_database *d, sqlite3_stmt *s, ff_error *error) {
  bool good = sqlite3_step(s) == SQLITE_DONE;
  if (!good) fail(d, error);
  sqlite3_reset(s);
  sqlite3_clear_bindings(s);
  return good ? FF_OK : FF_IO;
}

static const char *outcome_error(const sweep_outcome *outcome) {
  if (!outcome->result) return outcome->error;
  return outcome->result->error[0] ? outcome->result->error : NULL;
}

static ff_status put_point(sweep_database *d, const sweep_point *point, const sweep_outcome *outcome, ff_error *error) {
  const sim_result *result = outcome->result;
  const char *why = outcome_error(outcome);
  int at = 0;
  bind_number(d->point, &at, point->number);
  bind_text(d->point, &at, point->key);
  bind_text(d->point, &at, !result ? "failed" : why ? "refused" : "done");
  bind_text(d->point, &at, why);
  bind_text(d->point, &at, FARFAULT_VERSION);
  bind_text(d->point, &at, point->trace->name);
  bind_text(d->point, &at, point->trace->checksum);
  bind_text(d->point, &at, point->machine->name);
  bind_text(d->point, &at, point->machine->hash);
  bind_text(d->point, &at, point->comparable);
  bind_text(d->point, &at, point->memory);
  for (size_t i = 0; i < d->plan->parameters.count; i++)
    bind_parameter(d->point, &at, &d->plan->parameters.items[i], point->values[i]);
  bool stacks = result && !why && result->stacks.count;
  bind_stacks(d->point, &at, stacks ? &result->stacks : NULL, stacks ? &result->counters : NULL);
  bind_counters(d->point, &at, result && !why ? &result->counters : NULL);
  return step(d, d->point, error);
}

static ff_status put_parts(sweep_database *d, uint32_t number, const sim_result *result, ff_error *error) {
  ff_status status = FF_OK;
  for (uint32_t i = 0; i < result->kernel_count && !status; i++) {
    int at = 0;
    bind_number(d->kernel, &at, number);
    bind_number(d->kernel, &at, i + 1);
    bind_text(d->kernel, &at, result->kernels[i].name);
    bind_counters(d->kernel, &at, &result->kernels[i].counters);
    status = step(d, d->kernel, error);
  }
  for (uint32_t i = 0; i < result->allocation_count && !status; i++) {
    const sim_allocation_result *a = &result->allocations[i];
    int at = 0;
    bind_number(d->allocation, &at, number);
    bind_number(d->allocation, &at, i + 1);
    bind_text(d->allocation, &at, a->name);
    const uint64_t numbers[] = {a->id, a->address, a->bytes, a->managed, a->pinned};
    for (int n = 0; n < 5; n++) bind_number(d->allocation, &at, numbers[n]);
    bind_counters(d->allocation, &at, &a->counters);
    status = step(d, d->allocation, error);
  }
  return status;
}

static ff_status put_timing(sweep_database *d, uint32_t number, const sweep_outcome *outcome, ff_error *error) {
  char ended[32] = "";
  struct tm parts;
  time_t now = time(NULL);
  if (gmtime_r(&now, &parts)) strftime(ended, sizeof ended, "%Y-%m-%dT%H:%M:%SZ", &parts);
  int at = 0;
  bind_number(d->timing, &at, number);
  sqlite3_bind_double(d->timing, ++at, outcome->seconds);
  bind_number(d->timing, &at, outcome->rank);
  bind_text(d->timing, &at, outcome->host);
  bind_text(d->timing, &at, ended);
  return step(d, d->timing, error);
}

ff_status sweep_database_put(sweep_database *d, const sweep_point *point, const sweep_outcome *outcome,
                             ff_error *error) {
  ff_status status = run(d, "BEGIN IMMEDIATE", error);
  if (status) return status;
  int at = 0;
  bind_text(d->remove, &at, point->key);
  bind_number(d->remove, &at, point->number);
  status = step(d, d->remove, error);
  if (!status) status = put_point(d, point, outcome, error);
  if (!status && outcome->result && !outcome_error(outcome))
    status = put_parts(d, point->number, outcome->result, error);
  if (!status) status = put_timing(d, point->number, outcome, error);
  if (!status) status = run(d, "COMMIT", error);
  if (status) sqlite3_exec(d->db, "ROLLBACK", NULL, NULL, NULL);
  return status;
}

uint32_t sweep_database_failures(sweep_database *d, uint32_t limit, ff_text *list) {
  sqlite3_stmt *rows = NULL;
  uint32_t count = 0;
  if (sqlite3_prepare_v2(d->db, "SELECT point, error FROM points WHERE error IS NOT NULL ORDER BY point", -1, &rows,
                         NULL) != SQLITE_OK)
    return 0;
  while (sqlite3_step(rows) == SQLITE_ROW) {
    int64_t number = sqlite3_column_int64(rows, 0);
    if (number < 1 || number > (int64_t)d->plan->points.count) continue;
    if (count++ >= limit || !list) continue;
    ff_text_add(list, "  point %lld (", (long long)number);
    sweep_point_describe(d->plan, d->plan->points.items[number - 1], list);
    ff_text_add(list, "): %s\n", (const char *)sqlite3_column_text(rows, 1));
  }
  sqlite3_finalize(rows);
  return count;
}

void sweep_database_close(sweep_database *d) {
  sqlite3_stmt *statements[] = {d->finished, d->remove, d->point, d->kernel, d->allocation, d->timing};
  for (size_t i = 0; i < sizeof statements / sizeof *statements; i++) sqlite3_finalize(statements[i]);
  if (d->point) { /* a reader may be in the way: then the file stays in WAL mode, which is as good */
    sqlite3_busy_timeout(d->db, 1000);
    sqlite3_exec(d->db, "PRAGMA journal_mode=DELETE", NULL, NULL, NULL);
  }
  sqlite3_close(d->db);
  if (d->lock.path) sweep_lock_release(&d->lock);
  free(d->path);
  free(d);
}
