/* SPDX-License-Identifier: Apache-2.0 */
/* The computing instructions, compiled once per instruction set. */
#ifndef FF_EXEC_OPS_H
#define FF_EXEC_OPS_H

#include "exec/warp.h"

/* One per instruction set. `func` tells the types of the registers (a destination register may be wider than the type
 * of the instruction: cvt.s8.s32 into a 32-bit register sign-extends to 32 bits). */
ff_status exec_choose_baseline(const ptx_func *func, const ptx_instr *instr, exec_choice *choice, ff_error *error);
ff_status exec_choose_avx2(const ptx_func *func, const ptx_instr *instr, exec_choice *choice, ff_error *error);
ff_status exec_choose_avx512(const ptx_func *func, const ptx_instr *instr, exec_choice *choice, ff_error *error);

#endif
