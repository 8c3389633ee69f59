/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the library share: a result, and its making from what `farfault` wrote. */
#ifndef FF_SIMULATE_SIMULATE_H
#define FF_SIMULATE_SIMULATE_H

#include "farfault/simulate.h"
#include "report/report.h"

/* Invariants: simulation_count == the sum of the processes' run.result_count, in their order. */
struct ff_simulate_result {
  struct {
    report_run run; /* owned */
    ff_simulate_process shown;
    char *json; /* owned */
  } * processes;
  struct {
    const sim_result *from; /* in its process's run */
    ff_simulate_simulation shown;
    ff_simulate_kernel *kernels;
    ff_simulate_allocation *allocations;
  } * simulations;
  uint32_t process_count, simulation_count;
  int exit_status;
};

/* Of the runs, `count` of them, which it owns from now on. */
ff_simulate_result *simulate_result_make(report_run *runs, uint32_t count, int exit_status);

/* Writes the message and returns the status, so that `return simulate_fail(...)` works. */
ff_simulate_status simulate_fail(ff_simulate_error *error, ff_simulate_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
