/* SPDX-License-Identifier: Apache-2.0 */
/* Zheng et al. (HPCA 2016): replayable far-faults, and pages at random while the link has nothing to do. */
#include "policy/manager.h"

const manager manager_random = {
    .name = "random",
    .summary = "replay, and random pages while the link is idle (Zheng et al., HPCA 2016)",
    .placement = MANAGER_PAGED,
    .decide = manager_replays,
    .prefetch = "random",
};
