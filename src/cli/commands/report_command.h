/* SPDX-License-Identifier: Apache-2.0 */
/* What `farfault report` does with a run and with a sweep's database (report_sweep.c), and what `farfault view` takes
 * of it. Private to cli/. */
#ifndef FF_CLI_REPORT_H
#define FF_CLI_REPORT_H

#include <stddef.h>

#include "report/report.h"

/* Writes the page of this JSON (report/html.h) to the file `html`; returns the exit status, after a message. */
int report_page(const char *kind, const char *file, const char *more, const char *json, size_t size, const char *html);

/* The same page added to *out; messages begin with `option` ("--html: ", or ""). */
int report_page_text(const char *option, const char *kind, const char *file, const char *more, const char *json,
                     size_t size, ff_text *out);

/* What the page of a run has besides the run, as members of its data: the texts of the source's lines, and the advice
 * of the file `advice` (NULL: none). Added to *more, which stays empty if there is nothing. Returns the exit status. */
int report_page_more(const report_run *run, const char *advice, ff_text *more);

/* The data of the page of a sweep's database, added to *json. Says with `option` in front if the page has less than the
 * database. Returns the exit status. */
int report_sweep_data(const char *option, const char *file, ff_text *json);

/* Prints the database's points as `farfault results` does, writes them as CSV and as a page where asked (NULL: not; CSV
 * to "-": to stdout instead of the table). Returns the exit status. */
int report_sweep(const char *file, const char *csv, const char *html);

/* Writes the run as a database with the tables of `nsys export` to `path`. FF_UNSUPPORTED: it has several memory
 * managers, or no history; `file` is its name for messages. */
ff_status report_nsys(const report_run *run, const char *file, const char *path, ff_error *error);

#endif
