/* SPDX-License-Identifier: Apache-2.0 */
/* The results of a sweep in SQLite (docs/results-db.md): written a point at a time, read by `farfault results` and by
 * people.
 *
 * A point and everything that belongs to it comes in one transaction, so that a sweep that was
 * killed at any moment leaves whole points; only `timing` differs between two sweeps of one study; one process writes
 * at a time. */
#ifndef FF_SWEEP_DATABASE_H
#define FF_SWEEP_DATABASE_H

#include "report/report.h"
#include "sweep/study_plan.h"

#define SWEEP_APPLICATION 0x66667377 /* "ffsw", in the file's header */
enum { SWEEP_SCHEMA = 1 };

typedef struct sweep_database sweep_database;

typedef struct sweep_outcome { /* of a point; texts are borrowed */
  const sim_result *result;    /* NULL: there is none */
  const char *error;           /* then why */
  const char *host;            /* where it ran */
  uint32_t rank;               /* and at which rank of mpirun's; 0: the one that has the database */
  double seconds;              /* how long */
} sweep_outcome;

/* Opens the database for writing, or makes it; points that are there get the plan's numbers, those that the plan has
 * not come behind them. The plan is borrowed. FF_INVALID: the file is something else, of a later farfault, or in use by
 * another sweep. */
ff_status sweep_database_open(const char *path, const sweep_plan *plan, sweep_database **out, ff_error *error);
/* Whether the point is finished: simulated, or refused by its manager. */
bool sweep_database_has(sweep_database *database, const sweep_point *point);
ff_status sweep_database_put(sweep_database *database, const sweep_point *point, const sweep_outcome *outcome,
                             ff_error *error);
/* How many of the plan's points have an error; `list` takes a line for each of the first `limit`, if not NULL. */
uint32_t sweep_database_failures(sweep_database *database, uint32_t limit, ff_text *list);
void sweep_database_close(sweep_database *database);

/* ---- sweep_results.c: reading ---- */

typedef struct sweep_query {
  const char *where;   /* an SQL condition; NULL: all points */
  const char *columns; /* "a,b"; NULL: all of the view `results`, or those for people */
} sweep_query;

typedef enum sweep_format { SWEEP_TABLE, SWEEP_CSV, SWEEP_JSON } sweep_format;
/* Adds the table of points to `out`. FF_INVALID: no such database; FF_PARSE: what SQLite says of the condition. */
ff_status sweep_results_read(const char *path, const sweep_query *query, sweep_format format, ff_text *out,
                             ff_error *error);

/* ---- sweep_run.c ---- */

/* All points that were simulated or refused as one run, with their kernels and allocations: a result's `memory` is the
 * manager, the point's parameters, its machine and its trace in words, `machine` its machine; `device` is 0.
 * report_free. FF_INVALID: no such database, or one of more than SWEEP_RUN_POINTS points. */
enum { SWEEP_RUN_POINTS = 20000 };
ff_status sweep_run_read(const char *path, report_run *run, ff_error *error);

#endif
