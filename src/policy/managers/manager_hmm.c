/* SPDX-License-Identifier: Apache-2.0 */
/* hmm: system memory by Linux's heterogeneous memory management, as NVIDIA's driver serves it on PCIe (release
 * 595.45.04, uvm_hmm.c). It is uvm - batches of faults, the density tree, mitigation of thrashing - but that GPU memory
 * is handed out page by page (uvm_va_block.c, block_gpu_chunk_size), and so it is evicted here. (The driver evicts the
 * pages of 2 MiB of GPU memory at once, whatever blocks they are of, and maps none by 2 MiB.) */
#include "policy/manager.h"

static const manager_thrashing thrashing = {
    .events = 3,
    .lapse_us = 500,
    .nap_us = 500,
    .throttles = 10,
    .pin_us = 150000,
    .epoch_us = 1000000,
    .resets = 4,
};

const manager manager_hmm = {
    .name = "hmm",
    .summary = "system memory under NVIDIA's driver: as uvm, with GPU memory handed out and evicted by pages of 4 KiB",
    .placement = MANAGER_PAGED,
    .decide = manager_buffers,
    .prefetch = "density",
    .evict = "lrm:4K",
    .unit_bytes = 4096,
    .copy_clean = true,
    .batches = true,
    .thrashing = &thrashing,
};
