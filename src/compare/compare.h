/* SPDX-License-Identifier: Apache-2.0 */
/* Two runs next to each other: which numbers of which manager, kernel and allocation changed, and by how much.
 *
 * Managers are matched by name (and device), tiers by name, kernels by name and range, allocations by name; of several
 * of one name the first with the first, the second with the second. A number counts as changed if |after - before| >
 * threshold * before. Changes are ordered by their effect: how much of the whole run's number changed. */
#ifndef FF_COMPARE_COMPARE_H
#define FF_COMPARE_COMPARE_H

#include "base/memory.h"
#include "compare/metrics.h"

typedef enum compare_level { COMPARE_RUN, COMPARE_TIER, COMPARE_KERNEL, COMPARE_ALLOCATION } compare_level;
enum { COMPARE_LEVELS = 4 };
/* Whether it is in both; else `metric` is METRIC_COUNT and there are no numbers. FAILS, WORKS: the manager could run
 * the program before and cannot now, or the other way round. */
typedef enum compare_presence {
  COMPARE_BOTH,
  COMPARE_GONE,
  COMPARE_NEW,
  COMPARE_FAILS,
  COMPARE_WORKS
} compare_presence;

typedef struct compare_change { /* texts belong to the runs */
  compare_level level;
  compare_presence presence;
  /* of the manager; of the tier, kernel or allocation (NULL: the run), "" in no range */
  const char *memory, *name, *range;
  metric_id metric;
  double before, after; /* NAN: there is none */
  double effect;        /* 0 to 1 */
  int worse;            /* 1: worse, -1: better, 0: neither */
  size_t order;         /* in which it was found */
} compare_change;

typedef struct compare_options {
  double threshold; /* 0.05: 5 % */
  bool metrics[METRIC_COUNT];
} compare_options;

typedef struct comparison {
  FF_VEC(compare_change) changes;        /* by level, then by effect */
  size_t compared, worse, better, other; /* numbers looked at; of those that changed */
} comparison;

/* "time,faults" or "all"; NULL: the metrics that SHOWN lists. FF_NOT_FOUND: there is none of a name. */
ff_status compare_choose(const char *names, compare_options *options, ff_error *error);
/* "5%" or "0.05"; FF_INVALID. */
ff_status compare_threshold(const char *text, compare_options *options, ff_error *error);

/* The runs are borrowed as long as the comparison is there; comparison_free. */
void compare_runs(const report_run *before, const report_run *after, const compare_options *options, comparison *out);
void comparison_free(comparison *c);

/* ---- compare_output.c ---- */

typedef struct compare_names {
  const char *before, *after; /* files */
  const report_run *runs[2];
} compare_names;

enum { COMPARE_ROWS = 20 };
/* The table of changes; `all`: not only the first COMPARE_ROWS of each level. */
void compare_table_write(const comparison *c, const compare_names *names, const compare_options *options, bool all,
                         ff_text *out);
/* An object of the JSON (docs/json.md), without a newline behind it. */
void compare_json_write(const comparison *c, const compare_names *names, const compare_options *options, ff_text *out);

#endif
