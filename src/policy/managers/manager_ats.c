/* SPDX-License-Identifier: Apache-2.0 */
/* ats: a GPU on a coherent link, which walks the host's page tables (address translation services; Grace Hopper). What
 * is the CPU's the GPU reaches over the link line by line, without a fault, and the host so what is the GPU's; what the
 * GPU accesses often moves by the access counters of NVIDIA's driver, with its defaults (release 595.45.04,
 * uvm_gpu_access_counters.c). The pages are those of 64 KiB that Grace's kernels have. */
#include "policy/manager.h"

const manager manager_ats = {
    .name = "ats",
    .summary = "a coherent link: the GPU reaches what is the CPU's line by line; 256 accesses to 2 MiB bring them",
    .placement = MANAGER_PAGED,
    .decide = manager_replays,
    .evict = "lru",
    .unit_bytes = 65536,
    .reaches = true,
    .coherent = true,
    .counters = {.threshold = 256, .granule = 2 << 20},
};
