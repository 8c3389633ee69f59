/* SPDX-License-Identifier: Apache-2.0 */
/* `farfault offload profile`, and its outputs. */
#ifndef FF_CLI_OFFLOAD_PROFILE_H
#define FF_CLI_OFFLOAD_PROFILE_H

#include <jansson.h>

#include "base/text.h"
#include "offload/profile.h"

/* As a cli_command's `run`: argv[0] is "farfault offload profile". */
int cli_offload_profile(int argc, char **argv);

/* Tables of candidates, maps and allocations, for people. */
void offload_profile_text(const offload_profile *profile, ff_text *out);
/* The same, for programs. */
json_t *offload_profile_json(const offload_profile *profile);
/* The profile of a trace, with progress on a terminal. NULL, with a message: it has no marks of candidates. */
offload_profile *cli_profile(trace_file *file, const char *name, offload_profile_options *options);

#endif
