/* SPDX-License-Identifier: Apache-2.0 */
/* What tables for people say of tiers below GPU memory. Private to report/, and used by share/ and cli/ for theirs. */
#ifndef FF_REPORT_TEXT_TIERS_H
#define FF_REPORT_TEXT_TIERS_H

#include "report/report.h"
#include "report/table.h"

/* The columns of a tier, their alignment, those that a narrow terminal can do without, and a tier's cells in them. */
#define TEXT_TIER_NAMES "tier", "holds", "peak", "read", "written", "waits", "waited"
#define TEXT_TIER_ALIGN "lrrrrrr"
#define TEXT_TIER_SPARE "waits", "holds"
void text_tier_cells(const sim_tier *tier, table *t);

/* Under the table of managers: a row for each tier of each simulation that has some. Nothing if none has. */
void text_tiers_write(const report_run *run, ff_text *out);

#endif
