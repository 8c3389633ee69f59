/* SPDX-License-Identifier: Apache-2.0 */
/* Zhang et al. (2019): of pages of 2 MiB only what is asked for moves, in units of 1 KiB, and what the page's one range
 * must hold besides. */
#include "policy/manager.h"

const manager manager_partial_single = {
    .name = "partial-single",
    .summary =
        "parts of 2 MiB pages by 1 KiB, one valid range each: the hull of what was asked for (Zhang et al., 2019)",
    .placement = MANAGER_PAGED,
    .decide = manager_replays,
    .evict = "lru:2M",
    .unit_bytes = 1024,
    .ranges = 1,
    .whole_blocks = true,
};
