/* SPDX-License-Identifier: Apache-2.0 */
/* The metrics of metrics.def and of counters.def in one list: names, units, values, which way is better. */
#ifndef FF_COMPARE_METRICS_H
#define FF_COMPARE_METRICS_H

#include "report/report.h"

typedef enum metric_id {
#define DERIVED(name, kind, better, level, value, help) METRIC_##name,
#include "compare/metrics.def"
#define X(name, unit, help) METRIC_##name,
#include "machine/observe/counters.def"
#undef X
#define X(name, unit, help) METRIC_tier_##name,
#include "machine/observe/tiers.def"
#undef X
  METRIC_COUNT
} metric_id;

typedef enum metric_kind { METRIC_TIME, METRIC_BYTES, METRIC_PLAIN, METRIC_SHARE, METRIC_RATIO } metric_kind;
typedef enum metric_better { METRIC_NEITHER, METRIC_LESS, METRIC_MORE } metric_better;

/* METRIC_COUNT: there is none of this name. */
metric_id metric_find(const char *name);
/* NULL-ended, in the order of the ids: also for "did you mean". */
extern const char *const metric_names[METRIC_COUNT + 1];
metric_kind metric_kind_of(metric_id id);
metric_better metric_better_of(metric_id id);
bool metric_of_runs_only(metric_id id); /* kernels and allocations do not have it */
bool metric_is_shown(metric_id id);     /* compared by default */

/* The metric of these counters, in picoseconds, bytes, or as it is. NAN: there is none. `ratio` is that of the run;
 * NAN: it has none. */
double metric_value(metric_id id, const sim_counters *counters, double ratio);
bool metric_of_tiers(metric_id id); /* the two below have it, and metric_value has not */
double metric_tier_value(metric_id id, const sim_tier *tier);
/* The sum over all tiers but the host's memory and files. NAN: there are none. */
double metric_of_all_tiers(metric_id id, const sim_tiers *tiers);
/* "ps", "B" or "". */
const char *metric_unit(metric_id id);
/* "1.23 ms", "7.63 MiB", "690", "12.1 %", "1.89x", "-" for NAN. Returns buffer. */
const char *metric_format(metric_kind kind, double value, char *buffer, size_t size);

#endif
