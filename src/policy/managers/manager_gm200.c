/* SPDX-License-Identifier: Apache-2.0 */
/* Managed memory as under cuda6 (manager_cuda6.c): a fault of the CPU brings one page of 4 KiB, as the slope of Wilt's
 * (2017) GM200 table says. The times are the machine's: machines/gm200.yaml. */
#include "policy/manager.h"

const manager manager_gm200 = {
    .name = "gm200",
    .summary = "cuda6 as measured on GM200: 4 KiB per CPU fault; with --machine gm200 its times (Wilt, 2017)",
    .placement = MANAGER_PROGRAM,
    .cpu_fault_bytes = 4096,
    .unit_bytes = 4096,
};
