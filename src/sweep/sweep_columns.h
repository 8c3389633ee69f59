/* SPDX-License-Identifier: Apache-2.0 */
/* The columns of the database that every study has (docs/results-db.md). Those of its parameters come between these and
 * the derived ones; a parameter whose name is one of these, or a counter's, has "_chosen" behind it. */
#ifndef FF_SWEEP_COLUMNS_H
#define FF_SWEEP_COLUMNS_H

#include <stdbool.h>

/* X(name, type): of the table `points`, in order; counters of counters.def follow the parameters. */
#define SWEEP_FIXED(X)               \
  X(point, "INTEGER PRIMARY KEY")    \
  X(key, "TEXT NOT NULL UNIQUE")     \
  X(state, "TEXT NOT NULL")          \
  X(error, "TEXT")                   \
  X(version, "TEXT NOT NULL")        \
  X(trace, "TEXT NOT NULL")          \
  X(trace_checksum, "TEXT NOT NULL") \
  X(machine, "TEXT NOT NULL")        \
  X(machine_hash, "TEXT NOT NULL")   \
  X(comparable, "TEXT NOT NULL")     \
  X(memory, "TEXT NOT NULL")

/* X(name, SQL): what the view `results` computes, of p: a row of points, and best: copy's time in the same group. */
#define SWEEP_DERIVED(X)                                                                                                                               \
  X(time_us, "p.time_ps / 1e6")                                                                                                                        \
  X(kernel_us, "p.kernel_ps / 1e6")                                                                                                                    \
  X(transfer_us, "p.transfer_ps / 1e6")                                                                                                                \
  X(ratio,                                                                                                                                             \
    "p.time_ps * 1.0 / nullif((SELECT min(c.time_ps) FROM points c WHERE c.comparable = p.comparable AND c.memory = 'copy' AND c.state = 'done'), 0)") \
  X(link_utilisation, "max(p.h2d_busy_ps, p.d2h_busy_ps) * 1.0 / nullif(p.time_ps, 0)")                                                                \
  X(tlb_miss_rate, "p.tlb_misses * 1.0 / nullif(p.tlb_lookups, 0)")

/* Whether a parameter must not be called that. */
bool sweep_column_taken(const char *name);

#endif
