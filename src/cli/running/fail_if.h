/* SPDX-License-Identifier: Apache-2.0 */
/* `--fail-if CONDITION`, `--baseline FILE` and `--junit FILE` of `farfault run` and `sim`: conditions on the numbers of
 * a run (compare/condition.h) that make the exit status CLI_CONDITION.
 *
 *   parse (options) -> fail_if_check (before anything runs) -> fail_if_settle (when the results are there) */
#ifndef FF_CLI_FAIL_IF_H
#define FF_CLI_FAIL_IF_H

#include "base/memory.h"
#include "cli/running/run.h"
#include "compare/condition.h"

typedef struct fail_if {
  FF_VEC(condition *) conditions;
  const char *baseline; /* a run's file; NULL: none. Of a program's further processes FILE.2, FILE.3 */
} fail_if;              /* its process ends with it: nothing is freed */

/* Refuses what is no condition: exit(CLI_USAGE). */
void fail_if_add(fail_if *f, const char *text, struct argp_state *state);

/* What can be known before the program runs: managers that are not simulated, a baseline that is not named
 * (FF_NOT_FOUND, FF_INVALID), or that cannot be read (FF_IO, FF_PARSE). */
ff_status fail_if_check(const fail_if *f, const cli_setup *setup, ff_error *error);

/* Says on stderr which conditions hold, and writes the file of --junit: a suite per process of the program, a case per
 * condition, and one for how the program ended (`program`: its words, `status`: its exit status). Returns `status`, or
 * where that is 0 CLI_CONDITION if a condition holds or cannot be evaluated, CLI_FAILED if the file cannot be
 * written. */
int fail_if_settle(const run_outputs *outputs, const run_results *results, const char *program, int status);

#endif
