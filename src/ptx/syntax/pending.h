/* SPDX-License-Identifier: Apache-2.0 */
/* Where a warp may have to wait for memory.
 *
 * A load's destination is outstanding from the load until the first instruction that uses or overwrites it. This
 * analysis says for each instruction whether a register that it reads or writes *may* be outstanding there, so that the
 * interpreter looks at its list of outstanding loads only where it must. false: no load of it can be outstanding. */
#ifndef FF_PTX_PENDING_H
#define FF_PTX_PENDING_H

#include "ptx/analysis/cfg.h"

/* Does the instruction leave a register outstanding: ld from global, local or generic addresses, ldu, an atom that
 * returns, wmma.load, multimem.ld_reduce, a texture or surface fetch? */
bool ptx_is_pending_load(const ptx_instr *instr);

/* One flag per instruction of the function; the caller frees it. An instruction whose guard is false does not end the
 * wait for what it would have used, except for the guard itself. */
bool *ptx_pending_loads(const ptx_func *func, const ptx_cfg *cfg);

#endif
