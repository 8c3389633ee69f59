/* SPDX-License-Identifier: Apache-2.0 */
/* Which lines of the program's kernels cause far-faults and traffic: the table of `--lines`. Private to report/. */
#ifndef FF_REPORT_TEXT_LINES_H
#define FF_REPORT_TEXT_LINES_H

#include "report/report.h"

/* The `limit` lines with the most far-faults of each simulation that has kept them, and what the others add up to. A
 * line is one of the source where that is known, with the lines of PTX that are of it below, else one of the PTX. */
void text_lines_write(const report_run *run, uint32_t limit, ff_text *out);

#endif
