/* SPDX-License-Identifier: Apache-2.0 */
/* What the table for people says of a program's ranges. Private to report/. */
#ifndef FF_REPORT_TEXT_RANGES_H
#define FF_REPORT_TEXT_RANGES_H

#include "report/report.h"

/* A row for each range and for those that are open around it, with the sums of the kernels inside. Nothing if the
 * program has no two ranges. Whether something was written. */
bool text_ranges_write(const sim_result *result, ff_text *out);

#endif
