/* SPDX-License-Identifier: Apache-2.0 */
/* `farfault racecheck`: the options of its own; everything else is in check_command.c and src/check. */
#include "cli/commands/check_command.h"

enum { KEY_LEVEL = 512, KEY_SHADOW };

static const struct argp_option options[] = {
    {"print-level", KEY_LEVEL, "info|warn|error", 0,
     "the least that is reported; info: also accesses that write the same value (default: warn)", 0},
    {"shadow-memory", KEY_SHADOW, "MIB", 0,
     "memory for what is known of global memory, of which it takes up to 12 times as much as kernels touch (default: 4096)",
     0},
    {0}};

static error_t parse(int key, char *value, struct argp_state *state) {
  checker_arguments *a = state->input;
  switch (key) {
  case KEY_LEVEL: checker_set(a, "print-level", value, state); return 0;
  case KEY_SHADOW: checker_set(a, "shadow-memory", value, state); return 0;
  default: return checker_parse_program(key, value, state, a);
  }
}

static int racecheck(int argc, char **argv) {
  static const struct argp_child children[] = {{&cli_checker_argp, 0, NULL, 0}, {&run_executed_argp, 0, NULL, 0}, {0}};
  static const struct argp argp = {
      options,
      parse,
      "[--] PROGRAM [ARGUMENTS]",
      "Runs a CUDA program on the virtual GPU, without a GPU, and reports accesses of shared and global memory by different threads of a launch that nothing orders, "
      "one of which writes, whatever order they came in; and barriers that not all threads reach. Barriers, __syncwarp, fences with atomics or volatile flags, "
      "mbarriers and grid-wide synchronisation are understood. Each report has the PTX lines and, if the program was compiled with -lineinfo, the source lines.\v"
      "Example:\n  nvcc -lineinfo reduce.cu -o reduce\n"
      "  farfault racecheck ./reduce 65536\n"
      "  farfault racecheck --print-level info --kernel reduce ./reduce\n\n"
      "docs/checkers.md says what is found and what cannot be. Kernels run on one thread: the same report on every run.\n\n"
      "Exit status: the program's; if that is 0 and there were errors, 1 or what --error-exitcode says. Otherwise as of `farfault run`.",
      children,
      NULL,
      NULL};
  checker_arguments a;
  checker_begin(&a, CHECK_RACECHECK);
  cli_parse(&argp, argc, argv, &a);
  return checker_do(&a);
}

const cli_command cli_racecheck = {"racecheck", "run a CUDA program and report races and divergent barriers",
                                   racecheck};
