/* SPDX-License-Identifier: Apache-2.0 */
/* `farfault memcheck`: the options of its own; everything else is in check_command.c and src/check. */
#include "cli/commands/check_command.h"

enum { KEY_LEAK = 512, KEY_INIT, KEY_API, KEY_PADDING };

static const struct argp_option options[] = {
    {"leak-check", KEY_LEAK, "no|full", 0,
     "full: an error for each allocation that is not freed at the end or at cudaDeviceReset (default: no, only their sum is said)",
     0},
    {"initcheck", KEY_INIT, "none|global|all", 0,
     "report reads of memory that nothing has written: of cudaMalloc's (global, the default), of shared and local memory, too (all)",
     0},
    {"report-api-errors", KEY_API, "no|yes", 0, "report CUDA calls that returned an error (default: yes)", 0},
    {"padding", KEY_PADDING, "BYTES", 0,
     "on both sides of each allocation at least so many bytes belong to nothing, so that small overruns do not land in a neighbour (default: 256; 0: no others than those up to the next page)",
     0},
    {0}};

static error_t parse(int key, char *value, struct argp_state *state) {
  checker_arguments *a = state->input;
  switch (key) {
  case KEY_LEAK: checker_set(a, "leak-check", value, state); return 0;
  case KEY_INIT: checker_set(a, "initcheck", value, state); return 0;
  case KEY_API: checker_set(a, "report-api-errors", value, state); return 0;
  case KEY_PADDING: checker_set(a, "padding", value, state); return 0;
  default: return checker_parse_program(key, value, state, a);
  }
}

static int memcheck(int argc, char **argv) {
  static const struct argp_child children[] = {{&cli_checker_argp, 0, NULL, 0}, {&run_executed_argp, 0, NULL, 0}, {0}};
  static const struct argp argp = {
      options,
      parse,
      "[--] PROGRAM [ARGUMENTS]",
      "Runs a CUDA program on the virtual GPU, without a GPU, and reports what its kernels and calls do wrong: accesses out of bounds, misaligned, or of freed "
      "memory; reads of memory that nothing has written; wrong calls of free in kernels; CUDA calls that fail; leaks. A wrong access does not happen (a load gives 0) "
      "and the kernel goes on, so that one run shows all. Each report has the PTX line and, if the program was compiled with -lineinfo, the source line.\v"
      "Example:\n  nvcc -lineinfo saxpy.cu -o saxpy\n"
      "  farfault memcheck ./saxpy 1000000\n"
      "  farfault memcheck --leak-check full --json found.json ./saxpy\n\n"
      "docs/checkers.md says what is found and what cannot be. Kernels run on one thread unless --threads says otherwise: the same report on every run.\n\n"
      "Exit status: the program's; if that is 0 and there were errors, 1 or what --error-exitcode says. Otherwise as of `farfault run`.",
      children,
      NULL,
      NULL};
  checker_arguments a;
  checker_begin(&a, CHECK_MEMCHECK);
  cli_parse(&argp, argc, argv, &a);
  return checker_do(&a);
}

const cli_command cli_memcheck = {"memcheck", "run a CUDA program and report wrong memory accesses and leaks",
                                  memcheck};
