/* SPDX-License-Identifier: Apache-2.0 */
/* The part of shared memory that is the system's (PTX ISA: %reserved_smem_offset_begin and its kin). Cooperative groups
 * of several warps keep their barriers there. On a GPU it lies before what the program asked for, and every block has
 * it; here behind that, at an offset that is a multiple of 16, and a block has it if its kernel asks where it is. */
#ifndef FF_EXEC_LAUNCH_RESERVED_SHARED_H
#define FF_EXEC_LAUNCH_RESERVED_SHARED_H

#include "exec/decode/program.h"

#define EXEC_RESERVED_SHARED 1024u /* bytes */

static inline uint32_t reserved_shared_at(const core_launch *launch) { return (launch->shared_bytes + 15) & ~15u; }

static inline uint32_t reserved_shared_bytes(const core_launch *launch) {
  return launch->kernel->reads_reserved ? EXEC_RESERVED_SHARED : 0;
}

#endif
