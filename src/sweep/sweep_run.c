/* SPDX-License-Identifier: Apache-2.0 */
/* A database as one run (database.h): for comparing two of them. Columns that this farfault knows and the file lacks
 * count as 0; nothing that stands in the file is trusted. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "sweep/schema.h"

typedef struct reading {
  const char *path;
  sqlite3 *db;
  report_run *run;
  ff_error *error;
  FF_VEC(int64_t) points; /* numbers of the results, ascending */
  size_t rows;            /* of kernels and allocations */
  ff_text names;          /* of parameters' columns, each behind a comma */
  int parameters;         /* how many */
} reading;

static const char *const counter_names[] = {
#define X(name, unit, help) #name,
#include "machine/observe/counters.def"
#undef X
};
enum { COUNTERS = sizeof counter_names / sizeof *counter_names };

static const char *text_of(sqlite3_stmt *row, int column) {
  const char *text = (const char *)sqlite3_column_text(row, column);
  return text ? text : "";
}

static uint64_t number_of(sqlite3_stmt *row, int column) {
  int64_t number = sqlite3_column_int64(row, column);
  return number > 0 ? (uint64_t)number : 0;
}

static bool has_column(const reading *r, const char *table, const char *column) {
  return sqlite3_table_column_metadata(r->db, NULL, table, column, NULL, NULL, NULL, NULL, NULL) == SQLITE_OK;
}

/* ", faults, ..., 0": a value for each counter. */
static void add_counters(const reading *r, const char *table, ff_text *sql) {
  for (int i = 0; i < COUNTERS; i++)
    ff_text_add(sql, has_column(r, table, counter_names[i]) ? ", \"%s\"" : ", 0 AS \"%s\"", counter_names[i]);
}

static void take_counters(sqlite3_stmt *row, int column, sim_counters *c) {
#define X(name, unit, help) c->name = number_of(row, column++);
#include "machine/observe/counters.def"
#undef X
}

/* Calls `take` for each row of a query. */
static ff_status each_row(reading *r, const char *sql, ff_status (*take)(reading *, sqlite3_stmt *)) {
  sqlite3_stmt *rows = NULL;
  int result = sqlite3_prepare_v2(r->db, sql, -1, &rows, NULL);
  ff_status status = FF_OK;
  if (result == SQLITE_OK)
    while (!status && (result = sqlite3_step(rows)) == SQLITE_ROW) status = take(r, rows);
  if (!status && result != SQLITE_DONE)
    status = ff_fail(r->error, FF_INVALID, "%s: %s", r->path, sqlite3_errmsg(r->db));
  sqlite3_finalize(rows);
  return status;
}

static ff_status take_parameter(reading *r, sqlite3_stmt *row) {
  const char *column = text_of(row, 0);
  if (strchr(column, '"') || !has_column(r, "points", column)) return FF_OK;
  ff_text_add(&r->names, ", \"%s\"", column);
  r->parameters++;
  return FF_OK;
}

/* point, state, error, machine, memory, trace, version, parameters, counters. The manager's name is
 * "uvm gpu_memory=50% on h200: a.fft". */
enum { PARAMETERS_FROM = 7, ROWS_MAX = 500 * 1000 };
static ff_status take_point(reading *r, sqlite3_stmt *row) {
  report_run *run = r->run;
  if (run->result_count == SWEEP_RUN_POINTS)
    return ff_fail(r->error, FF_INVALID, "%s: has more than %d points", r->path, SWEEP_RUN_POINTS);
  run->results = ff_realloc(run->results, (run->result_count + 1) * sizeof *run->results);
  sim_result *result = &run->results[run->result_count++];
  *result = (sim_result){.complete = true};
  ff_text name = {0};
  ff_text_add(&name, "%s", text_of(row, 4));
  for (int i = PARAMETERS_FROM; i < PARAMETERS_FROM + r->parameters; i++)
    if (sqlite3_column_type(row, i) != SQLITE_NULL)
      ff_text_add(&name, " %s=%s", sqlite3_column_name(row, i), text_of(row, i));
  ff_text_add(&name, " on %s: %s", text_of(row, 3), text_of(row, 5));
  report_cut_name(result->memory, sizeof result->memory, name.chars);
  report_cut_name(result->machine, sizeof result->machine, text_of(row, 3));
  report_cut_name(run->version, sizeof run->version, text_of(row, 6));
  if (strcmp(text_of(row, 1), "done") != 0)
    report_cut_name(result->error, sizeof result->error, *text_of(row, 2) ? text_of(row, 2) : "refused");
  take_counters(row, PARAMETERS_FROM + r->parameters, &result->counters);
  FF_PUSH(&r->points, sqlite3_column_int64(row, 0));
  free(name.chars);
  return FF_OK;
}

static ff_status read_points(reading *r) {
  ff_text sql = {0};
  ff_status status = each_row(r, "SELECT \"column\" FROM parameters ORDER BY position", take_parameter);
  ff_text_add(&sql, "SELECT point, state, error, machine, memory, trace, version%s",
              r->names.chars ? r->names.chars : "");
  add_counters(r, "points", &sql);
  ff_text_add(&sql, " FROM points WHERE state IN ('done', 'refused') ORDER BY point");
  if (!status) status = each_row(r, sql.chars, take_point);
  free(sql.chars);
  return status;
}

/* The result of the point that a row of kernels or allocations is of; NULL: of none that is looked at. */
static sim_result *owner_of(const reading *r, sqlite3_stmt *row) {
  int64_t point = sqlite3_column_int64(row, 0);
  size_t low = 0, high = r->points.count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (r->points.items[middle] < point) low = middle + 1;
    else high = middle;
  }
  return low < r->points.count && r->points.items[low] == point ? &r->run->results[low] : NULL;
}

static ff_status count_row(reading *r) {
  if (r->rows++ < ROWS_MAX) return FF_OK;
  return ff_fail(r->error, FF_INVALID, "%s: has more than %d kernels and allocations", r->path, ROWS_MAX);
}

static ff_status take_kernel(reading *r, sqlite3_stmt *row) {
  sim_result *result = owner_of(r, row);
  if (!result) return FF_OK;
  result->kernels = ff_realloc(result->kernels, (result->kernel_count + 1) * sizeof *result->kernels);
  sim_kernel_result *kernel = &result->kernels[result->kernel_count++];
  *kernel = (sim_kernel_result){0};
  report_cut_name(kernel->name, sizeof kernel->name, text_of(row, 1));
  take_counters(row, 2, &kernel->counters);
  return count_row(r);
}

static ff_status take_allocation(reading *r, sqlite3_stmt *row) {
  sim_result *result = owner_of(r, row);
  if (!result) return FF_OK;
  result->allocations = ff_realloc(result->allocations, (result->allocation_count + 1) * sizeof *result->allocations);
  sim_allocation_result *allocation = &result->allocations[result->allocation_count++];
  *allocation = (sim_allocation_result){.bytes = number_of(row, 2)};
  report_cut_name(allocation->name, sizeof allocation->name, text_of(row, 1));
  take_counters(row, 3, &allocation->counters);
  return count_row(r);
}

static ff_status read_parts(reading *r) {
  ff_text kernels = {0}, allocations = {0};
  ff_text_add(&kernels, "SELECT point, name");
  add_counters(r, "kernels", &kernels);
  ff_text_add(&kernels, " FROM kernels ORDER BY point, kernel");
  ff_text_add(&allocations, "SELECT point, name, bytes");
  add_counters(r, "allocations", &allocations);
  ff_text_add(&allocations, " FROM allocations ORDER BY point, allocation");
  ff_status status = each_row(r, kernels.chars, take_kernel);
  if (!status) status = each_row(r, allocations.chars, take_allocation);
  free(kernels.chars);
  free(allocations.chars);
  return status;
}

ff_status sweep_run_read(const char *path, report_run *run, ff_error *error) {
  *run = (report_run){.complete = true};
  reading r = {.path = path, .run = run, .error = error};
  ff_status status = schema_open(path, &r.db, error);
  if (!status) status = read_points(&r);
  if (!status) status = read_parts(&r);
  sqlite3_close(r.db);
  free(r.points.items);
  free(r.names.chars);
  if (status) report_free(run);
  return status;
}
