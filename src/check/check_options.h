/* SPDX-License-Identifier: Apache-2.0 */
/* What a check is asked to do, and how `farfault memcheck` and `farfault racecheck` pass it to the program's process:
 * FARFAULT_CHECKER=memcheck,leak-check=full,... and FARFAULT_CHECKER_KERNEL, _LOG, _RESULTS, each of which may be
 * missing. */
#ifndef FF_CHECK_OPTIONS_H
#define FF_CHECK_OPTIONS_H

#include <limits.h>
#include <stdint.h>

#include "base/status.h"
#include "base/text.h"

typedef enum check_tool { CHECK_NONE, CHECK_MEMCHECK, CHECK_RACECHECK } check_tool;
typedef enum check_level { CHECK_INFO, CHECK_WARNING, CHECK_ERROR } check_level;
enum { CHECK_INIT_NONE, CHECK_INIT_GLOBAL, CHECK_INIT_ALL };

typedef struct check_options {
  check_tool tool;
  uint32_t leaks;                 /* 1: each is an error */
  uint32_t initcheck;             /* CHECK_INIT_* */
  uint32_t api_errors, backtrace; /* 0 or 1 */
  uint32_t level;                 /* check_level: what is printed, at least */
  uint32_t print_limit;           /* findings that are printed */
  uint32_t padding;               /* memcheck: bytes on both sides of each allocation that nothing else may have */
  uint32_t shadow_mib;            /* racecheck: memory for what is known of every byte of global memory */
  char kernel[256];               /* only kernels whose name has this in it; empty: all */
  char log[PATH_MAX];             /* file to append the reports to; empty: stderr */
  /* JSON file; "%p" becomes the process number; empty: none, and the process says itself how many it found */
  char results[PATH_MAX];
} check_options;

void check_options_default(check_tool tool, check_options *options);
/* One "name=value" or, first, the tool's name. FF_INVALID with a message: no such option or value. */
ff_status check_option_set(check_options *options, const char *name, const char *value, ff_error *error);
/* FARFAULT_CHECKER's value. */
void check_options_write(const check_options *options, ff_text *out);
ff_status check_options_from_environment(check_options *options, ff_error *error);
const char *check_tool_name(check_tool tool);

#endif
