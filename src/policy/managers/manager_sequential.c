/* SPDX-License-Identifier: Apache-2.0 */
/* Zheng et al. (HPCA 2016): replayable far-faults, and pages from the lowest address on while the link has nothing to
 * do. */
#include "policy/manager.h"

const manager manager_sequential = {
    .name = "sequential",
    .summary = "replay, and pages from the lowest address on while the link is idle (Zheng et al.)",
    .placement = MANAGER_PAGED,
    .decide = manager_replays,
    .prefetch = "sequential",
};
