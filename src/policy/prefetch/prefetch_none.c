/* SPDX-License-Identifier: Apache-2.0 */
/* none: only what was asked for moves. */
#include "policy/policies.h"

const ff_policy policy_prefetch_none = {
    .version = FF_POLICY_VERSION,
    .name = "none",
    .summary = "nothing in addition to what was asked for",
};
