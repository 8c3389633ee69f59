/* SPDX-License-Identifier: Apache-2.0 */
/* sl and tbn: the prefetchers of Ganguly et al. (ISCA 2019) on 4 KiB far-faults, with what they evict. */
#include "policy/manager.h"

extern const manager manager_sl, manager_tbn;
const manager manager_sl = {
    .name = "sl",
    .summary = "replay by 4 KiB, and the 64 KiB around a far-fault; evicts 64 KiB (Ganguly et al., ISCA 2019)",
    .placement = MANAGER_PAGED,
    .decide = manager_replays,
    .prefetch = "sl",
    .evict = "lru:64K",
    .unit_bytes = 4096,
};
const manager manager_tbn = {
    .name = "tbn",
    .summary = "replay by 4 KiB, tree prefetch and tree eviction (TBNp with TBNe, Ganguly et al., ISCA 2019)",
    .placement = MANAGER_PAGED,
    .decide = manager_replays,
    .prefetch = "tbn",
    .evict = "tree",
    .unit_bytes = 4096,
};
