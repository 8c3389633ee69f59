/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses of shared memory in registers of 64 bits. The space has 32, and a wider address is truncated (PTX ISA,
 * "Addresses as Operands"). So an instruction that names the space takes a generic address of the window, too. */
#ifndef FF_EXEC_SHARED_ADDRESS_H
#define FF_EXEC_SHARED_ADDRESS_H

#include <stdint.h>

#include "exec/memory/address_space.h"
#include "ptx/ir.h"

_Static_assert((uint32_t)EXEC_SHARED_WINDOW == 0, "what is left of a generic address is the offset");

static inline uint64_t core_address_in(ptx_space space, uint64_t address) {
  return space == PTX_SPACE_SHARED ? (uint32_t)address : address;
}

#endif
