/* SPDX-License-Identifier: Apache-2.0 */
/* uvm: NVIDIA's managed-memory driver (release 595.45.04, by its public source): faults of 4 KiB pages go into a buffer
 * and are served in batches; a density tree of 51 % prefetches within 2 MiB; GPU memory is handed out 2 MiB at a time;
 * the least recently migrated block is evicted, and all its pages are copied back: there is no dirty bit. Pages that
 * the CPU and the GPU take from each other are throttled, then pinned. */
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

const manager manager_uvm = {
    .name = "uvm",
    .summary = "NVIDIA's managed-memory driver: batches of faults, density prefetch, least recently migrated block out",
    .placement = MANAGER_PAGED,
    .decide = manager_buffers,
    .prefetch = "density",
    .evict = "lrm",
    .unit_bytes = 4096,
    .copy_clean = true,
    .batches = true,
    .thrashing = &thrashing,
    .whole_blocks = true,
};
