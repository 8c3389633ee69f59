/* SPDX-License-Identifier: Apache-2.0 */
/* What `farfault report` does with a run and with a sweep's database (report_sweep.c). Private to cli/. */
#ifndef FF_CLI_REPORT_H
#define FF_CLI_REPORT_H

#include <stddef.h>

#include "report/report.h"

/* Writes the page of this JSON (report/html.h) to the file `html`; returns the exit status, after a message. */
int report_page(const char *kind, const char *file, const char *more, const char *json, size_t size, const char *html);

/* Prints the database's points as `farfault results` does, writes them as CSV and as a page where asked (NULL: not).
 * Returns the exit status. */
int report_sweep(const char *file, const char *csv, const char *html);

/* Writes the run as a database with the tables of `nsys export` to `path`. FF_UNSUPPORTED: it has several memory
 * managers, or no history; `file` is its name for messages. */
ff_status report_nsys(const report_run *run, const char *file, const char *path, ff_error *error);

#endif
