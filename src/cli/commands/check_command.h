/* SPDX-License-Identifier: Apache-2.0 */
/* What `farfault memcheck` and `farfault racecheck` share (check_command.c): the program as a child whose virtual GPU
 * checks it, and the last words about what it found. */
#ifndef FF_CLI_CHECKER_H
#define FF_CLI_CHECKER_H

#include "check/check_options.h"
#include "cli/running/run.h"

typedef struct checker_arguments {
  check_options check;
  cli_setup setup;
  run_executed executed;
  const char *json, *log;
  int error_status; /* of ours, if the program's own is 0 and there were errors */
  char **program;
} checker_arguments;

/* Their common options; the input is a checker_arguments, made by checker_begin. */
extern const struct argp cli_checker_argp;
void checker_begin(checker_arguments *a, check_tool tool);
/* For the commands' own options: value NULL is the option's second word ("--leak-check" is "full"). */
void checker_set(checker_arguments *a, const char *name, const char *value, struct argp_state *state);
error_t checker_parse_program(int key, char *value, struct argp_state *state, checker_arguments *a);
int checker_do(checker_arguments *a); /* returns the exit status */

#endif
