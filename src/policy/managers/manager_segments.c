/* SPDX-License-Identifier: Apache-2.0 */
/* segments: what a launch declares (the allocations that its parameters point into) is resident before it begins, and
 * comes while earlier kernels run: the proposal of Wilt (2017) as far as unmodified programs declare anything. What was
 * not declared, and what does not fit, is paged as under replay. */
#include "policy/manager.h"

const manager manager_segments = {
    .name = "segments",
    .summary =
        "what a launch's arguments point into is resident before it begins, fetched while others run (after Wilt, 2017)",
    .placement = MANAGER_PAGED,
    .decide = manager_replays,
    .segments = true,
};
