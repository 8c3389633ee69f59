/* SPDX-License-Identifier: Apache-2.0 */
/* zero-copy: nothing ever moves. All memory is the host's; every access of the GPU goes over the link, in no cache. */
#include "policy/manager.h"

const manager manager_zero_copy = {
    .name = "zero-copy",
    .summary = "everything stays on the host; the GPU reads and writes it over the link",
    .placement = MANAGER_REMOTE,
};
