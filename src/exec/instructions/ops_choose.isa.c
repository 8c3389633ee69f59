/* SPDX-License-Identifier: Apache-2.0 */
/* The families of one instruction set, and its exec_choose_<isa>. */
#include "exec/instructions/ops_lane.h"

#define OPS_FAMILIES(X) \
  X(ops_integer)        \
  X(ops_bits)           \
  X(ops_float)          \
  X(ops_compare) X(ops_convert_int) X(ops_convert_float) X(ops_approx) X(ops_half) X(ops_video) X(ops_convert_fp8)

#define X(table) extern const ops_entry EXEC_NAME(table)[];
OPS_FAMILIES(X)
#undef X

#define OPS_STRING_(x) #x
#define OPS_STRING(x) OPS_STRING_(x)
#define X(table) EXEC_NAME(table),
ops_set EXEC_NAME(ops_set) = {OPS_STRING(EXEC_ISA), {OPS_FAMILIES(X) NULL}, NULL};
#undef X

ff_status EXEC_NAME(exec_choose)(const ptx_func *func, const ptx_instr *instr, exec_choice *choice, ff_error *error) {
  return ops_choose(&EXEC_NAME(ops_set), func, instr, choice, error);
}
