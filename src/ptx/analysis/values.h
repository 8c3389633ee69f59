/* SPDX-License-Identifier: Apache-2.0 */
/* What a compiler has to keep of a PTX register's value: how many of the machine's registers it takes, and whether it
 * is as well made again as kept. */
#ifndef FF_PTX_VALUES_H
#define FF_PTX_VALUES_H

#include "ptx/ir.h"

typedef struct ptx_value {
  uint32_t defined_at; /* the only instruction that writes the register, for all lanes; PTX_NO_REG: there is none */
  uint8_t words;       /* registers of 32 bits; 0: none, as a predicate, or what the constant bank holds */
  bool made_again;     /* of a kernel's parameters and constants alone, by integer arithmetic */
} ptx_value;

/* Of each register, to be freed with free(). */
ptx_value *ptx_values(const ptx_func *func);

#endif
