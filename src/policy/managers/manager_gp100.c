/* SPDX-License-Identifier: Apache-2.0 */
/* Managed memory as under cuda6 (manager_cuda6.c): a fault of the CPU brings up to 2 MiB. That follows from Wilt's
 * (2017) GP100 table, whose rows from 512 KiB on leave no time for faults in addition to the link's. The times are the
 * machine's: machines/gp100.yaml. */
#include "policy/manager.h"

const manager manager_gp100 = {
    .name = "gp100",
    .summary = "cuda6 as measured on GP100: up to 2 MiB per CPU fault; with --machine gp100 its times (Wilt, 2017)",
    .placement = MANAGER_PROGRAM,
    .cpu_fault_bytes = 2 << 20,
    .unit_bytes = 4096,
};
