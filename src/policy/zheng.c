/* SPDX-License-Identifier: Apache-2.0 */
/* The prefetching managers of Zheng et al. (HPCA 2016): replayable far-faults with a prefetcher that uses the link while it
 * has nothing to do (random, sequential, oracle), or takes 512 KiB around a far-fault (locality). */
#include "policy/manager.h"

extern const manager manager_random, manager_sequential, manager_locality, manager_oracle;
const manager manager_random = {
    .name = "random",
    .summary = "replay, and random pages while the link is idle (Zheng et al., HPCA 2016)",
    .placement = MANAGER_PAGED,
    .decide = manager_replays,
    .prefetch = "random",
};
const manager manager_sequential = {
    .name = "sequential",
    .summary = "replay, and pages from the lowest address on while the link is idle (Zheng et al.)",
    .placement = MANAGER_PAGED,
    .decide = manager_replays,
    .prefetch = "sequential",
};
const manager manager_locality = {
    .name = "locality",
    .summary = "replay, and the 512 KiB from the faulting page on (Zheng et al.)",
    .placement = MANAGER_PAGED,
    .decide = manager_replays,
    .prefetch = "locality",
};
const manager manager_oracle = {
    .name = "oracle",
    .summary = "replay, and while the link is idle pages in the order of their first use (Zheng's bound; runs when the program has ended)",
    .placement = MANAGER_PAGED,
    .decide = manager_replays,
    .prefetch = "oracle",
};
