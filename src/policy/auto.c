/* SPDX-License-Identifier: Apache-2.0 */
/* auto: farfault's own manager. Replayable far-faults by 4 KiB; prefetch size and eviction are picked for each allocation by
 * its faults (prefetch_auto.c, evict_auto.c); a little memory is kept free, so that what must be written back is on its
 * way before its room is wanted. */
#include "policy/manager.h"

extern const manager manager_auto;
const manager manager_auto = {
    .name = "auto",
    .summary = "replay by 4 KiB; prefetch and eviction are picked for each allocation by its fault pattern (farfault's own)",
    .placement = MANAGER_PAGED,
    .decide = manager_replays,
    .prefetch = "auto",
    .evict = "auto",
    .unit_bytes = 4096,
    .watermarks = {.low_share = 1.0 / 32, .high_share = 1.0 / 16},
};
