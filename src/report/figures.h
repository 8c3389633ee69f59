/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures of a run for papers: one SVG file each, in a folder.
 *
 *     times.svg               time, kernels and transfers per manager
 *     timeline-MANAGER.svg    streams, the link, batches of far-faults; resident memory and far-faults below
 *     link-MANAGER.svg        use of the link each way over time
 *     heat-MANAGER.svg        allocations by address over time: accesses, what is resident, far-faults, evictions
 *
 *     stacks.svg              of a machine with memory stacks: speed, traffic off the chip, colocation, energy of all simulations
 *     links-MANAGER.svg       of these: bytes by link
 *
 * Those over time need the manager's history. In MANAGER what is no letter, digit, dot, plus, equals sign or dash is an
 * underscore. */
#ifndef FF_REPORT_FIGURES_H
#define FF_REPORT_FIGURES_H

#include "report/report.h"

/* Makes the folder (its parent must be there) and writes what there is to draw; *count: the files. FF_IO. */
ff_status report_figures_write(const report_run *run, const char *folder, uint32_t *count, ff_error *error);

/* One picture each, added to *out; the result must have a history, but for stacks. The last: false, and nothing is
 * added, if no memory was used. */
void figure_times(const report_run *run, ff_text *out);
void figure_stacks(const report_run *run, ff_text *out);
/* false: it has no stacks, and nothing is added */
bool figure_stack_links(const report_run *run, const sim_result *result, ff_text *out);
void figure_timeline(const report_run *run, const sim_result *result, ff_text *out);
void figure_link(const report_run *run, const sim_result *result, ff_text *out);
bool figure_heat(const report_run *run, const sim_result *result, ff_text *out);

/* For these: "PROGRAM on MACHINE, memory MANAGER", cut to a line; the caller frees it. And the time that a plot
 * shows. */
char *figure_title(const report_run *run, const sim_result *result);
uint64_t figure_end(const sim_result *result);

#endif
