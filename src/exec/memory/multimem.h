/* SPDX-License-Identifier: Apache-2.0 */
/* Side data of multimem.ld_reduce, multimem.st and multimem.red (PTX ISA, "multimem.ld_reduce, multimem.st,
 * multimem.red"). */
#ifndef FF_EXEC_MULTIMEM_H
#define FF_EXEC_MULTIMEM_H

#include "exec/memory/access.h"

typedef struct exec_multimem {
  exec_access access;          /* first: a load, a store or an atomic of elements at the multicast address */
  exec_atomic_function reduce; /* ld_reduce: a cell and one more member's value; of what .acc::f32 adds NULL */
  uint8_t bf16;                /* .acc::f32: the halves are bfloat16 */
} exec_multimem;

void core_multimem(exec_warp *x, const exec_instr *i);
/* The sum of `count` halves, .bf16 or .f16, added one after another in .f32 and rounded once; NaN is 0x7fff.
 * (atomic.c) */
uint16_t exec_sum_halves(bool bf16, const uint16_t *values, uint32_t count);

#endif
