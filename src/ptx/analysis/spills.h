/* SPDX-License-Identifier: Apache-2.0 */
/* Which values a compiler keeps in local memory where a function may have fewer registers than it needs, estimated
 * without one: where they are stored, and where they are loaded again.
 *
 * It is Belady's rule, as Braun and Hack 2009 ("Register Spilling and Live-Range Splitting for SSA-Form Programs") have
 * it for whole functions: what is needed furthest away goes, and the end of a loop is far away. */
#ifndef FF_PTX_SPILLS_H
#define FF_PTX_SPILLS_H

#include "ptx/analysis/cfg.h"

typedef struct ptx_spill {
  uint32_t at;     /* it stands before this instruction */
  uint32_t needed; /* a load: the value is there before this one; of the same basic block, at <= needed */
  uint32_t reg;
  uint32_t slot; /* of local memory, in words: those of this register, alone as long as it is needed */
  uint8_t words;
  bool load;
  bool behind; /* it belongs behind `at`, the last of its block, on the way to another; `needed` is of that */
} ptx_spill;

typedef struct ptx_spills {
  ptx_spill *items; /* by `at`, those behind it last; stores first, then loads as they are needed. free(items) */
  uint32_t count;
  uint32_t words; /* of local memory, of a thread */
} ptx_spills;

/* registers: that a thread may have. Nothing is spilled of a function that is too large to analyse. */
ptx_spills ptx_spill_code(const ptx_func *func, const ptx_cfg *cfg, uint32_t registers);

#endif
