/* SPDX-License-Identifier: Apache-2.0 */
/* What functions that the virtual GPU provides itself need: arguments by lane, the kernel's memory, the device heap. */
#ifndef FF_EXEC_HOST_CALL_H
#define FF_EXEC_HOST_CALL_H

#include "exec/core.h"

/* Which function a name stands for; EXEC_HOST_NONE: none. */
uint32_t exec_host_function(const char *name);

/* Word `word` of argument n; 0 if there is none. */
uint32_t core_argument_word(const core_warp *w, const exec_call *call, uint32_t n, uint32_t word, uint32_t lane);
uint64_t core_argument(const core_warp *w, const exec_call *call, uint32_t n, uint32_t lane); /* its first 8 bytes */

/* Global memory of one allocation; NULL: not all of it is there. */
void *core_global_bytes(const core_warp *w, uint64_t address, uint32_t count);
/* To a generic address; a fault of the kernel if that cannot be. */
void core_write_memory(core_warp *w, const exec_instr *i, uint32_t lane, uint64_t address, const void *bytes,
                       uint32_t count);

uint64_t core_device_malloc(core_warp *w, uint64_t bytes); /* 0: no room */
bool core_device_free(core_warp *w, uint64_t address);     /* false: not a live block */

#endif
