/* SPDX-License-Identifier: Apache-2.0 */
/* Where the threads of a block may diverge in a kernel: branches on values that differ between threads, and the code
 * between such a branch and the place where its paths reconverge.
 *
 * A register that is not `differs` has the same value in all threads of the block that have not left, whenever an
 * instruction reads it; a block of instructions that is not `divided` is run by all threads or by none, equally often.
 * Both are approximate on the safe side. */
#ifndef FF_PTX_PERSISTENT_DIVIDE_H
#define FF_PTX_PERSISTENT_DIVIDE_H

#include "ptx/analysis/cfg.h"

typedef struct ptx_divide {
  const ptx_func *func;
  ptx_cfg *cfg;
  bool *differs; /* per register */
  bool *divides; /* per block: it ends with a branch or an exit that only some threads may take */
  bool *divided; /* per block: it lies between such a branch and the place where its paths reconverge */
  /* ... and those that took the other way are not simply gone: values may differ by the way that was taken */
  bool *parted;
  uint64_t work; /* blocks that may still be looked at */
} ptx_divide;

/* NULL: the function is too large. */
ptx_divide *ptx_divide_find(const ptx_func *func);
void ptx_divide_free(ptx_divide *divide);
/* Is the instruction run by some threads only? By its guard, too. */
bool ptx_divide_at(const ptx_divide *divide, uint32_t instr);
/* Blocks divided by other branches than those in `except` (per block); free with free(). */
bool *ptx_divide_regions(ptx_divide *divide, const bool *except);
/* Does control leave the function by this last instruction of a block, if only for some threads? */
bool ptx_divide_leaves(const ptx_func *func, const ptx_instr *last);

#endif
