/* SPDX-License-Identifier: Apache-2.0 */
/* replay: demand paging with replayable far-faults, Zheng et al. (HPCA 2016), section 3: the faulting warp sleeps, the
 * others go on. The TLB counts its pending NACKs; one beyond the SM's allotment of MSHRs is not tracked by the GMMU and
 * is replayed by the TLB itself. */
#include "policy/manager.h"

const manager manager_replay = {
    .name = "replay",
    .summary = "demand paging, replayable: only the faulting warps wait; far-fault MSHRs per SM",
    .placement = MANAGER_PAGED,
    .decide = manager_replays,
};
