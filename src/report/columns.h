/* SPDX-License-Identifier: Apache-2.0 */
/* The derived numbers of a run, in the order of the JSON and the CSV. Private to report/. X(key, value): `c` is the
 * run's counters, `run` and `result` are as in report_ratio. Times in microseconds are exact to the picosecond. */
#define REPORT_DERIVED(X)                      \
  X(time_us, (double)c->time_ps / 1e6)         \
  X(kernel_us, (double)c->kernel_ps / 1e6)     \
  X(transfer_us, (double)c->transfer_ps / 1e6) \
  X(ratio, report_ratio(run, result))          \
  X(link_utilisation, sim_link_utilisation(c)) \
  X(tlb_miss_rate, sim_tlb_miss_rate(c))
