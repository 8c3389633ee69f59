/* SPDX-License-Identifier: Apache-2.0 */
/* What database.c and sweep_results.c share: the schema, and small things about SQLite. Private to sweep/. */
#ifndef FF_SWEEP_SCHEMA_H
#define FF_SWEEP_SCHEMA_H

#include <sqlite3.h>

#include "sweep/database.h"

/* FF_IO with what SQLite says. */
ff_status schema_fail(sqlite3 *db, const char *path, ff_error *error);
ff_status schema_run(sqlite3 *db, const char *path, const char *sql, ff_error *error);
/* The first number of the first row; -1: there is none. */
int64_t schema_number(sqlite3 *db, const char *sql);

/* Is it a database of ours? `writing`: an empty one will be. */
ff_status schema_check(sqlite3 *db, const char *path, bool writing, ff_error *error);
/* Opens a database of ours for reading only; *db is closed by the caller, also after a failure (it may be NULL). */
ff_status schema_open(const char *path, sqlite3 **db, ff_error *error);
/* Within a transaction: makes what is not there for this plan. */
ff_status schema_make(sqlite3 *db, const char *path, const sweep_plan *plan, ff_error *error);

#endif
