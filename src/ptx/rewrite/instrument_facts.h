/* SPDX-License-Identifier: Apache-2.0 */
/* What instrument.c asks of a module before it rewrites kernels: which accesses are to be checked, and what cannot be.
 *
 * From a function whose `touches` is false no access that is to be checked can be reached; from one whose `reason` is
 * NULL no access to global memory but those that ptx_check_access describes, and prefetches. */
#ifndef FF_PTX_INSTRUMENT_FACTS_H
#define FF_PTX_INSTRUMENT_FACTS_H

#include "ptx/ir.h"

typedef struct ptx_check_access { /* of one instruction */
  const ptx_operand *address;
  const ptx_operand *size; /* NULL, or a register with the bytes that are read, of which `bytes` is the most */
  uint32_t bytes, need;    /* need: modes as in declared.h */
  bool generic;            /* may lie in shared or local memory */
  bool loads;              /* operand 0 is written */
} ptx_check_access;

typedef struct ptx_check_facts {
  bool touches;       /* an access is to be checked, here or in what it calls */
  bool heap;          /* malloc is called, here or there */
  const char *reason; /* why it cannot be checked, or NULL; lives in the arena given */
} ptx_check_facts;

/* One for each of module->funcs; free with free(). */
ptx_check_facts *ptx_check_facts_find(const ptx_module *module, ff_arena *arena);
/* False: the instruction needs no check. */
bool ptx_check_access_of(const ptx_instr *instr, ptx_check_access *access);

#endif
