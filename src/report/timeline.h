/* SPDX-License-Identifier: Apache-2.0 */
/* A run's histories in the trace event format that chrome://tracing and ui.perfetto.dev read.
 *
 * A process per manager; in it a track per stream (kernels, copies), one per direction of the link, one for batches of
 * far-faults; series as counters. The text is JSON; only complete ('X'), counter ('C') and metadata
 * ('M') events; in order of time, the metadata first; events of one track do not overlap; times in microseconds, exact
 * to the picosecond. */
#ifndef FF_REPORT_TIMELINE_H
#define FF_REPORT_TIMELINE_H

#include "report/report.h"

/* Adds the whole file to *out. Managers without a history are left out; returns how many have one (0: nothing was
 * added). */
uint32_t report_timeline_write(const report_run *run, ff_text *out);

#endif
