/* SPDX-License-Identifier: Apache-2.0 */
/* partial-single, partial-multi: of pages of 2 MiB only what is asked for moves, in units of 1 KiB, and what the page's one
 * range, or its several, must hold besides (Zhang et al., 2019). The number of ranges and the gap are choices: the text
 * says that two or three ranges are usual and four or eight enough, and leaves the gap open. */
#include "policy/manager.h"

extern const manager manager_partial_single, manager_partial_multi;
const manager manager_partial_single = {
    .name = "partial-single",
    .summary = "parts of 2 MiB pages by 1 KiB, one valid range each: the hull of what was asked for (Zhang et al., 2019)",
    .placement = MANAGER_PAGED,
    .decide = manager_replays,
    .evict = "lru:2M",
    .unit_bytes = 1024,
    .ranges = 1,
    .whole_blocks = true,
};
const manager manager_partial_multi = {
    .name = "partial-multi",
    .summary = "parts of 2 MiB pages by 1 KiB, up to eight valid ranges each; gaps under 4 KiB close (Zhang et al., 2019)",
    .placement = MANAGER_PAGED,
    .decide = manager_replays,
    .evict = "lru:2M",
    .unit_bytes = 1024,
    .ranges = 8,
    .gap_bytes = 4096,
    .whole_blocks = true,
};
