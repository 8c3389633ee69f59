/* SPDX-License-Identifier: Apache-2.0 */
/* The computing instructions, compiled once per instruction set. */
#ifndef FF_EXEC_OPS_H
#define FF_EXEC_OPS_H

#include "exec/warp.h"

/* One per instruction set: exec_choose_baseline, exec_choose_avx2, exec_choose_avx512. */
ff_status exec_choose_baseline(const ptx_instr *instr, exec_choice *choice, ff_error *error);
ff_status exec_choose_avx2(const ptx_instr *instr, exec_choice *choice, ff_error *error);
ff_status exec_choose_avx512(const ptx_instr *instr, exec_choice *choice, ff_error *error);

#endif
