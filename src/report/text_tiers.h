/* SPDX-License-Identifier: Apache-2.0 */
/* What the table for people says of tiers below GPU memory. Private to report/. */
#ifndef FF_REPORT_TEXT_TIERS_H
#define FF_REPORT_TEXT_TIERS_H

#include "report/report.h"

/* Under the table of managers: a row for each tier of each simulation that has some. Nothing if none has. */
void text_tiers_write(const report_run *run, ff_text *out);

#endif
