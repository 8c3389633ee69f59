/* SPDX-License-Identifier: Apache-2.0 */
/* Zheng et al. (HPCA 2016): their bound on any prefetcher. Pages come in the order of their first use while the link
 * has nothing to do. */
#include "policy/manager.h"

const manager manager_oracle = {
    .name = "oracle",
    .summary =
        "replay, and while the link is idle pages in the order of their first use (Zheng's bound; runs when the program has ended)",
    .placement = MANAGER_PAGED,
    .decide = manager_replays,
    .prefetch = "oracle",
};
