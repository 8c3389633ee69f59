/* SPDX-License-Identifier: Apache-2.0 */
/* What a compiler knows of a function's registers without running it: whether an address is a multiple of 16, and
 * whether all lanes of a warp have the same value. */
#ifndef FF_PTX_LANE_FACTS_H
#define FF_PTX_LANE_FACTS_H

#include "ptx/ir.h"

enum { LANE_ZEROS = 4 }; /* log2 of 16 bytes, the widest access */

typedef struct ptx_lane_fact {
  uint8_t zeros; /* low bits that are 0, at most LANE_ZEROS */
  bool same;     /* all lanes of a warp have this value; by data flow alone, whatever branches they took */
} ptx_lane_fact;

/* All threads of a block have the same value of these, which are the block's place and the launch's shape. */
static inline bool ptx_sreg_of_block(ptx_sreg sreg) {
  return (sreg >= PTX_SREG_NTID_X && sreg <= PTX_SREG_NTID_Z) ||
         (sreg >= PTX_SREG_CTAID_X && sreg <= PTX_SREG_CTAID_Z) ||
         (sreg >= PTX_SREG_NCTAID_X && sreg <= PTX_SREG_NCTAID_Z);
}

/* Of each register, to be freed with free(); NULL: it does not settle in PASSES passes over the function. */
ptx_lane_fact *ptx_lane_facts(const ptx_func *func);
/* Low bits that are 0 of symbol + offset; of offset alone where symbol is NULL. */
uint8_t ptx_symbol_zeros(const ptx_symbol *symbol, int64_t offset);

#endif
