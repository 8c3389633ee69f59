/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of running CUDA programs: `farfault memcheck` (accesses that no program may make, leaks, failed calls) and
 * `farfault racecheck` (accesses that nothing orders, barriers that not all threads reach). docs/checkers.md says what
 * each sees and what it cannot.
 *
 *   engine --operations, launches, failed calls--> check <--accesses, barriers, fences-- exec (exec/launch/checker.h)
 *                                                    |--> shadow.h (memcheck), race.h (racecheck)
 *                                                    +--> finding_report.h: what was found, each once, with counts
 *
 * A check does not change what a correct program computes. Findings are printed when the launch ends in which they were
 * found, or the process is stopped. The same program, run with one thread, gives the same report. */
#ifndef FF_CHECK_CHECK_H
#define FF_CHECK_CHECK_H

#include "check/check_options.h"
#include "exec/launch/checker.h"
#include "trace/stream.h"

typedef struct check check;

/* Before the memory's first allocation. demangle: the C++ name a person reads, of malloc; or the name itself. The check
 * must not end before the memory. */
ff_status check_create(const check_options *options, exec_memory *memory, char *(*demangle)(const char *), check **out,
                       ff_error *error);
void check_free(check *check);
exec_checker *check_hooks(check *check); /* for exec_launch_checked; NULL: check is NULL */
/* Of every operation of the program, before it is carried out: allocations, copies and sets say which bytes have a
 * value. */
void check_operation(check *check, const trace_op *op);
/* Before a launch: what its kernel is called for people. */
void check_launch(check *check, const char *title);
/* The launch ended so. */
void check_fault(check *check, const exec_fault *fault);
/* An API call has returned an error: "cudaMemcpy", 1, "cudaErrorInvalidValue", "invalid argument". */
void check_call_failed(check *check, const char *call, int number, const char *name, const char *text);
/* The program is over, or frees everything: what is still allocated has leaked. last: writes the results. */
void check_finish(check *check, bool last);

#endif
