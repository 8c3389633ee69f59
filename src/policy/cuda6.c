/* SPDX-License-Identifier: Apache-2.0 */
/* cuda6, gm200, gp100: managed memory as CUDA 6 kept it, by the description of Wilt (2017): a launch takes the pages from the CPU and
 * copies those that the CPU wrote; after a synchronisation each page that the CPU touches comes back by a fault of its own. What
 * the fault brings is all in which the three differ: one page of 4 KiB, as he describes the first release and as the slope of
 * his GM200 table says; up to 2 MiB for his GP100 table, whose rows from 512 KiB on leave no time for faults beside
 * the link's. The times are the machine's: machines/gm200.yaml, machines/gp100.yaml. */
#include "policy/manager.h"

#include <stddef.h>

extern const manager manager_cuda6, manager_gm200, manager_gp100;
const manager manager_cuda6 = {
    .name = "cuda6",
    .summary = "the program's own copies; managed pages of 4 KiB: dirty ones in at a launch, back one by one by CPU faults (CUDA 6)",
    .placement = MANAGER_PROGRAM,
    .cpu_fault_bytes = 4096,
    .unit_bytes = 4096,
};
const manager manager_gm200 = {
    .name = "gm200",
    .summary = "cuda6 as measured on GM200: 4 KiB per CPU fault; with --machine gm200 its times (Wilt, 2017)",
    .placement = MANAGER_PROGRAM,
    .cpu_fault_bytes = 4096,
    .unit_bytes = 4096,
};
const manager manager_gp100 = {
    .name = "gp100",
    .summary = "cuda6 as measured on GP100: up to 2 MiB per CPU fault; with --machine gp100 its times (Wilt, 2017)",
    .placement = MANAGER_PROGRAM,
    .cpu_fault_bytes = 2 << 20,
    .unit_bytes = 4096,
};
