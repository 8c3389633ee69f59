/* SPDX-License-Identifier: Apache-2.0 */
/* The page of a saved run: one HTML file that holds its data, opens from disk and asks nothing of the network.
 *
 * The page itself (markup, styles, scripts, charts) is made from web/ when farfault is built; here the data is put into
 * it. Whatever the data's texts are, they cannot end the element they stand in or become markup:
 * '<', '>', '&' and the two line separators of Unicode are written as JSON's \u escapes, which mean the same to a
 * reader of JSON. */
#ifndef FF_REPORT_HTML_H
#define FF_REPORT_HTML_H

#include <stddef.h>

#include "base/status.h"
#include "base/text.h"
#include "report/report.h"

/* Where the data goes in a page; once in each. */
#define REPORT_HTML_PLACE "\"farfault:data\""

/* Adds `json` (valid JSON) to *out such that it may stand in an HTML element `script`. */
void report_html_embed(const char *json, size_t size, ff_text *out);

/* The page `page` (its whole text) with the data {"kind": kind, "file": file, "counters": [[name, unit, meaning], ...],
 * more, kind: json} in its place, added to *out. `kind` is a plain word; of the path `file` the reader sees the name;
 * `json` must be valid JSON, and `more` further members of such an object ("sources": {...}; NULL: there are none).
 * FF_PARSE with `page_name` in the message: the page has no place for data, or several. */
ff_status report_html_write(const char *page_name, const char *page, size_t page_size, const char *kind,
                            const char *file, const char *more, const char *json, size_t size, ff_text *out,
                            ff_error *error);

/* The same from the page in the file `page_path`. */
ff_status report_html_make(const char *page_path, const char *kind, const char *file, const char *more,
                           const char *json, size_t size, ff_text *out, ff_error *error);

/* The text of the source's lines that the run names, and of those around them, as JSON: {file: {number: text}}; what
 * cannot be read, or is not named as a source, is not there. Added to *out. */
void report_html_sources(const report_run *run, ff_text *out);

/* The advice that `farfault advise --json` wrote to this file, as JSON, added to *out. FF_PARSE: it is something else.
 */
ff_status report_html_advice(const char *path, ff_text *out, ff_error *error);

#endif
