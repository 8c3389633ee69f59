/* SPDX-License-Identifier: Apache-2.0 */
/* What ends a launch, and the message that says where. None of these functions returns: they leave the interpreter
 * through the worker's escape; core_tell_waiting alone lets it go on. */
#ifndef FF_EXEC_FAULT_H
#define FF_EXEC_FAULT_H

#include "exec/core.h"

/* A fault of one lane at instruction i. The format says what happened; place, thread and text of the instruction are
 * added. address: 0 if none. */
_Noreturn void core_fault(core_warp *w, const exec_instr *i, uint32_t lane, exec_fault_kind kind, uint64_t address,
                          const char *format, ...) __attribute__((format(printf, 6, 7)));
/* An access of `bytes` bytes that is not legal: says which space, what lies nearest, and how far away. */
_Noreturn void core_fault_access(core_warp *w, const exec_instr *i, uint32_t lane, exec_fault_kind kind,
                                 uint64_t address, uint32_t bytes);
/* An access that the launch's declared uses do not cover. */
_Noreturn void core_fault_undeclared(core_warp *w, const exec_instr *i, uint32_t lane, uint64_t address, uint32_t bytes,
                                     uint32_t need);
/* The assert message of CUDA stands first. */
_Noreturn void core_fault_assert(core_warp *w, const exec_instr *i, uint32_t lane, const char *text);
/* No thread of the block can go on: the message says which wait where. */
_Noreturn void core_fault_deadlock(core_block *block);
/* All threads of the block that can go on wait at mbarriers, and no one is left who could end their phases. */
_Noreturn void core_fault_stuck(core_block *block);
/* Ends the launch if the cluster's blocks have only waited at mbarriers for waiting_ms (exec_config): block.c. */
void core_block_check_stuck(const core_cluster *cluster);

/* Tells the launch's owner that the block has been waiting, and where; returns. */
void core_tell_waiting(core_block *block);

#endif
