/* SPDX-License-Identifier: Apache-2.0 */
/* Loads from shared memory that a compiler makes one of: neighbouring words of 4 bytes become an access of 8 or 16.
 * ptxas does where it knows the address to be a multiple of that, and nothing between may have written. */
#ifndef FF_PTX_SHARED_LOADS_H
#define FF_PTX_SHARED_LOADS_H

#include "ptx/analysis/lane_facts.h"
#include "ptx/analysis/machine_code.h"

/* Takes the costs of what becomes part of another load out of costs[0, instr_count): its machine instruction always,
 * its time in the shared unit where all lanes have one address. Lanes with addresses of their own take as long in one
 * wide access as in several. */
void ptx_join_shared_loads(const ptx_func *func, const ptx_cfg *cfg, const ptx_lane_fact *facts, ptx_cost *costs);

#endif
