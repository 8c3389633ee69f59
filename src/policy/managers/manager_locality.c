/* SPDX-License-Identifier: Apache-2.0 */
/* Zheng et al. (HPCA 2016): replayable far-faults, and the 512 KiB from the faulting page on. */
#include "policy/manager.h"

const manager manager_locality = {
    .name = "locality",
    .summary = "replay, and the 512 KiB from the faulting page on (Zheng et al.)",
    .placement = MANAGER_PAGED,
    .decide = manager_replays,
    .prefetch = "locality",
};
