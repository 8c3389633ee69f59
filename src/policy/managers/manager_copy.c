/* SPDX-License-Identifier: Apache-2.0 */
/* copy: memory as the program wrote it. Explicit copies move what they name; managed allocations move whole, to the GPU
 * before a kernel if the host wrote them since, and back when the host waits if a kernel wrote them. */
#include "policy/manager.h"

#include <stddef.h>

const manager manager_copy = {
    .name = "copy",
    .summary = "copy-then-execute: the program's own copies; managed allocations move whole",
    .placement = MANAGER_PROGRAM,
    .decide = NULL,
};
