/* SPDX-License-Identifier: Apache-2.0 */
/* auto: farfault's own manager. Nothing faults: what is not in GPU memory the GPU reaches over the link, and the access
 * counters of what it reaches say what is worth its place there (prefetch_auto.c, evict_auto.c). What launches declare
 * comes while they run; what small ones declare before, when memory is full (machine/memory/declared_residency.c). */
#include "policy/manager.h"

const manager manager_auto = {
    .name = "auto",
    .summary =
        "the GPU reaches what is absent over the link; what costs most there comes, what launches declare comes first (farfault's own)",
    .placement = MANAGER_PAGED,
    .decide = manager_replays,
    .prefetch = "auto",
    .evict = "auto",
    .unit_bytes = 4096,
    .segments = true,
    .reaches = true,
};
