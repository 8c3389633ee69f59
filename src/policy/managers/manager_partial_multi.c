/* SPDX-License-Identifier: Apache-2.0 */
/* Zhang et al. (2019): as partial-single, with several ranges per page. Their number and the gap that closes are
 * choices: the text says that two or three ranges are usual and four or eight enough, and leaves the gap open. */
#include "policy/manager.h"

const manager manager_partial_multi = {
    .name = "partial-multi",
    .summary =
        "parts of 2 MiB pages by 1 KiB, up to eight valid ranges each; gaps under 4 KiB close (Zhang et al., 2019)",
    .placement = MANAGER_PAGED,
    .decide = manager_replays,
    .evict = "lru:2M",
    .unit_bytes = 1024,
    .ranges = 8,
    .gap_bytes = 4096,
    .whole_blocks = true,
};
