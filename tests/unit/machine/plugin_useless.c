/* SPDX-License-Identifier: Apache-2.0 */
/* A plug-in that can be neither prefetcher nor evictor. */
#include <farfault/policy.h>

static void arrived(void *state, ff_view *view, uint64_t address, uint64_t bytes) {}

const ff_policy ff_policy_plugin = {
    .version = FF_POLICY_VERSION,
    .name = "useless",
    .summary = "only listens",
    .arrived = arrived,
};
