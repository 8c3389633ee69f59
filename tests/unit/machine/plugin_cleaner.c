/* SPDX-License-Identifier: Apache-2.0 */
/* cleaner: an evictor that writes back ahead whatever is dirty, at once, and lets everything go when room is wanted. */
#include <farfault/policy.h>

static void clean(void *state, ff_view *view) { view->propose(view, 0, FF_NEVER); }
static void evict(void *state, ff_view *view, uint64_t bytes) { view->propose(view, 0, FF_NEVER); }

extern const ff_policy ff_policy_plugin;
const ff_policy ff_policy_plugin = {.version = FF_POLICY_VERSION,
                                    .name = "cleaner",
                                    .summary = "writes everything back ahead",
                                    .evict = evict,
                                    .clean = clean};
