/* SPDX-License-Identifier: Apache-2.0 */
/* Managed memory as CUDA 6 kept it, by the description of Wilt (2017): a launch takes the pages from the CPU and copies
 * those that the CPU wrote; after a synchronisation each page that the CPU touches comes back by a fault of its own,
 * one page of 4 KiB. */
#include "policy/manager.h"

const manager manager_cuda6 = {
    .name = "cuda6",
    .summary =
        "the program's own copies; managed pages of 4 KiB: dirty ones in at a launch, back one by one by CPU faults (CUDA 6)",
    .placement = MANAGER_PROGRAM,
    .cpu_fault_bytes = 4096,
    .unit_bytes = 4096,
};
