/* SPDX-License-Identifier: Apache-2.0 */
/* demand: demand paging with blocking far-faults, the baseline of Zheng et al. (HPCA 2016), section 2.1: while a
 * far-fault of an SM is served, that SM's TLB takes no request at all; the other SMs go on. */
#include "policy/manager.h"

const manager manager_demand = {
    .name = "demand",
    .summary = "demand paging, blocking: a far-fault stops its SM's TLB until the page is there",
    .placement = MANAGER_PAGED,
    .decide = manager_blocks,
};
