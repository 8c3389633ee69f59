/* SPDX-License-Identifier: Apache-2.0 */
/* What each instruction of a function means for running it in a memory stack. */
#ifndef FF_OFFLOAD_BARS_H
#define FF_OFFLOAD_BARS_H

#include "ptx/ir.h"

/* ineligible[i]: an offload_bar, OFFLOAD_NONE if instruction i may run there; accesses[i]: an access of global memory
 * (analysis.h), 0 if it is none.
 *
 * Counted as accesses are loads and stores of the spaces global and generic. Parameters and constants come from a small
 * cache of their own in each SM, local memory stays within the SM in the simulation: they may be in a region and save
 * nothing. A generic address is taken for a global one unless every value of its register comes from an address of
 * shared memory (cvta.shared). */
void eligibility_find(const ptx_func *func, uint8_t *ineligible, uint8_t *accesses);

#endif
