/* SPDX-License-Identifier: Apache-2.0 */
/* Ganguly et al. (ISCA 2019): far-faults of 4 KiB, with the tree prefetcher TBNp and the tree evictor TBNe. */
#include "policy/manager.h"

const manager manager_tbn = {
    .name = "tbn",
    .summary = "replay by 4 KiB, tree prefetch and tree eviction (TBNp with TBNe, Ganguly et al., ISCA 2019)",
    .placement = MANAGER_PAGED,
    .decide = manager_replays,
    .prefetch = "tbn",
    .evict = "tree",
    .unit_bytes = 4096,
};
