/* SPDX-License-Identifier: Apache-2.0 */
/* A plug-in of version 2 of the interface, which has no `settled`: what lies there in memory must not be called. */
#include <farfault/policy.h>

#include <stdlib.h>

static void evict(void *state, ff_view *view, uint64_t bytes) { view->propose(view, 0, FF_NEVER); }
static void settled(void *state, ff_view *view, uint64_t address, uint64_t bytes) { abort(); }

extern const ff_policy ff_policy_plugin;
const ff_policy ff_policy_plugin = {
    .version = 2, .name = "older", .summary = "of version 2", .evict = evict, .settled = settled};
