/* SPDX-License-Identifier: Apache-2.0 */
/* Where the registers of a function stand in its frames. */
#ifndef FF_EXEC_LAYOUT_H
#define FF_EXEC_LAYOUT_H

#include "exec/core.h"

typedef struct exec_layout {
  uint32_t *reg;       /* per PTX register: byte offset of its slot or predicate cell */
  uint32_t *var;       /* per variable of the function: offset of a .param variable's words, else EXEC_NO_OFFSET */
  uint8_t *dead;       /* per PTX instruction: no instruction reads what it writes */
  uint32_t zero_bytes; /* [0, zero_bytes) must be zero in a new frame */
  uint32_t bytes;      /* of all registers and parameter words */
} exec_layout;

/* Bytes per lane of a register of this type: 4, 8 or 16; 0: a predicate. */
uint32_t exec_type_slot(ptx_type type);

/* Registers whose values are not needed at the same time share slots. Two operands of one instruction have slots of
 * their own unless they are the same register. Registers that may be read before they are written stand in the zeroed
 * part. */
exec_layout *exec_layout_make(const ptx_func *func, const ptx_cfg *cfg);
void exec_layout_free(exec_layout *layout);

#endif
