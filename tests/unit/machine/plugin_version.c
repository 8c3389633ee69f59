/* SPDX-License-Identifier: Apache-2.0 */
/* A plug-in of another version of the interface. Calling anything of it would be a mistake. */
#include <farfault/policy.h>

#include <stdlib.h>

static void *create(const char *argument, const char **problem) { abort(); }
static void idle(void *state, ff_view *view) { abort(); }

const ff_policy ff_policy_plugin = {
    .version = FF_POLICY_VERSION + 1,
    .name = "version",
    .summary = "of another version",
    .create = create,
    .idle = idle,
};
