/* SPDX-License-Identifier: Apache-2.0 */
/* Side data of multimem.ld_reduce, multimem.st and multimem.red (PTX ISA, "multimem.ld_reduce, multimem.st,
 * multimem.red"). */
#ifndef FF_EXEC_MULTIMEM_H
#define FF_EXEC_MULTIMEM_H

#include "exec/memory/access.h"
#include "exec/memory/multicast.h"

typedef struct exec_multimem {
  exec_access access;          /* first: a load, a store or an atomic of elements at the multicast address */
  exec_atomic_function reduce; /* ld_reduce: a cell and one more member's value; of what .acc::f32 adds NULL */
  uint8_t bf16;                /* .acc::f32: the halves are bfloat16 */
} exec_multimem;

/* Where each member's bytes of one lane's access to multicast memory are; returns how many there are. Does not return
 * if it is illegal. i->side is an exec_access. */
uint32_t core_team_locate(core_warp *w, const exec_instr *i, uint32_t lane, uint64_t address, uint32_t bytes,
                          unsigned char *at[EXEC_TEAM_MAX]);
void core_multimem(exec_warp *x, const exec_instr *i);
/* The sum of `count` halves, .bf16 or .f16, added one after another in .f32 and rounded once; NaN is 0x7fff.
 * (atomic.c) */
uint16_t exec_sum_halves(bool bf16, const uint16_t *values, uint32_t count);

#endif
