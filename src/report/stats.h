/* SPDX-License-Identifier: Apache-2.0 */
/* Summaries of a run as `nsys stats` has them (cuda_gpu_kern_sum, cuda_gpu_mem_time_sum, cuda_gpu_mem_size_sum,
 * um_sum), for each manager, from the history that `farfault run -o` saves. */
#ifndef FF_REPORT_STATS_H
#define FF_REPORT_STATS_H

#include "report/report.h"

/* Adds the tables to *out; false: the run has no history, and nothing was added. */
bool report_stats_write(const report_run *run, ff_text *out);

#endif
