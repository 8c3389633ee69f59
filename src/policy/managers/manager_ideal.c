/* SPDX-License-Identifier: Apache-2.0 */
/* ideal: every byte is always in GPU memory and transfers take no time: the bound that no manager can beat. */
#include "policy/manager.h"

#include <stddef.h>

const manager manager_ideal = {
    .name = "ideal",
    .summary = "everything resident, transfers free: the lower bound",
    .placement = MANAGER_EVERYWHERE,
    .decide = NULL,
};
