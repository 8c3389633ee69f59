/* SPDX-License-Identifier: Apache-2.0 */
/* Ganguly et al. (ISCA 2019): far-faults of 4 KiB bring the 64 KiB around them, and 64 KiB go. */
#include "policy/manager.h"

const manager manager_sl = {
    .name = "sl",
    .summary = "replay by 4 KiB, and the 64 KiB around a far-fault; evicts 64 KiB (Ganguly et al., ISCA 2019)",
    .placement = MANAGER_PAGED,
    .decide = manager_replays,
    .prefetch = "sl",
    .evict = "lru:64K",
    .unit_bytes = 4096,
};
