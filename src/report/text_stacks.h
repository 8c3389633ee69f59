/* SPDX-License-Identifier: Apache-2.0 */
/* What the table for people says of memory stacks, where a machine has some. Private to report/. */
#ifndef FF_REPORT_PEOPLE_STACKS_H
#define FF_REPORT_PEOPLE_STACKS_H

#include "report/report.h"

/* Under the table of managers: speed, traffic and energy, then what became of the instances. Nothing if no machine has
 * stacks. */
void text_stacks_write(const report_run *run, ff_text *out);
/* Bytes by link, of one simulation that has stacks. */
void text_links_write(const sim_result *result, ff_text *out);

#endif
